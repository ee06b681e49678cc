#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets spirv and bitcode: make_corpus_objects.py [DIR]

good-* is accepted, bad-* refused.  Code objects are LLVM's: ../data/amdgpu.
"""

import os
import shutil
import struct
import sys

KERNEL, COMPUTE = 6, 5


def entry_point(model, name, *interface):
    text = name + b"\0" * (4 - len(name) % 4)
    words = [model, 1] + list(struct.unpack("<%dI" % (len(text) // 4), text)) + list(interface)
    return [(len(words) + 1) << 16 | 15] + words


def module(*instructions, generator=0x2B0016, order="<"):
    words = [0x07230203, 0x10400, generator, 36, 0]
    for instruction in instructions:
        words += instruction
    return struct.pack("%s%dI" % (order, len(words)), *words)


CAPABILITY, FUNCTION = [2 << 16 | 17, KERNEL], [5 << 16 | 54, 1, 2, 3, 4]
FIRST, SHADER = entry_point(KERNEL, b"first"), entry_point(COMPUTE, b"shader", 7)


def spirvs():
    yield "good-kernels", module(CAPABILITY, FIRST, SHADER, entry_point(KERNEL, b"f"), FUNCTION, [0])
    yield "good-big-endian", module(CAPABILITY, FIRST, FUNCTION, order=">")
    yield "good-amd", module(CAPABILITY, FIRST, generator=0xFFFF)
    yield "good-empty", module()
    yield "bad-header", module()[:-1]
    yield "bad-no-words", module([0])
    yield "bad-too-many-words", module([9 << 16 | 17, 1])
    yield "bad-short", module([3 << 16 | 15, KERNEL, 1])
    yield "bad-name", module([4 << 16 | 15, KERNEL, 1, 0x41414141])


def wrapper(offset, size):
    return struct.pack("<5I", 0x0B17C0DE, 0, offset, size, 7)


def bitcodes():
    yield "good-bare", b"BC\xc0\xde" + bytes(12)
    yield "good-wrapped", wrapper(20, 8) + b"BC\xc0\xdecode"
    yield "good-padded", wrapper(24, 8) + bytes(4) + b"BC\xc0\xdecode" + bytes(8)
    yield "bad-offset", wrapper(19, 8) + b"BC\xc0\xdecode"
    yield "bad-size", wrapper(20, 9) + b"BC\xc0\xdecode"
    yield "bad-cut", wrapper(20, 8)[:-1]
    yield "bad-followed", wrapper(20, 8) + b"BC\xc0\xdecode" + b"x"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus")
    for target, seeds in ("spirv", spirvs()), ("bitcode", bitcodes()):
        os.makedirs(os.path.join(root, target), exist_ok=True)
        for name, data in seeds:
            with open(os.path.join(root, target, name), "wb") as f:
                f.write(data)
    objects = os.path.join(here, "..", "data", "amdgpu")
    os.makedirs(os.path.join(root, "code_object"), exist_ok=True)
    for name in "v2.hsaco", "v5.hsaco", "stripped.hsaco", "relocatable.o":
        to = "good-" + name.split(".")[0]
        shutil.copyfile(os.path.join(objects, name), os.path.join(root, "code_object", to))


main()
