#!/usr/bin/env bats
# Packing device code of every format: as INPUT, in a tree, nested in each other.  The
# inputs are made by Python and by clang, and read back from archives by Python.

# bats file_tags=single

load packing.bash

teardown() {
	cd /
	! grep -q " $T/mnt " /proc/self/mounts || fusermount3 -u "$T/mnt" || umount -l "$T/mnt"
	rm -rf "$T"
}

have() {
	local program
	for program in clang-22 clang-offload-bundler-22 llvm-ar-22 llvm-objcopy-22; do
		command -v $program >/dev/null || return 1
	done
}

cuda=$BATS_TEST_DIRNAME/../data/cuda
amdgpu=$BATS_TEST_DIRNAME/../data/amdgpu

# Files of all formats in the directory given, and what.json: of each the entries that packing
# it gives: [suffix of the key, arch, type, MD5, metadata].
make_files() { # DIR
	mkdir -p "$1"
	CUDA=$cuda AMDGPU=$amdgpu py "$1" <<-'END'
	import hashlib, json, os, struct, subprocess, sys
	import zstandard
	import mkoffload as o

	where = sys.argv[1]
	what = {}

	def add(name, data, *entries):
	    with open(os.path.join(where, name), "wb") as f:
	        f.write(data)
	    what[name] = [[suffix, arch, kind, hashlib.md5(bytes_).hexdigest(), meta]
	                  for suffix, arch, kind, bytes_, meta in entries]

	co = {a: o.code_object(a, 900, "one") for a in ("gfx1100", "gfx90a:xnack+", "gfx942")}
	other = o.code_object("gfx1100", 900, "other")
	third = o.code_object("gfx1100", 900, "third")
	bc = b"BC\xc0\xde" + bytes(60)
	bc2 = b"BC\xc0\xde" + bytes(59) + b"2"
	spv = struct.pack("<IIIII", 0x07230203, 0x10400, 0, 9, 0)
	amdspv = struct.pack("<IIIII", 0x07230203, 0x10600, 0xffff << 16, 9, 0)
	ptx = b"//\n.version 8.3\n.target sm_90a\n.address_size 64\n"
	ptx70 = ptx.replace(b"sm_90a", b"sm_70")
	host = ("host-x86_64-unknown-linux-gnu-", b"")
	four = "hipv4-amdgcn-amd-amdhsa--"

	def target(name):
	    return {"target": name}

	# bundles: two kinds for one GPU, neutral code, PTX that is called sm_70
	add("kinds.hipfb", o.raw_bundle([host, (four + "gfx1100", co["gfx1100"]),
	                                 ("openmp-amdgcn-amd-amdhsa--gfx1100", other),
	                                 (four + "gfx90a:xnack+", co["gfx90a:xnack+"])]),
	    ("#0", "gfx1100", "hsaco", co["gfx1100"], target(four + "gfx1100")),
	    ("@openmp#0", "gfx1100", "hsaco", other, target("openmp-amdgcn-amd-amdhsa--gfx1100")),
	    ("#0", "gfx90a:xnack+", "hsaco", co["gfx90a:xnack+"], target(four + "gfx90a:xnack+")))
	neutral = o.raw_bundle([("hip-amdgcn-amd-amdhsa--", bc),
	                        ("hip-spirv64-amd-amdhsa--amdgcnspirv", amdspv),
	                        ("openmp-nvptx64-nvidia-cuda--sm_70", ptx70)])
	wants = [("#0", "generic", "bc", bc, target("hip-amdgcn-amd-amdhsa--")),
	         ("#0", "amdgcnspirv", "spv", amdspv, target("hip-spirv64-amd-amdhsa--amdgcnspirv")),
	         ("#0", "compute_70", "ptx", ptx70, target("openmp-nvptx64-nvidia-cuda--sm_70"))]
	add("neutral.o", neutral, *wants)
	add("neutral.ccob", o.ccob(neutral), *wants)
	# two containers in one file, plain and compressed
	add("two.hipfb", o.ccob(o.raw_bundle([(four + "gfx942", co["gfx942"])])) + bytes(100) +
	    o.raw_bundle([(four + "gfx942", other)]),
	    ("#0", "gfx942", "hsaco", co["gfx942"], target(four + "gfx942")),
	    ("#1", "gfx942", "hsaco", other, target(four + "gfx942")))
	text = [host, ("hip-amdgcn-amd-amdhsa--gfx906", b"; LLVM's text\n")]
	add("text.ll", o.text_bundle(text, ";"),
	    ("#0", "gfx906", "co", text[1][1], target(text[1][0])))

	# objects that stand alone
	for version, arch in ("v2", "gfx906:sramecc+:xnack+"), ("v4", "gfx90a:xnack+"), ("v6", "gfx11-generic"):
	    data = open(os.path.join(os.environ["AMDGPU"], version + ".hsaco"), "rb").read()
	    add(version + ".hsaco", data, ("#0", arch, "hsaco", data, {}))
	add("alone.bc", bc, ("#0", "generic", "bc", bc, {}))
	add("alone.spv", spv, ("#0", "generic", "spv", spv, {}))
	add("amd.spv", amdspv, ("#0", "amdgcnspirv", "spv", amdspv, {}))
	add("alone.ptx", ptx, ("#0", "compute_90a", "ptx", ptx, {}))

	# offload binaries: one after another, by their keys, by their code, and nested
	def keys(kind, image, **more):
	    return {"keys": dict(more, kind=kind, **{"image kind": image})}
	triple = "amdgcn-amd-amdhsa"
	add("stream.bin",
	    o.offload_binary(co["gfx1100"], triple=triple, arch="gfx1100", feature="a,b", note="x") +
	    o.offload_binary(ptx, 5, 2, arch="sm_90a") + o.offload_binary(other, arch="") +
	    o.offload_binary(bc, 2, 1),
	    ("#0", "gfx1100", "hsaco", co["gfx1100"],
	     keys("hip", "object", triple=triple, arch="gfx1100", feature="a,b", note="x")),
	    ("#1", "compute_90a", "ptx", ptx, keys("cuda", "ptx", arch="sm_90a")),
	    ("#2", "gfx1100", "hsaco", other, keys("hip", "object", arch="")),
	    ("#3", "generic", "bc", bc, keys("openmp", "bitcode")))
	inner = o.offload_binary(o.offload_binary(bc, 2, 1) + o.offload_binary(other), arch="gfx1100")
	add("nested.bin", inner + o.offload_binary(third),
	    ("#0", "gfx1100", "bc", bc, keys("openmp", "bitcode")), # of what is around it
	    ("#1", "gfx1100", "hsaco", other, keys("hip", "object")),
	    ("#2", "gfx1100", "hsaco", third, keys("hip", "object")))
	add("deep.ccob", o.ccob(o.raw_bundle([("openmp-amdgcn-amd-amdhsa--gfx1100", inner)])),
	    ("#0", "gfx1100", "bc", bc, keys("openmp", "bitcode")),
	    ("#1", "gfx1100", "hsaco", other, keys("hip", "object")))

	# objects of the host, archives of them and of code
	fat = o.elf_object([
	    (".hip_fatbin", 1, 16, o.raw_bundle([(four + "gfx1100", co["gfx1100"])], 4096) + bytes(64) +
	     o.ccob(o.raw_bundle([(four + "gfx942", co["gfx942"])]))),
	    (".text", 1, 16, b"\x90" * 40),
	    ("anything", 0x6fff4c0b, 8, o.offload_binary(third, arch="gfx1100")),
	    ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", 1, 1, bc2),
	    ("__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", 1, 1, b"\0")])

	def of_fat(n):
	    # the object's own sections come before what is in them
	    return [("#%d" % n, "gfx90a", "bc", bc2, target("hip-amdgcn-amd-amdhsa--gfx90a")),
	            ("#%d" % (n + 1), "gfx1100", "hsaco", co["gfx1100"], target(four + "gfx1100")),
	            ("#%d" % (n + 2), "gfx942", "hsaco", co["gfx942"], target(four + "gfx942")),
	            ("#%d" % (n + 3), "gfx1100", "hsaco", third, keys("hip", "object", arch="gfx1100"))]
	add("fat.o", fat, *of_fat(0))
	add("none.o", o.elf_object([(".text", 1, 16, b"\x90" * 40)]))
	add("none.a", o.ar([("readme", b"text"), ("a.o", o.elf_object([]))]))
	add("lib.a", o.ar([("first.o", fat), ("b.bc", bc), ("readme", b"text"), ("c.bc", bc2),
	                   ("k.hsaco", co["gfx942"]), ("again.bc", bc),
	                   ("bundle", o.raw_bundle([host, (four + "gfx942", other)]))]),
	    ("#0", "generic", "bc", bc, {"member": "b.bc"}),
	    ("@bc#0", "generic", "bc", bc2, {"member": "c.bc"}),
	    ("#0", "gfx942", "hsaco", co["gfx942"], {"member": "k.hsaco"}),
	    *of_fat(1), ("#5", "gfx942", "hsaco", other, target(four + "gfx942")))

	# CUDA's, which Python takes apart by their headers
	def fatbin_images(data):
	    at, end = 16, 16 + struct.unpack_from("<Q", data, 8)[0]
	    while at < end:
	        kind, _, header, size, stored = struct.unpack_from("<HHIQI", data, at)
	        sm, = struct.unpack_from("<I", data, at + 28)
	        flags, = struct.unpack_from("<Q", data, at + 40)
	        image = data[at + header:at + header + size]
	        if flags & 0x8000:
	            image = zstandard.ZstdDecompressor().decompress(image[:stored])
	        name = "%d%s" % (sm, "a" if flags & 0x100000 else "f" if flags & 0x200000 else "")
	        yield ("sm_" + name, "cubin", image) if kind == 2 else \
	            ("compute_" + name, "ptx", image.rstrip(b"\0"))
	        at += header + size

	cubin = None
	for name in "zstd", "family", "plain":
	    data = open(os.path.join(os.environ["CUDA"], name + ".fatbin"), "rb").read()
	    images = list(fatbin_images(data))
	    add(name + ".fatbin", data, *(("#0", a, t, i, {"fatbin": {"kind": "cuda", "image kind": t}})
	                                  for a, t, i in images))
	    for arch, kind, image in images:
	        add("%s.%s" % (arch, kind), image, ("#0", arch, kind, image, {}))
	        cubin = image if arch == "sm_80" else cubin

	def fatbin(*images):
	    body = b"".join(
	        struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(i) + -len(i) % 8, 0, 0, 1, 8, sm,
	                    0, 0, flags, 0, 0) + i + bytes(-len(i) % 8) for kind, sm, flags, i in images)
	    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
	same = {"fatbin": {"kind": "cuda"}}
	cubins = [cubin + bytes(8 * n) for n in range(3)]
	add("same.fatbin", fatbin((2, 80, 0x11, cubins[0]), (2, 80, 0x11, cubins[1]),
	                          (1, 80, 0x11, ptx + b"\0"), (2, 80, 0x11, cubins[0]),
	                          (2, 80, 0x11, cubins[2])),
	    ("#0", "sm_80", "cubin", cubins[0], same), ("@cuda#0", "sm_80", "cubin", cubins[1], same),
	    ("@cuda.2#0", "sm_80", "cubin", cubins[2], same), ("#0", "compute_80", "ptx", ptx, same))

	# TileIR: its own hint, and a signature in the kernel's name
	def tileir(name, version, arch, symbol):
	    path = os.path.join(where, name)
	    subprocess.run([sys.executable, os.path.join(os.environ["PYTHONPATH"], "mktileir.py"), "write",
	                    path, version, arch, symbol], check=True)
	    return open(path, "rb").read()
	symbol = "my_kernel_Kt1_A2f32_3l0"
	data = tileir("hint.tileirbc", "13.1", "sm_100", symbol)
	add("hint.tileirbc", data, ("#0", "sm_100", "tileirbc", data, {"signatures": [{"symbol": symbol}]}))
	data = tileir("none.tileirbc", "13.3", "-", "plain")
	add("none.tileirbc", data, ("#0", "generic", "tileirbc", data, {}))
	json.dump(what, open("what.json", "w"))
	END
}

