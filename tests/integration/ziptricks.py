#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Make correct and lying wheels with Python's zipfile: ziptricks.py TRICK OUT.whl
"""
import base64
import hashlib
import os
import struct
import sys
import zipfile
import zlib

WHEEL = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PLAIN = {"x/__init__.py": b"a = 1\n", "x/data.bin": bytes(range(256)) * 40}


def metadata(name="x", version="1.0", more=""):
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\nText.\n".encode()


def digest(data, kind="sha256"):
    raw = hashlib.new(kind, data).digest()
    return f"{kind}=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def quoted(text):
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def lines(files, hashed=digest):
    return {n: f"{quoted(n)},{hashed(b)},{len(b)}" for n, b in files.items()}


def entry(name, mode=0o100644):
    info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
    info.external_attr = mode << 16
    info.create_system = 3
    return info


def make(out, files=None, name="x", version="1.0", more="", modes=None, method=zipfile.ZIP_DEFLATED,
         record=None, extra=(), wheel=WHEEL):
    """Write a wheel; RECORD is a function from {path: line} to its lines."""
    info = f"{name}-{version}.dist-info"
    files = dict(PLAIN if files is None else files)
    files[f"{info}/METADATA"] = metadata(name, version, more)
    if wheel is not None:
        files[f"{info}/WHEEL"] = wheel
    rows = list((record or (lambda r: r.values()))(lines(files)))
    rows.append(f"{info}/RECORD,,")
    files[f"{info}/RECORD"] = "".join(r + "\n" for r in rows).encode()
    with zipfile.ZipFile(out, "w", method) as z:
        for path, data in files.items():
            z.writestr(entry(path, 0o100000 | (modes or {}).get(path, 0o644)), data, method)
        for path, data, mode in extra:
            z.writestr(entry(path, mode), data, method)


def bytes_of(out):
    with open(out, "rb") as f:
        return bytearray(f.read())


def patch(out, change):
    """Make a plain wheel and let CHANGE change its bytes; it may return others."""
    make(out, method=zipfile.ZIP_STORED)
    data = bytes_of(out)
    data = change(data) or data
    with open(out, "wb") as f:
        f.write(data)


def central(data, name):
    """Where the directory's entry of NAME is."""
    at = data.rindex(name.encode()) - 46
    assert data[at:at + 4] == b"PK\1\2"
    return at


def local(data, name):
    at = data.index(name.encode()) - 30
    assert data[at:at + 4] == b"PK\3\4"
    return at


def put(data, at, fmt, value):
    struct.pack_into("<" + fmt, data, at, value)


def both(data, name, offset, fmt, value):
    """A field of the local header, and the same in the directory, two bytes further."""
    put(data, local(data, name) + offset, fmt, value)
    put(data, central(data, name) + offset + 2, fmt, value)


def bomb(out):
    make(out, {"x/zeros": b"\0" * (300 << 20)})


def lie_size(data, more):
    """Decoded size of a deflated member."""
    both(data, "x/data.bin", 22, "I", 10240 + more)


def deflated(change):
    def run(out):
        make(out)
        data = bytes_of(out)
        change(data)
        with open(out, "wb") as f:
            f.write(data)
    return run


def overlap(data):
    """A member that begins inside another one."""
    at = central(data, "x/data.bin")
    put(data, at + 42, "I", local(data, "x/__init__.py"))


def reach(data):
    both(data, "x-1.0.dist-info/RECORD", 18, "I", 1 << 20)
    both(data, "x-1.0.dist-info/RECORD", 22, "I", 1 << 20)


def nul(data):
    for at in (local(data, "x/data.bin") + 30, central(data, "x/data.bin") + 46):
        data[at + 1] = 0


def rename(new):
    """All places where x/data.bin stands, RECORD too."""
    def run(data):
        assert len(new) == len(b"x/data.bin")
        return data.replace(b"x/data.bin", new)
    return run


def crc(data):
    both(data, "x/data.bin", 14, "I", 1)


def second_name(name):
    """Info-ZIP's other name of x/data.bin, in the directory: unzip and newer Pythons use it."""
    def run(data):
        field = b"\1" + struct.pack("<I", zlib.crc32(b"x/data.bin")) + name
        field = struct.pack("<HH", 0x7075, len(field)) + field
        at = central(data, "x/data.bin")
        put(data, at + 30, "H", len(field))
        data[at + 46 + len("x/data.bin"):at + 46 + len("x/data.bin")] = field
        put(data, end(data) + 12, "I", struct.unpack_from("<I", data, end(data) + 12)[0] + len(field))
    return run


def flags(value):
    return lambda data: both(data, "x/data.bin", 6, "H", value)


def end(data):
    return data.rindex(b"PK\5\6")


def many(data):
    put(data, end(data) + 8, "H", 60000)
    put(data, end(data) + 10, "H", 60000)


def disks(data):
    put(data, end(data) + 4, "H", 1)


def cut(rows):
    return [r for n, r in rows.items() if n != "x/data.bin"]


def field(name, n, value):
    def run(rows):
        parts = rows[name].split(",")
        parts[n] = value
        return list({**rows, name: ",".join(parts)}.values())
    return run


def add_row(row):
    return lambda rows: list(rows.values()) + [row]


def hexadecimal(rows):
    return [f"{n},sha256={hashlib.sha256(PLAIN.get(n, b'')).hexdigest()},{r.split(',')[2]}"
            if n in PLAIN else r for n, r in rows.items()]


