# SPDX-License-Identifier: MIT
"""Inputs of the cases that read: archives with one lie each, and every format of device code."""
import hashlib
import os
import struct

import msgpack
import zstandard

import mkarchive
import mkfat
import mkoffload
from inputs import an_input, write
from mkarchive import Archive, Pairs, Raw, noise, raw_str
from mkoffload import ccob, code_object, elf_object, offload_binary, raw_bundle
from readkpack import xxh3_64, xxh3_128


# ---- archives that break one rule of kpack-format(5) each ---------------------------------

def two(scheme="zstd-per-kernel", **how):
    a = Archive(scheme, **how)
    a.add("lib/a.so#0", "gfx1100", b"data")
    a.add("lib/b.so#0", "gfx1100", b"datb")
    return a


def bad_entry(scheme="zstd-per-kernel", data=b"data", **how):
    """good#0, which stays readable, and bad#0."""
    a = Archive(scheme)
    a.add("good#0", "gfx1100", b"good")
    a.add("bad#0", "gfx1100", data, **how)
    return a.bytes()


@an_input
def lies_header(d):
    whole = two().bytes()
    files = {
        "good": whole, "empty": b"", "short": whole[:15], "head-only": whole[:16], "zeros": bytes(4096),
        "magic": two().bytes(magic=b"KPAC"), "version-0": two().bytes(version=0),
        "version-2": two().bytes(version=2), "version-3": two().bytes(version=3),
        "unfinished": two().bytes(toc_offset=0), "toc-inside": two().bytes(toc_offset=8),
        "toc-beyond": two().bytes(toc_offset=1 << 20), "toc-far": two().bytes(toc_offset=2**64 - 1),
        "toc-at-end": two().bytes(toc_offset=len(whole)), "toc-in-blob": two().bytes(toc_offset=64),
        "padding": two().bytes(padding=bytes(20) + b"x" + bytes(27)),
        "no-padding": two().bytes(top={"zstd_offset": 16}, padding=b"", toc_offset=16 + 46),
        "cut-table": whole[:-1], "cut-blob": whole[:80], "tail": two().bytes(tail=b"x"),
        "gap": two().bytes(gap=b"x" * 7),
    }
    for name, data in files.items():
        write("%s/%s.kpack" % (d, name), data)


@an_input
def lies_table(d):
    def made(**how):
        return two(index=how.pop("index", False)).bytes(**how)
    files = {
        "group-missing": made(drop=["group_name"]), "family-missing": made(drop=["gfx_arch_family"]),
        "arches-missing": made(drop=["gfx_arches"]), "toc-missing": made(drop=["toc"]),
        "version-missing": made(drop=["format_version"]), "version-other": made(top={"format_version": 2}),
        "scheme-missing": made(drop=["compression_scheme"]), "scheme-other": made(top={"compression_scheme": "lz4"}),
        "scheme-number": made(top={"compression_scheme": 5}), "scheme-none": made(top={"compression_scheme": "none"}),
        "scheme-shared": made(top={"compression_scheme": "zstd-shared"}),
        "group-number": made(top={"group_name": 5}), "group-control": made(top={"group_name": "a\nb"}),
        "arches-other": made(top={"gfx_arches": ["gfx1030"]}), "arches-number": made(top={"gfx_arches": [5]}),
        "arches-control": made(top={"gfx_arches": ["gfx1100", "a\x1b"]}), "arches-text": made(top={"gfx_arches": "gfx1100"}),
        "key-number": made(top={7: 7}), "text-not-utf8": made(top={"note": raw_str(b"a\xffb")}),
        "toc-array": made(top={"toc": []}), "toc-count": made(top={"toc": Raw(b"\xdf\xff\xff\xff\xff")}),
        "arches-count": made(top={"gfx_arches": Raw(b"\xdd\xff\xff\xff\xff")}),
        "deep": made(top={"x": Raw(b"\x91" * 1000 + b"\xc0")}), "never": made(top={"x": Raw(b"\xc1")}),
        "not-a-map": two().bytes()[:110] + b"\x93\1\2\3",
        "unknown": made(top={"new": [1, {"a": b"b"}]}), "bit": made().replace(b"group_name", b"group_nama"),
        "twice": made().replace(b"gfx_arch_family", b"group_name\0\0\0\0\0"),
    }
    a = two()
    a.toc.append(("lib/a.so#0", a.places["lib/b.so#0"]))
    files["key-twice"] = a.bytes()
    a = two()
    a.places["lib/a.so#0"].append(("gfx1100", {"type": "hsaco", "ordinal": 1, "original_size": 4}))
    files["arch-twice"] = a.bytes()
    a = two()
    a.toc.reverse()
    files["order"] = a.bytes(sort=False)
    a = two()
    a.add("lib/a.so#0", "gfx90a:xnack+:sramecc-", b"odd")
    a.add("lib/c.so#0", "no target", b"odd")
    files["arch-spelling"] = a.bytes(top={"gfx_arches": ["gfx1100", "gfx90a:xnack+:sramecc-", "no target"]})
    a = two()
    a.add("lib/c.so#0", "gfx1030", b"datc", type="hsaco", entry={"type": "hsaco", "typd": "x"}, drop=["type"])
    files["type-bit"] = a.bytes()
    for name, data in files.items():
        write("%s/%s.kpack" % (d, name), data)


