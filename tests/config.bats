#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# merge-config, check-config, install-deps, and the refusals of the two build scripts.
# A stub stands for the kernel tree: its merge_config.sh joins the fragments and drops
# every symbol with DROP in its name, as Kconfig drops what it cannot satisfy.

bats_require_minimum_version 1.5.0

setup() {
	S=$BATS_TEST_DIRNAME/../scripts
	T=$BATS_TEST_TMPDIR
	export KERNEL=$T/kernel BUILD=$T/build CONFIGS=$T/configs KVM_SERIES_CACHE=$T/cache
	mkdir -p "$KERNEL"/{kernel/configs,scripts/kconfig,tools/testing/selftests/kvm} "$CONFIGS" "$T/bin"
	touch "$KERNEL/Kbuild"
	echo 'CONFIG_TINY=y' >"$KERNEL/kernel/configs/tiny.config"
	echo 'CONFIG_EXPERT=y' >"$KERNEL/kernel/configs/tiny-base.config"
	echo 'CONFIG_KVM=y' >"$KERNEL/tools/testing/selftests/kvm/config"
	cat >"$KERNEL/scripts/kconfig/merge_config.sh" <<-'STUB'
		#!/bin/sh
		echo merged >>"$KERNEL/merges"
		while [ "${1#-}" != "$1" ]; do
			[ "$1" != -O ] || shift
			shift
		done
		cat "$@" | grep -E '^(# )?CONFIG_' | grep -v DROP >"$KCONFIG_CONFIG"
	STUB
	chmod +x "$KERNEL/scripts/kconfig/merge_config.sh"
	# The compiler is only asked for its version.
	printf '#!/bin/sh\necho "stub gcc 12"\n' >"$T/bin/gcc"
	cp "$T/bin/gcc" "$T/bin/aarch64-linux-gnu-gcc"
	chmod +x "$T"/bin/*
	PATH=$T/bin:$PATH

	printf 'CONFIG_SMP=y\n# a comment\nCONFIG_HZ=250\n' >"$CONFIGS/base.config"
	printf 'CONFIG_ARM=y\n# CONFIG_OLD is not set\n' >"$CONFIGS/arm64.config"
	printf 'CONFIG_KASAN=y\n' >"$CONFIGS/debug.config"
	printf '# CONFIG_TINY is not set\n' >"$CONFIGS/bench.config"
}

check() {
	run "$S/merge-config" arm64 "${1:-normal}"
	[ "$status" -eq 0 ]
	run "$S/check-config" arm64 "${1:-normal}"
}

@test "every symbol is there: 0" {
	check
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"all 5 symbols asked for"* ]]
}

@test "a flavour's fragment is merged for that flavour only" {
	check debug
	[ "$status" -eq 0 ]
	grep -qx CONFIG_KASAN=y "$BUILD/arm64-debug/kernel/.config"
	check normal
	[ "$status" -eq 0 ]
	run ! grep -q KASAN "$BUILD/arm64-normal/kernel/.config"
	run "$S/merge-config" --list arm64 base
	[ "$output" = "$("$S/merge-config" --list arm64 normal)" ]
}

@test "a flavour's fragment for one architecture is used when there is one" {
	echo 'CONFIG_ONLY_HERE=y' >"$CONFIGS/debug.arm64.config"
	check debug
	[ "$status" -eq 0 ]
	grep -qx CONFIG_ONLY_HERE=y "$BUILD/arm64-debug/kernel/.config"
	run "$S/merge-config" --list x86_64 debug
	[[ $output != *debug.arm64* ]]
}

@test "a symbol dropped by Kconfig is named with file and line, 1" {
	echo 'CONFIG_DROPPED=y' >>"$CONFIGS/base.config"
	check
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$CONFIGS/base.config:4: asked for CONFIG_DROPPED=y, got # CONFIG_DROPPED is not set"* ]]
}

@test "a symbol that is on though asked to be off is named, 1" {
	check
	sed -i 's/^# CONFIG_OLD is not set/CONFIG_OLD=y/' "$BUILD/arm64-normal/kernel/.config"
	run "$S/check-config" arm64 normal
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"$CONFIGS/arm64.config:2: asked for # CONFIG_OLD is not set, got CONFIG_OLD=y"* ]]
}

@test "another value than asked for is named, 1" {
	check
	sed -i 's/^CONFIG_HZ=250/CONFIG_HZ=100/' "$BUILD/arm64-normal/kernel/.config"
	run "$S/check-config" arm64 normal
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"base.config:3: asked for CONFIG_HZ=250, got CONFIG_HZ=100"* ]]
}

@test "the tree's own kvm/config is checked too" {
	echo 'CONFIG_KVM_DROP=y' >>"$KERNEL/tools/testing/selftests/kvm/config"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"selftests/kvm/config:2: asked for CONFIG_KVM_DROP=y"* ]]
}

@test "an exception with a reason: 0" {
	echo 'CONFIG_DROPPED=y' >>"$CONFIGS/base.config"
	printf '# Head.\nCONFIG_DROPPED=y  # not on this one\n' >"$CONFIGS/not-in-final.arm64"
	check
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "an exception for one flavour is for that flavour only" {
	echo 'CONFIG_DROPPED=y' >>"$CONFIGS/base.config"
	echo 'CONFIG_DROPPED=y  # not with KASAN' >"$CONFIGS/not-in-final.arm64.debug"
	check debug
	[ "$status" -eq 0 ]
	check normal
	[ "$status" -eq 1 ]
}

@test "an exception without a reason is named, 1" {
	echo 'CONFIG_DROPPED=y' >>"$CONFIGS/base.config"
	printf '\nCONFIG_DROPPED=y\n' >"$CONFIGS/not-in-final.arm64"
	check
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"not-in-final.arm64:2: exception without a reason: CONFIG_DROPPED=y"* ]]
}

@test "an exception for a symbol that is there is named, 1" {
	echo 'CONFIG_SMP=y  # once it was not' >"$CONFIGS/not-in-final.arm64"
	check
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"not-in-final.arm64:1: not needed"* ]]
}

@test "an exception is for one value: another one is still named" {
	echo 'CONFIG_DROP=32' >>"$CONFIGS/base.config"
	echo 'CONFIG_DROP=16  # for a smaller one' >"$CONFIGS/not-in-final.arm64"
	check
	[ "$status" -eq 1 ]
	[[ $output == *"base.config:4: asked for CONFIG_DROP=32"* ]]
}

@test "a missing fragment: 2, and no .config" {
	rm "$CONFIGS/debug.config"
	run "$S/merge-config" arm64 debug
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"no fragment $CONFIGS/debug.config"* ]]
	[ ! -e "$BUILD/arm64-debug/kernel/.config" ]
	run "$S/check-config" arm64 debug
	[ "$status" -eq 2 ]
}

@test "a symbol defined in two fragments names both places: 2, nothing merged" {
	echo '# CONFIG_SMP is not set' >>"$CONFIGS/debug.config"
	run "$S/merge-config" arm64 debug
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"$CONFIGS/debug.config:2: CONFIG_SMP is also in $CONFIGS/base.config:1"* ]]
	[ ! -e "$KERNEL/merges" ]
}

@test "a symbol twice in one fragment, and once more than the tree's kvm/config: 2" {
	echo 'CONFIG_HZ=250' >>"$CONFIGS/base.config"
	echo 'CONFIG_KVM=y' >>"$CONFIGS/arm64.config"
	run "$S/merge-config" arm64 normal
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"base.config:4: CONFIG_HZ is also in"* ]]
	[[ $output == *"arm64.config:3: CONFIG_KVM is also in"* ]]
}

@test "a line that Kconfig would skip without a word: 2" {
	echo 'CONFIG_FOO=y # why' >>"$CONFIGS/base.config"
	run "$S/merge-config" arm64 normal
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"base.config:4: not a config line: CONFIG_FOO=y # why"* ]]
}

@test "nothing is merged again until a fragment, a Kconfig file or the compiler changes" {
	merges() { wc -l <"$KERNEL/merges"; }
	again() { "$S/merge-config" arm64 normal 2>/dev/null; }
	again && again
	[ "$(merges)" -eq 1 ]
	echo 'config FOO' >"$KERNEL/Kconfig"
	again && again
	[ "$(merges)" -eq 2 ]
	echo 'CONFIG_FOO=y' >>"$CONFIGS/base.config"
	again && again
	[ "$(merges)" -eq 3 ]
	printf '#!/bin/sh\necho "stub gcc 13"\n' >"$T/bin/aarch64-linux-gnu-gcc"
	again && again
	[ "$(merges)" -eq 4 ]
}

@test "an unchanged .config keeps its date" {
	"$S/merge-config" arm64 normal
	touch -d 2001-01-01 "$BUILD/arm64-normal/kernel/.config"
	echo '# only a comment' >>"$CONFIGS/base.config"
	"$S/merge-config" arm64 normal
	[ "$(date -r "$BUILD/arm64-normal/kernel/.config" +%Y)" = 2001 ]
}

@test "when Kconfig fails: 2, and the next call tries again" {
	cp "$KERNEL/scripts/kconfig/merge_config.sh" "$T/good"
	printf '#!/bin/sh\necho "syntax error"\nexit 1\n' >"$KERNEL/scripts/kconfig/merge_config.sh"
	run "$S/merge-config" arm64 normal
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"syntax error"* ]]
	[ ! -e "$BUILD/arm64-normal/kernel/.config" ]
	cp "$T/good" "$KERNEL/scripts/kconfig/merge_config.sh"
	check
	[ "$status" -eq 0 ]
}

@test "the project's fragments: each exception has a reason, no symbol stands twice" {
	rm -r "$CONFIGS"
	cp -r "$BATS_TEST_DIRNAME/../configs" "$CONFIGS"
	cp "$T/bin/gcc" "$T/bin/riscv64-linux-gnu-gcc"
	cp "$T/bin/gcc" "$T/bin/clang-19"
	for arch in arm64 x86_64 riscv64 loongarch64; do
		run grep -hvE '^$|^# [A-Z][A-Za-z]|  # .+' "$CONFIGS/not-in-final.$arch"
		[ "$status" -eq 1 ]
		for flavour in normal debug bench; do
			echo "$arch $flavour"
			"$S/merge-config" "$arch" "$flavour"
		done
	done
}

@test "an unknown architecture, an unknown flavour, too few arguments: 2" {
	for script in merge-config check-config build-kernel; do
		run "$S/$script" vax normal
		[ "$status" -eq 2 ]
		[[ $output == *"unknown architecture 'vax'"* ]]
		run "$S/$script" arm64 fast
		[ "$status" -eq 2 ]
		[[ $output == *"unknown flavour 'fast'"* ]]
		run "$S/$script" arm64
		[ "$status" -eq 2 ]
	done
}

@test "build-kernel: a symbol dropped by Kconfig stops it before it builds, 2" {
	echo 'CONFIG_DROPPED=y' >>"$CONFIGS/base.config"
	printf '#!/bin/sh\ntouch "%s"\n' "$T/made" >"$T/bin/make"
	chmod +x "$T/bin/make"
	run "$S/build-kernel" arm64 normal
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"base.config:4: asked for CONFIG_DROPPED=y"* ]]
	[ ! -e "$T/made" ]
}

@test "build-kernel: when the build fails it shows the first error and names the log, 2" {
	printf '#!/bin/sh\necho "  CC      a.o"\necho "a.c:1:2: error: no such thing"\nexit 2\n' >"$T/bin/make"
	chmod +x "$T/bin/make"
	run "$S/build-kernel" arm64 normal
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"a.c:1:2: error: no such thing"* ]]
	[[ ${lines[-1]} == *"arm64 normal did not build; all of the output: $BUILD/arm64-normal/build.log" ]]
	[ ! -e "$BUILD/arm64-normal/image" ]
}

@test "build-kernel: the last line of stdout is the image" {
	cat >"$T/bin/make" <<-'STUB'
		#!/bin/sh
		for a; do case $a in O=*) out=${a#O=} ;; esac; done
		mkdir -p "$out/arch/arm64/boot"
		touch "$out/arch/arm64/boot/Image" "$out/vmlinux"
	STUB
	chmod +x "$T/bin/make"
	run bash -c '"$1"/build-kernel arm64 normal 2>/dev/null' - "$S"
	[ "$status" -eq 0 ]
	[ "$output" = "$BUILD/arm64-normal/image" ]
	[ -e "$BUILD/arm64-normal/image" ]
	[ -e "$BUILD/arm64-normal/vmlinux" ]
}

@test "build-kernel and build-selftests: no kernel tree: 2" {
	KERNEL=$T/empty
	run "$S/build-kernel" arm64 normal
	[ "$status" -eq 2 ]
	[[ $output == *"is no kernel tree"* ]]
	run "$S/build-selftests" arm64
	[ "$status" -eq 2 ]
	[[ $output == *"has no KVM selftests"* ]]
}

# A machine with every package, and QEMU 10, but for the packages in $ABSENT.
packages() {
	cat >"$T/bin/dpkg-query" <<-'STUB'
		#!/bin/sh
		sed -n '/^PACKAGES=/,/^.$/p' "$INSTALL_DEPS" | awk 'NF > 3 { print $2 }' | sort -u | while read -r p; do
			case " $ABSENT " in *" $p "*) continue ;; esac
			case $p in
			qemu-system-*) echo "installed ${QEMU:-1:10.0.2} $p" ;;
			*) echo "installed 1 $p" ;;
			esac
		done
		echo "not-installed  gone"
	STUB
	# Nothing may be installed by a test.
	for c in apt-get sudo; do
		printf '#!/bin/sh\necho "%s $*" >>"%s"\nexit 100\n' "$c" "$T/apt.log" >"$T/bin/$c"
	done
	chmod +x "$T"/bin/*
	export INSTALL_DEPS=$S/install-deps ABSENT=${1:-} QEMU=${2:-}
}

@test "install-deps: everything is there: 0, nothing said, apt not called" {
	packages
	run "$S/install-deps" series build guest lint bench
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[ ! -e "$T/apt.log" ]
}

@test "install-deps --check: names what is missing and what for, 1, installs nothing" {
	packages "flex quilt gcc-riscv64-linux-gnu"
	run "$S/install-deps" --check build
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"missing: flex "*Kconfig* ]]
	[[ $output == *"missing: gcc-riscv64-linux-gnu "* ]]
	[[ $output != *quilt* ]]
	[ ! -e "$T/apt.log" ]
	run "$S/install-deps" --check --arch arm64 build
	[ "$status" -eq 1 ]
	[[ $output != *riscv64* ]]
	run "$S/install-deps" --check lint
	[ "$status" -eq 0 ]
}

@test "install-deps --check: a QEMU that is too old is missing" {
	packages "" 1:7.2+dfsg-7
	run "$S/install-deps" --check guest
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"missing: qemu-system-arm "*"older than 8.2"* ]]
}

@test "install-deps: when apt fails: 2" {
	packages flex
	run "$S/install-deps" build
	echo "$output"
	[ "$status" -eq 2 ]
	[[ $output == *"cannot install"* ]]
}

@test "install-deps: an unknown group, no group: 2" {
	packages
	run "$S/install-deps" kitchen
	[ "$status" -eq 2 ]
	run "$S/install-deps"
	[ "$status" -eq 2 ]
}
