# SPDX-License-Identifier: MIT
"""Inputs that golden cases share, made once for each run, always with the same bytes.

make(TOP) makes TOP/NAME for each function NAME below that is marked as an input.  A case
names those that it changes in its "# in:" line, and reads the others in $IN/NAME.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import mkarchive
import mkfat

INPUTS = {}
TIME = 1700000000


def an_input(f):
    INPUTS[f.__name__] = f
    return f


def make(top):
    for name, f in INPUTS.items():
        os.makedirs(os.path.join(top, name))
        f(os.path.join(top, name))
    for where, dirs, files in os.walk(top, topdown=False):
        for name in dirs + files:
            os.utime(os.path.join(where, name), (TIME, TIME), follow_symlinks=False)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def fat(path, *, arches=("gfx90a:xnack+", "gfx1030", "gfx1100"), bundles=1, size=2000, seed="0",
        ccob=0):
    """A shared library with BUNDLES fat binaries, each with a wrapper."""
    data, starts = b"", []
    for n in range(bundles):
        objects = [(a, mkfat.code_object(a, size, "%s/%d" % (seed, n))) for a in arches]
        data += bytes(-len(data) % 4096)
        starts.append(len(data))
        data += mkfat.bundle(objects, ccob, 4096)
    write(path, mkfat.shared_library(data, starts))


@an_input
def library(d):
    """lib.so: three bundles for three targets."""
    fat(d + "/lib.so", bundles=3)


@an_input
def tree(d):
    """A tree with libraries, a hard link, a symbolic one, and files without device code."""
    fat(d + "/lib/a.so", bundles=2)
    fat(d + "/lib/deep/b.so.1.2", seed="b", arches=("gfx1030", "gfx1100", "gfx942"), ccob=2)
    os.link(d + "/lib/a.so", d + "/lib/a-too.so")
    os.symlink("b.so.1.2", d + "/lib/deep/b.so")
    write(d + "/share/doc/text", b"text\n")
    write(d + "/bin/empty", b"")
    os.chmod(d + "/bin/empty", 0o755)


@an_input
def archive(d):
    """a.kpack: code objects and a file with a path, written by no code of ours."""
    for scheme, name in (("zstd-per-kernel", "a.kpack"), ("none", "plain.kpack")):
        a = mkarchive.Archive(scheme=scheme)
        for i in range(3):
            for arch in ("gfx1100", "gfx90a:xnack+"):
                a.add("lib/x.so#%d" % i, arch, mkfat.code_object(arch, 3000, "x%d" % i))
        a.add("db/t.dat", "gfx1100", b"data" * 500, path="lib/db/t.dat")
        a.write(d + "/" + name)


sys.modules.setdefault("inputs", sys.modules[__name__])
import inputs_read  # noqa: E402,F401  its inputs
