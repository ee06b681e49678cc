#!/usr/bin/env bats
# The example programs of contrib/examples load exactly what was packed, from wherever it
# comes.  The expectations come from the files that mkfat.py and mkarchive.py wrote, and
# from an independent reader.

load proof.bash
bats_require_minimum_version 1.5.0

examples=$KPACK_BIN/contrib/examples
mkfat() { $python "$tools/mkfat.py" "$@"; }
py() { PYTHONPATH=$tools $python - "$@"; }

setup_file() {
	# udev makes it 0666; a machine without udev does not
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
}

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	# the dynamic loader frees what threads that ended had of a library that was loaded late,
	# in a way that ThreadSanitizer does not see
	echo race:dl_deallocate_tls >tsan
	export TSAN_OPTIONS=${TSAN_OPTIONS-}:suppressions=$T/tsan
}

teardown() {
	cd /
	! mountpoint -q "$T/mnt" || fusermount3 -u "$T/mnt" || umount -l "$T/mnt"
	! mountpoint -q "$T/layers" || umount -R "$T/layers"
	rm -rf "$T"
}

# "N bytes, crc32 X" of a file.
sum() {
	py "$1" <<-'END'
	import sys, zlib
	data = open(sys.argv[1], "rb").read()
	print("%d bytes, crc32 %08x" % (len(data), zlib.crc32(data)))
	END
}

# ---- the runtime ---------------------------------------------------------------------------

# Three bundles; wrapper N leads to bundle 2 - N.
make_fat() { # OUT OPTION...
	rm -rf objects
	mkfat --arches gfx90a:xnack+,gfx1030,gfx11-generic --reverse --objects objects "${@:2}" "$1"
}

agents="gfx1030 gfx90a:sramecc+:xnack+ gfx1103"

# Launch a kernel of each of LIBRARY's wrappers on each device: results in the file results, the rest in messages.
launch() { # LIBRARY OPTION...
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$agents run_program $python "$tools/launch.py" \
		--wrappers 3 --devices 3 "${@:2}" "$PWD/$1" >results 2>messages
}

# What that must say.
expected() { # FILE FROM
	local wrapper device=0 agent object
	for agent in $agents; do
		object=$agent
		case $agent in
		gfx90a*) object=gfx90a:xnack+ ;;
		gfx1103) object=gfx11-generic ;;
		esac
		for wrapper in 0 1 2; do
			echo "gpu $device $agent: $1#$wrapper: $(sum objects/$((2 - wrapper))-$object), from $2"
		done
		device=$((device + 1))
	done | sort
}

loads() { # LIBRARY FROM OPTION...
	launch "$1" "${@:3}"
	[ "$(grep -c '^wrapper [0-2] device [0-2]: 0$' results)" = 9 ]
	expected "$(basename "$1")" "$2" | diff - <(sort messages)
}

@test "runtime: converted, and with device code kept" {
	for ccob in none odd; do
		make_fat libx.so --ccob $ccob
		kpack pack -q --group g libx.so out
		loads out/libx.so "an archive"
		kpack pack -q --group g --keep-device-code libx.so kept
		loads kept/libx.so "an archive"
		rm -r libx.so out kept
	done
}

@test "runtime: an overlay over an overlay, whose files the kernel gives other names" {
	[ "$(id -u)" = 0 ] || skip "only root mounts overlays"
	mkdir in layers
	mount -t tmpfs layers layers
	mkdir -p layers/{one,two,work,empty,"a b"} in/lib
	make_fat in/lib/libx.so
	kpack pack -q --group g in layers/one
	mount -t overlay -o lowerdir=layers/one,upperdir=layers/two,workdir=layers/work overlay "layers/a b"
	loads "layers/a b/lib/libx.so" "an archive"
	mount -t overlay -o lowerdir="layers/a b/lib:layers/empty" overlay "layers/a b/lib"
	loads "layers/a b/lib/libx.so" "an archive"
}

@test "runtime: without archives the kept code is taken, and the reason reported" {
	make_fat libx.so
	kpack pack -q --group g --keep-device-code libx.so kept
	mv kept/.kpack away
	launch kept/libx.so
	[ "$(grep -c ': 0$' results)" = 9 ]
	[ "$(grep -c ': not from an archive: no archive to look for libx.so#.* in; no file .*/kept/\.kpack/g_gfx' messages)" = 9 ]
	expected libx.so "the file itself" | diff - <(grep -v 'not from an archive' messages | sort)
	# switched off is no different
	mv away kept/.kpack
	export ROCM_KPACK_DISABLE=1
	launch kept/libx.so
	[ "$(grep -c ': not from an archive: switched off by ROCM_KPACK_DISABLE$' messages)" = 9 ]
	expected libx.so "the file itself" | diff - <(grep -v 'not from an archive' messages | sort)
}

