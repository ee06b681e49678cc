#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write the seeds of the fuzz targets kernel_cache, sqlite_header and kernel_name:
make_corpus_sqlite.py [DIR]

Small databases of the smallest pages.
"""
import os
import sqlite3
import sys

CACHE = ("CREATE TABLE cache_v1 ( kernel_name TEXT NOT NULL, arch TEXT NOT NULL, hip_version "
         "INTEGER NOT NULL, generator_sum BLOB NOT NULL, code BLOB NOT NULL, timestamp INTEGER "
         "NOT NULL, PRIMARY KEY (kernel_name, arch, hip_version, generator_sum) )")
PATHS = ("CREATE TABLE kernels (arch TEXT, length INTEGER, precision TEXT, kernel_path TEXT, "
         "factors TEXT, batch INTEGER)")
NAME = ("fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_unitstride_sbrr_"
        "dirReg_intrinsicReadWrite")
NAMES = [
    NAME,
    "fft_rtc_back_len_64x128_factors_8_8_x_8_16_wgs_64_tpt_8x16_dim_2_dp_op_CP_CI",
    "fft_rtc_fwd_partial_pass_parent_len_64_64_64_len_64_factors_8_8_wgs_64_half_ip_CI_sbcc",
    "transpose_rtc_tile64x16_dim2_sp_CI_CI_twd3step_fwd_diag",
    "bluestein_single_fwd_len7_dim1_dp_ip_CI_CB",
    "fft_len_batch_5_factors", "__", "a/b%@\n\377",
]
ROWS = [(NAME, "gfx90a", 1, b"s" * 32, b"\x7fELF" + b"c" * 600, 0),
        (NAME, "gfx90a", 1, b"t" * 32, b"code", 0),
        (NAME, "gfx1100", 2, b"s" * 32, b"", 0)]


def database(path, *sql, rows=(), paths=(), settings=()):
    db = sqlite3.connect(path)
    for s in ("page_size=512",) + tuple(settings):
        db.execute("PRAGMA " + s)
    for s in sql:
        db.execute(s)
    if rows:
        db.executemany("INSERT INTO cache_v1 VALUES (?,?,?,?,?,?)", rows)
    if paths:
        db.executemany("INSERT INTO kernels VALUES (?,?,?,?,?,?)", paths)
    db.commit()
    db.close()


def main(top):
    def at(target, name):
        os.makedirs(os.path.join(top, target), exist_ok=True)
        path = os.path.join(top, target, name)
        if os.path.exists(path):
            os.unlink(path)
        return path

    for target in ("kernel_cache", "sqlite_header"):
        database(at(target, "good-cache"), CACHE, rows=ROWS)
        database(at(target, "good-utf16"), CACHE, rows=ROWS[:1],
                 settings=("encoding='UTF-16le'", "auto_vacuum=1"))
        database(at(target, "good-empty"), CACHE)
    database(at("kernel_cache", "good-index"), CACHE, "CREATE INDEX i ON cache_v1 (arch)",
             "CREATE VIEW v AS SELECT arch FROM cache_v1",
             "CREATE TRIGGER t AFTER INSERT ON cache_v1 BEGIN DELETE FROM cache_v1; END")
    database(at("kernel_cache", "good-paths"), PATHS, paths=[
        ("gfx90a", 64, "single", "rocfft_kernel_cache.db", "[8, 8]", 1),
        ("gfx90a", "64x64", "double", "/opt/lib/rocfft/rocfft_kernel_cache.db", "8,8", None),
        (None, 1.5, b"x", "../../../etc/passwd", "no", "many")])
    database(at("kernel_cache", "bad-view"), "CREATE VIEW cache_v1 AS SELECT 1 AS kernel_name, "
             "2 AS arch, 3 AS hip_version, 4 AS generator_sum, 5 AS code, 6 AS timestamp")
    database(at("kernel_cache", "bad-arch"), CACHE.replace("NOT NULL", ""), rows=[
        ("a", None, 1, b"", b"", 0), ("a", "../x", 1, b"", b"", 0), (None, 5, "x", 1, 2, 3)])
    for i, name in enumerate(NAMES):
        with open(at("kernel_name", "name-%d" % i), "wb") as f:
            f.write(name.encode("latin-1"))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else
         os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus"))
