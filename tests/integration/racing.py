#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run kpack as root on trees of a user who exchanges files and directories meanwhile.

racing.py [OPTION]... [SCENE]...

  --list          print the scenes
  --all           every attack at every step (by default a sample)
  --runs N        about N runs for each scene
  --attack KIND   only this attack, at --step N or at every step: link, swap, flip, dangling,
                  hard, fifo, device, directory, away, fake, cut, mount; KIND:1 is on the directory, KIND:2 on the
                  one above; KIND@1 on the second path of a call that has two
  --old           as on Linux 4.18, and a file system without nameless files
  --watch         no attacks: at each moment, no file is written to that others may open, and no file
                  of root's is set-user-ID
  --count         print the steps instead
  --keep          leave the directories
  --jobs N        scenes at a time (1)
  -v              print each run

A scene is a command with its files, made twice: for the user, below DIR/fixture, and with other
contents as root's canaries, below DIR/pristine, where they have the same names as the user's files
before and after the command.  tests/racer makes the runs and judges them; each fault is a line of
what it prints: scene, place, attack, step, call, path, fault.  The exit status is 1 if there is one.
"""
import argparse
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import mkfat
import ziptricks
from mkdb import sqlitedb

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("KPACK_BIN", os.path.join(HERE, "../../build/release"))
KPACK = os.path.join(BIN, "kpack")
RACER = os.path.join(BIN, "tests/racer/racer")
USER = 1000
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

    def wheel(self, name, dist, version="1.0", root="x"):
        files = {f"{root}/__init__.py": self.noise("init")}
        for n in ("a", "b"):
            self.fat("tmp.so", "gfx942,gfx1100")
            with open(self / "tmp.so", "rb") as f:
                files[f"{root}/lib/{n}.so"] = f.read()
            os.unlink(self / "tmp.so")
        os.makedirs(os.path.dirname(self / name), exist_ok=True)
        ziptricks.make(self / name, files, dist, version)

    def kpack(self, *args):
        subprocess.run([KPACK, *[a.replace("@", self.path + "/") for a in args]], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


# --- scenes: what they make, and the command on it; "@" is the directory and a slash ------------

def pack(h):
    h.tree("in")
    return "pack -q --jobs 1 @in @out"


def pack_again(h):
    h.kpack(*pack(h).split())
    return "pack -q --jobs 1 @in @out"


def pack_threads(h):
    h.tree("in")
    h.fat("in/u/c.so")
    h.fat("in/u/d.so")
    return "pack -q --jobs 4 @in @out"


def pack_file(h):
    h.fat("in.so")
    return "pack -q --jobs 1 @in.so @out"


def pack_archives(h):
    h.tree("in")
    return "pack -q --jobs 1 --archives-only @in @out"


def pack_databases(h):
    subprocess.run(["/usr/bin/python3", os.path.join(HERE, "mkdb.py"), "--cache", os.path.join(BIN, ".objects"),
                    "rocblas-flat", h / "db"], check=True)
    top = next(d for d, _, files in os.walk(h / "db") if any(f.endswith(".dat") for f in files))
    rel = os.path.relpath(top, h / "db")
    os.makedirs(os.path.dirname(h / f"in/{rel}"), exist_ok=True)
    shutil.move(top, h / f"in/{rel}")
    shutil.rmtree(h / "db")
    kept = 0
    for name in sorted(os.listdir(h / f"in/{rel}")):
        kept += 1
        path = h / f"in/{rel}/{name}"
        if kept > 5:
            os.unlink(path)
        elif name.endswith("hsaco"):
            with open(path, "ab") as f:
                f.write(h.noise(name))
    return "pack -q --jobs 1 @in @out"


def pack_rows(h):
    """A database of SQLite's, which has files of its own next to it."""
    os.makedirs(h / "in/lib/rocfft")
    db = sqlite3.connect(h / "in/lib/rocfft/rocfft_kernel_cache.db")
    db.execute(sqlitedb.CACHE_V1)
    for name, _, _ in sqlitedb.fft_names(2):
        for arch in "gfx1030", "gfx1100":
            db.execute("INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 0)", (
                name, arch, sqlitedb.HIP_VERSION, sqlitedb.GENERATOR,
                mkfat.code_object(arch, 1500, h.seed + name)))
    db.commit()
    db.close()
    h.text("in/lib/rocfft/passwd")
    return "pack -q --jobs 1 --split-rocfft --rows @in @out"


