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
	export LC_ALL=C KPACKFS_RUN=$T/run
	umask 022
	mkdir policies
	whole=$BATS_FILE_TMPDIR/tree
	file=lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cp -a "$whole" tree
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
}

teardown() {
	cd /
	end_mounts
	rm -rf "$T"
}

policy() { printf '%s\n' "tree=$T/tree" "${@:2}" >"policies/$1.conf"; }
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
	policy rocm arch=gfx1100 do=thin
	[[ $(apply) == "rocm: $T/tree: 3 files thinned, 4 removed, "*" freed" ]]
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
	policy rocm arch=gfx1100 do=thin
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

# bats test_tags=single
@test "a tree that only its archives kept goes with them, and directories of others stay" {
	command -v dpkg-query >/dev/null || skip "no dpkg"
	apply() { kpack apply --policy-dir policies --state-dir state "$@"; } # asks dpkg
	mkdir other
	mv tree x
	mkdir tree
	mv x tree/sub
	echo mine >tree/mine
	policy rocm arch=gfx1100 do=pack
	sed -i 's|^tree=.*|&/sub|' policies/rocm.conf
	apply
	: >tree/sub/.kpack/.kpack-0123456789abcdef.tmp
	rm -r tree/sub/{lib,share} tree/mine
	run -0 apply
	[ ! -e tree ]
	[ -d other ]
	for how in apply status; do
		run -0 $how
		[ "$output" = "rocm: $T/tree/sub: does not exist" ]
	done
	complete
	[ -z "$(apply --unmount)$(apply --mounts)" ]
	mkdir tree
	cp -a "$whole" tree/sub
	apply
	rm -r tree/sub/lib
	apply
	[ "$(ls -A tree/sub)" = share ]
}

