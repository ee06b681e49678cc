#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare a tree with the one that kpack pack made of it, without any of our code.

treecheck.py same OLD NEW [PATH...]   everything is the same, except the bytes of converted
                                      binaries, the root's .kpack, and the PATHs
treecheck.py code OLD NEW             NEW has all code of every fat binary of OLD: the binary
                                      is still fat, or the archives that its marker leads to
                                      have every object
treecheck.py list NEW                 "fat|converted PATH" for each file with device code
"""
import glob, hashlib, os, stat, sys
import msgpack
import fatparse, readkpack


def walk(root):
    """relative path -> lstat"""
    found = {".": os.lstat(root)}
    for top, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(top, name)
            found[os.path.relpath(path, root)] = os.lstat(path)
    return {p: s for p, s in found.items() if p.split("/")[0] != ".kpack"}


def marker(path):
    """the marker of a converted binary, or None"""
    try:
        elf = fatparse.Elf(path)
    except (AssertionError, OSError, ValueError):
        return None
    row = elf.named.get(".rocm_kpack_ref")
    if row is None:
        return None
    unpacker = msgpack.Unpacker()
    unpacker.feed(elf.content(row))
    return unpacker.unpack()


def fat(path):
    try:
        elf = fatparse.Elf(path)
    except (AssertionError, OSError, ValueError):
        return None
    row = elf.named.get(".hip_fatbin")
    return elf if row is not None and row[1] != 8 else None


def xattrs(path):
    return {n: os.getxattr(path, n, follow_symlinks=False)
            for n in os.listxattr(path, follow_symlinks=False) if n != "security.selinux"}


def content(path, s):
    if stat.S_ISLNK(s.st_mode):
        return os.readlink(path)
    if stat.S_ISREG(s.st_mode):
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()
    return s.st_rdev if stat.S_ISCHR(s.st_mode) or stat.S_ISBLK(s.st_mode) else None


def links(tree):
    """sets of paths that are one file"""
    groups = {}
    for path, s in tree.items():
        if not stat.S_ISDIR(s.st_mode):
            groups.setdefault((s.st_dev, s.st_ino), []).append(path)
    return sorted(sorted(g) for g in groups.values())


def same(old, new, *but):
    a, b = walk(old), walk(new)
    assert set(a) == set(b), sorted(set(a) ^ set(b))
    assert links(a) == links(b), [g for g in links(a) if g not in links(b)]
    for path in sorted(a):
        x, y = a[path], b[path]
        if path in but:
            continue
        names = ["st_mode", "st_uid", "st_gid", "st_mtime_ns"]
        if not stat.S_ISDIR(x.st_mode):
            names.append("st_nlink")
        for name in names:
            assert getattr(x, name) == getattr(y, name), (path, name, getattr(x, name),
                                                          getattr(y, name))
        p, q = os.path.join(old, path), os.path.join(new, path)
        assert xattrs(p) == xattrs(q), (path, xattrs(p), xattrs(q))
        if stat.S_ISREG(x.st_mode) and marker(q) and not marker(p):
            continue
        assert content(p, x) == content(q, y), path


def archived(path):
    """(key, arch) -> sha256 of all that the marker of PATH leads to"""
    m, found = marker(path), {}
    assert m["kpack_search_paths"], path
    for pattern in m["kpack_search_paths"]:
        name = glob.escape(os.path.join(os.path.dirname(os.path.realpath(path)), pattern))
        for archive in glob.glob(name.replace("@GFXARCH@", "*")):
            a = readkpack.Archive(archive)
            for key, arch, entry in a.entries():
                found[key, arch] = hashlib.sha256(a.get(entry)).hexdigest()
    return m["kernel_name"], found


def code(old, new):
    for path, s in sorted(walk(old).items()):
        p, q = os.path.join(old, path), os.path.join(new, path)
        elf = fat(p) if stat.S_ISREG(s.st_mode) else None
        if elf is None or not list(elf.wrappers()):
            continue
        if marker(q) is None:
            assert content(p, s) == content(q, s), path + " is neither old nor new"
            continue
        name, found = archived(q)
        for key, arch, _, data in fatparse.entries(elf, name):
            assert found.get((key, arch)) == hashlib.sha256(data).hexdigest(), (path, key, arch)


def listing(root):
    for path, s in sorted(walk(root).items()):
        p = os.path.join(root, path)
        if stat.S_ISREG(s.st_mode):
            kind = "converted" if marker(p) else "fat" if fat(p) else None
            if kind:
                print(kind, path)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    {"same": same, "code": code, "list": listing}[sys.argv[1]](*sys.argv[2:])
