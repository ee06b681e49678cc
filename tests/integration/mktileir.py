# SPDX-License-Identifier: MIT
"""TileIR bytecode, written from the description of its container, without any of kpack's code."""

STRING, FUNC, DEBUG, CONSTANT, TYPE, GLOBAL = 1, 2, 3, 4, 5, 6
PRIVATE, ENTRY, HINTS = 1, 2, 4


def varint(n):
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def fill(size, alignment):
    return b"\xcb" * (-size % alignment)


def table(items, width):
    out = varint(len(items))
    out += fill(len(out), width)
    offset = 0
    for item in items:
        out += offset.to_bytes(width, "little")
        offset += len(item)
    return out + b"".join(items)


class Module:
    """functions: (name, flags, hints, body); hints: [(target, [(key, int or bool)])]"""

    def __init__(self, version, functions, globals_=(), tag=0):
        self.version, self.functions, self.globals, self.tag = version, functions, globals_, tag
        self.strings, self.types, self.constants = [], [b"\x00", b"\x03"], []

    def number(self, items, item):
        if item not in items:
            items.append(item)
        return varint(items.index(item))

    def string(self, text):
        return self.number(self.strings, text.encode())

    def hints(self, hints):
        out = b"\x0b" + varint(len(hints))
        for target, pairs in hints:
            out += self.string(target) + b"\x0a" + varint(len(pairs))
            for key, value in pairs:
                out += self.string(key)
                if isinstance(value, bool):
                    out += bytes([3, value])
                else:
                    out += b"\x01" + varint(1) + varint(value)
        return out

    def function(self, number, name, flags, hints, body):
        signature = self.number(self.types, b"\x10\x00\x00")
        flags |= HINTS if hints else 0
        return (self.string(name) + signature + bytes([flags]) + varint(number + 1)
                + (self.hints(hints) if hints else b"") + varint(len(body)) + body)

    def global_(self, name, data):
        out = (self.string(name) + varint(0)
               + self.number(self.constants, varint(len(data)) + data) + varint(16))
        return out + (b"\x00" + varint(1) if self.version >= (13, 3) else b"")

    def debug(self):
        n = len(self.functions)
        out = varint(n)
        out += fill(len(out), 4) + b"".join((2 * i).to_bytes(4, "little") for i in range(n))
        out += varint(2 * n)
        return out + fill(len(out), 8) + bytes(16 * n) + table([b"\x00"], 4)

    def sections(self):
        functions = varint(len(self.functions)) + b"".join(
            self.function(i, *f) for i, f in enumerate(self.functions))
        yield FUNC, 8, functions
        if self.globals:
            yield GLOBAL, 1, varint(len(self.globals)) + b"".join(
                self.global_(*g) for g in self.globals)
        yield CONSTANT, 8, table(self.constants, 8)
        yield DEBUG, 8, self.debug()
        yield TYPE, 4, table(self.types, 4)
        yield STRING, 4, table(self.strings, 4)

    def encode(self, order=lambda sections: sections):
        out = b"\x7fTileIR\0" + bytes(self.version) + self.tag.to_bytes(2, "little")
        for number, alignment, payload in order(list(self.sections())):
            out += bytes([number | (0x80 if alignment > 1 else 0)]) + varint(len(payload))
            if alignment > 1:
                out += varint(alignment)
                out += fill(len(out), alignment)
            out += payload
        return out + b"\0"
