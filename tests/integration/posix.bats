#!/usr/bin/env bats
# Directories, file handles and descriptors: guarantees that careful programs rely on; and calls that would
# change something fail as on other file systems that are mounted read-only.

bats_require_minimum_version 1.5.0

load mounting

# posix: a program on stdin, with directories read by the system call, and file handles
posix() {
	{
		cat <<-'END'
		import concurrent.futures, stat, struct
		libc.getdents64.restype = ctypes.c_ssize_t
		def listing(fd, size, between=lambda: None):
		    """[(inode, position behind it, type, name)], through a buffer of SIZE bytes; BETWEEN() behind each call."""
		    buf, rows = ctypes.create_string_buffer(size), []
		    while True:
		        n = libc.getdents64(fd, buf, ctypes.c_size_t(size))
		        if n < 0 and ctypes.get_errno() == errno.EINVAL and size < 1000:
		            size = 1000  # the name did not fit
		            buf = ctypes.create_string_buffer(size)
		            continue
		        assert n >= 0, os.strerror(ctypes.get_errno())
		        if n == 0:
		            return rows
		        between()
		        at = 0
		        while at < n:
		            ino, off, length, kind = struct.unpack_from("<QqHB", buf, at)
		            rows.append((ino, off, kind, buf.raw[at + 19:at + length].split(b"\0")[0].decode()))
		            at += length
		def opened(path):
		    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
		def make_names(count):
		    """At the top of the mount; they are the longer the later they come."""
		    a = mkarchive.Archive(scheme="none")
		    first = a.add("0", "generic", b"bytes", path="0", type="dat", hash=False)
		    for i in range(1, count):
		        name = "%05d" % i + "x" * (i * 7 % 200)
		        a.add(name, "generic", b"bytes", path=name, type="dat", ordinal=first, hash=False)
		    a.write("src/a.kpack")
		def make_kinds():
		    """Few that differ in kind and in depth."""
		    a = mkarchive.Archive()
		    same = a.add("lib/a.so#0", "gfx1100", b"a code object")
		    a.add("lib/a.so#1", "gfx1100", b"another")
		    a.add("lib/b.so#0", "gfx1100", b"a code object", ordinal=same)
		    for i in range(40):
		        path = "/".join("d%d" % k for k in range(i % 9)) + "/f%d" % i if i % 9 else "f%d" % i
		        a.add(path, "generic", noise(5000 * i, i), path=path, type="dat")
		    a.write("src/a.kpack")
		def drop(what):  # 1: pages, 2: names and inodes
		    with contextlib.suppress(OSError):  # a container may not
		        with open("/proc/sys/vm/drop_caches", "w") as f:
		            f.write(str(what))
		END
		cat
	} | mounts
}

@test "positions of names, through buffers of any size; the same when caches are gone, and after a remount" {
	posix <<-'END'
	make_names(1500)
	wanted = None
	for options in ((), ("-o", "open"), ("-s", "-o", "open")):
	    mount = Mount(*options)
	    fd = opened("mnt")
	    for size in (300, 65536):
	        os.lseek(fd, 0, 0)
	        rows = listing(fd, size)
	        wanted = wanted or rows
	        assert rows == wanted and len({r[3] for r in rows}) == len({r[1] for r in rows}) == 1503, (options, size)
	        # a position leads to what is behind it
	        for i in range(0, 1503, 311):
	            os.lseek(fd, rows[i][1], 0)
	            assert [r[3] for r in listing(fd, size)] == [r[3] for r in rows[i + 1:]], (size, i)
	    # names are forgotten on the way
	    os.lseek(fd, 0, 0)
	    assert listing(fd, 4096, lambda: ROOT and drop(2)) == wanted
	    # two threads share a descriptor: each name comes once
	    os.lseek(fd, 0, 0)
	    with concurrent.futures.ThreadPoolExecutor(2) as pool:
	        parts = [part.result() for part in [pool.submit(listing, fd, 4096) for _ in range(2)]]
	    assert sorted(parts[0] + parts[1]) == sorted(wanted)
	    # many list it, with one descriptor and with one each, while names are forgotten
	    pids = []
	    for i in range(4):
	        pids.append(os.fork())
	        if not pids[-1]:
	            for _ in range(3):
	                mine = opened("mnt") if i % 2 else os.open("mnt/.", os.O_RDONLY)
	                if listing(mine, 4096) != wanted or (ROOT and i == 0 and drop(2)):
	                    os._exit(1)
	                os.close(mine)
	            os._exit(0)
	    assert [os.waitpid(p, 0)[1] for p in pids] == [0] * 4
	    os.close(fd)
	    mount.unmount()
	END
}

