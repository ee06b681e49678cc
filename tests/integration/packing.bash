# SPDX-License-Identifier: MIT
# Shared by the tests of packing: tools, a directory for each test, refusals.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1

kpack() { "$KPACK_BIN/kpack" "$@"; }
# kpack in a hurry: it finds no package manager (tests/sweep/faults.c).
hurry() {
	SWEEP=none LD_PRELOAD="$(ldd "$KPACK_BIN/kpack" | awk '$1 ~ /^lib[at]san/ { print $3 }' | xargs) $KPACK_BIN/tests/sweep/faults.so" \
		"$KPACK_BIN/kpack" "$@"
}
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

# loads WANT LIBRARY AGENT [WRAPPERS]: what the kernels of its wrappers return; the runtime's messages are in `told`
loads() {
	local examples=$KPACK_BIN/contrib/examples sanitizer got # which Python is without
	sanitizer=$(ldd "$examples/libamdhip64.so.5" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	got=$(LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$3 env LD_PRELOAD="$sanitizer" \
		ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" $python "$tools/launch.py" \
		--wrappers "${4-2}" --devices 1 "$PWD/$2" 2>told | sed 's/.*: //' | paste -sd ' ')
	[ "$got" = "$1" ] || { echo "$2 $3: $got, not $1"; cat told; return 1; }
}

as_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# The number of mounts below this test's directory.
mounts() { awk -v t="$T/" 'index($2, t) == 1 { n++ } END { print n + 0 }' /proc/self/mounts; }

# Root's lock of kpackfs --in-place, and the directories that it mounts in first, are not the system's.
own_run() { [ "$(id -u)" != 0 ] || { mount -t tmpfs -o mode=0755 tmpfs /run && : >/run/of-the-test; }; }
end_own_run() { [ ! -e /run/of-the-test ] || umount /run; }

# Unmount them all, and wait for their daemons.
end_mounts() {
	awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | tac |
		while IFS= read -r m; do umount -l "$m"; done
	gone "kpackfs .*$T/"
}

# Wait for the end of all processes whose commands match PATTERN.
gone() {
	# shellcheck disable=SC2046 # numbers
	$python "$BATS_TEST_DIRNAME/await_end.py" $(pgrep -f "$1")
}

# Wait for TEXT in what the processes print whose stderr is the FIFO at descriptor 8, at most until they end.
said() {
	local line
	while read -r line <&8; do
		[[ $line != *"$1"* ]] || return 0
	done
	return 1
}

# An object with DWARF and a build ID.  The hashes of what LLVM 22's llvm-strip --strip-debug and
# llvm-objcopy --only-keep-debug make of it:
with_id=$BATS_TEST_DIRNAME/../fuzz/corpus/strip/good-build-id
with_id_stripped=7f8905818601b640852f01c683a4cdd76348b8d1a4bc553c787f5a97cafc03b2
with_id_debug=db1a1a17fcb67dd238255bba33705f49005661c15afcf7c3e8f7755d01ff55c5
build_id=dd/98d74722e4ddf5dca453da67b26d83df9b4285

# A library of 24 bundles that have, for gfx1100, these objects in turn.
debug_library() { # OUT CCOB-VERSION OBJECT...
	py "$@" <<-'END'
	import sys, mkfat
	at, parts, pointers = 0, [], []
	for i in range(24):
	    path = sys.argv[3 + i % (len(sys.argv) - 3)]
	    objects = [("gfx1100", open(path, "rb").read()),
	               ("gfx1030", mkfat.code_object("gfx1030", 5000, str(i)))]
	    parts += [bytes(-at % 64), mkfat.bundle(objects, int(sys.argv[2]), 64)]
	    at += -at % 64
	    pointers.append(at)
	    at += len(parts[-1])
	open(sys.argv[1], "wb").write(mkfat.shared_library(b"".join(parts), pointers))
	END
	chmod 755 "$1"
}
