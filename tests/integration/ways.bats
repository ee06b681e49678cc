#!/usr/bin/env bats
# The ways to put a mount where libraries look for their kernels: variables, mounts in
# place, an overlay; as scripts and as systemd units.  The threads of their mounts are those of mount.bats.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load mounting
contrib=$BATS_TEST_DIRNAME/../../contrib

setup() {
	begin_test
	# names that scripts must quote
	P="$T/rocm 6,1:a'b"
	export KPACKFS=$KPACK_BIN/kpackfs KPACKFS_RUN=$T/run
	PATH=$contrib/mount:$PATH
	make_prefix
}

teardown() {
	cd /
	for _ in 1 2 3; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf %b "$m")"; done
	done
	gone
	rm -rf "$T"
}

mounts() { awk -v t="$T/" 'index($2, t) == 1 { n++ } END { print n + 0 }' /proc/self/mounts; }

needs_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# An install tree as packing leaves it, and what it was before in whole/
make_prefix() {
	py "$P" <<-'END'
	import mkarchive, os, sys
	prefix = sys.argv[1]
	def put(root, path, data):
	    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
	    open(f"{root}/{path}", "wb").write(data)
	packed = {
	    "lib/rocblas/library/TensileLibrary_lazy_gfx942.dat": "gfx942",
	    "lib/rocblas/library/Kernels.so-000-gfx942.hsaco": "gfx942",
	    "lib/hipblaslt/library/gfx942/TensileLibrary_lazy_gfx942.dat": "gfx942",
	    "lib/hipblaslt/library/gfx942/hipblasltExtOpLibrary.dat": "gfx942",
	    "lib/hipblaslt/library/gfx942/hipblasltTransform.hsaco": "gfx942",
	    "lib/aotriton.images/amd-gfx942/flash/attn\uff0afp16.aks2": "gfx942",
	    "lib/rocfft/rocfft_kernel_cache.db": "generic",
	    "share/miopen/db/gfx942130.db.txt": "gfx942",
	    "share/miopen/db/gfx1100_36.db.txt": "gfx1100",
	}
	plain = ["lib/librocblas.so.4", "lib/libMIOpen.so.1", "share/doc/README", "lib/rocblas/notes"]
	archives = {a: mkarchive.Archive() for a in sorted(set(packed.values()))}
	for path, arch in packed.items():
	    data = path.encode() * 100
	    archives[arch].add(path, arch, data, type="bin", path=path)
	    put("whole", path, data)
	    os.makedirs(os.path.dirname(f"{prefix}/{path}"), exist_ok=True)
	for path in plain:
	    put(prefix, path, path.encode())
	    put("whole", path, path.encode())
	os.mkdir(prefix + "/.kpack")
	for arch, a in archives.items():
	    a.write(f"{prefix}/.kpack/math_{arch}.kpack")
	END
}

same_as_whole() { diff -r -x .kpack whole "$P"; }

@test "variables: the values for libraries" {
	kpackfs "$P/.kpack" "$T/mnt"
	eval "$(environment.sh "$T/mnt")"
	[ "$ROCBLAS_TENSILE_LIBPATH" = "$T/mnt/lib/rocblas/library" ]
	# it looks into no directory per GPU of this one
	[ "$HIPBLASLT_TENSILE_LIBPATH" = "$T/mnt/lib/hipblaslt/library/gfx942" ]
	[ "$HIPBLASLT_EXT_OP_LIBRARY_PATH" = "$T/mnt/lib/hipblaslt/library/gfx942/hipblasltExtOpLibrary.dat" ]
	[ "$ROCFFT_RTC_SYS_CACHE_PATH" = "$T/mnt/lib/rocfft/rocfft_kernel_cache.db" ]
	[ "$MIOPEN_SYSTEM_DB_PATH" = "$T/mnt/share/miopen/db" ]
	[ -z "${ROCSPARSELT_TENSILE_LIBPATH-}" ]
	for path in "$ROCBLAS_TENSILE_LIBPATH" "$HIPBLASLT_TENSILE_LIBPATH" "$MIOPEN_SYSTEM_DB_PATH"; do
		diff -r "$path" "whole/${path#"$T/mnt/"}"
	done
	cmp "$ROCFFT_RTC_SYS_CACHE_PATH" whole/lib/rocfft/rocfft_kernel_cache.db
}