@an_input
def lies_entry(d):
    files = {}
    for scheme in "none", "zstd-per-kernel":
        s = scheme[:4]
        files.update({
            "ordinal-" + s: bad_entry(scheme, entry={"ordinal": 2}),
            "ordinal-33-bits-" + s: bad_entry(scheme, entry={"ordinal": 2**32}),
            "ordinal-negative-" + s: bad_entry(scheme, entry={"ordinal": -1}),
            "size-more-" + s: bad_entry(scheme, entry={"original_size": 5}),
            "size-less-" + s: bad_entry(scheme, entry={"original_size": 3}),
            "size-missing-" + s: bad_entry(scheme, drop=["original_size"]),
            "size-huge-" + s: bad_entry(scheme, entry={"original_size": 2**63}),
            "hash-" + s: bad_entry(scheme, xxh3=bytes(16)),
            "empty-" + s: bad_entry(scheme, data=b""),
        })
    for name, how in {
            "ordinal-missing": {"drop": ["ordinal"]}, "ordinal-text": {"entry": {"ordinal": "1"}},
            "size-negative": {"entry": {"original_size": -5}}, "type-number": {"entry": {"type": 7}},
            "type-missing": {"drop": ["type"]}, "type-slash": {"type": "../x"}, "type-long": {"type": "x" * 256},
            "type-other": {"type": "bc", "data": code_object("gfx1100", 300, "t")},
            "meta-number": {"entry": {"metadata": 5}}, "meta-hash": {"xxh3": b"short"}, "meta-path": {"path": 5},
            "meta-mode": {"mode": 1 << 20}, "meta-target": {"target": []}, "meta-chunk": {"chunk": "x", "stored": Archive().frame(b"data")},
            "meta-library": {"library": 5}, "meta-key": {"entry": {"metadata": {5: 5}}},
            "meta-deep": {"deep": Raw(b"\x91" * 1000 + b"\xc0")}, "no-hash": {"hash": False}}.items():
        files[name] = bad_entry(**how)
    a = two()
    a.toc.append(("bad#0", 5))
    files["arches-number"] = a.bytes()
    a = two()
    a.toc.append(("bad#0", Pairs([("gfx1100", 5)])))
    files["entry-number"] = a.bytes()
    for name, data in files.items():
        write("%s/%s.kpack" % (d, name), data)


@an_input
def lies_names(d):
    def one(path=None, key="x#0", arch="gfx1100", kind="hsaco"):
        a = Archive()
        a.add("good#0", "gfx1100", b"good")
        a.add(key, arch, b"evil", type=kind, **({"path": path} if path is not None else {}))
        return a.bytes()
    paths = ["../x", "a/../../x", "/x", "", ".", "..", "a/./b", "a//b", "a/", "toc/good/x", ".kpackfs/x",
             "x" * 256, "a\nb", "a\x7fb", "a\0b", "d/" * 2100 + "f"]
    keys = ["../../x#0", "/x#0", "..#0", "#0", "", "/", "k/./x", "k//x", "k" * 256 + "#0", "nul\0#0", "esc\x1b[2J#0",
            raw_str(b"broken\xff#0"), "l" * 4097, "x#00", "x#1x", "x#4294967296"]
    for i, path in enumerate(paths):
        write("%s/path-%02d.kpack" % (d, i), one(path=path))
    for i, key in enumerate(keys):
        write("%s/key-%02d.kpack" % (d, i), one(key=key))
    for i, arch in enumerate(["../x", "..", "a/b", "x" * 256, "gfx\x1b", ""]):
        write("%s/arch-%d.kpack" % (d, i), one(arch=arch))
    a = Archive()
    a.add("one", "generic", b"file", path="share/x")
    a.add("two", "generic", b"below", path="share/x/y")
    a.add("three", "generic", b"other", path="share/z")
    a.add("four", "generic", b"other bytes", path="share/z")
    a.add("five", "generic", b"other", path="share/z")
    a.write(d + "/clash.kpack")