def in_place(h):
    h.tree("in")
    return "pack -q --jobs 1 --in-place @in"


def in_place_again(h):
    h.kpack(*in_place(h).split())
    h.fat("in/u/sub/new.so")
    return "pack -q --jobs 1 --in-place @in"


def in_place_databases(h):
    pack_databases(h)
    return "pack -q --jobs 1 --in-place @in"


def thin(h):
    pack_databases(h)
    return "thin -q --jobs 1 --arch gfx1100 @in"


def thin_keep(h):
    pack_databases(h)
    return "thin -q --jobs 1 --arch gfx1100 --keep @kept @in"


def thin_undo(h):
    """Files whose contents no other home has: what is restored is nowhere else."""
    h.tree("in")
    for arch in "gfx1100", "gfx90a":
        h.write(f"in/lib/rocblas/library/TensileLibrary_Type_HH_{arch}.co",
                mkfat.code_object(arch, 1500, h.seed + arch))
    h.kpack("thin", "-q", "--arch", "gfx1100", "--keep", "@kept", "@in")
    return "thin -q --jobs 1 --undo @kept @in"


def thin_to(h):
    h.tree("in")
    return "thin -q --jobs 1 --arch gfx1100 @in @out"


def thin_more(h):
    """Debugging information goes to other files."""
    pack_databases(h)
    os.mkdir(h / "debug")
    with open(os.path.join(HERE, "../fuzz/corpus/strip/good-build-id"), "rb") as f:
        code = bytearray(f.read())
    # in fields that nothing reads, where secrets are looked for: p_paddr, sh_info of the last section
    code[200:208] = h.noise("paddr")[:8]
    code[-20:-16] = h.noise("info")[:4]
    h.write("in/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco", code)
    return "thin -q --jobs 1 --arch gfx1100 --strip-debug --debug-to @debug @in"


def prune(h):
    h.kpack(*pack(h).split())
    os.unlink(h / "out/u/sub/a.so")
    return "prune -q --arch gfx1100 @out"


def shard(h):
    h.tree("in")
    return "pack -q --jobs 1 --shard 1/2 @in @part1"


def merge_shards(h):
    h.tree("in")
    for i in (1, 2):
        h.kpack("pack", "-q", "--shard", f"{i}/2", "@in", f"@part{i}")
    return "merge -q @part1 @part2 -o @out"


def merge_shards_again(h):
    command = merge_shards(h)
    h.kpack(*command.split())
    return command


def merge(h):
    h.tree("in")
    h.kpack("pack", "-q", "--archives-only", "@in", "@packed")
    os.rename(h / "packed/.kpack", h / "archives")
    return "merge -q @archives -o @all.kpack"


def merge_again(h):
    command = merge(h)
    h.kpack(*command.split())
    return command + " --force --sync"


def split(h):
    h.tree("in")
    return "split -q --jobs 1 @in @out"


def split_again(h):
    command = split(h)
    h.kpack(*command.split())
    return command + " --force"


def split_archives(h):
    h.kpack(*merge(h).split())
    return "split -q @all.kpack @apart"


def split_archives_again(h):
    command = split_archives(h)
    h.kpack(*command.split())
    return command + " --force"


def recombine(h):
    for shard_name, arch in ("a", "gfx1100"), ("b", "gfx1200"):
        h.fat("in/lib/a.so", arch)
        h.write("in/readme", b"same")
        h.kpack("split", "-q", "--name", "blas", "@in", f"@shards/{shard_name}")
    shutil.rmtree(h / "in")
    h.write("config.json", b"""{"primary_shard": "a", "architecture_groups": {
        "gfx110X": {"display_name": "3", "architectures": ["gfx1100"]},
        "gfx120X": {"display_name": "4", "architectures": ["gfx1200"]}}}""")
    return "recombine -q --config @config.json @shards @out"


def recombine_again(h):
    command = recombine(h)
    h.kpack(*command.split())
    return command + " --force"


