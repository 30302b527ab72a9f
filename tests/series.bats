#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # bats runs each test in a subshell
# apply-series, export-series and check-series on a small kernel and a quilt of two topics.

load series

setup_file() {
	TOP=$BATS_FILE_TMPDIR
	export TOP
	fake_pin
	BATS_TEST_TMPDIR=$TOP/seed
	fake_environment
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz "$SCRIPTS/fetch-kernel" 2>/dev/null
	make_quilt
}

setup() {
	fake_environment
	cp -a "$TOP/seed/kernel" "$TOP/seed/patches" "$TOP/seed/selftests" "$T/"
}

# Commits as a developer makes them.
dev() {
	plain_git -C "$KERNEL" -c user.name='A Developer' -c user.email=dev@example.org "$@"
}

# commit SUBJECT: everything that changed.
commit() {
	dev add -A -f
	dev commit -q -m "$1" -m 'Because it is needed.' -m 'Signed-off-by: A Developer <dev@example.org>'
}

new_test() {
	printf '/* %s */\nint main(void) { return 0; }\n' "$1" >"$KERNEL/tools/testing/selftests/kvm/$1"
}

make_quilt() {
	dev checkout -q -b series base
	sed -i 's/kvm_line_30/kvm_first/' "$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Change line 30'
	sed -i 's/arm_line_30/arm_first/' "$KERNEL/arch/arm64/kvm/arm.c"
	printf '#!/bin/sh\n' >"$KERNEL/scripts/new-script"
	chmod +x "$KERNEL/scripts/new-script"
	commit 'KVM: arm64: Change line 30'
	mkdir -p "$KERNEL/tools/testing/selftests/kvm/"{arm64,include}
	new_test first_test.c
	new_test arm64/deep_test.c
	new_test include/first.h
	commit 'KVM: selftests: Add the first tests'
	dev tag topic/one
	sed -i 's/kvm_line_31/kvm_second/' "$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Change line 31'
	dev mv arch/arm64/kvm/arm.c arch/arm64/kvm/moved.c
	rm "$KERNEL/dos.txt"
	commit 'KVM: arm64: Move a file'
	mkdir -p "$PATCHES"/{one,two} "$SELFTESTS/plans"
	printf 'First things\n\nWhy and how.\n' | tee "$PATCHES/one/cover-letter" >"$PATCHES/two/cover-letter"
	echo '# a plan' >"$SELFTESTS/plans/base.plan"
	echo 'text' >"$SELFTESTS/README.rst"
	"$SCRIPTS/export-series" --topic two 2>/dev/null
}

apply() { run "$SCRIPTS/apply-series" "$@"; }
export_() { run "$SCRIPTS/export-series" "$@"; }
check() { run "$SCRIPTS/check-series"; }

kernel_git() { plain_git -C "$KERNEL" "$@"; }

# As it is after fetch-kernel.
bare_kernel() {
	kernel_git checkout -q --detach base
	kernel_git branch -q -D series
	kernel_git for-each-ref --format='delete %(refname)' refs/tags refs/series | kernel_git update-ref --stdin
}

# The checks that failed, by name; nothing else may have.
failed_checks() {
	echo "$output" >&2
	sed -n 's/^not ok - \([a-z-]*\): .*/\1/p' <<<"$output" | tr '\n' ' '
}

# Edit a patch's bytes and nothing else.
edit() {
	local p=$1
	shift
	sed -i "$@" "$PATCHES/$p"
}

