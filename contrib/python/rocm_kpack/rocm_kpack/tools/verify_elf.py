# SPDX-License-Identifier: MIT
"""AMD's verify_elf, which has no equal here."""
from rocm_kpack import _program

main = _program.absent("verify_elf", "'kpack mark check FILE' checks a converted binary")

if __name__ == "__main__":
    main()
