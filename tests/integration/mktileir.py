#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write TileIR bytecode from the description of its container, without any of kpack's code.

mktileir.py write FILE VERSION TARGET SYMBOL...   a module with these kernels; TARGET "-": none
mktileir.py check KPACK DIR COUNT                 check `kpack inspect` on random modules
"""
import json
import random
import subprocess
import sys

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


# ---- random modules ----

def random_module(rng):
    version = (13, rng.randrange(1, 5))
    target = rng.choice(["sm_80", "sm_100", "sm_120"])
    functions = []
    for i in range(rng.randrange(5)):
        entry = rng.random() < .8
        hints = []
        if entry and version < (13, 3) and rng.random() < .8:
            hints = [(target, [])]
        elif entry and rng.random() < .8:
            hints = [("default", [])] + [(t, []) for t in rng.sample(
                ["sm_100", "sm_120"], rng.randrange(3))]
        for _, pairs in hints:
            for key in "num_cta_in_cga", "occupancy", "num_worker_warps_per_cta", "flag":
                if rng.random() < .3:
                    pairs.append((key, rng.choice([1, 2, 300]) if key != "flag" else True))
        functions.append(("%s%d_Kt1_Si32_I%d" % (rng.choice(["k", "matmul"]), i, i),
                          ENTRY if entry else rng.randrange(2), hints,
                          bytes(rng.choice([0, 1, 200, 20000]))))
    data = [("g%d" % i, bytes(i)) for i in range(rng.randrange(3))]
    return Module(version, functions, data)


def expected(module):
    entries = [f for f in module.functions if f[1] & ENTRY]
    targets = {t for f in module.functions for t, _ in f[2] if t != "default"}
    return {
        "arch": targets.pop() if len(targets) == 1 else "",
        "version": "%d.%d" % module.version,
        "kernels": [f[0] for f in entries],
        "hints": {f[0]: "; ".join(
            " ".join([t] + ["%s=%d" % p for p in pairs]) for t, pairs in f[2])
            for f in entries if f[2]},
    }


def seen(image):
    facts = image["facts"]
    return {
        "arch": image["object_arch"] or "",
        "version": facts["version"],
        "kernels": [k["name"] for k in image["kernels"]],
        "hints": {key[6:]: facts[key] for key in facts if key.startswith("hints ")},
    }


def shuffled(rng):
    def order(sections):
        rng.shuffle(sections)
        return [(n, rng.choice([a, 1, 64]), p) for n, a, p in sections]
    return order


def check(kpack, where, count):
    rng = random.Random(7)
    for i in range(count):
        module = random_module(rng)
        path = "%s/%d.tileirbc" % (where, i)
        data = module.encode(*([shuffled(rng)] if i % 2 else []))
        with open(path, "wb") as f:
            f.write(data)
        out = json.loads(subprocess.run([kpack, "inspect", "--json", path], check=True,
                                        stdout=subprocess.PIPE).stdout)
        image = out["images"][0]
        want, got = expected(module), seen(image)
        assert got == want, (path, got, want)
        assert image["format"] == "tileirbc" and image["size"] == len(data), path
        for kernel in image["kernels"]:
            assert kernel["signature"]["symbol"] == kernel["name"], path
    print("%d modules" % count)


def main():
    if sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    path, version, target, *symbols = sys.argv[2:]
    version = tuple(map(int, version.split(".")))
    hints = [] if target == "-" else [(target, [("occupancy", 4)])]
    if hints and version >= (13, 3):
        hints.append(("default", []))
    with open(path, "wb") as f:
        f.write(Module(version, [(s, ENTRY, hints, b"\x5c\0\0") for s in symbols]).encode())


if __name__ == "__main__":
    main()
