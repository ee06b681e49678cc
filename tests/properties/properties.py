# SPDX-License-Identifier: MIT
"""What must be true of every tree, however it is packed.  Each function takes a Run and raises Failure, or
AssertionError, if it is not."""
import collections, ctypes, glob, hashlib, json, os, random, stat, subprocess

import arfile, dbcheck, fatparse, mkfat, mkoffload, mkwheel, readkpack, treecheck, zipfile
import trees

BIN = os.environ["KPACK_BIN"]
SCHEMES = {"none": ["--scheme", "none"], "zstd": [], "chunked": ["--chunk", "4096", "--keep-containers"],
           "shared": ["--scheme", "zstd-shared", "--keep-containers"]}
# what is the same for all ways of a seed, by turns
MORE = [[], ["--level", "1"], ["--family", "mine=gfx1030,gfx1100,gfx90a,gfx90a:xnack+"], ["--level", "12"]]
WAYS = {name + volumes: options + (["--volume-size", "30000"] if volumes else [])
        for volumes in ("", "+volumes") for name, options in SCHEMES.items()}


class Failure(Exception):
    """A property that does not hold."""


class Nothing(Exception):
    """The tree has nothing that the property is about, as one that was made smaller."""


def sha(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


class Run:
    """A tree in a directory of its own, and what packing it one way made of it."""

    def __init__(self, items, seed, way, where):
        self.items, self.seed, self.way, self.where = items, seed, way, where
        self.more = [] if "none" in way and seed % 2 else MORE[seed % len(MORE)]
        self.options = ["--group", "g", *self.more, *WAYS[way]]
        self.r, self.made = random.Random("%s %s" % (seed, way)), 0
        self.input = self.new()
        trees.write(items, self.input)
        self.archives = {}
        self.packed_tree = None

    def new(self):
        self.made += 1
        return os.path.join(self.where, str(self.made))

    def kpack(self, *args, status=(0,), program="kpack"):
        done = subprocess.run([os.path.join(BIN, program), *args], stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode not in status:
            raise Failure("exit %d: %s %s\n%s" % (done.returncode, program, " ".join(map(repr, args)),
                                                  done.stderr.decode(errors="replace")))
        return done.stdout

    def pack(self, source, to, *options):
        # 1: some of the fixtures are damaged, which is reported after everything else was done
        self.kpack("pack", "-q", *self.options, *options, source, to, status=(0, 1) if self.seed == 0 else (0,))
        return to

    @property
    def packed(self):
        """The packed tree; properties that change it make a copy first."""
        if self.packed_tree is None:
            self.packed_tree = self.pack(self.input, self.new())
        return self.packed_tree

    @property
    def stored(self):
        """The packed tree, which has archives."""
        if not os.path.isdir(self.packed + "/.kpack"):
            raise Nothing
        return self.packed

    def copy(self, tree):
        to = self.new()
        subprocess.run(["cp", "-a", tree, to], check=True)
        return to

    def files(self, *kinds):
        """The first path of each file of these kinds."""
        seen, found = set(), []
        for i in sorted(self.items, key=lambda i: os.fsencode(i.path)):
            if i.kind in kinds and (i.group is None or i.group not in seen):
                found.append(i)
                seen.add(i.group)
        return found


def entries(where):
    """(key, arch) -> bytes of all archives below .kpack of WHERE, or of an archive."""
    found = {}
    for path in sorted(glob.glob(glob.escape(where) + "/.kpack/*.kpack")) or \
            sorted(glob.glob(glob.escape(where) + "/*.kpack")) or [where] * os.path.isfile(where):
        archive = readkpack.Archive(path)
        archive.read_all_frames()
        ordinals = {}
        for key, arch, entry in archive.entries():
            assert (key, arch) not in found, (path, key, arch)
            data = found[key, arch] = archive.get(entry)
            archive.check_frame(entry, data)
            assert archive.shared or ordinals.setdefault(data, entry["ordinal"]) == entry["ordinal"], \
                "equal bytes are stored twice"
    return found


def snapshot(root, archives=True):
    """path -> everything that can be seen of it; of archives, which are of the moment, only the bytes."""
    found, first = {}, {}
    for path, s in sorted(treecheck.walk(root).items()):
        full = os.path.join(root, path)
        if stat.S_ISDIR(s.st_mode):
            found[path] = s.st_mode, s.st_uid, s.st_gid
            continue
        if path.endswith(".kpack"):  # of a split tree
            found[path] = treecheck.content(full, s)
            continue
        link = first.setdefault((s.st_dev, s.st_ino), path)  # hard links have one first path
        found[path] = (s.st_mode, s.st_uid, s.st_gid, s.st_mtime_ns, sorted(treecheck.xattrs(full).items()), link,
                       treecheck.content(full, s))
    if archives and os.path.isdir(root + "/.kpack"):
        found.update({".kpack/" + p: sha(d) for p, d in contents(root + "/.kpack").items()
                      if not p.startswith("undo/")})
    return found


def equal(want, got, what=""):
    """Of dictionaries, name what differs."""
    if want == got:
        return
    lines = []
    for key in sorted(set(want) | set(got), key=repr):
        a, b = want.get(key, "nothing"), got.get(key, "nothing")
        if a != b:
            lines.append("%r: %.300r, not %.300r" % (key, b if not isinstance(b, bytes) else (len(b), sha(b)),
                                                     a if not isinstance(a, bytes) else (len(a), sha(a))))
    raise Failure("\n".join([what + " differ:"] + lines[:8]))


def is_database(run, item):
    return item.kind == "db" and dbcheck.expect(run.input, item.path) is not None


def expected(run):
    """The entries that packing must make, by independent readers; of other code only that it is there."""
    want = {}
    for i in run.files("fat", "db", "bundle"):
        path = os.path.join(run.input, i.path)
        if i.kind == "fat":
            want.update({(key, arch): bytes(data) for key, arch, _, data
                         in fatparse.entries(fatparse.Elf(path), i.path)})
        elif i.kind == "bundle":
            (objects,) = fatparse.containers(i.data).values()
            want.update({(i.path + "#0", arch): bytes(data) for _, arch, data in objects})
        elif is_database(run, i):
            want.update({(i.path, arch): i.data for arch in dbcheck.expect(run.input, i.path)[2]})
    return want


def path_of(key):
    """The path of the file that an entry is from."""
    name, sharp, _ = key.rpartition("#")
    if not sharp:
        return key
    head, at, _ = name.rpartition("@")
    return head if at and "/" not in name[len(head):] else name


# ---- packing and restoring ---------------------------------------------------------------


def restore(run):
    """What was packed comes back: bytes, modes, times, links, attributes."""
    out = run.packed
    want, got = snapshot(run.input), snapshot(out, archives=False)
    gone = {i.path for i in run.items if is_database(run, i)}
    fat = {i.path for i in run.items if i.kind == "fat"}
    equal({p: w[:-1] if p in fat else w for p, w in want.items() if p not in gone},
          {p: g[:-1] if p in fat else g for p, g in got.items()}, "files of the input and of the output")
    for n, i in enumerate(run.files("fat")):
        path, back = os.path.join(out, i.path), run.new()
        if not treecheck.marker(path):
            assert read(path) == i.data, i.path + " is neither converted nor a copy"
        elif (n + len(run.way)) % 2:
            run.kpack("mark", "restore", "-o", back, path)
            same_file(run, i, back)


def same_file(run, item, path):
    data, s, t = read(path), os.stat(path), os.stat(os.path.join(run.input, item.path))
    for name in ("st_mode", "st_uid", "st_gid", "st_mtime_ns"):
        assert getattr(s, name) == getattr(t, name), (item.path, name, getattr(s, name), getattr(t, name))
    if data != item.data:
        assert b"CCOB" in item.data and "--keep-containers" not in run.options, item.path + ": other bytes"
        a, b = (list(fatparse.entries(fatparse.Elf(p), "")) for p in (path, os.path.join(run.input, item.path)))
        assert [(k, r, n, bytes(d)) for k, r, n, d in a] == [(k, r, n, bytes(d)) for k, r, n, d in b], item.path


def read_back(run):
    """Independent reader, kpack extract, kpack cat and a mount agree, and have what was put in."""
    have, want = entries(run.stored), expected(run)
    equal(want, {k: have.get(k) for k in want}, "entries")
    other = {i.path for i in run.items if i.kind in ("ar", "other")}
    more = {k: v for k, v in have.items() if k not in want}
    assert {path_of(k) for k, _ in more} <= other, sorted(more)[:5]
    for i in run.files("fat", "bundle", "other"):
        for arch, data in i.objects:
            assert any(a == arch and d == data and path_of(k) == i.path for (k, a), d in have.items()), (i.path, arch)
    run.kpack("verify", "-q", run.stored)
    for key, arch in run.r.sample(sorted(have), min(2, len(have))):
        assert run.kpack("cat", run.stored, key, arch) == have[key, arch], ("cat", key, arch)
    # below toc a mount has everything, extract what has no path of its own
    out = run.new()
    run.kpack("extract", run.stored, "-C", out)
    extracted = contents(out)
    assert collections.Counter(extracted.values()) <= collections.Counter(have.values()), "extract has more"
    mounted = mount(run, run.stored + "/.kpack")
    equal(extracted, {p: d for p, d in mounted.items() if p in extracted or not p.startswith("toc/")},
          "extract and mount")
    below = collections.Counter(map(sha, (d for p, d in mounted.items() if p.startswith("toc/"))))
    assert below == collections.Counter(map(sha, have.values())), "a mount's toc and the archives differ"
    for i in run.items:
        if is_database(run, i):
            assert extracted[i.path] == i.data, i.path
            assert stat.S_IMODE(os.stat(os.path.join(out, i.path)).st_mode) == i.mode, i.path + ": mode"


def contents(root):
    return {os.path.relpath(os.path.join(top, name), root): read(os.path.join(top, name))
            for top, dirs, names in os.walk(root) for name in names}


def mount(run, archives):
    """What a mount shows.  The daemon becomes our child, so that its end can be waited for."""
    at = run.new()
    os.mkdir(at)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    run.kpack(archives, at, program="kpackfs")
    try:
        return {p: d for p, d in contents(at).items() if not p.startswith(".kpackfs/")}
    finally:
        if subprocess.run(["fusermount3", "-u", at], stderr=subprocess.DEVNULL).returncode:
            subprocess.run(["umount", at], check=True)
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass


def in_place(run):
    """Packing in place gives what packing to another tree gives."""
    tree = run.copy(run.input)
    before = treecheck.walk(tree)
    run.kpack("pack", "-q", *run.options, "--in-place", tree, status=(0, 1) if run.seed == 0 else (0,))
    equal(snapshot(run.packed), snapshot(tree), "packed and packed in place")
    for path, s in treecheck.walk(tree).items():
        full = os.path.join(tree, path)
        assert s.st_ino == before[path].st_ino or treecheck.marker(full), path + " is another file"


def undo(run):
    """Packing in place, once or twice, is undone: bytes, modes, times, links, attributes."""
    tree, status = run.copy(run.input), (0, 1) if run.seed == 0 else (0,)
    for _ in range(run.r.choice((1, 2))):
        run.kpack("pack", "-q", *run.options, "--in-place", tree, status=status)
    run.kpack("pack", "-q", "--undo", tree)
    want, got = snapshot(run.input), snapshot(tree)
    for i in run.files("fat"):
        same_file(run, i, os.path.join(tree, i.path))
    fat = {i.path for i in run.items if i.kind == "fat"}
    equal({p: w[:-1] if p in fat else w for p, w in want.items()},
          {p: g[:-1] if p in fat else g for p, g in got.items()}, "before packing and after undoing it")
    before, after = treecheck.walk(run.input), treecheck.walk(tree)
    equal({p: s.st_mtime_ns for p, s in before.items() if stat.S_ISDIR(s.st_mode)},
          {p: s.st_mtime_ns for p, s in after.items() if stat.S_ISDIR(s.st_mode)}, "times of directories")
    assert not os.path.lexists(tree + "/.kpack"), os.listdir(tree + "/.kpack")


def convert(run):
    """kpack mark convert of a library alone, then restore, gives the library."""
    for i in run.files("fat")[:2]:
        packed, out, back = os.path.join(run.packed, i.path), run.new(), run.new()
        marker = treecheck.marker(packed)
        if marker is None:
            continue
        run.kpack("mark", "convert", "--kernel-name", marker["kernel_name"], "--search-path", "x",
                  os.path.join(run.input, i.path), out)
        run.kpack("mark", "set", *(w for p in marker["kpack_search_paths"] for w in ("--search-path", p)), out)
        assert treecheck.marker(out) == marker
        run.kpack("mark", "restore", "-o", back, "--archive", run.packed + "/.kpack", out)
        options, run.options = run.options, []
        same_file(run, i, back)
        run.options = options


def jobs(run):
    """The number of threads does not matter."""
    want = snapshot(run.packed)
    for n in "1", "7":
        equal(want, snapshot(run.pack(run.input, run.new(), "--jobs", n)), "packed, and packed by %s threads" % n)
    os.mkdir(run.new())
    elsewhere = os.path.join(run.where, str(run.made), "..", os.path.basename(run.copy(run.input)))
    equal(want, snapshot(run.pack(elsewhere, run.new())), "packed here and elsewhere")


def again(run):
    """Packing what is packed, or packing again, changes nothing; in two steps gives the same objects."""
    want, have = snapshot(run.packed), entries(run.packed)
    twice = run.pack(run.packed, run.new())
    equal(have, entries(twice), "packed, and packed again: entries")
    # files with code that are not converted are packed again, into the last volume
    volumes = "+" in run.way and run.files("bundle", "ar", "other")
    equal({p: w for p, w in want.items() if not volumes or p[:7] != ".kpack/"},
          {p: w for p, w in snapshot(twice).items() if not volumes or p[:7] != ".kpack/"}, "packed, and packed again")
    over = run.copy(run.packed)
    with open(over + "/mine", "xb"):
        pass
    equal(want, {p: w for p, w in snapshot(run.pack(run.input, over)).items() if p != "mine"}, "packed, and again")
    equal(want, snapshot(run.pack(run.input, run.copy(run.packed), "--force")), "packed, and replaced")
    assert os.path.exists(over + "/mine")
    out, halves = run.new(), [run.new(), run.new()]
    for half, where in enumerate(halves):
        trees.write([i for i in run.items if ord((i.group or i.path)[-1]) % 2 == half], where)
        run.pack(where, out)
    equal(have, entries(out), "packed at once and in two steps")
    both = set(snapshot(out, archives=False))
    assert {p for p in want if p[:7] != ".kpack/"} == both, both ^ set(want)
    run.kpack("verify", "-q", out)


# ---- archives ----------------------------------------------------------------------------


def merge(run):
    """Archives joined, taken apart, and in every scheme have the same objects."""
    have, one, apart = entries(run.stored), run.new() + ".kpack", run.new()
    run.kpack("merge", "-q", run.stored + "/.kpack", "-o", one)
    equal(have, entries(one), "archives and joined archives")
    several, steps = sorted(glob.glob(glob.escape(run.stored) + "/.kpack/*")), []
    for some in several[:len(several) // 2], several[len(several) // 2:]:
        if some:
            steps.append(run.new() + ".kpack")
            run.kpack("merge", "-q", *some, *some[:1], "-o", steps[-1])
    if "shared" not in run.way:
        run.kpack("merge", "-q", "--family", "f", *steps, "-o", steps[0] + ".f")
        run.kpack("merge", "-q", "--family", "f", *several, "-o", one + ".f")
        assert read(steps[0] + ".f") == read(one + ".f"), "joined at once and in steps"
    run.kpack("split", "-q", one, apart)
    equal(have, entries(apart), "joined archives and those that they were split into")
    if run.way in ("none", "zstd", "chunked"):
        for name in os.listdir(apart):
            old = os.path.join(run.stored, ".kpack", name)
            new = os.path.join(apart, name)  # with what archives of families had for its architecture
            assert not os.path.exists(old) or set(entries(old)) != set(entries(new)) or read(old) == read(new), name
    for scheme in "none", "zstd-per-kernel", "zstd-shared":
        other = run.new() + ".kpack"
        run.kpack("merge", "-q", "--scheme", scheme, one, "-o", other)
        run.kpack("verify", "-q", other)
        equal(have, entries(other), "archives and those of scheme " + scheme)


def shards(run):
    """The joined parts are what one run writes."""
    several = [[], ["--key-prefix", "opt/x"], ["--keep-device-code"], ["--databases", "plain"], ["--jobs", "1"],
               ["--databases", "both"], ["--split-rocfft", "--rows"], ["alone"]]
    if "--keep-containers" in run.options:
        several[2] = []  # it goes with no way to leave device code in binaries
    n, source, options = [5, 1, 40, 2, 3][run.seed % 5], run.input, several[run.seed % len(several)]
    if options == ["alone"]:
        if not run.files("fat"):
            raise Nothing
        n, source, options = 2, os.path.join(run.input, run.files("fat")[0].path), []
    parts = [run.new() for _ in range(n)]
    for i, part in enumerate(parts):
        run.pack(source, part, *options, "--shard", "%d/%d" % (i + 1, n))
    cost = [sum(s.st_size + 4096 for s in (os.lstat(os.path.join(top, f)) for top, _, names in os.walk(part)
                                           if "/.kpack" not in top for f in names) if stat.S_ISREG(s.st_mode)) for part in parts]
    assert max(cost) <= 2 * sum(cost) / n + 2 * max([len(i.data) for i in run.items if i.kind == "fat"]) + 200000, cost
    run.r.shuffle(parts)
    out, want = run.new(), snapshot(run.pack(source, run.new(), *options))
    for _ in range(1 if "--rows" in options else 2):  # rows that are added again come before the files
        run.kpack("merge", "-q", *parts, "-o", out)
        equal(want, snapshot(out), "one run and %d joined shards of %s" % (n, options))


def split(run):
    """The trees of a split, joined, are the packed tree."""
    # split writes the archives of families first into markers
    tree, out, whole, more = run.new(), run.new(), run.new(), [] if "--family" in run.more else run.more
    # of other files with code, which stay in the generic tree, split makes no entries
    trees.write([i for i in run.items if i.kind not in ("bundle", "ar", "other")], tree)
    run.kpack("split", "-q", "--name", "g", "--databases", "packed", *more, tree, out)
    other = run.new()
    run.kpack("split", "-q", "--name", "g", "--databases", "packed", "--jobs", "1", *more, tree, other)
    equal(snapshot(out), snapshot(other), "trees split with several threads and with one")
    found = {}
    for name in sorted(os.listdir(out)):
        these = entries(os.path.join(out, name))
        assert not set(found) & set(these), sorted(set(found) & set(these))[:5]
        found.update(these)
        assert name != "g_generic" or not [k for k, a in these if "#" in k and a in trees.REAL], sorted(these)
    packed = run.new()
    run.kpack("pack", "-q", "--group", "g", *more, tree, packed)
    run.kpack("merge", "-q", *sorted(glob.glob(glob.escape(out) + "/*")), "-o", whole)
    equal(snapshot(packed), snapshot(whole), "packed and split")
    gpus, part = sorted({g.split(":")[0] for g in some_gpus(run)}), run.new()
    run.kpack("split", "-q", "--name", "g", "--databases", "packed", *more, "--gpu-targets", ",".join(gpus), tree,
              part)
    equal({k: d for k, d in found.items() if any(trees.loads(g, k[1]) for g in gpus)},
          {k: d for name in os.listdir(part) for k, d in entries(os.path.join(part, name)).items()}, ",".join(gpus))
    equal(*(snapshot(t + "/g_generic", archives=False) for t in (out, part)),
          "generic trees for all GPUs and for " + ",".join(gpus))


def split_plain(run):
    """Files of databases go to the trees of their GPUs, with the directories that only they need."""
    out, found, old = run.new(), {}, snapshot(run.input)
    run.kpack("split", "-q", "--name", "g", run.input, out, status=(0, 1) if run.seed == 0 else (0,))
    for name in sorted(os.listdir(out)):
        tree = snapshot(os.path.join(out, name), archives=False)
        files = {p: w for p, w in tree.items() if len(w) > 3}
        assert not set(files) & set(found), sorted(set(files) & set(found))[:5]
        found.update(files)
        above = {parent for p in files for parent in parents(p)}
        if name == "g_generic":
            empty = {p for p, w in old.items() if len(w) == 3 and not any(q.startswith(p + "/") for q in old)}
            above |= empty | {parent for p in empty for parent in parents(p)}
        assert above | {"."} == set(tree) - set(files), (name, above ^ (set(tree) - set(files)))
    fat = {i.path for i in run.items if i.kind == "fat"}
    equal(*({p: (w[:4], None if p in fat else w[6]) for p, w in t.items() if len(w) > 3} for t in (old, found)),
          "files of the input and of all trees")


def builds(run):
    """Splits for some GPUs and for others, joined, have what the packed tree has for all of them."""
    tree, shards, out, packed = (run.new() for _ in range(4))
    gpus = sorted({a.split(":")[0] for i in run.items for a, _ in i.objects if a in trees.REAL})
    if len(gpus) < 2:
        raise Nothing
    groups = {"a": gpus[::2], "b": gpus[1::2]}
    trees.write([i for i in run.items if i.kind not in ("bundle", "ar", "other", "db")], tree)
    for group, some in groups.items():
        run.kpack("split", "-q", "--name", "g", "--gpu-targets", ",".join(some), tree, shards + "/" + group)
        run.kpack("merge", "-q", *(t for t in sorted(glob.glob(glob.escape(shards + "/" + group) + "/*"))
                                   if not t.endswith(("_generic", "_amdgcnspirv"))), "-o", out + "/g_" + group)
    run.kpack("merge", "-q", *(shards + "/" + g + "/g_generic" for g in groups), "-o", out + "/g_generic")
    run.kpack("pack", "-q", "--group", "g", tree, packed)
    have = entries(packed)
    for group, some in groups.items():
        equal({k: d for k, d in have.items() if k[1] != "amdgcnspirv" and any(trees.loads(g, k[1]) for g in some)},
              entries(out + "/g_" + group), group)
    want, got = snapshot(packed, archives=False), snapshot(out + "/g_generic", archives=False)
    converted = {i.path for i in run.items if i.kind == "fat" and treecheck.marker(os.path.join(packed, i.path))}
    equal({p: w[:6] if p in converted else w for p, w in want.items()},
          {p: w[:6] if p in converted else w for p, w in got.items()}, "packed and joined files")
    for i in run.files("fat")[:2]:
        if i.path in converted:
            back = run.new()
            run.kpack("mark", "restore", "--allow-missing", "-o", back, *(w for g in groups for w in (
                "--archive", "%s/g_%s/.kpack" % (out, g))), os.path.join(out, "g_generic", i.path))
            equal(leads(run, os.path.join(run.input, i.path), gpus, strict=True),
                  leads(run, back, gpus, strict=True), i.path)


def parents(path):
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def prune(run):
    """Exactly what the GPUs of the list can load of what is still there stays."""
    tree, gpus = run.copy(run.stored), some_gpus(run)
    fat = [i.group or i.path for i in run.files("fat")]
    if not fat:
        raise Nothing
    doomed = set(run.r.sample(fat, 1))
    for i in run.items:
        if (i.group or i.path) in doomed:
            os.unlink(os.path.join(tree, i.path))
    names = {m["kernel_name"] for m in (treecheck.marker(os.path.join(tree, i.path)) for i in run.items
                                        if i.kind == "fat") if m}
    absent = {i.path for i in run.items if is_database(run, i)}
    have = entries(tree)
    want = {(key, arch): data for (key, arch), data in have.items()
            if (path_of(key) in names or key in absent) and wanted(gpus, arch)}
    whole = {p: (read(p), os.stat(p).st_ino) for p in glob.glob(glob.escape(tree) + "/.kpack/*")
             if set(entries(p)) <= set(want)}
    run.kpack("prune", "-q", "--arch", ",".join(gpus), tree)
    equal(want, entries(tree), "of " + ",".join(gpus) + ": wanted and kept entries")
    equal(whole, {p: (read(p), os.stat(p).st_ino) for p in whole}, "archives that keep everything")
    left = snapshot(tree, archives=False)
    equal({p: w for p, w in snapshot(run.packed, archives=False).items() if p in left}, left)
    before = snapshot(tree)
    run.kpack("prune", "-q", "--arch", ",".join(gpus), tree)
    equal(before, snapshot(tree), "pruned once and twice")


def choice(run):
    """With --arch, pack stores, and ls and extract take, only what these GPUs can load."""
    gpus, have, out = some_gpus(run), entries(run.stored), run.new()
    want = {(key, arch): data for (key, arch), data in have.items() if any(trees.loads(g, arch) for g in gpus)}
    packed = entries(run.pack(run.input, run.new(), "--arch", ",".join(gpus)))
    equal(want, packed, "of " + ",".join(gpus) + ": wanted and packed entries")
    listed = json.loads(run.kpack("ls", "--json", "--arch", ",".join(gpus), run.packed))
    assert {(e["key"], e["arch"]) for e in listed} == set(want), gpus
    run.kpack("extract", "--arch", ",".join(gpus), run.packed, "-C", out)
    assert set(map(sha, contents(out).values())) == set(map(sha, want.values())), gpus


def some_gpus(run):
    found = sorted({a for i in run.items for a, _ in i.objects if a.split(":")[0] in
                    {g.split(":")[0] for g in trees.REAL}})
    if len(found) < 2:
        raise Nothing
    return run.r.sample(found, run.r.randrange(1, len(found)))


def wanted(gpus, arch):
    """What prune and thin leave: also code of which nobody knows who loads it."""
    return not arch.startswith("gfx") or arch == "gfx9999" or any(trees.loads(g, arch) for g in gpus)


def thin(run):
    """Only code of the chosen GPUs stays, nothing else changes, and it can be undone."""
    tree, kept, gpus = run.copy(run.input), run.new(), some_gpus(run)
    args = "--arch", ",".join(gpus), "--keep", kept, tree
    run.kpack("thin", "-q", *args)
    old, new = snapshot(run.input), snapshot(tree)
    for i in run.items:
        want, got = old[i.path], new.get(i.path)
        path = os.path.join(tree, i.path)
        if is_database(run, i) and not any(wanted(gpus, a) for a in dbcheck.expect(run.input, i.path)[2]):
            assert got is None, i.path + " is still there"
            continue
        if i.kind in ("fat", "bundle"):
            assert want[:-1] == got[:-1], (i.path, want, got)
            objects, after = code(i.kind, os.path.join(run.input, i.path)), code(i.kind, path)
            left = [[(k, a, d) for k, a, d in c if wanted(gpus, a)] for c in objects]
            if after == left:  # what loses nothing is not compressed again
                stored = compressed(i.kind, os.path.join(run.input, i.path)), compressed(i.kind, path)
                assert all(a != b or x == y for a, b, x, y in zip(objects, left, *stored)), i.path
            if i.kind == "fat":
                equal(leads(run, os.path.join(run.input, i.path), gpus), leads(run, path, gpus), i.path + ": wrappers")
            # a file that would not become smaller stays
            size = sum(len(d) for c in objects for _, a, d in c if not wanted(gpus, a))
            assert after == left or want == got and (size < 20000 or b"CCOB" in i.data), i.path
        elif i.kind == "ar":
            assert want[:-1] == got[:-1], (i.path, want, got)
            for (name, a), (other, b) in zip(*(arfile.read(os.path.join(t, i.path))[0] for t in (run.input, tree))):
                left = [(k, r, d) for k, r, d in plain(a) if wanted(gpus, r)]
                assert name == other and plain(b) in (left, plain(a)), (i.path, name)
        elif i.kind == "other" and i.data.startswith((b"__CLANG", b"CCOB", b"!<arch>")):
            assert want[:-1] == got[:-1], (i.path, want, got)
        else:
            assert want == got, (i.path, want, got)
    run.kpack("thin", "-q", *args)
    equal(new, snapshot(tree), "thinned once and twice")
    run.kpack("thin", "-q", "--undo", kept, tree)
    equal(old, snapshot(tree), "before thin and after thin --undo")


def leads(run, path, gpus, strict=False):
    """What each wrapper leads to, of what the GPUs can load, or strictly is for them."""
    elf = fatparse.Elf(path)
    found = fatparse.containers(elf.fatbin())
    return {n: (kind, [(a, bytes(d)) for _, a, d in found[at]
                       if (a.split(":")[0] in gpus if strict else wanted(gpus, a))])
            for n, (kind, at) in enumerate(elf.wrappers())}


def plain(data):
    return [(k, a, bytes(d)) for c in fatparse.containers(data).values() for k, a, d in c]


def device_code(kind, path):
    return read(path) if kind == "bundle" else fatparse.Elf(path).fatbin()


def compressed(kind, path):
    """The stored bytes of each container that is compressed, and None for others."""
    data = device_code(kind, path)
    sizes = {at: fatparse.unpack(data[at:])[1] for at in fatparse.containers(data)}
    return [size and bytes(data[at:at + size]) for at, size in sizes.items()]


def code(kind, path):
    """The objects of each container of a file."""
    data = device_code(kind, path)
    return [[(k, a, bytes(d)) for k, a, d in c] for c in fatparse.containers(data).values()]


def flips(run):
    """A flipped bit is found, or changes nothing that is decoded; no wrong byte is extracted, whatever is found."""
    where, archive = run.new(), min(sorted(glob.glob(glob.escape(run.stored) + "/.kpack/*")), key=os.path.getsize)
    data = read(archive)
    os.mkdir(where)
    for at in sorted(run.r.sample(range(len(data)), min(60, len(data)))):
        with open("%s/%07d.kpack" % (where, at), "wb") as f:
            f.write(data[:at] + bytes([data[at] ^ 1 << run.r.randrange(8)]) + data[at + 1:])
    with open(where + "/whole.kpack", "wb") as f:
        f.write(data)
    told = run.kpack("verify", where, status=(1,)).decode(errors="replace")
    sound = [n for n in sorted(os.listdir(where)) if n + ": ok" in told]
    assert "whole.kpack" in sound, "verify refuses %s unchanged" % os.path.basename(archive)
    want = run.new()
    run.kpack("extract", archive, "-C", want)
    whole = contents(want)
    for name in sorted(os.listdir(where)):
        got = run.new()
        os.mkdir(got)
        run.kpack("extract", os.path.join(where, name), "-C", got, status=(0, 1))
        found = contents(got)
        equal({p: whole.get(p) for p in found} if name not in sound else whole, found,
              "%s with byte %s changed, and without:" % (os.path.basename(archive), name))


# ---- reports -----------------------------------------------------------------------------


def reports(run):
    """ls, info and pack --json add up to what the independent reader finds."""
    rows, sums, paths = {}, [], sorted(glob.glob(glob.escape(run.stored) + "/.kpack/*"))
    archives = [readkpack.Archive(path) for path in paths]
    for path, a in zip(paths, archives):
        found = list(a.entries())
        for key, arch, e in found:
            rows[os.path.basename(path), key, arch] = e["type"], e["ordinal"], e["original_size"]
        ordinals = {e["ordinal"] for _, _, e in found}
        sums.append((os.path.basename(path), a.top["group_name"], a.top["gfx_arches"], len(found),
                     sum(e["original_size"] for _, _, e in found), len(ordinals), len(found) - len(ordinals)))
    listed = json.loads(run.kpack("ls", "--json", run.stored))
    equal(rows, {(os.path.basename(e["archive"]), e["key"], e["arch"]): (e["type"], e["ordinal"], e["size"])
                 for e in listed}, "entries and ls --json")
    info = json.loads(run.kpack("info", "--json", run.stored))
    for want, i in zip(sums, sorted(info, key=lambda i: i["archive"])):
        got = (os.path.basename(i["archive"]), i["group"], i["declared"], i["entries"], i["size"], i["frames"],
               i["shared"])
        assert want == got and [a["arch"] for a in i["arches"]] == i["declared"] and not i["faults"], (want, got)
    shown, total = json.loads(run.kpack("report", "--json", run.stored + "/.kpack")), collections.defaultdict(int)
    for (_, key, arch), (_, _, size) in rows.items():
        total[arch] += size
    stored = sum(a.blobs[n][1] for a in archives for n in range(len(a.blobs))) if not archives[0].shared else None
    assert {a["arch"]: a["decoded"] for a in shown["arches"]} == total, (shown["arches"], total)
    assert (shown["entries"], shown["objects"], shown["decoded"], shown["archive_bytes"]) == (
        len(rows), sum(s[5] for s in sums), sum(total.values()), sum(map(os.path.getsize, paths))), shown
    assert stored is None or shown["stored"] == stored, (shown["stored"], stored)
    out = run.new()
    told = json.loads(run.kpack("pack", "--json", *run.options, run.input, out,
                                status=(0, 1) if run.seed == 0 else (0,)))
    size = sum(os.path.getsize(p) for p in glob.glob(glob.escape(out) + "/.kpack/*"))
    assert told["summary"]["archive_bytes"] == size, (told["summary"], size)
    converted = {f["path"] for f in told["files"] if f["status"] == "converted"}
    assert converted == {i.path for i in run.files("fat") if treecheck.marker(os.path.join(out, i.path))}, converted


def inspect(run):
    """kpack inspect names the objects that an independent reader finds, also in what was packed."""
    for i in run.files("fat", "bundle"):
        path = os.path.join(run.input, i.path)
        want = [(a, sha(d), len(d)) for c in code(i.kind, path) for _, a, d in c]
        told = json.loads(run.kpack("inspect", "--json", path))
        got = [(m["arch"], m["sha256"], m["size"]) for m in told["images"]
               if not (m["target"] or "").startswith("host")]
        assert want == got, (i.path, want[:3], got[:3])
        assert not told.get("converted"), i.path
        packed = os.path.join(run.packed, i.path)
        if i.kind == "fat" and treecheck.marker(packed):
            told = json.loads(run.kpack("inspect", "--json", packed, status=(0, 1)))
            assert told["converted"] and not told["images"], i.path


# ---- other programs' formats -------------------------------------------------------------

HOST = "host-x86_64-unknown-linux-gnu-"


def bundler(run):
    """Bundles are what the format says, and come apart as they were put together."""
    r, where = run.r, run.new()
    os.mkdir(where)
    arches = r.sample(trees.REAL + trees.OTHER, r.randrange(1, 6))
    ids = [HOST] + ["%s-amdgcn-amd-amdhsa--%s" % (r.choice(["hip", "hipv4", "openmp"]), a) for a in arches]
    ids = [i for i in ids if "xnack" not in i or "gfx90a:xnack+" in i]  # one mode of a processor
    ids = [i for i in ids if not i.endswith("gfx90a") or not any(k.endswith("gfx90a:xnack+") for k in ids)]
    files = [r.randbytes(r.choice([1, 7, 4096, 9000])) for _ in ids]
    for n, data in enumerate(files):
        with open("%s/in%d" % (where, n), "wb") as f:
            f.write(data)
    align, out = r.choice([1, 16, 4096]), where + "/out"
    targets, inputs = "-targets=" + ",".join(ids), ["-input=%s/in%d" % (where, n) for n in range(len(ids))]
    for kind, extra in ("bc", []), ("bc", ["-compress"]), ("ll", []):
        extra = extra + ["-bundle-align=%d" % align] * (kind == "bc")
        run.kpack("offload-bundler", "-type=" + kind, targets, *inputs, "-output=" + out, *extra)
        data = read(out)
        if kind == "ll":
            assert data == mkoffload.text_bundle(list(zip(ids, files)), ";"), "text bundle"
        else:
            assert bytes(fatparse.unpack(data)[0]) == mkoffload.raw_bundle(list(zip(ids, files)), align), extra
        assert run.kpack("offload-bundler", "-type=" + kind, "-list", "-input=" + out).decode().split() == ids
        run.kpack("offload-bundler", "-type=" + kind, "-unbundle", targets, "-input=" + out,
                  *("-output=%s/back%d" % (where, n) for n in range(len(ids))))
        for n, want in enumerate(files):
            assert read("%s/back%d" % (where, n)) == want, (kind, extra, ids[n])
    for i in run.files("fat", "bundle"):
        to = run.new()
        run.kpack("bulk-unbundle", "-o", to, os.path.join(run.input, i.path))
        want = [d for c in code(i.kind, os.path.join(run.input, i.path)) for _, _, d in c]
        assert collections.Counter(d for p, d in contents(to).items() if "host" not in p) == \
            collections.Counter(want), i.path


def packager(run):
    """Offload binaries are what the format says, and come apart as they were put together."""
    r, where = run.r, run.new()
    os.mkdir(where)
    images = []
    for n in range(r.randrange(1, 5)):
        images.append((r.randbytes(r.choice([1, 8, 5000])), r.choice(trees.REAL).split(":")[0] + "-%d" % n))
        with open("%s/in%d" % (where, n), "wb") as f:
            f.write(images[-1][0])
    said = ["--image=file=%s/in%d,triple=amdgcn-amd-amdhsa,arch=%s,kind=hip" % (where, n, a)
            for n, (_, a) in enumerate(images)]
    for extra in [], ["--format-version=2"], ["--format-version=3", "--compress"]:
        run.kpack("offload-packager", "-o", where + "/out", *said, *extra)
        for n, (data, arch) in enumerate(images):
            run.kpack("offload-packager", where + "/out", "--image=file=%s/back,arch=%s" % (where, arch))
            assert read(where + "/back") == data, (extra, arch)
        told = json.loads(run.kpack("inspect", "--json", where + "/out"))
        assert [(m["sha256"], m["size"]) for m in told["images"]] == [(sha(d), len(d)) for d, _ in images], extra


def wheel(run):
    """Together, the wheels of a split wheel have what the wheel has, and their RECORDs are right."""
    where, out = run.new(), run.new()
    os.mkdir(where)
    members = [("pkg/__init__.py", b"", 0o644)]
    for i in run.files("file", "fat", "db", "bundle"):
        if i.path.isprintable() and not set(i.path) & set("\udcff\n"):
            members.append(("pkg/" + i.path, i.data, 0o755 if i.mode & 0o100 else 0o644))
    members += [("pkg-1.dist-info/METADATA", b"Metadata-Version: 2.1\nName: pkg\nVersion: 1\n", 0o644),
                ("pkg-1.dist-info/WHEEL", b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\n"
                 b"Tag: py3-none-any\n", 0o644)]
    path = where + "/pkg-1-py3-none-any.whl"
    mkwheel.write(path, members, "pkg-1.dist-info")
    scheme = [w for w in WAYS[run.way] if w in ("--scheme", "none", "zstd-shared")]
    databases = "plain" if "shared" in run.way else "packed"
    run.kpack("split-wheel", "-q", *scheme, "--databases", databases, path, "-o", out)
    whole, found = {}, run.new()
    os.makedirs(found + "/.kpack")
    for name in sorted(os.listdir(out)):
        assert not mkwheel.check(os.path.join(out, name)), mkwheel.check(os.path.join(out, name))
        with zipfile.ZipFile(os.path.join(out, name)) as z:
            for m in z.infolist():
                if ".dist-info/" in m.filename:
                    continue
                if m.filename.endswith(".kpack"):
                    with open(found + "/.kpack/" + os.path.basename(m.filename), "xb") as f:
                        f.write(z.read(m))
                else:
                    assert m.filename not in whole, m.filename
                    whole[m.filename] = m.external_attr >> 16 & 0o777, z.read(m)
    have = entries(found)
    for p, data, mode in members:
        if ".dist-info" in p:
            continue
        key = p[4:]
        if p not in whole:
            assert [d for (k, _), d in have.items() if k in (key, p)][0] == data, p
        else:
            got, fat = whole.pop(p), p in {"pkg/" + i.path for i in run.files("fat")}
            assert got == (mode, got[1] if fat else data), p
    want = {}
    for i in run.files("fat"):
        if "pkg/" + i.path in {m[0] for m in members}:
            want.update({(key, arch): bytes(data) for key, arch, _, data in
                         fatparse.entries(fatparse.Elf(os.path.join(run.input, i.path)), i.path)})
    equal(want, {k: have.get(k) for k in want}, "objects of the wheel and of its wheels")
    assert not whole, sorted(whole)


# name: function, and whether it is run for every way, or for one that the seed chooses.
PROPERTIES = {"restore": (restore, True), "read": (read_back, True), "in-place": (in_place, False),
              "undo": (undo, True),
              "convert": (convert, False), "jobs": (jobs, False), "again": (again, False), "merge": (merge, False),
              "shards": (shards, False), "split": (split, "zstd"), "split-plain": (split_plain, "zstd"),
              "builds": (builds, "zstd"),
              "prune": (prune, False), "arch": (choice, False), "thin": (thin, "zstd"),
              "flips": (flips, False), "reports": (reports, False), "inspect": (inspect, False),
              "bundler": (bundler, "zstd"), "packager": (packager, "zstd"), "wheel": (wheel, False)}
