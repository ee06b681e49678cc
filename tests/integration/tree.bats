#!/usr/bin/env bats
# kpack pack INPUT OUTPUT: the whole tree, with its binaries converted and the rest
# copied.  proof.bats checks that converted binaries load.

load packing.bash

# kernel_name, then the search paths, of a converted binary, a line each.
marker() { # FILE
	py "$1" <<-'END'
	import sys, treecheck
	m = treecheck.marker(sys.argv[1])
	print(m["kernel_name"], *m["kpack_search_paths"], sep="\n")
	END
}

# A tree with one of everything an ordinary user can have.
make_tree() { # DIR
	mkdir -p "$1/lib/deep/er" "$1/bin" "$1/share/doc" "$1/empty"
	mkfat --seed 1 --ragged "$1/lib/liba.so.1"
	mkfat --seed 2 --ccob all --bundles 2 "$1/bin/tool"
	mkfat --seed 3 --no-pie --share 2 "$1/lib/deep/er/b.so"
	ln -s liba.so.1 "$1/lib/liba.so"
	ln -s ../nowhere "$1/dangling"
	ln -s /etc "$1/absolute"
	echo text >"$1/share/doc/text"
	ln "$1/share/doc/text" "$1/text"
	: >"$1/share/empty"
	cp "$KPACK_SRC/tests/run" "$1/bin/script"
	mkfifo "$1/fifo"
	truncate -s 9M "$1/sparse"
	echo end >>"$1/sparse"
	setfattr -n user.note -v hello "$1/share/doc/text"
	setfattr -n user.note -v fat "$1/bin/tool"
	setfattr -n user.note -v dir "$1/empty"
	chmod 0755 "$1/bin/script"
	chmod 0604 "$1/share/empty"
	chmod 0640 "$1/lib/liba.so.1"
	touch -d '2020-01-02 03:04:05.678901234' "$1/lib/liba.so.1" "$1/text" "$1/fifo"
	touch -h -d '2021-01-02 03:04:05.987654321' "$1/lib/liba.so"
	chmod 0555 "$1/share/doc"
	touch -d '2019-05-06' "$1/empty" "$1/share/doc" "$1/lib" "$1/bin" "$1"
}

@test "a tree: binaries are converted, everything else is the same" {
	make_tree in
	cp -a in before
	kpack pack -q in out
	treecheck same in out
	treecheck code in out
	treecheck same before in
	[ "$(treecheck list out)" = $'converted bin/tool\nconverted lib/deep/er/b.so\nconverted lib/liba.so.1' ]
	[ "$(ls out/.kpack)" = $'in_gfx1030.kpack\nin_gfx1100.kpack\nin_gfx90a:xnack+.kpack' ]
	[ -z "$(find out -name '*.tmp')" ]
	kpack verify -q out/.kpack
	# less than what it replaces
	[ "$(stat -c %s out/lib/liba.so.1)" -lt "$(stat -c %s in/lib/liba.so.1)" ]
	# the device code is not in it
	[ "$(marker out/lib/liba.so.1)" = $'lib/liba.so.1\n../.kpack/in_@GFXARCH@.kpack' ]
	[ "$(marker out/lib/deep/er/b.so)" = $'lib/deep/er/b.so\n../../../.kpack/in_@GFXARCH@.kpack' ]
	# holes are still holes
	[ "$(stat -c %b out/sparse)" -le "$(stat -c %b in/sparse)" ]
	# and it may be moved
	mkdir elsewhere
	mv out elsewhere/moved
	treecheck code in elsewhere/moved
}