@test "runtime: without archives and without code a launch fails, and says why" {
	make_fat libx.so
	kpack pack -q --group g libx.so out
	rm -r out/.kpack
	launch out/libx.so
	[ "$(grep -c '^wrapper [0-2] device [0-2]: 209$' results)" = 9 ]
	[ "$(grep -c 'libx.so#[0-2]: no archive to look for .*; no file ' messages)" = 9 ]
	[ "$(wc -l <messages)" = 9 ]
}

@test "runtime: a wrapper that was not converted is left to others" {
	make_fat libx.so
	launch libx.so
	[ "$(grep -c 'device [0-2]: 98$' results)" = 9 ]
	[ ! -s messages ]
}

@test "runtime: a device for which there is no code" {
	make_fat libx.so
	kpack pack -q --group g libx.so out
	agents="gfx1030 gfx803 gfx1201" launch out/libx.so
	[ "$(grep -c 'device 0: 0$' results)" = 3 ]
	[ "$(grep -c 'device [12]: 209$' results)" = 6 ]
	grep -q '^gpu 1 gfx803: libx.so#0: no archive to look for libx.so#0 in; no file ' messages
}

@test "runtime: an archive that is damaged" {
	make_fat libx.so
	kpack pack -q --group g libx.so out
	for archive in out/.kpack/*; do
		truncate -s -40 "$archive"
	done
	launch out/libx.so
	[ "$(grep -c 'device [0-2]: [1-9]' results)" = 9 ]
	[ "$(grep -c 'out/\.kpack/g_gfx' messages)" = 9 ]
}

@test "runtime: archives are looked for at the first launch, not before" {
	make_fat libx.so
	kpack pack -q --group g libx.so out
	mv out/.kpack away
	loads out/libx.so "an archive" --then 'test ! -e out/.kpack && mv away out/.kpack'
}

# bats test_tags=all
@test "runtime: nothing is opened while a library is loaded" {
	need_clang
	command -v strace >/dev/null || skip "no strace"
	sources
	for name in a b c; do
		hip --offload-arch=gfx1201 -fPIC -c $name.hip -o $name.o
	done
	link -shared -fuse-ld=lld a.o b.o c.o -o libabc.so
	kpack pack -q --group g libabc.so out
	export LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=gfx1201
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 # which strace is in the way of
	strace -f -o trace -e trace=%file,read "$stub/load" out/libabc.so
	grep -q 'libamdhip64.so.5' trace
	! grep -F .kpack trace || false
	case $KPACK_MODE in
	asan | tsan) ;; # they look into the maps themselves
	*) ! grep -F /proc/self/maps trace || false ;;
	esac
	strace -f -o trace -e trace=%file,read "$stub/load" -c launch_b out/libabc.so 2>messages
	grep -q '\.kpack/g_gfx1201' trace
	[ "$(wc -l <messages)" = 1 ]
	grep -qE '^gpu 0 gfx1201: libabc.so#[0-2]: [0-9]+ bytes, crc32 [0-9a-f]{8}, from an archive$' messages
	key=$(sed -nE 's/.*(libabc\.so#[0-2]): .*/\1/p' messages)
	kpack cat out/.kpack/g_gfx1201.kpack "$key" gfx1201 >object
	grep -qF ": $(sum object), " messages
}

# bats test_tags=threads
@test "runtime: many threads load each code object once" {
	make_fat libx.so --size 300000
	kpack pack -q --group g libx.so out
	loads out/libx.so "an archive" --threads 8
}

@test "runtime: what is registered anew is loaded anew" {
	make_fat libx.so
	kpack pack -q --group g libx.so out
	launch out/libx.so --rounds 3
	[ "$(grep -c ': 0$' results)" = 27 ]
	expected libx.so "an archive" | diff - <(sort -u messages)
	[ "$(wc -l <messages)" = 27 ]
}