@test "kinds and inode numbers of a listing, and what stat, statx and statfs say, are those of the files" {
	posix <<-'END'
	make_kinds()
	for options in ((), ("-o", "open")):
	    mount = Mount(*options)
	    seen = 0
	    for at, dirs, files in os.walk("mnt"):
	        fd = opened(at)
	        for ino, _, kind, name in listing(fd, 65536):
	            st = os.lstat(os.path.join(at, name))
	            if name != "..":
	                assert (st.st_ino, stat.S_IFMT(st.st_mode) >> 12) == (ino, kind), name
	            seen += 1
	        os.close(fd)
	    assert seen > 60
	    path = "mnt/" + [p for p in find() if p.endswith("/f26")][0]
	    fd, place, a = os.open(path, os.O_RDONLY), os.open(path, os.O_PATH), os.stat(path)
	    for b in (os.fstat(fd), os.fstat(place), os.lstat(path), os.stat("/proc/self/fd/%d" % fd)):
	        assert tuple(a) == tuple(b) and a.st_blocks == b.st_blocks
	    for b in (os.fstatvfs(fd), os.statvfs(os.path.dirname(path))):
	        assert b == os.statvfs("mnt") and b.f_flag & os.ST_RDONLY
	    assert a.st_blksize >= 4096 and a.st_size == 130000 and os.pathconf(path, "PC_NAME_MAX") == 255
	    os.close(fd), os.close(place)
	    mount.unmount()
	END
}

@test "file handles: of what the kernel knows, has forgotten, of another mount, of what is gone or was never there" {
	must_be_root
	[ -w /proc/sys/vm/drop_caches ] || skip "nothing can be forgotten"
	posix <<-'END'
	import random
	make_kinds()
	def take(path):
	    buf, mount_id = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
	    assert libc.name_to_handle_at(-100, path.encode(), buf, ctypes.byref(mount_id), 0) == 0, path
	    size, kind = struct.unpack_from("Ii", buf)
	    return kind, buf.raw[8:8 + size]
	def look(handle, where="mnt"):
	    """What a handle leads to, or its error."""
	    kind, data = handle
	    top = opened(where)
	    fd = libc.open_by_handle_at(top, ctypes.create_string_buffer(struct.pack("Ii", len(data), kind) + data, 136), os.O_RDONLY)
	    os.close(top)
	    return ctypes.get_errno() if fd < 0 else seen(fd)
	def seen(fd):
	    try:
	        st = os.fstat(fd)
	        return st.st_mode, st.st_ino, st.st_size, sorted(os.listdir(fd)) if stat.S_ISDIR(st.st_mode) else os.pread(fd, 1 << 20, 0)
	    finally:
	        os.close(fd)
	mount = Mount()
	paths = ["mnt/" + p for p in find()] + ["mnt"]
	handles = {p: take(p) for p in paths}
	want = {p: seen(os.open(p, os.O_RDONLY)) for p in paths}
	def all_right():
	    for p in paths:
	        assert look(handles[p]) == want[p], (p, look(handles[p]), want[p])
	all_right()
	for what in (2, 3):
	    drop(what)
	    all_right()
	control = {p: take(p) for p in ("mnt/.kpackfs/stats", "mnt/.kpackfs")}
	assert b'"reads"' in look(control["mnt/.kpackfs/stats"])[3]
	# those that nobody gave out; the bits that the kernel ignores leave one right
	rng, fine = random.Random(3), list(want.values())
	for p, (kind, data) in handles.items():
	    for _ in range(30):
	        wrong = bytearray(data)
	        wrong[rng.randrange(len(wrong))] ^= 1 << rng.randrange(8)
	        got = look((kind, bytes(wrong)))
	        assert got == errno.ESTALE or got in fine, (p, got)
	    for wrong in (bytes(len(data)), b"\xff" * len(data)):
	        assert look((kind, wrong)) == errno.ESTALE
	mount.unmount()
	mount = Mount("-o", "open")
	all_right()
	assert {p: take(p) for p in paths} == handles
	mount.unmount()
	mount = Mount("-o", "allow_other")
	# only a process that may pass by permissions
	assert as_user(65534, lambda: {look(h) for h in handles.values()}) == {errno.EPERM}
	mount.unmount()
	archive("src/a.kpack", {"f0": "", "f9": "other bytes"})
	mount = Mount()
	for p in paths:
	    if p[4:] in ("f9", "f18", "d0") or p[4:].startswith(("toc/f9/", "toc/d0", "toc/lib", "d0/")):
	        assert look(handles[p]) == errno.ESTALE, p
	assert look(handles["mnt/f0"])[:3] == want["mnt/f0"][:3]
	mount.unmount()
	END
}

