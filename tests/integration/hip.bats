#!/usr/bin/env bats
# bats file_tags=hip
# libkpack_hip.so gives converted binaries to a HIP runtime that refuses them.  What such a
# runtime loads from them is compared with what it loads from the fat originals.

load proof.bash
bats_require_minimum_version 1.5.0

old=$stub/old
helper=$KPACK_BIN/libkpack_hip.so
mkfat() { $python "$tools/mkfat.py" "$@"; }

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	unset KPACK_HIP_ARCH KPACK_HIP_DEBUG HSA_OVERRIDE_GFX_VERSION
	make_library --seed 0
	agents=$usual original
}

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	unset KPACK_HIP_ARCH KPACK_HIP_DEBUG HSA_OVERRIDE_GFX_VERSION
}

teardown() {
	cd /
	for m in mnt plain; do
		! mountpoint -q "$T/$m" || fusermount3 -u "$T/$m" || umount -l "$T/$m"
	done
	! mountpoint -q /sys/class || umount /sys/class
	[ ! -f /dev/kfd ] || umount /dev
	rm -rf "$T"
}

arches=gfx90a:xnack+,gfx90a:xnack-,gfx1030,gfx1100,gfx11-generic,gfx942
usual="gfx90a:sramecc+:xnack+ gfx1030 gfx1100"
agents=$usual