@test "a second run replaces the existing output at once" {
	make_tree in
	kpack pack -q in out
	exec 7<out/share/doc/text 8<out/lib/liba.so.1
	size=$(stat -c %s out/lib/liba.so.1)
	chmod u+w in/share/doc
	echo new >in/share/doc/text2
	mv in/share/doc/text2 in/share/doc/text
	rm in/fifo
	mkfifo in/fifo
	kpack pack -q in out
	treecheck same in out
	treecheck code in out
	[ "$(cat <&7)" = text ]
	[ "$(stat -L -c %s /proc/self/fd/8)" = "$size" ]
	# other kinds of things in the way
	rm -r out/dangling out/lib/deep out/text
	mkdir out/dangling
	ln -s / out/lib/deep
	fails "out/lib/deep: is not a directory, but must be one" in out
	rm out/lib/deep
	fails "out/dangling: cannot make it: Is a directory" in out
	rmdir out/dangling
	ln -s lib out/text # a link is replaced, not followed
	kpack pack -q in out
	treecheck same in out
	treecheck code in out
}

@test "hard links across depths stay hard links" {
	mkdir -p in/a/b in/z
	mkfat --seed 1 in/z/lib.so
	ln in/z/lib.so in/a/b/lib.so
	ln in/z/lib.so in/lib.so
	ln in/z/lib.so in/z/again.so
	echo plain >in/a/plain
	ln in/a/plain in/plain
	ln -s x in/z/link
	ln -P in/z/link in/a/link
	mkfifo in/a/fifo
	ln in/a/fifo in/fifo
	kpack pack -q in out
	treecheck same in out
	treecheck code in out
	[ "$(stat -c %h out/lib.so)" = 4 ]
	[ "$(marker out/lib.so)" = $'a/b/lib.so\n../../.kpack/in_@GFXARCH@.kpack\n.kpack/in_@GFXARCH@.kpack\n../.kpack/in_@GFXARCH@.kpack' ]
	kpack pack -q in out
	treecheck same in out
}

@test "a file by itself" {
	mkdir dir
	mkfat --seed 1 dir/libx.so.1.2
	ln -s libx.so.1.2 dir/libx.so
	kpack pack -q dir/libx.so.1.2 out
	[ "$(find out -type f -printf '%P\n' | sort)" = $'.kpack/x_gfx1030.kpack\n.kpack/x_gfx1100.kpack\n.kpack/x_gfx90a:xnack+.kpack\nlibx.so.1.2' ]
	[ "$(marker out/libx.so.1.2)" = $'libx.so.1.2\n.kpack/x_@GFXARCH@.kpack' ]
	[ "$(stat -c %Y out/libx.so.1.2)" = "$(stat -c %Y dir/libx.so.1.2)" ]
	mkdir old
	cp -a dir/libx.so.1.2 old
	treecheck code old out
	# a link is another name of it
	kpack pack -q dir/libx.so out2
	[ "$(marker out2/libx.so)" = $'libx.so\n.kpack/x_@GFXARCH@.kpack' ]
	[ ! -L out2/libx.so ]
	# without device code it is copied
	echo text >text
	run kpack pack text out3
	[ "$status" -eq 0 ]
	[[ "$output" == *"text: note: no device code to pack"* ]]
	cmp text out3/text
	[ ! -e out3/.kpack ]
	mkfat --bare --bundles 1 bare.hipfb
	kpack pack bare.hipfb out3 >table 2>err
	grep -qE '^kpack: out3: note: [0-9]+ bytes more than the input: files stay in the tree' err
	[ "$(wc -l <err)" -eq 1 ]
	grep -qx '1 files, 0 converted, 0 -> 0 bytes, 1 packed and kept' table
	cmp bare.hipfb out3/bare.hipfb
	[ -e out3/.kpack/bare_gfx1100.kpack ]
}

