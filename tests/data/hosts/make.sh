#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the files of this directory again: make.sh DIR, with gcc, GNU ld, gold, clang-14, clang-22,
# lld and patchelf.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
/usr/bin/python3 "$here/../../integration/mkfat.py" --bare --bundles 1 --size 1500 \
	--arches gfx1030,gfx1100 b.hipfb
host() { # OUTPUT OPTION...
	out=$1
	shift
	gcc -O1 -fPIC -nostdlib -Wl,--build-id=none -Wl,-z,max-page-size=4096 '-DBUNDLE="b.hipfb"' \
		-o "$out" "$here/host.c" "$here/fat.S" "$@"
}
host bfd.so -shared -fcf-protection=none
host lld.so -shared -fuse-ld=lld
host gold.so -shared -fuse-ld=gold
host relr.so -shared -Wl,-z,pack-relative-relocs
host pages.so -shared -fuse-ld=lld -Wl,-z,separate-code,-z,max-page-size=16384
host pie -DMAIN -pie
host fixed -DMAIN -no-pie -static
gcc -fPIC -c '-DBUNDLE="b.hipfb"' "$here/fat.S" -o fat.o
clang-14 -O1 -fPIC -shared -fprofile-instr-generate -Wl,--build-id=sha1,-z,max-page-size=4096,-s \
	-o profiled.so "$here/host.c" fat.o
cp bfd.so sectionless.so
llvm-objcopy-22 --strip-sections sectionless.so
cp bfd.so patched.so
patchelf --set-rpath "$(printf /a/long/path%.0s 1 2 3 4 5 6 7 8 9)" patched.so
cp pie payload
{ printf 'the payload PAYLOAD!'; printf '%016x' "$(stat -c %s pie)"; } >>payload
gcc -O1 -fPIC -c "$here/host.c" -o host.o
gcc -c '-DBUNDLE="b.hipfb"' "$here/fat.S" -o fat.o
ar rcsD static.a host.o fat.o
hip() { # OUTPUT OPTION...
	out=$1
	shift
	clang-22 -x hip -nogpuinc -nogpulib -O1 "$@" -c "$here/kernels.hip" -o "$out"
}
cp "$here/kernels.hip" . # its path is in debugging information
here=.
hip debug.hipfb -g -Xoffload-linker --build-id=sha1 -fdebug-compilation-dir=. \
	--offload-arch=gfx1030 --offload-arch=gfx1100 --cuda-device-only --gpu-bundle-output
for n in one two; do
	hip $n.o -fno-gpu-rdc -fPIC -DNAME=$n --offload-arch=gfx1030 --offload-arch=gfx1100
	hip $n.rdc.o -fgpu-rdc -fPIC -DNAME=$n --offload-arch=gfx1030 --offload-arch=gfx1100
done
llvm-ar-22 rcsD hip.a one.o two.o
llvm-ar-22 rcsD rdc.a one.rdc.o two.rdc.o
rm -f b.hipfb ./*.o kernels.hip