# fat/lib/libx.so with three wrappers and packed/lib/libx.so, its converted form.
make_library() { # OPTION...
	[ $# != 0 ] || { cp -a "$BATS_FILE_TMPDIR"/{fat,packed} .; return; }
	mkdir -p fat/lib
	mkfat --arches $arches "$@" fat/lib/libx.so
	kpack pack -q fat packed
}

# Register LIBRARY's wrappers with the runtime of directory RUNTIME; the runtime's lines go to
# log, without the file's name and the wrapper's number, the rest to output.txt and messages.txt.
calls() { # RUNTIME LIBRARY OPTION...
	local list
	list=$(preload "$python")
	rm -f log raw
	LD_LIBRARY_PATH=$1 STUB_LOG=$PWD/raw STUB_ARCHES=$agents ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 \
		LD_PRELOAD=${list:+$list:}${HELPER-} \
		$python "$tools/hipcalls.py" --wrappers 3 "${@:3}" "$PWD/$2" >output.txt 2>messages.txt
	! grep ' fault ' raw || return 1
	cut -d ' ' -f 3- raw >log
}
helped() { HELPER=$helper calls "$@"; }

# The log of the fat library.
original() {
	[ $# != 0 ] || [ -n "${STUB_DEFERRED-}" ] || [ "$agents" != "$usual" ] || ! [ -e "$BATS_FILE_TMPDIR/want" ] ||
		! cmp -s "$BATS_FILE_TMPDIR/fat/lib/libx.so" fat/lib/libx.so || { cp "$BATS_FILE_TMPDIR/want" .; return; }
	calls "$old" fat/lib/libx.so "$@"
	mv log want
}

same_code() { # OPTION...
	original "$@"
	KPACK_HIP_ARCH="gfx90a gfx1030,gfx1100" helped "$old" packed/lib/libx.so "$@"
	diff want log
	[ ! -s messages.txt ] || { cat messages.txt; return 1; }
}

@test "an old runtime refuses a converted library, and takes it with the helper, unless that is switched off" {
	make_library
	calls "$old" packed/lib/libx.so
	diff - output.txt <<<"0 set, 3 NULL"
	[ "$(sort -u log)" = refused ]
	same_code
	diff - output.txt <<<"3 set, 0 NULL"
	[ "$(grep -c 'gfx1100 [0-9]' log)" = 3 ]
	! grep none log || false

	ROCM_KPACK_DISABLE=1 KPACK_HIP_ARCH=gfx1100:nonsense helped "$old" packed/lib/libx.so
	diff - output.txt <<<"0 set, 3 NULL"
	[ ! -s messages.txt ]
}

@test "code is loaded by the first launch" {
	make_library --reverse
	STUB_DEFERRED=1 same_code
	[ "$(grep -c 'gfx1100 [0-9]' log)" = 3 ]
}

@test "compressed containers, objects that wrappers share, wrappers that lack one" {
	local form
	for form in "--ccob odd" --same "--share 3 --bundles 1" --ragged; do
		rm -rf fat packed
		# shellcheck disable=SC2086 # options
		make_library $form
		same_code
	done
	grep -q none log
}

@test "wrappers with the same objects share memory" {
	make_library --share 3 --bundles 1
	KPACK_HIP_ARCH=gfx1030 KPACK_HIP_DEBUG=1 helped "$old" packed/lib/libx.so \
		--after 'grep -c memfd:kpack: /proc/$PPID/maps'
	diff - output.txt <<-END
	1
	3 set, 0 NULL
	END
	[ "$(grep -c 'libx.so#[0-2] gfx1030: [0-9]* bytes in .*gfx1030.kpack$' messages.txt)" = 3 ]
}

@test "no GPU, wrong values, GPUs of many kinds: only objects for them are in the bundle" {
	make_library
	KPACK_HIP_ARCH=, helped "$old" packed/lib/libx.so
	diff - output.txt <<<"3 set, 0 NULL"
	[ ! -s messages.txt ]
	[ "$(grep -c none log)" = 9 ]

	KPACK_HIP_ARCH=gfx90a:nonsense helped "$old" packed/lib/libx.so
	grep -q '^kpack_hip: no converted binary gets code: KPACK_HIP_ARCH: ' messages.txt
	[ "$(wc -l <messages.txt)" = 1 ]
	diff - output.txt <<<"3 set, 0 NULL"
	KPACK_HIP_ARCH=gfx90a:nonsense KPACK_HIP_DEBUG=0 helped "$old" packed/lib/libx.so
	[ ! -s messages.txt ]

	agents="gfx942:sramecc+:xnack- gfx1103 gfx11-generic gfx1201"
	original
	KPACK_HIP_ARCH="gfx942,gfx1103,gfx1201,gfx942" helped "$old" packed/lib/libx.so
	diff want log
	grep -q '^gfx11-generic [0-9]' log
	diff - messages.txt <<-END
	kpack_hip: $T/packed/lib/libx.so: no code for gfx1201: $T/packed/.kpack/fat_gfx1201.kpack: cannot open: No such file or directory
	END
	agents="gfx1030 gfx1100"
	KPACK_HIP_ARCH=gfx942 helped "$old" packed/lib/libx.so
	[ "$(sort -u log)" = "$(printf 'gfx1030 none\ngfx1100 none\nfunction'; )" ] ||
		[ "$(grep -c ' none' log)" = 6 ]
}

@test "the driver's device without its directory in /sys is reported" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	make_library
	helped "$old" packed/lib/libx.so
	[ ! -s messages.txt ]
	mount -t tmpfs none /mnt
	cp -a /dev/null /dev/urandom /mnt
	: >/mnt/kfd
	mount --move /mnt /dev
	helped "$old" packed/lib/libx.so
	umount /dev
	diff - messages.txt <<<"kpack_hip: no code for any GPU: /sys/class/kfd/kfd/topology is missing, but /dev/kfd is there; in a container without /sys name the GPUs in KPACK_HIP_ARCH"
}

# Pretend a node of the KFD driver, in this file's mount namespace.
node() { # NUMBER VERSION
	mountpoint -q /sys/class || mount -t tmpfs none /sys/class
	mkdir -p "/sys/class/kfd/kfd/topology/nodes/$1"
	echo "gfx_target_version $2" >"/sys/class/kfd/kfd/topology/nodes/$1/properties"
}

@test "the machine's GPUs, all or one of them called something else" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	make_library
	node 0 0
	node 1 110000
	node 2 100301
	original
	helped "$old" packed/lib/libx.so
	diff <(sed -E 's/^(gfx90a|gfx1030)(\S*) .*/\1\2 none/' want) log
	HSA_OVERRIDE_GFX_VERSION_2=10.3.0 helped "$old" packed/lib/libx.so
	diff <(sed -E 's/^(gfx90a)(\S*) .*/\1\2 none/' want) log
	[ ! -s messages.txt ]
	# the GPU's own variable counts
	HSA_OVERRIDE_GFX_VERSION=10.3.0 HSA_OVERRIDE_GFX_VERSION_2=9.0.10 helped "$old" packed/lib/libx.so
	diff <(sed -E 's/^(gfx1100) .*/\1 none/' want) log
	[ ! -s messages.txt ]
	for version in 10.3 10.3.0x -1.0.0 9.0.16; do
		HSA_OVERRIDE_GFX_VERSION_1=$version helped "$old" packed/lib/libx.so
		diff - messages.txt <<<"kpack_hip: no converted binary gets code: HSA_OVERRIDE_GFX_VERSION_1: $version is not the version of a GPU"
	done
}

