# SPDX-License-Identifier: MIT
"""AOTriton's directory: packs of kernels for a GPU or a family of them."""
import io, json, lzma, struct, zipfile

from .objects import noise

DIR = "lib/aotriton.images/"
STAR = "\uff0a"
SIGNATURE = json.dumps({
    "AOTRITON_GIT_SHA1": "30ae967114ad47d4ef7c35b7e4ff9d3e1b8ac2c6",
    "AOTRITON_GIT_TREESHA1": "89553ce37b1cfe43a2f3b53a1fbd1df21b6d6c07",
    "DB_SHA256": "5e9c3b0a1f5dca8c9f1f4b4b3ff5f6cf4f2c1c28a5b5a14b9a1a1e9b7a3d7c11",
    "TRITON_VERSION": "3.4.0"}, indent=2) + "\n"


def aks2(images):
    """(name, shared memory, threads, image)s in AOTriton's container."""
    names = [name.encode() + b"\0" for name, _, _, _ in images]
    records, body = b"", b""
    size = sum(20 + len(n) for n in names)
    for name, (_, shared, threads, image) in zip(names, images):
        records += struct.pack("<5I", shared, threads, size + len(body), len(image), len(name))
        records += name
        body += image
    content = records + body
    # the directory's size: with it a reader finds the images
    head = struct.pack("<4s3I", b"AKS2", len(content), len(images), len(records))
    return head + lzma.compress(content, format=lzma.FORMAT_XZ, preset=6)


def kernels(t, arch, label, n=4):
    """N images of which one did not compile."""
    out = []
    for i in range(n):
        name = "%s;BLOCK_M=%d,BLOCK_N=%d,waves=%d" % (label, 16 << i % 3, 32, i)
        symbol = "attn_" + noise(label + str(i), 4).hex()
        out.append((name, 16384 * i, 256, b"" if i == 1 else t.objects.code(arch, [symbol])))
    return out


def pack(t, name, arch, members, old=None):
    """A pack with names of version 0.10; OLD: the GPU in names of version 0.8."""
    where = "%samd-%s/" % (DIR, name)
    t.put(where + "__signature__", SIGNATURE)
    for kernel in ("attn_fwd", "bwd_kernel_dk_dv", "bwd_preprocess"):
        for dtype in ("bf16", "fp16")[:members]:
            label = "FONLY__%s%s@16_256_F_F_3_0___%s" % (STAR, dtype, name)
            t.put("%sflash/%s/%s.aks2" % (where, kernel, label),
                  aks2(kernels(t, arch, kernel + dtype)))
    if old:
        t.put("%sflash/attn_fwd/FONLY__^fp16@16,80,True,False,0,0___%s.aks2" % (where, old),
              aks2(kernels(t, arch, old)))


def images(t):
    pack(t, "gfx11xx", "gfx1100", 2)
    pack(t, "gfx110x", "gfx1100", 1, old="RX7900XT")
    pack(t, "gfx120x", "gfx1201", 1)
    pack(t, "gfx90a", "gfx90a", 1, old="MI200")
    pack(t, "gfx942", "gfx942", 1)


def flatzip(t):
    for name, arch in (("gfx942", "gfx942"), ("gfx115x", "gfx1151")):
        where = "%samd-%s/" % (DIR, name)
        t.put(where + "__signature__", SIGNATURE)
        for kernel, n in (("attn_fwd", 40), ("affine_kernels", 2)):
            t.put("%sflash/%s.zip" % (where, kernel), archive(t, arch, kernel, n))


def archive(t, arch, kernel, n):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=False) as z:
        for i in range(n):
            name = "Q=%sbf16;BLOCK_DMODEL=%d;CAUSAL=%d" % (STAR, 16 * (i // 2 + 1), i % 2)
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            z.writestr(info, aks2([(";;#F;%s;;#P;%d;;#CO;w=%d;;arch=%s" % (kernel, i, j, arch),
                                    1024, 128, t.objects.code(arch, ["%s_%d" % (kernel, j)]))
                                   for j in range(2)] +
                                  [("%s failed %d" % (kernel, i), 0, 0, b"")]))
    return out.getvalue()
