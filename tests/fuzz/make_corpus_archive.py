#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets archive, toc, msgpack, seekable and frame_header:
make_corpus_archive.py [DIR]

good-* is accepted, bad-* refused (or, of a table, one of its entries).  The same bytes every
time, whatever zstd does: frames are made by hand, of raw blocks.
Run it with /usr/bin/python3: Debian's msgpack and zstandard are only there.
"""

import os
import struct
import sys

import msgpack
import zstandard

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../integration"))
sys.dont_write_bytecode = True
from readkpack import xxh3_64, xxh3_128

HASH = bytes.fromhex("99aa06d3014798d86001c324468d497f")  # XXH3-128 of nothing


def pack(value):
    return msgpack.packb(value, use_bin_type=True)


def pairs(*items):
    """A map that may say a key twice."""
    head = msgpack.Packer().pack_map_header(len(items))
    return head + b"".join(pack(k) + (v if isinstance(v, bytes) else pack(v)) for k, v in items)


def frame(data):
    """One zstd frame: single segment, 4-byte content size, one raw block."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    out += struct.pack("<I", len(data) << 3 | 1)[:3] + data
    assert zstandard.ZstdDecompressor().decompress(out) == data
    return out


def pieces(data, block=1000, log=10):
    """One zstd frame in a window of 2^LOG bytes, which states no size: raw blocks."""
    out = struct.pack("<IBB", 0xFD2FB528, 0, log - 10 << 3)
    for at in range(0, len(data), block):
        part = data[at:at + block]
        out += struct.pack("<I", len(part) << 3 | (at + block >= len(data)))[:3] + part
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    assert decompressor.decompressobj().decompress(out) == data
    return out


def seekable(data, chunk=4096, checksums=False):
    parts = [data[i:i + chunk] for i in range(0, len(data), chunk)] or [b""]
    frames = [frame(p) for p in parts]
    rows = b"".join(struct.pack("<II", len(f), len(p)) + bytes(4 * checksums)
                    for f, p in zip(frames, parts))
    table = rows + struct.pack("<IBI", len(parts), 0x80 * checksums, 0x8F92EAB1)
    return b"".join(frames) + struct.pack("<II", 0x184D2A5E, len(table)) + table


def blob(frames):
    return struct.pack("<I", len(frames)) + b"".join(struct.pack("<I", len(f)) + f for f in frames)


def index(frames):
    at, out = 4, b""
    for f in frames:
        out += struct.pack("<Q", at)
        at += 4 + len(f)
    return out + struct.pack("<Q", at)


METADATA = pairs(("path", "a"), ("path", "b"), (5, True), ("5", False), (None, [1.5, -1, 1 << 63, float("nan")]),
                 ((1, "\"\\"), {"deep": {"deeper": b"\x00\xff"}}), ("text\n\x7f\u0085", msgpack.ExtType(5, b"ab")),
                 ("bad", b"\xa3\xff\xc3\xa4"))


def archive(body, toc, start=64):
    head = b"KPAK" + struct.pack("<IQ", 1, start + len(body))
    return head.ljust(start, b"\0") + body + (toc if isinstance(toc, bytes) else pack(toc))


def entry(ordinal, size=None, **more):
    e = {"type": "hsaco", "ordinal": ordinal}
    if size is not None:
        e["original_size"] = size
    return {**e, **more}


FRAMES = [frame(b"first"), frame(b"second"), frame(b""), seekable(b"chunk" * 1000)]
NAMES = {"format_version": 1, "group_name": "g", "gfx_arch_family": "gfx90a",
         "gfx_arches": ["gfx1100", "gfx90a:xnack+"]}
