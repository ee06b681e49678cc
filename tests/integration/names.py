#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names and texts that attack their reader, through the subcommands of kpack.

names.py GROUP KPACK      run GROUP's commands in the current directory, which is empty

What is printed is judged by Python's parsers: json, html.parser, csv, email, and a shell; and for
terminals by the Unicode properties of unicodedata, not by our own tables.  Prints each fault, and
exits 1 if there are any.
"""
import configparser
import csv
import email.parser
import email.policy
import html.parser
import io
import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
import zipfile

import mkarchive
import mkfat
import mkoffload
import mkwheel
from jsoncheck import hidden

# Several attacks in one text each, because every text is a run of many commands.
TEXTS = [t if isinstance(t, bytes) else t.encode() for t in (
    "plain", "ordinary: ünïcödé 漢字 😀 ~ #1",
    # a terminal's controls; order and lines; what is not seen; what is not UTF-8
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http:..x\x1b\\link", "a\rover\b\b\x7f\x0b\x0c\x1c\x1d\x1e", "a\nkpack: b: ok", "a\tb",
    "\u009b31m\u0085next\u009d0;title\u009c", "\u202egnp.exe\u2066a\u2069b\u200fb\u061c\u2028b\u2029c",
    "zero\u200bsoft\u00adhyphen\ufeffword\u2060\U000e0041\U000e007fv\ufe0fs\u3164inter\ufff9li\ufffanear\ufffb",
    b"\xff\xfe\xc0\xaf", b"\xed\xa0\x80\xf4\x90\x80\x80\x9b31mcut\xc3",
    # escapes of the escape; HTML and scripts; shells; tables and headers
    "\\033[31m\\377 is no byte\\u202e\\", "<script>alert(1)<.script>\"><img src=x onerror=alert(1)>' onmouseover='alert(1)",
    "&lt;b&amp;<!--]]>javascript:alert(1)${alert(1)}", "$(touch pwned)`touch pwned`'; touch pwned; '\"; touch pwned; \"",
    "-rf", "* ~!x#x%s%n%1$s", "a,b:c=d,\"b\"[x]", "=cmd|x", "x\r\nX-Evil: 1\n\nbody", "end\n",
)]

faults = []


def fault(where, text):
    faults.append("%s: %s" % (where, text))


# --- terminals ---------------------------------------------------------------------------

def terminal(where, data, more=""):
    """DATA may be printed: newlines and tabs are what lists are made of."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        return fault(where, "not UTF-8: %s: %r" % (e, data[max(e.start - 20, 0):e.end + 20]))
    for i, c in enumerate(text):
        if c not in "\n\t" + more and hidden(c):
            return fault(where, "U+%04X: %r" % (ord(c), text[max(i - 30, 0):i + 30]))
    return None


def original(shown):
    """The bytes of a shown text."""
    return re.sub(rb"\\([0-3][0-7][0-7])", lambda m: bytes([int(m[1], 8)]), shown)


KPACK = None


def kpack(*argv, judge=True, env=None, statuses=(0, 1), stderr=False):
    """Run a command; both outputs must be fit for terminals.  Returns standard output."""
    where = " ".join(repr(os.fsdecode(a)) if isinstance(a, bytes) else a for a in argv)
    run = subprocess.run([KPACK, *argv], stdin=subprocess.DEVNULL, capture_output=True,
                         env=dict(os.environ, **env) if env else None)
    if run.returncode not in statuses:
        fault(where, "exit %d: %r" % (run.returncode, run.stderr[-500:]))
    terminal(where + ", stderr", run.stderr)
    # no text of a file begins a line; after a usage fault there is the usage
    for line in run.stderr.splitlines()[:1 if run.returncode == 2 else None]:
        if not re.match(rb'kpack: |usage: |match|no-match|GPU  |(gfx|sm_|generic)[^ ]*  +\d+  +\d+$', line):
            fault(where, "stderr: %r" % line)
    if judge:
        terminal(where, run.stdout)
    return run.stderr if stderr else run.stdout


