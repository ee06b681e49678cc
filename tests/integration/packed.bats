#!/usr/bin/env bats
# Packed files of kernel databases come back at their old places by the command that packing prints.

load databases.bash

# kpack pack with OPTIONS... says TEXT on stderr, nothing on stdout, and fails.
fails() { # TEXT OPTION...
	local text=$1
	shift
	status=0
	kpack pack "$@" >refused.out 2>refused.err || status=$?
	[ "$status" = 1 ] && grep -qF -e "$text" refused.err && [ ! -s refused.out ] ||
		{ echo "exit $status:"; cat refused.err; return 1; }
}

# Here with names that /proc/mounts escapes.
teardown() {
	cd /
	for _ in 1 2; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf %b "$m")"; done
	done
	gone
	end_own_run
	rm -rf "$T"
}

# What is mounted by the command that packing printed, seen from elsewhere.
bring_back() { # OUTPUT-OF-PACK
	local line
	line=$(sed -n 's/^  \(kpackfs .*\)/\1/p' "$1")
	echo "$line"
	(cd / && PATH=$KPACK_BIN:$PATH && eval "$line")
}

@test "names that a shell must not take apart, a prefix, and in place" {
	[ "$(id -u)" = 0 ] || skip 'needs root, for an overlay'
	own_run
	lib=in/lib/rocblas/library
	mkdir -p $lib/gfx942/empty in/share/miopen/db in/share/doc
	echo parent >$lib/TensileLibrary_lazy_gfx1100.dat
	echo parent >$lib/gfx942/TensileLibrary_lazy_gfx942.dat
	ln $lib/gfx942/TensileLibrary_lazy_gfx942.dat $lib/gfx942/link_gfx942.dat
	echo 1000-13=solver:1 >in/share/miopen/db/gfx942130.db.txt
	echo text >in/share/doc/text
	kpack pack --key-prefix opt/rocm,1 in "o u't" >said
	bring_back said
	diff -r -x .kpack in "o u't"
	# what is mounted cannot be written
	fails "o u't/lib/rocblas/library: is read-only (a mount?): unmount it first" in "o u't"
	cp -a in before
	kpack pack --in-place in >said
	bring_back said
	diff -r -x .kpack before in
	fails "share/miopen/db/gfx942130.db.txt: cannot be removed from its directory, which is read-only (a mount?): Read-only" --in-place in
	fails "in/lib/rocblas/library: is read-only (a mount?): unmount it first, a kpackfs with: kpackfs --in-place --undo in" --undo in
	kpackfs --in-place --undo in
	kpack pack --undo in
	diff -r before in
}

# bats test_tags=single, all
@test "every kind of tree comes back" {
	[ "$(id -u)" = 0 ] || skip 'needs root, for an overlay'
	own_run
	for kind in rocblas-mixed hipblaslt-arch aotriton-flatzip rocfft miopen provider paper-rocblas all; do
		echo "$kind"
		tree "$kind"
		kpack pack "$F/$kind" "out-$kind" >said
		bring_back said
		diff -r --no-dereference -x .kpack "$F/$kind" "out-$kind"
	done
}
