# SPDX-License-Identifier: MIT
"""Trees as in the design paper's figures."""
import sqlite3

ARCHES = ("gfx1100", "gfx90a")


def rocblas(t):
    """A logic file, and a directory of code objects for each GPU."""
    where = "rocblas/library/"
    names = ["kernel_1", "kernel_2", "Cijk_Ailk_Bljk_SB_MT64x64x16"]
    yaml = "version: 4.33.0\nsolutions:\n"
    for i, name in enumerate(names):
        yaml += ("- name: %s\n  index: %d\n  codeObjectFile: %s.co\n"
                 "  problemType: {operationIdentifier: Contraction_l_Ailk_Bljk_Cijk_Dijk, "
                 "aType: Float}\n" % (name, i, name))
    yaml += "library:\n  type: Hardware\n  rows:\n"
    for a in ARCHES:
        yaml += ("  - predicate: {type: AMDGPU, value: {type: Processor, value: %s}}\n"
                 "    library: {type: Single, index: 0}\n" % a)
    t.put(where + "TensileLibrary.yaml", yaml)
    for a in ARCHES:
        for name in names:
            t.put("%s%s/%s.co" % (where, a, name), t.objects.code(a, [name]))


def hipblaslt(t):
    for a in ARCHES:
        for name in ("gemm_kernel_1", "gemm_kernel_2",
                     "gemm_M4096_N4096_K4096_FP16_NT")[:2 + (a == "gfx1100")]:
            t.put("hipblaslt/library/TensileLibrary/%s/%s.co" % (a, name),
                  t.objects.code(a, [name]))


def aotriton(t):
    for a in ARCHES:
        for name in ("flash_attention_fwd", "flash_attention_bwd")[:1 + (a == "gfx1100")]:
            t.put("aotriton/kernels/%s/%s.hsaco" % (a, name), t.objects.code(a, [name]))


def fft(t):
    """A table of where the code objects are."""
    db = sqlite3.connect(t.path("lib/rocfft/kernels.db"))
    db.execute("CREATE TABLE kernels (arch TEXT, length INTEGER, precision TEXT, "
               "kernel_path TEXT, factors TEXT, batch INTEGER)")
    for a in ARCHES:
        for length, factors in ((256, "[4, 4, 16]"), (1024, "[2, 2, 2, 2, 2, 2, 2, 2, 2, 2]")):
            for precision in ("single", "double"):
                path = "kernels/%s/fft_%d_%s.co" % (a, length, precision)
                db.execute("INSERT INTO kernels VALUES (?, ?, ?, ?, ?, ?)",
                           (a, length, precision, path, factors, 1))
                t.put("lib/rocfft/" + path,
                      t.objects.code(a, ["fft_%d_%s" % (length, precision)]))
    db.commit()
    db.close()
