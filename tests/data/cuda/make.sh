#!/bin/sh
# Make the files of this directory again: PATH=/usr/local/cuda/bin:$PATH ./make.sh
# Needs CUDA 13.0.  It prints ptxas's account of each kernel and the MD5 sums of the images,
# as the unit tests have them.
set -eu
cd "$(dirname "$0")"
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

ptx() # ARCH
{
	nvcc -ptx "-arch=compute_$1" vectors.cu -o "$t/$1.ptx"
	md5sum "$t/$1.ptx"
}
cubin() # ARCH [OPTION...]
{
	arch=$1
	shift
	echo "sm_$arch $*"
	nvcc -cubin "-arch=sm_$arch" "$@" vectors.cu -o "$t/$arch.cubin" -Xptxas -v 2>&1 |
		grep -E 'entry|stack frame|Used'
	md5sum "$t/$arch.cubin"
}
fatbin() # NAME OPTION...
{
	name=$1
	shift
	(cd "$t" && fatbinary -64 "--create=$name" "$@")
	mv "$t/$name" .
}

for a in 80 90a 103f; do ptx $a; done
for a in 75 80 90a 100 100a 100f 121; do cubin $a; done
fatbin zstd.fatbin --compress-mode=size --image3=kind=elf,sm=90a,file=90a.cubin \
	--image3=kind=elf,sm=75,file=75.cubin --image3=kind=ptx,sm=90a,file=90a.ptx
fatbin blackwell.fatbin --compress-mode=size --image3=kind=elf,sm=100,file=100.cubin \
	--image3=kind=elf,sm=100a,file=100a.cubin
fatbin family.fatbin --compress-mode=size --image3=kind=elf,sm=100f,file=100f.cubin \
	--image3=kind=elf,sm=121,file=121.cubin --image3=kind=ptx,sm=103f,file=103f.ptx
fatbin lz4.fatbin --compress-mode=speed --compress-all -ident=vectors.cu -cmdline='-O3 -lineinfo' \
	--image3=kind=elf,sm=80,file=80.cubin --image3=kind=ptx,sm=80,file=80.ptx
cubin 90 -dc
fatbin relocatable.fatbin --compress-mode=size --image3=kind=elf,sm=90,file=90.cubin
nvcc -fatbin -gencode arch=compute_90,code=lto_90 vectors.cu -o lto.fatbin
printf '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }' >"$t/k.ptx"
ptxas -arch=sm_80 "$t/k.ptx" -o "$t/k.cubin"
md5sum "$t/k.ptx" "$t/k.cubin"
fatbin plain.fatbin --compress-mode=none --image3=kind=elf,sm=80,file=k.cubin \
	--image3=kind=ptx,sm=80,file=k.ptx
