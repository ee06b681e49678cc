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
	py "$@" $agents <<-'END'
	import sys, zlib
	lines = []
	for device, agent in enumerate(sys.argv[3:]):
	    target = {"gfx1103": "gfx11-generic"}.get(agent, "gfx90a:xnack+" if agent.startswith("gfx90a") else agent)
	    for wrapper in range(3):
	        data = open("objects/%d-%s" % (2 - wrapper, target), "rb").read()
	        lines.append("gpu %d %s: %s#%d: %d bytes, crc32 %08x, from %s" %
	                     (device, agent, sys.argv[1], wrapper, len(data), zlib.crc32(data), sys.argv[2]))
	print(*sorted(lines), sep="\n")
	END
}

loads() { # LIBRARY FROM OPTION...
	launch "$1" "${@:3}"
	[ "$(grep -c '^wrapper [0-2] device [0-2]: 0$' results)" = 9 ]
	expected "$(basename "$1")" "$2" | diff - <(LC_ALL=C sort messages)
}

@test "runtime: converted, and with device code kept" {
	for ccob in none odd; do
		make_fat libx.so --ccob $ccob
		kpack pack -q --group g libx.so out
		loads out/libx.so "an archive"
		rm -r out
		kpack pack -q --group g --keep-device-code libx.so out
		loads out/libx.so "an archive"
		rm -r libx.so out
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
	expected libx.so "the file itself" | diff - <(grep -v 'not from an archive' messages | LC_ALL=C sort)
	# switched off is no different
	mv away kept/.kpack
	export ROCM_KPACK_DISABLE=1
	launch kept/libx.so
	[ "$(grep -c ': not from an archive: switched off by ROCM_KPACK_DISABLE$' messages)" = 9 ]
	expected libx.so "the file itself" | diff - <(grep -v 'not from an archive' messages | LC_ALL=C sort)
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
	expected libx.so "an archive" | diff - <(LC_ALL=C sort -u messages)
	[ "$(wc -l <messages)" = 27 ]
}

# ---- the kernel library, whose archives are in the golden case examples-library ----

@test "library: its files, through the mount, where there is no archive, or it is damaged" {
	mkdir archives bad mnt none
	py <<-'END'
	import mkarchive
	def archive(name, kernels, **more):
	    a = mkarchive.Archive()
	    for arch, plan, seed in kernels:
	        a.add("rocfft/%s/%s/kernel" % (arch, plan), arch, mkarchive.noise(1000 + seed, seed),
	              path="lib/rocfft/%s/%s.hsaco" % (arch, plan.replace("/", "_")), **more.get(plan, {}))
	    a.write(name)
	all = [("gfx942", "256/single", 1), ("gfx942", "512/double", 2)]
	archive("archives/rocfft_gfx942.kpack", all)
	archive("archives/rocfft_gfx9-4-generic.kpack", [("gfx9-4-generic", "1024/half", 5)])
	archive("bad/rocfft_gfx942.kpack", all, **{"512/double": {"stored": b"damaged"}})
	for name, arch, plan, seed in ("one", *all[0]), ("two", *all[1]), ("five", "gfx9-4-generic", "1024/half", 5):
	    open(name, "wb").write(mkarchive.noise(1000 + seed, seed))
	END
	"$KPACK_BIN/kpackfs" archives mnt
	library() { "$examples/library" --device gfx942 --legacy mnt "$@" 2>err; }
	for where in none missing; do
		diff - <(library --archives $where --cache 1 256/single 1024/half) <<-END
			256/single: from file, for gfx942: $(sum one)
			256/single: evicted
			1024/half: from file, for gfx9-4-generic: $(sum five)
			1024/half: unloaded
		END
		[ ! -s err ]
	done
	# one kernel, then the whole archive
	diff - <(library --archives bad 256/single 512/double) <<-END
		bad/rocfft_gfx942.kpack: 2 kernels for gfx942
		256/single: from archive, for gfx942: $(sum one)
		512/double: from file, for gfx942: $(sum two)
		256/single: unloaded
		512/double: unloaded
	END
	[ "$(wc -l <err)" = 1 ]
	grep -q '^library: rocfft/gfx942/512/double/kernel: ' err
	truncate -s 100 bad/rocfft_gfx942.kpack
	library --archives bad 256/single | grep -q "^256/single: from file, for gfx942: $(sum one)$"
	grep -q '^library: bad/rocfft_gfx942.kpack: ' err
	fusermount3 -u mnt
	run -1 --separate-stderr library 256/single
	[ "$(cat err)" = "library: 256/single: no kernel for gfx942" ]
}
