#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# lint finds what it says it looks for, in a small checkout of its own.

setup() {
	for tool in git shellcheck pyflakes3 perl; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
	T=$BATS_TEST_TMPDIR/top
	LINT=$BATS_TEST_DIRNAME/../scripts/lint
	export LINT_ROOT=$T KERNEL=$BATS_TEST_TMPDIR/no-kernel
	mkdir -p "$T/scripts" "$T/patches/topic" "$T/tests/data"
	git init -q "$T"
	LICENCE='SPDX-License-Identifier: GPL-2.0-only'
	script good "echo 'Usage: good'"
	printf 'From: x\n' | tee "$T/patches/topic/0001-x.patch" >"$T/patches/topic/cover-letter"
	echo '[]' >"$T/results.json"
	echo raw >"$T/tests/data/log"
}

script() {
	printf '#!/usr/bin/env bash\n# %s\n%s\n' "$LICENCE" "$2" >"$T/scripts/$1"
	chmod +x "$T/scripts/$1"
}

# found TEXT: exactly one finding, and it says TEXT.
found() {
	run "$LINT"
	echo "$output"
	[ "$status" -eq 1 ]
	[ "$(grep -c '^not ok' <<<"$output")" -eq 1 ]
	[[ $output == *"not ok - $1"* ]]
	[[ ${lines[-1]} =~ ^[0-9]+\ passed,\ 1\ failed,\ [0-9]+\ skipped$ ]]
}

@test "lint: a clean checkout; mails, JSON and recorded output need no licence line" {
	run "$LINT"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ ${lines[-1]} =~ ^[1-9][0-9]*\ passed,\ 0\ failed,\ 0\ skipped$ ]]
}

@test "lint: shellcheck, in a file git does not track yet" {
	script bad 'echo "Usage: bad" $1'
	found "shellcheck: scripts/bad"
}

@test "lint: shellcheck in a bats file" {
	printf '#!/usr/bin/env bats\n# %s\n@test "x" {\n\techo $1\n}\n' "$LICENCE" >"$T/tests/x.bats"
	found "shellcheck: tests/x.bats"
}

@test "lint: pyflakes" {
	printf '#!/usr/bin/env python3\n# %s\nimport os\nprint("usage: bad")\n' "$LICENCE" >"$T/scripts/bad"
	chmod +x "$T/scripts/bad"
	found "pyflakes: scripts/bad"
}

@test "lint: no licence line" {
	echo text >"$T/README.md"
	found "licence: README.md"
}

@test "lint: another licence" {
	echo '# SPDX-License-Identifier: GPL-2.0-or-later' >"$T/x.config"
	found "licence: x.config"
}

@test "lint: a path of somebody's machine" {
	printf '# %s\nsee /home/%s/kernel\n' "$LICENCE" someone >"$T/README.md"
	found "paths: README.md"
}

@test "lint: the name of a package mirror" {
	printf '# %s\nhttp://deb.%s/debian\n' "$LICENCE" debian.org >"$T/x.config"
	found "paths: x.config"
}

@test "lint: a command without --help" {
	script bad 'exit 2'
	found "usage: scripts/bad"
}

@test "lint: a script that is not executable" {
	script bad 'echo "Usage: bad"'
	chmod -x "$T/scripts/bad"
	found "mode: scripts/bad"
}

@test "lint: no kernel tree: checkpatch is skipped, and says so" {
	printf '// %s\n' "$LICENCE" >"$T/x.c"
	run "$LINT"
	[ "$status" -eq 0 ]
	[[ $output == *"checkpatch: x.c # SKIP"* ]]
	[[ ${lines[-1]} == *", 0 failed, 1 skipped" ]]
}

@test "lint: ignored files and the submodule are not looked at" {
	printf '# %s\n/build/\n' "$LICENCE" >"$T/.gitignore"
	mkdir -p "$T/build" "$T/kernel"
	echo text | tee "$T/build/x" >"$T/kernel/x"
	run "$LINT"
	[ "$status" -eq 0 ]
}

@test "lint: nothing to look at: could not run" {
	rm -rf "$T"
	git init -q "$T"
	run "$LINT"
	[ "$status" -eq 2 ]
}
