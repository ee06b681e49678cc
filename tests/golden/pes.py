# SPDX-License-Identifier: MIT
"""pes.py SET DIR: Windows programs and libraries with device code as linkers lay them out, and files that lie;
pes.py sign FILE.

.text has two functions without arguments: one returns 42, one the address of the first wrapper.
"""
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import mkfat  # noqa: E402

DATA, CODE, READ, WRITE, EXEC, DISCARD = 0x40, 0x20, 0x40000000, 0x80000000, 0x20000000, 0x2000000
EXPORT, SIGNATURE, RELOC, DEBUG, CONFIG = 0, 4, 5, 6, 10
X86, ARM = 0x8664, 0xaa64


def up(n, to):
    return -(-n // to) * to


def code(n, size=6000):
    """N bundles, and where they begin"""
    out, at = b"", []
    for i in range(n):
        out += bytes(-len(out) % 4096)
        at.append(len(out))
        out += mkfat.bundle([(a, mkfat.code_object(a, size, "pe%d" % i)) for a in ("gfx1100", "gfx942")], 0, 256)
    return out, at


class Pe:
    """Fields that are not options are made by build(), in a dictionary of numbers that can be changed before."""

    def __init__(self, n=1, machine=X86, base=0x180000000, page=4096, align=512, dll=True, fixed=False, first=False,
                 long=False, symbols=False, debug=0, tail=b"", sign=b"", checksum=False, size=6000, zone=0,
                 wrappers=".hipFatB", spare=0, magic=0x20b, more=(), stub=64, code_tail=0, made=None):
        self.__dict__.update(locals())
        self.code, self.starts = made or code(n, size)
        self.sections, self.words, self.dirs = [], [], {}
        self.layout()

    def add(self, name, flags, data, memory=None):
        rva = self.sections[-1][2] + up(self.sections[-1][3], self.page) if self.sections else self.page
        self.sections.append([name, flags, rva, len(data) if memory is None else memory, bytearray(data)])
        return rva

    def find(self, name):
        return next(s for s in self.sections if s[0] == name)

    def wrapper_section(self):
        at = self.find(self.fat)[2]
        data = b""
        rva = self.sections[-1][2] + up(self.sections[-1][3], self.page)
        for start in self.starts:
            self.words.append(rva + len(data) + 8)
            data += struct.pack("<IIQQ", 0x48495046, 1, self.base + at + start, 0) + bytes(self.zone)
        return self.add(self.wrappers, DATA | READ | WRITE, data)

    def layout(self):
        self.fat = ".hip_fatbin" if self.long else ".hip_fat"
        text = bytearray(b"\xb8\x2a\0\0\0\xc3" + bytes(10) + b"\x48\x8d\x05\0\0\0\0\xc3" + bytes(1000))
        if self.machine == ARM:
            text[:8] = struct.pack("<II", 0x52800540, 0xd65f03c0)
        self.add(".text", CODE | EXEC | READ, text)
        self.rdata = self.add(".rdata", DATA | READ, bytes(2000))
        if self.first:
            self.add(self.fat, DATA | READ, self.code + bytes(self.code_tail))
        data = self.add(".data", DATA | READ | WRITE, bytes(100), 9000)
        if not self.first:
            self.add(self.fat, DATA | READ, self.code + bytes(self.code_tail))
        if self.wrappers:
            at = self.wrapper_section()
        else:  # the linker put them into another section
            self.find(".data")[4][40:64] = struct.pack("<IIQQ", 0x48495046, 1, self.base + self.find(self.fat)[2], 0)
            at = data + 40
            self.words.append(at + 8)
        struct.pack_into("<i", self.find(".text")[4], 19, at - self.page - 23)
        for name in self.more:
            self.add(name, DATA | READ, b"more" + name.encode())
        struct.pack_into("<Q", self.find(".data")[4], 0, self.base + self.rdata)
        self.words.append(data)
        self.exports()
        # a load configuration with a table of addresses, as of /guard:cf
        self.put(1200, struct.pack("<I", 160) + bytes(124) + struct.pack("<QQI", self.base + self.rdata + 1400, 2, 0x500))
        self.words.append(self.rdata + 1200 + 128)
        self.put(1400, struct.pack("<II", self.page, self.page + 16))
        self.dirs[CONFIG] = (self.rdata + 1200, 160)

    def put(self, at, data):
        self.find(".rdata")[4][at:at + len(data)] = data

    def exports(self):
        r = self.rdata
        names = b"lib.dll\0answer\0wrappers\0"
        self.put(0, struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, r + 100, 1, 2, 2, r + 40, r + 48, r + 56))
        self.put(40, struct.pack("<IIIIHH", self.page, self.page + 16, r + 108, r + 115, 0, 1))
        self.put(100, names)
        self.dirs[EXPORT] = (r, 100 + len(names))

    def relocs(self):
        out = b""
        for page in sorted({w & ~4095 for w in self.words}):
            entries = b"".join(struct.pack("<H", 0xa000 | w & 4095) for w in sorted(self.words) if w & ~4095 == page)
            entries += bytes(len(entries) % 4)
            out += struct.pack("<II", page, 8 + len(entries)) + entries
        return out

    def build(self, change=lambda f, d: None):
        if not self.fixed:
            data = self.relocs()
            self.dirs[RELOC] = (self.add(".reloc", DATA | READ | DISCARD, data), len(data))
        strings, names = b"", []
        for s in self.sections:
            name = s[0].encode()
            if len(name) > 8:
                names.append(b"/%d" % (4 + len(strings)))
                strings += name + b"\0"
            else:
                names.append(name)
        table = self.stub + 24 + 240 + 40 * len(self.sections)
        headers = up(table + self.spare, self.align)
        at, where = headers, []
        for s in self.sections:
            raw = up(len(s[4]), self.align) if s[4] else 0
            where.append((raw, at if raw else 0))
            at += raw
        symbols = 0
        tail = b""
        if self.debug:
            r = self.rdata + 600
            rows = struct.pack("<IIHHIIII", 0, 7, 0, 0, 2, 40, r + 100, where[1][1] + 700)
            self.put(700, b"RSDS" + bytes(20) + b"lib.pdb\0")
            if self.debug > 1:  # of data that is not loaded
                rows += struct.pack("<IIHHIIII", 0, 7, 0, 0, 4, 50, 0, at)
                tail += b"misc" * 12 + b"!!" + bytes(14)
            self.put(600, rows)
            self.dirs[DEBUG] = (r, len(rows))
        if strings or self.symbols:
            symbols = at + len(tail)
            tail += (b".file" + bytes(13)) * 2 + struct.pack("<I", 4 + len(strings)) + strings
        tail += self.tail
        if self.sign:
            tail += bytes(-(at + len(tail)) % 8)
            self.dirs[SIGNATURE] = (at + len(tail), len(self.sign))
            tail += self.sign
        f = dict(machine=self.machine, n=len(self.sections), symbols=symbols, n_symbols=2 if symbols else 0, optional=240,
                 flags=0x22 | (0x2000 if self.dll else 0) | (1 if self.fixed else 0), magic=self.magic,
                 data=sum(w[0] for w, s in zip(where, self.sections) if s[1] & DATA), base=self.base, page=self.page,
                 align=self.align, image=self.sections[-1][2] + up(self.sections[-1][3], self.page), headers=headers,
                 check=0, dirs=16)
        rows = [dict(name=n, memory=s[3], rva=s[2], raw=w[0], at=w[1], relocs=0, flags=s[1])
                for n, s, w in zip(names, self.sections, where)]
        f["rows"] = rows
        change(f, self.dirs)
        out = bytearray(b"MZ" + bytes(58) + struct.pack("<I", self.stub) + bytes(self.stub - 64))
        out += b"PE\0\0" + struct.pack("<HHIIIHH", f["machine"], f["n"], 7, f["symbols"], f["n_symbols"], f["optional"], f["flags"])
        out += struct.pack("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII", f["magic"], 14, 0, 512, f["data"], 0, self.page, self.page, f["base"],
                           f["page"], f["align"], 6, 0, 0, 0, 6, 0, 0, f["image"], f["headers"], f["check"], 2, 0x160,
                           1 << 20, 4096, 1 << 20, 4096, 0, f["dirs"])
        for i in range(16):
            out += struct.pack("<II", *self.dirs.get(i, (0, 0)))
        for r in rows:
            out += struct.pack("<8sIIIIIIHHI", r["name"], r["memory"], r["rva"], r["raw"], r["at"], 0, 0, r["relocs"], 0, r["flags"])
        out += bytes(headers - len(out))
        for s, w in zip(self.sections, where):
            out += s[4] + bytes(-len(s[4]) % self.align)
        out += tail
        if self.checksum:
            struct.pack_into("<I", out, self.stub + 88, checksum(out))
        return bytes(out)


