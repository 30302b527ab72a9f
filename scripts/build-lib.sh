# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the build scripts share: the compiler of each architecture, the list of config
# fragments, and how to read a config line. Sourced after lib.sh.

CONFIGS=${CONFIGS:-$ROOT/configs}
FLAVOURS=(normal debug bench base bench-base scripted)

need_flavour() {
	case $1 in
	normal | debug | bench | base | bench-base | scripted) ;;
	*) die "unknown flavour '$1' (one of: ${FLAVOURS[*]})" ;;
	esac
}

# toolchain ARCH: MAKE_ARGS for the kernel's make, CC_NAME for messages and ccache, STRIP.
toolchain() {
	local cross=
	MAKE_ARGS=("ARCH=$(kernel_arch "$1")")
	case $1 in
	arm64) cross=aarch64-linux-gnu- ;;
	riscv64) cross=riscv64-linux-gnu- ;;
	# Debian 12 has no cross gcc for loongarch64.
	loongarch64)
		MAKE_ARGS+=(LLVM="${LLVM:--19}") CC_NAME=clang${LLVM:--19}
		STRIP=llvm-strip${LLVM:--19}
		;;
	esac
	if [ "$1" != loongarch64 ]; then
		MAKE_ARGS+=("CROSS_COMPILE=$cross")
		# shellcheck disable=SC2034 # for the scripts
		CC_NAME=${cross}gcc STRIP=${cross}strip
	fi
	command -v "$CC_NAME" >/dev/null || die "no $CC_NAME here (scripts/install-deps build)"
}

# fragments ARCH FLAVOUR: what is asked for, in order. All of it is checked in the end.
fragments() {
	local more=${2%-base}
	echo "$KERNEL/tools/testing/selftests/kvm/config"
	echo "$CONFIGS/base.config"
	echo "$CONFIGS/$1.config"
	case $more in
	debug | bench | scripted)
		echo "$CONFIGS/$more.config"
		[ ! -e "$CONFIGS/$more.$1.config" ] || echo "$CONFIGS/$more.$1.config"
		;;
	esac
}

# unpatched FLAVOUR: is it built from the pinned commit, without the series?
unpatched() { [ "$1" = base ] || [ "$1" = bench-base ]; }

# config_lines FILE...: one "SYMBOL<tab>VALUE<tab>FILE:LINE" a line; n is "is not set".
# A line that is neither a setting nor a comment is an error: Kconfig would skip it silently.
config_lines() {
	awk '
	function out(symbol, value) { printf "%s\t%s\t%s:%d\n", symbol, value, FILENAME, FNR }
	match($0, /^CONFIG_[A-Za-z0-9_]+=/) {
		value = substr($0, RLENGTH + 1)
		# Without a quoted string there is no blank in a value, so no trailing comment either.
		if (value ~ /^"([^"\\]|\\.)*"$/ || value ~ /^[^"[:space:]]+$/) {
			out(substr($0, 1, RLENGTH - 1), value)
			next
		}
	}
	/^# CONFIG_[A-Za-z0-9_]+ is not set$/ { out($2, "n"); next }
	/^[[:space:]]*(#.*)?$/ { next }
	{ printf "%s:%d: not a config line: %s\n", FILENAME, FNR, $0 >"/dev/stderr"; bad = 1; exit }
	END { exit bad }' "$@"
}

# use_ccache: sets ccache up and says whether there is one. Its directory is in the cache,
# so a second checkout of the project builds fast.
use_ccache() {
	[ "${CCACHE:-}" != no ] && command -v ccache >/dev/null || return 1
	mkdir -p "$CACHE/ccache"
	export CCACHE_DIR="$CACHE/ccache" CCACHE_MAXSIZE="${CCACHE_MAXSIZE:-4G}"
	# Another checkout hits the same entries: paths below its top are made relative, and
	# the option that only cuts the source path off __FILE__ is left out of the key.
	export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$ROOT}" CCACHE_NOHASHDIR=1
	export CCACHE_IGNOREOPTIONS="-fmacro-prefix-map=*"
	# The compiler lists what it included, so a miss needs no run of the preprocessor before it.
	export CCACHE_DEPEND=1
}
