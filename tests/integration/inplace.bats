#!/usr/bin/env bats
# kpack pack --in-place TREE: another user's files, two runs, and what is on the disk when.  The golden cases pack-in-place*
# have what it does, and the fault sweep kills it.

load packing.bash

inplace() { kpack pack -q --in-place "$@"; }

# Directories get new times when what is in them is replaced.
same() { # OLD NEW
	treecheck same "$1" "$2" $(cd "$1" && find . -type d -printf '%P\n') .
}

make_tree() { # DIR
	mkdir -p "$1/lib/deep" "$1/bin"
	mkfat --seed 1 "$1/lib/a.so"
	ln "$1/lib/a.so" "$1/lib/deep/a2.so"
	ln "$1/lib/a.so" "$1/top.so"
	mkfat --seed 2 --ragged "$1/bin/b"
	mkfat --seed 3 --arches gfx942 "$1/lib/c.so"
	echo text >"$1/lib/text"
	ln "$1/lib/text" "$1/text"
	ln -s a.so "$1/lib/a.so.1"
	chmod 0751 "$1/lib/a.so"
	touch -d '2020-01-02 03:04:05.678901234' "$1/lib/a.so" "$1/bin/b"
	setfattr -n user.note -v kept "$1/lib/a.so"
}

@test "a file that the user may not replace, or remove, is reported before anything is written" {
	as_root
	make_tree in
	mkdir -p in/share/miopen/db
	echo "1000-13=solver:1" >in/share/miopen/db/gfx942130.db.txt
	chown -R 65534:65534 in
	cp -a in before
	refuses() { # TEXT
		run as_nobody "$KPACK_BIN/kpack" pack -q --in-place in
		[ "$status" -eq 1 ]
		[[ "$output" == *"$1"* ]]
		[ ! -e in/.kpack ]
	}
	chown 0:0 in/lib/deep
	refuses 'in/lib/deep/a2.so: cannot be replaced in its directory: Permission denied'
	chown 65534:65534 in/lib/deep
	chown 12:34 in/bin/b
	refuses 'in/bin/b: belongs to user 12'
	chown 65534:65534 in/bin/b
	chown 0:0 in/share/miopen/db
	refuses 'in/share/miopen/db/gfx942130.db.txt: cannot be removed from its directory: Permission denied'
	chmod 1777 in/share/miopen/db
	chown 0:0 in/share/miopen/db/*
	refuses 'gfx942130.db.txt: belongs to user 0: only that user can remove it'
	chown -R 65534:65534 in
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in
	treecheck code before in
}

@test "two runs at a time lose nothing" {
	make_tree in
	cp -a in before
	inplace in 2>/dev/null &
	inplace in 2>/dev/null || true
	wait $! || true
	treecheck code before in
	inplace in
	treecheck code before in
	same before in
	[ "$(treecheck list in | grep -c '^converted')" = 5 ]
}

# traced CALLS OPTION...: pack in place; the calls are in trace
traced() {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -y -o trace -e trace="$1" "$KPACK_BIN/kpack" pack -q --in-place in
}

@test "archives and their directory are on the disk before a file is replaced or removed" {
	make_tree in
	mkdir -p in/share/miopen/db
	echo "1000-13=solver:1" >in/share/miopen/db/gfx942130.db.txt
	traced fsync,renameat,unlinkat
	grep -nE 'renameat\(.*/in/(lib|bin|lib/deep)>' trace | head -n 1 | cut -d : -f 1 >first
	head -n "$(cat first)" trace >before
	grep -qE 'fsync\([0-9]+<[^>]*/in>\)' before
	grep -qE 'fsync\([0-9]+<[^>]*/in/.kpack>\)' before
	grep -nE 'unlinkat\([0-9]+<[^>]*/in/[^>]*>, "[^.]' trace | head -n 1 | cut -d : -f 1 >first
	head -n "$(cat first)" trace | grep -qE 'fsync\([0-9]+<[^>]*/in/.kpack>\)'
	# and so is the directory that it was in
	sed -n '/unlinkat([0-9]*<[^>]*\/in\/share\/miopen\/db>/,$p' trace | grep -qE 'fsync\([0-9]+<[^>]*/in/share/miopen/db>'
	# what another run may be writing is not removed before that one is done
	: >in/lib/.kpack-0123456789abcdef.tmp
	traced flock,unlink,unlinkat
	[ ! -e in/lib/.kpack-0123456789abcdef.tmp ]
	# Sanitizers remove files of their own before main() starts.
	grep -oE 'flock\(|unlink(at)?\([^"]*"[^"]*\.kpack-0123456789abcdef\.tmp' trace | cut -d '(' -f 1 | tr '\n' ' ' >order
	[ "$(cut -d ' ' -f 1,2 order)" = "flock unlinkat" ]
}
