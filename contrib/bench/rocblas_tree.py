# SPDX-License-Identifier: MIT
"""A large tree like rocBLAS's, with the same number, sizes and compressibility of files.

Per GPU, in the proportions of a real build for gfx1100: half of the files are code from source
(.hsaco, nine tenths of the bytes), a third are MessagePack, the rest is assembled code (.co, one
in eight a compressed bundle).  Code is put together from functions that clang compiled for the
GPU, with numbers between them, so that it compresses about 13 to 1.
"""
import os, random, shutil, struct, sys

import bench

sys.path.insert(0, os.path.join(bench.ROOT, "tests", "integration"))
from mkdb import rocblas, tensile
from mkdb.objects import Objects
from mkdb.tree import Tree

GPUS = ("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100")
FORMS = ("Ailk_Bljk", "Ailk_Bjlk", "Alik_Bljk", "Alik_Bjlk")


def text_of(code):
    """The .text of a code object: its largest section of instructions."""
    shoff, = struct.unpack_from("<Q", code, 40)
    count, = struct.unpack_from("<H", code, 60)
    sections = [struct.unpack_from("<IIQQQQ", code, shoff + 64 * i) for i in range(count)]
    _, _, _, _, offset, size = max((s for s in sections if s[2] & 4), key=lambda s: s[5])
    return code[offset:offset + size]


class Code:
    """Code objects of any size for one GPU."""

    def __init__(self, objects, gpu, seed):
        text = text_of(objects.code(gpu, ["Cijk_%s_%d" % (gpu, i) for i in range(200)]))
        some = objects.code(gpu, ["Cijk_%s_%d" % (gpu, i) for i in range(20)])
        self.head = some[:some.index(text_of(some)[:64])]
        self.random = random.Random(seed)
        at, self.parts = 0, []
        while at < len(text):
            n = self.random.randrange(200, 1400)
            self.parts.append(text[at:at + n])
            at += n

    def make(self, size):
        out, total = [self.head], len(self.head)
        while total < size:
            part = self.random.choice(self.parts)
            number = self.random.randbytes(32)
            out += part, number
            total += len(part) + len(number)
        return b"".join(out)


def library(rng, name, rows):
    """A child library whose table has measured numbers."""
    n = max(20, rows // 8)
    names = tensile.kernel_names(name, tensile.NN, n)
    node = tensile.matching(n, 0)
    node["rows"][0]["library"]["table"] = [
        {"key": [64 * rng.randrange(1, 140), 64 * rng.randrange(1, 140), 1, 16 << rng.randrange(9)],
         "index": rng.randrange(n), "speed": rng.randrange(1, 4000) / 4}
        for _ in range(rows)]
    return tensile.pack({"version": "4.40.0", "library": node,
                         "solutions": tensile.solutions(names, "SS", tensile.NN)})


def stems(gpu, n):
    """Names of N child libraries."""
    types = ("HH", "HH_HPA", "SS", "DD", "BB_HPA", "BS_HPA", "4xi8I_HPA", "CC", "ZZ", "I8I_HPA")
    return ["TensileLibrary_Type_%s_Contraction_l_%s_Cijk_Dijk%s_%s" % (
        types[i % 10], FORMS[i // 10 % 4], "_CU%d" % i if i >= 40 else "", gpu) for i in range(n)]


def fill(root, files, size):
    """FILES files of about SIZE bytes in all."""
    t = Tree(root, Objects(os.path.join(bench.WORK, "objects")))
    per_gpu = files // len(GPUS)
    n_dat, n_co = per_gpu * 31 // 100, per_gpu * 18 // 100
    n_hsaco = per_gpu - n_dat - n_co
    for gpu in GPUS:
        code, rng = Code(t.objects, gpu, gpu), random.Random(gpu)
        share = size / len(GPUS)
        names = stems(gpu, n_hsaco)
        for i, name in enumerate(names):
            weight = 0.1 + 3.6 * (i / n_hsaco) ** 3
            t.put("%s%s.hsaco" % (rocblas.DIR, name), code.make(int(share * .89 / n_hsaco * weight)))
        for i, name in enumerate(names[:n_dat]):
            t.put("%s%s.dat" % (rocblas.DIR, name),
                  library(rng, name, max(8, int(share * .08 / n_dat / 190))))
        for i, name in enumerate(names[:n_co]):
            data = code.make(int(share * .03 / n_co))
            if i % 8 == 0:
                data = t.objects.bundle([(gpu, data)], compress=True)
            t.put("%s%s.co" % (rocblas.DIR, name), data)
    return t


def loadable(t):
    """The part that a program loads: for one GPU a library with its children and their code."""
    objects, where, gpu = t.objects, rocblas.DIR, "gfx1201"
    rows = []
    for types, form in (("HH_HPA", tensile.NN), ("SS", tensile.NN), ("SS", tensile.NT)):
        name = "%s_%s" % (tensile.stem(types, form), gpu)
        kernels = tensile.kernel_names(name, form, 128)
        t.put("%s%s.dat" % (where, name), tensile.child(kernels, types, form, rows=2000))
        t.put("%s%s.co" % (where, name), objects.code(gpu, kernels))
        rows.append((tensile.operation(form), name))
    rocblas.helpers(t, where, gpu)
    t.put("%sTensileLibrary_lazy_%s.dat" % (where, gpu), tensile.parent(gpu, rows))


def tree(name, files, size):
    """The tree build/bench/NAME, which is made once."""
    root = os.path.join(bench.WORK, name)
    if not os.path.isdir(root):
        shutil.rmtree(root + ".tmp", ignore_errors=True)
        loadable(fill(root + ".tmp", files, size))
        os.rename(root + ".tmp", root)
    return root