@an_input
def lies_content(d):
    data = noise(9000)
    frame = Archive().frame(data)
    half = len(data) // 2

    def made(stored, **how):
        return bad_entry(data=data, stored=stored, **how)
    chunks = Archive().seekable(data, 4096)
    files = {
        "good": made(frame), "flip": made(frame[:500] + bytes([frame[500] ^ 1]) + frame[501:]),
        "cut": made(frame[:-9]), "junk": made(b"this is no frame at all"), "nothing": made(b""),
        "no-size": made(Archive().frame(data, content_size=False)),
        "no-size-no-original": made(Archive().frame(data, content_size=False), drop=["original_size"]),
        "two-frames": made(Archive().frame(data[:half]) + Archive().frame(data[half:])),
        "skippable": made(struct.pack("<II", 0x184D2A55, 3) + b"abc" + frame + struct.pack("<II", 0x184D2A50, 0)),
        "after": made(frame + b"junk"), "no-checksum": made(Archive(checksum=False).frame(data)),
        "more-than-said": made(Archive().frame(data + b"x")), "dictionary": made(zstandard.ZstdCompressor(
            dict_data=zstandard.ZstdCompressionDict(data[:5000], dict_type=zstandard.DICT_TYPE_RAWCONTENT)).compress(data)),
        "chunks": made(chunks, chunk=4096), "chunks-other": made(chunks, chunk=8192), "chunks-small": made(chunks, chunk=3),
        "chunks-huge": made(chunks, chunk=1 << 27), "chunks-no-table": made(frame, chunk=4096),
        "chunks-magic": made(chunks[:-1] + b"x", chunk=4096), "chunks-hash": made(chunks, chunk=4096, xxh3=bytes(16)),
        "chunks-row": made(chunks[:-20] + b"\1" + chunks[-19:], chunk=4096),
        "chunks-count": made(chunks[:-9] + struct.pack("<I", 9) + chunks[-5:], chunk=4096),
        "chunks-size": made(chunks, chunk=4096, entry={"original_size": 8192}),
        "chunks-flip": made(chunks[:300] + bytes([chunks[300] ^ 4]) + chunks[301:], chunk=4096),
    }
    whole = two().bytes()
    at = whole.index(struct.pack("<Q", 4), 64)  # the first word of frame_index
    second = struct.unpack_from("<Q", whole, at + 8)[0]
    plain = two(index=False).bytes()
    files.update({
        "index-second": whole[:at + 8] + struct.pack("<Q", second + 1) + whole[at + 16:],
        "index-first": whole[:at] + struct.pack("<Q", 5) + whole[at + 8:],
        "index-short": two().bytes(top={"frame_index": bytes(5)}), "index-text": two().bytes(top={"frame_index": "x"}),
        "index-none": plain, "count-more": plain[:64] + struct.pack("<I", 3) + plain[68:],
        "count-less": plain[:64] + struct.pack("<I", 1) + plain[68:],
        "count-huge": plain[:64] + b"\xff\xff\xff\xff" + plain[68:],
        "count-limit": plain[:64] + struct.pack("<I", (1 << 20) + 1) + plain[68:],
        "frame-size": plain[:68] + b"\xff\xff\xff\xff" + plain[72:],
    })
    for i, value in enumerate(["4", -1, 2**63, 1.5, None, 16]):
        files["offset-%d" % i] = two(index=False).bytes(top={"zstd_offset": value})
        files["size-%d" % i] = two(index=False).bytes(top={"zstd_size": value})
    files["offset-missing"] = two().bytes(drop=["zstd_offset"])
    files["size-missing"] = two().bytes(drop=["zstd_size"])
    for name, blobs in {
            "outside": [{"offset": 1 << 40, "size": 4}] * 2, "large": [{"offset": 64, "size": 1 << 40}] * 2,
            "wraps": [{"offset": 2**64 - 2, "size": 4}] * 2, "negative": [{"offset": -1, "size": 4}] * 2,
            "no-size": [{"offset": 64}] * 2, "in-table": [{"offset": 66, "size": 9}] * 2,
            "in-header": [{"offset": 0, "size": 4}] * 2, "unused": [{"offset": 64, "size": 4}] * 3,
            "number": 5, "count": Raw(b"\xdd\xff\xff\xff\xff")}.items():
        files["blobs-" + name] = two("none").bytes(top={"blobs": blobs})
    files["blobs-missing"] = two("none").bytes(drop=["blobs"])
    for name, bytes_ in files.items():
        write("%s/%s.kpack" % (d, name), bytes_)


def with_hash(top):
    table = mkarchive.pack(Pairs(list(top.items()) + [("table_hash", bytes(16))]))[:-16]
    return table + xxh3_128(table)


@an_input
def lies_hashes(d):
    """Hashes of the table and of stored pieces, in an archive that is not compressed."""
    large = noise(300000, 3)

    def made(pieces, damage=None, table=with_hash, scheme="none", more={}):
        a = Archive(scheme)
        a.add("small#0", "gfx1100", b"good")
        a.add("large#0", "gfx1100", large, hash=False)
        whole = a.bytes()
        at = struct.unpack_from("<Q", whole, 8)[0]
        top = msgpack.unpackb(whole[at:])
        begin, size = (top["blobs"][1]["offset"], top["blobs"][1]["size"]) if scheme == "none" else (
            64 + 8 + len(a.blobs[0]) + 4, len(a.blobs[1]))
        if pieces is not None:
            top["piece_hashes"] = pieces(whole[begin:begin + size])
        top.update(more)
        out = bytearray(whole[:at] + table(top))
        if damage is not None:
            out[begin + damage] ^= 1
        return bytes(out)

    def pieces(stored, ordinal=1, n=None):
        return struct.pack("<I", ordinal) + b"".join(
            struct.pack("<Q", xxh3_64(stored[i:i + 65536])) for i in range(0, len(stored), 65536)[:n])

    def wrong(stored):
        return pieces(stored)[:-1] + b"x"

    def rewritten(top):
        """A program that knows none of the hashes copies them, and appends what it has made anew."""
        anew = ("toc", "compression_scheme", "blobs", "zstd_offset", "zstd_size")
        old = {**top, "table_hash": bytes(16)}
        return mkarchive.pack({n: old[n] for n in [*(o for o in old if o not in anew), *(a for a in anew if a in old)]})
    files = {
        "good": made(pieces), "good-zstd": made(pieces, scheme="zstd-per-kernel"), "only-table": made(None),
        "damage-0": made(pieces, 5), "damage-3": made(pieces, 200000), "damage-unhashed": made(None, 200000),
        "damage-zstd": made(pieces, 40000, scheme="zstd-per-kernel"), "order": made(lambda s: pieces(s) + pieces(s, 0)),
        "cut": made(lambda s: pieces(s)[:-1]), "few": made(lambda s: pieces(s, n=2)),
        "ordinal": made(lambda s: pieces(s, 2)), "text": made(lambda s: "x"),
        "wrong": made(wrong), "no-table-hash": made(pieces, table=mkarchive.pack),
        "table-hash-wrong": made(pieces, table=lambda top: with_hash(top)[:-1] + b"x"),
        "rewritten": made(wrong, table=rewritten),
        "rewritten-zstd": made(wrong, table=rewritten, scheme="zstd-per-kernel", more={"frame_index": bytes(24)}),
        "table-hash-short": made(pieces, table=lambda top: mkarchive.pack({**top, "table_hash": bytes(5)})),
        "tail": made(pieces) + b"x",
    }
    flipped = bytearray(files["good"])
    flipped[flipped.index(b"small#0")] ^= 1
    files["table-flip"] = bytes(flipped)
    for name, data in files.items():
        write("%s/%s.kpack" % (d, name), data)


