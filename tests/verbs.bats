#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# The Makefile's verbs and .ci/run: what they call, and what they keep out of the environment.

setup() {
	T=$BATS_TEST_TMPDIR/top
	TOP=$BATS_TEST_DIRNAME/..
	mkdir -p "$T/scripts" "$T/.ci"
	cp "$TOP/Makefile" "$T/"
	cp "$TOP/.ci/run" "$T/.ci/"
	local name
	for name in run-series check-all install-deps fetch-kernel check-series; do
		printf '#!/usr/bin/env bash\necho "%s: $*"\nenv | sed "s/^/env: /"\nexit "${EXIT:-0}"\n' "$name" >"$T/scripts/$name"
	done
	chmod +x "$T"/scripts/*
}

@test "make: help is the default, and names every verb" {
	run make -s -C "$T"
	[ "$status" -eq 0 ]
	local verb verbs
	read -ra verbs < <(sed -n 's/^\.PHONY: help //p' "$T/Makefile")
	[ "${#verbs[@]}" -gt 10 ]
	for verb in "${verbs[@]}"; do
		echo "$verb"
		grep -q "^  $verb  *[a-z]" <<<"$output"
		# Every verb has a rule.
		make -n -C "$T" "$verb" >/dev/null
	done
}

@test "make: run: ARCH and FLAVOUR are arguments and nothing else; the rest is environment" {
	run make -s -C "$T" -j4 run ARCH=x86_64 FLAVOUR=debug JOBS=3 KERNEL_SRC=/tree
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "run-series: x86_64 debug" ]
	# The kernel's make would take them for its own.
	[ "$(grep -cE '^env: (ARCH|FLAVOUR|MAKEFLAGS|MFLAGS|MAKEOVERRIDES)=' <<<"$output")" -eq 0 ]
	run make -s -C "$T" run JOBS=3 KERNEL_SRC=/tree
	[ "${lines[0]}" = "run-series: arm64 normal" ]
	grep -qx 'env: JOBS=3' <<<"$output"
	grep -qx 'env: KERNEL_SRC=/tree' <<<"$output"
}

@test "make: a failing script fails the verb" {
	EXIT=1 run make -s -C "$T" check
	[ "$status" -ne 0 ]
}

@test "make: check-series installs and fetches before it checks" {
	run make -s -C "$T" check-series
	[ "$(grep -v '^env' <<<"$output" | tr '\n' ' ')" = "install-deps: series fetch-kernel:  check-series:  " ]
}

@test "ci: from another folder, without HOME, terminal or stdin" {
	git init -q "$T"
	git -C "$T" -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m t
	cd /
	run env -u HOME -u TERM "$T/.ci/run" <&-
	echo "$output"
	[ "$status" -eq 0 ]
	grep -q '^env: HOME=/' <<<"$output"
	grep -qx 'env: DEBIAN_FRONTEND=noninteractive' <<<"$output"
	[[ $output == *"check-all: "* ]]
}

@test "ci: a failing check fails it" {
	git init -q "$T"
	git -C "$T" -c user.name=t -c user.email=t@localhost commit -q --allow-empty -m t
	EXIT=1 run "$T/.ci/run"
	[ "$status" -ne 0 ]
}