@test "variables: what the user has set stays, and undo" {
	kpackfs "$P/.kpack" "$T/mnt"
	export ROCBLAS_TENSILE_LIBPATH=/elsewhere
	eval "$(environment.sh "$T/mnt")"
	[ "$ROCBLAS_TENSILE_LIBPATH" = /elsewhere ]
	[ -n "$MIOPEN_SYSTEM_DB_PATH" ]
	eval "$(environment.sh -u "$T/mnt")"
	[ "$ROCBLAS_TENSILE_LIBPATH" = /elsewhere ]
	[ -z "${MIOPEN_SYSTEM_DB_PATH-}" ]
	[ -z "${HIPBLASLT_TENSILE_LIBPATH-}" ]
	# each that can be set, however the mount is written, and when it is gone
	unset ROCBLAS_TENSILE_LIBPATH
	cp -r "$T/whole" odd
	mkdir -p odd/lib/hipsparselt/library
	touch odd/lib/hipsparselt/library/TensileLibrary.dat
	environment.sh odd/ >set
	[ "$(wc -l <set)" = 7 ]
	eval "$(cat set)"
	rm -r odd
	eval "$(environment.sh -u odd)"
	for variable in $(sed 's/.*export \([A-Z_]*\)=.*/\1/' set); do
		[ -z "${!variable-}" ]
	done
}

@test "variables: a library without one is named, and why" {
	mkdir -p odd/lib/hipblaslt/library/gfx942 odd/lib/hipblaslt/library/gfx950 \
		odd/lib/hipsparselt/library odd/lib/rocblas/library
	touch odd/lib/hipsparselt/library/hipsparseltExtOpLibrary.dat
	environment.sh odd >set 2>said
	[ "$(wc -l <set)" = 1 ]
	grep -q "^environment.sh: .*/hipblaslt/library has several GPUs' directories" said
	grep -q '^environment.sh: .*/hipsparselt/library has no kernels that' said
	[ "$(wc -l <said)" = 2 ]
}

@test "variables: Debian's directories, and other prefixes" {
	local a="odd/usr/lib/x86_64-linux-gnu" o="odd/opt/rocm 7"
	mkdir -p $a/rocblas/5/library $a/hipblaslt/library $a/rocfft odd/usr/share/miopen/db "$o/lib64/hipsparselt/library"
	touch $a/hipblaslt/library/TensileLibrary_lazy_gfx942.dat $a/hipblaslt/library/hipblasltExtOpLibrary.dat \
		"$o/lib64/hipsparselt/library/TensileLibrary_lazy_gfx942.dat" $a/rocfft/rocfft_kernel_cache.db
	eval "$(environment.sh odd)"
	[ "$ROCBLAS_TENSILE_LIBPATH" = "$T/$a/rocblas/5/library" ]
	[ "$HIPBLASLT_TENSILE_LIBPATH" = "$T/$a/hipblaslt/library" ]
	[ "$HIPBLASLT_EXT_OP_LIBRARY_PATH" = "$T/$a/hipblaslt/library/hipblasltExtOpLibrary.dat" ]
	[ "$ROCSPARSELT_TENSILE_LIBPATH" = "$T/$o/lib64/hipsparselt/library" ]
	[ "$ROCFFT_RTC_SYS_CACHE_PATH" = "$T/$a/rocfft/rocfft_kernel_cache.db" ]
	[ "$MIOPEN_SYSTEM_DB_PATH" = "$T/odd/usr/share/miopen/db" ]
	# a link to the same directory is no second one; another version is
	mkdir -p odd/torch
	ln -s ../usr/share odd/torch/share
	unset ROCBLAS_TENSILE_LIBPATH MIOPEN_SYSTEM_DB_PATH
	mkdir -p $a/rocblas/4.4.1/library
	environment.sh odd >set 2>said
	grep -q MIOPEN_SYSTEM_DB_PATH set
	run -1 grep ROCBLAS set
	[ "$(cat said)" = "environment.sh: $T/$a/rocblas/4.4.1/library and $T/$a/rocblas/5/library: \
no variable can name both: use in-place or overlay" ]
}

