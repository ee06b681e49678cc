# SPDX-License-Identifier: MIT
"""hosts.py SET DIR: programs and libraries with device code as linkers could lay them out, and files that lie.

A host is built of sections in segments; three wrappers lead to two bundles.  Fields can be falsified afterwards.
"""
import hashlib
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import mkfat  # noqa: E402

PROGBITS, SYMTAB, STRTAB, RELA, NOTE, NOBITS, REL, DYNSYM, INIT, SHNDX, RELR = 1, 2, 3, 4, 7, 8, 9, 11, 14, 18, 19
LOAD, DYNAMIC, INTERP, NOTES, PHDR, TLS, STACK, RELRO = 1, 2, 3, 4, 6, 7, 0x6474e551, 0x6474e552
W, A, X, T, INFO = 1, 2, 4, 0x400, 0x40
R, RX, RW = 4, 5, 6
X86, ARM, PPC, RISCV, LOONG = 62, 183, 21, 243, 258
TYPES = {X86: (8, 1), ARM: (1027, 257), PPC: (22, 38), RISCV: (3, 2), LOONG: (3, 2)}  # relative, through a symbol
SHDR = "<IIQQQQIIQQ"


def up(n, to):
    return -(-n // to) * to


def code(size):
    """Two bundles, SIZE bytes together, and where the second begins."""
    def one(arch, n, seed):
        return mkfat.code_object(arch, 64, seed)[:64] + (hashlib.shake_128(seed.encode()).digest(max(1, (n - 64) // 3)) * 5)[:n - 64]
    first = mkfat.bundle([("gfx1100", one("gfx1100", 80, "a"))], 0, 8)
    rest = size - len(first)
    head = len(mkfat.bundle([("gfx1100", b""), ("gfx942", b"")], 0, 8))
    n = (rest - head) // 16 * 8
    second = mkfat.bundle([("gfx1100", one("gfx1100", n, "b")), ("gfx942", one("gfx942", rest - head - n, "c"))], 0, 8)
    assert len(first + second) == size, (size, len(first + second))
    return first + second, len(first)


class Host:
    def __init__(self, where="amid", how="rela", align=8, code_size=1600, base=0, page=4096, machine=X86, fixed=False,
                 interp=False, own=False, tls=False, new_pages=False, unmapped_first=False, tail=b"", spare=0,
                 wrappers=".hipFatBinSegment", zone=0, sections=0, more=()):
        self.__dict__.update(locals())
        self.sections, self.segments, self.headers = [], [], []
        self.code, self.second = code(code_size)
        if unmapped_first:
            self.add(".gnu_debugdata", size=55)
        self.read_only()
        self.add(".text", A | X, self.segment(RX), 333, 16)
        self.writable()
        self.unmapped()
        for i in range(sections):
            self.add(".s%04d" % i, size=3 + i % 5, align=1 << i % 4)
        for name in more:
            self.add(name, size=3)
        self.table()
        self.build()
        self.write_symbols(".dynsym")
        self.write_symbols(".symtab")
        self.point()

    # ---- sections -----------------------------------------------------------------------

    def segment(self, flags):
        self.segments.append(dict(flags=flags, addr=0, offset=0, filesz=0, memsz=0))
        return len(self.segments) - 1

    def add(self, name, flags=0, segment=None, size=0, align=1, kind=PROGBITS, content=None, entsize=0, link="", info=0):
        if content is None:
            content = hashlib.shake_128(name.encode()).digest(size)
        self.sections.append(dict(name=name, flags=flags, segment=segment, size=size, align=align, kind=kind, link=link,
                                  content=content, entsize=entsize, info=info, addr=0, offset=0))

    def fatbin(self, segment, flags=A):
        self.add(".hip_fatbin", flags, segment, len(self.code), self.align, content=self.code)

    def read_only(self):
        g = self.segment(R)
        if self.interp:
            self.add(".interp", A, g, 11)
        self.add(".note.gnu.build-id", A, g, 36, 4, NOTE)
        self.symbols(".dynsym", ".dynstr", DYNSYM, A, g)
        row = 16 if self.how in ("rel", "rel-symbol") else 24
        self.row = row
        self.add(".rel.dyn" if row == 16 else ".rela.dyn", A, g, 5 * row, 8, REL if row == 16 else RELA, bytes(5 * row), row, ".dynsym")
        if row == 24:
            self.add(".rela.plt", A | INFO, g, 24, 8, RELA, bytes(24), 24, ".dynsym", ".data")
        if self.how == "relr":
            self.add(".relr.dyn", A, g, 16, 8, RELR, bytes(16), 8)
        self.add(".rodata", A, g, 77, 16)
        if self.where in ("amid", "last"):
            self.fatbin(g)
        elif self.where in ("first", "alone"):
            g = self.segment(R)
            self.fatbin(g)
            g = self.segment(R) if self.where == "alone" else g
        if self.where != "last":
            self.add(".eh_frame", A, g, 99, 8)

    def writable(self):
        g = self.segment(RW)
        if self.tls:
            self.add(".tdata", A | W | T, g, 24, 8)
            self.add(".tbss", A | W | T, g, 4000, 16, NOBITS)
        self.add(".data.rel.ro", A | W, g, 40, 8)
        if self.where == "relro":
            self.fatbin(g, A | W)
        self.add(".dynamic", A | W, g, 48, 8)
        g = self.segment(RW)
        self.add(".data", A | W, g, 50, 8)
        self.step = 24 + self.zone  # as sanitizers place them
        self.add(self.wrappers, A | W, g, 3 * self.step, 8, content=bytes(3 * self.step))
        if self.where == "bss":
            self.fatbin(g, A | W)
        self.add(".bss", A | W, g, 5000, 32, NOBITS)

    def symbols(self, name, strings, kind, flags, segment):
        self.add(name, flags, segment, 144, 8, kind, bytes(144), 24, strings, 2)
        self.add(strings, flags, segment, 21, 1, STRTAB, b"\0a_name_of_something\0")

    def unmapped(self):
        self.add(".comment", 0x30, size=33)
        self.add(".debug_info", size=101)
        self.add(".debug_odd", size=7, align=64)
        self.symbols(".symtab", ".strtab", SYMTAB, 0, None)
        self.add(".symtab_shndx", size=24, align=4, kind=SHNDX, entsize=4, link=".symtab", content=bytes(24))

    def table(self):
        """Program headers: type, flags, first and last section, alignment."""
        self.front = [(PHDR, R, "", "", 8)] * self.own + [(INTERP, R, ".interp", ".interp", 1)] * self.interp
        self.behind = [(TLS, R, ".tdata", ".tbss", 16)] * self.tls + [
            (DYNAMIC, RW, ".dynamic", ".dynamic", 8), (RELRO, R, ".data.rel.ro", ".dynamic", 1),
            (NOTES, R, ".note.gnu.build-id", ".note.gnu.build-id", 4), (STACK, RW, "", "", 0)]

    # ---- the file -----------------------------------------------------------------------

    def build(self):
        n_headers = len(self.front + self.behind + self.segments)
        d = self.data = bytearray(64 + 56 * n_headers + self.spare)
        at = self.base + len(d)
        for number, g in enumerate(self.segments):
            first = True
            if number:
                d += bytes(-len(d) % self.page if self.new_pages else 0)
                at = up(at, self.page) + len(d) % self.page
            else:
                g.update(addr=self.base, filesz=len(d), memsz=len(d))
            for s in (s for s in self.sections if s["segment"] == number):
                bits, pad = s["kind"] != NOBITS, -at % s["align"]
                s.update(addr=at + pad, offset=len(d))
                if not bits and s["flags"] & T:
                    continue
                at += pad
                d += bytes(pad if bits or first else 0)
                s["offset"] = len(d)
                if first and number:
                    g.update(addr=at, offset=len(d))
                first = False
                d += s["content"] if bits else b""
                at += s["size"]
                g["memsz"] = at - g["addr"]
                if bits:
                    g["filesz"] = g["memsz"]
        self.add(".shstrtab", kind=STRTAB)
        names = b"\0" + b"".join(s["name"].encode() + b"\0" for s in self.sections)
        self.sections[-1].update(size=len(names), content=names)
        for s in (s for s in self.sections if s["segment"] is None):
            d += bytes(-len(d) % s["align"])
            s["offset"] = len(d)
            d += s["content"]
        d += bytes(-len(d) % 8)
        self.shoff, at = len(d), 1
        d += bytes(64)
        for s in self.sections:
            info = self.number(s["info"]) if isinstance(s["info"], str) else s["info"]
            d += struct.pack(SHDR, at, s["kind"], s["flags"], s["addr"], s["offset"], s["size"], self.number(s["link"]), info,
                             s["align"], s["entsize"])
            at += len(s["name"]) + 1
        d += self.tail
        self.phdrs = [self.cover(*h) for h in self.front] + [
            (LOAD, g["flags"], g["offset"], g["addr"], g["addr"], g["filesz"], g["memsz"], self.page) for g in self.segments] + [
            self.cover(*h) for h in self.behind]
        for i, h in enumerate(self.phdrs):
            struct.pack_into("<IIQQQQQQ", d, 64 + 56 * i, *h)
        d[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", 2 if self.fixed else 3, self.machine, 1, self.base + 0x1234, 64, self.shoff, 0, 64, 56,
            n_headers, 64, len(self.sections) + 1, len(self.sections))

    def cover(self, kind, flags, first, last, align):
        if kind == PHDR:
            size = 56 * len(self.front + self.behind + self.segments)
            return kind, flags, 64, self.base + 64, self.base + 64, size, size, align
        if not first:
            return kind, flags, 0, 0, 0, 0, 0, align
        a, b = self[first], self[last]
        size = b["addr"] + b["size"] - a["addr"]
        memory = up(a["addr"] + size, self.page) - a["addr"] if kind == RELRO else size
        return kind, flags, a["offset"], a["addr"], a["addr"], b["offset"] - a["offset"] if b["kind"] == NOBITS else size, memory, align

    def __getitem__(self, name):
        return self.sections[self.number(name) - 1]

    def number(self, name):
        return next((i for i, s in enumerate(self.sections, 1) if s["name"] == name), 0)

    # ---- what depends on addresses ------------------------------------------------------

    def put(self, address, form, *values):
        g = next(g for g in self.segments if g["addr"] <= address < g["addr"] + g["filesz"])
        struct.pack_into(form, self.data, g["offset"] + address - g["addr"], *values)

    def write_symbols(self, name):
        for i, section in enumerate((".hip_fatbin", ".data", ".comment"), 1):
            struct.pack_into("<IBBHQQ", self.data, self[name]["offset"] + 24 * i, 0, 0x11, 0, self.number(section),
                             self[section]["addr"], 0)
        struct.pack_into("<IBBHQQ", self.data, self[name]["offset"] + 96, 0, 0, 0, 0xfff1, 0, 0)
        struct.pack_into("<I", self.data, self[name]["offset"] + 120, 1)

    def reloc(self, i, address, symbol, addend):
        at = self[".rel.dyn" if self.row == 16 else ".rela.dyn"]["offset"] + self.row * i
        struct.pack_into("<QQ", self.data, at, address, symbol << 32 | TYPES.get(self.machine, (8, 1))[bool(symbol)])
        if self.row == 24:
            struct.pack_into("<Q", self.data, at + 16, addend % 2**64)

    def wrapper(self, address, magic, pointer, last=0):
        self.put(address, "<IIQQ", magic, 1, pointer, last)

    def point(self):
        symbol, stored = self.how.endswith("symbol"), self.how not in ("rela", "symbol")
        at, fat = self[self.wrappers]["addr"], self[".hip_fatbin"]["addr"]
        for i, target in enumerate((fat, fat + self.second, fat)):
            addend = target - fat if symbol else target
            self.wrapper(at + self.step * i, 0x48495046, addend if stored else 0)
            if self.how not in ("relr", "fixed"):
                self.reloc(i + 1, at + self.step * i + 8, int(symbol), addend)
        if self.how == "relr":  # the words 24 and 48 bytes after the first
            n = self.step // 8
            self.put(self[".relr.dyn"]["addr"], "<QQ", at + 8, 1 | 1 << n | 1 << 2 * n)
        # data that only looks like a wrapper, and a relocation of something else
        self.wrapper(self[".data"]["addr"], 0x48495046, self[".text"]["addr"], 7)
        if self.row == 16:
            self.reloc(4, self[".data"]["addr"] + 8, 0, 0)
        else:
            self.reloc(4, self[".data.rel.ro"]["addr"], 0, self[".rodata"]["addr"])

    # ---- lies ---------------------------------------------------------------------------

    def header(self, **fields):
        for name, value in fields.items():
            at, form = dict(data=(5, "B"), type=(16, "<H"), machine=(18, "<H"), phoff=(32, "<Q"), shoff=(40, "<Q"), phsize=(54, "<H"),
                            phnum=(56, "<H"), shsize=(58, "<H"), shnum=(60, "<H"), names=(62, "<H"))[name]
            struct.pack_into(form, self.data, at, value)
        return self

    def section(self, which, **fields):
        for field, value in fields.items():
            at, form = dict(name=(0, "<I"), kind=(4, "<I"), flags=(8, "<Q"), addr=(16, "<Q"), offset=(24, "<Q"), size=(32, "<Q"),
                            entsize=(56, "<Q"))[field]
            struct.pack_into(form, self.data, self.shoff + 64 * self.number(which) + at, value)
        return self

    def program(self, kind, n=0, **fields):
        i = [i for i, h in enumerate(self.phdrs) if h[0] == kind][n]
        for field, value in fields.items():
            at = dict(offset=8, addr=16, filesz=32, memsz=40, align=48)[field]
            struct.pack_into("<Q", self.data, 64 + 56 * i + at, value)
        return self


BIG, PAGES = dict(code_size=30000, align=4096), dict(page=0x10000)
PROGRAM, FIXED = dict(interp=True, own=True), dict(how="fixed", base=0x400000, fixed=True, interp=True, own=True)
WIDE = dict(code_size=0x51000, align=4096, page=0x10000)
ARM64 = dict(machine=ARM, **WIDE)


def every(**more):
    """Where device code can be: alone, among others, from a page on, over a page's end."""
    return {"%s%s" % (where, name): dict(where=where, **how, **more) for where in ("amid", "last", "first", "alone", "bss", "relro")
            for name, how in (("", {}), ("-aligned", dict(align=4096)), ("-over", dict(code_size=30000)), ("-pages", BIG))}


SETS = {
    "places": every(),
    "forms": {
        "gnu": dict(how="stored", new_pages=True), "whole-pages": dict(align=4096, code_size=8192),
        "three": dict(code_size=9000), "three-aligned": dict(align=4096, code_size=9000),
        "gnu-last": dict(where="last", code_size=30000, new_pages=True), "gnu-alone": dict(where="alone", new_pages=True, **BIG),
        "tls": dict(tls=True, **BIG), "tail": dict(tail=b"appended to it", **BIG), "symbols": dict(how="symbol"), "relr": dict(how="relr"),
        "rel": dict(how="rel"), "rel-symbol": dict(how="rel-symbol"), "pie": PROGRAM, "pie-pages": dict(**PROGRAM, **BIG),
        "pie-base": dict(base=0x10000, **PROGRAM), "pie-bss": dict(where="bss", tls=True, tail=b"tail", **PROGRAM, **BIG),
        "no-phdr": dict(interp=True), "own": dict(own=True), "fixed": FIXED, "static": dict(how="fixed", base=0x400000, fixed=True),
        "fixed-pages": dict(**FIXED, **BIG), "fixed-relro": dict(where="relro", tls=True, tail=b"tail", **FIXED, **BIG),
        "fixed-bss": dict(FIXED, where="bss", code_size=30000, base=0x200000, new_pages=True), "fixed-low": dict(FIXED, base=0x10000),
        "fixed-0": dict(FIXED, base=0), "fixed-large": dict(FIXED, base=0, align=4096, code_size=1 << 20),
        "merged": dict(wrappers=".merged", **BIG), "zones": dict(zone=40, **BIG),
        "zones-relr": dict(zone=40, how="relr", **BIG), "sections": dict(sections=2000, **BIG), "unmapped-first": dict(unmapped_first=True, **BIG)},
    "machines": {"%s-%s-%s" % (m, how, w): dict(machine=n, how=how, wrappers={"own": ".hipFatBinSegment"}.get(w, "." + w), zone=40 * (w == "zones"))
                 for m, n in (("x86", X86), ("arm", ARM), ("ppc", PPC), ("riscv", RISCV), ("loong", LOONG), ("other", 2))
                 for how in ("rela", "symbol", "relr", "rel", "rel-symbol", "fixed") for w in ("own", "merged", "zones")},
    "pages": {
        "room-56": dict(spare=56), "room-160": dict(spare=160, **BIG), "room-168": dict(spare=168, **BIG), "2-mib": dict(page=0x200000, **BIG),
        "room-pie": dict(spare=168, **PROGRAM, **BIG), "room-fixed": dict(spare=168, **FIXED, **BIG), "2-mib-fixed": dict(FIXED, page=0x200000, **BIG),
        "64-kib": dict(**BIG, **PAGES), "64-kib-fixed": dict(FIXED, **BIG, **PAGES),
        "ppc": dict(machine=PPC, **WIDE), "ppc-symbol": dict(machine=PPC, how="symbol", **WIDE), "ppc-pie": dict(machine=PPC, **PROGRAM, **WIDE),
        "arm": dict(machine=ARM, **BIG, **PAGES), "arm-aligned": dict(ARM64, code_size=30000, align=0x10000),
        "arm-page": dict(ARM64, code_size=0x10000, align=0x10000), "arm-symbol": dict(ARM64, how="symbol"),
        "arm-4k": dict(machine=ARM, **BIG), "arm-first": dict(ARM64, where="first"), "arm-alone": dict(ARM64, where="alone", align=0x10000),
        "arm-bss": dict(ARM64, where="bss"), "arm-relro": dict(ARM64, where="relro", align=0x10000), "arm-pie": dict(ARM64, **PROGRAM),
        "arm-fixed": dict(FIXED, **ARM64), "arm-pie-odd": dict(ARM64, code_size=0x51008, **PROGRAM),
        "pie-large": dict(PROGRAM, code_size=1 << 20, align=4096, tail=b"tail"), "pie-large-last": dict(PROGRAM, where="last", code_size=1 << 20),
        "arm-large": dict(ARM64, code_size=0x151000, **PROGRAM)},
}


def lies():
    """Hosts that cannot be converted, each for one reason, and some that can."""
    def pointer(address, symbol=0, **how):
        h = Host(**how)
        h.reloc(0, address(h), symbol, h[".hip_fatbin"]["addr"] + 1599 if not symbol else 1599)
        return h

    def made(change, **how):
        h = Host(**how)
        change(h)
        return h

    def swapped(h):
        a, b = (64 + 56 * i for i, p in enumerate(h.phdrs[:2]))
        h.data[a:a + 56], h.data[b:b + 56] = h.data[b:b + 56], h.data[a:a + 56]

    def riscv(h):
        for i in range(3):
            h.wrapper(h[h.wrappers]["addr"] + 24 * i, 0x48495046, h[".hip_fatbin"]["addr"])
        at = h[".rela.dyn"]["offset"]
        h.data[at:at + 120] = bytes(120)

    def outside(h):
        h.reloc(1, h[h.wrappers]["addr"] + 8, 1, 0)
        h.put(h[".dynsym"]["addr"] + 24, "<QQQ", 0, 0, 0)

    def unmapped_wrappers(h):
        at, to = (h[n]["offset"] for n in (h.wrappers, ".debug_info"))
        h.data[to:to + 72] = h.data[at:at + 72]
        h.section(h.wrappers, flags=0, offset=to)

    def inner_table(h):
        at = h[".hip_fatbin"]["offset"] + 304
        h.data[at:at + 280] = h.data[64 + 0:64 + 280]
        h.header(phoff=at, phnum=5)

    def in_front(h):
        h.data[h.shoff:h.shoff] = b"in front" * 500
        h.header(shoff=h.shoff + 4000)

    def half(h):
        at = h[h.wrappers]["addr"] + 24
        h.wrapper(at, 0x4b504948, 0, 1)

    def relr_more(h):
        h.put(h[".relr.dyn"]["addr"] + 8, "<Q", 1 | 1 << 3 | 1 << 4 | 1 << 6)
        h.put(h[h.wrappers]["addr"] + 40, "<Q", h[".hip_fatbin"]["addr"])

    word, fat = (lambda h: h[".data.rel.ro"]["addr"]), (lambda h: h[".hip_fatbin"]["addr"] + 8)
    rel = Host(how="rel")
    rel.reloc(0, word(rel), 0, 0)
    rel.put(word(rel), "<Q", rel[".hip_fatbin"]["addr"])
    plain = Host()
    offset, text = plain[".hip_fatbin"]["offset"], plain[".comment"]["offset"]
    found = {
        "beside": made(lambda h: (h.reloc(0, word(h), 0, h[".hip_fatbin"]["addr"] + 1600), h.reloc(4, word(h) + 8, 1, -1))),
        "machine": made(lambda h: (h.header(machine=243), riscv(h))), "core": Host().header(type=4), "order": Host().header(data=2),
        "no-segments": Host().header(phnum=0), "no-sections": Host().header(shnum=0, shoff=0, names=0),
        "sections-size": Host().header(shsize=56), "segments-size": Host().header(phsize=64), "sections-far": Host().header(shoff=1 << 40),
        "in-front": made(in_front, tail=b"appended" * 500), "group": Host().section(".comment", kind=17), "names-mapped": Host().section(".shstrtab", flags=A),
        "name": Host().section(".comment", name=1 << 20),
        "bss": Host().section(".bss", size=1 << 48), "half": made(half), "no-wrapper": made(lambda h: [
            h.wrapper(h[h.wrappers]["addr"] + 24 * i, 0, 0) for i in range(3)]), "no-bits": Host().section(".hip_fatbin", kind=NOBITS),
        "wrappers-unmapped": made(unmapped_wrappers), "outside": made(outside), "swapped": made(swapped),
        "overlap": Host().program(LOAD, 0, memsz=0x2000), "align-small": Host().program(LOAD, 1, align=0x800),
        "align-odd": Host().program(LOAD, 1, align=0x1001), "align-large": Host().program(LOAD, 1, align=0x2000),
        "congruent": made(lambda h: h.program(LOAD, 2, offset=h.segments[2]["offset"] + 8)),
        "filesz": Host().program(LOAD, 1, filesz=334), "far": Host().program(LOAD, 3, addr=1 << 48),
        "beyond": made(lambda h: h.section(".comment", offset=len(h.data))), "symbols": Host().section(".symtab", entsize=23),
        "common-end": Host().section(".debug_info", offset=offset + 1599), "common-start": Host().section(".debug_info", offset=offset - 100),
        "header-in": Host().program(NOTES, offset=offset + 8), "not-mapped": Host().section(".hip_fatbin", flags=0),
        "split": Host().program(LOAD, 0, filesz=offset + 100, memsz=offset + 100), "inner-table": made(inner_table),
        "partly": Host().section(".debug_info", offset=text - 3), "notes": Host().program(NOTES, offset=text),
        "ours": Host(more=[".rocm_kpack_ref"]), "ours-too": Host(more=[".rocm_kpack_layout"]), "rela-in": pointer(word), "symbol-in": pointer(word, 1),
        "inside": pointer(fat), "rel-in": rel, "relr-in": made(relr_more, how="relr"),
        "relr-order": made(lambda h: h.put(h[".relr.dyn"]["addr"] + 8, "<Q", word(h)), how="relr"),
        "tiny": Host(code_size=560), "no-room": Host(**PROGRAM).program(LOAD, 3, memsz=(64 << 30) + 0x10000),
    }
    return {name: h.data for name, h in found.items()}


def spoiled():
    """Converted hosts that contradict themselves: OLD with one field replaced."""
    with open("x.so", "rb") as f:
        old = f.read()
    shoff, n, last = struct.unpack_from("<Q12xHH", old, 40)
    rows = [struct.unpack_from(SHDR, old, shoff + 64 * i) for i in range(n)]
    at = {old[rows[last][4] + r[0]:].split(b"\0")[0].decode(): (shoff + 64 * i, r) for i, r in enumerate(rows)}
    marker, wrappers = at[".rocm_kpack_ref"], at[".hipFatBinSegment"]
    found = {}

    def put(name, where, form, *values):
        data = bytearray(old)
        struct.pack_into(form, data, where, *values)
        found[name] = data
    for name, field, form, value in (("name", 0, "<I", 0), ("nobits", 4, "<I", NOBITS), ("size-0", 32, "<Q", 0), ("address", 16, "<Q", 0x1000),
                                     ("far", 24, "<Q", 2**64 - 1), ("large", 32, "<Q", 1 << 40), ("unmapped", 8, "<Q", 0)):
        put("marker-" + name, marker[0] + field, form, value)
        put("layout-" + name, at[".rocm_kpack_layout"][0] + field, form, value)
    put("shared", at[".debug_odd"][0] + 8, "<QQ", A, marker[1][3])
    put("gone", at[".hip_fatbin"][0], "<I", 0)
    put("back", at[".hip_fatbin"][0] + 4, "<I", PROGBITS)
    put("larger", at[".hip_fatbin"][0] + 32, "<Q", 1 << 33)
    put("index", wrappers[1][4] + 16, "<Q", 7)
    put("fat-again", wrappers[1][4], "<I", 0x48495046)
    put("pointer", at[".rela.dyn"][1][4] + 24 + 16, "<Q", marker[1][3] + 1)
    put("symbol", at[".symtab"][1][4] + 24 * 3 + 6, "<H", list(at).index(".rocm_kpack_ref"))
    put("cut", 0, "0s", b"")
    del found["cut"][-1]
    return found


def main():
    what, to = sys.argv[1:]
    os.makedirs(to)
    made = spoiled() if what == "spoiled" else lies() if what == "lies" else {n: Host(**how).data for n, how in SETS[what].items()}
    for name, data in made.items():
        with open(os.path.join(to, name), "wb") as f:
            f.write(data)
        os.chmod(os.path.join(to, name), 0o755)


if __name__ == "__main__":
    main()
