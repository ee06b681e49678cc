# SPDX-License-Identifier: MIT
"""AMD's command-line tools, as commands of the program kpack."""
