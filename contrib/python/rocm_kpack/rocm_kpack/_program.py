# SPDX-License-Identifier: MIT
"""Running the program kpack."""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Callable, NoReturn, Optional, Sequence


def _start(*arguments: str, capture: bool) -> "subprocess.CompletedProcess[str]":
    program = os.environ.get("KPACK") or "kpack"
    try:
        return subprocess.run([program, *arguments], capture_output=capture, errors="surrogateescape")
    except FileNotFoundError:
        raise FileNotFoundError(f"no program {program}: rocm_kpack needs that of kpackfs in PATH, or KPACK=FILE") from None


def output(*arguments: str) -> str:
    """What kpack prints; RuntimeError with its message where it fails."""
    done = _start(*arguments, capture=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"kpack {arguments[0]}: exit code {done.returncode}")
    return done.stdout


def run(*arguments: str) -> int:
    """Run kpack, and return its exit code."""
    return _start(*arguments, capture=False).returncode


def command(name: str) -> Callable[..., int]:
    """The main function of a tool whose options a command of kpack takes, too."""

    def main(argv: Optional[Sequence[str]] = None) -> int:
        # LLVM's program, which nothing here needs
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--clang-offload-bundler")
        return run(name, *parser.parse_known_args(argv)[1])

    return main


def absent(tool: str, ours: str) -> Callable[..., NoReturn]:
    """The main function of a tool of AMD's that has no equal: it ends, and names what there is."""

    def main(argv: Optional[Sequence[str]] = None) -> NoReturn:
        sys.exit(f"rocm_kpack.tools.{tool}: kpackfs has no such tool; {ours}")

    return main
