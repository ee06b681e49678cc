#!/usr/bin/env bats
# kpack pack INPUT OUTPUT: what a tree can have beside files.  The golden cases pack-* have the rest, and the properties
# compare trees.

load packing.bash

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

@test "root: owners, devices, capabilities, ACLs" {
	as_root
	make_tree in
	cp -a in plain
	kpack pack -q plain holes
	treecheck same plain holes
	treecheck code plain holes
	# holes are still holes
	[ "$(stat -c %b holes/sparse)" -le "$(stat -c %b plain/sparse)" ]
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
