# SPDX-License-Identifier: MIT
"""AMD's bulk_unbundle: "kpack bulk-unbundle", which takes the same options."""
import sys

from rocm_kpack import _program

main = _program.command("bulk-unbundle")

if __name__ == "__main__":
    sys.exit(main())
