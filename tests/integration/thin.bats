#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack thin: ordinary fat binaries with the code of some GPUs; judged by an independent reader.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing

fatparse() { $python "$tools/fatparse.py" "$@"; }

teardown() {
	cd /
	! mountpoint -q "$T/small" || umount "$T/small"
	rm -rf "$T"
}

sum() { sha256sum <"$1" | cut -d ' ' -f 1; }

# The objects of FILE: hash, index, architecture.
objects() { fatparse sums "$1" x | sed 's/^\(\S*\)  x#\?/\1 /'; }

# AFTER has the objects of BEFORE whose architecture matches PATTERN, and no others.
keeps() { # BEFORE AFTER PATTERN
	objects "$1" | grep -E " ($3)\$" >want || [ $? = 1 ]
	objects "$2" >have
	diff want have
	[ -s have ]
	# everything of the host's stays: the wrappers, in number and kind
	[ "$(fatparse shape "$1" | cut -d ' ' -f 1,2,5-)" = "$(fatparse shape "$2" | cut -d ' ' -f 1,2,5-)" ]
}

answers() { # FILE
	py "$1" <<-'END'
	import ctypes, os, sys
	assert ctypes.CDLL(os.path.abspath(sys.argv[1])).answer() == 42
	END
}

make_tree() { # DIR
	mkdir -p "$1/lib/deep"
	mkfat --size 60000 "$1/lib/a.so"
	ln "$1/lib/a.so" "$1/lib/deep/a.so"
	ln -s a.so "$1/lib/a.so.1"
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx1201 "$1/lib/b.so"
	mkfat --size 60000 --seed 3 --arches gfx1100 "$1/lib/only.so"
	echo text >"$1/lib/text"
	chmod 0751 "$1/lib/a.so"
	touch -d '2020-01-02 03:04:05.678901234' "$1/lib/a.so"
	setfattr -n user.note -v kept "$1/lib/a.so"
}

# --- binaries -------------------------------------------------------------------------

@test "only the code that the GPU loads stays, in bundles of every form" {
	mkdir in
	mkfat --size 60000 in/plain.so
	mkfat --size 60000 --align 64 in/close.so
	mkfat --size 60000 --ragged in/ragged.so
	mkfat --size 60000 --share 3 in/shared.so
	mkfat --size 60000 --reverse in/reverse.so
	mkfat --size 60000 --loose 1 in/loose.so
	mkfat --size 90000 --ccob all in/packed.so
	mkfat --size 90000 --ccob odd --ccob-version 2 in/some.so
	kpack thin -q --arch gfx1100 in out
	for f in plain close ragged shared reverse loose packed some; do
		echo $f
		keeps in/$f.so out/$f.so gfx1100
		answers out/$f.so
		# a third of the code is left, and little else was added
		[ "$(stat -c %s out/$f.so)" -lt $(($(stat -c %s in/$f.so) * 7 / 10)) ]
	done
	# a compressed bundle stays one, of its version
	for f in packed some; do
		kpack inspect --json in/$f.so | grep -c '"format": "ccob"' >want || :
		kpack inspect --json out/$f.so | grep -c '"format": "ccob"' | diff want - || false
	done
}

# --- trees ----------------------------------------------------------------------------

@test "in place: every path is replaced, attributes and links stay; again: nothing changes" {
	make_tree in
	cp -a in before
	exec 7<in/lib/a.so
	old=$(sha256sum <in/lib/a.so)
	only=$(stat -c %i in/lib/only.so)
	kpack thin -q --arch gfx1100 in
	[ "$(sha256sum <&7)" = "$old" ]
	keeps before/lib/a.so in/lib/a.so gfx1100
	keeps before/lib/b.so in/lib/b.so gfx1100
	[ in/lib/a.so -ef in/lib/deep/a.so ]
	[ "$(readlink in/lib/a.so.1)" = a.so ]
	for f in a.so b.so; do
		stat -c '%a %u %g %y %h' before/lib/$f >want
		stat -c '%a %u %g %y %h' in/lib/$f | diff want -
	done
	[ "$(getfattr --only-values -n user.note in/lib/a.so)" = kept ]
	[ "$(stat -c %i in/lib/only.so)" = "$only" ]
	cmp before/lib/only.so in/lib/only.so
	find in -printf '%i %P %s %T@ %C@\n' | sort >first
	run kpack thin --arch gfx1100 in
	[ "$status" -eq 0 ]
	[[ "$output" == *"0 binaries, 0 files of kernel databases: 0 bytes freed"* ]]
	find in -printf '%i %P %s %T@ %C@\n' | sort | diff first -
	# what a copy has
	kpack thin -q --arch gfx1100 before out
	treecheck same in out $(cd out && find . -type d -printf '%P\n') .
}

@test "-n writes nothing, and prints what a run frees" {
	make_tree in
	mkfat --size 90000 --ccob all in/lib/packed.so
	find in -printf '%i %P %s %T@ %C@\n' | sort >first
	kpack thin -n --json --arch gfx1100 in >would
	find in -printf '%i %P %s %T@ %C@\n' | sort | diff first -
	kpack thin --json --arch gfx1100 in >did
	py <<-'END'
	import json
	a, b = json.load(open("would")), json.load(open("did"))
	assert [f["path"] for f in a["files"]] == [f["path"] for f in b["files"]] == [
	    "lib/a.so", "lib/b.so", "lib/packed.so"], a
	for x, y in zip(a["files"], b["files"]):
	    assert x["size_before"] == y["size_before"]
	    # program headers and the alignment of segments
	    assert abs(y["size_after"] - x["size_after"]) < 20000, (x, y)
	assert a["dry_run"] and not b["dry_run"]
	END
}

