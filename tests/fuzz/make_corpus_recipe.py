#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target recipe: make_corpus_recipe.py [DIR]

good-* is accepted, bad-* refused.  Objects of good-* are those the target gives: image I is
bytes of value I, and one whose hash begins with an even byte is not compared.  The map is in one
raw block of zstd.
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
        return b"\xc5" + struct.pack(">H", len(v)) + v
    if isinstance(v, list):
        assert len(v) < 16
        return bytes([0x90 | len(v)]) + b"".join(map(pack, v))
    assert len(v) < 16
    return bytes([0x80 | len(v)]) + b"".join(pack(k) + pack(x) for k, x in v.items())


GFX = "hipv4-amdgcn-amd-amdhsa--"
HOST = ["host-x86_64-unknown-linux-gnu-", "", True]
TARGETS = [HOST, [GFX + "gfx90a", "gfx90a", False], [GFX + "gfx1100:xnack+", "gfx1100:xnack+", False], [None, "gfx942", False]]
HEADER = 32 + sum(24 + len(t[0]) for t in TARGETS[:3])
COPY, BYTES, ZEROS, PAD, OBJECT, RANGE, CONTAINER, HEAD, COMPRESSED = range(9)


def leb(*values):
    out = b""
    for v in values:
        while v > 127:
            out += bytes([v & 127 | 128])
            v >>= 7
        out += bytes([v])
    return out


def signed(d):
    return 2 * d if d >= 0 else -2 * d - 1


def recipe(parts, size, objects=(), containers=(), wrappers=(), section=None, **more):
    """OBJECTS: target and bytes of each; an object of a target without a host has a hash of zeros."""
    known = sum(6 for t, n in objects if t % 4 and n)
    columns = leb(*[t for t, n in objects], *[n for t, n in objects])
    m = {"version": 1, "size": size, "copied": bytes(16), "targets": TARGETS, "objects": columns,
         "hashes": bytes(known), "containers": leb(*containers), "wrappers": leb(*map(signed, wrappers)),
         "parts": leb(*parts)}
    m.update({"section": section} if section else {})
    m.update(more)
    return m


def bundle(parts=None, **more):
    """A file of a bundle between four bytes and a hole."""
    parts = [BYTES, 4, CONTAINER, HEAD, ZEROS, 200, OBJECT, 0, OBJECT, 0, ZEROS, 50, OBJECT, 0, ZEROS, 32] if parts is None else parts
    args = dict(size=4 + HEADER + 200 + 100 + 50 + 50 + 32, objects=[(0, 0), (1, 100), (2, 50)], containers=[3], wrappers=[0],
                section=[4, HEADER + 400], bytes=b"head")
    args.update(more)
    return recipe(parts, **args)


def compressed(n=5, size=300, version=3, method=1, level=3, kept=0, payload=100, **more):
    parts = [BYTES, 4, CONTAINER, COMPRESSED, n, size, HEAD, OBJECT, 0, ZEROS, payload, OBJECT, 0, OBJECT, 0, ZEROS, 96]
    return bundle(parts, size=400, section=[4, 396],
                  compressed=leb(version, method, level, 1, kept) + bytes(8) + bytes(16), **more)


def zstd(data, stated=None):
    """One raw block in a frame that states its size."""
    size = struct.pack("<I", len(data) if stated is None else stated)
    block = struct.pack("<I", len(data) << 3 | 1)[:3]
    return b"\x28\xb5\x2f\xfd\xa0" + size + block + data