@test "export: topics, canonical patches, copies of the new tests; the rest is left alone" {
	diff - "$PATCHES/series" <<-END
		# base-commit: $PIN_COMMIT linux-source-7.3 7.3.4-1~bpo13+1
		one/0001-KVM-Change-line-30.patch
		one/0002-KVM-arm64-Change-line-30.patch
		one/0003-KVM-selftests-Add-the-first-tests.patch
		two/0001-KVM-Change-line-31.patch
		two/0002-KVM-arm64-Move-a-file.patch
	END
	[ "$(head -n 1 "$PATCHES/two/0001-KVM-Change-line-31.patch")" = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001" ]
	plain_git -C "$KERNEL" format-patch -q --zero-commit --no-signature --no-numbered --abbrev=12 -o "$T/one" base..topic/one
	diff -r --exclude=cover-letter "$T/one" "$PATCHES/one"
	cmp "$KERNEL/tools/testing/selftests/kvm/arm64/deep_test.c" "$SELFTESTS/arm64/deep_test.c"
	cmp "$KERNEL/tools/testing/selftests/kvm/include/first.h" "$SELFTESTS/include/first.h"
	[ ! -e "$SELFTESTS/old_test.c" ]
	[ -e "$SELFTESTS/plans/base.plan" ]
	[ -e "$SELFTESTS/README.rst" ]
	[ -e "$PATCHES/one/cover-letter" ]
	[ "$(kernel_git rev-parse topic/two)" = "$(kernel_git rev-parse series)" ]
}

@test "export: a second one changes nothing; a git configuration changes nothing" {
	cp -a "$PATCHES" "$T/before"
	hostile_gitconfig >"$HOME/.gitconfig"
	hostile_gitconfig >>"$KERNEL/.git/config"
	export_
	[ "$status" -eq 0 ]
	[[ $output == *"5 patches in 2 topics, 0 files changed"* ]]
	diff -r "$T/before" "$PATCHES"
}

@test "export: new, changed and dropped commits; stale files go" {
	dev reset -q --hard HEAD~1
	sed -i 's/kvm_line_50/kvm_third/' "$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Change line 50'
	new_test late_test.c
	commit 'KVM: selftests: Add a late test'
	dev tag topic/three
	export_
	[ "$status" -eq 0 ]
	diff - <(sed 1d "$PATCHES/series") <<-END
		one/0001-KVM-Change-line-30.patch
		one/0002-KVM-arm64-Change-line-30.patch
		one/0003-KVM-selftests-Add-the-first-tests.patch
		two/0001-KVM-Change-line-31.patch
		three/0001-KVM-Change-line-50.patch
		three/0002-KVM-selftests-Add-a-late-test.patch
	END
	[ ! -e "$PATCHES/two/0002-KVM-arm64-Move-a-file.patch" ]
	[ -e "$SELFTESTS/late_test.c" ]
	dev reset -q --hard HEAD~1
	export_
	[ "$status" -eq 0 ]
	[ ! -e "$SELFTESTS/late_test.c" ]
	[ -e "$SELFTESTS/plans/base.plan" ]
}

@test "export: a new commit at the end of a topic belongs to it" {
	dev checkout -q -b again topic/one
	sed -i 's/arm_line_50/arm_third/' "$KERNEL/arch/arm64/kvm/arm.c"
	commit 'KVM: arm64: Change line 50'
	dev cherry-pick topic/one..series >/dev/null
	dev branch -M again series
	export_
	[ "$status" -eq 0 ]
	grep -qx 'one/0004-KVM-arm64-Change-line-50.patch' "$PATCHES/series"
	grep -qx 'two/0001-KVM-Change-line-31.patch' "$PATCHES/series"
}

@test "export: a topic in two pieces is refused" {
	sed -i 's/kvm_line_50/kvm_third/' "$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Change line 50'
	cp -a "$PATCHES" "$T/before"
	export_ --topic one
	[ "$status" -eq 2 ]
	one_line "topic one is in two pieces: 'KVM: Change line 50'"
	diff -r "$T/before" "$PATCHES"
}

@test "export: without any topic it is asked for" {
	rm -r "$PATCHES"
	kernel_git for-each-ref --format='delete %(refname)' refs/tags | kernel_git update-ref --stdin
	export_
	[ "$status" -eq 2 ]
	one_line "no topic for 'KVM: Change line 30': give --topic NAME"
	[ ! -e "$PATCHES" ]
}

@test "export: uncommitted changes and new files are refused" {
	echo '/* */' >>"$KERNEL/Makefile"
	export_
	[ "$status" -eq 2 ]
	one_line 'uncommitted changes \(Makefile'
	dev checkout -q Makefile
	new_test forgotten_test.c
	export_
	[ "$status" -eq 2 ]
	one_line 'uncommitted changes \(new file tools/.*forgotten_test.c'
	# What a build leaves is no such file.
	mv "$KERNEL/tools/testing/selftests/kvm/forgotten_test.c" "$KERNEL/virt/kvm/kvm_main.o"
	touch "$KERNEL/vmlinux"
	export_
	[ "$status" -eq 0 ]
}

@test "apply: the commits come back, with tags, and no git identity is needed" {
	want=$(kernel_git rev-parse 'series^{tree}')
	bare_kernel
	apply
	[ "$status" -eq 0 ]
	[ "$(kernel_git symbolic-ref --short HEAD)" = series ]
	[ "$(kernel_git rev-parse 'series^{tree}')" = "$want" ]
	[ "$(kernel_git log -1 --format=%an)" = 'A Developer' ]
	[ "$(kernel_git log -1 --format=%s topic/one)" = 'KVM: selftests: Add the first tests' ]
	[ "$(kernel_git log -1 --format=%s topic/two)" = 'KVM: arm64: Move a file' ]
	[ -z "$(kernel_git status --porcelain)" ]
}

@test "apply: the same commit ids every time, whatever the git configuration" {
	bare_kernel
	cp -a "$KERNEL" "$T/other"
	apply
	[ "$status" -eq 0 ]
	hostile_gitconfig >"$HOME/.gitconfig"
	hostile_gitconfig >>"$T/other/.git/config"
	git config -f "$T/other/.git/config" core.autocrlf false
	export TZ=Asia/Tokyo GIT_COMMITTER_DATE='2001-01-01T00:00:00'
	KERNEL=$T/other apply
	[ "$status" -eq 0 ]
	[ "$(kernel_git rev-parse series)" = "$(plain_git -C "$T/other" rev-parse series)" ]
}

@test "apply: nothing to do when the branch has the patches; files keep their times" {
	apply
	[ "$status" -eq 0 ]
	[[ $output == *"has the 5 patches already"* ]]
	id=$(kernel_git rev-parse series)
	kernel_git checkout -q --detach base
	apply
	[ "$status" -eq 0 ]
	[ "$(kernel_git symbolic-ref --short HEAD)" = series ]
	[ "$(kernel_git rev-parse series)" = "$id" ]
}

@test "apply: follows a changed quilt when the branch has nothing of its own" {
	sed -i '/^two/d' "$PATCHES/series"
	apply
	[ "$status" -eq 0 ]
	[ "$(kernel_git log -1 --format=%s)" = 'KVM: selftests: Add the first tests' ]
	[ -z "$(kernel_git tag -l topic/two)" ]
	# And forward again, from the beginning of the quilt.
	kernel_git update-ref -d refs/series/applied
	cp "$TOP/seed/patches/series" "$PATCHES/series"
	apply
	[ "$status" -eq 0 ]
	[ "$(kernel_git log -1 --format=%s)" = 'KVM: arm64: Move a file' ]
}

@test "apply: commits that patches/ does not have are never thrown away" {
	sed -i 's/kvm_line_50/kvm_third/' "$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Change line 50'
	id=$(kernel_git rev-parse series)
	apply
	[ "$status" -eq 2 ]
	one_line "has commits that patches/ does not have: run 'make export'"
	apply --keep
	[ "$status" -eq 0 ]
	[[ $output == *NOTE*"left as it is"* ]]
	[ "$(kernel_git rev-parse HEAD)" = "$id" ]
	# A commit that was changed is such work too.
	dev reset -q --hard HEAD~1
	dev commit -q --amend -m 'KVM: arm64: Move a file, and say more'
	apply
	[ "$status" -eq 2 ]
	"$SCRIPTS/export-series" 2>/dev/null
	apply
	[ "$status" -eq 0 ]
}

@test "apply: changed files, another branch, a rebase under way are not touched" {
	sed -i '/^two/d' "$PATCHES/series"
	echo '/* mine */' >>"$KERNEL/Makefile"
	apply
	[ "$status" -eq 2 ]
	one_line 'changed files \(Makefile'
	apply --keep
	[ "$status" -eq 0 ]
	grep -q mine "$KERNEL/Makefile"
	dev commit -qam mine
	dev branch -m mine
	dev branch series HEAD~1
	apply
	[ "$status" -eq 2 ]
	one_line 'is at another commit \(mine '
	mkdir "$KERNEL/.git/rebase-merge"
	apply
	[ "$status" -eq 2 ]
	one_line 'in the middle of a rebase'
	[ "$(kernel_git log -1 --format=%s)" = mine ]
}

# What a patch looks like whose surroundings have changed: patch(1) takes it with fuzz.
fuzzy() {
	edit two/0001-KVM-Change-line-31.patch 's/^ int kvm_line_34;$/ int kvm_other_34;/'
}

@test "apply: a patch that needs fuzz is refused by name, and kernel/ stays as it was" {
	fuzzy
	mkdir "$T/tree"
	cp -a "$TOP/linux-source-7.3/." "$T/tree"
	grep -e '^one' -e '^two.0001' "$PATCHES/series" | while read -r p; do
		patch -s -d "$T/tree" -p1 <"$PATCHES/$p"
	done
	bare_kernel
	apply
	[ "$status" -eq 2 ]
	one_line 'patch does not apply: two/0001-KVM-Change-line-31.patch: patch failed: virt/kvm/kvm_main.c'
	[ "$(kernel_git rev-parse HEAD)" = "$PIN_COMMIT" ]
	[ -z "$(kernel_git branch -l series)" ]
	[ -z "$(kernel_git status --porcelain)" ]
	[ ! -e "$KERNEL/.git/rebase-apply" ]
}

@test "apply: a patch that is not there, a kernel that is not there" {
	rm "$PATCHES/two/0001-KVM-Change-line-31.patch"
	apply
	[ "$status" -eq 2 ]
	one_line 'series names two/0001-KVM-Change-line-31.patch, which does not exist'
	rm -rf "$KERNEL"
	mkdir "$KERNEL"
	apply
	[ "$status" -eq 2 ]
	one_line 'no kernel in .*run scripts/fetch-kernel'
}

@test "apply --worktree: a throwaway tree, kernel/ is left alone" {
	bare_kernel
	apply --worktree "$T/tree"
	[ "$status" -eq 0 ]
	grep -q kvm_second "$T/tree/virt/kvm/kvm_main.c"
	[ "$(kernel_git rev-parse HEAD)" = "$PIN_COMMIT" ]
	[ -z "$(kernel_git branch -l series)" ]
	apply --worktree "$T/tree"
	[ "$status" -eq 2 ]
	one_line 'exists'
	kernel_git worktree remove --force "$T/tree"
}

@test "check: all is well" {
	check
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = '10 passed, 0 failed, 0 skipped' ]
	[ "$(grep -c '^ok - ' <<<"$output")" -eq 10 ]
	[ -z "$(kernel_git status --porcelain)" ]
	# Whatever is checked out in kernel/.
	bare_kernel
	check
	[ "$status" -eq 0 ]
}