@test "what cannot be converted is copied, with the reason" {
	mkdir -p in/lib
	mkfat --seed 1 in/lib/good.so
	mkfat --seed 2 --loose 3 in/lib/nowrapper.so
	mkfat --bare --bundles 1 in/lib/bare.hipfb
	kpack pack in out >table 2>err
	treecheck same in out
	treecheck code in out
	grep -q '^kpack: in/lib/nowrapper.so: warning: not converted, its code stays in it: no wrapper' err
	! grep -q 'bare.hipfb' err || false
	# its objects are in it, and not in archives, too; a bundle by itself is packed
	! kpack ls out/.kpack | grep -q '^lib/nowrapper.so#' || false
	kpack ls out/.kpack | cut -f 1 | grep -qx 'lib/bare.hipfb#0'
	cmp in/lib/bare.hipfb out/lib/bare.hipfb
	[ "$(treecheck list out)" = $'converted lib/good.so\nfat lib/nowrapper.so' ]
	# the only binary: copied, and no archives made
	mkdir -p alone/lib
	cp in/lib/nowrapper.so alone/lib/
	kpack pack alone out2 >table 2>err
	grep -q 'nowrapper.so: warning: not converted, its code stays in it: no wrapper' err
	diff -r alone out2
	kpack pack -q --in-place alone
	diff -r alone out2
	kpack pack -q --archives-only alone out3
	kpack ls out3/.kpack | cut -f 1 | grep -qx 'lib/nowrapper.so#0'
}

@test "what cannot be read as what it seems is copied, with the reason" {
	mkdir -p in/lib
	mkfat --seed 1 in/lib/good.so
	head -c 60000 in/lib/good.so >in/lib/broken.so
	cp in/lib/good.so $'in/lib/new\nline.so'
	{ printf '\177ELF\2\1\1'; head -c 500 /dev/zero; } >in/lib/zeros.so
	# what is damaged is an error, also with -q, after everything else is done
	! kpack pack -q in out 2>err || false
	[ "$(grep -c . err)" = 2 ]
	kpack mark show out/lib/good.so | grep -q ': converted$'
	cmp in/lib/zeros.so out/lib/zeros.so
	cmp $'in/lib/new\nline.so' $'out/lib/new\nline.so'
	grep -q '^kpack: in/lib/broken.so: damaged, its device code stays in it: elf: .* pass the end of the file' err
	grep -q 'new.*line.so: warning: its device code stays in it: its path cannot be a key' err
	cmp in/lib/broken.so out/lib/broken.so
	! kpack pack --json in out2 2>/dev/null >report.json || false
	py <<-'END'
	import json
	files = {f["path"]: f for f in json.load(open("report.json"))["files"]}
	assert files["lib/broken.so"]["status"] == "left alone"
	assert "pass the end of the file" in files["lib/broken.so"]["reason"]
	END
	# by itself, or for its archives only, it is a fault
	fails "pass the end of the file" in/lib/broken.so out3
	fails "nothing was packed because of the faults above" --archives-only in out3
	[ ! -e out3 ]
}

