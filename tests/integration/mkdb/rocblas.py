# SPDX-License-Identifier: MIT
"""rocBLAS's directory, in the layouts of several generations."""
from . import tensile
from .tensile import NN, NT, operation, stem

DIR = "lib/rocblas/library/"
PAIRS = {"gfx90a": ("-xnack+", "-xnack-")}  # with xnack on and off where code is from source


def variants(arch):
    """(ending of the name, target) of code from source for ARCH."""
    return [(arch + x, arch + x.replace("-x", ":x", 1)) for x in PAIRS.get(arch, ("",))]


def helpers(t, where, arch, size=0):
    for name, target in variants(arch):
        code = t.objects.code(target, tensile.kernel_names(arch, "", 4, helper=True))
        t.put("%sKernels.so-000-%s.hsaco" % (where, name), code.ljust(size, b"\0"))


def child(t, where, arch, name, types, form, source=False, rows=24, ccob=False):
    """A child and its code objects: a .co, or from source a .hsaco for each mode."""
    kernels = tensile.kernel_names(name, form, 6)
    t.put("%s%s.dat" % (where, name), tensile.child(kernels, types, form, source, rows))
    if not source:
        make = t.objects.ccob if ccob else t.objects.code
        t.put("%s%s.co" % (where, name), make(arch, kernels))
        return
    for ending, target in variants(arch):
        t.put("%s%s.hsaco" % (where, name[:-len(arch)] + ending), t.objects.code(target, kernels))


def fallback(t, where, types, form, arches, suffix=""):
    """Logic for any GPU, and its code for each."""
    name = stem(types, form) + "_fallback"
    kernels = tensile.kernel_names(name, form, 3)
    t.put("%s%s%s.dat" % (where, name, suffix), tensile.child(kernels, types, form, True))
    for arch in arches:
        for ending, target in variants(arch):
            t.put("%s%s_%s.hsaco" % (where, name, ending), t.objects.code(target, kernels))
    return operation(form), name + suffix


def lazy(t, where, arch, fallbacks, cus=(), ccob=None, big=None, source=None, size=0):
    """Parent, children, code and helpers of one GPU."""
    stems, special = [], []
    for types, form in (("HH_HPA", NN), ("HH_HPA", NT), ("SS", NN), ("SS", NT)):
        name = "%s_%s" % (stem(types, form), arch)
        child(t, where, arch, name, types, form, source=(types, form) == source,
              rows=20000 if (types, form) == big else 24, ccob=(types, form) == ccob)
        stems.append((operation(form), name))
    for n in cus:
        name = "%s_CU%d_%s" % (stem("SS", NT), n, arch)
        child(t, where, arch, name, "SS", NT)
        special.append((n, operation(NT), name))
    helpers(t, where, arch, size)
    t.put("%sTensileLibrary_lazy_%s.dat" % (where, arch),
          tensile.parent(arch, stems, fallbacks, special))


def manifest(t, where, n=40):
    t.put(where + "TensileManifest.txt", "".join(
        "/build/rocBLAS/Tensile/library/TensileLibrary_%d.dat\n" % i for i in range(n)))


def flat(t):
    fallbacks = [fallback(t, DIR, "DD", form, ("gfx90a", "gfx1100")) for form in (NN, NT)]
    lazy(t, DIR, "gfx90a", fallbacks, cus=(104,), source=("SS", NN))
    lazy(t, DIR, "gfx1100", fallbacks, ccob=("SS", NN), big=("SS", NT), size=16384)
    manifest(t, DIR)
    t.put(DIR + "TensileMasterSolutionIndex.csv", b"")


def subdir(t, arch, where=None):
    where = where or "%s%s/" % (DIR, arch)
    names = [fallback(t, where, "DD", NN, (arch,), "_" + arch)]
    lazy(t, where, arch, names, ccob=("SS", NN))
    manifest(t, where)


def mixed(t):
    """A directory for one GPU, the other's files beside it."""
    subdir(t, "gfx942")
    lazy(t, DIR, "gfx1100", [fallback(t, DIR, "DD", NN, ("gfx1100",))])


def arch(t):
    for a in ("gfx942", "gfx90a", "gfx1151"):
        subdir(t, a)


def feature(t):
    """A directory for each xnack mode: files inside say the mode, too, where they have code."""
    for mode, other in (("+", "-"), ("-", "+")):
        where = "%sgfx90a-xnack%s/" % (DIR, mode)
        kernels = tensile.kernel_names("feature", NN, 4)
        name = stem("SS", NN) + "_gfx90a"
        t.put(where + name + ".dat", tensile.child(kernels, "SS", NN))
        t.put("%s%s-xnack%s.co" % (where, name, mode),
              t.objects.code("gfx90a:xnack" + mode, kernels))
        t.put("%sKernels.so-000-gfx90a-xnack%s.hsaco" % (where, mode),
              t.objects.code("gfx90a:xnack" + mode, kernels[:2]))
        t.put(where + "TensileLibrary_lazy_gfx90a.dat",
              tensile.parent("gfx90a", [(operation(NN), name)]))


def merged(t):
    """One library for all GPUs, a code object for each; before files were opened lazily."""
    kernels = tensile.kernel_names("merged", NN, 8)
    rows = [{"predicate": {"type": "AMDGPU", "value": tensile.processor(a)},
             "library": tensile.matching(4, 16, i * 4)} for i, a in enumerate(("gfx900", "gfx906"))]
    t.put(DIR + "TensileLibrary.dat", tensile.pack({
        "version": "4.33.0", "solutions": tensile.solutions(kernels, "SS", NN),
        "library": {"type": "Hardware", "rows": rows}}))
    for i, a in enumerate(("gfx900", "gfx906")):
        t.put("%sTensileLibrary_%s.co" % (DIR, a), t.objects.code(a, kernels[i * 4:i * 4 + 4]))
        helpers(t, DIR, a)
        t.put("%sKernels1.so-000-%s.hsaco" % (DIR, a), t.objects.code(a, ["Cijk_split_%s" % a]))
    t.put(DIR + "%s_gfx900.co" % kernels[0], t.objects.code("gfx900", kernels[:1]))
