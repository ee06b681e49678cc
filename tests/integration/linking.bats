#!/usr/bin/env bats
# Build systems that move device code into archives when they link: contrib/cmake, and the example for
# CMake and Meson.  What comes out is what kpack pack makes of the library that is linked without them.

# bats file_tags=single

bats_require_minimum_version 1.5.0

setup() {
	T=$(mktemp -d /tmp/kpack-linking-XXXXXX)
	cp -r "$KPACK_SRC/contrib" "$T"
	example=$T/contrib/examples/build
	export KPACK=$KPACK_BIN/kpack
	unset DESTDIR
	cd "$T"
	bundle gfx90a:xnack+,gfx942
}

teardown() {
	rm -rf "$T"
}

bundle() { # ARCHES
	/usr/bin/python3 "$KPACK_SRC/tests/integration/mkfat.py" --bundles 1 --arches "$1" --bare "$example/demo.bundle"
}

link() { # OUT COMPILER...: the library
	out=$1
	shift
	cc -c -I "$example" -o demo.o "$example/demo.S" # else the name of a temporary object is in the library
	"$@" -shared -Wl,-soname,libdemo.so.1 -o "$out" demo.o
}

as_packed() { # FAT DIR: the file and the archives in DIR are those of kpack pack
	rm -rf want
	"$KPACK" pack -q --group demo "$1" want
	cmp "want/${1##*/}" "$2/${1##*/}"
	diff -r want/.kpack "$2/.kpack"
}

as_tree() { # the files in made are those that kpack pack makes of fat
	rm -rf want
	"$KPACK" pack -q --group all fat want
	diff -r -x .kpack-parts want made
}

@test "kpack-link before a compiler" {
	mkdir fat made
	link fat/libdemo.so.1 cc
	link made/libdemo.so.1 "$T/contrib/cmake/kpack-link" cc
	as_packed fat/libdemo.so.1 made
	# what is not linked, has no device code, or fails stays what it is
	"$T/contrib/cmake/kpack-link" cc -c -I "$example" -o demo.o "$example/demo.S"
	"$KPACK" mark show demo.o | grep -q 'demo.o: fat'
	echo 'int main(void) { return 0; }' >main.c
	"$T/contrib/cmake/kpack-link" cc main.c && ./a.out && [ ! -e .kpack ]
	run -7 "$T/contrib/cmake/kpack-link" sh -c 'exit 7'
	# archives of GPUs that the code is no longer built for go
	bundle gfx942
	link made/libdemo.so.1 "$T/contrib/cmake/kpack-link" cc
	[ "$(ls made/.kpack)" = demo_gfx942.kpack ]
	[ -z "$(find . -name '.kpack-link-*')" ]
	# nothing is left that the next make takes for linked
	KPACK=/bin/false run ! "$T/contrib/cmake/kpack-link" cc -shared -o failed.so demo.o
	[ ! -e failed.so ]
}

@test "kpack-link of several files with one group" {
	mkdir fat made
	for lib in one two three; do
		link fat/$lib.so cc
	done
	for lib in one two three; do
		"$T/contrib/cmake/kpack-link" -g all cc -shared -Wl,-soname,libdemo.so.1 -o made/$lib.so demo.o &
	done
	wait
	as_tree
	# what a file no longer has, and what is gone, is no longer in the archives that others share
	bundle gfx942
	link fat/two.so cc
	link made/two.so "$T/contrib/cmake/kpack-link" -g all cc
	as_tree
	rm fat/one.so made/one.so
	link fat/three.so cc
	link made/three.so "$T/contrib/cmake/kpack-link" -g all cc
	as_tree
	[ "$(ls made/.kpack)" = all_gfx942.kpack ]
	# after a link that failed while it joined the archives, too
	bundle gfx942,gfx950
	link fat/.two.so cc
	link made/.two.so "$T/contrib/cmake/kpack-link" -g all cc
	as_tree
	bundle gfx942
	printf '#!/bin/sh\n[ "$1" != merge ] && exec %s "$@"\n' "$KPACK" >fails
	chmod +x fails
	link fat/.two.so cc
	KPACK=$PWD/fails run ! link made/.two.so "$T/contrib/cmake/kpack-link" -g all cc
	[ -e made/.kpack/all_gfx950.kpack ] && [ ! -e made/.two.so ]
	link made/.two.so "$T/contrib/cmake/kpack-link" -g all cc
	as_tree
}

@test "CMake" {
	cmake -S "$example" -B made -DKPACK_PROGRAM="$KPACK" -DCMAKE_INSTALL_PREFIX="$T/usr"
	cmake --build made
	cmake -S "$example" -B fat -DKPACK_PROGRAM=/bin/true # moves nothing
	cmake --build fat
	as_packed fat/libdemo.so.1.2.3 made
	cmake --install made
	"$KPACK" mark check usr | grep -qx '1 converted, 0 not converted, 2 objects in 2 archives, 0 faults'
	bundle gfx90a:xnack+,gfx942,gfx1100
	touch "$example/demo.S"
	cmake --build made && cmake --build fat
	as_packed fat/libdemo.so.1.2.3 made
	sed -i 's/DESTINATION lib)/TO lib)/' "$example/CMakeLists.txt"
	run ! cmake -S "$example" -B wrong -DKPACK_PROGRAM="$KPACK"
	[[ "$output" == *"kpack_target_archives(demo): TO;lib"* ]]
}

# bats test_tags=all
@test "Meson" {
	command -v meson || skip "no meson"
	meson setup made "$example" --prefix "$T/usr" --libdir lib
	meson compile -C made
	meson install -C made
	cp made/libdemo-fat.so libdemo.so
	as_packed libdemo.so usr/lib
}
