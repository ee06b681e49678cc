# SPDX-License-Identifier: MIT
"""kpackfs reads what an independent writer wrote, and an independent reader reads what it writes."""
import contextlib, importlib.util, io, os, resource, shutil, subprocess, sys, tempfile, threading, unittest

import kpackfs, mkarchive, readkpack

SOURCE = os.environ["KPACK_SRC"]
DATA = {("bin/app#0", "gfx900"): b"KERNEL3_APP" + b"\xff" * 150, ("lib/x.so#0", "gfx900"): mkarchive.noise(100_000),
        ("lib/x.so#0", "gfx90a:xnack+"): b"", ("lib/x.so#1", "gfx900"): mkarchive.noise(300_000, 2)}
SCHEMES = "none", "zstd-per-kernel"


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="kpack-python-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def archive(self, name="a.kpack", scheme="zstd-per-kernel", **how):
        a = mkarchive.Archive(scheme=scheme, group="blas", family="gfx90X")
        for (key, arch), data in DATA.items():
            a.add(key, arch, data, path=key[:-2], level=[1, -2, 2.5, None, b"\0\1", "é"])
        a.write(self.path(name), **how)
        return self.path(name)

    def refuses(self, kind, code, call, *arguments, **named):
        with self.assertRaises(kind) as caught:
            call(*arguments, **named)
        self.assertEqual(caught.exception.code, code)
        self.assertTrue(str(caught.exception).isprintable() and str(caught.exception))
        return str(caught.exception)


