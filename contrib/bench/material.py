"""The inputs of contrib/bench/read: the same files as archives, plain, and as squashfs images.

They are written once into build/bench.  A material has
  sources   archives for kpackfs
  plain     a directory of the same files
  image     a squashfs image of it: zstd level 3, blocks of 1 MiB
  below     the path of PLAIN's files in the mount of SOURCES
"""
import os, random, struct, subprocess, sys
from collections import namedtuple

import bench
from bench import KPACK, empty, run

sys.path.insert(0, os.path.join(bench.ROOT, "tests", "integration"))

Material = namedtuple("Material", "sources plain image below")

BIG = 200 << 20
CHUNK = 128 << 10
DIRECTORIES, FILES = 100, 1000


def place(name):
    return os.path.join(bench.WORK, name)


def squash(plain, image):
    run("mksquashfs", plain, image + ".new", "-comp", "zstd", "-Xcompression-level", "3", "-b", "1M",
        "-noappend", "-no-progress", "-quiet")
    os.rename(image + ".new", image)
    return image


def once(name, make):
    """WORK/NAME.squashfs, which is made last; MAKE writes the rest of the material before."""
    image = place(name + ".squashfs")
    if not os.path.exists(image):
        make()
        squash(place(name + "-plain"), image)
    return image


def archives(name):
    return sorted(os.path.join(directory, f) for directory, _, files in os.walk(place(name))
                  for f in files if f.endswith(".kpack"))


def objects():
    """The code objects of librocsparse, as kpack packs and extracts them."""

    def make():
        tree = empty("objects-input")
        library = bench.input_file("librocsparse.so.0.1")
        try:
            os.link(library, os.path.join(tree, "librocsparse.so.0.1"))
        except OSError:
            subprocess.check_call(["cp", "--reflink=auto", library, tree])
        run(KPACK, "pack", "--archives-only", "--quiet", "--group", "rocsparse", tree,
            empty("objects-archives"))
        run(KPACK, "extract", "--directory", empty("objects-plain"), *archives("objects-archives"))

    image = once("objects", make)
    return Material(archives("objects-archives"), place("objects-plain"), image, "")


def write_archive(path, files, chunk=0):
    """An archive of FILES, (path, bytes), with the hashes of pieces that kpack writes.

    Without these a reader decodes all of an entry before it gives away a byte of it.
    """
    import mkarchive
    archive = mkarchive.Archive()
    for name, data in files:
        more = {"chunk": chunk} if chunk else {}
        archive.add(name, "gfx942", data, "dat", path=name, **more)
    archive.write(path + ".bare")
    run(KPACK, "merge", "--quiet", path + ".bare", "--output", path)
    os.remove(path + ".bare")


def small_files():
    rng = random.Random(7)
    for d in range(DIRECTORIES):
        for i in range(FILES):
            head = struct.pack("<II", d, i) + rng.randbytes(rng.randrange(64, 512))
            yield "share/small/dir%03d/kernel_%06d.dat" % (d, i), head * rng.randrange(1, 5)


def small():
    """100,000 files of 72 to 2,080 bytes in 100 directories."""

    def make():
        plain, files = empty("small-plain"), list(small_files())
        for name, data in files:
            path = os.path.join(plain, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        write_archive(os.path.join(empty("small-archives"), "small.kpack"), files)

    image = once("small", make)
    return Material(archives("small-archives"), place("small-plain"), image, "share/small")


def big():
    """One file of 200 MB, made of genuine code objects; in one frame, and in chunks."""

    def make():
        data, sources = bytearray(), objects().plain
        for root, _, names in sorted(os.walk(sources)):
            for name in sorted(names):
                if len(data) < BIG:
                    with open(os.path.join(root, name), "rb") as f:
                        data += f.read()
        data = bytes(data[:BIG])
        plain = os.path.join(empty("big-plain"), "share", "big.dat")
        os.makedirs(os.path.dirname(plain))
        with open(plain, "wb") as f:
            f.write(data)
        name = "share/big.dat"
        write_archive(os.path.join(empty("big-archives"), "big.kpack"), [(name, data)])
        write_archive(os.path.join(empty("chunked-archives"), "chunked.kpack"), [(name, data)], CHUNK)

    image = once("big", make)
    one = Material(archives("big-archives"), place("big-plain"), image, "")
    return one, one._replace(sources=archives("chunked-archives"))


def nothing():
    """An archive with one small file, for the cost of a mount that is almost empty."""
    path = os.path.join(place("nothing-archives"), "nothing.kpack")
    if not os.path.exists(path):
        empty("nothing-archives")
        write_archive(path, [("share/one.dat", b"one")])
    return [path]