@test "check: a patch that needs fuzz" {
	fuzzy
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'am ' ]
	[[ $output == *"# two/0001-KVM-Change-line-31.patch: patch failed: virt/kvm/kvm_main.c"* ]]
	[ "${lines[-1]}" = '6 passed, 1 failed, 3 skipped' ]
}

@test "check: a patch that is not in series" {
	cp "$PATCHES/one/0001-KVM-Change-line-30.patch" "$PATCHES/one/0009-stray.patch"
	# As quilt and editors leave it.
	touch "$PATCHES/one/0001-KVM-Change-line-30.patch~"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'files ' ]
	[[ $output == *"# one/0009-stray.patch is not in series"* ]]
	[[ $output == *"# one/0001-KVM-Change-line-30.patch~ is not in series"* ]]
}

@test "check: series names a file that does not exist" {
	rm "$PATCHES/one/0002-KVM-arm64-Change-line-30.patch"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'files am ' ]
	[[ $output == *"# series names one/0002-KVM-arm64-Change-line-30.patch, which does not exist"* ]]
}

@test "check: a patch twice, options, wrong numbers" {
	echo 'two/0002-KVM-arm64-Move-a-file.patch' >>"$PATCHES/series"
	echo 'two/0003-a.patch -p0' >>"$PATCHES/series"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"is in series twice"* ]]
	[[ $output == *"'two/0003-a.patch -p0' is not of the form"* ]]
	[[ $output == *"two/0002-KVM-arm64-Move-a-file.patch is number 3 of its topic"* ]]
}