@test "a runtime that takes converted binaries is left alone, and fat libraries are passed on" {
	make_library
	calls "$stub" packed/lib/libx.so
	cp raw want
	grep -q '^libx.so 2 gfx1100 [0-9]' want
	# if the helper did something, it would find no code, and the file would be unknown
	KPACK_HIP_ARCH=gfx803 helped "$stub" packed/lib/libx.so
	diff want raw
	[ ! -s messages.txt ]

	calls "$old" fat/lib/libx.so
	cp raw want
	KPACK_HIP_ARCH=gfx803 helped "$old" fat/lib/libx.so
	diff want raw
	[ ! -s messages.txt ]
}

@test "archives that are missing, of another build, damaged, or named by the environment" {
	make_library
	original
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100
	mv packed/.kpack/fat_gfx1030.kpack away.kpack
	helped "$old" packed/lib/libx.so
	diff <(sed 's/^\(gfx1030\) .*/\1 none/' want) log
	diff - messages.txt <<-END
	kpack_hip: $T/packed/lib/libx.so: no code for gfx1030: $T/packed/.kpack/fat_gfx1030.kpack: cannot open: No such file or directory
	END
	ROCM_KPACK_PATH_PREFIX=$T/away.kpack helped "$old" packed/lib/libx.so
	diff want log
	[ ! -s messages.txt ]

	mkdir -p other/lib
	mkfat --arches gfx1030 other/lib/liby.so
	kpack pack -q --archives-only other otherpacked
	cp "$(find otherpacked -name '*gfx1030*.kpack')" packed/.kpack/fat_gfx1030.kpack
	helped "$old" packed/lib/libx.so
	diff <(sed 's/^\(gfx1030\) .*/\1 none/' want) log
	diff - messages.txt <<-END
	kpack_hip: $T/packed/lib/libx.so: no code for gfx1030: $T/packed/.kpack/fat_gfx1030.kpack: no entry lib/libx.so#0
	END

	cp away.kpack packed/.kpack/fat_gfx1030.kpack
	# in the first frame
	printf 'damage' | dd of=packed/.kpack/fat_gfx1030.kpack bs=1 seek=200 conv=notrunc status=none
	helped "$old" packed/lib/libx.so
	[ "$(diff <(sort want) <(sort log) | grep -c '^<')" = 1 ]
	[ "$(wc -l <messages.txt)" = 1 ]
	grep -q "^kpack_hip: $T/packed/lib/libx.so: no code for gfx1030: $T/packed/.kpack/fat_gfx1030.kpack: lib/libx.so#[0-2] gfx1030: " messages.txt
	# the next archive has it
	ROCM_KPACK_PATH=$T/packed/.kpack:$T/away.kpack helped "$old" packed/lib/libx.so
	diff want log
	[ "$(wc -l <messages.txt)" = 1 ]
	# the colon in a name does not separate
	mv away.kpack away:xnack-.kpack
	ROCM_KPACK_PATH=$T/packed/.kpack:$T/away:xnack-.kpack:/none helped "$old" packed/lib/libx.so
	diff want log
}

@test "a marker that cannot be read is reported once" {
	make_library
	offset=$(readelf -SW packed/lib/libx.so | sed -n 's/.* \.rocm_kpack_ref *PROGBITS *[0-9a-f]* \([0-9a-f]*\) .*/\1/p')
	printf junk | dd of=packed/lib/libx.so bs=1 seek=$((0x$offset)) conv=notrunc status=none
	KPACK_HIP_ARCH=gfx1030 helped "$old" packed/lib/libx.so
	grep "^kpack_hip: $T/packed/lib/libx.so: no code for any GPU: " messages.txt
	[ "$(wc -l <messages.txt)" = 1 ]
	diff - output.txt <<<"3 set, 0 NULL"
}

