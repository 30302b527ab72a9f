# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # sourced after lib.sh; some variables are for the scripts
# Git on kernel/ and on throwaway repositories, the same on every machine: the user's
# configuration, hooks, attributes and GIT_* variables play no part (see gitconfig).
# Reads the pin too; PIN_FILE= names another one (for tests).

# shellcheck source=scripts/pin.sh
. "${PIN_FILE:-$ROOT/scripts/pin.sh}"

command -v git >/dev/null || die "needs git"

# Whose commits the applied patches are: asked before the configuration is replaced.
USER_NAME=$(git -C "$ROOT" config user.name || true)
USER_EMAIL=$(git -C "$ROOT" config user.email || true)

# shellcheck disable=SC2046 # a list of variable names
unset $(git rev-parse --local-env-vars) GIT_EXTERNAL_DIFF GIT_DIFF_OPTS GIT_TEMPLATE_DIR \
	GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE \
	GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
export GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 GIT_CONFIG_GLOBAL=$ROOT/scripts/gitconfig
export GIT_TERMINAL_PROMPT=0 LC_ALL=C

SERIES=$PATCHES/series
# Where the branch stood when apply-series or export-series last left it equal to the quilt.
APPLIED=refs/series/applied

kgit() {
	git -C "$KERNEL" "$@"
}

# The most telling line of a failed command's output.
reason_of() {
	local line
	for line in 'No space left on device' 'Out of diskspace' 'File too large' '^xz: ' '^fatal: ' '^error: ' .; do
		grep -m 1 -e "$line" <<<"$1" | sed 's/^\(fatal\|error\): //' | cut -c -300 && return
	done
	echo "no message"
}

# try WHAT COMMAND...: run it; on failure die with "WHAT: reason", one line. What the command
# says is not written to a file: the disk may be full.
try() {
	local what=$1 out
	shift
	out=$("$@" 2>&1) || die "$what: $(reason_of "$out")"
}

# Is DIR itself (not a directory above it) a git tree?
is_tree() {
	[ -e "$1/.git" ] && git -C "$1" rev-parse -q --git-dir >/dev/null 2>&1
}

# The base commit in kernel/; dies if there is none.
kernel_base() {
	is_tree "$KERNEL" || die "no kernel in $KERNEL (run scripts/fetch-kernel)"
	if kgit cat-file -e "$PIN_COMMIT^{commit}" 2>/dev/null; then
		echo "$PIN_COMMIT"
	else
		# fetch-kernel made it, of a 7.3.y that is not the pinned one.
		kgit rev-parse -q --verify refs/heads/base^0 2>/dev/null ||
			die "no base commit in $KERNEL (run scripts/fetch-kernel)"
	fi
}

# The commit id that the superproject records for kernel/, if it does.
gitlink() {
	git -C "$(dirname "$KERNEL")" ls-files -s -- "$(basename "$KERNEL")" 2>/dev/null |
		awk '$1 == "160000" { print $2 }' || true
}

# The patches in series, one name a line.
series_patches() {
	[ -r "$SERIES" ] || die "no $SERIES"
	sed -e 's/[[:space:]]#.*//' -e '/^#/d' -e 's/[[:space:]]*$//' -e '/^$/d' "$SERIES"
}

# The same with the directory in front; dies if one is missing.
series_files() {
	local p names
	names=$(series_patches) || exit
	for p in $names; do
		[ -f "$PATCHES/$p" ] || die "series names $p, which does not exist"
		printf '%s\n' "$PATCHES/$p"
	done
}

# view_make DIR: an empty repository that borrows the objects of kernel/. What happens in
# it touches neither kernel/ nor its configuration, and can be thrown away at any time.
view_make() {
	local objects
	objects=$(kgit rev-parse --path-format=absolute --git-path objects)
	try "cannot create $1" git init -q --template= "$1"
	mkdir -p "$1/.git/objects/info"
	printf '%s\n' "$objects" >"$1/.git/objects/info/alternates" || die "cannot write to $1"
}

# view_am DIR BASE: apply the whole quilt on BASE in a view, by git am without fuzz and
# without 3-way. Nothing is checked out before: git am takes each file it needs from the
# index, so this costs seconds, and the touched files are all that is in DIR afterwards.
# Prints nothing and returns 0, or prints why not and returns 1.
view_am() {
	local dir=$1 base=$2 n files out
	files=$(series_files) || exit
	mapfile -t files <<<"$files"
	try "cannot use $base" git -C "$dir" update-ref --no-deref HEAD "$base"
	try "cannot read $base" git -C "$dir" read-tree "$base"
	[ -n "${files[0]}" ] || return 0
	# Author date as committer date: the same quilt gives the same commit ids every time.
	if out=$(GIT_COMMITTER_NAME=${USER_NAME:-$PIN_NAME} GIT_COMMITTER_EMAIL=${USER_EMAIL:-$PIN_EMAIL} \
		git -C "$dir" am -q --no-3way --keep-cr --quoted-cr=nowarn --no-scissors \
		--committer-date-is-author-date -- "${files[@]}" 2>&1); then
		return 0
	fi
	n=$(cat "$dir/.git/rebase-apply/next" 2>/dev/null || echo 1)
	printf '%s: %s\n' "${files[n - 1]#"$PATCHES"/}" "$(reason_of "$out")"
	return 1
}

# What makes two commits the same for us, one line a commit, oldest first: the tree, the
# author, the author's date and the message. Committers and ids differ from rebase to rebase.
history_of() {
	git -C "$1" log --reverse --topo-order --no-show-signature --no-notes --encoding=UTF-8 \
		--format='%T %an <%ae> %at %B%x00' "$2..$3" | tr '\n\0' '\1\n' | sed 's/^\x01//'
}

# The canonical form of the patches. Every option that a configuration could change is said.
# canonical_patches DIR OUT BASE TIP: writes OUT/NNNN-slug.patch, prints their names in order.
canonical_patches() {
	git -C "$1" format-patch -o "$2" --no-cover-letter --no-base --no-thread --no-attach --no-notes \
		--no-to --no-cc --no-add-header --no-signoff --subject-prefix=PATCH \
		--no-numbered --zero-commit --no-signature --abbrev=12 --start-number=1 \
		--encode-email-headers --no-ext-diff --no-textconv --no-color --no-relative \
		--diff-algorithm=myers --indent-heuristic -M -U3 --inter-hunk-context=0 \
		--src-prefix=a/ --dst-prefix=b/ --topo-order "$3..$4"
}

# The test programs that BASE..TIP adds, by their path under the kernel's selftests/kvm.
SELFTESTS=${SELFTESTS:-$ROOT/selftests/kvm}
SELFTESTS_IN_KERNEL=tools/testing/selftests/kvm

# selftest_copies BASE TIP DIR: write them, as they are in TIP, to DIR.
selftest_copies() {
	local path to
	mkdir -p "$3"
	while read -r path; do
		to=$3/${path#"$SELFTESTS_IN_KERNEL"/}
		mkdir -p "$(dirname "$to")"
		git -C "${VIEW:-$KERNEL}" cat-file blob "$2:$path" >"$to" || die "cannot write $to"
	done < <(git -C "${VIEW:-$KERNEL}" diff-tree -r --no-renames --diff-filter=A --name-only \
		"$1" "$2" -- "$SELFTESTS_IN_KERNEL" | grep '\.[ch]$' || true)
}
