#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare a converted binary with the fat one it was made from, with a reader of its own.

elfcheck.py [--stripped] FAT CONVERTED     one line per fault, exit status 1 if there is any;
                                           two directories: for each file in the first
elfcheck.py --alone FILE                   check only rules for every ELF file; or of all in a directory
elfcheck.py --hash FILE...                 print a hash of segments and sections without the recipe, whose
                                           size depends on the version of zstd

  --stripped   a tool has changed CONVERTED since: unloaded sections, the order of section
               headers and the place of the program headers may differ
"""
import argparse, hashlib, os, random, struct, sys

PAGE = 4096
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_RELR = 2, 3, 4, 8, 9, 11, 19
PT_LOAD, PT_INTERP, PT_PHDR, PT_TLS = 1, 3, 6, 7
ALLOC, EXECINSTR, TLS = 2, 4, 0x400
RELATIVE, ABSOLUTE = {62: 8, 183: 1027, 21: 22}, {62: 1, 183: 257, 21: 38}
MARKER, LAYOUT, TABLE, FATBIN, SEGMENT = \
    ".rocm_kpack_ref", ".rocm_kpack_layout", ".rocm_kpack_phdr", ".hip_fatbin", ".hipFatBinSegment"
HIPF, HIPK = 0x48495046, 0x4b504948
BUNDLES = (b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")

faults = []


def fault(text, *args):
    faults.append(text % args)


class Record:
    def __init__(self, names, values):
        self.__dict__.update(zip(names.split(), values))

    def __contains__(self, address):
        """a segment, or a section that is loaded"""
        return self.addr <= address < self.addr + self.memsz


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            d = self.data = f.read()
        assert d[:6] == b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF"
        self.type, self.machine, _, self.entry, self.phoff, self.shoff, self.flags, _, phsize, \
            n_ph, shsize, n_sh, names = struct.unpack_from("<HHIQQQIHHHHHH", d, 16)
        assert phsize == 56 and shsize == 64
        self.phdrs = [Record("type flags offset addr paddr filesz memsz align",
                             struct.unpack_from("<IIQQQQQQ", d, self.phoff + 56 * i))
                      for i in range(n_ph)]
        self.loads = [p for p in self.phdrs if p.type == PT_LOAD]
        self.sections = [Record("name type flags addr offset memsz link info align entsize",
                                struct.unpack_from("<IIQQQQIIQQ", d, self.shoff + 64 * i))
                         for i in range(n_sh)]
        for i, s in enumerate(self.sections):
            s.index = i
        for s in self.sections:
            s.name = self.text(self.sections[names], s.name)
        self.named = {s.name: s for s in self.sections}

    def content(self, s):
        return b"" if s.type in (0, SHT_NOBITS) else self.data[s.offset:s.offset + s.memsz]

    def text(self, table, at):
        start = table.offset + at
        return self.data[start:self.data.index(b"\0", start)].decode()

    def load_of(self, address):
        return next((p for p in self.loads if address in p), None)

    def memory(self, address, size):
        """bytes at an address before relocation; None where there is none"""
        p = self.load_of(address)
        if not p or address + size > p.addr + p.memsz:
            return None
        at = address - p.addr
        there = self.data[p.offset + at:p.offset + min(at + size, p.filesz)]
        return there + bytes(size - len(there))

    def word(self, address):
        return struct.unpack("<Q", self.memory(address, 8))[0]

    def section_name(self, index):
        return self.sections[index].name if index < len(self.sections) else index

    def symbols(self, s):
        strings = self.sections[s.link]
        return [(self.text(strings, name), info, other, self.section_name(shndx), value, size)
                for name, info, other, shndx, value, size in
                struct.iter_unpack("<IBBHQQ", self.content(s))]

    def relocations(self):
        """address -> value that is stored there when the file is loaded at 0"""
        found = {}
        for s in self.sections:
            if not s.flags & ALLOC:
                continue
            if s.type == SHT_RELA:
                symbols = self.content(self.sections[s.link]) if s.link else b""
                for offset, info, addend in struct.iter_unpack("<QQq", self.content(s)):
                    if info & 0xffffffff == RELATIVE.get(self.machine):
                        found[offset] = addend
                    elif info & 0xffffffff == ABSOLUTE.get(self.machine):
                        found[offset] = addend + struct.unpack_from(
                            "<Q", symbols, 24 * (info >> 32) + 8)[0]
            elif s.type == SHT_REL:
                symbols = self.content(self.sections[s.link]) if s.link else b""
                for offset, info in struct.iter_unpack("<QQ", self.content(s)):
                    if offset and info & 0xffffffff == ABSOLUTE.get(self.machine):
                        found[offset] = self.word(offset) + struct.unpack_from(
                            "<Q", symbols, 24 * (info >> 32) + 8)[0]
            elif s.type == SHT_RELR:
                at = 0
                for word, in struct.iter_unpack("<Q", self.content(s)):
                    slots = [word] if word & 1 == 0 else \
                        [at + 8 * bit for bit in range(63) if word >> (bit + 1) & 1]
                    at = word + 8 if word & 1 == 0 else at + 63 * 8
                    found.update((slot, self.word(slot)) for slot in slots)
        return found

    def wrappers(self, magic):
        """(address, target, reserved1); where there is no section, every word that is one"""
        relocations, found = self.relocations(), []
        segment = self.named.get(SEGMENT)
        places = [segment] if segment else \
            [s for s in self.sections if s.flags & ALLOC and s.type == 1 and s.name != FATBIN]
        for s in places:
            for at in range(-s.addr % 8, s.memsz - 23, 8):
                number, version, pointer, last = struct.unpack_from("<IIQQ", self.data, s.offset + at)
                if (number, version) == (magic, 1):
                    at += s.addr
                    target = relocations.get(at + 8, pointer)
                    if segment or magic == HIPK or target in self.named[FATBIN]:
                        found.append((at, target, last))
        return found


# --- one file ----------------------------------------------------------------------------

def check_loads(e):
    last = None
    for p in e.loads:
        if p.align & (p.align - 1) or p.align and (p.offset - p.addr) % p.align:
            fault("PT_LOAD at %#x: offset %#x is not congruent modulo %#x", p.addr, p.offset, p.align)
        if not p.filesz and p.memsz and p.addr % PAGE and p.offset // PAGE * PAGE >= len(e.data):
            fault("PT_LOAD at %#x: no bytes, amid a page, and that page is not in the file", p.addr)
        if p.filesz > p.memsz or p.filesz and p.offset + p.filesz > len(e.data):
            fault("PT_LOAD at %#x: %#x bytes at %#x are not in the file", p.addr, p.filesz, p.offset)
        if last and p.addr < last.addr + last.memsz:
            fault("PT_LOAD at %#x: below the end of the one before", p.addr)
        last = p


def check_sections(e):
    for s in e.sections:
        if s.type != SHT_NOBITS and s.offset + s.memsz > len(e.data) and s.type:
            fault("%s: outside the file", s.name)
        if not s.flags & ALLOC or s.name == FATBIN or s.flags & TLS and s.type == SHT_NOBITS:
            continue
        p = e.load_of(s.addr) or next((p for p in e.loads if s.addr == p.addr + p.memsz), None)
        if not p or s.addr + s.memsz > p.addr + p.memsz:
            fault("%s: not in one PT_LOAD", s.name)
        elif s.type != SHT_NOBITS and s.memsz and (s.offset - p.offset != s.addr - p.addr or
                                        s.addr + s.memsz > p.addr + p.filesz):
            fault("%s: at offset %#x, but loaded from elsewhere", s.name, s.offset)


def check_links(e):
    for s in e.sections:
        target = e.sections[s.link] if s.link < len(e.sections) else None
        if not target:
            fault("%s: sh_link %d", s.name, s.link)
        elif s.type in (SHT_SYMTAB, SHT_DYNSYM) and target.type != SHT_STRTAB:
            fault("%s: sh_link leads to %s", s.name, target.name)
        elif s.type in (SHT_RELA, SHT_REL) and s.link and \
                target.type not in (SHT_SYMTAB, SHT_DYNSYM):
            fault("%s: sh_link leads to %s", s.name, target.name)


def check_table(e):
    """Where the program headers are, and where the kernel says they are."""
    own = next((p for p in e.phdrs if p.type == PT_PHDR), None)
    if own:
        size = 56 * len(e.phdrs)
        if own.offset != e.phoff or own.filesz != size or own.memsz != size:
            fault("PT_PHDR: offset %#x size %#x, the table is at %#x with %#x",
                  own.offset, own.filesz, e.phoff, size)
        p = e.load_of(own.addr)
        if not p or own.addr + own.memsz > p.addr + p.filesz or \
                own.offset - p.offset != own.addr - p.addr:
            fault("PT_PHDR: %#x is not loaded from %#x", own.addr, own.offset)
        if any(p.type == PT_LOAD for p in e.phdrs[:e.phdrs.index(own)]):
            fault("PT_PHDR: behind a PT_LOAD")
    return own


def check_at_phdr(e):
    """Programs, and Linux before 5.18, compute the table's address from the ELF header's."""
    first, size = e.loads[0], 56 * len(e.phdrs)
    address = e.phoff + first.addr - first.offset
    if e.memory(address, size) != e.data[e.phoff:e.phoff + size]:
        fault("the program headers are not at %#x, as the ELF header says", address)


def page_content(e, address, size, kernel):
    """
    A page of SIZE bytes as loading puts it there, segment after segment, each over what was
    there before.  ld.so clears what a segment has no bytes for; a kernel cannot do so in
    pages that are not writable.  Where a segment without bytes begins inside a page, ld.so
    maps that page of the file, and a kernel an empty one.
    """
    page = None
    for p in e.loads:
        data_end, end = p.addr + p.filesz, p.addr + p.memsz
        file_end = data_end if p.filesz or kernel else -(-data_end // size) * size
        if p.memsz and p.addr // size * size <= address < file_end:
            at = p.offset - p.addr + address
            page = e.data[at:at + size].ljust(size, b"\0")
        if end == data_end or address >= end:
            continue
        if address >= data_end or kernel and not p.filesz and address + size > p.addr:
            page = bytes(size)
        elif page is not None and data_end < address + size and (p.flags & 2 or not kernel):
            page = page[:data_end - address].ljust(size, b"\0")
    return page


def check_own_table(e, own):
    """ld.so takes the first segment whose pages have the table, unless PT_PHDR tells."""
    size = 56 * len(e.phdrs)
    first = next((p for p in e.loads if p.filesz and p.offset // PAGE * PAGE <= e.phoff and
                  e.phoff + size <= -(-(p.offset + p.filesz) // PAGE) * PAGE), None)
    if own or not first:
        return
    address, table = first.addr + e.phoff - first.offset, b""
    while len(table) < size:
        at = address + len(table)
        page = page_content(e, at // PAGE * PAGE, PAGE, False) or bytes(PAGE)
        table += page[at % PAGE:]
    if table[:size] != e.data[e.phoff:e.phoff + size]:
        fault("ld.so looks for the program headers at %#x, where they are not", address)


def check_memory(e):
    """Every section is in memory after loading what it is in the file."""
    largest = max(p.align for p in e.loads) if e.machine in (183, 21) else PAGE
    for size in sorted({PAGE, min(largest, 0x10000)}):
        pages = {}
        for s in e.sections:
            if not s.flags & ALLOC or s.type == SHT_NOBITS or s.name == FATBIN:
                continue
            for address in range(s.addr // size * size, s.addr + s.memsz, size):
                if address not in pages:
                    pages[address] = [page_content(e, address, size, k) for k in (False, True)]
                start, end = max(s.addr, address), min(s.addr + s.memsz, address + size)
                want = e.data[s.offset + start - s.addr:s.offset + end - s.addr]
                for page in pages[address]:
                    if page is None or page[start - address:end - address] != want:
                        fault("%s: at %#x not loaded as it is, pages of %#x", s.name, start, size)
                        return


# --- two files ---------------------------------------------------------------------------

def outside(e, ranges):
    """(start, end) of what no range covers, cut where segments begin and end"""
    cuts = [p.offset for p in e.loads] + [p.offset + p.filesz for p in e.loads]
    ranges, at = ranges + [(cut, cut) for cut in cuts], 0
    for start, end in sorted(ranges):
        if start > at:
            yield at, start
        at = max(at, end)
    if at < len(e.data):
        yield at, len(e.data)


def check_gaps(old, new):
    """Bytes that belong to nothing are zero, or padding of the linker's that was there before."""
    ranges = [(0, 64), (new.phoff, new.phoff + 56 * len(new.phdrs)),
              (new.shoff, new.shoff + 64 * len(new.sections))]
    ranges += [(s.offset, s.offset + s.memsz) for s in new.sections if s.type not in (0, SHT_NOBITS)]
    for start, end in outside(new, ranges):
        gap = new.data[start:end].rstrip(b"\0")
        if not gap.lstrip(b"\0"):
            continue
        start += len(gap) - len(gap.lstrip(b"\0"))
        gap, end = gap.lstrip(b"\0"), start + len(gap.lstrip(b"\0"))
        p = next((p for p in new.loads if p.offset <= start < p.offset + p.filesz), None)
        # the linker's filling, or the old headers at the address where they were; what no segment maps either was there, at another place
        there = gap in old.data if not p else \
            old.memory(p.addr + start - p.offset, end - start) == gap or \
            padding(old, p.addr + start - p.offset, gap)
        if not there:
            fault("offset %#x: %d bytes that belong to nothing", start, end - start)