def strings(value):
    """All strings of a JSON value, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strings(v)


def kpack_json(*argv, wanted=()):
    """The JSON of a command; WANTED are the bytes that must be among its strings."""
    out = kpack(*argv)
    try:
        value = json.loads(out)
    except ValueError as e:
        return fault(" ".join(map(str, argv)), "no JSON: %s: %r" % (e, out[:300]))
    have = {original(s.encode("utf-8", "surrogatepass")) for s in strings(value)}
    for text in wanted:
        if not any(text in h for h in have):
            fault(" ".join(map(str, argv)), "%r is not among its strings" % text)
    return value


# --- what is made ------------------------------------------------------------------------

def good(text):
    """Whether it may be a key: UTF-8 without controls."""
    try:
        return not any(unicodedata.category(c) == "Cc" for c in text.decode())
    except UnicodeDecodeError:
        return False


GOOD = [t for t in TEXTS if good(t)]


def archives():
    """One with each text as a key, target, path, in metadata; one with each as its group, named so."""
    a = mkarchive.Archive()
    raw = mkarchive.raw_str
    for i, t in enumerate(TEXTS):
        a.add(raw(t), "gfx1100", b"data %d" % i, note=raw(t), number=2**63 + i, **{"path": raw(b"p/%d/" % i + t)})
        a.add("key%d" % i, raw(t), b"data %d" % i, type=raw(t), entry={"metadata": mkarchive.Pairs([(raw(t), raw(t))])})
    a.arches = ["gfx1100"] + [raw(t) for t in GOOD]
    sort = a.toc.sort
    a.toc.sort = lambda key: sort(key=lambda pair: mkarchive.pack(pair[0])[1:])
    a.write("all.kpack", sort=False)
    os.mkdir("groups")
    for i, t in enumerate(TEXTS):
        g = mkarchive.Archive()
        g.add("lib/x.so#0", "gfx1100", b"x%d" % i)
        g.write(b"groups/%d-%s.kpack" % (i, t), top={"group_name": raw(t), "gfx_arch_family": raw(t)})


def fat(seed):
    data = mkfat.bundle([(a, mkfat.code_object(a, 200, seed)) for a in ("gfx1030", "gfx1100")], 0, 4096)
    return mkfat.shared_library(data, [0])


def tree(root, database=good):
    """In a directory for each text a fat library, a file of that name, and perhaps a database file."""
    os.makedirs(root)
    for i, t in enumerate(TEXTS):
        where = os.fsencode(root) + b"/%02d " % i + t
        os.makedirs(where)
        files = [(b"/libx.so", fat(str(i))), (b"/x" + t, t)]
        if database(t):
            os.makedirs(where + b"/kernels/gfx1100")
            files.append((b"/kernels/gfx1100/k.co", mkfat.code_object("gfx1100", 200, "k%d" % i)))
        for name, data in files:
            with open(where + name, "wb") as f:
                f.write(data)
    with open("rules", "w") as f:
        f.write("mine kernels *.co directory code\n")


# --- the groups --------------------------------------------------------------------------

def group_archives():
    archives()
    for line in kpack("ls", "-l", "all.kpack").splitlines():
        if line.count(b"\t") != 6:
            fault("ls -l", "not seven columns: %r" % line)
    keys = {original(line.split(b"\t")[0]) for line in kpack("ls", "all.kpack").splitlines()}
    if not set(GOOD) <= keys:
        fault("ls", "keys that cannot be had back: %r" % (set(GOOD) - keys))
    listed = kpack_json("ls", "--json", "all.kpack", wanted=GOOD)
    for entry in listed or []:
        if entry["metadata"] is None:
            fault("ls --json", "no metadata of %r" % entry["key"])
        elif entry["key"].startswith("key") and list(entry["metadata"]) != list(entry["metadata"].values()):
            fault("ls --json", "%r" % entry["metadata"])
    names = [b"groups/%d-%s.kpack" % (i, t) for i, t in enumerate(TEXTS)]
    kpack("info", "all.kpack")
    kpack("info", "groups")
    for command in ("info", "ls"):
        kpack_json(command, "--json", "groups", wanted=names)
    kpack("ls", "groups")
    kpack("verify", "all.kpack", "groups")
    kpack("inspect", "all.kpack")
    kpack_json("inspect", "--json", "all.kpack")
    kpack("extract", "all.kpack", "-C", "out")
    for t in TEXTS[::3]:
        kpack("cat", "--", "all.kpack", t, "gfx1100", judge=False)
    for t in TEXTS[1::4]:
        kpack(t, statuses=(2,))
        kpack("ls", b"--" + t, statuses=(1, 2))
        kpack("ls", "--arch", t, "all.kpack", statuses=(0, 1, 2))
        kpack("ls", t)
        kpack("merge", t, "-o", t + b"/x", "--group", t)
    kpack("merge", "groups", "-o", b"\x1b[31m.kpack")


def group_faults():
    """Archives that clash, and whose objects are damaged."""
    raw = mkarchive.raw_str
    for name in "xy":
        a = mkarchive.Archive()
        for t in GOOD:
            a.add(raw(t), "gfx1100", name.encode() + t, hash=name == "x", **({} if name == "x" else {"xxh3": bytes(16)}))
        a.write(name + ".kpack", sort=False)
    kpack("verify", "y.kpack")
    kpack("merge", "x.kpack", "y.kpack", "-o", "z.kpack")
    kpack_json("merge", "--json", "x.kpack", "y.kpack", "-o", "z.kpack", wanted=[t for t in GOOD if t != b"-rf"])
    kpack("extract", "y.kpack", "-C", "out")
    kpack("report", "y.kpack", "-o", "page.html")
    terminal("page.html", open("page.html", "rb").read())


def stub(name):
    with open("bin/" + name, "w") as f:
        f.write("#!/bin/sh\nprintf '%%s\\0' %s \"$@\" >>\"$LOG\"\n" % name)
    os.chmod("bin/" + name, 0o755)


def words_of(line):
    """The commands that a shell makes of a line; the programs only write their arguments down."""
    log = os.getcwd() + "/log"
    open(log, "w").close()
    run = subprocess.run(["sh", "-c", line], capture_output=True,
                         env={"PATH": os.getcwd() + "/bin:/usr/bin:/bin", "LOG": log})
    if run.returncode:
        fault("mount line", "%r" % run.stderr)
    return open(log, "rb").read().split(b"\0")[:-1]


def group_trees():
    tree("in")
    os.mkdir("bin")
    stub("kpackfs")
    packed = ("--group", "g", "--library-rules", "rules")
    for out in (b"out\n", b"o\x1b[31m\xe2\x80\xae'\n"):
        kpack("pack", *packed, "in", out)
        out += b"2\n"
        report = kpack_json("pack", "--json", *packed, "in", out, wanted=[out])
        words = words_of(report["mount"])
        if words != [b"kpackfs", b"--in-place", os.fsencode(os.getcwd()) + b"/" + out]:
            fault("mount line", "%r makes %r" % (report["mount"], words))
        if os.path.exists("pwned"):
            fault("mount line", "the shell ran what a name says")
    kpack("pack", "--check", *packed, "in", "other")
    tree("bad", database=lambda t: True)
    kpack("pack", *packed, "bad", "other", statuses=(1,))
    kpack("mark", "show", *(b"out\n/%02d " % i + t + b"/libx.so" for i, t in enumerate(TEXTS)))
    kpack_json("mark", "show", "--json", *(b"out\n/%02d " % i + t + b"/libx.so" for i, t in enumerate(TEXTS)), wanted=TEXTS)
    for archive in os.listdir(b"out\n/.kpack")[:1]:
        os.rename(b"out\n/.kpack/" + archive, b"out\n/.kpack/hidden")
    kpack("mark", "check", "-v", b"out\n")
    kpack_json("mark", "check", "--json", b"out\n")
    kpack("verify", "--tree", "in", "--library-rules", "rules")
    kpack("split", "--name", "n", "in", "parts")
    kpack("report", "in", "--title", b"\x1b[31m</title><script>", "-o", "page.html")
    newer_commands()


def newer_commands():
    """On the trees of group_trees: thin, strip-safe, runtimes, run."""
    names = [b"%02d " % TEXTS.index(t) + t for t in GOOD]
    kpack("mark", "strip-safe", "--check", b"out\n")
    kpack("mark", "strip-safe", *(b"out\n/" + name + b"/libx.so" for name in names))
    arch = ("--arch", "gfx1100")
    kpack("thin", "--dry-run", *arch, "--library-rules", "rules", "in")
    kpack_json("thin", "--dry-run", "--json", *arch, "--library-rules", "rules", "in")
    for t in TEXTS[2::4]:
        kpack("thin", "--arch", t, "in", statuses=(2, 0, 1))
    thinned = b"thin\x1b[31m\xe2\x80\xae'\n"
    kpack("thin", *arch, "in", thinned)
    kpack_json("thin", "--json", *arch, thinned)
    for number, t in enumerate(TEXTS):
        os.makedirs(b"hip/%02d " % number + t)
        for where in b"hip/%02d " % number + t, b"hip":
            with open(where + b"/libamdhip64.so." + t, "wb") as f:
                f.write(b"__hipRegisterFatBinary " + (b"librocm_kpack.so" if number % 2 else b"old"))
    kpack("runtime", "hip")
    kpack_json("runtime", "--json", "hip", wanted=TEXTS)
    for t in TEXTS[3::4]:
        kpack("runtime", "--ask", "--hip", b"hip/libamdhip64.so." + t)
        kpack("runtime", "--hip", b"hip/no " + t)
        kpack("run", "--", b"./no " + t, statuses=(126, 127))
    for number, t in enumerate(TEXTS[2:6]):
        os.makedirs(b"old %02d/lib" % number)
        with open(b"old %02d/lib/libamdhip64.so." % number + t, "wb") as f:
            f.write(b"__hipRegisterFatBinary old")
        kpack("pack", "-q", "in", "refused%02d" % number, env={"ROCM_PATH": "old %02d" % number})


def group_machine():
    """Trees for one GPU: what was kept, what is removed from archives, policies and systemd's unit."""
    tree("in")
    arch = ("--arch", "gfx1100")
    kept = b"kept\x1b[31m\xe2\x80\xae"
    kpack("thin", *arch, "--keep", kept, "--strip-debug", "in")
    kpack("thin", "--undo", kept, "in")
    kpack("thin", "--undo", b"none\x1b[31m", "in")
    for scheme in "zstd-per-kernel", "zstd-shared":
        out = scheme.encode() + b"\x1b[31m\n"
        kpack("pack", "-q", "--scheme", scheme, "--group", "g", "--library-rules", "rules", "in", out)
        kpack("prune", "--dry-run", out)
        kpack_json("prune", "--json", "--dry-run", *arch, out)
        kpack("prune", *arch, out)
        kpack("prune", "--arch", "gfx900", out)
    here = os.fsencode(os.getcwd())
    os.mkdir("policies")
    for i, t in enumerate(TEXTS):
        with open(b"policies/%02d" % i + t + b".conf", "wb") as f:
            place = b"%s/in/%02d %s" % (here, i, t.replace(b"\n", b""))
            f.write(b"thin --arch gfx1100 %s\n" % b"".join(b"\\%c" % c for c in place))
    places = ("--policy-dir", "policies", "--state-dir", "state")
    kpack("apply", "--dry-run", *places)
    kpack("apply", "--no-mounts", *places)
    kpack("status", *places)
    kpack_json("status", "--json", *places)
    os.mkdir("bad")
    for t in TEXTS[2::5]:
        kpack("apply", *places, t, statuses=(0, 1, 2))
        for line in b"%s", b"thin --arch %s /none", b"thin --arch gfx1100 %s", b"thin --arch gfx1100 /none %s":
            with open("bad/x.conf", "wb") as f:
                f.write(line % t + b"\n")
            kpack("status", "--policy-dir", "bad", "--state-dir", "state", statuses=(0, 1, 2))


