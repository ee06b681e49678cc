# SPDX-License-Identifier: MIT
# Shared by the tests of packing: tools, a directory for each test, refusals.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }
mkfat() { $python "$tools/mkfat.py" "$@"; }
treecheck() { $python "$tools/treecheck.py" "$@"; }
readkpack() { $python "$tools/readkpack.py" "$@"; }

# A program on stdin that may use the Python tools as modules.
py() { PYTHONPATH=$tools $python - "$@"; }

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C
	umask 022
}

teardown() {
	cd /
	chmod -R u+rwx "$T"
	rm -rf "$T"
}

# Run with OPTIONS...: the exit status must be STATUS, stderr must hold TEXT, stdout nothing,
# and every line must begin as ours do.
refused() { # STATUS TEXT OPTION...
	local want=$1 text=$2
	shift 2
	status=0
	kpack pack "$@" >refused.out 2>refused.err || status=$?
	[ "$status" -eq "$want" ] || { echo "exit $status:"; cat refused.err; return 1; }
	grep -qF -e "$text" refused.err || { echo "no '$text' in:"; cat refused.err; return 1; }
	[ ! -s refused.out ]
	! grep -vE '^(kpack|usage): ' refused.err || false
}

fails() { refused 1 "$@"; }
usage() { refused 2 "$@"; }

as_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# The number of mounts below this test's directory.
mounts() { awk -v t="$T/" 'index($2, t) == 1 { n++ } END { print n + 0 }' /proc/self/mounts; }

# Unmount them all, and wait for their daemons.
end_mounts() {
	awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | tac |
		while IFS= read -r m; do umount -l "$m"; done
	for _ in $(seq 2400); do
		pgrep -f "kpackfs .*$T/" >/dev/null || break
		read -rt 0.05 <> <(:) || :
	done
}