TOC = {
    "lib/x.so#0": {"gfx1100": entry(0, 5), "gfx90a:xnack+": entry(1, 6)},
    "lib/x.so#1": {"gfx1100": entry(2, 0, metadata={"xxh3": HASH})},
    "share/db": {"generic": entry(3, 5000, metadata={"path": "share/x.db", "chunk": 4096})},
}
PAPER = {
    "fft/gfx1100/1024/single/kernel": {"type": "co", "ordinal": 1, "metadata": {"length": 1024}},
    "aotriton/gfx1100/flash_attention_fwd": entry(0, metadata={"tuning": {"block_m": 64}}),
    "bin/hipcc/gfx1100": {"hash": "abc123...", "ordinal": 0},
}


def zstd(toc, frames=None, **top):
    frames = FRAMES if frames is None else frames
    b = blob(frames)
    return archive(b, {**NAMES, "compression_scheme": "zstd-per-kernel", "zstd_offset": 64,
                       "zstd_size": len(b), **top, "toc": toc})


def none(toc, **top):
    blobs = [{"offset": 64, "size": 5}, {"offset": 69, "size": 6}]
    return archive(b"firstsecond", {**NAMES, "compression_scheme": "none", "blobs": blobs,
                                    **top, "toc": toc})


def hashed(top):
    table = pairs(*top.items(), ("table_hash", pack(bytes(16))))
    return table[:-16] + xxh3_128(table[:-16])


def pieces_of(*objects):
    return b"".join(struct.pack("<IQ", ordinal, xxh3_64(data)) for ordinal, data in objects)


def none_hashed(hashes):
    return archive(b"firstsecond", hashed({
        **NAMES, "compression_scheme": "none", "piece_hashes": pack(hashes), "toc": TWO,
        "blobs": [{"offset": 64, "size": 5}, {"offset": 69, "size": 6}]}))


def zstd_hashed(damage=0):
    b = blob(FRAMES)
    table = hashed({**NAMES, "compression_scheme": "zstd-per-kernel", "zstd_offset": 64,
                    "zstd_size": len(b), "toc": TOC,
                    "piece_hashes": pack(pieces_of((0, FRAMES[0]), (3, FRAMES[3])))})
    b = bytearray(b)
    b[-damage] ^= 1 if damage else 0
    return archive(bytes(b), table)


TWO = {"a#0": {"gfx1100": entry(0, 5), "gfx900": entry(1, 6)}, "b": {"gfx1100": entry(0)}}
OWN = {"a": {"x": {"offset": 64, "size": 5}, "y": {"ordinal": 0}}}
BAD_NAMES = {k: {"x": entry(0)} for k in ("../a", "/a", "a//b", ".", "a/..", "toc/x", "n" * 256)}
CLASH = {"a": {"x": entry(0)}, "a/x.hsaco": {"y": entry(1)}, "a#0": {"x": entry(1)},
         "p": {"x": entry(1, metadata={"path": "toc/a"}), "y": entry(1, metadata={"path": "p"})},
         "q": {"x": entry(0, metadata={"path": "p/q"})}}

ARCHIVES = {
    "good-zstd": zstd(TOC),
    "good-zstd-index": zstd(TOC, frame_index=index(FRAMES)),
    "good-none": none(TWO),
    "good-own-places": archive(b"firstsecond", {"toc": OWN}),
    "good-paper": zstd(PAPER),
    "good-amd-order": archive(b"first", {**NAMES, "toc": {"a#0": {"gfx1100": entry(0, 5)}},
                                         "compression_scheme": "none",
                                         "blobs": [{"offset": 64, "size": 5}]}),
    "good-bare": archive(b"", {"toc": {}}, start=16),
    "good-tail": none(TWO) + b"\xc1 tail",
    "good-names": none(BAD_NAMES),
    "good-clash": none(CLASH),
    "good-metadata": archive(b"first", pairs(
        ("blobs", [{"offset": 64, "size": 5}]),
        ("toc", pairs(("lib/x#0", pairs(("x", pairs(("ordinal", 0), ("metadata", METADATA))))),
                      ("lib/x#10", {"x": entry(0)}), ("lib/x#2", {"x": entry(0)}),
                      ("lib/x/y", {"x": entry(0)}))))),
    "good-window": zstd({"a": {"x": entry(0, 5000)}}, [pieces(b"piece" * 1000)]),
    "good-late-window": zstd({"a": {"x": entry(0, 5005)}},
                             [frame(b"first") + pieces(b"piece" * 1000, log=28)]),
    # a compressed block of no bytes: zstd takes it from a stream, and not in one piece
    "good-empty-block": zstd({"a": {"x": entry(0, 0)}},
                             [struct.pack("<IBB", 0xFD2FB528, 0, 0) + b"\5\0\0"]),
    "good-pieces-none": none_hashed(pieces_of((0, b"first"), (1, b"second"))),
    "good-pieces-zstd": zstd_hashed(),
    "bad-piece": zstd_hashed(damage=30),
    "bad-pieces-order": none_hashed(pieces_of((1, b"second"), (0, b"first"))),
    "bad-pieces-cut": none_hashed(pieces_of((0, b"first"))[:-1]),
    "bad-pieces-ordinal": none_hashed(pieces_of((2, b"third"))),
    "good-many-frames": zstd({"a": {"x": entry(0)}}, [frame(b"a") + frame(b"b"), b""]),
    "good-twice": archive(b"first", pairs(
        ("blobs", [{"offset": 64, "size": 5}]),
        ("toc", pairs(("b", pairs(("x", entry(0)), ("x", entry(0, 5)))),
                      ("a", {"x": entry(0)}), ("b", {"w": entry(0)}))),
        ("toc", {}))),
    "bad-entries": zstd({"a": {"u": entry(9, 5), "v": entry(0, 1 << 62), "w": entry(0, 4),
                               "x": entry(-1), "y": {"type": 5, "ordinal": 0}, "z": 7}}),
    "bad-chunks": zstd({"a": {"x": entry(3, 5000, metadata={"chunk": 8192}),
                              "y": entry(0, 5, metadata={"chunk": 4096})}}),
    "bad-hash": zstd({"a": {"x": entry(0, 5, metadata={"xxh3": HASH})}}),
    "bad-frame": zstd({"a": {"x": entry(0, 5)}}, [frame(b"first")[:-1] + b"\0\0"]),
    "bad-index": zstd(TOC, frame_index=index(FRAMES)[8:]),
    "bad-index-word": zstd(TWO, [b"x" * 9, b"y" * 9], frame_index=index([b"x" * 8, b"y" * 10])),
    "bad-scheme": none(TWO, compression_scheme="lz4"),
    "bad-blob": none(TWO, blobs=[{"offset": 64, "size": 5000}]),
    "bad-version": none(TWO).replace(b"KPAK\1", b"KPAK\2"),
    "bad-magic": none(TWO).replace(b"KPAK", b"KAPK"),
    "bad-cut": zstd(TOC)[:-9],
    "bad-empty": b"",
}

TOCS = {
    "good-zstd": pack({**NAMES, "compression_scheme": "zstd-per-kernel", "zstd_offset": 64,
                       "zstd_size": 99, "frame_index": index([b""]), "toc": TOC}),
    "good-none": pack({"blobs": [{"offset": 64, "size": 5}], "toc": TWO}),
    "good-paper": pack({"toc": PAPER}),
    "good-own": pack({"toc": OWN}),
    "good-hashed": hashed({"toc": OWN, "piece_hashes": pack(b"")}),
    "bad-unhashed": pack({"toc": OWN, "piece_hashes": b""}),
    "good-sort": pack({"toc": {k: {"b": entry(0), "a": entry(1)} for k in
                               ("12345678", "1234567", "123456789", "1234567890123456", "")}}),
    "good-twice": pairs(("toc", pairs(("b", pairs(("x", entry(0)), ("x", entry(1)))),
                                      ("a", {}), ("b", {"w": entry(0)}))), ("toc", {})),
    "good-more": pairs((5, "whole"), ("next", [1]), ("toc", pairs(
        ("b", pairs(("x", {**entry(0), "new": 1}), ("x", {9: 9, **entry(1), "more": [2]}))),
        ("a", {"y": {"first": 1, **entry(2)}}), ("b", {"w": {**entry(3), "last": {}}})))),
    "bad-entries": pack({"toc": {"a": {"w": entry(-1), "x": {}, "y": 5, "": entry(0)}, "b": 7,
                                 "\n": {}, 5: 6}, "gfx_arches": [5, "\n", "gfx900"]}),
    "bad-number": pack({"toc": {"a": {"x": entry("0")}}}),
    "bad-blobs": pack({"blobs": [{"offset": 0}]}),
    "bad-count": b"\x81\xa3toc\xdf\xff\xff\xff\xff",
    "bad-depth": b"\x81\xa1z" + 33 * b"\x91" + b"\xc0",
}

VALUES = {
    "good-all": pack([None, True, 0, 127, 255, 65535, 1 << 31, 1 << 63, -1, -128, -32768,
                      -(1 << 31), -(1 << 63), 1.5, "a", "b" * 40, b"c", [1], {"d": 2},
                      msgpack.ExtType(5, b"four"), msgpack.ExtType(5, b"other")]),
    "good-wide": bytes.fromhex("dd00000002df0000000101da000161db0000000162"),
    "good-depth": 32 * b"\x91" + b"\xc0",
    "bad-depth": 33 * b"\x91" + b"\xc0",
    "bad-never": b"\xc1",
    **{"bad-" + h: bytes.fromhex(h) + 4 * b"\xff" for h in ("dd", "df", "db", "c6", "c9")},
}

BLOBS = {
    "good-seekable": FRAMES[3],
    "good-seekable-sums": seekable(b"chunk" * 1000, checksums=True),
    "good-seekable-empty": seekable(b""),
    "good-blob": blob(FRAMES[:3]),
    "good-blob-empty": blob([]),
    "good-index": index(FRAMES[:3]),
    "good-frame": frame(b"first"),
    "bad-rows": FRAMES[3][:-9] + struct.pack("<IBI", 0xFFFFFFFF, 0, 0x8F92EAB1),
    "bad-count": struct.pack("<I", 0xFFFFFFFF) + blob(FRAMES)[4:],
    "bad-word": struct.pack("<III", 2, 0, 0xFFFFFFFF),
}

HEADERS = {
    "good-single": frame(b"first"),
    "good-window": pieces(b"chunk" * 1000),
    "good-skippable": struct.pack("<II", 0x184D2A5E, 3) + b"abc",
    "good-checksum": struct.pack("<IBBI", 0xFD2FB528, 0x24, 5, 5 << 3 | 1)[:9] + b"first" + 4 * b"c",
    "good-dictionary": struct.pack("<IBBI", 0xFD2FB528, 3, 0, 77) + b"\1\0\0",
    "good-run": struct.pack("<IBB", 0xFD2FB528, 0x20, 200) + struct.pack("<I", 200 << 3 | 3)[:3] + b"r",
    "good-wide": struct.pack("<IBB", 0xFD2FB528, 0, 21 << 3 | 7) + b"\1\0\0",
    "bad-wide": struct.pack("<IBB", 0xFD2FB528, 0, 22 << 3) + b"\1\0\0",
    "bad-reserved": struct.pack("<IBB", 0xFD2FB528, 0x28, 0) + b"\1\0\0",
    "bad-block": struct.pack("<IBB", 0xFD2FB528, 0x20, 0) + b"\7\0\0",
    "bad-cut": struct.pack("<IB", 0xFD2FB528, 0xC0),
}

if __name__ == "__main__":
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
    for target, files in {"archive": ARCHIVES, "toc": TOCS, "msgpack": VALUES,
                          "seekable": BLOBS, "frame_header": HEADERS}.items():
        os.makedirs(os.path.join(top, target), exist_ok=True)
        for name, data in files.items():
            with open(os.path.join(top, target, name), "wb") as f:
                f.write(data)