@test "-n promises nothing for a file that is not changed" {
	mkdir in
	mkfat in/a.so
	mkfat in/b.so
	# the size that it says its header has
	printf A | dd of=in/b.so bs=1 seek=52 conv=notrunc status=none
	kpack thin -n --json --arch gfx1100 in >would 2>err
	grep -q '^kpack: in/b.so: warning: left as it is: elf: its headers have an unknown size' err
	grep -A 1 '"path": "b.so"' would | grep -q '"status": "refused"'
	kpack thin -q --arch gfx1100 in out 2>err
	grep -q '^kpack: in/b.so: warning: left as it is: elf: its headers have an unknown size' err
	cmp in/b.so out/b.so
}

@test "files of databases that are for other GPUs go" {
	mkdir -p in/lib/rocblas/library
	cd in/lib/rocblas/library
	for f in TensileLibrary_Type_HH_gfx1100.co TensileLibrary_Type_HH_gfx90a.co Kernels.so-000-gfx1100.hsaco \
		Kernels.so-000-gfx90a-xnack+.hsaco Kernels.so-000-gfx90a-xnack-.hsaco; do
		py "$f" <<-'END'
		import re, sys, mkfat
		arch = re.search(r"gfx\w+(-xnack.)?", sys.argv[1])[0].replace("-", ":", 1)
		open(sys.argv[1], "wb").write(mkfat.code_object(arch, 3000, sys.argv[1]))
		END
	done
	cd "$T"
	cp -a in before
	kpack thin --arch gfx90a:xnack- in >report
	[ "$(ls in/lib/rocblas/library)" = $'Kernels.so-000-gfx90a-xnack-.hsaco\nTensileLibrary_Type_HH_gfx90a.co' ]
	grep -q '^0 binaries, 3 files of kernel databases: ' report
	kpack thin -q --arch gfx90a:xnack- before out
	diff -r in out
}

@test "a link to a file is no tree, a link to a directory is" {
	mkdir dir
	mkfat --size 60000 --arches gfx1100,gfx1030 dir/a.so
	cp dir/a.so before
	ln -s a.so dir/link.so
	ln -s nowhere dir/dangling
	ln -s dir tree
	run -1 kpack thin --arch gfx1100 dir/link.so
	[ "$output" = "kpack: dir/link.so: a symbolic link, which is not followed: name the file, $(realpath dir/a.so)" ]
	run -1 kpack thin --arch gfx1100 dir/dangling
	[ "$output" = "kpack: dir/dangling: a symbolic link: No such file or directory" ]
	run -1 kpack thin --arch gfx1100 dir/link.so out
	[ ! -e out ]
	cmp before dir/a.so
	kpack thin -q --arch gfx1100 tree
	! cmp -s before dir/a.so || false
}

@test "a list that fits nothing is taken to be wrong" {
	make_tree in
	cp -a in before
	run kpack thin --arch gfx942 in
	[ "$status" -eq 1 ]
	[[ "$output" == *"in: no code is for the wanted GPUs: nothing is removed"* ]]
	run kpack thin --arch gfx110 in
	[ "$status" -eq 2 ]
	[[ "$output" == *"unknown GPU gfx110"* ]]
	run kpack thin in
	[ "$status" -eq 2 ]
	# nothing was asked for
	kpack thin -q --arch all in
	run kpack thin --arch gfx1100 in in/lib
	[ "$status" -eq 2 ]
	diff -r in before
}

@test "what cannot be replaced stops the run before anything changes" {
	as_root
	make_tree in
	chown -R 65534:65534 in
	chown 0:0 in/lib/b.so
	cp -a in before
	run as_nobody "$KPACK_BIN/kpack" thin --arch gfx1100 in
	[ "$status" -eq 1 ]
	[[ "$output" == *"in/lib/b.so: belongs to user 0"* ]]
	[[ "$output" == *"nothing was removed because of the faults above"* ]]
	treecheck same before in
}

@test "a file that would not become smaller stays" {
	mkdir in
	# so little code that the new program headers need more
	mkfat --size 200 --bundles 1 --arches gfx1030,gfx1100 --align 16 in/small.so
	cp -a in before
	kpack thin --arch gfx1100 in >report 2>notes
	cmp before/small.so in/small.so
	grep -q 'small.so: note: left as it is: ' notes
}

