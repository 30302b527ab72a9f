#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# test-scripts: bats' TAP to counts. A stub stands in for bats.

setup() {
	T=$BATS_TEST_TMPDIR
	RUN=$BATS_TEST_DIRNAME/../scripts/test-scripts
	mkdir "$T/bin"
	PATH=$T/bin:$PATH
}

# tap EXIT LINE...: what bats prints, and its exit code.
tap() {
	local code=$1
	shift
	printf '%s\n' "$@" >"$T/tap"
	printf '#!/usr/bin/env bash\ncat "%s"\nexit %d\n' "$T/tap" "$code" >"$T/bin/bats"
	chmod +x "$T/bin/bats"
	run "$RUN" x.bats
	echo "$output"
}

@test "test-scripts: passed and skipped" {
	tap 0 1..3 'ok 1 a' 'ok 2 b # skip no tool' 'ok 3 c'
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "2 passed, 0 failed, 1 skipped" ]
}

@test "test-scripts: failed" {
	tap 1 1..2 'ok 1 a' 'not ok 2 b' '# (in test file ...)'
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "1 passed, 1 failed, 0 skipped" ]
}

@test "test-scripts: failed, and an exit code that got lost" {
	tap 0 1..2 'ok 1 a' 'not ok 2 b'
	[ "$status" -eq 1 ]
}

@test "test-scripts: a test that was planned and not reported has failed" {
	tap 1 1..3 'ok 1 a' 'ok 3 c'
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "2 passed, 1 failed, 0 skipped" ]
}

@test "test-scripts: all reported as passed, and an error outside of them" {
	tap 1 1..2 'ok 1 a' 'ok 2 b'
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "2 passed, 1 failed, 0 skipped" ]
}

@test "test-scripts: no plan, or an empty one: could not run" {
	tap 1 'bats: syntax error'
	[ "$status" -eq 2 ]
	tap 0 1..0
	[ "$status" -eq 2 ]
}

@test "test-scripts: bats is missing: one line, exit 2" {
	for tool in dirname basename bash env nproc; do ln -s "$(command -v "$tool")" "$T/bin/$tool"; done
	PATH=$T/bin run "$RUN"
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}
