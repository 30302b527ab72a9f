#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# report-ktap is where a red run could turn green. One good run (tests/data/report-ktap/good)
# and, test by test, one thing wrong with it.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd -P)
	DATA=$ROOT/tests/data/report-ktap
	export RESULTS=$BATS_TEST_TMPDIR/results PLANS=$BATS_TEST_TMPDIR/plans
	mkdir -p "$RESULTS"
	cp -r "$DATA/plans" "$PLANS"
	cp -r "$DATA/good" "$RESULTS/arm64-normal"
	R=$RESULTS/arm64-normal
	cd "$ROOT" || exit
}

last() { printf '%s\n' "${lines[-1]}"; }

# judge FAILED [PATTERN]...: one failed run, with that many failures and these texts.
judge() {
	local failed=$1 pattern
	shift
	run scripts/report-ktap arm64 "${FLAVOUR:-normal}"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $(last) == *" passed, $failed failed, "*" skipped" ]]
	for pattern in "$@"; do
		[[ $output == *"$pattern"* ]]
	done
	# What a program reads must say the same.
	[[ $(grep -c '^not ok ' "$RESULTS/arm64-${FLAVOUR:-normal}/results.ktap") -eq $failed ]]
	grep -q "^ \"failed\": $failed,\$" "$RESULTS/arm64-${FLAVOUR:-normal}/results.json"
}

# cut_at LINE: the log as it is when the guest stops there.
cut_at() { sed -i "/$1/,\$d" "$R/ktap.log"; }

@test "report-ktap: a good run, word by word" {
	scripts/report-ktap arm64 normal >"$BATS_TEST_TMPDIR/out"
	diff -u "$DATA/good.out" "$BATS_TEST_TMPDIR/out"
	diff -u "$DATA/good.ktap" "$R/results.ktap"
}

@test "report-ktap: a failed test, word by word: ten lines, the path, the rerun command" {
	sed -i 's/^ok 6.*/not ok 6 selftests: kvm: user_exit_test # exit=254/' "$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	run scripts/report-ktap arm64 normal
	[ "$status" -eq 1 ]
	# shellcheck disable=SC2001 # the pattern has slashes and the like
	sed "s|$RESULTS|RESULTS|" <<<"$output" | diff -u "$DATA/failed.out" -
}

@test "report-ktap: the kernel's parser leaves no files in the kernel tree" {
	scripts/report-ktap arm64 normal
	[ ! -e "${KERNEL:-kernel}/tools/testing/kunit/__pycache__" ]
}

@test "report-ktap: --only judges the run of that test, and no other" {
	mv "$R" "$R-only"
	sed -i 's/^only=.*/only=kvm:arch_timer/' "$R-only/meta"
	printf 'TAP version 13\n1..1\n# selftests: kvm: arch_timer\nok 1 selftests: kvm: arch_timer\n' \
		>"$R-only/ktap.log"
	run scripts/report-ktap arm64 normal --only kvm:arch_timer
	[ "$status" -eq 0 ]
	[ "$(last)" = "3 passed, 0 failed, 0 skipped" ]
	run scripts/report-ktap arm64 normal --only kvm:get-reg-list
	[ "$status" -eq 2 ]
}

@test "report-ktap: base flavour: our new tests must skip" {
	cp -r "$R" "$RESULTS/arm64-base"
	FLAVOUR=base judge 1 "passed, but the plan says expect=skip"
	sed -i 's/^ok 6.*/& # SKIP/' "$RESULTS/arm64-base/ktap.log"
	run scripts/report-ktap arm64 base
	[ "$status" -eq 0 ]
	[ "$(last)" = "6 passed, 0 failed, 2 skipped" ]
}

@test "report-ktap: a test of another flavour is not missed" {
	cp -r "$R" "$RESULTS/arm64-debug"
	R=$RESULTS/arm64-debug
	sed -i -e '/arch_timer/d' -e 's/^1\.\.6/1..5/' -e 's/^ok 6/ok 5/' "$R/ktap.log"
	run scripts/report-ktap arm64 debug
	[ "$status" -eq 0 ]
	[ "$(last)" = "6 passed, 0 failed, 1 skipped" ]
}

# The bad cases

@test "report-ktap: a kernel splat fails, though every test passed" {
	cat "$DATA/splat.log" >>"$R/console.log"
	judge 1 "FAIL kernel-log: 2 suspicious lines" "| [   12.000000] ------------[ cut here" \
		"arm64-normal/console.log:7"
}

@test "report-ktap: no kernel log fails" {
	: >"$R/console.log"
	judge 1 "FAIL kernel-log: no kernel log"
	rm "$R/console.log"
	judge 1 "FAIL kernel-log: no kernel log"
}

@test "report-ktap: a scan that cannot run fails" {
	SPLATS_DENY=/nonexistent judge 1 "FAIL kernel-log: cannot scan"
}

