#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets cuda_fatbin, cubin and ptx: make_corpus_cuda.py [DIR]

good-* is accepted, bad-* refused, by its parser or its decoder.  good-nvidia-* are parts of
tests/data/cuda/plain.fatbin.
"""

import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PTX = b"//\n.version 9.0\n.target sm_90a, debug\n.address_size 64\n"
ENTRY = (b".visible .entry k(.param .u64 .ptr .align 1 a, .param .align 8 .b8 b[12])\n"
         b".maxntid 8, 4, 1\n{ /* .entry x */ ret; }\n")
CUBIN, LTO = 2, 8
ZSTD, LZ4 = 0x8000, 0x2000


def pad(data, align=8):
    return data + bytes(-len(data) % align)


# ---- fatbins


def stored_zstd(data):
    """One raw block in a single-segment frame that states its size in 4 bytes."""
    head = struct.pack("<IBI", 0xFD2FB528, 0x20 | 2 << 6, len(data))
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def stored_lz4(data):
    """Literals alone."""
    n = len(data) - 15
    return b"\xf0" + b"\xff" * (n // 255) + bytes([n % 255]) + data


def entry(kind, data, flags=0x11, sm=90, decoded=0, name=b"", options=None):
    header = 64
    texts = b""
    name_at, options_at = 0, 0
    if name:
        name_at, texts = header, pad(name)
    if options is not None:
        options_at = header + len(texts)
        texts += struct.pack("<II", options_at + 8, len(options)) + pad(options)
    header += len(texts)
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, header, len(pad(data)),
                       len(data) if decoded else 0, options_at, 8, 1, sm, name_at,
                       len(name), flags, 0, decoded)
    return head + texts + pad(data)


def fatbin(*entries, version=1, size=None):
    body = b"".join(entries)
    n = len(body) if size is None else size
    return struct.pack("<IHHQ", 0xBA55ED50, version, 16, n) + body


def fatbins():
    text = PTX + ENTRY + b"\0"
    zstd, lz4 = stored_zstd(text), stored_lz4(text)
    yield "good-empty", fatbin()
    yield "good-plain", fatbin(entry(CUBIN, b"a cubin!"), entry(1, text, options=b"-O3 "))
    yield "good-zstd", fatbin(entry(1, zstd, ZSTD, 80, len(text)), entry(CUBIN, b"cubin"))
    yield "good-lz4", fatbin(entry(1, lz4, LZ4 | 0x100000, 90, len(text), b"a.cu"))
    yield "good-both", fatbin(entry(1, lz4, LZ4 | 0x200000, 100, len(text), b"a.cu"),
                              entry(CUBIN, zstd, ZSTD, 75, len(text), b"a.cu", b"\0\2\x09"))
    yield "good-lto", fatbin(entry(LTO, b"scrambled", ZSTD | 0x10000, 80, 100,
                                   options=b"-ftz=0"))
    yield "good-unknown-kind", fatbin(entry(0x40, b"what is that"))
    yield "bad-method", fatbin(entry(CUBIN, zstd, 0, 75, len(text)))
    yield "bad-size", fatbin(entry(CUBIN, zstd, ZSTD, 75, len(text) + 1))
    yield "bad-lz4-size", fatbin(entry(CUBIN, lz4, LZ4, 75, len(text) - 1))
    yield "bad-ratio", fatbin(entry(CUBIN, lz4, LZ4, 75, 1 << 20))
    yield "bad-version", fatbin(version=2)
    yield "bad-cut", fatbin(entry(CUBIN, b"a cubin!"))[:-1]
    yield "bad-long", fatbin(size=1 << 63)


# ---- cubins


def elf(sections, flags=0x06005A04, osabi=0x41, abi=8, e_version=1, kind=2):
    """sections: (name, type, content or size of NOBITS, link, info, entsize)"""
    sections = sections + [(b".shstrtab", 3, None, 0, 0, 0)]
    names = b"\0" + b"".join(s[0] + b"\0" for s in sections)
    body, rows, at = b"", bytes(64), 1
    for name, typ, content, link, info, entsize in sections:
        content = names if content is None else content
        body = pad(body)
        size = content if isinstance(content, int) else len(content)
        rows += struct.pack("<IIQQQQIIQQ", at, typ, 0, 0, 64 + len(body), size, link, info,
                            8, entsize)
        body += b"" if isinstance(content, int) else content
        at += len(name) + 1
    body = pad(body)
    ident = b"\x7fELF\x02\x01\x01" + bytes([osabi, abi]) + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, 190, e_version, 0, 0, 64 + len(body),
                               flags, 64, 56, 0, 64, len(sections) + 1,
                               len(sections)) + body + rows


def note(typ, desc):
    return struct.pack("<III", 12, len(desc), typ) + b"NVIDIA Corp\0" + pad(desc, 4)


def symbol(name, other=0x10, bind=1, section=1):
    return struct.pack("<IBBHQQ", name, bind << 4 | 2, other, section, 0, 8)


def tools(command):
    strings = b"\0ptxas\0release 13.0\0"
    return note(2000, struct.pack("<IIIIII", 2, 0, 1, 7, 0, len(strings)) + strings +
                command + b"\0")


def kernels(symbols, names=b"\0k\0other\0", info=b""):
    attributes = struct.pack("<BBHII", 4, 0x2F, 8, 1, 23) + struct.pack("<BBHII", 4, 0x12, 8,
                                                                        1, 400)
    own = (struct.pack("<BBHIHH", 4, 0x0A, 8, 1, 0x160, 20) + struct.pack("<BBH", 3, 0x19, 20) +
           struct.pack("<BBHIII", 4, 5, 12, 32, 4, 2) + info)
    return [(b".text.k", 1, b"program!", 0, 23 << 24, 0), (b".strtab", 3, names, 0, 0, 0),
            (b".symtab", 2, bytes(24) + symbols, 2, 1, 24),
            (b".nv.info", 0x70000000, attributes, 0, 0, 0),
            (b".nv.info.k", 0x70000000, own, 0, 1, 0),
            (b".nv.shared.k", 8, 1024 + 256, 0, 1, 0)]


def cubins():
    yield "good-bare", elf([])
    yield "good-tools", elf([(b".note.nv.tkinfo", 7, tools(b"-arch sm_90a -m 64 "), 0, 0, 0),
                             (b".note.nv.cuinfo", 7,
                              note(1000, struct.pack("<HHHH", 2, 80, 130, 0)), 0, 0, 0)])
    yield "good-compat", elf([(b".nv.compat", 0x70000086, b"\x02\x09\x01\0", 0, 0, 0)])
    yield "good-kernels", elf(kernels(symbol(1) + symbol(3, 0)))
    yield "good-unmarked", elf(kernels(symbol(1, 0) + symbol(3, 0, 2)))
    yield "good-old", elf(kernels(symbol(1)), 0x560D56, 0x33, 7, 0x7C)
    yield "good-object", elf([(b".nv.shared.k", 0x7000000A, 5000, 0, 0, 0)], kind=1)
    yield "good-odd-attributes", elf(kernels(symbol(1), info=b"\x04\x05\xff\xff\x07"))
    yield "bad-name", elf(kernels(symbol(99)))
    yield "bad-cut", elf(kernels(symbol(1)))[:-1]


# ---- PTX


def texts():
    yield "good-kernel", PTX + ENTRY
    yield "good-nul", PTX + ENTRY + b"\0\0\0"
    yield "good-strings", PTX + b'.file 1 "\\".entry x() {"\n.func f() {{}}\n' + ENTRY
    yield "good-declared", PTX + b".extern .entry a(.param .b16 x[3][2]);\n.entry b .reqntid 1 {}"
    yield "bad-no-target", b".version 8.0\n.text\n"
    yield "bad-comment", b"/* .version 8.0\n.target sm_80"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus")
    with open(os.path.join(HERE, "../data/cuda/plain.fatbin"), "rb") as f:
        plain = f.read()
    real = {"cubin": plain[80:80 + 2984], "ptx": plain[3144:3144 + 85], "cuda_fatbin": plain}
    for target, seeds in ("cuda_fatbin", fatbins()), ("cubin", cubins()), ("ptx", texts()):
        os.makedirs(os.path.join(root, target), exist_ok=True)
        for name, data in list(seeds) + [("good-nvidia-plain", real[target])]:
            with open(os.path.join(root, target, name), "wb") as f:
                f.write(data)


main()