def padding(old, address, gap):
    """The linker's filling may go on behind the segment's size, to the end of the page."""
    p = next((p for p in old.loads if p.addr <= address <= p.addr + p.filesz), None)
    if not p:
        return False
    at = p.offset + address - p.addr
    return old.data[at:at + len(gap)] == gap


def masked(e, s, wrappers):
    """SECTION's content without what converting may change, which is held against the marker."""
    data = bytearray(e.content(s))
    for at, _, _ in wrappers:
        if at in s:
            data[at - s.addr:at - s.addr + 24] = bytes(24)
    slots = {at + 8 for at, _, _ in wrappers}
    if s.type == SHT_RELA:
        for i in range(0, len(data) - 23, 24):
            if struct.unpack_from("<Q", data, i)[0] in slots:
                data[i + 8:i + 24] = bytes(16)
    return data


def check_content(old, new, wrappers, stripped):
    extra = {s.name for s in new.sections} - {s.name for s in old.sections}
    if not stripped and extra - {MARKER, LAYOUT, TABLE}:
        fault("new sections %s", extra)
    for s in old.sections:
        if s.type == 0 or stripped and not s.flags & ALLOC or s.name == FATBIN:
            continue
        t = next((t for t in new.sections if t.name == s.name and t.addr == s.addr and
                  t.type == s.type), None)
        if not t:
            fault("%s: is gone", s.name)
            continue
        if (s.flags, s.align, s.entsize) != (t.flags, t.align, t.entsize):
            fault("%s: flags, alignment or entry size changed", s.name)
        if old.section_name(s.link) != new.section_name(t.link):
            fault("%s: sh_link led to %s, now to %s", s.name, old.section_name(s.link),
                  new.section_name(t.link))
        if s.type in (SHT_RELA, SHT_REL):
            if old.section_name(s.info) != new.section_name(t.info):
                fault("%s: sh_info led to %s, now to %s", s.name, old.section_name(s.info),
                      new.section_name(t.info))
        elif s.info != t.info:
            fault("%s: sh_info was %d, is %d", s.name, s.info, t.info)
        if s.type in (SHT_SYMTAB, SHT_DYNSYM):
            if old.symbols(s) != new.symbols(t):
                fault("%s: other symbols", s.name)
        elif s.name == ".shstrtab":
            continue
        elif s.memsz != t.memsz or masked(old, s, wrappers) != masked(new, t, wrappers):
            fault("%s: other content", s.name)


