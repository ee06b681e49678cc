# SPDX-License-Identifier: MIT
"""Target IDs in every spelling, code for every target, and host binaries that lie."""
import os
import re
import struct

import mkoffload as o
from elfs import FATBIN, HIPF, HIPK, MARKER, SEGMENT, bundle, elf, host, pad, rela, wrapper
from inputs import an_input, write
from inputs_formats import FORMATS, code, put  # noqa: F401
from mkarchive import Archive

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "core", "target", "table.c")
GENERICS = ["gfx9", "gfx9-4", "gfx10-1", "gfx10-3", "gfx11", "gfx11-7", "gfx12", "gfx12-5", "gfx13"]


@an_input
def targets(d):
    """machs.a: a code object for each number of a processor; ids.bundle: entry IDs; one.kpack: code for many targets."""
    write(d + "/machs.a", o.ar([("%02x" % mach, code([], mach)) for mach in range(256)]))
    write(d + "/flags.a", o.ar([("%d-%x" % (abi, flags), code([], flags, abi)) for abi, flags in (
        (1, 0x12f), (1, 0x02f), (1, 0x22f), (1, 0x33f), (1, 0x02c), (1, 0x12c), (1, 0x22c), (1, 0x036), (1, 0x341), (1, 0x1ff), (1, 0x2ff),
        (2, 0x53f), (3, 0x53f), (4, 0x53f), (3, 0x63f), (3, 0xb3f), (4, 0xf4c), (4, 0xa4c), (2, 0xd2f), (2, 0x92f), (2, 0x03f), (2, 0x12c),
        (2, 0x22c), (2, 0x32c), (2, 0xf2c), (4, 0x549), (4, 0xf49), (4, 0x55a), (4, 0x100055b), (4, 0x1000054), (4, 0x1000151),
        (4, 0x100065f), (4, 0xb99), (4, 0x599), (0, 0x53f), (5, 0x53f), (255, 0x53f))]))
    with open(TABLE, encoding="utf-8") as f:
        text = f.read()
    names = sorted(set(re.findall(r'\{.*"((?:gfx|r[0-9v]|rs|c|j|s|b|t)[0-9a-z-]+)"', text)))
    every = ["hip-amdgcn-amd-amdhsa--%s%s%s" % (n, x, s) for n in names for x in ("", ":xnack-", ":xnack+") for s in ("", ":sramecc-", ":sramecc+")]
    write(d + "/features.bundle", o.raw_bundle([(i, b"x") for i in every]))
    ids = """hip-amdgcn-amd-amdhsa-gfx900 hip-amdgcn-amd-amdhsa-gfx90a:xnack- hip-amdgcn-amd-amdhsa-gfx11-generic hip-amdgcn-amd-amdhsa-fiji
        hip-amdgcn-amd-amdhsa-carrizo:xnack+ hip-amdgcn-amd-amdhsa-unknown-gfx1100 hip-amdgcn-amd-amdhsa-unknown-gfx11-generic
        hip-amdgcn-amd-amdhsa-unknown- hip-amdgcn-amd-amdhsa-unknown hip-amdgcn-amd-amdhsa-- hip-amdgcn-amd-amdhsa hipv4-amdgcn-amd-amdhsa--future99
        hcc-amdgcn--amdhsa-gfx803 openmp-nvptx64-nvidia-cuda--sm_80 openmp-nvptx64-nvidia-cuda-unknown-sm_80 openmp-nvptx64-nvidia-cuda-sm_80
        openmp-nvptx64-nvidia-cuda-compute_90 hip-spirv64-amd-amdhsa--amdgcnspirv hip-spirv64-amd-amdhsa-unknown-amdgcnspirv
        hip-spirv64-amd-amdhsa-generic host-x86_64-unknown-linux-gnu host-x86_64-unknown-linux-- host-x86_64-pc-windows-msvc- hosts-x86_64 host-
        host - hip---- gfx900 -amdgcn-amd-amdhsa--gfx900 hipv4-amdgcn-amd-amdhsa--gfx90a-xnack--sramecc+ hip-amdgcn-amd-amdhsa--GFX90A
        hip-amdgcn-amd-amdhsa--gfx90a:xnack+:xnack-""".split()
    write(d + "/ids.bundle", o.raw_bundle([(i, b"x") for i in ids]))
    a = Archive()
    features = [f for x in ("", ":xnack-", ":xnack+") for f in (x, ":sramecc-" + x, ":sramecc+" + x)]
    for arch in ["gfx90a" + f for f in features] + [g + "-generic" for g in GENERICS] + ["gfx9-4-generic:xnack-", "gfx9-4-generic:sramecc+:xnack+"] + (
            "gfx803 gfx900 gfx906 gfx908 gfx942 gfx1100 gfx1101 gfx1250 gfx1250-strict gfx1251 gfx9999 generic amdgcnspirv sm_90 sm_90a "
            "compute_90 sm_x tonga").split() + ["no target"]:
        a.add("k", arch, b"code for " + arch.encode())
    a.write(d + "/one.kpack")