class Page(html.parser.HTMLParser):
    def __init__(self, where):
        super().__init__()
        self.where, self.scripts, self.text, self.links = where, 0, [], []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag in ("img", "iframe", "object", "base"):
            fault(self.where, "<%s>" % tag)
        for name, value in attrs:
            if name.startswith("on"):
                fault(self.where, "%s=%r" % (name, value))
            if name == "href" and not re.match(r"[a-z0-9.%#~+!_/-]*(#sha256=\w+)?$", value, re.I):
                fault(self.where, "href=%r" % value)
        if tag == "a":
            self.links.append(dict(attrs))

    def handle_comment(self, data):
        fault(self.where, "comment %r" % data)

    def handle_data(self, data):
        self.text.append(data)


def page(path, scripts):
    with open(path, "rb") as f:
        data = f.read()
    terminal(path, data)
    p = Page(path)
    p.feed(data.decode())
    p.close()
    if p.scripts != scripts:
        fault(path, "%d scripts" % p.scripts)
    return p


def group_html():
    archives()
    kpack("report", "all.kpack", "groups", "-o", "page.html")
    # the figures are JSON in the page, from which its script makes text and nothing else
    figures = open("page.html").read().split('id="figures">')[1].split("</script>")[0]
    have = {original(s.encode("utf-8", "surrogatepass")) for s in strings(json.loads(figures))}
    for t in GOOD:
        if not any(t in h for h in have):
            fault("page.html", "%r is not in it" % t)
    page("page.html", 2)
    kpack_json("report", "--json", "all.kpack", "-o", "-", wanted=GOOD)
    kpack("report", "all.kpack", "--title", b"</title><script>alert(1)</script>\x1b", "-o", "titled.html")
    page("titled.html", 2)


