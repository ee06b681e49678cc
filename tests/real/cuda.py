# SPDX-License-Identifier: MIT
"""Take CUDA's fat binaries in a library apart, without any of our code."""
import ctypes
import struct

import zstandard

PTX, CUBIN = 1, 2
LZ4, ZSTD, SPECIFIC, FAMILY = 0x2000, 0x8000, 0x100000, 0x200000
MAGIC = 0xBA55ED50


def unpack(data, flags, size):
    if flags & ZSTD:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    if not flags & LZ4:
        return data
    out = ctypes.create_string_buffer(size)
    if ctypes.CDLL("liblz4.so.1").LZ4_decompress_safe(data, out, len(data), size) != size:
        raise ValueError("an LZ4 block does not decode")
    return out.raw


def container(data, at):
    """(arch, bytes) of each image of the container at AT."""
    at += struct.unpack_from("<H", data, at + 6)[0]
    end = at + struct.unpack_from("<Q", data, at - 8)[0]
    while at < end:
        kind, _, header, size, stored = struct.unpack_from("<HHIQI", data, at)
        number, _, _, flags, _, unpacked = struct.unpack_from("<IIIQQQ", data, at + 28)
        image = bytes(data[at + header:at + header + size])
        if flags & (LZ4 | ZSTD):
            image = unpack(image[:stored], flags, unpacked)
        name = "%d%s" % (number, "a" if flags & SPECIFIC else "f" if flags & FAMILY else "")
        if kind == CUBIN:
            yield "sm_" + name, image
        elif kind == PTX:
            yield "compute_" + name, image.rstrip(b"\0")
        else:
            raise ValueError("an image of kind %d" % kind)
        at += header + size


def entries(elf, key):
    """(key, arch, None, bytes) of each image of ELF, a fatparse.Elf, as fatparse.entries."""
    n = 0
    for name in ".nv_fatbin", "__nv_relfatbin":
        if name not in elf.named:
            continue
        data = memoryview(elf.content(elf.named[name]))
        at = 0
        while at + 16 <= len(data):
            magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
            if magic == MAGIC:
                for arch, image in container(data, at):
                    yield "%s#%d" % (key, n), arch, None, image
                n += 1
                at += header + size
            else:
                at += 8  # zeros up to the next one
