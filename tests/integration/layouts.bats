#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Layouts of kernel databases (AOTriton's packs and zips, directories for each GPU and
# .dat.zlib, Composable Kernel) packed with each option that decides how they are stored
# or which of them: a mount has the files of the original tree, and no others.
#
# The tests tagged single differ in options; the threads are those of the first test.

load databases.bash

layouts="aotriton aotriton-flatzip rocblas-arch rocblas-feature hipblaslt-arch hipsparselt rocfft-arch miopen provider"

# The files that a mount of ARCHIVES has are those of TREE.
mounts() { # TREE ARCHIVES [OPTION...]
	mkdir -p mnt
	kpackfs "${@:3}" "$2" mnt
	dbcheck same "$1" mnt
	fusermount3 -u mnt || umount mnt
	gone
}

@test "in chunks" {
	# no file of aotriton is large enough
	for kind in ${layouts#aotriton }; do
		echo "$kind"
		tree $kind
		kpack pack -q --chunk 4K --group g "$F/$kind" $kind
		kpack verify -q $kind/.kpack
		dbcheck chunks $kind/.kpack 4096
		mounts "$F/$kind" $kind/.kpack
	done
}

# bats test_tags=single
@test "a family of GPUs: one archive has theirs, and a pack of AOTriton's stays a family" {
	local gpus=gfx942,gfx90a,gfx1100,gfx1151
	for kind in $layouts; do
		echo "$kind"
		tree $kind
		kpack pack -q --family mine=$gpus,gfx90a:xnack+,gfx90a:xnack- --group g "$F/$kind" $kind
		ls $kind/.kpack >have
		! grep -E '_gfx(942|90a|1100|1151)(:.*)?\.kpack' have || false
		kpack verify -q $kind/.kpack
		kpack verify -q --tree $kind
		mounts "$F/$kind" $kind/.kpack
		# its archive, the neutral one and AOTriton's families suffice for these GPUs
		mkdir $kind.want
		dbcheck choose "$F/$kind" $kind.want ${gpus//,/ }
		find $kind/.kpack -name '*_gfx*[!x].kpack' -delete
		mounts $kind.want $kind/.kpack -o arch=$gpus
	done
}

# bats test_tags=single
@test "several GPUs, chosen when packing and when mounting" {
	for kind in $layouts; do
		echo "$kind"
		packed $kind
		for gpus in "gfx942 gfx1101" "gfx90a gfx1201 gfx1030" "gfx1151 gfx950 gfx906"; do
			rm -rf want some
			mkdir want
			# shellcheck disable=SC2086 # GPUs
			dbcheck choose "$F/$kind" want $gpus
			[ -n "$(find want -type f)" ] || continue
			mounts want "$F/$kind.out/.kpack" -o arch=${gpus// /,}
			kpack pack -q --arch ${gpus// /,} --group g "$F/$kind" some 2>err
			mounts want some/.kpack
			kpack verify -q --tree --arch ${gpus// /,} some
		done
	done
}

# bats test_tags=single
@test "in place, again, and brought back by the command" {
	for kind in $layouts; do
		echo "$kind"
		tree $kind
		cp -a "$F/$kind" $kind
		kpack pack --in-place --group g $kind >said
		[ -z "$(find $kind -path $kind/.kpack -prune -o -type f -print)" ]
		mv $kind/.kpack before
		cp -a before $kind/.kpack
		kpack pack --in-place --group g $kind >again
		diff -r before $kind/.kpack
		diff <(tail -n 1 said) <(tail -n 1 again)
		rm -r before
		(PATH=$KPACK_BIN:$PATH && eval "$(tail -n 1 said)")
		diff -r --no-dereference -x .kpack "$F/$kind" $kind
	done
}

# bats test_tags=single
@test "an ordinary user packs, mounts and reads them" {
	as_root
	install "$KPACK_BIN/kpack" "$KPACK_BIN/kpackfs" .
	mkdir home mnt
	chown 65534:65534 home mnt
	for kind in $layouts; do
		echo "$kind"
		tree $kind
		cp -a "$F/$kind" in
		as_nobody ./kpack pack -q --group g in home/out
		as_nobody ./kpackfs home/out/.kpack "$T/mnt"
		as_nobody diff -r --no-dereference -x toc in mnt
		as_nobody fusermount3 -u mnt
		gone
		rm -rf home/out in
	done
}
