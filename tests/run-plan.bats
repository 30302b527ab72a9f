#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# The plan files, and run-plan with a stub for QEMU.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd -P)
	T=$BATS_TEST_TMPDIR
	export BUILD=$T/build RESULTS=$T/results PLANS=$T/plans TMPDIR=$T/tmp
	export QEMU=$ROOT/tests/data/run-guest/qemu-stub STUB_PID=$T/qemu.pid STUB_GUEST=good
	unset ACCEL
	cp -r "$ROOT/tests/data/run-plan/plans" "$PLANS"
	mkdir -p "$BUILD"/{arm64,loongarch64}-{normal,selftests/install} "$TMPDIR"
	: >"$BUILD/arm64-normal/image"
	: >"$BUILD/loongarch64-normal/image"
	: >"$BUILD/arm64-initramfs.cpio"
	: >"$BUILD/loongarch64-initramfs.cpio"
	echo kvm:alpha_test | tee "$BUILD"/{arm64,loongarch64}-selftests/install/kselftest-list.txt >/dev/null
	R=$RESULTS/arm64-normal
}

plan() { printf '%s\n' "$@" >"$PLANS/arm64.plan"; }
resolve() { run "$ROOT/scripts/resolve-plan" arm64 "${@:-normal}"; }
run_plan() { run "$ROOT/scripts/run-plan" "${@:-arm64}" normal; echo "$output"; }
not() { if "$@" 2>/dev/null; then return 1; fi; }

# guest_file NAME: what run-plan gave the guest. The stub has kept QEMU's arguments, and
# with STUB_KEEP the archive.
guest_file() { (cd "$T" && cpio -i --quiet --to-stdout "$1" <"$T/initramfs"); }

# Plans

@test "resolve-plan: the project's own plans are right, for every flavour that runs" {
	unset PLANS
	for arch in arm64 x86_64 riscv64; do
		for flavour in normal debug base; do
			"$ROOT/scripts/resolve-plan" "$arch" "$flavour" >/dev/null
		done
	done
	"$ROOT/scripts/resolve-plan" loongarch64 scripted >/dev/null
	run "$ROOT/scripts/resolve-plan" loongarch64 normal --lines
	[ "$status" -eq 0 ]
	# There's no KVM on it.
	[[ $output == kvm:kunit_suite$'\t'* ]]
	[[ $output != *pv_tlb_flush_test* ]]
}

@test "resolve-plan: time limit, arguments, defaults" {
	plan 'kvm:a_test timeout=7 args="-v 2"' 'kvm:b_test'
	resolve normal --lines
	[ "$output" = "$(printf 'kvm:a_test\t7\t-v 2\nkvm:b_test\t120\t')" ]
}

@test "resolve-plan: flavours; base is like normal, but new tests must skip" {
	plan 'kvm:a_test flavours=normal new' 'kvm:b_test flavours=debug'
	resolve debug --lines
	[ "$output" = "$(printf 'kvm:b_test\t120\t')" ]
	resolve base
	[[ $output == *'"expect": "skip"'* ]]
	[[ $output != *'"name": "kvm:b_test"'* ]]
}

@test "resolve-plan: an include, and an override of it" {
	printf 'kvm:a_test\nkvm:b_test\n' >"$PLANS/base.plan"
	plan 'include base.plan' 'leave-out kvm:a_test override # slow here' 'kvm:b_test override timeout=9'
	resolve normal --lines
	[ "$output" = "$(printf 'kvm:b_test\t9\t')" ]
}

@test "resolve-plan: each mistake is an error that names the line" {
	local wrong
	for wrong in 'kvm:a_test expect=skip' 'kvm:a_test expect=maybe # why' 'kvm:a_test timeout=0' \
		'kvm:a_test timeout=1m' 'kvm:a_test flavours=fast' 'kvm:a_test frobnicate' 'a_test' \
		'leave-out kvm:a_test' 'leave-out kvm:a_test # ' 'kvm:a_test override' 'include none.plan' \
		'kvm:a_test args="-v' 'leave-out'; do
		plan 'kvm:x_test' "$wrong"
		resolve normal
		echo "$wrong: $output"
		[ "$status" -eq 2 ]
		[[ $output == "resolve-plan: "*plan* ]]
	done
	plan 'kvm:x_test' 'kvm:x_test timeout=2'
	resolve normal
	[ "$status" -eq 2 ]
	[[ $output == *"arm64.plan:2: kvm:x_test is already in arm64.plan:1"* ]]
}

@test "resolve-plan: an empty plan, no plan, a test that is not planned" {
	plan '# nothing'
	resolve normal
	[ "$status" -eq 2 ]
	rm "$PLANS/arm64.plan"
	resolve normal
	[ "$status" -eq 2 ]
	plan 'kvm:a_test'
	resolve normal --only kvm:b_test
	[ "$status" -eq 2 ]
	[[ $output == *"kvm:b_test is not planned"* ]]
}

# Runs

