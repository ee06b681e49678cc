# SPDX-License-Identifier: MIT
"""AMD's pack_tree: "kpack pack"; keys have a #n, so that HIP runtimes find the objects."""
import argparse
import sys
from typing import Optional, Sequence

from rocm_kpack import _program


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="pack_tree", description=__doc__)
    for name in ("input", "output", "group-name", "gfx-arch-family", "gfx-arches"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-workers", default="0", help="threads")
    parser.add_argument("--compression", choices=("none", "zstd"), default="none")
    parser.add_argument("--compression-level", default="3")
    parser.add_argument("--clang-offload-bundler", help="ignored")
    given = parser.parse_args(argv)
    words = ["--group", given.group_name, "--gfx-arch-family", given.gfx_arch_family, "--gfx-arches", given.gfx_arches]
    words += ["--scheme", "none"] if given.compression == "none" else ["--level", given.compression_level]
    words += ["--jobs", given.max_workers] if given.max_workers != "0" else []
    return _program.run("pack", *words, "--", given.input, given.output)


if __name__ == "__main__":
    sys.exit(main())
