#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target layout: make_corpus_layout.py [DIR]

good-* is accepted, bad-* refused.  Objects of good-* are those the target gives: image I is
bytes of value I, and one whose hash begins with an even byte is not compared.  The map is
not compressed, which is accepted too; good-zstd has it in one raw block.
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
HASH, WHOLE_HASH = bytes(6), bytes(16)
HEADER = 32 + sum(24 + len(t[0]) for t in TARGETS[:3])


def page(n):
    return -(-n // 4096) * 4096


def gaps(c, before):
    """C with gaps for offsets, counted as layout_record.h says; BEFORE: the container's."""
    entries = []
    end = 0
    if c["format"] != "code-object":
        end = 32 + sum(24 + len(TARGETS[e[0] % 4][0] or "") for e in c["entries"])
    for target, offset, size, content in c["entries"]:
        entries.append([target, offset - page(end), size, True if content == HASH else content])
        end = offset + size
    size = c["size"] - (end if c["format"] != "ccob" else 0)
    return {**c, "offset": c["offset"] - page(before), "size": size, "entries": entries}


def layout(containers, size, wrappers=(0,), version=1, hashes=None):
    before = [0] + [c["offset"] + c["size"] for c in containers]
    if hashes is None:
        hashes = b"".join(e[3] for c in containers for e in c["entries"] if e[3] == HASH)
    return pack({"version": version, "size": size, "targets": TARGETS,
                 "wrappers": list(wrappers),
                 "containers": [gaps(c, end) for c, end in zip(containers, before)],
                 "xxh3": hashes})


def bundle(offset=0, entries=None, size=818, **more):
    entries = entries or [[0, 512, 0, None], [1, 512, 100, HASH], [2, 768, 50, HASH]]
    return {"format": "bundle", "offset": offset, "size": size, "entries": entries, **more}


def ccob(offset=0, version=3, method=1, level=3, payload=818, size=200):
    form = {"version": version, "method": method, "hash": 1 << 63, "payload": payload,
            "level": level}
    if level:
        form.update({"long": True, "xxh3": WHOLE_HASH})
    return {**bundle(offset), "format": "ccob", "size": size, "ccob": form}


def code_object(offset=0, size=300):
    return {"format": "code-object", "offset": offset, "size": size,
            "entries": [[3, 0, size, HASH]]}


def zstd(data, stated=None):
    """One raw block in a frame that states its size."""
    size = struct.pack("<I", len(data) if stated is None else stated)
    block = struct.pack("<I", len(data) << 3 | 1)[:3]
    return b"\x28\xb5\x2f\xfd\xa0" + size + block + data


def seeds():
    host = [[0, HEADER + 10, 4, b"host"], [1, HEADER + 12, 3, HASH], [2, HEADER + 700, 9, None]]
    yield "good-empty", layout([], 0, ())
    yield "good-bundle", layout([bundle()], 4096)
    yield "good-bytes", layout([bundle(bytes=[[600, b"odd"], [700, b"even"]], size=900)], 900)
    yield "good-host", layout([bundle(entries=host, size=HEADER + 800)], 4096)
    yield "good-ccob", layout([ccob(), ccob(4096, level=0), ccob(8192, 2, 1, 22)], 9000)
    yield "good-zlib", layout([ccob(0, 1, 0, 6), ccob(512, 2, 0, 9)], 1000, (1, 0, 1))
    yield "good-mixed", layout([bundle(), code_object(1024), ccob(2048)], 4096, (2, 0, 1))
    yield "good-new", layout([dict(bundle(), new=[1, {"a": None}])], 4096)
    yield "good-zstd", zstd(layout([bundle()], 4096))
    kept = struct.pack("<II", 0x184d2a50, 20) + bytes(20)
    yield "good-kept", zstd(layout([dict(ccob(), ccob=dict(ccob()["ccob"], kept=20))], 4096)) + kept
    yield "bad-kept", zstd(layout([dict(ccob(), ccob=dict(ccob()["ccob"], kept=21))], 4096)) + kept
    yield "bad-zstd", zstd(layout([bundle()], 4096), 1 << 28)
    yield "bad-version", layout([], 0, (), version=2)
    yield "bad-wrapper", layout([bundle()], 4096, (1,))
    yield "bad-outside", layout([bundle()], 817)
    yield "bad-inside", layout([bundle(), bundle(817)], 4096)
    yield "bad-entry", layout([bundle(entries=[[1, 4096, 1 << 32, HASH]])], 1 << 32)
    yield "bad-header", layout([bundle(entries=[[1, 80, 1, HASH]])], 4096)
    yield "bad-target", layout([bundle(entries=[[4, 200, 1, HASH]])], 4096)
    yield "bad-hashes", layout([bundle()], 4096, hashes=bytes(15))
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