@test "variables: a library anywhere is known by its files" {
	local a="odd/srv/my gpus" variable
	mkdir -p "$a/tensors" $T/odd/srv/lite/gfx942 odd/srv/x/hipblaslt/y odd/srv/z/gfx942 odd/srv/db/miopen/db odd/toc/x
	touch "$a/tensors/TensileLibrary_lazy_gfx942.dat" odd/toc/x/TensileLibrary_lazy_gfx942.dat \
		odd/srv/z/gfx942/TensileLibrary_SB_SPA_gfx942.dat odd/srv/z/gfx942/extop_gfx942.co \
		odd/srv/db/rocfft_kernel_cache.db odd/srv/db/miopen/db/gfx942.kdb
	for sh in sh bash; do
		$sh "$BATS_TEST_DIRNAME/../../contrib/mount/environment.sh" odd >set
		[ "$(wc -l <set)" = 5 ]
		eval "$(cat set)"
		[ "$ROCBLAS_TENSILE_LIBPATH" = "$T/$a/tensors" ]
		[ "$ROCSPARSELT_TENSILE_LIBPATH" = "$T/odd/srv/z/gfx942" ]
		[ "$ROCFFT_RTC_SYS_CACHE_PATH" = "$T/odd/srv/db/rocfft_kernel_cache.db" ]
		[ "$MIOPEN_SYSTEM_DB_PATH" = "$T/odd/srv/db/miopen/db" ]
		unset ROCBLAS_TENSILE_LIBPATH ROCSPARSELT_TENSILE_LIBPATH
	done
	# the path names the library, or external operations show it
	touch odd/srv/x/hipblaslt/y/TensileLibrary_lazy_gfx942.dat
	environment.sh odd | grep -qF "HIPBLASLT_TENSILE_LIBPATH='$T/odd/srv/x/hipblaslt/y'"
	touch odd/srv/lite/gfx942/TensileLibrary_lazy_gfx942.dat odd/srv/lite/gfx942/extop_gfx942.co
	environment.sh odd >set 2>said
	run -1 grep HIPBLASLT set
	grep -qF "$T/odd/srv/lite and $T/odd/srv/x/hipblaslt/y: no variable can name both" said
	# the mount itself
	eval "$(environment.sh "$a/tensors")"
	[ "$ROCBLAS_TENSILE_LIBPATH" = "$T/$a/tensors" ]
}

@test "variables: usage, and nothing there" {
	run -1 environment.sh "$T/mnt"
	[[ $output == "environment.sh: $T/mnt: no kernels"* ]]
	run -1 environment.sh "$T/missing"
	[ "${#lines[@]}" = 1 ]
	run -2 environment.sh a b
	run -2 environment.sh -z
	run -0 environment.sh -h
	# in a directory with an odd name, relative
	cp -r whole/share "$P"
	cd "$P"
	cp -r "$T/whole/lib/rocblas" lib
	eval "$(environment.sh .)"
	[ "$ROCBLAS_TENSILE_LIBPATH" -ef "$P/lib/rocblas/library" ]
}

@test "in place: every empty directory that archives have files of" {
	run -0 in-place "$P"
	diff - <(echo "$output" | sort) <<-END
	$P/lib/aotriton.images
	$P/lib/hipblaslt/library
	$P/lib/rocblas/library
	$P/lib/rocfft
	$P/share/miopen/db
	END
	same_as_whole
	[ "$(mounts)" = 5 ]
	in-place -u "$P"
	gone
	[ "$(mounts)" = 0 ]
	[ -z "$(ls -A "$P/lib/rocblas/library")" ]
}

