#!/usr/bin/env bats
# kpack pack on the real output of clang and the linkers.  The objects in the archives
# must be those that clang's own tools extract, where these tools are right:
# clang-offload-bundler on the section of one object file, llvm-objdump on linked files
# whose bundles are not compressed.

# bats file_tags=all, single

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1
arches=(gfx1100 gfx90a:sramecc-:xnack+)
offload=(--offload-arch=gfx1100 --offload-arch=gfx90a:sramecc-:xnack+)

have() {
	local program
	for program in clang-22 clang-offload-bundler-22 llvm-objdump-22 ld.lld-22 objcopy; do
		command -v $program >/dev/null || return 1
	done
}

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }
fatparse() { $python "$tools/fatparse.py" "$@"; }
hip() { clang-22 -x hip -nogpuinc -nogpulib -O1 "${offload[@]}" "$@"; }

# a.hip, b.hip and c.hip: c is for one architecture more
sources() {
	for name in a b c; do
		cat >$name.hip <<-END
		#define __global__ __attribute__((global))
		struct dim3 { unsigned x, y, z; };
		extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
		extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
		extern "C" __global__ void kernel_$name(int *p) { p[0] += sizeof "$name"; p[1] = '$name'; }
		END
	done
	# what a program needs to link without the HIP runtime
	cat >stub.c <<-'END'
	void **__hipRegisterFatBinary(const void *d) { static void *h; return &h; }
	void __hipRegisterFunction(void) {}
	void __hipUnregisterFatBinary(void **m) {}
	int hipLaunchKernel(void) { return 0; }
	unsigned __hipPopCallConfiguration(void) { return 0; }
	int main(void) { return 0; }
	END
}

setup_file() {
	if have; then
		export DATA=$BATS_FILE_TMPDIR
		cd "$DATA"
		sources
		hip -fPIC -c a.hip -o a.o
		hip -fPIC -c b.hip -o b.o
		hip --offload-arch=gfx1201 -fPIC -c c.hip -o c.o
		clang-22 -fPIC -c stub.c -o stub.o
	fi
}

setup() {
	have || skip "no clang-22, clang-tools-22, llvm-22, lld-22 or binutils"
	cp -r "$DATA" "$BATS_TEST_TMPDIR/d"
	cd "$BATS_TEST_TMPDIR/d"
	export LC_ALL=C
}