# Do the archives in DIR have exactly what what.json says of FILE..., under PREFIX in their keys?
check_archives() { # DIR PREFIX FILE...
	py "$@" <<-'END'
	import glob, hashlib, json, sys
	import readkpack

	def has(got, want):
	    if isinstance(want, dict):
	        return isinstance(got, dict) and all(k in got and has(got[k], v) for k, v in want.items())
	    if isinstance(want, list):
	        return len(got) == len(want) and all(map(has, got, want))
	    return got == want

	where, prefix, files = sys.argv[1], sys.argv[2], sys.argv[3:]
	what = json.load(open("what.json"))
	want = {(prefix + f + e[0], e[1]): e[2:] for f in files for e in what[f]}
	assert len(want) == sum(len(what[f]) for f in files)
	got = {}
	for path in glob.glob(where + "/*.kpack"):
	    archive = readkpack.Archive(path)
	    for key, arch, e in archive.entries():
	        got[key, arch] = e["type"], hashlib.md5(archive.get(e)).hexdigest(), e["metadata"]
	        assert "path" not in e["metadata"]
	        assert path.endswith("_%s.kpack" % arch), (path, arch)
	assert sorted(got) == sorted(want), (sorted(set(got) - set(want)), sorted(set(want) - set(got)))
	for name, (kind, md5, meta) in want.items():
	    assert got[name][:2] == (kind, md5), (name, got[name], kind, md5)
	    assert has(got[name][2], meta), (name, got[name][2], meta)
	    assert set(got[name][2]) == {"xxh3"} | set(meta), (name, got[name][2])
	END
}

