# SPDX-License-Identifier: MIT
"""rocm_kpack does what AMD's package of this name does: these are the tests of AMD's that concern it, by their
descriptions, on inputs of independent writers."""
import os, shutil, struct, subprocess, sys, threading
from pathlib import Path

import foreign, mkarchive, mkfat, mkwheel, pes, readkpack
import rocm_kpack
from rocm_kpack.artifact_utils import extract_architecture_from_target, read_artifact_manifest, write_artifact_manifest
from rocm_kpack.binutils import BundledBinary, Toolchain
from rocm_kpack.compression import NoOpCompressor, ZstdCompressor
from rocm_kpack.format_detect import UnsupportedBinaryFormat, detect_binary_format
from rocm_kpack.kpack import PackedKernelArchive
from rocm_kpack.kpack_transform import NotFatBinaryError, is_fat_binary, kpack_offload_binary, read_kpack_ref_marker
from test_kpackfs import Case

BOTH = NoOpCompressor(), ZstdCompressor(compression_level=3)
ARCHES = "gfx90a:xnack+", "gfx942", "gfx1100"
OBJECTS = [[(arch, mkfat.code_object(arch, 5000, str(i))) for arch in ARCHES] for i in range(2)]


def fat(path, bundles=OBJECTS):
    parts, pointers = [], []
    for objects in bundles:
        data = mkfat.bundle(objects, 0, 4096)
        pointers.append(sum(map(len, parts)))
        parts.append(data + bytes(-len(data) % 4096))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(mkfat.shared_library(b"".join(parts), pointers, 0))
    path.chmod(0o755)
    return path


