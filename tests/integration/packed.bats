#!/usr/bin/env bats
# Files of kernel databases in the output: --databases, the command that mounts them at
# their old places, two builds that conflict, files of unknown libraries.
#
# The tests tagged single differ in files and options, or end before there are threads.

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

# A small tree; WORD is in the files that every GPU needs.
small() { # DIR [WORD]
	local lib=$1/lib/rocblas/library
	mkdir -p "$lib/gfx942/empty" "$1/share/miopen/db" "$1/share/doc" "$1/lib/foo"
	echo "parent ${2-}" >"$lib/TensileLibrary_lazy_gfx1100.dat"
	echo "parent ${2-}" >"$lib/gfx942/TensileLibrary_lazy_gfx942.dat"
	echo "fallback ${2-}" >"$lib/TensileLibrary_Type_DD_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback.dat"
	echo "1000-13=solver:1" >"$1/share/miopen/db/gfx942130.db.txt"
	echo text >"$1/share/doc/text"
	mkfat --seed 1 "$1/lib/a.so"
	chmod 0700 "$lib"
	touch -d '2019-05-06' "$lib/gfx942/empty" "$lib" "$1/share/miopen/db"
}

fallback=lib/rocblas/library/TensileLibrary_Type_DD_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback.dat

# The files of DIR that are not archives.
files() { (cd "$1" && find . -path ./.kpack -prune -o -type f -printf '%P\n' | sort); }

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