@test "calls that read in other ways give the same bytes; holes, and requests that nobody knows" {
	posix <<-'END'
	import fcntl, mmap, socket
	make_kinds()
	mount = Mount()
	want = noise(195000, 39)
	fd = os.open("mnt/" + [p for p in find() if p.endswith("/f39")][0], os.O_RDONLY)
	size = len(want)
	# vectors, of odd sizes
	parts = [bytearray(n) for n in (1, 4095, 10000, size)]
	n = os.preadv(fd, parts, 5)
	assert n == size - 5 and b"".join(bytes(p) for p in parts)[:n] == want[5:]
	# sendfile into a file, a pipe and a socket; splice
	out = os.open("out", os.O_RDWR | os.O_CREAT, 0o644)
	assert sum(iter(lambda: os.sendfile(out, fd, None, 65537), 0)) == size and os.pread(out, size, 0) == want
	r, w = os.pipe()
	assert os.sendfile(w, fd, 7, 50000) > 0 and os.read(r, 50000) == want[7:50007]
	a, b = socket.socketpair()
	n = os.sendfile(a.fileno(), fd, 100, 4000)
	assert b.recv(n) == want[100:100 + n]
	if hasattr(os, "splice"):
	    n = os.splice(fd, w, 30000, offset_src=3)
	    assert os.read(r, n) == want[3:3 + n]
	# maps: advice, another process, the end of the last page
	with mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ) as m:
	    for advice in (mmap.MADV_WILLNEED, mmap.MADV_RANDOM, mmap.MADV_SEQUENTIAL, mmap.MADV_DONTNEED):
	        m.madvise(advice)
	        assert m[:] == want
	    assert as_user(0, lambda: m[:] == want)
	libc.mmap.restype = ctypes.c_void_p
	at = libc.mmap(None, ctypes.c_size_t(size), 1, 1, fd, ctypes.c_long(0))
	assert ctypes.string_at(at + size, -size % 4096) == bytes(-size % 4096)
	for advice in (os.POSIX_FADV_RANDOM, os.POSIX_FADV_WILLNEED, os.POSIX_FADV_NOREUSE, os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_DONTNEED):
	    os.posix_fadvise(fd, 0, 0, advice)
	    assert os.pread(fd, 70000, 60000) == want[60000:130000]
	for at in (0, 1, 4096, size - 1):
	    assert os.lseek(fd, at, os.SEEK_DATA) == at and os.lseek(fd, at, os.SEEK_HOLE) == size
	for at in (size, size + 1, 1 << 60):
	    for whence in (os.SEEK_DATA, os.SEEK_HOLE):
	        fails(errno.ENXIO, os.lseek, fd, at, whence)
	assert os.lseek(fd, -1, os.SEEK_END) == size - 1 and len(os.read(fd, 10)) == 1
	for at, whence in ((-1, os.SEEK_SET), (-size - 1, os.SEEK_END), (0, 99)):
	    fails(errno.EINVAL, os.lseek, fd, at, whence)
	assert os.pread(fd, 10, size) == b"" == os.pread(fd, 10, 1 << 62)
	# FS_IOC_FIEMAP, FS_IOC_GETFLAGS, one that nobody knows
	for request in (0xC020660B, 0x80086601, 0x12345678):
	    fails((errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM), fcntl.ioctl, fd, request, bytearray(64))
	END
}