# ---- archives of version 2 ----------------------------------------------------------------

BLOCK = 65536


def leb(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def new(n):
    return leb(n << 1)


def elsewhere(n, distance):
    return leb(n << 1 | 1) + leb(2 * distance if distance >= 0 else -2 * distance - 1)


def extents(*some):
    return leb(len(some)) + b"".join(some)


def shared(objects, sizes, frames=None, drop=(), hashes=True, dictionary=b"", damage=None, version=2, scheme="zstd-shared",
           **layout):
    """SIZES: of the objects, which are the entries."""
    zstd = zstandard.ZstdCompressor(level=1, write_checksum=True)
    unique = b"".join(noise(BLOCK, i) for i in range(4))
    if frames is None:
        how = {"dict_data": zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)} \
            if dictionary else {}
        blocks = zstandard.ZstdCompressor(level=1, write_checksum=True, write_dict_id=False, **how)
        frames = [zstd.compress(dictionary)] if dictionary else []
        frames += [blocks.compress(unique[i:i + BLOCK]) for i in range(0, len(unique), BLOCK)]
    blob = bytearray(b"".join(frames))
    table = {"offset": 64, "size": len(blob), "block_size": BLOCK, "unique_size": 4 * BLOCK,
             "dictionary_size": len(dictionary), "objects": objects,
             "frames": b"".join(struct.pack("<I", len(f)) for f in frames)}
    if hashes:
        table["frame_hashes"] = b"".join(struct.pack("<Q", xxh3_64(f)) for f in frames)
    table.update(layout)
    for name in drop:
        del table[name]
    if damage is not None:
        blob[damage] ^= 1
    toc = {"lib/x.so#%d" % i: {"gfx1100": {"type": "hsaco", "ordinal": i, "original_size": size}}
           for i, size in enumerate(sizes)}
    top = {"format_version": version, "group_name": "g", "gfx_arch_family": "gfx1100", "gfx_arches": ["gfx1100"],
           "compression_scheme": scheme, "zstd_shared": table, "toc": toc}
    return b"KPAK" + struct.pack("<IQ", version, 64 + len(blob)) + bytes(48) + bytes(blob) + with_hash(top)


@an_input
def lies_shared(d):
    small = extents(new(100)) + extents(new(70000), elsewhere(100, 0)) + extents(elsewhere(300, 65000), elsewhere(50, -50),
                                                                                             elsewhere(20, 4 * BLOCK - 20 - 65400))
    sizes = 100, 70100, 370
    words = noise(5000, 9)
    zstd = zstandard.ZstdCompressor(level=1, write_checksum=True)
    nosum = zstandard.ZstdCompressor(level=1)
    zeros = [zstd.compress(bytes(BLOCK))] * 4
    files = {
        "good": shared(small, sizes), "good-dictionary": shared(small, sizes, dictionary=words),
        "good-no-hashes": shared(small, sizes, hashes=False), "good-zeros": shared(small, sizes, zeros),
        "dictionary-magic": shared(small, sizes, dictionary=b"\x37\xa4\x30\xec" + words),
        "dictionary-size": shared(small, sizes, dictionary=words, dictionary_size=4999),
        "dictionary-huge": shared(small, sizes, dictionary_size=1 << 25),
        "block-flip": shared(small, sizes, damage=500), "block-flip-no-hash": shared(small, sizes, damage=500, hashes=False),
        "block-last-flip": shared(small, sizes, damage=-1), "dictionary-flip": shared(small, sizes, dictionary=words, damage=50),
        "block-short": shared(small, sizes, [zstd.compress(bytes(BLOCK - 1))] + zeros[1:]),
        "block-bomb": shared(small, sizes, [zstd.compress(bytes(BLOCK * 64))] * 4),
        "block-no-checksum": shared(small, sizes, [nosum.compress(bytes(BLOCK))] * 4),
        "block-junk": shared(small, sizes, [b"junk"] * 4), "block-large": shared(small, sizes, [bytes(BLOCK + 2000)] * 4),
        "block-size-3": shared(small, sizes, block_size=3), "block-size-huge": shared(small, sizes, block_size=1 << 21),
        "unique-size": shared(small, sizes, unique_size=1 << 40), "unique-less": shared(small, sizes, unique_size=4 * BLOCK - 1),
        "size-less": shared(small, sizes, size=10), "offset-far": shared(small, sizes, offset=1 << 40),
        "hashes-cut": shared(small, sizes, frame_hashes=b"1234567"), "hashes-wrong": shared(small, sizes, frame_hashes=bytes(32)),
        "objects-text": shared("x", sizes), "objects-none": shared(b"", sizes), "objects-more": shared(small * 2, sizes),
        "entry-size": shared(small, (100, 5, 370)), "entry-huge": shared(small, (100, 1 << 40, 370)),
        "extent-outside": shared(extents(elsewhere(100, 4 * BLOCK - 50)), [100]),
        "extent-before": shared(extents(elsewhere(100, -1)), [100]), "extent-empty": shared(extents(new(100), new(0)), [100]),
        "extent-count": shared(leb(1 << 62) + new(100), [100]), "extent-cut": shared(extents(new(100), new(100))[:-1], [200]),
        "extent-long": shared(b"\1" + b"\x80" * 9 + b"\1", [1]), "object-large": shared(
            extents(*[elsewhere(4 * BLOCK, 0)] + [elsewhere(4 * BLOCK, -4 * BLOCK)] * 16384), [1 << 32]),
        "span-blocks": shared(extents(*[elsewhere(10, BLOCK - 10 if i else 0) for i in range(20)]), [200],
                              [zstd.compress(bytes(BLOCK))] * 20, unique_size=20 * BLOCK),
        "span-extents": shared(extents(elsewhere(1, 0), *[elsewhere(1, -1)] * 4096), [4097]),
        "span-extents-most": shared(extents(elsewhere(1, 0), *[elsewhere(1, -1)] * 4095), [4096]),
        "version-1": shared(small, sizes, version=1), "scheme-1": shared(small, sizes, scheme="zstd-per-kernel"),
        "empty-object": shared(small + b"\0", (*sizes, 0)),
    }
    for name in "offset", "size", "block_size", "unique_size", "dictionary_size", "frames", "objects":
        files["no-" + name] = shared(small, sizes, drop=[name])
    for name, data in files.items():
        write("%s/%s.kpack" % (d, name), data)


