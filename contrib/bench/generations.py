"""Files whose bytes state their generation, and archives of such files.

Each page of 4 KiB starts with a head: a hash of the file's name, its generation, the page's
number, the file's size.  A reader compares its bytes with those of the stated generation; so two
generations in one file, a wrong size or another file's bytes are detected.
"""
import functools, os, random, struct, sys, zlib

import bench

sys.path.insert(0, os.path.join(bench.ROOT, "tests", "integration"))
import mkarchive

PAGE = 4096
HEAD = struct.Struct("<8sIIIQ")
MAGIC = b"kpgen\r\n\0"
ROOT = "share/churn"
KIB, MIB = 1 << 10, 1 << 20

# name, least and most bytes, chunk
KINDS = [("empty.dat", 0, 0, 0), ("tiny.dat", 64, 900, 0), ("small.dat", 2000, 9000, 0),
         ("middle0.dat", 40 * KIB, 200 * KIB, 0), ("middle1.dat", 100 * KIB, 700 * KIB, 0),
         ("large.dat", 1 * MIB, 4 * MIB, 0), ("chunked.dat", 300 * KIB, 2 * MIB, 64 * KIB)]
HUGE = ("huge.dat", 18 * MIB, 22 * MIB, 0)  # larger than the cache
SHARED = ROOT + "/shared.dat"  # in all archives: the first one wins


class Wrong(Exception):
    """Bytes that no generation has."""


@functools.lru_cache(maxsize=24)
def content(path, generation, size):
    rng = random.Random("%s %d" % (path, generation))
    name, base, pages = zlib.crc32(path.encode()), rng.randbytes(3040), []
    for number in range((size + PAGE - 1) // PAGE):
        head = HEAD.pack(MAGIC, name, generation, number, size)
        pages.append(head.ljust(32, b"\0") + rng.randbytes(1024) + base)
    return b"".join(pages)[:size]


def parse(path, head, number, size):
    """The generation of page NUMBER of PATH, whose size is SIZE, from its first bytes."""
    if len(head) < HEAD.size:
        raise Wrong("%s: %d bytes of page %d of %d bytes" % (path, len(head), number, size))
    magic, name, generation, page, whole = HEAD.unpack(head[:HEAD.size])
    if magic != MAGIC or name != zlib.crc32(path.encode()) or page != number or whole != size:
        raise Wrong("%s: page %d of %d bytes starts %r" % (path, number, size, head[:32]))
    return generation


def compare(path, generation, size, offset, data):
    wanted = content(path, generation, size)[offset:offset + len(data)]
    if data != wanted:
        at = next((i for i, (a, b) in enumerate(zip(data, wanted)) if a != b), len(wanted))
        raise Wrong("%s: generation %d differs at byte %d of %d" %
                    (path, generation, offset + at, size))


class Pack:
    """The files that archives of one name contain in every generation."""

    def __init__(self, name, huge=False):
        self.name = name
        self.directory = "%s/%s" % (ROOT, name)
        self.kinds = KINDS + ([HUGE] if huge else [])
        self.paths = [self.path(kind[0]) for kind in self.kinds]

    def path(self, name):
        return "%s/%s" % (self.directory, name)

    def extra(self, generation):
        """The file that only this generation has."""
        return self.path("extra-%08d.dat" % generation)

    def bytes(self, generation):
        """The archive of GENERATION."""
        rng = random.Random("%s %d" % (self.name, generation))
        archive = mkarchive.Archive(level=1)
        extra = (os.path.basename(self.extra(generation)), 500, 5000, 0)
        for name, least, most, chunk in [*self.kinds, extra]:
            self.add(archive, self.path(name), generation, rng.randint(least, most), chunk)
        self.add(archive, SHARED, generation, rng.randint(100, 20000), 0)
        return archive.bytes()

    def add(self, archive, path, generation, size, chunk):
        more = {"chunk": chunk} if chunk else {}
        archive.add(path, "gfx942", content(path, generation, size), "dat", path=path, **more)