@test "runtime: librocrand" {
	fetch librocrand
	kpack pack -q "$LIB" out
	kpack pack -q --keep-device-code "$LIB" kept
	rm -r kept/.kpack
	cat >rand.py <<-'END'
	import ctypes, sys
	library, generator = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
	for kind in 401, 402, 403, 404:
	    assert library.rocrand_create_generator(ctypes.byref(generator), kind) == 0
	    library.rocrand_initialize_generator(generator)
	END
	# any of its code objects for the device
	py "$LIB" >known <<-'END'
	import sys, zlib, fatparse
	for key, arch, _, data in fatparse.entries(fatparse.Elf(sys.argv[1]), ""):
	    if arch in ("gfx1030", "gfx90a", "gfx90a:xnack-"):
	        print("%s %s: %d bytes, crc32 %08x" % (arch, key, len(data), zlib.crc32(data)))
	END
	[ "$(wc -l <known)" -ge 2 ]
	for file in out/librocrand.so.* kept/librocrand.so.*; do
		LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=gfx1030 \
			run_program $python rand.py "$file" 2>messages
		# Debian 12's loads one code object, later releases' several
		grep -v 'not from an archive' messages >loaded
		sed -nE 's/^gpu 0 (gfx[^:]*): [^#]*(#[0-9]+: .*), from .*/\1 \2/p' loaded >names
		[ -s names ] && [ "$(wc -l <names)" = "$(wc -l <loaded)" ]
		! grep -vxFf known names || false
	done
}

# ---- the kernel library --------------------------------------------------------------------

