# SPDX-License-Identifier: MIT
"""layouts.py odd DIR: libraries with odd containers; layouts.py lies FILE DIR: FILE with each part of its layout replaced."""
import hashlib
import itertools
import os
import struct
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import mkfat  # noqa: E402
import msgpack  # noqa: E402
import zstandard  # noqa: E402
from mkoffload import raw_bundle  # noqa: E402

HOST, HIP = "host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--"


def one(arch, seed, size=700):
    return mkfat.code_object(arch, size, seed)


def some(seed, *arches, host=b""):
    return [(HOST, host)] * (host is not None) + [(HIP + a, one(a, seed + a)) for a in arches]


def placed(size, *entries, **between):
    """A bundle with entries at given places: (ID, offset, size, bytes); and single bytes."""
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)) + b"".join(
        struct.pack("<QQQ", at, n, len(i)) + i.encode() for i, at, n in entries)
    data = bytearray(head) + bytes(size - len(head))
    for i, at, n in entries:
        if n:
            data[at:at + n] = one("gfx1100", i, n)[:n]
    for at, value in between.items():
        data[int(at[1:])] = value
    return bytes(data)


def ccob(plain, version=3, method=1, packed=None, digest=b"its hash", **how):
    if packed is None:
        packed = zstandard.ZstdCompressor(**how).compress(plain) if method else zlib.compress(plain, **how)
    sizes = {1: ("<I", len(plain)), 2: ("<II", 24 + len(packed), len(plain)), 3: ("<QQ", 32 + len(packed), len(plain))}[version]
    return b"CCOB" + struct.pack("<HH", version, method) + struct.pack(*sizes) + digest + packed


def join(parts, align, tail=0):
    data, starts = b"", []
    for p in parts:
        data += bytes(-len(data) % align)
        starts.append(len(data))
        data += p
    return data + bytes(tail), starts[::-1][:max(1, len(starts) - 1)]  # no wrapper leads to the first


def odd():
    def unequal(align):
        return join([raw_bundle(some("a", "gfx90a:xnack+", "gfx1100"), align), raw_bundle(some("b", "gfx1201", "gfx1100", host=None), align),
                     raw_bundle(some("c", "gfx90a:xnack+", "gfx1100", host=None), align)], align, 100)

    bundle = raw_bundle(some("d", "gfx90a", "gfx1100"), 4096)
    large = raw_bundle([(HIP + a, one(a, "large", 40000)) for a in ("gfx1100", "gfx90a")], 4096)
    text = raw_bundle([(HIP + a, one(a, "", 64)[:64] + b"".join(b"%d %d\n" % (i * i, i) for i in range(9000))) for a in ("gfx1100", "gfx90a")], 4096)
    with open(os.path.join(os.path.dirname(__file__), "..", "data", "amdgpu", "v4.hsaco"), "rb") as f:
        code = f.read()
    with open(os.path.join(os.path.dirname(__file__), "..", "fuzz", "corpus", "strip", "good-build-id"), "rb") as f:
        debug = f.read()
    i = [HIP + a for a in ("gfx90a", "gfx1100", "gfx1201", "gfx90a:xnack+")]
    files = {"align%d" % n: unequal(n) for n in (1, 3, 8, 16, 4096)}
    files.update({
        "no-entries": join([raw_bundle([])] * 2, 8, 5000), "tail": join([bundle], 4096, 5000),
        "host": join([raw_bundle([(i[0], one("gfx90a", "e")), (HOST, b"bytes of the host"), ("host-aarch64-unknown-linux", b"more")], 64)], 64),
        "out-of-order": join([placed(900, (i[0], 700, 100), (i[1], 300, 150), (i[2], 500, 120))], 8),
        "shared": join([placed(700, (i[0], 300, 300), (i[3], 300, 300), (i[1], 350, 250), (i[2], 360, 100))], 8),
        "empty": join([placed(500, (HOST, 1 << 20, 0), (i[0], 256, 100), (i[1], 0, 0), (i[2], 2**64 - 1, 0))], 8),
        "between": join([placed(1200, (i[0], 1000, 200), (i[1], 300, 100), b299=1, b500=2, b510=3, b999=4)], 8),
        "every": join([placed(460, (HOST, 200, 20), (i[0], 300, 100), b299=1), ccob(raw_bundle(some("g", "gfx1100"), 8), 2, 0), code], 64),
        "debug": join([debug, debug + bytes(64), raw_bundle([(i[1], debug), (i[0], one("gfx90a", "h"))], 16)], 4096),
        "object": join([bytes(16) + code, bundle], 16),
    })
    for version, method in itertools.product((1, 2, 3), (0, 1)):
        files["ccob%d-%s" % (version, ("zlib", "zstd")[method])] = join(
            [ccob(unequal(4096)[0], version, method), ccob(bundle, version, method)], 4096)
    for level in 1, 8, 15, 22:
        files["level%02d" % level] = join([ccob(large, level=level)], 4096)
    # no level gives these bytes; the frames are shorter than ours, as they have no size
    for name, how in (("checksum", dict(level=7, write_checksum=True)),
                      ("best", dict(compression_params=zstandard.ZstdCompressionParameters(
                          strategy=9, search_log=9, chain_log=18, hash_log=18, target_length=4096, min_match=3, write_content_size=False)))):
        files["foreign-" + name] = join([ccob(text, **how), ccob(large, **how), ccob(bundle, **how)], 4096, 99)
    # nor is there room for ours, which state the size of a payload that cannot be compressed
    noise = one("gfx1100", "", 64)[:64] + b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(2200))
    files["foreign-short"] = join([ccob(raw_bundle([(HIP + "gfx1100", noise)], 8), compression_params=
                                        zstandard.ZstdCompressionParameters(write_content_size=False))], 4096)
    return {name: mkfat.shared_library(*f) for name, f in files.items()}