def extract(h):
    h.tree("in")
    h.kpack("pack", "-q", "@in", "@packed")
    os.rename(h / "packed/.kpack", h / "archives")
    for name in "in", "packed":
        shutil.rmtree(h / name)
    return "extract @archives -C @out"


def extract_again(h):
    command = extract(h)
    h.kpack(*command.split())
    return "extract --force @archives -C @out"


def cat(h):
    h.kpack(*merge(h).split())
    return "cat -o @object @all.kpack u/sub/a.so#0 gfx1030"


def cat_again(h):
    command = cat(h)
    h.kpack(*command.split())
    return command


def inspect(h):
    h.fat("lib/a.so")
    return "inspect --extract=@objects @lib/a.so"


def inspect_again(h):
    command = inspect(h)
    h.kpack(*command.split())
    return "inspect --force --extract=@objects @lib/a.so"


def mark_set(h):
    h.kpack(*pack(h).split())
    return "mark set --search-path x.kpack @out/u/sub/a.so"


def mark_convert(h):
    h.fat("lib/a.so")
    return "mark convert --kernel-name a --search-path a.kpack @lib/a.so @lib/b.so"


def mark_convert_same(h):
    h.fat("lib/a.so")
    return "mark convert --kernel-name a --search-path a.kpack @lib/a.so @lib/a.so"


def mark_restore(h):
    h.kpack(*pack(h).split())
    return "mark restore @out/u/sub/a.so"


def mark_restore_to(h):
    h.kpack(*pack(h).split())
    return "mark restore -o @lib.so @out/u/sub/a.so"


def mark_strip_safe(h):
    h.kpack(*pack(h).split())
    subprocess.run(["strip", h / "out/u/sub/a.so"], check=True, stderr=subprocess.DEVNULL)
    return "mark strip-safe @out/u/sub/a.so"


def strip_safe_check(h):
    h.kpack(*pack(h).split())
    return "mark strip-safe --check @out"


def mark_check(h):
    h.kpack(*pack(h).split())
    return "mark check @out"


def runtime(h):
    """Libraries that kpack reads, and does not load."""
    for name in "opt/lib/libamdhip64.so.6", "opt/u/libamdhip64.so.7":
        h.write(name, h.noise(name, 5000) + b"__hipRegisterFatBinary librocm_kpack.so")
    os.symlink("libamdhip64.so.6", h / "opt/lib/libamdhip64.so")
    h.text("opt/u/passwd")
    return "runtime @opt"


def split_wheel(h):
    h.wheel("x-1.0-py3-none-any.whl", "x")
    return "split-wheel -q --jobs 1 @x-1.0-py3-none-any.whl -o @dist"


def split_wheel_again(h):
    command = split_wheel(h)
    h.kpack(*command.split())
    return command + " --force"


def split_wheel_directory(h):
    h.wheel("x-1.0-py3-none-any.whl", "x")
    shutil.unpack_archive(h / "x-1.0-py3-none-any.whl", h / "x-1.0-py3-none-any", "zip")
    os.unlink(h / "x-1.0-py3-none-any.whl")
    return "split-wheel -q --jobs 1 --output-format directory @x-1.0-py3-none-any -o @dist"


def index(h):
    h.wheel("w/x-1.0-py3-none-any.whl", "x")
    return "index -q @w"


def index_again(h):
    command = index(h)
    h.kpack(*command.split())
    return command


def report(h):
    h.tree("in")
    h.kpack("pack", "-q", "@in", "@packed")
    return "report -q -o @page.html @packed"


def report_again(h):
    command = report(h)
    h.kpack(*command.split())
    return command


def bundler(h):
    h.fat("one.hipfb", "gfx1030,gfx1100", bare=True)
    return ("offload-bundler --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx1100 "
            "--input=@one.hipfb --output=@one.co")


def bundler_again(h):
    command = bundler(h)
    h.kpack(*command.split())
    return command


def bundle(h):
    for arch in "gfx1030", "gfx1100":
        h.write(f"{arch}.co", mkfat.code_object(arch, 1500, h.seed + arch))
    h.text("host.o")
    return ("offload-bundler --type=o "
            "--targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1030,hipv4-amdgcn-amd-amdhsa--gfx1100 "
            "--input=@host.o --input=@gfx1030.co --input=@gfx1100.co --output=@all.hipfb")


