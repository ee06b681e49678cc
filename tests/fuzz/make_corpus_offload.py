#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target offload_binary: make_corpus_offload.py [DIR]

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


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
    where = os.path.join(top, "offload_binary")
    os.makedirs(where, exist_ok=True)
    for name, data in seeds():
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
