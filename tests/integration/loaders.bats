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
complete() { # REPORT FILES
	cat "$1"
	[ "$(grep -cE '^(kernel|module|read) ' "$1")" -ge "$2" ]
	! grep -E 'no code for|error' "$1" || false
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
