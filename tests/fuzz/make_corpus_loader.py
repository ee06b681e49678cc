#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz target loader: make_corpus_loader.py [DIR]

good-* loads an object, bad-* fails.  The archives are those of make_corpus_archive.py's own
pieces.  Run it with /usr/bin/python3: Debian's modules are only there.
"""

import os
import struct
import sys

import make_corpus_archive as parts

PATHS, PREFIX, CUT, TRACE = 1, 2, 4, 8
NAME = "lib/x.so"


def marker(*paths, name=NAME, **more):
    return parts.pack({"kpack_search_paths": list(paths), "kernel_name": name, **more})


def archive(*objects, arches=None):
    """Of (KEY, ARCH, TEXT); an empty TEXT is a frame that does not decode."""
    frames, toc = [], {}
    for i, (key, arch, text) in enumerate(objects):
        frames.append(parts.frame(text.encode()) if text else b"damaged")
        toc.setdefault(key, {})[arch] = parts.entry(i, len(text) or 7)
    arches = arches or sorted({arch for _, arch, _ in objects})
    return parts.zstd(toc, frames, gfx_arches=arches)


def request(mark, archs, first=b"", second=b"", flags=0, index=0, paths="", prefix=""):
    out = bytes([flags, index])
    for s in (mark, paths.encode(), prefix.encode(), "\n".join(archs).encode(), second):
        out += struct.pack("<H", len(s)) + s
    return out + first


X = archive((NAME + "#0", "gfx900", "plain"), (NAME + "#1", "gfx900", "second"))
FEATURE = archive((NAME + "#0", "gfx900:xnack+", "feature"), (NAME + "#0", "gfx900", "bare"))
DAMAGED = archive((NAME + "#0", "gfx900", ""), (NAME + "#0", "gfx900:xnack+", ""))
LACKING = archive(("lib/y.so#0", "gfx900", "another"))
BARE = archive((NAME, "gfx900", "without index"))
A, B = "../a.kpack", "../many/b.kpack"
TRIPLE = "amdgcn-amd-amdhsa--"

SEEDS = {
    "good-plain": request(marker(A), ["gfx900"], X),
    "good-index": request(marker(A), ["gfx900"], X, index=1),
    "good-none": request(marker(A, name="a"), ["gfx1100"], parts.none(parts.TWO)),
    "good-triple": request(marker(A), [TRIPLE + "gfx900:sramecc+:xnack+"], FEATURE),
    "good-pattern": request(marker("../x_@GFXARCH@.kpack"), ["gfx900:xnack+"], X),
    "good-second": request(marker(A, B), ["gfx900"], LACKING, X),
    "good-damaged-first": request(marker(A, B), ["gfx900:xnack+"], DAMAGED, X),
    "good-next-arch": request(marker(A, B), ["gfx906", "", "gfx900"], LACKING, X),
    "good-bare": request(marker(A), ["gfx900"], BARE),
    "good-path": request(marker("no"), ["gfx900"], b"", X, PATHS, paths="\1/many"),
    "good-path-file": request(marker("no"), ["gfx900"], X, b"", PATHS,
                              paths="/no\\:such::\1/a.kpack:"),
    "good-prefix": request(marker(A), ["gfx900"], DAMAGED, X, PREFIX, prefix="\1:\1/many/"),
    "good-told": request(marker(A, B), ["gfx900"], DAMAGED, X, TRACE | PREFIX, prefix="\1/lib"),
    "good-cut": request(marker(A, B), ["gfx900"], X, X, CUT),
    "good-paper": request(marker(A), ["gfx1100", "gfx90a:xnack+"], parts.zstd(parts.TOC)),
    "bad-damaged": request(marker(A, B), ["gfx900", "gfx900"], DAMAGED, LACKING, TRACE),
    "bad-lacking": request(marker(A, B), ["gfx900"], LACKING, LACKING, TRACE),
    "bad-arch": request(marker(A), ["gfx9999", ":", TRIPLE], X, flags=TRACE),
    "bad-missing": request(marker("x/../../none", "/none@GFXARCH@"), ["a:b:c:d:e"], flags=TRACE),
    "bad-archive": request(marker(A, B), ["gfx900"], X[:-5], b"text"),
    "bad-marker": request(b"\x82\xa1a", ["gfx900"], X),
    "bad-no-paths": request(marker(), ["gfx900"], X),
    "bad-empty": request(b"", [], b""),
}

if __name__ == "__main__":
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "corpus")
    os.makedirs(os.path.join(top, "loader"), exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(top, "loader", name), "wb") as f:
            f.write(data)