@test "where compressed bundles become larger archives, a note names what makes them smaller" {
	mkdir in
	# code objects for four GPUs with the same debugging information, which no compressor makes smaller
	py "$with_id" in/a.so <<-'END'
	import sys, struct, hashlib, mkfat
	elf = open(sys.argv[1], "rb").read()
	table = struct.unpack_from("<Q", elf, 40)[0]
	def code_object(arch, seed):
	    debug = hashlib.shake_128(b"%d" % seed).digest(40000)
	    data = bytearray(elf[:table] + debug + elf[table:])
	    struct.pack_into("<Q", data, 40, table + len(debug))
	    struct.pack_into("<I", data, 48, mkfat.MACH[arch])
	    struct.pack_into("<QQ", data, table + len(debug) + 64 * 15 + 24, table, len(debug)) # .debug_info
	    data[0x800:0xb00] = hashlib.shake_128(b"%d%s" % (seed, arch.encode())).digest(0x300) # .text
	    return bytes(data)
	fat, at = b"", []
	for seed in range(8):
	    fat += bytes(-len(fat) % 4096)
	    at.append(len(fat))
	    fat += mkfat.bundle([(a, code_object(a, seed)) for a in ("gfx1030", "gfx1100", "gfx1101", "gfx942")], 3, 4096)
	open(sys.argv[2], "wb").write(mkfat.shared_library(fat, at))
	END
	note() { # [OPTION]...: what the note says, after the reason
		rm -rf out
		kpack pack "$@" --group x in out 2>&1 >table | sed -n 's/^kpack: out: note: .* archive holds by itself//p'
	}
	sizes() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }'; }
	note >said
	family=all=gfx1030,gfx1100,gfx1101,gfx942
	sed 's/about [0-9]*/about N/g' said | diff - <(
		echo "; with --scheme zstd-shared --level 9 --family $family, which AMD's readers refuse, it would be" \
			"about N bytes in all; without debugging information, after 'kpack thin --arch all --strip-debug', it" \
			"would be about N bytes in all"
	)
	# what it says comes about
	kpack pack -q --scheme zstd-shared --level 9 --family $family in shared
	kpack thin -q --arch all --strip-debug in thin
	kpack pack -q thin stripped
	py $(grep -o 'about [0-9]*' said | cut -d ' ' -f 2) $(sizes shared) $(sizes stripped) $(sizes in) <<-'END'
	import sys
	said = dict(shared=int(sys.argv[1]), stripped=int(sys.argv[2]))
	shared, stripped, before = map(int, sys.argv[3:])
	assert 0.95 < shared / said["shared"] < 1.05 and 0.8 < stripped / said["stripped"] < 1.2, sys.argv
	assert shared < 1.02 * before and stripped < before, sys.argv
	END
	# of shared archives only the family is missing, and of a family nothing more is known
	[[ "$(note --scheme zstd-shared)" == "; with --scheme zstd-shared"*" bytes in all" ]]
	[[ "$(note --family a=gfx1030,gfx1100)" == "; without debugging information, "*" bytes in all" ]]
	# nothing where nothing is to be had: uncompressed archives, one GPU
	[ "$(note --scheme none)" = "" ]
	grep -q 'in all' table
	[ "$(note --arch gfx1100)" = "" ]
	grep -q 'in all' table
	# the archives are the same, whatever is measured for the note
	rm -rf out
	note
	kpack pack -q --group x in quiet
	diff -r out quiet
}

@test "--arch: the others' code is not in OUTPUT" {
	mkdir -p in/lib
	mkfat --seed 1 --arches gfx1030,gfx1100 in/lib/a.so
	mkfat --seed 2 --arches gfx942 in/lib/b.so
	kpack pack -q --arch gfx1100 in out
	[ "$(ls out/.kpack)" = in_gfx1100.kpack ]
	[ "$(treecheck list out)" = $'converted lib/a.so\nconverted lib/b.so' ]
	treecheck same in out
	# another run, another target: together they are all of it
	kpack pack -q --arch gfx1030,gfx942 in out
	treecheck code in out
	[ "$(marker out/lib/b.so)" = $'lib/b.so\n../.kpack/in_@GFXARCH@.kpack' ]
	fails "no code object of the targets asked for" --arch gfx803 in out2
	[ ! -e out2 ]
}

@test "--family: markers name the archives" {
	mkdir -p in/lib in/bin
	mkfat --seed 1 --arches gfx1030,gfx1100,gfx1101 in/lib/a.so
	mkfat --seed 2 --arches gfx1100 in/bin/b
	kpack pack -q --group g --family rdna3=gfx1100,gfx1101 in out
	treecheck code in out
	[ "$(marker out/lib/a.so)" = $'lib/a.so\n../.kpack/g_@GFXARCH@.kpack\n../.kpack/g-rdna3.kpack' ]
	[ "$(marker out/bin/b)" = $'bin/b\n../.kpack/g-rdna3.kpack' ]
}

