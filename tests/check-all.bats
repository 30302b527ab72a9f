#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# check-all must never be greener than its steps. The steps are stubs: no build, no guest.

setup() {
	T=$BATS_TEST_TMPDIR
	export SCRIPTS=$T/scripts RESULTS=$T/results LANES=30
	CHECK=$BATS_TEST_DIRNAME/../scripts/check-all
	# Few steps are enough for most, and quick.
	STEPS=(lint check-series run-arm64-normal)
	mkdir -p "$SCRIPTS"
	stub install-deps 'exit 0'
	local name
	for name in lint test-scripts check-series build-objects check-mutants check-model; do
		stub "$name" 'echo "10 passed, 0 failed, 1 skipped"'
	done
	# ON: what one call of run-series does instead, "ARGUMENTS) COMMANDS ;;"
	series ''
}

stub() {
	printf '#!/usr/bin/env bash\n%s\n' "$2" >"$SCRIPTS/$1"
	chmod +x "$SCRIPTS/$1"
}

series() {
	stub run-series "case \"\$*\" in
$1
'--only guest '*) echo boot >&2; echo '3 passed, 0 failed, 0 skipped' ;;
esac"
}

last() { printf '%s\n' "${lines[-1]}"; }

@test "check-all: all well: the sum of all steps, alone on the last line, exit 0" {
	run "$CHECK"
	[ "$status" -eq 0 ]
	# 6 x 10 and 9 guests x 3
	[ "$(last)" = "87 passed, 0 failed, 6 skipped" ]
	[[ $output != *"failed: "* ]]
	[ -s "$RESULTS/check/run-arm64-debug.log" ]
}

@test "check-all: every architecture runs, debug on three, the base on arm64" {
	run "$CHECK" --list
	[ "$status" -eq 0 ]
	for step in run-{arm64,x86_64,riscv64,loongarch64}-normal run-{arm64,x86_64,riscv64}-debug \
		run-arm64-base run-loongarch64-scripted lint golden-tests check-series mutants model objects; do
		[[ $output == *" $step "* ]]
	done
}

@test "check-all: a failed test: its count, its last lines, its rerun command, exit 1" {
	series "'--only guest x86_64 debug') echo 'not ok 2 kvm:foo_test'; echo '2 passed, 1 failed, 0 skipped'; exit 1 ;;"
	run "$CHECK" run-x86_64-debug lint
	[ "$status" -eq 1 ]
	[ "$(last)" = "12 passed, 1 failed, 1 skipped" ]
	[[ $output == *"failed: run-x86_64-debug: 1 failed"* ]]
	[[ $output == *"| not ok 2 kvm:foo_test"* ]]
	[[ $output == *"rerun: make run ARCH=x86_64 FLAVOUR=debug"* ]]
}

@test "check-all: failed tests and a lost exit code are still failed tests" {
	series "'--only guest arm64 normal') echo '2 passed, 1 failed, 0 skipped'; exit 0 ;;"
	run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 1 ]
	[ "$(last)" = "22 passed, 1 failed, 2 skipped" ]
	[[ $output == *"failed: run-arm64-normal: 1 failed"* ]]
}

@test "check-all: an exit code that the counts do not explain is one failure" {
	stub lint 'echo "10 passed, 0 failed, 1 skipped"; exit 1'
	run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 2 ]
	[ "$(last)" = "23 passed, 1 failed, 2 skipped" ]
	[[ $output == *"failed: lint: exit 1, 0 failed"* ]]
}

@test "check-all: a step that printed no counts is one failure" {
	stub check-series 'echo "all fine"'
	run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 2 ]
	[ "$(last)" = "13 passed, 1 failed, 1 skipped" ]
	[[ $output == *"failed: check-series: no counts"* ]]
}

@test "check-all: counts that are not the last line, or not on stdout, are no counts" {
	stub check-series 'echo "10 passed, 0 failed, 1 skipped"; echo "Killed"'
	stub lint 'echo "10 passed, 0 failed, 1 skipped" >&2'
	stub test-scripts 'echo "10 passed, 0 failed"'
	run "$CHECK" lint golden-tests check-series run-arm64-normal
	[ "$status" -eq 2 ]
	[ "$(last)" = "3 passed, 3 failed, 0 skipped" ]
}

