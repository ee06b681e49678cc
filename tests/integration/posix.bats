#!/usr/bin/env bats
# Directories, file handles and descriptors: guarantees that careful programs rely on.

bats_require_minimum_version 1.5.0

load mounting

# COUNT names at the top of the mount, which are the longer the later they come.
make_names() { # COUNT
	py "$1" <<-'END'
	import mkarchive, sys
	a = mkarchive.Archive()
	first = a.add("0", "generic", b"bytes", path="0", type="dat")
	for i in range(1, int(sys.argv[1])):
	    name = f"{i:05}" + "x" * (i * 7 % 200)
	    a.add(name, "generic", b"bytes", path=name, type="dat", ordinal=first)
	a.write("src/a.kpack")
	END
}

# Few that differ in kind and in depth.
make_kinds() {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	same = a.add("lib/a.so#0", "gfx1100", b"a code object")
	a.add("lib/a.so#1", "gfx1100", b"another")
	a.add("lib/b.so#0", "gfx1100", b"a code object", ordinal=same)
	for i in range(40):
	    path = "/".join(f"d{k}" for k in range(i % 9)) + f"/f{i}" if i % 9 else f"f{i}"
	    a.add(path, "generic", mkarchive.noise(5000 * i, i), path=path, type="dat")
	a.write("src/a.kpack")
	END
}

drop_caches() { # 1: pages, 2: names and inodes
	must_be_root
	sync
	echo "$1" >/proc/sys/vm/drop_caches
}

@test "positions of 10,000 names, through buffers of any size" {
	make_names 10000
	m
	# too small for most names; a page; what readdir takes; more than the kernel asks for
	for bytes in 300 4096 65536 1048576; do
		[ "$("$posix/directory" positions mnt "$bytes")" = 10003 ]
	done
	"$posix/directory" streams mnt
	unmount
	# with and without descriptors that kpackfs knows
	m -o open
	for bytes in 300 65536; do
		[ "$("$posix/directory" positions mnt "$bytes")" = 10003 ]
	done
	"$posix/directory" streams mnt
}

@test "positions stay where they are after a remount, and when the caches are gone" {
	make_names 2000
	m
	positions() {
		py "$T/mnt" <<-'END'
		import ctypes, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		libc.opendir.restype = d = ctypes.c_void_p
		for f in (libc.readdir, libc.telldir, libc.closedir):
		    f.argtypes = [ctypes.c_void_p]
		libc.readdir.restype, libc.telldir.restype = ctypes.c_void_p, ctypes.c_long
		d = libc.opendir(sys.argv[1].encode())
		while e := libc.readdir(d):
		    print(libc.telldir(d), ctypes.string_at(e + 19))
		END
	}
	positions >one
	[ "$(wc -l <one)" = 2003 ]
	unmount
	m
	positions | cmp one -
	[ "$(id -u)" != 0 ] || drop_caches 3
	positions | cmp one -
}

@test "kinds and inode numbers of a listing are those of its files" {
	make_kinds
	m
	for _ in 1 2; do [ "$("$posix/directory" kinds mnt)" -gt 60 ]; done
	unmount
	m -o open
	[ "$("$posix/directory" kinds mnt)" -gt 60 ]
}

@test "many list one directory, with one descriptor and with one each" {
	make_names 3000
	m
	"$posix/directory" together mnt 1 3>&- &
	first=$!
	"$posix/directory" together mnt/toc 1
	wait "$first"
	unmount
	m -o open -s
	"$posix/directory" together mnt 1
}

@test "listing goes on while the kernel forgets names" {
	must_be_root
	make_names 3000
	m
	"$posix/directory" together mnt 2 3>&- &
	reader=$!
	while kill -0 "$reader" 2>/dev/null; do drop_caches 2; done
	wait "$reader"
}

# Handles of everything, the control directory too.
take_handles() {
	find mnt -print | "$posix/handles" take >handles
	[ "$(wc -l <handles)" -gt 60 ]
	"$posix/handles" look <handles >look
	! grep -qP '\tE[A-Z]+$' look || false
}

# What they lead to is what is there.
open_handles() {
	"$posix/handles" open mnt <handles >opened
	diff look opened >difference || {
		head -n 20 difference
		false
	}
}

@test "file handles: of what the kernel knows, has forgotten, and of another mount" {
	must_be_root
	make_kinds
	m
	take_handles
	open_handles
	for what in 2 3; do
		drop_caches $what
		open_handles
	done
	cp handles first
	unmount
	m -o open
	open_handles
	find mnt -print | "$posix/handles" take | cmp first -
	# only a process that may pass by permissions
	unmount
	m -o allow_other
	cp "$posix/handles" program
	nobody ./program open mnt <handles >opened
	[ "$(cut -f 2 opened | sort -u)" = EPERM ]
}

