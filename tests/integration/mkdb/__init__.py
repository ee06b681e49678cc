# SPDX-License-Identifier: MIT
"""Fixture trees of kernel databases; mkdb.py is the program."""
