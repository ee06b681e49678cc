#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack thin: full disks, files of other users, linked programs, and LLVM's tools.  What it does to trees is in
# the golden cases thin-* and in the properties; tests/sweep kills it at each moment.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing

fatparse() { $python "$tools/fatparse.py" "$@"; }

teardown() {
	cd /
	! mountpoint -q "$T/small" || umount "$T/small"
	rm -rf "$T"
}

# The objects of FILE: hash, index, architecture.
objects() { fatparse sums "$1" x | sed 's/^\(\S*\)  x#\?/\1 /'; }

# Everything of a tree that a look at it does not change.
state() { find "$1" -printf '%i %P %m %s %T@ %C@ %n\n' | sort; }

@test "in place: attributes and open files stay; again: nothing is written" {
	mkdir -p in/lib/deep
	mkfat --size 6000 in/lib/a.so
	ln in/lib/a.so in/lib/deep/a.so
	mkfat --size 6000 --arches gfx1100 in/lib/only.so
	chmod 0751 in/lib/a.so
	touch -d '2020-01-02 03:04:05.678901234' in/lib/a.so
	setfattr -n user.note -v kept in/lib/a.so
	cp -a in before
	exec 7<in/lib/a.so
	only=$(state in/lib/only.so)
	kpack thin -q --arch gfx1100 --keep kept in
	cmp before/lib/a.so - <&7
	exec 7<&-
	objects before/lib/a.so | grep ' gfx1100$' | diff - <(objects in/lib/a.so)
	[ in/lib/a.so -ef in/lib/deep/a.so ]
	[ "$(getfattr --only-values -n user.note in/lib/a.so)" = kept ]
	[ "$(state in/lib/only.so)" = "$only" ]
	diff <(stat -c '%a %u %g %y %h' before/lib/a.so) <(stat -c '%a %u %g %y %h' in/lib/a.so)
	state in >first
	kpack thin -n -q --arch gfx1100 in
	kpack thin -q --arch gfx1100 in
	state in | diff first -
}

@test "what cannot be replaced stops the run before anything changes" {
	as_root
	mkdir in
	mkfat --size 6000 in/a.so
	mkfat --size 6000 --seed 2 in/b.so
	chown -R 65534:65534 in
	chown 0:0 in/b.so
	cp -a in before
	run -1 as_nobody "$KPACK_BIN/kpack" thin --arch gfx1100 in
	[[ "$output" == *"in/b.so: belongs to user 0"*"nothing was removed because of the faults above"* ]]
	treecheck same before in
}

@test "in place on a disk that is nearly full: room for one file is enough" {
	as_root
	mkdir -p in/rocblas/library small
	# the largest one comes first, and needs the room that others free
	for i in 0 1 2 3; do
		mkfat --size $((i ? 200000 : 400000)) --seed $i --arches gfx1030,gfx1100,gfx1200,gfx1201 in/$i.so
	done
	py in/rocblas/library <<-'END'
	import sys, mkfat
	for arch in "gfx1030", "gfx1100":
	    open(f"{sys.argv[1]}/Kernels.so-000-{arch}.hsaco", "wb").write(mkfat.code_object(arch, 300000, arch))
	END
	kpack thin -q --arch gfx1100 in want
	room=$(($(du -k --apparent-size want/1.so | cut -f 1) + 300))
	all=$(du -sk in | cut -f 1)
	# begin KIB TREE: as much room as that is left beside the tree
	begin() {
		! mountpoint -q small || umount small
		mount -t tmpfs -o size=$((all + 64 + $1))k none small
		cp -a "$2" small/in
		head -c $(($(df --output=avail small | tail -1) * 1024 - $1 * 1024)) /dev/zero >small/filler
	}
	for jobs in 1 4; do
		begin $room in
		kpack thin -q --jobs $jobs --arch gfx1100 small/in
		diff -r want small/in
	done
	# what is kept is on the disk before a file is replaced
	begin $room in
	kpack thin -q --arch gfx1100 --keep kept small/in
	diff -r want small/in
	kpack thin -q --undo kept small/in
	diff -r in small/in
	# not even for the smallest
	rm -r in/rocblas
	begin 100 in
	run -1 kpack thin -q --arch gfx1100 small/in
	[[ "$output" == "kpack: small/in/"?".so: "*"No space left on device" ]]
	diff -r in small/in
	[ -z "$(find small -name '.kpack*')" ]
}

# An object with a bundle for three GPUs, its wrapper, a function NAME, and a symbol that is where
# the bundle is, as clang makes it with -fgpu-rdc.
fat_object() { # NAME OUT
	mkfat --bare --bundles 1 --size 9000 --seed "$1" bundle.bin
	cc -c -fPIC -x assembler - -o "$2" <<-END
	.text
	.globl $1
	.type $1, @function
	$1: mov \$42, %eax
	ret
	.section .hip_fatbin, "a", @progbits
	.p2align 12
	.globl __hip_fatbin_$1
	.hidden __hip_fatbin_$1
	__hip_fatbin_$1:
	.L$1: .incbin "bundle.bin"
	.section .hipFatBinSegment, "aw", @progbits
	.p2align 3
	.long 0x48495046, 1
	.quad .L$1, 0
	.section .data.last_$1, "aw", @progbits
	.p2align 6
	.quad __hip_fatbin_$1
	.section .note.GNU-stack, "", @progbits
	END
}