@test "check-all: a step that ran nothing is one failure" {
	stub test-scripts 'echo "0 passed, 0 failed, 0 skipped"'
	run "$CHECK" golden-tests lint
	[ "$status" -eq 2 ]
	[ "$(last)" = "10 passed, 1 failed, 1 skipped" ]
	[[ $output == *"failed: golden-tests: ran nothing"* ]]
}

@test "check-all: a step that is killed is one failure" {
	stub lint 'kill -KILL $$'
	run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 2 ]
	[ "$(last)" = "13 passed, 1 failed, 1 skipped" ]
	[[ $output == *"failed: lint: killed by signal 9, no counts"* ]]
}

@test "check-all: a step that is not there is one failure" {
	rm "$SCRIPTS/lint"
	run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 2 ]
	[ "$(last)" = "13 passed, 1 failed, 1 skipped" ]
}

@test "check-all: a build that fails, and what needs it, count; the others go on" {
	series "'--only kernel riscv64 debug') echo 'foo.c:1: error' >&2; exit 2 ;;"
	run "$CHECK" lint run-riscv64-debug run-riscv64-normal
	[ "$status" -eq 2 ]
	[ "$(last)" = "13 passed, 2 failed, 1 skipped" ]
	[[ $output == *"failed: kernel-riscv64-debug: exit 2"* ]]
	[[ $output == *"| foo.c:1: error"* ]]
	[[ $output == *"failed: run-riscv64-debug: not run, kernel-riscv64-debug failed"* ]]
}

@test "check-all: no kernel: nothing that needs it runs, and all of it counts" {
	series "'--only series') exit 2 ;;"
	run "$CHECK"
	[ "$status" -eq 2 ]
	# series, check-series, objects, mutants, 4 tools, 9 kernels, 9 guests; the others ran
	[ "$(last)" = "30 passed, 26 failed, 3 skipped" ]
}

@test "check-all: a step that hangs is ended with all it started" {
	series "'--only guest arm64 normal') sleep 987654 & setsid sleep 987655 & wait ;;"
	STEP_LIMIT=2 run "$CHECK" "${STEPS[@]}"
	[ "$status" -eq 2 ]
	[ "$(last)" = "20 passed, 1 failed, 2 skipped" ]
	[[ $output == *"failed: run-arm64-normal: ended after 2 s"* ]]
	[ -z "$(survivors)" ]
}

@test "check-all: packages missing: one line, exit 2" {
	stub install-deps 'exit 2'
	run "$CHECK"
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

@test "check-all: one lane runs one step at a time" {
	stub test-scripts 'mkdir "$RESULTS/busy" && sleep 0.3 && rmdir "$RESULTS/busy" && echo "10 passed, 0 failed, 1 skipped"'
	cp "$SCRIPTS/test-scripts" "$SCRIPTS/lint"
	series "'--only series') mkdir \"\$RESULTS/busy\" && sleep 0.3 && rmdir \"\$RESULTS/busy\" ;;"
	LANES=1 run "$CHECK" golden-tests lint
	[ "$status" -eq 0 ]
}

# The sleeps of this file by their odd lengths.
survivors() {
	grep -alzx '98765[0-9]' /proc/[0-9]*/cmdline 2>/dev/null || true
}

@test "check-all: Ctrl-C ends every step and all it started, even what ignores being asked" {
	series "'--only guest arm64 normal') trap '' TERM INT; setsid sleep 987656 & sleep 987657 & touch \"\$RESULTS/up\"; wait; wait ;;
'--only kernel x86_64 debug') touch \"\$RESULTS/up2\"; sleep 987658 ;;"
	# Whoever started bats may have it ignore SIGINT, as shells do for their background jobs, and a
	# shell cannot trap what it was told to ignore.
	bash -c 'set -m; env --default-signal=INT "$1" run-arm64-normal kernel-x86_64-debug >"$2/out" 2>&1 & pid=$!
		for i in {1..100}; do [ -e "$RESULTS/up2" ] && [ -e "$RESULTS/up" ] && break; sleep 0.1; done
		kill -INT "$pid"; wait "$pid"; echo "exit $?" >>"$2/out"' - "$CHECK" "$T"
	[ -e "$RESULTS/up" ]
	[ "$(tail -n 1 "$T/out")" = "exit 130" ]
	[ -z "$(survivors)" ]
	# An interrupted check has no result.
	run grep -E '^[0-9]+ passed' "$T/out"
	[ "$status" -eq 1 ]
}
