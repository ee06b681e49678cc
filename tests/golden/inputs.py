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


# ---- inputs of the commands that write ----------------------------------------------------------

import hashlib
import lzma
import struct
import types
import warnings

import zstandard
import foreign
import mkoffload as o
from mkdb import aotriton, hipblaslt, miopen, objects, paper, rocblas, sqlitedb
from mkdb.tree import Tree

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
HIPV4 = "hipv4-amdgcn-amd-amdhsa--"


def fatlib(path, bundles, *, align=4096, loose=0, base=0, share=1, reverse=False):
    """A shared library with these bundles' bytes; LOOSE of them have no wrapper."""
    data, starts = b"", []
    for bundle in bundles:
        data += bytes(-len(data) % align)
        starts.append(len(data))
        data += bundle
    pointers = [at for at in starts[:len(starts) - loose] for _ in range(share)]
    write(path, mkfat.shared_library(data, pointers[::-1] if reverse else pointers, base))


def code_bundle(arches, seed, *, size=900, ccob=0, twice=None):
    made = [(a, mkfat.code_object(a, size, seed)) for a in arches]
    if twice:
        made.append((twice + "@openmp", mkfat.code_object(twice, size, seed + "/openmp")))
    return mkfat.bundle(made, ccob, 4096)


@an_input
def variety(d):
    """Libraries that differ in what their bundles and wrappers are."""
    two, four = ("gfx1030", "gfx1100"), ("gfx90a:xnack+", "gfx90a:xnack-", "gfx1030", "gfx1100")
    fatlib(d + "/four.so", [code_bundle(four, "a%d" % i) for i in range(2)])
    fatlib(d + "/ragged.so", [code_bundle(two[:1 + i % 2], "r%d" % i) for i in range(4)])
    fatlib(d + "/same.so", [code_bundle(two, "same") for i in range(3)])
    fatlib(d + "/ccob.so", [code_bundle(two, "c%d" % i, ccob=(3, 0, 2)[i]) for i in range(3)])
    fatlib(d + "/fixed.so", [code_bundle(two, "f%d" % i) for i in range(2)], base=0x400000)
    fatlib(d + "/shared.so", [code_bundle(two, "s%d" % i) for i in range(2)], share=2, reverse=True)
    fatlib(d + "/twice.so", [code_bundle(two, "t%d" % i, twice="gfx1030") for i in range(2)])
    fatlib(d + "/large.so", [code_bundle(two, "l", size=70000)])
    write(d + "/bare.hipfb", code_bundle(two, "bare"))


@an_input
def loose(d):
    """Libraries that cannot be converted, in a tree with one that can."""
    two = ("gfx1030", "gfx1100")
    fatlib(d + "/lib/good.so", [code_bundle(two, "g")])
    fatlib(d + "/lib/no-wrapper.so", [code_bundle(two, "n%d" % i) for i in range(2)], loose=2)
    fatlib(d + "/lib/one-loose.so", [code_bundle(two, "o%d" % i) for i in range(3)], loose=1)
    write(d + "/lib/zeros.so", mkfat.shared_library(bytes(8192), []))
    write(d + "/lib/bare.hipfb", code_bundle(two, "b"))
    write(d + "/lib/host.o", o.elf_object([(".text", 1, 16, b"\x90" * 40)]))


def section_of(data, name):
    """Where the header of a section is, its offset and its size."""
    at, = struct.unpack_from("<Q", data, 40)
    n, names = struct.unpack_from("<HH", data, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, at + 64 * i) for i in range(n)]
    text = data[rows[names][4]:]
    for i, r in enumerate(rows):
        if text[r[0]:text.index(b"\0", r[0])] == name:
            return at + 64 * i, r[4], r[5]


