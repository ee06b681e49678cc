#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An independent reader of fat binaries: struct and zstandard, none of our code.

fatparse.py ls FILE             "[@kind#]index<TAB>arch<TAB>kind<TAB>size" of every code object
fatparse.py sums FILE KEY       "sha256  key  arch" of every entry that packing FILE makes
                                with KEY before the #, sorted
fatparse.py shape FILE          "wrappers N bundles N relocations KIND..." of the file

FILE is a host ELF of x86-64, AArch64 or PowerPC64 with .hip_fatbin, or a PE file with .hip_fat.  Wrappers are resolved as by the
dynamic linker: RELATIVE, RELR, symbols, or in place.
"""
import hashlib
import struct
import sys
import zlib

RELATIVE, ABSOLUTE = {62: 8, 183: 1027, 21: 22}, {62: 1, 183: 257, 21: 38}
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:2] == b"MZ":
            return self.read_pe()
        assert self.data[:6] == b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF"
        self.machine, = struct.unpack_from("<H", self.data, 18)
        at, = struct.unpack_from("<Q", self.data, 40)
        size, n, names = struct.unpack_from("<HHH", self.data, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.data, at + i * size) for i in range(n)]
        text = self.content(rows[names])
        self.rows = rows
        self.named = {text[r[0]:text.index(b"\0", r[0])].decode(): r for r in rows}

    def read_pe(self):
        """sections of Windows's files as rows of an ELF, under its names; their pointers are in place"""
        names = {".hip_fat": ".hip_fatbin", ".hipFatB": ".hipFatBinSegment", ".kpackrf": ".rocm_kpack_ref"}
        self.rows, self.named, head = [], {}, struct.unpack_from("<I", self.data, 60)[0]
        self.machine, n, optional = struct.unpack_from("<HH12xH", self.data, head + 4)
        base, = struct.unpack_from("<Q", self.data, head + 48)
        for i in range(n):
            name, memory, rva, size, at = struct.unpack_from("<8sIIII", self.data, head + 24 + optional + 40 * i)
            name = name.rstrip(b"\0").decode()
            if name[:1] == "/":
                name = ".hip_fat"  # the only long name in tests
            self.named[names.get(name, name)] = row = (0, 1 if size else 8, 2, base + rva, at, min(memory, size))
            self.rows.append(row)

    def content(self, row):
        return b"" if row[1] == 8 else self.data[row[4]:row[4] + row[5]]

    def fatbin(self):
        row = self.named[".hip_fatbin"]
        return memoryview(self.data)[row[4]:row[4] + row[5]]

    def word(self, vaddr):
        for r in self.rows:
            if r[2] & 2 and r[1] != 8 and r[3] <= vaddr < r[3] + r[5]:
                return struct.unpack_from("<Q", self.data, r[4] + vaddr - r[3])[0]
        raise ValueError("no section holds %#x" % vaddr)

    def relocations(self):
        """address -> (kind, value)"""
        found = {}
        for r in self.rows:
            if r[1] == 4:
                symbols = self.content(self.rows[r[6]])
                for offset, info, addend in struct.iter_unpack("<QQq", self.content(r)):
                    if info & 0xffffffff == RELATIVE[self.machine]:
                        found[offset] = "RELATIVE", addend
                    elif info & 0xffffffff == ABSOLUTE[self.machine]:
                        value, = struct.unpack_from("<Q", symbols, 24 * (info >> 32) + 8)
                        found[offset] = "SYMBOL", value + addend
            elif r[1] == 19:
                at = 0
                for word, in struct.iter_unpack("<Q", self.content(r)):
                    if word & 1 == 0:
                        found[word] = "RELR", self.word(word)
                        at = word + 8
                        continue
                    for bit in range(63):
                        if word >> (bit + 1) & 1:
                            found[at + 8 * bit] = "RELR", self.word(at + 8 * bit)
                    at += 63 * 8
        return found

    def wrappers(self):
        """(kind of relocation, offset in .hip_fatbin) for each"""
        segment, fatbin = self.named.get(".hipFatBinSegment"), self.named[".hip_fatbin"]
        relocations = self.relocations()
        for at in range(0, segment[5] if segment else 0, 24):
            magic, version, pointer, _ = struct.unpack_from("<IIQQ", self.data, segment[4] + at)
            assert (magic, version) == (0x48495046, 1)
            kind, target = relocations.get(segment[3] + at + 8, ("IN-PLACE", pointer))
            yield kind, target - fatbin[3]


def unpack(data):
    """A plain bundle of a container at the start of DATA, and the container's size."""
    if data[:4] != b"CCOB":
        return data, None
    version, method = struct.unpack_from("<HH", data, 4)
    if version == 2:
        size, plain = struct.unpack_from("<II", data, 8)
        body = data[24:size]
    else:
        assert version == 3
        size, plain = struct.unpack_from("<QQ", data, 8)
        body = data[32:size]
    if method:
        import zstandard
        whole = zstandard.ZstdDecompressor().decompress(body)
    else:
        whole = zlib.decompress(body)
    assert len(whole) == plain
    return memoryview(whole), size


def split_id(text):
    """kind and canonical target of an entry ID; target None for the host"""
    parts = text.split("-", 5)
    if parts[0] == "host":
        return "host", None
    # older ones have one dash less
    name, *features = (parts[5] if len(parts) > 5 else parts[4]).split(":")
    return parts[0], ":".join([name] + sorted(features))


def containers(data):
    """offset -> [(kind, arch, bytes)] of every container, in file order"""
    found, at = {}, 0
    while True:
        while at < len(data) and data[at] == 0:
            at += 1
        if at == len(data):
            return found
        bundle, size = unpack(data[at:])
        assert bundle[:24] == MAGIC, "offset %d: no bundle" % at
        n, = struct.unpack_from("<Q", bundle, 24)
        row, objects = 32, []
        end = 0
        for _ in range(n):
            offset, length, name = struct.unpack_from("<QQQ", bundle, row)
            kind, target = split_id(bytes(bundle[row + 24:row + 24 + name]).decode())
            row += 24 + name
            assert offset + length <= len(bundle)
            end = max(end, offset + length, row)
            if target is not None:
                objects.append((kind, target, bundle[offset:offset + length]))
        found[at] = objects
        at += size or end


def entries(elf, key):
    """(key, arch, kind, bytes) as packing must give them"""
    found = containers(elf.fatbin())
    order = [offset for _, offset in elf.wrappers()]
    order += [offset for offset in found if offset not in order]
    for i, offset in enumerate(order):
        seen = {}
        for kind, arch, data in found[offset]:
            there = seen.setdefault(arch, [])
            if any(data == other for _, other in there):
                continue
            suffix = ""
            if there:
                again = sum(k == kind for k, _ in there[1:])
                suffix = "@" + kind + (".%d" % (again + 1) if again else "")
            there.append((kind, data))
            yield "%s%s#%d" % (key, suffix, i), arch, kind, data


def main(command, path, *args):
    elf = Elf(path)
    if command == "ls":
        for key, arch, kind, data in entries(elf, ""):
            print(key.lstrip("#"), arch, kind, len(data), sep="\t")
    elif command == "sums":
        print(*sorted("%s  %s  %s" % (hashlib.sha256(data).hexdigest(), key, arch)
                      for key, arch, _, data in entries(elf, *args)), sep="\n")
    elif command == "shape":
        kinds = [kind for kind, _ in elf.wrappers()]
        print("wrappers", len(kinds), "bundles",
              len(containers(elf.fatbin())),
              "relocations", *sorted(set(kinds)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