# ---- good archives ------------------------------------------------------------------------

@an_input
def packed(d):
    """Archives with all that ls, cat, extract, info and verify can show."""
    for scheme in "none", "zstd-per-kernel":
        os.makedirs("%s/%s" % (d, scheme))
        for arch in "gfx1100", "gfx90a:xnack+", "gfx11-generic":
            a = Archive(scheme, group="demo", family=arch)
            for i in range(2):
                a.add("lib/libx.so.1#%d" % i, arch, code_object(arch, 900, "x%d" % i),
                      target="hipv4-amdgcn-amd-amdhsa--" + arch)
            a.add("lib/libx.so.1@openmp#0", arch, code_object(arch, 900, "o"), type="hsaco")
            a.add("share/db/%s.dat" % arch, arch, noise(20000, arch), type="dat", path="share/db/%s.dat" % arch, mode=0o755,
                  library="rocblas", role="data", **({"chunk": 8192} if scheme != "none" else {}))
            a.write("%s/%s/demo_%s.kpack" % (d, scheme, arch))
        g = Archive(scheme, group="demo", family="generic")
        g.add("share/all.txt", "generic", b"text " * 999, type="txt", path="share/all.txt")
        g.add("code.bc#0", "generic", b"BC\xc0\xde" + bytes(60), type="bc")
        g.add("code.spv#0", "amdgcnspirv", struct.pack("<5I", 0x07230203, 0x10600, 0, 9, 0), type="spv")
        g.add("kernels.cubin#0", "sm_80", b"no cubin", type="cubin")
        g.add("empty", "generic", b"", type="bin", path="share/empty")
        g.write("%s/%s/demo_generic.kpack" % (d, scheme))
    write(d + "/notes.txt", b"no archive\n")
    os.makedirs(d + "/nothing")
    os.symlink("zstd-per-kernel/demo_gfx1100.kpack", d + "/link.kpack")


# ---- device code of every format ------------------------------------------------------------

BC = b"BC\xc0\xde" + bytes(60)
SPV = struct.pack("<5I", 0x07230203, 0x10400, 0, 9, 0)
AMDSPV = struct.pack("<5I", 0x07230203, 0x10600, 0xffff << 16, 9, 0)
PTX = b"//\n.version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry vadd(\n.param .u64 p\n)\n{\nret;\n}\n"
HOST = ("host-x86_64-unknown-linux-gnu-", b"")
HIP = "hipv4-amdgcn-amd-amdhsa--"


def thin_ar(names):
    table = b"".join(n + b"/\n" for n, _ in names)
    out = b"!<thin>\n" + b"%-48s%-10d`\n" % (b"//", len(table)) + table + b"\n" * (len(table) % 2)
    at = 0
    for name, size in names:
        out += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"/%d" % at, 0, 0, 0, 0o644, size)
        at += len(name) + 2
    return out


def bsd_ar(members):
    out = b"!<arch>\n"
    for name, data in members:
        out += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"#1/%d" % len(name), 0, 0, 0, 0o644, len(name) + len(data))
        out += name + data
        out += b"\n" * (len(out) % 2)
    return out


def portable_executable(sections):
    """x86-64, sections of device code and nothing else."""
    head = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, 240, 0x22)
    optional = struct.pack("<HBBIIIII", 0x20b, 14, 0, 0, 0, 0, 0, 0x1000) + struct.pack("<QII", 0x140000000, 0x1000, 512)
    optional = (optional + bytes(240))[:108] + struct.pack("<I", 16) + bytes(128)
    at, rva, rows, body = 1024, 0x1000, b"", b""
    for name, data in sections:
        size = len(data) + -len(data) % 512
        rows += name.ljust(8, b"\0") + struct.pack("<IIIIIIHHI", len(data), rva, size, at, 0, 0, 0, 0, 0x40000040)
        body += data.ljust(size, b"\0")
        at, rva = at + size, rva + size + -size % 4096
    return (head + optional + rows).ljust(1024, b"\0") + body


def fatbin(*images):
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(i) + -len(i) % 8, 0, 0, 1, 8, sm,
                    0, 0, flags, 0, 0) + i + bytes(-len(i) % 8) for kind, sm, flags, i in images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@an_input
