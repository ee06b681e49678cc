#!/usr/bin/env bats
# tests/loaders, which find and open kernel databases as the real libraries do, decide the
# same and get the same bytes from the installed tree and from the mount.

load databases.bash

loader() { timeout 600 "$KPACK_BIN/tests/loaders/$1" "${@:2}"; }

fft=fft_rtc_fwd_len20_factors_2_10_wgs_64_tpt_2_halfLds_dim1_sp_ip_CI_unitstride_sbrr_
fft+=dirReg_intrinsicReadWrite

# names of kernels that a database of rocFFT has, and one that it has not
fft_names() { # DATABASE ARCH N
	py "$@" <<-'END'
	import sqlite3, sys
	rows = sqlite3.connect(sys.argv[1]).execute(
	    "SELECT kernel_name FROM cache_v1 WHERE arch = ? ORDER BY random()", sys.argv[2:3]).fetchall()
	print(*[r[0] for r in rows[:int(sys.argv[3])]], "no_such_kernel", sep="\n")
	END
}

kernels() {
	printf '%s\n' --kernel naive_conv_1.cpp.o " -DMIOPEN_USE_FP16=1 -mcpu=$1" \
		--kernel naive_conv_3.cpp.o " -DMIOPEN_USE_FP16=1 -mcpu=$1" --kernel none none
}

# What libraries say that find their databases from where they are, below ROOT/lib.
by_place() { # ROOT
	local lib=$1/lib args
	loader rocblas --so "$lib/librocblas.so.4" --cus 104 gfx90a
	loader rocblas --so "$lib/librocblas.so.4" --xnack + gfx90a
	loader rocblas --so "$lib/librocblas.so.4" --all gfx90a
	loader rocblas --so "$lib/librocblas.so.4" gfx1100
	! loader rocblas --so "$lib/librocblas.so.4" gfx906 || false
	loader hipblaslt --so "$lib/libhipblaslt.so.0" --cus 80 gfx942
	loader hipblaslt --so "$lib/libhipblaslt.so.0" --all gfx90a
	loader hipblaslt --sparse --so "$lib/libhipsparselt.so.0" gfx950
	loader aotriton --so "$lib/libaotriton_v2.so" <"$T/aotriton.names"
	loader rocfft --check --so "$lib/librocfft.so.0" gfx90a <"$T/fft.names"
	loader rocfft --new --so "$lib/librocfft.so.0" gfx12-generic <<<"$fft"
	mapfile -t args < <(kernels gfx90a)
	loader miopen --so "$lib/libMIOpen.so.1" "${args[@]}" gfx90a 104
	mapfile -t args < <(kernels gfx1030)
	loader miopen --so "$lib/libMIOpen.so.1" "${args[@]}" gfx1030 40
	loader miopen --so "$lib/libMIOpen.so.1" gfx942 256
}

# What they say with variables that lead to ROOT.
by_environment() { # ROOT
	local lib=$1/lib args
	ROCBLAS_TENSILE_LIBPATH=$lib/rocblas/library loader rocblas --cus 104 gfx90a
	ROCBLAS_TENSILE_LIBPATH=$lib/rocblas/library loader rocblas --all gfx1100
	HIPBLASLT_TENSILE_LIBPATH=$lib/hipblaslt/library \
		HIPBLASLT_EXT_OP_LIBRARY_PATH=$lib/hipblaslt/library/hipblasltExtOpLibrary.dat \
		loader hipblaslt gfx942
	ROCSPARSELT_TENSILE_LIBPATH=$lib/hipsparselt/library loader hipblaslt --sparse gfx942
	ROCFFT_RTC_SYS_CACHE_PATH=$lib/rocfft/rocfft_kernel_cache.db \
		loader rocfft --check gfx90a <"$T/fft.names"
	mapfile -t args < <(kernels gfx90a)
	MIOPEN_SYSTEM_DB_PATH=$1/share/miopen/db loader miopen "${args[@]}" gfx90a 100
}

# Prepare what is asked for; the packed tree is out.
begin() {
	packed all
	cp -a "$F/all.out" out
	(cd "$F/all/lib/aotriton.images" && find . -type f -printf '%P\n' | sort) >aotriton.names
	echo "amd-gfx942/flash/attn_fwd/none.aks2" >>aotriton.names
	fft_names "$F/all/lib/rocfft/rocfft_kernel_cache.db" gfx90a 9 >fft.names
	mkdir mnt
}

# A report that something was found in.
complete() { # REPORT KERNELS
	cat "$1"
	[ "$(grep -c '^kernel ' "$1")" -ge "$2" ]
	! grep -E ' 0x0|: 0,|descriptor 0$|WRONG|no code for|error' "$1" || false
}