@test "the line about missing code names the archive that exists, or the one for the processor" {
	make_library --arches gfx90a:xnack-,gfx11-generic
	local archive=packed/.kpack/fat_gfx90a:xnack-.kpack begin="kpack_hip: $T/packed/lib/libx.so: no code for"
	agents=gfx90a:xnack-
	echo junk >"$archive"
	KPACK_HIP_ARCH=gfx90a:sramecc+:xnack- helped "$old" packed/lib/libx.so
	[[ $(cat messages.txt) == "$begin gfx90a:sramecc+:xnack-: $T/$archive: "* ]]
	[ "$(wc -l <messages.txt)" = 1 ]
	rm "$archive"
	KPACK_HIP_ARCH=gfx90a:sramecc+:xnack- helped "$old" packed/lib/libx.so
	diff - messages.txt <<-END
	$begin gfx90a:sramecc+:xnack-: $T/packed/.kpack/fat_gfx90a.kpack: cannot open: No such file or directory
	END
	echo junk >packed/.kpack/fat_gfx11-generic.kpack
	KPACK_HIP_ARCH=gfx1103 helped "$old" packed/lib/libx.so
	[[ $(cat messages.txt) == "$begin gfx1103: $T/packed/.kpack/fat_gfx11-generic.kpack: "* ]]
}

@test "archives that are replaced and removed while the program runs" {
	make_library
	mv packed/.kpack away
	mkdir packed/.kpack
	same_code --before "cp away/* packed/.kpack" --after "rm packed/.kpack/*"
	rm -r packed/.kpack
	mv away packed/.kpack
	# the code that is in use stays
	export STUB_DEFERRED=1 KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100
	original
	helped "$old" packed/lib/libx.so --after 'for f in packed/.kpack/*; do echo >new; mv new "$f"; done'
	diff want log
	[ ! -s messages.txt ]
}

@test "eight threads, many rounds, nothing kept; children of a fork in the middle of it" {
	make_library
	original --threads 8 --rounds 5
	KPACK_HIP_ARCH="gfx90a gfx1030,gfx1100" helped "$old" packed/lib/libx.so --threads 8 --rounds 5
	diff <(sort want) <(sort log)
	[ ! -s messages.txt ]
	[ "$(sort -u output.txt)" = "24 set, 0 NULL" ]
	[ "$KPACK_MODE" != tsan ] || return 0
	KPACK_HIP_ARCH=gfx1030 helped "$old" packed/lib/libx.so --fork
	diff - output.txt <<<"3 set, 0 NULL"
	[ ! -s messages.txt ]
}

# A library that registers its wrapper in a constructor, and prints what came of it.
make_registering() { # LINK OPTION...
	mkdir -p fat/lib
	mkfat --bare --bundles 1 --seed "${seed-0}" --arches $arches bundle
	cat >x.c <<-'END'
	#include <stdint.h>
	#include <stdio.h>
	struct wrapper { uint32_t magic, version; const void *pointer; uint64_t index; };
	void *__hipRegisterFatBinary(const struct wrapper *);
	void __hipUnregisterFatBinary(void *);
	extern const char bundle[];
	__asm__(".section .hip_fatbin,\"a\",@progbits\n.balign 4096\n.globl bundle\n.hidden bundle\n"
		"bundle: .incbin \"bundle\"\n.text\n");
	static struct wrapper wrapper __attribute__((section(".hipFatBinSegment"), used)) =
		{0x48495046, 1, bundle, 0};
	static void *handle;
	__attribute__((constructor)) static void begin(void)
	{
		handle = __hipRegisterFatBinary(&wrapper);
		fprintf(stderr, "handle %s\n", handle ? "set" : "NULL");
	}
	#ifndef STAYS
	__attribute__((destructor)) static void end(void)
	{
		if (handle)
			__hipUnregisterFatBinary(handle);
	}
	#endif
	int answer(void *out, long n) { (void)out, (void)n; return 42; }
	int again(void)
	{
		void *h = __hipRegisterFatBinary(&wrapper);
		if (h)
			__hipUnregisterFatBinary(h);
		return h != NULL;
	}
	END
	cc -shared -fPIC -o fat/lib/libx.so x.c "$@"
	kpack pack -q fat packed
}

# The runtime is only in the scope of the library, which dlopen() loads as Python's modules.
load_registering() { # FILE
	local list
	list=$(preload "$stub/load")
	rm -f raw
	LD_LIBRARY_PATH=$old STUB_LOG=$PWD/raw STUB_ARCHES=$agents KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 \
		LD_PRELOAD=${list:+$list:}${HELPER-} ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 \
		"$stub/load" -c answer "$PWD/$1" >output.txt 2>messages.txt
	diff - output.txt <<<"answer 42"
	cut -d ' ' -f 3- raw >log
}

