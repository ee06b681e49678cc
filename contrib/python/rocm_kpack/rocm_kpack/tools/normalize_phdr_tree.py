# SPDX-License-Identifier: MIT
"""AMD's normalize_phdr_tree: "kpack mark strip-safe" of every converted binary."""
import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from rocm_kpack import UnsupportedBinaryFormat, _program, read_kpack_ref_marker


def _is_converted(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and read_kpack_ref_marker(path) is not None
    except UnsupportedBinaryFormat:
        return False


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="normalize_phdr_tree", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="only report; exit code 1 if there are any")
    parser.add_argument("-v", "--verbose", action="store_true", help="ignored: each file is named")
    given = parser.parse_args(argv)
    if given.check:
        return _program.run("mark", "strip-safe", "--check", "--", *map(str, given.paths))
    found = [path for top in given.paths for path in ([top] if top.is_file() else sorted(top.rglob("*"))) if _is_converted(path)]
    return _program.run("mark", "strip-safe", "--", *map(str, found)) if found else 0


if __name__ == "__main__":
    sys.exit(main())
