#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes corpus/convert/: small linked files with a fat binary, one per form of layout.

Usage: make_corpus_convert.py [DIR]"""
import os
import struct
import sys

PAGE = 4096
EXEC, DYN = 2, 3
X86_64, AARCH64 = 62, 183
R, RX, RW = 4, 5, 6
LOAD, DYNAMIC, INTERP, NOTE, PHDR, RELRO = 1, 2, 3, 4, 6, 0x6474e552
A, WA = 2, 3


def bundle(size=64):
    """A plain offload bundle with one code object of SIZE bytes."""
    entry_id = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 128, size, len(entry_id))
    return (head + entry_id).ljust(128, b"\0") + bytes(1 + i % 255 for i in range(size))


class File:
    """Segments of (flags, [(name, type, flags, bytes or bss size, align)])."""

    def __init__(self, kind, machine, base, segments, interp=False, own=False, tail=b""):
        self.kind, self.machine, self.tail = kind, machine, tail
        self.sections, self.phdrs = [], []
        n = len(segments) + interp + own
        self.data = bytearray(64 + 56 * n)
        vaddr = base + len(self.data)
        if own:
            self.phdrs.append((PHDR, R, 64, base + 64, 56 * n, 56 * n, 8))
        for i, (flags, sections) in enumerate(segments):
            if i:
                vaddr = (vaddr + PAGE - 1) // PAGE * PAGE + len(self.data) % PAGE
            start, offset = (base, 0) if i == 0 else (vaddr, len(self.data))
            for name, kind_, sflags, content, align in sections:
                vaddr = self.place(name, kind_, sflags, content, align, vaddr)
            file_size = len(self.data) - offset
            self.phdrs.append((LOAD, flags, offset, start, file_size,
                               max(file_size, vaddr - start), PAGE))
        if interp:
            name, kind_, sflags, addr, offset, size = self.sections[0]
            self.phdrs.insert(own, (INTERP, R, offset, addr, size, size, 1))

    def place(self, name, kind, flags, content, align, vaddr):
        pad = -vaddr % align
        vaddr += pad
        if kind == 8:
            self.sections.append((name, kind, flags, vaddr, len(self.data), content))
            return vaddr + content
        self.data += bytes(pad)
        self.sections.append((name, kind, flags, vaddr, len(self.data), len(content)))
        self.data += content
        return vaddr + len(content)

    def address(self, name):
        return next(s[3] for s in self.sections if s[0] == name)

    def offset(self, name):
        return next(s[4] for s in self.sections if s[0] == name)

    def write(self, path, pointer, relocate):
        target = self.address(".hip_fatbin")
        at = self.offset(pointer)
        if relocate:
            rela = self.offset(".rela.dyn")
            kind = 8 if self.machine == X86_64 else 1027
            self.data[rela:rela + 24] = struct.pack("<QQq", self.address(pointer) + 8, kind,
                                                    target)
        self.data[at + 8:at + 16] = struct.pack("<Q", 0 if relocate else target)
        names = b"\0"
        rows = [bytes(64)]
        for name, kind, flags, addr, offset, size in self.sections:
            entry = 24 if kind == 4 else 0
            rows.append(struct.pack("<IIQQQQIIQQ", len(names), kind, flags, addr, offset, size,
                                    0, 0, 1, entry))
            names += name.encode() + b"\0"
        rows.append(struct.pack("<IIQQQQIIQQ", len(names), 3, 0, 0, len(self.data),
                                len(names) + 10, 0, 0, 1, 0))
        names += b".shstrtab\0"
        self.data += names
        shoff = len(self.data)
        self.data += b"".join(rows) + self.tail
        for i, (kind, flags, offset, addr, size, memory, align) in enumerate(self.phdrs):
            self.data[64 + 56 * i:120 + 56 * i] = struct.pack(
                "<IIQQQQQQ", kind, flags, offset, addr, addr, size, memory, align)
        self.data[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", self.kind,
                                     self.machine, 1, 0, 64, shoff, 0, 64, 56,
                                     len(self.phdrs), 64, len(rows), len(rows) - 1)
        with open(path, "wb") as f:
            f.write(self.data)


WRAPPER = struct.pack("<IIQQ", 0x48495046, 1, 0, 0)


def read_only(align=16, first=b"rodata", last=b"eh_frame", size=64):
    out = [(".interp", 1, A, b"/lib/ld.so\0", 1), (".rela.dyn", 4, A, bytes(24), 8)]
    if first:
        out.append((".rodata", 1, A, first, 1))
    out.append((".hip_fatbin", 1, A, bundle(size), align))
    if last:
        out.append((".eh_frame", 1, A, last, 1))
    return R, out


def writable(bss=0):
    out = [(".data", 1, WA, b"datadata", 8), (".hipFatBinSegment", 1, WA, WRAPPER, 8)]
    if bss:
        out.append((".bss", 8, WA, bss, 8))
    return RW, out


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__),
                                                            "corpus/convert")
    os.makedirs(out, exist_ok=True)
    seg = ".hipFatBinSegment"

    def save(name, f, relocate=True):
        f.write(os.path.join(out, name), seg, relocate)

    save("library", File(DYN, X86_64, 0, [read_only(), writable(64)]))
    save("library-aligned", File(DYN, X86_64, 0, [read_only(PAGE), writable()]))
    save("library-page", File(DYN, X86_64, 0, [read_only(PAGE, size=PAGE - 128), writable()]))
    save("library-last", File(DYN, X86_64, 0, [read_only(PAGE, last=b""), writable()]))
    save("library-own-header", File(DYN, X86_64, 0, [read_only(), writable()], own=True))
    save("library-tail", File(DYN, X86_64, 0, [read_only(), writable()], tail=b"appended"))
    save("library-aarch64", File(DYN, AARCH64, 0, [read_only(), writable()]))
    save("program", File(DYN, X86_64, 0, [read_only(), writable(8)], interp=True, own=True))
    save("fixed", File(EXEC, X86_64, 0x400000, [read_only(), writable()], interp=True,
                       own=True), False)
    save("fixed-low", File(EXEC, X86_64, 0, [read_only(PAGE), writable()], interp=True), False)
    alone = (R, [(".hip_fatbin", 1, A, bundle(), PAGE)])
    head = (R, read_only()[1][:2])
    save("segment-of-its-own", File(DYN, X86_64, 0, [head, alone, writable()]))
    mixed = (RW, read_only()[1][3:4] + writable(64)[1])
    save("writable-before-bss", File(DYN, X86_64, 0, [head, mixed]))
    before_bss = (RW, writable()[1] + [(".hip_fatbin", 1, WA, bundle(), 8),
                                       (".bss", 8, WA, 5000, 8)])
    save("bss-directly-after", File(DYN, X86_64, 0, [head, before_bss]))


main()
