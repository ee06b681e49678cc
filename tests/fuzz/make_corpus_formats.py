#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets bundle, ccob and elf: make_corpus_formats.py [DIR]

good-* is accepted, bad-* refused.  The same bytes every time, whatever zlib does: the
compressed data is stored, not compressed.
"""

import os
import struct
import sys
import zlib

HOST = b"host-x86_64-unknown-linux-gnu-"
GFX = b"hipv4-amdgcn-amd-amdhsa--"
ENTRIES = [(HOST, b""), (GFX + b"gfx90a:xnack+", b"first"), (GFX + b"gfx1100", b"second")]
FATBIN, SEGMENT, MARKER = 0x3000, 0x8000, 0x9000
HIPF, HIPK = 0x48495046, 0x4B504948
X86_64, AARCH64, AMDGPU = 62, 183, 224


def pad(data, align):
    return data + bytes(-len(data) % align)


def bundle(entries=ENTRIES, align=16, count=None):
    pos = 32 + sum(24 + len(i) for i, _ in entries)
    header, body = b"", b""
    start = pos
    for name, obj in entries:
        pos += -pos % align
        header += struct.pack("<QQQ", pos, len(obj), len(name)) + name
        if obj:
            body += bytes(pos - start - len(body)) + obj
        pos += len(obj)
    n = len(entries) if count is None else count
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", n) + header + body


def stored_zlib(data):
    block = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF)
    return b"\x78\x01" + block + data + struct.pack(">I", zlib.adler32(data))


def stored_zstd(data):
    """One raw block in a single-segment frame that states its size in 4 bytes."""
    head = struct.pack("<IBI", 0xFD2FB528, 0x20 | 2 << 6, len(data))
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def rle_zstd(size):
    """SIZE zero bytes, as blocks of 128 KiB."""
    out, left = struct.pack("<IBI", 0xFD2FB528, 0x20 | 2 << 6, size), size
    while left:
        n = min(left, 1 << 17)
        left -= n
        out += struct.pack("<I", n << 3 | 1 << 1 | (left == 0))[:3] + b"\0"
    return out


def ccob(version, method, plain=None, data=None, decoded=None, size=None):
    plain = bundle() if plain is None else plain
    if data is None:
        data = stored_zlib(plain) if method == 0 else stored_zstd(plain)
    decoded = len(plain) if decoded is None else decoded
    size = {1: 20, 2: 24, 3: 32}.get(version, 32) + len(data) if size is None else size
    head = b"CCOB" + struct.pack("<HH", version, method)
    if version == 1:
        head += struct.pack("<I", decoded)
    elif version == 2:
        head += struct.pack("<II", size, decoded)
    else:
        head += struct.pack("<QQ", size, decoded)
    return head + bytes(8) + data


def elf(kind, machine, sections, flags=0, abi=0):
    """SECTIONS: (name, type, flags, addr, content, link, info, entsize)."""
    body, names, table = bytes(64), b"\0", bytes(64)
    for name, typ, sflags, addr, content, link, info, entsize in sections:
        body = pad(body, 8)
        table += struct.pack("<IIQQQQIIQQ", len(names), typ, sflags, addr, len(body),
                             len(content), link, info, 8, entsize)
        names += name + b"\0"
        body += content
    strtab = len(names)
    names += b".shstrtab\0"
    table += struct.pack("<IIQQQQIIQQ", strtab, 3, 0, 0, len(body), len(names), 0, 0, 1, 0)
    body = pad(body + names, 8)
    head = b"\x7fELF\2\1\1\x40" if machine == AMDGPU else b"\x7fELF\2\1\1\0"
    head += bytes([abi]) + bytes(7)
    head += struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, len(body), flags,
                        64, 56, 0, 64, len(sections) + 2, len(sections) + 1)
    return head + body[64:] + table


def wrapper(pointer, magic=HIPF, version=1):
    return struct.pack("<IIQQ", magic, version, pointer, 0)


def host(wrappers, reltype=1, relocs=b"", symbols=b"", kind=3, machine=X86_64, fatbin=None,
         where=b".hipFatBinSegment", nobits=False, marker=b""):
    row = {4: 24, 9: 16, 19: 8}.get(reltype, 0)
    rel = kind == 1
    return elf(kind, machine, [
        (b".hip_fatbin", 8 if nobits else 1, 2, 0 if rel else FATBIN,
         bundle() if fatbin is None else fatbin, 0, 0, 0),
        (where, 1, 3, 0 if rel else SEGMENT, wrappers, 0, 0, 0),
        (b".rela.dyn", reltype, 0 if rel else 2, 0x100, relocs, 4, 2 if rel else 0, row),
        (b".dynsym", 2 if rel else 11, 2, 0x200, symbols, 0, 0, 24)] +
        ([(b".rocm_kpack_ref", 1, 2, MARKER, marker, 0, 0, 0)] if marker else []))


def rela(offset, symbol, typ, addend):
    return struct.pack("<QQQ", offset, symbol << 32 | typ, addend)


def code_object():
    text = [(b".text", 1, 6, 0x1000, b"program!", 0, 0, 0)]
    return elf(3, AMDGPU, text, flags=0x53F, abi=4)


def bundles():
    mixed = pad(bundle(), 16) + pad(ccob(3, 1), 16) + pad(code_object(), 16) + bundle()
    yield "good-plain", bundle()
    yield "good-aligned-3", bundle(align=3)
    yield "good-no-entries", bundle([])
    yield "good-empty-last", bundle(ENTRIES[::-1])
    yield "good-code-object", code_object()
    yield "good-mixed", mixed + bytes(40)
    yield "good-zeros", bytes(100)
    yield "bad-count", bundle(count=1 << 63)
    yield "bad-range", bundle()[:-1]
    yield "bad-id", bundle().replace(b"gfx90a", b"gfx\0a0")
    yield "bad-tail", bundle() + b"tail"
    yield "bad-code-object", code_object()[:-1]


def ccobs():
    for version in 1, 2, 3:
        yield "good-v%d-zlib" % version, ccob(version, 0)
        yield "good-v%d-zstd" % version, ccob(version, 1) + bytes(8)
    yield "bad-version", ccob(4, 1)
    yield "bad-method", ccob(3, 2)
    yield "bad-size", ccob(3, 1, size=1 << 40)
    yield "bad-bomb", ccob(3, 1, decoded=1 << 32)
    yield "bad-rle", ccob(3, 1, data=rle_zstd(1 << 20), decoded=1 << 20)
    yield "bad-nested", ccob(3, 1, plain=ccob(3, 1))
    yield "bad-cut", ccob(1, 1)[:-1]


def elfs():
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 0x11, 0, 1, FATBIN, 0)
    yield "good-in-place", host(wrapper(FATBIN), kind=2)
    yield "good-rela", host(wrapper(0), 4, rela(SEGMENT + 8, 0, 8, FATBIN))
    yield "good-rela-aarch64", host(wrapper(0), 4, rela(SEGMENT + 8, 0, 1027, FATBIN),
                                    machine=AARCH64)
    yield "good-rel", host(wrapper(FATBIN), 9, struct.pack("<QQ", SEGMENT + 8, 8))
    yield "good-relr", host(wrapper(FATBIN), 19, struct.pack("<QQ", SEGMENT, 3))
    yield "good-symbol", host(wrapper(0), 4, rela(SEGMENT + 8, 1, 1, 0), symbols)
    yield "good-object", host(wrapper(0), 4, rela(8, 1, 1, 0),
                              symbols[:32] + bytes(16), kind=1)
    yield "good-padding", host(wrapper(FATBIN) + bytes(40) + wrapper(FATBIN), kind=2)
    yield "good-converted", host(wrapper(MARKER, HIPK), kind=2, fatbin=bytes(64))
    yield "good-no-wrapper", host(b"", kind=2)
    for name, machine, typ in ("ppc64", 21, 22), ("riscv", 243, 3), ("loongarch", 258, 3):
        yield "good-rela-" + name, host(wrapper(0), 4, rela(SEGMENT + 8, 0, typ, FATBIN),
                                        machine=machine)
    data = b"data" * 4 + wrapper(FATBIN) + wrapper(FATBIN + 8) + wrapper(0)
    relocs = rela(SEGMENT + 72, 0, 8, FATBIN)
    yield "good-merged", host(data, 4, relocs, where=b".data")
    yield "good-merged-overlap", host(wrapper(FATBIN)[:16] + wrapper(FATBIN), kind=2,
                                      where=b".data")
    hipk = wrapper(MARKER, HIPK)
    yield "good-merged-half", host(data + hipk, 4, relocs, where=b".data", marker=b"m" * 8)
    for name, nobits in ("kept", False), ("taken", True):
        yield "good-merged-converted-" + name, host(data[:16] + hipk + hipk, kind=2,
                                                    where=b".data", nobits=nobits,
                                                    marker=b"m" * 8)
    yield "good-kept", host(hipk, kind=2, marker=b"m" * 8)
    yield "bad-pointer", host(wrapper(FATBIN + 1), kind=2)
    yield "bad-word", host(wrapper(FATBIN, version=2), kind=2)
    yield "bad-symbol", host(wrapper(0), 4, rela(SEGMENT + 8, 7, 1, 0), symbols)
    yield "bad-twice", host(wrapper(0), 4, rela(SEGMENT + 8, 0, 8, FATBIN) * 2)
    yield "bad-cut", host(wrapper(FATBIN), kind=2)[:-65]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus")
    for target, seeds in ("bundle", bundles()), ("ccob", ccobs()), ("elf", elfs()):
        os.makedirs(os.path.join(root, target), exist_ok=True)
        for name, data in seeds:
            with open(os.path.join(root, target, name), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
