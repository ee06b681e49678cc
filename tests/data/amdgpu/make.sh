#!/bin/sh
# SPDX-License-Identifier: MIT
# Make the code objects in this directory again: make.sh DIR, with clang-14, clang-22 and their lld.
set -eu
cd "$(dirname "$0")"
to=$1
hip() { # COMPILER ARCH OPTION...
	compiler=$1 arch=$2
	shift 2
	"$compiler" -x hip -nogpuinc -nogpulib -O1 --offload-arch="$arch" --cuda-device-only \
		--no-gpu-bundle-output "$@" -c kernels.hip
}
# LLVM has not written v2 since 18, nor v3 since 22
hip clang-14 gfx906:xnack+ -mcode-object-version=2 -o "$to/v2.hsaco"
hip clang-14 gfx906:sramecc- -mcode-object-version=3 -o "$to/v3.hsaco"
hip clang-22 gfx90a:xnack+ -mcode-object-version=4 -o "$to/v4.hsaco"
hip clang-22 gfx1100 -mcode-object-version=5 -o "$to/v5.hsaco"
hip clang-22 gfx11-generic -mcode-object-version=6 -o "$to/v6.hsaco"
# no note, as of a stripped one; not linked
llvm-objcopy-22 --remove-section .note --strip-all "$to/v4.hsaco" "$to/stripped.hsaco"
clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx942:sramecc+ --cuda-device-only \
	-S -emit-llvm kernels.hip -o "$to/relocatable.ll"
llc-22 -mcpu=gfx942 -mattr=+sramecc -filetype=obj "$to/relocatable.ll" -o "$to/relocatable.o"
rm "$to/relocatable.ll"
for file in "$to"/v?.hsaco; do
	llvm-objcopy-22 --strip-all "$file"
done
