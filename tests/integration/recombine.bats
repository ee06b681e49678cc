#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack recombine: joined trees load; runs that are killed, and users.  What is joined and what is
# refused is in tests/golden/recombine*, and what is true of all trees in tests/properties.

# bats file_tags=single

load packing

recombine() { kpack recombine --config config.json shards out "$@"; }

# Shards a and b of an artifact, a of ours and b of AMD's splitter.
shards() {
	mkdir -p art/math/stage/lib/deep art/comm/stage/lib
	mkfat --bundles 2 --arches gfx1100,gfx1101,gfx1200 art/math/stage/lib/deep/liba.so
	mkfat --bundles 2 --seed 2 --arches gfx1100,gfx1200 --ccob odd art/comm/stage/lib/libb.so
	# a section without a whole page keeps its code in AMD's
	mkfat --seed 3 --bundles 1 --size 400 --align 64 --arches gfx1100 art/comm/stage/lib/libsmall.so
	printf 'math/stage\ncomm/stage\n' >art/artifact_manifest.txt
	kpack split -q --name blas --gpu-targets gfx1100,gfx1101 art shards/a
	$python "$tools/amdsplit.py" --gpu-targets gfx1200 --gpu-targets gfx1101 art shards/b blas
	cat >config.json <<-END
	{"primary_shard": "a",
	 "architecture_groups": {
	  "gfx110X": {"display_name": "RDNA 3", "architectures": ["gfx1100", "gfx1101"]},
	  "gfx120X": {"display_name": "RDNA 4", "architectures": ["gfx1200"]}}}
	END
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

@test "shards of an artifact, from AMD's splitter and from ours, are joined and load" {
	local math=art/math/stage/lib/deep/liba.so comm=art/comm/stage/lib
	shards
	mkdir -p out/.kpack-staging-abcdef/rocm_generic
	chmod 0500 out/.kpack-staging-abcdef/rocm_generic
	recombine -q
	[ "$(ls -A out | paste -sd ' ')" = "blas_generic blas_gfx110X blas_gfx120X" ]
	mkdir flat
	cp -a out/*/{math,comm}/stage/. flat/
	kpack mark check flat | grep -q '^3 converted, 0 not converted, 11 objects in 3 archives, 0 faults$'
	hands_out flat/lib/deep/liba.so gfx1200 $math flat/lib/deep/liba.so gfx1101 $math \
		flat/lib/libb.so gfx1100 $comm/libb.so flat/lib/libsmall.so gfx1100 $comm/libsmall.so
}

@test "killed while trees get their names: the next run needs no --force; devices and users" {
	local n
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	shards
	for n in 1 3; do
		rm -rf out
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null \
			-e trace=renameat2 -e inject=renameat2:signal=KILL:when=$n \
			"$KPACK_BIN/kpack" recombine --config config.json shards out || status=$?
		[ $status = 137 ]
		[ "$(ls out | wc -l)" = $((n - 1)) ] && [ ! -e out/blas_generic ]
		recombine -q
		[ "$(ls -A out | wc -l)" = 3 ]
	done
	as_root
	mknod shards/a/blas_generic/math/stage/null c 1 3
	recombine -q --force
	[ -c out/blas_generic/math/stage/null ]
	mkdir own
	chown 65534:65534 own
	as_nobody "$KPACK_BIN/kpack" recombine --config config.json shards own/out >said 2>err
	grep -q 'shards/a/blas_generic/math/stage/null: note: left out: .*not permitted' err
	rm out/blas_generic/math/stage/null
	diff -r out own/out
}
