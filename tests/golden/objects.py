# SPDX-License-Identifier: MIT
"""objects.py DIR: static libraries of relocatable objects with several containers, and such that cannot be changed."""
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import mkfat  # noqa: E402
from mkoffload import ar  # noqa: E402

NAMES = ["", ".hip_fatbin", ".text", ".hipFatBinSegment", ".rela.hipFatBinSegment", ".symtab", ".strtab", ".bss", ".shstrtab"]
FATBIN, TEXT, WRAPPERS, RELA, SYMTAB, STRTAB, BSS, SHSTRTAB = range(1, 9)


def an_object(align=4096, last=False, rel=False, addends=None, symbols=None, tail=0):
    """Three bundles, of which each loses a half; wrappers lead to them by the section's symbol, or by their own."""
    fat, starts = b"", []
    for i in range(3):
        fat += bytes(-len(fat) % align)
        starts.append(len(fat))
        fat += mkfat.bundle([(a, mkfat.code_object(a, 5000, "%s%d" % (a, i))) for a in ("gfx1030", "gfx1100")], 0, align)
    fat += bytes(tail)
    rows = [(0, 0, 0, 0, 0, 0), (0, 3, 0, FATBIN, 0, 0)] + [(0, 0x11, 0, FATBIN, s, len(fat)) for s in starts]
    rows += [(0, 0x12, 0, TEXT, 8, 4), (0, 0x10, 0, 0, 0, 0)] + (symbols or [])
    table = b"".join(struct.pack("<IBBHQQ", *r) for r in rows)
    relocations = [(8, 1, starts[0]), (32, 1, starts[1]), (56, 4, 0), (0, 5, 8)] + (addends or [])
    form, size = ("<QQ", 16) if rel else ("<QQQ", 24)
    relas = b"".join(struct.pack(form, *(at, symbol << 32 | 1, addend % 2**64)[:size // 8]) for at, symbol, addend in relocations)
    names = b"\0".join(n.encode() for n in NAMES) + b"\0"
    content = {FATBIN: (1, 2, fat, align), TEXT: (1, 6, b"\x90" * 33, 16), WRAPPERS: (1, 3, struct.pack("<IIQQ", 0x48495046, 1, 0, 0) * 3, 8),
               RELA: (9 if rel else 4, 0x40, relas, 8), SYMTAB: (2, 0, table, 8), STRTAB: (3, 0, b"\0", 1), BSS: (8, 3, b"", 64),
               SHSTRTAB: (3, 0, names, 1)}
    order = [i for i in content if i != FATBIN]
    order.insert(len(order) if last else 1, FATBIN)
    out, headers = bytearray(64), {}
    for i in order:
        kind, flags, data, alignment = content[i]
        out += bytes(-len(out) % alignment)
        link, info = {RELA: (SYMTAB, WRAPPERS), SYMTAB: (STRTAB, 2)}.get(i, (0, 0))
        headers[i] = struct.pack("<IIQQQQIIQQ", names.index(b"\0" + NAMES[i].encode() + b"\0") + 1, kind, flags, 0, len(out),
                                 5000 if i == BSS else len(data), link, info, alignment, {RELA: size, SYMTAB: 24}.get(i, 0))
        out += data
    out += bytes(-len(out) % 8)
    shoff = len(out)
    out += bytes(64) + b"".join(headers[i] for i in range(1, 9))
    out[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, shoff, 0, 64, 0, 0, 64, 9, SHSTRTAB)
    return out, shoff


def lie(section, at, form, *values, **how):
    data, shoff = an_object(**how)
    struct.pack_into(form, data, shoff + 64 * section + at, *values)
    return data


def header(at, form, *values):
    data, _ = an_object()
    struct.pack_into(form, data, at, *values)
    return data


def main():
    good, shoff = an_object()
    fat, = struct.unpack_from("<Q", good, shoff + 64 * FATBIN + 24)
    files = {
        "plain": good, "align16": an_object(16)[0], "last": an_object(last=True)[0], "tail": an_object(tail=9000)[0], "rel": an_object(rel=True)[0],
        "middle": an_object(addends=[(0, 1, 100)])[0], "middle-symbol": an_object(symbols=[(0, 0x11, 0, FATBIN, 100, 8)])[0],
        "own-addend": an_object(addends=[(0, 3, 8)])[0], "own-0": an_object(addends=[(0, 4, 0)])[0], "beyond": an_object(addends=[(0, 1, 1 << 40)])[0],
        "symbol-number": an_object(addends=[(0, 99, 0)])[0], "executable": header(16, "<H", 2), "segments": header(56, "<H", 1),
        "big-endian": header(5, "B", 2), "32-bit": header(4, "B", 1), "align": lie(TEXT, 48, "<Q", 3), "align-large": lie(BSS, 48, "<Q", 1 << 30),
        "shared": lie(TEXT, 24, "<Q", fat + 8), "compressed": lie(FATBIN, 8, "<Q", 0x802), "no-bits": lie(FATBIN, 4, "<I", 8),
        "relocated": lie(RELA, 44, "<I", FATBIN), "no-symbols": lie(RELA, 40, "<I", STRTAB), "link": lie(RELA, 40, "<I", 77),
        "row": lie(RELA, 56, "<Q", 23), "row-symbol": lie(SYMTAB, 56, "<Q", 16), "size": lie(RELA, 32, "<Q", 97), "crel": lie(RELA, 4, "<I", 0x40000014),
        "in-code": lie(SYMTAB, 24, "<Q", fat + 64), "alignment-kept": lie(STRTAB, 48, "<Q", 1 << 20)}
    os.makedirs(sys.argv[1])
    for name, data in files.items():
        with open(os.path.join(sys.argv[1], name + ".a"), "wb") as f:
            f.write(ar([("one.o", bytes(data)), ("two.o", bytes(good))]))


if __name__ == "__main__":
    main()
