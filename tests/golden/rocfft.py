# SPDX-License-Identifier: MIT
"""For the cases of rocFFT's databases: write them with Python's sqlite3, pack t, and show what came out."""
import os
import shutil
import sqlite3
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import databases
import readkpack

CACHE = """CREATE TABLE cache_v1 ( kernel_name TEXT NOT NULL, arch TEXT NOT NULL,
 hip_version INTEGER NOT NULL, generator_sum BLOB NOT NULL, code BLOB NOT NULL,
 timestamp INTEGER NOT NULL,
 PRIMARY KEY (kernel_name, arch, hip_version, generator_sum) )"""
PATHS = """CREATE TABLE kernels (arch TEXT, length INTEGER, precision TEXT,
 kernel_path TEXT, factors TEXT, batch INTEGER)"""
FFT = "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_unitstride_sbrr"
DB = "lib/rocfft/rocfft_kernel_cache.db"


def put(path, data):
    path = "t/" + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def make(path, schema, table, rows, before=()):
    put(path, b"")
    db = sqlite3.connect("t/" + path)
    for s in [*before, *([schema] if isinstance(schema, str) else schema)]:
        db.execute(s)
    for r in rows:
        db.execute("INSERT INTO %s VALUES (%s)" % (table, ",".join("?" * len(r))), r)
    db.commit()
    db.close()


def cache(path, *rows, schema=CACHE, before=()):
    make(path, schema, "cache_v1", rows, before)


def paths(path, *rows, schema=PATHS):
    make(path, schema, "kernels", rows)


def row(name=FFT, arch="gfx90a", hip=1, sum=b"s" * 4, code=b"code", time=0):
    return name, arch, hip, sum, code, time


def pack(*options, keep=False):
    """Pack t and show it; unless KEEP, the tree goes, so that the next one can be made."""
    print("$", *options)
    files = sorted(os.path.relpath(os.path.join(w, n), "t") for w, _, names in os.walk("t") for n in names)
    databases.show([(f, f) for f in files], options)
    for top in ["out"] if keep else ["t", "out"]:
        shutil.rmtree(top, ignore_errors=True)


def bytes_of(*options):
    """Pack t, and give (key, arch) -> bytes of all entries."""
    os.system("kpack pack -q --group g %s t out" % " ".join(options))
    found = {}
    for name in sorted(os.listdir("out/.kpack")):
        a = readkpack.Archive("out/.kpack/" + name)
        found.update({(key, arch): a.get(e) for key, arch, e in a.entries()})
    shutil.rmtree("out")
    return found
