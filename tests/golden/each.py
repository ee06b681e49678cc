#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Run kpack once for each of many files, and print a line for each run.

each.py [--folders] WORD... -- FILE...

A WORD {} is the file; without one the file comes last.  The line has the file, the status, a
hash of standard output if there is any, and what is on standard error.

--folders prints a line for each folder of the files instead: how often each status came, and
a hash of the files' lines.  These lines go into ./FOLDER, to be looked at with run --keep.
"""
import collections
import hashlib
import os
import subprocess
import sys


def line(words, path):
    command = [path if w == "{}" else w for w in words] + ([] if "{}" in words else [path])
    p = subprocess.run(["kpack"] + command, stdin=subprocess.DEVNULL, capture_output=True)
    text = p.stderr.decode("utf-8", "backslashreplace").replace(path, "FILE").strip()
    text = text.replace("kpack: FILE: ", "").replace("\n", " | ").replace(os.getcwd(), "/CWD")
    out = p.stdout.replace(os.fsencode(path), b"FILE")
    digest = hashlib.sha256(out).hexdigest()[:32] if out else ""
    return p.returncode, " ".join(filter(None, ["[%d]" % p.returncode, digest, text]))


def main(args):
    folders = args[0] == "--folders"
    at = args.index("--")
    words, files = args[int(folders):at], args[at + 1:]
    rows = collections.defaultdict(list)
    for path in files:
        folder, name = os.path.split(path)
        rows[os.path.basename(folder)].append((name, *line(words, path)))
    for folder, found in sorted(rows.items()):
        text = "".join("%s: %s\n" % (name, said) for name, _, said in found)
        if not folders:
            print(text, end="")
            continue
        with open(folder, "w", encoding="utf-8") as f:
            f.write(text)
        counts = collections.Counter("[%d]" % status for _, status, _ in found)
        print("%s: %s, %s" % (folder, " ".join("%d %s" % (n, s) for s, n in sorted(counts.items())),
                              hashlib.sha256(text.encode()).hexdigest()[:32]))


if __name__ == "__main__":
    main(sys.argv[1:])