@test "every call that would change something fails as on a tmpfs that is mounted read-only" {
	must_be_root
	posix <<-'END'
	import fcntl, itertools, shutil, socket
	archive("src/a.kpack", {"dir/file": "some bytes\n", "dir/empty": "", "tool": "#!/bin/sh\n", "lib/a.so#0": noise(300000, 1)})
	names = ["dir/file", "dir/empty", "tool", "dir", "dir/.", "dir/none", "dir/none/below", "dir/file/below", "dir/file/",
	         "none", ".", "0" * 256, "toc", "toc/lib", ".kpackfs", ".kpackfs/stats", ".kpackfs/none", ".kpackfs/stats/below"]
	opens = {n: getattr(os, n) for n in "O_WRONLY O_RDWR O_TRUNC O_CREAT O_DIRECTORY O_TMPFILE O_APPEND O_NOFOLLOW".split()}
	flags = [f for n in (1, 2, 3) for f in itertools.combinations(opens, n)]
	def call(name, *arguments):
	    """A function of libc."""
	    def made(p):
	        if getattr(libc, name)(*(p.encode() if a is None else a for a in arguments)) < 0:
	            raise OSError(ctypes.get_errno(), name)
	    return made
	def with_file(what):
	    def made(p):
	        fd = os.open(p, os.O_RDONLY)
	        try:
	            what(fd)
	        finally:
	            os.close(fd)
	    return made
	def bind(p):
	    s = socket.socket(socket.AF_UNIX)
	    top = os.getcwd()
	    try:
	        os.chdir(os.path.dirname(p.rstrip("/")))
	        s.bind(os.path.basename(p.rstrip("/")))
	    finally:
	        os.chdir(top)
	        s.close()
	def closing(f):
	    return lambda p: os.close(os.open(p, sum({opens[n] for n in f}) & ~0 if "O_TMPFILE" not in f else
	                                      opens["O_TMPFILE"] | sum(opens[n] for n in f if n not in ("O_TMPFILE", "O_DIRECTORY")), 0o644))
	one = {"open " + "|".join(f): closing(f) for f in flags}
	one.update({
	    "unlink": os.unlink, "rmdir": os.rmdir, "mkdir": os.mkdir, "mkfifo": os.mkfifo, "mknod": lambda p: os.mknod(p, 0o100644),
	    "device": lambda p: os.mknod(p, 0o20644, os.makedev(1, 3)), "symlink": lambda p: os.symlink("x", p), "bind": bind,
	    "truncate": lambda p: os.truncate(p, 0), "chmod": lambda p: os.chmod(p, 0o777), "chown": lambda p: os.chown(p, 1, 1),
	    "lchown": lambda p: os.lchown(p, 1, 1), "utime": os.utime, "utime old": lambda p: os.utime(p, (1, 1)),
	    "setxattr": lambda p: os.setxattr(p, "user.x", b"1"), "trusted": lambda p: os.setxattr(p, "trusted.x", b"1"),
	    "removexattr": lambda p: os.removexattr(p, "user.x"),
	    "access": call("access", None, 2), "access x": call("access", None, 1), "faccessat": call("faccessat", -100, None, 2, 0x200),
	    "fchmod": with_file(lambda fd: os.fchmod(fd, 0o777)), "fchown": with_file(lambda fd: os.fchown(fd, 1, 1)),
	    "futimens": with_file(lambda fd: os.utime(fd)), "fsetxattr": with_file(lambda fd: os.setxattr(fd, "user.x", b"1")),
	    "ftruncate": with_file(lambda fd: os.ftruncate(fd, 0)), "write": with_file(lambda fd: os.write(fd, b"x")),
	    "pwrite": with_file(lambda fd: os.pwrite(fd, b"x", 0)), "fallocate": with_file(lambda fd: os.posix_fallocate(fd, 0, 10)),
	    "fsync": with_file(os.fsync), "fdatasync": with_file(os.fdatasync), "syncfs": with_file(lambda fd: libc.syncfs(fd)),
	    "reopen": with_file(lambda fd: os.close(os.open("/proc/self/fd/%d" % fd, os.O_RDWR))),
	    "lock": with_file(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)), "read lock": with_file(lambda fd: fcntl.lockf(fd, fcntl.LOCK_SH)),
	    "sendfile": with_file(lambda fd: os.sendfile(fd, outside, 0, 5)),
	})
	two = {"rename": os.rename, "link": os.link, "exchange": lambda a, b: call("renameat2", -100, a.encode(), -100, b.encode(), 2)(a),
	       "noreplace": lambda a, b: call("renameat2", -100, a.encode(), -100, b.encode(), 1)(a)}
	open("outside", "w").write("outside")
	os.chmod("outside", 0o666)
	outside = os.open("outside", os.O_RDONLY)
	def result(what, *paths):
	    try:
	        what(*paths)
	        return "ok"
	    except OSError as e:
	        return errno.errorcode[e.errno or errno.ENAMETOOLONG]  # Python's own, of a socket
	def answers(top):
	    said = {(n, p): result(w, top + "/" + p) for n, w in one.items() for p in names}
	    others = [(p, top + "/" + p) for p in names] + [("outside", os.path.abspath("outside"))]
	    for n, w in two.items():
	        said.update({(n, p, q): result(w, a, b) for p, a in others for q, b in others if (p, q) != ("outside", "outside")})
	    return said
	def fill(top):
	    os.mkdir(top)
	    subprocess.run(["mount", "-t", "tmpfs", "none", top], check=True)
	    subprocess.run("cp -a mnt/. %s && mkdir %s/.kpackfs && cp -a mnt/.kpackfs/. %s/.kpackfs && mount -o remount,ro %s" % ((top,) * 4),
	                   shell=True, check=True)
	def state():
	    return [(p, tuple(os.lstat("mnt/" + p))) for p in find()], text("mnt/dir/file"), text("outside")
	for number, (options, user) in enumerate((("allow_other", 0), ("allow_other,open", 65534), ("allow_other,uid=65534,gid=65534", 65534))):
	    mount, top = Mount("-o", options), "tmpfs%d" % number
	    fill(top)
	    before = state()
	    have, want = as_user(user, lambda: answers("mnt")), as_user(user, lambda: answers(top))
	    wrong = {k: (have[k], want[k]) for k in want if have[k] != want[k]}
	    assert not wrong, list(wrong.items())[:20]
	    assert state() == before and len(have) > 2000 and list(have.values()).count("EROFS") > 400, len(have)
	    subprocess.run(["umount", top], check=True)
	    # The kernel asks no daemon about a remount: only calls after it can be refused.
	    if user == 0 or "open" in options:
	        subprocess.run(["mount", "-i", "-o", "remount,rw", "mnt"], stderr=subprocess.DEVNULL)
	        for p, what in (("none", "mkdir"), ("none", "mkfifo"), ("none", "symlink"), ("dir/file", "unlink"), ("dir", "rmdir"),
	                        ("dir/file", "truncate"), ("dir/file", "chmod"), ("tool", "utime"), ("none", "mknod"),
	                        ("dir/file", "open O_WRONLY|O_TRUNC"), ("none", "open O_WRONLY|O_CREAT"), ("dir/file", "chown")):
	            assert result(one[what], "mnt/" + p) == "EROFS", (what, p, result(one[what], "mnt/" + p))
	        def write(p):
	            fd = os.open(p, os.O_WRONLY)  # nobody is asked if the option `open` is not given
	            try:
	                os.write(fd, b"x")
	            finally:
	                os.close(fd)
	        assert result(write, "mnt/dir/file") == "EROFS"
	        for what in two:
	            assert result(two[what], "mnt/tool", "mnt/none" if what != "exchange" else "mnt/dir/file") == "EROFS", what
	        assert state()[1:] == before[1:]
	    mount.unmount()
	END
}