@test "in a tree they are packed and stay; in place, too" {
	make_files in/lib
	(cd in/lib && ls) >names
	mkfat --seed 3 --bundles 1 --arches gfx1100 in/fat.so
	cp -a in inplace
	kpack pack -q --archives-only --group g in only 2>err
	[ ! -s err ]
	kpack pack --json --group g in out >report.json 2>err
	[ ! -s err ]
	kpack pack -q --group g --in-place inplace 2>err
	[ ! -s err ]
	diff -r in/lib out/lib
	diff -r in/lib inplace/lib
	diff -r out inplace
	treecheck code in out
	kpack mark check out
	kpack verify --tree out
	py <<-'END'
	import json
	r = json.load(open("report.json"))
	status = {f["path"]: f["status"] for f in r["files"]}
	what = json.load(open("what.json"))
	for name, entries in what.items():
	    assert status["lib/" + name] == ("kept" if entries else "copied"), name
	assert status["fat.so"] == "converted"
	assert r["summary"]["kept"] == sum(1 for e in what.values() if e), r["summary"]
	END
	# the same entries, and the library's
	for d in only out inplace; do
		rm -rf some
		mkdir some
		cp $d/.kpack/* some
		kpack ls some | grep -c '^fat.so#0' | grep -qx 1
		kpack ls some | grep -v '^fat.so#' | cut -f 1,2 | sort >entries.$d
	done
	cmp entries.only entries.out
	cmp entries.only entries.inplace
	rm in/fat.so
	kpack pack -q --archives-only --group g in lib
	# shellcheck disable=SC2046
	check_archives lib/.kpack lib/ $(cat names)
	# again: nothing changes, and other files' entries stay
	cp -a lib before
	kpack pack -q --archives-only --group g in lib
	diff -r before lib
	kpack pack -q --archives-only --group g --key-prefix lib in/lib/lib.a lib
	diff <(kpack ls before/.kpack | cut -f 1-3) <(kpack ls lib/.kpack | cut -f 1-3)
	# equal bytes are stored once
	[ "$(kpack ls --json lib/.kpack | grep -c '"arch":"gfx942".*"ordinal":0,')" -ge 4 ]
}

@test "--arch: sm_ and compute_ exactly, neutral code always" {
	make_files in
	pick() { # LIST
		rm -rf out
		kpack pack -q --archives-only --group g --arch "$1" in out
		kpack ls out/.kpack | cut -f 2 | sort -u | tr '\n' ' '
	}
	[ "$(pick sm_90a)" = "generic sm_90a " ]
	[ "$(pick compute_90a)" = "compute_90a generic " ]
	[ "$(pick sm_90a,sm_80)" = "generic sm_80 sm_90a " ]
	[ "$(pick gfx90a)" = "amdgcnspirv generic gfx90a gfx90a:xnack+ " ]
	[ "$(pick gfx90a:xnack+)" = "amdgcnspirv generic gfx90a gfx90a:xnack+ " ]
	[ "$(pick gfx90a:xnack-)" = "amdgcnspirv generic gfx90a " ]
	[ "$(pick amdgcnspirv)" = "amdgcnspirv generic " ]
	[ "$(pick generic)" = "generic " ]
	# numbers stay: they do not depend on what is chosen
	rm -rf out
	kpack pack -q --archives-only --group g --arch gfx942 in/lib.a out
	[ "$(kpack ls out/.kpack | cut -f 1 | sort | tr '\n' ' ')" = "lib.a#0 lib.a#0 lib.a#3 lib.a#5 lib.a@bc#0 " ]
	run kpack pack --archives-only --group g --arch sm_90,gfx1100 in out2
	[ "$status" -eq 0 ]
	[[ "$output" == *"warning: no code object for sm_90"* ]]
	[[ "$output" != *"for gfx1100"* ]]
	# a tree's file of which nothing is asked for is a file like others
	mkdir one
	cp in/same.fatbin in/two.hipfb one
	kpack pack --json --arch gfx942 one out3 >report.json
	grep -q '"status": *"copied"' report.json
	grep -q '"status": *"kept"' report.json
	cmp one/same.fatbin out3/same.fatbin
	# listing and extracting by such names
	rm -rf out
	kpack pack -q --archives-only --group g in out
	[ "$(kpack ls --arch sm_90a out/.kpack | cut -f 2 | sort -u | tr '\n' ' ')" = "generic sm_90a " ]
	kpack extract --arch compute_90a out/.kpack -C got
	cmp in/alone.ptx got/toc/alone.ptx/compute_90a.ptx
	[ "$(find got -type f | grep -v /generic | grep -vc compute_90a)" = 0 ]
	kpack pack -q --archives-only --group f --family cuda=sm_80,sm_90a,compute_90a in out4
	[ "$(kpack ls out4/.kpack/f-cuda.kpack | cut -f 2 | sort -u | tr '\n' ' ')" = "compute_90a sm_80 sm_90a " ]
}

@test "sources and texts are no device code" {
	mkdir in
	cat >in/a.c <<-'END'
	// __CLANG_OFFLOAD_BUNDLE____START__ is written by the bundler
	/* .version 8.0 */
	int main(void) { return 0; }
	END
	printf '# a comment\na.o: a.c \\\n  a.h\n' >in/a.d
	printf '\n# a comment\n\t.version "01.01"\n\t.text\n' >in/a.s
	printf '\t.version 2\n\t.target\n' >in/b.s
	printf '// only comments\n// and no code\n' >in/b.ptx
	printf '; ModuleID\ntarget triple = "amdgcn-amd-amdhsa"\n' >in/a.ll
	printf 'BC is no bitcode' >in/bc
	printf '!<arch>\n' >in/empty.a
	: >in/empty
	printf '\x7fTileIR' >in/short
	printf '\x03\x02\x23' >in/shorter
	# what a preprocessor and a compiler put together for each target is no code either
	py <<-'END'
	import mkoffload
	entries = [("host-x86_64-unknown-linux-gnu-", b"int x;\n"),
	           ("hip-amdgcn-amd-amdhsa--gfx906", b"int y;\n")]
	for name, comment in ("a.hipi", "//"), ("a.cui", "//"), ("a.ii", "//"), ("b.d", "#"):
	    open("in/" + name, "wb").write(mkoffload.text_bundle(entries, comment))
	END
	kpack pack in out >table 2>err
	# a file that only begins like a container is reported, and no more
	sort err | cut -c -24 >messages
	printf 'kpack: in/%s: note: %s\n' a.c text b.s ptx | cut -c -24 | cat - <(echo 'kpack: in: note: no device code' | cut -c -24) | diff - messages
	diff -r in out
	# but asked for by name it is taken
	kpack pack -q --archives-only in/a.hipi out2
	[ "$(kpack ls out2/.kpack | cut -f 1,2)" = $'a.hipi#0\tgfx906' ]
}