@test "in place on a disk that is nearly full: room for one file is enough" {
	as_root
	mkdir in small
	for i in 1 2 3 4 5 6; do
		mkfat --size 400000 --seed $i --arches gfx1030,gfx1100,gfx1200,gfx1201 in/$i.so
	done
	# the largest one comes first, and needs the room that others free
	mkfat --size 900000 --seed 9 --arches gfx1030,gfx1100,gfx1200,gfx1201 in/0.so
	mkdir in/rocblas in/rocblas/library
	py in/rocblas/library <<-'END'
	import sys, mkfat
	for arch in "gfx1030", "gfx1100":
	    open(f"{sys.argv[1]}/Kernels.so-000-{arch}.hsaco", "wb").write(mkfat.code_object(arch, 300000, arch))
	END
	kpack thin -q --arch gfx1100 in want
	want=$(du -k --apparent-size want/1.so | cut -f 1)
	first=$(du -k --apparent-size want/0.so | cut -f 1)
	all=$(du -sk in | cut -f 1)
	# begin KIB: as much room as that is left
	begin() {
		! mountpoint -q small || umount small
		mount -t tmpfs -o size=$((all + 64 + $1))k none small
		cp -a in small/
		head -c $(($(df --output=avail small | tail -1) * 1024 - $1 * 1024)) /dev/zero >small/filler
	}
	for jobs in 1 4; do
		begin $((want + 300))
		kpack thin -q --jobs $jobs --arch gfx1100 small/in
		diff -r want small/in
	done
	# what is kept is on the disk before a file is replaced
	begin $((want + 300))
	kpack thin -q --arch gfx1100 --keep kept small/in
	diff -r want small/in
	umount small
	mount -t tmpfs none small
	cp -a want small/in
	rm -r kept
	begin $((want + 300))
	kpack thin -q --arch gfx1100 --keep kept small/in
	kpack thin -q --undo kept small/in
	diff -r in small/in
	# not even for the smallest
	rm -r in/rocblas
	begin $((want / 2))
	run kpack thin -q --arch gfx1100 small/in
	[ "$status" -eq 1 ]
	[[ "$output" == "kpack: small/in/"?".so: "*"No space left on device" ]]
	diff -r in small/in
	[ -z "$(find small -name '.kpack*')" ]
	umount small
}