# ---- lies -----------------------------------------------------------------------------------

class Pairs(list):
    """A map."""


VALUES = [None, True, -1, 0, 7, 1 << 20, 1 << 33, 2**64 - 1, "x", "a\0b", "x" * 70, b"xyz", [], Pairs(), [0, 0, 0, 0]]


def pack(node):
    if isinstance(node, (list, Pairs)) and not isinstance(node, Pairs):
        return msgpack.Packer().pack_array_header(len(node)) + b"".join(map(pack, node))
    if isinstance(node, Pairs):
        return msgpack.Packer().pack_map_header(len(node)) + b"".join(pack(k) + pack(v) for k, v in node)
    return msgpack.packb(node)


def changed(node):
    """Every way to replace, leave out or repeat a part of NODE."""
    for value in VALUES:
        yield value
    if isinstance(node, bytes):
        yield node + b"\1"
        for n, byte in enumerate(node[:200]):
            yield node[:n] + node[n + 1:]
            for other in {0, byte ^ 1, byte ^ 128, 255} - {byte}:
                yield node[:n] + bytes([other]) + node[n + 1:]
    if isinstance(node, Pairs):
        for n, (key, value) in enumerate(node):
            yield Pairs(node[:n] + node[n + 1:])
            yield Pairs(node + [(key, value)])
            yield Pairs(node + [("new", value)])
            for other in changed(value):
                yield Pairs(node[:n] + [(key, other)] + node[n + 1:])
    elif isinstance(node, list):
        for n, value in enumerate(node):
            yield node[:n] + node[n + 1:]
            yield node + [value]
            for other in changed(value):
                yield node[:n] + [other] + node[n + 1:]


def section(old, name):
    """Where the header of a section is, and its bytes."""
    shoff, n, last = struct.unpack_from("<Q12xHH", old, 40)
    rows = [struct.unpack_from("<IIQQQQIIQQ", old, shoff + 64 * i) for i in range(n)]
    for i, r in enumerate(rows):
        if old[rows[last][4] + r[0]:].split(b"\0")[0] == name:
            return shoff + 64 * i, old[r[4]:r[4] + r[5]]


def lies(path):
    with open(path, "rb") as f:
        old = f.read()
    at, data = section(old, b".rocm_kpack_layout")
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    good = msgpack.unpackb(plain, object_pairs_hook=Pairs)
    raw = [pack(node) for node in changed(good)] + [plain[:n] for n in range(0, len(plain), 17)]
    raw = [zstandard.ZstdCompressor(level=1).compress(lie) for lie in raw]
    raw += [data[:n] for n in range(0, len(data), 17)] + [plain, b"\x28\xb5\x2f\xfd\xe0\0\0\0\x10" + bytes(50),
                                                         b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\1" + bytes(50), b"\x28\xb5\x2f\xfd\0\x58" + bytes(50)]
    for n, lie in enumerate(raw):
        out = bytearray(old) + bytes(-len(old) % 8) + lie
        struct.pack_into("<QQ", out, at + 24, len(out) - len(lie), len(lie))
        yield "%04d" % n, out


def main():
    files = odd().items() if sys.argv[1] == "odd" else lies(sys.argv[2])
    os.makedirs(sys.argv[-1])
    for name, data in files:
        with open(os.path.join(sys.argv[-1], name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
