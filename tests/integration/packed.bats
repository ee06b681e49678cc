#!/usr/bin/env bats
# Packed files of kernel databases come back at their old places by the command that packing prints.

load databases.bash

# Here with names that /proc/mounts escapes.
teardown() {
	cd /
	for _ in 1 2; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf %b "$m")"; done
	done
	gone
	rm -rf "$T"
}

# What is mounted by the last line of what packing printed, seen from elsewhere.
bring_back() { # OUTPUT-OF-PACK
	local line
	line=$(tail -n 1 "$1")
	echo "$line"
	# where overlays lead is the machine's, and not this test's
	(cd / && PATH=$KPACK_BIN:$PATH && eval "${line//\/run\/kpackfs/$T/run}")
}

same_tree() { # BEFORE OUT: but for archives and what is converted
	diff -r --no-dereference -x .kpack -x a.so "$1" "$2"
}

@test "mounts of directories, and overlays where other files are" {
	lib=in/lib/rocblas/library
	mkdir -p $lib/gfx942 in/share/miopen/db in/share/doc
	echo parent >$lib/TensileLibrary_lazy_gfx1100.dat
	echo parent >$lib/gfx942/TensileLibrary_lazy_gfx942.dat
	ln $lib/gfx942/TensileLibrary_lazy_gfx942.dat $lib/gfx942/link_gfx942.dat
	echo 1000-13=solver:1 >in/share/miopen/db/gfx942130.db.txt
	echo text >in/share/doc/text
	mkfat --seed 1 in/lib/a.so
	kpack pack in "o u't" >said
	[ "$(grep -o 'kpackfs -o subdir' said | wc -l)" = 2 ]
	bring_back said
	same_tree in "o u't"
	# what is mounted cannot be written
	fails "o u't/lib/rocblas/library: is read-only (a mount?): unmount it first" in "o u't"
	# empty directories are seen through an overlay, also with another prefix, and in place
	mkdir $lib/gfx942/empty
	kpack pack --key-prefix opt/rocm in out >said
	tail -n 1 said | grep -qF 'mount -t overlay'
	bring_back said
	same_tree in out
	rmdir $lib/gfx942/empty
	cp -a in before
	kpack pack --in-place in >said
	bring_back said
	same_tree before in
	fails "share/miopen/db/gfx942130.db.txt: cannot be removed from its directory, which is read-only (a mount?): Read-only" --in-place in
	# an overlay of the whole tree
	mkdir -p top/share
	printf '!<arch>\n' >top/libdevice_conv_operations_gfx942.a
	echo text >top/share/text
	kpack pack --libraries composablekernel top out2 >said
	bring_back said
	diff -r -x .kpack top out2
}

# bats test_tags=single, all
@test "every kind of tree comes back" {
	for kind in rocblas-mixed hipblaslt-arch aotriton-flatzip rocfft miopen provider paper-rocblas all; do
		echo "$kind"
		tree "$kind"
		kpack pack "$F/$kind" "out-$kind" >said
		bring_back said
		diff -r --no-dereference -x .kpack "$F/$kind" "out-$kind"
	done
}
