# SPDX-License-Identifier: MIT
"""Trees with device code of every kind, made from a seed: the inputs of the properties.

A tree is a list of items, so that a failure can be made smaller by leaving some of them out.
"""
import os, random, subprocess

import mkfat, mkoffload, pes
from hosts import code_object_alone
from mkdb import aotriton, hipblaslt, miopen, objects, rocblas, sqlitedb
from mkdb.tree import Tree as DatabaseTree

REAL = ["gfx906", "gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx1030", "gfx1100", "gfx1101",
        "gfx1201"]
OTHER = ["gfx9-4-generic", "gfx11-generic", "gfx12-generic", "amdgcnspirv", "gfx9999"]
GENERIC = {"gfx9-4-generic": {"gfx940", "gfx941", "gfx942", "gfx950"},
           "gfx11-generic": {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"},
           "gfx12-generic": {"gfx1200", "gfx1201"}}
DIRS = ["lib", "lib/x86_64-linux-gnu", "lib/a/b/c/d/e/f/g/h", "bin", "opt/sp ace", "opt/new\nline",
        "opt/\u00e9\u65e5", "lib64/-rf"]
SIZES = [100, 1000, 5000, 20000]


def loads(gpu, arch):
    """Whether the GPU of a list can load code for ARCH: the rule in kpack-pack(1)."""
    (want, *wanted), (have, *stated) = gpu.split(":"), arch.split(":")
    if have in ("generic", "amdgcnspirv"):
        return True
    if want != have and want not in GENERIC.get(have, ()):
        return False
    return not any(f[:-1] == g[:-1] and f != g for f in wanted for g in stated)


class Item:
    """A file, or what else a name can be: KIND is file, fat, bundle, ar, other (device code), db,
    dir, symlink or fifo."""

    def __init__(self, path, kind, data=b"", mode=0o644, objects=()):
        self.path, self.kind, self.data, self.mode = path, kind, data, mode
        self.objects = objects  # (arch, bytes) that were put in
        self.time, self.xattr, self.group = 0, None, None  # GROUP: the same are hard links

    def __str__(self):
        return "%-7s %04o %6d %r%s%s" % (self.kind, self.mode, len(self.data), self.path,
                                         " links %s" % self.group if self.group else "",
                                         " of " + " ".join(sorted({a for a, _ in self.objects}))
                                         if self.objects else "")


def fat(r, arches, seeds):
    """A HIP library with one to four bundles, its wrappers in any order, and what is in it."""
    align = r.choice([1, 3, 16, 24, 64, 4096, 4096, 65536])
    parts, at, starts, put = [], 0, [], []
    for _ in range(r.randrange(1, 5)):
        size, seed = r.choice(SIZES), r.choice(seeds)
        chosen = r.sample(arches, r.randrange(1, len(arches) + 1))
        objects = [(a, mkfat.code_object(a, size, seed)) for a in chosen]
        if r.random() < 0.2:
            objects.append((chosen[0] + "@openmp", mkfat.code_object(chosen[0], size, seed + "openmp")))
        put += [(a.split("@")[0], d) for a, d in objects]
        gap = -at % align
        starts.append(at + gap)
        parts += [bytes(gap), mkfat.bundle(objects, r.choice([0, 0, 2, 3]), align)]
        at += gap + len(parts[-1])
    pointers = starts[:r.randrange(1, len(starts) + 1)]  # no wrapper leads to the rest
    pointers += [r.choice(starts) for _ in range(r.randrange(2))]
    r.shuffle(pointers)
    section = b"".join(parts) + bytes(r.choice([0, 0, 5, 4096]))
    if r.random() < 0.3:
        return windows(r, section, pointers), put
    return mkfat.shared_library(section, pointers, r.choice([0, 0, 0x400000])), put


def windows(r, section, pointers):
    section += bytes(12000)  # room for marker and recipe: a file that would become longer is not converted
    page, align = r.choice([(4096, 512), (4096, 4096), (65536, 512)])
    return pes.Pe(made=(section, pointers), machine=r.choice([pes.X86, pes.ARM]), page=page, align=align, dll=r.random() < 0.7,
                  fixed=r.random() < 0.2, first=r.random() < 0.5, long=r.random() < 0.2, symbols=r.random() < 0.3,
                  debug=r.randrange(3), checksum=r.random() < 0.3, stub=r.choice([64, 128, 248]), spare=r.choice([0, 80]),
                  tail=r.choice([b"", b"", bytes(70), pes.OVERLAY])).build()


def add_code(r, arches, seeds, new):
    for i in range(r.randrange(2, 6)):
        data, put = fat(r, arches, seeds)
        item = new("lib%d.so" % i, "fat", data, r.choice([0o755, 0o755, 0o644, 0o555, 0o700]), put)
        if r.random() < 0.3:
            item.group = name = "code%d" % i
            for _ in range(r.randrange(1, 3)):
                new("link%d.so" % i, "fat", data, item.mode, put).group = name
    a, one = r.choice(arches), lambda a: mkfat.code_object(a, r.choice(SIZES), r.choice(seeds))
    objects = [(a, one(a)) for a in arches]
    some = [
        ("x.hipfb", "bundle", mkfat.bundle(objects, r.choice([0, 2, 3]), r.choice([1, 16, 4096])), objects),
        ("bare.hsaco", "other", code_object_alone(r.choice(["gfx90a", "gfx1100"]), 3000, seeds[0]), ()),
        ("image.bin", "other", mkoffload.offload_binary(objects[0][1], triple="amdgcn-amd-amdhsa", arch=arches[0]),
         objects[:1]),
        ("libs.a", "ar", mkoffload.ar([("m%d.o" % i, mkfat.bundle([(a, one(a)) for a in arches], 0, 16))
                                       for i in range(3)]), ()),
        ("tile.bc", "other", mkoffload.tileir(["one", "two"]), ()),
    ]
    for name, kind, data, put in some:
        if r.random() < 0.5:
            new(name, kind, data, objects=put)


def add_plain(r, new):
    new("empty", "file")
    new("text %d" % r.randrange(9), "file", b"text\n" * r.randrange(50))
    new("not\udcffutf8", "file", b"x")
    new("sparse", "file", bytes(100000) + b"end", 0o600)
    new("void", "dir", mode=r.choice([0o755, 0o700, 0o555]))
    new("fifo", "fifo", mode=0o640)
    new("to", "symlink", r.choice([b"../nowhere", b"lib0.so", b"."]))
    twice = new("first", "file", b"linked", 0o444)
    twice.group = "text"
    new("second", "file", b"linked", 0o444).group = "text"


def generate(seed, databases, hosts, fixtures):
    r = random.Random(seed)
    # some trees have no feature beside the other, and some only code that says one
    arches = r.sample(REAL, r.randrange(2, 5)) + r.sample(OTHER, r.randrange(3))
    seeds = [str(r.random()) for _ in range(4)]
    items, dirs = [], r.sample(DIRS, r.randrange(2, 6)) + ["lib"]

    def new(name, *args, **kw):
        while True:
            # names of code are keys, which have no control characters
            path = os.path.join(r.choice([d for d in dirs if d.isprintable() or args[0] == "file"]), name)
            if path not in {i.path for i in items}:
                break
            name = "+" + name
        items.append(Item(path, *args, **kw))
        items[-1].time = r.choice([1, 981173106 * 10**9, r.randrange(2 * 10**18)])
        items[-1].xattr = b"note" if r.random() < 0.1 else None
        return items[-1]

    add_code(r, arches, seeds, new)
    add_plain(r, new)
    for name, data, put in r.sample(hosts, 2):
        new(name, "fat", data, 0o755, put)
    for name, data in r.sample(fixtures, 3):
        new(name, "other", data)
    for kind in r.sample(sorted(databases), 2):
        for path, data, mode in databases[kind]:
            if path in {i.path for i in items}:  # of a kind before
                continue
            items.append(Item(path, "db", data, mode))
            items[-1].time = 10**18
    for item in items:  # what is one file has one time
        first = next(i for i in items if i is item or item.group and i.group == item.group)
        item.time, item.xattr = first.time, first.xattr if item.kind in ("file", "fat") else None
    return items


def write(items, root):
    """Make the tree."""
    first = {}
    os.makedirs(root)
    for i in items:
        path = os.path.join(root, i.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if i.group in first:
            os.link(first[i.group], path)
            continue
        if i.group:
            first[i.group] = path
        if i.kind == "dir":
            os.mkdir(path)
        elif i.kind == "fifo":
            os.mkfifo(path)
        elif i.kind == "symlink":
            os.symlink(i.data, path)
            os.utime(path, ns=(i.time, i.time), follow_symlinks=False)
            continue
        else:
            with open(path, "wb") as f:
                f.write(i.data)
        if i.xattr:
            os.setxattr(path, "user.note", i.xattr)
        os.chmod(path, i.mode)
        os.utime(path, ns=(i.time, i.time))
    for where, _, _ in os.walk(root, topdown=False):
        if os.stat(where).st_mtime_ns > 10**18 * 1.7:
            os.utime(where, ns=(10**18 + len(where), 10**18 + len(where)))


# ---- what all trees choose from, made once -----------------------------------------------


def small_miopen(t):
    t.put("share/miopen/db/gfx90a68.db.txt", miopen.lines(miopen.perf_line, 20))
    t.put("share/miopen/db/gfx1030_36.HIP.fdb.txt", miopen.lines(miopen.find_line, 20))
    t.put("share/miopen/db/gfx1030_36.OpenCL.fdb.txt", b"")
    for name, arch in (("gfx90a68", "gfx90a"), ("gfx942130", "gfx942")):
        sqlitedb.kdb(t, "share/miopen/db/%s.kdb" % name, arch, 4)


def small_rocfft(t):
    sqlitedb.rocfft(t, "lib/rocfft/rocfft_kernel_cache.db", ("gfx90a", "gfx1100"), 3)


DATABASES = {"rocblas": rocblas.mixed, "rocblas-feature": rocblas.feature, "hipblaslt": hipblaslt.flat,
             "hipsparselt": hipblaslt.sparse, "aotriton": aotriton.images, "flatzip": aotriton.flatzip,
             "provider": miopen.provider, "miopen": small_miopen, "rocfft": small_rocfft}


def all_databases(where):
    """kind -> (path, bytes, mode) of each file.  The code is made by hand, so compilers do not matter."""
    objects.CLANG = objects.BUNDLER = None
    found = {}
    for kind, make in DATABASES.items():
        root = os.path.join(where, kind)
        make(DatabaseTree(root, objects.Objects(os.path.join(where, ".objects"))))
        found[kind] = []
        for top, dirs, names in os.walk(root):
            dirs.sort()
            for name in sorted(names):
                path = os.path.join(top, name)
                with open(path, "rb") as f:
                    found[kind].append((os.path.relpath(path, root), f.read(), os.stat(path).st_mode & 0o777))
    return found


HOST = """
.section .hip_fatbin,"a",@progbits
.p2align %d
fat: .incbin "fat.bin"
.section .hipFatBinSegment,"aw",@progbits
.p2align 3
.long 0x48495046, 1
.quad fat, 0
.section .note.GNU-stack,"",@progbits
"""
LINKS = {"shared.so": ["-shared"], "pie": ["-pie"], "no-pie": ["-no-pie"],
         "stripped.so": ["-shared", "-s", "-Wl,-z,noseparate-code"],
         "relro.so": ["-shared", "-Wl,-z,relro,-z,now,--build-id=sha1", "-Wl,-z,max-page-size=0x10000"],
         "sysv.so": ["-shared", "-Wl,--hash-style=sysv"]}


def all_hosts(where):
    """Libraries and programs of this machine's compiler, with one wrapper each."""
    made = []
    for i, (name, options) in enumerate(LINKS.items()):
        align = [4, 12][i % 2]
        with open(os.path.join(where, "fat.bin"), "wb") as f:
            objects = [(a, mkfat.code_object(a, 3000, name)) for a in ("gfx90a", "gfx1100")]
            f.write(mkfat.bundle(objects, [0, 2, 3][i % 3], 1 << align))
        with open(os.path.join(where, "fat.s"), "w") as f:
            f.write(HOST % align)
        with open(os.path.join(where, "host.c"), "w") as f:
            f.write("int table[900] = {1}; int main(void) { return table[1]; }\n")
        subprocess.run(["cc", "-O1", "-no-pie" if name == "no-pie" else "-fPIC", *options, "-o", "host", "host.c",
                        "fat.s"], check=True, cwd=where)
        with open(os.path.join(where, "host"), "rb") as f:
            made.append((name, f.read(), objects))
    return made


def all_fixtures(source):
    """Small files of every format, as real tools wrote them."""
    found = []
    for where in ("tests/data", "tests/fuzz/corpus/strip", "tests/fuzz/corpus/ccob", "tests/fuzz/corpus/bundle",
                  "tests/fuzz/corpus/offload_binary", "tests/fuzz/corpus/cubin", "tests/fuzz/corpus/ptx"):
        for top, _, names in sorted(os.walk(os.path.join(source, where))):
            for name in sorted(names):
                path = os.path.join(top, name)
                with open(path, "rb") as f:
                    data = f.read()
                if name.endswith((".hsaco", ".fatbin", ".cubin", ".o")) or name.startswith("good"):
                    found.append((os.path.basename(top) + "-" + name, data))
    assert len(found) > 10
    return found


class Trees:
    """The tree of each seed.  0 is all databases, hosts and fixtures."""

    def __init__(self, source, where):
        self.databases, self.hosts = all_databases(os.path.join(where, "databases")), all_hosts(where)
        self.fixtures = all_fixtures(source)

    def __call__(self, seed):
        if seed:
            return generate(seed, self.databases, self.hosts, self.fixtures)
        items = [Item("lib/" + name, "fat", data, 0o755, put) for name, data, put in self.hosts]
        items += [Item("fixtures/" + name, "other", data) for name, data in self.fixtures]
        items += [Item(*row[:1], "db", *row[1:]) for rows in self.databases.values() for row in rows]
        for item in items:
            item.time = 10**18
        return list({i.path: i for i in items}.values())
