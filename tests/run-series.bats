#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# run-series: the order of the steps, and what a failing one does to the result. All steps are stubs.

setup() {
	T=$BATS_TEST_TMPDIR
	export SCRIPTS=$T/scripts RESULTS=$T/results CALLS=$T/calls
	RUN=$BATS_TEST_DIRNAME/../scripts/run-series
	mkdir -p "$SCRIPTS"
	local name
	for name in install-deps fetch-kernel apply-series build-kernel build-selftests build-initramfs; do
		stub "$name" ':'
	done
	stub run-plan ':'
	stub report-ktap 'echo "ok 1 kvm:foo"; echo "3 passed, 0 failed, 1 skipped"'
}

stub() {
	printf '#!/usr/bin/env bash\necho "%s $*" >>"$CALLS"\n%s\n' "$1" "$2" >"$SCRIPTS/$1"
	chmod +x "$SCRIPTS/$1"
}

@test "run-series: the default: arm64, normal, everything in order" {
	run "$RUN"
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "3 passed, 0 failed, 1 skipped" ]
	[ "$(cut -d' ' -f1 "$CALLS" | tr '\n' ' ')" = \
		"install-deps fetch-kernel apply-series build-selftests build-initramfs build-kernel run-plan report-ktap " ]
	grep -qx 'build-kernel arm64 normal' "$CALLS"
	grep -qx 'install-deps --arch arm64 series build guest' "$CALLS"
	[[ $output == *"== step 8/8: arm64 normal: report ["* ]]
}

@test "run-series: all: each architecture, numbered through, and the sum" {
	run "$RUN" all
	[ "$status" -eq 0 ]
	[ "$(grep -c '^run-plan' "$CALLS")" -eq 4 ]
	grep -qx 'install-deps series build guest' "$CALLS"
	[ "$(grep -c '^build-selftests' "$CALLS")" -eq 4 ]
	[[ $output == *"== step 23/23: loongarch64 normal: report"* ]]
	[ "${lines[-1]}" = "12 passed, 0 failed, 4 skipped" ]
}

@test "run-series: failed tests: exit 1" {
	stub report-ktap 'echo "2 passed, 1 failed, 0 skipped"; exit 1'
	run "$RUN"
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "2 passed, 1 failed, 0 skipped" ]
}

@test "run-series: failed tests and exit 0: exit 1" {
	stub report-ktap 'echo "2 passed, 1 failed, 0 skipped"'
	run "$RUN"
	[ "$status" -eq 1 ]
}

@test "run-series: a report without counts: one failure, exit 2" {
	stub report-ktap 'echo "all fine"'
	run "$RUN"
	[ "$status" -eq 2 ]
	[ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
}

@test "run-series: no results to judge: one failure, and an older run's are not reported" {
	stub run-plan 'exit 2'
	run "$RUN"
	[ "$status" -eq 2 ]
	[ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
	run grep report-ktap "$CALLS"
	[ "$status" -eq 1 ]
}

@test "run-series: one build fails: the other architectures run, the sum says so" {
	stub build-kernel '[ "$1" != x86_64 ]'
	run "$RUN" all
	[ "$status" -eq 2 ]
	[ "$(grep -c '^run-plan' "$CALLS")" -eq 3 ]
	[ "${lines[-1]}" = "9 passed, 1 failed, 3 skipped" ]
	[[ $output == *"x86_64 normal: could not run"* ]]
}

@test "run-series: no kernel, or no series: exit 2 and nothing is built" {
	for step in fetch-kernel apply-series; do
		: >"$CALLS"
		stub "$step" 'exit 1'
		run "$RUN"
		[ "$status" -eq 2 ]
		run grep '^build-' "$CALLS"
		[ "$status" -eq 1 ]
		stub "$step" ':'
	done
}

@test "run-series: --only build stops before the guest" {
	run "$RUN" --only build x86_64 debug
	[ "$status" -eq 0 ]
	grep -qx 'build-kernel x86_64 debug' "$CALLS"
	run grep run-plan "$CALLS"
	[ "$status" -eq 1 ]
}

@test "run-series: two flavours share the selftests" {
	run "$RUN" arm64 base normal
	[ "$status" -eq 0 ]
	[ "$(grep -c '^build-selftests' "$CALLS")" -eq 1 ]
	[ "${lines[-1]}" = "6 passed, 0 failed, 2 skipped" ]
}

@test "run-series: unknown words: one line, exit 2, nothing started" {
	for words in "sparc" "arm64 fast" "--only tea" "--fast"; do
		# shellcheck disable=SC2086 # several words
		run "$RUN" $words
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		[ ! -e "$CALLS" ]
	done
}

@test "run-series: Ctrl-C that run-guest turned into an exit code still ends the run" {
	stub run-plan 'exit 130'
	run "$RUN" all
	[ "$status" -eq 130 ]
	run grep report-ktap "$CALLS"
	[ "$status" -eq 1 ]
}
