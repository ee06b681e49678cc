# SPDX-License-Identifier: MIT
"""Mounts for tests.  Nothing here polls: a mount that is up, a reload and a stop are told through the
socket of a service manager, the end of a process through its descriptor, a change by .kpackfs/barrier."""
import contextlib
import ctypes
import errno  # noqa: F401 (tests take it from here)
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import traceback

import mkarchive

noise = mkarchive.noise
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(36, 1, 0, 0, 0)  # daemons of starters that have gone become children of this process
ROOT = os.getuid() == 0


def archive(path, entries, mode=0o644, owner=(0, 0), **how):
    """Put an archive at PATH: for each name in ENTRIES its bytes; it is one in toc if it has a #."""
    a = mkarchive.Archive(**how)
    for name, data in entries.items():
        data = data.encode() if isinstance(data, str) else data
        if "#" in name:
            key, arch = name.split("@") if "@" in name else (name, "gfx1100")
            a.add(key, arch, data)
        else:
            a.add(name, "generic", data, type="dat", path=name)
    a.write(path + ".new")
    os.chmod(path + ".new", mode)
    if ROOT:
        os.chown(path + ".new", *owner)
    os.rename(path + ".new", path)


def text(path):
    with open(path, "rb") as f:
        return f.read().decode(errors="surrogateescape")


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def find(top="mnt"):
    """All paths below TOP."""
    return sorted(os.path.relpath(os.path.join(at, name), top)
                  for at, dirs, files in os.walk(top) for name in dirs + files)


def fails(codes, call, *arguments):
    """CALL fails with the error CODES, or one of them."""
    try:
        got = call(*arguments)
    except OSError as e:
        assert e.errno in (codes if isinstance(codes, tuple) else (codes,)), (arguments, e)
    else:
        raise AssertionError("no error: %r gives %r" % (arguments, got))


def is_mounted(path="mnt"):
    return any(line.split()[4] == os.path.abspath(path) for line in open("/proc/self/mountinfo"))


def until_unmounted(path="mnt"):
    """The kernel tells of each change of the mount table."""
    with open("/proc/self/mountinfo") as f:
        p = select.poll()
        p.register(f, select.POLLPRI)
        while is_mounted(path):
            p.poll()


def as_user(uid, what, gid=None, groups=()):
    """What WHAT returns, or the number of the error that it raises, in a process of the user UID."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid:
                os.setgroups(groups)
                os.setresgid(gid or uid, gid or uid, gid or uid)
                os.setresuid(uid, uid, uid)
            try:
                said = what()
            except OSError as e:
                said = e.errno
            with open(into, "w") as f:
                f.write(repr(said))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(into)
    with open(out) as f:
        said = f.read()
    assert os.waitpid(pid, 0)[1] == 0
    return eval(said)


def whole(path):
    """PATH from the root, by which the end of a test finds its daemons; nothing else of it changes."""
    return os.path.join(os.getcwd(), path)


class Mount:
    """kpackfs in the foreground.  Its supervisor is our child, and tells what a service manager would hear.
    If LOG is a FIFO, says() waits for what it logs."""
    number = 0

    def __init__(self, *options, sources=("src",), at="mnt", env=(), before=None, log=None, ready=True):
        Mount.number += 1
        self.at, self.log = at, log or "log%d" % Mount.number
        if log and stat.S_ISFIFO(os.stat(log).st_mode):
            self.said, self.told = "", os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("notify%d" % Mount.number)
        os.chmod("notify%d" % Mount.number, 0o666)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                ["kpackfs", "-f", *options, *map(whole, sources), whole(at)], stderr=log, preexec_fn=before,
                env=dict(os.environ, **dict(env), NOTIFY_SOCKET=os.path.abspath("notify%d" % Mount.number)))
        self.supervisor = self.process.pid
        self.ended = os.pidfd_open(self.supervisor)
        self.hear("READY=1") if ready else None

    def hear(self, what):
        """Wait until it says WHAT."""
        p = select.poll()
        p.register(self.socket, select.POLLIN)
        p.register(self.ended, select.POLLIN)
        while True:
            if self.socket.fileno() in dict(p.poll()):
                said = self.socket.recv(4096).decode()
                if what in said:
                    return said
            else:
                raise SystemExit("kpackfs has ended: " + (os.read(self.told, 4096).decode() if "told" in self.__dict__ else text(self.log)))

    def says(self, what):
        """Wait until it logs WHAT, and read on behind that the next time; it must not end before."""
        while what not in self.said:
            select.select([self.told], [], [])
            more = os.read(self.told, 4096)
            assert more, "kpackfs has ended: " + self.said
            self.said += more.decode(errors="surrogateescape")
        self.said = self.said.partition(what)[2]

    def until(self, condition):
        """Wait until CONDITION() holds, which a reload that nobody asks for brings about."""
        while not condition():
            self.hear("STATUS=")

    def path(self, name):
        return os.path.join(self.at, name)

    def stats(self):
        with open(self.path(".kpackfs/stats")) as f:
            return json.load(f)

    def __getattr__(self, name):
        if name == "server":
            self.server = self.stats()["pid"]
            return self.server
        raise AttributeError(name)

    def barrier(self):
        """Wait until the mount shows everything that is so now; what was told before is of no interest."""
        while select.select([self.socket], [], [], 0)[0]:  # it would wait for a full queue
            self.socket.recv(4096)
        return int(text(self.path(".kpackfs/barrier")))

    def wait(self):
        """Wait for its end; its status, negative for a signal."""
        return self.process.wait()

    def unmount(self):
        subprocess.run(["fusermount3", "-u", self.at], check=True)
        assert self.wait() == 0, text(self.log)
        assert "Sanitizer" not in text(self.log) and "runtime error" not in text(self.log), text(self.log)

    def signal(self, number, pid=None):
        os.kill(pid or self.supervisor, number)


def start(*arguments, expect=0):
    """kpackfs in the background, or its failure: what it prints."""
    arguments = [a if a.startswith("-") or before == "-o" else whole(a) for before, a in zip(("", *arguments), arguments)]
    done = subprocess.run(["kpackfs", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == expect, (arguments, done)
    return done.stdout.decode(errors="surrogateescape")


def stop(at="mnt"):
    """Unmount, and wait for the end of all processes that have been left to us."""
    subprocess.run(["fusermount3", "-u", at], check=True)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
