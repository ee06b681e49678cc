# SPDX-License-Identifier: MIT
"""Files that Tensile and TensileLite write: solutions, libraries of solutions, placeholders."""
import zlib

import msgpack

from .objects import noise

# data types as in names, and as in problem types: a b c d, high precision accumulate
TYPES = {
    "HH": ("Half", "Half", "Half", False), "HH_HPA": ("Half", "Half", "Half", True),
    "SS": ("Float", "Float", "Float", False), "DD": ("Double", "Double", "Double", False),
    "BB_HPA": ("BFloat16", "BFloat16", "BFloat16", True),
    "BS_HPA": ("BFloat16", "Float", "Float", True),
    "4xi8I_HPA": ("Int8x4", "Int32", "Int32", True),
}
NT, NN, TN = "Ailk_Bjlk", "Ailk_Bljk", "Alik_Bljk"


def pack(thing):
    return msgpack.packb(thing, use_single_float=True)


def operation(form):
    return "Contraction_l_%s_Cijk_Dijk" % form


def stem(types, form):
    return "TensileLibrary_Type_%s_%s" % (types, operation(form))


def kernel_names(label, form, n, helper=False):
    """Names of kernels as Tensile makes them: unlike each other, the same each time."""
    if helper:
        return ["Cijk_S_%d_%s" % (i, noise(label, 2).hex()) for i in range(n)]
    return ["Cijk_%s_MT%dx%dx%d_SN_1LDSB0_APM1_AF0EM8_%s_WG%d_8_1" % (
        form, 16 << i % 4, 16 << i // 4 % 4, 8 << i % 3, noise(label + str(i), 5).hex().upper(),
        16 << i % 2) for i in range(n)]


def solution(name, index, types, form, source):
    a, c, d, hpa = TYPES[types]
    return {
        "name": name, "index": index, "libraryLogicIndex": index, "debugKernel": False,
        "ideals": {}, "linearModel": {"slope": 1.5, "intercept": 0.25, "max": 1000.0},
        "problemType": {
            "operationIdentifier": operation(form), "aType": a, "bType": a, "cType": c,
            "dType": d, "useBeta": True, "highPrecisionAccumulate": hpa,
            "useInitialStridesAB": False, "useInitialStridesCD": False,
            "stridedBatched": True, "f32XdlMathOp": "Float", "stochasticRounding": False},
        "hardwarePredicate": {"type": "TruePred"},
        "problemPredicate": {"type": "And", "value": [
            {"type": "LeadingFree0SizesGreaterOrEqual", "value": 8},
            {"type": "CDStridesEqual", "value": True},
            {"type": "FreeSizeMultiple", "index": 0, "value": 1}]},
        "taskPredicate": {"type": "TruePred"},
        "sizeMapping": {
            "workGroup": [16, 16, 1], "macroTile": [64, 64, 1], "threadTile": [4, 4, 1],
            "depthU": 16, "staggerU": 32, "globalSplitU": 1, "staggerStrideShift": 3,
            "workGroupMapping": 8, "packSummationDims": 0, "packBatchDims": 0,
            "magicDivAlg": 2, "streamK": 0, "streamKAtomic": 0, "persistentKernel": 0,
            "persistentKernelAlongBatch": False, "sourceKernel": source,
            "globalAccumulation": 0, "workspaceSizePerElemC": 0, "preloadKernargs": False},
    }


def solutions(names, types, form, source=False, first=0):
    return [solution(n, first + i, types, form, source) for i, n in enumerate(names)]


def matching(n, rows, first=0):
    """Which of N solutions is the best for which size."""
    return {"type": "Problem", "rows": [{"predicate": {"type": "TruePred"}, "library": {
        "type": "Matching", "distance": "Euclidean",
        "properties": [{"type": "FreeSizeA", "index": 0}, {"type": "FreeSizeB", "index": 0},
                       {"type": "BatchSize", "index": 0}, {"type": "BoundSize", "index": 0}],
        "table": [{"key": [64 + i % 97 * 32, 64 + i // 97 * 32, 1, 64 << i % 5],
                   "index": first + i % n, "speed": 1000.0 + i * 7 % 4001}
                  for i in range(rows)]}}]}


def child(names, types, form, source=False, rows=24, first=0):
    return pack({"version": "4.40.0", "solutions": solutions(names, types, form, source, first),
                 "library": matching(len(names), rows, first)})


def indexed_child(names, types, form):
    """The second format: solutions one after the other, and where each is."""
    index, blob = [], b""
    for i, s in enumerate(solutions(names, types, form)):
        data = pack(s)
        index += [i, len(blob), len(data)]
        blob += data
    return pack({"format_version": 2, "solutions_index": index, "solutions_blob": blob,
                 "library": matching(len(names), 24)})


def processor(arch):
    return {"type": "Processor", "value": arch}


def hardware_row(predicate, placeholders):
    """PLACEHOLDERS: operation -> stems of files.  PREDICATE None: any GPU."""
    library = {"type": "ProblemMap", "property": {"type": "OperationIdentifier"}, "map": {
        op: {"type": "Problem", "rows": [
            {"predicate": {"type": "TruePred"}, "library": {"type": "Placeholder", "value": s}}
            for s in stems]}
        for op, stems in placeholders.items()}}
    predicate = {"type": "TruePred"} if predicate is None else {
        "type": "AMDGPU", "value": predicate}
    return {"predicate": predicate, "library": library}


def parent(arch, stems, fallbacks=(), cus=()):
    """The lazy library of ARCH.  STEMS, FALLBACKS: (operation, stem); CUS: with CUs before"""
    rows = []
    for n, op, s in cus:
        rows.append(hardware_row({"type": "And", "value": [
            processor(arch), {"type": "CUCount", "value": n}]}, {op: [s]}))
    rows.append(hardware_row(processor(arch), grouped(stems)))
    if fallbacks:
        rows.append(hardware_row(None, grouped(fallbacks)))
    return pack({"version": "4.40.0", "solutions": [],
                 "library": {"type": "Hardware", "rows": rows}})


def grouped(pairs):
    out = {}
    for op, s in pairs:
        out.setdefault(op, []).append(s)
    return out


def deflate(data):
    return zlib.compress(data, 9)
