# SPDX-License-Identifier: MIT
"""AMD's kpack_tool: "kpack ls", "kpack info" and "kpack cat"."""
import argparse
import sys
from typing import Optional, Sequence

from rocm_kpack import _program


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="kpack_tool", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="kpack ls -l")
    listing.add_argument("-s", "--summary", action="store_true", help="kpack info")
    extract = commands.add_parser("extract", help="kpack cat")
    for command, words in ((listing, ["file"]), (extract, ["file", "binary", "arch"])):
        for word in words:
            command.add_argument(word)
    extract.add_argument("-o", "--output", required=True)
    given = parser.parse_args(argv)
    if given.command == "extract":
        return _program.run("cat", "-o", given.output, "--", given.file, given.binary, given.arch)
    return _program.run(*(["info"] if given.summary else ["ls", "-l"]), "--", given.file)


if __name__ == "__main__":
    sys.exit(main())