def check_segments(old, new):
    """What is no PT_LOAD leads to the same addresses; nothing that was loaded is gone."""
    def rest(e):
        return sorted((p.type, p.flags, p.addr, p.memsz) for p in e.phdrs
                      if p.type not in (0, PT_LOAD, PT_PHDR))
    if rest(old) != rest(new):
        fault("other program headers")
    for p in new.phdrs:
        home = new.load_of(p.addr)
        if p.type not in (PT_LOAD, PT_PHDR) and p.filesz and home and \
                p.offset - home.offset != p.addr - home.addr:
            fault("program header of type %#x: at %#x, loaded from elsewhere", p.type, p.offset)
    for s in old.sections:
        if s.flags & ALLOC and s.name != FATBIN and old.load_of(s.addr):
            p, was = new.load_of(s.addr), old.load_of(s.addr).flags
            # what was executable only for its neighbours' sake need not be so any more
            without = was & ~1 if not s.flags & EXECINSTR else was
            if not p or p.flags not in (was, without):
                fault("%s: in a segment of other permissions", s.name)
    for key in "type", "machine", "entry", "flags":
        if getattr(old, key) != getattr(new, key):
            fault("e_%s: other", key)


def check_marker(old, new):
    marker = new.named.get(MARKER)
    if not marker or not marker.flags & ALLOC:
        fault("no marker that is loaded")
        return
    p, was = new.load_of(marker.addr), old.named[FATBIN]
    # it is in a segment of ours, or in the place of the device code if nothing moved
    inside = marker.addr in was and p and (p.addr, p.memsz) in [(q.addr, q.memsz) for q in old.loads]
    if not p or p.flags != 4 and not inside:
        fault("the marker is not in a read-only segment")
        return
    for s in old.sections:
        if s.flags & ALLOC and not s.flags & TLS and s.memsz and s.name != FATBIN and not inside and \
                s.addr < p.addr + p.memsz and p.addr < s.addr + s.memsz:
            fault("the marker's segment has %s", s.name)
    was, now = old.wrappers(HIPF), new.wrappers(HIPK)
    if not was or [w[0] for w in was] != [w[0] for w in now]:
        fault("wrappers were at %s, are at %s", [w[0] for w in was], [w[0] for w in now])
    if new.named.get(SEGMENT) and new.wrappers(HIPF):
        fault("a wrapper is not converted")
    for i, (at, target, last) in enumerate(now):
        if target != marker.addr or last != i:
            fault("wrapper %d: leads to %#x with index %d", i, target, last)


