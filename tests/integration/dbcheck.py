#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Check a packed tree of kernel databases against expectations made without any of our code.

dbcheck.py split TREE DB HOST     link TREE's files: files of databases into DB, the rest into HOST
dbcheck.py entries TREE ARCHIVES  archives state for each file what its path and bytes imply
dbcheck.py same TREE MOUNT        names, sizes, bytes and x bits are the same, in both directions

mkdb.py makes TREE.  "toc" at the mount's root does not belong to the tree.
"""
import filecmp, os, re, struct, sys

import readkpack

# of clang-22's e_flags: processor, and what the bits of xnack and sramecc say
MACH = {0x2a: "gfx803", 0x2c: "gfx900", 0x2f: "gfx906", 0x30: "gfx908", 0x36: "gfx1030",
        0x3f: "gfx90a", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x4a: "gfx1151",
        0x48: "gfx1200", 0x4e: "gfx1201", 0x49: "gfx1250", 0x4c: "gfx942", 0x4f: "gfx950",
        0x59: "gfx12-generic"}
FAMILIES = {
    "gfx11xx": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
    "gfx110x": "gfx1100 gfx1101 gfx1102 gfx1103",
    "gfx115x": "gfx1150 gfx1151 gfx1152 gfx1153",
    "gfx120x": "gfx1200 gfx1201"}
CHUNK = 131072
TENSILE = re.compile(r"(?:^|/)(rocblas|hipblaslt|hipsparselt)/library/(.*)")
NAMED = re.compile(r"(gfx9-4-generic|gfx\d+-(?:\d-)?generic|gfx\d+[a-f]?)((?:-xnack[+-])?)")


def files(tree):
    out = []
    for where, dirs, names in os.walk(tree):
        if where == tree and "toc" in dirs:
            dirs.remove("toc")
        out += [os.path.relpath(os.path.join(where, n), tree) for n in names]
    return sorted(out)


def elf_target(data):
    """Target ID of an AMDGPU ELF, or None."""
    if data[:4] != b"\x7fELF" or struct.unpack_from("<H", data, 18) != (224,):
        return None
    flags, = struct.unpack_from("<I", data, 48)
    target = MACH[flags & 0xff]
    for name, at in (("sramecc", 10), ("xnack", 8)):
        target += {2: ":%s-" % name, 3: ":%s+" % name}.get(flags >> at & 3, "")
    return target


def named_target(path):
    """What directory and name say, the directory first; a stepping's is the processor's."""
    for part in path.split("/"):
        found = NAMED.findall(part)
        if found:
            return found[-1][0] + found[-1][1].replace("-x", ":x")
    return None


def tensile_role(name):
    for pattern, role in (
            (r"TensileLibrary_lazy_.*\.dat(\.zlib)?$|TensileLibrary(_gfx\w+)?\.dat$"
             r"|TensileLibrary\.yaml$", "parent"),
            (r"_Mapping\.dat", "mapping"), (r"_fallback", "fallback"),
            (r"TensileLibrary_.*\.dat(\.zlib)?$", "child"),
            (r"^(extop_|hip(blas|sparse)ltExtOpLibrary)", "extop"), (r"Transform", "transform"),
            (r"^Kernels", "helper"), (r"Manifest\.txt$", "manifest"), (r"\.(co|hsaco)$", "code")):
        if re.search(pattern, name):
            return role
    return "file"


def expect_tensile(path, data, found):
    library, rest = found.groups()
    target = elf_target(data) or named_target(rest)
    return library, tensile_role(os.path.basename(path)), [target or "generic"]


def expect_aotriton(path, data, found):
    pack, rest = found.group(1).split("/", 1)
    role = {"aks2": "kernel", "zip": None}.get(rest.rpartition(".")[2], "signature")
    return "aotriton", role, FAMILIES.get(pack, pack).split()


def expect_drawn_aotriton(path, data, found):
    return "aotriton", "kernel", [elf_target(data)]


def expect_rocfft(path, data, found):
    arch = found.group(1)
    return "rocfft", "cache", [arch[1:] if arch else "generic"]


def expect_fft_table(path, data, found):
    if path.endswith(".db"):
        return "rocfft", "cache", ["generic"]
    return "rocfft", None, [elf_target(data)]


def expect_miopen(path, data, found):
    name = found.group(1)
    db = re.match(r"(gfx(?:90[068a]|942|1030|803))(_nosramecc)?", name)
    role = "perf" if name.endswith(".db.txt") and ".fdb." not in name else \
        "find" if ".fdb.txt" in name else "kernels" if name.endswith(".kdb") else "model"
    if name in ("gfx908.tn.model", "gfx908_metadata.tn.model"):
        return "miopen", role, ["generic"]
    return "miopen", role, [db.group(1) + (":sramecc-" if db.group(2) else "")]


def expect_composable(path, data, found):
    arch, ending = found.groups()
    if ending == "so":
        return "miopen", "library", [arch]
    return "composablekernel", "archive", [arch]


def expect_provider(path, data, found):
    return "hipkernelprovider", None, [elf_target(data) or named_target(found.group(1))]


RULES = (
    (TENSILE, expect_tensile),
    (re.compile(r"aotriton\.images/amd-(.*)"), expect_aotriton),
    (re.compile(r"aotriton/kernels/(.*)"), expect_drawn_aotriton),
    (re.compile(r"lib/rocfft/rocfft_kernel_cache(_.*)?\.db$"), expect_rocfft),
    (re.compile(r"lib/rocfft/kernels(\.db$|/.*\.co$)"), expect_fft_table),
    (re.compile(r"miopen/db/(.*)"), expect_miopen),
    (re.compile(r"libMIOpenCKGroupedConv_(gfx\w+)\.(so|a)$"), expect_composable),
    (re.compile(r"hipdnn_plugins/engines/(?:hip_kernel_provider/asm_kernels|arch_content)/(.*)"),
     expect_provider),
)


def expect(tree, path):
    """(library, role, arches) of a file of a database; None: it is no such file."""
    for pattern, rule in RULES:
        found = pattern.search(path)
        if found:
            with open(os.path.join(tree, path), "rb") as f:
                return rule(path, f.read(), found)
    return None


def entry_type(path):
    ending = os.path.basename(path).rpartition(".")[2]
    return ending if "." in path and re.fullmatch("[a-z][a-z0-9]{0,15}", ending) else "bin"


def check_entries(tree, archives):
    """Every file once, in the archive of its GPU or family, said to be what it is."""
    seen, wrong = {}, []
    for name in sorted(os.listdir(archives)):
        archive = readkpack.Archive(os.path.join(archives, name))
        label = name[:-len(".kpack")].rpartition("_")[2]
        for key, arch, entry in archive.entries():
            meta = entry.get("metadata", {})
            if "path" not in meta or key != meta["path"]:
                continue
            seen.setdefault(key, []).append((label, arch, entry["ordinal"], entry))
    for path in files(tree):
        want = expect(tree, path)
        have = seen.pop(path, [])
        if want and have:
            wrong += check_entry(tree, path, want, have)
        elif want or have:
            wrong.append("%s: %s" % (path, "not packed" if want else "packed"))
    return wrong + ["%s: not of the tree" % p for p in seen]


def check_entry(tree, path, want, have):
    library, role, arches = want
    meta = have[0][3]["metadata"]
    size = os.path.getsize(os.path.join(tree, path))
    labels, ordinals = {h[0] for h in have}, {h[2] for h in have}
    facts = [("library", library, meta["library"]), ("arches", arches, sorted(h[1] for h in have)),
             ("type", entry_type(path), have[0][3]["type"]),
             ("size", size, have[0][3]["original_size"]),
             ("archives, ordinals", (1, 1), (len(labels), len(ordinals))),
             ("family", len(arches) > 1, labels.pop() in FAMILIES),
             ("chunk", CHUNK if size > CHUNK and path.endswith((".db", ".kdb", ".zip")) else None,
              meta.get("chunk"))]
    if role:
        facts.append(("role", role, meta["role"]))
    return ["%s: %s: %s, not %s" % (path, what, is_, should)
            for what, should, is_ in facts if is_ != should]


def check_same(tree, mount):
    a, b = files(tree), files(mount)
    wrong = ["only in %s: %s" % (tree, p) for p in a if p not in set(b)]
    wrong += ["only in %s: %s" % (mount, p) for p in b if p not in set(a)]
    for p in sorted(set(a) & set(b)):
        x, y = os.path.join(tree, p), os.path.join(mount, p)
        s, t = os.stat(x), os.stat(y)
        if s.st_size != t.st_size or s.st_mode & 0o111 != t.st_mode & 0o111:
            wrong.append("%s: size %d, mode %o" % (p, t.st_size, t.st_mode))
        if not filecmp.cmp(x, y, shallow=False):
            wrong.append("%s: other bytes" % p)
    return wrong


def split(tree, db, host):
    for p in files(tree):
        out = os.path.join(db if expect(tree, p) else host, p)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        os.link(os.path.join(tree, p), out, follow_symlinks=False)
    return []


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    faults = {"split": split, "entries": check_entries, "same": check_same}[sys.argv[1]](*sys.argv[2:])
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(1 if faults else 0)