def sha512(rows):
    return [f"{n},{digest(PLAIN[n], 'sha512')},{len(PLAIN[n])}" if n in PLAIN else r
            for n, r in rows.items()]


def zip64(out):
    """Local headers with zip64 fields, as streaming writers leave them."""
    make(out)
    with zipfile.ZipFile(out) as z:
        files = [(i, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for info, data in files:
            with z.open(entry(info.filename), "w", force_zip64=True) as f:
                f.write(data)


class Stream:
    """A file that cannot seek: sizes then stand behind the data."""

    def __init__(self, f):
        self.f = f

    def write(self, data):
        return self.f.write(data)

    def flush(self):
        self.f.flush()


def streamed(out):
    make(out + ".tmp")
    with zipfile.ZipFile(out + ".tmp") as z, open(out, "wb") as f, \
            zipfile.ZipFile(Stream(f), "w", zipfile.ZIP_DEFLATED) as to:
        for info in z.infolist():
            to.writestr(entry(info.filename), z.read(info))
    os.unlink(out + ".tmp")


def rich(out):
    """What a wheel may have: modes, names to be quoted, nothing, much, other letters."""
    files = {"x/__init__.py": b"a = 1\n", 'x/run, "it".sh': b"#!/bin/sh\n", "x/empty": b"",
             "x/zeros": bytes(2500000) + b"abc" * 400000, "x/\u00fc.txt": b"u",
             "x/code.kpack": bytes((i * i >> 7) & 255 for i in range(1300000))}
    make(out, files, modes={'x/run, "it".sh': 0o755})


def directories(out):
    make(out, extra=[("x/", b"", 0o040755)])


TRICKS = {
    "plain": make, "rich": rich, "zip64": zip64, "streamed": streamed, "directories": directories,
    "hexadecimal": lambda o: make(o, record=hexadecimal),
    "sha512": lambda o: make(o, record=sha512),
    "bomb": bomb,
    "less": deflated(lambda d: lie_size(d, 10)),
    "more": deflated(lambda d: lie_size(d, -10)),
    "huge": deflated(lambda d: lie_size(d, 1 << 30)),
    "crc": lambda o: patch(o, crc),
    "overlap": lambda o: patch(o, overlap),
    "reach": lambda o: patch(o, reach),
    "nul": lambda o: patch(o, nul),
    "up": lambda o: patch(o, rename(b"x/../d.bin")),
    "absolute": lambda o: patch(o, rename(b"/x/ata.bin")),
    "dot": lambda o: patch(o, rename(b"x/./ta.bin")),
    "empty-component": lambda o: patch(o, rename(b"x//ata.bin")),
    "backslash": lambda o: patch(o, rename(b"x\\data.bin")),
    "drive": lambda o: patch(o, rename(b"C:/data.bi")),
    "control": lambda o: patch(o, rename(b"x/da\x1ba.bin")),
    "latin": lambda o: patch(o, rename(b"x/da\xffa.bin")),
    "duplicate": lambda o: make(o, extra=[("x/data.bin", b"", 0o100644)]),
    "below-file": lambda o: make(o, extra=[("x/data.bin/y", b"", 0o100644)]),
    "file-and-directory": lambda o: make(o, extra=[("x/data.bin/", b"", 0o040755)]),
    "symlink": lambda o: make(o, extra=[("x/link", b"/etc/passwd", 0o120777)]),
    "fifo": lambda o: make(o, extra=[("x/fifo", b"", 0o010644)]),
    "encrypted": lambda o: patch(o, flags(1)),
    "bzip2": lambda o: make(o, method=zipfile.ZIP_BZIP2),
    "many": lambda o: patch(o, many),
    "disks": lambda o: patch(o, disks),
    "second-name": lambda o: patch(o, second_name(b"x/evil.bin")),
    "same-name": lambda o: patch(o, second_name(b"x/data.bin")),
    "trailing": lambda o: patch(o, lambda d: d + b"more"),
    "leading": lambda o: patch(o, lambda d: b"more" + d),
    "cut": lambda o: patch(o, lambda d: d[:-30]),
    "nothing": lambda o: open(o, "wb").close(),
    "text": lambda o: open(o, "wb").write(b"no zip archive" * 100),
    "unlisted": lambda o: make(o, record=cut),
    "listed": lambda o: make(o, record=add_row("x/gone.py," + digest(b"") + ",0")),
    "listed-twice": lambda o: make(o, record=add_row("x/data.bin," + digest(b"") + ",0")),
    "wrong-hash": lambda o: make(o, record=field("x/data.bin", 1, digest(b"other"))),
    "wrong-size": lambda o: make(o, record=field("x/data.bin", 2, "7")),
    "no-hash": lambda o: make(o, record=field("x/data.bin", 1, "")),
    "md5": lambda o: make(o, record=field("x/data.bin", 1, "md5=AAAA")),
    "csv": lambda o: make(o, record=add_row('"x/open')),
    "no-record": lambda o: patch(o, lambda d: d.replace(b"/RECORD", b"/RECOR_")),
    "no-wheel": lambda o: make(o, wheel=None),
    "wheel-2": lambda o: make(o, wheel=WHEEL.replace(b"1.0", b"2.0")),
    "two-infos": lambda o: make(o, extra=[("y-1.0.dist-info/METADATA", b"", 0o100644)]),
    "other-name": lambda o: make(o, name="y"),
    "other-version": lambda o: make(o, version="1.1"),
}

if __name__ == "__main__":
    TRICKS[sys.argv[1]](sys.argv[2])