class ReadTest(Case):
    def test_mapping(self):
        for scheme in SCHEMES:
            with kpackfs.open(self.archive(scheme=scheme)) as a:
                self.assertEqual(dict(a), DATA)
                self.assertEqual(list(a), sorted(DATA))
                self.assertEqual((a.group, a.family, a.arches), ("blas", "gfx90X", ("gfx900", "gfx90a:xnack+")))
                self.assertEqual(a.verify(), sum(map(len, DATA.values())))
                self.assertEqual(a["lib/x.so", "gfx900"], DATA["lib/x.so#0", "gfx900"])  # as kpack_get_kernel
                self.assertIn(("lib/x.so", "gfx900"), a)
                for other in (("lib/x.so#0", "gfx90a"), ("", ""), "lib/x.so#0", 5, ("a",), (1, 2)):
                    self.assertNotIn(other, a)

    def test_entries(self):
        with kpackfs.open(self.archive()) as a:
            e = a.entry("lib/x.so#0", "gfx900")
            self.assertEqual((e.key, e.arch, e.type, e.size), ("lib/x.so#0", "gfx900", "hsaco", 100_000))
            self.assertLess(e.stored_size, 50_000)
            self.assertEqual(e.metadata, {"path": "lib/x.so", "level": [1, -2, 2.5, None, b"\0\1", "é"],
                                          "xxh3": mkarchive.xxh3(DATA["lib/x.so#0", "gfx900"])})
            self.assertEqual([x.key for x in a.entries()], [key for key, _ in sorted(DATA)])

    def test_ranges(self):
        want = DATA["lib/x.so#1", "gfx900"]
        for scheme in SCHEMES:
            with kpackfs.open(self.archive(scheme=scheme)) as a:
                for at, size in ((0, None), (299_990, None), (299_990, 100), (300_000, 5), (400_000, 5), (7, 70_000), (7, 0)):
                    self.assertEqual(a.read("lib/x.so#1", "gfx900", at, size), want[at:][:size])
                self.assertEqual(a.read("lib/x.so#0", "gfx90a:xnack+"), b"")
                buffer = bytearray(b"x" * 20)
                self.assertEqual(a.readinto("lib/x.so#1", "gfx900", memoryview(buffer)[5:15], 100), 10)
                self.assertEqual(bytes(buffer), b"xxxxx" + want[100:110] + b"xxxxx")
                for wrong in ((-1, 5), (0, -1), (1 << 64, 5)):
                    self.assertRaises(ValueError, a.read, "lib/x.so#1", "gfx900", *wrong)
                self.assertRaises(ValueError, a.readinto, "lib/x.so#1", "gfx900", buffer, -1)
                self.assertRaises(TypeError, a.readinto, "lib/x.so#1", "gfx900", b"read-only")

    def test_a_view_outlives_the_archive(self):
        with kpackfs.open(self.archive()) as a:
            view = a.view("lib/x.so#1", "gfx900")
        self.assertEqual(bytes(view), DATA["lib/x.so#1", "gfx900"])
        self.assertTrue(view.readonly)
        a.close()
        for use in (a.verify, lambda: a.arches, lambda: len(a), lambda: a["x", "y"]):
            self.assertRaisesRegex(ValueError, "closed", use)

    def test_no_names_in_the_table(self):
        with kpackfs.open(self.archive(drop=["group_name", "gfx_arch_family"])) as a:
            self.assertEqual((a.group, a.family), ("", ""))

    def test_what_is_refused(self):
        missing = self.path("none.kpack")
        self.assertIn(missing, self.refuses(FileNotFoundError, kpackfs.Code.FILE_NOT_FOUND, kpackfs.open, missing))
        for name, data, code in (("empty", b"", 9), ("text", b"some text, no archive", 3), ("short", b"KPAK\1\0\0\0", 3),
                                 ("newer", b"KPAK\7\0\0\0" + bytes(56), 4)):
            with open(self.path(name), "wb") as f:
                f.write(data)
            self.assertIn(name, self.refuses(kpackfs.KpackError, code, kpackfs.open, self.path(name)))
        with kpackfs.open(self.archive()) as a:
            text = self.refuses(KeyError, kpackfs.Code.KERNEL_NOT_FOUND, lambda: a["lib/y.so#0", "gfx900"])
            self.assertIn("lib/y.so#0", text)
            self.refuses(KeyError, kpackfs.Code.KERNEL_NOT_FOUND, a.entry, "lib/x.so#0", "gfx90a")
            self.assertRaisesRegex(ValueError, "NUL", lambda: a["lib/x.so#0\0", "gfx900"])
            for wrong in ("lib/x.so#0", None, ("a",), ("lib/x.so#0", 5)):
                self.assertRaisesRegex(TypeError, r"is no \(key, arch\)", a.__getitem__, wrong)
            self.assertRaisesRegex(TypeError, "5 is no str", a.entry, "lib/x.so#0", 5)
            self.assertRaises(TypeError, a.read, "lib/x.so#0", "gfx900", 1.5)
        self.assertRaisesRegex(ValueError, "NUL", kpackfs.open, self.path("a.kpack\0"))

    def test_damage(self):
        a = mkarchive.Archive(scheme="none")
        a.add("good#0", "gfx900", b"good")
        a.add("bad#0", "gfx900", b"right", stored=b"wrong")
        a.write(self.path("bad.kpack"))
        with kpackfs.open(self.path("bad.kpack")) as a:
            self.assertEqual(a["good#0", "gfx900"], b"good")
            self.refuses(ValueError, kpackfs.Code.DECOMPRESSION_FAILED, lambda: a["bad#0", "gfx900"])
            self.refuses(ValueError, kpackfs.Code.DECOMPRESSION_FAILED, a.verify)

    def test_threads_and_closing(self):
        wrong = []
        a = kpackfs.open(self.archive())
        begun = threading.Barrier(9)

        def reads():
            begun.wait()
            try:
                while True:
                    for name, data in DATA.items():
                        if a[name] != data:
                            wrong.append(name)
            except ValueError as why:
                if "closed" not in str(why):
                    wrong.append(why)

        threads = [threading.Thread(target=reads) for _ in range(8)]
        for t in threads:
            t.start()
        begun.wait()
        for _ in range(20):
            a["lib/x.so#1", "gfx900"]
        a.close()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_nothing_leaks(self):
        path = self.archive()

        def use():
            with kpackfs.open(path) as a, kpackfs.Cache() as cache:
                self.assertEqual(len(a.view("lib/x.so#1", "gfx900")), 300_000)
                cache.load(kpackfs.marker("lib/x.so", [path]), path, 1, ["gfx900"])
                a.read("lib/x.so#1", "gfx900", 5, 5)
            w = kpackfs.Writer(self.path("b.kpack"))
            w.add("k", "gfx900", DATA["lib/x.so#1", "gfx900"])
            del w

        use()
        files, peak = len(os.listdir("/proc/self/fd")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(300):
            use()
        self.assertEqual(len(os.listdir("/proc/self/fd")), files)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak, 40_000)  # KiB; each turn has 1000
        self.assertEqual(os.listdir(self.dir), ["a.kpack"])


