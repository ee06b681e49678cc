#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The corpus of bundler_contents and entry_id: make_corpus_bundler.py [DIRECTORY]."""
import os, struct, sys, zlib

X, Y, H = "hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+", "host-x86_64-unknown-linux-gnu-"


def plain(*entries):
    at = 32 + sum(24 + len(i) for i, _ in entries)
    head, data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    for i, d in entries:
        head += struct.pack("<QQQ", at + len(data), len(d), len(i)) + i.encode()
        data += d
    return head + data


def ccob(payload):
    data = zlib.compress(payload, 0)
    return b"CCOB" + struct.pack("<HHQQQ", 3, 0, 32 + len(data), len(payload), 0) + data


def text(comment, *entries):
    mark = "\n%s __CLANG_OFFLOAD_BUNDLE____%s__ %s\n"
    return "".join(mark % (comment, "START", i) + d + mark % (comment, "END", i) for i, d in entries).encode()


def elf(sections):
    """An object: sections of entries, their names behind."""
    names, body, rows = b"\0.shstrtab\0", b"", [b"\0" * 64]
    for name, data in sections:
        rows.append(struct.pack("<IIQQQQIIQQ", len(names), 1, 0x80000000, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        names += b"__CLANG_OFFLOAD_BUNDLE__" + name.encode() + b"\0"
        body += data
    rows.append(struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64 + len(body), len(names), 0, 0, 1, 0))
    body += names
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0,
                       64, len(rows), len(rows) - 1) + body + b"".join(rows)


bundle = plain((H, b""), (X, b"code"), (Y, b"more code"))
FILES = {
    "bundler_contents": {
        "plain": bundle,
        "compressed": ccob(bundle) + b"\0" * 5 + bundle,
        "text": text("//", (X, "x"), (H, "y\n")) + text(";", (Y, "")),
        "compressed-text": ccob(text("//", (X, "x"), (H, "y\n"))),
        "object": elf([(H, b"\0"), (X, b"code"), (Y, b"")]),
    },
    "entry_id": {
        "same": "\n".join((X, Y)).encode(),
        "hosts": b"host-x86_64-unknown-linux\nhost-amd64-unknown-linux-gnu-",
        "old": b"hip-amdgcn-amd-amdhsa-gfx900\nopenmp-amdgcn-amdhsa-gfx906:sramecc+:xnack+",
        "moved": b"host-x86_64-gnu-linux-pc\nhost-arm-none-eabi-",
    },
}

where = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
for target, files in FILES.items():
    os.makedirs(os.path.join(where, target), exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(where, target, name), "wb") as f:
            f.write(data)