@test "static libraries without code link as before, and what is linked works" {
	[ "$(uname -m)" = x86_64 ] || return 0
	mkdir in before-out in-out
	for name in answer second third; do fat_object $name $name.o; done
	ld -r -o an_object_with_a_long_name.o second.o third.o
	ar rcs in/libfat.a answer.o an_object_with_a_long_name.o
	# something leads into the middle of a bundle
	echo '.data; .quad __hip_fatbin_third + 8' | cc -c -x assembler - -o n.o
	ld -r -o in_the_middle.o third.o n.o
	ar rcs in/libmiddle.a in_the_middle.o
	cp -a in before
	kpack thin -q --arch gfx1100 in 2>notes
	grep -q 'in/libmiddle.a: warning: left as it is: member in_the_middle.o: relocation .* leads into the middle' notes
	cmp {before,in}/libmiddle.a
	[ "$(stat -c %s in/libfat.a)" -lt $(($(stat -c %s before/libfat.a) / 2)) ]
	for d in before in; do
		nm -s $d/libfat.a | sed -n '/^Archive index/,/^$/p' >$d-out/index
		# what the index leads to, and everything
		cc -shared -o $d-out/one.so -Wl,-u,answer $d/libfat.a
		cc -shared -o $d-out/all.so -Wl,--whole-archive $d/libfat.a -Wl,--no-whole-archive
	done
	cmp {before,in}-out/index
	for f in one all; do
		objects before-out/$f.so | grep ' gfx1100$' | diff - <(objects in-out/$f.so)
	done
	# the symbols of bundles follow them: each has the value of its wrapper's pointer
	py in-out/all.so <<-'END'
	import ctypes, os, subprocess, sys, fatparse
	assert ctypes.CDLL(os.path.abspath(sys.argv[1])).answer() == 42
	elf = fatparse.Elf(sys.argv[1])
	rows = subprocess.run(["nm", sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
	values = sorted(int(r.split()[0], 16) for r in rows if "__hip_fatbin_" in r)
	pointers = sorted(elf.named[".hip_fatbin"][3] + offset for _, offset in elf.wrappers())
	assert values == pointers and len(values) == 3, (values, pointers)
	END
}

# bats test_tags=all
# What readers see of an object, without the offsets of sections, which segments repeat if
# they count, and the sizes of string tables.
described() {
	llvm-readelf-22 -W -h -S -s -n -d -l "$1" 2>/dev/null | sed -E 's/^File:.*//
		s/^(  \[[ 0-9]+\] [^ ]+ +[A-Z_0-9x]+ +[0-9a-f]{16}) [0-9a-f]{6}/\1/; s/^(  .*\.(sh)?strtab +STRTAB +0+) [0-9a-f]{6}/\1/
		s/ at offset.*//; s/(Start of section headers:).*/\1/; s/^(  [A-Z_]+ +)0x[0-9a-f]{6}(( 0x[0-9a-f]{16}){2} 0x000000)/\1\2/'
}

@test "LLVM's tools strip the same, and read what is compressed" {
	cat >k.c <<-'END'
	#define GLOBAL __attribute__((address_space(1)))
	static int GLOBAL counter;
	int GLOBAL table[300] = {1, 2, 3};
	static int __attribute__((noinline)) helper(int x) { return x * counter + table[x]; }
	__attribute__((amdgpu_kernel)) void add(int GLOBAL *a, int n) { for (int i = 0; i < n; i++) a[i] += helper(i); }
	__attribute__((amdgpu_kernel)) void sub(int GLOBAL *a, int n) { a[n] = -helper(n); counter = n; }
	END
	mkdir -p in/lib/rocblas/library
	local i=0 options arch
	for options in -g '-g -gz=zlib' '-g -Wl,--build-id=sha1' '-g -O2 -Wl,-O2,--build-id=md5' '-g -gdwarf-4' '-g1 -gsplit-dwarf' \
		'-ggnu-pubnames -g -Wl,--gdb-index' '-g -Wl,-z,separate-loadable-segments' '-g -Wl,-z,norelro,-s' '-O1'; do
		for arch in gfx1100 gfx90a; do
			i=$((i + 1))
			clang-22 -target amdgcn-amd-amdhsa -mcpu=$arch -nogpulib $options k.c \
				-o in/lib/rocblas/library/TensileLibrary_Type_HH_Contraction_l_$i\_$arch.co
		done
	done
	mkfat --bare --bundles 1 --size 60000 in/kernels.hipfb
	cp -a in before
	kpack thin -q --arch gfx1100,gfx90a --strip-debug --debug-to debug in
	kpack thin -q --arch gfx1100,gfx90a --strip-debug in
	for f in before/lib/rocblas/library/*; do
		echo "$f"
		llvm-strip-22 --strip-debug -o want "$f"
		# one that does not become smaller stays
		[ "$(stat -c %s want)" -lt "$(stat -c %s "$f")" ] || cp "$f" want
		diff <(described want) <(described "in/${f#before/}")
		for o in "$f" "in/${f#before/}"; do
			llvm-objcopy-22 -O binary "$o" - | sha256sum
		done | uniq | wc -l | grep -qx 1
		build_id=$(llvm-readelf-22 -n "$f" | sed -n 's/^ *Build ID: \(..\)/\1\//p')
		[ -n "$build_id" ] || continue
		llvm-objcopy-22 --only-keep-debug "$f" want
		diff <(described want) <(described "debug/.build-id/$build_id.debug")
		diff <(llvm-dwarfdump-22 "$f" | tail -n +2) <(llvm-dwarfdump-22 "debug/.build-id/$build_id.debug" | tail -n +2)
	done
	[ "$(find debug -type f | wc -l)" = 4 ]
	kpack thin -q --arch gfx1100 --compress --runtime any before out
	[ "$(head -c 6 out/kernels.hipfb | xxd -p)" = 43434f420200 ]
	for f in before out; do
		clang-offload-bundler-22 --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx1100 \
			--input=$f/kernels.hipfb --output=$f.co
	done
	cmp before.co out.co
}
