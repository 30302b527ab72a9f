# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # loaded by fetch-kernel.bats and series.bats
# A kernel of a few files with its own pin, so that the scripts that handle the real one
# can be tried in a second.

SCRIPTS=$(cd "$BATS_TEST_DIRNAME/../scripts" && pwd)

# What the user's git would do if it were asked: none of it may show.
hostile_gitconfig() {
	cat <<-'CONFIG'
		[core]
			autocrlf = true
			abbrev = 7
			hooksPath = /nonexistent
		[commit]
			gpgSign = true
		[am]
			threeWay = true
			messageid = true
		[diff]
			noprefix = true
			algorithm = patience
			context = 9
			renames = false
		[format]
			subjectPrefix = RFC
			numbered = true
			signature = nobody
			attach = true
			thread = deep
			from = true
			headers = "X-Other: yes"
			signOff = true
		[apply]
			whitespace = fix
		[i18n]
			commitEncoding = ISO-8859-1
	CONFIG
}

# fake_kernel DIR SUBLEVEL: the files.
fake_kernel() {
	local k=$1 i
	mkdir -p "$k"/{virt/kvm,arch/arm64/kvm,scripts,tools/testing/selftests/kvm}
	printf 'VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = %s\nEXTRAVERSION =\n' "$2" >"$k/Makefile"
	for i in $(seq 60); do
		printf 'int kvm_line_%d;\n' "$i"
	done >"$k/virt/kvm/kvm_main.c"
	sed 's/kvm_/arm_/' "$k/virt/kvm/kvm_main.c" >"$k/arch/arm64/kvm/arm.c"
	printf 'int main(void) { return 0; }\n' >"$k/tools/testing/selftests/kvm/old_test.c"
	# Debian's ends like this: git add without -f adds nothing new.
	printf 'ignored.txt\n*.o\n/*\n!/debian/\n' >"$k/.gitignore"
	printf 'in the tarball all the same\n' >"$k/ignored.txt"
	printf 'dos\r\n' >"$k/dos.txt"
	ln -s Makefile "$k/link"
	cat >"$k/scripts/checkpatch.pl" <<-'PERL'
		#!/usr/bin/perl
		# Complains about one word only.
		my $file = $ARGV[-1];
		open(my $in, '<', $file) or die "cannot open $file\n";
		my $bad = 0;
		while (<$in>) {
			next unless /^\+.*BADSTYLE/;
			print "$file:$.: WARNING:BAD_STYLE: bad style\n";
			$bad = 1;
		}
		exit $bad;
	PERL
	chmod 755 "$k/scripts/checkpatch.pl"
}

plain_git() {
	GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git "$@"
}

# fake_pin: a tarball and a pin in $TOP. The ids come from git add and git commit-tree, not
# from the code under test.
fake_pin() {
	local tree commit env
	fake_kernel "$TOP/linux-source-7.3" 4
	tar -C "$TOP" -cJf "$TOP/linux-source-7.3.tar.xz" linux-source-7.3
	env=(GIT_DIR="$TOP/ids.git" GIT_WORK_TREE="$TOP/linux-source-7.3")
	plain_git init -q --bare "$TOP/ids.git"
	env "${env[@]}" GIT_CONFIG_GLOBAL=/dev/null git -C "$TOP/linux-source-7.3" add -A -f
	tree=$(env "${env[@]}" git write-tree)
	cat >"$TOP/pin.sh" <<-PIN
		PIN_PACKAGE=linux-source-7.3
		PIN_VERSION='7.3.4-1~bpo13+1'
		PIN_SUITE=trixie-backports
		PIN_TARBALL=linux-source-7.3.tar.xz
		PIN_TARBALL_SHA256=$(sha256sum <"$TOP/linux-source-7.3.tar.xz" | cut -d' ' -f1)
		PIN_TREE=$tree
		PIN_NAME='linux-source import'
		PIN_EMAIL='linux-source@localhost'
		PIN_DATE='2026-11-15T22:30:00+0000'
		PIN_SUBJECT="Linux 7.3.4 as in Debian \$PIN_PACKAGE \$PIN_VERSION"
		PIN_BODY="The files of \$PIN_TARBALL, unchanged."
	PIN
	# shellcheck source=/dev/null
	commit=$(. "$TOP/pin.sh" && printf '%s\n\n%s\n' "$PIN_SUBJECT" "$PIN_BODY" |
		GIT_AUTHOR_NAME=$PIN_NAME GIT_AUTHOR_EMAIL=$PIN_EMAIL GIT_AUTHOR_DATE=$PIN_DATE \
			GIT_COMMITTER_NAME=$PIN_NAME GIT_COMMITTER_EMAIL=$PIN_EMAIL GIT_COMMITTER_DATE=$PIN_DATE \
			git --git-dir="$TOP/ids.git" commit-tree "$tree")
	echo "PIN_COMMIT=$commit" >>"$TOP/pin.sh"
}

# The environment of the scripts: everything of theirs is in $T.
fake_environment() {
	T=$BATS_TEST_TMPDIR
	mkdir -p "$T/home"
	export HOME=$T/home XDG_CACHE_HOME='' XDG_CONFIG_HOME=$T/home/.config
	export KVM_SERIES_CACHE=$T/cache KERNEL=$T/kernel PATCHES=$T/patches SELFTESTS=$T/selftests
	export PIN_FILE=$TOP/pin.sh
	unset KERNEL_SRC KERNEL_TARBALL DEBIAN_MIRROR
	# shellcheck source=/dev/null
	. "$PIN_FILE"
}

# one_line PATTERN: apart from progress ("[  1s] ..."), $output is one line, of this pattern.
one_line() {
	local lines
	lines=$(grep -v '^\[ *[0-9]*s\] ' <<<"$output" || true)
	echo "output: $output"
	[ "$(grep -c . <<<"$lines")" -eq 1 ]
	# shellcheck disable=SC2076
	[[ $lines =~ $1 ]]
}
