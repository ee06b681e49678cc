#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A tree split as AMD's split_artifacts leaves it, without any of its code or ours.

amdsplit.py [--none] [--gpu-targets ARCH]... ARTIFACT OUTPUT NAME

ARTIFACT has an artifact_manifest.txt.  Fat x86-64 libraries with RELATIVE relocations are
converted as AMD's transform does it: the marker at the end of the file, the program headers
behind it, whole pages of .hip_fatbin removed (bytes before and after them stay, and so does a
section without a whole page), no layout, no hashes.  With --none archives are not compressed.
Of each architecture's code there is one archive, in the first prefix that has some.
"""
import argparse, os, shutil, struct, sys

import msgpack

import fatparse, mkarchive

PAGE, MANIFEST = 4096, "artifact_manifest.txt"


def up(n):
    return -(-n // PAGE) * PAGE


class Headers:
    """Program or section headers that can be changed."""
    def __init__(self, data, at, size, count, form):
        self.rows = [list(struct.unpack_from(form, data, at + i * size)) for i in range(count)]
        self.form = form

    def bytes(self):
        return b"".join(struct.pack(self.form, *row) for row in self.rows)


# positions in program headers (type, flags, offset, vaddr, paddr, filesz, memsz, align)
PT_LOAD, PT_PHDR = 1, 6
# and in section headers (name, type, flags, addr, offset, size, link, info, align, entsize)


def place(data, marker, elf):
    """Where bytes at the end of the file can be mapped."""
    end = up(max(p[3] + p[6] for p in elf.rows if p[0] == PT_LOAD))
    data += bytes(up(len(data)) - len(data))
    at = len(data)
    data += marker
    return at, end


def convert(path, search_path, name):
    elf = fatparse.Elf(path)
    data = bytearray(elf.data)
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phnum, = struct.unpack_from("<H", data, 56)
    shnum, shstrndx = struct.unpack_from("<HH", data, 60)
    ph = Headers(data, phoff, 56, phnum, "<IIQQQQQQ")
    sh = Headers(data, shoff, 64, shnum, "<IIQQQQIIQQ")
    marker = msgpack.packb({"kpack_search_paths": [search_path], "kernel_name": name})

    # section and its name
    names = sh.rows[shstrndx]
    text = bytes(data[names[4]:names[4] + names[5]])
    names[4], names[5] = len(data), len(text) + len(b".rocm_kpack_ref\0")
    data += text + b".rocm_kpack_ref\0"
    at, vaddr = place(data, marker, ph)
    sh.rows.append([len(text), 1, 2, vaddr, at, len(marker), 0, 0, 1, 0])
    ph.rows.append([PT_LOAD, 4, at, vaddr, vaddr, len(marker), len(marker), PAGE])

    # pointers and magic
    segment, fatbin = (next(r for r in sh.rows if r[0] == elf.named[n][0])
                       for n in (".hipFatBinSegment", ".hip_fatbin"))
    relocated = set()
    for r in (r for r in sh.rows if r[1] == 4):
        for row in range(r[4], r[4] + r[5], 24):
            where, info = struct.unpack_from("<QQ", data, row)
            if segment[3] <= where < segment[3] + segment[5] and (where - segment[3]) % 24 == 8:
                assert info & 0xffffffff == 8
                struct.pack_into("<q", data, row + 16, vaddr)
                relocated.add(where)
    for i in range(segment[5] // 24):
        assert segment[3] + 24 * i + 8 in relocated, "no relocation for wrapper %d" % i
        row = segment[4] + 24 * i
        assert data[row:row + 4] == b"FPIH"
        data[row:row + 24] = b"HIPK" + struct.pack("<IQQ", 1, 0, i)

    # whole pages of device code
    start, end = up(fatbin[4]), fatbin[4] + fatbin[5]
    last = end // PAGE * PAGE
    if last == end:
        last -= PAGE
    gone = max(0, last - start)
    if gone:
        load = next(p for p in ph.rows if p[0] == PT_LOAD and p[2] <= fatbin[4] < p[2] + p[5])
        delta = load[3] - load[2]
        pieces = [[PT_LOAD, load[1], load[2], load[3], load[3], start - load[2], start - load[2], load[7]],
                  [PT_LOAD, load[1], start, start + delta, start + delta, 0, end - start, load[7]]]
        if load[2] + load[5] > end:
            rest = load[2] + load[5] - end
            pieces.append([PT_LOAD, load[1], end, end + delta, end + delta, rest, rest, load[7]])
        i = ph.rows.index(load)
        ph.rows[i:i + 1] = [p for p in pieces if p[6]]
        del data[start:start + gone]
        for row, field in [(p, 2) for p in ph.rows] + [(s, 4) for s in sh.rows]:
            if row[field] > start:
                row[field] -= gone
        fatbin[1] = 8

    # tables at the end; the covering segment and its offset are one
    table = next((p for p in ph.rows if p[0] == PT_PHDR), None)
    size = 56 * (-(-(len(ph.rows) + 1) // 16) * 16)
    at, vaddr = place(data, bytes(size), ph)
    ph.rows.append([PT_LOAD, 4, at, vaddr, vaddr, size, size, PAGE])
    if table:
        table[2:7] = [at, vaddr, vaddr, size, size]
    data[at:at + 56 * len(ph.rows)] = ph.bytes()
    struct.pack_into("<QQ", data, 32, at, len(data))
    struct.pack_into("<H", data, 56, len(ph.rows))
    struct.pack_into("<H", data, 60, len(sh.rows))
    data += sh.bytes()
    os.unlink(path)
    with open(path, "wb") as f:
        f.write(data)


def is_fat(path):
    try:
        return fatparse.Elf(path).named[".hip_fatbin"][1] != 8
    except (AssertionError, KeyError, struct.error, IndexError, ValueError):
        return False


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--none", action="store_true")
    p.add_argument("--gpu-targets", action="append")
    p.add_argument("artifact")
    p.add_argument("output")
    p.add_argument("name")
    o = p.parse_args()
    with open(os.path.join(o.artifact, MANIFEST)) as f:
        prefixes = [line.strip() for line in f if line.strip()]
    generic = os.path.join(o.output, o.name + "_generic")
    archives, homes = {}, {}
    for prefix in prefixes:
        if not os.path.exists(os.path.join(o.artifact, prefix)):
            continue
        shutil.copytree(os.path.join(o.artifact, prefix), os.path.join(generic, prefix), symlinks=True)
        for at, _, files in os.walk(os.path.join(generic, prefix)):
            for path in (os.path.join(at, name) for name in sorted(files)):
                if os.path.islink(path) or not is_fat(path):
                    continue
                relative = os.path.relpath(path, os.path.join(generic, prefix))
                counts = {}
                for objects in fatparse.containers(fatparse.Elf(path).fatbin()).values():
                    for kind, arch, code in objects:
                        i = counts[arch] = counts.get(arch, -1) + 1
                        if o.gpu_targets and arch.split(":")[0] not in o.gpu_targets:
                            continue
                        archive = archives.setdefault(arch, mkarchive.Archive(
                            "none" if o.none else "zstd-per-kernel", o.name, arch, [arch]))
                        archive.add("%s/%s#%d" % (prefix, relative, i), arch, bytes(code), hash=False,
                                    target="%s-amdgcn-amd-amdhsa--%s" % (kind, arch), source_prefix=prefix)
                        homes.setdefault(arch, set()).add(prefix)
                convert(path, "../" * relative.count("/") + ".kpack/%s_@GFXARCH@.kpack" % o.name,
                        "%s/%s" % (prefix, relative))
    for arch, archive in archives.items():
        tree = os.path.join(o.output, "%s_%s" % (o.name, arch))
        at = os.path.join(tree, min(homes[arch]), ".kpack")
        os.makedirs(at)
        archive.write(os.path.join(at, "%s_%s.kpack" % (o.name, arch)))
        with open(os.path.join(tree, MANIFEST), "w") as f:
            f.writelines(prefix + "\n" for prefix in sorted(homes[arch]))
    with open(os.path.join(generic, MANIFEST), "w") as f:
        f.writelines(prefix + "\n" for prefix in prefixes)


if __name__ == "__main__":
    sys.exit(main())
