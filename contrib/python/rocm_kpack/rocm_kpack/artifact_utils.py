# SPDX-License-Identifier: MIT
"""TheRock's artifacts: the manifest, and names of targets."""
from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from .kpack_transform import is_fat_binary

__all__ = ["extract_architecture_from_target", "is_fat_binary", "read_artifact_manifest", "write_artifact_manifest"]
_MANIFEST = "artifact_manifest.txt"


def read_artifact_manifest(artifact_dir: Path) -> List[str]:
    """The prefixes of an artifact, without empty lines."""
    lines = (Path(artifact_dir) / _MANIFEST).read_text().splitlines()
    return [line.strip() for line in lines if line.strip()]


def write_artifact_manifest(artifact_dir: Path, prefixes: List[str]) -> None:
    """One prefix on each line."""
    (Path(artifact_dir) / _MANIFEST).write_text("".join(f"{prefix}\n" for prefix in prefixes))


def extract_architecture_from_target(target: Optional[str]) -> Optional[str]:
    """What follows the last "--" of a bundle entry ID, such as "gfx942:xnack+"; None without one."""
    return target.rsplit("--", 1)[1] if target and "--" in target else None
