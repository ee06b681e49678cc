#!/usr/bin/env bats
# Packed kernel databases: the mount shows the contents of a tree, and archives state what
# each file is.  mkdb.py makes the trees, dbcheck.py computes the expected entries.
#
# The tests tagged single differ in the files of a tree; the threads of packing, verifying and mounting
# are those of the tree with everything.

load databases.bash

same_both_ways() {
	dbcheck same db mnt
	diff -r --exclude=toc db mnt
	(cd db && find . -type f -printf '%P %s\n' | sort) >db.names
	(cd mnt && find . -path ./toc -prune -o -type f -printf '%P %s\n' | sort) >mnt.names
	cmp db.names mnt.names
	# no directory that the tree does not have, least of all one called after a GPU
	(cd db && find . -mindepth 1 -type d -printf '%P\n' | sort) >db.dirs
	(cd mnt && find . -mindepth 1 -path ./toc -prune -o -type d -printf '%P\n' | sort) >mnt.dirs
	cmp db.dirs mnt.dirs
}

# Everything of databases is in archives and the mount, everything else in the tree.
round_trip() { # KIND...
	local kind
	for kind; do
		echo "$kind:"
		packed "$kind"
		[ ! -s "$F/$kind.err" ]
		rm -rf db host
		mkdir db host
		dbcheck split "$F/$kind" db host
		(cd host && find . -type f -o -type l | sort) >host.names
		(cd "$F/$kind.out" && find . -path ./.kpack -prune -o \( -type f -o -type l \) -print |
			sort) >out.names
		diff host.names out.names
		kpack verify -q "$F/$kind.out/.kpack"
		dbcheck entries "$F/$kind" "$F/$kind.out/.kpack"
		in_mount "$F/$kind.out/.kpack" same_both_ways
	done
}

# bats test_tags=single
@test "rocBLAS in all its generations" {
	round_trip rocblas-flat rocblas-mixed rocblas-merged rocblas-arch rocblas-feature
}

# bats test_tags=single
@test "hipBLASLt and hipSPARSELt" {
	round_trip hipblaslt-flat hipblaslt-arch hipblaslt-shard-a hipsparselt
}

# bats test_tags=single
@test "AOTriton: packs of files, packs of zips" {
	round_trip aotriton aotriton-flatzip
}

# bats test_tags=single
@test "rocFFT: one database, and one for each GPU" {
	round_trip rocfft rocfft-arch
	cmp "$F/rocfft/lib/rocfft/rocfft_kernel_cache.db" <(kpack cat \
		"$F/rocfft.out/.kpack/rocfft_generic.kpack" lib/rocfft/rocfft_kernel_cache.db generic)
}

# bats test_tags=single
@test "MIOpen, Composable Kernel, hipDNN's provider" {
	round_trip miopen provider
}

# bats test_tags=single
@test "trees as the design paper draws them" {
	round_trip paper-rocblas paper-hipblaslt paper-aotriton paper-fft
}

@test "a wheel, and an install tree with everything" {
	round_trip torch all
	[ "$(readlink "$F/all.out/lib/librocblas.so")" = librocblas.so.4 ]
}

# bats test_tags=threads
@test "the same tree gives the same archives, whatever the threads" {
	packed rocblas-flat
	kpack pack -q --group rocblas-flat --jobs 1 "$F/rocblas-flat" one
	kpack pack -q --group rocblas-flat --jobs 7 "$F/rocblas-flat" seven
	diff -r one/.kpack seven/.kpack
	diff -r one/.kpack "$F/rocblas-flat.out/.kpack"
}

# bats test_tags=single
@test "a kernel for a family is stored once and is each member's" {
	packed aotriton
	py "$F/aotriton.out/.kpack/aotriton_gfx11xx.kpack" <<-'END'
	import readkpack, sys
	members = ["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"]
	a = readkpack.Archive(sys.argv[1])
	assert a.top["gfx_arches"] == members, a.top["gfx_arches"]
	kernels = 0
	for key, arches in a.top["toc"].items():
	    assert sorted(arches) == members, (key, sorted(arches))
	    assert len({e["ordinal"] for e in arches.values()}) == 1, key
	    kernels += key.endswith(".aks2")
	assert kernels == 6, kernels
	assert len(a.blobs) == 7, len(a.blobs)
	END
	key='lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/FONLY__＊bf16@16_256_F_F_3_0___gfx11xx.aks2'
	for arch in gfx1100 gfx1103 gfx1150; do
		kpack cat "$F/aotriton.out/.kpack/aotriton_gfx11xx.kpack" "$key" $arch | cmp - "$F/aotriton/$key"
	done
}