@test "file handles: nothing but stale ones for what is gone" {
	must_be_root
	make_kinds
	m
	take_handles
	unmount
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	a.add("f0", "generic", b"", path="f0", type="dat")
	a.add("f9", "generic", b"other bytes", path="f9", type="dat")
	a.write("src/a.kpack")
	END
	m
	"$posix/handles" open mnt <handles >opened
	grep -P '^mnt/(f9|f18|d0|toc/f9/|toc/d0|toc/lib)' opened >stale
	[ "$(cut -f 2 stale | sort -u)" = ESTALE ]
	[ "$(wc -l <stale)" -gt 100 ]
	grep '^mnt/f0' look | diff - <(grep '^mnt/f0' opened)
}

@test "file handles: those nobody gave out are stale" {
	must_be_root
	make_kinds
	m
	take_handles
	py <<-'END'
	import random
	rng = random.Random(3)
	with open("handles") as f, open("wrong", "w") as out:
	    for line in f:
	        kind, handle, path = line.rstrip("\n").split(" ", 2)
	        old = bytes.fromhex(handle)
	        for _ in range(30):
	            new = bytearray(old)
	            new[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
	            print(kind, new.hex(), path, file=out)
	        print(kind, bytes(len(old)).hex(), path, file=out)
	        print(kind, (b"\xff" * len(old)).hex(), path, file=out)
	END
	cp handles right
	mv wrong handles
	drop_caches 2
	"$posix/handles" open mnt <handles >opened
	[ "$(wc -l <opened)" -gt 2000 ]
	# the bits that the kernel ignores leave a handle right
	cp look known
	grep -vxFf known opened | cut -f 2 | sort -u >answers
	cat answers
	[ "$(cat answers)" = ESTALE ]
	mv right handles
	open_handles
}

# Its directory's too: the kernel finds a directory again by its name in a listing.
@test "file handles: a control file's is stale once it is forgotten" {
	must_be_root
	make_kinds
	m
	ls mnt/.kpackfs/* | "$posix/handles" take >handles
	echo mnt/.kpackfs | "$posix/handles" take >>handles
	# one thread of the daemon may hear of what was forgotten after another is asked for it
	all_stale() {
		drop_caches 2
		"$posix/handles" open mnt <handles >opened
		[ "$(wc -l <opened)" = "$(wc -l <handles)" ] && [ "$(cut -f 2 opened | sort -u)" = ESTALE ]
	}
	eventually all_stale
	cat mnt/.kpackfs/stats >/dev/null
}

# Where the kernel has an NFS server, its clients see the same tree.
@test "NFS: a mount that is exported and forgotten is read" {
	must_be_root
	make_kinds
	m -o allow_other
	mkdir nfs
	modprobe nfsd 2>/dev/null || :
	if grep -qw nfsd /proc/filesystems && command -v exportfs rpc.nfsd rpc.mountd; then
		mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
		exportfs -o ro,fsid=7,no_subtree_check,no_root_squash "localhost:$T/mnt"
		pgrep -x rpc.mountd || rpc.mountd
		rpc.nfsd 2
		mount -t nfs -o ro,vers=4,soft "localhost:$T/mnt" nfs
		diff -r mnt nfs
		drop_caches 2
		diff -r mnt nfs
		umount nfs
		exportfs -u "localhost:$T/mnt"
		rpc.nfsd 0
	else
		echo "# no NFS server here: only what it asks of a file system" >&3
		take_handles
		drop_caches 2
		open_handles
	fi
}

@test "where there are data and holes, and how a file lies on the disk" {
	make_kinds
	m
	py mnt/f27 <<-'END'
	import errno, fcntl, mmap, os, sys
	fd = os.open(sys.argv[1], os.O_RDONLY)
	size = os.fstat(fd).st_size
	assert size == 135000
	for at in (0, 1, 4096, size - 1):
	    assert os.lseek(fd, at, os.SEEK_DATA) == at
	    assert os.lseek(fd, at, os.SEEK_HOLE) == size
	for at in (size, size + 1, 1 << 60):
	    for whence in (os.SEEK_DATA, os.SEEK_HOLE):
	        try:
	            os.lseek(fd, at, whence)
	            raise AssertionError(at)
	        except OSError as e:
	            assert e.errno == errno.ENXIO
	assert os.lseek(fd, -1, os.SEEK_END) == size - 1 and len(os.read(fd, 10)) == 1
	for at, whence in ((-1, os.SEEK_SET), (-size - 1, os.SEEK_END), (0, 99)):
	    try:
	        os.lseek(fd, at, whence)
	        raise AssertionError(whence)
	    except OSError as e:
	        assert e.errno == errno.EINVAL
	assert os.pread(fd, 10, size) == b"" == os.pread(fd, 10, 1 << 62)
	# FS_IOC_FIEMAP, FS_IOC_GETFLAGS, one that nobody knows
	for request in (0xC020660B, 0x80086601, 0x12345678):
	    try:
	        fcntl.ioctl(fd, request, bytearray(64))
	        raise AssertionError(hex(request))
	    except OSError as e:
	        assert e.errno in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM), e
	END
}

@test "calls that read in other ways give the same bytes" {
	make_kinds
	py >want <<-'END'
	import mkarchive, sys
	sys.stdout.buffer.write(mkarchive.noise(195000, 39))
	END
	m
	py want "$(find mnt -type f -name f39)" <<-'END'
	import ctypes, mmap, os, socket, sys
	want = open(sys.argv[1], "rb").read()
	fd = os.open(sys.argv[2], os.O_RDONLY)
	size = len(want)
	# vectors, of odd sizes
	parts = [bytearray(n) for n in (1, 4095, 10000, size)]
	n = os.preadv(fd, parts, 5)
	assert n == size - 5 and b"".join(bytes(p) for p in parts)[:n] == want[5:]
	# sendfile into a file, a pipe and a socket
	out = os.open("out", os.O_RDWR | os.O_CREAT, 0o644)
	assert sum(iter(lambda: os.sendfile(out, fd, None, 65537), 0)) == size
	assert os.pread(out, size, 0) == want
	r, w = os.pipe()
	assert os.sendfile(w, fd, 7, 50000) > 0
	assert os.read(r, 50000) == want[7:50007]
	a, b = socket.socketpair()
	n = os.sendfile(a.fileno(), fd, 100, 4000)
	assert b.recv(n) == want[100:100 + n]
	n = os.splice(fd, w, 30000, offset_src=3)
	assert os.read(r, n) == want[3:3 + n]
	# maps: advice, another process, the end of the last page
	with mmap.mmap(fd, 0, mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ) as m:
	    for advice in (mmap.MADV_WILLNEED, mmap.MADV_RANDOM, mmap.MADV_SEQUENTIAL,
	                   mmap.MADV_DONTNEED):
	        m.madvise(advice)
	        assert m[:] == want
	    if os.fork() == 0:
	        os._exit(m[:] != want)
	    assert os.wait()[1] == 0
	libc = ctypes.CDLL(None)
	libc.mmap.restype = ctypes.c_void_p
	at = libc.mmap(None, ctypes.c_size_t(size), 1, 1, fd, ctypes.c_long(0))
	rest = -size % 4096
	assert ctypes.string_at(at + size, rest) == bytes(rest)
	for advice in (os.POSIX_FADV_RANDOM, os.POSIX_FADV_WILLNEED, os.POSIX_FADV_NOREUSE,
	               os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_DONTNEED):
	    os.posix_fadvise(fd, 0, 0, advice)
	    assert os.pread(fd, 70000, 60000) == want[60000:130000]
	END
}

@test "what stat, statx and statfs say of one file agrees" {
	make_kinds
	m
	file=$(find mnt -type f -name f26)
	py "$file" <<-'END'
	import os, sys
	fd = os.open(sys.argv[1], os.O_RDONLY)
	path = os.open(sys.argv[1], os.O_PATH)
	a = os.stat(sys.argv[1])
	for b in (os.fstat(fd), os.fstat(path), os.lstat(sys.argv[1]), os.stat(f"/proc/self/fd/{fd}")):
	    assert tuple(a) == tuple(b) and a.st_blocks == b.st_blocks
	for b in (os.fstatvfs(fd), os.statvfs(os.path.dirname(sys.argv[1]))):
	    assert b == os.statvfs("mnt") and b.f_flag & os.ST_RDONLY
	assert a.st_blksize >= 4096 and a.st_size == 130000
	assert os.pathconf(sys.argv[1], "PC_NAME_MAX") == 255
	END
	[ "$(stat --cached=never -c '%i %s %b %a %h' "$file")" = \
		"$(stat --cached=always -c '%i %s %b %a %h' "$file")" ]
	[ "$(stat -c %m "$file")" = "$T/mnt" ]
}