@test "a killed run leaves whole files, and the next one finishes" {
	make_tree in
	for i in $(seq 12); do
		mkfat --size 60000 --seed "k$i" in/lib/k$i.so
	done
	cp -a in before
	kpack thin -q --arch gfx1100 in out
	for i in $(seq 6); do
		"$KPACK_BIN/kpack" thin -q --arch gfx1100 in &
		kill -9 $! 2>/dev/null || :
		wait $! 2>/dev/null || :
		for f in in/lib/*.so; do
			cmp -s "$f" "before/${f#in/}" || cmp "$f" "out/${f#in/}"
		done
	done
	kpack thin -q --arch gfx1100 in
	diff -r in out
	[ -z "$(find in -name '.kpack*')" ]
}

# --- debugging information ------------------------------------------------------------

@test "debugging information goes from code objects, as llvm-strip removes it" {
	mkdir -p in/lib
	debug_library in/lib/plain.so 0 "$with_id" "$no_id" "$with_id"
	debug_library in/lib/packed.so 3 "$no_id" "$with_id"
	debug_library in/lib/old.so 2 "$with_id"
	cp -a in before
	kpack thin -n --json --arch gfx1100,gfx1030 --strip-debug in >would
	kpack thin --json --arch gfx1100,gfx1030 --strip-debug in >did
	py <<-'END'
	import json
	a, b = ({f["path"]: f["size_after"] for f in json.load(open(n))["files"]} for n in ("would", "did"))
	assert sorted(a) == sorted(b) == ["lib/old.so", "lib/packed.so", "lib/plain.so"], (a, b)
	assert all(abs(a[n] - b[n]) < 20000 for n in a), (a, b)
	END
	for f in plain packed old; do
		answers in/lib/$f.so
		# what is stripped is right, and nothing else changed
		fatparse sums before/lib/$f.so x | sed "s/^$(sum "$with_id")/$with_id_stripped/; s/^$(sum "$no_id")/$no_id_stripped/" | sort >want
		fatparse sums in/lib/$f.so x | sort | diff want -
		[ "$(stat -c %s in/lib/$f.so)" -lt "$(stat -c %s before/lib/$f.so)" ]
	done
	find in -printf '%i %P %s %T@ %C@\n' | sort >first
	kpack thin --arch gfx1100,gfx1030 --strip-debug in >again
	find in -printf '%i %P %s %T@ %C@\n' | sort | diff first -
	grep -qx '0 binaries, 0 files of kernel databases: 0 bytes freed' again
	# the same if all code stays
	kpack thin -q --arch all --strip-debug before all
	diff -r in all
	# with code that goes, both at once
	kpack thin -q --arch gfx1100 --strip-debug before out
	objects out/lib/plain.so | cut -d ' ' -f 1 | sort -u >have
	printf '%s\n' $with_id_stripped $no_id_stripped | sort | diff - have
}

@test "debugging information of database files goes, and is kept for debuggers" {
	mkdir -p in/lib/rocblas/library
	cp "$with_id" in/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cp "$no_id" in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.co
	cp "$with_id" in/lib/rocblas/library/TensileLibrary_Type_DD_gfx1100.co
	ln in/lib/rocblas/library/TensileLibrary_Type_DD_gfx1100.co in/lib/rocblas/library/Kernels.so-001-gfx1100.hsaco
	# damaged content is left alone
	head -c 3000 "$with_id" >in/lib/rocblas/library/TensileLibrary_Type_SS_gfx1100.co
	# so is an object whose notes are damaged
	py "$with_id" in/lib/rocblas/library/TensileLibrary_Type_ZZ_gfx1100.co <<-'END'
	import sys
	code = bytearray(open(sys.argv[1], "rb").read())
	size = code.index(b"\3\0\0\0GNU\0") - 4
	code[size:size + 4] = b"\xff\xff\xff\x7f"
	open(sys.argv[2], "wb").write(code)
	END
	cp -a in before
	kpack thin --arch gfx1100 --strip-debug --debug-to debug in >report
	cd in/lib/rocblas/library
	[ "$(sum Kernels.so-000-gfx1100.hsaco)" = $with_id_stripped ]
	for f in TensileLibrary_Type_{HH,DD,SS,ZZ}_gfx1100.co; do
		cmp $f "$T/before/lib/rocblas/library/$f"
	done
	cd "$T"
	[ "$(find debug -type f)" = debug/.build-id/$build_id.debug ]
	[ "$(sum debug/.build-id/$build_id.debug)" = $with_id_debug ]
	grep -qx 'debugging information of 1 code objects is in debug' report
	grep -q '^2 code objects have no build ID ' report
	grep -q '^0 binaries, 1 files of kernel databases: ' report
	kpack thin -q --arch gfx1100 --strip-debug in
	[ "$(sum in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.co)" = $no_id_stripped ]
	run kpack thin --arch gfx1100 --debug-to debug in
	[ "$status" -eq 2 ]
	[[ "$output" == *"--debug-to needs --strip-debug"* ]]
}

@test "debugging information that cannot be kept is not removed" {
	as_root
	mkdir in full
	debug_library in/a.so 0 "$with_id"
	cp -a in before
	mount -t tmpfs -o size=4k none full
	run kpack thin --arch gfx1100 --strip-debug --debug-to full in
	umount full
	[ "$status" -eq 1 ]
	[[ "$output" == *"in/a.so: "*"debugging information ${build_id/\//}"* ]]
	diff -r in before
}

# bats test_tags=all
@test "objects of several compilers' options are stripped as LLVM's tools do it" {
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
	cp -a in before
	kpack thin -q --arch gfx1100,gfx90a --strip-debug --debug-to debug in
	kpack thin -q --arch gfx1100,gfx90a --strip-debug in
	for f in before/lib/rocblas/library/*; do
		echo "$f"
		llvm-strip-22 --strip-debug -o want "$f"
		# one that does not become smaller stays
		[ "$(stat -c %s want)" -lt "$(stat -c %s "$f")" ] || cp "$f" want
		cmp want "in/${f#before/}"
		build_id=$(llvm-readelf-22 -n "$f" | sed -n 's/^ *Build ID: \(..\)/\1\//p')
		[ -n "$build_id" ] || continue
		llvm-objcopy-22 --only-keep-debug "$f" want
		cmp want "debug/.build-id/$build_id.debug"
	done
	[ "$(find debug -type f | wc -l)" = 4 ]
}

# --- compression ----------------------------------------------------------------------

# A file with the name of a HIP runtime, which reads compressed bundles or not.
fake_runtime() { # FILE TEXT
	fake_library "$1" __hipRegisterFatBinary "$2"
}

# A file that has TEXTs, one of them on a border of the blocks that are searched.
fake_library() { # FILE TEXT...
	head -c 1048570 /dev/zero | tr '\0' x >"$1"
	printf '%s' "${@:2}" >>"$1"
}

@test "code that stays is written compressed, if the tree's runtime reads that" {
	mkdir -p in/lib/rocblas/library
	mkfat --size 60000 in/lib/plain.so
	mkfat --size 60000 --arches gfx1100 in/lib/only.so
	mkfat --size 60000 --ccob all --ccob-version 3 in/lib/packed.so
	mkfat --bare --bundles 1 --size 60000 --arches gfx1100 in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1100.co
	# a code object by itself, which loses its debugging information as well
	cp "$with_id" in/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	fake_runtime in/lib/libamdhip64.so.7 CCOB
	fake_runtime in/lib/libamdhip64.so.5 none
	cp -a in before
	run kpack thin --arch gfx1100 --compress in
	[ "$status" -eq 1 ]
	[[ "$output" == *"in/lib/libamdhip64.so.5: this HIP runtime does not read compressed bundles"* ]]
	diff -r in before
	rm in/lib/libamdhip64.so.5
	kpack thin -q --arch gfx1100 --compress --strip-debug in
	py in/lib/rocblas/library/*.hsaco $with_id_stripped <<-'END'
	import hashlib, sys, fatparse
	data = open(sys.argv[1], "rb").read()
	((kind, arch, code),) = fatparse.containers(data)[0]
	assert (kind, arch, hashlib.sha256(code).hexdigest()) == ("hipv4", "gfx1100", sys.argv[2])
	bundle, size = fatparse.unpack(data)
	assert bytes(bundle[24:32]) == b"\2" + bytes(7) and b"host-x86_64-unknown-linux-gnu-" in bytes(bundle[:200])
	END
	for f in plain only packed; do
		keeps before/lib/$f.so in/lib/$f.so gfx1100
		answers in/lib/$f.so
	done
	py in/lib/*.so in/lib/rocblas/library/*.co <<-'END'
	import sys, re, hashlib, zstandard
	after, before = (open(d + sys.argv[-1][2:], "rb").read() for d in ("in", "before"))
	assert zstandard.ZstdDecompressor().decompress(after[24:]) == before
	assert after[16:24] == hashlib.md5(before).digest()[:8]
	versions = [[m[4] for m in re.findall(rb"CCOB[\x01-\x03]\x00\x01\x00", open(f, "rb").read())] for f in sys.argv[1:]]
	assert versions == [[2, 2, 2], [3, 3, 3], [2, 2, 2], [2]], versions
	END
	# a third of the bytes, of a third of the code
	[ "$(stat -c %s in/lib/plain.so)" -lt $(($(stat -c %s before/lib/plain.so) / 4)) ]
	find in -printf '%i %P %s %T@ %C@\n' | sort >first
	kpack thin -q --arch gfx1100 --compress in
	find in -printf '%i %P %s %T@ %C@\n' | sort | diff first -
}

@test "nothing is compressed for a runtime whose libamd_comgr takes one bundle for another" {
	slice=_ZN4llvm12MemoryBuffer12getFileSliceERKNS_5TwineEmmbSt8optionalINS_5AlignEE
	debian7_0=(libLLVM.so.21.1 $slice AMD_COMGR_CACHE)
	mkdir -p in/lib
	mkfat --size 60000 in/lib/plain.so
	fake_runtime in/lib/libamdhip64.so.7 CCOB
	refused() { # FILE: for this runtime alone
		cp -a in before
		run -1 kpack thin --arch gfx1100 --compress in
		[[ "$output" == *"$1: this HIP runtime does not find the kernels"*"AMD_COMGR_CACHE=0" ]]
		[ "${#lines[@]}" = 1 ]
		diff -r in before
		rm -r before
	}
	compressed() { # [OPTION]...
		rm -rf out
		kpack thin -q --arch gfx1100 --compress "$@" in out
		grep -q "$(printf 'CCOB\2')" out/lib/plain.so
	}
	# of HIP 6, without a libamd_comgr: by its name, by the one that the file states, and where the system's is
	fake_runtime in/lib/libamdhip64.so.6.4.43484 CCOB
	refused in/lib/libamdhip64.so.6.4.43484
	compressed --runtime any
	rm in/lib/libamdhip64.so.6.*
	fake_runtime in/lib/libamdhip64.so CCOBlibamdhip64.so.6
	refused in/lib/libamdhip64.so
	mkdir -p rocm/lib
	mv in/lib/libamdhip64.so rocm/lib
	compressed
	mv in/lib/libamdhip64.so.7 .
	ROCM_PATH=$PWD/rocm refused rocm/lib/libamdhip64.so
	# with one that is as it should be: a later one, and one that contains LLVM
	fake_library rocm/lib/libamd_comgr.so.3.0.0 libLLVM.so.22.1 AMD_COMGR_CACHE
	ROCM_PATH=$PWD/rocm compressed
	fake_library rocm/lib/libamd_comgr.so.3.0.0 $slice AMD_COMGR_CACHE
	ROCM_PATH=$PWD/rocm compressed
	# and with the wrong one, whatever the runtime
	fake_library rocm/lib/libamd_comgr.so.3 "${debian7_0[@]}"
	ROCM_PATH=$PWD/rocm refused rocm/lib/libamdhip64.so
	mv libamdhip64.so.7 in/lib
	ROCM_PATH=$PWD/rocm compressed
	fake_library in/lib/libamd_comgr.so.3 "${debian7_0[@]}"
	refused in/lib/libamdhip64.so.7
	run -2 kpack thin --arch gfx1100 --compress --runtime all in
}

# bats test_tags=all
@test "clang reads what was compressed" {
	mkdir in
	mkfat --bare --bundles 1 --size 60000 in/kernels.hipfb
	fake_runtime in/libamdhip64.so CCOB
	kpack thin -q --arch gfx1030 --compress in out
	[ "$(head -c 6 out/kernels.hipfb | xxd -p)" = 43434f420200 ]
	for f in in out; do
		clang-offload-bundler-22 --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx1030 \
			--input=$f/kernels.hipfb --output=$f.co
	done
	cmp in.co out.co
}

# --- static libraries -----------------------------------------------------------------

# An object with a bundle for three GPUs, its wrapper, a function NAME, and a symbol that is where
# the bundle is, as clang makes it with -fgpu-rdc, after what the file SOURCE has.
fat_object() { # NAME OUT [SOURCE]
	mkfat --bare --bundles 1 --size 20000 --seed "$1" bundle.bin
	cat "${3-/dev/null}" - <<-END | cc -c -fPIC -x assembler - -o "$2"
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

static_library() { # OUT
	fat_object answer a.o
	fat_object second b.o
	fat_object third c.o
	ld -r -o an_object_with_a_long_name.o b.o c.o
	echo 'int plain(void) { return 1; }' | cc -c -fPIC -x c - -o plain.o
	echo text >text
	rm -f "$1"
	ar rcs "$1" a.o plain.o an_object_with_a_long_name.o text
}

# The symbols of an archive's index, with their members.
index_of() { nm -s "$1" | sed -n '/^Archive index/,/^$/p'; }

@test "static libraries lose code, and stay right" {
	[ "$(uname -m)" = x86_64 ] || return 0
	mkdir in
	static_library in/libfat.a
	cp -a in before
	kpack thin -n --json --arch gfx1100 in >would
	kpack thin --json --arch gfx1100 in >did
	py <<-'END'
	import json
	a, b = (json.load(open(n))["files"] for n in ("would", "did"))
	assert a == b and a[0]["size_after"] < a[0]["size_before"] / 2, (a, b)
	END
	diff <(ar tv before/libfat.a | awk '{ print $1, $2, $4, $5, $6, $7, $8 }') <(ar tv in/libfat.a | awk '{ print $1, $2, $4, $5, $6, $7, $8 }')
	diff <(index_of before/libfat.a) <(index_of in/libfat.a)
	for d in before in; do
		mkdir $d-out
		# what the index leads to, and everything
		cc -shared -o $d-out/one.so -Wl,-u,answer $d/libfat.a
		(cd $d-out && ar x ../$d/libfat.a && cc -shared -o all.so ./*.o)
	done
	for f in one all; do
		keeps before-out/$f.so in-out/$f.so gfx1100
		answers in-out/$f.so
	done
	[ "$(objects in-out/all.so | wc -l)" = 3 ]
	# the symbols of bundles follow them: each has the value of its wrapper's pointer
	py in-out/all.so <<-'END'
	import subprocess, sys, fatparse
	elf = fatparse.Elf(sys.argv[1])
	rows = subprocess.run(["nm", sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
	values = sorted(int(r.split()[0], 16) for r in rows if "__hip_fatbin_" in r)
	pointers = sorted(elf.named[".hip_fatbin"][3] + offset for _, offset in elf.wrappers())
	assert values == pointers and len(values) == 3, (values, pointers)
	END
	find in -printf '%i %P %s %T@ %C@\n' | sort >first
	kpack thin -q --arch gfx1100 in
	find in -printf '%i %P %s %T@ %C@\n' | sort | diff first -
}

# The archive IN of GNU ar as BSD's or Darwin's tools write it.
bsd_library() { # bsd|darwin|darwin64 IN OUT
	py "$@" <<-'END'
	import sys, arfile
	kind, source, out = sys.argv[1:]
	members, symbols = arfile.read(source)
	open(out, "wb").write(arfile.write_bsd(members, symbols, kind))
	END
}

@test "static libraries of BSD and of Darwin" {
	[ "$(uname -m)" = x86_64 ] || return 0
	static_library gnu.a
	mkdir in
	for kind in bsd darwin darwin64; do
		bsd_library $kind gnu.a in/lib$kind.a
	done
	cp -a in before
	kpack thin --arch gfx1100 gnu.a
	kpack thin -n --json --arch gfx1100 in >would
	kpack thin --json --arch gfx1100 in >did
	py <<-'END'
	import arfile, json
	a, b = (json.load(open(n))["files"] for n in ("would", "did"))
	assert a == b and len(a) == 3, (a, b)
	want = arfile.read("gnu.a")[0]
	for kind in "bsd", "darwin", "darwin64":
	    members, symbols = arfile.read("in/lib%s.a" % kind)
	    assert [(n, d) for n, d in want] == [(n, d[:len(w[1])]) for (n, d), w in zip(members, want)]
	    assert all(not d[len(w[1]):].strip(b"\n") and (kind != "bsd" or d == w[1])
	               for (n, d), w in zip(members, want))
	    assert symbols == arfile.read("before/lib%s.a" % kind)[1] and symbols
	    if kind != "bsd":
	        assert all(at % 8 == 0 for at in arfile.offsets("in/lib%s.a" % kind))
	END
	cp -a in again
	kpack thin -q --arch gfx1100 again
	diff -r in again
	# an offset in the index, or its sizes, are wrong
	for at in 92 84; do
		rm -f again/*
		py $at <<-'END'
		import sys
		data = bytearray(open("before/libbsd.a", "rb").read())
		data[int(sys.argv[1])] ^= 4
		open("again/lib.a", "wb").write(data)
		END
		cp again/lib.a .
		! kpack thin -q --arch gfx1100 again 2>err || false
		grep -q '^kpack: again/lib.a: damaged, left as it is: .*index' err
		cmp lib.a again/lib.a
	done
}

@test "static libraries that cannot be rewritten stay, with the reason" {
	[ "$(uname -m)" = x86_64 ] || return 0
	mkdir in
	static_library in/libfat.a
	# something leads into the middle of a bundle
	fat_object middle m.o
	echo '.data; .quad __hip_fatbin_middle + 8' | cc -c -x assembler - -o n.o
	ld -r -o in_the_middle.o m.o n.o
	ar rcs in/libmiddle.a in_the_middle.o
	# the number of the section is not in its symbols
	seq 66000 | sed 's/.*/.section .text.f&, "ax", @progbits\nf&: ret/' >many.s
	fat_object many many.o many.s
	ar rcs in/libmany.a many.o
	# members that are other files
	cp a.o in/a.o
	(cd in && ar rcsT libthin.a a.o)
	# its index has an offset in the middle of a member
	py in/libfat.a in/libdamaged.a <<-'END'
	import sys
	data = bytearray(open(sys.argv[1], "rb").read())
	assert data[8:10] == b"/ "
	data[75] ^= 2
	open(sys.argv[2], "wb").write(data)
	END
	cp -a in before
	kpack thin -n --arch gfx1100 in >report 2>notes
	grep -q 'in/libmiddle.a: warning: left as it is: member in_the_middle.o: relocation ' notes
	# the rest is done before it fails because of what is damaged
	! kpack thin --arch gfx1100 in >report 2>notes || false
	cmp before/libmiddle.a in/libmiddle.a
	cmp before/libthin.a in/libthin.a
	cmp before/libmany.a in/libmany.a
	cmp before/libdamaged.a in/libdamaged.a
	! cmp -s before/libfat.a in/libfat.a || false
	grep -q 'in/libmiddle.a: warning: left as it is: member in_the_middle.o: relocation .* leads into the middle' notes
	grep -q 'in/libdamaged.a: damaged, left as it is: the index has an offset where no member begins' notes
	grep -q 'in/libmany.a: warning: left as it is: member many.o: section 66[0-9]* .* are not rewritten' notes
	grep -q 'in/libthin.a: note: left as it is: .*a thin archive: its members are other files' notes
}

