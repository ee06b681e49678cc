# SPDX-License-Identifier: MIT
"""AMD's recombine_artifacts, which has no equal here."""
from rocm_kpack import _program

main = _program.absent("recombine_artifacts", "'kpack merge TREE... -o OUT' joins the trees of a split")

if __name__ == "__main__":
    main()