def containers(d):
    """A file for each container, and containers in containers."""
    co = {a: code_object(a, 700, "one") for a in ("gfx1100", "gfx90a:xnack+", "gfx942")}
    hip = [(HIP + a, data) for a, data in co.items()]
    plain = raw_bundle([HOST] + hip, 64)
    inner = offload_binary(offload_binary(BC, 2, 1) + offload_binary(co["gfx942"]), arch="gfx1100")
    fat = elf_object([
        (".hip_fatbin", 1, 16, plain + bytes(-len(plain) % 64) + ccob(plain) + bytes(64)),
        (".text", 1, 16, b"\x90" * 40),
        (".llvm.offloading", 0x6fff4c0b, 8, offload_binary(co["gfx1100"], arch="gfx1100", triple="amdgcn-amd-amdhsa")),
        (".nv_fatbin", 1, 8, fatbin((1, 90, 0x11, PTX + b"\0"))),
        ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", 1, 1, BC),
        ("__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", 1, 1, b"\0")])
    two_parts = ccob(plain)
    files = {
        "plain.hipfb": plain, "align1.bundle": raw_bundle([HOST] + hip),
        "kinds.bundle": raw_bundle([HOST, hip[0], ("openmp-amdgcn-amd-amdhsa--gfx1100", co["gfx942"]),
                                    ("hip-amdgcn-amd-amdhsa--", BC), ("hip-spirv64-amd-amdhsa--amdgcnspirv", AMDSPV),
                                    ("openmp-nvptx64-nvidia-cuda--sm_70", PTX)]),
        "empty.bundle": raw_bundle([HOST]), "v1-zlib.ccob": ccob(plain, 1, "zlib"), "v2-zlib.ccob": ccob(plain, 2, "zlib"),
        "v2.ccob": ccob(plain, 2), "v3.ccob": two_parts, "v3-zlib.ccob": ccob(plain, 3, "zlib"),
        "two.ccob": two_parts + bytes(100) + ccob(raw_bundle(hip[:1]), 2), "mixed.hipfb": plain + bytes(64) + two_parts,
        "wrong-hash.ccob": ccob(plain, digest=b"12345678"), "text.ll": mkoffload.text_bundle([HOST, ("hip-amdgcn-amd-amdhsa--gfx906", b"; x\n")], ";"),
        "stream.offload": offload_binary(co["gfx1100"], triple="amdgcn-amd-amdhsa", arch="gfx1100", feature="a,b", note="x") +
        offload_binary(PTX, 5, 2, arch="sm_90a") + offload_binary(co["gfx942"], arch="") + offload_binary(BC, 2, 1),
        "nested.offload": inner + offload_binary(co["gfx1100"]), "deep.ccob": ccob(raw_bundle([("openmp-amdgcn-amd-amdhsa--gfx1100", inner)])),
        "fat.o": fat, "host.o": elf_object([(".text", 1, 16, b"\x90" * 40)]),
        "gnu.a": mkoffload.ar([("first.o", fat), ("b.bc", BC), ("readme", b"text"), ("k.hsaco", co["gfx942"]), ("b2", plain)]),
        "bsd.a": bsd_ar([(b"a rather long name.hsaco", co["gfx942"]), (b"odd", b"x"), (b"bundle", plain)]),
        "thin.a": thin_ar([(b"a.o", 100), (b"dir/b.o", 200)]), "host.a": mkoffload.ar([("a.o", elf_object([]))]), "empty.a": b"!<arch>\n",
        "windows.exe": portable_executable([(b".text", b"\xc3"), (b".hip_fat", plain), (b".hipFatB", struct.pack("<IIQQ", 0x48495046, 1, 0x140002000, 0))]),
        "host.exe": portable_executable([(b".text", b"\xc3")]),
        "names.bundle": raw_bundle([(name, BC + bytes([i])) for i, name in enumerate([
            "hip-amdgcn-amd-amdhsa--gfx942", "openmp-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942",
            "host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--../../../gfx", "hip-amdgcn-amd-amdhsa--.hidden",
            "hip-amdgcn-amd-amdhsa--a\x1b[31m\nb", "sycl-x-y-z-"])]),
        "alone.bc": BC, "alone.spv": SPV, "amd.spv": AMDSPV, "alone.ptx": PTX, "alone.fatbin": fatbin((1, 90, 0x11, PTX + b"\0"), (1, 80, 0x11, PTX)),
        "header.hsaco": co["gfx1100"][:64], "text.txt": b"text\n", "empty.txt": b"",
    }
    for version in (13, 1), (13, 2), (13, 3), (14, 0):
        files["tile-%d.%d.tileirbc" % version] = mkoffload.tileir(["my_kernel_Kt1_Si32_I42", "plain", "axpy_Kt1_A1f32_1l0_p16_Sf32_I128",
                                                                    "bad_Kt1_Sf33", "bad_Kt9"], version)
    for name, data in files.items():
        write("%s/%s" % (d, name), data)
    os.makedirs(d + "/folder")


