#!/usr/bin/env bats
# tests/loaders, which find and open kernel databases as the real libraries do, decide the
# same and get the same bytes from the installed tree and from the mount.

load databases.bash

loader() { "$KPACK_BIN/tests/loaders/$1" "${@:2}"; }

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
	ROCFFT_RTC_SYS_CACHE_PATH=$lib/rocfft/rocfft_kernel_cache.db \
		loader rocfft --check gfx90a <"$T/fft.names"
	mapfile -t args < <(kernels gfx90a)
	MIOPEN_SYSTEM_DB_PATH=$1/share/miopen/db loader miopen "${args[@]}" gfx90a 100
}

# Prepare what is asked for; the packed tree is out.
begin() {
	packed all
	cp -a "$F/all.out" out
	fft_names "$F/all/lib/rocfft/rocfft_kernel_cache.db" gfx90a 9 >fft.names
	mkdir mnt
}

# A report that something was found in.
complete() { # REPORT KERNELS
	cat "$1"
	[ "$(grep -c '^kernel ' "$1")" -ge "$2" ]
	! grep -E ' 0x0|: 0,|descriptor 0$|WRONG|no code for|error' "$1" || false
}

# Directories that have only files of archives
dirs='lib/rocblas/library share/miopen/db'

@test "by the environment, and mounted in place, by symbolic links, and in an overlay" {
	begin
	by_place "$F/all" >before
	complete before 40
	[ "$(grep -c '^code ' before)" = 10 ]
	by_environment "$F/all" >before.environment
	complete before.environment 20
	# each directory for itself; one has files of the host, too
	for d in $dirs; do
		kpackfs -o subdir=$d out/.kpack out/$d
	done
	kpackfs -o subdir=lib/rocfft out/.kpack mnt
	ln -s "$T/mnt/"*.db out/lib/rocfft/
	by_place "$T/out" | diff before -
	for d in $dirs mnt; do
		umount "out/$d" 2>/dev/null || fusermount3 -qu "out/$d" || umount "$d" || fusermount3 -u "$d"
	done
	rm out/lib/rocfft/*.db
	# the whole
	kpackfs out/.kpack mnt
	by_environment "$T/mnt" | diff before.environment -
	for d in $dirs; do
		find out/$d -depth -type d -empty -delete
		ln -s "$T/mnt/$d" out/$d
	done
	ln -s "$T/mnt/lib/rocfft/"*.db out/lib/rocfft/
	by_place "$T/out" | diff before -
	[ "$(id -u)" = 0 ] || return 0 # only root mounts overlays
	rm out/lib/rocfft/*.db
	for d in $dirs; do
		rm out/$d
	done
	mkdir merged
	mount -t overlay overlay -o "ro,lowerdir=$T/mnt:$T/out" merged
	by_place "$T/merged" | diff before -
	by_environment "$T/merged" | diff before.environment -
	[ "$(readlink merged/lib/librocblas.so)" = librocblas.so.4 ]
}

@test "what is missing is missing in the same way" {
	begin
	by_place "$F/all" >complete
	cp -a "$F/all" in
	rm in/lib/rocblas/library/TensileLibrary_Type_SS_*_Bljk_*_gfx1100.dat
	rm in/lib/rocblas/library/TensileLibrary_Type_HH_*_Bljk_*_gfx90a.co
	rm in/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco
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

# bats test_tags=all
@test "every generation of rocBLAS's directories" {
	generation() { # ROOT KIND
		case $2 in
		rocblas-feature) set -- "$@" "--xnack + gfx90a" "--xnack - gfx90a" ;;
		rocblas-merged) set -- "$@" gfx900 gfx906 ;;
		rocblas-mixed) set -- "$@" gfx942 gfx1100 ;;
		rocblas-arch) set -- "$@" gfx942 "--xnack + gfx90a" gfx1151 "--all gfx90a" ;;
		esac
		local gpu root=$1
		for gpu in "${@:3}"; do
			# shellcheck disable=SC2086 # words are meant
			loader rocblas --so "$root/lib/librocblas.so.0" $gpu
		done
	}
	tree all
	for kind in rocblas-mixed rocblas-arch rocblas-merged rocblas-feature; do
		packed $kind
		mkdir -p $kind/lib/rocblas/library old
		cp "$F/all/lib/librocblas.so.4" $kind/lib/librocblas.so.0
		cp -a "$F/$kind/lib" old/
		cp $kind/lib/librocblas.so.0 old/lib/
		generation old $kind >before
		complete before 0 >/dev/null
		grep -q 'module .*co [0-9]' before
		kpackfs -o subdir=lib/rocblas/library "$F/$kind.out/.kpack" $kind/lib/rocblas/library
		generation $kind $kind | diff before -
		umount $kind/lib/rocblas/library || fusermount3 -u $kind/lib/rocblas/library
		rm -rf old
	done
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
	py "$F/hipblaslt-many" "$F/hipblaslt-many.out/.kpack" <<-'END'
	import mmap, os, shutil, sys
	maps = []
	for where, _, names in os.walk(sys.argv[1]):
	    for name in names:
	        path = os.path.join("mnt", os.path.relpath(where, sys.argv[1]), name)
	        if name.endswith((".co", ".hsaco")):
	            with open(os.path.join(where, name), "rb") as old, open(path, "rb") as new:
	                maps.append((old.read(), mmap.mmap(new.fileno(), 0, prot=mmap.PROT_READ)))
	assert len(maps) >= 500, len(maps)
	def check(what):
	    for old, new in maps:
	        new.madvise(mmap.MADV_DONTNEED)
	        assert new[:] == old, what
	check("mapped")
	shutil.copy(sys.argv[2] + "/hipblaslt-many_generic.kpack", "src/.new")
	os.rename("src/.new", "src/another_generic.kpack")
	open("mnt/.kpackfs/barrier").read()
	check("another archive")
	os.unlink("src/hipblaslt-many_gfx942.kpack")  # its modules stay
	open("mnt/.kpackfs/barrier").read()
	check("no archive")
	END
}
