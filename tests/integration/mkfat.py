#!/usr/bin/python3
"""Make a HIP fat library, deterministically and without a compiler.

mkfat.py [options] OUT

  --bundles N         bundles in it (3)
  --arches A,B,...    target IDs of each bundle (gfx90a:xnack+,gfx1030,gfx1100)
  --size BYTES        approximate size of a code object (5000; every object differs a little)
  --seed TEXT         another seed gives other contents (0)
  --align N           alignment of bundles, and of objects in a bundle (4096)
  --ragged            bundle i lacks the i-th arch: wrapper and arch counts differ
  --same              all bundles have the contents of the first
  --share N           N wrappers per bundle (1)
  --reverse           the wrappers lead to the bundles from the last to the first
  --loose N           no wrapper leads to the last N bundles (0)
  --no-pie            a fixed address, pointers in place, no relocations; not for dlopen()
  --twice ARCH        each bundle has ARCH twice, the second of kind openmp
  --ccob none|all|odd which bundles are compressed (none)
  --ccob-version 2|3  version of the compressed bundles (3)
  --bare              only the bundles, as a file (the bytes of .hip_fatbin)
  --objects DIR       also write every code object to DIR/<bundle>-<arch>

OUT is an x86-64 shared library that dlopen() accepts: .hip_fatbin, a .hipFatBinSegment of
24-byte wrappers whose pointers are only RELATIVE relocations (zero in the file, as from
lld), and the symbols answer (a function that returns 42) and wrappers.
The code objects are AMDGPU ELF headers (code object v6) followed by bytes that compress
about three to one.
"""
import argparse, hashlib, os, struct

MACH = dict(gfx803=0x2a, gfx900=0x2c, gfx906=0x2f, gfx908=0x30, gfx1030=0x36, gfx90a=0x3f,
            gfx1100=0x41, gfx1101=0x46, gfx1102=0x47, gfx1200=0x48, gfx942=0x4c, gfx1201=0x4e)


def align(n, a):
    return (n + a - 1) // a * a


def code_object(arch, size, seed):
    name, *features = arch.split(":")
    flags = MACH.get(name, 0)
    for f in features:
        on = 3 if f[-1] == "+" else 2
        flags |= on << (8 if f.startswith("xnack") else 10)
    ident = b"\x7fELF\x02\x01\x01" + bytes([64, 4]) + bytes(7)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0)
    text = hashlib.shake_128(("%s/%s" % (seed, arch)).encode())
    size += text.digest(1)[0] % 64
    block = text.digest(max(16, size // 3))
    return (header + block * 4)[:max(size, 64)]


def bundle(objects, ccob, alignment):
    """objects: (arch, bytes), or (arch@kind, bytes); ccob: 0, 2 or 3."""
    ids = [b"host-x86_64-unknown-linux-gnu-"]
    for name, _ in objects:
        arch, _, kind = name.partition("@")
        ids.append(("%s-amdgcn-amd-amdhsa--%s" % (kind or "hipv4", arch)).encode())
    data = [b""] + [d for _, d in objects]
    at = 32 + sum(24 + len(i) for i in ids)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids))
    body = b""
    for i, d in zip(ids, data):
        body += bytes(align(at + len(body), alignment) - at - len(body))
        head += struct.pack("<QQQ", at + len(body), len(d), len(i)) + i
        body += d
    plain = head + body
    if not ccob:
        return plain
    import zstandard
    packed = zstandard.ZstdCompressor(level=3).compress(plain)
    digest = hashlib.md5(plain).digest()[:8]
    if ccob == 2:
        return b"CCOB" + struct.pack("<HHII", 2, 1, 24 + len(packed), len(plain)) + digest + packed
    return b"CCOB" + struct.pack("<HHQQ", 3, 1, 32 + len(packed), len(plain)) + digest + packed


