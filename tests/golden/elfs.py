# SPDX-License-Identifier: MIT
"""Small ELF files and bundles, of which every field can be wrong."""
import struct

from mkoffload import raw_bundle

FATBIN, SEGMENT, MARKER = 0x3000, 0x8000, 0x9000
HIPF, HIPK = 0x48495046, 0x4B504948
X86_64, AMDGPU = 62, 224


def pad(data, align):
    return data + bytes(-len(data) % align)


def bundle():
    gfx = "hipv4-amdgcn-amd-amdhsa--"
    return raw_bundle([("host-x86_64-unknown-linux-gnu-", b""), (gfx + "gfx90a:xnack+", b"first"), (gfx + "gfx1100", b"second")], 16)


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
