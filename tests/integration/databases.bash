# SPDX-License-Identifier: MIT
# Shared by the tests of kernel databases: fixture trees, made once and packed once;
# mounts.

load packing.bash

kpackfs() { "$KPACK_BIN/kpackfs" "$@"; }

# The trees stay for the whole file; code objects for the next run, too.
setup_file() {
	# udev makes it 0666; a machine without udev does not
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	F=$(mktemp -d /tmp/kpack-databases-XXXXXX)
	chmod 0755 "$F"
	export F
}

teardown_file() {
	rm -rf "$F"
}

teardown() {
	cd /
	for m in $(awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/mounts | LC_ALL=C sort -r); do
		umount "$m" || umount -l "$m"
	done
	gone
	rm -rf "$T" # some of it are links of $F's files
}

# The daemons of this test have ended.
gone() {
	# shellcheck disable=SC2046 # words
	$python "$BATS_TEST_DIRNAME/await_end.py" $(pgrep -f "kpackfs .*$T/")
}

# tree KIND [OPTION]: $F/KIND is there
tree() {
	[ -d "$F/$1" ] || $python "$tools/mkdb.py" --cache "$KPACK_BIN/.objects" "${@:2}" "$1" "$F/$1"
}

# packed KIND: $F/KIND and $F/KIND.out, what packing made of it, are there
packed() {
	tree "$1"
	[ -d "$F/$1.out" ] || kpack pack -q --group "$1" "$F/$1" "$F/$1.out" 2>"$F/$1.err"
}

# in_mount ARCHIVES COMMAND...: with them mounted on mnt
in_mount() {
	local status=0 archives=$1
	shift
	mkdir -p mnt
	kpackfs "$archives" mnt
	"$@" || status=$?
	fusermount3 -u mnt || umount mnt
	gone
	return $status
}
