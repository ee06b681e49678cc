#!/usr/bin/env bats
# Device code wherever compilers and archivers put it: static libraries of every kind of
# fat object, archives of other tools.  inspect must find what LLVM's own
# tools extract from the single files; archives of device code must equal LLVM's byte for
# byte.

# bats file_tags=all, single

python=/usr/bin/python3
bundler=clang-offload-bundler-22

have() {
	local program
	for program in clang-22 $bundler llvm-offload-binary-22 llvm-objcopy-22 llvm-ar-22; do
		command -v $program >/dev/null || return 1
	done
}

kpack() { "$KPACK_BIN/kpack" "$@"; }
hip() { clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx1100 --offload-arch=gfx90a "$@"; }

source_file() {
	cat <<-END
	#define __global__ __attribute__((global))
	struct dim3 { unsigned x, y, z; };
	extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
	extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
	extern "C" unsigned __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void * = 0);
	extern "C" __global__ void kernel_$1(int *p) { p[0] += sizeof "$1"; }
	END
}

setup_file() {
	have || return 0
	cd "$BATS_FILE_TMPDIR"
	local name
	for name in plain packed rdc new; do source_file $name >$name.hip; done
	hip -c plain.hip -o plain.o
	hip --offload-compress -c packed.hip -o packed.o
	hip -fgpu-rdc --no-offload-new-driver -c rdc.hip -o rdc.o
	hip -fgpu-rdc --offload-new-driver -c new.hip -o new.o
	printf 'text' >notes.txt
}

setup() {
	have || skip "no clang-22, clang-tools-22 or llvm-22"
	cd "$BATS_TEST_TMPDIR"
	cp "$BATS_FILE_TMPDIR"/* .
}

# "ARCH SHA256" of every image of FILE for a GPU, as inspect finds them
found() {
	kpack inspect --json "$1" | $python -c '
import json, sys
for i in json.load(sys.stdin)["images"]:
    if (i["arch"] or "").startswith("gfx"):
        print(i["arch"], i["sha256"])'
}

# The same of files NAME.gfx1100 and NAME.gfx90a
expected() {
	local name arch
	for name in "$@"; do
		for arch in gfx1100 gfx90a; do
			printf '%s %s\n' $arch "$(sha256sum <$name.$arch | cut -d' ' -f1)"
		done
	done
}

# NAME.gfx1100 and NAME.gfx90a by LLVM's own tools
unbundle() {
	local name=$1 type=$2 file=$3 prefix=$4
	$bundler -type=$type -unbundle -input=$file \
		-targets=$prefix-amdgcn-amd-amdhsa--gfx1100,$prefix-amdgcn-amd-amdhsa--gfx90a \
		-output=$name.gfx1100 -output=$name.gfx90a
}

by_llvm() {
	llvm-objcopy-22 --dump-section .hip_fatbin=plain.fb plain.o
	llvm-objcopy-22 --dump-section .hip_fatbin=packed.fb packed.o
	unbundle plain o plain.fb hipv4
	unbundle packed o packed.fb hipv4
	unbundle rdc o rdc.o hip
	llvm-offload-binary-22 new.o --image=file=new.gfx1100,arch=gfx1100
	llvm-offload-binary-22 new.o --image=file=new.gfx90a,arch=gfx90a
}

@test "a static library of every kind of fat object is read to the last image" {
	by_llvm
	expected plain packed rdc new | sort >expected
	[ "$(wc -l <expected)" = 8 ]
	llvm-ar-22 rc lib.a plain.o notes.txt packed.o rdc.o new.o
	found lib.a | sort | diff expected -
	# BSD's archives, and GNU ar's
	llvm-ar-22 --format=bsd rc bsd.a plain.o notes.txt packed.o rdc.o new.o
	found bsd.a | sort | diff expected -
	mkdir long
	for name in plain packed rdc new; do
		mv $name.o long/object_with_a_long_name_$name.o
	done
	ar rc gnu.a long/*.o
	found gnu.a | sort | diff expected -
	# a library of libraries, and one that is compressed by nobody but nests
	llvm-ar-22 qc outer.a lib.a notes.txt
	found outer.a | sort | diff expected -
}

@test "objects that a linker merged hold every image" {
	by_llvm
	command -v ld.lld-22 >/dev/null
	ld.lld-22 -r plain.o packed.o new.o -o merged.o
	expected plain packed new | sort >expected
	found merged.o | sort | diff expected -
}

# Members of all kinds of FAT.a, unbundled by both tools into archives
same_archives() {
	local target=openmp-amdgcn-amd-amdhsa--gfx90a
	$bundler -type=a -unbundle -targets=$target -input=$1 -output=theirs.a "${@:2}"
	"$KPACK_BIN/clang/clang-offload-bundler" -type=a -unbundle -targets=$target \
		-input=$1 -output=ours.a "${@:2}"
	cmp theirs.a ours.a
}

@test "archives of device code are LLVM's byte by byte" {
	local host=host-x86_64-unknown-linux-gnu- target=openmp-amdgcn-amd-amdhsa--gfx90a
	local i=0 member
	cat >dev.cpp <<-END
	int defined = 3; static int local; extern int undefined; int common;
	namespace { int hidden() { return local++; } }
	template <class T> T instance(T x) { return x + hidden(); }
	inline int inlined() { static int n; return ++n; }
	__attribute__((weak)) int weak() { return undefined; }
	int function(int x) { return instance(x) + inlined(); }
	__attribute__((visibility("hidden"))) int invisible;
	END
	clang-22 -c dev.cpp -o host.o
	clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -c -emit-llvm dev.cpp -o dev.bc
	clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -c dev.cpp -o dev.o
	clang-22 -fembed-bitcode=all -c dev.cpp -o embedded.o
	clang-22 -flto -ffat-lto-objects -c dev.cpp -o fatlto.o
	clang-22 -shared -fPIC -nostdlib dev.cpp -o dev.so
	for member in dev.bc dev.o embedded.o fatlto.o dev.so notes.txt dev.bc; do
		i=$((i + 1))
		$bundler -type=bc -targets=$host,$target -input=host.o -input=$member -output=m$i.bc
		$bundler -type=o -targets=$host,$target -input=host.o -input=$member -output=o$i.o
	done
	for member in m?.bc o?.o; do
		rm -f one.a
		llvm-ar-22 rcS one.a $member
		same_archives one.a
	done
	llvm-ar-22 rcS all.a m?.bc o?.o notes.txt
	same_archives all.a
	# several members of one name
	mkdir again
	cp m1.bc again/m2.bc
	llvm-ar-22 qcS twice.a m1.bc m2.bc again/m2.bc o1.o
	same_archives twice.a
	[ "$(llvm-ar-22 t ours.a | sort | uniq -d | wc -l)" = 1 ]
	# no member at all
	llvm-ar-22 rcS none.a notes.txt plain.o
	same_archives none.a -allow-missing-bundles
	[ "$(stat -c %s ours.a)" = 8 ]
}
