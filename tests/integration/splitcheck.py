#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An independent check of split trees, without any of our code.

splitcheck.py [--only ARCH,...] [--keys prefix] INPUT OUTPUT NAME

Every file, link and directory of INPUT must be in exactly one of OUTPUT/NAME_*, with the same
bytes, mode and target.  A fat library must be in NAME_generic without its code, and each of its
objects in exactly one archive of the right tree.  Apart from manifests nothing else may exist.
Of an artifact, keys must begin with the prefix, which the metadata must state, and each tree may
have one archive for all prefixes, NAME_TREE.kpack, in the first one that has code for it;
with --keys prefix each prefix has its own archives, whose keys are paths in it.
With --only no tree may have anything for other architectures.
"""
import argparse, hashlib, os, re, stat, sys

import fatparse, readkpack

p = argparse.ArgumentParser(usage=__doc__)
p.add_argument("--only")
p.add_argument("--keys", choices=["artifact", "prefix"], default="artifact")
p.add_argument("input")
p.add_argument("output")
p.add_argument("name")
o = p.parse_args()
only = o.only.split(",") if o.only else None
faults = []
MANIFEST = "artifact_manifest.txt"


def walk(root):
    found = {}
    for at, dirs, files in os.walk(root):
        for name in dirs + files:
            path = os.path.join(at, name)
            found[os.path.relpath(path, root)] = os.lstat(path)
    return found


def fat(path):
    """The code objects of a fat library; None: it is none."""
    try:
        elf = fatparse.Elf(path)
        if ".hip_fatbin" not in elf.named or elf.named[".hip_fatbin"][1] == 8:
            return None
        return elf
    except (AssertionError, IndexError, ValueError, Exception):
        return None


def same(a, b):
    with open(a, "rb") as x, open(b, "rb") as y:
        while True:
            p, q = x.read(1 << 20), y.read(1 << 20)
            if p != q:
                return False
            if not p:
                return True


entered = walk(o.input)
trees = {d[len(o.name) + 1:]: walk(os.path.join(o.output, d))
         for d in sorted(os.listdir(o.output)) if d.startswith(o.name + "_")}
if "generic" not in trees:
    sys.exit("no generic tree")
prefixes = [""]
if MANIFEST in entered:
    with open(os.path.join(o.input, MANIFEST)) as f:
        prefixes = [line.strip() for line in f if line.strip()]
joined = MANIFEST in entered and o.keys == "artifact"
wanted = {}  # (prefix, key, arch) -> sha256
for path, st in sorted(entered.items()):
    there = [t for t, files in trees.items() if path in files and
             not (path == MANIFEST and t != "generic")]
    source = os.path.join(o.input, path)
    if stat.S_ISDIR(st.st_mode):
        below = [q for q in entered if q.startswith(path + "/")]
        if not there and (not below or not only):
            faults.append("%s: directory in no tree" % path)
        for t in there:
            if trees[t][path].st_mode != st.st_mode:
                faults.append("%s: mode in %s" % (path, t))
        continue
    if len(there) != 1:
        if not (only and not there and re.search(r"gfx|\.kpack$", path)):
            faults.append("%s: in %s" % (path, there or "no tree"))
        continue
    copy = os.path.join(o.output, o.name + "_" + there[0], path)
    if trees[there[0]][path].st_mode != st.st_mode:
        faults.append("%s: mode" % path)
    if stat.S_ISLNK(st.st_mode):
        if os.readlink(source) != os.readlink(copy):
            faults.append("%s: target" % path)
        continue
    if not stat.S_ISREG(st.st_mode):
        continue
    elf = fat(source) if there[0] == "generic" else None
    if elf is None:
        if not same(source, copy):
            faults.append("%s: other bytes" % path)
        continue
    if fat(copy):
        faults.append("%s: still has its code" % path)
    prefix = max((q for q in prefixes if q == "" or path.startswith(q + "/")), key=len)
    # of hard links the first path gives the key
    first = min(q for q, s in entered.items()
                if (s.st_dev, s.st_ino) == (st.st_dev, st.st_ino)
                and (prefix == "" or q.startswith(prefix + "/")))
    if first != path:
        continue
    for key, arch, _, data in fatparse.entries(elf, os.path.relpath(path, prefix or ".")):
        if joined:
            key = prefix + "/" + key
        if only is None or arch.split(":")[0] in only:
            wanted[prefix, key, arch] = hashlib.sha256(data).hexdigest()
for tree, files in trees.items():
    for path, st in files.items():
        if path in entered or stat.S_ISDIR(st.st_mode) and re.search(r"(^|/)\.kpack$", path):
            continue
        if path == MANIFEST and MANIFEST in entered:
            continue
        prefix, _, rest = path.rpartition(".kpack/")
        if prefix.rstrip("/") not in prefixes or "/" in rest or not rest.endswith(".kpack"):
            faults.append("%s: too much in %s" % (path, tree))
            continue
        archive = readkpack.Archive(os.path.join(o.output, o.name + "_" + tree, path))
        homes = set()
        for key, arch, entry in archive.entries():
            if joined and not (entry.get("metadata") or {}).get("library"):
                home = entry["metadata"]["source_prefix"]
                homes.add(home)
                if not key.startswith(home + "/"):
                    faults.append("%s: %s is not of %s" % (path, key, home))
            if (entry.get("metadata") or {}).get("library"):
                continue
            if tree != arch and tree.startswith("gfx"):
                faults.append("%s: %s in %s" % (path, arch, tree))
            digest = wanted.pop((home if joined else prefix.rstrip("/"), key, arch), None)
            if digest != hashlib.sha256(archive.get(entry)).hexdigest():
                faults.append("%s: %s %s is wrong, or there twice" % (path, key, arch))
        if homes and (rest != o.name + "_" + tree + ".kpack" or min(homes) != prefix.rstrip("/")):
            faults.append("%s: the archive of %s" % (path, sorted(homes)))
for missing in wanted:
    faults.append("%s: in no archive" % (missing,))
for fault in faults:
    print(fault)
sys.exit(bool(faults))
