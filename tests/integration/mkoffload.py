"""Bytes of offload formats, written from their descriptions without any of our code.

Everything nests: the result of one function may be an argument of another.  mkfat.py makes code
objects and bundles of HIP libraries.
"""
import hashlib
import struct
import zlib

from mkfat import align, bundle, code_object, shared_library  # noqa: F401


def raw_bundle(entries, alignment=1):
    """entries: (entry ID, bytes)"""
    at = 32 + sum(24 + len(name) for name, _ in entries)
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    for name, data in entries:
        gap = align(at + len(body), alignment) - at - len(body)
        body += bytes(gap)
        head += struct.pack("<QQQ", at + len(body), len(data), len(name)) + name.encode()
        body += data
    return head + body


def ccob(plain, version=3, method="zstd", digest=None):
    if method == "zstd":
        import zstandard
        packed = zstandard.ZstdCompressor(level=3).compress(plain)
    else:
        packed = zlib.compress(plain)
    digest = digest or hashlib.md5(plain).digest()[:8]
    numbers = {1: ("<I", len(plain)), 2: ("<II", 24 + len(packed), len(plain)),
               3: ("<QQ", 32 + len(packed), len(plain))}[version]
    return (b"CCOB" + struct.pack("<HH", version, method == "zstd") + struct.pack(*numbers) +
            digest + packed)


def text_bundle(entries, comment="//"):
    return b"".join(
        ("\n%s __CLANG_OFFLOAD_BUNDLE____START__ %s\n" % (comment, name)).encode() + data +
        ("\n%s __CLANG_OFFLOAD_BUNDLE____END__ %s\n" % (comment, name)).encode()
        for name, data in entries)


def offload_binary(image, image_kind=1, kind=4, **keys):
    """Version 1: one image."""
    strings, pairs = b"\0", []
    for key, value in keys.items():
        pairs.append((len(strings), len(strings) + len(key) + 1))
        strings += key.encode() + b"\0" + value.encode() + b"\0"
    table = 32 + 40
    text = table + 16 * len(pairs)
    start = align(text + len(strings), 8)
    size = align(start + len(image), 8)
    blob = b"\x10\xff\x10\xad" + struct.pack("<IQQQ", 1, size, 32, 40)
    blob += struct.pack("<HHIQQQQ", image_kind, kind, 0, table, len(pairs), start, len(image))
    blob += b"".join(struct.pack("<QQ", text + k, text + v) for k, v in pairs) + strings
    blob += bytes(start - len(blob)) + image
    return blob + bytes(size - len(blob))


def ar(members):
    """members: (name of at most 15 characters, bytes)"""
    out = b"!<arch>\n"
    for name, data in members:
        out += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name.encode() + b"/", 0, 0, 0, 0o644, len(data))
        out += data + b"\n" * (len(data) % 2)
    return out


def elf_object(sections):
    """An x86-64 object; sections: (name, type, alignment, bytes)"""
    names, at = b"\0", 64
    rows, body = [bytes(64)], b""
    for name, kind, alignment, data in sections + [(".shstrtab", 3, 1, None)]:
        place = len(names)
        names += name.encode() + b"\0"
        if data is None:
            data = names
        body += bytes(align(at + len(body), alignment) - at - len(body))
        rows.append(struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, at + len(body), len(data), 0, 0,
                                alignment, 0))
        body += data
    body += bytes(align(at + len(body), 8) - at - len(body))
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at + len(body), 0, 64, 0, 0, 64, len(rows),
                       len(rows) - 1)
    return ident + head + body + b"".join(rows)


def leb128(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def tileir(names, version=(13, 1)):
    """Bytecode whose entry functions have these names, and no code."""
    out = b"\x7fTileIR\0" + bytes(version) + b"\0\0"

    def section(number, alignment, payload):
        nonlocal out
        out += bytes([number | 0x80]) + leb128(len(payload)) + leb128(alignment)
        out += b"\xcb" * (-len(out) % alignment) + payload

    functions = leb128(len(names))
    for i in range(len(names)):
        functions += leb128(i) + leb128(3) + b"\x02" + leb128(0) + leb128(1) + b"\0"
    def table(items):
        starts = [sum(map(len, items[:i])) for i in range(len(items))]
        head = leb128(len(items))
        head += b"\xcb" * (-len(head) % 4)
        return head + struct.pack("<%dI" % len(starts), *starts) + b"".join(items)

    section(2, 8, functions)
    # two scalars, a tile of them, a function that takes it
    section(5, 4, table([b"\0", b"\3", b"\x0d\1\0", b"\x10\1\2\0"]))
    section(1, 4, table([name.encode() for name in names]))
    return out + b"\0"
