# SPDX-License-Identifier: MIT
"""The SQLite databases: rocFFT's kernel cache and MIOpen's kernels."""
import bz2, hashlib, os, sqlite3

from .objects import noise

CACHE_V1 = """CREATE TABLE cache_v1 ( kernel_name TEXT NOT NULL, arch TEXT NOT NULL,
 hip_version INTEGER NOT NULL, generator_sum BLOB NOT NULL, code BLOB NOT NULL,
 timestamp INTEGER NOT NULL, PRIMARY KEY (kernel_name, arch, hip_version, generator_sum) )"""
GENERATOR = hashlib.sha256(b"rocFFT's generator").digest()
HIP_VERSION = 60342134


def fft_names(n):
    """(kernel name, length, precision) of N kernels, sorted."""
    names = []
    schemes = [(s, p, o) for s in ("sbrr", "sbcc", "sbrc") for p in ("sp", "dp", "half")
               for o in ("ip_CI", "op_CI_CI", "op_CP_CP")]
    for i in range(n):
        scheme, precision, place = schemes[i % len(schemes)]
        factor = 2 + i // len(schemes)
        length = factor * 10
        names.append((
            "fft_rtc_%s_len%d_factors_%d_10_wgs_64_tpt_%d_halfLds_dim1_%s_%s_unitstride_%s_"
            "dirReg_intrinsicReadWrite" % (("fwd", "back")[i % 2], length, factor, factor,
                                           precision, place, scheme), length, precision))
    return sorted(set(names))


def fft_code(t, arch):
    """The code of a kernel, about 12 KB; objects of one GPU are alike but for their numbers."""
    base = t.objects.code(arch, ["fft_rtc_%d" % i for i in range(3)]).ljust(11000, b"\0")
    return lambda name: base + noise(name + arch, 512) + name.encode()


def rocfft(t, path, arches, rows):
    """A kernel cache with ROWS rows of each of ARCHES."""
    code = {a: fft_code(t, a) for a in arches}
    disk = t.path(path)
    assert not os.path.exists(disk)
    db = sqlite3.connect(disk)
    db.execute(CACHE_V1)
    db.executemany("INSERT INTO cache_v1 VALUES (?, ?, ?, ?, ?, 0)", (
        (name, a, HIP_VERSION, GENERATOR, code[a](name))
        for name, _, _ in fft_names(rows) for a in sorted(arches)))
    db.commit()
    db.close()


def one(t, rows=1500):
    rocfft(t, "lib/rocfft/rocfft_kernel_cache.db", ("gfx90a", "gfx1100"), rows)
    t.put("lib/rocfft/1.0.31/rocfft_rtc_helper", "#!/bin/sh\nexit 0\n", 0o755)


def per_arch(t):
    for arch in ("gfx90a", "gfx12-generic"):
        rocfft(t, "lib/rocfft/rocfft_kernel_cache_%s.db" % arch, (arch,), 300)


def kdb(t, path, arch, rows):
    db = sqlite3.connect(t.path(path))
    db.execute("CREATE TABLE kern_db (id INTEGER PRIMARY KEY ASC, kernel_name TEXT NOT NULL, "
               "kernel_args TEXT NOT NULL, kernel_blob BLOB NOT NULL, kernel_hash TEXT NOT NULL, "
               "uncompressed_size INT NOT NULL)")
    db.execute("CREATE UNIQUE INDEX idx_kern_db ON kern_db (kernel_name, kernel_args)")
    for i in range(rows):
        name = "naive_conv_%d.cpp.o" % i
        code = t.objects.code(arch, ["naive_conv_%d" % (i % 4)]) + noise(name, 64)
        stored = i == 3  # not worth compressing
        db.execute("INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, "
                   "uncompressed_size) VALUES (?, ?, ?, ?, ?)", (
                       name, " -DMIOPEN_USE_FP16=%d -mcpu=%s" % (i % 2, arch),
                       code if stored else bz2.compress(code), hashlib.md5(code).hexdigest(),
                       0 if stored else len(code)))
    db.commit()
    db.close()