# facts KIND PATTERN: the metadata of the entries whose paths match, without what all have
facts() {
	py "$F/$1.out/.kpack" "$2" <<-'END'
	import fnmatch, json, os, readkpack, sys
	for name in sorted(os.listdir(sys.argv[1])):
	    for key, arch, e in readkpack.Archive(os.path.join(sys.argv[1], name)).entries():
	        meta = e.get("metadata", {})
	        if fnmatch.fnmatch(meta.get("path", key), sys.argv[2]):
	            print(arch, json.dumps({k: v for k, v in meta.items() if k not in
	                  ("path", "xxh3", "chunk", "mode")}, default=bytes.hex))
	END
}

# says KIND PATTERN NAME=JSON...: what the one entry's metadata says
says() {
	facts "$1" "$2" >facts.out
	py facts.out "${@:3}" <<-'END'
	import json, sys
	lines = open(sys.argv[1]).read().splitlines()
	assert len(lines) == 1, lines
	meta = json.loads(lines[0].split(" ", 1)[1])
	for pair in sys.argv[2:]:
	    name, _, value = pair.partition("=")
	    assert meta.get(name) == json.loads(value), (pair, meta)
	END
}

# bats test_tags=single
@test "facts of Tensile's files" {
	packed rocblas-flat
	says rocblas-flat '*_SS_*_Ailk_Bjlk_*_CU104_gfx90a.dat' library='"rocblas"' role='"child"' \
		operation='"Contraction_l_Ailk_Bjlk_Cijk_Dijk"' transpose_a=false transpose_b=true \
		cu_count=104 kernel_count=6 container='"msgpack"'
	says rocblas-flat '*_HH_*_Bljk_*_gfx1100.co' role='"code"' container='"elf"' \
		operation='"Contraction_l_Ailk_Bljk_Cijk_Dijk"' transpose_b=false cu_count=null
	says rocblas-flat '*_SS_*_Bljk_*_gfx1100.co' container='"ccob"'
	says rocblas-flat '*_SS_*_gfx90a-xnack+.hsaco' role='"code"' xnack=true
	packed hipblaslt-arch
	says hipblaslt-arch '*/gfx1250-strict/TensileLibrary_lazy_gfx1250.dat.zlib' role='"parent"' \
		variant='"gfx1250-strict"' container='"zlib"'
	says hipblaslt-arch '*/gfx1250v0/extop_gfx1250.co' role='"extop"' variant='"gfx1250v0"'
	says hipblaslt-arch '*/gfx942/extop_gfx942.co' role='"extop"' variant=null
	# small: a table of contents is read whole
	facts rocblas-flat '*' | awk 'length($0) > 700 { print; bad = 1 } END { exit bad }'
}

# bats test_tags=single
@test "facts of AOTriton's, rocFFT's and MIOpen's files" {
	packed aotriton
	says aotriton '*amd-gfx942/flash/attn_fwd/*bf16*' library='"aotriton"' role='"kernel"' \
		operation='"attn_fwd"' kernel_count=4
	packed rocfft
	says rocfft '*rocfft_kernel_cache.db' library='"rocfft"' role='"cache"'
	facts rocfft '*.db' | grep -q gfx90a
	facts rocfft '*.db' | grep -q 60342134
	packed miopen
	says miopen '*/gfx942130.db.txt' library='"miopen"' role='"perf"' cu_count=304
	says miopen '*/gfx942e4.db.txt' cu_count=228
	says miopen '*/gfx90a68.db.txt' cu_count=104
	says miopen '*/gfx90878.db.txt' cu_count=120
	says miopen '*/gfx1030_36.db.txt' cu_count=36
	says miopen '*/gfx906_nosramecc_60.db.txt' cu_count=60
	says miopen '*/gfx90a6e.HIP.fdb.txt' role='"find"' cu_count=110
	says miopen '*/gfx90a.kdb' role='"kernels"' cu_count=null
	says miopen '*/gfx942_metadata.tn.model' role='"model"'
}

# expect_key ARCHIVE KEY ARCH FILE
expect_key() {
	echo "$2 $3"
	kpack cat "$1" "$2" "$3" | cmp - "$4"
	readkpack cat "$1" "$2" "$3" | cmp - "$4"
}

