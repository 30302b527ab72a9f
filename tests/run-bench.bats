#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# make bench writes results only when every record is sound and both counted runs agree.

setup() {
	T=$BATS_TEST_TMPDIR
	SCRIPTS_DIR=$BATS_TEST_DIRNAME/../scripts
	OUT=$T/results/bench-arm64.json
	mkdir -p "$T/results"
	run_of 4120.5 1030.25 insn >"$T/one"
	run_of 4120.5 1030.25 insn >"$T/two"
	run_of 900 300 ns >"$T/plain"
}

# record NAME WAY UNIT VALUE
record() {
	printf 'BENCH {"name": "%s", "arch": "arm64", "vcpus": 1, "way": "%s", "unit": "%s", "value": %s, "per": "round"}\n' "$@"
}

# run_of OLD NEW UNIT
run_of() {
	echo "Random seed: 1234"
	record user_exit.self signal "$3" "$1"
	record user_exit.self ioctl "$3" "$2"
	record user_exit.unused_exit ioctl "$3" 500
}

report() { run "$SCRIPTS_DIR/report-bench" arm64 "$T/one" "$T/two" "$T/plain" "$OUT"; }

# refused PATTERN: exit 2, one line that says PATTERN, nothing written.
refused() {
	report
	echo "$output"
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"$1"* ]]
	[ ! -e "$OUT" ]
}

@test "bench: sound runs: all figures in the file, keys as documented, ratio in the table" {
	report
	[ "$status" -eq 0 ]
	[[ ${lines[1]} == user_exit.self*signal*4,120.5*ioctl*1,030.2*4.00*3.00 ]]
	python3 - "$OUT" <<-'END'
		import json, sys
		records = json.load(open(sys.argv[1]))
		assert len(records) == 6
		keys = ["name", "arch", "vcpus", "way", "unit", "value", "per"]
		assert all(list(record) == keys for record in records)
		assert sorted({record["unit"] for record in records}) == ["insn", "ns"]
	END
}

@test "bench: figures that differ by more than 0.1 %: named, exit 1, the old file stays" {
	run_of 4120.5 1031.5 insn >"$T/two"
	echo old >"$OUT"
	report
	[ "$status" -eq 1 ]
	[[ ${lines[0]} == *"user_exit.self ioctl"*"1030.25 and 1031.5, 0.12% apart"* ]]
	[ "$(cat "$OUT")" = old ]
}

@test "bench: figures that differ by less than 0.1 % are equal" {
	run_of 4120.5 1031.0 insn >"$T/two"
	report
	[ "$status" -eq 0 ]
}

@test "bench: a record missing in the second run" {
	sed -i 3d "$T/two"
	refused "$T/two: no record of user_exit.self ioctl"
}

@test "bench: a record missing in the first run" {
	sed -i 3d "$T/one"
	refused "$T/one: no record of user_exit.self ioctl"
}

@test "bench: a record missing in the plain run" {
	sed -i 3d "$T/plain"
	refused "$T/plain: no record of user_exit.self ioctl"
}

@test "bench: no record at all" {
	echo "1..0 # SKIP" >"$T/one"
	refused "$T/one: no BENCH line"
}

@test "bench: no file" {
	rm "$T/two"
	refused "No such file"
}

@test "bench: a record measured twice" {
	record user_exit.self signal insn 4120.5 >>"$T/one"
	refused "measured twice"
}

