# SPDX-License-Identifier: MIT
"""AMD's verify_artifacts: each tree has a manifest; then "kpack mark check", and "kpack verify" of each archive."""
import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from rocm_kpack import _program


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="verify_artifacts", description=__doc__)
    parser.add_argument("--artifacts-dir", required=True, type=Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--clang-offload-bundler", help="ignored")
    given = parser.parse_args(argv)
    top: Path = given.artifacts_dir
    if not top.is_dir():
        parser.error(f"{top}: no directory")
    code = 0
    for tree in sorted(filter(Path.is_dir, top.iterdir())):
        if not (tree / "artifact_manifest.txt").is_file():
            print(f"{tree}: no artifact_manifest.txt", file=sys.stderr)
            code = 1
    code = max(code, _program.run("mark", "check", *(["-v"] if given.verbose else []), "--", str(top)))
    archives = sorted(str(path) for path in top.rglob("*.kpack") if path.is_file())
    if archives:
        code = max(code, _program.run("verify", *([] if given.verbose else ["-q"]), "--", *archives))
    return code


if __name__ == "__main__":
    sys.exit(main())
