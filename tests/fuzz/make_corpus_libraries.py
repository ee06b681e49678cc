#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make the corpora of aks2, miopen and rules: make_corpus_libraries.py DIR (tests/fuzz/corpus)."""
import io, lzma, os, sqlite3, struct, sys, tempfile, zipfile


def put(kind, name, data):
    os.makedirs(os.path.join(sys.argv[1], kind), exist_ok=True)
    with open(os.path.join(sys.argv[1], kind, name), "wb") as f:
        f.write(data)


def aks2(images):
    names = [b"kernel_%d\0" % i for i in range(len(images))]
    size = sum(20 + len(n) for n in names)
    records, body = b"", b""
    for name, image in zip(names, images):
        records += struct.pack("<5I", 0, 256, size + len(body), len(image), len(name)) + name
        body += image
    content = records + body
    return struct.pack("<4s3I", b"AKS2", len(content), len(images), len(records)) + \
        lzma.compress(content, format=lzma.FORMAT_XZ)


def archive(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for name, data in members:
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def database():
    with tempfile.TemporaryDirectory() as d:
        db = sqlite3.connect(d + "/x")
        db.execute("PRAGMA page_size = 512")
        db.execute("CREATE TABLE kern_db (id INTEGER PRIMARY KEY, kernel_name TEXT)")
        db.commit()
        db.close()
        with open(d + "/x", "rb") as f:
            return f.read()


def elf(machine, flags=0x54c, size=64):
    return struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 64, 4, 3, machine, 1, 0, 0, 0,
                       flags, 64, 56, 0, 64, 0, 0) + bytes(size - 64)


KERNEL = aks2([b"image", b""])
ZIP = archive([("a=\uff0ab;c=1", KERNEL), ("d", b"")])
VERSIONS = b'{"AOTRITON_GIT_SHA1": "30ae", "DB_SHA256": "5e", "TRITON_VERSION": "3.4.0"}\n'
TRITON = b'{"num_warps":4,"shared":-1,"BLOCK_M":64,"signature":{"Q":"*bf16","n":"i32"},' \
    b'"tuning_params":{"a":true,"b":"x"},"c":[1,{"d":"]\\""}]}'
RULES = b"""# rules
foo lib/foo * directory code
foo foo *.bin name   # a comment
bar lib/foo/ *.db below
baz . [a-z] generic file
all lib/foo * content
one lib * gfx90a-xnack+ code
"""

put("aks2", "kernel", KERNEL)
put("aks2", "failed", aks2([b""]))
put("aks2", "zip", ZIP)
put("aks2", "versions", VERSIONS)
put("aks2", "triton", TRITON)

images = "lib/aotriton.images/amd-gfx11xx/"
for name, path, data in (
        ("aks2", images + "flash/attn_fwd/FONLY__\uff0abf16@16_256_F___gfx11xx.aks2", KERNEL),
        ("zip", images + "flash/attn_fwd.zip", ZIP),
        ("versions", images + "__signature__", VERSIONS),
        ("hsaco", "aotriton/kernels/gfx942/fwd.hsaco", elf(224)),
        ("perf", "share/miopen/db/gfx906_nosramecc_60.db.txt", b"key=solver:1,2\n"),
        ("find", "miopen/db/gfx942130.HIP.fdb.txt", b"1-2=solver:1,2\n"),
        ("model", "miopen/db/gfx90a_encoder.ktn.model", b"{}\n"),
        ("kdb", "miopen/db/gfx90a68.kdb", database()),
        ("ck-so", "lib/libMIOpenCKGroupedConv_gfx942.so.1", elf(62)),
        ("ck-dll", "bin/MIOpenCKGroupedConv_gfx90a-xnack+.dll", b"MZ" + bytes(62)),
        ("ck-a", "lib/libdevice_conv_operations_gfx9_4_generic_xnackp.a", b"!<arch>\n"),
        ("provider", "engines/arch_content/rocke/gfx942/m.json", b"{}"),
        ("aiter", "aiter_meta/hsa/gfx942/fmha/x.co", elf(224)),
        ("hotswap", "share/rocjitsu/translations/gfx1250-b0-a0/v1/00.obj", elf(224, 0x549))):
    put("miopen", name, path.encode() + b"\n" + data)

put("rules", "all", RULES)
put("rules", "wrong", b"foo lib/foo * nowhere\n")
put("rules", "short", b"foo lib")