@test "bench: malformed records, each refused with its reason" {
	local edit reason
	cp "$T/one" "$T/sound"
	# What is done to the first record, and what has to be said about it.
	while IFS='|' read -r edit reason; do
		sed "2$edit" "$T/sound" >"$T/one"
		echo "$edit"
		refused "$reason"
	done <<-'END'
		s/, "per".*//|not a 'BENCH {...}' line
		s/^/[  1.0] /|not a 'BENCH {...}' line
		s/"vcpus": 1/"vcpus": /|Expecting value
		s/"vcpus": 1, //|missing or unknown: vcpus
		s/}$/, "cpu": 1}/|missing or unknown: cpu
		s/}$/, "value": 1}/|a key is there twice
		s/user_exit.self/user_exit.other/|unknown name 'user_exit.other'
		s/arm64/x86_64/|arch is 'x86_64', not 'arm64'
		s/"signal"/"magic"/|unknown way 'magic'
		s/"signal"/["signal"]/|unknown way ['signal']
		s/insn/ns/|unit is 'ns', not 'insn'
		s/round/hour/|unknown per 'hour'
		s/4120.5/"4120.5"/|value is '4120.5'
		s/4120.5/0/|value is 0
		s/4120.5/true/|value is True
		s/4120.5/NaN/|NaN is no JSON number
		s/4120.5/1e999/|value is inf
		s/"vcpus": 1/"vcpus": 0/|vcpus is 0
		s/{.*}/{}/|missing or unknown: arch, name, per, unit, value, vcpus, way
	END
}

# ---- run-bench itself, with a stub in place of the guest ----

stubs() {
	export SCRIPTS=$T/scripts RESULTS=$T/results CALLS=$T/calls SELFTESTS=$T/selftests
	mkdir -p "$SCRIPTS" "$SELFTESTS/arm64" "$SELFTESTS/x86"
	touch "$SELFTESTS"/{foo_test.c,foo_perf_test.c,arm64/bar_perf_test.c,x86/msr_perf_test.c}
	printf '#!/usr/bin/env bash\n' | tee "$SCRIPTS/install-deps" >"$SCRIPTS/run-series"
	cp "$SCRIPTS_DIR/report-bench" "$SCRIPTS/"
	record user_exit.unused_exit base insn 499 >"$T/base-insn"
	record user_exit.unused_exit base ns 120 >"$T/base-ns"
	# The n-th guest of each kernel prints the n-th of that kernel's files.
	cat >"$SCRIPTS/run-guest" <<-'END'
		#!/usr/bin/env bash
		echo "$*" >>"$CALLS"
		[[ "$*" =~ --out\ ([^ ]*) ]]
		files=(one two plain)
		[ "$2" = bench ] || files=(base-insn base-insn base-ns)
		cp "$(dirname "$CALLS")/${files[$(grep -c "^$1 $2 " "$CALLS") - 1]}" "${BASH_REMATCH[1]}/ktap.log"
		exit "${GUEST_EXIT:-0}"
	END
	chmod +x "$SCRIPTS"/*
}

@test "bench: run-bench: two counted guests with one vCPU, then a plain one, with and without the series" {
	stubs
	run "$SCRIPTS_DIR/run-bench" arm64
	echo "$output"
	[ "$status" -eq 0 ]
	[ -s "$OUT" ]
	[ "$(grep -c -- '--smp 1' "$CALLS")" -eq 6 ]
	for flavour in bench bench-base; do
		[ "$(grep "^arm64 $flavour .*--icount" "$CALLS" | grep -c -- '-u insn')" -eq 2 ]
		[ "$(grep "^arm64 $flavour " "$CALLS" | grep -v -- --icount | grep -c -- '-u ns')" -eq 1 ]
	done
	grep -q '"way": "base"' "$OUT"
	# The series' own programs of this architecture, all of them.
	grep -q 'cd /kselftest/kvm && ./foo_perf_test -u ns && ./bar_perf_test -u ns$' "$CALLS"
}

@test "bench: run-bench: the exit code of the comparison is kept" {
	stubs
	run_of 4120.5 1131.5 insn >"$T/two"
	run "$SCRIPTS_DIR/run-bench" arm64
	[ "$status" -eq 1 ]
	[ ! -e "$OUT" ]
}

@test "bench: run-bench: a guest that fails after good records writes nothing" {
	stubs
	GUEST_EXIT=255 run "$SCRIPTS_DIR/run-bench" arm64
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *"ended with 255"* ]]
	[ ! -e "$OUT" ]
}