@an_input
def damaged(d):
    """Each container with one thing wrong."""
    one = [("gfx1100", code_object("gfx1100", 500, "a"))]
    plain = mkfat.bundle(one, 0, 64)
    packed3 = ccob(plain)
    good = plain + bytes(-len(plain) % 64)

    def word(data, at, value, form="<Q"):
        return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form):]
    offload = offload_binary(one[0][1], arch="gfx1100")
    fat = fatbin((1, 90, 0x11, PTX + b"\0"), (2, 80, 0x11, b"junk" * 20))
    archive = mkoffload.ar([("good.hsaco", one[0][1]), ("more.hsaco", one[0][1])])
    files = {
        "bundle-cut": plain[:-100], "bundle-count": word(plain, 24, 1 << 40), "bundle-count-0": word(plain, 24, 0),
        "bundle-offset": word(plain, 85, 1 << 40), "bundle-size": word(plain, 40, 1 << 63), "bundle-name": word(plain, 48, 1 << 20),
        "bundle-tail": good + b"junk", "bundle-head": plain[:30], "ccob-cut": packed3[:-9], "ccob-magic": packed3.replace(b"(\xb5/\xfd", b"(\xb5/\xfe"),
        "ccob-version": word(packed3, 4, 4, "<H"), "ccob-method": word(packed3, 6, 7, "<H"), "ccob-size": word(packed3, 8, 1 << 30),
        "ccob-decoded": word(packed3, 16, 10), "ccob-huge": word(packed3, 16, 1 << 50), "ccob-inside": ccob(b"text" * 20),
        "offload-version": word(offload, 4, 9, "<I"), "offload-size": word(offload, 8, 1 << 40), "offload-entry": word(offload, 16, 1 << 40),
        "offload-image": word(offload, 72 - 16, 1 << 40), "offload-cut": offload[:-50],
        "fatbin-size": word(fat, 8, 1 << 40), "fatbin-kind": word(fat, 16, 77, "<H"), "fatbin-header": word(fat, 20, 4, "<I"),
        "fatbin-image": word(fat, 24, 1 << 40), "fatbin-cut": fat[:-60], "fatbin-version": word(fat, 4, 9, "<H"),
        "ar-cut": archive[:-30], "ar-size": archive.replace(b"551 ", b"5x1 ", 1), "ar-magic": archive.replace(b"`\n", b"x\n", 1),
        "elf-cut": mkfat.shared_library(plain, [0])[:-100], "elf-wrapper": mkfat.shared_library(plain, [64]),
        "elf-section": elf_object([(".hip_fatbin", 1, 64, good + packed3[:-20] + bytes(64)), (".text", 1, 1, b"x")]),
        "elf-tail": elf_object([(".hip_fatbin", 1, 64, good + b"junk")]), "elf-ident": b"\x7fELF\2\1\1" + bytes(9),
        "pe-cut": portable_executable([(b".hip_fat", plain)])[:-200], "pe-sections": portable_executable([(b".hip_fat", plain)])[:300],
        "spv-cut": SPV[:12], "tile-cut": mkoffload.tileir(["a_Kt1"])[:-9], "tile-old": mkoffload.tileir(["a_Kt1"], (1, 0)),
        "tile-new": mkoffload.tileir(["a_Kt1"], (99, 0)), "members": mkoffload.ar([
            ("good.o", elf_object([(".hip_fatbin", 1, 64, good)])),
            ("cut.o", elf_object([(".hip_fatbin", 1, 64, good + packed3[:-20] + bytes(64))])),
            ("junk.o", elf_object([(".hip_fatbin", 1, 64, good + b"junk")])), ("last.o", elf_object([(".hip_fatbin", 1, 64, good)]))]),
    }
    with open(os.path.join(os.path.dirname(__file__), "../data/cuda/zstd.fatbin"), "rb") as f:
        cuda = f.read()
    second = 16 + int.from_bytes(cuda[20:24], "little") + int.from_bytes(cuda[24:32], "little")
    for name, at, bits in ("fatbin-compression", 41, 0xc0), ("fatbin-bytes", 64 + 20, 0xff):
        copy = bytearray(cuda)
        copy[second + at] ^= bits
        files[name] = bytes(copy)
    for name, data in files.items():
        write("%s/%s" % (d, name), data)


@an_input
def overlap(d):
    """A bundle whose images lie over each other."""
    ids = ["hip-amdgcn-amd-amdhsa--gfx%d" % i for i in range(4000)]
    at = 32 + sum(24 + len(i) for i in ids)
    write(d + "/bundle", b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids)) + b"".join(
        struct.pack("<QQQ", at, 8 << 20, len(i)) + i.encode() for i in ids))
    os.truncate(d + "/bundle", at + (8 << 20))


@an_input
def layouts(d):
    """Libraries as mkfat.py makes them with its options."""
    arches = ["gfx90a:xnack+", "gfx1030", "gfx1100"]

    def library(name, bundles=3, ragged=False, same=False, share=1, reverse=False, loose=0, base=0, twice=False, packed=0, version=3, align=4096,
                which=arches):
        data, starts = b"", []
        for b in range(bundles):
            seed = "0" if same else str(b)
            some = [(a, code_object(a, 900, seed)) for i, a in enumerate(which) if not (ragged and i == b % len(which))]
            if twice:
                some.append(("gfx1100@openmp", code_object("gfx1100", 900, seed + "openmp")))
            data += bytes(-len(data) % align)
            if b < bundles - loose:
                starts += [len(data)] * share
            data += mkfat.bundle(some, version if packed == 2 or (packed and b % 2) else 0, align)
        if reverse:
            starts.reverse()
        write("%s/%s" % (d, name), mkfat.shared_library(data, starts, base))
        os.chmod("%s/%s" % (d, name), 0o755)
    library("plain.so")
    library("ragged.so", bundles=4, ragged=True)
    library("same.so", same=True)
    library("share.so", share=3)
    library("reverse.so", reverse=True)
    library("loose.so", loose=1)
    library("fixed", base=0x400000)
    library("twice.so", twice=True)
    library("odd.so", bundles=5, packed=1)
    library("v2.so", packed=2, version=2)
    library("v3.so", packed=2)
    library("align16.so", align=16)
    library("one.so", bundles=1, which=["gfx1100"])
    library("many.so", bundles=30, which=["gfx1100", "gfx942"])
    library("none.so", loose=3)


# ---- machines, runtimes ---------------------------------------------------------------------

