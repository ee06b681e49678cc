# SPDX-License-Identifier: MIT
"""Code objects, bundles of them and host libraries; made once and kept in a cache.

With clang-22 they are real; without it they are made of headers, symbol tables and noise.
"""
import hashlib, os, shutil, struct, subprocess, tempfile

import mkfat

CLANG = shutil.which("clang-22")
BUNDLER = shutil.which("clang-offload-bundler-22")
HOST = "host-x86_64-unknown-linux-gnu"

# e_flags of code object v6, as clang-22 writes them
FLAGS = {
    "gfx803": 0x2a, "gfx900": 0x12c, "gfx906": 0x52f, "gfx908": 0x530, "gfx90a": 0x53f,
    "gfx90a:xnack+": 0x73f, "gfx90a:xnack-": 0x63f, "gfx942": 0x54c, "gfx950": 0x54f,
    "gfx1030": 0x36, "gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47, "gfx1151": 0x4a,
    "gfx1200": 0x48, "gfx1201": 0x4e, "gfx1250": 0x549, "gfx12-generic": 0x1000059,
}

KERNEL = """kernel void %s(global float *D, global const float *C, global const float *A,
 global const float *B, float alpha, float beta, uint lda, uint ldb, uint k)
{
 uint i = __builtin_amdgcn_workitem_id_x(), j = __builtin_amdgcn_workgroup_id_x();
 float s = 0;
 for (uint l = 0; l < k; l += %d) { %s }
 D[i + j * ldb] = alpha * s + beta * C[i + j * lda];
}
"""


def noise(seed, size):
    return hashlib.shake_128(seed.encode()).digest(size)


class Objects:
    def __init__(self, cache):
        self.cache = cache
        os.makedirs(cache, exist_ok=True)

    def cached(self, ident, make):
        """The bytes that IDENT names; MAKE(path) makes them."""
        path = os.path.join(self.cache, hashlib.sha256(ident.encode()).hexdigest()[:32])
        if not os.path.exists(path):
            fd, tmp = tempfile.mkstemp(dir=self.cache)
            os.close(fd)
            make(tmp)
            os.replace(tmp, path)
        with open(path, "rb") as f:
            return f.read()

    def code(self, target, names):
        """A code object for TARGET with a kernel for each name."""
        if not CLANG:
            return handmade(target, names)
        text = "".join(kernel(n) for n in names)
        return self.cached("%s %s %s" % (CLANG, target, text), lambda out: subprocess.run(
            [CLANG, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa",
             "-mcpu=" + target, "-nogpulib", "-O3", "-o", out, "-"],
            input=text.encode(), check=True))

    def bundle(self, objects, compress=False):
        """An offload bundle of (target, code object)s; compressed it is a CCOB."""
        if not BUNDLER:
            return mkfat.bundle(objects, 3 if compress else 0, 4096)
        ids = [HOST] + ["hipv4-amdgcn-amd-amdhsa--" + t for t, _ in objects]
        data = [b""] + [d for _, d in objects]
        ident = " ".join([BUNDLER, str(compress)] + ids +
                         [hashlib.sha256(d).hexdigest() for d in data])

        def make(out):
            with tempfile.TemporaryDirectory(dir=self.cache) as tmp:
                paths = [os.path.join(tmp, str(i)) for i in range(len(data))]
                for path, d in zip(paths, data):
                    with open(path, "wb") as f:
                        f.write(d)
                subprocess.run(
                    [BUNDLER, "--type=o", "--bundle-align=4096", "--targets=" + ",".join(ids),
                     "--output=" + out] + ["--compress"] * compress +
                    ["--input=" + p for p in paths], check=True)
        return self.cached(ident, make)

    def ccob(self, target, names):
        return self.bundle([(target, self.code(target, names))], compress=True)

    def host_library(self, text):
        """A shared library for the host, of C TEXT."""
        return self.cached("cc " + text, lambda out: subprocess.run(
            ["cc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=none", "-x", "c", "-o", out, "-"],
            input=text.encode(), check=True))


def kernel(name):
    h = noise(name, 8)
    steps = 2 + h[0] % 5
    return KERNEL % (name, steps, " ".join(
        "s += A[i + (l + %d) * lda] * B[j + (l + %d) * ldb] * %d.f;" % (n, n, h[n] + 1)
        for n in range(steps)))


def section(name, kind, offset, size, link=0, entry=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, 1, 8, entry)


def handmade(target, names):
    """An AMDGPU ELF: the symbols of NAMES, and a .text that compresses about four to one."""
    names = [n for name in names for n in (name, name + ".kd")]
    strings, symbols = b"\0", bytes(24)
    for i, n in enumerate(names):
        symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 3, 1, 4096 + 64 * i, 64)
        strings += n.encode() + b"\0"
    text = noise(target + names[0], 64 * len(names)) * 4
    labels = b"\0.text\0.dynsym\0.dynstr\0.shstrtab\0"
    at, body, table = 64, b"", section(0, 0, 0, 0)
    for name, kind, data, link, entry in (
            (1, 1, text, 0, 0), (7, 11, symbols, 3, 24), (15, 3, strings, 0, 0),
            (23, 3, labels, 0, 0)):
        data += bytes(-len(data) % 8)
        table += section(name, kind, at + len(body), len(data), link, entry)
        body += data
    ident = b"\x7fELF\x02\x01\x01" + bytes([64, 4]) + bytes(7)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 0, 64 + len(body), FLAGS[target],
                                 64, 56, 0, 64, 5, 4)
    return header + body + table
