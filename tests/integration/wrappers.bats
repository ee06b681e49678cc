#!/usr/bin/env bats
# Wrappers where clang and the linkers put them: in their section, or merged into other
# data, as a linker script can do; for every supported machine.

# bats file_tags=all, single

archs=(--offload-arch=gfx1100)

have() {
	local program
	for program in clang-22 llvm-objcopy-22 ld.lld-22; do
		command -v $program >/dev/null || return 1
	done
}

hip() { clang-22 -x hip -nogpuinc -nogpulib -O1 "${archs[@]}" "$@"; }

sources() {
	for name in a b; do
		cat >$name.hip <<-END
		#define __global__ __attribute__((global))
		struct dim3 { unsigned x, y, z; };
		extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
		extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
		extern "C" __global__ void kernel_$name(int *p) { p[0] = '$name'; }
		END
	done
	# linked first, its place in .hip_fatbin is the start; words that lead beside it, and nowhere
	cat >like.c <<-'END'
	__asm__(".section .hip_fatbin, \"a\", @progbits\nstart:\n.previous");
	extern const char start[] __attribute__((visibility("hidden")));
	struct { unsigned magic, version; const void *to; long unused; } words[] = {
		{0x48495046, 1, start + 8, 0}, {0x48495046, 1, words, 0}};
	END
}

setup_file() {
	if have; then
		cd "$BATS_FILE_TMPDIR"
		sources
	fi
}

setup() {
	have || skip "no clang-22, llvm-22 or lld-22"
	cp -r "$BATS_FILE_TMPDIR"/*.hip "$BATS_FILE_TMPDIR/like.c" "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR"
	export LC_ALL=C
}

# a.o b.o, and with their wrappers in another section merged-a.o merged-b.o
objects() { # SECTION,FLAGS CLANG-OPTION...
	local to=$1 name
	shift
	for name in a b; do
		hip "$@" -c $name.hip -o $name.o
		llvm-objcopy-22 --rename-section ".hipFatBinSegment=$to" $name.o merged-$name.o
	done
}

data=.data.hip,alloc,load,data,contents

# The wrappers of FILE lead to its containers in this order.
leads() { # FILE CONTAINER...
	timeout 600 "$KPACK_BIN/kpack" inspect "$1" >text
	shift
	[ "$(sed '1,/^ *WRAPPER/d' text | awk '{ print $2 }' | xargs)" = "$*" ] || { cat text; return 1; }
}

@test "every machine, RELA and RELR" {
	for machine in x86_64 aarch64 powerpc64le riscv64 loongarch64; do
		objects $data --target=$machine-linux-gnu -fPIC
		for relocations in norelro pack-relative-relocs; do
			ld.lld-22 -shared -z $relocations b.o a.o -o lib.so
			leads lib.so 0 1
			ld.lld-22 -shared -z $relocations merged-b.o merged-a.o -o lib.so
			leads lib.so 0 1
		done
	done
}

@test "every machine, through a symbol" {
	for machine in x86_64 aarch64 powerpc64le riscv64 loongarch64; do
		old=(--target=$machine-linux-gnu --no-offload-new-driver -fgpu-rdc)
		objects $data "${old[@]}" -fPIC
		for kind in "" merged-; do
			clang-22 "${old[@]}" --hip-link "${archs[@]}" -no-hip-rt -shared -nostdlib \
				-fuse-ld=lld ${kind}a.o ${kind}b.o -o lib.so
			leads lib.so 0 0
		done
	done
}

@test "merged by other linkers, and in place" {
	objects $data -fPIC
	echo 'int main(void) { return 0; }' >main.c
	clang-22 -fPIC -c main.c -o main.o
	for ld in bfd gold lld; do
		command -v ld.$ld || continue
		clang-22 -shared -fuse-ld=$ld merged-a.o merged-b.o -o lib.so
		leads lib.so 0 1
		ld.$ld -r merged-a.o merged-b.o -o both.o
		clang-22 -shared -fuse-ld=$ld both.o -o lib.so
		leads lib.so 0 1
	done
	objects .rodata.hip,alloc,load,readonly,data,contents -fno-pic
	for ld in bfd gold lld; do
		command -v ld.$ld || continue
		clang-22 -no-pie -fuse-ld=$ld -Wl,--unresolved-symbols=ignore-all merged-a.o \
			merged-b.o main.o -o prog
		leads prog 0 1
	done
}

@test "words that only look like wrappers" {
	objects $data -fPIC
	clang-22 -fPIC -c like.c -o like.o
	ld.lld-22 -shared like.o merged-a.o -o lib.so
	leads lib.so 0
}

@test "sanitizers' red zones" {
	objects $data -fPIC -Xarch_host -fsanitize=address
	ld.lld-22 -shared a.o b.o -o lib.so
	leads lib.so 0 1
	ld.lld-22 -shared merged-a.o merged-b.o -o lib.so
	leads lib.so 0 1
}