def shared_library(fatbin, pointers, base=0):
    """pointers: offset in FATBIN for each wrapper.  With a BASE address, not relocated."""
    page = 4096
    dynstr = b"\0answer\0wrappers\0libfat.so\0"
    n = len(pointers)
    # name: (type, flags, align, size, entsize, link, info); offset and address are equal
    order = ["", ".hash", ".dynsym", ".dynstr", ".rela.dyn", ".hip_fatbin", ".text",
             ".hipFatBinSegment", ".dynamic", ".shstrtab"]
    index = {name: i for i, name in enumerate(order)}
    size = {".hash": 4 * (2 + 1 + 3), ".dynsym": 3 * 24, ".dynstr": len(dynstr),
            ".rela.dyn": 0 if base else 24 * n, ".hip_fatbin": len(fatbin), ".text": 6,
            ".hipFatBinSegment": 24 * n, ".dynamic": 16 * 10}
    start = {".hip_fatbin": page, ".text": page, ".hipFatBinSegment": page}
    at, where = 64 + 56 * 6, {}
    for name in order[1:-1]:
        at = align(at, start.get(name, 8))
        where[name] = at
        at += size[name]
    end = at
    shstrtab = b"\0" + b"".join(s.encode() + b"\0" for s in order[1:])
    where[".shstrtab"], size[".shstrtab"] = end, len(shstrtab)
    sections_at = align(end + len(shstrtab), 8)

    out = bytearray(sections_at)

    def put(name, data):
        out[where[name]:where[name] + len(data)] = data

    put(".hash", struct.pack("<6I", 1, 3, 1, 0, 2, 0))
    put(".dynsym", bytes(24) +
        struct.pack("<IBBHQQ", 1, 0x12, 0, index[".text"], base + where[".text"], 6) +
        struct.pack("<IBBHQQ", 8, 0x11, 0, index[".hipFatBinSegment"],
                    base + where[".hipFatBinSegment"], 24 * n))
    put(".dynstr", dynstr)
    put(".rela.dyn", b"" if base else b"".join(
        struct.pack("<QQQ", where[".hipFatBinSegment"] + 24 * i + 8, 8, where[".hip_fatbin"] + p)
        for i, p in enumerate(pointers)))
    put(".hip_fatbin", fatbin)
    put(".text", b"\xb8\x2a\0\0\0\xc3")
    put(".hipFatBinSegment", b"".join(struct.pack(
        "<IIQQ", 0x48495046, 1, base + where[".hip_fatbin"] + p if base else 0, 0)
        for p in pointers))
    put(".dynamic", b"".join(struct.pack("<QQ", t, v) for t, v in (
        (14, 17), (4, base + where[".hash"]), (5, base + where[".dynstr"]),
        (6, base + where[".dynsym"]), (10, len(dynstr)), (11, 24),
        (7, base + where[".rela.dyn"]), (8, size[".rela.dyn"]), (9, 24), (0, 0))))
    put(".shstrtab", shstrtab)

    def load(flags, a, b):
        return struct.pack("<IIQQQQQQ", 1, flags, a, base + a, base + a, b - a, b - a, page)

    rw = where[".hipFatBinSegment"]
    dyn, text = where[".dynamic"], where[".text"]
    phdrs = struct.pack("<IIQQQQQQ", 6, 4, 64, base + 64, base + 64, 56 * 6, 56 * 6, 8)
    phdrs += load(4, 0, where[".hip_fatbin"] + len(fatbin)) + load(5, text, text + 6)
    phdrs += load(6, rw, end)
    phdrs += struct.pack("<IIQQQQQQ", 2, 6, dyn, base + dyn, base + dyn, 160, 160, 8)
    phdrs += struct.pack("<IIQQQQQQ", 0x6474e551, 6, 0, 0, 0, 0, 0, 16)
    out[0:64] = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2 if base else 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 6, 64, len(order), len(order) - 1)
    out[64:64 + len(phdrs)] = phdrs

    rows = {".hash": (5, 2, 8, 4, ".dynsym", 0), ".dynsym": (11, 2, 8, 24, ".dynstr", 1),
            ".dynstr": (3, 2, 1, 0, "", 0), ".rela.dyn": (4, 2, 8, 24, ".dynsym", 0),
            ".hip_fatbin": (1, 2, page, 0, "", 0), ".text": (1, 6, 16, 0, "", 0),
            ".hipFatBinSegment": (1, 3, 8, 0, "", 0), ".dynamic": (6, 3, 8, 16, ".dynstr", 0),
            ".shstrtab": (3, 0, 1, 0, "", 0)}
    out += bytes(64)
    for name in order[1:]:
        kind, flags, al, ent, link, info = rows[name]
        out += struct.pack("<IIQQQQIIQQ", shstrtab.index(b"\0" + name.encode() + b"\0") + 1, kind,
                           flags, base + where[name] if flags else 0, where[name], size[name],
                           index[link], info, al, ent)
    return bytes(out)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--bundles", type=int, default=3)
    p.add_argument("--arches", default="gfx90a:xnack+,gfx1030,gfx1100")
    p.add_argument("--size", type=int, default=5000)
    p.add_argument("--seed", default="0")
    p.add_argument("--align", type=int, default=4096)
    p.add_argument("--ragged", action="store_true")
    p.add_argument("--same", action="store_true")
    p.add_argument("--share", type=int, default=1)
    p.add_argument("--reverse", action="store_true")
    p.add_argument("--loose", type=int, default=0)
    p.add_argument("--no-pie", action="store_true")
    p.add_argument("--twice")
    p.add_argument("--ccob", choices=["none", "all", "odd"], default="none")
    p.add_argument("--ccob-version", type=int, choices=[2, 3], default=3)
    p.add_argument("--bare", action="store_true")
    p.add_argument("--objects")
    p.add_argument("out")
    o = p.parse_args()
    arches = o.arches.split(",")
    parts, at, pointers = [], 0, []
    for b in range(o.bundles):
        chosen = [a for i, a in enumerate(arches) if not (o.ragged and i == b % len(arches))]
        seed = "%s/%d" % (o.seed, 0 if o.same else b)
        objects = [(a, code_object(a, o.size, seed)) for a in chosen]
        if o.twice:
            objects.append((o.twice + "@openmp", code_object(o.twice, o.size, seed + "/openmp")))
        if o.objects:
            os.makedirs(o.objects, exist_ok=True)
            for a, d in objects:
                with open("%s/%d-%s" % (o.objects, b, a), "wb") as f:
                    f.write(d)
        packed = o.ccob == "all" or (o.ccob == "odd" and b % 2)
        data = bundle(objects, o.ccob_version if packed else 0, o.align)
        gap = align(at, o.align) - at
        parts += [bytes(gap), data]
        if b < o.bundles - o.loose:
            pointers += [at + gap] * o.share
        at += gap + len(data)
    if o.reverse:
        pointers.reverse()
    fatbin = b"".join(parts)
    with open(o.out, "wb") as f:
        f.write(fatbin if o.bare else shared_library(
            fatbin, pointers, 0x400000 if o.no_pie else 0))
    if not o.bare:
        os.chmod(o.out, 0o755)


if __name__ == "__main__":
    main()