@test "--volume-size: a marker names its binary's volume" {
	mkdir in
	for i in 1 2 3 4; do
		mkfat --seed $i --size 6000 --arches gfx1030,gfx1100 in/$i.so
	done
	kpack pack -q --volume-size 20000 in out
	treecheck code in out
	[ "$(for i in 1 2 3 4; do marker out/$i.so | tail -n 1; done | sort -u | wc -l)" -gt 1 ]
	py <<-'END'
	import glob, readkpack, treecheck
	for i in "1234":
	    m = treecheck.marker("out/%s.so" % i)
	    path, = m["kpack_search_paths"]
	    for arch in ("gfx1030", "gfx1100"):
	        a = readkpack.Archive("out/" + path.replace("@GFXARCH@", arch))
	        assert m["kernel_name"] + "#0" in a.top["toc"]
	END
	kpack pack -q --volume-size 20000 --family all=gfx1030,gfx1100 in out2
	treecheck code in out2
}

@test "--key-prefix is in the keys, not in the paths" {
	mkdir -p in/lib
	mkfat in/lib/a.so
	kpack pack -q --key-prefix math/stage in out
	[ "$(marker out/lib/a.so)" = $'math/stage/lib/a.so\n../.kpack/in_@GFXARCH@.kpack' ]
	treecheck code in out
}

@test "--keep-device-code" {
	mkdir in
	mkfat in/a.so
	kpack pack -q --keep-device-code in out
	treecheck code in out
	py <<-'END'
	import fatparse
	old, new = fatparse.Elf("in/a.so"), fatparse.Elf("out/a.so")
	assert bytes(old.fatbin()) == bytes(new.fatbin())
	END
}

@test "the paper's spelling" {
	mkdir -p in/lib
	mkfat --arches gfx1100,gfx1101,gfx942 in/lib/a.so
	kpack pack -q --input in --output out --group-name rocm --gfx-arch-family gfx110X \
		--gfx-arches gfx1100,gfx1101
	[ "$(ls out/.kpack)" = rocm-gfx110X.kpack ]
	[ "$(marker out/lib/a.so)" = $'lib/a.so\n../.kpack/rocm-gfx110X.kpack' ]
	kpack pack -q --group rocm --family gfx110X=gfx1100,gfx1101 --arch gfx1100,gfx1101 in out2
	diff -r out out2
	kpack pack -q --input in out3 --group rocm
	kpack pack -q --output out4 in --group rocm
	diff -r out3 out4
	usage "need each other" --gfx-arch-family x in out5
	usage "need each other" --gfx-arches gfx1100 in out5
	usage "--gfx-arch-family a/b" --gfx-arch-family a/b --gfx-arches gfx1100 in out5
	usage "INPUT and OUTPUT are needed" --input in --output out5 more
	usage "INPUT and OUTPUT are needed" --input in
	[ ! -e out5 ]
}

@test "wrong combinations: exit 2, nothing made" {
	mkdir in
	mkfat in/a.so
	usage "INPUT and OUTPUT are needed" in
	usage "--archives-only" --archives-only --in-place in
	usage "--keep-device-code" --archives-only --keep-device-code in out
	usage "--keep-containers" --archives-only --keep-containers in out
	usage "--keep-containers" --keep-device-code --keep-containers in out
	[ ! -e out ]
	[ "$(ls -A in)" = a.so ]
}

