#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Pack a tree of files with these names, and print what each of them is taken for.

databases.py FILE [OPTION...]      OPTIONs of kpack pack

FILE has a line for each file: its path, and after a tab its content, or the bytes of its path.
A path that begins with + follows the last one that ended with a slash, which is no file.
Contents: hex=..., zlib=... of hex, text=..., elf=FLAGS (a code object), host, dll, ar, none,
aks2=SIZE,KERNELS,DIRECTORY, zip=MEMBERS, sqlite (three pages), poke=AT:HEX into that, one=ARCH...,
bundle=ARCH..., ccob=ARCH..., cut=N of the last content.

A printed line has what kpack says of the file, and for each entry its library, role, targets, other keys
and facts, as a reader reads them that shares no code with kpack; "-": it is in no archive.
"""
import collections
import glob
import json
import os
import struct
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "integration"))
import mkfat
import mkoffload
import readkpack

HIP = "hipv4-amdgcn-amd-amdhsa--"
SKIP = "path", "xxh3", "chunk", "mode", "library", "role"


def code(flags, size=64):
    return b"\x7fELF\2\1\1\x40\4" + bytes(7) + b"\3\0\xe0\0\1\0\0\0" + bytes(24) + \
        struct.pack("<IHHHHHH", flags, 64, 56, 0, 64, 0, 0) + bytes(size - 64)


def content(kind, value, last):
    sqlite = b"SQLite format 3\0" + struct.pack(">HBBBBBBIIII", 1024, 1, 1, 0, 64, 32, 32, 7, 3, 0, 0) + \
        struct.pack(">4xI8xI32xI", 4, 1, 7)
    sqlite += bytes(3072 - len(sqlite))
    if kind in ("hex", "zlib"):
        data = bytes.fromhex(value)
        return zlib.compress(data) if kind == "zlib" else data
    if kind == "poke":
        at, new = value.split(":")
        return sqlite[:int(at)] + bytes.fromhex(new) + sqlite[int(at) + len(new) // 2:]
    if kind in ("bundle", "ccob", "one"):
        objects = [(HIP + a, mkfat.code_object(a, 300, kind)) for a in value.split(",")]
        data = mkoffload.raw_bundle([("host-x86_64-unknown-linux-gnu-", b"")] * (kind != "one") + objects, 64)
        return mkoffload.ccob(data) if kind == "ccob" else data
    return {
        "text": lambda: value.encode(), "none": lambda: b"", "cut": lambda: last[:int(value)],
        "elf": lambda: code(int(value, 16)), "ar": lambda: mkoffload.ar([("a", b"\0")]), "dll": lambda: b"MZ" + bytes(62),
        "host": lambda: mkoffload.elf_object([(".text", 1, 16, b"\x90" * 40)]),
        "aks2": lambda: b"AKS2" + struct.pack("<3I", *map(int, value.split(","))) + b"\xfd7zXZ\0" + bytes(32) + b"YZ",
        "zip": lambda: b"PK\3\4" + bytes(96) + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, int(value), int(value), 40, 60, 0),
        "sqlite": lambda: sqlite,
    }[kind]()


def make(lines):
    rows, top, data = [], "", b""
    for line in lines:
        path, _, spec = line.rstrip("\n").partition("\t")
        path = top + path[1:] if path.startswith("+") else path
        if path.endswith("/"):
            top = path
            continue
        kind, _, value = spec.partition("=")
        data = content(kind, value, data) if kind else path.encode()
        os.makedirs(os.path.join("t", os.path.dirname(path)), exist_ok=True)
        with open("t/" + path, "wb") as f:
            f.write(data)
        rows.append((line.split("\t")[0].rstrip("\n"), path))
    return rows


def word(value):
    value = value.hex() if isinstance(value, bytes) else value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"),
                                                           default=bytes.hex)


def entries():
    """path -> (library, role, facts) -> (targets, keys)"""
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: ([], [])))
    for name in sorted(glob.glob("out/.kpack/*")):
        for key, arch, e in readkpack.Archive(name).entries():
            m = e.get("metadata", {})
            path = m.get("path", key)
            facts = " ".join("%s=%s" % (k, word(v)) for k, v in m.items() if k not in SKIP)
            arches, keys = found[path][m.get("library"), m.get("role"), facts]
            arches += [arch] * (arch not in arches)
            keys += [key] * (key != path and key not in keys)
    return found


def show(rows, options):
    """Pack t, and print what ROWS, (shown, path), are taken for; then everything else."""
    p = subprocess.run(["kpack", "pack", "--group", "g", *options, "t", "out"], capture_output=True, text=True)
    said, found = collections.defaultdict(str), entries()
    for line in p.stderr.splitlines():
        if line.startswith("kpack: out: note: "):
            continue  # how much larger archives are
        path = next((path for _, path in rows if line.startswith("kpack: t/%s: " % path)), "")
        said[path] += "  (" + line.replace("kpack: ", "").replace("t/%s: " % path, "") + ")"

    def entry(path):
        return "".join("  %s %s %s %s %s" % (library, role, ",".join(arches), "".join("[%s] " % k for k in keys), facts)
                       for (library, role, facts), (arches, keys) in found.pop(path, {}).items())
    for shown, path in rows:
        print(shown + ":" + (entry(path) or "  -") + said.pop(path, ""))
    for path in [*said, *sorted(found)]:
        print(path + entry(path) + said.get(path, ""))
    if p.returncode:
        print("[%d]" % p.returncode)
    sys.stdout.flush()


def main(rows, options):
    with open(rows, encoding="utf-8") as f:
        show(make(f), options)
    subprocess.run(["rm", "-r", "t"] + ["out"] * os.path.isdir("out"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
