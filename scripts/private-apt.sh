# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# A private apt: packages of any Debian suite and architecture, without touching the
# machine's apt configuration. Sourced after lib.sh.
#
#   private_apt_init ARCH SUITE...     ARCH: Debian's name or ours; "native" is the machine's
#   private_apt apt-get|apt-cache ...  that command, with the private configuration
#   private_apt_unpack DIR PACKAGE...  download (PACKAGE or PACKAGE=VERSION), verify, unpack
#                                      into DIR, install nothing
#   private_apt_version PACKAGE        the newest version on offer, empty if there is none
#
# The mirror is the machine's own, as apt knows it; DEBIAN_MIRROR=URI names another one.
# Whichever it is, what it serves must be signed by Debian's archive keys. Proxies and other
# Acquire:: settings, and the logins in auth.conf, are the machine's too.

# Debian 12 calls the keyring .gpg, later releases .pgp.
private_apt_keyring() {
	local k
	for k in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		[ -r "$k" ] && { echo "$k"; return; }
	done
	die "no Debian archive keyring here (package debian-archive-keyring)"
}

# Repositories the machine has, the likeliest to be Debian's main archive first. Only the
# signature decides: a wrong guess fails to verify, and the next one is tried.
private_apt_mirrors() {
	local codename
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "$DEBIAN_MIRROR"
		return
	fi
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --no-release-info \
		--format '$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk -v codename="$codename" '
		$1 != "Packages" || $4 != "main" || $3 ~ /security|\/$/ { next }
		{ rank = ($3 == codename ? 0 : 2) + ($2 ~ /\/debian\/?$/ ? 0 : 1) }
		{ print rank, $2 }' | sort -s -k1,1n | cut -d' ' -f2- | awk '!seen[$0]++'
}

# Settings of the machine that decide how to reach a mirror. A value with a quote in it
# cannot be taken over from apt's own dump, so it is left out.
private_apt_machine_settings() {
	apt-config dump |
		grep -E '^(Acquire::(https?|ftp|tor|Retries|Check-|Max-|Min-|ForceIPv|Queue-Mode|By-Hash|Send-)|DPkg::(Options|P))' |
		grep -E '^[^"]*"[^"]*";$' || true
}

private_apt_write_conf() {
	local dir=$1 arch=$2 status=$3 etc
	# An absolute Dir::Etc, whatever the machine's Dir and RootDir are.
	eval "$(apt-config shell etc Dir::Etc/d)"
	cat <<-CONF || return
		Dir::Etc::parts "/dev/null";
		Dir::Etc::main "/dev/null";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Etc::netrc "${etc:-/etc/apt/}auth.conf";
		Dir::Etc::netrcparts "${etc:-/etc/apt/}auth.conf.d";
		Dir::State "$dir/state";
		Dir::State::lists "$dir/lists";
		Dir::State::status "$status";
		Dir::Cache "$dir/cache";
		Dir::Cache::archives "$dir/archives";
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Update::Error-Mode "any";
		// The cache may lie in a home directory that apt's own user cannot enter.
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::http::Timeout "30";
		Acquire::https::Timeout "30";
	CONF
	private_apt_machine_settings
}

# The first thing apt complained about, without apt's prefix.
private_apt_reason() {
	local line
	line=$(grep -m 1 '^[EW]: ' "$1" || echo "E: see $1")
	echo "${line:3:300}"
}

