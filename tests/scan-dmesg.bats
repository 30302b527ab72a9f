#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# scan-dmesg: every kind of splat is found, ordinary lines are not, and a scan that could
# not be made is never "ok".

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd -P)
	DATA=$ROOT/tests/data/scan-dmesg
	SCAN=$ROOT/scripts/scan-dmesg
	T=$BATS_TEST_TMPDIR
	cp "$ROOT/scripts/splats.allow" "$T/allow"
	unset SPLATS_DENY SPLATS_ALLOW
}

last() { printf '%s\n' "${lines[-1]}"; }

allow() { printf '%s\n' "$@" >>"$T/allow"; export SPLATS_ALLOW=$T/allow; }

@test "scan-dmesg: a clean log" {
	run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 0 ]
	[ "$output" = "ok 1 kernel-log" ]
}

@test "scan-dmesg: a WARN, with the lines and their numbers" {
	run "$SCAN" "$DATA/warn.log"
	[ "$status" -eq 1 ]
	[ "${lines[0]}" = "# 3: [   12.000000] ------------[ cut here ]------------" ]
	[ "$(last)" = "not ok 1 kernel-log # 3 suspicious lines" ]
}

@test "scan-dmesg: each kind of splat is found on its own" {
	# One expression at a time would take long: every line must be among those found.
	{ cat "$DATA/clean.log"; sed 's/^/[   20.000000] /' "$DATA/splats"; } >"$T/log"
	run "$SCAN" "$T/log"
	[ "$status" -eq 1 ]
	while IFS= read -r line; do
		[[ $output == *"] $line"* ]] || { echo "not found: $line"; false; }
	done <"$DATA/splats"
}

@test "scan-dmesg: carriage returns and binary bytes hide nothing" {
	sed 's/$/\r/' "$DATA/warn.log" >"$T/log"
	printf '\000\377\n' | cat - "$T/log" >"$T/log2"
	run "$SCAN" "$T/log2"
	[ "$status" -eq 1 ]
	[ "$(last)" = "not ok 1 kernel-log # 3 suspicious lines" ]
}

@test "scan-dmesg: an allowed line is no splat, the others still are" {
	allow '# reason: only for this test' '# until: the test ends' 'arm\.c:1234'
	run "$SCAN" "$DATA/warn.log"
	[ "$status" -eq 1 ]
	[ "$(last)" = "not ok 1 kernel-log # 2 suspicious lines" ]
	allow '# reason: only for this test' '# until: the test ends' 'cut here' \
		'# reason: only for this test' '# until: the test ends' 'Call trace'
	run "$SCAN" "$DATA/warn.log"
	[ "$status" -eq 0 ]
}

@test "scan-dmesg: an exception without reason or without end is refused" {
	allow '# reason: because' 'arm\.c:1234'
	run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 2 ]
	[[ $(last) == "not ok 1 kernel-log # cannot scan: allow:"*"lacks"* ]]
}

@test "scan-dmesg: one reason does not serve two exceptions" {
	allow '# reason: only for this test' '# until: the test ends' 'arm\.c:1234' 'cut here'
	run "$SCAN" "$DATA/warn.log"
	[ "$status" -eq 2 ]
}

@test "scan-dmesg: no log, an empty log, a log without a beginning" {
	run "$SCAN" "$T/none"
	[ "$status" -eq 1 ]
	[ "$output" = "not ok 1 kernel-log # no kernel log" ]
	: >"$T/empty"
	run "$SCAN" "$T/empty"
	[ "$status" -eq 1 ]
	echo 'some text' >"$T/text"
	run "$SCAN" "$T/text"
	[ "$status" -eq 1 ]
	[ "$output" = "not ok 1 kernel-log # the kernel log has no beginning" ]
}

@test "scan-dmesg: a missing, an empty or a broken list" {
	SPLATS_DENY=$T/none run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 2 ]
	[[ $output == "not ok 1 kernel-log # cannot scan"* ]]
	echo '# nothing' >"$T/empty"
	SPLATS_DENY=$T/empty run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 2 ]
	SPLATS_ALLOW=$T/none run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 2 ]
	echo '(unbalanced' >"$T/broken"
	SPLATS_DENY=$T/broken run "$SCAN" "$DATA/clean.log"
	[ "$status" -eq 2 ]
	[[ $output == *"not ok 1 kernel-log # cannot scan"* ]]
}