class WriteTest(Case):
    def test_an_independent_reader(self):
        for scheme in SCHEMES + ("zstd-shared",):
            with kpackfs.Writer(self.path(scheme), group="rand", family="gfx90X", scheme=scheme, level=5) as w:
                for (key, arch), data in DATA.items():
                    w.add(key, arch, bytearray(data), type="co", path="d/" + key, target="hip--" + arch, mode=0o640,
                          metadata={"note": "é"})
                self.assertFalse(os.path.exists(self.path(scheme)))
            a = readkpack.Archive(self.path(scheme))
            self.assertEqual((a.top["group_name"], a.top["gfx_arch_family"]), ("rand", "gfx90X"))
            self.assertEqual({(k, arch): a.get(e) for k, arch, e in a.entries()}, DATA)
            for key, arch, e in a.entries():
                self.assertEqual(e["type"], "co")
                del e["metadata"]["xxh3"]
                self.assertEqual(e["metadata"], {"path": "d/" + key, "target": "hip--" + arch, "mode": 0o640, "note": "é"})
            with kpackfs.open(self.path(scheme)) as a:
                self.assertEqual((dict(a), a.group, a.family), (DATA, "rand", "gfx90X"))

    def test_what_is_refused_leaves_the_archive(self):
        with kpackfs.Writer(self.path("w.kpack")) as w:
            w.add("k#0", "gfx900", b"one")
            self.assertIn("before", self.refuses(ValueError, 1, w.add, "k#0", "gfx900", b"two"))
            self.refuses(ValueError, 1, w.add, "k#1", "gfx900", b"", path="../x")
            self.refuses(ValueError, 1, w.add, "k#1", "gfx900", b"", metadata={"xxh3": "0"})
            self.assertRaises(ValueError, w.add, "k\0", "gfx900", b"")
            self.assertRaises(TypeError, w.add, "k#1", "gfx900", "text")
            self.assertRaises(TypeError, w.add, "k#1", "gfx900", 5)
            self.assertRaises(ValueError, w.add, "k#1", "gfx900", b"", chunk=1 << 32)
        with kpackfs.open(self.path("w.kpack")) as a:
            self.assertEqual(dict(a), {("k#0", "gfx900"): b"one"})
        self.assertRaisesRegex(ValueError, "closed", w.add, "k#1", "gfx900", b"")
        self.assertRaises(ValueError, kpackfs.Writer, self.path("w.kpack"), scheme="lz4")
        self.refuses(ValueError, 1, kpackfs.Writer, self.path("w.kpack"), level=23)
        self.refuses(FileNotFoundError, 2, kpackfs.Writer, self.path("no", "w.kpack"))

    def test_an_exception_leaves_what_was_there(self):
        with open(self.path("w.kpack"), "w") as f:
            f.write("before")
        with self.assertRaises(ZeroDivisionError), kpackfs.Writer(self.path("w.kpack")) as w:
            w.add("k#0", "gfx900", b"one")
            1 / 0
        w.abort()
        with open(self.path("w.kpack")) as f:
            self.assertEqual(f.read(), "before")
        self.assertEqual(os.listdir(self.dir), ["w.kpack"])


