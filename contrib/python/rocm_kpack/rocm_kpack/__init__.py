# SPDX-License-Identifier: MIT
"""The names that programs import from AMD's package rocm_kpack, over kpackfs.

This is not AMD's package.  It takes its place only where somebody installs it for that; both in
one environment exclude each other.  Archives are read and written by librocm_kpack (kpackfs),
everything else is done by the program kpack: KPACK names it, else it is looked for in PATH.
README.md beside it lists what is there and what differs.
"""
from .format_detect import UnsupportedBinaryFormat, detect_binary_format
from .kpack_transform import NotFatBinaryError, is_fat_binary, kpack_offload_binary, read_kpack_ref_marker

__all__ = [
    "NotFatBinaryError", "UnsupportedBinaryFormat", "detect_binary_format", "is_fat_binary",
    "kpack_offload_binary", "read_kpack_ref_marker",
]