@test "what cannot be read to its end is an error in a tree, and a fault by itself" {
	make_files all
	mkdir in
	cp all/v6.hsaco in
	shorten() { head -c $(($(stat -c %s "all/$1") - $2)) "all/$1" >"in/$1"; }
	shorten nested.bin 300
	shorten lib.a 200
	shorten zstd.fatbin 500
	shorten kinds.hipfb 900
	shorten neutral.ccob 3
	shorten fat.o 70
	shorten sm_80.cubin 100
	# nothing says for which GPU it is; damage behind the table of a compressed bundle
	py <<-'END'
	import mkoffload, random
	open("in/junk.bin", "wb").write(mkoffload.offload_binary(b"junk", arch=""))
	for kind in "hip", "openmp":
	    code = bytes(random.Random(1).choices(b"some words", k=1 << 20))
	    data = bytearray(mkoffload.ccob(mkoffload.raw_bundle([(kind + "-amdgcn-amd-amdhsa--gfx1100", code)])))
	    data[-1] = 0 # no block's bits end in it
	    open("in/%s.ccob" % kind, "wb").write(data)
	END
	for options in "" --archives-only; do
		rm -rf out
		! kpack pack -q $options --group g in out 2>quiet || false
		rm -rf out
		! kpack pack $options --group g in out >table 2>err || false
		for f in in/*; do
			# of the object not even the names of its sections can be read
			case $f in
			in/v6.hsaco) continue ;;
			in/fat.o) kind=note ;;
			in/junk.bin) kind='warning: its device code stays in it' ;;
			*) kind='damaged, its device code stays in it' ;;
			esac
			grep -q "^kpack: $f: $kind: " err || { echo "$f"; cat err; false; }
		done
		[ "$(grep -vc ' bytes more than the input: ' err)" = 10 ]
		grep -v ' bytes more than the input: \|fat.o: note: ' err | diff - quiet
		[ "$(kpack ls out/.kpack | cut -f 1)" = "v6.hsaco#0" ]
	done
	for f in in/*; do
		[ "$f" = in/v6.hsaco ] || fails "$f: " --archives-only "$f" out2
	done
	[ ! -e out2 ]
}

@test "names that no archive can have harm no other file of a tree" {
	mkdir in
	py <<-'END'
	import mkoffload as o
	co = [o.code_object("gfx1100", 900, n) for n in ("one", "two", "three")]
	ids = ["hip-amdgcn-amd-amdhsa--gfx1100", "a/../b#1\n-amdgcn-amd-amdhsa--gfx1100",
	       "k.2-amdgcn-amd-amdhsa--gfx1100"]
	open("in/kinds.hipfb", "wb").write(o.raw_bundle(list(zip(ids, co))))
	for n, arch in enumerate(("gfx\n1", "..", "a/b", "\x7f")):
	    open("in/arch%d.bin" % n, "wb").write(o.offload_binary(co[0], arch=arch))
	open("in/a.s", "w").write("\t.version 8.0\n\t.target foo\n\t.text\n")
	END
	kpack pack --group g in out >table 2>err
	[ "$(grep -c '^kpack: in/arch[0-3].bin: warning: .* gives no file name$' err)" = 4 ]
	grep -q '^kpack: in/a.s: note: ' err
	[ "$(grep -vc ' bytes more than the input: ' err)" = 5 ]
	[ "$(cd out/.kpack && echo *)" = g_gfx1100.kpack ]
	kpack ls out/.kpack | cut -f 1 | sort >got
	printf 'kinds.hipfb%s#0\n' '' @a____b_1_ @k_2 | diff - got
	kpack verify -q out/.kpack
	# packed again they replace themselves
	kpack pack -q --group g in out
	kpack ls out/.kpack | cut -f 1 | sort | diff got -
}

@test "a hard link and a link of such a file" {
	make_files all
	mkdir -p in/a in/b
	cp all/stream.bin in/b/x.bin
	ln in/b/x.bin in/a/y.bin
	ln -s ../b/x.bin in/a/z.bin
	kpack pack -q in out
	[ "$(kpack ls out/.kpack | cut -f 1 | cut -d '#' -f 1 | sort -u)" = a/y.bin ]
	[ "$(stat -c %h out/a/y.bin)" = 2 ]
	[ -L out/a/z.bin ]
}

@test "the mount shows them" {
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	make_files in
	kpack pack -q --archives-only --group g in out
	mkdir mnt
	"$KPACK_BIN/kpackfs" out/.kpack mnt
	cmp in/alone.ptx mnt/toc/alone.ptx/compute_90a.ptx
	cmp in/alone.bc mnt/toc/alone.bc/generic.bc
	cmp in/sm_90a.cubin mnt/toc/zstd.fatbin/sm_90a.cubin
	cmp in/hint.tileirbc mnt/toc/hint.tileirbc/sm_100.tileirbc
	cmp in/amd.spv mnt/toc/amd.spv/amdgcnspirv.spv
	[ "$(ls "mnt/toc/same.fatbin@cuda.2")" = sm_80.cubin ]
	fusermount3 -u mnt
}

# bats test_tags=all
@test "host binaries with CUDA's code: noted, and packed with --archives-only" {
	have || skip "no clang-22"
	mkdir -p in
	mkfat --seed 5 --bundles 2 --arches gfx1100 hip.so
	printf '.section .nv_fatbin,"a"\n.balign 8\n.incbin "%s"\n.balign 8\n.incbin "%s"\n' \
		"$cuda/zstd.fatbin" "$cuda/plain.fatbin" >nv.s
	clang-22 -c nv.s -o in/nv.o
	clang-22 -shared -nostdlib in/nv.o -o in/nv.so
	# a library with both: section .nv_fatbin in what mkfat made
	llvm-objcopy-22 --add-section .nv_fatbin=<(cat "$cuda/zstd.fatbin" "$cuda/plain.fatbin") \
		hip.so in/both.so
	kpack pack -q --archives-only --group g in out
	kpack ls out/.kpack | cut -f 1,2 | sort >got
	sort >want <<-'END'
	both.so#0	gfx1100
	both.so#1	gfx1100
	both.so#2	compute_90a
	both.so#2	sm_75
	both.so#2	sm_90a
	both.so#3	compute_80
	both.so#3	sm_80
	nv.o#0	compute_90a
	nv.o#0	sm_75
	nv.o#0	sm_90a
	nv.o#1	compute_80
	nv.o#1	sm_80
	nv.so#0	compute_90a
	nv.so#0	sm_75
	nv.so#0	sm_90a
	nv.so#1	compute_80
	nv.so#1	sm_80
	END
	diff want got
	# a report shows the same, of the tree and of a file in it
	kpack report --json in >tree.json 2>err
	kpack report --json in/nv.so >file.json 2>>err
	[ ! -s err ]
	cuda=$cuda py <<-'END'
	import json, os
	tree, file = json.load(open("tree.json")), json.load(open("file.json"))
	assert tree["entries"] == 17 and file["entries"] == 5, (tree["entries"], file["entries"])
	assert {a["arch"] for a in file["arches"]} == {"compute_80", "compute_90a", "sm_75", "sm_80", "sm_90a"}
	code = sum(os.path.getsize(os.environ["cuda"] + "/" + n) for n in ("zstd.fatbin", "plain.fatbin"))
	assert file["measured"] == {"files": 1, "bytes": code}, (file["measured"], code)
	END
	# what HIP wants of the library is what there is without CUDA's part
	kpack pack -q --archives-only --group h hip.so alone
	readkpack cat out/.kpack/g_gfx1100.kpack both.so#1 gfx1100 >a
	readkpack cat alone/.kpack/h_gfx1100.kpack hip.so#1 gfx1100 >b
	cmp a b
	# without the option the one is converted, and the other left alone
	kpack pack --json in out2 >report.json 2>err
	grep -q '^kpack: in/nv.so: warning: device code in other sections' err
	grep -q '^kpack: in/both.so: warning: device code in other sections' err
	[ "$(grep -c . err)" = 2 ]
	cmp in/nv.so out2/nv.so
	cmp in/nv.o out2/nv.o
	kpack mark check out2
	kpack ls out2/.kpack | grep -c '^both.so#' | grep -qx 2
	! kpack ls out2/.kpack | grep -q '^nv.so#' || false
	py <<-'END'
	import json
	status = {f["path"]: f["status"] for f in json.load(open("report.json"))["files"]}
	assert status == {"nv.so": "left alone", "nv.o": "kept", "both.so": "converted"}, status
	END
}

# bats test_tags=all
@test "what clang makes: objects, static libraries, bitcode of device and host" {
	have || skip "no clang-22, clang-tools-22 or llvm-22"
	cat >k.hip <<-'END'
	#define __global__ __attribute__((global))
	struct dim3 { unsigned x, y, z; };
	extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
	extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
	extern "C" unsigned __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void * = 0);
	extern "C" __global__ void kernel(int *p) { p[0] += 3; }
	END
	hip() { clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx1100 --offload-arch=gfx90a "$@"; }
	mkdir -p in/lib in/amdgcn/bitcode
	hip -c k.hip -o in/lib/plain.o
	hip --offload-compress -c k.hip -o in/lib/packed.o
	hip -fgpu-rdc --no-offload-new-driver -c k.hip -o in/lib/rdc.o
	hip -fgpu-rdc --offload-new-driver -c k.hip -o in/lib/new.o
	llvm-ar-22 rc in/lib/liball.a in/lib/plain.o in/lib/packed.o in/lib/rdc.o in/lib/new.o
	echo 'int host(int a) { return a + 1; }' >h.c
	clang-22 -flto -c h.c -o in/lib/lto.o
	llvm-ar-22 rc in/lib/liblto.a in/lib/lto.o
	clang-22 -c h.c -o in/lib/host.o
	llvm-ar-22 rc in/lib/libhost.a in/lib/host.o
	clang-22 -target amdgcn-amd-amdhsa -x c -emit-llvm -c h.c -o in/amdgcn/bitcode/ockl.bc
	clang-22 -target nvptx64-nvidia-cuda -x c -emit-llvm -c h.c -o in/amdgcn/bitcode/libdevice.bc
	kpack pack -q --group g in out 2>err
	[ ! -s err ]
	diff -r -x .kpack in out
	kpack ls --json out/.kpack >ls.json
	kpack ls out/.kpack | cut -f 1,2 | sort >got
	for o in plain packed rdc new; do
		[ "$(grep -c "^lib/$o.o#" got)" = 2 ]
	done
	[ "$(grep -c '^lib/liball.a#' got)" = 8 ]
	! grep -E 'lto|host' got || false
	grep -qx $'amdgcn/bitcode/ockl.bc#0\tgeneric' got
	grep -qx $'amdgcn/bitcode/libdevice.bc#0\tgeneric' got
	grep '"amdgcn/bitcode/libdevice.bc' ls.json | grep -q '"triple":"nvptx64-nvidia-cuda"'
	[ "$(grep -c '"type":"bc"' ls.json)" = 10 ]
	# the bytes that the bundler and objcopy take out
	for a in gfx1100 gfx90a; do
		for o in plain packed; do
			llvm-objcopy-22 --dump-section .hip_fatbin=fb in/lib/$o.o
			clang-offload-bundler-22 -unbundle -type=o -input=fb -output=$a.co \
				-targets=hipv4-amdgcn-amd-amdhsa--$a
			readkpack cat out/.kpack/g_$a.kpack lib/$o.o#0 $a | cmp - $a.co
		done
		clang-offload-bundler-22 -unbundle -type=o -input=in/lib/rdc.o -output=$a.bc \
			-targets=hip-amdgcn-amd-amdhsa--$a
		readkpack cat out/.kpack/g_$a.kpack lib/rdc.o#0 $a | cmp - $a.bc
	done
	# and all of the library is stored once
	py <<-'END'
	import glob, readkpack
	for path in glob.glob("out/.kpack/g_gfx*.kpack"):
	    archive = readkpack.Archive(path)
	    lib = {e["ordinal"] for k, _, e in archive.entries() if k.startswith("lib/liball.a")}
	    one = {e["ordinal"] for k, _, e in archive.entries() if not k.startswith("lib/liball.a")}
	    assert lib == one and len(archive.blobs) == 4, (path, lib, one, len(archive.blobs))
	END
}

@test "thousands of members for one architecture" {
	py <<-'END'
	import mkoffload
	members = [("%d.bc" % i, b"BC\xc0\xde" + i.to_bytes(4, "little") * 4) for i in range(3000)]
	open("many.a", "wb").write(mkoffload.ar(members + members[:500]))
	END
	kpack pack -q --archives-only --group g many.a out
	kpack ls out/.kpack | cut -f 1 >keys
	[ "$(wc -l <keys)" = 3000 ]
	[ "$(sort -u keys | wc -l)" = 3000 ]
	grep -qx 'many.a#0' keys
	grep -qx 'many.a@bc#0' keys
	grep -qx 'many.a@bc.2999#0' keys
	readkpack cat out/.kpack/g_generic.kpack many.a@bc.7#0 generic | cmp - <(printf 'BC\xc0\xde\7\0\0\0\7\0\0\0\7\0\0\0\7\0\0\0')
}
