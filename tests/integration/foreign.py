#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a host with device code that Linux on x86-64 does not run, or that has no section table.

foreign.py KIND FATBIN OUT

KIND is words with "-" between them:
  pe [long]                       a Windows file; its sections' names are in the string table
  elf32 | elf64 [be] [cuda]       a shared library, big-endian, with CUDA's wrapper
        [bare | renamed | cut | exec]
                                  without a section table, with other names, with a table that
                                  is cut off, a program that is loaded at its address
"""
import struct, sys

PAGE = 512  # nobody loads them


def pe(fat, long):
    names, strings = [b".text", b".hip_fat", b".hipFatB"], b""
    if long:
        names, strings = [b".text", b"/4", b"/16"], b".hip_fatbin\0.hipFatBinSegment\0"
        strings = struct.pack("<I", 4 + len(strings)) + strings
    wrapper = struct.pack("<IIQQ", 0x48495046, 1, 0x140002000, 0)
    parts, at, table = [b"\xc3", fat, wrapper], 1024, b""
    for name, part in zip(names, parts):
        size = -(-len(part) // 512) * 512
        table += struct.pack("<8sIIIIIIHHI", name, len(part), at, size, at, 0, 0, 0, 0, 0x40000040)
        at += size
    head = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0"
    head += struct.pack("<HHIIIHH", 0x8664, 3, 0, at if long else 0, 0, 240, 0x2022) + bytes(240) + table
    data = head.ljust(1024, b"\0")
    for part in parts:
        data += part + bytes(-len(part) % 512)
    return data + strings


def elf(fat, words):
    wide, order = "elf64" in words, ">" if "be" in words else "<"
    word = "Q" if wide else "I"
    machine = 22 if "be" in words else 243 if wide else 3  # S/390, RISC-V, i386
    fixed = "exec" in words
    fat_at = PAGE
    seg_at = fat_at + -(-len(fat) // PAGE) * PAGE
    magic = 0x466243b1 if "cuda" in words else 0x48495046
    wrapper = struct.pack(order + "II" + word * 2, magic, 1, fat_at if fixed else 0, 0)
    fat_name, seg_name = (b".nv_fatbin", b".nvFatBinSegment") if "cuda" in words else \
        (b".hip_fatbin", b".hipFatBinSegment")
    if "renamed" in words:
        fat_name, seg_name = b".data.one", b".data.two"
    names = b"\0" + fat_name + b"\0" + seg_name + b"\0.shstrtab\0"
    body = {fat_at: fat, seg_at: wrapper, seg_at + 64: names}
    table_at = seg_at + 64 + -(-len(names) // 64) * 64

    def phdr(flags, at, size):
        if wide:
            return struct.pack(order + "IIQQQQQQ", 1, flags, at, at, at, size, size, PAGE)
        return struct.pack(order + "IIIIIIII", 1, at, at, at, size, size, flags, PAGE)

    def shdr(name, kind, flags, at, size):
        where = names.index(name) if name else 0
        return struct.pack(order + "II" + word * 4 + "II" + word * 2, where, kind, flags, at, at, size,
                           0, 0, 1, 0)
    segments = phdr(5, 0, fat_at + len(fat)) + phdr(6, seg_at, len(wrapper))
    sections = shdr(b"", 0, 0, 0, 0) + shdr(fat_name, 1, 2, fat_at, len(fat)) + \
        shdr(seg_name, 1, 3, seg_at, len(wrapper)) + shdr(b".shstrtab", 3, 0, seg_at + 64, len(names))
    bare = "bare" in words
    ident = b"\x7fELF" + bytes([1 + wide, 1 + (order == ">"), 1]) + bytes(9)
    header = 64 if wide else 52
    head = ident + struct.pack(order + "HHI" + word * 3 + "IHHHHHH", 2 if fixed else 3, machine, 1, 0,
                               header, 0 if bare else table_at, 0, header, len(segments) // 2, 2,
                               len(sections) // 4, 0 if bare else 4, 0 if bare else 3)
    body[0] = head + segments
    if not bare:
        body[table_at] = sections[:len(sections) // 2] if "cut" in words else sections
    data = bytearray(max(at + len(part) for at, part in body.items()))
    for at, part in body.items():
        data[at:at + len(part)] = part
    return bytes(data)


def main():
    words = sys.argv[1].split("-")
    fatbin = open(sys.argv[2], "rb").read()
    with open(sys.argv[3], "wb") as f:
        f.write(pe(fatbin, "long" in words) if words[0] == "pe" else elf(fatbin, words))


if __name__ == "__main__":
    main()