def seeds():
    def z(m, **how):
        return zstd(pack(m), **how)

    file = [bytes(16), 7, bytes(16), 0o644, 1, 1, 1 << 30, 5, 1 << 30, 5]
    kept = struct.pack("<II", 0x184d2a50, 20) + bytes(20)
    yield "good-empty", z(recipe([], 0))
    yield "good-bundle", z(bundle())
    yield "good-padded", z(bundle([BYTES, 4, CONTAINER, HEAD, PAD, OBJECT, 0, OBJECT, 0, PAD, OBJECT, 0, ZEROS, 50],
                                  size=8192 + 100, section=[4, 8188 + 100]))
    yield "good-own-header", z(bundle([BYTES, 4, CONTAINER, BYTES, HEADER, OBJECT, signed(1), RANGE, 0, 10, 40, ZEROS, 50],
                                      size=4 + HEADER + 190, section=[4, HEADER + 190], bytes=b"head" + bytes(HEADER)))
    yield "good-copy", z(bundle([COPY, signed(7), 4, CONTAINER, HEAD, OBJECT, 0, OBJECT, 0, OBJECT, 0, COPY, signed(-300), 20],
                                size=4 + HEADER + 170, section=[4, HEADER + 150], bytes=b""))
    yield "good-host", z(bundle([BYTES, 4, CONTAINER, HEAD, OBJECT, 0, OBJECT, 0, OBJECT, 0], objects=[(0, 6), (1, 100), (2, 50)],
                                size=4 + HEADER + 156, section=[4, HEADER + 156], bytes=b"head" + b"a host"))
    yield "good-object", z(bundle([BYTES, 4, CONTAINER, OBJECT, 0, ZEROS, 9], objects=[(3, 100)], containers=[1], size=113, section=[4, 109]))
    yield "good-unknown", z(bundle(hashes=bytes(6), unknown=leb(2)))
    yield "good-ccob", z(compressed())
    yield "good-zlib", z(compressed(version=2, method=0, level=6))
    yield "good-kept", z(compressed(kept=20)) + kept
    yield "good-left", z(bundle([BYTES, 4, CONTAINER, COPY, 0, 300], size=304, section=[4, 300]))
    yield "good-file", z(recipe([COPY, 0, 20, RANGE, 0, 10, 20, OBJECT, signed(-1), ZEROS, 2], 142, [(3, 100)], file=file))
    yield "good-removed", z(recipe([OBJECT, 0], 100, [(3, 100)], file=file[:1] + [0, None] + file[3:]))
    yield "good-new", z(bundle(new=[1, {"a": None}]))
    yield "bad-kept", z(compressed(kept=21)) + kept
    yield "bad-kept-size", z(compressed(kept=20, size=1 << 21)) + kept
    yield "bad-zstd", z(bundle(), stated=1 << 28)
    yield "bad-plain", pack(bundle())
    yield "bad-version", z(bundle(version=2))
    yield "bad-wrapper", z(bundle(wrappers=[1]))
    yield "bad-edge", z(bundle(section=[6, HEADER + 398]))
    yield "bad-section", z(bundle(section=[4, 1 << 40]))
    yield "bad-size", z(bundle(size=HEADER + 437))
    yield "bad-large", z(bundle([BYTES, 4, CONTAINER, HEAD, ZEROS, (1 << 62) + 5]))
    yield "bad-target", z(bundle(objects=[(0, 0), (4, 100), (2, 50)]))
    yield "bad-hashes", z(bundle(hashes=bytes(13)))
    yield "bad-object", z(bundle([BYTES, 4, CONTAINER, HEAD, ZEROS, 200, OBJECT, 0, OBJECT, 0, ZEROS, 50, OBJECT, 2, ZEROS, 32]))
    yield "bad-range", z(bundle([BYTES, 4, CONTAINER, RANGE, 2, 60, 41]))
    yield "bad-order", z(bundle([BYTES, 4, CONTAINER, OBJECT, 0, OBJECT, 0, OBJECT, 0, HEAD, ZEROS, 282]))
    yield "bad-bytes", z(bundle(bytes=b"hea"))
    yield "bad-more-bytes", z(bundle(bytes=b"heads"))
    yield "bad-kind", z(bundle([BYTES, 4, CONTAINER, 9]))
    yield "bad-container", z(bundle(containers=[2, 1]))
    yield "bad-no-container", z(bundle([CONTAINER, BYTES, 4, HEAD]))
    yield "bad-nested", z(bundle([BYTES, 4, CONTAINER, COMPRESSED, 2, 300, COMPRESSED, 1, 300, ZEROS, 100],
                                                                 compressed=2 * (leb(3, 1, 3, 1, 0) + bytes(24))))
    yield "bad-inside", z(compressed(n=9))
    yield "bad-bomb", z(compressed(payload=1 << 31))
    yield "bad-method", z(compressed(method=2))
    yield "bad-time", z(recipe([OBJECT, 0], 100, [(3, 100)], file=file[:-1] + [10 ** 9]))
    yield "bad-cut", z(bundle())[:-9]
    yield "bad-end", z(dict(bundle(), parts=b"\x80"))

def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus")
    os.makedirs(os.path.join(root, "recipe"), exist_ok=True)
    for name, data in seeds():
        with open(os.path.join(root, "recipe", name), "wb") as f:
            f.write(data)


main()