def bulk_unbundle(h):
    h.fat("lib/a.so")
    return "bulk-unbundle @lib/a.so"


def bulk_unbundle_to(h):
    h.fat("lib/a.so")
    return "bulk-unbundle -o @objects @lib/a.so"


def verify(h):
    h.kpack(*merge(h).split())
    return "verify @all.kpack @archives"


def apply_policy(h, lines):
    """Policies must be root's: only with -rooted."""
    place = os.path.join(os.path.dirname(os.path.dirname(h.path)), "work" if h.canary else "canary")
    h.write("policies/x.conf", f"tree={place}/home/in\narch=gfx1100\n{lines}\n".encode())
    return "apply -q --policy-dir @policies --state-dir @state"


def apply_thin(h):
    h.tree("in")
    return apply_policy(h, "do=thin")


def apply_pack(h):
    h.tree("in")
    return apply_policy(h, "do=pack")


# Commands whose output goes into a directory that the user has.
INTO = {"pack": "out", "shard": "part1", "merge-shards": "out", "split": "out", "split-archives": "apart",
        "recombine": "out", "extract": "out", "inspect": "objects", "split-wheel": "dist",
        "split-wheel-directory": "dist"}


def into(name):
    def make(h):
        command = SCENES[name](h)
        os.mkdir(h / INTO[name])
        return command
    return make


def packager(h):
    h.write("one.co", mkfat.code_object("gfx1100", 1500, h.seed))
    return "offload-packager -o @x.bin --image=file=@one.co,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip"


def packager_extract(h):
    h.kpack(*packager(h).split())
    return "offload-packager @x.bin --image=file=@two.co,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip"


SCENES = {f.__name__.replace("_", "-"): f for f in (
    pack, pack_again, pack_threads, pack_file, pack_archives, pack_databases, pack_rows, in_place, in_place_again,
    in_place_databases, thin, thin_keep, thin_undo, thin_to, thin_more, prune, shard, merge_shards, merge_shards_again, merge, merge_again, split, split_again,
    split_archives, split_archives_again, recombine, recombine_again, extract, extract_again, cat, cat_again,
    inspect, inspect_again, mark_set, mark_convert, mark_convert_same, mark_restore, mark_restore_to,
    mark_strip_safe, strip_safe_check, mark_check, runtime, split_wheel, split_wheel_again, split_wheel_directory, index, index_again, report,
    report_again, bundler, bundler_again, bundle, bulk_unbundle, bulk_unbundle_to, packager, packager_extract, verify,
    apply_thin, apply_pack)}

def plant(h):
    """In every directory, what looks as if a killed run had left it, but leads to root's files."""
    for d, _, _ in list(os.walk(h.path)):
        there = os.path.join(h.canary, os.path.relpath(d, h.path))
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


def planted(name):
    def make(h):
        command = SCENES[name](h)
        if h.canary:
            plant(h)
        return command
    return make


SCENES.update({name + "-into": into(name) for name in INTO})

# Scenes with a single run.
PLANTED = {name + "-planted": planted(name) for name in SCENES if name.endswith(("-again", "-into")) or
           name in ("in-place", "thin", "prune", "mark-set", "mark-restore", "mark-convert", "mark-strip-safe", "bundler")}
SCENES.update(PLANTED)

# Commands that leave something behind if they are killed; then they are run again.
KILLED = ("pack-into", "pack-again", "in-place", "thin", "prune", "shard-into", "merge-shards-into", "split-into", "split-again",
          "recombine-into", "recombine-again", "extract-into", "split-wheel-into", "index-again", "mark-set")