def checksum(data):
    total = sum(struct.unpack("<%dH" % ((len(data) + 1) // 2), bytes(data) + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total + len(data)


OVERLAY = b"PK\3\4 an archive that is found by its offset" * 9
CERT = struct.pack("<IHH", 600, 0x200, 2) + bytes(i * 7 & 255 for i in range(592))


def good():
    yield "one.dll", Pe().build()
    yield "three.dll", Pe(n=3).build()
    yield "program.exe", Pe(dll=False, base=0x140000000).build()
    yield "fixed.exe", Pe(dll=False, base=0x400000, fixed=True).build()
    yield "arm.dll", Pe(n=2, machine=ARM).build()
    yield "first.dll", Pe(n=2, first=True).build()
    yield "pages.dll", Pe(page=65536, align=4096).build()
    yield "long.dll", Pe(n=2, long=True).build()
    yield "symbols.dll", Pe(symbols=True, debug=2, first=True).build()
    yield "debug.dll", Pe(debug=1, first=True, stub=128).build()
    yield "checksum.dll", Pe(checksum=True).build()
    yield "zone.dll", Pe(n=3, zone=40).build()
    yield "merged.dll", Pe(wrappers="").build()
    yield "overlay.dll", Pe(tail=OVERLAY).build()
    yield "overlay-last.dll", Pe(tail=OVERLAY, fixed=True, wrappers="", size=60000, spare=80).build()
    yield "zeros.dll", Pe(tail=bytes(5000), checksum=True).build()
    yield "padded.dll", Pe(code_tail=5000).build()
    yield "full.dll", Pe(more=[".s%d" % i for i in range(10)], stub=64 + 8).build()
    yield "signed.dll", Pe(sign=CERT, checksum=True, debug=1).build()
    yield "signed-symbols.dll", Pe(sign=CERT, symbols=True).build()


def change(**fields):
    """of the header, or "row_field" of the row of the device code"""
    def apply(f, dirs):
        for key, value in fields.items():
            if key.startswith("row_"):
                next(r for r in f["rows"] if r["name"].startswith(b".hip_fat"))[key[4:]] = value
            elif key.startswith("dir_"):
                dirs[int(key[4:])] = value
            else:
                f[key] = value
    return apply


def pointing(where):
    pe = Pe(n=2)
    at = pe.find(".hip_fat")[2]
    if where == "in":
        pe.words.append(at + 64)
    elif where == "to":
        struct.pack_into("<Q", pe.find(".data")[4], 16, pe.base + at + 100)
        pe.words.append(pe.find(".data")[2] + 16)
    elif where == "none":
        pe.words = pe.words[1:]
    elif where == "twice":
        pe.words.append(pe.words[0])
    elif where == "past":
        pe.find(".hipFatB")[4][8:16] = struct.pack("<Q", pe.base + at + 8)
    return pe.build()


def bad():
    yield "small.dll", Pe(size=10).build()
    yield "trailing.dll", Pe(sign=CERT, tail=OVERLAY).build() + b"behind"
    yield "pinned-small.dll", Pe(size=10, tail=OVERLAY).build()
    yield "pinned-headers.dll", Pe(tail=OVERLAY, fixed=True, wrappers="").build()
    yield "no-room.dll", b"".join((lambda d: (d[:0x240], b"bound", d[0x245:]))(Pe(spare=100).build()))
    yield "pe32.dll", Pe(magic=0x10b).build()
    yield "itanium.dll", Pe().build(change(machine=0x200))
    yield "tiny-pages.dll", Pe().build(change(page=512))
    yield "odd-align.dll", Pe().build(change(align=513))
    yield "headers.dll", Pe().build(change(headers=0))
    yield "headers-end.dll", Pe().build(change(headers=1 << 30))
    yield "sections.dll", Pe().build(change(n=65535))
    yield "no-sections.dll", Pe().build(change(n=0))
    yield "past-end.dll", Pe().build(change(row_raw=1 << 30))
    yield "wraps.dll", Pe().build(change(row_raw=0xfffffe00, row_at=0xfffffe00))
    yield "shared.dll", Pe().build(change(row_at=512))
    yield "unaligned.dll", Pe().build(change(row_at=0x1001))
    yield "backwards.dll", Pe().build(change(row_rva=0))
    yield "high.dll", Pe().build(change(row_rva=0xfffff000))
    yield "no-memory.dll", Pe().build(change(row_memory=0))
    yield "rows.dll", Pe().build(change(row_relocs=1))
    yield "base.dll", Pe().build(change(base=(1 << 64) - 4096))
    yield "relocs-away.dll", Pe().build(change(dir_5=(0x10, 1 << 20)))
    yield "debug-away.dll", Pe().build(change(dir_6=(0xfffffff0, 28)))
    yield "debug-many.dll", Pe().build(change(dir_6=(0x2000, 1988)))
    yield "directory-in-code.dll", Pe().build(change(dir_9=(0x7010, 16)))
    yield "signature-inside.dll", Pe().build(change(dir_4=(1024, 512)))
    for where in ("in", "to", "none", "twice", "past"):
        yield "pointer-%s.dll" % where, pointing(where)
    pe = Pe(more=[".hip_fat"])
    yield "two.dll", pe.build()
    pe = Pe()
    pe.find(".hipFatB")[4][0:4] = b"ABCD"
    yield "no-wrapper.dll", pe.build()
    pe = Pe()
    pe.find(".hipFatB")[4][:] = bytes(24)
    yield "no-wrappers.dll", pe.build()
    pe.find(".hip_fat")[0] = ".code"
    yield "no-code.dll", pe.build()
    block = Pe()
    block.relocs = lambda: struct.pack("<IIH", 0x1000, 1 << 20, 0xa000)
    yield "block.dll", block.build()
    block = Pe()
    block.relocs = lambda: struct.pack("<IIQ", 0x1000, 0, 1)
    yield "block-empty.dll", block.build()


def cut():
    whole = Pe(n=2).build()
    for size in (50, 70, 100, 330, 700, 1500, 9000, len(whole) - 700):
        yield "cut-%d.dll" % size, whole[:size]


def amd(pe, code_removed=True):
    """Convert as AMD's tool does: whole pages of device code go, the rest of the last stays at the section's start."""
    d = bytearray(pe.build())
    rows, n = pe.stub + 24 + 240, len(pe.sections)
    marker = b"\x82\xb2kpack_search_paths\x91\xba.kpack/amd_@GFXARCH@.kpack" + b"\xabkernel_name\xa9bin/a.dll"
    last = pe.sections[-1]
    rva = last[2] + up(last[3], pe.page)
    name, flags, code, memory, _ = pe.find(".hip_fat")
    for i, w in enumerate(pe.words[:len(pe.starts)]):
        wrappers = pe.find(".hipFatB")
        at = struct.unpack_from("<I", d, rows + 40 * pe.sections.index(wrappers) + 20)[0] + w - 8 - wrappers[2]
        struct.pack_into("<IIQQ", d, at, 0x4b504948, 1, pe.base + rva, i)
    struct.pack_into("<8sIIIIIIHHI", d, rows + 40 * n, b".kpackrf", len(marker), rva, up(len(marker), pe.align), len(d),
                     0, 0, 0, 0, 0x40000040)
    d += marker + bytes(-len(marker) % pe.align)
    struct.pack_into("<H", d, pe.stub + 6, n + 1)
    struct.pack_into("<I", d, pe.stub + 80, rva + pe.page)
    if code_removed:
        row = rows + 40 * pe.sections.index(pe.find(".hip_fat"))
        raw, at = struct.unpack_from("<II", d, row + 16)
        whole = memory // 4096 * 4096
        left = up(memory - whole, pe.align)
        struct.pack_into("<I", d, row + 16, left)
        for i in range(n + 1):
            place = rows + 40 * i + 20
            if struct.unpack_from("<I", d, place)[0] > at:
                struct.pack_into("<I", d, place, struct.unpack_from("<I", d, place)[0] - raw + left)
        d[at:at + raw] = d[at + whole:at + whole + left]
    return bytes(d)


def real():
    """of lld and GNU ld"""
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
    for name in ["hosts/" + n for n in sorted(os.listdir(data + "/hosts")) if n[-4:] in (".dll", ".exe")] + ["samples/windows.dll"]:
        with open(os.path.join(data, name), "rb") as f:
            yield os.path.basename(name), f.read()


def joined():
    """by /merge:.hip_fatbin=.rdata"""
    pe = Pe()
    pe.find(".hip_fat")[0] = ".code"
    yield "joined.dll", pe.build()


def amds():
    yield "a.dll", amd(Pe(n=2))
    yield "small.dll", amd(Pe(size=500), code_removed=False)


def sign(path):
    """as what is done last to files that are shipped"""
    with open(path, "r+b") as f:
        data = bytearray(f.read())
        data += bytes(-len(data) % 8)
        struct.pack_into("<II", data, struct.unpack_from("<I", data, 60)[0] + 136 + 8 * SIGNATURE, len(data), len(CERT))
        f.seek(0)
        f.write(data + CERT)


def main():
    kind, where = sys.argv[1:]
    if kind == "sign":
        return sign(where)
    os.makedirs(where, exist_ok=True)
    for name, data in {"good": good, "bad": bad, "cut": cut, "real": real, "amd": amds, "joined": joined}[kind]():
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