def check_fatbin(old, new):
    was, now = old.named[FATBIN], new.named.get(FATBIN)
    if not now or now.type != SHT_NOBITS or (now.addr, now.align) != (was.addr, was.align):
        fault("%s: not empty at its place", FATBIN)
    # addresses that it gave up have the program headers, or the marker
    elif now.memsz != was.memsz and not (
            now.memsz < was.memsz and any(was.addr + now.memsz <= p.addr < was.addr + was.memsz
                                          for p in new.loads + [new.named[MARKER]])):
        fault("%s: not empty at its place", FATBIN)


def windows(data, count):
    """offsets of 16 bytes, the first and the last among them"""
    if len(data) < 16:
        return []
    some = random.Random(len(data))
    return [0, len(data) - 16] + [some.randrange(len(data) - 15) for _ in range(count - 2)]


def check_code(old, new):
    """No 16 bytes of device code are left anywhere, except by chance."""
    s = old.named[FATBIN]
    code = old.content(s)
    rest = old.data[:s.offset] + old.data[s.offset + s.memsz:]
    starts, at = [0], 0
    for magic in BUNDLES:
        at = code.find(magic)
        while at >= 0:
            starts.append(at)
            at = code.find(magic, at + 1)
    # an object per ELF, too: in plain bundles
    at = code.find(b"\x7fELF")
    while at >= 0:
        starts.append(at)
        at = code.find(b"\x7fELF", at + 1)
    ends = sorted(set(starts)) + [len(code)]
    pieces = [code[a:b].rstrip(b"\0") for a, b in zip(ends, ends[1:])]
    each = max(4, min(64, int(2e9 / (len(new.data) + len(rest)) / len(pieces))))
    # a layout may name the targets that a bundle's table and an object's notes name
    layout = new.named.get(LAYOUT)
    tables = new.content(layout) if layout else b""
    for piece in pieces:
        for at in windows(piece, each):
            window = piece[at:at + 16]
            if len(set(window)) < 8 or window in rest:
                continue
            found = new.data.find(window)
            if found < 0 or window in tables and (piece.startswith(BUNDLES) or window.isascii()):
                continue
            fault("device code %s is left at offset %#x", window.hex(), found)
            return
    for name, window in ("first", code[:16]), ("last", code[-16:]):
        if len(set(window)) > 7 and window not in rest and window in new.data and \
                window not in tables:
            fault("the %s bytes of %s are left", name, FATBIN)


