#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# check-model: only the right error of a mutant passes, and only a whole search of the rest.
# Stubs stand in for spin and gcc; the last tests run a tiny model with the real ones.

setup() {
	T=$BATS_TEST_TMPDIR
	CHECK=$BATS_TEST_DIRNAME/../scripts/check-model
	PATH_REAL=$PATH
	mkdir "$T/bin" "$T/said" "$T/tmp"
	export TMPDIR=$T/tmp SAID=$T/said MODEL=$T/tiny.pml
	unset RUN_LIMIT RUN_KB
	# spin keeps its defines; "compiling" makes a pan that says what the test gave it for the
	# mutant, limit or point among those defines, or "verify".
	cat >"$T/bin/spin" <<-'STUB'
		#!/usr/bin/env bash
		echo "$*" >>"$SAID/spin.log"
		[ ! -e "$SAID/spin-says" ] || cat "$SAID/spin-says"
		[ ! -e "$SAID/spin-fails" ] || exit 1
		key=verify
		for a; do
			case $a in
			-DMUTANT_* | -DREACH=* | -DNO_*) key=${a#-D} ;;
			esac
		done
		echo "$key" >pan.c
	STUB
	cat >"$T/bin/gcc" <<-'STUB'
		#!/usr/bin/env bash
		key=$(cat pan.c)
		[ ! -e "$SAID/$key.gcc" ] || { echo "pan.c:1: error"; exit 1; }
		printf '#!/usr/bin/env bash\ncat "%s"\nexit %s\n' "$SAID/$key" "$(cat "$SAID/$key.rc" 2>/dev/null || echo 0)" >pan
		[ ! -e "$SAID/$key.hangs" ] || printf '#!/usr/bin/env bash\nexec sleep 60\n' >pan
		chmod +x pan
	STUB
	chmod +x "$T/bin/spin" "$T/bin/gcc"
	PATH=$T/bin:$PATH
	tiny
	verifies verify
	falls MUTANT_ONE bad
	falls NO_LIMIT bad
	falls REACH=HERE reached
}

# A counter which a lock protects, and which the mutant does not.
tiny() {
	cat >"$MODEL" <<-'END'
		/* SPDX-License-Identifier: GPL-2.0-only */
		/*
		 * @verify tiny: as it is
		 * @verify tiny-twice TIMES=2: twice
		 * @limit NO_LIMIT bad: without the limit
		 * @mutant ONE bad: without the lock
		 * @reach HERE: both are done
		 */
		#define BAD 1
		#define REACHED 2
		#ifndef JUDGE
		#define JUDGE BAD
		#endif
		#ifndef TIMES
		#define TIMES 1
		#endif
		#define HERE 1
		#ifndef REACH
		#define REACH 0
		#endif
		bool bad, reached, lock;
		byte n, done;
		inline here(point) { reached = (REACH == point); assert(!reached) }
		active [2] proctype Add() {
			byte v, i;
			do
			:: i < TIMES ->
		#if !defined(MUTANT_ONE)
				atomic { !lock -> lock = true };
		#endif
				v = n;
				n = v + 1;
				lock = false;
				i++
			:: else -> break
			od;
		#ifdef NO_LIMIT
			n = 0;
		#endif
			atomic { done++ };
			if
			:: atomic { done == 2 ->
				here(HERE);
				bad = (JUDGE & BAD) && n != 2 * TIMES;
				assert(!bad)
				}
			:: done < 2
			fi
		}
	END
}

# What pan prints: KEY is what the stub of spin found among the defines.
verifies() {
	cat >"$SAID/$1" <<-'END'

		(Spin Version 6.5.2 -- 6 December 2019)
			+ Partial Order Reduction

		Full statespace search for:
			never claim         	- (none specified)
			assertion violations	+
			invalid end states	+

		State-vector 20 byte, depth reached 9, errors: 0
		       42 states, stored
		unreached in proctype Add
			model.pml:27, state 14, "-end-"
			(1 of 14 states)
	END
}
falls() {
	said "$1" "assertion violated  !($2)"
}
said() {
	cat >"$SAID/$1" <<-END
		pan:1: $2 (at depth 7)
		pan: wrote model.pml.trail

		(Spin Version 6.5.2 -- 6 December 2019)
		Warning: Search not completed
			+ Breadth-First Search

		Full statespace search for:

		State-vector 20 byte, depth reached 7, errors: 1
		       17 states, stored
	END
}

check() {
	run "$CHECK" "$@"
	echo "$output"
}
last() { printf '%s\n' "${lines[-1]}"; }

