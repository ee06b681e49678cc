#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write tests/fuzz/corpus/hosts: the hosts of tests/integration/foreign.py, and cut or damaged ones."""
import os, subprocess, sys, tempfile
here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.join(here, "..", "integration")
sys.path.insert(0, tests)
import mkfat, mkoffload

out = os.path.join(here, "corpus", "hosts")
os.makedirs(out, exist_ok=True)
with tempfile.NamedTemporaryFile() as fat:
    fat.write(mkoffload.raw_bundle([("hip-amdgcn-amd-amdhsa--gfx90a", b"code" * 40)]))
    fat.flush()
    for kind in ("pe", "pe-long", "elf32", "elf32-be-bare", "elf64-be", "elf64-bare", "elf64-bare-exec",
                 "elf64-renamed", "elf64-cut", "elf64-cuda-bare"):
        subprocess.run([sys.executable, os.path.join(tests, "foreign.py"), kind, fat.name,
                        os.path.join(out, "good-" + kind)], check=True)
with open(os.path.join(out, "good-elf64-renamed-wrappers"), "wb") as f:
    f.write(mkfat.shared_library(mkfat.bundle([("gfx90a", b"code" * 40)], 0, 64), [0])
            .replace(b".hip_fatbin\0", b".hip_device\0"))
for name in ("pe", "elf64-bare", "elf32"):
    data = open(os.path.join(out, "good-" + name), "rb").read()
    with open(os.path.join(out, "bad-end-" + name), "wb") as f:
        f.write(data[:600])
    with open(os.path.join(out, "bad-count-" + name), "wb") as f:
        f.write(data.replace(b"BUNDLE__\1\0", b"BUNDLE__\7\0"))
