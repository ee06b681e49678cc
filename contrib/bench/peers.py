"""The file systems that are compared: kpackfs, and others that show the same files.

`with Kpackfs(material) as m`: a fresh mount; m.root is the directory of its files.  m.chill() drops
all caches; m.warm() reads what the mount is made of (archive, image) into the page cache again.
"""
import os, shutil, subprocess

import bench
from bench import Daemon, Mount


class Plain:
    """The files themselves, on the file system of build/bench."""
    name = "ext4"
    before = 0  # CPU seconds that mounting took

    def __init__(self, material):
        self.material, self.root = material, material.plain

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def chill(self):
        bench.drop_caches()

    def warm(self):
        """Nothing to do: plain files have no archive or image, and cold reads come from the disk."""

    def cpu(self):
        return 0

    def peaks(self):
        return []


class Squashfs(Plain):
    """The kernel's squashfs, each time on a new loop device, whose cache must not survive."""
    name = "squashfs"

    def __init__(self, material):
        super().__init__(material)
        self.root = os.path.join(bench.WORK, "mnt-squashfs")
        os.makedirs(self.root, exist_ok=True)

    def __enter__(self):
        subprocess.check_call(["mount", "-t", "squashfs", "-o", "loop,ro", self.material.image,
                               self.root])
        return self

    def __exit__(self, *_):
        subprocess.check_call(["umount", self.root])

    def warm(self):
        bench.warm(self.material.image)


class WithDaemon(Plain):
    def mounted(self, daemon):
        self.daemon, self.root = daemon, daemon.path

    def __enter__(self):
        self.daemon.__enter__()
        self.before = self.daemon.cpu()
        return self

    def __exit__(self, *_):
        self.daemon.__exit__()

    def cpu(self):
        """CPU seconds since the mount."""
        return self.daemon.cpu() - self.before

    def peaks(self):
        return self.daemon.peaks()


class Squashfuse(WithDaemon):
    name = "squashfuse_ll"

    def __init__(self, material):
        super().__init__(material)
        self.mounted(Daemon(["squashfuse_ll", "-f", material.image],
                            os.path.join(bench.WORK, "mnt-squashfuse")))

    def warm(self):
        bench.warm(self.material.image)


class Kpackfs(WithDaemon):
    name = "kpackfs"

    def __init__(self, material, **how):
        super().__init__(material)
        self.mounted(Mount(*material.sources, **how))

    def warm(self):
        bench.warm(*self.material.sources)

    def stats(self):
        return self.daemon.stats()


class NoAhead(Kpackfs):
    name = "-o no_ahead"

    def __init__(self, material, **how):
        super().__init__(material, options="no_ahead", **how)


NEEDED = {"squashfs": "mksquashfs", "squashfuse_ll": "squashfuse_ll"}
ALL = [peer for peer in (Kpackfs, Plain, Squashfs, Squashfuse)
       if shutil.which(NEEDED.get(peer.name, "true"))]


def files_of(root):
    """One name of every file below ROOT, sorted."""
    seen, files = set(), []
    for directory, below, names in os.walk(root):
        below.sort()
        for name in sorted(names):
            path = os.path.join(directory, name)
            inode = os.lstat(path).st_ino
            if inode not in seen:
                seen.add(inode)
                files.append(path)
    return files