class LoadTest(Case):
    def test_load(self):
        self.archive("x_gfx90a:xnack+.kpack")
        self.archive("x_gfx900.kpack")
        marker = kpackfs.marker("lib/x.so", ["x_@GFXARCH@.kpack"])
        with kpackfs.Cache() as cache:
            load = lambda index, *arches: cache.load(marker, self.path("libx.so"), index, arches)
            self.assertEqual(load(0, "gfx900"), DATA["lib/x.so#0", "gfx900"])
            self.assertEqual(load(1, "amdgcn-amd-amdhsa--gfx900:xnack-"), DATA["lib/x.so#1", "gfx900"])
            self.assertEqual(load(0, "gfx90a:sramecc+:xnack+", "gfx900"), b"")  # the first arch first
            self.refuses(KeyError, kpackfs.Code.KERNEL_NOT_FOUND, load, 999, "gfx900")
            self.assertRaises(ValueError, load, 1 << 32, "gfx900")
            self.refuses(kpackfs.KpackError, kpackfs.Code.ARCHIVE_NOT_FOUND, load, 0, "gfx1100")
            self.refuses(ValueError, kpackfs.Code.INVALID_ARGUMENT, load, 0)
            for damaged in (b"", b"\x80", marker[:-3], marker[:-20]):
                self.refuses(ValueError, kpackfs.Code.INVALID_METADATA, cache.load, damaged, self.dir, 0, ["gfx900"])
            self.assertRaises(TypeError, cache.load, "text", self.dir, 0, ["gfx900"])
            self.assertRaisesRegex(TypeError, "'gfx900' is one str", cache.load, marker, self.dir, 0, "gfx900")
        self.assertRaisesRegex(ValueError, "closed", load, 0, "gfx900")

    def test_the_environment(self):
        self.addCleanup(os.environ.pop, "ROCM_KPACK_PATH", None)
        os.environ["ROCM_KPACK_PATH"] = self.archive()
        with kpackfs.Cache() as cache:
            self.assertEqual(cache.load(kpackfs.marker("lib/x.so", ["no"]), "/no", 0, ["gfx900"]), DATA["lib/x.so#0", "gfx900"])

    def test_embedded(self):
        subprocess.run([sys.executable, os.path.join(SOURCE, "tests/integration/mkfat.py"), "--bundles", "2", "--arches",
                        "gfx942,gfx1100", "--objects", self.path("o"), self.path("lib.so")], check=True)
        with open(self.path("o", "1-gfx1100"), "rb") as f:
            self.assertEqual(kpackfs.load_embedded(self.path("lib.so"), 1, ["gfx1100"]), f.read())
        self.assertIn(self.path("lib.so: "), self.refuses(
            kpackfs.KpackError, kpackfs.Code.ARCH_NOT_FOUND, kpackfs.load_embedded, self.path("lib.so"), 1, ["gfx900"]))

    def test_targets(self):
        self.assertEqual(kpackfs.generic_target("gfx1100"), "gfx11-generic")
        self.assertIn("gfx90a", self.refuses(kpackfs.KpackError, kpackfs.Code.ARCH_NOT_FOUND, kpackfs.generic_target, "gfx90a"))
        self.assertRegex(kpackfs.version(), r"^\d+\.\d+\.\d+$")


class PackageTest(Case):
    def test_another_library_is_refused(self):
        other = os.path.join(os.path.dirname(os.environ["KPACK"]), "tests/stub/amd/librocm_kpack.so.0")
        for place in (other, self.path("none.so")):
            done = subprocess.run([sys.executable, "-c", "import kpackfs"], env={**os.environ, "KPACKFS_LIBRARY": place},
                                  capture_output=True, text=True)
            self.assertIn("ImportError: no librocm_kpack.so.0 of kpackfs: " + place, done.stderr)

    def test_pip_installs_both(self):
        if not importlib.util.find_spec("pip"):
            self.skipTest("no python3-pip")
        places = [os.path.join(SOURCE, "contrib/python", p) for p in ("", "rocm_kpack")]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--target", self.path("to"), *places],
                       check=True, stdout=subprocess.DEVNULL, cwd=self.dir, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
        self.assertTrue(os.path.exists(self.path("to", "kpackfs", "py.typed")))
        done = subprocess.run([sys.executable, "-c", "import kpackfs, rocm_kpack.kpack, rocm_kpack.tools.pack_tree\n"
                               "print(kpackfs.__file__, rocm_kpack.__file__)"], cwd=self.dir, check=True, text=True,
                              env={**os.environ, "PYTHONPATH": self.path("to")}, stdout=subprocess.PIPE)
        self.assertEqual(done.stdout.count(self.path("to")), 2)

    def test_types(self):
        if os.environ.get("CHECK_ALL", "1") != "1" or not importlib.util.find_spec("mypy"):
            return  # make check-all has it
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", self.dir, "-p", "kpackfs", "-p", "rocm_kpack"],
                              env={**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]}, cwd=self.dir, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_examples_of_the_page(self):
        with open(os.path.join(SOURCE, "contrib/python/README.md")) as f:
            blocks = [part.split("```")[0] for part in f.read().split("```python\n")[1:]]
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.dir)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for block in blocks:
                exec(compile(block, "README.md", "exec"), names)
        self.assertGreater(len(blocks), 2)
