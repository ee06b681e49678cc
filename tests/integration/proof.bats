#!/usr/bin/env bats
# Converted binaries, proved by loading them: a HIP runtime of our own (tests/stub)
# registers the fat file and the converted one, and every wrapper must give the same code
# object for every architecture, byte for byte.  The stub itself reads the fat file;
# librocm_kpack reads the converted one, as in a real runtime.  elfcheck.py also compares
# the files.

# bats file_tags=all

load proof.bash

setup_file() {
	if have_clang; then
		export DATA=$BATS_FILE_TMPDIR/d
		mkdir "$DATA"
		cd "$DATA"
		sources
		hip -fPIC -c a.hip -o a.o
		hip -fPIC -c b.hip -o b.o
		hip --offload-arch=gfx1201 -fPIC -c c.hip -o c.o
		clang-22 -g -fPIC -c main.c -o main.o
	fi
}

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	cd "$T"
	[ -z "${DATA-}" ] || cp -r "$DATA"/* .
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || [ ! -e made ] || cat made
	cd /
	rm -rf "$T"
}

@test "librocrand" {
	fetch librocrand
	proves "$LIB" rocrand_create_generator=401
	[ "$(awk 'NF == 5' has.log | wc -l)" = "$($python "$tools/fatparse.py" sums "$LIB" x | wc -l)" ]
	grep -qx 'rocrand_create_generator 102' converted.log # thrown where memory was asked for
	abidiff "$LIB" out/librocrand.so.*
}

@test "shared libraries" {
	need_clang
	for ld in $(linkers); do
		link -shared -fuse-ld=$ld a.o b.o c.o -o lib$ld.so
		proves lib$ld.so
		link -shared -s -fuse-ld=$ld a.o c.o -o lib$ld.so
		proves lib$ld.so
	done
}

@test "programs, position-independent or not" {
	need_clang
	for name in a b; do
		hip -fno-pic -c $name.hip -o fixed-$name.o
	done
	clang-22 -fno-pic -c main.c -o fixed-main.o
	for ld in $(linkers); do
		link -pie -fuse-ld=$ld a.o b.o c.o main.o -o pie-$ld
		proves pie-$ld
		link -no-pie -fuse-ld=$ld fixed-a.o fixed-b.o fixed-main.o -o fixed-$ld
		proves fixed-$ld
		[ "$(readelf -hW out/fixed-$ld | grep -c 'Type: *EXEC')" = 1 ]
	done
}

@test "RELR" {
	need_clang
	link -shared -fuse-ld=bfd -Wl,-z,pack-relative-relocs a.o b.o c.o -o libbfd.so
	link -shared -fuse-ld=lld -Wl,-z,pack-relative-relocs a.o b.o c.o -o liblld.so
	link -pie -fuse-ld=bfd -Wl,-z,pack-relative-relocs a.o b.o main.o -o pie-bfd
	link -pie -fuse-ld=lld -Wl,-z,pack-relative-relocs a.o b.o main.o -o pie-lld
	for file in libbfd.so liblld.so pie-bfd pie-lld; do
		readelf -SW $file | grep -q '\.relr\.dyn'
		proves $file
	done
	# glibc does not load it: there is no dependency on GLIBC_ABI_DT_RELR
	link -shared -fuse-ld=lld -Wl,--pack-dyn-relocs=relr a.o b.o c.o -o libpacked.so
	readelf -SW libpacked.so | grep -q '\.relr\.dyn'
	convert libpacked.so out
	elfcheck libpacked.so out/libpacked.so
}

@test "-fgpu-rdc: several wrappers for one bundle, through symbols" {
	need_clang
	rdc=(--no-offload-new-driver -fgpu-rdc)
	for name in a b; do
		hip "${rdc[@]}" -fPIC -c $name.hip -o $name.o
		hip "${rdc[@]}" -fno-pic -c $name.hip -o fixed-$name.o
	done
	clang-22 -fno-pic -c main.c -o fixed-main.o
	for ld in bfd lld; do
		link "${rdc[@]}" --hip-link "${offload[@]}" -shared -fuse-ld=$ld a.o b.o -o lib$ld.so
		proves lib$ld.so
		# clang registers the first of the wrappers, for all
		[ "$(grep -c ' function kernel_' converted.log)" = 2 ]
		link "${rdc[@]}" --hip-link "${offload[@]}" -shared -fuse-ld=$ld -Wl,-Bsymbolic a.o b.o -o lib$ld.so
		proves lib$ld.so
		link "${rdc[@]}" --hip-link "${offload[@]}" -no-pie -fuse-ld=$ld \
			fixed-a.o fixed-b.o fixed-main.o -o fixed-$ld
		proves fixed-$ld
	done
}

@test "compressed, and compressed beside plain" {
	need_clang
	hip -fPIC --offload-compress -c a.hip -o a.o
	COMPRESSED_BUNDLE_FORMAT_VERSION=2 hip -fPIC --offload-compress -c b.hip -o b.o
	for ld in $(linkers); do
		link -shared -fuse-ld=$ld a.o b.o c.o -o lib$ld.so
		proves lib$ld.so
	done
}

@test "a tree: a program, its libraries, links, other places" {
	need_clang
	mkdir -p fat/bin fat/lib/deep/er
	link -shared -fuse-ld=lld b.o -Wl,-soname,libb.so.1 -o fat/lib/libb.so.1.0
	ln -s libb.so.1.0 fat/lib/libb.so.1
	link -shared -fuse-ld=bfd c.o -o fat/lib/deep/er/libc.so
	link -pie -fuse-ld=lld a.o main.o -Wl,--no-as-needed fat/lib/libb.so.1.0 \
		-Wl,-rpath,'$ORIGIN/../lib' -o fat/bin/prog
	convert fat out
	for file in bin/prog lib/libb.so.1.0 lib/deep/er/libc.so; do
		elfcheck fat/$file out/$file
	done
	same fat/bin/prog out/bin/prog
	grep -q '^libb.so.1 ' converted.log
	same fat/lib/deep/er/libc.so out/lib/deep/er/libc.so launch_c
	# through a symbolic link from elsewhere, and moved
	ln -s "$PWD/out/bin/prog" prog
	same fat/bin/prog prog
	mv out moved
	same fat/bin/prog moved/bin/prog
	# many in one process
	cp -r moved/lib/deep/er/libc.so moved/lib/deep/er/libd.so
	LD_LIBRARY_PATH=$stub STUB_LOG=$PWD/two STUB_ARCHES="gfx1100 gfx1201" \
		run_program "$stub/load" -c launch_c moved/lib/libb.so.1 moved/lib/deep/er/libd.so moved/lib/deep/er/libc.so
	[ "$(awk 'NF == 5' two | wc -l)" = 5 ]
}

# The tests tagged single vary the layout of the file; the threads of a conversion are the
# same as in the tests above.
# KPACK_SEEDS=FIRST-LAST tries others
# bats test_tags=single
@test "random hosts" {
	need_clang
	range=${KPACK_SEEDS:-1-60}
	seq ${range%-*} ${range#*-} | proves_hosts
}
