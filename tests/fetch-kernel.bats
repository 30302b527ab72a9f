#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # bats runs each test in a subshell

load series

setup_file() {
	TOP=$BATS_FILE_TMPDIR
	export TOP
	fake_pin
}

setup() {
	fake_environment
}

fetch() {
	run "$SCRIPTS/fetch-kernel" "$@"
}

# Nothing is left of an attempt that failed.
nothing_left() {
	[ ! -e "$KERNEL" ]
	run find "$T" -mindepth 1 \( -name '*.git' -o -name '*tmp*' -o -name 'unpack*' \) -not -path "$T/src/*"
	echo "left: $output"
	[ -z "$output" ]
}

damage() {
	printf 'xxxx' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

@test "an import has the commit id that git add and git commit-tree give" {
	export KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz
	fetch
	[ "$status" -eq 0 ]
	[ "$(git -C "$KERNEL" rev-parse HEAD)" = "$PIN_COMMIT" ]
	[ "$(git -C "$KERNEL" rev-parse base)" = "$PIN_COMMIT" ]
	[ -z "$(plain_git -C "$KERNEL" status --porcelain)" ]
	diff -r --no-dereference --exclude=.git "$KERNEL" "$TOP/linux-source-7.3"
}

@test "two imports give the same commit id, whatever the user's git configuration" {
	export KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz
	KVM_SERIES_CACHE=$T/a KERNEL=$T/ka fetch
	[ "$status" -eq 0 ]
	hostile_gitconfig >"$HOME/.gitconfig"
	mkdir -p "$XDG_CONFIG_HOME/git"
	echo '* text eol=crlf' >"$XDG_CONFIG_HOME/git/attributes"
	export GIT_AUTHOR_DATE='2001-01-01T00:00:00' GIT_DIR=$T/elsewhere TZ=Asia/Tokyo
	KVM_SERIES_CACHE=$T/b KERNEL=$T/kb fetch
	unset GIT_DIR
	[ "$status" -eq 0 ]
	[ "$(plain_git -C "$T/ka" rev-parse HEAD)" = "$(plain_git -C "$T/kb" rev-parse HEAD)" ]
	diff -r --no-dereference --exclude=.git "$T/ka" "$T/kb"
}

@test "a second kernel comes from the cache, and does not need it afterwards" {
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	rm -rf "$KERNEL"
	# As in a checkout of the superproject; no network is needed either.
	mkdir "$KERNEL"
	export DEBIAN_MIRROR=http://127.0.0.1:9/debian
	fetch
	[ "$status" -eq 0 ]
	[[ $output == *"from the cache"* ]]
	rm -rf "$KVM_SERIES_CACHE"
	git -C "$KERNEL" fsck --full --strict
	fetch
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "works without a cache" {
	[ "$(id -u)" -ne 0 ] || export KVM_SERIES_CACHE=/proc/nowhere
	[ "$(id -u)" -eq 0 ] || { mkdir "$T/ro" && chmod 555 "$T/ro" && export KVM_SERIES_CACHE=$T/ro/cache; }
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	[ "$(git -C "$KERNEL" rev-parse HEAD)" = "$PIN_COMMIT" ]
	git -C "$KERNEL" fsck --full
	[ -z "$(find "$T" -name '*tmp*' -not -path "$KERNEL/*")" ]
}

@test "a damaged archive gives one line and leaves nothing" {
	cp "$TOP/linux-source-7.3.tar.xz" "$T"
	damage "$T/linux-source-7.3.tar.xz" 200
	KERNEL_TARBALL=$T/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line "damaged or not the pinned one: sha256 is [0-9a-f]{64}, pinned is $PIN_TARBALL_SHA256"
	nothing_left
}

@test "an archive that is cut off, with no checksum to tell, gives one line" {
	head -c 400 "$TOP/linux-source-7.3.tar.xz" >"$T/cut.tar.xz"
	{
		cat "$TOP/pin.sh"
		echo "PIN_TARBALL_SHA256=$(sha256sum <"$T/cut.tar.xz" | cut -d' ' -f1)"
	} >"$T/pin.sh"
	PIN_FILE=$T/pin.sh KERNEL_TARBALL=$T/cut.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line 'cannot import cut.tar.xz: xz: .*Unexpected end'
	nothing_left
}

@test "an import with other files says that the tree differs" {
	{ cat "$TOP/pin.sh"; echo "PIN_TREE=4b825dc642cb6eb9a060e54bf8d69288fbee4904"; } >"$T/pin.sh"
	PIN_FILE=$T/pin.sh KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line "tree is $PIN_TREE, pinned is 4b825dc"
	nothing_left
}

@test "an import with another date says that the commit differs" {
	{ cat "$TOP/pin.sh"; echo "PIN_DATE='2026-11-15T22:30:01+0000'"; } >"$T/pin.sh"
	PIN_FILE=$T/pin.sh KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line "pinned tree, but commit [0-9a-f]{40}, pinned is $PIN_COMMIT"
	nothing_left
}

@test "no network gives one line and leaves nothing" {
	DEBIAN_MIRROR=http://127.0.0.1:9/debian fetch
	[ "$status" -eq 2 ]
	one_line 'cannot read the package lists of trixie-backports: .*127.0.0.1'
	nothing_left
}

# full DIR COMMAND...: with a file system of 1 MB on DIR, or, where mounting is not allowed,
# with a limit on the size of files.
full() {
	local dir=$1
	shift
	mkdir -p "$dir"
	if unshare -m mount -t tmpfs none "$dir" 2>/dev/null; then
		run unshare -m sh -c 'mount -t tmpfs -o size=1m none "$0" && "$@"; rc=$?; ls -A "$0" | sed "s|^|[0s] in $0: |"; exit $rc' "$dir" "$@"
	else
		run bash -c 'trap "" XFSZ; ulimit -f 512; "$@"; rc=$?; ls -A "$0" | sed "s|^|[0s] in $0: |"; exit $rc' "$dir" "$@"
	fi
}

# Two megabytes that do not compress.
big_pin() {
	cp -r "$TOP/linux-source-7.3" "$T/"
	head -c 2000000 /dev/urandom >"$T/linux-source-7.3/big"
	tar -C "$T" -cJf "$T/big.tar.xz" linux-source-7.3
	cp "$TOP/pin.sh" "$T/pin.sh"
	echo "PIN_TARBALL_SHA256=$(sha256sum <"$T/big.tar.xz" | cut -d' ' -f1)" >>"$T/pin.sh"
	rm -rf "$T/linux-source-7.3"
	export PIN_FILE=$T/pin.sh KERNEL_TARBALL=$T/big.tar.xz
}

@test "a full disk during the import gives one line and leaves nothing" {
	big_pin
	full "$KVM_SERIES_CACHE" "$SCRIPTS/fetch-kernel"
	[ "$status" -eq 2 ]
	one_line 'cannot import big.tar.xz: .*(No space left on device|Out of diskspace|File too large)'
	# Only the lock is there.
	[ "$(grep -c 'in .*cache: ' <<<"$output")" -eq 1 ]
	[[ $output == *"cache: kernel.lock"* ]]
	nothing_left
}

@test "a full disk during the checkout gives one line and leaves nothing" {
	big_pin
	# The true ids of this import, so that it gets as far as the checkout.
	run "$SCRIPTS/fetch-kernel"
	echo "PIN_TREE=$(sed -n 's/.*tree is \([0-9a-f]*\),.*/\1/p' <<<"$output")" >>"$PIN_FILE"
	run "$SCRIPTS/fetch-kernel"
	echo "PIN_COMMIT=$(sed -n 's/.*but commit \([0-9a-f]*\),.*/\1/p' <<<"$output")" >>"$PIN_FILE"
	run "$SCRIPTS/fetch-kernel"
	[ "$status" -eq 0 ]
	export KERNEL=$T/small/kernel
	full "$T/small" "$SCRIPTS/fetch-kernel"
	[ "$status" -eq 2 ]
	one_line 'cannot create .*: .*(No space left on device|Out of diskspace|File too large)'
	[[ $output != *"in $T/small"* ]]
}

@test "ending it half-way leaves nothing" {
	mkdir "$T/bin"
	printf '#!/bin/sh\ntouch "%s/started"\nexec sleep 30\n' "$T" >"$T/bin/xz"
	chmod +x "$T/bin/xz"
	# In its own process group, as on a terminal.
	PATH=$T/bin:$PATH KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz \
		setsid "$SCRIPTS/fetch-kernel" >"$T/out" 2>&1 3>&- &
	pid=$!
	for _ in $(seq 100); do
		[ ! -e "$T/started" ] || break
		sleep 0.1
	done
	kill -TERM -- "-$pid"
	rc=0
	wait "$pid" || rc=$?
	[ "$rc" -eq 143 ]
	nothing_left
}

@test "a damaged import in the cache is not trusted" {
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	rm -rf "$KERNEL"
	pack=$(find "$KVM_SERIES_CACHE/kernel.git" -name '*.pack')
	chmod u+w "$pack"
	damage "$pack" 300
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	[[ $output == *"damaged"*"importing again"* ]]
	git -C "$KERNEL" fsck --full
}

@test "a damaged import in the cache and no network: an error, not a damaged kernel" {
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	rm -rf "$KERNEL"
	pack=$(find "$KVM_SERIES_CACHE/kernel.git" -name '*.pack')
	chmod u+w "$pack"
	damage "$pack" 300
	DEBIAN_MIRROR=http://127.0.0.1:9/debian fetch
	[ "$status" -eq 2 ]
	one_line 'cannot read the package lists'
	nothing_left
}

@test "a directory with other things in it is left alone" {
	mkdir "$KERNEL"
	echo mine >"$KERNEL/file"
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line 'neither empty nor a git tree'
	[ "$(cat "$KERNEL/file")" = mine ]
}

@test "another git tree in kernel/ gets the base, and keeps its files" {
	plain_git init -q -b mine "$KERNEL"
	echo mine >"$KERNEL/file"
	plain_git -C "$KERNEL" add file
	plain_git -C "$KERNEL" -c user.name=A -c user.email=a@example.org commit -q -m mine
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	[ "$(plain_git -C "$KERNEL" rev-parse base)" = "$PIN_COMMIT" ]
	[ "$(plain_git -C "$KERNEL" symbolic-ref --short HEAD)" = mine ]
	[ "$(cat "$KERNEL/file")" = mine ]
}

@test "the gitlink and the pin must agree" {
	plain_git init -q "$T"
	plain_git -C "$T" update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,kernel
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 2 ]
	one_line "records 1{40} for kernel, but pin.sh says $PIN_COMMIT"
	plain_git -C "$T" update-index --cacheinfo 160000,"$PIN_COMMIT",kernel
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz fetch
	[ "$status" -eq 0 ]
	[ "$(plain_git -C "$T" diff --name-only)" = "" ]
}

# A git tree of someone else, on SUBLEVEL, with a history.
other_tree() {
	fake_kernel "$T/src" "$1"
	plain_git init -q "$T/src"
	plain_git -C "$T/src" -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m first
	plain_git -C "$T/src" add -A -f
	plain_git -C "$T/src" -c user.name=A -c user.email=a@example.org commit -q -m second
}

@test "KERNEL_SRC: a tree that has the pinned commit" {
	KERNEL_TARBALL=$TOP/linux-source-7.3.tar.xz KERNEL=$T/src fetch
	rm -rf "$KVM_SERIES_CACHE"
	echo '/* mine */' >>"$T/src/Makefile"
	plain_git -C "$T/src" -c user.name=A -c user.email=a@example.org commit -qam mine
	plain_git -C "$T/src" branch -D base
	KERNEL_SRC=$T/src fetch
	[ "$status" -eq 0 ]
	[[ $output != *NOTE* ]]
	rm -rf "$T/src"
	[ "$(git -C "$KERNEL" rev-parse HEAD base | sort -u)" = "$PIN_COMMIT" ]
	git -C "$KERNEL" fsck --full
}

@test "KERNEL_SRC: the same files under another commit give the pinned commit" {
	other_tree 4
	KERNEL_SRC=$T/src fetch
	[ "$status" -eq 0 ]
	[[ $output != *NOTE* ]]
	[ "$(git -C "$KERNEL" rev-parse HEAD)" = "$PIN_COMMIT" ]
	git -C "$KERNEL" fsck --full
}

@test "KERNEL_SRC: another 7.3.y is taken with a note, and not with --strict" {
	other_tree 9
	KERNEL_SRC=$T/src fetch --strict
	[ "$status" -eq 2 ]
	one_line 'neither the pinned commit'
	nothing_left
	KERNEL_SRC=$T/src fetch
	[ "$status" -eq 0 ]
	[[ $output == *"NOTE: $T/src has not the pinned commit; base is its Linux 7.3.9"* ]]
	grep -q 'SUBLEVEL = 9' "$KERNEL/Makefile"
	[ "$(git -C "$KERNEL" rev-list --count base)" -eq 1 ]
	fetch
	[ "$status" -eq 0 ]
	[[ $output == *NOTE* ]]
}

@test "KERNEL_SRC: another release, or no git tree, is refused" {
	other_tree 4
	sed -i 's/PATCHLEVEL = 3/PATCHLEVEL = 2/' "$T/src/Makefile"
	plain_git -C "$T/src" -c user.name=A -c user.email=a@example.org commit -qam older
	KERNEL_SRC=$T/src fetch
	[ "$status" -eq 2 ]
	one_line 'has Linux 7.2.4 at HEAD; the series needs 7.3.y'
	KERNEL_SRC=$T/home fetch
	[ "$status" -eq 2 ]
	one_line 'is not a git tree'
	nothing_left
}

# A mirror with one version of the package, VERSION, behind a stub of apt.
stub_apt() {
	local version=$1
	mkdir -p "$T/bin" "$T/deb/DEBIAN" "$T/deb/usr/src"
	printf 'Package: linux-source-7.3\nVersion: %s\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n' \
		"$version" >"$T/deb/DEBIAN/control"
	cp "${2:-$TOP/linux-source-7.3.tar.xz}" "$T/deb/usr/src/linux-source-7.3.tar.xz"
	dpkg-deb --root-owner-group -Znone -b "$T/deb" "$T/package.deb" >/dev/null
	cat >"$T/bin/apt-get" <<-STUB
		#!/bin/sh
		case "\$*" in
		*indextargets*) echo "Packages http://mirror.example/debian trixie main" ;;
		*update*) ;;
		*--print-uris*) echo "'http://x' linux-source-7.3_1_all.deb 1 x" ;;
		*download*) cp "$T/package.deb" linux-source-7.3_1_all.deb ;;
		*) exit 100 ;;
		esac
	STUB
	cat >"$T/bin/apt-cache" <<-STUB
		#!/bin/sh
		case "\$*" in
		"show linux-source-7.3=$version" | "--no-all-versions show linux-source-7.3") echo "Version: $version" ;;
		*) exit 100 ;;
		esac
	STUB
	chmod +x "$T"/bin/*
	PATH=$T/bin:$PATH
}

@test "Debian: the pinned package is downloaded, imported and not kept" {
	stub_apt "$PIN_VERSION"
	fetch
	[ "$status" -eq 0 ]
	[ "$(git -C "$KERNEL" rev-parse HEAD)" = "$PIN_COMMIT" ]
	[ -z "$(find "$KVM_SERIES_CACHE" -name '*.deb' -o -name 'unpack*')" ]
}

@test "Debian: a download that ends half-way gives one line and leaves nothing" {
	stub_apt "$PIN_VERSION"
	sed -i 's|cp .*/package.deb.*_all.deb ;;|echo part >linux-source-7.3_1_all.deb; echo "E: write (28: No space left on device)"; exit 100 ;;|' "$T/bin/apt-get"
	fetch
	[ "$status" -eq 2 ]
	one_line 'cannot get package linux-source-7.3=7.3.4-1~bpo13\+1: write .28: No space left on device'
	nothing_left
	[ -z "$(find "$KVM_SERIES_CACHE" -name '*.deb')" ]
}

