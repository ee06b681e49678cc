#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack prune: archives of a packed tree without what nothing needs; judged by an independent reader.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing

# A test that failed leaves no mount.
teardown() {
	cd /
	findmnt -rno TARGET | grep "^$T/" | tac | while read -r mount; do umount "$mount"; done
	rm -rf "$T"
}

# What archives of DIR have: hash, key, architecture of every object.
sums() { # DIR
	for a in "$1"/*.kpack; do
		[ ! -e "$a" ] || readkpack sums "$a"
	done | sort
}

make_tree() { # DIR
	mkdir -p "$1/lib/deep"
	mkfat --size 60000 "$1/lib/a.so"
	ln "$1/lib/a.so" "$1/lib/deep/a.so"
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx1201,gfx11-generic,gfx12-generic "$1/lib/b.so"
	mkfat --size 60000 --seed 3 --arches gfx1030,gfx1100 "$1/lib/c.so"
	mkdir -p "$1/lib/rocblas/library"
	for f in TensileLibrary_Type_HH_gfx1100.co TensileLibrary_Type_HH_gfx1030.co \
		Kernels.so-000-gfx1100.hsaco Kernels.so-000-gfx1030.hsaco; do
		py "$f" "$1/lib/rocblas/library/$f" <<-'END'
		import re, sys, mkfat
		arch = re.search(r"gfx\w+", sys.argv[1])[0]
		open(sys.argv[2], "wb").write(mkfat.code_object(arch, 3000, sys.argv[1]))
		END
	done
	echo neutral >"$1/lib/rocblas/library/TensileManifest.txt"
}

faultless() { # GPU TREE
	kpack mark check --arch "$1" "$2"
	kpack verify -q --tree --arch "$1" "$2"
	kpack verify -q "$2/.kpack"
}

@test "code for other GPUs goes, what the GPU loads stays as it was stored" {
	make_tree in
	kpack pack -q --group g in out
	cp -a out before
	sums before/.kpack >all
	kpack prune --arch gfx1100 out >report
	# generic code and neutral files stay
	grep -E ' (gfx1100|gfx11-generic|generic)$' all >want
	grep -q ' generic$' want
	sums out/.kpack | diff want -
	faultless gfx1100 out
	! diff -q <(ls before/.kpack) <(ls out/.kpack) || false
	# frames are the same bytes; an archive that keeps everything is the same file
	cmp before/.kpack/g_gfx1100.kpack out/.kpack/g_gfx1100.kpack
	[ "$(stat -c %y before/.kpack/g_gfx1100.kpack)" = "$(stat -c %y out/.kpack/g_gfx1100.kpack)" ]
	freed=$(($(du -bc before/.kpack/*.kpack | tail -1 | cut -f 1) - $(du -bc out/.kpack/*.kpack | tail -1 | cut -f 1)))
	[ "$(tail -1 report)" = "$(ls before/.kpack | grep -vcxFf <(ls out/.kpack)) of $(ls before/.kpack | wc -l) archives: $freed bytes freed" ]
	# nothing but the archives changed
	rm -r before/.kpack
	cp -a out after
	rm -r after/.kpack
	treecheck same before after .
	# again: nothing
	find out -printf '%i %P %s %T@ %C@\n' | sort >first
	kpack prune -q --arch gfx1100 out
	find out -printf '%i %P %s %T@ %C@\n' | sort | diff first -
}

@test "an archive of several GPUs, and one that several keys share, lose only what goes" {
	mkdir in
	mkfat --size 60000 --share 2 in/a.so
	kpack pack -q --group g --family all=gfx1030,gfx1100,gfx90a:xnack+ in out
	setfattr -n user.note -v kept out/.kpack/g-all.kpack
	chmod 0640 out/.kpack/g-all.kpack
	readkpack toc out/.kpack/g-all.kpack >toc
	sums out/.kpack | grep ' gfx1030$' >want
	kpack prune -n --json --arch gfx1030 out >would
	kpack prune --json --arch gfx1030 out >did
	sums out/.kpack | diff want -
	[ "$(stat -c %a out/.kpack/g-all.kpack)" = 640 ]
	[ "$(getfattr --only-values -n user.note out/.kpack/g-all.kpack)" = kept ]
	faultless gfx1030 out
	readkpack toc out/.kpack/g-all.kpack >after
	py <<-'END'
	import json
	old, new = json.load(open("toc")), json.load(open("after"))
	for name in ("group_name", "gfx_arch_family", "compression_scheme"):
	    assert old[name] == new[name], name
	assert new["gfx_arches"] == ["gfx1030"]
	would, did = json.load(open("would")), json.load(open("did"))
	w, d = would["archives"][0], did["archives"][0]
	assert d["status"] == w["status"] == "pruned" and d["entries"] == w["entries"] and d["other_gpus"] > 0
	assert would["dry_run"] and not did["dry_run"]
	# the dry run does not know the size of the new table of contents
	assert 0 <= w["size_after"] - d["size_after"] < 4096, (w, d)
	assert did["bytes_after"] == d["size_after"] < d["size_before"] / 2
	END
}

@test "code of binaries and files that do not exist any more goes, and nothing else" {
	make_tree in
	kpack pack -q --group g in out
	sums out/.kpack >all
	kpack prune -q out
	sums out/.kpack | diff all -
	# one of two paths of the file
	rm out/lib/a.so
	kpack prune -q out
	sums out/.kpack | diff all -
	rm out/lib/deep/a.so out/lib/c.so
	grep -vE ' lib/[ac]\.so#' all >want
	kpack prune --json out >report
	sums out/.kpack | diff want -
	# of a library that was removed, the package manager removes the empty directories
	rm -r out/lib/rocblas
	grep ' lib/b\.so#' all >want
	kpack prune -q out
	sums out/.kpack | diff want -
	[ ! -e out/.kpack/g_generic.kpack ]
	faultless gfx1100 out
}

@test "after packages were installed again, their files need no archives, with any prefix of keys" {
	make_tree in
	kpack pack -q --group g in out
	sums out/.kpack >all
	cp -a out packed
	# one binary, one file of a database
	cp in/lib/b.so out/lib/
	cp in/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco out/lib/rocblas/library/
	grep -vE ' lib/(b\.so#|rocblas/library/Kernels.so-000-gfx1100)' all >want
	kpack prune --json out >report
	sums out/.kpack | diff want -
	[ "$(jq '[.archives[].not_asked_for] | add' report)" = $(($(wc -l <all) - $(wc -l <want))) ]
	kpack verify -q --tree --arch gfx1100 out
	cmp in/lib/b.so out/lib/b.so
	# all of them, without code and files for other GPUs
	kpack thin -q --arch gfx1100 in thinned
	rm -r out/lib
	cp -a thinned/lib out/
	cp -a out out3
	kpack prune -q out
	grep -E ' lib/rocblas/.* gfx1030$' all >want
	sums out/.kpack | diff want -
	kpack prune -q --arch gfx1100 out3
	[ -z "$(ls out3/.kpack)" ]
	# after a purge other packages' files are there
	cp -a packed out2
	mkdir out2/bin
	cp "$(type -P true)" out2/bin/
	rm -r out2/lib
	kpack prune -q out2
	[ -z "$(ls out2/.kpack)" ]
	# archives beside binaries that have their code
	mkdir -p beside/lib
	mkfat --size 60000 beside/lib/a.so
	mkfat --bare --bundles 1 --size 60000 beside/lib/b.hipfb
	kpack pack -q --archives-only --group g --key-prefix usr/local beside beside
	kpack prune -q beside
	[ -z "$(ls beside/.kpack)" ]
}

@test "a path that is a link, a damaged binary or another user's file needs its archive" {
	make_tree in
	kpack pack -q --group g in out
	sums out/.kpack >all
	# a binary and a file that are links, into the tree and out of it
	mkdir elsewhere
	mv out/lib/b.so elsewhere/
	ln -s "$PWD/elsewhere/b.so" out/lib/b.so
	ln -s TensileManifest.txt out/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	# a binary that cannot be read
	truncate -s 3000 out/lib/c.so
	kpack prune -q out
	sums out/.kpack | diff all -
	# the directory of files has another name, and its old one is a link
	mv out/lib/rocblas out/rocblas
	ln -s ../rocblas out/lib/rocblas
	cp in/lib/rocblas/library/*.co out/rocblas/library/
	kpack prune -q out
	sums out/.kpack | diff all -
	# what thin --keep keeps, even beside the archives
	kpack thin -q --arch gfx1100 --keep out/.kpack in
	[ ! -d in/.kpack ]
	cp -a out/.kpack kept
	cp -a in/lib/a.so out/lib/
	rm -r out/lib/deep
	kpack prune -q out
	for a in out/.kpack/*; do
		[[ $a = */g_* ]] || cmp "$a" "kept/${a##*/}"
	done
	! sums out/.kpack | grep -E ' lib/a\.so#[0-9]+ +gfx' || false
}