@an_input
def host_lies(d):
    """Host binaries whose sections, wrappers and relocations lie."""
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 0x11, 0, 1, FATBIN, 0)
    usual = host(wrapper(0) * 2, 4, rela(SEGMENT + 8, 0, 8, FATBIN) + rela(SEGMENT + 32, 1, 1, 0), symbols)
    merged = host(b"data" * 4 + wrapper(FATBIN) + wrapper(FATBIN + 8) + wrapper(0), 4, rela(SEGMENT + 72, 0, 8, FATBIN), where=b".data", marker=b"m" * 8)
    files = {"usual": usual, "merged": merged, "class": put(usual, 4, 1, 1), "order": put(usual, 5, 1, 2), "magic": put(usual, 0, 1, 0)}
    offset, size, addr, link, row = 24, 32, 16, 40, 56

    def change(data, section, field, value):
        return put(data, struct.unpack_from("<Q", data, 40)[0] + 64 * section + field, 4 if field == link else 8, value)
    for i, (section, field, value) in enumerate((
            (1, offset, 1 << 20), (1, offset, -1), (1, size, -1), (1, addr, -4), (2, size, 1 << 20), (2, addr, -4), (3, size, 1 << 20), (3, row, 16),
            (3, row, 0), (3, size, 47), (3, link, 99), (3, link, 1), (4, size, 24), (4, offset, 1 << 20))):
        files["usual-%02d" % i] = change(usual, section, field, value)
    for i, (section, field, value) in enumerate(((2, size, 1 << 20), (2, addr, -4), (2, offset, -1), (5, size, 1 << 20))):
        files["merged-%d" % i] = change(merged, section, field, value)
    files["count"] = change(put(usual, 60, 2, 0), 0, size, 1 << 40)
    files["rows"] = put(usual, 58, 2, 40)
    files["names"] = change(usual, 5, size, 1 << 20)
    twice = host(b"data" * 4 + wrapper(FATBIN) * 2, kind=2, where=b".data")
    files["again"] = change(change(twice, 2, offset, 0), 2, size, len(twice) - 64)
    for i, (pointer, where) in enumerate(((0, b".hipFatBinSegment"), (FATBIN - 1, b".hipFatBinSegment"), (FATBIN + 9999, b".hipFatBinSegment"), (1 << 63, b".data"))):
        files["pointer-%d" % i] = host(wrapper(FATBIN) + wrapper(pointer), kind=2, where=where)
    files["words"] = host(wrapper(FATBIN) + bytes(8) + b"junk" * 6, kind=2)
    files["cut-wrapper"] = host(wrapper(FATBIN)[:20], kind=2)
    files["mips"] = host(wrapper(FATBIN), kind=2, machine=8)
    files["mips-rela"] = host(wrapper(FATBIN), 4, rela(SEGMENT + 8, 0, 8, FATBIN), machine=8)
    files["irelative"] = host(wrapper(FATBIN), 4, rela(SEGMENT + 8, 0, 37, FATBIN))
    files["none"] = host(wrapper(FATBIN), 4, rela(SEGMENT + 8, 0, 0, 1))
    files["unloaded"] = change(host(wrapper(FATBIN), 4, rela(SEGMENT + 8, 1, 1, 99), kind=2), 3, 8, 0)
    files["undefined"] = host(wrapper(0), 4, rela(SEGMENT + 8, 1, 1, 0), symbols[:30] + bytes(18))
    files["rel-symbol"] = host(wrapper(16), 9, struct.pack("<QQ", SEGMENT + 8, 1 << 32 | 1), symbols[:32] + struct.pack("<QQ", FATBIN - 16, 0))
    files["relr-last"] = host(wrapper(FATBIN), 19, struct.pack("<QQ", SEGMENT + 8 - 63 * 8, 1 << 63 | 1))
    files["relr-flood"] = host(wrapper(FATBIN), 19, struct.pack("<QQ", SEGMENT, (1 << 64) - 1) * 100)
    files["relr-wraps"] = host(wrapper(FATBIN), 19, struct.pack("<Q", (1 << 64) - 2) + b"\xff" * 24)
    many = pad(bundle(), 16)
    wrappers = b"".join(wrapper(FATBIN + i % 3 * len(many)) for i in range(30))
    bits = [sum(2 << i for i in range(63) if (at + i) % 3 == 1 and at + i < 60) | 1 for at in (0, 63)]
    files["relr-bits"] = host(wrappers, 19, struct.pack("<3Q", SEGMENT - 8, *bits) + b"".join(
        struct.pack("<Q", SEGMENT + 24 * i + 8) for i in range(20, 30)), fatbin=many * 3)
    files["many-relocations"] = host(wrapper(0) + wrapper(FATBIN) + wrapper(0), 4, b"".join(
        rela(0x100000 + 8 * i, 0, 8, i) for i in range(3000)) + rela(SEGMENT + 56, 0, 8, FATBIN) + rela(SEGMENT + 8, 0, 8, FATBIN))
    files["order-of-wrappers"] = host(b"".join(wrapper(FATBIN + i * len(many)) for i in (3, 0, 3)), kind=2, fatbin=many * 5)
    files["no-bundle"] = host(wrapper(FATBIN), kind=2, fatbin=b"no bundle")
    for name, section in ("half", b".hipFatBinSegment"), ("half-merged", b".data"):
        files[name] = host(wrapper(MARKER, HIPK) + wrapper(FATBIN, HIPF), kind=2, where=section, marker=b"marker")
    files["converted-word"] = host(wrapper(FATBIN + 1) + wrapper(MARKER, HIPK), kind=2, where=b".data", marker=b"marker")
    for name, flags in ("not-loaded", 1), ("code", 6):
        files[name] = elf(2, 62, [(b".hip_fatbin", 1, 2, FATBIN, bundle(), 0, 0, 0), (b".data", 1, flags, SEGMENT, wrapper(FATBIN), 0, 0, 0)])
    for name, data in files.items():
        write("%s/%s" % (d, name), data)


