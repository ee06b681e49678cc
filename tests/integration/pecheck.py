#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare a converted Windows file with the fat one it was made from, with a reader of its own.

pecheck.py [--run] FAT CONVERTED     one line per fault, exit status 1 if there is any;
                                     two directories: for each file in both
pecheck.py --alone [--run] FILE      check only rules for every file; or of all in a directory
pecheck.py --hash FILE...            print a hash of sections without the recipe, whose bytes depend on
                                     the version of zstd

Both are mapped at another address, as the loader does.  --run: and the functions that they export are called, answer and wrappers.
"""
import ctypes, hashlib, mmap, os, platform, struct, sys

HIPF, HIPK = 0x48495046, 0x4b504948
DATA = 0x40
faults = []


def fault(text, *args):
    faults.append(text % args)


def up(n, to):
    return -(-n // to) * to


class Section:
    def __init__(self, pe, row):
        name, self.memory, self.rva, self.raw, self.at, self.relocs, _, _, _, self.flags = \
            struct.unpack("<8sIIIIIIHHI", row)
        self.name = name.rstrip(b"\0").decode()
        if self.name[:1] == "/":
            at = pe.symbols + 18 * pe.n_symbols + int(self.name[1:])
            self.name = pe.data[at:pe.data.index(b"\0", at)].decode()
        self.bytes = pe.data[self.at:self.at + self.raw] if self.raw else b""


class Pe:
    def __init__(self, path):
        self.path = path
        d = self.data = open(path, "rb").read()
        self.head = h = struct.unpack_from("<I", d, 60)[0]
        assert d[:2] == b"MZ" and d[h:h + 4] == b"PE\0\0"
        self.machine, n, _, self.symbols, self.n_symbols, optional, self.flags = struct.unpack_from("<HHIIIHH", d, h + 4)
        self.data_size, = struct.unpack_from("<I", d, h + 32)
        self.base, self.page, self.align = struct.unpack_from("<QII", d, h + 48)
        self.image, self.headers, self.check = struct.unpack_from("<III", d, h + 80)
        self.dirs = [struct.unpack_from("<II", d, h + 136 + 8 * i) for i in range(16)]
        self.table = h + 24 + optional
        self.sections = [Section(self, d[self.table + 40 * i:self.table + 40 * i + 40]) for i in range(n)]

    def find(self, *names):
        found = [s for s in self.sections if s.name.startswith(names)]
        return found[0] if found else None

    def words(self):
        rva, size = self.dirs[5]
        s = next((s for s in self.sections if s.rva <= rva < s.rva + len(s.bytes)), None)
        at = rva - s.rva if size else 0
        end = at + size
        while at < end:
            page, block = struct.unpack_from("<II", s.bytes, at)
            for i in range(8, block, 2):
                word, = struct.unpack_from("<H", s.bytes, at + i)
                if word >> 12:
                    assert word >> 12 == 10
                    yield page + (word & 4095)
            at += block

    def map(self, base):
        """as the loader does"""
        m = bytearray(self.image)
        m[:self.headers] = self.data[:self.headers]
        for s in self.sections:
            m[s.rva:s.rva + min(s.memory, len(s.bytes))] = s.bytes[:s.memory]
        if not self.flags & 1:
            for at in self.words():
                value, = struct.unpack_from("<Q", m, at)
                struct.pack_into("<Q", m, at, value + base - self.base)
        return m

    def debug(self):
        """the data that is found by its offset"""
        rva, size = self.dirs[6]
        s = next((s for s in self.sections if s.rva <= rva < s.rva + s.memory), None)
        for at in range(rva - s.rva, rva - s.rva + size, 28) if size else ():
            size, where, offset = struct.unpack_from("<III", s.bytes, at + 16)
            yield s.rva + at + 24, self.data[offset:offset + size]
            s2 = next((s for s in self.sections if where and s.rva <= where < s.rva + s.memory), None)
            if s2 and s2.bytes[where - s2.rva:][:size] != self.data[offset:offset + size]:
                fault("debug data at 0x%x is not at offset %d", where, offset)

    def wrappers(self, memory, base):
        """where they are, magic, place of the pointer, index: found by their pointers"""
        places = {s.rva for s in self.sections if s.name.startswith((".hip_fat", ".kpackrf"))}
        for s in self.sections:
            for at in range(s.rva, s.rva + len(s.bytes) - 23, 8):
                magic, version, pointer, index = struct.unpack_from("<IIQQ", memory, at)
                if magic in (HIPF, HIPK) and version == 1 and any(
                        s.name.startswith((".hip_fat", ".kpackrf")) and s.rva <= pointer - base < s.rva + s.memory
                        for s in self.sections):
                    yield at, magic, pointer - base, index
        assert places

    def alone(self):
        """what every linker's file fulfils, and AMD's verifier checks"""
        end, files = up(self.headers, self.page), [(0, self.headers, "headers")]
        if self.align & (self.align - 1) or self.headers % self.align:
            fault("FileAlignment %d, headers of %d", self.align, self.headers)
        if self.table + 40 * len(self.sections) > self.headers:
            fault("section headers end at %d", self.table + 40 * len(self.sections))
        for s in self.sections:
            if s.rva != end:
                fault("%s is at 0x%x, and not at 0x%x", s.name, s.rva, end)
            end = s.rva + up(s.memory, self.page)
            if s.at % self.align or s.raw % self.align or s.at + s.raw > len(self.data) or (s.at and not s.raw):
                fault("%s: %d bytes at offset %d", s.name, s.raw, s.at)
            if s.raw:
                files.append((s.at, s.at + s.raw, s.name))
        if self.image != end:
            fault("SizeOfImage is 0x%x, and not 0x%x", self.image, end)
        files.sort()
        for (_, a, name), (b, _, other) in zip(files, files[1:]):
            if a > b:
                fault("%s and %s overlap", name, other)
        if self.check:
            d = bytearray(self.data)
            d[self.head + 88:self.head + 92] = bytes(4)
            d += bytes(len(d) % 2)
            total = sum(struct.unpack("<%dH" % (len(d) // 2), d))
            while total >> 16:
                total = (total & 0xffff) + (total >> 16)
            if self.check != total + len(self.data):
                fault("its checksum is wrong")
        rva, size = self.dirs[4]
        if size and rva + size > len(self.data):
            fault("its signature passes the end")
        self.marked()

    def marked(self):
        """wrappers lead to the marker, if there is one, else none to where it would be"""
        marker, memory = self.find(".kpackrf"), self.map(self.base)
        wrappers = list(self.wrappers(memory, self.base))
        wrong = [w for i, w in enumerate(wrappers) if w[1:] != (HIPK, marker.rva, i)] if marker else \
                [w for w in wrappers if w[1] != HIPF]
        if wrong:
            fault("wrappers: %r", wrong)
        if marker and (marker.bytes[:1] != b"\x82" or marker.flags & 0xa0000000 or not wrappers):
            fault("its marker: %r", marker.bytes[:40])

    def exports(self, memory):
        rva, size = self.dirs[0]
        if not size:
            return {}
        n, functions, names, ordinals = struct.unpack_from("<IIII", memory, rva + 24)

        def name(at):
            return memory[at:memory.index(b"\0", at)].decode()
        return {name(struct.unpack_from("<I", memory, names + 4 * i)[0]): struct.unpack_from(
            "<I", memory, functions + 4 * struct.unpack_from("<H", memory, ordinals + 2 * i)[0])[0] for i in range(n)}

    def run(self):
        """call answer and wrappers, where the loader would put them, and follow the pointers"""
        exports = self.exports(self.map(self.base))
        if "answer" not in exports or self.machine != 0x8664 or platform.machine() != "x86_64":
            return
        area = mmap.mmap(-1, self.image, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        base = ctypes.addressof(ctypes.c_char.from_buffer(area))
        if self.flags & 1:  # only its own address fits the pointers
            base = self.base
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
            if libc.mmap(base, self.image, 7, 0x100022, -1, 0) != base:
                return
        memory = bytes(self.map(base))
        ctypes.memmove(base, memory, len(memory))
        if ctypes.CFUNCTYPE(ctypes.c_int)(base + exports["answer"])() != 42:
            fault("answer is another one")
        at = ctypes.CFUNCTYPE(ctypes.c_void_p)(base + exports["wrappers"])()
        magic, version, pointer, index = struct.unpack("<IIQQ", ctypes.string_at(at, 24))
        start = ctypes.string_at(pointer, 40)
        good = start[:1] == b"\x82" and b"kpack_search_paths" in start if magic == HIPK else start[:4] in (b"__CL", b"CCOB")
        if magic not in (HIPF, HIPK) or version != 1 or index > 1 or not good:
            fault("a wrapper leads to %r", start)


def compare(a, b):
    base = 0x7f0000000 if not a.flags & 1 else a.base
    kept = b.find(".hip_fat").raw
    n = len(a.sections)
    for s, t in zip(a.sections, b.sections):
        if (s.name, s.rva, s.memory, s.flags) != (t.name, t.rva, t.memory, t.flags):
            fault("%s became %s at 0x%x", s.name, t.name, t.rva)
    added = [(s.name, s.flags) for s in b.sections[n:]]
    if added != [(".kpackrf", 0x40000040), (".kpackrc", 0x42000040)]:
        fault("added: %r", added)
    marker = b.find(".kpackrf")
    x, y = a.map(base), b.map(base)
    wrappers = list(a.wrappers(x, base))
    if not wrappers:
        fault("no wrappers")
    for i, (at, magic, pointer, index) in enumerate(wrappers):
        there = struct.unpack_from("<IIQQ", y, at)
        if there != (HIPK, 1, base + marker.rva, i):
            fault("wrapper %d is %r", i, there)
        y[at:at + 24] = x[at:at + 24]
    debug = list(a.debug()), list(b.debug())
    if debug[0] != debug[1]:
        fault("debug directory: %r, and %r", *debug)
    for at, _ in debug[0]:
        x[at:at + 4] = y[at:at + 4] = bytes(4)
    code = a.find(".hip_fat")
    if not kept:
        if any(y[code.rva:code.rva + code.memory]):
            fault("device code is left in memory")
        x[code.rva:code.rva + code.memory] = bytes(code.memory)
        if b"hipv4-amdgcn" in b.data[:marker.at] + b.data[marker.at + marker.raw + b.find(".kpackrc").raw:]:
            fault("device code is left in the file")
    for s in a.sections:
        if x[s.rva:s.rva + s.memory] != y[s.rva:s.rva + s.memory]:
            fault("%s differs", s.name)
    expected = a.data_size - (0 if kept else code.raw) + marker.raw + b.find(".kpackrc").raw
    if b.data_size != expected:
        fault("SizeOfInitializedData is %d, and not %d", b.data_size, expected)
    if a.exports(x) != b.exports(y):
        fault("exports: %r", b.exports(y))
    if b.dirs != [(0, 0) if i == 4 else d for i, d in enumerate(a.dirs)]:
        fault("data directories: %r", b.dirs)
    if bool(a.check) != bool(b.check) or a.n_symbols != b.n_symbols:
        fault("checksum or symbols")
    if a.symbols and a.data[a.symbols:][:40] != b.data[b.symbols:][:40]:
        fault("other symbols at %d", b.symbols)
    overlay = a.data.find(b"PK\3\4")
    if overlay >= 0 and b.data[overlay:overlay + 400] != a.data[overlay:overlay + 400]:
        fault("what is behind the sections moved")
    if len(b.data) > len(a.data) and not kept:
        fault("became longer: %d, %d", len(a.data), len(b.data))


def main():
    words = sys.argv[1:]
    run = "--run" in words and not words.remove("--run")
    alone = "--alone" in words and not words.remove("--alone")
    if "--hash" in words:
        text = repr([[(s.name, s.flags, s.rva, s.memory, s.bytes) for s in Pe(f).sections
                      if not s.name.startswith(".kpackrc")] for f in words if f != "--hash"])
        print(hashlib.sha256(text.encode()).hexdigest()[:16])
        return
    pairs = [words]
    if os.path.isdir(words[0]):
        names = sorted(n for n in os.listdir(words[0]) if os.path.isfile(os.path.join(words[-1], n)))
        pairs = [[os.path.join(w, n) for w in words] for n in names]
    bad = 0
    for files in pairs:
        pes = [Pe(f) for f in files]
        for pe in pes:
            pe.alone()
            if run:
                pe.run()
        if not alone and pes[0].data != pes[1].data:
            compare(*pes)
        for text in faults:
            print("%s: %s" % (files[-1], text))
        bad += len(faults)
        faults.clear()
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