@an_input
def machines(d):
    """Topologies of the KFD driver: a folder for each node, of which the first is a CPU."""
    for name, versions in {"none": ["0"], "one": ["0", "110001"], "two": ["0", "110000", "90010"], "same": ["90402", "90402"],
                           "many": ["0", "90006", "90402", "110003", "120001", "110501", "100300", "80003"],
                           "unknown": ["150000", "990000000000", "161716"], "odd": ["0", "nonsense", "90402", "-1", ""],
                           "a cpu": []}.items():
        os.makedirs("%s/%s/nodes" % (d, name))
        for i, version in enumerate(versions):
            write("%s/%s/nodes/%d/properties" % (d, name, i),
                  ("cpu_cores_count 1\ngfx_target_version %s\nsimd_count 2\n" % version).encode())
    os.makedirs(d + "/one/nodes/7")
    write(d + "/one/nodes/text/properties", b"gfx_target_version 90402\n")
    write(d + "/file", b"")

    def package(name, *fields, status="install ok installed"):
        return "Package: %s\nStatus: %s\nVersion: 1\n%sDescription: x\n X-Rocm-Gpu-Architecture: gfx1\n\n" % (
            name, status, "".join(f + "\n" for f in fields))
    write(d + "/status", "".join([
        package("libblas1", "Suggests: doc (>= 1) | manual, libblas1-device-code (= 1)"),
        package("libblas1-gfx1100", "Enhances: libblas1", "X-Rocm-Gpu-Architecture: gfx1100"),
        package("libblas1-gfx1030", "Enhances: libblas1", "x-rocm-gpu-architecture: gfx1030,", " gfx1031"),
        package("libfft0", "Suggests: libfft0-device-code"),
        package("libfft0-gfx1100", "Enhances: libfft0", "X-Rocm-Gpu-Architecture: gfx1100", status="deinstall ok config-files"),
        package("librand1", "Suggests: x"),
        package("librand1-gfx11-generic", "Enhances: librand1", "X-Rocm-Gpu-Architecture: gfx11-generic"),
        package("libsolver0-gfx11", "Enhances: libsolver0", "X-Rocm-Gpu-Architecture: gfx110X"),
        package("libsolver0-new", "Enhances: libsolver0", "X-Rocm-Gpu-Architecture: gfx99zz"),
        package("libsolver0", "Suggests: libsolver0-device-code"),
        package("libsparse1", "X-Rocm-Gpu-Architecture: gfx900 gfx906"),
        package("x;reboot", "Suggests: x;reboot-device-code")]).encode())


@an_input
def runtimes(d):
    """HIP runtimes by what they contain."""
    old, new = b"\x7fELF __hipRegisterFatBinary", b"\x7fELF __hipRegisterFatBinary librocm_kpack.so.0"
    later = old + bytes((1 << 20) - 30 - len(old)) + b"kpack_load_code_object"  # at a block's end
    for name, data in {"rocm/lib/libamdhip64.so.5.7.1": old, "rocm/lib/libamdhip64.so.7.9": new,
                       "rocm/lib/libamdhip64.so": b"INPUT(libamdhip64.so.5)\n", "rocm/lib/libamdhip64.sox": old,
                       "rocm/lib/xlibamdhip64.so": old, "deep/opt/rocm-7.1/lib64/libamdhip64.so.7.1.0": later,
                       "text/libamdhip64.so.6": b"text"}.items():
        write(d + "/" + name, data)
    os.symlink("libamdhip64.so.5.7.1", d + "/rocm/lib/libamdhip64.so.5")
    os.makedirs(d + "/none")


@an_input
def mixed(d):
    """Shared objects, targets with features, many wrappers, notes of verify, faults on threads."""
    for name, index, scheme in ("indexed", True, "zstd-per-kernel"), ("plain", False, "zstd-per-kernel"), ("none", True, "none"):
        a = Archive(scheme, group="mixed", family="fam", index=index)
        one = a.add("lib/libz.so#0", "gfx1100", noise(20000, 1), target=HIP + "gfx1100")
        a.add("lib/libz.so#0", "gfx90a:sramecc+:xnack-", noise(3000, 2))
        a.add("lib/libz.so#1", "gfx1100", noise(20000, 1), ordinal=one)
        a.add("lib/libz.so#10", "gfx1100", b"ten", hash=False)
        a.add("share/k.db", "generic", noise(100000, 3), type="db", path="share/k.db", mode=0o640,
              **({"chunk": 16384} if scheme != "none" else {}))
        a.add("bin/tool#0", "gfx90a:xnack+", b"", hash=False)
        a.write("%s/%s.kpack" % (d, name))
    a = Archive(checksum=False, index=False, arches=["gfx900", "gfx90a:xnack+:sramecc+", "gfx1100"])
    a.add("z", "gfx1100", noise(99), hash=False)
    a.add("a", "gfx90a:xnack+:sramecc+", noise(98), hash=False)
    a.blobs.append(a.frame(b"nobody's"))
    a.write(d + "/notes.kpack", sort=False, drop=["format_version"], gap=bytes(7))
    a = Archive()
    a.add("good#0", "gfx1100", b"good")
    a.add("bad#0", "gfx942", b"bad", ordinal=7)
    a.write(d + "/refused.kpack")
    a = Archive()
    a.add("lib\\x\u202egpj.so#0", "gfx1100", b"1", path="a\\b")
    a.write(d + "/escapes.kpack")
    a = Archive()
    for i in range(60):
        good = a.frame(noise(1000 + i, i))
        bad = good[:20] + bytes([good[20] ^ 255]) + good[21:]
        a.add("k%d" % i, "gfx1100", noise(1000 + i, i), stored=bad if i % 3 == 0 else good)
    a.write(d + "/faults.kpack")