@test "run-plan: a good run: raw files, live results, and report-ktap agrees" {
	run_plan
	[ "$status" -eq 0 ]
	[[ $output == *"1/1 ok 1 selftests: kvm: alpha_test ("*" s)"* ]]
	for file in ktap.log console.log status meta timing installed.txt; do
		[ -s "$R/$file" ]
	done
	grep -qE '^kvm:alpha_test [0-9]+\.[0-9]$' "$R/timing"
	grep -qx 'qemu=99.1' "$R/meta"
	run "$ROOT/scripts/report-ktap" arm64 normal
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "3 passed, 0 failed, 0 skipped" ]
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "run-plan: the guest gets the tests, their arguments and their time limits" {
	plan 'kvm:alpha_test timeout=30' 'kvm:get-reg-list timeout=77 args="-v 2"' 'kvm:none_test'
	echo kvm:get-reg-list >>"$BUILD/arm64-selftests/install/kselftest-list.txt"
	STUB_KEEP=$T/initramfs run_plan
	[ "$status" -eq 0 ]
	run guest_file guest/run-tests
	[[ $output == *"/dev/kvm"*"Bail out!"* ]]
	[[ $output == *"export KSELFTEST_GET_REG_LIST_ARGS=-v\\ 2"* ]]
	# A planned test that is not there would stop the tree's runner: report-ktap misses it.
	[ "${lines[-1]}" = "exec /kselftest/run_kselftest.sh -t kvm:alpha_test -t kvm:get-reg-list" ]
	# The value as the tree's run_one() computes it.
	mkdir "$T/root"
	guest_file guest/timeouts >"$T/root/timeouts"
	line=$(guest_file kselftest/kvm/settings | sed "s|/guest/timeouts|$T/root/timeouts|")
	# shellcheck disable=SC2034 # for the settings file, which is evaluated below
	BASENAME_TEST=get-reg-list
	field=$(echo "$line" | cut -d= -f1)
	value=$(echo "$line" | cut -d= -f2-)
	eval "kselftest_$field"="$value"
	# shellcheck disable=SC2154
	[ "$kselftest_timeout" = 77 ]
}

@test "run-plan: the time limits go in by run_kselftest.sh's own way" {
	# If the tree stops evaluating the value, or renames the variable, this has to change.
	runner=${KERNEL:-$ROOT/kernel}/tools/testing/selftests/kselftest/runner.sh
	grep -qF 'eval "kselftest_$field"="$value"' "$runner"
	grep -qF 'KSELFTEST_${BASENAME_SANITIZED}_ARGS' "$runner"
}

@test "run-plan: a guest that dies is a run to judge, not a run that failed" {
	STUB_GUEST=dies run_plan
	[ "$status" -eq 0 ]
	grep -qx state=died "$R/status"
	run "$ROOT/scripts/report-ktap" arm64 normal
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "0 passed, 3 failed, 0 skipped" ]
}

@test "run-plan: a QEMU that does not start is a run to judge, too" {
	STUB_GUEST=refuses run_plan
	[ "$status" -eq 0 ]
	run "$ROOT/scripts/report-ktap" arm64 normal
	[ "$status" -eq 1 ]
	[[ $output == *"FAIL guest: the guest did not boot"* ]]
}

@test "run-plan: the guest of loongarch64 has four processors; without selftests, none" {
	run_plan loongarch64
	[ "$status" -eq 0 ]
	grep -q -- '-smp 4 ' "$RESULTS/loongarch64-normal/qemu.log"
	[ "$(cat "$RESULTS/loongarch64-normal/installed.txt")" = kvm:alpha_test ]
	rm "$BUILD/loongarch64-selftests/install/kselftest-list.txt"
	run_plan loongarch64
	[ "$status" -eq 2 ]
	[[ $output == *"no selftests in"* ]]
}

@test "run-plan: --only keeps the results of the whole plan" {
	run_plan
	run "$ROOT/scripts/run-plan" arm64 normal --only kvm:alpha_test
	[ "$status" -eq 0 ]
	[ -e "$R/meta" ]
	grep -qx only=kvm:alpha_test "$R-only/meta"
	run "$ROOT/scripts/run-plan" arm64 normal --only kvm:beta_test
	[ "$status" -eq 2 ]
}

@test "run-plan: what it cannot do is exit 2, and leaves nothing to judge" {
	run_plan
	rm "$BUILD/arm64-normal/image"
	run_plan
	[ "$status" -eq 2 ]
	[ ! -e "$R/meta" ]
	rm "$BUILD/arm64-selftests/install/kselftest-list.txt"
	run_plan
	[ "$status" -eq 2 ]
	[[ $output == *"no selftests in"* ]]
	plan 'kvm:a_test expect=skip'
	run_plan
	[ "$status" -eq 2 ]
	[ -z "$(ls -A "$TMPDIR")" ]
}

@test "run-plan: Ctrl-C, or SIGTERM to it alone, leaves no QEMU behind and nothing to judge" {
	local sig code
	for sig in INT TERM; do
		rm -f "$STUB_PID"
		STUB_GUEST=hangs setsid python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$ROOT/scripts/run-plan" arm64 normal >"$T/out" 2>&1 3>&- &
		plan=$!
		for _ in $(seq 150); do
			not grep -q boot "$R/control.log" || break
			sleep 0.2
		done
		if [ $sig = INT ]; then kill -INT -- "-$plan"; else kill -TERM "$plan"; fi
		code=0
		wait "$plan" || code=$?
		[ $code -ge 130 ]
		not kill -0 "$(cat "$STUB_PID")"
		[ ! -e "$R/meta" ]
		[ -z "$(ls -A "$TMPDIR")" ]
		# Not one process of the group is left.
		for _ in $(seq 20); do
			not kill -0 -- "-$plan" && break
			sleep 0.5
		done
		not kill -0 -- "-$plan"
	done
}
