#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets offload_binary and bitcode_embedded:
make_corpus_offload.py [DIR]

good-* is accepted, bad-* refused.  The same bytes every time: compressed data is stored.
"""

import os
import struct
import sys
import zlib

HIP = (1, 4, 0, [(b"triple", b"amdgcn-amd-amdhsa"), (b"arch", b"gfx90a:xnack+")], b"first")
CUDA = (5, 2, 1, [(b"arch", b"sm_80"), (b"note", b"a\0b")], b"//\n")
OLD = (1, 3, 0, [(b"triple", b"amdgcn-amd-amdhsa")], b"old")


def pad(data):
    return data + bytes(-len(data) % 8)


def binary(version, *entries):
    header, record = (32, 16) if version == 1 else (32 if version == 2 else 40, 24)
    maps = header + 40 * len(entries)
    texts = maps + record * sum(len(e[3]) for e in entries)
    table, records, rows, images = b"\0", b"", b"", b""
    for _, _, _, strings, _ in entries:
        for key, value in strings:
            at = texts + len(table)
            records += struct.pack("<QQ", at, at + len(key) + 1)
            records += struct.pack("<Q", len(value)) if version > 1 else b""
            table += key + b"\0" + value + b"\0"
    data = texts + len(table)
    data += -data % 8
    for image, kind, flags, strings, body in entries:
        rows += struct.pack("<HHIQQQQ", image, kind, flags, maps, len(strings),
                            data + len(images), len(body))
        maps += record * len(strings)
        images += body
    size = data + len(images)
    size += -size % 8
    head = b"\x10\xff\x10\xad" + struct.pack("<IQQQ", version, size, header,
                                             40 if version == 1 else len(entries))
    head += bytes(8) if version == 3 else b""
    return pad(pad(head + rows + records + table) + images)


def stored_zlib(data):
    block = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF)
    return b"\x78\x01" + block + data + struct.pack(">I", zlib.adler32(data))


def stored_zstd(data):
    head = struct.pack("<IBI", 0xFD2FB528, 0x20 | 2 << 6, len(data))
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def compressed(plain, coder):
    body = coder(plain[40:])
    head = plain[:8] + struct.pack("<Q", 40 + len(body)) + plain[16:32]
    return pad(head + struct.pack("<Q", len(plain)) + body)


def put(data, at, fmt, value):
    new = struct.pack(fmt, value)
    return data[:at] + new + data[at + len(new):]


def seeds():
    one, many = binary(1, HIP), binary(2, HIP, CUDA)
    three = binary(3, HIP, CUDA, OLD)
    yield "good-v1", one
    yield "good-v2", many
    yield "good-v3", three
    yield "good-v3-zstd", compressed(three, stored_zstd)
    yield "good-v3-zlib", compressed(three, stored_zlib)
    yield "good-in-a-row", one + bytes(16) + many + binary(1, OLD)
    yield "good-nested", binary(2, (0, 8, 0, [], one + compressed(three, stored_zstd)), HIP)
    yield "good-empty", binary(2)
    yield "bad-inflated-size", put(compressed(three, stored_zstd), 32, "<Q", 1 << 32)
    yield "bad-image", put(one, 56, "<Q", (1 << 64) - 4)
    yield "bad-itself", put(one, 56, "<Q", 0)
    yield "bad-strings", put(many, 48, "<Q", 1 << 60)
    yield "bad-entries", put(many, 24, "<Q", (1 << 64) // 40 + 2)


class Bits:
    """Bitcode: a module with constants, among them arrays of bytes."""

    def __init__(self):
        self.bits, self.open = [], []
        self.put(0xDEC04342, 32)

    def put(self, value, n):
        self.bits += [value >> i & 1 for i in range(n)]

    def vbr(self, value, n):
        while value >> (n - 1):
            self.put(value & ((1 << (n - 1)) - 1) | 1 << (n - 1), n)
            value >>= n - 1
        self.put(value, n)

    def align(self):
        self.bits += [0] * (-len(self.bits) % 32)

    def enter(self, width, number):
        self.put(1, width)
        self.vbr(number, 8)
        self.vbr(4, 4)
        self.align()
        self.open.append(len(self.bits))
        self.put(0, 32)

    def leave(self):
        self.put(0, 4)
        self.align()
        at = self.open.pop()
        words = (len(self.bits) - at - 32) // 32
        self.bits[at:at + 32] = [words >> i & 1 for i in range(32)]

    def plain(self, code, values):
        self.put(3, 4)
        self.vbr(code, 6)
        self.vbr(len(values), 6)
        for v in values:
            self.vbr(v, 6)

    def define(self, *operands):
        self.put(2, 4)
        self.vbr(len(operands), 5)
        for encoding, value in operands:
            self.put(encoding == 0, 1)
            if encoding == 0:
                self.vbr(value, 8)
                continue
            self.put(encoding, 3)
            if encoding in (1, 2):
                self.vbr(value, 5)

    def array(self, number, values):
        self.put(number, 4)
        self.vbr(len(values), 6)
        for v in values:
            self.put(v, 8)

    def data(self):
        self.align()
        return bytes(sum(b << i for i, b in enumerate(self.bits[at:at + 8]))
                     for at in range(0, len(self.bits), 8))


def bitcode(body):
    b = Bits()
    b.enter(2, 8)
    b.enter(4, 0)
    b.plain(1, [11])
    b.define((0, 8), (3, 0), (1, 8))
    b.leave()
    b.enter(4, 11)
    b.array(4, body)
    b.define((0, 22), (3, 0), (1, 8))
    b.array(5, body)
    b.plain(9, body)
    b.define((0, 8), (3, 0), (4, 0))
    b.define((0, 8), (5, 0))
    b.leave()
    b.leave()
    return b.data()


def embedded_seeds():
    code = bitcode(binary(1, OLD))
    yield "good-plain", code
    yield "good-wrapped", struct.pack("<IIIII", 0x0B17C0DE, 0, 20, len(code), 7) + code
    yield "bad-cut", code[:-64]


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
    for target, files in (("offload_binary", seeds()), ("bitcode_embedded", embedded_seeds())):
        where = os.path.join(top, target)
        os.makedirs(where, exist_ok=True)
        for name, data in files:
            with open(os.path.join(where, name), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
