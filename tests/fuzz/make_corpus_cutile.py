#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds of the fuzz targets cutile and tileir: make_corpus_cutile.py tests/fuzz/corpus"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from mktileir import ENTRY, PRIVATE, Module  # noqa: E402

NAMES = {
    "scalars": "f_Kt1_Sb8_Su8_Su16_Su32_Su64_Si8_Si16_Si32_Si64_Sf16_Sf32_Sf64_Sbf16_Stf32"
               "_Sf8m3fn_Sf8m2_Sf8m0fnu",
    "constants": "f_Kt1_B1_B0_I42_I_7_I123456789012345678901234567890_Ffff8000000000000",
    "array": "f_Kt1_A3f32_1v8_3i16l0_4t_1_p16g0iu_A0i8_g0w",
    "list": "f_Kt1_Lg0iA2f32_3l_5_g1_Lg0A2f32_g1",
    "tuple": "f_Kt2_T3Si8T0T1A2f32_1s16_3l0",
    "dataclass": "f_Kt3_Dm__m_zf_2e_3clocals_3e_2e_kk_z2Si8I1",
    "objects": "f_Kt3_Cn__Cs_a__b_20_u0431_w0001f914_ud800_z_Ce_m_zC_zRED_z_Cd_bf16",
    "function": "a_Kt1_b_Kt2",
    "not_sorted": "f_Kt1_A2f32_1l0_2l0",
}
FUNCTIONS = [
    ("helper", PRIVATE, [], bytes(300)),
    ("f_Kt1_Si32", ENTRY, [("sm_100", [("occupancy", 4), ("flag", True)]), ("default", [])], b""),
    ("f_Kt1_I1", ENTRY, [], b"\x5c\0\0"),
]


def main():
    root = sys.argv[1]
    for target in "cutile", "tileir":
        os.makedirs(os.path.join(root, target), exist_ok=True)
    for name, text in NAMES.items():
        with open(os.path.join(root, "cutile", name), "wb") as f:
            f.write(text.encode())
    for minor in range(1, 6):
        with open(os.path.join(root, "tileir", "13_%d" % minor), "wb") as f:
            f.write(Module((13, minor), FUNCTIONS, [("g", b"abc")]).encode())
    with open(os.path.join(root, "tileir", "empty"), "wb") as f:
        f.write(Module((13, 1), []).encode())


main()
