#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the files of this directory again: make.sh DIR, with gcc, GNU ld, gold, clang-14, clang-22,
# lld, patchelf and gcc-mingw-w64-x86-64.
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
	clang-22 -x hip -nogpuinc -nogpulib -O1 "$@" -c kernels.hip -o "$out"
}
# their paths are in debugging information
cp "$here/kernels.hip" "$here/windows.c" "$here/fat-windows.S" .
hip debug.hipfb -g -Xoffload-linker --build-id=sha1 -fdebug-compilation-dir=. \
	--offload-arch=gfx1030 --offload-arch=gfx1100 --cuda-device-only --gpu-bundle-output
for n in one two; do
	hip $n.o -fno-gpu-rdc -fPIC -DNAME=$n --offload-arch=gfx1030 --offload-arch=gfx1100
	hip $n.rdc.o -fgpu-rdc -fPIC -DNAME=$n --offload-arch=gfx1030 --offload-arch=gfx1100
done
llvm-ar-22 rcsD hip.a one.o two.o
llvm-ar-22 rcsD rdc.a one.rdc.o two.rdc.o
rm -f ./*.o

# for Windows: clang-22 and lld-link-22, and gcc-mingw-w64-x86-64 with GNU ld
/usr/bin/python3 "$here/../../integration/mkfat.py" --bare --bundles 1 --size 1500 --align 64 \
	--arches gfx1030,gfx1100 b.hipfb
windows() { # OUTPUT MACHINE CFLAGS OPTION...
	out=$1 machine=$2 cflags=$3
	shift 3
	# shellcheck disable=SC2086
	clang-22 --target="$machine-pc-windows-msvc" -O1 -ffreestanding -fdebug-compilation-dir=. $cflags \
		-c windows.c -o windows.obj
	clang-22 --target="$machine-pc-windows-msvc" '-DBUNDLE="b.hipfb"' -c fat-windows.S -o fat.obj
	lld-link-22 /nodefaultlib /timestamp:0 "/out:$out" windows.obj fat.obj "$@"
}
windows guard.dll x86_64 '-g -gcodeview -DGUARD -Xclang -cfguard' /dll /noentry /guard:cf /debug /pdb:guard.pdb
windows arm64.dll aarch64 '' /dll /noentry
windows aligned.exe x86_64 '' /entry:start /subsystem:console /fixed /align:65536 /filealign:4096
windows checked.dll x86_64 '' /dll /noentry /release
x86_64-w64-mingw32-gcc -O1 -ffreestanding -c windows.c -o windows.obj
x86_64-w64-mingw32-gcc '-DBUNDLE="b.hipfb"' -c fat-windows.S -o fat.obj
x86_64-w64-mingw32-gcc -shared -nostdlib -e0 -Wl,--no-insert-timestamp -o mingw.dll windows.obj fat.obj
rm -f b.hipfb ./*.obj kernels.hip windows.c fat-windows.S guard.pdb guard.lib arm64.lib aligned.lib checked.lib
