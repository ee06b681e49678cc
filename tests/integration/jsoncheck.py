#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""An independent check of metadata as JSON: random MessagePack, and the JSON it must become.

    jsoncheck.py make SEED COUNT FILE     write COUNT values to FILE, each after its u32 length
    jsoncheck.py check SEED COUNT FILE    check FILE, which has a line of JSON for each value

Values are hostile: strings that are not UTF-8, equal keys, keys that are not strings, in all of
MessagePack's encodings.  Run it with /usr/bin/python3: only that one has msgpack.
"""
import json
import math
import random
import struct
import sys
import unicodedata

import msgpack


class Map(list):
    """Pairs, equal keys included."""


# characters on both sides of a limit: of a length in UTF-8, of what is a control, of what is seen
LIMITS = [0, 9, 10, 0x1b, 0x1f, 0x22, 0x2f, 0x5c, 0x7f, 0x80, 0x9b, 0x9f, 0xa0, 0xac, 0xad, 0xae, 0x34f, 0x61c, 0x7ff,
          0x800, 0x115f, 0x17b5, 0x180e, 0x200a, 0x200b, 0x200f, 0x2010, *range(0x2027, 0x2030), 0x205f,
          *range(0x2060, 0x2071), 0x3164, 0xd7ff, 0xe000, 0xfe0f, 0xfeff, 0xffa0, *range(0xfffb, 0x10001), 0x1d173,
          0xe0041, 0xe0fff, 0xe1000, 0x10ffff]
# longer than needed, half of a pair, too high, cut short
WRONG = [b"\x80", b"\xff\xfe", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80",
         b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3",
         b"\xe2\x82", b"\xf0\x9f\x98", b"x", b"\xc3\xb6"]


def random_text(r):
    kind = r.randrange(7)
    if kind == 0:
        return bytes(r.randrange(256) for _ in range(r.randrange(12)))
    if kind == 1:
        return "".join(chr(r.choice(LIMITS)) for _ in range(r.randrange(8))).encode()
    if kind == 2:
        return "äß€漢😀"[:r.randrange(6)].encode()[:r.randrange(1, 16)]
    if kind == 6:
        return b"".join(r.choices(WRONG, k=r.randrange(6)))
    return "".join(r.choice("abc/._-#\"\\ ") for _ in range(r.randrange(30 if kind == 3 else 3))).encode()


INTEGERS = [0, 1, 127, 128, 255, 256, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
            2**64 - 1, -1, -32, -33, -128, -129, -32768, -32769, -2**31, -2**31 - 1, -2**63]
FLOATS = [0.0, -0.0, 1.0, 1.5, 0.1, 1e20, 1e300, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf,
          123456789012345678.0, 2.0**-1074, -1e-7]


def random_value(r, depth):
    kind = r.randrange(11 if depth < 5 else 8)
    if kind == 0:
        return None
    if kind == 1:
        return r.random() < .5
    if kind == 2:
        return r.choice(INTEGERS)
    if kind == 3:
        return r.choice(FLOATS) if r.random() < .5 else struct.unpack("<d", r.randbytes(8))[0]
    if kind == 4:
        return struct.pack(">f", r.choice([0.1, 1.0, -2.5, 3e38, math.inf, math.nan])), "f32"
    if kind == 5:
        return r.randbytes(r.choice([0, 1, 16, 20])), "bin"
    if kind == 6:
        return msgpack.ExtType(r.randrange(0, 128), r.randbytes(r.choice([0, 1, 2, 3, 4, 8, 16, 17])))
    if kind == 7:
        return random_text(r)
    if kind == 8:
        return [random_value(r, depth + 1) for _ in range(r.randrange(5))]
    return random_map(r, depth)


def random_map(r, depth):
    pairs = Map()
    for _ in range(r.randrange(6)):
        if pairs and r.random() < .2:
            key = r.choice(pairs)[0]
        elif r.random() < .7:
            key = random_text(r)
        else:
            key = random_value(r, depth + 2)
        pairs.append((key, random_value(r, depth + 1)))
    return pairs


def head(r, n, short, heads):
    """The head of N bytes or values: the shortest, or now and then a longer one."""
    fitting = [h for h in heads if n < 1 << (8 * h[1])]
    if short is not None and n <= short[1] and r.random() < .8:
        return bytes([short[0] | n])
    code, size = r.choice(fitting) if r.random() < .2 else fitting[0]
    return bytes([code]) + n.to_bytes(size, "big")


def encode(r, v):
    if isinstance(v, tuple) and not isinstance(v, msgpack.ExtType):
        data, kind = v
        if kind == "f32":
            return b"\xca" + data
        return head(r, len(data), None, [(0xc4, 1), (0xc5, 2), (0xc6, 4)]) + data
    if isinstance(v, bytes):
        return head(r, len(v), (0xa0, 31), [(0xd9, 1), (0xda, 2), (0xdb, 4)]) + v
    if isinstance(v, Map):
        return head(r, len(v), (0x80, 15), [(0xde, 2), (0xdf, 4)]) + b"".join(
            encode(r, k) + encode(r, x) for k, x in v)
    if isinstance(v, list):
        return head(r, len(v), (0x90, 15), [(0xdc, 2), (0xdd, 4)]) + b"".join(encode(r, x) for x in v)
    return msgpack.packb(v)


def characters(data):
    """The characters of DATA; U+FFFD for each byte that belongs to none."""
    while data:
        for n in range(1, 5):
            try:
                yield data[:n].decode()
                break
            except UnicodeDecodeError:
                pass
        else:
            yield "\ufffd"
            n = 1
        data = data[n:]


# Default_Ignorable_Code_Point as far as it is not in the category Cf
INVISIBLE = {0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0, *range(0x180b, 0x1810),
             *range(0xfe00, 0xfe10), *range(0xe0000, 0xe1000)}
# in the category Cf, but with a glyph
SEEN = {*range(0x600, 0x606), 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}


def hidden(c):
    """Whether a terminal shows nothing for C, or is controlled by it."""
    return (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and ord(c) not in SEEN) or ord(c) in INVISIBLE


def quoted(text):
    def one(c):
        if c in "\"\\":
            return "\\" + c
        units = c.encode("utf-16-be")
        return "".join("\\u" + units[i:i + 2].hex() for i in range(0, len(units), 2)) if hidden(c) else c
    return '"' + "".join(map(one, text)) + '"'


def expected(v):
    if v is None or isinstance(v, bool):
        return {None: "null", True: "true", False: "false"}[v]
    if isinstance(v, int):
        return str(v)
    if isinstance(v, tuple) and v[1] == "f32":
        return expected(struct.unpack(">f", v[0])[0])
    if isinstance(v, float):
        if not math.isfinite(v):
            return "null"
        text = "%.17g" % v
        return text if "." in text or "e" in text else text + ".0"
    if isinstance(v, msgpack.ExtType):
        return '{"ext":%d,"data":"%s"}' % (v.code, v.data.hex())
    if isinstance(v, tuple):
        return '"%s"' % v[0].hex()
    if isinstance(v, bytes):
        return quoted(characters(v))
    if isinstance(v, Map):
        members = {}
        for key, value in v:
            text = expected(key)
            members.setdefault(text if isinstance(key, bytes) else quoted(text), value)
        return "{" + ",".join(k + ":" + expected(x) for k, x in members.items()) + "}"
    return "[" + ",".join(map(expected, v)) + "]"


def values(seed, count):
    r = random.Random(int(seed))
    for _ in range(int(count)):
        v = random_map(r, 0)
        yield v, encode(r, v)


def make(seed, count, path):
    with open(path, "wb") as f:
        for _, data in values(seed, count):
            f.write(struct.pack("<I", len(data)) + data)


def no_twice(pairs):
    if len({k for k, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def check(seed, count, path):
    with open(path, "rb") as f:
        lines = f.read().split(b"\n")
    assert lines.pop() == b"" and len(lines) == int(count), len(lines)
    for i, ((v, _), line) in enumerate(zip(values(seed, count), lines)):
        want = expected(v)
        if line.decode() != want:
            sys.exit("value %d of seed %s:\n%s\nis not\n%s" % (i, seed, line, want))
        json.loads(line, object_pairs_hook=no_twice)


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
