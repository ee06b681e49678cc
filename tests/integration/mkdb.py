#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a tree of kernel databases as the libraries install them, always with the same content.

mkdb.py [--cache DIR] KIND DIR     make it in DIR, which must be empty or absent
mkdb.py --list                     print the kinds

  --cache DIR   directory that keeps code objects for the next run (DIR/../.objects)

Run it with /usr/bin/python3: only that one has Debian's msgpack.
"""
import argparse, os, sys

from mkdb import aotriton, hipblaslt, install, miopen, paper, rocblas, sqlitedb
from mkdb.objects import Objects
from mkdb.tree import Tree

KINDS = {
    "rocblas-flat": rocblas.flat,
    "rocblas-mixed": rocblas.mixed,
    "rocblas-merged": rocblas.merged,
    "rocblas-arch": rocblas.arch,
    "rocblas-feature": rocblas.feature,
    "hipblaslt-arch": hipblaslt.arch,
    "hipsparselt": hipblaslt.sparse,
    "aotriton": aotriton.images,
    "aotriton-flatzip": aotriton.flatzip,
    "rocfft": sqlitedb.one,
    "rocfft-arch": sqlitedb.per_arch,
    "miopen": miopen.database,
    "provider": miopen.provider,
    "paper-rocblas": paper.rocblas,
    "paper-hipblaslt": paper.hipblaslt,
    "paper-aotriton": paper.aotriton,
    "paper-fft": paper.fft,
    "torch": install.wheel,
    "all": install.everything,
}


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--cache")
    p.add_argument("--list", action="store_true")
    p.add_argument("kind", nargs="?", choices=KINDS)
    p.add_argument("dir", nargs="?")
    args = p.parse_args()
    if args.list:
        print(*KINDS, sep="\n")
        return
    if not args.dir:
        sys.exit(__doc__)
    if os.path.isdir(args.dir) and os.listdir(args.dir):
        sys.exit("mkdb.py: %s is not empty" % args.dir)
    cache = args.cache or os.path.join(os.path.abspath(args.dir), "..", ".objects")
    os.umask(0o022)
    os.makedirs(args.dir, exist_ok=True)
    KINDS[args.kind](Tree(args.dir, Objects(cache)))


if __name__ == "__main__":
    main()
