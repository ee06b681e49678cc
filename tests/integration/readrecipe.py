#!/usr/bin/python3
"""An independent reader of recipes, by kpack-format(5) and nothing else.

readrecipe.py binary FILE OUT ARCHIVE...     OUT becomes the original of the converted binary FILE
readrecipe.py kept FILE|- OUT ARCHIVE PATH   OUT becomes the original of PATH, which FILE replaced

Run it with /usr/bin/python3: only that one has Debian's modules.  Any violation of the format is
an exception and exit code 1.
"""
import struct
import sys

import msgpack
import zstandard
from readkpack import Archive, xxh3_128


def numbers(data):
    """The LEB128 numbers of DATA."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        assert shift <= 63
        if byte < 128:
            yield value
            value = shift = 0
    assert shift == 0, "a number without an end"


def signed(n):
    return -(n + 1) // 2 if n & 1 else n // 2


class Recipe:
    def __init__(self, data):
        d = zstandard.ZstdDecompressor().decompressobj()
        self.map = msgpack.unpackb(d.decompress(data))
        assert self.map["version"] == 1
        rest, self.differences = d.unused_data, []
        while len(rest) >= 8 and struct.unpack_from("<I", rest)[0] == 0x184d2a50:
            (size,) = struct.unpack_from("<I", rest, 4)
            self.differences.append(rest[8:8 + size])
            rest = rest[8 + size:]
        assert not rest.strip(b"\0")
        self.bin = lambda name: self.map.get(name, b"")
        column = list(numbers(self.bin("objects")))
        self.targets = [self.map["targets"][t] for t in column[:len(column) // 2]]
        self.sizes = column[len(column) // 2:]
        unknown, at = set(numbers(self.bin("unknown"))), 0
        self.hashes = []
        for i, size in enumerate(self.sizes):
            known = size and not self.targets[i][2] and i not in unknown
            self.hashes.append(self.bin("hashes")[at:at + 6] if known else None)
            at += 6 * bool(known)
        assert at == len(self.bin("hashes"))
        self.containers, first = [], 0
        for n in numbers(self.bin("containers")):
            self.containers.append(range(first, first + n))
            first += n
        leads, at = [], 0
        for n in numbers(self.bin("wrappers")):
            leads.append(at + signed(n))
            at = leads[-1] + 1
        self.index = {c: leads.index(c) for c in leads}
        loose = [c for c in range(len(self.containers)) if c not in leads]
        self.index.update({c: len(leads) + i for i, c in enumerate(loose)})
        self.forms, rest = [], self.bin("compressed")
        while rest:
            row = []
            for _ in range(5):
                n = next(i for i, b in enumerate(rest) if b < 128) + 1
                row += numbers(rest[:n])
                rest = rest[n:]
            self.forms.append((row, rest[:8], rest[8:24]))
            rest = rest[24:]

    def parts(self):
        operands = {0: 2, 1: 1, 2: 1, 3: 0, 4: 1, 5: 3, 6: 0, 7: 0, 8: 2}
        values = numbers(self.bin("parts"))
        for kind in values:
            yield kind, [next(values) for _ in range(operands[kind])]

    def restore(self, changed, find):
        """The original; FIND gives the bytes of the object with a number."""
        parts, own = list(self.parts()), self.bin("bytes")
        copied, shift, following, taken, container, compressed = b"", 0, 0, 0, -1, 0

        def make(parts):
            nonlocal copied, shift, following, taken, container, compressed
            out, headers, places = bytearray(), [], {}
            while parts:
                (kind, n), parts = parts[0], parts[1:]
                if kind == 0:
                    shift += signed(n[0])
                    at = len(out) + shift
                    assert 0 <= at <= at + n[1] <= len(changed), "copy"
                    copied += changed[at:at + n[1]]
                    out += changed[at:at + n[1]]
                elif kind == 1:
                    out += own[taken:taken + n[0]]
                    taken += n[0]
                elif kind == 2:
                    out += bytes(n[0])
                elif kind == 3:
                    out += bytes(-len(out) % 4096)
                elif kind in (4, 5):
                    number = following + signed(n[0])
                    following = number + 1
                    if kind == 4:
                        places[number] = len(out)
                    if kind == 4 and self.targets[number][2]:
                        data = own[taken:taken + self.sizes[number]]
                        taken += len(data)
                    else:
                        data = find(number) if self.sizes[number] else b""
                    assert len(data) == self.sizes[number]
                    assert self.hashes[number] in (None, xxh3_128(data)[:6])
                    out += data if kind == 4 else data[n[1]:n[1] + n[2]]
                elif kind == 6:
                    container += 1
                elif kind == 7:
                    headers.append((len(out), container))
                    out += bytes(32 + sum(24 + len(self.targets[i][0].encode()) for i in self.containers[container]))
                elif kind == 8:
                    (row, digest, whole), compressed = self.forms[compressed], compressed + 1
                    plain, parts = make(parts[:n[0]]), parts[n[0]:]
                    if row[4]:
                        prefix = zstandard.ZstdCompressionDict(plain, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
                        data = zstandard.ZstdDecompressor(dict_data=prefix, max_window_size=1 << 31).decompress(
                            self.differences[sum(f[0][4] > 0 for f in self.forms[:compressed - 1])])
                    else:
                        raise ValueError("a compressor is needed")
                    assert len(data) == n[1] and xxh3_128(data) == whole, "compressed bundle"
                    out += data
            for at, number in headers:
                head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(self.containers[number]))
                for i in self.containers[number]:
                    name = self.targets[i][0].encode()
                    head += struct.pack("<QQQ", places[i] - at, self.sizes[i], len(name)) + name
                out[at:at + len(head)] = head
            return bytes(out)

        out = make(parts)
        assert taken == len(own) and len(out) == self.map["size"]
        assert xxh3_128(copied) == self.map["copied"], "copied"
        return out


def section(data, name):
    (at,) = struct.unpack_from("<Q", data, 40)
    n, names = struct.unpack_from("<HH", data, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(n)]
    for row in rows:
        if data[rows[names][4] + row[0]:].split(b"\0")[0] == name:
            return data[row[4]:row[4] + row[5]]
    raise ValueError("no section")


def main(command, path, to, *more):
    changed = b""
    if path != "-":
        with open(path, "rb") as f:
            changed = f.read()
    archives = [Archive(a) for a in more[:1 if command == "kept" else None]]
    if command == "kept":
        toc = archives[0].top["toc"]
        recipe = Recipe(archives[0].get(toc[more[1]]["generic"]))
        data = recipe.restore(changed, lambda n: archives[0].get(toc["%s#%d" % (more[1], n)]["generic"]))
        assert xxh3_128(data) == recipe.map["file"][0]
    else:
        recipe = Recipe(section(changed, b".rocm_kpack_layout"))

        def find(number):
            c = next(c for c, r in enumerate(recipe.containers) if number in r)
            for archive in archives:
                for key, arch, entry in archive.entries():
                    if arch == recipe.targets[number][1] and key.endswith("#%d" % recipe.index[c]):
                        data = archive.get(entry)
                        if xxh3_128(data)[:6] == recipe.hashes[number]:
                            return data
            raise KeyError(number)

        data = recipe.restore(changed, find)
    with open(to, "wb") as f:
        f.write(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