private_apt_init() {
	local arch=$1 suites dir key mirror suite status keyring mirrors reason
	shift
	command -v apt-get >/dev/null || die "needs apt-get: this is not a Debian machine"
	case $arch in
	native) arch=$(dpkg --print-architecture) ;;
	x86_64 | loongarch64) arch=$(debian_arch "$arch") ;;
	esac
	suites=$*
	dir=$CACHE/apt/$arch-${suites// /+}
	PRIVATE_APT=$dir/apt.conf
	PRIVATE_APT_DIR=$dir
	# Proxy passwords may end up in the configuration.
	(umask 077 && mkdir -p "$dir"/{lists,archives,state,cache}/partial) 2>/dev/null ||
		die "cannot create $dir"
	keyring=$(private_apt_keyring) || exit
	mirrors=$(private_apt_mirrors)
	[ -n "$mirrors" ] ||
		die "no Debian mirror in this machine's apt configuration (set DEBIAN_MIRROR=URI)"
	if [ "$arch" = "$(dpkg --print-architecture)" ]; then
		eval "$(apt-config shell status Dir::State::status/f)"
	else
		# Nothing of a foreign architecture counts as installed here.
		status=$dir/state/status
		: >"$status"
	fi

	# One process updates, others wait and find fresh lists.
	exec {PRIVATE_APT_LOCK}>"$dir/lock"
	flock "$PRIVATE_APT_LOCK"
	key=$(printf '%s\n' "$mirrors" "$keyring" "$suites")
	if [ ! -e "$dir/fresh" ] || [ "$(cat "$dir/fresh")" != "$key" ] ||
		[ -n "$(find "$dir/fresh" -mmin +1440)" ]; then
		reason=
		for mirror in $mirrors; do
			(umask 077 && private_apt_write_conf "$dir" "$arch" "$status" >"$dir/apt.conf.new") ||
				die "cannot write $dir/apt.conf"
			for suite in "$@"; do
				printf 'deb [arch=%s signed-by=%s] %s %s main\n' \
					"$arch" "$keyring" "$mirror" "$suite"
			done >"$dir/sources.list" || die "cannot write $dir/sources.list"
			mv "$dir/apt.conf.new" "$PRIVATE_APT"
			note "reading the package lists of $suites ($arch)"
			if private_apt apt-get -q update >"$dir/update.log" 2>&1; then
				printf '%s\n' "$key" >"$dir/fresh" || die "cannot write $dir/fresh"
				reason=
				break
			fi
			reason=${reason:-$(private_apt_reason "$dir/update.log")}
		done
		if [ -n "$reason" ]; then
			# Yesterday's lists are better than none, if they are of the same mirror.
			if [ -e "$dir/fresh" ] && [ "$(cat "$dir/fresh")" = "$key" ]; then
				note "package lists of $suites are not up to date: $reason"
			else
				rm -f "$dir/fresh"
				flock -u "$PRIVATE_APT_LOCK"
				die "cannot read the package lists of $suites: $reason"
			fi
		fi
	fi
	flock -u "$PRIVATE_APT_LOCK"
	exec {PRIVATE_APT_LOCK}>&-
}

private_apt() {
	APT_CONFIG=$PRIVATE_APT "$@"
}

private_apt_version() {
	private_apt apt-cache --no-all-versions show "$1" 2>/dev/null |
		awk '/^Version: / && !n++ { print $2 }' || true
}

private_apt_unpack() {
	local dir=$1 pkg uri file log
	shift
	log=$PRIVATE_APT_DIR/download.log
	for pkg in "$@"; do
		# apt keeps what is already there if its checksum is right.
		uri=$(private_apt apt-get -qq --print-uris download "$pkg" 2>"$log") ||
			die "cannot get package $pkg: $(private_apt_reason "$log")"
		file=$(printf '%s\n' "$uri" | awk 'NR == 1 { print $2 }')
		(
			cd "$PRIVATE_APT_DIR/archives" &&
				exec {PRIVATE_APT_LOCK}>"$PRIVATE_APT_DIR/lock" &&
				flock "$PRIVATE_APT_LOCK" && private_apt apt-get -q download "$pkg"
		) >"$log" 2>&1 || {
			# apt leaves what it has got so far.
			rm -f "$PRIVATE_APT_DIR/archives/$file"
			die "cannot get package $pkg: $(private_apt_reason "$log")"
		}
		{ mkdir -p "$dir" && dpkg-deb -x "$PRIVATE_APT_DIR/archives/$file" "$dir"; } 2>"$log" ||
			die "cannot unpack $file: $(head -n 1 "$log")"
	done
}
