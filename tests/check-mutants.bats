#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# check-mutants: only the case that is named, failing in a guest that lives, kills a mutant.

setup() {
	T=$BATS_TEST_TMPDIR
	export BUILD=$T/build RESULTS=$T/results
	mkdir -p "$T/scripts" "$BUILD/loongarch64-scripted"
	: >"$BUILD/loongarch64-scripted/image"
	cp "$BATS_TEST_DIRNAME"/../scripts/{check-mutants,lib.sh} "$T/scripts/"
	CHECK=$T/scripts/check-mutants
}

# guest EXIT LINE [CONTROL]: what run-guest does instead of booting. Without a mutant every case
# passes, or has CONTROL as its exit code.
guest() {
	cat >"$T/scripts/run-guest" <<END
#!/usr/bin/env bash
while [ \$# -gt 0 ]; do
	[ "\$1" != --out ] || out=\$2
	[ "\$1" != --append ] || append=\$2
	shift
done
echo "\$append" >>"$T/appended"
case \$append in
*mutant=none*) echo "ok 1 \${out##*none-}" >"\$out/ktap.log"; exit ${3:-0} ;;
esac
echo '$2' >"\$out/ktap.log"
exit $1
END
	chmod +x "$T/scripts/run-guest"
}

@test "check-mutants: the case fails: killed, and in the table" {
	guest 1 'not ok 4 pv_tlb_flush.flush_is_done'
	run "$CHECK" no-flush
	[ "$status" -eq 0 ]
	[[ $output == *"ok - mutant no-flush killed by pv_tlb_flush_test flush_is_done"* ]]
	[[ $output == *$'\n# no-flush '* ]]
	[ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
	grep -q paravirt.mutant=no-flush "$T/appended"
}

@test "check-mutants: a case of a KUnit suite is chosen by the kernel" {
	guest 1 '#     not ok 9 race_of_flushes'
	run "$CHECK" two-reads
	[ "$status" -eq 0 ]
	grep -q kunit.filter_glob=loongarch_pv_tlb_flush.race_of_flushes "$T/appended"
}

@test "check-mutants: the case passes: survived" {
	guest 0 'ok 4 pv_tlb_flush.flush_is_done'
	run "$CHECK" no-flush
	[ "$status" -eq 1 ]
	[[ $output == *"NOT KILLED"* ]]
	[ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
}

@test "check-mutants: a race that is won gets 5 boots, anything else one" {
	guest 0 'ok 9 race_of_flushes'
	run "$CHECK" two-reads clobber-pads
	[ "$status" -eq 1 ]
	[ "$(grep -c mutant=two-reads "$T/appended")" -eq 5 ]
	[ "$(grep -c mutant=clobber-pads "$T/appended")" -eq 1 ]
	[ "${lines[-1]}" = "0 passed, 2 failed, 0 skipped" ]
}

@test "check-mutants: another case fails, or the guest dies: not killed" {
	guest 1 'not ok 4 pv_tlb_flush.probe'
	run "$CHECK" no-flush
	[ "$status" -eq 1 ]
	guest 255 'not ok 4 pv_tlb_flush.flush_is_done'
	run "$CHECK" no-flush
	[ "$status" -eq 1 ]
}

@test "check-mutants: the case fails without the mutant: not killed, and no boot with it" {
	guest 1 'not ok 4 pv_tlb_flush.flush_is_done' 1
	run "$CHECK" no-flush consume-after-entry
	[ "$status" -eq 1 ]
	[[ $output == *"not ok - mutant no-flush killed by pv_tlb_flush_test flush_is_done, which fails without it too"* ]]
	[ "${lines[-1]}" = "0 passed, 2 failed, 0 skipped" ]
	[ "$(grep -c mutant= "$T/appended")" -eq 1 ]
}

@test "check-mutants: all of them, each once" {
	guest 0 'nothing'
	run "$CHECK"
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "0 passed, 16 failed, 0 skipped" ]
}

@test "check-mutants: unknown mutant, no kernel: one line, exit 2" {
	guest 0 ''
	run "$CHECK" no-such
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	rm "$BUILD/loongarch64-scripted/image"
	run "$CHECK" no-flush
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}