sums() { # OUT
	local a
	for a in "$1"/.kpack/*.kpack; do
		$python "$tools/readkpack.py" sums "$a"
	done | sort
}

# "sha256  KEY#INDEX  arch" of a bundle, or of an object file with one, as clang-offload-bundler
# takes it apart
unbundled() { # FILE KEY INDEX ARCH...
	local file=$1 key=$2 index=$3 arch
	shift 3
	cp "$file" section
	[[ "$file" != *.o ]] || objcopy --dump-section .hip_fatbin=section "$file" /dev/null
	for arch; do
		clang-offload-bundler-22 -unbundle -type=o -input=section -output=unbundled \
			-targets=hipv4-amdgcn-amd-amdhsa--$arch
		echo "$(sha256sum <unbundled | cut -d ' ' -f 1)  $key#$index  $arch"
	done
}

# The hashes of all code objects that llvm-objdump finds in a linked file
dumped() { # FILE
	mkdir dumped
	cp "$1" dumped/file
	(cd dumped && llvm-objdump-22 --offloading file >/dev/null)
	find dumped -name '*amdgcn*' -exec sha256sum {} + | cut -d ' ' -f 1 | sort -u
	rm -r dumped
}

# Pack FILE, whose parse says SHAPE; leaves the hashes in the file got.
packs() { # FILE SHAPE
	[ "$(fatparse shape "$1")" = "$2" ] || { fatparse shape "$1"; return 1; }
	rm -rf out
	kpack pack -q --archives-only --group g "$1" out
	kpack verify -q out/.kpack
	sums out >got
	fatparse sums "$1" "$1" | diff - got
}

three() { # KEY: what a.o, b.o and c.o hold, linked in this order
	unbundled a.o "$1" 0 "${arches[@]}"
	unbundled b.o "$1" 1 "${arches[@]}"
	unbundled c.o "$1" 2 "${arches[@]}" gfx1201
}

@test "shared libraries by bfd and lld, RELA and RELR" {
	for ld in bfd lld; do
		clang-22 -shared -fuse-ld=$ld a.o b.o c.o -o lib.so
		packs lib.so "wrappers 3 bundles 3 relocations RELATIVE"
		three lib.so | sort | diff - got
		dumped lib.so | diff - <(cut -d ' ' -f 1 got | sort -u)
	done
	clang-22 -shared -fuse-ld=lld -Wl,-z,pack-relative-relocs a.o b.o c.o -o lib.so
	packs lib.so "wrappers 3 bundles 3 relocations RELR"
	three lib.so | sort | diff - got
	# a stripped one has no symbols, and the same code
	strip lib.so
	packs lib.so "wrappers 3 bundles 3 relocations RELR"
	three lib.so | sort | diff - got
}

@test "programs, PIE and not" {
	for ld in bfd lld; do
		clang-22 -pie -fuse-ld=$ld a.o b.o c.o stub.o -o prog
		packs prog "wrappers 3 bundles 3 relocations RELATIVE"
		three prog | sort | diff - got
		for name in a b; do
			hip -fno-pic -c $name.hip -o fixed-$name.o
		done
		clang-22 -no-pie -fuse-ld=$ld fixed-a.o fixed-b.o stub.o -o prog
		packs prog "wrappers 2 bundles 2 relocations IN-PLACE"
		{
			unbundled fixed-a.o prog 0 "${arches[@]}"
			unbundled fixed-b.o prog 1 "${arches[@]}"
		} | sort | diff - got
	done
}

@test "compressed, and compressed beside plain" {
	hip -fPIC --offload-compress -c a.hip -o a.o
	COMPRESSED_BUNDLE_FORMAT_VERSION=2 hip -fPIC --offload-compress -c b.hip -o b.o
	for ld in bfd lld; do
		clang-22 -shared -fuse-ld=$ld a.o b.o c.o -o lib.so
		packs lib.so "wrappers 3 bundles 3 relocations RELATIVE"
		three lib.so | sort | diff - got
	done
}

@test "-fgpu-rdc: two wrappers, one bundle, shared ordinals" {
	for name in a b; do
		hip --no-offload-new-driver -fgpu-rdc -fPIC -c $name.hip -o $name.o
	done
	for ld in bfd:SYMBOL "lld:RELATIVE SYMBOL"; do
		clang-22 --no-offload-new-driver --hip-link -fgpu-rdc "${offload[@]}" -no-hip-rt \
			-shared -fuse-ld="${ld%%:*}" a.o b.o -o lib.so
		packs lib.so "wrappers 2 bundles 1 relocations ${ld#*:}"
		[ "$(wc -l <got)" = 4 ]
		dumped lib.so | diff - <(cut -d ' ' -f 1 got | sort -u)
		[ "$($python "$tools/readkpack.py" ls out/.kpack/g_gfx1100.kpack | cut -f 1,5)" = $'lib.so#0\t0\nlib.so#1\t0' ]
	done
	for name in a b; do
		hip --no-offload-new-driver -fgpu-rdc -fno-pic -c $name.hip -o $name.o
	done
	clang-22 --no-offload-new-driver --hip-link -fgpu-rdc "${offload[@]}" -no-hip-rt -no-pie \
		-fuse-ld=bfd a.o b.o stub.o -o prog
	packs prog "wrappers 2 bundles 1 relocations IN-PLACE"
	dumped prog | diff - <(cut -d ' ' -f 1 got | sort -u)
	# objects have bitcode, which is not linked yet
	kpack pack -q --archives-only --force --group g a.o out
	[ "$($python "$tools/readkpack.py" ls out/.kpack/g_gfx1100.kpack | cut -f 1-3)" = $'a.o#0\tgfx1100\tbc' ]
}

@test "the new driver: kind hip, small alignment with -fgpu-rdc" {
	for name in a b; do
		hip --offload-new-driver -fPIC -c $name.hip -o $name.o
	done
	clang-22 --offload-new-driver -shared -fuse-ld=lld a.o b.o -o lib.so
	packs lib.so "wrappers 2 bundles 2 relocations RELATIVE"
	dumped lib.so | diff - <(cut -d ' ' -f 1 got | sort -u)
	$python "$tools/readkpack.py" toc out/.kpack/g_gfx1100.kpack | grep -q '"hip-amdgcn-amd-amdhsa--gfx1100"'
	for name in a b; do
		hip --offload-new-driver -fgpu-rdc -fPIC -c $name.hip -o $name.o
	done
	clang-22 --offload-new-driver --hip-link -fgpu-rdc "${offload[@]}" -no-hip-rt -shared \
		-fuse-ld=lld a.o b.o -o lib.so
	packs lib.so "wrappers 1 bundles 1 relocations RELATIVE"
	dumped lib.so | diff - <(cut -d ' ' -f 1 got | sort -u)
}

@test "AArch64" {
	for name in a b; do
		hip --target=aarch64-linux-gnu -fPIC -c $name.hip -o $name.o
	done
	for relocations in "RELATIVE:-z,norelro" "RELR:-z,pack-relative-relocs"; do
		clang-22 --target=aarch64-linux-gnu -shared -nostdlib -fuse-ld=lld \
			-Wl,"${relocations#*:}" a.o b.o -o lib.so
		packs lib.so "wrappers 2 bundles 2 relocations ${relocations%%:*}"
		dumped lib.so | diff - <(cut -d ' ' -f 1 got | sort -u)
	done
}

@test "bare files of the compiler" {
	hip --cuda-device-only --gpu-bundle-output -c a.hip -o a.hipfb
	hip --cuda-device-only --gpu-bundle-output --offload-compress -c a.hip -o z.hipfb
	for file in a z; do
		rm -rf out
		kpack pack -q --archives-only $file.hipfb out
		unbundled $file.hipfb $file.hipfb 0 "${arches[@]}" | sort | diff - <(sums out)
	done
	# one code object alone: its header names the target
	clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx11-generic --cuda-device-only \
		--no-gpu-bundle-output -c a.hip -o a.hsaco
	rm -rf out
	kpack pack -q --archives-only a.hsaco out
	[ "$(kpack ls out/.kpack | cut -f 1,2)" = $'a.hsaco#0\tgfx11-generic' ]
	kpack cat out/.kpack/a_gfx11-generic.kpack "a.hsaco#0" gfx11-generic | cmp - a.hsaco
}

@test "an installed tree" {
	mkdir -p usr/lib usr/bin
	clang-22 -shared -fuse-ld=lld a.o b.o -o usr/lib/libone.so.1.0
	ln -s libone.so.1.0 usr/lib/libone.so
	ln usr/lib/libone.so.1.0 usr/lib/libone.so.1.hard
	clang-22 -shared a.o c.o -o usr/lib/libtwo.so
	clang-22 a.o stub.o -o usr/bin/prog
	kpack pack --json --archives-only usr out >report.json
	for file in bin/prog lib/libone.so.1.0 lib/libtwo.so; do
		fatparse sums usr/$file $file
	done | sort | diff - <(sums out)
	# a.o is in all three and stored once for each architecture
	$python - <<-'END'
	import json
	rows = {r["arch"]: r for r in json.load(open("report.json"))["arches"]}
	assert rows["gfx1100"]["objects"] == 5 and rows["gfx1100"]["deduplicated"] == 2, rows
	assert rows["gfx1201"]["objects"] == 1 and rows["gfx1201"]["deduplicated"] == 0, rows
	END
}