def group_wheels():
    os.mkdir("in")
    files = {t.replace(b"/", b""): b"x" for t in GOOD if b"\\" not in t}
    values = {"License": "a\u2028X-Evil: 1", "Author": "\u202e<script>\x1b[31m", "Home-page": "javascript:\x0bX-Evil: 1",
              "Author-email": "a\x85X-Evil: 1\x1cX-Evil: 2", "Requires-Python": ">=3.8,\n <4"}
    text = "Metadata-Version: 2.1\nName: torch\nVersion: 2.10.0\n%s\n\nX-Evil: body\n" % \
        "\n".join("%s: %s" % v for v in values.items())
    info = "torch-2.10.0.dist-info"
    members = [("torch/data/" + t.decode(), d, 0o644) for t, d in files.items()]
    members += [("torch/lib/libx.so", fat("w"), 0o755), ("torch/__init__.py", b"", 0o644)]
    members += [(info + "/METADATA", text.encode(), 0o644),
                (info + "/WHEEL", b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: py3-none-any\n", 0o644),
                (info + "/entry_points.txt", "[console_scripts]\n\u202ex = torch:run\n".encode(), 0o644)]
    mkwheel.write("in/torch-2.10.0-py3-none-any.whl", members, info)
    kpack_json("split-wheel", "--json", "in/torch-2.10.0-py3-none-any.whl", "-o", "dist")
    have = set()
    for name in os.listdir("dist"):
        with zipfile.ZipFile("dist/" + name) as z:
            have |= {n for n in z.namelist() if n.startswith("torch/data/")}
            inside = [n for n in z.namelist() if n.endswith(".dist-info/METADATA")][0][:-len("METADATA")]
            rows = list(csv.reader(io.StringIO(z.read(inside + "RECORD").decode(), newline="")))
            if sorted(r[0] for r in rows) != sorted(z.namelist()) or {len(r) for r in rows} != {3}:
                fault(name, "RECORD")
            for part in ("METADATA", "WHEEL"):
                m = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(z.read(inside + part))
                if m.defects or "X-Evil" in m:
                    fault(name, "%s: %s %s" % (part, m.defects, m.keys()))
                if part == "METADATA" and (m["Version"] != "2.10.0" or m.get_all("Name") != [m["Name"]]):
                    fault(name, "METADATA: %s" % m.items())
            if inside + "entry_points.txt" in z.namelist():
                configparser.ConfigParser().read_string(z.read(inside + "entry_points.txt").decode())
    if have != {"torch/data/" + t.decode() for t in files}:
        fault("split-wheel", "lost names")


def group_formats():
    target = "host-x86_64-unknown-linux-gnu-"
    texts = [t.decode("utf-8", "surrogateescape") for t in TEXTS]
    ids = ["hip-amdgcn-amd-amdhsa--gfx1100:" + t for t in texts] + ["hip-" + t for t in texts]

    class Name(str):
        def encode(self, *_):
            return str.encode(self, "utf-8", "surrogateescape")

        def __len__(self):
            return len(self.encode())

    with open("bundle", "wb") as f:
        f.write(mkoffload.raw_bundle([(Name(target), b"")] + [(Name(i), mkfat.code_object("gfx1100", 100, "")) for i in ids]))
    # clang's tool makes no bundle of such an ID, but a reader compares IDs that have any bytes
    kpack("inspect", "bundle")
    kpack_json("inspect", "--json", "bundle", wanted=TEXTS)
    kpack("inspect", "--extract", "images", "bundle")
    kpack("offload-bundler", "-type=o", "-list", "-input=bundle")
    kpack("offload-bundler", "-type=o", "-unbundle", "-targets=hip-amdgcn-amd-amdhsa--gfx1100", "-input=bundle",
          "-output=one", "-allow-missing-bundles")
    for t in TEXTS[2::4]:
        kpack("offload-bundler", b"-type=" + t, b"-input=" + t, b"-output=o" + t, statuses=(2,))
        kpack("offload-bundler", b"-type=bc", b"-targets=" + t, b"-input=" + t, b"-output=o" + t, statuses=(1, 2))
        kpack("offload-bundler", "-type=o", "-list", "-input=bundle",
              env={"OFFLOAD_BUNDLER_COMPRESSION_LEVEL": os.fsdecode(t), "COMPRESSED_BUNDLE_FORMAT_VERSION": os.fsdecode(t)})
        kpack("offload-packager", b"--image=file=" + t, b"-o", b"x" + t)
    with open("binary", "wb") as f:
        f.write(b"".join(mkoffload.offload_binary(b"image", **{"arch": Name(t), "triple": Name(t), "x" + t: Name(t)})
                         for t in map(Name, texts) if all(0 < ord(c) < 0xd800 for c in t)))
    kpack("inspect", "binary")
    kpack_json("inspect", "--json", "binary")
    kpack("offload-packager", "binary", "--archive")
    os.makedirs("top/nodes/0")
    for t in TEXTS[2::4]:
        with open("top/nodes/0/properties", "wb") as f:
            f.write(b"simd_count 2\ngfx_target_version " + t + b"\n")
        kpack("detect", "--topology", "top")
        kpack("detect", "--arch", t, statuses=(2, 0))
        kpack("detect", "--arch", "gfx1100", "--group", t, statuses=(2, 0))


def main():
    global KPACK
    KPACK = os.path.abspath(sys.argv[2])
    try:
        globals()["group_" + sys.argv[1]]()
    finally:
        print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
