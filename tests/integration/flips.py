#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Flip single bits of archives, and look whether a wrong byte leaves them.

    flips.py DIR ARCHIVE COUNT SEED [FIRST]

ARCHIVE is intact, and DIR has the contents of its entries by their keys, or by their paths below
toc/.  For each of COUNT copies with one flipped bit, which SEED chooses, the copy is mounted and every
file read, bundles too: a page in the middle, in order, at random, mapped, again; and `kpack extract`
reads it.  Each byte must be the file's, or the read fails; and a mount that fails reads
says so.  A failure prints
the SEED, the number of the copy, which FIRST begins with, and the bit.  $KPACK_BIN has the programs.
"""
import mmap
import os
import random
import subprocess
import sys
import tempfile

BIN = os.environ["KPACK_BIN"]
PAGE = 4096


def entries(folder):
    return sorted(os.path.relpath(os.path.join(top, name), folder)
                  for top, _, names in os.walk(folder) for name in names)


class Wrong(Exception):
    pass


class Reader:
    def __init__(self, want):
        self.want, self.failed = want, 0

    def at(self, name, fd, off, size):
        try:
            got = os.pread(fd, size, off)
        except OSError:
            self.failed += 1
            return
        want = self.want[name][off:off + size]
        if not want.startswith(got):
            raise Wrong("%s: %d bytes at %d" % (name, size, off))
        self.failed += len(got) < len(want)  # the first pages were good

    def mapped(self, path, name, rng):
        """In a process of its own: a page that cannot be read is a SIGBUS."""
        pages = [rng.randrange(len(self.want[name]) // PAGE + 1) * PAGE for _ in range(4)]
        pid = os.fork()
        if pid == 0:
            with open(path, "rb") as f:
                m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
                os._exit(any(m[p:p + PAGE] != self.want[name][p:p + PAGE] for p in pages))
        status = os.waitpid(pid, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise Wrong("%s: mapped" % name)
        self.failed += os.WIFSIGNALED(status)

    def file(self, path, name, rng):
        size = len(self.want[name])
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return  # its entry or its archive was refused
        try:
            self.at(name, fd, size // 2 // PAGE * PAGE, PAGE)
            for _ in range(3):
                self.at(name, fd, rng.randrange(size + 1), rng.randrange(1, 200000))
            for off in range(0, size, 131072):
                self.at(name, fd, off, 131072)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            for off in reversed(range(0, size, 262144)):
                self.at(name, fd, off, 100)
            if size:
                self.mapped(path, name, rng)
        finally:
            os.close(fd)


def extracted(archive, want, tmp):
    """What `kpack extract` writes, also with a status other than 0."""
    out = os.path.join(tmp, "out")
    run = subprocess.run([BIN + "/kpack", "extract", "-C", out, archive], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    assert run.returncode in (0, 1)
    for name in entries(out) if os.path.isdir(out) else []:
        with open(os.path.join(out, name), "rb") as f:
            if name in want and f.read() != want[name]:
                raise Wrong("kpack extract %s" % name)
    subprocess.run(["rm", "-rf", out], check=True)


def mounted(archive, want, tmp, rng):
    point = os.path.join(tmp, "m")
    os.makedirs(point, exist_ok=True)
    options = "bundles,cache_size=%s" % rng.choice(["64m", "8m"])
    if subprocess.run([BIN + "/kpackfs", "-o", options, archive, point],
                      stderr=subprocess.DEVNULL).returncode:
        return "refused"
    try:
        r = Reader(want)
        for name in want:
            r.file(os.path.join(point, name), name, rng)
        with open(os.path.join(point, ".kpackfs/status")) as f:
            healthy = f.readline().find("healthy") >= 0
        if r.failed and healthy:
            raise Wrong("%d reads failed of a healthy mount" % r.failed)
        return "failed" if r.failed else "unhealthy" if not healthy else "right"
    finally:
        subprocess.run(["fusermount3", "-u", point], check=True)


def bundles(archive, tmp):
    """What the intact archive has below hipfb/."""
    point = os.path.join(tmp, "m")
    os.mkdir(point)
    subprocess.run([BIN + "/kpackfs", "-o", "bundles", archive, point], check=True)
    try:
        return {name: open(os.path.join(point, name), "rb").read()
                for name in entries(point) if name.startswith("hipfb/")}
    finally:
        subprocess.run(["fusermount3", "-u", point], check=True)


def main():
    folder, archive, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    want = {name: open(os.path.join(folder, name), "rb").read() for name in entries(folder)}
    intact = bytearray(open(archive, "rb").read())
    seen = {}
    with tempfile.TemporaryDirectory() as tmp:
        want.update(bundles(archive, tmp))
        copy = os.path.join(tmp, "x.kpack")
        for i in range(int(sys.argv[5]) if len(sys.argv) > 5 else 0, count):
            rng = random.Random(seed * 1000003 + i)
            # every third flip is in the table of contents, if that has a hash
            toc = int.from_bytes(intact[8:16], "little")
            bit = rng.randrange(8 * toc)
            if i % 3 == 0 and b"table_hash" in intact[toc:]:
                bit = rng.randrange(8 * toc, 8 * len(intact))
            data = bytearray(intact)
            data[bit // 8] ^= 1 << bit % 8
            with open(copy, "wb") as f:
                f.write(data)
            try:
                result = mounted(copy, want, tmp, rng)
                extracted(copy, want, tmp)
            except Wrong as e:
                print("%s: seed %d, copy %d, byte %d, bit %d: wrong: %s" %
                      (os.path.basename(archive), seed, i, bit // 8, bit % 8, e))
                return 1
            seen[result] = seen.get(result, 0) + 1
    print("%s: %s" % (os.path.basename(archive),
                      ", ".join("%d %s" % (n, what) for what, n in sorted(seen.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