@test "objects that another build added stay" {
	mkdir in more
	mkfat --size 60000 --arches gfx1100 in/a.so
	mkfat --size 60000 --arches gfx1201 more/a.so
	kpack pack -q --group g in out
	kpack pack -q --archives-only --group g more out
	sums out/.kpack >all
	grep -q gfx1201 all
	kpack prune -q out
	sums out/.kpack | diff all -
	kpack prune -q --arch gfx1201 out
	grep gfx1201 all >want
	sums out/.kpack | diff want -
}

@test "archives in another directory: pack --archive-dir, and what follows the markers there" {
	local dir=lib/x86_64-linux-gnu/rocm-kpack
	make_tree in
	kpack pack -q --group g in out
	kpack pack --group g --archive-dir $dir in apart >report
	[ ! -e apart/.kpack ]
	diff -r out/.kpack apart/$dir
	grep -qF "apart/$dir" report
	! grep -F .kpack/ report || false
	sums apart/$dir >all
	kpack mark show --json apart/lib/deep/a.so | grep -F "\"../../$dir/g_@GFXARCH@.kpack\""
	for tree in apart moved; do
		kpack mark check --arch gfx1100 $tree
		kpack verify --tree --arch gfx1100 $tree >verified
		grep -qE ' 5 of kernel databases, 0 faults' verified
		[ -d moved ] || cp -a apart moved
	done
	# in place, and again with a new file
	cp -a in place
	mkfat --size 60000 --seed 9 place/lib/new.so
	mv place/lib/new.so .
	kpack pack -q --in-place --group g --archive-dir $dir/ place
	diff -r apart place
	cp new.so place/lib
	kpack pack -q --in-place --group g --archive-dir $dir place
	[ ! -e place/.kpack ]
	[ "$(sums place/$dir | grep -vc ' lib/new\.so#')" = "$(wc -l <all)" ]
	kpack mark check place
	# a packed tree is packed again
	cp new.so apart/lib
	kpack pack -q --group g --archive-dir $dir apart again
	diff -r place again
	# an entry is missing: the archives are found there
	rm -r apart/lib/c.so apart/lib/rocblas
	kpack prune -q --arch gfx1100 apart
	grep -E ' (gfx1100|gfx11-generic)$' all | grep -vE ' lib/(c\.so|rocblas)' >want
	sums apart/$dir | diff want -
	kpack mark check --arch gfx1100 apart/lib/[ab].so
	for wrong in /usr/x ../x a/../b ''; do
		usage "--archive-dir $wrong: not a path" --archive-dir "$wrong" in wrong
	done
	usage "--shard with --archive-dir" --archive-dir x --shard 1/2 in wrong
}