@test "packed and mounted, away for packages, packed again, mounted otherwise, thin again" {
	as_root
	policy rocm arch=gfx1100 do=pack mount=in-place
	[[ $(apply) == *"3 files converted, 4 removed, 2 packed"* ]]
	[ "$(mounts)" = 1 ]
	same
	[ ! -e tree/lib/rocblas/library/Kernels.so-000-gfx1030.hsaco ]
	unchanged
	complete
	# -n does what a run does, which takes the mounts away
	cp "$whole/lib/c.so" tree/lib/late.so
	[[ $(apply -n) == *": 1 files would be converted, 0 would be removed, 0 would be packed" ]]
	[[ $(apply) == *": 1 files converted, 0 removed, 0 packed, "* ]]
	[ "$(kinds)" = '4 changed 2 packed 4 removed' ]
	# an upgrade while a program has a file open
	exec 7<tree/$file
	apply --unmount
	[ "$(mounts)" = 0 ]
	head -c 6000 /dev/urandom | tee newer >tree/$file
	cmp "$whole/$file" - <&7
	[[ $(apply) == *"1 packed"* ]]
	cmp newer tree/$file
	exec 7<&-
	# a tree that was packed before it got its policy is mounted
	mkdir other
	apply --unmount
	complete false
	kpack apply --policy-dir policies --state-dir other --mounts
	[ "$(mounts)" = 1 ]
	[ -z "$(kpack apply --policy-dir policies --state-dir other 2>&1 >/dev/null)" ]
	apply --mounts
	complete
	# an overlay between the files
	policy rocm arch=gfx1100 do=pack mount=overlay
	apply
	grep -q "overlay $T/tree/lib overlay" /proc/self/mounts
	run -1 grep "$T/tree/lib/rocblas/library fuse" /proc/self/mounts
	cmp newer tree/$file
	complete
	apply --unmount
	[ "$(mounts)" = 0 ]
	echo manual >tree/lib/rocblas/library/README
	# what scripts leave that are killed before they mount, and after they unmounted
	left=$T/run/tree${T//\//%2f}%2ftree
	for directories in "$left/tree $left/archives" "$left"; do
		[ ! -e "$left" ]
		mkdir -p $directories
		: >"$left/overlays"
		apply
		[ "$(cat tree/lib/rocblas/library/README)" = manual ]
		complete
		apply --unmount
	done
	# other users cannot open, and so not lock, what scripts and runs wait for
	[ "$(stat -c %a run/.lock)" = 600 ]
	# thin has no way back: what is mounted stays, and the packages are asked for
	apply --mounts
	policy rocm arch=gfx1100 do=thin
	run -1 apply
	[[ $output == *"kpack: rocm: do=thin: $T/tree is packed, and stays so: reinstall "* ]]
	cmp newer tree/$file
	policy rocm arch=gfx1100 do=pack
	apply
	[ "$(mounts)" = 0 ]
	# the package goes
	rm -rf tree/lib/rocblas
	apply
	[ "$(kinds)" = '4 changed' ]
	run -1 grep rocblas <(kpack ls tree/.kpack)
	policy rocm arch=gfx1100 do=thin
	cp -a "$whole/." tree
	rm tree/lib/late.so
	apply
	[ "$(gpus tree/lib/a.so)" = gfx1100 ]
	[ ! -e tree/.kpack ]
	complete
}

@test "a tree that is a symbolic link, and one for which nothing can be mounted" {
	as_root
	mv tree rocm-1
	cp -a rocm-1 rocm-2
	ln -s rocm-1 tree
	policy rocm arch=gfx1100 do=pack mount=in-place
	KPACKFS_RUN=$T/rocm-1/lib/c.so run ! apply
	[ "$(mounts)" = 0 ]
	complete false
	apply
	[ "$(mounts)" = 1 ]
	complete
	[ "$(apply)" = "rocm: $T/rocm-1: nothing changed" ]
	same
	# the same directory by another name
	sed "s|^tree=.*|tree=$T/rocm-1/lib|" policies/rocm.conf >policies/other.conf
	run -1 apply
	[[ $output == *"the trees $T/rocm-1 and $T/rocm-1/lib overlap"* ]]
	rm policies/other.conf
	# another version gets the name
	ln -sfn rocm-2 tree
	[[ $(apply) == "rocm: $T/rocm-2: 3 files converted, 4 removed, 2 packed"* ]]
	same
	complete
}

@test "a run, the scripts of a killed run, and --unmount wait for one another" {
	as_root
	# a script that a run calls waits in its first command, before it locks anything itself
	mkdir stubs
	mkfifo go
	for program in "$(command -v realpath)" "$KPACK_BIN/kpackfs"; do
		cat >"stubs/${program##*/}" <<-END
			#!/bin/bash
			if rmdir "$T/wait" 2>/dev/null; then
				echo >"$T/begun"
				read -r _ <"$T/go"
			fi
			exec "$program" "\$@"
		END
	done
	chmod +x stubs/*
	slow() { PATH=$T/stubs:$PATH exec "$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state "$@" 3>&- 4>&-; }
	begin() { # COMMAND...: until its script is at work
		mkdir wait
		rm -f begun # processes of an earlier one may still have it
		mkfifo begun
		"$@" >/dev/null 7>begun &
		first=$!
		read -r _ <begun
	}
	wait_for() { # COMMAND...: that waits for the script
		rm -f err
		mkfifo err
		"$@" >/dev/null 2>err 3>&- 4>&- &
		second=$!
		exec 8<err
		said "run/.lock: note: another process has locked it: waiting"
		echo >go
		wait $second
	}
	for mount in overlay in-place; do
		policy rocm arch=gfx1100 do=pack mount=$mount
		# killed while its script begins to unmount: what that unmounts comes back
		apply
		begin slow --unmount
		kill -KILL $first
		wait_for apply
		[ "$(mounts)" -gt 0 ]
		same
		apply --unmount
		[ $mount = in-place ] || continue
		# what is mounted at the end of a run goes: packages are installed after --unmount
		begin slow
		wait_for apply --unmount
		wait $first
		[ "$(mounts)" = 0 ]
		# a script that was called by hand
		begin env KPACKFS="$T/stubs/kpackfs" "$KPACK_SRC/contrib/mount/$mount" tree 3>&- 4>&-
		wait_for env KPACKFS="$KPACK_BIN/kpackfs" "$KPACK_SRC/contrib/mount/$mount" -u tree
		wait $first
		[ "$(mounts)" = 0 ]
		# a daemon does not keep the lock
		apply
		flock -n run/.lock true
		apply --unmount
	done
	exec 8<&-
	# leftovers of a script that was killed while it looked into the archives
	policy rocm arch=gfx1100 do=pack mount=in-place
	mkdir run/in-place.left
	"$KPACK_BIN/kpackfs" -o subdir=. tree/.kpack run/in-place.left
	apply
	[ ! -e run/in-place.left ]
}

# bats test_tags=single
@test "hooks of dpkg and apt: mounts go and come back, and no fault fails an installation" {
	as_root
	policy rocm arch=gfx1100 do=pack mount=in-place
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
	[[ $output == *"wrong.conf: line 1: wrong: not KEY=VALUE"*"kpackfs: not all policies could be applied: see kpack status" ]]
	hook 0 pre
	run -1 apply --no-mounts
	[ "$(mounts)" = 0 ]
	run -1 apply --mounts
	[[ $output == *"wrong.conf: line 1: wrong: not KEY=VALUE" ]]
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

# bats test_tags=single
@test "the systemd unit has the trees that are mounted, whatever their names are" {
	generate() {
		rm -rf units
		mkdir units
		KPACK=$KPACK_BIN/kpack KPACK_POLICIES=policies "$KPACK_SRC/contrib/systemd/kpackfs-generator" units units units
	}
	policy thin arch=auto do=thin
	generate
	[ -z "$(ls units)" ]
	policy pack arch=auto do=pack mount=overlay
	sed -i "1s|.*|tree=$T/b 50% \"x\"|" policies/pack.conf
	policy more arch=auto do=pack mount=in-place
	generate
	[ "$(readlink units/multi-user.target.wants/kpackfs-policies.service)" = ../kpackfs-policies.service ]
	grep '^RequiresMountsFor=\|^Exec' units/kpackfs-policies.service >have
	run_of="\"$(realpath "$KPACK_BIN/kpack")\" apply --policy-dir \"$T/policies\""
	diff have - <<-END
	RequiresMountsFor="$T/tree"
	RequiresMountsFor="$T/b 50%% \\"x\\""
	ExecStart=$run_of --mounts
	ExecStop=$run_of --unmount
	END
	! command -v systemd-analyze >/dev/null || systemd-analyze verify --man=no units/kpackfs-policies.service
}
