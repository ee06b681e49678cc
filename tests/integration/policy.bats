#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack apply and status where they mount, ask package managers, wait for one another, and are run by root.
# What they do to trees is in the golden cases apply-*; tests/sweep kills them at each moment.

bats_require_minimum_version 1.5.0

load packing

# Files of three GPUs: two libraries, one of them with two names, and a database.
setup_file() {
	load packing
	cd "$BATS_FILE_TMPDIR"
	umask 022
	mkdir -p tree/lib/deep tree/lib/rocblas/library tree/share
	mkfat --size 6000 --arches gfx1100,gfx1030,gfx90a tree/lib/a.so
	ln tree/lib/a.so tree/lib/deep/b.so
	mkfat --size 6000 --seed 2 --arches gfx1100,gfx1030,gfx90a tree/lib/c.so
	for gpu in gfx1100 gfx1030 gfx90a; do
		for f in "Kernels.so-000-$gpu.hsaco" "TensileLibrary_lazy_$gpu.dat"; do
			head -c 5000 /dev/urandom >"tree/lib/rocblas/library/$f"
		done
	done
	echo text >tree/share/text
}

setup() {
	T=$(mktemp -d /tmp/kpack-policy-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C
	umask 022
	own_run
	mkdir policies
	whole=$BATS_FILE_TMPDIR/tree
	file=lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cp -a "$whole" tree
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
}

teardown() {
	cd /
	end_mounts
	end_own_run
	rm -rf "$T"
}

# policy NAME thin|pack [LIST]
policy() {
	echo "thin --arch ${3-gfx1100} $T/tree" >"policies/$1.conf"
	[ "$2" = thin ] || echo "pack --in-place --arch ${3-gfx1100} $T/tree" >>"policies/$1.conf"
}
apply() { hurry apply --policy-dir policies --state-dir state "$@"; }
status() { hurry status --policy-dir policies --state-dir state "$@"; }
complete() { [ "$(status --json | jq '.[0].complete')" = "${1-true}" ]; }
kinds() { status --json | jq -r '.[0].files[].status' | sort | uniq -c | xargs; } # how many files of each kind
gpus() { kpack inspect "$1" | grep -o 'gfx[0-9a-f]*' | sort -u | xargs; }
same() { cmp "$whole/$file" "tree/$file"; }
unchanged() { [ "$(apply)" = "rocm: $T/tree: nothing changed" ]; }

# bats test_tags=single
@test "a second run opens no file, and one in an overlay sees new ones" {
	as_root
	mkdir upper new
	mount -t tmpfs -o mode=0755 tmpfs upper
	mkdir upper/files upper/work
	mount -t overlay -o lowerdir=tree,upperdir=upper/files,workdir=upper/work overlay tree
	policy rocm thin
	[[ $(apply) == "rocm: $T/tree: 3 files changed, 4 removed, 0 packed, "*" freed"* ]]
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -qq -e trace=open,openat,openat2 -o trace \
		"$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state >said
	run -1 grep -E '"[^"]*([abc]\.so|text|hsaco)"' <(grep -v O_PATH trace)
	grep -q rocm.conf trace
	cp -a "$whole/lib/c.so" tree/lib/new.so
	[ "$(status --json | jq '.[0].files_new')" = 1 ]
	apply
	[ "$(gpus tree/lib/new.so)" = gfx1100 ]
}

# bats test_tags=single
@test "root takes policies only of root's, by links only of root's" {
	as_root
	refused() { # TEXT
		run -1 apply
		[[ $output == "kpack: $1"* ]]
		[ "$(gpus tree/lib/a.so)" = 'gfx1030 gfx1100 gfx90a' ]
	}
	policy rocm thin
	chmod 0664 policies/rocm.conf
	refused 'policies/rocm.conf: users other than root can write it: chown it to root, chmod it go-w'
	chmod 0644 policies/rocm.conf
	chown 65534 policies/rocm.conf
	refused policies/rocm.conf
	chown 0 policies/rocm.conf
	chmod 0777 policies
	refused 'policies: users other than root can write it'
	chmod 0755 policies
	mkdir theirs
	mv policies/rocm.conf elsewhere
	cp elsewhere theirs/own
	for to in ../nothing rocm.conf ../theirs /dev/null; do
		ln -sfn $to policies/rocm.conf
		refused policies/rocm.conf
	done
	ln -sfn ../elsewhere policies/rocm.conf
	chown -h 65534 policies/rocm.conf
	refused "policies/rocm.conf: a symbolic link: it and the file must be root's alone: "
	chown -h 0 policies/rocm.conf
	chown 65534 elsewhere
	refused policies/rocm.conf
	chown 0 elsewhere
	# a file of root's where another user may put another one
	ln -sfn ../theirs/own policies/rocm.conf
	chown 65534 theirs
	refused policies/rocm.conf
	ln -sfn ../elsewhere policies/rocm.conf
	ln -s policies link
	run -0 kpack apply --policy-dir link --state-dir state
	[ "$(gpus tree/lib/a.so)" = gfx1100 ]
	# states that others could write are none
	chmod 0666 state/rocm.state
	[[ $(apply 2>&1) == *'users other than root can write it'* ]]
}

@test "packed and mounted, away for packages, mounted again" {
	as_root
	policy rocm pack
	[[ $(apply) == *"3 files changed, 4 removed, 2 packed"* ]]
	[ "$(mounts)" = 1 ]
	same
	[ ! -e tree/lib/rocblas/library/Kernels.so-000-gfx1030.hsaco ]
	unchanged
	complete
	# no daemon keeps a lock, and nobody else can take one
	for lock in state/lock /run/kpackfs/.lock; do
		flock -n $lock true
		[ "$(stat -c %a $lock)" = 600 ]
	done
	cp "$whole/lib/c.so" tree/lib/late.so
	[[ $(apply -n) == *": 1 file to look at: would run"*"kpack thin --arch gfx1100 $T/tree"* ]]
	[[ $(apply) == *": 1 file changed, 0 removed, 0 packed, "* ]]
	[ "$(kinds)" = '4 changed 2 packed 4 removed' ]
	# after a restart; and what is not mounted is seen
	apply --unmount
	complete false
	apply --mounts
	complete
	umount tree/lib/rocblas/library
	complete false
	unchanged
	complete
	# beside something else: an overlay
	apply --unmount
	mkdir tree/lib/rocblas/library/other
	apply
	grep -q "$T/tree/lib/rocblas/library overlay" /proc/self/mounts
	[ -d tree/lib/rocblas/library/other ]
	same
	complete
	unchanged
}

@test "a tree that is a symbolic link, and one for which nothing can be mounted" {
	as_root
	mv tree rocm-1
	cp -a rocm-1 rocm-2
	ln -s rocm-1 tree
	policy rocm pack
	mount --bind /dev/null /dev/fuse
	run -1 apply
	umount /dev/fuse
	[ "$(mounts)" = 0 ]
	complete false
	apply
	[ "$(mounts)" = 1 ]
	complete
	[ "$(apply)" = "rocm: $T/rocm-1: nothing changed" ]
	same
	# the same directory by another name
	sed "s|$T/tree|$T/rocm-1/lib|" policies/rocm.conf >policies/other.conf
	run -1 apply
	[[ $output == *"the trees $T/rocm-1 and $T/rocm-1/lib overlap"* ]]
	rm policies/other.conf
	# another version gets the name
	ln -sfn rocm-2 tree
	[[ $(apply) == "rocm: $T/rocm-2: 3 files changed, 4 removed, 2 packed"* ]]
	same
	complete
}

@test "a run, a killed run's command, and --unmount wait for one another" {
	as_root
	mkfifo err go
	exec 8<>err
	policy rocm pack
	mkdir state
	flock state/lock cat go &
	apply 2>err >said 8<&- &
	said "state/lock: note: another process has locked it: waiting"
	: >go
	wait
	grep -q "2 packed" said
	same
	flock state/lock cat go &
	apply --unmount 2>err 8<&- &
	said "state/lock: note: another process has locked it: waiting"
	[ "$(mounts)" = 1 ]
	: >go
	wait
	[ "$(mounts)" = 0 ]
	exec 8<&-
}

# bats test_tags=single
@test "hooks of dpkg and apt: mounts go and come back, and no fault fails an installation" {
	as_root
	policy rocm pack
	printf '#!/bin/sh\nexec "%s" "$@" --policy-dir %s/policies --state-dir %s/state\n' "$KPACK_BIN/kpack" "$T" "$T" >wrapper
	# this machine's own policies, if it has some, have no unit here
	mkdir stubs
	printf '#!/bin/sh\nexit 1\n' >stubs/systemctl
	chmod +x wrapper stubs/systemctl
	hook() { # MOUNTS ARGUMENT...
		PATH=$T/stubs:$PATH KPACK=$T/wrapper run -0 "$KPACK_SRC/contrib/dpkg/hook" "${@:2}"
		[ "$(mounts)" = "$1" ]
	}
	hook 1 post
	hook 0 pre
	# apt calls dpkg, and its own hook afterwards; packages of another system
	DPKG_FRONTEND_LOCKED=true hook 0 post dpkg
	DPKG_ROOT=/mnt/other hook 0 post dpkg
	hook 1 post dpkg
	hook 0 pre dpkg
	# the other's mounts come back even then, and go
	echo wrong >policies/wrong.conf
	hook 1 post
	[[ $output == *"wrong.conf: line 1: wrong: not a command of thin or pack"*"kpackfs: not all policies could be applied: see kpack status" ]]
	hook 0 pre
	run -1 apply --no-mounts
	[ "$(mounts)" = 0 ]
	run -1 apply --mounts
	[[ $output == *"wrong.conf: line 1: wrong: not a command of thin or pack" ]]
	[ "$(mounts)" = 1 ]
	# a fault of its own does not keep it mounted
	cp policies/rocm.conf kept
	for how in wrong gone; do
		[ $how = gone ] && rm policies/rocm.conf || echo wrong >policies/rocm.conf
		for _ in 1 2; do
			hook 0 pre
			[[ $output != *mounted* ]]
		done
		cp kept policies/rocm.conf
		hook 1 post
	done
	hook 0 pre
	# not those of two policies for one tree
	cp policies/rocm.conf policies/wrong.conf
	run -1 apply
	[[ $output == *" overlap: remove one of the policies" ]]
	[ "$(mounts)" = 0 ]
	# the package was removed, its configuration files stay
	KPACK=$T/nothing run -0 "$KPACK_SRC/contrib/dpkg/hook" post
	[ -z "$output" ]
	hook 0 wrong
}