# bats test_tags=single
@test "the paper's trees have the paper's keys" {
	for kind in rocblas hipblaslt aotriton fft; do
		packed paper-$kind
	done
	for arch in gfx1100 gfx90a; do
		for k in kernel_1 kernel_2 Cijk_Ailk_Bljk_SB_MT64x64x16; do
			expect_key "$F/paper-rocblas.out/.kpack/paper-rocblas_$arch.kpack" "rocblas/$arch/$k" \
				$arch "$F/paper-rocblas/rocblas/library/$arch/$k.co"
		done
		for k in gemm_kernel_1 gemm_kernel_2; do
			expect_key "$F/paper-hipblaslt.out/.kpack/paper-hipblaslt_$arch.kpack" \
				"hipblaslt/$arch/$k" $arch \
				"$F/paper-hipblaslt/hipblaslt/library/TensileLibrary/$arch/$k.co"
		done
		expect_key "$F/paper-aotriton.out/.kpack/paper-aotriton_$arch.kpack" \
			"aotriton/$arch/flash_attention_fwd" $arch \
			"$F/paper-aotriton/aotriton/kernels/$arch/flash_attention_fwd.hsaco"
		for length in 256 1024; do
			for p in single double; do
				expect_key "$F/paper-fft.out/.kpack/paper-fft_$arch.kpack" \
					"fft/$arch/$length/$p/kernel" $arch \
					"$F/paper-fft/lib/rocfft/kernels/$arch/fft_${length}_$p.co"
			done
		done
	done
	# stored once, under both names
	py "$F/paper-rocblas.out/.kpack/paper-rocblas_gfx1100.kpack" <<-'END'
	import readkpack, sys
	toc = readkpack.Archive(sys.argv[1]).top["toc"]
	drawn, path = (toc[k]["gfx1100"] for k in ("rocblas/gfx1100/kernel_1",
	                                           "rocblas/library/gfx1100/kernel_1.co"))
	assert drawn["ordinal"] == path["ordinal"]
	END
	says paper-hipblaslt '*gemm_M4096_N4096_K4096_FP16_NT.co' >/dev/null || {
		# two keys of it
		[ "$(grep -c '"M": 4096.*"N": 4096.*"K": 4096' facts.out)" -ge 1 ]
	}
	[ "$(facts paper-fft '*' | grep -c '"length": 1024.*"precision": "single"')" -ge 2 ]
}

# bats test_tags=single
@test "of two trees of the paper's layout the first has the keys" {
	tree paper-aotriton
	mkdir two
	cp -r "$F/paper-aotriton" two/a
	cp -r "$F/paper-aotriton" two/b
	printf more >>two/b/aotriton/kernels/gfx90a/flash_attention_fwd.hsaco
	kpack pack two out 2>err >printed
	expect_key out/.kpack/two_gfx90a.kpack aotriton/gfx90a/flash_attention_fwd gfx90a \
		two/a/aotriton/kernels/gfx90a/flash_attention_fwd.hsaco
	[ "$(kpack ls out/.kpack | grep -c '^aotriton/')" -eq 3 ]
	[ "$(kpack ls out/.kpack | grep -c '^[ab]/')" -eq 6 ]
	[ "$(grep -c warning: err)" -eq 3 ]
	grep -q '^kpack: two/b/aotriton/kernels/gfx90a/flash_attention_fwd.hsaco: warning: the key aotriton/gfx90a/flash_attention_fwd is that of a/aotriton/' err
}

# bats test_tags=plain
@test "kpack_get_kernel finds the paper's keys" {
	packed paper-rocblas
	packed paper-fft
	py "$KPACK_BIN/librocm_kpack.so.0" "$F" <<-'END'
	import ctypes as c, sys
	lib, base = c.CDLL(sys.argv[1]), sys.argv[2]
	def get(archive, key, arch):
	    a, data, size = c.c_void_p(), c.c_void_p(), c.c_size_t()
	    assert lib.kpack_open(archive.encode(), c.byref(a)) == 0
	    status = lib.kpack_get_kernel(a, key.encode(), arch.encode(), c.byref(data), c.byref(size))
	    out = c.string_at(data, size.value) if status == 0 else None
	    if status == 0:
	        lib.kpack_free_kernel(data)
	    lib.kpack_close(a)
	    return out
	for arch in "gfx1100", "gfx90a":
	    rocblas = "%s/paper-rocblas.out/.kpack/paper-rocblas_%s.kpack" % (base, arch)
	    fft = "%s/paper-fft.out/.kpack/paper-fft_%s.kpack" % (base, arch)
	    with open("%s/paper-rocblas/rocblas/library/%s/kernel_2.co" % (base, arch), "rb") as f:
	        assert get(rocblas, "rocblas/%s/kernel_2" % arch, arch) == f.read()
	    with open("%s/paper-fft/lib/rocfft/kernels/%s/fft_256_double.co" % (base, arch), "rb") as f:
	        assert get(fft, "fft/%s/256/double/kernel" % arch, arch) == f.read()
	    assert get(rocblas, "rocblas/%s/kernel_9" % arch, arch) is None
	END
}

