# SPDX-License-Identifier: MIT
"""Converting binaries, and reading their markers, by "kpack mark"."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from . import _program
from .format_detect import UnsupportedBinaryFormat, detect_binary_format

File = Union[str, "os.PathLike[str]"]


class NotFatBinaryError(ValueError):
    """The binary has no device code."""


def _show(path: File) -> Dict[str, Any]:
    """What "kpack mark show" says of a file; UnsupportedBinaryFormat for one that is no binary."""
    detect_binary_format(path)
    shown: List[Dict[str, Any]] = json.loads(_program.output("mark", "show", "--json", "--", os.fspath(path)))
    return shown[0]


def is_fat_binary(path: File) -> bool:
    """Whether the file is a binary with device code in it."""
    try:
        return bool(_show(path)["kind"] == "fat")
    except UnsupportedBinaryFormat:
        return False


def read_kpack_ref_marker(path: File) -> Optional[Dict[str, Any]]:
    """The marker of a converted binary, None for another; UnsupportedBinaryFormat for other files."""
    shown = _show(path)
    if shown["kernel_name"] is None:
        return None
    return {"kpack_search_paths": shown["search_paths"], "kernel_name": shown["kernel_name"]}


def kpack_offload_binary(input_path: File, output_path: File, kpack_search_paths: Optional[List[str]] = None,
                         kernel_name: Optional[str] = None, verbose: bool = False) -> Dict[str, Any]:
    """Convert a fat binary: device code out, marker in; the archives are up to the caller."""
    if kpack_search_paths is None or kernel_name is None:
        raise ValueError("kpack_search_paths and kernel_name are needed: kpackfs writes the marker itself")
    form = detect_binary_format(input_path)
    if not is_fat_binary(input_path):
        raise NotFatBinaryError(f"{os.fspath(input_path)}: no {'.hip_fatbin' if form == 'elf' else '.hip_fat'} section")
    paths = [word for path in kpack_search_paths for word in ("--search-path", path)]
    before = Path(input_path).stat().st_size
    text = _program.output("mark", "convert", "--kernel-name", kernel_name, *paths, "--",
                           os.fspath(input_path), os.fspath(output_path))
    if verbose:
        print(text, end="")
    after = Path(output_path).stat().st_size
    return {"removed": before - after, "original_size": before, "new_size": after, "format": form}
