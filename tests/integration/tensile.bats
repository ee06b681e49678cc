#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Databases of rocBLAS, hipBLASLt and hipSPARSELt in archives: the GPU of each file, and
# its entry in the TOC.  clang makes the code objects, clang-offload-bundler the bundles,
# Python's msgpack and zlib the databases.

# bats file_tags=single, all

load packing.bash

hh=TensileLibrary_Type_HH_HPA_Contraction_l_Ailk_Bjlk_Cijk_Dijk

# A code object for TARGET.
code() { # TARGET FILE
	mkdir -p "$(dirname "$2")"
	echo 'kernel void k(global int *p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }' |
		clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu="$1" -nogpulib -O3 \
			-o "$2" -
}

# A bundle of code objects for TARGETs; OPTION may be --compress.
bundle() { # OPTION FILE TARGET...
	local option=$1 file=$2 targets=host-x86_64-unknown-linux-gnu target n=0
	local inputs=(--input=/dev/null)
	shift 2
	mkdir -p "$(dirname "$file")"
	for target; do
		code "$target" part$n.co
		targets+=,hipv4-amdgcn-amd-amdhsa--$target
		inputs+=(--input=part$n.co)
		n=$((n + 1))
	done
	clang-offload-bundler-22 $option --type=o --bundle-align=4096 --targets="$targets" \
		"${inputs[@]}" --output="$file"
}

# A database of SOLUTIONS kernels; compressed when it is called .zlib.
dat() { # FILE SOLUTIONS
	mkdir -p "$(dirname "$1")"
	py "$1" "$2" <<-'END'
	import sys, zlib, msgpack
	rows = [{"name": "Cijk_%d" % i, "index": i} for i in range(int(sys.argv[2]))]
	data = msgpack.packb({"solutions": rows, "library": {"type": "Matching"}})
	if sys.argv[1].endswith(".zlib"):
	    data = zlib.compress(data)
	open(sys.argv[1], "wb").write(data)
	END
}

# "key arch" of everything in the archives of OUT, sorted.
archs() { # OUT
	py "$1" <<-'END'
	import glob, sys, readkpack
	for path in glob.glob(sys.argv[1] + "/.kpack/*.kpack"):
	    for key, arch, entry in readkpack.Archive(path).entries():
	        print(key, arch)
	END
}

# The fact NAME of the entry KEY; "none".
fact() { # OUT KEY NAME
	py "$@" <<-'END'
	import glob, sys, readkpack
	out, wanted, name = sys.argv[1:]
	for path in glob.glob(out + "/.kpack/*.kpack"):
	    for key, arch, entry in readkpack.Archive(path).entries():
	        if key == wanted:
	            print(entry["metadata"].get(name, "none"))
	END
}

# Each file's bytes, as Python reads them out of the archives, are those of TREE.
same_bytes() { # TREE OUT
	py "$@" <<-'END'
	import glob, os, sys, readkpack
	tree, out = sys.argv[1:]
	left = {os.path.relpath(os.path.join(d, f), tree)
	        for d, _, files in os.walk(tree) for f in files}
	for path in glob.glob(out + "/.kpack/*.kpack"):
	    a = readkpack.Archive(path)
	    for key, arch, entry in a.entries():
	        file = entry["metadata"]["path"]
	        assert a.get(entry) == open(os.path.join(tree, file), "rb").read(), file
	        left.discard(file)
	assert not left, left
	END
}

