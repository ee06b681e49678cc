#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a random tree twice: as plain files, and as archives that a mount shows as this tree.

    randomtree.py SEED DIR ARCHIVES

DIR gets the files, those below toc/ too, with their modes, times and hard links; ARCHIVES gets
one or more archives.
"""
import os, random, sys
import mkarchive

TIME = 1700000000
SIZES = (0, 1, 4095, 4096, 4097, 65536, 131072, 262145, 700001)
# What is odd in a name, but a name: of a shell, of an option, of other systems, of Unicode.
ODD = (" ", "  x ", "-rf", "--", "*", "?", "[a]", "~", "$HOME", "`id`", "'", '"', "\\", "\\n", "%s",
       "a:b", "a;b", "a|b", "a&b", "#", "x#y", "...", "..a", "a.", ".hidden", ".kpackfs-", "CON",
       "\u00e9", "e\u0301", "\u65e5\u672c", "\U0001f600", "\u202eabc", "\u00a0", "\ufeff", "=a", "!", "^",
       "a" * 255, "\u00e9" * 127 + "b", "{a,b}", "(1)", "@", "+", ",")


class Tree:
    def __init__(self, seed, top):
        self.rng, self.top = random.Random(seed), top
        self.dirs, self.names = [""], set()

    def name(self):
        rng = self.rng
        if rng.random() < 0.4:
            return rng.choice(ODD)
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789_.+", k=rng.randrange(3, 20)))

    def new(self):
        """A path that nothing has, in a directory old or new."""
        while True:
            where = self.rng.choice(self.dirs)
            path = where + self.name()
            # "toc" is the mount's; a path has an end
            if path in self.names or path == "toc" or len(path.encode()) > 2000:
                continue
            self.names.add(path)
            if self.rng.random() < 0.3 and path.count("/") < 12:
                self.dirs.append(path + "/")
                continue
            return path

    def put(self, path, data, mode):
        full = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "xb") as f:
            f.write(data)
        os.chmod(full, 0o444 | mode & 0o111)

    def link(self, old, new):
        full = os.path.join(self.top, new)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.link(os.path.join(self.top, old), full)


def content(rng, i):
    """Bytes that no other file has, but for those that have none."""
    size = rng.choice(SIZES) if rng.random() < 0.3 else rng.randrange(1, 20000)
    if size and rng.random() < 0.2:
        return bytes(size) + b"%d" % i
    return mkarchive.noise(size, i) + b"%d" % i if size else b""


def add_files(tree, a, first, seed):
    """Files of the tree, some with several names.  Only the first archive has empty ones, and
    all of its are one: what has the same bytes may be one file, or not."""
    rng, files, empty = tree.rng, [], None
    for i in range(rng.randrange(20, 90)):
        path, mode = tree.new(), rng.choice((0o644, 0o755, 0o600, 0o444, 0o111, 0o4755))
        data = content(rng, seed * 1000 + i)
        if not data and not first:
            continue
        old = rng.choice(files) if files and rng.random() < 0.15 else None if data else empty
        if old:
            ordinal, data, mode = old[1:]
            tree.link(old[0], path)
        else:
            ordinal = None
            tree.put(path, data, mode)
        chunk = {"chunk": 65536} if len(data) > 200000 and a.scheme != "none" else {}
        ordinal = a.add(path, "generic", data, type="dat", ordinal=ordinal, path=path, mode=mode,
                        hash=not data or rng.random() < 0.5, **chunk)
        tree.link(path, f"toc/{path}/generic.dat")
        files.append((path, ordinal, data, mode))
        empty = empty if data else files[-1]


def add_code(tree, a, seed):
    """Code objects: they have no other name than that below toc/."""
    for i in range(tree.rng.randrange(10)):
        key, arch = f"lib{seed}/lib{i}.so", tree.rng.choice(("gfx90a", "gfx1100", "gfx90a:xnack+"))
        for n in range(tree.rng.randrange(1, 4)):
            data = b"code %d %d %d" % (seed, i, n)
            a.add(f"{key}#{n}", arch, data)
            tree.put(f"toc/{key}/{arch}{f'#{n}' if n else ''}.hsaco", data, 0)


def main(seed, top, archives):
    tree = Tree(seed, top)
    os.makedirs(os.path.join(top, "toc"), exist_ok=True)
    for k in range(tree.rng.randrange(1, 4)):
        a = mkarchive.Archive(scheme="none" if tree.rng.random() < 0.3 else "zstd-per-kernel",
                              index=tree.rng.random() < 0.5)
        add_files(tree, a, k == 0, seed * 10 + k)
        add_code(tree, a, seed * 10 + k)
        path = os.path.join(archives, f"{k}.kpack")
        a.write(path)
        os.chmod(path, 0o644)
        os.utime(path, (TIME, TIME))
    for where, _, names in os.walk(top, topdown=False):
        for name in names:
            os.utime(os.path.join(where, name), (TIME, TIME))
        os.chmod(where, 0o555)
        os.utime(where, (TIME, TIME))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
