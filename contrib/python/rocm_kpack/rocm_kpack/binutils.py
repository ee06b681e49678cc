# SPDX-License-Identifier: MIT
"""Taking the device code out of a binary, by "kpack bulk-unbundle"."""
from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, List, Optional, Tuple

from . import _program


class Toolchain:
    """AMD's package looks for LLVM's programs with it; nothing here needs any."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


class UnbundledContents:
    """A directory of code objects; target_list has (bundle entry ID, file name) of each, in order."""

    def __init__(self, dest_dir: Path, delete_on_close: bool, target_list: List[Tuple[str, str]]) -> None:
        self.dest_dir = dest_dir
        self.delete_on_close = delete_on_close
        self.target_list = target_list

    @property
    def file_names(self) -> List[str]:
        return [name for _, name in self.target_list]

    def __enter__(self) -> "UnbundledContents":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        if self.delete_on_close:
            shutil.rmtree(self.dest_dir, ignore_errors=True)


class BundledBinary:
    """A binary with device code, or an offload bundle."""

    def __init__(self, file_path: Path, *, toolchain: Optional[Toolchain] = None) -> None:
        self.file_path = Path(file_path)

    def unbundle(self, *, dest_dir: Optional[Path] = None, delete_on_close: bool = True,
                 gfx_arch: Optional[str] = None) -> UnbundledContents:
        """Write each code object into a file of DEST_DIR, a temporary directory if it is None."""
        place = Path(tempfile.mkdtemp(prefix="unbundle_")) if dest_dir is None else Path(dest_dir)
        try:
            only = ["--gfx-arch", gfx_arch] if gfx_arch else []
            text = _program.output("bulk-unbundle", "-o", str(place), *only, "--", str(self.file_path))
        except BaseException as why:
            if dest_dir is None:
                shutil.rmtree(place)
            if isinstance(why, RuntimeError):
                raise ValueError(str(why)) from None
            raise
        files = text.rstrip("\n").split(f"{place}: ", 1)[1].split(", ")
        names = [(re.sub(r"(_\d+)?\.(hsaco|elf)$", "", name), name) for name in files if name]
        return UnbundledContents(place, delete_on_close, names)

    def list_bundles(self) -> List[str]:
        """The architecture of each code object, in order."""
        with self.unbundle() as found:
            return [target.rsplit("--", 1)[1] for target, _ in found.target_list if target.startswith("hip")]
