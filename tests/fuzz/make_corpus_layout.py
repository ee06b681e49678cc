#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target layout: make_corpus_layout.py [DIR]

good-* is accepted, bad-* refused.  Objects of good-* are those the target gives: image I is
bytes of value I, and one whose hash begins with an even byte is not compared.
"""

import os
import struct
import sys


def pack(v):
    """MessagePack, as short as it gets."""
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if -32 <= v < 0:
            return struct.pack("b", v)
        if v < 0:
            return b"\xd3" + struct.pack(">q", v)
        for limit, head, fmt in ((0x80, b"", ">B"), (1 << 8, b"\xcc", ">B"),
                                 (1 << 16, b"\xcd", ">H"), (1 << 32, b"\xce", ">I")):
            if v < limit:
                return head + struct.pack(fmt, v)
        return b"\xcf" + struct.pack(">Q", v)
    if isinstance(v, str):
        v = v.encode()
        return (bytes([0xA0 | len(v)]) if len(v) < 32 else b"\xd9" + bytes([len(v)])) + v
    if isinstance(v, bytes):
        return b"\xc4" + bytes([len(v)]) + v
    if isinstance(v, list):
        assert len(v) < 16
        return bytes([0x90 | len(v)]) + b"".join(map(pack, v))
    assert len(v) < 16
    return bytes([0x80 | len(v)]) + b"".join(pack(k) + pack(x) for k, x in v.items())


GFX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = [["host-x86_64-unknown-linux-gnu-", "", True], [GFX + "gfx90a", "gfx90a", False],
           [GFX + "gfx1100:xnack+", "gfx1100:xnack+", False], [None, "gfx942", False]]
HASH = bytes(16)
HEADER = 32 + sum(24 + len(t[0]) for t in TARGETS[:3])


def layout(containers, size, wrappers=(0,), targets=None, version=1):
    return pack({"version": version, "size": size, "targets": targets or TARGETS,
                 "wrappers": list(wrappers), "containers": containers})


def bundle(offset=0, entries=None, size=None, **more):
    entries = entries or [[0, 512 - HEADER, 0, None], [1, 0, 100, HASH], [2, 156, 50, HASH]]
    return {"format": "bundle", "offset": offset,
            "size": 818 if size is None else size, "entries": entries, **more}


def ccob(offset=0, version=3, method=1, level=3, payload=818, size=200, **more):
    form = {"version": version, "method": method, "hash": 1 << 63, "payload": payload,
            "level": level}
    if level:
        form.update({"long": True, "xxh3": HASH})
    form.update(more)
    return {**bundle(offset), "format": "ccob", "size": size, "ccob": form}


def code_object(offset=0, size=300):
    return {"format": "code-object", "offset": offset, "size": size,
            "entries": [[3, 0, size, HASH]]}


def seeds():
    host = [[0, 10, 4, b"host"], [1, -2, 3, HASH], [2, 700, 9, None]]
    yield "good-empty", layout([], 0, ())
    yield "good-bundle", layout([bundle()], 4096)
    yield "good-bytes", layout([bundle(bytes=[[600, b"odd"], [700, b"even"]])], 818)
    yield "good-host", layout([bundle(entries=host, size=HEADER + 800)], 4096)
    yield "good-ccob", layout([ccob(), ccob(4096, level=0), ccob(8192, 2, 1, 22)], 9000)
    yield "good-zlib", layout([ccob(0, 1, 0, 6), ccob(512, 2, 0, 9)], 1000, (1, 0, 1))
    yield "good-mixed", layout([bundle(), code_object(1024), ccob(2048)], 4096, (2, 0, 1))
    yield "good-new", layout([dict(bundle(), new=[1, {"a": None}])], 4096)
    yield "bad-version", layout([], 0, (), version=2)
    yield "bad-wrapper", layout([bundle()], 4096, (1,))
    yield "bad-outside", layout([bundle()], 817)
    yield "bad-inside", layout([bundle(), bundle(817)], 4096)
    yield "bad-entry", layout([bundle(entries=[[1, 0, 1 << 32, HASH]])], 1 << 32)
    yield "bad-gap", layout([bundle(entries=[[1, -1, 1, HASH]])], 4096)
    yield "bad-target", layout([bundle(entries=[[4, 0, 1, HASH]])], 4096)
    yield "bad-bomb", layout([ccob(payload=1 << 32)], 4096)
    yield "bad-method", layout([ccob(method=2)], 4096)
    yield "bad-pieces", layout([bundle(bytes=[[817, b"xy"]])], 818)
    yield "bad-cut", layout([bundle()], 4096)[:-1]
    yield "bad-code-object", layout([dict(code_object(), size=301)], 4096)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus")
    os.makedirs(os.path.join(root, "layout"), exist_ok=True)
    for name, data in seeds():
        with open(os.path.join(root, "layout", name), "wb") as f:
            f.write(data)


main()
