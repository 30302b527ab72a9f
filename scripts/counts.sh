# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # sourced; the counts are for the scripts
# The one line every counting step ends with: `N passed, N failed, N skipped`.

# read_counts FILE: PASSED, FAILED and SKIPPED from the last line of FILE.
# Only the very last line counts: a line from further up may belong to a part of the step.
read_counts() {
	local re='^([0-9]{1,9}) passed, ([0-9]{1,9}) failed, ([0-9]{1,9}) skipped$'
	PASSED=0 FAILED=0 SKIPPED=0
	[[ $(tail -n 1 -- "$1" 2>/dev/null) =~ $re ]] || return 1
	PASSED=$((10#${BASH_REMATCH[1]}))
	FAILED=$((10#${BASH_REMATCH[2]}))
	SKIPPED=$((10#${BASH_REMATCH[3]}))
}

# minutes SECONDS: 3m05s
minutes() {
	printf '%dm%02ds' $(($1 / 60)) $(($1 % 60))
}
