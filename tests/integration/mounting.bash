# SPDX-License-Identifier: MIT
# Shared by the tests of the mount: a directory for each test, the mount, and its end.

python=/usr/bin/python3

begin_test() {
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpackfs-test-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	mkdir src mnt
	PATH=$KPACK_BIN:$PATH
}

# Whatever is mounted below, what was mounted last first.
end_test() {
	cd /
	local m
	# A stopped one would not end; SIGCONT for others would take back LeakSanitizer's SIGSTOP.
	for m in $(daemons); do
		! grep -qs '^State:.T' "/proc/$m/status" || kill -CONT "$m"
	done
	for m in $(findmnt -rno TARGET | grep "^$T/" | tac); do
		fusermount3 -u "$m" || umount "$m" || umount -l "$m"
	done 2>/dev/null
	gone
	[ "$(id -u)" = 0 ] || chmod -R u+w "$T" # copies of what nobody may write
	rm -rf "$T"
}

# Root's lock of kpackfs --in-place, and the directories that it mounts in first, are not the system's.
own_run() { [ "$(id -u)" != 0 ] || { mount -t tmpfs -o mode=0755 tmpfs /run && : >/run/of-the-test; }; }
end_own_run() { [ ! -e /run/of-the-test ] || umount /run; }

setup() { begin_test; }
teardown() { end_test; }

# Wait until the mount shows everything that is so now.
barrier() { cat "$T/mnt/.kpackfs/barrier" >/dev/null; }

daemons() { pgrep -f "kpackfs .*$T/"; }

# Wait until the daemons of this test's mounts have ended.
gone() {
	local pids
	pids=$(daemons) || return 0
	# shellcheck disable=SC2086 # words
	$python "$BATS_TEST_DIRNAME/await_end.py" $pids
}

# What to preload for calls that fail.  Sanitizers want to be loaded first.
preloaded() {
	ldd "$KPACK_BIN/kpackfs" | awk '$1 ~ /^lib[at]san/ { print $3 }' | tr '\n' ' '
	echo "$KPACK_BIN/tests/sweep/faults.so"
}

# A program on stdin that may use mkarchive and mounted as modules.
py() { PYTHONPATH=$BATS_TEST_DIRNAME PYTHONDONTWRITEBYTECODE=1 $python - "$@"; }

# mounts: the same, with all of mounted
mounts() { { echo 'from mounted import *' && cat; } | py "$@"; }

# make_archive FILE: description on stdin
make_archive() { $python "$BATS_TEST_DIRNAME/mkarchive.py" "$1"; }

m() { kpackfs "$@" "$T/src" "$T/mnt"; }

unmount() {
	fusermount3 -u "$T/mnt"
	gone
}

nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

must_be_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }
