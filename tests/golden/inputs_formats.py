# SPDX-License-Identifier: MIT
"""Objects and containers that lie: for each format an archive, of members with one lie each."""
import hashlib
import os
import struct
import zlib

import zstandard

import mkoffload as o
from elfs import elf
from inputs import DATA, an_input, write
from mktileir import ENTRY, PRIVATE, Module, fill, table, varint

GFX = "hipv4-amdgcn-amd-amdhsa--"
HOST = "host-x86_64-unknown-linux-gnu-"
HSACO = o.code_object("gfx1100", 200, "lies")


def put(data, *changes):
    """DATA with numbers of SIZE bytes in some places: AT, SIZE, VALUE, ..."""
    out = bytearray(data)
    for at, size, value in zip(*[iter(changes)] * 3):
        out[at:at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(out)


def lies(data, *rows):
    """By name the copies of DATA with a number changed: (AT, SIZE, VALUE) each."""
    return {"%02d-%d" % (i, row[0]): put(data, *row) for i, row in enumerate(rows)}


def sample(path):
    with open(os.path.join(DATA, path), "rb") as f:
        return f.read()


def le(size, *values):
    return b"".join((v % (1 << 8 * size)).to_bytes(size, "little") for v in values)


FORMATS = {}


def a_format(f):
    FORMATS[f.__name__] = f
    return f


@an_input
def format_lies(d):
    for name, f in FORMATS.items():
        write("%s/%s.a" % (d, name), o.ar(list(f().items())))


# ---- LLVM's containers --------------------------------------------------------------------

@a_format
def bundle():
    plain = o.raw_bundle([(HOST, b""), (GFX + "gfx90a:xnack+", b"first code"), (GFX + "gfx1100", b"second")])
    first = 32 + 24 + len(HOST)
    ids = ["hip-amdgcn-amd-amdhsa-gfx900", "hip-amdgcn-amd-amdhsa-unknown-gfx1100", "hip-amdgcn-amd-amdhsa--gfx900:xnack+",
           GFX + "gfx11-generic", GFX, "openmp-nvptx64-nvidia-cuda-unknown-sm_80", "nonsense", ""]
    large = o.raw_bundle([("", b"")] * 4000 + [("a" * 512, b"")] * 96)
    rows = {
        "good": plain, "ids": o.raw_bundle([(i, b"x") for i in ids]), "align-3": o.raw_bundle([(GFX + "gfx942", b"x")] * 2, 3),
        "none": o.raw_bundle([]) + plain, "past-the-end": put(o.raw_bundle([(GFX + "gfx90a", b"code"), (HOST, b"")]), 56 + 31, 8, 4096),
        "large": large, "large-packed": o.ccob(large), "nul": plain.replace(b"gfx90a", b"gfx\x0090"),
        "magic": o.raw_bundle([(GFX + "gfx90a", b"__CLANG_OFFLOAD_BUNDLE__CCOB")]), "tail": plain + b"\1junk", "zeros": plain + bytes(40),
    }
    rows.update(lies(plain, *[(24, 8, v) for v in (4, 1000, 4097, -1)], *[(48, 8, v) for v in (400, 513, -1)],
                     *[(first, 8, v) for v in (16, -3)], *[(first + 8, 8, v) for v in (1000, -1)]))
    return rows


@a_format
def ccob():
    plain = o.raw_bundle([(GFX + "gfx1100", b"some code"), (HOST, b"")])
    noise = hashlib.shake_128(b"noise").digest(300000)
    noisy = o.raw_bundle([(GFX + "gfx90a", noise)])
    good = o.ccob(plain)
    frame = zstandard.ZstdCompressor(level=3).compress(plain)
    rows = {"v%d-%s" % (v, m): o.ccob(plain, v, m) + bytes(5) + o.ccob(plain, v, m) for v in (1, 2, 3) for m in ("zstd", "zlib")}
    rows.update(lies(good, (4, 2, 0), (4, 2, 4), (6, 2, 2), (8, 8, len(good) + 1), (8, 8, len(good) - 1), (8, 8, -9),
                     (16, 8, len(plain) - 1), (16, 8, len(plain) + 1), (16, 8, 31), (16, 8, 1 << 32), (16, 8, (1 << 32) + 1), (16, 8, -1),
                     (24, 8, 5)))
    rows.update({
        "no-bundle": o.ccob(b"no bundle, but long enough to be one, one thinks"), "nested": o.ccob(good),
        "junk-behind": put(o.ccob(plain, 2) + b"abc", 8, 4, 24 + len(frame) + 3), "v1-cut": o.ccob(noisy, 1)[:-1],
        "v1-zlib-more": put(o.ccob(noisy, 1, "zlib"), 8, 4, len(noisy) + 1), "zlib-more": put(o.ccob(noisy, 3, "zlib"), 16, 8, len(noisy) + 1),
        "zlib-less": put(o.ccob(noisy, 3, "zlib"), 16, 8, len(noisy) - 1), "zlib-flip": put(o.ccob(noisy, 3, "zlib"), 40, 1, 0xff),
        "zlib-junk": put(o.ccob(plain, 2, "zlib") + b"junk", 8, 4, 24 + len(zlib.compress(plain)) + 4),
        "zstd-end": put(o.ccob(noisy), -9 + len(o.ccob(noisy)), 1, 0), "zstd-cut": put(o.ccob(noisy)[:-100], 8, 8, len(o.ccob(noisy)) - 100),
        "zlib-cut": put(o.ccob(noisy, 3, "zlib")[:-100], 8, 8, len(o.ccob(noisy, 3, "zlib")) - 100)})
    return rows


def offload(version, entries, method=None):
    """An offload binary; ENTRIES: (image kind, kind, flags, strings, image)."""
    head, row = 40 if version == 3 else 32, 24 if version > 1 else 16
    at = head + 40 * len(entries)
    texts = at + row * sum(len(e[3]) for e in entries)
    table_, text, images, records = b"", b"", b"", b""
    start = texts + sum(len(k) + len(v) + 2 for e in entries for k, v in e[3])
    start += -start % 8
    for image_kind, kind, flags, strings, image in entries:
        table_ += struct.pack("<HHIQQQQ", image_kind, kind, flags, at, len(strings), start + len(images), len(image))
        at += row * len(strings)
        images += image
        for k, v in strings:
            records += le(8, texts + len(text), texts + len(text) + len(k) + 1, *[len(v)] * (version > 1))
            text += k + b"\0" + v + b"\0"
    body = table_ + records + text
    body += bytes(start - head - len(body)) + images
    body += bytes(-len(body) % 8)
    size = head + len(body)
    packed = {None: bytes, "zstd": zstandard.ZstdCompressor(level=5).compress, "zlib": zlib.compress}[method](body)
    out = b"\x10\xff\x10\xad" + struct.pack("<IQQQ", version, head + len(packed) + -len(packed) % 8 if method is None else head + len(packed),
                                            head, len(entries) if version > 1 else 40)
    out += le(8, size if method else 0) * (version == 3) + packed
    return out + bytes(-len(out) % 8)


TWO = [(1, 4, 0, [(b"triple", b"amdgcn-amd-amdhsa"), (b"arch", b"gfx90a:xnack+:sramecc-"), (b"feature", b"")], b"first image"),
       (3, 2, 1, [(b"arch", b"sm_90a"), (b"note", b"a\0b"), (b"image kind", b"mine"), (b"image flags", b"too")], b"second")]


@a_format
def offload_binary():
    rows = {"v%d" % v: offload(v, TWO[:1 if v == 1 else 2]) for v in (1, 2, 3)}
    rows.update({m: offload(3, TWO, m) + offload(1, TWO[:1]) for m in ("zstd", "zlib")})
    for i, (image, kind) in enumerate(((0, 0), (2, 1), (4, 2), (5, 3), (6, 4), (7, 8), (0xffff, 16))):
        rows["kinds-%d" % i] = offload(1, [(image, kind, 0, [], b"x")])
    rows["endless"] = put(offload(1, [(1, 4, 0, [(b"key", b"value")], b"xxxxxxxx")]), 72, 8, 104)
    many = offload(2, [(1, 4, 0, [(b"k", b"v")] * 20, b"")] + [(1, 4, 0, [], b"")] * 39)
    shared = put(many, *[n for i in range(1, 40) for n in (32 + 40 * i + 8, 16, int.from_bytes(many[40:56], "little"))])
    rows["strings"] = shared
    rows["string-bytes"] = put(many, *[n for i in range(20) for n in (32 + 40 * 40 + 24 * i + 8, 8, 0, 32 + 40 * 40 + 24 * i + 16, 8, len(many))])
    packed = offload(3, TWO, "zstd")
    size = int.from_bytes(packed[32:40], "little")
    for i, (at, value) in enumerate(((32, size + 8), (32, size - 8), (32, 39), (32, 1 << 40), (32, 1 << 32), (24, 1000))):
        rows["packed-%d" % i] = put(packed, at, 8, value)
    rows["zlib-flip"] = put(offload(3, TWO, "zlib"), 60, 1, 0xff)
    rows["nested"] = offload(1, [(0, 8, 0, [], offload(2, TWO))])
    rows["behind"] = offload(1, TWO[:1]) + bytes(8) + b"x"
    return rows


@a_format
def offload_fields():
    rows = lies(offload(1, TWO[:1]), (4, 4, 0), (4, 4, 4), (8, 8, 31), (8, 8, 10000), (8, 8, -1), (16, 8, 31), (16, 8, -1), (16, 8, 190),
                (24, 8, 39), (24, 8, -1))
    rows.update({"e" + k: v for k, v in lies(
        offload(2, TWO), (24, 8, (1 << 64) // 40 + 2), (40, 8, -1), (48, 8, (1 << 64) // 24 + 2), (48, 8, 15), (56, 8, -1), (64, 8, -1),
        (56, 8, 0), (56, 8, 31), (56, 8, 111), (112, 8, -1), (120, 8, -1), (128, 8, -1), (128, 8, 1 << 20)).items()})
    return rows


def marker(which, name, comment="//"):
    return "\n%s __CLANG_OFFLOAD_BUNDLE____%s__ %s\n" % (comment, which, name)


@a_format
def text_bundle():
    def s(name):
        return marker("START", name)

    def e(name):
        return marker("END", name)
    texts = {
        "good": s(HOST) + "AAA\n" + e(HOST) + s(GFX + "gfx90a:xnack+") + "BBB" + e("a") + s("b") + e("b"),
        "hash": marker("START", "x", "#") + "\n\n" + marker("END", "x", "#"),
        "semicolon": marker("START", "x", ";") + "; __CLANG\n" + marker("END", "x", ";")[:-1],
        "between": s("a") + "A" + e("b") + "more\njunk" + s("c") + "C" + e("c") + "tail", "twice": s("a") + "1" + e("a") + s("a") + "2" + e("z"),
        "no-blank-line": s("a")[1:] + "A" + e("a"), "crlf": (s("a") + "A\nB" + e("a") + s("b") + e("b")).replace("\n", "\r\n"),
        "cr": s("a") + "A\r" + e("a"), "no-markers": s("a") + "x // __CLANG_OFFLOAD_BUNDLE____END__ a\n# __CLANG_OFFLOAD_BUNDLE____END__ a" + e("a"),
        "no-end": s("a") + "A", "only-start": s("a"), "end-at-once": s("a") + e("a")[1:], "no-line-feed": s("a")[:-1],
        "inside": s("a") + "A" + s("b") + "B" + e("b") + e("a"), "inside-again": s("a") + "A" + s("b") + "B" + e("b"),
        "two-starts": s("a") + "A" + s("b") + "B" + e("a") + s("b") + "2" + e("b"), "long": s("i" * 513) + "x" + e("i"),
        "long-inside": s("a") + s("i" * 600) + e("a"), "nul-id": s("a\0b") + "A" + e("a"), "nul": s("a") + "A\0A" + e("a"),
        "only-end": e("a") + e("b"), "behind-x": "x" + s("a"), "windows": s("a") + "/" * 16300 + e("a") + s("b") + "\n" * 32768 + e("b"),
        "windows-too": s("a") + "/" * 16340 + e("a") + s("b") + "\n" * 32740 + e("b"),
    }
    return {name: text.encode() for name, text in texts.items()}


# ---- AMD's code objects -------------------------------------------------------------------

def note(owner, kind, contents):
    owner = owner.encode() + b"\0"
    return le(4, len(owner), len(contents), kind) + owner + bytes(-len(owner) % 4) + contents + bytes(-len(contents) % 4)


def code(sections, flags=0x41, abi=4):
    return elf(3, 224, sections, flags, abi)


def metadata(data):
    return code([(b".note", 7, 2, 0x1000, note("GNU", 3, b"build ID") + note("AMDGPU", 32, data) + note("AMDGPU", 32, b"\xc1"), 0, 0, 0)])


KERNELS, TARGET = b"\xaeamdhsa.kernels", b"\xadamdhsa.target"


@a_format
def code_object():
    v4, v5, v2, bare = (sample("amdgpu/%s.hsaco" % n) for n in ("v4", "v5", "v2", "stripped"))
    rows = {"no-sections": put(v5, 40, 8, 0, 60, 4, 0)}
    for i, (data, flags) in enumerate(((v4, 0x53f), (v4, 0x73f), (v5, 0x46), (v5, 0xfe), (v5, 0), (bare, 0xfe), (bare, 0), (v2, 1), (v2, 0x2c))):
        rows["flags-%d" % i] = put(data, 48, 4, flags)
    for system in 65, 66, 0:
        rows["system-%d" % system] = put(bare, 7, 1, system, 8, 1, 0, 48, 4, 0x12c)
    rows.update(("abi-%d" % v, put(bare, 8, 1, v)) for v in (3, 5, 9))
    good = code([(b".text", 1, 6, 0x1000, b"program!", 0, 0, 0), (b".bss", 8, 3, 0x2000, b"", 0, 0, 0)])
    rows["end"] = good + bytes(33) + o.raw_bundle([(GFX + "gfx942", HSACO)])
    rows.update(lies(good, (4, 1, 1), (5, 1, 2), (40, 8, -4), (40, 8, len(good)), (58, 2, 40), (60, 2, 9999), (62, 2, 99), (62, 2, 1), (54, 2, 9),
                     (56, 2, 9999), (32, 8, -8), (len(good) - 64 * 3 + 32, 8, -1), (len(good) - 64 * 3 + 24, 8, -1), (len(good) - 64 + 32, 8, 0)))
    # numbers that stand in section 0, of sections, of segments, of the section with names
    first = len(good) - 64 * 4
    wide = put(good + le(4, 1, 5) + le(8, 0, 0, 0, 100, 0, 0), 32, 8, len(good), 54, 2, 56, 56, 2, 0xffff, 60, 2, 0, 62, 2, 0xffff,
               first + 32, 8, 4, first + 40, 4, 3, first + 44, 4, 1)
    rows.update({"wide": wide, "wide-few": put(wide, first + 32, 8, 3), "wide-many": put(wide, first + 32, 8, 1 << 58),
                 "wide-names": put(wide, first + 40, 4, 9), "wide-segments": put(wide, first + 44, 4, 9), "segment": put(wide, len(wide) - 24, 8, 9999),
                 "names-no-end": put(good, len(good) - 32, 8, 5), "name-far": put(good, len(good) - 64 * 3, 4, 4096),
                 "many": put(good, 40, 8, len(good) - 8, 60, 2, 0) + le(8, 0, 0, 0, 1 << 20) + bytes(64)})
    return rows


@a_format
def notes():
    good = note("AMDGPU", 32, b"\x80")
    one = code([(b".note", 7, 2, 0x1000, good, 0, 0, 0)])
    rows = {
        "reads": metadata(b"\x83\xa3new\x92\1\x80" + KERNELS + b"\x92\x83\xa7.symbol\xa4k.kd\xa5.name\xa1k\xab.vgpr_count\xcd\1\0"
                          b"\x82\xa5.name\xd9\3wmm\xa5.args\x91\x81\xa5.size\x08" + TARGET + b"\xbaamdgcn-amd-amdhsa--gfx1100"),
        "owner-size": put(one, 64, 4, -16), "size": put(one, 68, 4, -16), "cut": code([(b".note", 7, 2, 0, good[:11], 0, 0, 0)]),
    }
    for i, data in enumerate((b"", b"\x90", b"\x81" + KERNELS, b"\x81" + KERNELS + b"\xdd\xff\xff\xff\xff", b"\x81" + KERNELS + b"\x91\x80",
                              b"\x81" + KERNELS + b"\x91\x81\xa5.name\xa0", b"\x81" + KERNELS + b"\x91\x81\xa5.name\1",
                              b"\x81" + KERNELS + b"\x91\x82\xa5.name\xa1k\xab.vgpr_count\xff",
                              b"\x81" + KERNELS + b"\x91\x82\xa5.name\xa1k\xab.vgpr_count\xcf" + b"\xff" * 8, b"\x81" + TARGET + b"\xd9\xff")):
        rows["metadata-%d" % i] = metadata(data)
    many = code([(b"n", 7, 0, 0, note("x", 1, b"1234") * 1000, 0, 0, 0)] + [(b"n", 7, 0, 0, b"", 0, 0, 0)] * 19)
    shoff, = struct.unpack_from("<Q", many, 40)
    rows["again-and-again"] = put(many, *[n for i in range(2, 21) for n in (shoff + 64 * i + 24, 8, 64, shoff + 64 * i + 32, 8, 20000)])

    def symbol(name, kind=1, value=0x2000):
        return le(4, name) + bytes([kind, 0]) + le(2, 3) + le(8, value, 64)

    def symbols(rows_, names, link=2):
        descriptor = le(4, 1, 2, 3) + bytes(52)
        return code([(b".dynsym", 11, 2, 0, rows_, link, 1, 24), (b".dynstr", 3, 2, 0, names, 0, 0, 0), (b".rodata", 1, 2, 0x2000, descriptor, 0, 0, 0)])
    names = b"\0a.kd\0.kd\0b\0"
    all_ = bytes(24) + symbol(1) + symbol(6) + symbol(1, 2) + symbol(10) + symbol(99) + symbol(1, 1, 0x2001)
    rows.update({"symbols": symbols(all_, names), "symbols-9": symbols(all_, names, 9), "symbols-3": symbols(all_, names, 3),
                 "no-nul": symbols(all_, names[:-1]), "one-long-name": symbols(symbol(1) * 1000, b"\0" + b"n" * 1000 + b".kd\0")})
    return rows


@a_format
def members():
    """Archives in an archive."""
    def member(name, size, data=b""):
        return b"%-16s%-12s%-6s%-6s%-8s%-10s`\n" % (name, b"0", b"0", b"0", b"644", size) + data
    rows = {
        "gnu": member(b"/", b"4", bytes(4)) + member(b"//", b"40", b"a_name_of_some_length.o/\ndir/b.o/\nx.c/\n\n") +
        b"".join(member(n, b"%d" % len(HSACO), HSACO + b"\n" * (len(HSACO) % 2)) for n in (b"/25", b"/0", b"/34", b"a/", b"with space/", b"#1/", b"#1/x")),
        "sym64": member(b"/SYM64/", b"8", bytes(8)) + member(b"a/", b"%d" % len(HSACO), HSACO),
        "bsd": member(b"#1/12", b"14", b"__.SYMDEF\0\0\0xx") + member(b"#1/24", b"%d" % (24 + len(HSACO)), b"a_name_of_some_length.o\0" + HSACO + b"\n" * (len(HSACO) % 2)) +
        member(b"#1/4", b"4", b"b\0\0\0") + member(b"__.SYMDEF SORTED", b"2", b"xx") + member(b"short", b"%d" % len(HSACO), HSACO),
        "rest": b"rest", "cut": member(b"a/", b"3", b"12"), "minus": member(b"a/", b"-1"), "no-size": member(b"a/", b""),
        "space": member(b"a/", b"1 1", b"12"), "half": member(b"a/", b"0", b"x"), "hex": member(b"a/", b"0") + member(b"b/", b"0x1"),
        "no-names": member(b"/0", b"0"), "names-end": member(b"//", b"4", b"ab/\n") + member(b"/4", b"0"), "bsd-name": member(b"#1/4", b"3", b"ab\n\n"),
        "bsd-long": member(b"#1/4097", b"4098", b"x" * 4098), "long": member(b"//", b"5000", b"x" * 4998 + b"/\n") + member(b"/0", b"0"),
    }
    rows = {name: b"!<arch>\n" + data for name, data in rows.items()}
    rows["thin"] = b"!<thin>\n" + member(b"/", b"4", bytes(4)) + member(b"//", b"8", b"../ab/\n\n") + member(b"/0", b"99999") + member(b"b/", b"3")
    rows["thin-nested"] = b"!<thin>\n" + member(b"//", b"4", b"a.a/") + member(b"/0:94", b"3")
    rows["magic"] = b"!<arch>x"
    return rows


# ---- NVIDIA's -----------------------------------------------------------------------------

def a_fatbin(*entries):
    """ENTRIES: (kind, sm, flags, stored bytes, compressed size, decoded size, header)"""
    body = b""
    for kind, sm, flags, data, packed, decoded, header in entries:
        room = len(data) + -len(data) % 8
        body += struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, header, room, packed, 0, 3, 8, sm, 0, 0, flags, 0, decoded)
        body += bytes(max(header - 64, 0)) + data + bytes(room - len(data))
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@a_format
def fatbin():
    def one(kind=2, flags=0, data=b"whatever", packed=0, decoded=0, header=64):
        return a_fatbin((2, 80, 0, b"first 16 bytes..", 0, 0, 64), (kind, 80, flags, data, packed, decoded, header), (2, 90, 0, b"last one", 0, 0, 64))
    plain = b"text that compresses well".ljust(1000, b"\0")
    zstd = zstandard.ZstdCompressor(level=3).compress(plain)
    # LZ4: 25 literals, 970 zeros as a match of the byte before, 5 literals
    lz4 = b"\xff\x0b" + plain[:26] + b"\1\0" + b"\xff" * 3 + bytes([969 - 19 - 3 * 255]) + b"\x50" + bytes(5)
    rows = {"kinds": a_fatbin((2, 90, 0x100000, b"a cubin!", 0, 0, 0x48), (1, 100, 0x200000, b"some PTX\0\0\0", 0, 0, 0x78),
                              (0x40, 80, 0x11, b"a thing", 0, 0, 0x1000), (2, 0, 0, b"any", 0, 0, 64)),
            "mixed": one(1, 0x8000, zstd, len(zstd), 1000), "lz4": one(2, 0x2000, lz4, len(lz4), 1000), "none": a_fatbin() + one(),
            "method": one(2, 0x4000, packed=8, decoded=20), "header-56": one(header=56), "ptx": one(1, 0x8000, bytes(40000), 40000, (256 << 20) + 1),
            "image": one(2, 0x8000, bytes(40000), 40000, (4 << 30) + 1)}
    for flag, data in ((0x8000, zstd), (0x2000, lz4)):
        for i, (packed, decoded) in enumerate(((len(data), 999), (len(data), 1001), (len(data) - 1, 1000), (len(data), len(data) * 40000),
                                               (len(data) + -len(data) % 8 + 1, 1000))):
            rows["%x-%d" % (flag, i)] = one(2, flag, data, packed, decoded)
    rows.update(lies(one(), (4, 2, 2), (6, 2, 15), (8, 8, -8), (8, 8, 72), (24, 8, -64), (20, 4, 57)))
    rows["file-name"] = put(one(), 16 + 32, 4, 60, 16 + 36, 4, 5)
    return rows


def cubin_of(sections=(), flags=0x06005A04, osabi=0x41, abi=8, version=1):
    return put(elf(2, 190, list(sections), flags), 7, 1, osabi, 8, 1, abi, 20, 4, version)


@a_format
def cubin():
    rows = {}
    for i, (osabi, abi, flags, version) in enumerate((
            (0x33, 7, 0x4b054b, 0x7c), (0x33, 7, 0x5a0d5a, 0x7c), (0x33, 7, 0x500556, 0x76), (0x33, 7, 0x640564, 0x80), (0x41, 8, 0x06004b04, 1),
            (0x41, 8, 0x06006402, 1), (0x41, 8, 0x06007902, 1), (0x33, 6, 0x500550, 0x6e), (0x41, 9, 0x0700c802, 1), (0x41, 8, 0, 1))):
        rows["abi-%d" % i] = cubin_of([], flags, osabi, abi, version)

    def tool(command, at=7):
        desc = le(4, 2, 0, 1, 0, 0, at) + b"\0ptxas\0" + command + b"\0"
        return note("NVIDIA Corp", 2000, desc)
    for i, command in enumerate((b"-arch sm_90a -m 64 ", b"-arch=sm_90a", b"--gpu-name sm_90f -O3", b"-arch sm_90", b"-arch sm_900a -m 64", b"-arch xsm_90a",
                                 b"-arch sm_90ab", b"-arch sm_80a", b"-o sm_90.x -arch sm_90a", b"")):
        rows["command-%d" % i] = cubin_of([(b".note.nv.tkinfo", 7, 0, 0, tool(command), 0, 0, 0)])
    rows["command-far"] = cubin_of([(b".note.nv.tkinfo", 7, 0, 0, tool(b"-arch sm_90a", -1), 0, 0, 0)])
    rows["command-cut"] = cubin_of([(b".note.nv.tkinfo", 7, 0, 0, tool(b"-arch sm_90a")[:40], 0, 0, 0)])
    for i, data in enumerate((b"\2\x09\1\0\2\2\1\0", b"\2\x09\0\0", b"\2\x09\1", b"\2\x08\1\0")):
        rows["compat-%d" % i] = cubin_of([(b".nv.compat", 0x70000086, 0, 0, data, 0, 0, 0)])
    rows["cuinfo"] = cubin_of([(b".note.nv.cuinfo", 7, 0, 0, note("NVIDIA Corp", 1000, le(2, 2, 80, 131, 0)), 0, 0, 0)])
    return rows


@a_format
def cubin_kernels():
    def function(name, bind=1, other=0, section=1):
        return le(4, name) + bytes([bind << 4 | 2, other]) + le(2, section) + bytes(16)
    info = bytes([4, 10, 8, 0, 1, 0, 0, 0, 0x60, 1, 20, 0, 3, 0x19, 20, 0, 4, 5, 12, 0, 32, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 9, 9, 9])
    frame = le(4, 0x00081104, 1, 48, 0x00081104, 9, 48)

    def old(symbols, names=b"\0k\0other\0device\0", link=2, plain=False):
        return cubin_of([(b".text.k", 1, 6, 0, info[:8], 0, 23 << 24 | 5, 0), (b".strtab", 3, 0, 0, names, 0, 0, 0),
                         (b".symtab", 2, 0, 0, symbols, link, 1, 24)] + [] if plain else
                        [(b".text.k", 1, 6, 0, info[:8], 0, 23 << 24 | 5, 0), (b".strtab", 3, 0, 0, names, 0, 0, 0),
                         (b".symtab", 2, 0, 0, symbols, link, 1, 24), (b".nv.info", 0x70000000, 0, 0, frame, 0, 0, 0),
                         (b".nv.info.k", 0x70000000, 0, 0, info, 0, 0, 0), (b".nv.shared.k", 8, 0, 0, b"", 0, 0, 0)],
                        0x560556, 0x33, 7, 0x76)
    all_ = bytes(24) + function(1, 1, 0x10) + function(3, 0, 0x10) + function(9)
    return {"old": old(all_), "no-entry": old(bytes(24) + function(1) + function(3, 0) + function(9, 2) + function(3, 1, 0, 0)),
            "nothing-said": old(bytes(24) + function(1) + function(3, 0) + function(9, 2), plain=True), "name": old(function(17, 1, 0x10)),
            "no-nul": old(function(9, 1, 0x10), b"\0k\0other\0device"), "names": old(all_, link=1), "cut": old(all_)[:-70]}


PTX_HEAD = ".version 8.0\n.target sm_80\n"


@a_format
def ptx():
    texts = {
        "kernels": PTX_HEAD + """// .entry comment() {}
/* .entry comment() {} */
.file 1 ".entry string() { \\" .entry string2() {}"
.extern .entry declared(.param .u64 a);
.func inner() { .entry nested() {} }
.visible .entry $a_1(.param .u8 a, .param .align 8 .b8 b[3][2], .param .u32 c) .maxntid 8, 4, 2 .minnctapersm 2 { ret; }
.weak .entry none .reqntid 32 { { } .entry inside() { } }
.entry pointer(.param .u8 a, .param .u64 .ptr .global .align 256 p)
.maxntid 1024
{ }
.entry odd(.param .what a) .maxntid {}
.entry huge(.param .b8 a[99999999999]) .maxntid 99999, 2, 2 {}
.entry empty() {}
""",
        "two": PTX_HEAD + "\0\0\0" + PTX_HEAD, "comments": "// more of it\n" * 280 + PTX_HEAD, "name": PTX_HEAD + ".entry " + "n" * 4096 + "() {}",
        "long-name": PTX_HEAD + ".entry " + "n" * 4097 + "() {}", "cut": ".version 8.0", "comma": ".version 8.0\n.target ,",
        "foo": ".version 8.0\n.target foo\n.text\n", "by-nvidia": "// Generated by NVIDIA NVVM Compiler\n//\n",
        "by-llvm": "//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 7.0\n.target sm_70\n",
    }
    for i, target in enumerate(("sm_90a", "sm_100f", "sm_20, texmode_independent,debug", "compute_30")):
        texts["target-%d" % i] = ".version 7.8\n.target %s\n.address_size 32\n" % target
    for i, text in enumerate(("// a comment\nint main(void);\n", "/* .version 8.0\n.target sm_80 */\nint x;\n", "/*/ .version 8.0\n.target sm_80\n",
                              ".version", ".versions 1.0\n.target sm_80", ".version \"01.01\"\n.target sm_80", ".version 8.x\n.target sm_80",
                              ".version 8.0\n.text\n", ".version 8.0\n.targets sm_80", ".version 8.0 .0\n.target sm_80", "# .version 8.0\n" + PTX_HEAD,
                              "x\n" + PTX_HEAD, "\n\n/* */ // x\n" + PTX_HEAD)):
        texts["text-%d" % i] = text
    return {name: text.encode() for name, text in texts.items()}


def tile(*parts, version=(13, 1)):
    return b"\x7fTileIR\0" + bytes(version) + b"\0\0" + b"".join(parts)


def tile_section(number, alignment, payload, at):
    head = bytes([number | (0x80 if alignment > 1 else 0)]) + varint(len(payload)) + (varint(alignment) if alignment > 1 else b"")
    return head + (fill(at + len(head), alignment) if alignment > 1 else b"") + payload


def tile_module(functions, version=(13, 3)):
    """FUNCTIONS are the bytes after their count."""
    out = tile(version=version)
    for number, alignment, payload in ((2, 8, functions), (5, 4, table([b"\x10", b"\3", b"\x0d"], 4)), (1, 4, table([
            b"add_Kt1_Si32", b"mul", b"helper", b"sm_100", b"sm_120", b"default", b"occupancy", b"cga", b"tma"], 4))):
        out += tile_section(number, alignment, payload, len(out))
    return out + b"\0"


@a_format
def tileir():
    hints = [("default", []), ("sm_100", [("occupancy", 4), ("flag", True), ("num_cta_in_cga", 300)])]
    functions = [("helper", PRIVATE, [], bytes(300)), ("f_Kt1_Si32", ENTRY, hints, b""), ("plain", ENTRY, [], b"\x5c\0\0")]
    rows = {"v13.%d" % v: Module((13, v), functions if v > 2 else [functions[0], (*functions[1][:2], hints[1:], b"")], [("g", b"abc")], v).encode()
            for v in range(6)}
    rows["two-targets"] = Module((13, 4), [("f", ENTRY, [("sm_100", []), ("sm_120", []), ("default", [("tma", True)])], b"")]).encode()
    rows["other-order"] = Module((13, 2), functions[::2]).encode(lambda s: [(n, a, p) for (n, _, p), a in zip(s[::-1], (1, 64, 2, 1, 1))])
    rows["empty-twice"] = 2 * Module((13, 1), []).encode()
    for i, f in enumerate((b"\x09", b"\0\3", b"\0\0\x08", b"\0\0\6\1\x0a", b"\0\0\6\1\x0b\1\3\x0b", b"\0\0\6\1\x0b\1\3\x0a\1\6\2", b"\0\0\6\1\x0b\1\3\x0a\1\6\1\7",
                           b"\0\0\2\1\5\0", b"\0\0\2\1" + b"\x80" * 9 + b"\2", b"\0\0\2\1", b"\0\0\2\1\0!")):
        rows["function-%d" % i] = tile_module(b"\1" + f)
    rows["same-name"] = tile_module(b"\2" + b"\0\0\2\1\0" * 2)
    rows["behind"] = tile_module(b"\0") + b"!"
    rows["no-end"] = tile_module(b"\0")[:-1]
    return rows


@a_format
def tileir_sections():
    rows = {"section-%d" % i: tile(s) for i, s in enumerate((
        b"", b"\0", b"\1\0\0", b"\7\0\0", b"\x80\0\1\0", b"\1\0\1\0\0", b"\1\5\0", b"\x81\0\0\0", b"\x81\0\3\0", b"\x81\0\x40\0",
        b"\1" + b"\xff" * 9 + b"\1"))}
    for i, s in enumerate((b"", b"\1", b"\1\xcb\xcb\xcb\0\0\0", b"\xff" * 9 + b"\1" + bytes(6), b"\1\xcb\xcb\xcb\1\0\0\0",
                           b"\2\xcb\xcb\xcb\1\0\0\0\0\0\0\0ab", b"\1\xcb\xcb\xcb\0\0\0\0a\0b", b"\0")):
        # a kernel that is named by string 0
        rows["strings-%d" % i] = tile(b"\2\6\1\0\0\2\0\0\5\x09\1\xcb\xcb\xcb\0\0\0\0\x10", tile_section(1, 1, s, 0), b"\0")
    return rows


# ---- SPIR-V and bitcode -------------------------------------------------------------------

def words(*values, order="little"):
    return b"".join(v.to_bytes(4, order) for v in values)


# kernels "first" and "f", a shader; nothing is read after the first function
SPIRV = (0x07230203, 0x10400, 0x2b0016, 36, 0, 2 << 16 | 17, 6, 5 << 16 | 15, 6, 1, 0x73726966, 0x74, 6 << 16 | 15, 5, 2, 0x64616873, 0x7265, 7,
         4 << 16 | 15, 6, 3, 0x66, 5 << 16 | 54, 1, 2, 3, 4, 0)


@a_format
def spirv():
    good = words(*SPIRV)
    rows = {"little": good, "big": words(*SPIRV, order="big"), "amd": put(good, 8, 4, 0xffff), "upper": put(good, 8, 4, 0xffff0016),
            "translator": put(good, 8, 4, 0x6000e), "unknown": put(good, 8, 4, 0x12340001)}
    rows.update(lies(good, (20, 4, 17), (20, 4, 100 << 16 | 17), (28, 4, 3 << 16 | 15), (44, 4, 0x74747474)))
    rows.update({"cut-%d" % n: good[:n] for n in (4, 19, 20, 22)})
    rows["bitcode"] = b"BC\xc0\xde" + bytes(100)
    for i, (at, size) in enumerate(((20, 8), (19, 8), (0, 8), (20, 13), (33, 0), (20, -1), (-1, 8))):
        rows["wrapper-%d" % i] = le(4, 0x0b17c0de, 0, at, size, 7) + b"BC\xc0\xdecode" + bytes(4)
    return rows


class Bits:
    """Bitcode, bit by bit."""

    def __init__(self):
        self.bits, self.open = [], []
        self.put(0xdec04342, 32)

    def put(self, value, n):
        self.bits += [value >> i & 1 for i in range(n)]
        return self

    def vbr(self, value, n):
        while value >> (n - 1):
            self.put(value & ((1 << (n - 1)) - 1) | 1 << (n - 1), n)
            value >>= n - 1
        return self.put(value, n)

    def align(self):
        return self.put(0, -len(self.bits) % 32)

    def enter(self, number, outer=4, width=4):
        self.put(1, outer).vbr(number, 8).vbr(width, 4).align().put(0, 32)
        self.open.append((len(self.bits), width))
        return self

    def leave(self):
        at, width = self.open.pop()
        self.put(0, width).align()
        n = (len(self.bits) - at) // 32
        self.bits[at - 32:at] = [n >> i & 1 for i in range(32)]
        return self

    def record(self, code_, text, width=4):
        self.put(3, width).vbr(code_, 6).vbr(len(text), 6)
        for c in text:
            self.vbr(c, 6)
        return self

    def define(self, code_, element=(1, 8), width=4):
        """An array of numbers of some bits."""
        self.put(2, width).vbr(3, 5).put(1, 1).vbr(code_, 8).put(0, 1).put(3, 3).put(0, 1).put(element[0], 3)
        return self.vbr(element[1], 5) if element[0] < 3 else self

    def defined(self, number, text, bits=8, width=4):
        self.put(number, width).vbr(len(text), 6)
        for c in text:
            self.put(c, bits)
        return self

    def bytes(self):
        return bytes(sum(b << i for i, b in enumerate(self.bits[at:at + 8])) for at in range(0, len(self.bits), 8))


    def blob(self, number, data):
        """A block of one blob, as LLVM writes it."""
        self.enter(number, 2, 3).put(2, 3).vbr(2, 5).put(1, 1).vbr(1, 8).put(0, 1).put(5, 3).put(4, 3).vbr(len(data), 6).align()
        for c in data:
            self.put(c, 8)
        return self.align().leave()


@a_format
def bitcode():
    def module(text, width=3, define=True):
        b = Bits().enter(13, 2, 5).record(1, b"LLVM", 5).leave().enter(8, 2, width).record(1, b"\2", width)
        b.enter(17, width).record(2, b"not the triple: in another block").leave()
        if define:
            b.put(2, width).vbr(4, 5).put(1, 1).vbr(1000, 8).put(0, 1).put(1, 3).vbr(40, 5).put(0, 1).put(3, 3).put(0, 1).put(4, 3)
        return (b if text is None else b.record(2, text, width)).record(3, b"e-m:e", width).leave().bytes()
    rows = {"width-%d" % w: module(b"amdgcn-amd-amdhsa", w) for w in range(2, 33)}
    rows.update({"empty": module(b""), "none": module(None), "controls": module(b"a\nb~"), "long": module(b"x" * 400), "plain": module(b"spir64", 4, False),
                 "cut": module(b"amdgcn-amd-amdhsa")[:-60], "other": Bits().enter(13, 2).leave().bytes()})
    return rows


def embedding(image):
    """A module with IMAGE as a constant, in every way of writing it, and where it is none."""
    b = Bits().enter(13, 2).record(1, b"LLVM").leave().enter(8, 2)
    b.enter(0).record(1, b"\x0e").define(8).record(1, b"\x0b").define(8).leave()
    b.enter(11).record(1, b"\1").defined(4, b"text").defined(4, image).define(9).defined(5, image)
    b.record(22, image).record(7, image).record(8, image[:3])
    b.define(8, (4, 0)).defined(6, b"\0\1\2\x3f", 6).define(8, (2, 6)).put(7, 4).vbr(2, 6).vbr(77, 6).vbr(1, 6)
    return b.leave().record(8, image).leave().bytes()


@an_input
def embedded(d):
    """Bitcode that has offload binaries in it, and bitcode that is damaged."""
    image = o.offload_binary(b"the image", 2, 1, arch="gfx942", triple="amdgcn-amd-amdhsa")
    good = embedding(image)
    files = {"good": good, "wrapped": le(4, 0x0b17c0de, 0, 20, len(good), 7) + good + bytes(8), "wrapped-cut": (
        le(4, 0x0b17c0de, 0, 20, len(good) + 4, 7) + good), "cut": good[:-8], "cut-4": good[:4], "none": Bits().enter(13, 2).leave().bytes(),
        "no-magic": embedding(b"no image here, but as many bytes"), "undefined": Bits().enter(8, 2).put(4, 4).leave().bytes(),
        "endless": Bits().enter(8, 2).define(8, (1, 0)).put(4, 4).vbr((1 << 64) - 1, 6).leave().bytes(),
        "wide": Bits().enter(8, 2).define(8, (1, 65)).leave().bytes(), "narrow": Bits().enter(8, 2, 1).put(0, 40).align().bytes(),
        "encoding": Bits().enter(8, 2).define(8, (6, 0)).leave().bytes(), "vbr-1": Bits().enter(8, 2).define(8, (2, 1)).leave().bytes()}
    for name, data in files.items():
        write("%s/%s.bc" % (d, name), data)


@an_input
def objects(d):
    """An offload binary for each object that an archive's index is made of."""
    def symbol(name, info, section):
        return le(4, name) + bytes([info, 0]) + le(2, section) + bytes(16)

    def an_elf(rows, link=2, names=b"\0local\0file\0undefined\0global\0weak\0common\0", row=24):
        return elf(1, 62, [(b".symtab", 2, 0, 0, rows, link, 2, row), (b".strtab", 3, 0, 0, names, 0, 0, 0)])
    rows = b"".join(symbol(*r) for r in ((0, 0, 0), (1, 2, 1), (7, 0x14, 0xfff1), (12, 0x10, 0), (22, 0x12, 1), (29, 0x21, 1), (34, 0x11, 0xfff2), (1, 0x13, 1)))
    strings = b"producerfirstsecondundefinedlocalllvm.used"

    def table(n=5, at=36):
        places = ((8, 5, 1 << 10), (19, 9, 1 << 10 | 1 << 3), (28, 5, 0), (33, 9, 1 << 10 | 1 << 11), (13, 6, 1 << 10 | 1 << 4 | 1 << 12))
        return le(4, 4, 0, 0, 0, 0, 0, 0, at, n) + b"".join(le(4, at_, size, 0, 0, 0, flags) for at_, size, flags in places)

    def a_module(symbols, names=strings, padding=b""):
        return Bits().blob(13, b"identification").blob(25, symbols).blob(23, names).bytes() + padding
    good = a_module(table())
    files = {
        "elf": an_elf(rows), "elf-again": an_elf(rows), "no-symbols": elf(1, 62, []), "bitcode": good,
        "wrapped": le(4, 0x0b17c0de, 0, 20, len(good), 7) + good + bytes(8), "carried": elf(1, 62, [(b".llvmbc", 1, 0, 0, good, 0, 0, 0)]),
        "empty-bitcode": b"BC\xc0\xde", "row": an_elf(rows, row=16), "link": an_elf(rows, 9), "no-names": an_elf(rows, 1),
        "far-name": an_elf(rows + symbol(99, 0x12, 1)), "few-rows": a_module(table(6)), "short": a_module(table()[:30]), "far": a_module(table(), strings[:20]),
        "padding-8": good + bytes(8), "cut": good[:-8], "one-block": Bits().blob(25, table()).bytes(),
        "no-blob": Bits().enter(25, 2).record(1, b"x").leave().enter(23, 2).leave().bytes(), "text": b"text",
    }
    for name, data in files.items():
        write("%s/%s" % (d, name), o.offload_binary(data, 1, 4, arch="gfx942"))
    write(d + "/all", b"".join(o.offload_binary(files[n], 1, 4, arch=n) for n in ("text", "elf", "elf-again", "bitcode")))


def overlapping(n, size, content=b""):
    """The header of a bundle of N entries that are all the same SIZE bytes."""
    at = 32 + n * (24 + len(GFX) + 6)
    return b"__CLANG_OFFLOAD_BUNDLE__" + le(8, n) + (le(8, at, size, len(GFX) + 6) + GFX.encode() + b"gfx900") * n + content


@an_input
def bombs(d):
    """Small files that would take much time or memory."""
    inner = overlapping(1, 64 << 20)
    size = len(inner) + (64 << 20)
    outer = overlapping(4096, size)
    write(d + "/work.a", b"!<arch>\n%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"a/", 0, 0, 0, 0o644, len(outer) + size) + outer + inner + b"leaf")
    os.truncate(d + "/work.a", 68 + len(outer) + size)
    plain = o.raw_bundle([(GFX + "gfx900", b"leaf")]) + bytes(1 << 20)
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    boast = b"CCOB" + le(2, 3, 1) + le(8, 32 + (1 << 18), 4 << 30) + bytes(8) + frame + bytes((1 << 18) - len(frame))
    write(d + "/memory.ccob", o.ccob(o.raw_bundle([(GFX + "gfx900", boast)])))
    deep = HSACO
    for _ in range(17):
        deep = o.ar([("a", deep)])
    write(d + "/deep.a", deep)
    write(d + "/entries", o.ccob(o.raw_bundle([("", b"")] * 4096)) * 257)


GOOD = [("bundle", "good"), ("ccob", "v2-zstd"), ("ccob", "v3-zlib"), ("offload_binary", "v1"), ("offload_binary", "v2"), ("offload_binary", "zstd"),
        ("text_bundle", "good"), ("code_object", "wide"), ("notes", "reads"), ("notes", "symbols"), ("members", "gnu"), ("members", "bsd"),
        ("fatbin", "mixed"), ("fatbin", "lz4"), ("cubin", "command-0"), ("cubin_kernels", "old"), ("ptx", "kernels"), ("tileir", "v13.3"),
        ("spirv", "little"), ("bitcode", "width-3")]


@an_input
def format_damage(d):
    """Objects and containers that end early, or have wrong bits."""
    for f, name in GOOD:
        good = FORMATS[f]()[name]
        places = sorted({len(good) * i // 50 for i in range(1, 50)})
        write("%s/cut/%s-%s.a" % (d, f, name), o.ar([("%d" % n, good[:n]) for n in places]))
        write("%s/flip/%s-%s.a" % (d, f, name), o.ar([("%d" % n, put(good, n, 1, good[n] ^ 1 << n % 8)) for n in places]))


@an_input
def strip_lies(d):
    """A code object with debugging information, in each of which one field of a section or segment is another."""
    good = sample("../fuzz/corpus/strip/good-build-id")
    shoff, = struct.unpack_from("<Q", good, 40)
    n_segments, _, n_sections = struct.unpack_from("<3H", good, 56)
    for i in range(n_sections):
        for field, size, change in ((4, 4, 1), (4, 4, 8), (8, 8, 2), (16, 8, 8), (24, 8, 16), (24, 8, 0x370), (32, 8, 24), (40, 4, 3), (44, 4, 1), (48, 8, 24), (56, 8, 8)):
            at = shoff + 64 * i + field
            value = int.from_bytes(good[at:at + size], "little")
            write("%s/section-%02d-%d-%d.hsaco" % (d, i, field, change), put(good, at, size, value ^ change))
    for i in range(n_segments):
        for field, size, change in ((0, 4, 3), (8, 8, 16), (16, 8, 4096), (32, 8, 64), (40, 8, 64), (48, 8, 4096)):
            at = 64 + 56 * i + field
            value = int.from_bytes(good[at:at + size], "little")
            write("%s/segment-%02d-%d.hsaco" % (d, i, field), put(good, at, size, value ^ change))
        # a part of .text, without a section in it
        at = 64 + 56 * i
        write("%s/segment-%02d-part.hsaco" % (d, i), put(good, at + 8, 8, 0x900, at + 16, 8, 0x1900, at + 24, 8, 0x1900, at + 32, 8, 8, at + 40, 8, 8))
