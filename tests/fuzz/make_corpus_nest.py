#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets nest, ar and text_bundle: make_corpus_nest.py [DIR]

good-* is accepted, bad-* refused.  The same bytes every time.
"""

import os
import struct
import sys

from make_corpus_formats import AMDGPU, X86_64, bundle, ccob, code_object, elf

OFFLOADING = 0x6FFF4C0B
START = b"__CLANG_OFFLOAD_BUNDLE____START__ "
END = b"__CLANG_OFFLOAD_BUNDLE____END__ "


def member(name, data, size=None, mode=b"644", owner=b"0"):
    head = b"%-16s%-12s%-6s%-6s%-8s%-10d`\n" % (
        name, owner, owner, owner, mode, len(data) if size is None else size)
    return head + data + b"\n" * (len(data) & 1)


def ar(*members):
    return b"!<arch>\n" + b"".join(members)


def offload(image):
    image += bytes(-len(image) % 8)
    head = struct.pack("<IIQQQ", 0xAD10FF10, 1, 80 + len(image), 32, 40)
    return head + struct.pack("<HHIQQQQ", 1, 4, 0, 72, 0, 80, len(image)) + bytes(8) + image


def symbol_object():
    rows = [(0, 0, 0), (1, 0x12, 1), (7, 0x22, 1), (1, 0x02, 1), (7, 0x10, 0)]
    table = b"".join(struct.pack("<IBBHQQ", n, i, 0, s, 0, 0) for n, i, s in rows)
    return elf(1, X86_64, [(b".symtab", 2, 0, 0, table, 2, 4, 24),
                           (b".strtab", 3, 0, 0, b"\0first\0second\0", 0, 0, 0)])


def fat_object():
    return elf(1, X86_64, [
        (b".hip_fatbin", 1, 2, 0, bundle() + bytes(9) + ccob(3, 1) + code_object(), 0, 0, 0),
        (b"__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", 1, 0, 0, b"\0", 0, 0, 0),
        (b"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx900", 1, 0, 0, b"BC\xc0\xde",
         0, 0, 0),
        (b"any name", OFFLOADING, 0, 0, 2 * offload(code_object()), 0, 0, 0)])


def bitcode():
    """Two symbols in the table at the end of bitcode."""
    strings = b"firstsecond"
    table = struct.pack("<9I", 4, 0, 0, 0, 0, 0, 0, 36, 2)
    table += struct.pack("<6I", 0, 5, 0, 0, 0, 1 << 10) + struct.pack("<6I", 5, 6, 0, 0, 0, 1 << 10)
    return b"BC\xc0\xde" + blob_block(25, table) + blob_block(23, strings)


def blob_block(number, blob):
    bits, size = [], len(blob)

    def put(value, n):
        bits.extend(value >> i & 1 for i in range(n))

    for value, n in (2, 3), (2, 5), (1, 1), (1, 8), (0, 1), (5, 3), (4, 3):
        put(value, n)
    while size >= 32:
        put(size & 31 | 32, 6)
        size >>= 5
    put(size, 6)
    value = sum(b << i for i, b in enumerate(bits))
    body = value.to_bytes((len(bits) + 31) // 32 * 4, "little")
    body += blob + bytes(-len(blob) % 4) + bytes(4)
    return struct.pack("<II", 1 | number << 2 | 3 << 10, len(body) // 4) + body


def text(comment, *entries):
    return b"".join(b"\n%s %s%s\n%s\n%s %s%s\n" % (comment, START, i, c, comment, END, i)
                    for i, c in entries)


def nests():
    yield "good-library", ar(member(b"fat.o/", fat_object()), member(b"z/", ccob(2, 1)),
                             member(b"text/", b"odd"))
    yield "good-fat-object", fat_object()
    yield "good-compressed", ccob(3, 1, bundle([(b"hip-a", offload(ccob(3, 1)))]))
    yield "good-offload", offload(bundle()) + offload(code_object())
    yield "good-text", text(b"//", (b"hip-amdgcn-amd-amdhsa--gfx900", b"A"), (b"x", bundle()))
    yield "good-archives", ar(member(b"a.a/", ar(member(b"b.a/", ar(member(b"c/", bundle()))))))
    yield "bad-sections", fat_object()[:-64]
    yield "bad-thin", b"!<thin>\n" + member(b"/0", b"")
    yield "bad-tail", bundle() + b"tail"


def ars():
    names = member(b"//", b"a_name_of_some_length.o/\nd/b.o/\n\n", mode=b"", owner=b"")
    yield "good-gnu", ar(member(b"/", bytes(4), mode=b"0"), names, member(b"a.o/", b"odd"),
                         member(b"/0", b"even"), member(b"/25", b""))
    yield "good-bsd", ar(member(b"#1/12", b"__.SYMDEF\0\0\0xx"), member(b"#1/8", b"name\0\0\0\0body"),
                         member(b"short.o", b"x"))
    # an index, 64 bits wide for Darwin, of one symbol in each of three members
    members = [b"#1/4", b"abc\0" + b"12345678"], [b"#1/4", b"def\0" + b"1234"], [b"#1/4", b"ghi\0" + b"90"]
    for kind, name, word in ("bsd", b"__.SYMDEF SORTED", "I"), ("darwin", b"__.SYMDEF_64", "Q"):
        width = struct.calcsize(word)
        at = 8 + 60 + len(name) + 8 * width + 8
        pairs = b""
        for i, (_, body) in enumerate(members):
            pairs += struct.pack("<" + 2 * word, 2 * i, at)
            at += 60 + len(body)
        index = struct.pack("<" + word, len(pairs)) + pairs + struct.pack("<" + word, 8) + b"a\0b\0c\0\0\0"
        yield "good-index-" + kind, ar(member(b"#1/%d" % len(name), name + index),
                                       *(member(*m) for m in members))
    yield "good-objects", ar(member(b"a.o/", symbol_object()), member(b"b.bc/", bitcode()),
                             member(b"c.o/", symbol_object()))
    yield "good-empty", ar()
    names = member(b"//", b"../far.o/\nb.o/\n", mode=b"", owner=b"")
    yield "good-thin", b"!<thin>\n" + names + member(b"/0", b"", size=9999) + member(b"/10", b"")
    yield "bad-name", ar(member(b"/7", b""))
    yield "bad-size", ar(member(b"a/", b"1", size=3))
    yield "bad-thin", b"!<thin>\n" + names + member(b"/0:94", b"")


def texts():
    yield "good-sources", text(b"//", (b"host-x86_64-unknown-linux", b"AAA\n"),
                               (b"hip-amdgcn-amd-amdhsa--gfx900", b"B"), (b"c", b""))
    yield "good-ir", text(b";", (b"a", b"; x"))
    yield "good-dependencies", b"junk" + text(b"#", (b"a", b"a: b\n")) + b"more" + text(b"#", (b"a", b""))
    yield "good-crlf", text(b"//", (b"a", b"A\n"), (b"b", b"B")).replace(b"\n", b"\r\n")
    yield "good-start-inside", text(b"//", (b"a", text(b"//", (b"b", b"B"))[:45]))
    yield "bad-nested", text(b"//", (b"a", text(b"//", (b"b", b"B"))))
    yield "bad-end", text(b"//", (b"a", b"A"))[:-40]


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
    for target, seeds in ("nest", nests), ("ar", ars), ("text_bundle", texts):
        os.makedirs(os.path.join(top, target), exist_ok=True)
        for name, data in seeds():
            with open(os.path.join(top, target, name), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