@test "in place: options, commands shown, other places of archives" {
	mv "$P/.kpack" "$T/archives, all"
	in-place -n -o arch=gfx1100 "$P" "$T/archives, all" >commands
	[ "$(mounts)" = 0 ]
	# rocFFT's database suits every GPU
	[ "$(wc -l <commands)" = 2 ]
	sh -e commands
	[ "$(mounts)" = 2 ]
	in-place -u "$P"
	in-place -o arch=gfx1100 "$P" "$T/archives, all"
	[ "$(ls "$P/share/miopen/db")" = gfx1100_36.db.txt ]
	[ "$(ls "$P/lib/rocfft")" = rocfft_kernel_cache.db ]
	[ -z "$(ls -A "$P/lib/rocblas/library")" ]
}

@test "in place: files beside others are named" {
	touch "$P/lib/rocfft/readme"
	run -0 --separate-stderr in-place "$P"
	[[ $stderr == *"lib/rocfft/rocfft_kernel_cache.db: stands beside other files"* ]]
	[ "$(mounts)" = 4 ]
	[ "$(cat "$P/share/miopen/db/gfx942130.db.txt" | wc -c)" = 3200 ]
}

@test "in place: usage and failures leave nothing mounted" {
	run -2 in-place
	run -2 in-place -z "$P"
	run -2 in-place -u "$P" more
	run -0 in-place -h
	run -1 in-place "$T/nowhere"
	[[ $output == "in-place: $T/nowhere: "* ]]
	run -1 in-place "$T/mnt"
	[[ $output == "in-place: $T/mnt/.kpack: "* ]]
	run -1 in-place -o nonsense "$P"
	run -1 in-place "$T/whole" "$P/.kpack"
	[[ $output == *"no directory without files"* ]]
	# the third of five cannot be mounted
	cat >refuses <<-'END'
	#!/bin/sh
	for last; do :; done
	case $last in */lib/rocblas/library) exit 1 ;; esac
	exec kpackfs "$@"
	END
	chmod +x refuses
	KPACKFS=$T/refuses run -1 in-place "$P"
	[[ ${lines[-1]} == "in-place: $P/lib/rocblas/library: cannot be mounted" ]]
	# a signal meanwhile
	sed -i 's/exit 1/kill -TERM "$PPID"/' refuses
	KPACKFS=$T/refuses run -1 in-place "$P"
	[ "$(mounts)" = 0 ]
	gone
}