@test "report-ktap: a dead guest fails, though every test passed" {
	printf 'state=died\nseconds=44\n' >"$R/status"
	judge 1 "FAIL guest: the guest died"
}

@test "report-ktap: a guest that did not boot fails, and so does every test" {
	printf 'state=no-boot\nseconds=44\n' >"$R/status"
	: >"$R/ktap.log"
	judge 7 "FAIL guest: the guest did not boot" "FAIL kvm:get-reg-list: no result"
}

@test "report-ktap: a hung guest fails, and the test it hung in is named" {
	printf 'state=idle\nseconds=944\n' >"$R/status"
	cut_at '^ok 5'
	judge 3 "FAIL guest: the guest hung" "FAIL kvm:arch_timer: began and never ended" \
		"FAIL kvm:user_exit_test: no result"
}

@test "report-ktap: a guest stopped at the time limit fails" {
	printf 'state=timeout\nseconds=944\n' >"$R/status"
	judge 1 "FAIL guest: the guest hung: stopped at the time limit"
}

@test "report-ktap: a panic in the middle fails" {
	printf 'state=died\nseconds=20\n' >"$R/status"
	cut_at '^ok 3'
	printf '[   12.0] Kernel panic - not syncing: Oops: Fatal exception\n' >>"$R/console.log"
	judge 6 "FAIL kvm:vgic_init: began and never ended" "FAIL kernel-log: 1 suspicious" \
		"FAIL guest: the guest died"
}

@test "report-ktap: a test that hangs fails" {
	sed -i 's/^ok 3.*/not ok 3 selftests: kvm: vgic_init # TIMEOUT 120 seconds/' "$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	judge 1 "FAIL kvm:vgic_init: TIMEOUT 120 seconds"
}

@test "report-ktap: a planned test without result fails" {
	sed -i -e '/kvm: arch_timer/d' -e 's/^1\.\.6/1..5/' -e 's/^ok 6/ok 5/' "$R/ktap.log"
	judge 1 "FAIL kvm:arch_timer: no result"
}

@test "report-ktap: a planned test that is not installed fails" {
	sed -i -e '/kvm: arch_timer/d' -e 's/^1\.\.6/1..5/' -e 's/^ok 6/ok 5/' "$R/ktap.log"
	sed -i '/arch_timer/d' "$R/installed.txt"
	judge 1 "FAIL kvm:arch_timer: planned but not installed"
}

@test "report-ktap: an installed test that is neither planned nor left out fails" {
	echo kvm:brand_new_test >>"$R/installed.txt"
	judge 1 "FAIL kvm:brand_new_test: installed, but neither planned nor left out"
}

@test "report-ktap: a result that is not planned fails, a pass too" {
	sed -i '/kvm:arch_timer/d' "$PLANS/arm64.plan"
	judge 1 "FAIL kvm:arch_timer: not planned, but has a result (pass)"
}

@test "report-ktap: a left-out test that ran all the same fails" {
	sed -i 's/^kvm:arch_timer .*/leave-out kvm:arch_timer  # slow/' "$PLANS/arm64.plan"
	judge 1 "FAIL kvm:arch_timer: not planned, but has a result (pass)"
}

@test "report-ktap: a wrong test name fails on both sides" {
	sed -i 's/kvm: arch_timer/kvm: arch_timers/' "$R/ktap.log"
	judge 2 "FAIL kvm:arch_timer: no result" "FAIL kvm:arch_timers: not planned"
}

@test "report-ktap: a name that only begins the same is another name" {
	sed -i 's/^kvm:vgic_init /kvm:vgic_init_test /' "$PLANS/arm64.plan"
	sed -i 's/^kvm:vgic_init$/kvm:vgic_init_test/' "$R/installed.txt"
	judge 2 "FAIL kvm:vgic_init_test: no result" "FAIL kvm:vgic_init: not planned"
}

@test "report-ktap: an unexpected skip fails, with the test's reason" {
	sed -i -e 's/^ok 3.*/& # SKIP/' -e 's/^# Running GIC.*/# 1..0 # SKIP - No GICv3 support/' \
		"$R/ktap.log"
	judge 1 "FAIL kvm:vgic_init: unexpected skip: No GICv3 support"
}

@test "report-ktap: a pass where the plan expects a skip fails" {
	sed -i 's/^ok 4.*/ok 4 selftests: kvm: steal_time/' "$R/ktap.log"
	judge 1 "FAIL kvm:steal_time: passed, but the plan says expect=skip"
}

@test "report-ktap: a failure where the plan expects a skip fails" {
	sed -i 's/^ok 4.*/not ok 4 selftests: kvm: steal_time # exit=254/' "$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	judge 1 "FAIL kvm:steal_time: exit=254"
}