@test "packed: files leave, directories stay, and the last line brings them back" {
	small in
	rm -r in/lib/rocblas/library/gfx942/empty
	kpack pack in "o u't" >said 2>err
	[ "$(files "o u't")" = $'lib/a.so\nshare/doc/text' ]
	[ "$(stat -c '%a %Y' in/lib/rocblas/library)" = "$(stat -c '%a %Y' "o u't/lib/rocblas/library")" ]
	[ "$(stat -c %Y in/share/miopen/db)" = "$(stat -c %Y "o u't/share/miopen/db")" ]
	[ -d "o u't/lib/rocblas/library/gfx942" ]
	[ "$(ls "o u't/.kpack" | tr '\n' ' ')" = "in_generic.kpack in_gfx1030.kpack in_gfx1100.kpack in_gfx90a:xnack+.kpack in_gfx942.kpack " ]
	[ "$(tail -n 1 said | grep -o 'kpackfs -o' | wc -l)" = 2 ]
	tail -n 1 said | grep -qF -- "-o subdir=lib/rocblas/library "
	tail -n 1 said | grep -qF "$T"
	bring_back said
	same_tree in "o u't"
	# what is mounted cannot be written
	fails "o u't/lib/rocblas/library: is read-only (a mount?): unmount it first" in "o u't"
}

# bats test_tags=single
@test "every kind of tree comes back by the command" {
	for kind in rocblas-mixed hipblaslt-arch aotriton-flatzip rocfft miopen provider paper-rocblas all; do
		echo "$kind"
		tree "$kind"
		kpack pack "$F/$kind" "out-$kind" >said
		bring_back said
		diff -r --no-dereference -x .kpack "$F/$kind" "out-$kind"
	done
}

# bats test_tags=single
@test "nothing packed: no command; -q: none either; JSON has it as a member" {
	small in
	kpack pack --databases=plain in plain >said 2>err
	! grep -q kpackfs said || false
	same_tree in plain
	[ ! -e plain/.kpack/in_generic.kpack ]
	kpack pack --libraries none in none >said 2>err
	! grep -q kpackfs said || false
	same_tree in none
	kpack pack --databases both in both >said 2>err
	! grep -q kpackfs said || false
	same_tree in both
	[ -e both/.kpack/in_generic.kpack ]
	kpack pack -q in quiet >said
	[ ! -s said ]
	kpack pack in loud >said
	kpack pack --json in quiet >report.json 2>/dev/null
	py "$(tail -n 1 said)" <<-'END'
	import json, sys
	r = json.load(open("report.json"))
	assert r["mount"] == sys.argv[1].replace("/loud", "/quiet"), r["mount"]
	f = {f["path"]: f for f in r["files"]}
	lib = "lib/rocblas/library/"
	parent = f[lib + "gfx942/TensileLibrary_lazy_gfx942.dat"]
	assert parent == {"path": parent["path"], "key": parent["path"], "status": "packed",
	    "library": "rocblas", "role": "parent", "arches": ["gfx942"]}, parent
	neutral = [x for x in f.values() if x["path"].endswith("fallback.dat")]
	assert [x["arches"] for x in neutral] == [["generic"]], neutral
	assert f["share/miopen/db/gfx942130.db.txt"]["library"] == "miopen", f
	assert f["lib/a.so"]["status"] == "converted" and "library" not in f["lib/a.so"]
	assert r["summary"]["packed"] == 4, r["summary"]
	END
}

@test "an output of another run: its plain files go, its packed files come back too" {
	small in
	kpack pack -q --databases=plain in out
	kpack pack in out >said
	[ "$(files out)" = $'lib/a.so\nshare/doc/text' ]
	mkdir -p more/share/miopen/db
	echo other >more/share/miopen/db/gfx90a68.db.txt
	kpack pack more out >said
	[ ! -e out/share/miopen/db/gfx90a68.db.txt ]
	bring_back said
	cp -a in want
	cp more/share/miopen/db/* want/share/miopen/db
	same_tree want out
}

# bats test_tags=single
@test "packed beside others: an overlay; empty directories are seen through it" {
	small in
	echo more >in/lib/rocblas/library/gfx942/more.dat
	kpack pack in out >said
	tail -n 1 said | grep -qF 'mount -t overlay'
	! tail -n 1 said | grep -qF -- '-o subdir=lib/rocblas' || false
	bring_back said
	same_tree in out
	[ -d out/lib/rocblas/library/gfx942/empty ]
	# at the top
	mkdir -p top/share
	printf '!<arch>\n' >top/libdevice_conv_operations_gfx942.a
	echo text >top/share/text
	kpack pack --libraries composablekernel top out2 >said
	[ "$(files out2)" = share/text ]
	bring_back said
	diff -r -x .kpack top out2
}

# bats test_tags=single
@test "with --key-prefix" {
	small in
	kpack pack --key-prefix opt/rocm in out >said
	tail -n 1 said | grep -qF subdir=opt/rocm/share/miopen/db
	bring_back said
	same_tree in out
}

# bats test_tags=single
@test "hard links: every path is packed; copies stay links" {
	small in
	ln in/$fallback in/lib/rocblas/library/gfx942/link_fallback.dat
	rmdir in/lib/rocblas/library/gfx942/empty
	kpack pack in out >said
	[ "$(files out)" = $'lib/a.so\nshare/doc/text' ]
	bring_back said
	same_tree in out
	kpack pack -q --databases both in both
	same_tree in both
	[ both/$fallback -ef both/lib/rocblas/library/gfx942/link_fallback.dat ]
}

@test "--archives-only leaves the tree alone, and prints no command" {
	small in
	cp -a in before
	kpack pack --archives-only in out >said
	[ "$(ls -A out)" = .kpack ]
	! grep -q kpackfs said || false
	diff -r --no-dereference before in
	kpack ls out/.kpack | grep -q "^$fallback.generic"
}

@test "in place: packed files are removed; again, with more, too" {
	small in
	rmdir in/lib/rocblas/library/gfx942/empty
	cp -a in before
	kpack pack --in-place in >said
	[ "$(files in)" = $'lib/a.so\nshare/doc/text' ]
	kpack pack --in-place in >again
	[ "$(tail -n 1 again)" = "$(tail -n 1 said)" ]
	echo new | tee before/share/miopen/db/gfx90a68.db.txt >in/share/miopen/db/gfx90a68.db.txt
	kpack pack --in-place in >again
	[ "$(files in)" = $'lib/a.so\nshare/doc/text' ]
	[ "$(tail -n 1 again)" = "$(tail -n 1 said)" ]
	bring_back said
	same_tree before in
	# what is mounted there is not to be packed again
	fails "share/miopen/db/gfx90a68.db.txt: cannot be removed from its directory, which is read-only (a mount?): Read-only" --in-place in
	same_tree before in
}

# bats test_tags=single
@test "in place: a file that cannot be removed is reported before anything is written" {
	as_root
	small in
	chmod 0755 in/lib/rocblas/library
	chown -R 65534:65534 in
	chown 0:0 in/share/miopen/db
	cp -a in before
	status=0
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q 'in/share/miopen/db/gfx942130.db.txt: cannot be removed from its directory: Permission denied' err
	chmod 1777 in/share/miopen/db
	chown 0:0 in/share/miopen/db/*
	status=0
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q 'gfx942130.db.txt: belongs to user 0: only that user can remove it' err
	[ ! -e in/.kpack ]
	diff -r before in
}

# Every file of BEFORE is in TREE, or in its archives, with its bytes.
nothing_lost() { # BEFORE TREE
	py "$@" <<-'END'
	import glob, os, sys, readkpack
	before, tree = sys.argv[1:]
	packed = {}
	for a in sorted(glob.glob(tree + "/.kpack/*.kpack")):
	    a = readkpack.Archive(a)
	    for key, arch, e in a.entries():
	        if "path" in e.get("metadata", {}):
	            packed[e["metadata"]["path"]] = a.get(e)
	for where, dirs, names in os.walk(before):
	    for name in names:
	        path = os.path.relpath(os.path.join(where, name), before)
	        want = open(os.path.join(where, name), "rb").read()
	        here = os.path.join(tree, path)
	        if path == "lib/a.so":
	            continue # tests of converting look after it
	        got = open(here, "rb").read() if os.path.exists(here) else packed[path]
	        assert got == want, path
	END
}

# bats test_tags=single
@test "in place: killed at every step, nothing is lost, and the next run finishes" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	small before
	for call in unlinkat renameat linkat fsync; do
		for n in $(moments $(seq 30)); do
			rm -rf in
			cp -a before in
			status=0
			ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=$call \
				-e inject=$call:signal=KILL:when=$n \
				"$KPACK_BIN/kpack" pack -q --jobs 1 --group g --in-place in || status=$?
			[ $status -ne 0 ] || break
			[ $status -eq 137 ]
			nothing_lost before in
			kpack pack -q --group g --in-place in
			nothing_lost before in
			treecheck code before in
			[ "$(files in)" = $'lib/a.so\nshare/doc/text' ]
			kpack verify -q in/.kpack
		done
		[ $n -gt 1 ]
	done
}

@test "in place: archives and their directory are on the disk before a file is removed" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	small in
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -y -o trace \
		-e trace=fsync,unlinkat "$KPACK_BIN/kpack" pack -q --in-place in
	grep -nE 'unlinkat\([0-9]+<[^>]*/in/[^>]*>, "[^.]' trace | head -n 1 | cut -d : -f 1 >first
	head -n "$(cat first)" trace | grep -qE 'fsync\([0-9]+<[^>]*/in/.kpack>\)'
	# and so is the directory that it was in
	sed -n '/unlinkat([0-9]*<[^>]*\/in\/share\/miopen\/db>/,$p' trace |
		grep -qE 'fsync\([0-9]+<[^>]*/in/share/miopen/db>'
}

# bats test_tags=single
@test "--arch: files of others are in neither; those for every GPU are packed" {
	small in
	kpack pack --arch gfx942 in out >said 2>err
	grep -qF 'in: note: 1 files of kernel databases are for other targets and not packed' err
	[ "$(files out)" = $'lib/a.so\nshare/doc/text' ]
	rm in/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
	bring_back said
	same_tree in out
	kpack ls out/.kpack | cut -f 2 | sort -u >arches
	[ "$(cat arches)" = $'generic\ngfx942' ]
}

# --- two builds ---------------------------------------------------------------------------

two_builds() {
	small a one
	small b two
	rm -r a/lib/rocblas/library/gfx942 b/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
	rm {a,b}/lib/a.so
}

# bats test_tags=single
@test "a file for every GPU with other bytes is refused, and nothing changes" {
	two_builds
	kpack pack -q --group g a out
	cp -a out before
	for group in g other; do
		for how in packed both; do
			fails "b/$fallback: other bytes than in out/.kpack/g_generic.kpack (generic)" --databases=$how --group $group b out
			diff -r before out
		done
		fails "--prefer input or output" --archives-only --group $group b out
		diff -r before out
	done
	fails "b/$fallback: other bytes than in out/.kpack/g_generic.kpack (generic)" --databases=plain b out
	diff -r before out
	# the same again is no clash, nor is a new build for one GPU
	kpack pack -q --group g a out
	diff -r before out
	echo rebuilt >a/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
	kpack pack -q --group g a out
	kpack cat out/.kpack/g_gfx1100.kpack lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat gfx1100 | grep -q rebuilt
	# but for another group it is
	echo other >a/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
	fails "TensileLibrary_lazy_gfx1100.dat: other bytes than in out/.kpack/g_gfx1100.kpack (gfx1100)" --group h a out
}

# bats test_tags=single
@test "a plain file with other bytes is refused" {
	two_builds
	kpack pack -q --databases=plain a out
	cp -a out before
	for how in packed both plain; do
		fails "b/$fallback: other bytes than in out/$fallback (generic)" --databases=$how b out
		diff -r before out
	done
	echo rebuilt >a/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat
	echo new >a/share/doc/text
	kpack pack -q --databases=plain a out
	diff -r a out
}

# bats test_tags=single
@test "a symbolic link on either side to a file with other bytes is refused" {
	small a one
	small b two
	mkdir store
	mv "b/$fallback" store/other
	ln -s "$PWD/store/other" "b/$fallback"
	kpack pack -q --group g a out
	fails "b/$fallback: other bytes than in out/.kpack/g_generic.kpack (generic): one path cannot have both" --group g b out
	fails "which --prefer input cannot replace: a symbolic link replaces nothing in archives" --prefer input --group g b out
	kpack pack -q --group g --prefer output b out
	[ ! -e "out/$fallback" ]
	# the same bytes are none
	cp "a/$fallback" store/other
	kpack pack -q --group g b out
	[ -L "out/$fallback" ]

	kpack pack -q --group g b linked
	small c three
	fails "c/$fallback: other bytes than in linked/$fallback (generic): one path cannot have both" --group g c linked
}

# bats test_tags=single
@test "--prefer input replaces, or names what it cannot replace" {
	two_builds
	kpack pack -q --group g a out
	kpack pack --group g --prefer input b out 2>err
	grep -qF "b/$fallback: note: replaces other bytes in out/.kpack/g_generic.kpack (generic)" err
	kpack cat out/.kpack/g_generic.kpack $fallback generic | cmp - b/$fallback
	kpack verify -q out/.kpack
	cp -a out before
	fails "a/$fallback: other bytes than in out/.kpack/g_generic.kpack (generic), which --prefer input cannot replace: it is another group's" --prefer input --group h a out
	fails "archives are not changed when databases stay plain" --databases=plain --prefer input --group g a out
	diff -r before out
	kpack pack -q --force --group g a out
	kpack cat out/.kpack/g_generic.kpack $fallback generic | cmp - a/$fallback
	kpack pack -q --databases=plain b plain
	kpack pack -q --databases=plain --prefer input a plain
	cmp a/$fallback plain/$fallback
}

# bats test_tags=single
@test "--prefer output keeps the existing bytes" {
	two_builds
	kpack pack -q --group g a out
	kpack pack --prefer output b out >said 2>err
	grep -qF "b/$fallback: note: left out, because out/.kpack/g_generic.kpack (generic) has other bytes" err
	[ ! -e out/.kpack/b_generic.kpack ]
	[ "$(files out)" = share/doc/text ]
	bring_back said
	cp -a a want
	mkdir -p want/lib/rocblas/library/gfx942
	cp -a b/lib/rocblas/library/gfx942 want/lib/rocblas/library
	same_tree want out
	# a plain file stays one
	kpack pack -q --databases=plain a plain
	kpack pack --prefer output b plain >said 2>err
	cmp a/$fallback plain/$fallback
	# in place what is not in the archive stays
	mkdir -p in/lib/rocblas/library
	cp a/$fallback in/lib/rocblas/library
	kpack pack -q --in-place in
	cp b/$fallback in/lib/rocblas/library
	kpack pack --in-place --prefer output in >/dev/null 2>err
	cmp b/$fallback in/$fallback
	# by default, as after an upgrade, the tree's file replaces the archive's
	kpack pack --in-place in >/dev/null 2>err
	grep -qF "in/$fallback: note: replaces other bytes in in/.kpack/in_generic.kpack (generic)" err
	[ ! -e "in/$fallback" ]
	kpack cat in/.kpack/in_generic.kpack "$fallback" generic | cmp - "b/$fallback"
}

# bats test_tags=single
@test "a tree with archives of its own does not bring a clash" {
	two_builds
	kpack pack -q a with
	kpack pack -q b out
	fails "$fallback: other bytes in " --group g with out
	grep -qF with/.kpack/a_generic.kpack refused.err
	grep -qF out/.kpack/b_generic.kpack refused.err
	[ ! -e out/.kpack/a_generic.kpack ]
}

# bats test_tags=single
@test "an archive that cannot be compared is reported" {
	small a
	kpack pack -q --group g a out
	printf 'no archive' >out/.kpack/other_gfx942.kpack
	for option in "" --archives-only; do
		# shellcheck disable=SC2086
		run kpack pack -q --group g $option a out
		[ "$status" -eq 0 ]
		[[ "$output" == "kpack: out/.kpack/other_gfx942.kpack: warning: not compared with what is packed: header: "* ]]
	done
}

# bats test_tags=single
@test "extract of archives that do not agree is a fault that names both" {
	two_builds
	kpack pack -q --archives-only a a.out
	kpack pack -q --archives-only b b.out
	status=0
	kpack extract -C ex a.out/.kpack b.out/.kpack 2>err || status=$?
	[ $status = 1 ]
	grep fallback.dat err | grep -F a.out/.kpack/a_generic.kpack | grep -qF b.out/.kpack/b_generic.kpack
}

# --- what is not recognised ----------------------------------------------------------------

# bats test_tags=single
@test "files that look like those of one GPU are listed" {
	small in
	mkdir -p in/lib/foo/gfx942 in/share/bar
	echo x >in/lib/foo/gfx942/kernel.bin
	echo x >in/share/bar/table-gfx90a-xnack+.txt
	ln -s table-gfx90a-xnack+.txt in/share/bar/gfx90a.txt
	kpack pack --json in out >report.json 2>err
	grep -qxF 'kpack: in/lib/foo/gfx942/kernel.bin: note: looks like a file for gfx942, no library is known for it; it stays as it is' err
	grep -qF 'in/share/bar/table-gfx90a-xnack+.txt: note: looks like a file for gfx90a:xnack+, no' err
	[ "$(grep -c 'looks like' err)" = 2 ]
	cmp in/lib/foo/gfx942/kernel.bin out/lib/foo/gfx942/kernel.bin
	py <<-'END'
	import json
	r = json.load(open("report.json"))
	assert r["unrecognised"] == ["lib/foo/gfx942/kernel.bin", "share/bar/table-gfx90a-xnack+.txt"], r
	END
	for i in $(seq 30); do echo >in/lib/foo/gfx942/$i; done
	kpack pack in out >/dev/null 2>err
	[ "$(grep -c 'looks like' err)" = 20 ]
	grep -qxF 'kpack: note: and 12 files more look like that; --json lists all' err
	for how in --databases=plain --libraries=none -q; do
		kpack pack $how in out2 >/dev/null 2>err
		! grep -q 'looks like' err || false
	done
}

# bats test_tags=single
@test "a name that contradicts the code in a file is a warning" {
	mkdir -p in/lib/rocblas/library
	tree rocblas-flat
	cp "$F/rocblas-flat/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco" in/lib/rocblas/library/Kernels.so-000-gfx942.hsaco
	kpack pack in out >/dev/null 2>err
	grep -q 'in/lib/rocblas/library/Kernels.so-000-gfx942.hsaco: warning: .*gfx1100' err
	[ -e out/.kpack/in_gfx1100.kpack ]
}