@test "real code objects are for the GPU that they were compiled for" {
	local l=in/lib/rocblas/library target
	for target in gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201 gfx1250 \
		gfx9-generic gfx9-4-generic gfx10-3-generic gfx11-generic gfx12-generic; do
		code $target $l/${hh}_$target.co
	done
	code gfx90a:xnack+ $l/Kernels.so-000-gfx90a-xnack+.hsaco
	code gfx90a:xnack- $l/Kernels.so-000-gfx90a-xnack-.hsaco
	code gfx90a:sramecc+:xnack- $l/Kernels.so-000-gfx90a-sramecc+-xnack-.hsaco
	kpack pack in out 2>err >summary
	[ ! -s err ] || { cat err; false; }
	archs out | sort >got
	(
		for target in gfx906 gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201 gfx1250 \
			gfx9-generic gfx9-4-generic gfx10-3-generic gfx11-generic gfx12-generic; do
			echo "${l#in/}/${hh}_$target.co $target"
		done
		echo "${l#in/}/Kernels.so-000-gfx90a-xnack+.hsaco gfx90a:xnack+"
		echo "${l#in/}/Kernels.so-000-gfx90a-xnack-.hsaco gfx90a:xnack-"
		echo "${l#in/}/Kernels.so-000-gfx90a-sramecc+-xnack-.hsaco gfx90a:sramecc+:xnack-"
	) | sort >expected
	diff -u expected got
	same_bytes in out
	[ "$(fact out "${l#in/}/Kernels.so-000-gfx90a-xnack+.hsaco" xnack)" = True ]
	[ "$(fact out "${l#in/}/${hh}_gfx942.co" container)" = elf ]
}

@test "bundles, compressed or not: their one target, the named one, or neutral" {
	local l=in/lib/hipblaslt/library k=lib/hipblaslt/library
	bundle --compress $l/rr_custom_kernels.co gfx950
	bundle --compress $l/${hh}_gfx90a-xnack+.co gfx90a:xnack+
	bundle "" $l/hipblasltTransform.hsaco gfx90a gfx942
	bundle "" $l/gfx942/hipblasltTransform_gfx942.hsaco gfx942
	bundle --compress $l/wrong_gfx1100.co gfx942
	bundle --compress $l/both_gfx942.co gfx942 gfx1100
	kpack pack in out 2>err >summary
	archs out | sort >got
	sort >expected <<-END
	$k/rr_custom_kernels.co gfx950
	$k/${hh}_gfx90a-xnack+.co gfx90a:xnack+
	$k/hipblasltTransform.hsaco generic
	$k/gfx942/hipblasltTransform_gfx942.hsaco gfx942
	$k/wrong_gfx1100.co gfx942
	$k/both_gfx942.co gfx942
	END
	diff -u expected got
	same_bytes in out
	[ "$(fact out $k/rr_custom_kernels.co container)" = ccob ]
	[ "$(fact out $k/hipblasltTransform.hsaco container)" = bundle ]
	# and disagreement is reported
	grep -q "$k/wrong_gfx1100.co: warning: named for gfx1100, but its code is for gfx942" err
	grep -q "$k/both_gfx942.co: warning: named for gfx942" err
	[ "$(wc -l <err)" -eq 2 ] || { cat err; false; }
}

@test "three generations and a mixture: directories, names, neutral files" {
	local r=in/lib/rocblas/library h=in/lib/hipblaslt/library s=in/lib/hipsparselt/library
	dat $r/TensileLibrary_lazy_gfx1100.dat 0
	dat $r/${hh}_CU104_gfx90a.dat 300
	dat $r/${hh}_fallback.dat 20
	code gfx1100 $r/${hh}_fallback_gfx1100.hsaco
	dat $r/gfx942/${hh}_fallback_gfx942.dat 20
	echo /build/x.co >$r/gfx942/TensileManifest.txt
	echo /build/x.co >$r/TensileManifest.txt
	: >$r/${hh}_gfx1030.co
	dat $h/gfx942/TensileLibrary_lazy_gfx942.dat.zlib 0
	dat $h/gfx942/${hh}_gfx942.dat.zlib 70000
	dat $h/gfx1250-strict/${hh}_gfx1250.dat 3
	dat $h/TensileLiteLibrary_lazy_Mapping.dat 1
	dat $s/TensileLibrary_BB_BB_A_gfx942.dat 5
	kpack pack in out 2>err >summary
	[ ! -s err ] || { cat err; false; }
	archs out | sed "s/$hh/HH/" | sort >got
	sort >expected <<-END
	lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat gfx1100
	lib/rocblas/library/HH_CU104_gfx90a.dat gfx90a
	lib/rocblas/library/HH_fallback.dat generic
	lib/rocblas/library/HH_fallback_gfx1100.hsaco gfx1100
	lib/rocblas/library/gfx942/HH_fallback_gfx942.dat gfx942
	lib/rocblas/library/gfx942/TensileManifest.txt gfx942
	lib/rocblas/library/TensileManifest.txt generic
	lib/rocblas/library/HH_gfx1030.co gfx1030
	lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat.zlib gfx942
	lib/hipblaslt/library/gfx942/HH_gfx942.dat.zlib gfx942
	lib/hipblaslt/library/gfx1250-strict/HH_gfx1250.dat gfx1250
	lib/hipblaslt/library/TensileLiteLibrary_lazy_Mapping.dat generic
	lib/hipsparselt/library/TensileLibrary_BB_BB_A_gfx942.dat gfx942
	END
	diff -u expected got
	same_bytes in out

	r=lib/rocblas/library h=lib/hipblaslt/library
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat cu_count)" = 104 ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat kernel_count)" = 300 ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat types)" = HH ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat transpose_a)" = False ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat transpose_b)" = True ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat role)" = child ]
	[ "$(fact out $r/${hh}_CU104_gfx90a.dat library)" = rocblas ]
	[ "$(fact out $h/gfx942/${hh}_gfx942.dat.zlib container)" = zlib ]
	[ "$(fact out $h/gfx1250-strict/${hh}_gfx1250.dat variant)" = gfx1250-strict ]
	[ "$(fact out $h/gfx1250-strict/${hh}_gfx1250.dat library)" = hipblaslt ]
}