@test "check: comments in series are allowed" {
	sed -i '3i # why the next one\n' "$PATCHES/series"
	sed -i 's/^\(two.*31.patch\)/\1  # and this/' "$PATCHES/series"
	check
	[ "$status" -eq 0 ]
}

@test "check: a patch after quilt refresh" {
	mkdir "$T/tree"
	cp -a "$TOP/linux-source-7.3/." "$T/tree"
	(
		cd "$T/tree"
		export QUILT_PATCHES=$PATCHES
		quilt --quiltrc - push one/0001-KVM-Change-line-30.patch
		sed -i 's/kvm_line_20/kvm_twenty/' virt/kvm/kvm_main.c
		quilt --quiltrc - refresh
	)
	rm -f "$PATCHES"/one/*~
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'round-trip ' ]
	[[ $output == *"# one/0001-KVM-Change-line-30.patch is not what git format-patch writes"* ]]
}

@test "check: two mails in one file" {
	cat "$PATCHES/two/0002-KVM-arm64-Move-a-file.patch" >>"$PATCHES/two/0001-KVM-Change-line-31.patch"
	sed -i '/two.0002/d' "$PATCHES/series"
	rm "$PATCHES/two/0002-KVM-arm64-Move-a-file.patch"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"# two/0001-KVM-Change-line-31.patch is not one mail of git format-patch"* ]]
	[[ $output == *"3 skipped" ]]
}

@test "check: a selftest copy that differs, is missing, or is not of the series" {
	echo '/* edited here */' >>"$SELFTESTS/first_test.c"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'selftests ' ]
	[[ $output == *"# first_test.c differs from what the series creates"* ]]
	rm "$SELFTESTS/first_test.c"
	touch "$SELFTESTS/mine_test.c"
	check
	[[ $output == *"# first_test.c is missing"* ]]
	[[ $output == *"# mine_test.c is not created by the series"* ]]
}

