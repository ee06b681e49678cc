#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target tensile: make_corpus_tensile.py [DIR]

A path, a NUL byte, and what is in the file.
"""

import os
import struct
import sys
import zlib

HH = "TensileLibrary_Type_HH_HPA_Fp16Alt_Contraction_l_AlikC_Bjlk_Cijk_Dijk_CU104_XPU"
LT = "TensileLibrary_BB_BB_HA_Bias_SAV_UA_Type_BB_HPA_Contraction_l_Alik_Bljk_Cijk_Dijk"
SOLUTIONS = b"\x83\xa7version\x01\xa9solutions\xdc\x01\x00\xa7library\x80"


def elf(flags, machine=224, abi=4):
    """The header of a code object."""
    header = bytearray(64)
    header[:9] = b"\x7fELF\x02\x01\x01\x40" + bytes([abi])
    struct.pack_into("<HHI", header, 16, 3, machine, 1)
    struct.pack_into("<I", header, 48, flags)
    return bytes(header)


def bundle(*targets):
    """An offload bundle of small objects."""
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(targets))
    offset = 32 + sum(24 + len(t) for t in targets)
    for i, target in enumerate(targets):
        head += struct.pack("<QQQ", offset + 4 * i, 4, len(target)) + target.encode()
    return head + b"code" * len(targets)


SEEDS = {
    "child": (f"rocblas/library/{HH}_gfx90a-xnack+.dat", SOLUTIONS),
    "child-zlib": (f"gfx942/{LT}_gfx942.dat.zlib", zlib.compress(SOLUTIONS)),
    "parent": ("TensileLibrary_lazy_gfx9-4-generic.dat", b"\x82\xafsolutions_index\x93\1\2\3"),
    "mapping": ("gfx1250-strict/TensileLiteLibrary_lazy_gfx1250_Mapping.dat", b"\x80"),
    "helper": ("Kernels.so-000-gfx90a-sramecc+-xnack-.hsaco", elf(0xE3F)),
    "fallback": (f"{HH}_fallback_gfx1100.hsaco", elf(0x41)),
    "host": ("libhelper.so", elf(0, 62)),
    "extop": ("extop_gfx942.co", elf(0x54F)),
    "transform": ("hipblasltTransform.hsaco",
                  bundle("host-x86_64-unknown-linux-gnu", "hipv4-amdgcn-amd-amdhsa--gfx942",
                         "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+")),
    "gemm": ("gfx1100/gemm_M128_N64_K32_f16_nt.co", b"kernel"),
    "gemm-product": ("gemm_4096x4096x512_BF16_1_2_3.co", b""),
    "bad-target": ("hipblasltTransform.hsaco",
                   bundle("host-x86_64-unknown-linux-gnu", "hipv4-amdgcn-amd-amdhsa--gfx94~")),
    "manifest": ("gfx1250v0/TensileManifest.txt", b"/build/x.co\n"),
}


def main():
    to = sys.argv[1] if len(sys.argv) > 1 else "tests/fuzz/corpus/tensile"
    os.makedirs(to, exist_ok=True)
    for name, (path, data) in SEEDS.items():
        with open(os.path.join(to, name), "wb") as f:
            f.write(path.encode() + b"\0" + data)


main()