# Commands on trees of root's, in which only directories belong to the user.
ROOTED = ("pack-again", "pack-threads", "in-place", "thin-to", "thin-undo", "prune", "in-place-again", "split-again", "shard", "merge-shards-again",
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


def make_area(top, make, rooted=False):
    """The files of a scene; returns its command.  ROOTED: only directories u belong to the user."""
    for name in "fixture/home", "fixture/aside", "canary/home":
        os.makedirs(os.path.join(top, name))
    command = make(Home(os.path.join(top, "fixture/home"), "user", os.path.join(top, "canary/home")))
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
    make(home)
    shutil.copytree(canary, pristine, symlinks=True)
    home.kpack(*command.split())
    subprocess.run(["cp", "-a", "--remove-destination", canary + "/.", pristine], check=True)
    make_canaries(pristine, home)
    with open(os.path.join(top, "secrets"), "w") as f:
        f.writelines(s.hex() + "\n" for s in secrets_of(pristine, os.path.join(top, "fixture")))
    return [KPACK] + [a.replace("@", os.path.join(top, "work/home/")) for a in command.split()]


# --- the program -------------------------------------------------------------------------

def call_racer(scene, o, top, command, *options):
    """What it prints."""
    p = subprocess.run([RACER, "--scene", scene, *options, *(["--old"] if o.old else []),
                        *(["-v"] if o.verbose else []), top, *command],
                       stdout=subprocess.PIPE, text=True, errors="replace")
    if p.returncode not in (0, 1):
        return p.stdout.splitlines() + [f"{scene}\tfailed\texit status {p.returncode}"]
    return p.stdout.splitlines()


def attack_options(o):
    options = [] if o.all or o.attack or o.step else ["--runs", str(o.runs)]
    for name in "attack", "step":
        if getattr(o, name):
            options += ["--" + name, str(getattr(o, name))]
    return options + [option for option in ("--count", "--watch") if getattr(o, option[2:])]


def race_after_kill(scene, o, top, command):
    """The command is killed at some step; then the attacks are made on the next run of it."""
    steps = len(call_racer(scene, o, top, command, "--count"))
    os.rename(os.path.join(top, "fixture"), os.path.join(top, "before"))
    lines = []
    for percent in (30, 50, 70, 80, 90, 97) if o.all else (60, 90):
        shutil.rmtree(os.path.join(top, "fixture"), ignore_errors=True)
        subprocess.run(["cp", "-a", os.path.join(top, "before"), os.path.join(top, "fixture")], check=True)
        step = steps * percent // 100
        lines += call_racer(scene, o, top, command, "--kill", str(step))
        shutil.rmtree(os.path.join(top, "fixture"))
        os.rename(os.path.join(top, "work"), os.path.join(top, "fixture"))
        lines += call_racer(f"{scene}-{step}", o, top, command, "--may-fail", *attack_options(o))
    return lines


def race(scene, o):
    """Lines of faults."""
    top = tempfile.mkdtemp(prefix=f"kpack-race-{scene}-", dir=o.dir)
    os.chmod(top, 0o755)
    try:
        command = make_area(top, SCENES[scene.removesuffix("-killed").removesuffix("-rooted")],
                            scene.endswith("-rooted"))
        if scene in PLANTED:
            return call_racer(scene, o, top, command, "--may-fail", "--attack", "none", "--step", "1")
        if scene.endswith("-killed"):
            return race_after_kill(scene, o, top, command)
        return call_racer(scene, o, top, command, *attack_options(o))
    except subprocess.CalledProcessError as e:
        return [f"{scene}\tfailed\t{e} {e.stderr}"]
    finally:
        if o.keep:
            print(top, file=sys.stderr)
        else:
            shutil.rmtree(top)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--list", action="store_true")
    p.add_argument("--all", action="store_true")
    p.add_argument("--runs", type=int, default=12)
    p.add_argument("--attack")
    p.add_argument("--step", type=int)
    p.add_argument("--old", action="store_true")
    p.add_argument("--count", action="store_true")
    p.add_argument("--watch", action="store_true")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--dir", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("scenes", nargs="*")
    o = p.parse_args()
    scenes = [s for s in SCENES if s not in ROOTED_ONLY]
    watched = scenes
    scenes = scenes + [s + "-killed" for s in KILLED] + [s + "-rooted" for s in ROOTED]
    if o.list:
        print(*scenes, sep="\n")
        return 0
    os.umask(0o022)
    bad = False
    with ThreadPoolExecutor(o.jobs) as pool:
        for lines in pool.map(lambda s: race(s, o), o.scenes or (watched if o.watch else scenes)):
            for line in lines:
                bad = True
                print(line, flush=True)
    return bad and not o.count


if __name__ == "__main__":
    sys.exit(main())