# Rewrite archives so that they hold the paper's keys alone.
drawn_alone() { # FROM TO
	mkdir "$2"
	py "$1" "$2" <<-'END'
	import mkarchive, os, readkpack, sys
	for name in os.listdir(sys.argv[1]):
	    old = readkpack.Archive(os.path.join(sys.argv[1], name))
	    new = mkarchive.Archive(group="paper")
	    for key, arch, e in old.entries():
	        if key != e.get("metadata", {}).get("path"):
	            new.add(key, arch, old.get(e), entry={"type": e["type"]})
	    if new.blobs:
	        new.write(os.path.join(sys.argv[2], name))
	END
}

legacy() { # DIR: without what the paper's keys do not name
	[ "$(cd mnt && find . -path ./toc -prune -o -type f -print | wc -l)" = "$2" ]
	(cd mnt && find . -path ./toc -prune -o -type f -print) | while read -r f; do
		cmp "mnt/$f" "$1/$f"
	done
}

# bats test_tags=single
@test "archives with the paper's keys alone show the paper's paths" {
	for kind in rocblas:6 hipblaslt:5 aotriton:3; do
		n=${kind#*:}
		kind=paper-${kind%:*}
		packed $kind
		drawn_alone "$F/$kind.out/.kpack" src-$kind
		in_mount src-$kind legacy "$F/$kind" "$n"
	done
}

@test "rocFFT's database split: a valid one for each GPU, each with its rows" {
	tree rocfft
	kpack pack -q --group fft --split-rocfft "$F/rocfft" out
	[ "$(ls out/.kpack)" = $'fft_gfx1100.kpack\nfft_gfx90a.kpack' ]
	in_mount out/.kpack py "$F/rocfft/lib/rocfft/rocfft_kernel_cache.db" mnt/lib/rocfft <<-'END'
	import os, sqlite3, sys
	def rows(path, where=""):
	    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
	    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
	    schema = db.execute("SELECT type, name, tbl_name FROM sqlite_master ORDER BY 2").fetchall()
	    columns = db.execute("PRAGMA table_info(cache_v1)").fetchall()
	    return schema, columns, db.execute(
	        "SELECT * FROM cache_v1 %s ORDER BY 1, 2, 3, 4" % where).fetchall()
	names = sorted(os.listdir(sys.argv[2]))
	assert names == ["rocfft_kernel_cache_gfx1100.db", "rocfft_kernel_cache_gfx90a.db"], names
	for arch in "gfx1100", "gfx90a":
	    part = os.path.join(sys.argv[2], "rocfft_kernel_cache_%s.db" % arch)
	    with open(part, "rb") as f:
	        assert f.read(20)[18:20] == b"\1\1"  # no write-ahead log
	    assert rows(part) == rows(sys.argv[1], "WHERE arch = '%s'" % arch), arch
	END
}

# bats test_tags=single
@test "rocFFT's rows as entries of their own" {
	tree rocfft-arch
	kpack pack -q --group fft --rows "$F/rocfft-arch" out
	py "$F/rocfft-arch/lib/rocfft/rocfft_kernel_cache_gfx90a.db" out/.kpack/fft_gfx90a.kpack <<-'END'
	import re, readkpack, sqlite3, sys
	a = readkpack.Archive(sys.argv[2])
	precisions = {"sp": "single", "dp": "double", "half": "half"}
	n = 0
	for name, arch, hip, generator, code, stamp in sqlite3.connect(sys.argv[1]).execute(
	        "SELECT * FROM cache_v1"):
	    length, precision = re.search(r"_len(\d+)_.*_(sp|dp|half)_", name).groups()
	    key = "fft/%s/%s/%s/%s" % (arch, length, precisions[precision], name)
	    if key not in a.top["toc"]:
	        key = "fft/%s/%s/%s/%s" % (arch, length, precision, name)
	    e = a.top["toc"][key][arch]
	    assert a.get(e) == code, key
	    meta = e["metadata"]
	    assert meta["hip_version"] == hip and meta["generator_sum"] == generator, meta
	    assert meta["timestamp"] == stamp and "path" not in meta, meta
	    n += 1
	assert n == 300, n
	END
	in_mount out/.kpack diff -r --exclude=toc "$F/rocfft-arch" mnt
}

# bats test_tags=single
@test "rocFFT's databases that loaders could not open are refused" {
	mkdir -p in/lib/rocfft
	tree rocfft-arch
	db=in/lib/rocfft/rocfft_kernel_cache.db
	head -c 300000 "$F/rocfft-arch/lib/rocfft/rocfft_kernel_cache_gfx90a.db" >$db
	fails rocfft_kernel_cache.db in out
	cp "$F/rocfft-arch/lib/rocfft/rocfft_kernel_cache_gfx90a.db" $db
	py $db <<-'END'
	import sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	assert db.execute("PRAGMA journal_mode=wal").fetchone() == ("wal",)
	END
	fails rocfft_kernel_cache.db in out
	grep -qi wal refused.err
	: >$db
	fails rocfft_kernel_cache.db in out
	[ ! -e out ]
}

# bats test_tags=single
@test "two builds for one GPU each: files that differ are refused, both being named" {
	packed hipblaslt-shard-a
	tree hipblaslt-shard-b
	cp -a "$F/hipblaslt-shard-a.out" out
	status=0
	kpack pack -q --group hipblaslt-shard-a "$F/hipblaslt-shard-b" out 2>err || status=$?
	cat err
	[ $status = 1 ]
	grep -q 'TensileLiteLibrary_lazy_Mapping.dat' err
	# nothing was changed
	diff -r "$F/hipblaslt-shard-a.out" out
	# as archives of their own they are refused when they are joined
	packed hipblaslt-shard-b
	mkdir both
	cp "$F"/hipblaslt-shard-[ab].out/.kpack/*.kpack both
	mkdir mnt
	kpackfs both mnt
	grep -q TensileLiteLibrary_lazy_Mapping.dat mnt/.kpackfs/conflicts
	grep -q shard-a_generic mnt/.kpackfs/conflicts
	grep -q shard-b_generic mnt/.kpackfs/conflicts
}

# Take away NAME..., each of which is then reported; nothing else is.
misses() { # KIND TOLD NAME...
	rm -rf in
	tree "$1"
	cp -a "$F/$1" in
	(cd in && rm -- "${@:3}")
	status=0
	kpack verify -q --tree in 2>messages || status=$?
	cat messages
	[ "$status" = 1 ]
	[ "$(wc -l <messages)" = "$2" ]
	for name in "${@:3}"; do
		name=${name##*/}
		grep -qF "$name" messages || { echo "nothing of $name"; return 1; }
	done
}