@an_input
def texts(d):
    """Sources and texts that begin like device code, names that no archive can have, and many members."""
    entries = [("host-x86_64-unknown-linux-gnu-", b"int x;\n"), ("hip-amdgcn-amd-amdhsa--gfx906", b"int y;\n")]
    files = {
        "a.c": b"// __CLANG_OFFLOAD_BUNDLE____START__ is written by the bundler\n/* .version 8.0 */\nint main(void) { return 0; }\n",
        "a.d": b"# a comment\na.o: a.c\n", "a.s": b'\n# a comment\n\t.version "01.01"\n\t.text\n', "b.s": b"\t.version 2\n\t.target\n",
        "b.ptx": b"// only comments\n// and no code\n", "a.ll": b'; ModuleID\ntarget triple = "amdgcn-amd-amdhsa"\n', "bc": b"BC is no bitcode",
        "short": b"\x7fTileIR", "shorter": b"\3\2\x23", "foo.s": b"\t.version 8.0\n\t.target foo\n\t.text\n", "b.d": o.text_bundle(entries, "#"),
        "kinds.hipfb": o.raw_bundle([(kind + "-amdgcn-amd-amdhsa--gfx1100", o.code_object("gfx1100", 300, kind)) for kind in ("hip", "a/../b#1\n", "k.2")]),
        "junk.bin": o.offload_binary(b"junk", arch=""),
        "many.a": o.ar([("%d.bc" % (i % 600), b"BC\xc0\xde" + (i % 600).to_bytes(4, "little") * 4) for i in range(700)])}
    for name in "a.hipi", "a.cui", "a.ii":
        files[name] = o.text_bundle(entries)
    for i, arch in enumerate(("gfx\n1", "..", "a/b", "\x7f")):
        files["arch%d.bin" % i] = o.offload_binary(o.code_object("gfx1100", 300, "a"), arch=arch)
    with open(os.path.join(os.path.dirname(TABLE), "../../tests/data/cuda/plain.fatbin"), "rb") as f:
        cuda = f.read()
    files["nv.so"] = elf(3, 62, [(b".nv_fatbin", 1, 2, FATBIN, cuda, 0, 0, 0)])
    for name, data in files.items():
        write("%s/%s" % (d, name), data)
