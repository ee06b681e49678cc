#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of tensile_index, packed_names, yaml_names, dat_file:
make_corpus_closure.py [DIR]

good-* is accepted, bad-* refused.  Run it with /usr/bin/python3: msgpack is there.
"""

import os
import sys
import zlib

import msgpack


def row(gpu, *values):
    predicate = {"type": "TruePred"} if gpu is None else {
        "type": "AMDGPU", "value": {"type": "And", "value": [
            {"type": "Processor", "value": gpu}, {"type": "CUCount", "value": 104}]}}
    return {"predicate": predicate, "library": {
        "type": "ProblemMap", "map": {i: {"type": "Placeholder", "value": v}
                                      for i, v in enumerate(values)}}}


def solution(name, gpu=None, **mapping):
    predicate = {"type": "TruePred"} if gpu is None else {
        "type": "AMDGPU", "value": {"type": "Processor", "value": gpu}}
    return {"name": name, "hardwarePredicate": predicate, "sizeMapping": mapping}


SOLUTIONS = [solution("k1", "gfx900", sourceKernel=False, workGroup=[16, 16, 1]),
             solution("k2", sourceKernel=True, globalSplitU=4), solution("k3", depthU=1.5)]


def indexes():
    lazy = {"solutions": [], "library": {"type": "Hardware", "rows": [
        row("gfx90a", "X_gfx90a"), row(None, "X_fallback", "Y_fallback")]}}
    child = {"version": "4.40.0", "solutions": SOLUTIONS, "library": {
        "type": "Matching", "table": [{"key": [1, 2], "index": 0, "speed": 1.5}]}}
    blob = b"".join(map(msgpack.packb, SOLUTIONS))
    yield "good-lazy", msgpack.packb(lazy)
    yield "good-child", msgpack.packb(child)
    yield "good-indexed", msgpack.packb({"format_version": 2, "solutions_index": [0, 0, 9],
                                         "solutions_blob": blob, "library": {}})
    yield "good-behind", msgpack.packb(lazy) + b"\xc1"
    yield "bad-cut", msgpack.packb(lazy)[:-1]
    yield "bad-blob", msgpack.packb({"solutions_blob": blob[:-1]})
    yield "bad-placeholder", msgpack.packb({"library": {"type": "Placeholder"}})
    yield "bad-deep", b"\x81\xa7library" + b"\x91" * 70
    yield "bad-cut-key", b"\x81\xa7holder"


def names():
    extop = {"gfx942": {"AMax": {"S": [{"func_name": "a", "co_path": "extop_gfx942.co"}]}}}
    yield "good-extop", msgpack.packb(extop)
    yield "good-mapping", msgpack.packb({0: "TensileLibrary_a", 1 << 18: "TensileLibrary_b"})
    yield "bad-array", msgpack.packb(["x"])
    yield "bad-deep", b"\x81\x00" + b"\x91" * 70
    yield "bad-cut-key", b"\x81\xa7\x0e\xff\xff\xff\xff"
    yield "bad-count", b"\x81\xa7co_path\xdd\xff\xff\xff\xff"


def yamls():
    yield "good-flat", b"solutions:\n- name: k\n  codeObjectFile: k.co\n"
    yield "good-gpus", b"gfx90a: [a.co, {b: c.hsaco}]\nx: {arch: gfx1100, file: d.dat}\n"
    yield "good-placeholder", b"{library: {type: Placeholder, value: X_gfx90a}}"
    yield "good-alias", b"a: &x [k.co]\nb: *x\n--- &y k.yaml\n"
    yield "bad-open", b"{a: [k.co"
    yield "bad-deep", b"[" * 70
    yield "bad-tab", b"a:\n\t- k.co"


def packed():
    yield "good-text", zlib.compress(b"library " * 20000, 9)
    yield "good-empty", zlib.compress(b"")
    yield "good-stored", zlib.compress(b"stored", 0)
    yield "bad-cut", zlib.compress(b"cut off" * 99)[:-1]
    yield "bad-sum", zlib.compress(b"sum")[:-1] + b"\0"
    yield "bad-text", b"no zlib"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "corpus")
    for target, seeds in (("tensile_index", indexes), ("packed_names", names),
                          ("yaml_names", yamls), ("dat_file", packed)):
        os.makedirs(os.path.join(root, target), exist_ok=True)
        for name, data in seeds():
            with open(os.path.join(root, target, name), "wb") as f:
                f.write(data)


main()
