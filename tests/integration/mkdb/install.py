# SPDX-License-Identifier: MIT
"""Install trees: an unpacked wheel, and everything together."""
import base64, hashlib, os

from . import aotriton, hipblaslt, miopen, rocblas, sqlitedb

HOST = "int host_answer(void) { return 42; }\n"


def wheel(t):
    torch = t.below("torch")
    rocblas.flat(torch)
    hipblaslt.flat(torch)
    hipblaslt.sparse(torch)
    aotriton.images(torch)
    miopen.database(torch)
    torch.put("lib/libtorch_hip.so", t.objects.host_library(HOST), 0o755)
    torch.put("__init__.py", "version = '2.10.0'\n")
    torch.put("share/rccl/msccl-algorithms/allreduce.xml", "<algo/>\n")
    info = "torch-2.10.0+rocm7.1.dist-info/"
    t.put(info + "METADATA", "Metadata-Version: 2.4\nName: torch\nVersion: 2.10.0+rocm7.1\n")
    t.put(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: fixture\nRoot-Is-Purelib: false\n"
          "Tag: cp313-cp313-manylinux_2_28_x86_64\n")
    t.put(info + "top_level.txt", "torch\n")
    t.put(info + "RECORD", record(t.root) + info + "RECORD,,\n")


def hosts(t):
    """The libraries that find their databases from where they are."""
    for name in ("librocblas.so.4", "libhipblaslt.so.0", "libhipsparselt.so.0",
                 "libaotriton_v2.so", "librocfft.so.0", "libMIOpen.so.1"):
        t.put("lib/" + name, t.objects.host_library(HOST), 0o755)


def record(root):
    out = ""
    for where, dirs, names in os.walk(root):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                data = f.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            out += "%s,sha256=%s,%d\n" % (os.path.relpath(path, root), digest.decode(), len(data))
    return out


def everything(t):
    rocblas.flat(t)
    hipblaslt.flat(t)
    hipblaslt.sparse(t)
    aotriton.images(t)
    miopen.database(t)
    sqlitedb.rocfft(t, "lib/rocfft/rocfft_kernel_cache.db", ("gfx90a", "gfx1100"), 100)
    sqlitedb.rocfft(t, "lib/rocfft/rocfft_kernel_cache_gfx12-generic.db", ("gfx12-generic",), 30)
    t.put("lib/rocfft/1.0.31/rocfft_rtc_helper", "#!/bin/sh\nexit 0\n", 0o755)
    hosts(t)
    t.put("share/doc/rocblas/README", "text\n")
    t.put("share/doc/empty", b"")
    os.symlink("librocblas.so.4", t.path("lib/librocblas.so"))
