# SPDX-License-Identifier: MIT
"""hipBLASLt's and hipSPARSELt's directories."""
from . import tensile
from .rocblas import helpers, stem
from .tensile import TN, deflate, operation

DIR = "lib/hipblaslt/library/"
EXTRA = "TensileLibrary_BB_BB_HA_Bias_SAV_UA_Type_BB_HPA_" + operation(TN)


def extop(arches):
    """Which function is for which operation and type, for each GPU."""
    def row(arch, op, t):
        return {"func_name": "%s_%s_256_4" % (op, t), "io_type": t, "limit": 1024,
                "num_workitems": 256, "is_scale": False, "co_path": "extop_%s.co" % arch}
    return tensile.pack({a: {op: {t: [row(a, op, t)] for t in ("S", "H")}
                             for op in ("LayerNorm", "Softmax", "AMax")} for a in arches})


def mapping(stems):
    """First solution index -> file prefix."""
    return tensile.pack({i << 18: s for i, s in enumerate(stems)})


def extop_code(t, arch):
    return t.objects.code(arch, ["%s_%s_256_4" % (op, x) for op in
                                 ("LayerNorm", "Softmax", "AMax") for x in ("S", "H")])


def transform(t, arches):
    return t.objects.bundle([(a, t.objects.code(a, ["Transform_%s" % x for x in "SHB"]))
                             for a in arches])


def children(arch):
    return [(op, "%s_%s" % (name, arch)) for op, name in (
        (operation(TN), EXTRA), (operation(TN), stem("BS_HPA", TN)),
        (operation(TN), stem("HH_HPA", TN) + "_CU80"))]


def gpu(t, where, arch, ending=".dat", code=None, indexed=False):
    """What one GPU has: parent, children, code.  CODE: the name of the GPU's real target."""
    squeeze = deflate if ending.endswith("zlib") else bytes
    stems = children(arch)
    for i, (_, name) in enumerate(stems):
        kernels = tensile.kernel_names(name, TN, 5)
        make = tensile.indexed_child if indexed else tensile.child
        t.put(where + name + ending, squeeze(make(kernels, "BB_HPA", TN)))
        pack = t.objects.ccob if i == 1 else t.objects.code
        t.put(where + name + ".co", pack(arch, kernels))
    t.put("%sTensileLibrary_lazy_%s%s" % (where, arch, ending), squeeze(
        tensile.parent(arch, stems[:2], cus=[(80, *stems[2])])))
    t.put("%sextop_%s.co" % (where, arch), extop_code(t, arch))
    helpers(t, where, arch)
    return [s for _, s in stems]


def shared(t, where, arches, stems):
    t.put(where + "hipblasltExtOpLibrary.dat", extop(arches))
    t.put(where + "hipblasltTransform.hsaco", transform(t, arches))
    t.put(where + "TensileLiteLibrary_lazy_Mapping.dat", mapping(stems))


def flat(t):
    arches = ("gfx942", "gfx90a")
    stems = [s for a in arches for s in gpu(t, DIR, a)]
    shared(t, DIR, arches, stems)
    t.put(DIR + "rr_custom_kernels.co", t.objects.code("gfx950", ["rr_custom_0", "rr_custom_1"]))
    t.put(DIR + "metadata.yaml", "kernels:\n- name: rr_custom_0\n- name: rr_custom_1\n")


def shard(t, arch):
    """A build for one GPU: files that all builds have differ."""
    shared(t, DIR, (arch,), gpu(t, DIR, arch))


def subdir(t, name, arch, indexed=False):
    where = "%s%s/" % (DIR, name)
    stems = gpu(t, where, arch, ".dat.zlib", indexed=indexed)
    t.put("%shipblasltExtOpLibrary_%s.dat.zlib" % (where, arch), deflate(extop((arch,))))
    t.put("%shipblasltTransform_%s.hsaco" % (where, arch), transform(t, (arch,)))
    t.put("%sTensileLiteLibrary_lazy_%s_Mapping.dat.zlib" % (where, arch),
          deflate(mapping(stems)))


def arch(t):
    subdir(t, "gfx942", "gfx942")
    t.put(DIR + "gfx942/hipblaslt-jit-knowledge-gfx942.dat.zlib",
          deflate(tensile.pack({"knowledge": list(range(20000))})))
    subdir(t, "gfx1250-strict", "gfx1250")
    subdir(t, "gfx1250v0", "gfx1250", indexed=True)


def sparse(t):
    where = "lib/hipsparselt/library/"
    for a in ("gfx942", "gfx950"):
        name = "TensileLibrary_BB_BB_A_" + a
        kernels = tensile.kernel_names(name, TN, 5)
        t.put(where + name + ".dat", tensile.child(kernels, "BB_HPA", TN))
        t.put(where + name + ".co", t.objects.code(a, kernels))
        t.put("%sTensileLibrary_lazy_%s.dat" % (where, a),
              tensile.parent(a, [(operation(TN), name)]))
        t.put("%sextop_%s.co" % (where, a), extop_code(t, a))
        helpers(t, where, a)
    t.put(where + "hipsparseltExtOpLibrary.dat", extop(("gfx942", "gfx950")))