def check_size(old, new, path):
    s = old.named[FATBIN]
    gone = s.memsz if s.type != SHT_NOBITS else 0
    added = sum(new.named[n].memsz + 64 for n in (MARKER, LAYOUT, TABLE) if n in new.named)
    room = 2 * max(p.align for p in new.loads) + 3 * PAGE + added
    # there may be holes: before the program headers, and where appended bytes keep their offset
    used = os.stat(path).st_blocks * 512
    if used > len(old.data) - gone + room or len(new.data) > len(old.data) and new.named[FATBIN].type == SHT_NOBITS:
        fault("%d bytes, %d of them used, of %d with %d of device code", len(new.data), used,
              len(old.data), gone)


def check_alignment(old, new):
    """No segment may promise less than its sections need, nor AArch64 and PowerPC64 smaller pages."""
    least = max((s.align for s in new.sections if s.flags & ALLOC), default=1)
    if new.machine in (183, 21):
        least = max(least, min(0x10000, max(p.align for p in old.loads)))
    if max(p.align for p in new.loads) < min(least, max(p.align for p in old.loads)):
        fault("segments are aligned to %#x", max(p.align for p in new.loads))


def check_order(new):
    seen = False
    for s in new.sections[1:]:
        if not s.flags & ALLOC:
            seen = True
        elif seen:
            fault("%s: allocated, and behind a header of one that is not", s.name)


