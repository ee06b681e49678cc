#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a wheel like torch's for ROCm, always with the same content; check and list wheels.

mkwheel.py make [options] DIR        prints the path of the wheel
  --tags T,T         (cp313-cp313-manylinux_2_28_x86_64)
  --arches A,B       of the fat libraries (gfx90a:xnack+,gfx90a:xnack-,gfx942,gfx1100)
  --seed TEXT        another seed gives other host files (0)
  --device-seed TEXT another seed gives other device code (0)
  --add PATH=FILE    another member; may be repeated
mkwheel.py check WHEEL...            check RECORD, names and order; exits 1 on a fault
mkwheel.py list WHEEL                mode, size and name of each member, in order
mkwheel.py cat WHEEL MEMBER
"""
import argparse, base64, csv, hashlib, io, os, sys, zipfile

import mkfat

TIME = (2020, 2, 2, 2, 2, 2)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def record(members, name):
    out = io.StringIO()
    w = csv.writer(out, lineterminator="\n")
    for path, data, _ in members:
        w.writerow([path, digest(data), len(data)])
    w.writerow([name, "", ""])
    return out.getvalue().encode()


def write(path, members, info):
    """members: (path, bytes, mode)"""
    name = info + "/RECORD"
    members = members + [(name, record(members, name), 0o644)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for member, data, mode in members:
            i = zipfile.ZipInfo(member, TIME)
            i.external_attr = (0o100000 | mode) << 16
            i.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(i, data)


def fat(arches, seed, bundles):
    parts, at, pointers = [], 0, []
    for b in range(bundles):
        data = mkfat.bundle([(a, mkfat.code_object(a, 5000, "%s/%d" % (seed, b))) for a in arches], 0, 4096)
        gap = mkfat.align(at, 4096) - at
        parts += [bytes(gap), data]
        pointers.append(at + gap)
        at += gap + len(data)
    return mkfat.shared_library(b"".join(parts), pointers)


def metadata(version):
    return ("Metadata-Version: 2.1\nName: torch\nVersion: %s\nSummary: Tensors\nLicense: BSD-3-Clause\n"
            "Requires-Python: >=3.8\nProvides-Extra: opt\n"
            "Description-Content-Type: text/markdown\n\n# torch\n\nProvides-Extra: not a header\n"
            % version).encode()


def tree(root):
    for where, dirs, names in os.walk(root):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                yield os.path.relpath(path, root), f.read(), os.stat(path).st_mode & 0o777


def make(directory, arches, tags, add=(), seed="0", device_seed="0", version="2.10.0+rocm7.1", databases=None,
         header=None, code=True):
    """databases: a tree that mkdb.py made, to add below the package.  header: METADATA."""
    arches, tags = arches.split(","), tags.split(",")
    info = "torch-%s.dist-info" % version
    members = [
        ("torch/__init__.py", b"version = '%s'\nseed = '%s'\n" % (version.encode(), seed.encode()), 0o644),
        ("torch/bin/tool", b"#!/bin/sh\nexit 0\n", 0o755),
        ("torch/data/a, \"b\".txt", b"quoted\n", 0o644),
        ("torch/share/rccl/msccl-algorithms/allreduce.xml", b"<algo/>\n", 0o644),
        ("torchgen/__init__.py", b"", 0o644),
    ]
    if code:
        members += [
            ("torch/lib/libtorch_hip.so", fat(arches, device_seed + "hip", 3), 0o755),
            ("torch/lib/libc10_hip.so", fat(arches[:2], device_seed + "c10", 1), 0o755),
            ("torch/_C.so", fat(arches[-1:], device_seed + "C", 2), 0o755),
        ]
    if databases:
        have = {m[0] for m in members}
        members += [("torch/" + p, d, m) for p, d, m in tree(databases) if "torch/" + p not in have]
    for text in add:
        path, _, file = text.partition("=")
        with open(file, "rb") as f:
            members.append((path, f.read(), 0o644))
    members.sort()
    members += [
        (info + "/METADATA", header or metadata(version), 0o644),
        (info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: fixture\nRoot-Is-Purelib: false\n" +
                           "".join("Tag: %s\n" % t for t in tags)).encode(), 0o644),
        (info + "/entry_points.txt", b"[console_scripts]\ntorchrun = torch:run\n", 0o644),
        (info + "/top_level.txt", b"torch\ntorchgen\n", 0o644),
    ]
    kinds = [[], [], []]
    for t in tags:
        for i, part in enumerate(t.split("-")):
            if part not in kinds[i]:
                kinds[i].append(part)
    os.makedirs(directory, exist_ok=True)
    path = "%s/torch-%s-%s.whl" % (directory, version, "-".join(".".join(k) for k in kinds))
    write(path, members, info)
    return path


def check(path):
    faults = []
    with zipfile.ZipFile(path) as z:
        names = z.namelist()
        assert z.testzip() is None
        records = [n for n in names if n.count("/") == 1 and n.endswith(".dist-info/RECORD")]
        if len(records) != 1 or names[-1] != records[0]:
            return ["RECORD is not the only one, last: %s" % records]
        rows = list(csv.reader(io.StringIO(z.read(records[0]).decode())))
        if rows[-1] != [records[0], "", ""]:
            faults.append("the last row is %s" % rows[-1])
        if sorted(r[0] for r in rows) != sorted(names):
            faults.append("RECORD and members differ: %s" % (set(names) ^ {r[0] for r in rows}))
        if len(set(names)) != len(names):
            faults.append("a name twice")
        for name, want, size in rows[:-1]:
            data = z.read(name)
            if digest(data) != want or str(len(data)) != size:
                faults.append("RECORD lies about %s" % name)
        for i in z.infolist():
            if i.external_attr >> 16 & 0o170000 not in (0o100000, 0):
                faults.append("%s is no file" % i.filename)
        info = records[0].split("/")[0]
        dist, version = info[:-len(".dist-info")].split("-")
        if not os.path.basename(path).startswith("%s-%s-" % (dist, version)):
            faults.append("%s in %s" % (info, path))
    return faults


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    sub = p.add_subparsers(dest="what", required=True)
    m = sub.add_parser("make")
    m.add_argument("--tags", default="cp313-cp313-manylinux_2_28_x86_64")
    m.add_argument("--arches", default="gfx90a:xnack+,gfx90a:xnack-,gfx942,gfx1100")
    m.add_argument("--seed", default="0")
    m.add_argument("--device-seed", default="0")
    m.add_argument("--add", action="append", default=[])
    m.add_argument("directory")
    c = sub.add_parser("check")
    c.add_argument("wheels", nargs="+")
    li = sub.add_parser("list")
    li.add_argument("wheel")
    ca = sub.add_parser("cat")
    ca.add_argument("wheel")
    ca.add_argument("member")
    o = p.parse_args()
    if o.what == "make":
        print(make(o.directory, o.arches, o.tags, o.add, o.seed, o.device_seed))
    elif o.what == "check":
        faults = ["%s: %s" % (w, f) for w in o.wheels for f in check(w)]
        print("\n".join(faults), end="\n" if faults else "")
        sys.exit(1 if faults else 0)
    elif o.what == "list":
        with zipfile.ZipFile(o.wheel) as z:
            for i in z.infolist():
                print("%o %d %s" % (i.external_attr >> 16 & 0o777, i.file_size, i.filename))
    else:
        with zipfile.ZipFile(o.wheel) as z:
            sys.stdout.buffer.write(z.read(o.member))


if __name__ == "__main__":
    main()
