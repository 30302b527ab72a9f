#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# run-guest with a stub for QEMU: each way a guest can end has its exit code and its state,
# and no QEMU is left behind, whatever happens.

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd -P)
	T=$BATS_TEST_TMPDIR
	export BUILD=$T/build RESULTS=$T/results QEMU=$ROOT/tests/data/run-guest/qemu-stub
	export STUB_PID=$T/qemu.pid TMPDIR=$T/tmp
	unset ACCEL
	mkdir -p "$BUILD/arm64-normal" "$BUILD/x86_64-normal" "$TMPDIR"
	: >"$BUILD/arm64-normal/image"
	: >"$BUILD/x86_64-normal/image"
	: >"$BUILD/arm64-initramfs.cpio"
	: >"$BUILD/x86_64-initramfs.cpio"
	OUT=$RESULTS/arm64-normal-guest
}

guest() {
	export STUB_GUEST=$1
	shift
	run "$ROOT/scripts/run-guest" arm64 normal "$@" -- true
	echo "$output"
}

state() { sed -n 's/^state=//p' "$OUT/status"; }

# not COMMAND: a plain "! COMMAND" fails no test unless it is the last line of it.
not() { if "$@" 2>/dev/null; then return 1; fi; }

# gone: the stub is, and so are the temporary files.
gone() {
	not kill -0 "$(cat "$STUB_PID")"
	[ -z "$(ls -A "$TMPDIR")" ]
}

wait_for() {
	for _ in $(seq 150); do
		if "$@" 2>/dev/null; then return 0; fi
		sleep 0.2
	done
	echo "not in time: $*"
	return 1
}

booted() { grep -qx boot "$OUT/control.log"; }

@test "run-guest: a good guest: its QEMU line first, exit 0, state exited" {
	guest good
	[ "$status" -eq 0 ]
	[[ ${lines[0]} == "$QEMU -M virt"*"-accel tcg\\,thread=multi"* ]]
	[[ $(head -n 1 "$OUT/qemu.log") == "${lines[0]}" ]]
	[ "$(state)" = exited ]
	grep -qx exit=0 "$OUT/status"
	grep -q '^ok 1 selftests: kvm: alpha_test' "$OUT/ktap.log"
	gone
}

@test "run-guest: the command's exit code comes back, whatever it is" {
	for code in 1 3 69 124 255; do
		STUB_CODE=$code guest code
		[ "$status" -eq $code ]
		[ "$(state)" = exited ]
		grep -qx "exit=$code" "$OUT/status"
	done
}

@test "run-guest: a guest that dies: 255" {
	guest dies
	[ "$status" -eq 255 ]
	[ "$(state)" = died ]
	not grep -q '^exit=' "$OUT/status"
	[[ $output == *"console.log"* ]]
	gone
}

@test "run-guest: a guest that ends before userspace: 69" {
	guest no-boot
	[ "$status" -eq 69 ]
	[ "$(state)" = no-boot ]
}

@test "run-guest: a QEMU that does not start: 69, and what it said" {
	guest refuses
	[ "$status" -eq 69 ]
	[[ $output == *"unsupported machine type"* ]]
}

@test "run-guest: a boot that hangs: 69" {
	guest stuck-boot --boot-timeout 2
	[ "$status" -eq 69 ]
	[ "$(state)" = no-boot ]
	gone
}

@test "run-guest: a guest that hangs: 124" {
	guest hangs --timeout 2
	[ "$status" -eq 124 ]
	[ "$(state)" = timeout ]
	gone
}

@test "run-guest: a guest that falls silent: 124, long before the time limit" {
	guest silent --idle 2 --timeout 500
	[ "$status" -eq 124 ]
	[ "$(state)" = idle ]
	gone
}

@test "run-guest: a guest that cannot power off has still done its work" {
	guest no-poweroff --timeout 100
	[ "$status" -eq 0 ]
	[ "$(state)" = exited ]
	gone
}

@test "run-guest: an older run's files do not look like this run's" {
	guest good
	guest no-boot
	[ ! -s "$OUT/ktap.log" ]
	not grep -q '^exit' "$OUT/control.log" "$OUT/status"
}

# The terminal sends Ctrl-C to the whole foreground group. setsid gives the group, and
# python resets SIGINT, which bats' background processes ignore.
start() {
	STUB_GUEST=$1 setsid python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$ROOT/scripts/run-guest" arm64 normal -- true \
		>"$T/out" 2>&1 3>&- &
	GUEST=$!
	wait_for booted
}

@test "run-guest: Ctrl-C leaves no QEMU behind" {
	start hangs
	kill -INT -- "-$GUEST"
	code=0
	wait "$GUEST" || code=$?
	[ $code -eq 130 ]
	[ "$(state)" = interrupted ]
	gone
}

@test "run-guest: SIGINT to the script alone leaves no QEMU behind" {
	start hangs
	kill -INT "$GUEST"
	wait "$GUEST" || true
	gone
}

@test "run-guest: SIGTERM leaves no QEMU behind" {
	start hangs
	kill -TERM "$GUEST"
	wait "$GUEST" || true
	gone
}

@test "run-guest: even SIGKILL leaves no QEMU behind" {
	start hangs
	kill -KILL "$GUEST"
	wait "$GUEST" || true
	wait_for not kill -0 "$(cat "$STUB_PID")"
}

@test "run-guest: KVM is never used because it is there" {
	guest good
	not grep -q kvm "$STUB_PID.args"
	ACCEL=kvm guest good
	[ "$status" -eq 2 ]
	[[ $output == *"ACCEL=kvm: only for x86_64 guests"* ]]
	ACCEL=hvf guest good
	[ "$status" -eq 2 ]
}

@test "run-guest: --icount counts instructions on one host thread" {
	guest good --icount --smp 1
	[ "$status" -eq 0 ]
	grep -qx 'tcg,thread=single' "$STUB_PID.args"
	grep -qx 'shift=0,sleep=off' "$STUB_PID.args"
}

@test "run-guest: what it cannot do is one line and exit 2" {
	run "$ROOT/scripts/run-guest" arm64 debug -- true
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"no kernel in "*"scripts/build-kernel arm64 debug"* ]]
	run "$ROOT/scripts/run-guest" riscv64 normal -- true
	[ "$status" -eq 2 ]
	run "$ROOT/scripts/run-guest" mips normal -- true
	[ "$status" -eq 2 ]
	[[ $output == *"unknown architecture 'mips'"* ]]
	run "$ROOT/scripts/run-guest" arm64 normal
	[ "$status" -eq 2 ]
	run "$ROOT/scripts/run-guest" arm64 normal --timeout soon -- true
	[ "$status" -eq 2 ]
	run "$ROOT/scripts/run-guest" arm64 normal --extra "$T/none" -- true
	[ "$status" -eq 2 ]
	QEMU=qemu-system-none run "$ROOT/scripts/run-guest" arm64 normal -- true
	[ "$status" -eq 2 ]
	[[ $output == *"no qemu-system-none here"* ]]
}
