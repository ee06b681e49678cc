# SPDX-License-Identifier: MIT
"""What kind of binary a file is."""
from __future__ import annotations

import os
import struct
from typing import Union


class UnsupportedBinaryFormat(ValueError):
    """The file is neither ELF nor PE."""


def detect_binary_format(path: Union[str, "os.PathLike[str]"]) -> str:
    """"elf" or "coff"; UnsupportedBinaryFormat for anything else."""
    with open(path, "rb") as f:
        head = f.read(64)
        if head[:4] == b"\x7fELF":
            return "elf"
        if head[:2] == b"MZ" and len(head) == 64:
            (at,) = struct.unpack_from("<I", head, 0x3C)
            f.seek(at)
            if at >= 64 and f.read(4) == b"PE\0\0":
                return "coff"
    raise UnsupportedBinaryFormat(f"{os.fspath(path)}: neither ELF nor PE")