@test "overlay: kernels between the files of the tree" {
	needs_root
	overlay "$P"
	same_as_whole
	[ "$(mounts)" = 4 ]
	# as a library maps code, and finds names by a listing
	[ "$(ls "$P/lib")" = "$(ls whole/lib)" ]
	$python - "$P/lib/rocblas/library/Kernels.so-000-gfx942.hsaco" <<-'END'
	import mmap, sys
	with open(sys.argv[1], "rb") as f:
	    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
	        assert mmap.mmap(f.fileno(), 0, flags, mmap.PROT_READ)[:11] == b"lib/rocblas"
	END
	! touch "$P/lib/new" || false
	run -1 overlay "$P"
	[[ $output == *"is already mounted"* ]]
	setpriv --reuid=nobody --regid=nogroup --clear-groups \
		cmp "$P/lib/rocfft/rocfft_kernel_cache.db" whole/lib/rocfft/rocfft_kernel_cache.db
	overlay -u "$P"
	[ "$(mounts)" = 0 ]
	[ -z "$(ls -A "$P/lib/rocfft")" ]
	[ ! -e run/* ]
	run -1 overlay -u "$P"
}

@test "overlay: undo goes on after what stopped it" {
	needs_root
	overlay "$P"
	# share goes, lib cannot
	exec 7<"$P/lib/rocfft/rocfft_kernel_cache.db"
	run -1 overlay -u "$P"
	exec 7<&-
	[ "$(mounts)" = 3 ]
	overlay -u "$P"
	[ "$(mounts)" = 0 ] && [ ! -e run/* ]
	# by hand, all of it, and the daemon's death
	overlay "$P"
	umount "$P/share"
	overlay -u "$P"
	[ "$(mounts)" = 0 ] && [ ! -e run/* ]
	overlay "$P"
	umount "$P/share" "$P/lib" run/*/tree
	overlay -u "$P"
	[ ! -e run/* ]
	overlay "$P"
	kill -9 $(pgrep -f "^$KPACK_BIN/kpackfs .*$T/")
	overlay -u "$P"
	[ "$(mounts)" = 0 ] && [ ! -e run/* ]
	printf '#!/bin/sh\nkill -TERM "$PPID"\nexec kpackfs "$@"\n' >interrupts
	chmod +x interrupts
	KPACKFS=$T/interrupts run -1 overlay "$P"
	[ "$(mounts)" = 0 ] && [ ! -e run/* ]
	overlay "$P"
	same_as_whole
}

@test "overlay: chosen directories, options, commands shown, failures" {
	needs_root
	overlay -n "$P" >commands
	[ "$(wc -l <commands)" = 5 ]
	[ "$(mounts)" = 0 ]
	overlay -o arch=gfx942 "$P" "$P/.kpack" share
	[ "$(mounts)" = 3 ]
	[ "$(ls "$P/share/miopen/db")" = gfx942130.db.txt ]
	overlay -u "$P"
	run -1 overlay "$P" "$P/.kpack" lib nowhere
	[[ $output == "overlay: $P: nowhere"* ]]
	[ "$(mounts)" = 0 ]
	run -1 overlay -o nonsense "$P"
	# the whole tree
	overlay "$P" "$P/.kpack" .
	same_as_whole
	# kpackfs opens a new archive, but not through the overlay, which would keep it busy
	cp "$P/.kpack/math_gfx942.kpack" "$(echo run/*/archives)/math_new.kpack"
	cat run/*/tree/.kpackfs/barrier >/dev/null
	grep -q math_new run/*/tree/.kpackfs/archives
	overlay -u "$P"
	run -2 overlay
	run -2 overlay -u "$P" more
	run -0 overlay -h
	[ "$(mounts)" = 0 ]
	gone
	# the shown commands work
	mkdir -p run
	sh -e commands
	same_as_whole
}

# unit FILE KEY
unit() { sed -n "s/^$2=//p" "$contrib/systemd/$1"; }

@test "systemd's units do what they say" {
	needs_root
	mv "$P" rocm
	P=$T/rocm
	# to this test's places, and mount(8)'s way to a program that is not installed
	mount_unit() {
		local what where options type
		what=$(unit "$1" What | sed "s|^/opt|$T|")
		where=$(unit "$1" Where | sed "s|^/opt|$T|; s|^/mnt/kernels|$T/mnt|")
		options=$(unit "$1" Options | sed "s|/opt/|$T/|g; s|/mnt/kernels|$T/mnt|g; s/arch=auto/arch=all/")
		type=$(unit "$1" Type | sed "s|kpackfs|$KPACK_BIN/kpackfs|")
		mount -t "$type" "$what" "$where" -o "$options"
	}
	mount_unit mnt-kernels.mount
	[ -e mnt/lib/rocblas/library/Kernels.so-000-gfx942.hsaco ]
	mount_unit opt-rocm-lib-rocblas-library.mount
	diff -r whole/lib/rocblas/library rocm/lib/rocblas/library
	umount rocm/lib/rocblas/library
	mount_unit opt-rocm-lib.mount
	diff -r whole/lib rocm/lib
	for f in "$contrib"/systemd/*.mount; do
		where=$(unit "${f##*/}" Where)
		[ "${f##*/}" = "$(echo "${where#/}" | tr / -).mount" ]
	done
}

@test "systemd takes the units" {
	# where there is no systemd nobody can judge
	! command -v systemd-analyze || systemd-analyze verify --man=no "$contrib"/systemd/*.mount
}