@test "a constructor's call, by a library that names the runtime's version" {
	make_registering -L"$old" -l:libamdhip64.so.5
	readelf -VW packed/lib/libx.so | grep -q hip_4.2
	load_registering packed/lib/libx.so
	diff - messages.txt <<<"handle NULL"
	load_registering fat/lib/libx.so
	mv log want
	HELPER=$helper load_registering packed/lib/libx.so
	diff want log
	diff - messages.txt <<<"handle set"
	grep -q '^gfx1100 [0-9]' log
	# as of two installations, in ld.so.preload and in the environment
	cp "$helper" copy.so
	HELPER=$helper:$PWD/copy.so load_registering packed/lib/libx.so
	diff want log
	diff - messages.txt <<<"handle set"
}

@test "a constructor's call, by a library without version" {
	ln -s "$old/libamdhip64.so.5" .
	echo 'void __hipRegisterFatBinary(void) {} void __hipUnregisterFatBinary(void) {}' |
		cc -shared -x c -Wl,-soname,libamdhip64.so.5 -o plain.so -
	make_registering plain.so
	! readelf -VW packed/lib/libx.so | grep -q hip_4.2 || false
	load_registering fat/lib/libx.so
	mv log want
	HELPER=$helper load_registering packed/lib/libx.so
	diff want log
	diff - messages.txt <<<"handle set"
}

@test "a library that is loaded where another was, which was not unregistered" {
	local list seed
	list=$(preload "$python")
	for seed in 1 2; do
		make_registering -DSTAYS -L"$old" -l:libamdhip64.so.5
		mkdir -p fat-$seed/lib
		mv fat/lib/libx.so fat-$seed/lib/lib$seed.so
		kpack pack -q fat-$seed packed-$seed
		rm -r fat packed
	done
	cat >load.py <<-'END'
	import _ctypes, ctypes, sys
	for name in sys.argv[1:]:
	    _ctypes.dlclose(ctypes.CDLL(name)._handle)
	END
	export LD_LIBRARY_PATH=$old STUB_LOG=$PWD/raw STUB_ARCHES=$agents KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	LD_PRELOAD=$list $python load.py ./fat-[12]/lib/lib[12].so
	cut -d ' ' -f 3- raw | sort >want
	rm -f raw
	LD_PRELOAD=${list:+$list:}$helper $python load.py ./packed-[12]/lib/lib[12].so
	cut -d ' ' -f 3- raw | sort | diff want -
}

@test "threads that load, unload and register, and children of a fork" {
	local list runtime=
	make_registering -L"$old" -l:libamdhip64.so.5
	for name in y z; do
		cp packed/lib/libx.so packed/lib/lib$name.so
	done
	list=$(preload "$stub/threads")
	# TSan does not see the dynamic linker's lock.  Its dlopen() has a lock that stays taken in
	# children; the helper does not need dlopen() if the runtime is in the global scope.
	echo race:ld-linux >suppressions
	[ "$KPACK_MODE" = release ] || runtime=$old/libamdhip64.so.5
	TSAN_OPTIONS=${TSAN_OPTIONS-}:suppressions=$PWD/suppressions ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 LD_LIBRARY_PATH=$old \
		KPACK_HIP_ARCH=gfx1030,gfx1100 LD_PRELOAD=${list:+$list:}$helper${runtime:+:$runtime} \
		"$stub/threads" "$PWD"/packed/lib/lib{x,y,z}.so >output.txt 2>messages.txt || { cat messages.txt; false; }
	diff - output.txt <<<right
	diff - <(sort -u messages.txt) <<<"handle set"
}

# bats test_tags=plain
@test "the helper is a library that the converted one needs" {
	# before the runtime, as patchelf --add-needed puts it
	make_registering -Wl,--no-as-needed "$helper" -L"$old" -l:libamdhip64.so.5 -Wl,-rpath,"$KPACK_BIN"
	readelf -dW packed/lib/libx.so | grep NEEDED | head -n 1 | grep -q libkpack_hip
	load_registering fat/lib/libx.so
	mv log want
	load_registering packed/lib/libx.so
	diff want log
	diff - messages.txt <<<"handle set"
	# the library's own scope comes before that of preloaded ones
	LD_LIBRARY_PATH=$old KPACK_HIP_ARCH=gfx1100 $python -c 'import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_DEEPBIND)' \
		"$T/packed/lib/libx.so" 2>messages.txt
	diff - messages.txt <<<"handle set"
}