@an_input
def lies(d):
    """Fat libraries that say something wrong, each in one place."""
    fatlib(d + "/good.so", [code_bundle(("gfx1030", "gfx1100"), "g%d" % i) for i in range(2)])
    fatlib(d + "/ccob.so", [code_bundle(("gfx1030", "gfx1100"), "c%d" % i, ccob=3) for i in range(2)])
    with open(d + "/good.so", "rb") as f:
        good = f.read()
    with open(d + "/ccob.so", "rb") as f:
        ccob = f.read()

    def bad(name, data, at=0, form="", *values):
        data = bytearray(data)
        if form:
            struct.pack_into("<" + form, data, at, *values)
        write(d + "/bad-" + name, data)
    row, at_fat, _ = section_of(good, b".hip_fatbin")
    _, at_ccob, _ = section_of(ccob, b".hip_fatbin")
    _, wrap, _ = section_of(good, b".hipFatBinSegment")
    relrow, rela, _ = section_of(good, b".rela.dyn")
    bad("elf-shoff", good, 40, "Q", 1 << 40)
    bad("elf-shnum", good, 60, "H", 60000)
    bad("elf-cut", good[:len(good) // 2])
    bad("elf-names", good, 62, "H", 999)
    bad("fat-size", good, row + 32, "Q", 1 << 40)
    bad("fat-offset", good, row + 24, "Q", (1 << 64) - 8)
    bad("wrapper-magic", good, wrap, "I", 0x12345678)
    bad("wrapper-target", good, rela + 16, "Q", 8)
    bad("wrapper-inside", good, rela + 16, "Q", at_fat + 32)
    bad("rela-size", good, relrow + 32, "Q", 25)
    bad("bundle-count", good, at_fat + 24, "Q", 1 << 60)
    bad("bundle-count2", good, at_fat + 24, "Q", 5)
    device = at_fat + 32 + 24 + len("host-x86_64-unknown-linux-gnu-")
    bad("bundle-offset", good, device, "Q", 1 << 63)
    bad("bundle-size", good, device + 8, "Q", (1 << 64) - 1)
    bad("bundle-size2", good, at_fat + 40, "Q", (1 << 64) - 1)
    bad("bundle-id", good, at_fat + 48, "Q", 1 << 50)
    bad("bundle-magic", good, at_fat, "8s", b"garbage!")
    bad("ccob-size", ccob, at_ccob + 8, "Q", 1 << 50)
    bad("ccob-plain", ccob, at_ccob + 16, "Q", 1 << 60)
    bad("ccob-less", ccob, at_ccob + 16, "Q", 100)
    bad("ccob-more", ccob, at_ccob + 16, "Q", 100000)
    bad("ccob-version", ccob, at_ccob + 4, "H", 77)
    bad("ccob-method", ccob, at_ccob + 6, "H", 9)
    bad("ccob-data", ccob[:at_ccob + 60] + bytes(b ^ 0x5a for b in ccob[at_ccob + 60:at_ccob + 160]) +
        ccob[at_ccob + 160:])
    for name, says in (("zeros", 1 << 24), ("huge", 1 << 45)):
        packed = zstandard.ZstdCompressor(level=1).compress(bytes(1 << 24))
        fatlib(d + "/bad-bomb-" + name, [b"CCOB" + struct.pack(
            "<HHQQ", 3, 1, 32 + len(packed), says) + bytes(8) + packed])
    code = mkfat.code_object("gfx1100", 600, "1")
    plain = bytearray(mkfat.bundle([("gfx1100", code)], 0, 64))
    struct.pack_into("<Q", plain, plain.index(HIPV4.encode() + b"gfx1100") - 8, len(HIPV4))
    fatlib(d + "/untold.so", [bytes(plain)])  # only its code says for what it is
    fatlib(d + "/bad-untold", [bytes(plain).replace(code, b"x" * len(code))])


def frames(data, kind):
    """A compressed bundle whose payload is several zstd frames."""
    def stream(part):
        c = zstandard.ZstdCompressor(level=3, write_content_size=False).compressobj()
        return c.compress(part) + c.flush()
    pack = zstandard.ZstdCompressor(level=3).compress
    skip = struct.pack("<II", 0x184D2A50, 16) + b"CCOB" + bytes(12)
    packed = {"skip-first": lambda: skip + pack(data), "skip-last": lambda: pack(data) + skip,
              "two": lambda: pack(data[:5000]) + pack(data[5000:]),
              "no-size": lambda: stream(data[:5000]) + stream(data[5000:]),
              "empty-last": lambda: pack(data) + pack(b"")}[kind]()
    digest = hashlib.md5(data).digest()[:8]
    return b"CCOB" + struct.pack("<HHQQ", 3, 1, 32 + len(packed), len(data)) + digest + packed


@an_input
def formats(d):
    """A file of each format of device code, and of formats in formats."""
    co = {a: o.code_object(a, 900, "one") for a in ("gfx1100", "gfx90a:xnack+", "gfx942")}
    other, third = o.code_object("gfx1100", 900, "other"), o.code_object("gfx1100", 900, "third")
    bc, bc2 = b"BC\xc0\xde" + bytes(60), b"BC\xc0\xde" + bytes(59) + b"2"
    spv = struct.pack("<IIIII", 0x07230203, 0x10400, 0, 9, 0)
    amdspv = struct.pack("<IIIII", 0x07230203, 0x10600, 0xffff << 16, 9, 0)
    ptx = b"//\n.version 8.3\n.target sm_90a\n.address_size 64\n"
    host = ("host-x86_64-unknown-linux-gnu-", b"")
    neutral = o.raw_bundle([("hip-amdgcn-amd-amdhsa--", bc),
                            ("hip-spirv64-amd-amdhsa--amdgcnspirv", amdspv),
                            ("openmp-nvptx64-nvidia-cuda--sm_70", ptx.replace(b"90a", b"70"))])
    inner = o.offload_binary(o.offload_binary(bc, 2, 1) + o.offload_binary(other), arch="gfx1100")
    fat_o = o.elf_object([
        (".hip_fatbin", 1, 16, o.raw_bundle([(HIPV4 + "gfx1100", co["gfx1100"])], 4096) + bytes(64) +
         o.ccob(o.raw_bundle([(HIPV4 + "gfx942", co["gfx942"])]))),
        (".text", 1, 16, b"\x90" * 40),
        ("anything", 0x6fff4c0b, 8, o.offload_binary(third, arch="gfx1100")),
        ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", 1, 1, bc2),
        ("__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", 1, 1, b"\0")])
    with open(DATA + "/cuda/plain.fatbin", "rb") as f:
        cuda = f.read()
    plain = code_bundle(("gfx1030", "gfx1100"), "frames")
    for name, data in {
            "kinds.hipfb": o.raw_bundle([host, (HIPV4 + "gfx1100", co["gfx1100"]),
                                         ("openmp-amdgcn-amd-amdhsa--gfx1100", other),
                                         (HIPV4 + "gfx90a:xnack+", co["gfx90a:xnack+"])]),
            "neutral.o": neutral, "neutral.ccob": o.ccob(neutral),
            "zlib.ccob": o.ccob(neutral, 2, "zlib"), "first.ccob": o.ccob(neutral, 1),
            "two.hipfb": o.ccob(o.raw_bundle([(HIPV4 + "gfx942", co["gfx942"])])) + bytes(100) +
            o.raw_bundle([(HIPV4 + "gfx942", other)]),
            "text.ll": o.text_bundle([host, ("hip-amdgcn-amd-amdhsa--gfx906", b"; text\n")], ";"),
            "alone.bc": bc, "alone.spv": spv, "amd.spv": amdspv, "alone.ptx": ptx,
            "stream.bin": o.offload_binary(co["gfx1100"], triple="amdgcn-amd-amdhsa", arch="gfx1100",
                                           feature="a,b", note="x") +
            o.offload_binary(ptx, 5, 2, arch="sm_90a") + o.offload_binary(other, arch="") +
            o.offload_binary(bc, 2, 1),
            "nested.bin": inner + o.offload_binary(third),
            "deep.ccob": o.ccob(o.raw_bundle([("openmp-amdgcn-amd-amdhsa--gfx1100", inner)])),
            "fat.o": fat_o, "none.o": o.elf_object([(".text", 1, 16, b"\x90" * 40)]),
            "none.a": o.ar([("readme", b"text"), ("a.o", o.elf_object([]))]),
            "lib.a": o.ar([("first.o", fat_o), ("b.bc", bc), ("readme", b"text"), ("c.bc", bc2),
                           ("k.hsaco", co["gfx942"]), ("again.bc", bc),
                           ("bundle", o.raw_bundle([host, (HIPV4 + "gfx942", other)]))]),
            "cuda.o": o.elf_object([(".nv_fatbin", 1, 8, cuda), ("__nv_relfatbin", 1, 8, cuda)]),
            "kernels.tileirbc": o.tileir(["one", "two"]),
            "pe.exe": foreign.pe(plain, False), "long.dll": foreign.pe(plain, True),
            "elf32.so": foreign.elf(plain, ["elf32"]), "s390.so": foreign.elf(plain, ["elf64", "be"]),
    }.items():
        write(d + "/" + name, data)
    for kind in "skip-first", "skip-last", "two", "no-size", "empty-last":
        write("%s/frames-%s.ccob" % (d, kind), frames(plain, kind))


class Stands(objects.Objects):
    """Code objects and libraries without a compiler, so that they are the same everywhere."""
    def __init__(self):
        pass

    def code(self, target, names):
        return objects.handmade(target, names)

    def bundle(self, parts, compress=False):
        return mkfat.bundle(parts, 3 if compress else 0, 4096)

    def host_library(self, text):
        return mkfat.shared_library(text.encode(), []).replace(b".hip_fatbin", b".host_text_").replace(
            b".hipFatBinSegment", b".noFatBinSegment_")


def same_sqlite(top):
    """The version of the library that wrote a database is in its header."""
    for where, _, names in os.walk(top):
        for name in names:
            with open(os.path.join(where, name), "r+b") as f:
                if f.read(6) == b"SQLite":
                    f.seek(96)
                    f.write(struct.pack(">I", 3040001))


@an_input
def databases(d):
    """DIR: a tree with a library's kernel database, for several libraries and layouts."""
    aotriton.lzma = types.SimpleNamespace(FORMAT_XZ=lzma.FORMAT_XZ, compress=lambda data, format, preset:
                                          lzma.compress(data, format=format, preset=0))
    miopen.lines = lambda line, n: "".join(map(line, range(min(n, 60))))
    made = Stands()

    def fft(t):
        sqlitedb.rocfft(t, "lib/rocfft/rocfft_kernel_cache.db", ("gfx90a", "gfx1100"), 6)
        t.put("lib/rocfft/1.0.31/rocfft_rtc_helper", "#!/bin/sh\nexit 0\n", 0o755)

    def ffts(t):
        for arch in ("gfx90a", "gfx12-generic"):
            sqlitedb.rocfft(t, "lib/rocfft/rocfft_kernel_cache_%s.db" % arch, (arch,), 4)
    for name, f in {
            "rocblas": rocblas.mixed, "rocblas-merged": rocblas.merged, "rocblas-arch": rocblas.arch,
            "rocblas-feature": rocblas.feature, "hipblaslt": hipblaslt.flat,
            "hipblaslt-arch": hipblaslt.arch, "hipsparselt": hipblaslt.sparse,
            "shard-a": lambda t: hipblaslt.shard(t, "gfx942"),
            "shard-b": lambda t: hipblaslt.shard(t, "gfx1100"),
            "aotriton": aotriton.images, "aotriton-zip": aotriton.flatzip, "rocfft": fft,
            "rocfft-arch": ffts, "miopen": miopen.database, "provider": miopen.provider,
            "paper-rocblas": paper.rocblas, "paper-hipblaslt": paper.hipblaslt,
            "paper-aotriton": paper.aotriton, "paper-fft": paper.fft}.items():
        os.makedirs(d + "/" + name)
        f(Tree(d + "/" + name, made))
    same_sqlite(d)


@an_input
def holes(d):
    """Objects far from each other, and objects of which one begins in the other."""
    two = ("gfx1030", "gfx1100")
    fatlib(d + "/apart.so", [mkfat.bundle([(a, mkfat.code_object(a, 9000, "s")) for a in two], 0, 1 << 18)])
    first, second = (mkfat.code_object(a, 2000, "o") for a in two)
    at = (0, len(first) - 500)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2)
    for arch, off, size in zip(two, at, (len(first), len(second))):
        target = b"hipv4-amdgcn-amd-amdhsa--" + arch.encode()
        head += struct.pack("<QQQ", 4096 + off, size, len(target)) + target
    fatlib(d + "/lapped.so", [head + bytes(4096 - len(head)) + first[:at[1]] + second])


@an_input
def dwarf(d):
    """Compressed bundles that no archive is as small as: their objects differ in the GPU and little else."""
    with open(DATA + "/hosts/debug.hipfb", "rb") as f:
        f.seek(12288)
        made = f.read(5160)

    def variant(arch, number):
        data = bytearray(made)
        data[48] = mkfat.MACH[arch]
        at = data.index(b"clang version ")
        data[at:at + 14] = b"clang variant%d" % number
        return bytes(data)
    arches = ("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201")
    fatlib(d + "/lib.so", [mkfat.bundle([(a, variant(a, n)) for a in arches], 3, 4096) for n in range(9)])


@an_input
def thick(d):
    """A tree to make thin: libraries of every form, bundles, static libraries, a database."""
    import arfile
    three = ("gfx90a:xnack+", "gfx1030", "gfx1100")

    def made(seed, n=2, arches=three, size=9000, ccob=0):
        return [code_bundle(arches, "%s%d" % (seed, i), size=size, ccob=ccob) for i in range(n)]
    fatlib(d + "/lib/plain.so", made("p"))
    fatlib(d + "/lib/ccob.so", made("c", ccob=3, size=20000) + made("d", 1, ccob=2, size=20000))
    fatlib(d + "/lib/shared.so", made("s"), share=3, reverse=True)
    fatlib(d + "/lib/loose.so", made("l", 3), loose=1)
    fatlib(d + "/lib/fixed", made("f"), base=0x400000)
    fatlib(d + "/lib/only.so", made("o", arches=("gfx1100",)))
    fatlib(d + "/lib/others.so", made("x", arches=("gfx1201", "gfx942")))
    fatlib(d + "/lib/small.so", made("m", 1, size=300))
    os.link(d + "/lib/plain.so", d + "/lib/plain-too.so")
    os.symlink("plain.so", d + "/lib/plain.so.1")
    os.chmod(d + "/lib/plain.so", 0o751)
    write(d + "/lib/kernels.hipfb", made("k", 1)[0])
    write(d + "/lib/unknown.hipfb", made("u", 1, ("gfx1100", "gfx9999"))[0])
    write(d + "/share/text", b"text\n")
    with open(DATA + "/hosts/debug.hipfb", "rb") as f:
        debug = f.read()
    write(d + "/debug/debug.hipfb", debug)
    fatlib(d + "/debug/debug.so", [debug, debug])
    fatlib(d + "/debug/ccob.so", [o.ccob(debug)])
    for name in "static.a", "hip.a", "rdc.a":
        with open(DATA + "/hosts/" + name, "rb") as f:
            write(d + "/static/" + name, f.read())
    members, symbols = arfile.read(d + "/static/hip.a")
    for kind in "bsd", "darwin", "darwin64":
        write("%s/static/%s.a" % (d, kind), arfile.write_bsd(members, symbols, kind))
    with open(d + "/static/hip.a", "rb") as f:
        data = bytearray(f.read())
    data[75] ^= 2
    write(d + "/wrong/index.a", bytes(data))
    write(d + "/wrong/thin.a", b"!<thin>\n" + bytes(data[8:200]))
    write(d + "/wrong/cut.a", bytes(data[:20000]))
    for name in "rocblas", "hipblaslt", "aotriton", "miopen":
        t = Tree(d + "/" + name, Stands())
        {"rocblas": rocblas.mixed, "hipblaslt": hipblaslt.flat, "aotriton": lambda t: aotriton.pack(
            t, "gfx90a", "gfx90a", 1), "miopen": miopen.database}[name](t)
    same_sqlite(d + "/miopen")
    runtime = o.elf_object([(".rodata", 1, 1, b"CCOB __hipRegisterFatBinary libamd_comgr.so")])
    write(d + "/runtime/libamdhip64.so.7", runtime)
    write(d + "/runtime/libamdhip64.so.5", runtime.replace(b"CCOB", b"none"))


@an_input
def joining(d):
    """Archives to join: that clash, have unknown fields, are damaged, or say something wrong."""
    noise = mkarchive.noise

    def put(name, entries, how=None, **top):
        a = mkarchive.Archive(**dict({"group": "g"}, **top))
        for key, arch, data, *more in entries:
            a.add(key, arch, data, **(more[0] if more else {}))
        a.write(d + "/" + name + ".kpack", **(how or {}))
        return a
    put("a", [("x#0", "gfx900", b"one"), ("y#0", "gfx900", b"two"), ("z#0", "gfx900", b"z")])
    put("b", [("x#0", "gfx900", b"eno"), ("y#0", "gfx900", b"owt"), ("w#0", "gfx900", b"w")])
    put("c", [("x#0", "gfx906", b"one"), ("big#0", "gfx906", noise(9000))])
    put("d", [("x#0", "gfx1030", b"one"), ("big#0", "gfx1030", noise(9000), {"chunk": 4096})])
    put("none", [("x#0", "gfx908", b"one"), ("big#0", "gfx908", noise(9000))], scheme="none")
    put("none2", [("x#0", "gfx1100", b"one"), ("big#0", "gfx1100", noise(9000))], scheme="none")
    put("other-group", [("x#0", "gfx909", b"one")], group="h")
    put("family", [("x#0", "gfx90c", b"one"), ("x#0", "gfx940", b"two")], family="fam")
    put("no-hash", [("x#0", "gfx90a", b"one", {"hash": False})], index=False, checksum=False)
    put("lies-a", [("x#0", "gfx900", b"one", {"xxh3": bytes(16)})])
    put("lies-b", [("x#0", "gfx900", b"two", {"xxh3": bytes(16)})])
    put("unknown", [("k#0", "gfx1", noise(500), {"entry": {"first": [1, {"x": None}], 7: b"bin"}}),
                    ("k#1", "gfx1", noise(600, 1), {"entry": {"crc": 2**64 - 1}})],
        {"last": ["gfx_arches", "producer"], "top": {"producer": "one", "only": {"a": [True, -1.5]}, 9: None}})
    put("unknown2", [("k#2", "gfx2", noise(500), {"entry": {"note": 1}})],
        {"top": {"producer": "one", "other": 1}})
    put("unknown3", [("k#2", "gfx2", noise(500), {"entry": {"note": 2}})], {"top": {"producer": "two"}})
    put("unknown4", [("k#2", "gfx2", noise(500), {"entry": {"note": 2}})], {"top": {"producer": "one"}})
    put("version2", [("k#1", "gfx1", noise(500))], {"top": {"format_version": 2}})
    put("blob-fields", [("k#1", "gfx1", noise(500))],
        {"top": {"blobs": [{"offset": 64, "size": 500, "crc": 1}]}}, scheme="none")
    put("many-fields", [("k#1", "gfx1", noise(500))], {"top": {"f%d" % i: 1 for i in range(1001)}})
    put("short", [("k#1", "gfx5", noise(500), {"entry": {"original_size": 501}}), ("k#2", "gfx5", b"k")])
    put("names", [("k#0", "../up", b"k"), ("k#0", "a/b", b"k")])
    put("up", [("k#0", "gfx900", b"k")], group="../g")
    put("empty", [])
    put("paths", [("db#0", "generic", b"d" * 99, {"path": "lib/db"}), ("x#1", "gfx900", b"q", {"path": "p/x"})])
    put("path-clash", [("db#0", "generic", b"e" * 99, {"path": "lib/db"})])
    a = put("ordinals", [("k#0", "gfx7", b"same")])
    a.add("k#1", "gfx7", b"same", ordinal=0)
    a.add("k#2", "gfx8", b"same", ordinal=0)
    a.write(d + "/ordinals.kpack")
    with open(d + "/c.kpack", "rb") as f:
        data = bytearray(f.read())
    data[200] ^= 90
    write(d + "/damaged.kpack", bytes(data))
    write(d + "/cut.kpack", bytes(data[:-50]))
    write(d + "/text.kpack", b"text\n")


def built(path, seed, *arches, n=2):
    fatlib(path, [code_bundle(arches, "%s%d" % (seed, i)) for i in range(n)])


@an_input
def artifact(d):
    """art: an artifact with two prefixes that have device code and one that has none."""
    built(d + "/art/math/stage/lib/deep/liba.so.1", "a", "gfx1030", "gfx1100", "gfx90a:xnack+")
    built(d + "/art/comm/stage/lib/libb.so", "b", "gfx1100", "gfx942")
    os.symlink("liba.so.1", d + "/art/math/stage/lib/deep/liba.so")
    write(d + "/art/none/stage/a name: with\na newline", b"text\n")
    os.mkdir(d + "/art/none/stage/empty")
    write(d + "/art/artifact_manifest.txt", b"math/stage\n\n  comm/stage\nnone/stage\n")
    write(d + "/art/share/doc", b"doc\n")
    os.link(d + "/art/share/doc", d + "/art/share/again")
    # what is for gfx1250-strict, for its revision 0, and what only looks like it
    built(d + "/strict/st/lib/libf.so", "f", "gfx1250", "gfx1250-strict", n=1)
    for gpu in "gfx1250", "gfx1250-strict", "gfx1250v0":
        write("%s/strict/st/lib/hipblaslt/library/%s/TensileManifest.txt" % (d, gpu), gpu.encode())
        write("%s/strict/st/lib/rocblas/library/%s/a.co" % (d, gpu), gpu.encode())
    for name in ("lib/libdevice_conv_operations.a", "lib/libdevice_conv_operations_gfx1250_strict.a",
                 "lib/libdevice_conv_operations_gfx1250_stricter.a",
                 "lib/libdevice_conv_operations_gfx950_xnackp.a"):
        write(d + "/strict/st/" + name, b"!<arch>\n")
    write(d + "/strict/st/share/miopen/db/gfx1250-strict40.fdb.txt", b"strict\n")
    write(d + "/strict/st/share/miopen/db/gfx1153.HIP.fdb.txt", b"1153\n")
    write(d + "/strict/artifact_manifest.txt", b"st\n")


@an_input
def shards(d):
    """Builds of one artifact for two families of GPUs."""
    for shard, arches, seed in (("rdna", ("gfx1030", "gfx1100"), "r"), ("cdna", ("gfx90a", "gfx942"), "c")):
        at = "%s/%s/" % (d, shard)
        for lib in "liba", "libb":
            built("%s%s/blas/lib/%s.so" % (at, "in", lib), lib + seed, *arches)
        write(at + "in/blas/share/text", b"text\n")
        hipblaslt.shard(Tree(at + "in/blas", Stands()), arches[-1])
        built(at + "in/rand/lib/librand.so", "rand" + seed, *arches, n=1)
        write(at + "in/host/lib/libhost.so", Stands().host_library("host"))


def torch(path, *, stored=True, **more):
    """A wheel as mkwheel.py makes it, with little code.  Not stored: deflated."""
    import mkwheel
    import zipfile
    mkwheel.zipfile = types.SimpleNamespace(
        ZipFile=zipfile.ZipFile, ZipInfo=zipfile.ZipInfo,
        ZIP_DEFLATED=zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    mkwheel.fat = lambda arches, seed, bundles: mkfat.shared_library(*wheel_code(arches, seed, bundles))
    mkwheel.make(path, **{"tags": "py3-none-linux_x86_64", **more})


def wheel_code(arches, seed, bundles):
    data, starts = b"", []
    for i in range(bundles):
        data += bytes(-len(data) % 4096)
        starts.append(len(data))
        data += code_bundle(arches, "%s/%d" % (seed, i), size=500)
    return data, starts


@an_input
def wheels(d):
    """Wheels like torch's in directories of their own; and small ones that lie, by ziptricks.py."""
    import ziptricks
    four = "gfx90a:xnack+,gfx90a:xnack-,gfx942,gfx1100"
    write(d + "/files/text", b"text\n")
    built(d + "/files/code.so", "code", "gfx942", n=1)
    for gpu in "gfx1250", "gfx1250-strict", "gfx1201":
        write("%s/files/dbs/lib/rocblas/library/TensileLibrary_%s.dat" % (d, gpu), gpu.encode())
    aotriton.pack(Tree(d + "/files/dbs", Stands()), "gfx11xx", "gfx1100", 1)
    rocblas.mixed(Tree(d + "/files/rocblas", Stands()))
    torch(d + "/a", arches=four, stored=False)
    torch(d + "/b", arches="gfx942,gfx1201", device_seed="1")
    torch(d + "/c", arches="gfx1030,gfx1201", seed="1")
    torch(d + "/e", arches="gfx1101,gfx1201")
    torch(d + "/version", arches="gfx942", version="2.11.0")
    torch(d + "/databases", arches="gfx942,gfx1100", databases=d + "/files/rocblas")
    torch(d + "/strict", arches="gfx1250,gfx1250-strict,gfx1201", databases=d + "/files/dbs")
    torch(d + "/features", arches="gfx90a:sramecc+:xnack-,gfx1100,gfx11-generic,gfx942")
    torch(d + "/crlf", arches="gfx942", header=b"Metadata-Version: 1.2\r\nName: torch\r\n"
          b"Version: 2.10.0+rocm7.1\r\n\r\nBody\r\n\r\nEnd")
    torch(d + "/extra", arches="gfx942", header=b"Metadata-Version: 2.1\nName: torch\n"
          b"Version: 2.10.0+rocm7.1\nProvides-Extra: GFX942\n\n")
    torch(d + "/tags", arches="gfx942", tags="cp313-cp313-manylinux_2_28_x86_64,cp313-cp313-linux_x86_64")
    info = "torch-2.10.0+rocm7.1"
    for name, member, file in (
            ("signed", info + ".dist-info/RECORD.jws", "text"), ("outside", "other/x.so", "code.so"),
            ("data", info + ".data/platlib/y.so", "code.so"), ("split", "torch/.kpack/x_gfx942.kpack", "text"),
            ("kpack-file", "torch/.kpack", "text"), ("more", "torch/mine", "text")):
        torch(d + "/" + name, arches="gfx942", add=["%s=%s/files/%s" % (member, d, file)])
    torch(d + "/empty", arches="gfx942", code=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # members that are there twice
        for name, make in ziptricks.TRICKS.items():
            if name not in ("bomb", "many"):
                os.makedirs("%s/tricks/%s" % (d, name))
                make("%s/tricks/%s/x-1.0-py3-none-any.whl" % (d, name))


@an_input
def amd(d):
    """out: the artifact, split as AMD's program leaves it; none: without compression."""
    import amdsplit
    artifact(d + "/in")
    argv = sys.argv
    for options, to in ([], "out"), (["--none"], "none"):
        sys.argv = ["amdsplit.py"] + options + [d + "/in/art", d + "/" + to, "demo_lib"]
        amdsplit.main()
    sys.argv = argv


@an_input
def odd(d):
    """Libraries with entries that are empty, the same for two GPUs, or of any order; names of files."""
    code = mkfat.code_object("gfx1030", 900, "x")
    fatlib(d + "/empty.so", [o.raw_bundle([("host-x86_64-unknown-linux-gnu-", b""), (HIPV4 + "gfx1030", b""),
                                           (HIPV4 + "gfx1100", mkfat.code_object("gfx1100", 900, "e"))], 4096)])
    fatlib(d + "/equal.so", [mkfat.bundle([("gfx1030", code), ("gfx1100", code)], 0, 4096)])
    fatlib(d + "/host.so", [o.raw_bundle([(HIPV4 + "gfx1030", code), (
        "host-x86_64-unknown-linux-gnu-", b"of the host"), (HIPV4 + "gfx1100", code)])])
    fatlib(d + "/renamed.so", [code_bundle(("gfx1030", "gfx1100"), "n%d" % i) for i in range(3)])
    with open(d + "/renamed.so", "r+b") as f:
        data = f.read().replace(b".hipFatBinSegment", b".data.of.wrappers")
        f.seek(0)
        f.write(data)
    for gpu in "gfx11-generic", "gfx942_xnackp", "gfx90a_xnackm", "gfx1250_strict", "gfx942_stricter", "gfx":
        write(d + "/lib/libMIOpenCKGroupedConv_%s.so" % gpu, Stands().host_library(gpu))
        write(d + "/lib/libdevice_gemm_operations_%s.a" % gpu, b"!<arch>\n")
    for size in 0, 1, 65791, 131072, 131073, 262144, 300001:
        data = hashlib.shake_128(b"%d" % size).digest(size)
        write("%s/noise/lib/foo/%d" % (d, size), data[:9000] + bytes(len(data[9000:9000 + size // 90])) +
              data[9000 + size // 90:])


sys.modules.setdefault("inputs", sys.modules[__name__])
import inputs_read  # noqa: E402,F401  its inputs
import inputs_formats  # noqa: E402,F401
import inputs_targets  # noqa: E402,F401
