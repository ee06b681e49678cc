# SPDX-License-Identifier: MIT
"""AMD's split_artifacts: "kpack split", which takes the same options."""
import sys

from rocm_kpack import _program

main = _program.command("split")

if __name__ == "__main__":
    sys.exit(main())
