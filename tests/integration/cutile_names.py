#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read and write names of cuTile's kernels from their description alone, and compare with kpack.

cutile_names.py PROGRAM COUNT: PROGRAM (tests/stub/cutile.c) reads names and prints its
results.  For COUNT random signatures, and for names that are almost right, its results must be
the same as ours; and its Python text must be Python for the same name.
"""
import ast
import random
import re
import struct
import subprocess
import sys

DTYPES = {
    "bool_": ("b8", "bool", 1), "uint8": ("u8", "uint8_t", 1), "uint16": ("u16", "uint16_t", 2),
    "uint32": ("u32", "uint32_t", 4), "uint64": ("u64", "uint64_t", 8),
    "int8": ("i8", "int8_t", 1), "int16": ("i16", "int16_t", 2), "int32": ("i32", "int32_t", 4),
    "int64": ("i64", "int64_t", 8), "float16": ("f16", "__half", 2),
    "float32": ("f32", "float", 4), "float64": ("f64", "double", 8),
    "bfloat16": ("bf16", "__nv_bfloat16", 2), "tfloat32": ("tf32", "float", 4),
    "float8_e4m3fn": ("f8m3fn", "__nv_fp8_e4m3", 1),
    "float8_e5m2": ("f8m2", "__nv_fp8_e5m2", 1),
    "float8_e8m0fnu": ("f8m0fnu", "__nv_fp8_e8m0", 1),
}
BY_CODE = {code: name for name, (code, _, _) in DTYPES.items()}
PREDICATES = "sitvl"
DEFAULTS = (None, 1, None, 1, None)
INDEX = {"int32": "", "uint32": "u", "int64": "w"}


# ---- writing ----
# A constraint is a tuple as the program prints it.

def integer(n):
    return "_%d" % -n if n < 0 else "%d" % n


def string(text):
    out = ""
    for c in text:
        if c == "_":
            out += "__"
        elif c == "K":
            out += "_k"
        elif re.match("[A-Za-z0-9]", c):
            out += c
        elif ord(c) < 0x100:
            out += "_%02x" % ord(c)
        elif ord(c) < 0x10000:
            out += "_u%04x" % ord(c)
        else:
            out += "_w%08x" % ord(c)
    return out + "_z"


def groups_of(ids):
    return "".join("g%x" % i for i in ids)


def array(c):
    _, dtype, ndim, index, axes, base, ids, alias = c
    masks = {}
    for k, letter in enumerate(PREDICATES):
        values = {}
        for axis in range(ndim):
            if axes[axis][k] != DEFAULTS[k]:
                values[axes[axis][k]] = values.get(axes[axis][k], 0) | 1 << axis
        for value, mask in values.items():
            masks[mask] = masks.get(mask, "") + letter + integer(value)
    out = "A%d%s" % (ndim, DTYPES[dtype][0])
    for mask in sorted(masks):
        out += "_%x%s" % (mask, masks[mask])
    extras = ("p" + integer(base) if base != 1 else "") + groups_of(ids)
    extras += ("i" if alias else "") + INDEX[index]
    return out + ("_" + extras if extras else "")


def constraint(c):
    kind = c[0]
    if kind == "scalar":
        return "S" + DTYPES[c[1]][0]
    if kind == "array":
        return array(c)
    if kind == "list":
        return "L" + groups_of(c[1]) + ("i" if c[2] else "") + array(c[3][0])
    if kind == "tuple":
        return "T%d" % len(c[1]) + "".join(map(constraint, c[1]))
    if kind == "class":
        return ("D" + string(unhex(c[1])) + string(unhex(c[2])) + "%d" % len(c[3])
                + "".join(map(constraint, c[3])))
    if kind == "bool":
        return "B%d" % c[1]
    if kind == "int":
        return "I" + integer(c[1])
    if kind == "float":
        return "F%016x" % c[1]
    if kind == "none":
        return "Cn_"
    if kind == "str":
        return "Cs_" + string(unhex(c[1]))
    if kind == "enum":
        return "Ce_" + "".join(string(unhex(x)) for x in c[1:])
    return "Cd_" + DTYPES[c[1]][0]


def mangle(function, convention, parameters):
    return function + "_Kt%d" % convention + "".join("_" + constraint(p) for p in parameters)


def unhex(digits):
    return bytes.fromhex(digits).decode("utf-8", "surrogatepass")


def tohex(text):
    return text.encode("utf-8", "surrogatepass").hex()


# ---- reading ----

class Rejected(Exception):
    pass


class Reader:
    def __init__(self, text, convention):
        self.text, self.pos, self.convention = text, 0, convention
        self.groups, self.depth, self.arguments = 0, 0, 0

    def maybe(self, pattern):
        m = re.compile(pattern, re.S).match(self.text, self.pos)
        if m:
            self.pos = m.end()
        return m and m.group(0)

    def need(self, pattern):
        found = self.maybe(pattern)
        if found is None:
            raise Rejected(pattern)
        return found

    def number(self, low=-2 ** 63, high=2 ** 63 - 1):
        sign = -1 if self.maybe("_") else 1
        n = sign * int(self.need("[0-9]+"))
        if not low <= n <= high:
            raise Rejected("number")
        return n

    def dtype(self):
        code = self.need("[a-z0-9]+")
        if code not in BY_CODE:
            raise Rejected("dtype")
        return BY_CODE[code]

    def string(self):
        out = ""
        while True:
            out += self.maybe("[A-JL-Za-z0-9]+") or ""
            self.need("_")
            escape = self.need("[_kz]|u[0-9a-f]{4}|w[0-9a-f]{8}|[0-9a-f]{2}")
            if escape == "z":
                return tohex(out)
            if escape in "_k":
                out += escape.upper()
                continue
            code = int(escape.lstrip("uw"), 16)
            if code > 0x10ffff:
                raise Rejected("character")
            out += chr(code)

    def ids(self):
        out = []
        while self.maybe("g"):
            n = int(self.need("[0-9a-f]+"), 16)
            if n > self.groups or (out and n <= out[-1]):
                raise Rejected("group")
            self.groups = max(self.groups, n + 1)
            out.append(n)
        return out

    def array(self):
        ndim = self.number(0, 64)
        dtype = self.dtype()
        axes = [list(DEFAULTS) for _ in range(ndim)]
        while True:
            mask = self.maybe("_[0-9a-f]+")
            if mask is None:
                break
            mask = int(mask[1:], 16)
            if mask == 0 or mask >> ndim:
                raise Rejected("mask")
            for k, letter in enumerate(PREDICATES):
                if not self.maybe(letter):
                    continue
                if letter == "s" and self.convention < 2:
                    raise Rejected("static shape")
                value = self.number(*{"s": (0,), "i": (2,), "v": (2,)}.get(letter, ()))
                for axis in range(ndim):
                    if mask >> axis & 1:
                        if axes[axis][k] != DEFAULTS[k]:
                            raise Rejected("twice")
                        axes[axis][k] = value
        for s, i, t, v, l in axes:
            if (s is not None and i != 1) or (t is not None and (v != 1 or l is not None)):
                raise Rejected("redundant")
        base, ids, alias, index = 1, [], False, "int32"
        if re.compile("_[a-z]").match(self.text, self.pos):
            self.pos += 1
            if self.maybe("p"):
                base = self.number(2)
            ids = self.ids()
            alias = self.maybe("i") is not None
            index = {"u": "uint32", "w": "int64", None: "int32"}[self.maybe("[uw]")]
        return ("array", dtype, ndim, index, [tuple(a) for a in axes], base, ids, alias)

    def items(self):
        count = self.number(0)
        self.depth += 1
        if count > len(self.text) or self.depth > 32:
            raise Rejected("count or depth")
        out = [self.constraint() for _ in range(count)]
        self.depth -= 1
        return out

    def constraint(self):
        code = self.need("[SALTDBIF]|C[nsed]_")
        if self.convention < {"T": 2, "D": 3}.get(code, 3 if code[0] == "C" else 1):
            raise Rejected("convention")
        if code == "S":
            return ("scalar", self.dtype())
        if code == "A":
            return self.array()
        if code == "L":
            ids = self.ids()
            alias = self.maybe("i") is not None
            self.need("A")
            return ("list", ids, alias, [self.array()])
        if code == "T":
            return ("tuple", self.items())
        if code == "D":
            return ("class", self.string(), self.string(), self.items())
        if code == "B":
            return ("bool", int(self.need("[01]")))
        if code == "I":
            return ("int", self.number(-10 ** 5000, 10 ** 5000))
        if code == "F":
            return ("float", int(self.need("[0-9a-f]{16}"), 16))
        if code == "Cn_":
            return ("none",)
        if code == "Cs_":
            return ("str", self.string())
        if code == "Ce_":
            return ("enum", self.string(), self.string(), self.string())
        return ("dtype", self.dtype())


def demangle(name):
    at = name.rfind("_K")
    m = re.compile("t([123])(?=_|$)").match(name, at + 2)
    if at < 0 or not m or "\0" in name:
        raise Rejected("no name")
    r = Reader(name[m.end():], int(m.group(1)))
    parameters = []
    while r.pos < len(r.text):
        r.need("_")
        parameters.append(r.constraint())
    if mangle(name[:at], r.convention, parameters) != name:
        raise Rejected("not canonical")
    if len(arguments(parameters)) > 32764:
        raise Rejected("arguments")
    return name[:at], r.convention, parameters


# ---- launches ----

def arguments(parameters):
    out = []

    def one(c, name, number):
        if c[0] == "scalar":
            out.append((name, DTYPES[c[1]][1], DTYPES[c[1]][2], number, 0))
        elif c[0] == "array":
            out.append((name, DTYPES[c[1]][1] + " *", 8, number, 0))
            for what in "shape", "stride":
                for axis in range(c[2]):
                    out.append(("%s.%s[%d]" % (name, what, axis), DTYPES[c[3]][1],
                                DTYPES[c[3]][2], number, 0))
        elif c[0] == "list":
            out.append((name, "int64_t *", 8, number, 1 + 2 * c[3][0][2]))
            out.append((name + ".length", "int32_t", 4, number, 0))
        elif c[0] in ("tuple", "class"):
            for i, item in enumerate(c[-1]):
                one(item, "%s[%d]" % (name, i), number)

    for number, c in enumerate(parameters):
        one(c, "p%d" % number, number)
    return out


# ---- Python's text: the classes as cuTile documents them ----

class Types:
    def __getattr__(self, name):
        return ("dtype", name)


def sequence(value, ndim, default):
    return [default] * ndim if value is None else [value] * ndim if isinstance(value, int) \
        else list(value)


def array_constraint(dtype, ndim, *, index_dtype, stride_lower_bound_incl, alias_groups,
                     may_alias_internally, stride_constant=None, shape_constant=None,
                     stride_divisible_by=1, shape_divisible_by=1, base_addr_divisible_by=1):
    axes = []
    for s, i, t, v, l in zip(sequence(shape_constant, ndim, None),
                             sequence(shape_divisible_by, ndim, 1),
                             sequence(stride_constant, ndim, None),
                             sequence(stride_divisible_by, ndim, 1),
                             sequence(stride_lower_bound_incl, ndim, None)):
        if s is not None:
            assert s % i == 0
            i = 1
        if t is not None:
            assert t % v == 0 and (l is None or t >= l)
            v, l = 1, None
        axes.append((s, i, t, v, l))
    assert len(axes) == ndim
    ids = [int(g.removeprefix("group")) for g in alias_groups]
    return ("array", dtype[1], ndim, index_dtype[1], axes, base_addr_divisible_by, ids,
            may_alias_internally)


def wrap(c):
    if isinstance(c, bool):
        return ("bool", int(c))
    if isinstance(c, int):
        return ("int", c)
    if isinstance(c, float):
        return ("float", struct.unpack(">Q", struct.pack(">d", c))[0])
    if isinstance(c, str):
        return ("str", tohex(c))
    return ("none",) if c is None else c


class Convention:
    def __getattr__(self, name):
        return lambda: int(name.removeprefix("cutile_python_v"))


NAMES = {
    "ct": Types(),
    "struct": struct,
    "CallingConvention": Convention(),
    "ScalarConstraint": lambda dtype: ("scalar", dtype[1]),
    "ArrayConstraint": array_constraint,
    "ListConstraint": lambda element, *, alias_groups, elements_may_alias: (
        "list", [int(g.removeprefix("group")) for g in alias_groups], elements_may_alias,
        [element]),
    "TupleConstraint": lambda items: ("tuple", [wrap(c) for c in items]),
    "KernelSignature": lambda parameters, convention: (
        convention, [wrap(c) for c in parameters]),
}


# ---- random signatures ----

class Random(random.Random):
    def signed(self):
        return self.choice([0, 1, 8, 16, -1, -3, 2 ** 63 - 1, -2 ** 63, self.randrange(4096)])

    def text(self):
        return "".join(self.choice(["a", "Z", "K", "_", "7", ".", "<", "\0", "\xe9", "\u0431",
                                    "\ud800", "\U0001f914", "\n", "'", "\\"])
                       for _ in range(self.randrange(6)))

    def dtype(self):
        return self.choice(list(DTYPES))

    def axis(self, convention):
        s, i, t, v, l = DEFAULTS
        if convention > 1 and self.random() < .2:
            s = self.choice([0, 1, 16, 2 ** 63 - 1])
        elif self.random() < .3:
            i = self.choice([2, 8, 16, 128])
        if self.random() < .3:
            t = self.signed()
        else:
            v = self.choice([1, 1, 4, 8])
            l = self.choice([None, 0, 0, self.signed()])
        return (s, i, t, v, l)

    def ids(self, used):
        out = [i for i in range(used[0]) if self.random() < .3]
        while self.random() < .15:
            out.append(used[0])
            used[0] += 1
        return out

    def array(self, convention, used):
        ndim = self.choice([0, 1, 1, 2, 2, 3, 4, 5, 9, 64])
        return ("array", self.dtype(), ndim, self.choice(list(INDEX)),
                [self.axis(convention) for _ in range(ndim)],
                self.choice([1, 1, 16, 2 ** 63 - 1]), self.ids(used), self.random() < .3)

    def constraint(self, convention, used, depth):
        kinds = ["scalar", "array", "array", "list", "bool", "int", "float"]
        if convention > 1 and depth < 4:
            kinds += ["tuple"]
        if convention > 2:
            kinds += ["none", "str", "enum", "dtype"] + ["class"] * (depth < 4)
        kind = self.choice(kinds)
        if kind in ("scalar", "dtype"):
            return (kind, self.dtype())
        if kind == "array":
            return self.array(convention, used)
        if kind == "list":
            ids = self.ids(used)
            return (kind, ids, self.random() < .5, [self.array(convention, used)])
        if kind in ("tuple", "class"):
            head = (kind,) if kind == "tuple" else (kind, tohex(self.text()), tohex(self.text()))
            return head + ([self.constraint(convention, used, depth + 1)
                            for _ in range(self.randrange(4))],)
        if kind == "bool":
            return (kind, self.randrange(2))
        if kind == "int":
            return (kind, self.choice([self.signed(), 10 ** 40 + 7, -2 ** 64]))
        if kind == "float":
            return (kind, self.choice([0, 1 << 63, 0x7ff8 << 48, 0xfff << 52, self.getrandbits(64),
                                       struct.unpack(">Q", struct.pack(
                                           ">d", self.uniform(-1000, 1000)))[0]]))
        if kind == "none":
            return (kind,)
        count = 1 if kind == "str" else 3
        return (kind,) + tuple(tohex(self.text()) for _ in range(count))

    def name(self):
        convention, used = self.choice([1, 1, 2, 2, 3]), [0]
        function = self.choice(["f", "my_kernel", "a_Kt1_b", "\u0431", "matmul_f16", ""])
        return mangle(function, convention, [self.constraint(convention, used, 0)
                                             for _ in range(self.randrange(6))])

    def damaged(self, name):
        letters = "_KgASLTDBIFCtsivlpuwz0123456789abcdefx"
        for _ in range(self.choice([1, 1, 1, 2, 4])):
            at = self.randrange(len(name) + 1)
            cut = self.randrange(3)
            name = name[:at] + self.choice(["", self.choice(letters)]) + name[at + cut:]
        return name


def check(name, line):
    try:
        want = demangle(name)
    except Rejected as why:
        m = re.match(r"offset (\d+): ", line)
        if not m or int(m.group(1)) > len(name.encode()):
            return "accepted, or no offset; here: %s" % why
        return None
    if not line.startswith("("):
        return "rejected"
    function, convention, parameters, args, again, python = ast.literal_eval(line)
    if (unhex(function), convention, parameters) != want:
        return "another signature: %r" % (want,)
    if args != arguments(parameters):
        return "other arguments: %r" % (arguments(parameters),)
    if unhex(again) != name:
        return "another name"
    text = unhex(python)
    if any(c[0] in ("class", "enum") for c in flat(parameters)):
        return None  # their classes are not here
    got = eval(text, dict(NAMES))
    return None if mangle(want[0], *got) == name else "not the Python of it"


def flat(parameters):
    for c in parameters:
        yield c
        if isinstance(c[-1], list) and c[0] in ("tuple", "class"):
            yield from flat(c[-1])


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    rng = Random(20)
    names = [rng.name() for _ in range(count)]
    names += [rng.damaged(rng.choice(names[:count])) for _ in range(3 * count)]
    names = [n for n in names if "\n" not in n]
    out = subprocess.run([program], input="".join(n + "\n" for n in names).encode(), check=True,
                         stdout=subprocess.PIPE).stdout.decode()
    lines = out.split("\n")[:-1]
    assert len(lines) == len(names), (len(lines), len(names))
    accepted = sum(line.startswith("(") for line in lines)
    for name, line in zip(names, lines):
        fault = check(name, line)
        if fault:
            sys.exit("%s\n  %s\n  %s" % (name, line, fault))
    print("%d names, %d accepted" % (len(names), accepted))


sys.set_int_max_str_digits(0) if hasattr(sys, "set_int_max_str_digits") else None
main()
