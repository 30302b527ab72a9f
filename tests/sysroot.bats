#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# The C library of the loongarch64 selftests: where it comes from, and what is done to it. Stubs
# stand for the kernel tree's make and for apt; the packages have one library between them.

setup() {
	S=$BATS_TEST_DIRNAME/../scripts
	T=$BATS_TEST_TMPDIR
	export KERNEL=$T/kernel BUILD=$T/build KVM_SERIES_CACHE=$T/cache CCACHE=no CALLS=$T/calls
	unset LLVM DEBIAN_MIRROR
	mkdir -p "$KERNEL/tools/testing/selftests/kvm" "$T/bin" "$T/lib"
	touch "$KERNEL/tools/testing/selftests/kvm/Makefile.kvm" "$CALLS"
	PATH=$T/bin:$PATH
}

# ifuncs: lib/libc.a, with an ifunc in one of its two members. Both ask for alignment.
ifuncs() {
	command -v ld.lld-19 >/dev/null || skip "no LLVM"
	cat >"$T/ifunc.s" <<-'END'
		.text
		.p2align 5
		resolver:
		.globl memset
		.type memset, @gnu_indirect_function
		memset:
			ret
	END
	cat >"$T/plain.s" <<-'END'
		.text
		.p2align 5
		.globl plain
		plain:
			ret
	END
	local name
	for name in ifunc plain; do
		llvm-mc-19 --triple=loongarch64 --mattr=+relax --filetype=obj "$T/$name.s" -o "$T/$name.o"
		llvm-readelf-19 -r "$T/$name.o" | grep -q R_LARCH_ALIGN
	done
	llvm-ar-19 rc "$T/lib/libc.a" "$T/ifunc.o" "$T/plain.o"
}

# aligned MEMBER: how often that member of lib/libc.a asks for alignment.
aligned() {
	llvm-ar-19 p "$T/lib/libc.a" "$1" >"$T/member"
	llvm-readelf-19 -r "$T/member" | grep -c R_LARCH_ALIGN || true
}

@test "unalign-ifunc: alignments next to an ifunc are cancelled, others stay" {
	ifuncs
	run "$S/unalign-ifunc" "$T/lib/libc.a"
	[ "$status" -eq 0 ]
	[ "$output" = 1 ]
	[ "$(aligned ifunc.o)" -eq 0 ]
	[ "$(aligned plain.o)" -eq 1 ]
	run "$S/unalign-ifunc" "$T/lib/libc.a"
	[ "$output" = 0 ]
	[ "$(ls "$T/lib")" = libc.a ]
}