@test "report-ktap: an expected failure is counted as skipped, its pass fails" {
	sed -i 's/^kvm:vgic_init .*/kvm:vgic_init expect=xfail # a bug, until it is fixed/' "$PLANS/arm64.plan"
	judge 1 "FAIL kvm:vgic_init: passed, but the plan says expect=xfail"
	sed -i 's/^ok 3.*/not ok 3 selftests: kvm: vgic_init # exit=254/' "$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	run scripts/report-ktap arm64 normal
	[ "$status" -eq 0 ]
	[ "$(last)" = "6 passed, 0 failed, 2 skipped" ]
}

@test "report-ktap: all skipped fails, even if the plan expects every skip" {
	sed -i 's/^\(ok [0-9] [^#]*[^# ]\)\( # SKIP\)*$/\1 # SKIP/' "$R/ktap.log"
	sed -i -E 's/^(kvm:[^ ]+) .*$/\1/; s/^kvm:.*/& expect=skip # nothing works/' "$PLANS"/*.plan
	judge 1 "FAIL guest: no planned test ran: all skipped"
}

@test "report-ktap: no access is no reason to skip, even where a skip is expected" {
	sed -i "s|^# 1\.\.0 # SKIP.*|# 1..0 # SKIP - Cannot open '/dev/kvm': Permission denied.  Root required?|" \
		"$R/ktap.log"
	judge 1 "FAIL kvm:steal_time: no access is not a reason to skip"
	sed -i "s|^# 1\.\.0 # SKIP.*|# Access denied - Exiting, skipping test|" "$R/ktap.log"
	judge 1 "FAIL kvm:steal_time: no access is not a reason to skip"
}

@test "report-ktap: a log that is cut off after a passed test fails" {
	cut_at '^ok 5'
	judge 3 "FAIL kvm:arch_timer" "FAIL kvm:user_exit_test" "FAIL guest: KTAP: "
}

@test "report-ktap: a cut-off log fails even if the rest of the plan is another flavour's" {
	cp -r "$R" "$RESULTS/arm64-debug"
	sed -i '/arch_timer/d' "$RESULTS/arm64-debug/ktap.log"
	FLAVOUR=debug judge 1 "FAIL guest: KTAP: "
}

@test "report-ktap: more results than announced fail" {
	sed -i 's/^1\.\.6/1..5/' "$R/ktap.log"
	judge 1 "KTAP: 5 results announced, 6 seen"
}

@test "report-ktap: a log without a plan line fails" {
	sed -i '/^1\.\.6/d' "$R/ktap.log"
	judge 1 "FAIL guest: KTAP: no plan line"
}

@test "report-ktap: two results of one test fail, and the failure counts" {
	sed -i 's/^ok 6 .*/not ok 6 selftests: kvm: vgic_init # exit=1/' "$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	judge 3 "FAIL guest: two results of kvm:vgic_init" "FAIL kvm:vgic_init: exit=1"
}

@test "report-ktap: a result line that nobody can read fails" {
	sed -i 's/^ok 3 .*/ok selftests/' "$R/ktap.log"
	judge 2 "FAIL kvm:vgic_init: began and never ended" "is no result: ok selftests"
}

@test "report-ktap: an empty log fails" {
	: >"$R/ktap.log"
	judge 7 "no test has a result"
	rm "$R/ktap.log"
	judge 7 "no test has a result"
}

@test "report-ktap: a lost exit code fails" {
	printf 'state=exited\nseconds=44\n' >"$R/status"
	judge 1 "FAIL guest: the exit code was lost"
	rm "$R/status"
	judge 1 "FAIL guest: no status of the guest"
}

@test "report-ktap: an exit code that does not go with the results fails" {
	sed -i 's/^exit=0/exit=1/' "$R/status"
	judge 1 "FAIL guest: exit code 1 does not go with 0 failed of 6 results"
	sed -i 's/^ok 6.*/not ok 6 selftests: kvm: user_exit_test # exit=254/' "$R/ktap.log"
	sed -i 's/^exit=1/exit=0/' "$R/status"
	judge 2 "FAIL guest: exit code 0 does not go with 1 failed of 6 results"
}

@test "report-ktap: Bail out fails" {
	printf 'Bail out! /dev/kvm does not open for reading and writing\n' >"$R/ktap.log"
	sed -i 's/^exit=0/exit=1/' "$R/status"
	judge 7 "Bail out! /dev/kvm does not open"
}

@test "report-ktap: no finished run: exit 2, nothing on stdout" {
	rm "$R/meta"
	run scripts/report-ktap arm64 normal
	[ "$status" -eq 2 ]
	[[ $output == *"has no finished run"* ]]
	[ ! -e "$R/results.json" ]
	run scripts/report-ktap riscv64 normal
	[ "$status" -eq 2 ]
}

@test "report-ktap: a wrong plan: exit 2, and the line that is wrong" {
	echo 'kvm:vgic_init' >>"$PLANS/arm64.plan"
	run scripts/report-ktap arm64 normal
	[ "$status" -eq 2 ]
	[[ $output == *"arm64.plan:9: kvm:vgic_init is already in arm64.plan:5"* ]]
}