@test "check: quilt gives other files than git am" {
	printf 'a\0b\n' >"$KERNEL/binary"
	commit 'KVM: Add a binary file'
	"$SCRIPTS/export-series" 2>/dev/null
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'quilt ' ]
}

@test "check: a file whose change a later patch takes back" {
	local file=$KERNEL/tools/testing/selftests/kvm/old_test.c
	cp "$file" "$T/before"
	echo '/* For now. */' >>"$file"
	commit 'KVM: selftests: Add a line'
	cp "$T/before" "$file"
	commit 'KVM: selftests: Remove the line'
	"$SCRIPTS/export-series" 2>/dev/null
	check
	[ "$status" -eq 0 ]
}

@test "check: wrong subjects" {
	edit one/0001-KVM-Change-line-30.patch 's/^Subject: .*/Subject: [PATCH] kvm: change it./'
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'subjects round-trip ' ]
	[[ $output == *"does not begin with KVM:"* ]]
	[[ $output == *"no capital after the prefix"* ]]
	[[ $output == *"ends with a full stop"* ]]
	edit one/0001-KVM-Change-line-30.patch 's/^Subject: .*/Subject: [RFC PATCH v2] KVM: Change line 30/'
	check
	[[ $output == *"subject does not begin with [PATCH]"* ]]
}

