#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What kpack split makes loads; runs that are killed, disturbed, or not alone; users.
# The trees themselves are in tests/golden/split-*, and what is true of all in tests/properties.
#
# bats file_tags=long, single

load packing

split() { kpack split -q "$@"; }

install_over() { # ROOT TREE...
	rm -rf "$1"
	mkdir "$1"
	for tree in "${@:2}"; do cp -a "$tree/." "$1/"; done
}

@test "the trees of an artifact load, installed together or each prefix into one root" {
	mkdir -p art/math/stage/lib/deep art/comm/stage/lib
	mkfat --bundles 2 --arches gfx1030,gfx1100,gfx1101,gfx90a:xnack+ art/math/stage/lib/deep/liba.so
	mkfat --bundles 2 --seed 2 --arches gfx1100,gfx942 art/comm/stage/lib/libb.so
	printf 'math/stage\ncomm/stage\n' >art/artifact_manifest.txt
	split --family rdna=gfx1100,gfx1101 art out
	install_over flat out/art_*/{math,comm}/stage
	loads "0 0" flat/lib/deep/liba.so gfx1101
	loads "0 0" flat/lib/deep/liba.so gfx90a:xnack+
	loads "0 0" flat/lib/libb.so gfx942
	loads "200 200" flat/lib/libb.so gfx1030 # its archive is there, without this library's code
	split --keys prefix --name p art out
	install_over root out/p_generic out/p_gfx1100
	loads "0 0" root/math/stage/lib/deep/liba.so gfx1100
	loads "209 209" root/math/stage/lib/deep/liba.so gfx1030
	install_over flat out/p_*/{math,comm}/stage
	loads "0 0" flat/lib/libb.so gfx942
	# archives that a tree has, beside its own, in another directory
	kpack pack -q --group old --archive-dir share/k art/math/stage packed
	mkfat --bundles 2 --seed 4 --arches gfx1100 packed/libc.so
	split --archive-dir share/k packed out
	install_over root out/packed_generic out/packed_gfx1100
	loads "0 0" root/lib/deep/liba.so gfx1100
	loads "0 0" root/libc.so gfx1100
}

@test "killed while trees get their names: names that somebody gave to other trees meanwhile are theirs" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	mkdir in
	mkfat --bundles 1 --arches gfx1030,gfx1100 in/liba.so
	status=0
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null -e trace=renameat2 \
		-e inject=renameat2:signal=KILL:when=2 "$KPACK_BIN/kpack" split -q in out || status=$?
	[ $status = 137 ] && [ "$(ls out)" = in_gfx1030 ]
	mv out/in_gfx1030 mine
	mkdir out/in_gfx1030
	touch out/in_gfx1030/theirs
	! split in out 2>err || false
	[ -e out/in_gfx1030/theirs ]
}

@test "one run leaves the other's work alone, and removes what was left; an ordinary user" {
	mkdir in
	mkfat --bundles 1 in/liba.so
	mkdir -p out/.kpack-staging-busyyy out/.kpack-staging-abcdef/in_generic
	chmod 0555 out/.kpack-staging-abcdef/in_generic
	exec {lock}<out/.kpack-staging-busyyy
	flock $lock
	split in out
	[ "$(ls -A out | grep -v ^in_)" = .kpack-staging-busyyy ]
	exec {lock}<&-
	split --force in out
	[ -z "$(ls -A out | grep -v ^in_)" ]
	as_root
	mkdir own
	chown 65534 own
	as_nobody "$KPACK_BIN/kpack" split -q in own/out
	as_nobody "$KPACK_BIN/kpack" split -q --force in own/out
	diff -r out own/out
}
