# SPDX-License-Identifier: MIT
"""As much of MessagePack as metadata have; the library has checked them before."""
from __future__ import annotations

import struct
from typing import Any, Dict, Tuple

_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
            0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# what follows is a length of so many bytes
_LENGTHS = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
            0xC7: ("ext", ">B"), 0xC8: ("ext", ">H"), 0xC9: ("ext", ">I"),
            0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
            0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}


def unpack(data: bytes, at: int = 0, depth: int = 0) -> Tuple[Any, int]:
    """The object at AT, and the place after it.

    Of equal keys the first counts, as for the library; keys that are no text or number are left
    out.  Extensions are their bytes.
    """
    if depth > 64 or at >= len(data):
        raise ValueError("MessagePack ends early, or is nested too deeply")
    first, at = data[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return first - (256 if first >= 0xE0 else 0), at
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _NUMBERS:
        return struct.unpack_from(_NUMBERS[first], data, at)[0], at + struct.calcsize(_NUMBERS[first])
    if first in _LENGTHS:
        kind, form = _LENGTHS[first]
        (length,) = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
    elif first < 0xC0:
        kind, length = ("map", first & 15) if first < 0x90 else ("array", first & 15) if first < 0xA0 else ("str", first & 31)
    else:
        kind, length = "ext", 1 << (first - 0xD4)
    if kind == "map":
        found: Dict[Any, Any] = {}
        for _ in range(length):
            key, at = unpack(data, at, depth + 1)
            value, at = unpack(data, at, depth + 1)
            if isinstance(key, (str, int, float)):
                found.setdefault(key, value)
        return found, at
    if kind == "array":
        items = []
        for _ in range(length):
            item, at = unpack(data, at, depth + 1)
            items.append(item)
        return items, at
    end = at + length + (kind == "ext")  # the type of an extension
    if end > len(data):
        raise ValueError("MessagePack ends early")
    return data[at:end].decode("utf-8", "surrogateescape") if kind == "str" else data[at:end], end


def pack_text(text: str) -> bytes:
    """TEXT as a str."""
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack(">BI", 0xDB, len(data)) + data
