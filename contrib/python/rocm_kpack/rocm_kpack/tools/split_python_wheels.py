# SPDX-License-Identifier: MIT
"""AMD's split_python_wheels: "kpack split-wheel", which takes the same options."""
import sys

from rocm_kpack import _program

main = _program.command("split-wheel")

if __name__ == "__main__":
    sys.exit(main())