@test "Debian: a newer 7.3.y gives a note, and an error with --strict" {
	fake_kernel "$T/x/linux-source-7.3" 6
	tar -C "$T/x" -cJf "$T/newer.tar.xz" linux-source-7.3
	stub_apt '7.3.6-1~bpo13+1' "$T/newer.tar.xz"
	fetch --strict
	[ "$status" -eq 2 ]
	one_line 'has linux-source-7.3 7.3.6-1~bpo13\+1, pinned is 7.3.4-1~bpo13\+1'
	nothing_left
	fetch
	[ "$status" -eq 0 ]
	[[ $output == *"NOTE: the mirror has linux-source-7.3 7.3.4-1~bpo13+1 no more; using 7.3.6-1~bpo13+1"* ]]
	[ "$(git -C "$KERNEL" log -1 --format=%s base)" = "Linux 7.3.6 as in Debian linux-source-7.3 7.3.6-1~bpo13+1" ]
	grep -q 'SUBLEVEL = 6' "$KERNEL/Makefile"
	[ ! -e "$KVM_SERIES_CACHE/kernel.git" ]
}

@test "Debian: no 7.3.y at all" {
	stub_apt '7.4.1-1'
	fetch
	[ "$status" -eq 2 ]
	one_line 'no more, and no other 7.3.y'
	nothing_left
}

@test "help and wrong arguments" {
	fetch --help
	[ "$status" -eq 0 ]
	[[ $output == usage:* ]]
	fetch --nonsense
	[ "$status" -eq 2 ]
	one_line "unknown argument"
}