@test "trees as the paper draws them have its keys too" {
	local r=in/rocblas/library h=in/hipblaslt/library/TensileLibrary
	mkdir -p $r
	echo '[]' >$r/TensileLibrary.yaml
	code gfx1100 $r/gfx1100/kernel_1.co
	code gfx90a:xnack+ $r/gfx90a-xnack+/kernel_1.co
	code gfx1100 $h/gfx1100/gemm_4096x4096x512_FP16_NT.co
	kpack pack -q in out
	archs out | sort >got
	sort >expected <<-'END'
	rocblas/library/TensileLibrary.yaml generic
	rocblas/library/gfx1100/kernel_1.co gfx1100
	rocblas/library/gfx90a-xnack+/kernel_1.co gfx90a:xnack+
	rocblas/gfx1100/kernel_1 gfx1100
	rocblas/gfx90a:xnack+/kernel_1 gfx90a:xnack+
	hipblaslt/library/TensileLibrary/gfx1100/gemm_4096x4096x512_FP16_NT.co gfx1100
	hipblaslt/gfx1100/gemm_4096x4096x512_FP16_NT gfx1100
	END
	diff -u expected got
	same_bytes in out
	[ "$(fact out hipblaslt/gfx1100/gemm_4096x4096x512_FP16_NT K)" = 512 ]
	[ "$(fact out hipblaslt/gfx1100/gemm_4096x4096x512_FP16_NT datatype)" = FP16 ]
	[ "$(fact out hipblaslt/gfx1100/gemm_4096x4096x512_FP16_NT transpose_b)" = True ]

	# without the YAML file it is a tree with a directory per GPU like any other
	rm -r out $r/TensileLibrary.yaml
	kpack pack -q in out
	! archs out | grep -q '^rocblas/gfx' || false
}

@test "a damaged code object is packed as it is, and reported" {
	local l=in/lib/rocblas/library
	code gfx942 whole.co
	mkdir -p $l
	head -c 700 whole.co >$l/short_gfx942.co
	bundle --compress whole.ccob gfx942
	head -c 40 whole.ccob >$l/ccob_gfx942.co
	kpack pack in out 2>err >summary
	grep -q 'short_gfx942.co: warning: damaged' err
	grep -q 'ccob_gfx942.co: warning: damaged' err
	[ "$(archs out | grep -c ' gfx942$')" -eq 2 ]
	same_bytes in out
}

@test "a directory is known by its files: versions, multiarch, other names" {
	local d
	dat in/usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/TensileLibrary_lazy_gfx1100.dat 0
	dat in/usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/"$hh"_fallback.dat 2
	code gfx1100 in/usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/"$hh"_fallback_gfx1100.hsaco
	dat in/usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library/notes.txt 1
	code gfx942 in/opt/kernels/lt/gfx942/extop_gfx942.co
	echo '{}' >in/opt/kernels/lt/README
	code gfx942 in/opt/other/gfx942/extra.co
	kpack pack --group g in out >out.txt
	archs out | sort >have
	d=usr/lib/x86_64-linux-gnu/rocblas/4.4.1/library
	LC_ALL=C sort >want <<-END
	$d/TensileLibrary_lazy_gfx1100.dat gfx1100
	$d/${hh}_fallback.dat generic
	$d/${hh}_fallback_gfx1100.hsaco gfx1100
	$d/notes.txt generic
	opt/kernels/lt/gfx942/extop_gfx942.co gfx942
	END
	grep -v opt/other have | diff want -
	[ "$(fact out opt/kernels/lt/gfx942/extop_gfx942.co library)" = hipblaslt ]
	[ "$(fact out "$d/notes.txt" library)" = rocblas ]
	[ ! -e "out/$d/notes.txt" ]
	[ -e out/opt/kernels/lt/README ]
	grep -qF "subdir=$d" out.txt
	kpack split -q in split
	(cd split && find . -path '*rocblas*' -type f | LC_ALL=C sort) >have
	diff - have <<-END
	./in_generic/$d/${hh}_fallback.dat
	./in_generic/$d/notes.txt
	./in_gfx1100/$d/${hh}_fallback_gfx1100.hsaco
	./in_gfx1100/$d/TensileLibrary_lazy_gfx1100.dat
	END
}

@test "a new build of a file that only its neighbours identify replaces the old one" {
	dat in/opt/x/library/TensileLibrary_lazy_gfx942.dat 1
	code gfx942 in/opt/x/library/custom.co
	mkdir -p in/lib
	mkfat --arches gfx942 in/lib/libx.so
	kpack pack -q --databases plain --group g in out
	printf '\1' | dd of=in/opt/x/library/custom.co bs=1 conv=notrunc status=none \
		seek=$(($(stat -c %s in/opt/x/library/custom.co) - 1))
	kpack pack -q --databases plain --group g in out
	cmp in/opt/x/library/custom.co out/opt/x/library/custom.co
	# a file for every GPU does not
	echo 1 >in/opt/x/library/metadata.yaml
	kpack pack -q --databases plain --group g in out
	echo 2 >in/opt/x/library/metadata.yaml
	fails "other bytes than in" -q --databases plain --group g in out
}
