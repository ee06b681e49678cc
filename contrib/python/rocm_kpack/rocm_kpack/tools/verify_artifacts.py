# SPDX-License-Identifier: MIT
"""AMD's verify_artifacts: "kpack mark check" of the trees, then "kpack verify" of each archive."""
import argparse
import sys
from pathlib import Path
from typing import Optional, Sequence

from rocm_kpack import _program


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="verify_artifacts", description=__doc__)
    parser.add_argument("--artifacts-dir", required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--clang-offload-bundler", help="ignored")
    given = parser.parse_args(argv)
    code = _program.run("mark", "check", *(["-v"] if given.verbose else []), "--", given.artifacts_dir)
    archives = sorted(map(str, Path(given.artifacts_dir).rglob("*.kpack")))
    archives = [path for path in archives if Path(path).is_file()]
    return max(code, _program.run("verify", *([] if given.verbose else ["-q"]), "--", *archives)) if archives else code


if __name__ == "__main__":
    sys.exit(main())