@test "unalign-ifunc: the linker then has the right address for the resolver" {
	ifuncs
	"$S/unalign-ifunc" "$T/lib/libc.a"
	printf '.globl _start\n_start:\n\tbl memset\n\tbl plain\n' >"$T/start.s"
	llvm-mc-19 --triple=loongarch64 --filetype=obj "$T/start.s" -o "$T/start.o"
	ld.lld-19 -static -o "$T/program" "$T/start.o" "$T/lib/libc.a"
	address=$(llvm-nm-19 "$T/program" | sed -n 's/ t resolver$//p')
	addend=$(llvm-readelf-19 -rW "$T/program" | sed -n 's/.* R_LARCH_IRELATIVE *//p')
	echo "resolver at $address, relocation to $addend"
	[ -n "$address" ]
	[ $((16#$addend)) -eq $((16#$address)) ]
}

@test "unalign-ifunc: what is no archive, a cut off one, none: 2, and nothing is changed" {
	echo text >"$T/lib/libc.a"
	run "$S/unalign-ifunc" "$T/lib/libc.a"
	[ "$status" -eq 2 ]
	[[ $output == *"libc.a: no ar archive" ]]
	[ "$(cat "$T/lib/libc.a")" = text ]
	printf '!<arch>\n%-48s%-10s`\nshort' memset.o/ 99 >"$T/lib/libc.a"
	run "$S/unalign-ifunc" "$T/lib/libc.a"
	[ "$status" -eq 2 ]
	[[ $output == *"is cut off" ]]
	run "$S/unalign-ifunc" "$T/lib/none.a"
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
}

# machine: stubs of make, clang, strip and apt. Each package has an empty libc.a.
machine() {
	local lib=usr/loongarch64-linux-gnu/lib
	mkdir -p "$T/deb/DEBIAN" "$T/deb/$lib"
	printf '!<arch>\n' >"$T/deb/$lib/libc.a"
	printf 'Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n' \
		>"$T/deb/DEBIAN/control"
	dpkg-deb --root-owner-group -Znone -b "$T/deb" "$T/package.deb" >/dev/null
	cat >"$T/bin/apt-get" <<-STUB
		#!/bin/sh
		echo "apt-get \$*" >>"$CALLS"
		case "\$*" in
		*indextargets*) echo "Packages http://mirror.example/debian trixie main" ;;
		*update*) ;;
		*--print-uris*) echo "'http://x' package.deb 1 x" ;;
		*download*) cp "$T/package.deb" . ;;
		*) exit 100 ;;
		esac
	STUB
	cat >"$T/bin/make" <<-'STUB'
		#!/usr/bin/env bash
		printf 'make%s\n' "$(printf ' <%s>' "$@")" >>"$CALLS"
		for arg; do
			case $arg in KSFT_INSTALL_PATH=*) install=${arg#*=} ;; esac
		done
		[ -n "${install:-}" ] || exit 0
		mkdir -p "$install/kvm"
		cp "$0" "$install/kvm/foo_test"
		echo kvm:foo_test >"$install/kselftest-list.txt"
	STUB
	printf '#!/bin/sh\necho "strip $*" >>"%s"\n' "$CALLS" >"$T/bin/llvm-strip-19"
	printf '#!/bin/sh\n' >"$T/bin/clang-19"
	chmod +x "$T"/bin/*
}

build() { run "$S/build-selftests" loongarch64; echo "$output"; }

@test "build-selftests loongarch64: a libc from the cache's own packages, clang, llvm-strip" {
	machine
	build
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "$BUILD/loongarch64-selftests/install" ]
	sysroot=$(echo "$T"/cache/sysroot/loongarch64-*)
	[ -e "$sysroot/usr/loongarch64-linux-gnu/lib/libc.a" ]
	grep -q 'apt-get .* download libc6-dev-loong64-cross' "$CALLS"
	grep -q "<CC=clang-19 --target=loongarch64-linux-gnu --sysroot=$sysroot " "$CALLS"
	grep -q '<USERLDFLAGS=-static>.*<CROSS_COMPILE=loongarch64-linux-gnu->' "$CALLS"
	grep -q '^strip .*/install.new/kvm/foo_test' "$CALLS"
	# Nothing but downloads: no package is installed.
	[ "$(grep '^apt-get' "$CALLS" | grep -cvE 'indextargets|update|download')" -eq 0 ]
}

@test "build-selftests loongarch64: the second time nothing is downloaded; without the cache it is" {
	machine
	build
	: >"$CALLS"
	build
	[ "$status" -eq 0 ]
	[ "$(grep -c apt-get "$CALLS")" -eq 0 ]
	rm -rf "$KVM_SERIES_CACHE"
	build
	[ "$status" -eq 0 ]
	grep -q 'apt-get .* download' "$CALLS"
}

@test "build-selftests loongarch64: a download that fails: 2, no half of a libc, and the next call tries again" {
	machine
	cp "$T/bin/apt-get" "$T/good"
	sed -i 's|^\*download\*) .*|*download*libgcc*) echo "E: gone"; exit 100 ;;\n&|' "$T/bin/apt-get"
	build
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *"cannot get package libgcc-"*": gone" ]]
	[ -z "$(find "$T/cache/sysroot" -mindepth 1 -maxdepth 1 -name 'loongarch64-*' ! -name '*.new')" ]
	cp "$T/good" "$T/bin/apt-get"
	build
	[ "$status" -eq 0 ]
}

@test "build-selftests loongarch64: a cache that cannot be written: 2" {
	machine
	: >"$T/file"
	KVM_SERIES_CACHE=$T/file build
	[ "$status" -eq 2 ]
	[[ ${lines[-1]} == *"cannot create $T/file/sysroot" ]]
}

@test "build-selftests: other architectures download nothing" {
	machine
	for tool in gcc strip; do
		printf '#!/bin/sh\n' >"$T/bin/aarch64-linux-gnu-$tool"
		chmod +x "$T/bin/aarch64-linux-gnu-$tool"
	done
	run "$S/build-selftests" arm64
	[ "$status" -eq 0 ]
	[ "$(grep -c apt-get "$CALLS")" -eq 0 ]
	grep -q '<CC=aarch64-linux-gnu-gcc>' "$CALLS"
	[ ! -e "$KVM_SERIES_CACHE/sysroot" ]
}