# kernel ARCH PLAN SEED [ROLE]: a kernel of the library in a description for mkarchive
kernel() {
	echo '{"key": "rocfft/'"$1/$2"'/kernel", "arch": "'"$1"'",
		"data": {"size": '$((1000 + $3))', "seed": '"$3"'}, "metadata": {'"${4:+\"role\": \"$4\", }"'
		"path": "lib/rocfft/'"$1/${2/\//_}"'.hsaco"}}'
}

# archive FILE KERNEL...
archive() {
	local IFS=,
	echo "{\"entries\": [${*:2}]}" | $python "$tools/mkarchive.py" "$1"
}

# "N bytes, crc32 X" of the kernel with this seed.
of_seed() {
	py "$1" <<-'END'
	import sys, zlib, mkarchive
	n = int(sys.argv[1])
	data = mkarchive.noise(1000 + n, n)
	print("%d bytes, crc32 %08x" % (len(data), zlib.crc32(data)))
	END
}

library() { timeout 600 "$examples/library" "$@" >out 2>err; }

# says LINE...: exactly that was printed; @N stands for the kernel with seed N.
says() {
	local line
	for line; do
		while [[ $line =~ @([0-9]+) ]]; do
			line=${line/${BASH_REMATCH[0]}/$(of_seed ${BASH_REMATCH[1]})}
		done
		echo "$line"
	done | diff - out
}

quiet() { [ ! -s err ] || { cat err; return 1; }; }

make_archives() {
	mkdir -p archives
	archive archives/rocfft_gfx942.kpack "$(kernel gfx942 256/single 1 common)" \
		"$(kernel gfx942 512/double 2 rare)" "$(kernel gfx942 64/single 3)"
	archive archives/rocfft_gfx9-4-generic.kpack "$(kernel gfx9-4-generic 256/single 4 common)" \
		"$(kernel gfx9-4-generic 1024/half 5)"
}

@test "library: loads what is common beforehand, and keeps what it loaded" {
	make_archives
	library --device gfx942:sramecc+:xnack- --archives archives \
		256/single 512/double 256/single 512/double
	quiet
	says "archives/rocfft_gfx942.kpack: 3 kernels for gfx942" \
		"archives/rocfft_gfx9-4-generic.kpack: 2 kernels for gfx9-4-generic" \
		"256/single: from archive beforehand, for gfx942: @1" \
		"256/single: from cache, for gfx942: @1" \
		"512/double: from archive, for gfx942: @2" \
		"256/single: from cache, for gfx942: @1" \
		"512/double: from cache, for gfx942: @2" \
		"256/single: unloaded" \
		"512/double: unloaded"
}

@test "library: the generic target where the device has no kernel" {
	make_archives
	library --device gfx942 --archives archives --cache 1 1024/half 1024/half
	quiet
	says "archives/rocfft_gfx942.kpack: 3 kernels for gfx942" \
		"archives/rocfft_gfx9-4-generic.kpack: 2 kernels for gfx9-4-generic" \
		"256/single: from archive beforehand, for gfx942: @1" \
		"256/single: evicted" \
		"1024/half: from archive, for gfx9-4-generic: @5" \
		"1024/half: from cache, for gfx9-4-generic: @5" \
		"1024/half: unloaded"
	# the device is unknown to the first archive
	library --device gfx940 --archives archives 256/single
	quiet
	says "archives/rocfft_gfx9-4-generic.kpack: 2 kernels for gfx9-4-generic" \
		"256/single: from archive beforehand, for gfx9-4-generic: @4" \
		"256/single: from cache, for gfx9-4-generic: @4" \
		"256/single: unloaded"
}

@test "library: what was not used for longest makes room" {
	mkdir archives
	archive archives/rocfft_gfx942.kpack "$(kernel gfx942 1/single 1)" "$(kernel gfx942 2/single 2)" \
		"$(kernel gfx942 3/single 3)" "$(kernel gfx942 4/single 4)"
	library --device gfx942 --archives archives --cache 3 \
		1/single 2/single 3/single 1/single 4/single 1/single 2/single 4/single
	quiet
	says "archives/rocfft_gfx942.kpack: 4 kernels for gfx942" \
		"1/single: from archive, for gfx942: @1" \
		"2/single: from archive, for gfx942: @2" \
		"3/single: from archive, for gfx942: @3" \
		"1/single: from cache, for gfx942: @1" \
		"2/single: evicted" \
		"4/single: from archive, for gfx942: @4" \
		"1/single: from cache, for gfx942: @1" \
		"3/single: evicted" \
		"2/single: from archive, for gfx942: @2" \
		"4/single: from cache, for gfx942: @4" \
		"1/single: unloaded" \
		"4/single: unloaded" \
		"2/single: unloaded"
}

@test "library: any archive that has its kernels" {
	mkdir archives
	archive archives/a.kpack "$(kernel gfx1100 256/single 1)"
	archive archives/b.kpack "$(kernel gfx942 256/single 2)" "$(kernel gfx9-4-generic 512/half 3)"
	echo junk >archives/c.txt
	library --device gfx942 --archives archives 256/single 512/half
	quiet
	says "archives/b.kpack: 1 kernels for gfx942" \
		"archives/b.kpack: 1 kernels for gfx9-4-generic" \
		"256/single: from archive, for gfx942: @2" \
		"512/half: from archive, for gfx9-4-generic: @3" \
		"256/single: unloaded" \
		"512/half: unloaded"
}

@test "library: its files, through the mount, where there is no archive" {
	make_archives
	mkdir mnt none
	"$KPACK_BIN/kpackfs" archives mnt
	for where in none missing; do
		library --device gfx942 --archives $where --legacy mnt --cache 1 256/single 1024/half
		quiet
		says "256/single: from file, for gfx942: @1" \
			"256/single: evicted" \
			"1024/half: from file, for gfx9-4-generic: @5" \
			"1024/half: unloaded"
	done
	fusermount3 -u mnt
	status=0
	library --device gfx942 --legacy mnt 256/single || status=$?
	[ "$status" = 1 ]
	[ "$(cat err)" = "library: 256/single: no kernel for gfx942" ]
}

@test "library: its files, through the mount, where the archive is damaged" {
	make_archives
	mkdir mnt bad
	"$KPACK_BIN/kpackfs" archives mnt
	# one kernel, then the whole archive
	archive bad/rocfft_gfx942.kpack "$(kernel gfx942 256/single 1)" \
		"$(kernel gfx942 512/double 2 | sed 's/^{/{"corrupt": true, /')"
	library --device gfx942 --archives bad --legacy mnt 256/single 512/double
	says "bad/rocfft_gfx942.kpack: 2 kernels for gfx942" \
		"256/single: from archive, for gfx942: @1" \
		"512/double: from file, for gfx942: @2" \
		"256/single: unloaded" \
		"512/double: unloaded"
	[ "$(wc -l <err)" = 1 ]
	grep -q '^library: rocfft/gfx942/512/double/kernel: ' err
	truncate -s 100 bad/rocfft_gfx942.kpack
	library --device gfx942 --archives bad --legacy mnt 256/single
	says "256/single: from file, for gfx942: @1" "256/single: unloaded"
	grep -q '^library: bad/rocfft_gfx942.kpack: ' err
}

@test "library: names in archives are not trusted" {
	mkdir archives
	archive archives/rocfft_gfx942.kpack \
		"$(kernel gfx942 256/single 1 common | sed 's|/256/single/kernel|/kernel|')" \
		"$(kernel gfx942 1/2/3 2 common)" \
		"$(kernel gfx942 "$(printf '%0200d' 7)/single" 3 common)" \
		"$(kernel gfx942 512/single 4 common | sed 's|/kernel"|"|')"
	library --device gfx942 --archives archives
	quiet
	says "archives/rocfft_gfx942.kpack: 4 kernels for gfx942"
}

@test "library: files that are no plans, options that are wrong" {
	for wrong in "--cache 0" "--cache 65" "--cache x" "--colour" "256" "/single" "256/" "a/b/c"; do
		status=0
		library --device gfx942 $wrong || status=$?
		[[ $status = [12] ]]
		[ -s err ] || { echo "$wrong: no message"; false; }
	done
}
