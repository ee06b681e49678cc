# SPDX-License-Identifier: MIT
"""AMD's kpack_binary, which has no equal here."""
from rocm_kpack import _program

main = _program.absent("kpack_binary", "'kpack mark convert --kernel-name NAME --search-path PATH IN OUT' converts a binary")

if __name__ == "__main__":
    main()
