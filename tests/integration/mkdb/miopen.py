# SPDX-License-Identifier: MIT
"""MIOpen's directory, and those of libraries next to it: Composable Kernel, hipDNN's provider."""
import json

from .objects import noise
from .sqlitedb import kdb

DIR = "share/miopen/db/"


def perf_line(i):
    return "%d-%d-%d-1x1-64-%d-%d-32-0x0-1x1-1x1-0-NCHW-FP32-F=ConvAsm1x1U:1,8,%d,64,4,1,1,4;" \
        "ConvOclDirectFwd:16,16,16,2,%d,1,1,2,1\n" % (64 + i, 7 + i % 50, 7 + i % 50, 7 + i % 50,
                                                      7 + i % 50, i % 9, i % 4 + 1)


def find_line(i):
    return "%d-13-13-1x1-512-13-13-%d-0x0-1x1-1x1-0-NCHW-FP16-B=ConvAsm1x1U:0.0%d,0,miopen" \
        "ConvolutionBwdDataAlgoDirect;ConvHipImplicitGemmGroupBwdXdlops:0.1%d,11075584,miopen" \
        "ConvolutionBwdDataAlgoImplicitGEMM\n" % (1000 + i, i % 64 + 1, i % 89, i % 71)


def lines(line, n):
    return "".join(map(line, range(n)))


def models(t):
    metadata = {"gpu": {"num_cu": 304}, "num_inputs": 18, "solvers": {"0": "ConvAsm1x1U"}}
    for name in ("gfx908.tn.model", "gfx942_metadata.tn.model", "gfx942_3d.tn.model",
                 "gfx90a_ConvHipIgemmGroupFwdXdlops_encoder.ktn.model",
                 "gfx90a_ConvHipIgemmGroupFwdXdlops_decoder.ktn.model",
                 "gfx90a_ConvHipIgemmGroupFwdXdlops_metadata.ktn.model"):
        weights = [b / 256 for b in noise(name, 400)]
        t.put(DIR + name, json.dumps(dict(metadata, name=name, weights=weights)) + "\n")


def database(t):
    for base in ("gfx942130", "gfx942e4", "gfx90a68", "gfx90a6e", "gfx90878", "gfx1030_36",
                 "gfx906_nosramecc_60", "gfx906_64", "gfx803_36"):
        t.put("%s%s.db.txt" % (DIR, base), lines(perf_line, 40 + len(base)))
    t.put(DIR + "gfx90a6e.HIP.fdb.txt", lines(find_line, 300))
    t.put(DIR + "gfx90a6e.OpenCL.fdb.txt", lines(find_line, 30))
    t.put(DIR + "gfx942130.HIP.fdb.txt", lines(find_line, 50000))
    t.put(DIR + "gfx1030_36.OpenCL.fdb.txt", b"")
    kdb(t, DIR + "gfx90a.kdb", "gfx90a", 40)
    kdb(t, DIR + "gfx1030_36.kdb", "gfx1030", 40)
    kdb(t, DIR + "gfx1030.kdb", "gfx1030", 12)
    models(t)
    composable(t)


def composable(t):
    for arch in ("gfx942", "gfx90a"):
        t.put("lib/libMIOpenCKGroupedConv_%s.so" % arch, t.objects.host_library(
            '__attribute__((visibility("default"))) int ck_answer(void) { return 42; }\n'
            'const char ck_arch[] = "%s";\n' % arch), 0o755)


def provider(t):
    """Code objects of hipDNN's provider, and archives of Composable Kernel's objects."""
    engines = "lib/hipdnn_plugins/engines/"
    asm = engines + "hip_kernel_provider/asm_kernels/"
    for arch, chip in (("gfx942", "MI300"), ("gfx950", "MI350")):
        for name in ("fwd_hd128_bf16_rtne", "fwd_hd128_bf16_causal_rtne"):
            t.put("%s%s/fmha_v3_fwd/%s/%s.co" % (asm, arch, chip, name),
                  t.objects.code(arch, [name]))
        t.put("%sarch_content/rocke/%s/kernels.json" % (engines, arch),
              json.dumps({"arch": arch, "kernels": ["fmha"]}) + "\n")
        t.put("%sarch_content/rocke/%s/fmha.hsaco" % (engines, arch),
              t.objects.code(arch, ["fmha"]))
        t.put("lib/libMIOpenCKGroupedConv_%s.a" % arch, ar([
            ("conv_fwd.o", t.objects.code(arch, ["conv_fwd"])),
            ("conv_bwd.o", t.objects.code(arch, ["conv_bwd"]))]))
    composable(t)


def ar(members):
    out = b"!<arch>\n"
    for name, data in members:
        out += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name.encode() + b"/", 0, 0, 0, 0o644, len(data))
        out += data + b"\n" * (len(data) % 2)
    return out