dirs='lib/rocblas/library lib/hipblaslt/library lib/hipsparselt/library lib/aotriton.images
	share/miopen/db'

@test "by the environment" {
	begin
	by_environment "$F/all" >before
	complete before 30 >/dev/null
	kpackfs out/.kpack mnt
	by_environment "$T/mnt" >after
	diff before after
	for so in lib/libMIOpenCKGroupedConv_gfx942.so lib/libMIOpenCKGroupedConv_gfx90a.so; do
		loader ck "$F/all/$so" >ck.before
		loader ck "$T/mnt/$so" | diff ck.before -
	done
}

@test "mounted in place, each directory for itself" {
	begin
	by_place "$F/all" >before
	complete before 60 >/dev/null
	[ "$(grep -c '^code ' before)" = 10 ]
	[ "$(grep -c '^image ' before)" -gt 40 ]
	for d in $dirs; do
		kpackfs -o subdir=$d out/.kpack out/$d
	done
	# a directory that has files of the host, too
	kpackfs -o subdir=lib/rocfft out/.kpack mnt
	ln -s "$T/mnt/"*.db out/lib/rocfft/
	by_place "$T/out" >after
	diff before after
}

@test "symbolic links in place" {
	begin
	by_place "$F/all" >before
	kpackfs out/.kpack mnt
	for d in $dirs; do
		find out/$d -depth -type d -empty -delete
		ln -s "$T/mnt/$d" out/$d
	done
	ln -s "$T/mnt/lib/rocfft/"*.db out/lib/rocfft/
	by_place "$T/out" >after
	diff before after
}

@test "an overlay of the host's tree and the mount" {
	as_root
	begin
	by_place "$F/all" >before
	kpackfs out/.kpack mnt
	mkdir merged
	mount -t overlay overlay -o "ro,lowerdir=$T/mnt:$T/out" merged
	by_place "$T/merged" >after
	diff before after
	by_environment "$F/all" >before
	by_environment "$T/merged" >after
	diff before after
	for so in lib/libMIOpenCKGroupedConv_gfx942.so lib/libMIOpenCKGroupedConv_gfx90a.so; do
		loader ck "$F/all/$so" >ck.before
		loader ck "$T/merged/$so" | diff ck.before -
	done
	[ "$(readlink merged/lib/librocblas.so)" = librocblas.so.4 ]
}

@test "what is missing is missing in the same way" {
	begin
	by_place "$F/all" >complete
	cp -a "$F/all" in
	rm in/lib/rocblas/library/TensileLibrary_Type_SS_*_Bljk_*_gfx1100.dat
	rm in/lib/rocblas/library/TensileLibrary_Type_HH_*_Bljk_*_gfx90a.co
	rm in/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco
	rm in/lib/hipblaslt/library/TensileLibrary_Type_BS_*_gfx942.dat
	rm in/lib/hipblaslt/library/hipblasltTransform.hsaco
	rm in/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/*bf16*
	rm in/lib/rocfft/rocfft_kernel_cache_gfx12-generic.db
	rm in/share/miopen/db/gfx90a.kdb in/share/miopen/db/gfx90a68.db.txt
	by_place "$T/in" >before
	! diff -q complete before || false
	[ "$(grep -c ENOENT before)" -gt "$(grep -c ENOENT complete)" ]
	rm -rf out
	kpack pack -q --group all in out
	for d in $dirs; do
		kpackfs -o subdir=$d out/.kpack out/$d
	done
	kpackfs -o subdir=lib/rocfft out/.kpack mnt
	ln -s "$T/mnt/"*.db out/lib/rocfft/
	by_place "$T/out" >after
	diff before after
}

@test "every generation of rocBLAS's and hipBLASLt's directories" {
	generation() { # ROOT KIND
		case $2 in
		rocblas-feature) set -- "$@" "--xnack + gfx90a" "--xnack - gfx90a" ;;
		rocblas-merged) set -- "$@" gfx900 gfx906 ;;
		rocblas-mixed) set -- "$@" gfx942 gfx1100 ;;
		rocblas-arch) set -- "$@" gfx942 "--xnack + gfx90a" gfx1151 "--all gfx90a" ;;
		hipblaslt-arch) set -- "$@" gfx942 "--variant gfx1250-strict gfx1250" \
			"--variant gfx1250v0 gfx1250" ;;
		esac
		local gpu root=$1 library=${2%-*}
		for gpu in "${@:3}"; do
			# shellcheck disable=SC2086 # words are meant
			loader $library --so "$root/lib/lib$library.so.0" $gpu
		done
	}
	tree all
	mkdir mnt
	for kind in rocblas-mixed rocblas-arch rocblas-merged rocblas-feature hipblaslt-arch; do
		packed $kind
		library=${kind%-*}
		mkdir -p $kind/lib/$library/library
		cp "$F/all/lib/librocblas.so.4" $kind/lib/lib$library.so.0
		mkdir old
		cp -a "$F/$kind/lib" old/
		cp $kind/lib/lib$library.so.0 old/lib/
		generation old $kind >before
		complete before 0 >/dev/null
		grep -q 'module .*co [0-9]' before
		kpackfs -o subdir=lib/$library/library "$F/$kind.out/.kpack" $kind/lib/$library/library
		generation $kind $kind >after
		diff before after
		umount $kind/lib/$library/library || fusermount3 -u $kind/lib/$library/library
		rm -rf old
	done
	# the directory of a GPU, given by the variable, without those of others beside it
	kpackfs "$F/hipblaslt-arch.out/.kpack" mnt
	for root in "$F/hipblaslt-arch" mnt; do
		HIPBLASLT_TENSILE_LIBPATH=$root/lib/hipblaslt/library/gfx1250v0 \
			loader hipblaslt gfx1250 >report.${root##*/}
	done
	grep -q 'inflated TensileLibrary_lazy_gfx1250' report.mnt
	diff report.hipblaslt-arch report.mnt
}

