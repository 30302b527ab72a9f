# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # sourced; the variables are for the scripts
# What every script needs: where things are, how to fail, how to report progress,
# and the names of the architectures.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
KERNEL=${KERNEL:-$ROOT/kernel}
BUILD=${BUILD:-$ROOT/build}
RESULTS=${RESULTS:-$ROOT/results}
PATCHES=${PATCHES:-$ROOT/patches}
CACHE=${KVM_SERIES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvm-series}
BRANCH=series
ARCHS=(arm64 x86_64 riscv64 loongarch64)
JOBS=${JOBS:-$(nproc)}
SELF=$(basename "$0")

# die MESSAGE [CODE]: one line on stderr, and out. 2 means "could not run".
die() {
	printf '%s: %s\n' "$SELF" "$1" >&2
	exit "${2:-2}"
}

# note MESSAGE: progress, on stderr, with the seconds since the script began.
note() {
	printf '[%4ds] %s: %s\n' "$SECONDS" "$SELF" "$1" >&2
}

# The architecture's name in the kernel's Makefile (ARCH=).
kernel_arch() {
	case $1 in
	arm64) echo arm64 ;;
	x86_64) echo x86_64 ;;
	riscv64) echo riscv ;;
	loongarch64) echo loongarch ;;
	*) die "unknown architecture '$1' (one of: ${ARCHS[*]})" ;;
	esac
}

# Debian's name.
debian_arch() {
	case $1 in
	arm64) echo arm64 ;;
	x86_64) echo amd64 ;;
	riscv64) echo riscv64 ;;
	loongarch64) echo loong64 ;;
	*) die "unknown architecture '$1' (one of: ${ARCHS[*]})" ;;
	esac
}

# The boot image, relative to the O= directory.
kernel_image() {
	case $1 in
	arm64) echo arch/arm64/boot/Image ;;
	x86_64) echo arch/x86/boot/bzImage ;;
	riscv64) echo arch/riscv/boot/Image ;;
	loongarch64) echo arch/loongarch/boot/vmlinux.efi ;;
	*) die "unknown architecture '$1' (one of: ${ARCHS[*]})" ;;
	esac
}

# Packages are installed as root; sudo is only asked when we are not.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}