# bats test_tags=single
@test "what loaders would miss is listed by name" {
	lib=lib/rocblas/library/TensileLibrary_Type
	op=Contraction_l_Ailk_Bljk_Cijk_Dijk
	misses rocblas-flat 1 ${lib}_SS_${op}_gfx90a.dat
	misses rocblas-flat 1 ${lib}_HH_HPA_${op}_gfx1100.co
	misses rocblas-flat 1 ${lib}_DD_${op}_fallback_gfx1100.hsaco
	misses rocblas-flat 1 lib/rocblas/library/Kernels.so-000-gfx90a-xnack-.hsaco
	misses rocblas-arch 1 lib/rocblas/library/gfx942/TensileLibrary_Type_SS_${op}_gfx942.dat
	misses hipblaslt-flat 1 lib/hipblaslt/library/extop_gfx942.co
	misses paper-rocblas 1 rocblas/library/gfx90a/kernel_2.co
	misses paper-fft 1 lib/rocfft/kernels/gfx90a/fft_256_double.co
}

# bats test_tags=single
@test "a .dat that was left beside its .dat.zlib is listed" {
	tree hipblaslt-arch
	cp -a "$F/hipblaslt-arch" in
	touch in/lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat
	status=0
	kpack verify -q --tree in 2>messages || status=$?
	cat messages
	[ "$status" = 1 ]
	grep -qF gfx942/TensileLibrary_lazy_gfx942.dat messages
}

# bats test_tags=single
@test "pack --check packs nothing when a loader would miss something" {
	tree rocblas-flat
	kpack pack -q --check "$F/rocblas-flat" out
	cp -a "$F/rocblas-flat" in
	rm in/lib/rocblas/library/TensileLibrary_Type_SS_*Bljk*_gfx90a.dat
	fails TensileLibrary_Type_SS_ --check in out2
	[ ! -e out2 ]
}

# bats test_tags=single
@test "every tree is complete, and so is what packing made of it" {
	for kind in $($python "$tools/mkdb.py" --list); do
		[ "$kind" != rocfft-big ] || continue
		echo "$kind"
		packed "$kind"
		kpack verify -q --tree "$F/$kind"
		kpack verify -q --tree "$F/$kind.out"
	done
}
