"""Archives of 1,000,000 entries: 250,000 keys for 4 architectures, zstd-per-kernel.

Written once into build/bench, with msgpack and zstandard; fields in the order of AMD's writer.
"""
import os, struct

import bench

ARCHES = ["gfx90a", "gfx942", "gfx1030", "gfx1100"]
KEYS = 250000


def key(i, ordered):
    return "opt/rocm-7.1.0/lib/rocm/kernels/module%03d/kernel_%06d_f32_gemm_bias_relu_strided.so.1#0" % (
        i // 500 if ordered else i % 500, i)


def make(path, ordered):
    import msgpack, zstandard
    compressor = zstandard.ZstdCompressor(level=1)
    with open(path + ".tmp", "wb") as f:
        f.write(bytes(64) + struct.pack("<I", KEYS * len(ARCHES)))
        toc, ordinal = {}, 0
        for i in range(KEYS):
            arches = {}
            for arch in ARCHES:
                data = b"\x7fELF" + struct.pack("<Q", ordinal) * 20
                frame = compressor.compress(data)
                f.write(struct.pack("<I", len(frame)) + frame)
                arches[arch] = {"type": "hsaco", "ordinal": ordinal, "original_size": len(data)}
                ordinal += 1
            toc[key(i, ordered)] = arches
        end = f.tell()
        packer = msgpack.Packer()
        f.write(packer.pack({
            "format_version": 1, "group_name": "million", "gfx_arch_family": "million",
            "gfx_arches": ARCHES, "toc": toc, "compression_scheme": "zstd-per-kernel",
            "zstd_offset": 64, "zstd_size": end - 64}))
        f.seek(0)
        f.write(struct.pack("<4sIQ", b"KPAK", 1, end))
    os.rename(path + ".tmp", path)


def archive(ordered):
    """The path of the archive whose keys are in order, or of the other one."""
    path = os.path.join(bench.WORK, "million-%s.kpack" % ("ordered" if ordered else "scattered"))
    if not os.path.exists(path):
        make(path, ordered)
    return path
