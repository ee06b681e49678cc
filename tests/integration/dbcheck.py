# SPDX-License-Identifier: MIT
"""What a packed file of a kernel database must become, worked out without any of our code."""
import os, re, struct

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
TENSILE = re.compile(r"(?:^|/)(rocblas|hipblaslt|hipsparselt)/library/(.*)")
NAMED = re.compile(r"(gfx9-4-generic|gfx\d+-(?:\d-)?generic|gfx\d+[a-f]?)((?:-xnack[+-])?)")


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