@test "AOTriton's zips are read from their ends" {
	packed aotriton-flatzip
	tree all
	cp -a "$F/aotriton-flatzip" old
	mkdir -p new/lib/aotriton.images
	cp "$F/all/lib/libaotriton_v2.so" old/lib
	cp "$F/all/lib/libaotriton_v2.so" new/lib
	(cd old/lib/aotriton.images && find . -type f -printf '%P\n' | sort) >names
	kpackfs -o subdir=lib/aotriton.images "$F/aotriton-flatzip.out/.kpack" new/lib/aotriton.images
	loader aotriton --so old/lib/libaotriton_v2.so <names >before
	loader aotriton --so new/lib/libaotriton_v2.so <names >after
	diff before after
	[ "$(grep -c '^zip ' after)" = 4 ]
	[ "$(grep -c 'did not compile' after)" = 84 ]
}

@test "eight processes ask a large database of rocFFT; few chunks are decoded" {
	packed rocfft-big
	mkdir mnt
	db=lib/rocfft/rocfft_kernel_cache.db
	fft_names "$F/rocfft-big/$db" gfx1100 3 >names
	ROCFFT_RTC_SYS_CACHE_PATH=$F/rocfft-big/$db loader rocfft -p 8 gfx1100 <names >before
	[ "$(grep -c '^code' before)" = 24 ]
	kpackfs "$F/rocfft-big.out/.kpack" mnt
	ROCFFT_RTC_SYS_CACHE_PATH=$T/mnt/$db loader rocfft -p 8 gfx1100 <names >after
	diff before after
	size=$(stat -c %s mnt/$db)
	[ "$size" -gt 100000000 ]
	decoded=$(sed -E 's/.*"bytes_decoded": ([0-9]+).*/\1/' mnt/.kpackfs/stats)
	[ "$decoded" -gt 0 ]
	[ "$decoded" -lt $((8 << 20)) ]
	cmp "$F/rocfft-big/$db" mnt/$db
}

@test "hundreds of modules stay mapped, whatever becomes of pages and archives" {
	packed hipblaslt-many
	mkdir src mnt
	cp "$F/hipblaslt-many.out/.kpack/"*.kpack src
	kpackfs src mnt
	py "$KPACK_BIN/tests/loaders/hipblaslt" "$F/hipblaslt-many" "$F" <<-'END'
	import os, shutil, subprocess, sys
	def start(root):
	    env = dict(os.environ, HIPBLASLT_TENSILE_LIBPATH=root + "/lib/hipblaslt/library")
	    return subprocess.Popen([sys.argv[1], "--all", "--hold", "gfx942"], env=env, text=True,
	                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
	def report(p):
	    lines = []
	    while not lines or not lines[-1].startswith("held "):
	        lines.append(p.stdout.readline())
	        assert lines[-1], lines
	    return lines
	def again(p):
	    p.stdin.write("again\n")
	    p.stdin.flush()
	    return report(p)
	old, new = start(sys.argv[2]), start("mnt")
	want = report(old)
	assert report(new) == want
	assert int(want[-1].split()[1]) >= 500, want[-1]
	still = again(old)
	assert again(new) == still
	assert len(still) == int(want[-1].split()[1]) + 1
	shutil.copy(sys.argv[3] + "/hipblaslt-many.out/.kpack/hipblaslt-many_generic.kpack",
	            "src/.new")
	os.rename("src/.new", "src/another_generic.kpack")
	assert again(new) == still
	os.unlink("src/hipblaslt-many_gfx942.kpack")  # its modules stay
	assert again(new) == still
	for p in old, new:
	    p.stdin.close()
	    assert p.wait() == 0
	END
}