class PythonCase(Case):
    def file(self, *names):
        return Path(self.path(*names))

    def tool(self, name, *arguments, code=0):
        """Both streams of a tool."""
        done = subprocess.run([sys.executable, "-m", "rocm_kpack.tools." + name, *map(str, arguments)], cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout


class ArchiveTest(PythonCase):
    def build(self, compressor, kernels, arches=("gfx1100",), name="t.kpack", family="gfx1100"):
        archive = PackedKernelArchive(group_name="test", gfx_arch_family=family, gfx_arches=list(arches), compressor=compressor)
        for kernel in kernels:
            archive.add_kernel(archive.prepare_kernel(*kernel))
        archive.finalize_archive()
        archive.write(self.file("made", name))
        return self.file("made", name)

    def test_round_trip(self):
        for compressor in BOTH:
            path = self.build(compressor, [("bin/hipcc", "gfx1030", b"one"), ("bin/hipcc", "gfx1001", b"two"),
                                           ("lib/x.so", "gfx1030", b"three", {"version": "1.0"})],
                              ("gfx1001", "gfx1030"), family="gfx100X")
            a = PackedKernelArchive.read(path)
            self.assertEqual((a.group_name, a.gfx_arch_family, a.gfx_arches), ("test", "gfx100X", ["gfx1001", "gfx1030"]))
            self.assertEqual([a.get_kernel("bin/hipcc", "gfx1030"), a.get_kernel("bin/hipcc", "gfx1001")], [b"one", b"two"])
            self.assertEqual(a.toc["lib/x.so"]["gfx1030"]["metadata"], {"version": "1.0"})
            self.assertNotIn("metadata", a.toc["bin/hipcc"]["gfx1030"])
            self.assertEqual(a.toc["bin/hipcc"]["gfx1001"], {"type": "hsaco", "ordinal": 1, "original_size": 3})
            for absent in (("none", "gfx1030"), ("bin/hipcc", "gfx1100"), ("bin/hipcc#0", "gfx1030")):
                self.assertIsNone(a.get_kernel(*absent))
            self.assertEqual(repr(a), "PackedKernelArchive(group=test, family=gfx100X, binaries=2, kernels=3)")

    def test_an_independent_reader(self):
        for compressor in BOTH:
            path = self.build(compressor, [("bin/app%d" % i, "gfx1100", b"data%d" % i) for i in range(3)])
            a = readkpack.Archive(path)
            self.assertEqual(a.top["compression_scheme"], compressor.SCHEME_NAME)
            self.assertEqual([(k, e["ordinal"], a.get(e)) for k, _, e in a.entries()],
                             [("bin/app%d" % i, i, b"data%d" % i) for i in range(3)])

    def test_an_independent_writer(self):
        kernels = {("lib/libtest.so#0", "gfx900"): b"KERNEL1_GFX900_DATA" + bytes(100), ("bin/testapp#0", "gfx900"):
                   b"KERNEL3_APP_GFX900" + b"\xff" * 150, ("lib/libtest.so#0", "gfx906"): b"KERNEL2_GFX906_DATA" + bytes(200)}
        for scheme in ("none", "zstd-per-kernel"):
            a = mkarchive.Archive(scheme=scheme, group="test", family="gfx900X", index=False, checksum=False)
            for (key, arch), data in kernels.items():
                a.add(key, arch, data, hash=False, target="hip--" + arch)
            a.write(self.path("theirs.kpack"))
            a = PackedKernelArchive.read(self.file("theirs.kpack"))
            self.assertEqual({(k, arch): a.get_kernel(k.replace("/", "\\"), arch) for k in a.toc for arch in a.toc[k]}, kernels)
            self.assertEqual(a.toc["bin/testapp#0"]["gfx900"]["metadata"], {"target": "hip--gfx900"})

    def test_compression(self):
        data = b"ROCM_KERNEL_" * 1000
        plain, fast, best = (self.build(c, [("k", "gfx1100", data)], name=n).stat().st_size for c, n in (
            (NoOpCompressor(), "p"), (ZstdCompressor(compression_level=1), "f"), (ZstdCompressor(compression_level=19), "b")))
        self.assertLess(fast, plain / 5)
        self.assertLessEqual(best, fast)
        for name in "pfb":
            self.assertEqual(PackedKernelArchive.read(self.file("made", name)).get_kernel("k", "gfx1100"), data)
        self.assertEqual([c.SCHEME_NAME for c in (NoOpCompressor, ZstdCompressor)], ["none", "zstd-per-kernel"])

    def test_rules(self):
        archive = PackedKernelArchive("g", "gfx1100", ["gfx1100"], compressor=ZstdCompressor())
        first = archive.prepare_kernel("bin\\hipcc", "gfx1100", b"data")
        archive.add_kernel(first)
        self.assertEqual(archive.toc["bin/hipcc"]["gfx1100"]["ordinal"], 0)
        with self.assertRaisesRegex(ValueError, "Kernel already exists"):
            archive.add_kernel(archive.prepare_kernel("bin/hipcc", "gfx1100", b"other"))
        with self.assertRaisesRegex(RuntimeError, "not finalized"):
            archive.write(self.file("x.kpack"))
        with self.assertRaisesRegex(RuntimeError, "finalized"):
            archive.get_kernel("bin/hipcc", "gfx1100")
        archive.finalize_archive()
        self.assertRaises(RuntimeError, archive.finalize_archive)
        with self.assertRaisesRegex(ValueError, "not yet supported"):
            PackedKernelArchive("g", "f", [], output_path=self.file("x.kpack"))
        with self.assertRaisesRegex(ValueError, "Unsupported payload type"):
            archive.prepare_kernel("k", "sm_120", b"", payload_type="unknown")
        with self.assertRaisesRegex(TypeError, "'legacy'.*True"):
            archive.prepare_kernel("k", "gfx1100", b"", {"legacy": True})
        self.assertEqual(PackedKernelArchive.compute_pack_filename("blas", "gfx100X"), "blas-gfx100X.kpack")
        (self.file("bad.kpack")).write_bytes(b"BAD!" + bytes(60))
        self.assertRaises(ValueError, PackedKernelArchive.read, self.file("bad.kpack"))
        self.assertRaises(FileNotFoundError, PackedKernelArchive.read, self.file("none.kpack"))

    def test_payload_types(self):
        targets = {"hsaco": "amd:hip:gfx942:xnack+:sramecc-", "ptx": "nvidia:cuda:sm_120", "spirv": "intel:level-zero:xe2-b70"}
        path = self.build(ZstdCompressor(), [("m/" + t, arch, b"x" + t.encode(), None, t) for t, arch in targets.items()],
                          targets.values(), family="multi-vendor")
        a = PackedKernelArchive.read(path)
        self.assertEqual(set(a.gfx_arches), set(targets.values()))
        for t, arch in targets.items():
            self.assertEqual((a.toc["m/" + t][arch]["type"], a.get_kernel("m/" + t, arch)), (t, b"x" + t.encode()))

    def test_preparing_in_threads(self):
        archive, prepared = PackedKernelArchive("g", "gfx1100", ["gfx1100"], compressor=ZstdCompressor()), {}

        def prepare(i):
            prepared[i] = archive.prepare_kernel("k%d" % i, "gfx1100", b"%d" % i * 1000)

        threads = [threading.Thread(target=prepare, args=(i,)) for i in range(8)]
        for step in (threading.Thread.start, threading.Thread.join):
            list(map(step, threads))
        for i in range(8):
            archive.add_kernel(prepared[i])
        archive.finalize_archive()
        archive.write(self.file("t.kpack"))
        archive = PackedKernelArchive.read(self.file("t.kpack"))
        self.assertEqual([archive.get_kernel("k%d" % i, "gfx1100") for i in range(8)], [b"%d" % i * 1000 for i in range(8)])


class FormatTest(PythonCase):
    def test_formats(self):
        dos = b"MZ" + bytes(58)
        for name, data in {"elf": b"\x7fELF" + bytes(60), "coff": foreign.pe(b"x" * 64, False)}.items():
            self.file(name).write_bytes(data)
            self.assertEqual(detect_binary_format(self.file(name)), name)
        for data in (b"", b"MZ", b"text, no binary", dos + struct.pack("<I", 64) + bytes(64), dos + struct.pack("<I", 1 << 31),
                     dos + struct.pack("<I", 32) + b"PE\0\0" * 8, b"\xcf\xfa\xed\xfe" + bytes(60)):
            self.file("other").write_bytes(data)
            self.assertRaises(UnsupportedBinaryFormat, detect_binary_format, self.file("other"))
            self.assertFalse(is_fat_binary(self.file("other")))
            self.assertRaises(UnsupportedBinaryFormat, read_kpack_ref_marker, self.file("other"))
        for call in (detect_binary_format, is_fat_binary, read_kpack_ref_marker):
            self.assertRaises(FileNotFoundError, call, self.file("none"))

    def test_targets_and_manifests(self):
        for target, arch in {"hipv4-amdgcn-amd-amdhsa--gfx906": "gfx906", "hip-amdgcn-amd-amdhsa--gfx942:xnack+": "gfx942:xnack+",
                             "one-dash": None, "nothing": None, "": None, None: None}.items():
            self.assertEqual(extract_architecture_from_target(target), arch)
        for prefixes in ([], ["math-libs/BLAS/stage", "x"]):
            write_artifact_manifest(self.file(), prefixes)
            self.assertEqual(read_artifact_manifest(self.file()), prefixes)
        self.file("artifact_manifest.txt").write_text("a/b\n\n  \n c\n")
        self.assertEqual(read_artifact_manifest(self.file()), ["a/b", "c"])
        self.assertRaises(FileNotFoundError, read_artifact_manifest, self.file("none"))


class TransformTest(PythonCase):
    def test_convert(self):
        made = fat(self.file("lib.so"))
        self.assertTrue(is_fat_binary(made))
        self.assertIsNone(read_kpack_ref_marker(made))
        paths = ["../.kpack/x_@GFXARCH@.kpack", "a b/Ä.kpack", "/z.kpack"]
        got = kpack_offload_binary(made, self.file("out"), paths, kernel_name="lib/Größe.so")
        self.assertEqual((got["original_size"] - got["removed"], got["format"]), (got["new_size"], "elf"))
        self.assertEqual(self.file("out").stat().st_size, got["new_size"])
        self.assertLess(got["new_size"], got["original_size"])
        self.assertEqual(read_kpack_ref_marker(self.file("out")), {"kpack_search_paths": paths, "kernel_name": "lib/Größe.so"})
        self.assertFalse(is_fat_binary(self.file("out")))
        self.assertTrue(os.access(self.file("out"), os.X_OK))

    def test_windows_files(self):
        for name, pe in {"one.dll": pes.Pe(), "three.dll": pes.Pe(n=3), "program.exe": pes.Pe(dll=False, base=0x140000000)}.items():
            self.file(name).write_bytes(pe.build())
            self.assertTrue(is_fat_binary(self.file(name)))
            self.assertIsNone(read_kpack_ref_marker(self.file(name)))
            got = kpack_offload_binary(self.file(name), self.file("out"), ["../x.kpack"], kernel_name=name)
            self.assertEqual((got["format"], got["new_size"]), ("coff", self.file("out").stat().st_size))
            self.assertEqual(read_kpack_ref_marker(self.file("out")), {"kpack_search_paths": ["../x.kpack"], "kernel_name": name})
            self.assertFalse(is_fat_binary(self.file("out")))
            self.file("out").unlink()
        self.file("host.dll").write_bytes(foreign.pe(b"", False).replace(b".hip_fat", b".rdata_x"))
        self.assertFalse(is_fat_binary(self.file("host.dll")))
        with self.assertRaisesRegex(NotFatBinaryError, r"no \.hip_fat section"):
            kpack_offload_binary(self.file("host.dll"), self.file("out"), ["x"], "name")
        self.assertFalse(self.file("out").exists())

    def test_what_is_refused(self):
        host = fat(self.file("host.so"), [])
        subprocess.run(["objcopy", "--remove-section=.hip_fatbin", "--remove-section=.hipFatBinSegment", host], check=True)
        self.assertFalse(is_fat_binary(host))
        subprocess.run(["objcopy", "--only-keep-debug", fat(self.file("lib.so")), self.file("lib.debug")], check=True)
        self.assertFalse(is_fat_binary(self.file("lib.debug")))  # its .hip_fatbin has no bytes
        with self.assertRaisesRegex(NotFatBinaryError, r"no \.hip_fatbin section"):
            kpack_offload_binary(host, self.file("out"), ["x"], "name")
        self.assertRaises(ValueError, kpack_offload_binary, host, self.file("out"), ["x"])
        self.assertFalse(self.file("out").exists())
        self.assertIs(rocm_kpack.NotFatBinaryError, NotFatBinaryError)

    def test_unbundle(self):
        with BundledBinary(fat(self.file("lib.so")), toolchain=Toolchain()).unbundle() as u:
            got = [(extract_architecture_from_target(t), (u.dest_dir / f).read_bytes()) for t, f in u.target_list]
        self.assertEqual(got, OBJECTS[0] + OBJECTS[1])
        self.assertFalse(u.dest_dir.exists())
        self.assertEqual(BundledBinary(self.file("lib.so")).list_bundles(), [*ARCHES, *ARCHES])
        with BundledBinary(self.file("lib.so")).unbundle(dest_dir=self.file("u"), delete_on_close=False, gfx_arch="gfx90a") as u:
            self.assertEqual([t for t, _ in u.target_list], ["hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"] * 2)
        self.assertEqual(sorted(os.listdir(self.file("u"))), sorted(u.file_names))
        with self.assertRaisesRegex(ValueError, "gfx1250"):
            BundledBinary(self.file("lib.so")).unbundle(gfx_arch="gfx1250")


class ToolTest(PythonCase):
    def artifact(self, name="blas_lib"):
        top = self.file(name + "_gfx94X")
        fat(top / "math/stage/lib/libx.so.1")
        (top / "math/stage/lib/libx.so").symlink_to("libx.so.1")
        (top / "comm/stage").mkdir(parents=True)
        (top / "comm/stage/note").write_text("host")
        db = top / "math/stage/lib/rocblas/library"
        db.mkdir(parents=True)
        for arch in ("gfx942", "gfx1100"):
            (db / ("TensileLibrary_%s.dat" % arch)).write_text(arch)
        write_artifact_manifest(top, ["math/stage", "comm/stage"])
        return top

    def test_split_artifacts(self):
        self.tool("split_artifacts", "--artifact-dir", self.artifact(), "--output-dir", "out", "--artifact-prefix", "blas_lib",
                  "--clang-offload-bundler", "/none", "--split-databases", "rocblas", "hipblaslt")
        generic = self.file("out/blas_lib_generic")
        self.assertEqual(sorted(read_artifact_manifest(generic)), ["comm/stage", "math/stage"])
        self.assertEqual((generic / "comm/stage/note").read_text(), "host")
        self.assertEqual(os.readlink(generic / "math/stage/lib/libx.so"), "libx.so.1")
        self.assertEqual(list((generic / "math/stage/lib/rocblas").rglob("*gfx*")), [])
        marker = read_kpack_ref_marker(generic / "math/stage/lib/libx.so.1")
        self.assertEqual(marker["kpack_search_paths"], ["../.kpack/blas_lib_@GFXARCH@.kpack"])
        for i, arch in enumerate(ARCHES):
            a = PackedKernelArchive.read(self.file("out/blas_lib_" + arch, "math/stage/.kpack/blas_lib_%s.kpack" % arch))
            self.assertEqual([a.get_kernel("%s#%d" % (marker["kernel_name"], n), arch) for n in range(2)],
                             [objects[i][1] for objects in OBJECTS])
        self.assertEqual(self.file("out/blas_lib_gfx942/math/stage/lib/rocblas/library/TensileLibrary_gfx942.dat").read_text(), "gfx942")
        self.tool("verify_artifacts", "--artifacts-dir", "out")
        self.tool("normalize_phdr_tree", "--check", "out")
        self.assertIn("libx.so.1: ok", self.tool("normalize_phdr_tree", "out"))
        shutil.copy2(self.file("blas_lib_gfx94X/math/stage/lib/libx.so.1"), generic / "math/stage/lib/raw.so")
        self.assertIn("raw.so", self.tool("verify_artifacts", "--artifacts-dir", "out", code=1))
        (generic / "math/stage/lib/raw.so").unlink()
        with open(self.file("out/blas_lib_gfx942/math/stage/.kpack/blas_lib_gfx942.kpack"), "r+b") as f:
            f.write(b"BAD!")
        self.assertIn("blas_lib_gfx942.kpack", self.tool("verify_artifacts", "--artifacts-dir", "out", code=1))
        shutil.rmtree(self.file("out/blas_lib_gfx942/math"))
        (generic / "artifact_manifest.txt").unlink()
        self.assertIn("blas_lib_generic: no artifact_manifest.txt", self.tool("verify_artifacts", "--artifacts-dir", "out", code=1))
        self.assertIn("none: no directory", self.tool("verify_artifacts", "--artifacts-dir", "none", code=2))

    def test_split_targets(self):
        self.tool("split_artifacts", "--artifact-dir", self.artifact(), "--output-dir", "out", "--artifact-prefix", "b",
                  "--gpu-targets", "gfx90a", "gfx1100")
        self.assertEqual(sorted(os.listdir(self.file("out"))), ["b_generic", "b_gfx1100", "b_gfx90a:xnack+"])
        self.assertIn("no device code objects matched", self.tool(
            "split_artifacts", "--artifact-dir", "blas_lib_gfx94X", "--output-dir", "o", "--artifact-prefix", "b",
            "--gpu-targets", "gfx1250", code=1))

    def test_split_python_wheels(self):
        subprocess.run([sys.executable, mkwheel.__file__, "make", "--arches", "gfx942,gfx1100", self.dir], check=True,
                       stdout=subprocess.DEVNULL)
        wheel = next(self.file().glob("*.whl"))
        common = "--input", wheel, "--output-dir", "dist", "--device-package-prefix", "amd-torch-device"
        self.tool("split_python_wheels", *common, "--overlay-root", "torch", "--wheel-type", "torch-fat", "--compression", "zstd",
                  "--device-requires-dist", "rocm-sdk-device-@GFXARCH@", "-j", "2")
        made = sorted(os.listdir(self.file("dist")))
        self.assertEqual([n.split("-")[0] for n in made], ["amd_torch_device_gfx1100", "amd_torch_device_gfx942", "torch"])
        subprocess.run([sys.executable, mkwheel.__file__, "check", *(self.file("dist", n) for n in made)], check=True,
                       stdout=subprocess.DEVNULL)
        self.assertIn("Overlay root", self.tool("split_python_wheels", *common, "--overlay-root", "none", code=1))

    def test_pack_tree_and_kpack_tool(self):
        fat(self.file("in/lib/x.so"))
        self.tool("pack_tree", "--input", "in", "--output", "out", "--group-name", "g", "--gfx-arch-family", "gfx94X",
                  "--gfx-arches", "gfx942,gfx1100", "--compression", "zstd", "--max-workers", "2")
        (archive,) = self.file("out/.kpack").iterdir()
        self.assertEqual(PackedKernelArchive.read(archive).gfx_arch_family, "gfx94X")
        self.assertIn("lib/x.so#1\tgfx942\t", self.tool("kpack_tool", "list", archive))
        self.assertIn("gfx94X", self.tool("kpack_tool", "list", "--summary", archive))
        self.tool("kpack_tool", "extract", archive, "lib/x.so#1", "gfx942", "-o", "k.hsaco")
        self.assertEqual(self.file("k.hsaco").read_bytes(), OBJECTS[1][1][1])
        self.tool("kpack_tool", "extract", archive, "lib/x.so#9", "gfx942", "-o", "k2", code=1)

    def test_bulk_unbundle(self):
        fat(self.file("lib.so"))
        self.tool("bulk_unbundle", "--clang-offload-bundler", "/none", "lib.so")
        self.assertEqual(len(os.listdir(self.file("lib.unbundled"))), 6)

    def test_tools_without_an_equal_name_ours(self):
        for name, ours in (("recombine_artifacts", "kpack merge"), ("kpack_binary", "kpack mark convert"), ("verify_elf", "kpack mark check")):
            self.assertIn(ours, self.tool(name, "x", "y", code=1))

    def test_the_program_is_missing(self):
        done = subprocess.run([sys.executable, "-m", "rocm_kpack.tools.bulk_unbundle", "x"], capture_output=True, text=True,
                              env={**os.environ, "KPACK": self.path("none")})
        self.assertIn("rocm_kpack needs that of kpackfs in PATH", done.stderr)