# bats test_tags=all
@test "a static library of clang's objects, without debugging information and compressed" {
	cat >k.hip <<-'END'
	extern "C" unsigned __hipPushCallConfiguration(unsigned long, unsigned, unsigned long, unsigned, unsigned long, void *);
	struct dim3 { unsigned x, y, z; };
	extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void *);
	extern "C" unsigned hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
	__attribute__((global)) void NAME(float *a) { for (int i = 0; i < 100; i++) a[i] += 1; }
	END
	mkdir in
	for n in one two; do
		clang-22 -x hip -nogpuinc -nogpulib --offload-arch=gfx1100,gfx90a -DNAME=$n -g -O1 -fPIC -c k.hip -o $n.o
	done
	llvm-ar-22 rcs in/libk.a one.o two.o
	fake_runtime in/libamdhip64.so CCOB
	kpack thin -q --arch gfx1100 --strip-debug --compress in out
	diff <(llvm-nm-22 --print-armap in/libk.a) <(llvm-nm-22 --print-armap out/libk.a)
	for d in in out; do
		ld.lld-22 -shared -o $d.so --whole-archive $d/libk.a
	done
	kpack inspect --extract before --arch gfx1100 in.so >/dev/null
	for f in before/*; do
		llvm-strip-22 --strip-debug -o - "$f" | sha256sum | cut -d ' ' -f 1
	done | sort >want
	fatparse sums out.so x | cut -d ' ' -f 1 | sort | diff want -
	[ "$(wc -l <want)" = 2 ]
}

# --- undoing --------------------------------------------------------------------------

make_kept() { # DIR
	make_tree "$1"
	mkfat --size 90000 --ccob all "$1/lib/packed.so"
	mkfat --bare --bundles 1 --size 60000 "$1/lib/kernels.hipfb"
	mkdir -p "$1/lib/rocblas/library"
	for gpu in gfx1100 gfx1030; do
		py $gpu "$1/lib/rocblas/library/TensileLibrary_Type_HH_$gpu.co" <<-'END'
		import sys, mkfat
		open(sys.argv[2], "wb").write(mkfat.code_object(sys.argv[1], 9000, "x"))
		END
	done
	chmod 0640 "$1/lib/rocblas/library"/*
	touch -d '2021-02-03 04:05:06.789' "$1/lib/rocblas/library"/*
}

# AFTER has the files of BEFORE, with their attributes; directories have other times.
same_files() { # BEFORE AFTER [WITHOUT: anything: their hard links may be files of their own]
	local facts="%P %m %U %G ${3-%n} %T@ %l\\n"
	diff -r --no-dereference "$1" "$2"
	(cd "$1" && find . ! -type d -printf "$facts" | sort) >want
	(cd "$2" && find . ! -type d -printf "$facts" | sort) | diff want -
}

@test "what --keep keeps, --undo puts back bit for bit, also after several runs" {
	make_kept in
	cp -a in before
	kpack thin --arch gfx1030,gfx1100 --keep kept in >report
	[ "$(tail -1 report)" = "to undo this: kpack thin --undo kept in" ]
	[ "$(stat -c %a kept)" = 700 ]
	kpack verify -q kept
	cp -a in once
	# a second run keeps the first one's originals
	kpack thin -q --arch gfx1100 --keep kept in
	[ ! -e in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co ]
	keeps before/lib/a.so in/lib/a.so gfx1100
	kpack verify -q kept
	# what is kept is not what the tree has
	[ "$(du -bs kept | cut -f 1)" -lt "$(du -bs before | cut -f 1)" ]
	run kpack thin --undo kept in
	[ "$status" -eq 0 ]
	[[ "$output" == *" files restored, 0 were the originals, 0 left as they are" ]]
	same_files before in
	[ in/lib/a.so -ef in/lib/deep/a.so ]
	[ "$(getfattr --only-values -n user.note in/lib/a.so)" = kept ]
	# again: everything is as it was
	run kpack thin --undo kept in
	[ "$status" -eq 0 ]
	[[ "$output" == "0 files restored, "*" were the originals, 0 left as they are" ]]
	# and another run
	kpack thin -q --arch gfx1100 --keep kept in
	# what another tree has at the same paths does not replace it
	cp -a before other
	run kpack thin --arch gfx1100 --keep kept other
	[ "$status" -eq 1 ]
	[[ "$output" == *"kept: keeps what $(realpath in) lost: give $(realpath other) a directory of its own"* ]]
	same_files before other
	kpack thin -q --undo kept in
	same_files before in
}

@test "what other options change is put back, too" {
	[ "$(uname -m)" = x86_64 ] || return 0
	make_kept in
	static_library in/libfat.a
	cp -a in before
	kpack thin -q --arch gfx1030,gfx1100 --strip-debug --keep kept in
	kpack thin -q --arch gfx1100 --compress --keep kept in
	! cmp -s before/libfat.a in/libfat.a || false
	! cmp -s before/lib/kernels.hipfb in/lib/kernels.hipfb || false
	kpack thin -q --undo kept in
	same_files before in
}

@test "--undo leaves alone what is another file now" {
	make_kept in
	cp -a in before
	kpack thin -q --arch gfx1100 --keep kept in
	printf x >>in/lib/b.so
	rm in/lib/packed.so
	mkfat --size 60000 --seed 7 in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co
	cp -a in after
	run kpack thin --undo kept in
	[ "$status" -eq 1 ]
	[[ "$output" == *"in/lib/b.so: left as it is: it is another file now"* ]]
	[[ "$output" == *"in/lib/packed.so: left as it is: it does not exist any more"* ]]
	[[ "$output" == *"gfx1030.co: left as it is: it is another file now"* ]]
	cmp in/lib/b.so after/lib/b.so
	cmp in/lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co after/lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co
	cmp in/lib/a.so before/lib/a.so
	# a package that was removed does not come back
	rm -r in/lib/rocblas
	run kpack thin --undo kept in
	[[ "$output" == *"gfx1030.co: left as it is: its directory does not exist any more"* ]]
	[ ! -e in/lib/rocblas ]
	# damaged archives stop the run
	cp -a after/lib/a.so in/lib/a.so
	for f in kept/*.kpack; do
		truncate -s -50 "$f"
	done
	cp -a in last
	run kpack thin --undo kept in
	[ "$status" -eq 1 ]
	diff -r in last
	run kpack thin --undo in/lib in
	[ "$status" -eq 1 ]
	run kpack thin --undo kept --arch gfx1100 in
	[ "$status" -eq 2 ]
	run kpack thin --arch gfx1100 --keep kept in out
	[ "$status" -eq 2 ]
}

@test "a killed run with --keep loses nothing" {
	make_kept in
	for i in $(seq 8); do
		mkfat --size 60000 --seed "k$i" in/lib/k$i.so
	done
	cp -a in before
	for i in $(seq 6); do
		"$KPACK_BIN/kpack" thin -q --arch gfx1100 --keep kept in &
		pid=$!
		sleep 0.0$i
		kill -9 $pid 2>/dev/null || :
		wait $pid 2>/dev/null || :
	done
	kpack thin -q --arch gfx1100 --keep kept in
	kpack thin -q --undo kept in
	same_files before in apart
}

@test "killed at each rename, --keep loses no path of a file" {
	mkdir -p before/lib/deep
	mkfat --size 60000 --arches gfx1100,gfx1030 before/lib/a.so
	ln before/lib/a.so before/lib/deep/a.so
	# two archives, two paths
	for i in 1 2 3 4; do
		rm -rf in kept
		cp -a before in
		! ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null -e inject=renameat:signal=KILL:when=$i \
			"$KPACK_BIN/kpack" thin -q --arch gfx1100 --keep kept in || return 1
		kpack thin -q --arch gfx1100 --keep kept in
		kpack thin -q --undo kept in
		same_files before in apart
	done
}

@test "a second run with other GPUs that is killed at a rename keeps the originals" {
	mkdir -p before/lib/deep
	mkfat --size 60000 --arches gfx1100,gfx1030,gfx1201 before/lib/a.so
	ln before/lib/a.so before/lib/deep/a.so
	# two archives, two paths
	for i in 1 2 3 4; do
		rm -rf in kept
		cp -a before in
		kpack thin -q --arch gfx1100,gfx1030 --keep kept in
		! ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null -e inject=renameat:signal=KILL:when=$i \
			"$KPACK_BIN/kpack" thin -q --arch gfx1100 --keep kept in || return 1
		cp -a in killed
		cp -a kept killed-kept
		kpack thin -q --undo killed-kept killed
		same_files before killed apart
		rm -rf killed killed-kept
		kpack thin -q --arch gfx1100 --keep kept in
		kpack thin -q --undo kept in
		same_files before in apart
	done
}

@test "a file that one run changes and the next one removes comes back as it was" {
	gone=lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co
	make_kept in
	mkfat --bare --bundles 1 --size 60000 --arches gfx1030 in/$gone
	cp -a in before
	kpack thin -q --arch gfx1030,gfx1100 --compress --keep kept in
	! cmp -s before/$gone in/$gone || false
	# as a run leaves it that is killed after it kept the file, and before it removes it
	cp -a in changed
	kpack thin -q --arch gfx1100 --keep kept in
	[ ! -e in/$gone ]
	kpack verify -q kept
	kpack thin -q --undo kept in
	same_files before in
	kpack thin -q --undo kept changed
	cmp before/$gone changed/$gone
}

@test "files that lost all code come back" {
	[ "$(uname -m)" = x86_64 ] || return 0
	mkdir in
	mkfat --size 60000 --arches gfx1100 in/stays.so
	mkfat --size 60000 --arches gfx1030 in/plain.so
	mkfat --size 60000 --ccob all --arches gfx1030 in/packed.so
	mkfat --bare --bundles 1 --size 60000 --arches gfx1030 in/kernels.hipfb
	cc -c -x assembler - -o o.o <<-'END'
	.section .hip_fatbin, "a", @progbits
	.p2align 12
	.L1: .incbin "in/kernels.hipfb"
	.section .hipFatBinSegment, "aw", @progbits
	.p2align 3
	.long 0x48495046, 1
	.quad .L1, 0
	END
	ar rcs in/libk.a o.o
	cp -a in before
	kpack thin -q --arch gfx1100 --keep kept in
	for f in plain.so packed.so kernels.hipfb libk.a; do
		! cmp -s before/$f in/$f || return 1
	done
	kpack thin -q --undo kept in
	same_files before in
}
