# SPDX-License-Identifier: MIT
# Shared by the tests of the mount: a directory for each test, the mount, and its end.

python=/usr/bin/python3
posix=$KPACK_BIN/tests/posix

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
	# Only those that are stopped: SIGCONT takes back the SIGSTOP by which LeakSanitizer,
	# at the end of a process, stops its threads, and it would wait for ever.
	for m in $(daemons); do
		! grep -qs '^State:.T' "/proc/$m/status" || kill -CONT "$m"
	done
	for m in $(findmnt -rno TARGET | grep "^$T/" | tac); do
		fusermount3 -u "$m" || umount "$m" || umount -l "$m"
	done 2>/dev/null
	gone && rm -rf "$T"
}

setup() { begin_test; }
teardown() { end_test; }

# Wait until the mount shows everything that is so now.  What is to be noticed without being asked for
# takes longer.
barrier() { cat "$T/mnt/.kpackfs/barrier" >/dev/null; }

# eventually COMMAND...: true once it is; false when it is not for a long time
eventually() {
	for _ in $(seq 2400); do
		! "$@" || return 0
		read -rt 0.05 <> <(:) || :
	done
	echo "never: $*"
	return 1
}

daemons() { pgrep -f "kpackfs .*$T/"; }
no_daemon() { [ -z "$(daemons)" ]; }

# The daemons of this test's mounts have ended.
gone() { eventually no_daemon; }

# Changes when the kernel has taken pages, names or inodes of any file from its caches: tests beside
# this one drop them, and some kernels do so with much memory free (DAMON).  It asks for them again
# when they are used again.  Changes, too, when the daemon has emptied its cache because the machine
# was short of memory: then the budget is smaller for half a minute.
caches_lost() {
	grep -o '"cache_budget": [0-9]*' "$T/mnt/.kpackfs/stats"
	# the kernel adds up what its processors have counted; only root may ask for it
	cat /proc/sys/vm/stat_refresh >/dev/null 2>&1 || :
	awk '/^(drop_pagecache|drop_slab|slabs_scanned|workingset_refault)/ { n += $2 } END { print n + 0 }' /proc/vmstat
}

# Stop processes, to their last thread: one that takes up a request before it stops makes
# the reader that waits for the answer unkillable.
stop() { # PID...
	kill -STOP "$@"
	eventually all_stopped "$@"
}

all_stopped() { # PID...
	local p
	for p; do
		! grep -qs '^State:.[^T]' /proc/"$p"/task/*/status || return 1
	done
}

# A program on stdin that may use mkarchive as a module.
py() { PYTHONPATH=$BATS_TEST_DIRNAME PYTHONDONTWRITEBYTECODE=1 $python - "$@"; }

# make_archive FILE: description on stdin
make_archive() { $python "$BATS_TEST_DIRNAME/mkarchive.py" "$1"; }

m() { kpackfs "$@" "$T/src" "$T/mnt"; }

unmount() {
	fusermount3 -u "$T/mnt"
	gone
}

nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }

must_be_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }
