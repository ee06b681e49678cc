#!/usr/bin/env bats
# -o bundles: the code of each binary as an offload bundle, as clang and HIP's runtimes read it.

bats_require_minimum_version 1.5.0

load mounting

# bundles: a program on stdin, with a reader of bundles
bundles() {
	{
		cat <<-'END'
		import mmap, random, struct
		h = "hipv4-amdgcn-amd-amdhsa--"
		def bundle(data):
		    """{id: (offset, size)}, as a runtime reads it."""
		    assert data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
		    n, at, rows = struct.unpack_from("<Q", data, 24)[0], 32, {}
		    for _ in range(n):
		        offset, size, length = struct.unpack_from("<QQQ", data, at)
		        rows[data[at + 24:at + 24 + length].decode()] = (offset, size)
		        at += 24 + length
		    ends = [at]
		    for i, (name, (offset, size)) in enumerate(rows.items()):
		        assert offset % 4096 == 0 and offset >= ends[-1], (name, offset)
		        assert (size == 0) == (i == 0), name
		        ends += [offset + size] if size else []
		    assert list(rows)[0] == "host-x86_64-unknown-linux-gnu-" and len(data) == ends[-1]
		    return rows
		def objects(data):
		    return {i: data[o:o + n] for i, (o, n) in bundle(data).items() if n}
		def read(name):
		    with open("mnt/hipfb/%s.hipfb" % name, "rb") as f:
		        return f.read()
		def two_archives():
		    a = mkarchive.Archive()
		    a.add("lib/liba.so#0", "gfx1030", b"hello")
		    a.add("lib/liba.so#0", "gfx90a:xnack+", noise(300001, 1))
		    a.add("lib/liba.so#2", "gfx1030", noise(5000, 2))
		    a.add("share/x.db", "generic", b"db", type="db", path="share/x.db")
		    a.write("src/a.kpack")
		    b = mkarchive.Archive(scheme="none")
		    b.add("lib/liba.so#0", "gfx942", noise(8192, 3), target="hip-amdgcn-amd-amdhsa--gfx942")
		    b.add("b", "gfx942", noise(4096, 4), type="co")
		    b.write("src/b.kpack")
		def names():
		    return [p for p in find() if p.endswith(".hipfb")]
		END
		cat
	} | mounts
}

@test "a bundle for each binary and index, of all archives; the same bytes and numbers at every mount" {
	bundles <<-'END'
	two_archives()
	os.utime("src/a.kpack", ns=(7 * 10**8, 7 * 10**8)), os.utime("src/b.kpack", ns=(8 * 10**8, 8 * 10**8))
	os.chmod("src/b.kpack", 0o640), os.chmod("src/a.kpack", 0o644)
	want = {
	    "lib/liba.so/0": {"hip-amdgcn-amd-amdhsa--gfx942": noise(8192, 3), h + "gfx1030": b"hello",
	                      h + "gfx90a:xnack+": noise(300001, 1)},
	    "lib/liba.so/2": {h + "gfx1030": noise(5000, 2)},
	    "b/0": {h + "gfx942": noise(4096, 4)},
	}
	def du():
	    return sum(os.lstat("mnt/" + p).st_blocks for p in find())
	def numbers(which=("",)):
	    return {p: os.lstat("mnt/" + p).st_ino for p in find() if p.startswith(which)}
	seen = []
	for _ in range(2):
	    mount = Mount("-o", "bundles")
	    assert names() == sorted("hipfb/%s.hipfb" % n for n in want)
	    for name, parts in want.items():
	        data = read(name)
	        assert objects(data) == parts and list(objects(data)) == sorted(parts), name
	        with open("mnt/hipfb/%s.hipfb" % name, "rb") as f:
	            assert mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:] == data
	        rest = bytearray(data)
	        for offset, size in bundle(data).values():
	            rest[offset:offset + size] = bytes(size)
	        assert not any(rest[32 + sum(24 + len(i) for i in bundle(data)):]), name
	    for name, mode, time in (("lib/liba.so/0", 0o100440, 8), ("lib/liba.so/2", 0o100444, 7), ("b/0", 0o100440, 8)):
	        st = os.stat("mnt/hipfb/%s.hipfb" % name)
	        assert (st.st_mode, st.st_mtime_ns, st.st_blocks, st.st_nlink) == (mode, time * 10**8, 1, 1), (name, st)
	    seen.append((numbers(), {n: read(n) for n in want}))
	    entries, blocks = numbers(("toc", "share")), du()
	    mount.unmount()
	assert seen[0] == seen[1]
	# the option does not change the entries' numbers
	mount = Mount()
	assert not os.path.exists("mnt/hipfb") and numbers(("toc", "share")) == entries and du() + 3 == blocks
	mount.unmount()
	# only what arch= and subdir= show
	for options, shown in (("arch=gfx1030", ["hipfb/lib/liba.so/0.hipfb", "hipfb/lib/liba.so/2.hipfb"]), ("arch=gfx1201", []),
	                       ("subdir=share", []), ("subdir=hipfb/lib", ["liba.so/0.hipfb", "liba.so/2.hipfb"]),
	                       ("subdir=.", ["hipfb/b/0.hipfb", "hipfb/lib/liba.so/0.hipfb", "hipfb/lib/liba.so/2.hipfb"])):
	    mount = Mount("-o", "bundles," + options)
	    assert names() == shown and os.path.exists("mnt/hipfb") == (shown != [] and options != "subdir=hipfb/lib"), options
	    if options == "arch=gfx1030":
	        assert objects(read("lib/liba.so/0")) == {h + "gfx1030": b"hello"}
	    mount.unmount()
	END
}

# bats test_tags=all
@test "clang's bundler and kpack read it" {
	bundles <<-'END'
	two_archives()
	mount = Mount("-o", "bundles")
	path = "mnt/hipfb/lib/liba.so/0.hipfb"
	bundler = ["clang-offload-bundler-22", "-type=o", "-input=" + path]
	ids = subprocess.run(bundler + ["-list"], stdout=subprocess.PIPE, check=True).stdout.decode().split()
	assert sorted(ids) == sorted(bundle(read("lib/liba.so/0")))
	for name, data in objects(read("lib/liba.so/0")).items():
	    subprocess.run(bundler + ["-unbundle", "-targets=" + name, "-output=object"], check=True)
	    assert open("object", "rb").read() == data
	mount.unmount()
	END
}

@test "reads of any range, across the borders of parts; damage is EIO for its pages alone" {
	bundles <<-'END'
	parts = {"gfx1030": noise(700001, 1), "gfx1100": b"tiny", "gfx90a": noise(40960, 3), "gfx942": noise(1500001, 4)}
	a = mkarchive.Archive()
	for arch, data in parts.items():
	    a.add("x#0", arch, data, **({"chunk": 65536} if arch == "gfx942" else {}))
	a.add("y#0", "gfx1030", noise(100000, 1))
	a.add("y#0", "gfx1100", noise(100000, 2), xxh3=bytes(16))
	a.add("y#0", "gfx942", noise(100000, 3))
	a.write("src/a.kpack")
	for options in ("bundles", "bundles,cache_size=1m,threads=3,open"):
	    mount = Mount("-o", options)
	    path = "mnt/hipfb/x/0.hipfb"
	    size = os.stat(path).st_size
	    fd, direct = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY | os.O_DIRECT)
	    rows = bundle(b"".join(os.pread(direct, 65536, at) for at in range(0, size, 65536)))
	    want = bytearray(size)
	    want[:4096] = os.pread(direct, 4096, 0)
	    for name, (offset, n) in rows.items():
	        if n:
	            want[offset:offset + n] = parts[name.split("--")[1]]
	    want, rng = bytes(want), random.Random(3)
	    borders = [0, size] + [at for o, n in rows.values() for at in (o, o + n)]
	    for _ in range(200):
	        n = rng.choice((1, 13, 4096, 70000, 400000, 1 << 20, size))
	        at = max(0, rng.choice(borders) - rng.randrange(n + 10))
	        for f in fd, direct:
	            assert os.pread(f, n, at) == want[at:at + n], (at, n)
	    assert os.pread(direct, size + 5, 0) == want
	    os.close(fd), os.close(direct)
	    y = os.open("mnt/hipfb/y/0.hipfb", os.O_RDONLY)
	    head, at, where = os.pread(y, 4096, 0), 32, {}
	    for _ in range(4):
	        offset, _, n = struct.unpack_from("<QQQ", head, at)
	        where[head[at + 24:at + 24 + n].decode().split("--")[-1]] = offset
	        at += 24 + n
	    for arch, seed in ("gfx1030", 1), ("gfx942", 3):
	        assert os.pread(y, 100000, where[arch]) == noise(100000, seed)
	    for at in where["gfx1100"], where["gfx1100"] + 90000:
	        fails(errno.EIO, os.pread, y, 100, at)
	    os.close(y)
	    mount.unmount()
	END
}

@test "bundles change with the archives; open ones keep their bytes" {
	bundles <<-'END'
	two_archives()
	os.rename("src/b.kpack", "b")
	mount = Mount("-o", "bundles")
	name = "lib/liba.so/0"
	def inode(n):
	    return os.stat("mnt/hipfb/%s.hipfb" % n).st_ino
	one, other, old = inode(name), inode("lib/liba.so/2"), read(name)
	assert "hip-amdgcn-amd-amdhsa--gfx942" not in bundle(old) and not os.path.exists("mnt/hipfb/b")
	held = open("mnt/hipfb/%s.hipfb" % name, "rb")
	os.link("b", "src/b.kpack")
	mount.barrier()
	assert bundle(read(name))["hip-amdgcn-amd-amdhsa--gfx942"][1] == 8192 and os.path.exists("mnt/hipfb/b")
	assert inode(name) != one and inode("lib/liba.so/2") == other
	# even when both archives are gone
	os.unlink("src/a.kpack"), os.unlink("src/b.kpack")
	mount.barrier()
	assert not os.path.exists("mnt/hipfb") and held.read() == old
	held.close()
	mount.unmount()
	END
}

@test "names in hipfb are the mount's own; the texts of .kpackfs, and extended attributes" {
	bundles <<-'END'
	archive("src/a.kpack", {"hipfb/a": "a", "x#0@gfx942": "x"})
	archive("src/b.kpack", {"hipfb": "b"})
	mount = Mount("-o", "bundles")
	assert os.listdir("mnt/hipfb") == ["x"]
	for path in ("hipfb/a", "hipfb"):
	    assert path + "\t" in text("mnt/.kpackfs/missing")
	assert "\nhipfb/a\t" in "\n" + text("mnt/.kpackfs/missing") and "hipfb is the mount" in text("mnt/.kpackfs/missing")
	assert "\n  conflicts  2:" in text("mnt/.kpackfs/status")
	os.unlink("src/a.kpack"), os.unlink("src/b.kpack")
	mount.unmount()
	archive("src/a.kpack", {"hipfb/a": "a"})
	mount = Mount()
	assert text("mnt/hipfb/a") == "a"
	mount.unmount()
	two_archives()
	mount = Mount("-o", "bundles,xattr")
	path = "mnt/hipfb/lib/liba.so/0.hipfb"
	assert {n: os.getxattr(path, n).decode() for n in os.listxattr(path)} == {
	    "user.kpack.key": "lib/liba.so#0", "user.kpack.type": "hipfb", "user.kpack.size": str(os.stat(path).st_size)}
	assert "shown      9 files" in start("--status", "mnt") and "conflicts  none" in text("mnt/.kpackfs/status")
	mount.unmount()
	END
}

@test "with allow_other a bundle is for those who may read all of its archives" {
	must_be_root
	chmod 0755 src
	bundles <<-'END'
	def bob(what): return as_user(40002, what)
	def member(what): return as_user(40002, what, groups=[40100])
	def root(what): return as_user(0, what)
	def got():
	    return {i.split("--")[1]: o.decode() for i, o in objects(read("x/0")).items()}
	def look():
	    st = os.stat("mnt/hipfb/x/0.hipfb")
	    return st.st_mode & 0o777, st.st_uid, st.st_gid
	archive("src/public.kpack", {"x#0@gfx1030": "public"})
	mount = Mount("-o", "bundles,allow_other")
	assert bob(got) == {"gfx1030": "public"}
	archive("src/secret.kpack", {"x#0@gfx1100": "secret"}, 0o600, (40001, 40001))
	archive("src/team.kpack", {"x#0@gfx942": "team"}, 0o640, (0, 40100))
	mount.barrier()
	assert look() == (0o440, 0, 40100) and bob(got) == errno.EACCES
	assert member(got) == root(got) == {"gfx1030": "public", "gfx942": "team"}
	archive("src/other.kpack", {"x#0@gfx90a": "other"}, 0o640, (0, 40101))
	mount.barrier()
	assert look() == (0o400, 0, 0) and member(got) == errno.EACCES and len(root(got)) == 3
	mount.unmount()
	# one user owns all of them, and mounts for other users
	mount = Mount("-o", "bundles,allow_other,uid=40002")
	assert len(bob(got)) == 4
	mount.unmount()
	END
}