@test "INPUT that is converted already: its archives come along" {
	make_tree in
	cp -a in fat
	kpack pack -q in --in-place
	mkfat --seed 7 in/lib/new.so
	cp -a in/lib/new.so fat/lib/new.so
	mkdir in/.kpack/sub
	echo other >in/.kpack/sub/other
	# replacing a file changes its directory's time
	(cd in && find . -type d ! -path './.kpack*' -exec touch -r {} ../fat/{} \;)
	kpack pack -q in out
	treecheck code fat out
	treecheck same fat out
	[ "$(cat out/.kpack/sub/other)" = other ]
	cp -a out before
	kpack pack -q in out
	rm out/fifo before/fifo
	diff -r --no-dereference before out
	# an archive that lacks something is in the way
	rm out/.kpack/*.kpack
	kpack pack -q --archives-only --group in in/lib/new.so out
	fails "already exists, without the " in out
	# nor may it be replaced
	usage "--force" --force in out
	# what is not an archive cannot be added to
	echo bad >out/.kpack/in_gfx1030.kpack
	fails "out/.kpack/in_gfx1030.kpack: " in out
}

@test "a converted binary whose key other code would take is a conflict" {
	mkdir -p in/lib
	mkfat --seed 1 in/lib/a.so
	kpack pack -q --in-place in
	cp in/lib/a.so in/lib/b.so
	mkfat --seed 2 in/lib/a.so
	cp -a in before
	fails "in/lib/b.so: its marker names lib/a.so, whose code now is another" in out
	fails "in/lib/b.so: its marker names lib/a.so, whose code now is another" --in-place in
	treecheck same before in
	diff -r before/.kpack in/.kpack
	kpack pack -q --key-prefix new --in-place in
	[ "$(marker in/lib/a.so | head -n 1)" = new/lib/a.so ]
	mkdir -p fat/lib
	mkfat --seed 2 fat/lib/a.so
	mkfat --seed 1 fat/lib/b.so
	py <<-'END' # b.so's name is that of a.so
	import treecheck
	treecheck.code("fat", "in")
	END
}

@test "temporary files that a killed run left in the output are removed" {
	mkdir -p in/lib/deep
	ln -s nowhere in/lib/link
	ln -s nowhere in/lib/.kpack-0123456789abcdef # not the name of one
	for code in without with; do
		[ $code = without ] || mkfat in/lib/a.so
		mkdir -p out/lib/deep out/other
		ln -s nowhere out/.kpack-0123456789abcdef.tmp
		ln out/.kpack-0123456789abcdef.tmp out/lib/deep/.kpack-0123456789abcdea.tmp
		mkfifo out/lib/.kpack-0123456789abcdef.tmp out/other/.kpack-0123456789abcdef.tmp
		kpack pack -q in out
		[ "$(find out -name '.kpack-*' | sort)" = "out/lib/.kpack-0123456789abcdef
out/other/.kpack-0123456789abcdef.tmp" ]
		rm -rf out
	done
	# a file goes into any directory
	mkdir out
	ln -s nowhere out/.kpack-0123456789abcdef.tmp
	kpack pack -q in/lib/a.so out
	[ -L out/.kpack-0123456789abcdef.tmp ]
}

@test "temporary files of a killed run are not copied" {
	mkdir in
	mkfat in/a.so
	cp in/a.so in/.kpack-0123456789abcdef.tmp
	echo text >in/.kpack-0123456789abcdeg.tmp
	kpack pack in out 2>err
	[ ! -e out/.kpack-0123456789abcdef.tmp ]
	[ -e out/.kpack-0123456789abcdeg.tmp ]
	grep -q 'in/.kpack-0123456789abcdef.tmp: note: left out' err
}

@test "root: owners, devices, capabilities, ACLs" {
	as_root
	make_tree in
	chown 12:34 in/lib/liba.so.1 in/share/doc
	chown -h 56:78 in/lib/liba.so
	chown 5:6 in/fifo
	setcap cap_net_raw+ep in/bin/tool
	setcap cap_sys_nice+ep in/bin/script
	chown 12:34 in/bin/tool
	setcap cap_net_raw+ep in/bin/tool
	mknod in/null c 1 3
	chmod 4711 in/share/empty
	chmod 2755 in/empty
	py <<-'END' # an ACL as setfacl -m u:12:rw makes it, and a default one
	import os, struct
	def acl(*rows):
	    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *r) for r in rows)
	rows = [(1, 6, 2**32 - 1), (2, 6, 12), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 4, 2**32 - 1)]
	for path, name in (("in/lib/liba.so.1", "access"), ("in/text", "access"), ("in/empty", "default")):
	    try:
	        os.setxattr(path, "system.posix_acl_" + name, acl(*rows))
	    except OSError as e:
	        if e.errno != 95:
	            raise
	END
	kpack pack -q in out
	treecheck same in out
	treecheck code in out
	getcap out/bin/tool | grep -q net_raw
	kpack pack -q in out
	treecheck same in out
	kpack pack -q --in-place in
	treecheck same in out . bin lib lib/deep/er # whose times are new
}

# exchanging MOMENT: pack while alice exchanges out/u/sub for a directory of root's: after it was
# made (mkdirat), or after the run has seen it (fdopendir lists it)
exchanging() {
	cat >stub.c <<-'END'
	#define _GNU_SOURCE
	#include <dirent.h>
	#include <dlfcn.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/stat.h>
	static int seen;
	static void exchange(const char *call)
	{
		if (!seen || strcmp(call, getenv("MOMENT")) != 0)
			return;
		seen = 0;
		unsetenv("LD_PRELOAD");
		if (system("mv out/u/sub out/u/was && mv out/u/private out/u/sub"))
			abort();
	}
	int mkdirat(int dir, const char *name, mode_t mode)
	{
		int (*next)(int, const char *, mode_t) = dlsym(RTLD_NEXT, "mkdirat");
		int status = next(dir, name, mode);
		seen = seen || strcmp(name, "sub") == 0;
		exchange("mkdirat");
		return status;
	}
	DIR *fdopendir(int fd)
	{
		DIR *(*next)(int) = dlsym(RTLD_NEXT, "fdopendir");
		exchange("fdopendir");
		return next(fd);
	}
	END
	${CC:-cc} -shared -fPIC -o stub.so stub.c
	runtime=$(ldd "$KPACK_BIN/kpack" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	status=0
	MOMENT=$1 LD_PRELOAD="$runtime $T/stub.so" kpack pack -q in out 2>err || status=$?
}

@test "root: no directory of root's becomes that of a user who exchanges the one made for it" {
	as_root
	mkdir -p in/u/sub
	chown -R 40001 in/u
	kpack pack -q in out
	rmdir out/u/sub
	for moment in mkdirat fdopendir; do
		mkdir -m 0700 out/u/private
		touch out/u/private/file
		exchanging $moment
		[ "$status" = 1 ]
		grep -q 'out/u/sub: another directory was put in its place meanwhile' err
		[ "$(stat -c '%u %a' out/u/sub)" = '0 700' ]
		rm -r out/u/sub out/u/was
	done
}

@test "an ordinary user: what is not permitted is left" {
	as_root
	make_tree in
	mknod in/null c 1 3
	chown 12:34 in/lib/liba.so.1
	chmod 0644 in/lib/liba.so.1
	chmod 4755 in/bin/script
	setcap cap_net_raw+ep in/bin/tool
	setcap cap_net_raw+ep in/sparse
	mkdir nobody
	chown 65534:65534 nobody
	as_nobody "$KPACK_BIN/kpack" pack in nobody/out 2>err
	grep -q 'in/null: note: left out: .*not permitted' err
	[ ! -e nobody/out/null ]
	treecheck code in nobody/out
	[ "$(stat -c %u:%a nobody/out/lib/liba.so.1)" = 65534:644 ]
	[ "$(stat -c %a nobody/out/bin/script)" = 755 ]
	[ -z "$(getcap nobody/out/bin/tool nobody/out/sparse)" ]
	getfattr -n user.note nobody/out/bin/tool >/dev/null
	[ "$(stat -c %a nobody/out/share/doc)" = 555 ]
	# again, over directories that may not be written into
	as_nobody "$KPACK_BIN/kpack" pack -q in nobody/out
	treecheck code in nobody/out
	[ "$(stat -c %a nobody/out/share/doc)" = 555 ]
	chmod 0600 in/text
	run as_nobody "$KPACK_BIN/kpack" pack -q in nobody/out2
	[ "$status" -eq 1 ]
	[[ "$output" == *"share/doc/text: cannot open: Permission denied"* ]]
	[ ! -e nobody/out2 ]
}
