#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run kpack as root on trees of a user who exchanges files and directories meanwhile.

racing.py [OPTION]... [SCENE]...

  --all           every attack at every step (by default a sample)
  --runs N        about N runs for each scene
  --attack KIND   only this attack, at --step N or at every step: link, swap, flip, dangling,
                  hard, fifo, device, directory, away, fake, cut; KIND:1 is on the directory, KIND:2 on the
                  one above; KIND@1 on the second path of a call that has two
  --named         as on a file system without nameless files
  --watch         no attacks: at each moment, no file is written to that others may open, and no file
                  of root's is set-user-ID
  --jobs N        scenes at a time (1)
  -v              print each run

A scene is a command with its files, made twice: for the user, below DIR/fixture, and with other
contents as root's canaries, below DIR/pristine, where they have the same names as the user's files
before and after the command.  racer.py makes the runs and judges them; each fault is a line: scene, place, attack, step, call, path, fault.  The exit status is 1 if there is one.
"""
import argparse
import functools
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mkfat
import racer
import scratch
import ziptricks
from mkdb import sqlitedb

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("KPACK_BIN", os.path.join(HERE, "../../build/release"))
KPACK = os.path.join(BIN, "kpack")
USER = racer.USER
LONG_AGO = 978307200 * 10**9 + 123456789


# --- trees -------------------------------------------------------------------------------

class Home:
    """The directory that a scene's files are in.  Another seed gives other contents."""

    def __init__(self, path, seed, canary=None):
        self.path = path
        self.seed = seed
        self.canary = canary  # where root's files of the same names are going to be

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def noise(self, name, size=64):
        return hashlib.shake_128(f"{self.seed}/{name}".encode()).digest(size)

    def write(self, name, data, mode=0o644):
        path = self / name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)

    def text(self, name, mode=0o644):
        self.write(name, self.noise(name), mode)

    def fat(self, name, arches="gfx1030,gfx1100", mode=0o755, bundles=1, bare=False):
        parts = [(a, mkfat.code_object(a, 1500, f"{self.seed}/{name}")) for a in arches.split(",")]
        data = mkfat.bundle(parts, 0, 4096)
        if not bare:
            data = mkfat.shared_library(data, [0])
        self.write(name, data, mode)

    def bare(self, name):
        self.fat(name, bare=True)

    def kpack(self, *args):
        subprocess.run([KPACK, *[a.replace("@", self.path + "/") for a in args]], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    # ---- steps of scenes

    def tree(self, name):
        """Files of all kinds, in a small tree."""
        self.fat(f"{name}/u/sub/a.so")
        self.text(f"{name}/u/sub/passwd")
        self.fat(f"{name}/u/tool", "gfx1100", 0o4755)
        os.link(self / f"{name}/u/tool", self / f"{name}/tool")
        os.symlink("sub/passwd", self / f"{name}/u/link")
        try:
            os.setxattr(self / f"{name}/u/sub/passwd", "user.note", b"x")
        except OSError:
            pass

    def wheel(self, name):
        files = {"x/__init__.py": self.noise("init")}
        for n in ("a", "b"):
            self.fat("tmp.so", "gfx942,gfx1100")
            with open(self / "tmp.so", "rb") as f:
                files[f"x/lib/{n}.so"] = f.read()
            os.unlink(self / "tmp.so")
        os.makedirs(os.path.dirname(self / name), exist_ok=True)
        ziptricks.make(self / name, files, "x", "1.0")

    def databases(self):
        subprocess.run(["/usr/bin/python3", os.path.join(HERE, "mkdb.py"), "--cache", os.path.join(BIN, ".objects"),
                        "rocblas-flat", self / "db"], check=True)
        top = next(d for d, _, files in os.walk(self / "db") if any(f.endswith(".dat") for f in files))
        there = self / "in/" + os.path.relpath(top, self / "db")
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.move(top, there)
        shutil.rmtree(self / "db")
        for i, name in enumerate(sorted(os.listdir(there))):
            if i >= 5:
                os.unlink(os.path.join(there, name))
            elif name.endswith("hsaco"):
                with open(os.path.join(there, name), "ab") as f:
                    f.write(self.noise(name))

    def rows(self):
        """A database of SQLite's, which has files of its own next to it."""
        os.makedirs(self / "in/lib/rocfft")
        db = sqlite3.connect(self / "in/lib/rocfft/rocfft_kernel_cache.db")
        db.execute(sqlitedb.CACHE_V1)
        for name, _, _ in sqlitedb.fft_names(2):
            for arch in "gfx1030", "gfx1100":
                db.execute("INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 0)", (
                    name, arch, sqlitedb.HIP_VERSION, sqlitedb.GENERATOR,
                    mkfat.code_object(arch, 1500, self.seed + name)))
        db.commit()
        db.close()
        self.text("in/lib/rocfft/passwd")

    def debug(self):
        """An object whose debugging information goes to another file."""
        os.mkdir(self / "debug")
        with open(os.path.join(HERE, "../fuzz/corpus/strip/good-build-id"), "rb") as f:
            code = bytearray(f.read())
        # in fields that nothing reads, where secrets are looked for: p_paddr, sh_info of the last section
        code[200:208] = self.noise("paddr")[:8]
        code[-20:-16] = self.noise("info")[:4]
        self.write("in/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco", code)

    def code(self, name, arch):
        self.write(name, mkfat.code_object(arch, 1500, self.seed + arch))

    def runtimes(self):
        """Libraries that kpack reads, and does not load."""
        for name in "opt/lib/libamdhip64.so.6", "opt/u/libamdhip64.so.7":
            self.write(name, self.noise(name, 5000) + b"__hipRegisterFatBinary librocm_kpack.so")
        os.symlink("libamdhip64.so.6", self / "opt/lib/libamdhip64.so")

    def same(self, name):
        self.write(name, b"same")

    def policy(self, action):
        """Policies must be root's: only with -rooted."""
        place = os.path.join(os.path.dirname(os.path.dirname(self.path)), "work" if self.canary else "canary")
        self.write("policies/x.conf", f"{'pack --in-place' if action == 'pack' else action} --arch gfx1100 {place}/home/in\n".encode())

    def strip(self, name):
        subprocess.run(["strip", self / name], check=True, stderr=subprocess.DEVNULL)

    def unzip(self, name):
        shutil.unpack_archive(self / name + ".whl", self / name, "zip")
        os.unlink(self / name + ".whl")

    def rm(self, name):
        (shutil.rmtree if os.path.isdir(self / name) else os.unlink)(self / name)

    def mv(self, name, to):
        os.rename(self / name, self / to)

    def mkdir(self, name):
        os.mkdir(self / name)

    def made(self, name):
        self.kpack(*self.do(SCENES[name]).split())

    def plant(self):
        """In every directory, what looks as if a killed run had left it, but leads to root's files."""
        for d, _, _ in list(os.walk(self.path)) if self.canary else ():
            there = os.path.join(self.canary, os.path.relpath(d, self.path))
            n = 0
            for prefix, suffix in (".kpack-staging-", ""), (".kpack-split-wheel.", ""), (".kpack-0123456789", ".tmp"):
                for target in there, there + "/passwd", "/dev/null":
                    n += 1
                    os.symlink(target, os.path.join(d, f"{prefix}abcd{n:02}{suffix}"))
                os.mkfifo(os.path.join(d, f"{prefix}fifo00{suffix}"))
                fake = os.path.join(d, f"{prefix}dir000{suffix}")
                os.mkdir(fake)
                for name in os.listdir(d):
                    if not name.startswith(".kpack-"):
                        os.symlink(os.path.join(there, name), os.path.join(fake, name))
                os.symlink(os.path.join(there, "passwd"), os.path.join(fake, ".kpack-staging-names"))

    def do(self, scene):
        """Do the steps of a scene; its command, the last of them, is returned."""
        *steps, command = scene.split("; ")
        for word, *args in map(str.split, steps):
            if hasattr(self, word):
                getattr(self, word)(*args)
            else:
                self.kpack(word, *args)
        return command


# --- scenes: steps, which are methods of Home or commands of kpack, and the command; "@" is the home and a slash

LIBRARY = "in/lib/rocblas/library/TensileLibrary_Type_HH_"
THIN = "thin -q --jobs 1 --arch gfx1100 "
CONVERT = "fat lib/a.so; mark convert --kernel-name a --search-path a.kpack @lib/a.so "
WHEEL = "wheel x-1.0-py3-none-any.whl; "
SPLIT_WHEEL = "split-wheel -q --jobs 1 "
BUNDLE = "offload-bundler --type=o --targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1030," \
    "hipv4-amdgcn-amd-amdhsa--gfx1100 --input=@host.o --input=@gfx1030.co --input=@gfx1100.co --output=@all.hipfb"
UNBUNDLE = "offload-bundler --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx1100 " \
    "--input=@one.hipfb --output=@one.co"
SCENES = {
    "pack": "tree in; pack -q --jobs 1 @in @out",
    "pack-threads": "tree in; fat in/u/c.so; fat in/u/d.so; pack -q --jobs 4 @in @out",
    "pack-file": "fat in.so; pack -q --jobs 1 @in.so @out",
    "pack-archives": "tree in; pack -q --jobs 1 --archives-only @in @out",
    "pack-databases": "databases; pack -q --jobs 1 @in @out",
    "pack-rows": "rows; pack -q --jobs 1 --split-rocfft --rows @in @out",
    "in-place": "tree in; pack -q --jobs 1 --in-place @in",
    "in-place-again": "made in-place; fat in/u/sub/new.so; pack -q --jobs 1 --in-place @in",
    "in-place-databases": "databases; pack -q --jobs 1 --in-place @in",
    "undo": "tree in; pack -q --in-place @in; pack -q --jobs 1 --undo @in",
    "undo-databases": f"tree in; code {LIBRARY}gfx1100.co gfx1100; code {LIBRARY}gfx90a.co gfx90a; pack -q --in-place @in; "
                      "pack -q --jobs 1 --undo @in",
    "thin": "databases; " + THIN + "@in",
    "thin-keep": "databases; " + THIN + "--keep @kept @in",
    # files whose contents no other home has: what is restored is nowhere else
    "thin-undo": f"tree in; code {LIBRARY}gfx1100.co gfx1100; code {LIBRARY}gfx90a.co gfx90a; {THIN}--keep @kept @in; "
                 "thin -q --jobs 1 --undo @kept @in",
    "thin-to": "tree in; " + THIN + "@in @out",
    "thin-more": "databases; debug; " + THIN + "--strip-debug --debug-to @debug @in",
    "prune": "made pack; rm out/u/sub/a.so; prune -q --arch gfx1100 @out",
    "shard": "tree in; pack -q --jobs 1 --shard 1/2 @in @part1",
    "merge-shards": "tree in; pack -q --shard 1/2 @in @part1; pack -q --shard 2/2 @in @part2; merge -q @part1 @part2 -o @out",
    "merge": "tree in; pack -q --archives-only @in @packed; mv packed/.kpack archives; merge -q @archives -o @all.kpack",
    "split": "tree in; split -q --jobs 1 @in @out",
    "split-archives": "made merge; split -q @all.kpack @apart",
    "merge-trees": "fat in/lib/a.so gfx1100; same in/readme; split -q --name blas @in @a; fat in/lib/a.so gfx1200; "
                   "split -q --name blas @in @b; rm in; merge -q @a/blas_generic @b/blas_generic @b/blas_gfx1200 -o @out/all",
    "extract": "tree in; pack -q @in @packed; mv packed/.kpack archives; rm in; rm packed; extract @archives -C @out",
    "cat": "made merge; cat -o @object @all.kpack u/sub/a.so#0 gfx1030",
    "inspect": "fat lib/a.so; inspect --extract=@objects @lib/a.so",
    "mark-set": "made pack; mark set --search-path x.kpack @out/u/sub/a.so",
    "mark-convert": CONVERT + "@lib/b.so",
    "mark-convert-same": CONVERT + "@lib/a.so",
    "mark-restore": "made pack; mark restore @out/u/sub/a.so",
    "mark-restore-to": "made pack; mark restore -o @lib.so @out/u/sub/a.so",
    "mark-strip-safe": "made pack; strip out/u/sub/a.so; mark strip-safe @out/u/sub/a.so",
    "strip-safe-check": "made pack; mark strip-safe --check @out",
    "mark-check": "made pack; mark check @out",
    "runtime": "runtimes; text opt/u/passwd; runtime @opt",
    "split-wheel": WHEEL + SPLIT_WHEEL + "@x-1.0-py3-none-any.whl -o @dist",
    "split-wheel-directory": WHEEL + "unzip x-1.0-py3-none-any; " + SPLIT_WHEEL +
                             "--output-format directory @x-1.0-py3-none-any -o @dist",
    "report": "tree in; pack -q @in @packed; report -q -o @page.html @packed",
    "bundler": "bare one.hipfb; " + UNBUNDLE,
    "bundle": "code gfx1030.co gfx1030; code gfx1100.co gfx1100; text host.o; " + BUNDLE,
    "bulk-unbundle": "fat lib/a.so; bulk-unbundle @lib/a.so",
    "bulk-unbundle-to": "fat lib/a.so; bulk-unbundle -o @objects @lib/a.so",
    "packager": "code one.co gfx1100; offload-packager -o @x.bin --image=file=@one.co,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip",
    "packager-extract": "made packager; offload-packager @x.bin --image=file=@two.co,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip",
    "verify": "made merge; verify @all.kpack @archives",
    "apply-thin": "tree in; policy thin; apply -q --policy-dir @policies --state-dir @state",
    "apply-pack": "tree in; policy pack; apply -q --no-mounts --policy-dir @policies --state-dir @state"}

# Commands that are run twice, the second time with these options.
for _name, _options in {"pack": "", "merge-shards": "", "merge": " --force --sync", "split": " --force", "split-archives": " --force",
                        "merge-trees": " --force", "extract": " --force", "cat": "", "inspect": " --force",
                        "split-wheel": " --force", "report": "", "bundler": ""}.items():
    SCENES[_name + "-again"] = "made %s; %s%s" % (_name, SCENES[_name].split("; ")[-1], _options)

# Commands whose output goes into a directory that the user has.
for _name, _directory in {"pack": "out", "shard": "part1", "merge-shards": "out", "split": "out", "split-archives": "apart",
                          "merge-trees": "out", "extract": "out", "inspect": "objects", "split-wheel": "dist",
                          "split-wheel-directory": "dist"}.items():
    SCENES[_name + "-into"] = ("; mkdir %s; " % _directory).join(SCENES[_name].rsplit("; ", 1))

# Scenes with a single run.
PLANTED = {name + "-planted": "; plant; ".join(steps.rsplit("; ", 1)) for name, steps in SCENES.items()
           if name.endswith(("-again", "-into")) or
           name in ("in-place", "thin", "prune", "mark-set", "mark-restore", "mark-convert", "mark-strip-safe", "bundler")}
SCENES.update(PLANTED)

# Commands that leave something behind if they are killed; then they are run again.
KILLED = ("pack-into", "pack-again", "in-place", "undo", "thin", "prune", "shard-into", "merge-shards-into", "split-into", "split-again",
          "merge-trees-into", "merge-trees-again", "extract-into", "split-wheel-into", "mark-set")


# Commands on trees of root's, in which only directories belong to the user.
ROOTED = ("pack-again", "pack-threads", "in-place", "undo", "thin-to", "thin-undo", "prune", "in-place-again", "split-again", "shard", "merge-shards-again",
          "extract-again", "mark-set", "mark-restore", "apply-thin", "apply-pack")

# Commands that run on such trees only.
ROOTED_ONLY = ("apply-thin", "apply-pack")


# --- the areas ---------------------------------------------------------------------------

def own_tree(top, user):
    for d, dirs, files in os.walk(top):
        os.lchown(d, user, user)
        for name in files + [n for n in dirs if os.path.islink(os.path.join(d, n))]:
            path = os.path.join(d, name)
            mode = os.lstat(path).st_mode
            os.lchown(path, user, user)  # this takes set-user-ID away
            if not os.path.islink(path):
                os.chmod(path, mode & 0o7777)


def make_canaries(top, home):
    """Root's, unlike everything that a run could give them."""
    for d, dirs, files in os.walk(top, topdown=False):
        if not os.path.lexists(os.path.join(d, "passwd")):
            home.text(os.path.join(d, "passwd"))
            files.append("passwd")
        for name in files + dirs:
            path = os.path.join(d, name)
            if os.path.islink(path):
                os.lchown(path, 0, 0)
            elif os.path.isfile(path):
                os.chown(path, 0, 0)
                os.chmod(path, 0o4755 if name == "tool" else 0o600)
                try:
                    os.setxattr(path, "user.canary", b"sings")
                except OSError:
                    pass
            os.utime(path, ns=(LONG_AGO, LONG_AGO), follow_symlinks=False)
        os.chown(d, 0, 0)
        os.chmod(d, 0o755)
    os.utime(top, ns=(LONG_AGO, LONG_AGO))


def secrets_of(top, users):
    """Pieces of what only root may read."""
    found, public = set(), b""
    for d, _, files in os.walk(users):
        for path in (os.path.join(d, name) for name in files):
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    public += f.read()
    for d, _, files in os.walk(top):
        for name in files:
            path = os.path.join(d, name)
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            with open(path, "rb") as f:
                data = f.read()
            if os.stat(path).st_mode & 0o004:
                public += data
                continue
            if name == "passwd":
                found.add(data[:32])
            if name.endswith("hsaco"):
                found.add(data[-32:])
            for m in re.finditer(b"\x7fELF\x02\x01\x01\x40\x04", data):
                found.add(data[m.start() + 200:m.start() + 232])
    return sorted(s for s in found if len(s) == 32 and s not in public)


def make_area(top, scene, rooted=False):
    """The files of a scene; returns its command.  ROOTED: only directories u belong to the user."""
    for name in "fixture/home", "fixture/aside", "canary/home":
        os.makedirs(os.path.join(top, name))
    command = Home(os.path.join(top, "fixture/home"), "user", os.path.join(top, "canary/home")).do(scene)
    own_tree(os.path.join(top, "fixture/aside"), USER)
    if rooted:
        for d, _, _ in os.walk(os.path.join(top, "fixture/home")):
            if os.path.basename(d) == "u":
                own_tree(d, USER)
    else:
        own_tree(os.path.join(top, "fixture"), USER)
    # what the command makes has canaries, too
    canary, pristine = os.path.join(top, "canary"), os.path.join(top, "pristine")
    home = Home(os.path.join(canary, "home"), "root")
    home.do(scene)
    shutil.copytree(canary, pristine, symlinks=True)
    home.kpack(*command.split())
    subprocess.run(["cp", "-a", "--remove-destination", canary + "/.", pristine], check=True)
    make_canaries(pristine, home)
    return [KPACK] + [a.replace("@", os.path.join(top, "work/home/")) for a in command.split()], secrets_of(pristine, os.path.join(top, "fixture"))


# --- the program -------------------------------------------------------------------------

def attacks(scene, o, top, command, secrets, may_fail=False):
    """The lines about one command."""
    r = racer.Racer(scene, top, command, secrets, o.named, o.verbose)
    r.plainly(may_fail, watch=o.watch)
    planted = scene in PLANTED
    plans = [] if o.watch else r.plans("none" if planted else o.attack, 1 if planted else o.step,
                                       0 if planted or o.all or o.attack or o.step else o.runs)
    possible = sum(r.attack(*plan) for plan in plans)
    print(f"{scene}: {len(r.events)} steps, {'watched' if o.watch else f'{len(plans)} runs'}, "
          f"{len(plans) - possible} not possible, {len(r.lines)} faults", file=sys.stderr)
    return r.lines


def race_after_kill(scene, o, top, command, secrets):
    """The command is killed at some step; then the attacks are made on the next run of it."""
    first = racer.Racer(scene, top, command, secrets, o.named)
    first.plainly()
    os.rename(os.path.join(top, "fixture"), os.path.join(top, "before"))
    lines = []
    for percent in (30, 50, 70, 80, 90, 97) if o.all else (60, 90):
        shutil.rmtree(os.path.join(top, "fixture"), ignore_errors=True)
        first.copy("before", "fixture")
        step = len(first.events) * percent // 100
        racer.Racer(scene, top, command, secrets, o.named).plainly(kill=step)
        shutil.rmtree(os.path.join(top, "fixture"))
        os.rename(os.path.join(top, "work"), os.path.join(top, "fixture"))
        lines += attacks(f"{scene}-{step}", o, top, command, secrets, True)
    return lines


def race(o, scene):
    """Lines of faults."""
    top = tempfile.mkdtemp(prefix=f"kpack-race-{scene}-", dir=o.dir)
    os.chmod(top, 0o755)
    try:
        command, secrets = make_area(top, SCENES[scene.removesuffix("-killed").removesuffix("-rooted")],
                                     scene.endswith("-rooted"))
        if scene.endswith("-killed"):
            return race_after_kill(scene, o, top, command, secrets)
        return attacks(scene, o, top, command, secrets, scene in PLANTED)
    except (subprocess.CalledProcessError, OSError) as e:
        return [f"{scene}\tfailed\t{e} {getattr(e, 'stderr', '')}"]
    finally:
        shutil.rmtree(top)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--all", action="store_true")
    p.add_argument("--runs", type=int, default=12)
    p.add_argument("--attack")
    p.add_argument("--step", type=int, default=0)
    p.add_argument("--named", action="store_true")
    p.add_argument("--watch", action="store_true")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--dir", default=scratch.in_memory())
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("scenes", nargs="*")
    o = p.parse_args()
    scenes = [s for s in SCENES if s not in ROOTED_ONLY]
    watched = scenes
    scenes = scenes + [s + "-killed" for s in KILLED] + [s + "-rooted" for s in ROOTED]
    os.umask(0o022)
    bad = False
    with ProcessPoolExecutor(o.jobs) as pool:
        for lines in pool.map(functools.partial(race, o), o.scenes or (watched if o.watch else scenes)):
            for line in lines:
                bad = True
                print(line, flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
