#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack merge beside another process; joined trees load; devices and users.  What it writes is in
# tests/golden/merge*, tests/properties; tests/sweep kills it.

# bats file_tags=single

load packing

@test "an archive that is added to is read when other runs have written it" {
	local x pid said
	for x in gfx900 gfx906 gfx1030; do
		py "$x" <<-'END'
		import sys, mkarchive
		a = mkarchive.Archive(group="s", family=sys.argv[1])
		a.add("a/x#0", sys.argv[1], sys.argv[1].encode() * 100)
		a.write(sys.argv[1] + ".kpack")
		END
	done
	mkdir dir
	cp gfx900.kpack dir/s-all.kpack
	mkfifo told
	exec 8<dir
	flock 8
	kpack merge -q --force -o dir/s-all.kpack dir gfx1030.kpack 2>told 4>&- 8<&- &
	pid=$!
	exec 9<told
	read -r said <&9
	[[ $said == *"dir: note: another process has locked it: waiting"* ]]
	# a new archive needs no lock
	kpack merge -q -o dir/.new gfx900.kpack gfx906.kpack
	mv dir/.new dir/s-all.kpack
	flock -u 8
	exec 8<&-
	wait $pid
	cmp <(readkpack sums dir/s-all.kpack | sort) <(for x in gfx*.kpack; do readkpack sums $x; done | sort)
}

# Builds a and b of an artifact, a split by us and b by AMD's splitter.
builds() {
	mkdir -p art/math/stage/lib/deep art/comm/stage/lib
	mkfat --bundles 2 --arches gfx1100,gfx1101,gfx1200 art/math/stage/lib/deep/liba.so
	mkfat --bundles 2 --seed 2 --arches gfx1100,gfx1200 --ccob odd art/comm/stage/lib/libb.so
	# a section without a whole page keeps its code in AMD's
	mkfat --seed 3 --bundles 1 --size 400 --align 64 --arches gfx1100 art/comm/stage/lib/libsmall.so
	printf 'math/stage\ncomm/stage\n' >art/artifact_manifest.txt
	kpack split -q --name blas --gpu-targets gfx1100,gfx1101 art a
	$python "$tools/amdsplit.py" --gpu-targets gfx1200 --gpu-targets gfx1101 art b blas
}

# LIBRARY ARCH FAT...: the loader hands out for each LIBRARY what the library FAT had
hands_out() {
	local sanitizer # which Python is without
	sanitizer=$(ldd "$KPACK_BIN/librocm_kpack.so.0" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	LD_PRELOAD=$sanitizer ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 py "$@" <<-'PY'
	import ctypes, os, sys
	import fatparse
	lib = ctypes.CDLL(os.path.join(os.environ["KPACK_BIN"], "librocm_kpack.so.0"))
	cache = ctypes.c_void_p()
	assert lib.kpack_cache_create(ctypes.byref(cache)) == 0
	for path, arch, fat in zip(*[iter(sys.argv[1:])] * 3):
	    path = os.path.abspath(path)
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

@test "builds of an artifact, from AMD's splitter and from ours, are joined and load" {
	local math=art/math/stage/lib/deep/liba.so comm=art/comm/stage/lib
	builds
	mkdir -p out/.kpack-staging-abcdef/rocm_generic
	chmod 0500 out/.kpack-staging-abcdef/rocm_generic
	kpack merge -q {a,b}/blas_generic -o out/blas_generic
	kpack merge -q {a,b}/blas_gfx1[12]* -o out/blas_gfx
	[ "$(ls -A out | paste -sd ' ')" = "blas_generic blas_gfx" ]
	mkdir flat
	cp -a out/*/{math,comm}/stage/. flat/
	kpack mark check flat | grep -q '^3 converted, 0 not converted, 11 objects in 3 archives, 0 faults$'
	hands_out flat/lib/deep/liba.so gfx1200 $math flat/lib/deep/liba.so gfx1101 $math \
		flat/lib/libb.so gfx1100 $comm/libb.so flat/lib/libsmall.so gfx1100 $comm/libsmall.so
}

@test "a joined tree in place of another; devices and users" {
	as_root
	builds
	kpack merge -q {a,b}/blas_generic -o want
	mkdir -p out/blas
	touch out/blas/old
	mknod a/blas_generic/math/stage/null c 1 3
	kpack merge -q --force {a,b}/blas_generic -o out/blas
	[ -c out/blas/math/stage/null ]
	rm out/blas/math/stage/null
	diff -r want out/blas
	[ "$(ls -A out)" = blas ]
	mkdir own
	chown 65534:65534 own
	as_nobody "$KPACK_BIN/kpack" merge {a,b}/blas_generic -o own/out >said 2>err
	grep -q 'a/blas_generic/math/stage/null: note: left out: .*not permitted' err
	diff -r out/blas own/out
}
