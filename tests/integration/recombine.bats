#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack recombine: trees of several shards become one generic tree and one for each group.
# The stub of HIP's runtime checks the joined binaries.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing
load proof.bash

recombine() { kpack recombine --config config.json shards out "$@"; }

# config [VALIDATION]: two groups, the shard a is the primary one
config() {
	cat >config.json <<-END
	{"primary_shard": "a",
	 "architecture_groups": {
	  "gfx110X": {"display_name": "RDNA 3", "architectures": ["gfx1100", "gfx1101"]},
	  "gfx120X": {"display_name": "RDNA 4", "architectures": ["gfx1200"]}},
	 "validation": {${1-}}}
	END
}

# build SHARD FAMILY=ARCH,ARCH [MKFAT OPTION]...: a tree packed for a family, as split writes it
build() {
	local shard=$1 family=${2%%=*} arches=${2#*=}
	shift 2
	rm -rf in packed
	mkdir -p in/usr/lib in/usr/share
	mkfat --arches "$arches" "$@" in/usr/lib/libfat.so
	echo same >in/usr/share/readme
	ln -s libfat.so in/usr/lib/libfat.so.1
	kpack pack -q --group rocm --family "$family=$arches" in/usr packed/usr
	mkdir -p "shards/$shard/rocm_$family/usr"
	mv packed/usr/.kpack "shards/$shard/rocm_$family/usr/"
	mv packed "shards/$shard/rocm_generic"
	echo usr | tee "shards/$shard/rocm_generic/artifact_manifest.txt" \
		>"shards/$shard/rocm_$family/artifact_manifest.txt"
}

two_builds() {
	build a gfx110X=gfx1100,gfx1101 --size 5000
	build b gfx120X=gfx1200 --size 90000
	config
}

# STATUS TEXT OPTION...: nothing may be written
denied() {
	local want=$1 text=$2
	shift 2
	status=0
	recombine "$@" >denied.out 2>denied.err || status=$?
	[ "$status" -eq "$want" ] || { echo "exit $status:"; cat denied.err; return 1; }
	grep -qF -e "$text" denied.err || { echo "no '$text' in:"; cat denied.err; return 1; }
	! grep -v '^\(kpack\|usage\): ' denied.err || false
	[ ! -e out ] || [ -z "$(ls -A out)" ]
}

files() { (cd "$1" && find . ! -type d | LC_ALL=C sort); }

# install TREE...: one over the other
install() {
	rm -rf root
	mkdir root
	for tree; do cp -a "out/$tree/." root/; done
}

@test "two family builds of one library are joined" {
	two_builds
	recombine >report
	[ "$(ls -A out)" = "$(printf 'rocm_generic\nrocm_gfx110X\nrocm_gfx120X')" ]
	grep -q '^rocm_generic: 3 files, .*, 1 binaries with the markers' report
	diff - <(files out/rocm_generic) <<-END
	./artifact_manifest.txt
	./usr/lib/libfat.so
	./usr/lib/libfat.so.1
	./usr/share/readme
	END
	diff - <(files out/rocm_gfx110X) <<-END
	./artifact_manifest.txt
	./usr/.kpack/rocm-gfx110X.kpack
	END
	[ -L out/rocm_generic/usr/lib/libfat.so.1 ]
	[ "$(cat out/rocm_gfx120X/artifact_manifest.txt)" = usr ]
	cmp {shards/b/rocm_gfx120X,out/rocm_gfx120X}/usr/.kpack/rocm-gfx120X.kpack
	kpack mark show out/rocm_generic/usr/lib/libfat.so >marker
	grep -q rocm-gfx110X.kpack marker
	grep -q rocm-gfx120X.kpack marker
	install rocm_generic rocm_gfx110X rocm_gfx120X
	# the binary is of another shard than this code, and its loader finds it all the same
	kpack mark check --arch gfx1100,gfx1101,gfx1200 root >checked
	grep -q ' 0 faults$' checked
	cp root/usr/.kpack/rocm-gfx120X.kpack kept
	head -c 200 /dev/zero | dd of=root/usr/.kpack/rocm-gfx120X.kpack bs=1 seek=150 conv=notrunc status=none
	! kpack mark check root 2>err || false
	grep -q 'libfat.so: wrapper 0: gfx1200: ' err
	mv kept root/usr/.kpack/rocm-gfx120X.kpack
	kpack mark restore -o fat root/usr/lib/libfat.so 2>err
	grep -q "libfat.so: warning: gfx1200: .*rocm-gfx120X.kpack has code" err
	[ "$(wc -l <err)" = 1 ]
	kpack mark restore -o fat shards/a/rocm_generic/usr/lib/libfat.so \
		--archive shards/a/rocm_gfx110X/usr/.kpack 2>err
	[ ! -s err ]
}

@test "trees packed for a family, then split, are joined, each prefix by itself" {
	local shard
	# packs SHARD FAMILY ARCHES SIZE
	packs() {
		rm -rf in packed
		mkdir -p in/lib packed/none
		mkfat --arches "$3" --size "$4" in/lib/libfat.so
		kpack pack -q --group one --gfx-arch-family "$2" --gfx-arches "$3" in packed/one
		mkfat --arches "$3" --size "$4" --seed 5 in/lib/libfat.so
		kpack pack -q --group two --gfx-arch-family "$2" --gfx-arches "$3" in packed/two
		printf 'one\ntwo\nnone\n' >packed/artifact_manifest.txt
		kpack split -q --prefix-manifest --name rocm packed "shards/$1"
	}
	packs a gfx110X gfx1100,gfx1101 5000
	packs b gfx120X gfx1200 90000
	config '"error_on_missing_architecture": true, "verify_generic_artifacts_match": true'
	recombine -q
	for shard in one two; do
		kpack mark show out/rocm_generic/$shard/lib/libfat.so >marker
		grep -q "$shard-gfx110X.kpack" marker
		grep -q "$shard-gfx120X.kpack" marker
		[ -e out/rocm_gfx110X/$shard/.kpack/$shard-gfx110X.kpack ]
		[ -e out/rocm_gfx120X/$shard/.kpack/$shard-gfx120X.kpack ]
	done
	diff - out/rocm_generic/artifact_manifest.txt <<-'END'
	none
	one
	two
	END
	[ -d out/rocm_generic/none ]
}

# hosts SHARD FAMILY LD ARCH...: a library that clang makes of a.hip, b.hip and c.hip
hosts() {
	local shard=$1 family=$2 ld=$3
	shift 3
	local offload=("${@/#/--offload-arch=}") name
	for name in a b c; do hip -fPIC -c $name.hip -o $name.o; done
	rm -rf in packed
	mkdir -p in/usr/lib
	link -shared -fuse-ld=$ld a.o b.o c.o -o in/usr/lib/libreal.so
	local list
	printf -v list ',%s' "$@"
	kpack pack -q --group rocm --family "$family=${list:1}" in/usr packed/usr
	mkdir -p "shards/$shard/rocm_$family/usr"
	mv packed/usr/.kpack "shards/$shard/rocm_$family/usr/"
	mv packed "shards/$shard/rocm_generic"
}

# served ARCH: the code objects that the runtime gets for it; fails when none
served() {
	rm -f log
	# what clang's constructors register is unregistered when the process ends, and no leak
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 STUB_LOG=$T/log STUB_ARCHES=$1 LD_LIBRARY_PATH=$stub:$KPACK_BIN \
		"$stub/load" root/usr/lib/libreal.so >/dev/null
	! grep -q fault log || return 1
	[ "$(grep -c "^libreal.so [012] $1 [0-9]* [0-9a-f]*$" log)" = 3 ]
}

absent() {
	! served "$1" || return 1
	[ "$(grep -c " $1 none" log)" = 3 ]
}

# bats test_tags=all
@test "the joined library finds the code of each family that is installed" {
	need_clang
	sources
	config
	for ld in $(linkers); do
		rm -rf shards out
		hosts a gfx110X $ld gfx1100 gfx1101
		hosts b gfx120X $ld gfx1200 gfx906 gfx908 gfx90a gfx1030
		recombine -q
		install rocm_generic rocm_gfx110X rocm_gfx120X
		served gfx1100
		served gfx1101
		served gfx1200
		absent gfx942
		install rocm_generic rocm_gfx120X
		served gfx1200
		absent gfx1100
	done
}

# bats test_tags=all
@test "a host that is really another is found, where addresses moved too" {
	need_clang
	sources
	config
	hosts a gfx110X lld gfx1100 gfx1101
	for change in 's/return 7/return 8/' 's/launch_c/lunch_c/' 's/per_thread = 3/per_thread = 4/' \
		's/int zeros/unsigned zeros/'; do
		rm -rf shards/b
		sed -i.orig "$change" a.hip b.hip c.hip
		hosts b gfx120X lld gfx1200 gfx906 gfx908 gfx90a gfx1030
		for name in a b c; do mv $name.hip.orig $name.hip; done
		[ "$change" != 's/int zeros/unsigned zeros/' ] || break # the same code
		denied 1 'a/rocm_generic/usr/lib/libreal.so and b/rocm_generic/usr/lib/libreal.so: '
		recombine -q --prefer a
		rm -r out
	done
	recombine -q
}

@test "the primary shard comes first, whatever its name" {
	build b gfx110X=gfx1100,gfx1101
	build a gfx120X=gfx1200
	config
	sed -i 's/"primary_shard": "a"/"primary_shard": "b"/' config.json
	recombine -q
	kpack mark show out/rocm_generic/usr/lib/libfat.so | grep -o 'rocm-gfx1[12]0X' >order
	[ "$(head -1 order)" = rocm-gfx110X ]
}

@test "two runs give the same trees" {
	two_builds
	recombine -q
	kpack recombine -q --config config.json --input-shards-dir shards --output-dir again
	diff -r out again
	[ "$(cd out && find . -printf '%P %m %y\n' | sort)" = \
		"$(cd again && find . -printf '%P %m %y\n' | sort)" ]
}

@test "database files that every GPU needs must be equal" {
	two_builds
	local lib=usr/lib/rocblas/library
	for shard in a b; do
		mkdir -p shards/$shard/rocm_generic/$lib
		echo $shard >shards/$shard/rocm_generic/$lib/TensileLibrary_Type_DD_fallback.dat
	done
	denied 1 'TensileLibrary_Type_DD_fallback.dat: the contents differ'
	grep -q 'a/rocm_generic.* and b/rocm_generic' denied.err
	recombine -q --prefer b
	[ "$(cat out/rocm_generic/$lib/TensileLibrary_Type_DD_fallback.dat)" = b ]
}

@test "a tree for one GPU goes to its group, whatever its files are called" {
	two_builds
	local lib=usr/lib/hipblaslt/library
	mkdir -p shards/a/rocm_gfx1101/$lib/gfx1101 shards/a/rocm_gfx1100/x
	echo 1 >shards/a/rocm_gfx1101/$lib/gfx1101/plain
	echo usr >shards/a/rocm_gfx1101/artifact_manifest.txt
	echo 2 >shards/a/rocm_gfx1100/x/file
	recombine -q
	[ "$(cat out/rocm_gfx110X/$lib/gfx1101/plain)" = 1 ]
	[ "$(cat out/rocm_gfx110X/x/file)" = 2 ]
}

@test "a group that is called like a GPU has the GPUs that it lists" {
	local arch
	for arch in gfx1250 gfx1250-strict; do
		mkdir -p "shards/a/blas_$arch/.kpack" "shards/a/blas_$arch/lib/rocblas/library/$arch"
		PYTHONPATH=$tools $python -c "import mkarchive
a = mkarchive.Archive(group='blas', family='$arch')
a.add('lib/x.so#0', '$arch', b'code of $arch')
a.write('shards/a/blas_$arch/.kpack/blas_$arch.kpack')"
		echo "$arch" >"shards/a/blas_$arch/lib/rocblas/library/$arch/x.co"
	done
	mkdir shards/a/blas_generic
	cat >config.json <<-END
	{"primary_shard": "a", "architecture_groups": {
	  "gfx1250": {"display_name": "strict", "architectures": ["gfx1250-strict"]}}}
	END
	recombine 2>messages
	files out/blas_gfx1250 | diff - <(printf '%s\n' ./.kpack/blas_gfx1250-strict.kpack \
		./lib/rocblas/library/gfx1250-strict/x.co)
	grep -q "blas_gfx1250: 2 files are for no group, the first .*; left out" messages
}

@test "a tree for a family is taken apart by the rules of the libraries" {
	two_builds
	local images=usr/lib/aotriton.images
	mkdir -p shards/b/rocm_gfx12_0/$images/amd-gfx120x/flash shards/a/rocm_gfx11/$images/amd-gfx11xx/flash
	echo 12 >shards/b/rocm_gfx12_0/$images/amd-gfx120x/flash/k.hsaco
	echo 11 >shards/a/rocm_gfx11/$images/amd-gfx11xx/flash/k.hsaco
	recombine -q
	[ "$(cat out/rocm_gfx120X/$images/amd-gfx120x/flash/k.hsaco)" = 12 ]
	[ "$(cat out/rocm_gfx110X/$images/amd-gfx11xx/flash/k.hsaco)" = 11 ]
}

@test "files that no group wants are reported, with their number" {
	two_builds
	mkdir -p shards/b/rocm_gfx906/usr
	touch shards/b/rocm_gfx906/usr/{one,two}
	recombine >report 2>err
	grep -q 'shards/b/rocm_gfx906: 2 files are for no group, the first usr/one; left out' err
	[ ! -e out/rocm_gfx906 ]
}

@test "a GPU in two shards" {
	two_builds
	mkdir -p shards/b/rocm_gfx110X
	cp -a shards/a/rocm_gfx110X/usr shards/b/rocm_gfx110X/
	recombine -q
	rm -r out
	mkfat --arches gfx1100,gfx1101 --seed other --bare other
	kpack pack -q --archives-only --group rocm --family gfx110X=gfx1100,gfx1101 other packed
	cp packed/.kpack/*.kpack shards/b/rocm_gfx110X/usr/.kpack/rocm-gfx110X.kpack ||
		cp packed/*.kpack shards/b/rocm_gfx110X/usr/.kpack/rocm-gfx110X.kpack
	denied 1 'rocm-gfx110X.kpack: the contents differ'
	config '"error_on_duplicate_device_code": false'
	recombine --verbose 2>err
	grep -q 'is taken, not b/rocm_gfx110X.*the contents differ' err
	cmp {shards/a/rocm_gfx110X,out/rocm_gfx110X}/usr/.kpack/rocm-gfx110X.kpack
	rm -r out
	config
	recombine -q --prefer b
	cmp {shards/b/rocm_gfx110X,out/rocm_gfx110X}/usr/.kpack/rocm-gfx110X.kpack
}

@test "different code under one name in two archives" {
	build a gfx110X=gfx1100,gfx1101
	build b gfx110X=gfx1100,gfx1101 --seed other
	mv shards/b/rocm_gfx110X/usr/.kpack/{rocm-gfx110X,more}.kpack
	config
	denied 1 'different code for lib/libfat.so#0 gfx1100'
	config '"error_on_duplicate_device_code": false'
	recombine -q
}

@test "components: only those asked for; one without code for GPUs" {
	two_builds
	mkdir -p shards/a/docs_generic/usr/share
	echo docs >shards/a/docs_generic/usr/share/doc
	recombine -q --component docs
	[ "$(ls -A out)" = docs_generic ]
	rm -r out
	recombine -q
	[ "$(ls -A out | wc -l)" = 4 ]
	rm -r out
	denied 1 "no shard has a component 'nothing'" --component nothing
	mv shards/a/docs_generic shards/b/
	denied 1 'the primary shard a has no docs_generic'
}

@test "usage" {
	denied 2 '--config is missing' --help=1 || true
	status=0
	kpack recombine shards out 2>err || status=$?
	[ $status = 2 ]
	grep -q -e '--config is missing' err
	status=0
	kpack recombine --config x shards 2>err || status=$?
	[ $status = 2 ]
	status=0
	kpack recombine --config x a b c 2>err || status=$?
	[ $status = 2 ]
}

@test "existing trees are kept, or replaced" {
	two_builds
	recombine -q
	touch out/rocm_generic/mine
	status=0
	recombine 2>err || status=$?
	[ $status = 1 ]
	grep -q 'out/rocm_generic: already exists: --force replaces it' err
	[ -e out/rocm_generic/mine ]
	recombine -q --force
	[ ! -e out/rocm_generic/mine ]
	[ "$(ls -A out | wc -l)" = 3 ]
	mkdir out/rocm_gfx90a out/rocm_other_gfx90a
	touch out/rocm_gfx1030
	recombine --force >said 2>err
	[ "$(cat err)" = "kpack: out/rocm_gfx90a: note: is not from this run; it stays" ]
}

@test "hostile trees" {
	two_builds
	mkdir outside
	echo secret >outside/file
	ln -s "$T/outside" shards/b/rocm_generic/usr/away
	mkfifo shards/b/rocm_generic/usr/pipe
	mkdir -p $'shards/b/rocm_generic/usr/new\nline'
	touch $'shards/b/rocm_generic/usr/new\nline/a\nb'
	recombine -q
	[ -L out/rocm_generic/usr/away ]
	[ -p out/rocm_generic/usr/pipe ]
	[ -e $'out/rocm_generic/usr/new\nline/a\nb' ]
	rm -r out
	# a directory in one, a link in the other: nothing is written through it
	mkdir -p shards/a/rocm_generic/usr/away
	echo 1 >shards/a/rocm_generic/usr/away/file
	denied 1 'is not a directory; a/rocm_generic/usr/away/file needs one of that name'
	[ "$(cat outside/file)" = secret ]
	rm -r shards/a/rocm_generic/usr/away
	mv shards/b/rocm_gfx120X outside/
	ln -s "$T/outside/rocm_gfx120X" shards/b/rocm_gfx120X
	denied 1 'symbolic link to a directory; not followed'
	rm shards/b/rocm_gfx120X
	printf 'usr\n../../etc\n' >shards/b/rocm_generic/artifact_manifest.txt
	denied 1 "artifact_manifest.txt: line 2: '../../etc'"
}

@test "a device that the user may not make is left out and reported" {
	as_root
	two_builds
	mknod shards/a/rocm_generic/usr/null c 1 3
	recombine --json >report
	[ -c out/rocm_generic/usr/null ]
	n=$(jq '.trees[] | select(.group == "generic").files' report)
	rm -rf out
	mkdir out
	chown 65534:65534 out
	as_nobody "$KPACK_BIN/kpack" recombine --config config.json --json shards out >report 2>err
	grep -q 'shards/a/rocm_generic/usr/null: note: left out: .*not permitted' err
	[ -e out/rocm_generic/usr/share/readme ]
	[ ! -e out/rocm_generic/usr/null ]
	[ "$(jq '.trees[] | select(.group == "generic").files' report)" = $((n - 1)) ]
}

@test "a full disk leaves nothing" {
	two_builds
	head -c 3000000 /dev/urandom >shards/a/rocm_gfx110X/usr/big
	! (ulimit -f 1000; recombine -q 2>err) || false
	grep -q 'rocm_gfx110X/usr/big: .*File too large' err
	[ -z "$(ls -A out)" ]
}

@test "a killed run leaves no tree, and the next one removes what it left" {
	two_builds
	mkdir -p out/.kpack-staging-abcdef/rocm_generic
	chmod 0500 out/.kpack-staging-abcdef/rocm_generic
	recombine -q
	[ "$(ls -A out)" = "$(printf 'rocm_generic\nrocm_gfx110X\nrocm_gfx120X')" ]
}

@test "killed while trees get their names: the next run needs no --force" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	two_builds
	for n in 1 2 3; do
		rm -rf out
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null \
			-e trace=renameat2 -e inject=renameat2:signal=KILL:when=$n \
			"$KPACK_BIN/kpack" recombine --config config.json shards out ||
			status=$?
		[ $status = 137 ]
		[ "$(ls out | wc -l)" = $((n - 1)) ]
		[ ! -e out/rocm_generic ]
		recombine -q
		[ "$(ls -A out | wc -l)" = 3 ]
	done
}

@test "an archive that a library opens by path is a file of its GPU" {
	two_builds
	local own=usr/lib/engines/arch_content/gfx1100/engine_gfx1100.kpack name
	mkdir -p "shards/a/rocm_gfx110X/${own%/*}"
	# with the same name, group and keys as the archive of the tree
	cp shards/a/rocm_gfx110X/usr/.kpack/*.kpack "shards/a/rocm_gfx110X/$own"
	recombine >report
	cmp "out/rocm_gfx110X/$own" "shards/a/rocm_gfx110X/$own"
	kpack mark show out/rocm_generic/usr/lib/libfat.so >marker
	grep -q rocm-gfx110X.kpack marker
	! grep engine marker || false
	# one that only its directory names is no archive of the tree either
	for name in own_gfx1200.kpack notes.kpack; do
		echo no archive >"shards/a/rocm_gfx110X/${own%/*}/$name"
	done
	rm -r out
	recombine >report
	[ -e "out/rocm_gfx110X/${own%/*}/notes.kpack" ]
}

# The loader hands out for LIBRARY what the library FAT had.
hands_out() { # LIBRARY ARCH FAT
	local sanitizer # which Python is without
	sanitizer=$(ldd "$KPACK_BIN/librocm_kpack.so.0" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	LD_PRELOAD=$sanitizer ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 py "$@" <<-'PY'
	import ctypes, os, sys
	import fatparse
	path, arch, fat = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
	lib = ctypes.CDLL(os.path.join(os.environ["KPACK_BIN"], "librocm_kpack.so.0"))
	cache = ctypes.c_void_p()
	assert lib.kpack_cache_create(ctypes.byref(cache)) == 0
	want = [bytes(c) for o in fatparse.containers(fatparse.Elf(fat).fatbin()).values() for _, a, c in o if a == arch]
	at = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(path), "wrappers"))
	assert want
	for i, code in enumerate(want):
	    words = (ctypes.c_uint64 * 3).from_address(at + 24 * i)
	    out, size = ctypes.c_void_p(), ctypes.c_size_t()
	    status = lib.kpack_load_code_object(
	        cache, ctypes.c_void_p(words[1]), path.encode(), ctypes.c_uint32(words[2]),
	        (ctypes.c_char_p * 1)(arch.encode()), ctypes.c_size_t(1), ctypes.byref(out), ctypes.byref(size))
	    assert words[2] == i and status == 0, (path, arch, i, status)
	    assert ctypes.string_at(out.value, size.value) == code, (path, arch, i)
	PY
}

@test "shards of an artifact, from AMD's splitter and from ours" {
	local first second amd=$tools/amdsplit.py
	mkdir -p art/math/stage/lib/deep art/comm/stage/lib
	mkfat --arches gfx1100,gfx1101,gfx1200 art/math/stage/lib/deep/liba.so.1
	ln -s liba.so.1 art/math/stage/lib/deep/liba.so
	mkfat --seed 2 --arches gfx1100,gfx1200 --ccob odd art/comm/stage/lib/libb.so
	# a section without a whole page keeps its code in AMD's
	mkfat --seed 3 --bundles 1 --size 400 --align 64 --arches gfx1100 art/comm/stage/lib/libsmall.so
	printf 'math/stage\ncomm/stage\nnone/stage\n' >art/artifact_manifest.txt
	config '"error_on_missing_architecture": true, "verify_generic_artifacts_match": true'
	# AMD's alone: nothing is wrong with it, at any stage of its installation
	$python "$amd" art alone blas
	kpack mark check alone >checked
	kpack verify -q --tree alone
	mkdir over
	cp -a alone/blas_gfx*/. over/
	cp -a alone/blas_generic/. over/ # with the manifest of all prefixes
	kpack verify -q over/*/*/.kpack
	kpack mark check over >checked
	grep -q '^3 converted, 0 not converted, 16 objects in 3 archives, 0 faults$' checked
	kpack verify -q --tree over
	# AMD's moves the program headers to where the ELF header in memory does not lead
	run -1 kpack mark strip-safe --check over
	for f in over/comm/stage/lib/libb.so over/math/stage/lib/deep/liba.so.1; do
		[[ $output == *"$f: its program headers are not where"* ]]
		kpack mark strip-safe "$f"
	done
	kpack mark strip-safe --check over
	for first in a b; do
		second=$([ $first = a ] && echo b || echo a)
		rm -rf shards out flat
		kpack split -q --name blas --gpu-targets gfx1100,gfx1101 art shards/$first
		$python "$amd" $([ $first = b ] || echo --none) --gpu-targets gfx1200 --gpu-targets gfx1101 art shards/$second blas
		recombine --verbose >said 2>err
		! grep -q 'are taken, not\|differ' err || false
		[ "$(cat out/blas_gfx120X/artifact_manifest.txt)" = comm/stage ]
		[ -e out/blas_gfx120X/comm/stage/.kpack/blas_gfx1200.kpack ]
		[ -e out/blas_gfx110X/math/stage/.kpack/blas_gfx1101.kpack ]
		mkdir flat
		cp -a out/*/{math,comm}/stage/. flat/
		kpack mark check flat >checked
		grep -q '^3 converted, 0 not converted, 16 objects in 3 archives, 0 faults$' checked
		kpack mark check --arch gfx1100,gfx1101,gfx1200 flat/lib/deep/liba.so.1
		hands_out flat/lib/deep/liba.so.1 gfx1200 art/math/stage/lib/deep/liba.so.1
		hands_out flat/lib/deep/liba.so.1 gfx1101 art/math/stage/lib/deep/liba.so.1
		hands_out flat/lib/libb.so gfx1100 art/comm/stage/lib/libb.so
		hands_out flat/lib/libsmall.so gfx1100 art/comm/stage/lib/libsmall.so
	done
	# one of them with other code for a GPU that both have
	py shards/*/blas_gfx1101/math/stage/.kpack/blas_gfx1101.kpack <<-'PY'
	import sys, mkarchive
	a = mkarchive.Archive(group="blas", family="gfx1101")
	for i in range(3):
	    a.add("math/stage/lib/deep/liba.so.1#%d" % i, "gfx1101", b"other code", hash=False)
	a.write(sys.argv[1])
	PY
	rm -r out
	denied 1 'blas_gfx1101.kpack: the contents differ'
}