@test "check-model: all is well: KTAP, the table, the counts" {
	check
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "KTAP version 1" ]
	[ "${lines[1]}" = "1..6" ]
	[ "${lines[2]}" = "ok 1 - list of what to run" ]
	[ "${lines[3]}" = "ok 2 - verify tiny: 42 states" ]
	[ "${lines[4]}" = "ok 3 - verify tiny-twice: 42 states" ]
	[ "${lines[5]}" = "ok 4 - limit NO_LIMIT: bad after 7 steps" ]
	[ "${lines[6]}" = "ok 5 - mutant ONE: bad after 7 steps" ]
	[ "${lines[7]}" = "ok 6 - reach HERE: reached after 7 steps" ]
	[[ ${lines[8]} =~ ^#\ mutant\ +what\ is\ weakened\ +killed\ by$ ]]
	[[ ${lines[9]} =~ ^#\ ONE\ +without\ the\ lock\ +bad\ after\ 7\ steps$ ]]
	[ "$(last)" = "6 passed, 0 failed, 0 skipped" ]
	grep -qx -- '-a -DTIMES=2 model.pml' "$SAID/spin.log"
	grep -qx -- '-a -DJUDGE=BAD -DMUTANT_ONE model.pml' "$SAID/spin.log"
	grep -qx -- '-a -DJUDGE=REACHED -DREACH=HERE model.pml' "$SAID/spin.log"
	grep -qx -- '-a -DJUDGE=BAD -DNO_LIMIT model.pml' "$SAID/spin.log"
}

@test "check-model: nothing stays in the temporary directory" {
	check
	[ -z "$(ls -A "$T/tmp")" ]
	touch "$SAID/MUTANT_ONE.hangs"
	"$CHECK" ONE >"$T/out" 3>&- &
	sleep 2
	kill -TERM $!
	wait $! || true
	[ -z "$(ls -A "$T/tmp")" ]
}

# not_ok LINE WHY: one failure, the exit code 1.
not_ok() {
	[ "$status" -eq 1 ]
	[[ $output == *"$1"$'\n'"# $2"* ]]
	[[ $(last) == *" passed, 1 failed, 0 skipped" ]]
}

@test "check-model: a mutant that verifies" {
	verifies MUTANT_ONE
	check
	not_ok "not ok 5 - mutant ONE: without the lock" "it verifies"
	[[ $output == *"# ONE "*"NOT KILLED: it verifies"* ]]
}

@test "check-model: a mutant that fails otherwise" {
	falls MUTANT_ONE other
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not bad but 'other'"
	said MUTANT_ONE "invalid end state"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not bad but 'invalid end state'"
	said MUTANT_ONE "assertion violated (n<2)"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not bad but 'assertion violated (n<2)'"
	: >"$SAID/MUTANT_ONE"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not bad but 'nothing'"
}

@test "check-model: a mutant that is not searched to its error" {
	echo 'error: max search depth too small' >>"$SAID/MUTANT_ONE"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "search depth too small"
	echo 'pan: out of memory' >"$SAID/MUTANT_ONE"
	echo 1 >"$SAID/MUTANT_ONE.rc"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "out of memory"
	falls MUTANT_ONE bad
	echo 139 >"$SAID/MUTANT_ONE.rc"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "pan failed (139)"
}

@test "check-model: a run that takes too long" {
	touch "$SAID/MUTANT_ONE.hangs"
	RUN_LIMIT=1 check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not finished after 1 s"
}

@test "check-model: a mutant that does not compile" {
	touch "$SAID/MUTANT_ONE.gcc"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "gcc failed (1)"
	[[ $output == *"#   pan.c:1: error"* ]]
	touch "$SAID/spin-fails"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "spin -a failed (1)"
	rm "$SAID/spin-fails"
	echo 'spin: model.pml:9, Error: syntax error' >"$SAID/spin-says"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "spin -a complains"
}

@test "check-model: the model does not verify" {
	falls verify bad
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "errors: 1, bad"
	said verify "invalid end state"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "errors: 1, invalid end state"
}

@test "check-model: the search was not complete" {
	sed -i 's/^Full statespace/Bit statespace/' "$SAID/verify"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "not all of it was searched"
	verifies verify
	echo 'Warning: Search not completed' >>"$SAID/verify"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "not all of it was searched"
	verifies verify
	echo 'error: max search depth too small' >>"$SAID/verify"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "search depth too small"
	: >"$SAID/verify"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "errors: -1"
}

@test "check-model: a statement that no run of the model reaches" {
	printf '\tmodel.pml:20, state 3, "n = 1"\n' >>"$SAID/verify"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "statements were not reached"
}

@test "check-model: a point that is not reached" {
	verifies REACH=HERE
	check HERE
	not_ok "not ok 1 - reach HERE: both are done" "it verifies"
}

@test "check-model: an assumption that is not needed" {
	verifies NO_LIMIT
	check NO_LIMIT
	not_ok "not ok 1 - limit NO_LIMIT: without the limit" "it verifies"
}

# bad_list WHY: the list is what fails.
bad_list() {
	check
	not_ok "not ok 1 - list of what to run" "$1"
}

@test "check-model: a mutant, a point or a verdict that no line names" {
	echo '#if defined(X) || defined(MUTANT_TWO)' >>"$MODEL"
	bad_list "MUTANT_TWO is not in the list"
	tiny
	echo 'here_if(THERE, n == 1)' >>"$MODEL"
	bad_list "here(THERE) is not in the list"
	tiny
	echo 'assert(!worse)' >>"$MODEL"
	bad_list "nothing shows that worse can fall"
}

@test "check-model: a line whose name or define the model does not have" {
	sed -i 's/MUTANT_ONE/MUTANT_1/' "$MODEL"
	bad_list "mutant ONE: the model does not ask for MUTANT_ONE"
	tiny
	sed -i 's/TIMES=2/TIME=2/' "$MODEL"
	bad_list "verify tiny-twice: the model does not ask for TIME"
	tiny
	sed -i 's/here(HERE)/here(OTHER)/' "$MODEL"
	bad_list "reach HERE: the model has no here(HERE)"
	tiny
	sed -i 's/ONE bad:/ONE wrong:/' "$MODEL"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"# mutant ONE: the model does not assert wrong"* ]]
}

@test "check-model: no mutants at all, or nothing to verify" {
	sed -i '/@mutant/d; s/MUTANT_ONE/SOMETHING/' "$MODEL"
	bad_list "the model has no mutant line"
	tiny
	sed -i '/@verify/d' "$MODEL"
	bad_list "the model has no verify line"
}

@test "check-model: some runs only, and what could not run" {
	check ONE HERE
	[ "$status" -eq 0 ]
	[ "$(last)" = "2 passed, 0 failed, 0 skipped" ]
	[ "${lines[1]}" = "1..2" ]
	check ONE TWO
	[ "$status" -eq 2 ]
	[[ $output == *"no line named 'TWO'"* ]]
	check --all
	[ "$status" -eq 2 ]
	check --trail
	[ "$status" -eq 2 ]
	RUN_LIMIT=0 check
	[ "$status" -eq 2 ]
	echo ' * @mutant TWO: no verdict' >>"$MODEL"
	check
	[ "$status" -eq 2 ]
	[[ $output == *"names no verdict"* ]]
	tiny
	echo ' * @muatnt TWO bad: misspelt' >>"$MODEL"
	check
	[ "$status" -eq 2 ]
	[[ $output == *"cannot read this line"* ]]
	: >"$MODEL"
	check
	[ "$status" -eq 2 ]
	rm "$MODEL"
	check
	[ "$status" -eq 2 ]
}

@test "check-model: spin or gcc is missing: one line, exit 2" {
	mkdir "$T/few"
	for tool in dirname basename bash env nproc gcc timeout; do ln -s "$(command -v "$tool")" "$T/few/$tool"; done
	PATH=$T/few check
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"needs spin"*"install-deps model"* ]]
	ln -s "$T/bin/spin" "$T/few/spin"
	rm "$T/few/gcc"
	PATH=$T/few check
	[ "$status" -eq 2 ]
	[[ $output == *"needs gcc"* ]]
}