def check(old_path, new_path, stripped):
    """Faults of NEW_PATH; OLD_PATH: as a converted form of that file."""
    faults.clear()
    new = Elf(new_path)
    check_loads(new)
    check_sections(new)
    check_memory(new)
    check_links(new)
    own = check_table(new)
    check_own_table(new, own)
    if old_path:
        old = Elf(old_path)
        if not stripped:
            check_at_phdr(new)
            check_order(new)
            check_gaps(old, new)
            check_size(old, new, new_path)
            check_alignment(old, new)
        check_fatbin(old, new)
        check_marker(old, new)
        check_content(old, new, old.wrappers(HIPF), stripped)
        check_segments(old, new)
        check_code(old, new)
    for text in faults:
        print("%s: %s" % (new_path, text))
    return bool(faults)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--stripped", action="store_true")
    p.add_argument("--alone", action="store_true")
    p.add_argument("--hash", action="store_true")
    p.add_argument("files", nargs="+")
    o = p.parse_args()
    if o.hash:
        elfs = [Elf(path) for path in o.files]
        text = repr([([(h.type, h.flags, h.addr, h.filesz, h.memsz, h.align) for h in e.phdrs],
                      [(s.name, s.type, s.flags, s.addr, s.memsz, s.link, s.info, s.align, s.entsize, e.content(s))
                       for s in e.sections if s.name != LAYOUT]) for e in elfs])
        print(hashlib.sha256(text.encode()).hexdigest()[:16])
        return 0
    old, new = None if o.alone else o.files[0], o.files[-1]
    if not os.path.isdir(new):
        return check(old, new, o.stripped)
    names = sorted(os.listdir(old or new))
    assert names
    return any([check(old and os.path.join(old, n), os.path.join(new, n), o.stripped) for n in names])


if __name__ == "__main__":
    sys.exit(main())