# bats test_tags=plain
@test "a program with more rights than its user ignores the variables" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	make_registering -L"$old" -l:libamdhip64.so.5
	mkdir plain
	# not from the tree, whose path others may not search
	cp "$helper" "$old/libamdhip64.so.5" plain
	sed 's/int answer.*/int main(void) { return 0; }/' x.c >main.c
	mkdir prog
	cc -Wl,--no-as-needed -o prog/main main.c plain/libkpack_hip.so plain/libamdhip64.so.5 -Wl,-rpath,"$T/plain"
	kpack pack -q --runtime any prog packedprog
	export KPACK_HIP_ARCH=gfx1100:nonsense
	setpriv --reuid=65534 --regid=65534 --clear-groups packedprog/main 2>messages.txt
	grep -q 'KPACK_HIP_ARCH: ' messages.txt || { cat messages.txt; ls -lR packedprog; false; }
	chmod u+s packedprog/main
	setpriv --reuid=65534 --regid=65534 --clear-groups packedprog/main 2>messages.txt
	! grep KPACK_HIP_ARCH messages.txt || false
	grep -q 'handle set' messages.txt
}

# bats test_tags=plain
@test "programs without HIP: no other library, two names, and no effect" {
	diff - <(readelf -dW "$helper" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux') <<<"libc.so.6"
	diff - <(nm -D --defined-only "$helper" | awk '$2 == "T" { print $3 }') <<-END
	__hipRegisterFatBinary@@hip_4.2
	__hipUnregisterFatBinary@@hip_4.2
	END
	LD_PRELOAD=$helper sh -c 'echo right' >output.txt 2>messages.txt
	diff - output.txt <<<right
	[ ! -s messages.txt ]
}

# ---- kpack run, kpack runtime --------------------------------------------------------------

# bats test_tags=plain
@test "kpack run: the program's arguments, status and code" {
	make_library
	original
	export LD_LIBRARY_PATH=$old STUB_LOG=$PWD/raw STUB_ARCHES=$agents
	rm -f raw
	kpack run -v --arch gfx90a,gfx1030,gfx1100 -- $python "$tools/hipcalls.py" --wrappers 3 packed/lib/libx.so >output.txt 2>messages.txt
	diff - output.txt <<<"3 set, 0 NULL"
	diff want <(cut -d ' ' -f 3- raw)
	[ "$(grep -c "^kpack_hip: $T/packed/lib/libx.so: lib/libx.so#[0-2] .* in $T/packed/.kpack/" messages.txt)" -ge 9 ]
	# archives in another place, with a colon in its name
	mv packed/.kpack a:b
	rm -f raw
	kpack run --arch gfx90a,gfx1030,gfx1100 --archives a:b -- $python "$tools/hipcalls.py" --wrappers 3 packed/lib/libx.so
	diff want <(cut -d ' ' -f 3- raw)
	unset LD_LIBRARY_PATH
	LD_PRELOAD=$old/libamdhip64.so.5 kpack run -- sh -c 'echo "$LD_PRELOAD" "$1"; exit 3' sh -x >output.txt || [ $? = 3 ]
	diff - output.txt <<<"$old/libamdhip64.so.5:$helper -x"
	# target IDs in any order of features; a list that is none; this machine's
	print() { printf '%s\n' "${KPACK_HIP_ARCH-unset}"; }
	export -f print
	diff - <(kpack run --arch "gfx90a:xnack-:sramecc+;gfx1100" --arch gfx1030 -- bash -c print) <<<gfx90a:sramecc+:xnack-,gfx1100,gfx1030
	run -2 --separate-stderr kpack run --arch gfx1100:nonsense -- bash -c print
	[[ $stderr == "kpack: run: --arch gfx1100:nonsense: "* ]]
	run -2 kpack run --arch all -- bash -c print
	if KPACK_HIP_ARCH=gfx803 kpack run --arch auto -- bash -c print >output.txt 2>messages.txt; then
		diff - output.txt <<<unset
	else
		grep -q 'no GPU in ' messages.txt
	fi
	diff - <(KPACK_HIP_ARCH=gfx803 kpack run -- bash -c print) <<<gfx803
	# options after the program are its own
	diff - <(kpack run --arch gfx803 bash -c 'echo $KPACK_HIP_ARCH "$@"' bash -v --help --arch x) <<<"gfx803 -v --help --arch x"
	run -127 kpack run -- ./none
	run -126 kpack run -- "$T"
	run -2 kpack run
}

# bats test_tags=plain
@test "kpack runtime --ask: what they do" {
	mkdir -p rocm
	cp "$old/libamdhip64.so.5" rocm/libamdhip64.so.5.7
	ln -s "$stub/libamdhip64.so.5" linked
	printf 'junk __hipRegisterFatBinary' >rocm/libamdhip64.so.6
	echo 'void *__hipRegisterFatBinary(void *w) { return w; }
		__attribute__((constructor)) static void f(void) { __builtin_trap(); }' |
		cc -shared -fPIC -x c -o rocm/libamdhip64.so.8 -
	run -1 --separate-stderr kpack runtime --ask rocm
	diff - <(echo "$output") <<-END
	$T/rocm/libamdhip64.so.5.7	5.7	no	no
	$T/rocm/libamdhip64.so.6	6	no	unknown
	$T/rocm/libamdhip64.so.8	8	no	unknown
	END
	[[ $stderr == *"libamdhip64.so.6: it cannot be loaded here: $T/rocm/libamdhip64.so.6: "* ]]
	[[ $stderr == *"libamdhip64.so.8: the process ended by a signal"* ]]
	# root loads none from a build directory of another user's
	cp "$stub/libamdhip64.so.5" rocm/libamdhip64.so.5
	LD_LIBRARY_PATH=$KPACK_BIN kpack runtime --ask --hip rocm/libamdhip64.so.5 | grep -q '	yes	yes$'
}

# ---- mounts --------------------------------------------------------------------------------

decodes() { $python -c 'import json; print(json.load(open("mnt/.kpackfs/stats"))["decodes"])'; }

mounts_bundles() { # OPTION... ARCHIVES
	mkdir -p mnt
	"$KPACK_BIN/kpackfs" "$@" mnt
}

@test "what hides a mount is not mapped in its place" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	make_library
	original
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	mounts_bundles -o bundles packed/.kpack
	# as the owner of a directory above the mount can arrange it
	cp -r mnt/. hides
	cp -r mnt/.kpackfs hides
	mount --bind hides mnt
	[ -e mnt/hipfb/lib/libx.so/0.hipfb ]
	helped "$old" packed/lib/libx.so
	umount mnt
	diff <(sort want) <(sort log)
	! grep 'mapped from' messages.txt || false
}

@test "a mount's bundles are mapped, and decoded when a kernel is launched" {
	make_library
	original
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	# as for files of databases: a mount of the same archives that shows no bundles
	mkdir plain
	"$KPACK_BIN/kpackfs" packed/.kpack plain
	mounts_bundles -o bundles packed/.kpack
	STUB_DEFERRED=1 helped "$old" packed/lib/libx.so --after "cat mnt/.kpackfs/stats; grep -c mnt/hipfb/lib/libx.so/ /proc/\$PPID/maps"
	# nothing was decoded before the launches, and nothing copied
	grep -q '"decodes": *0,' output.txt
	grep -qx 3 output.txt
	grep -qx '3 set, 0 NULL' output.txt
	diff <(sort want) <(sort log)
	[ "$(grep -c "^kpack_hip: lib/libx.so#[0-2]: mapped from $T/mnt/hipfb/lib/libx.so/[0-2].hipfb$" messages.txt)" = 3 ]
	[ "$(decodes)" -gt 0 ]
	fusermount3 -u plain
}

# bats test_tags=plain
@test "a container's entrypoint mounts bundles for the program that it starts" {
	make_library
	original
	export LD_LIBRARY_PATH=$old STUB_LOG=$PWD/raw STUB_ARCHES=$agents
	rm -f raw
	PATH=$KPACK_BIN:$PATH KPACKFS_SOURCES=$T/packed/.kpack KPACKFS_MOUNTPOINT=$T/mnt KPACKFS_OPTIONS=ro,bundles \
		"$KPACK_SRC/contrib/examples/container/entrypoint" kpack run -v --arch gfx90a,gfx1030,gfx1100 -- \
		$python "$tools/hipcalls.py" --wrappers 3 packed/lib/libx.so >output.txt 2>messages.txt
	diff - output.txt <<<"3 set, 0 NULL"
	diff <(sort want) <(cut -d ' ' -f 3- raw | sort)
	[ "$(grep -c "mapped from $T/mnt/hipfb/" messages.txt)" = 3 ]
}

# bats test_tags=threads
@test "a mount's bundles in eight threads, in children of a fork, and when archives are replaced" {
	make_library
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	mounts_bundles -o bundles packed/.kpack
	original --threads 8 --rounds 3
	helped "$old" packed/lib/libx.so --threads 8 --rounds 3
	diff <(sort want) <(sort log)
	[ "$(sort -u output.txt)" = "24 set, 0 NULL" ]
	grep -q 'mapped from' messages.txt
	if [ "$KPACK_MODE" != tsan ]; then
		helped "$old" packed/lib/libx.so --fork # whose children write to the same log
		diff - output.txt <<<"3 set, 0 NULL"
		grep -q 'mapped from' messages.txt
	fi
	# what is mapped keeps its bytes, which are decoded after that
	export STUB_DEFERRED=1
	original
	helped "$old" packed/lib/libx.so --after 'for f in packed/.kpack/*; do echo >new; mv new "$f"; done'
	diff <(sort want) <(sort log)
	diff - output.txt <<<"3 set, 0 NULL"
	grep -q 'mapped from' messages.txt
}

@test "a mount is not used if it has no bundles, other archives, or conflicts" {
	make_library
	original
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	cp -a packed/.kpack copies
	for how in "packed/.kpack" "-o bundles copies" "-o bundles,arch=gfx1030 packed/.kpack"; do
		# shellcheck disable=SC2086 # options
		mounts_bundles $how
		helped "$old" packed/lib/libx.so
		diff want log
		! grep mapped messages.txt || false
		fusermount3 -u mnt
	done
	mounts_bundles -o bundles packed/.kpack
	helped "$old" packed/lib/libx.so
	grep -q mapped messages.txt
	fusermount3 -u mnt
	# equal keys with other contents
	mkdir clash
	mkfat --seed 1 --arches $arches clash/libx.so
	kpack pack -q --archives-only --key-prefix lib --group clash clash clashing
	mounts_bundles -o bundles packed/.kpack clashing/.kpack
	! grep -qx '  conflicts  none' mnt/.kpackfs/status || false
	helped "$old" packed/lib/libx.so
	diff want log
	! grep mapped messages.txt || false
}

@test "a mount that did not notice that archives were replaced is not used" {
	make_library --arches gfx1030,gfx1100
	original
	# another build, whose objects have the same sizes: the last byte of the last object
	mkdir -p next/lib
	cp fat/lib/libx.so next/lib
	$python - next/lib/libx.so $(readelf -SW fat/lib/libx.so | sed -n 's/.* \.hip_fatbin *PROGBITS *[0-9a-f]* \([0-9a-f]* [0-9a-f]*\) .*/0x\1/p') <<-'END'
	import sys
	data = bytearray(open(sys.argv[1], "rb").read())
	at = int(sys.argv[2], 16) + int(sys.argv[3], 16)
	while data[at - 1] == 0:
	    at -= 1
	data[at - 1] ^= 1
	open(sys.argv[1], "wb").write(data)
	END
	kpack pack -q --group fat next later
	export KPACK_HIP_ARCH=gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	mounts_bundles -o bundles "$T/packed/.kpack"
	helped "$old" packed/lib/libx.so
	diff want log
	grep -q 'mapped from' messages.txt
	# without the first process the other does not notice changes
	$python - "$(pgrep -of "kpackfs .*$T/packed")" <<-'END'
	import os, select, signal, sys
	fd = os.pidfd_open(int(sys.argv[1]))
	os.kill(int(sys.argv[1]), signal.SIGKILL)
	select.select([fd], [], [])
	END
	for f in later/.kpack/*; do cp "$f" new && mv new "packed/.kpack/${f##*/}"; done
	mv fat before
	mv next fat
	original
	helped "$old" packed/lib/libx.so
	diff want log
	! grep 'mapped from' messages.txt || false
	fusermount3 -u mnt
}

@test "another user's mount is not used" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -e /etc/fuse.conf ] || skip "needs /etc/fuse.conf"
	make_library
	original
	export KPACK_HIP_ARCH=gfx90a,gfx1030,gfx1100 KPACK_HIP_DEBUG=1
	chmod 0666 /dev/fuse
	mkdir mnt
	chown 65534 mnt
	cp "$KPACK_BIN/kpackfs" .
	echo user_allow_other >fuse.conf
	mount --bind fuse.conf /etc/fuse.conf
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		./kpackfs -o bundles,allow_other -o 'fsname=x\,user_id=0\,' packed/.kpack "$T/mnt"
	# the source can look like the kernel's own option
	grep -q 'fuse.kpackfs x,user_id=0, ' /proc/self/mountinfo
	umount /etc/fuse.conf
	[ -e mnt/hipfb/lib/libx.so/0.hipfb ]
	helped "$old" packed/lib/libx.so
	diff want log
	! grep mapped messages.txt || false
}
