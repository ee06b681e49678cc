# SPDX-License-Identifier: MIT
"""What the tests of shipping packages share: TAP, packages, our programs, mounts."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BIN = os.path.realpath(os.environ.get("KPACK_BIN", os.path.join(SOURCE, "build/release")))
sys.path.insert(0, os.path.join(SOURCE, "tests/integration"))
sys.dont_write_bytecode = True


class Failure(Exception):
    pass


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def test(self, what, function, *args):
        """Run FUNCTION; its result, or None if it fails."""
        self.n += 1
        try:
            result = function(*args)
        except (Failure, AssertionError, OSError, ValueError, LookupError) as e:
            self.failed += 1
            print("not ok %d - %s" % (self.n, what))
            for line in ("%s: %s" % (type(e).__name__, e)).splitlines()[:20]:
                print("#", line[:300])
            result = None
        else:
            print("ok %d - %s" % (self.n, what))
        sys.stdout.flush()
        return result

    def skip(self, what, why):
        self.n += 1
        print("ok %d - %s # SKIP %s" % (self.n, what, why))

    def end(self):
        """Print the plan; the exit status."""
        print("1..%d" % self.n)
        return 1 if self.failed else 0


def run(program, *args, status=0):
    """Standard output of one of our programs, which must end with STATUS."""
    p = subprocess.run([os.path.join(BIN, program), *args], capture_output=True, text=True,
                       errors="replace", check=False)
    if p.returncode != status:
        raise Failure("%s %s: exit status %d\n%s" %
                      (program, " ".join(args), p.returncode, p.stdout[-1000:] + p.stderr[-2000:]))
    return p.stdout


def kpack(*args, status=0):
    return run("kpack", *args, status=status)


def archives(tree):
    directory = os.path.join(tree, ".kpack")
    return sorted(os.path.join(directory, name) for name in os.listdir(directory))


def flip(path, offset, bit):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ bit]))


class Mount:
    """What the command that packing printed mounts."""

    def __init__(self, tree, command):
        self.before = self.all_points()
        environment = dict(os.environ, PATH=BIN + ":" + os.environ["PATH"])
        subprocess.run(["sh", "-ec", command], check=True, env=environment, cwd=os.path.dirname(tree))

    def __enter__(self):
        return self

    @staticmethod
    def all_points():
        with open("/proc/self/mounts", encoding="utf-8") as f:
            return [line.split(" ")[1].replace("\\040", " ") for line in f]

    def points(self):
        return [p for p in self.all_points() if p not in self.before]

    def __exit__(self, *_):
        for point in reversed(self.points()):
            subprocess.run(["umount", point], check=False)


def fetch(directory, root, *packages):
    """Unpack packages into DIRECTORY/ROOT.  The names of their files; None: they cannot be had."""
    p = subprocess.run([os.path.join(HERE, "fetch"), directory, root, *packages],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode:
        for line in p.stdout.splitlines()[-5:]:
            print("#", line)
        return None
    found = []
    for package in packages:
        name = "%s.%s" % (root, package.split("/")[0].split(":")[0])
        with open(os.path.join(directory, "have", name), encoding="utf-8") as f:
            found.append(f.read().strip())
    return found


def options(parser):
    """The command line, in a mount namespace whose mounts end with this process."""
    parser.add_argument("--dir", default=os.path.join(SOURCE, "build/real"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("name", nargs="*")
    found = parser.parse_args()
    if os.geteuid() == 0 and not found.list and not os.environ.get("REAL_MOUNTS"):
        os.execvpe("unshare", ["unshare", "-m", "--propagation", "private", sys.executable,
                               os.path.realpath(sys.argv[0]), *sys.argv[1:]],
                   dict(os.environ, REAL_MOUNTS="1"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found.dir = os.path.realpath(found.dir)
    return found


class Work:
    """A directory that goes with the block."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="kpack-real-", dir="/var/tmp")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