real() {
	PATH=$PATH_REAL
	command -v spin >/dev/null || skip "no spin"
}

@test "check-model: a tiny model, with spin" {
	real
	check
	[ "$status" -eq 0 ]
	[[ $output == *"ok 3 - verify tiny-twice: "*" states"* ]]
	[[ $output == *"ok 5 - mutant ONE: bad after "*" steps"* ]]
	[ "$(last)" = "6 passed, 0 failed, 0 skipped" ]
}

@test "check-model: with spin, a mutant that verifies, deadlocks or does not compile" {
	real
	sed -i 's/^#if !defined(MUTANT_ONE)/#if 1/' "$MODEL"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "it verifies"
	tiny
	sed -i 's/^#if !defined(MUTANT_ONE)/#ifdef MUTANT_ONE\nn > 9;\n#endif\n&/' "$MODEL"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "not bad but 'invalid end state'"
	tiny
	sed -i 's/^#if !defined(MUTANT_ONE)/#ifdef MUTANT_ONE\nm = 1;\n#endif\n&/' "$MODEL"
	check ONE
	not_ok "not ok 1 - mutant ONE: without the lock" "spin -a failed"
}

@test "check-model: with spin, a model that is wrong, and one with a statement out of reach" {
	real
	sed -i 's/^#if !defined(MUTANT_ONE)/#if 0/' "$MODEL"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "errors: 1, bad"
	tiny
	sed -i 's/lock = false;/&\nif :: n > 2 * TIMES -> n = 0 :: else fi;/' "$MODEL"
	check tiny
	not_ok "not ok 1 - verify tiny: as it is" "statements were not reached"
}

@test "check-model --trail: the way to a mutant's error; none for a model that verifies" {
	real
	check --trail ONE
	[ "$status" -eq 0 ]
	[[ $output == *"model.pml:"*"v = n"* ]]
	check --trail tiny
	[ "$status" -eq 1 ]
	[[ $output == *"no error, no trail"* ]]
}