@test "check: no sign-off, someone else's, tags that nobody gave" {
	edit one/0001-KVM-Change-line-30.patch '/^Signed-off-by/d'
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'sign-offs round-trip ' ]
	[[ $output == *"not signed off by its author, A Developer <dev@example.org>"* ]]
	cp "$TOP/seed/patches/one/0001-KVM-Change-line-30.patch" "$PATCHES/one/"
	tags=('Reviewed-by: A <a@example.org>' 'Tested-by: A <a@example.org>' 'Acked-by: A <a@example.org>'
		'Fixes: 123456789abc ("x")' 'Signed-off-by: A <a@example.org>')
	for tag in "${tags[@]}"; do
		edit one/0001-KVM-Change-line-30.patch "s/^Signed-off-by: A Dev.*/$tag\n&/"
	done
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'sign-offs ' ]
	for tag in "${tags[@]}"; do
		[[ $output == *"not for us to give: $tag"* ]]
	done
}

@test "check: cover letters" {
	rm "$PATCHES/one/cover-letter"
	printf 'Subject\nno blank line\n' >"$PATCHES/two/cover-letter"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'covers ' ]
	[[ $output == *"one has no cover-letter"* ]]
	[[ $output == *"two/cover-letter is not a subject, a blank line and text"* ]]
}

@test "check: checkpatch, its exceptions, and exceptions without need or reason" {
	echo 'int BADSTYLE;' >>"$KERNEL/virt/kvm/kvm_main.c"
	commit 'KVM: Add a line'
	"$SCRIPTS/export-series" 2>/dev/null
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'checkpatch ' ]
	[[ $output == *"# two/0003-KVM-Add-a-line.patch:"*"WARNING:BAD_STYLE: bad style"* ]]
	echo 'two/0003-KVM-Add-a-line.patch BAD_STYLE # a test of the test' >"$PATCHES/checkpatch-exceptions"
	check
	[ "$status" -eq 0 ]
	echo 'two/0003-KVM-Add-a-line.patch BAD_STYLE' >"$PATCHES/checkpatch-exceptions"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"no reason given"* ]]
	{
		echo 'two/0003-KVM-Add-a-line.patch BAD_STYLE # a test of the test'
		echo 'one/0001-KVM-Change-line-30.patch BAD_STYLE # it was so once'
	} >"$PATCHES/checkpatch-exceptions"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"'one/0001-KVM-Change-line-30.patch BAD_STYLE' is not needed"* ]]
}

@test "check: a checkpatch that does not run is not a clean one" {
	printf 'die "broken\\n";\n' >"$KERNEL/scripts/checkpatch.pl"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'checkpatch ' ]
	printf 'print STDERR "broken\\n"; exit 1;\n' >"$KERNEL/scripts/checkpatch.pl"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'checkpatch ' ]
}

@test "check: another base in series, another gitlink" {
	sed -i "1s/$PIN_COMMIT/1111111111111111111111111111111111111111/" "$PATCHES/series"
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'base ' ]
	cp "$TOP/seed/patches/series" "$PATCHES/series"
	plain_git init -q "$T"
	plain_git -C "$T" update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,kernel
	check
	[ "$status" -eq 1 ]
	[ "$(failed_checks)" = 'base ' ]
	[[ $output == *"the superproject records 11111"* ]]
}

@test "help and wrong arguments" {
	for s in apply-series export-series check-series; do
		run "$SCRIPTS/$s" --help
		[ "$status" -eq 0 ]
		[[ $output == usage:* ]]
		run "$SCRIPTS/$s" --nonsense
		[ "$status" -eq 2 ]
	done
}