@test "what looks wrong stops the run before anything changes" {
	make_tree in
	kpack pack -q --group g in out
	# the part of a tree that has the archives only
	mkdir part
	cp -a out/.kpack part
	cp -a part whole
	run kpack prune part
	[ "$status" -eq 1 ]
	[[ "$output" == *"part: nothing in it needs its archives"* ]]
	diff -r part whole
	run kpack prune -q --force part
	[ "$status" -eq 0 ]
	[ -z "$(ls part/.kpack)" ]
	run kpack prune part
	[ "$status" -eq 0 ]
	cp -a out whole2
	run kpack prune --arch gfx942 out
	[ "$status" -eq 1 ]
	[[ "$output" == *"no code is for the wanted GPUs: nothing is removed"* ]]
	run kpack prune --arch gfx110 out
	[ "$status" -eq 2 ]
	# a marker that cannot be read: what its binary needs is not known
	py <<-'END'
	data = bytearray(open("out/lib/c.so", "rb").read())
	at = data.index(b"kernel_name")
	data[at:at + 6] = b"kermel"
	open("out/lib/c.so", "wb").write(data)
	END
	cp out/lib/c.so whole2/lib/c.so
	rm out/lib/b.so whole2/lib/b.so
	run kpack prune --arch gfx1100 out
	[ "$status" -eq 1 ]
	[[ "$output" == *"out/lib/c.so: "*"nothing was removed because of the faults above"* ]]
	diff -r out whole2
	rm out/lib/c.so
	# a frame of any archive that is damaged, whether it would stay, go, or is not touched
	rm -r out
	kpack pack -q --group g in out
	rm out/lib/c.so
	for name in gfx1030 gfx1100 gfx1201; do
		rm -rf hurt
		cp -a out hurt
		py hurt/.kpack/g_$name.kpack <<-'END' >entry
		import sys, readkpack
		path = sys.argv[1]
		a = readkpack.Archive(path)
		key, arch, e = list(a.entries())[-1]
		at, size = a.blobs[e["ordinal"]]
		data = bytearray(a.data)
		data[at + size // 2] ^= 1
		open(path, "wb").write(data)
		print(key, arch)
		END
		cp -a hurt whole3
		for options in "" "--arch gfx1100" "-n"; do
			run kpack prune $options hurt
			[ "$status" -eq 1 ]
			[[ "$output" == *"hurt/.kpack/g_$name.kpack: $(cat entry): "*"hurt: nothing was removed"* ]]
			diff -r hurt whole3
		done
		rm -r whole3
	done
	# an archive of which something cannot be copied
	truncate -s -100 out/.kpack/g_gfx1030.kpack
	ls out/.kpack >names
	run kpack prune --arch gfx1100 out
	[ "$status" -eq 1 ]
	ls out/.kpack | diff names -
}

@test "code of files that a mount covers stays" {
	as_root
	make_tree in
	kpack pack -q --group g in out
	sums out/.kpack >all
	mount -t tmpfs tmpfs out/lib
	kpack prune -q --force out
	umount out/lib
	sums out/.kpack | diff all -
	rm out/lib/c.so
	kpack prune -q out
	! sums out/.kpack | grep ' lib/c\.so#' || false
}

@test "files that only a mount of the archives shows need them" {
	as_root
	make_tree in
	kpack pack -q --group g in out
	sums out/.kpack >all
	library=lib/rocblas/library
	# the same file system: copies in place of what kpackfs would show
	mkdir shown
	cp -a in/lib shown/
	mount --bind shown/$library out/$library
	kpack prune -q out
	umount out/$library
	mkdir -p out/$library
	: >out/$library/Kernels.so-000-gfx1100.hsaco
	mount --bind in/$library/Kernels.so-000-gfx1100.hsaco out/$library/Kernels.so-000-gfx1100.hsaco
	kpack prune -q out
	umount out/$library/Kernels.so-000-gfx1100.hsaco
	rm out/$library/Kernels.so-000-gfx1100.hsaco
	sums out/.kpack | diff all -
	# an overlay over a directory, and over the whole tree; each layer of a file system of its own
	mkdir mnt
	mount -t tmpfs tmpfs mnt
	cp -a in/lib mnt/
	rm mnt/lib/*.so
	for options in "" ,xino=on; do
		mount -t overlay overlay -o ro,lowerdir=out/lib:mnt/lib out/lib
		[ -s out/$library/Kernels.so-000-gfx1100.hsaco ]
		kpack prune -q out
		umount out/lib
		cp -a out whole
		mkdir up work
		mount -t overlay overlay -o "lowerdir=whole:mnt,upperdir=up,workdir=work$options" out
		[ -s out/$library/Kernels.so-000-gfx1100.hsaco ]
		kpack prune -q out
		sums out/.kpack | diff all -
		umount out
		rm -r whole up work
	done
	sums out/.kpack | diff all -
	umount mnt
}

@test "a killed run leaves whole archives, and the next one finishes" {
	mkdir in
	for i in $(seq 8); do
		mkfat --size 60000 --seed "k$i" in/k$i.so
		kpack pack -q --group g$i --family all=gfx1030,gfx1100,gfx90a:xnack+ in out$i
		rm in/k$i.so
		mkdir -p out/.kpack
		cp -a out$i/.kpack/* out/.kpack/
		cp -a out$i/k$i.so out/
	done
	cp -a out want
	kpack prune -q --arch gfx1100 want
	for i in $(seq 6); do
		"$KPACK_BIN/kpack" prune -q --arch gfx1100 out &
		pid=$!
		sleep 0.00$i
		kill -9 $pid 2>/dev/null || :
		wait $pid 2>/dev/null || :
		for i in $(seq 8); do
			cmp -s out/.kpack/g$i-all.kpack out$i/.kpack/g$i-all.kpack ||
				cmp out/.kpack/g$i-all.kpack want/.kpack/g$i-all.kpack
		done
	done
	# a run that is killed between linking and renaming leaves a name that no reader takes
	left=out/.kpack/.kpack-0123456789abcdef.tmp
	: >$left
	: >out/.kpack/.kpack-other.tmp
	: >out/.kpack-fedcba9876543210.tmp
	mkdir out/.kpack/.kpack-fedcba9876543210.tmp
	kpack prune -q -n --arch gfx1100 out
	[ -e $left ]
	run -1 kpack prune -q --arch gfx1201 out
	[ -e $left ]
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=flock,unlinkat \
		"$KPACK_BIN/kpack" prune -q --arch gfx1100 out
	# it belongs to no run that has the lock
	grep -oE "flock\(.*LOCK_EX|unlinkat\(.*${left##*/}" trace | cut -d '(' -f 1 | uniq | tr '\n' ' ' >order
	[ "$(cat order)" = "flock unlinkat " ]
	rm out/.kpack/.kpack-other.tmp out/.kpack-fedcba9876543210.tmp
	rmdir out/.kpack/.kpack-fedcba9876543210.tmp
	diff -r out want
	faultless gfx1100 out
}
