#!/usr/bin/env bats
# kpack inspect against containers made in Python and, if it is installed, by clang; its
# extracted images against those of the usual tools.

# bats file_tags=single

bats_require_minimum_version 1.5.0

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }
mkfat() { $python "$tools/mkfat.py" "$@"; }
# A program on standard input, which has mkoffload's functions.
make_with() { { echo "from mkoffload import *"; cat; } | PYTHONPATH=$tools $python - "$@"; }
# json EXPRESSION...: what inspect printed into got.json, as got
all_json() { # FILE...: each is empty or one JSON value
	$python -c 'import json, sys
for f in sys.argv[1:]:
    text = open(f).read()
    if text: json.loads(text)' "$@"
}

check_json() { $python -c 'import json, sys; got = json.load(open("got.json")); images = got["images"]; tree = got["tree"]
for e in sys.argv[1:]:
    assert eval(e), (e, got)' "$@"; }

oracle() { # FILE OBJECTS FORMAT WRAPPERS-PER-CONTAINER COMPRESSED-CONTAINERS
	kpack inspect --json "$1" >got.json
	$python - "$@" <<-'END'
	import hashlib, json, os, sys
	path, objects, form, share, packed = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
	got = json.load(open("got.json"))
	assert set(got) == {"file", "format", "images", "wrappers", "converted", "tree"}, got.keys()
	assert got["file"] == path and got["format"] == form, got["format"]
	want = {}
	for name in os.listdir(objects):
	    number, arch = name.split("-", 1)
	    want[int(number), arch] = open(os.path.join(objects, name), "rb").read()
	whole = open(path, "rb").read()
	found, hosts = set(), 0
	for image in got["images"]:
	    assert set(image) == {"container", "format", "target", "kind", "arch", "size", "offset", "sha256",
	                          "pairs", "object_arch", "facts", "kernels"}, image.keys()
	    compressed = packed == "all" or (packed == "odd" and image["container"] % 2)
	    assert (image["offset"] is None) == bool(compressed), image
	    if image["target"].startswith("host-"):
	        assert image["size"] == 0 and image["arch"] is None and image["format"] == "co", image
	        hosts += 1
	        continue
	    data = want[image["container"], image["arch"]]
	    found.add((image["container"], image["arch"]))
	    assert image["target"] == "hipv4-amdgcn-amd-amdhsa--" + image["arch"], image
	    assert image["size"] == len(data) and image["format"] == "hsaco", image
	    assert image["sha256"] in (None, hashlib.sha256(data).hexdigest()), image
	    if not compressed:
	        assert whole[image["offset"]:image["offset"] + image["size"]] == data
	assert found == set(want), (found, set(want))
	containers = len({n for n, _ in want})
	assert hosts == containers
	assert [i["container"] for i in got["images"]] == sorted(i["container"] for i in got["images"])
	assert got["wrappers"] == [{"index": i, "container": i // share} for i in range(containers * share)], got["wrappers"]
	END
}

setup() {
	cd "$BATS_TEST_TMPDIR"
}

@test "host libraries: plain, compressed, mixed, shared and ragged" {
	mkfat --objects o1 plain.so
	oracle plain.so o1 elf 1 none
	mkfat --objects o2 --ccob all v3.so
	oracle v3.so o2 elf 1 all
	mkfat --objects o3 --ccob all --ccob-version 2 v2.so
	oracle v2.so o3 elf 1 all
	mkfat --objects o4 --ccob odd --bundles 5 --ragged mixed.so
	oracle mixed.so o4 elf 1 odd
	mkfat --objects o5 --share 3 shared.so
	oracle shared.so o5 elf 3 none
	mkfat --objects o6 --bundles 40 --arches gfx1100,gfx90a:sramecc+:xnack-,gfx942 many.so
	oracle many.so o6 elf 1 none
}

@test "bare containers: plain, compressed" {
	mkfat --bare --bundles 1 --objects o1 one.hipfb
	oracle one.hipfb o1 bundle 0 none
	mkfat --bare --bundles 1 --ccob all --objects o2 one.ccob
	oracle one.ccob o2 ccob 0 all
	mkfat --bare --bundles 1 --ccob all --ccob-version 2 --objects o3 two.ccob
	oracle two.ccob o3 ccob 0 all
}

@test "a bare code object has no target, but an arch" {
	mkfat --bare --bundles 1 --objects o bundle
	head -c 64 "o/0-gfx90a:xnack+" >header # what follows it is in no section
	run kpack inspect --json header
	[ "$status" -eq 0 ]
	echo "$output" | $python -c '
import json, os, sys
got = json.load(sys.stdin)
assert got["format"] == "code-object" and got["wrappers"] == []
(image,) = got["images"]
assert (image["container"], image["format"], image["target"], image["arch"], image["offset"]) == \
    (0, "hsaco", None, "gfx90a:xnack+", 0), image
assert image["size"] == os.stat(got["file"]).st_size'
}

@test "the text form is a table" {
	mkfat --bundles 2 --arches gfx1100 fat.so
	run kpack inspect fat.so
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "fat.so: elf, 2 containers, 4 images, 2 wrappers" ]
	[[ "${lines[1]}" == FORMAT*ARCH*SIZE*OFFSET*KERNELS*SHA256*TARGET ]]
	[[ "${lines[2]}" == ".hip_fatbin: "*" bytes at "* ]]
	[[ "${lines[3]}" == "  container 0: bundle, "*" bytes at 0" ]]
	[[ "${lines[5]}" == "    hsaco "*" gfx1100 "*" hipv4-amdgcn-amd-amdhsa--gfx1100" ]]
	[ "${lines[6]}" = "        code object 6" ]
	[ "${#lines[@]}" -eq 14 ]
}

@test "files without device code, and none at all" {
	echo text >text
	: >empty
	for file in text empty "$KPACK_BIN/kpack"; do
		run kpack inspect "$file"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
		[[ "$output" == "kpack: $file: no device code in it" ]]
	done
	run kpack inspect missing
	[ "$status" -eq 1 ]
	[[ "$output" == "kpack: missing: "*"No such file"* ]]
	run kpack inspect .
	[ "$status" -eq 1 ]
	run kpack inspect
	[ "$status" -eq 2 ]
	run kpack inspect text empty
	[ "$status" -eq 2 ]
}

@test "the tree: containers in containers, all of them in one file" {
	make_with <<-'END'
	hip = [code_object("gfx1100", 500, "a"), code_object("gfx90a:xnack+", 700, "b")]
	inner = bundle([("gfx1100", hip[0]), ("gfx90a:xnack+", hip[1])], 0, 64)
	packed = offload_binary(hip[0], arch="gfx1100", triple="amdgcn-amd-amdhsa") + \
	    offload_binary(b"// PTX\n.version 8.0\n.target sm_80\n", 5, 2, arch="sm_80")
	fat = elf_object([(".text", 1, 16, b"\xc3" * 16), (".hip_fatbin", 1, 4096, ccob(inner) + bytes(100)),
	                  (".llvm.offloading", 0x6fff4c0b, 8, packed)])
	plain = elf_object([(".text", 1, 16, b"\xc3" * 16)])
	entries = elf_object([("__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-", 1, 1, b"\0"),
	                      ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906", 1, 1, b"BC\xc0\xde" + bytes(96))])
	old = ccob(raw_bundle([("openmp-amdgcn-amd-amdhsa--gfx906", hip[0])]), 1, "zlib")
	open("lib.a", "wb").write(ar([("fat.o", fat), ("plain.o", plain), ("readme", b"text\n"),
	                              ("entries.o", entries), ("old.bc", old)]))
	for i, data in enumerate(hip):
	    open("hip%d" % i, "wb").write(data)
	END
	kpack inspect --json lib.a >got.json
	check_json 'got["format"] == "archive" and got["wrappers"] == []' \
		'[(i["container"], i["format"], i["kind"], i["arch"]) for i in images] == [
			(0, "co", "host", None), (0, "hsaco", "hipv4", "gfx1100"), (0, "hsaco", "hipv4", "gfx90a:xnack+"),
			(1, "hsaco", "hip", "gfx1100"), (2, "ptx", "cuda", "sm_80"),
			(3, "co", "host", None), (3, "bc", "hip", "gfx906"), (4, "hsaco", "openmp", "gfx906")]' \
		'images[3]["pairs"]["arch"] == "gfx1100" and images[3]["pairs"]["triple"] == "amdgcn-amd-amdhsa"' \
		'images[1]["offset"] is None and images[3]["offset"] > 0' \
		'images[1]["sha256"] in (None, __import__("hashlib").sha256(open("hip0", "rb").read()).hexdigest())' \
		'images[1]["sha256"] == images[3]["sha256"] == images[7]["sha256"]' \
		'[c["format"] for c in tree] == ["archive"]' \
		'[i["name"] for i in tree[0]["images"]] == ["fat.o", "plain.o", "readme", "entries.o", "old.bc"]' \
		'tree[0]["images"][2]["containers"] == [] == tree[0]["images"][1]["containers"][0]["images"]'
	$python - <<-'END'
	import json
	(archive,) = json.load(open("got.json"))["tree"]
	members = {i["name"]: i["containers"] for i in archive["images"] if "name" in i}
	(fat,) = members["fat.o"]
	assert fat["format"] == "elf" and fat["container"] is None
	hip, offloading = fat["images"]
	assert (hip["name"], offloading["name"]) == (".hip_fatbin", ".llvm.offloading")
	(ccob,) = hip["containers"]
	c = ccob["compression"]
	assert (ccob["format"], c["method"], c["version"], c["hash_ok"]) == ("ccob", "zstd", 3, True), ccob
	assert abs(c["ratio"] - ccob["decoded"] / ccob["size"]) < 0.01
	assert [i["image"] for i in ccob["images"]] == [0, 1, 2]
	assert [c["container"] for c in offloading["containers"]] == [1, 2]
	assert offloading["containers"][1]["offset"] == offloading["containers"][0]["size"]
	(old,) = members["old.bc"]
	assert (old["compression"]["method"], old["compression"]["version"]) == ("zlib", 1)
	assert old["images"] == [{"image": 7}]
	END
	kpack inspect lib.a >text
	grep -qx "  fat.o: elf, .*" text
	grep -qE '^    \.hip_fatbin: [0-9]+ bytes at 4096$' text
	grep -qE '^      container 0: ccob version 3, zstd, [0-9]+ bytes at 0, [0-9]+ decoded \([0-9.]+ : 1\), hash [0-9a-f]{16} ok$' text
	grep -qE '^ +arch=gfx1100, triple=amdgcn-amd-amdhsa|^ +triple=amdgcn-amd-amdhsa, arch=gfx1100' text
	! grep -qE 'plain.o|readme' text || false
}

@test "an archive without device code has none" {
	make_with <<-'END'
	open("host.a", "wb").write(ar([("a.o", elf_object([(".text", 1, 16, b"\xc3")])), ("readme", b"text\n")]))
	END
	run kpack inspect host.a
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: host.a: no device code in it" ]
}

@test "the hash of compressed bundles is checked, wherever they are" {
	make_with <<-'END'
	objects = [("gfx1100", code_object("gfx1100", 500, "a"))]
	good, bad = ccob(bundle(objects, 0, 64)), ccob(bundle(objects, 0, 64), digest=b"12345678")
	open("bad.ccob", "wb").write(bad)
	open("both.a", "wb").write(ar([("x.o", elf_object([(".hip_fatbin", 1, 16, good + bytes(-len(good) % 16) + bad)]))]))
	open("inner.ccob", "wb").write(ccob(raw_bundle([("hip-amdgcn-amd-amdhsa--gfx1100", bad)])))
	END
	for file in bad.ccob both.a inner.ccob; do
		for form in "" --json --kernels; do
			run -1 --separate-stderr kpack inspect $form $file
			[ "${#stderr_lines[@]}" -eq 1 ]
			[[ "$stderr" == "kpack: $file: "*"ccob at offset "*": the content does not match the hash 3837363534333231" ]]
			[[ "$output" == *gfx1100* ]]
		done
		run -1 --separate-stderr kpack inspect --extract out-$file $file
		[[ "$stderr" == "kpack: $file: "*"does not match the hash"* ]]
		[ -s "$(ls out-$file/gfx1100*.hsaco | head -n 1)" ]
	done
	kpack inspect both.a 2>err >text || true
	[ "$(sed -n 's/.*hash [0-9a-f]* //p' text | xargs)" = "ok WRONG" ]
	grep -q '^kpack: both.a: x.o: .hip_fatbin: ccob at offset [1-9][0-9]*: ' err
	kpack inspect --json inner.ccob 2>err >got.json || true
	check_json 'tree[0]["compression"]["hash_ok"] is True' \
		'tree[0]["images"][0]["containers"][0]["compression"]["hash_ok"] is False' \
		'tree[0]["images"][0]["containers"][0]["images"][1] == {"image": 1}'
}

@test "what is damaged is named, the rest is shown" {
	make_with <<-'END'
	objects = [("gfx1100", code_object("gfx1100", 500, "a"))]
	good = bundle(objects, 0, 64)
	good += bytes(-len(good) % 64)
	section = good + ccob(good)[:-20] + bytes(64)
	open("cut.a", "wb").write(ar([("good.o", elf_object([(".hip_fatbin", 1, 64, good)])),
	                              ("cut.o", elf_object([(".hip_fatbin", 1, 64, section)])),
	                              ("junk.o", elf_object([(".hip_fatbin", 1, 64, good + b"junk")])),
	                              ("last.o", elf_object([(".hip_fatbin", 1, 64, good)]))]))
	END
	run -1 --separate-stderr kpack inspect --json cut.a
	echo "$output" >got.json
	check_json '[i["arch"] for i in images].count("gfx1100") >= 4'
	[ "${#stderr_lines[@]}" -eq 2 ]
	[[ "${stderr_lines[0]}" == "kpack: cut.a: cut.o: .hip_fatbin: ccob at offset "* ]]
	[[ "${stderr_lines[1]}" == "kpack: cut.a: junk.o: .hip_fatbin: offset "* ]]
	run -1 --separate-stderr kpack inspect --extract out cut.a
	[ "${#stderr_lines[@]}" -eq 2 ]
	[ "$(ls out | wc -l)" -ge 4 ]
}

@test "a damaged image of CUDA's fat binary does not hide the others" {
	$python - "$KPACK_SRC/tests/data/cuda/zstd.fatbin" <<-'END'
	import sys
	whole = open(sys.argv[1], "rb").read()
	for name, at, bits in ("unknown", 41, 0xc0), ("bytes", 64 + 20, 0xff):
	    copy = bytearray(whole)
	    second = 16 + int.from_bytes(whole[20:24], "little") + int.from_bytes(whole[24:32], "little")
	    copy[second + at] ^= bits
	    open(name + ".fatbin", "wb").write(copy)
	END
	kpack inspect --extract want "$KPACK_SRC/tests/data/cuda/zstd.fatbin"
	rm want/sm_75.cubin
	for f in unknown bytes; do
		run -1 --separate-stderr kpack inspect --json "$f.fatbin"
		echo "$output" >got.json
		check_json '[i["arch"] for i in images] == ["sm_90a", "sm_75", "compute_90a"]' \
			'[i["format"] for i in images] == ["cubin", None, "ptx"]' \
			'[bool(i["sha256"]) for i in images] == [True, False, True] or not images[0]["sha256"]'
		[ "${#stderr_lines[@]}" -eq 1 ]
		[[ "${stderr_lines[0]}" == "kpack: $f.fatbin: fatbin at offset 0: image 1: "* ]]
		run -1 --separate-stderr kpack inspect --extract "out-$f" "$f.fatbin"
		[ "${#stderr_lines[@]}" -eq 1 ]
		diff -r want "out-$f"
		run -1 kpack pack --archives-only --group g "$f.fatbin" packed
		[[ "$output" == *"$f.fatbin: fatbin at offset 0: entry 1: "* ]]
		[ ! -e packed ]
	done
}

@test "members before the end of a cut archive are shown" {
	make_with <<-'END'
	code = [code_object("gfx1100", 500, n) for n in ("a", "b")]
	whole = ar([("good.o", code[0]), ("cut.o", code[1])])
	open("cut.a", "wb").write(whole[:-30])
	open("want", "wb").write(code[0])
	END
	run -1 --separate-stderr kpack inspect --json cut.a
	echo "$output" >got.json
	check_json 'len(images) == 1' 'images[0]["target"] == "good.o"'
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ "${stderr_lines[0]}" == "kpack: cut.a: archive at offset 0: member at offset "*" pass the end at "* ]]
	run -1 --separate-stderr kpack inspect --extract out cut.a
	[ "$(ls out)" = gfx1100.hsaco ]
	cmp want out/gfx1100.hsaco
	run -1 kpack pack --archives-only --group g cut.a packed
	[ ! -e packed ]
}

@test "LTO-IR has a type, although its bytes do not show it" {
	lto=$KPACK_SRC/tests/data/cuda/lto.fatbin
	kpack inspect --json "$lto" >got.json
	check_json '[(i["format"], i["arch"]) for i in images] == [("ltoir", "lto_90")]'
	[[ "$(kpack inspect "$lto")" == *$'\n  ltoir'*" lto_90 "* ]]
	kpack inspect --extract out "$lto"
	[ "$(ls out)" = lto_90.ltoir ]
	tail -c +137 "$lto" | head -c 2623 | cmp - out/lto_90.ltoir
	kpack pack -q --archives-only --group g "$lto" packed
	kpack extract packed/.kpack -C taken
	[ -n "$(find taken -name '*.ltoir')" ]
}

@test "a file is one of kpack's archives" {
	mkfat fat.so
	mkdir tree
	cp fat.so tree/
	kpack pack -q tree out
	for archive in out/.kpack/*.kpack; do
		run -0 kpack inspect "$archive"
		[[ "${lines[0]}" == "$archive: kpack archive, 3 entries for gfx"* ]]
		[ "${lines[1]}" = "'kpack ls' lists them, 'kpack info' prints more" ]
		kpack inspect --json "$archive" >got.json
		check_json 'got["format"] == "kpack" and got["entries"] == 3 and len(got["arches"]) == 1' \
			'images == tree == got["wrappers"] == []' 'got["converted"] is False'
		run -1 kpack inspect --extract x "$archive"
		[[ "$output" == "kpack: $archive: is a kpack archive: 'kpack extract' writes it" ]]
		[ ! -e x ]
	done
	kpack inspect --json out/fat.so >got.json
	check_json 'got["format"] == "elf" and got["converted"] is True and images == []' \
		'got["wrappers"] == [{"index": i, "container": None} for i in range(3)]'
	run -0 kpack inspect out/fat.so
	[ "${lines[0]}" = "out/fat.so: elf, 0 containers, 0 images, 3 wrappers, converted" ]
	run -1 kpack inspect --extract x out/fat.so
	[ "$output" = "kpack: out/fat.so: converted: its device code is in archives" ]
}

@test "extracting: named as in a mount, byte for byte" {
	mkfat --objects objects --bundles 3 --ragged --ccob odd fat.so
	kpack inspect --extract out fat.so
	for object in objects/*; do
		name=${object#objects/}
		number=${name%%-*} arch=${name#*-}
		[ "$number" = 0 ] && name=$arch.hsaco || name=$arch#$number.hsaco
		cmp "$object" "out/$name"
	done
	[ "$(ls objects | wc -l)" = "$(ls -A out | wc -l)" ]
	mkdir tree
	cp fat.so tree/
	kpack pack -q --keep-device-code tree packed
	kpack extract packed/.kpack -C x
	diff -r x/toc/fat.so out
}

@test "extracting: some targets, existing files, places that cannot be written" {
	make_with <<-'END'
	objects = [(a, code_object(a, 500, "a")) for a in ("gfx1100", "gfx90a:xnack+", "gfx90a:xnack-")]
	fat = bundle(objects, 0, 16)
	ptx = [b".version 8.0\n.target sm_90a\n" + bytes([n]) for n in b"12"]
	fat += bytes(-len(fat) % 16) + offload_binary(ptx[0], 5, 2, arch="sm_90a") + \
	    offload_binary(ptx[1], 5, 2, arch="sm_90a")
	open("mixed", "wb").write(fat)
	END
	kpack inspect --extract some --arch gfx90a,sm_90a mixed
	[ "$(ls some | LC_ALL=C sort | xargs)" = "compute_90a#1.ptx compute_90a#2.ptx gfx90a:xnack+.hsaco gfx90a:xnack-.hsaco" ]
	kpack inspect --extract ptx --arch compute_90a mixed
	[ "$(ls ptx | wc -l)" -eq 2 ]
	run -0 kpack inspect --extract one --arch gfx90a:xnack-,gfx803 mixed
	[ "$output" = "kpack: --arch: gfx803: no image is for it" ]
	[ "$(ls one)" = "gfx90a:xnack-.hsaco" ]
	run -1 kpack inspect --extract none --arch gfx803 mixed
	[ "${lines[1]}" = "kpack: mixed: no image of it was written" ]
	[ -z "$(ls none)" ]

	echo mine >"some/gfx90a:xnack+.hsaco"
	ln -s ../victim some/gfx1100.hsaco
	run -1 kpack inspect --extract some mixed
	[ "${#lines[@]}" -eq 6 ]
	[[ "$output" == *"kpack: some: gfx90a:xnack+.hsaco: already exists (--force replaces it)"* ]]
	[ "$(cat "some/gfx90a:xnack+.hsaco")" = mine ]
	kpack inspect --extract some --force mixed
	[ ! -e victim ] && [ ! -L some/gfx1100.hsaco ]
	[ "$(ls -A some | wc -l)" -eq 5 ]
	cmp some/gfx90a:xnack-.hsaco one/gfx90a:xnack-.hsaco
	mkfat --bundles 10 many.so
	kpack inspect --extract many many.so
	run -1 kpack inspect --extract many many.so
	[ "${#lines[@]}" -eq 22 ]
	[ "${lines[20]}" = "kpack: many: and 10 files more" ]

	run -1 kpack inspect --extract mixed mixed
	[[ "$output" == "kpack: mixed: "* ]]
	run -1 kpack inspect --extract /proc/nothing mixed
	[[ "$output" == *"/proc/nothing"* ]]
	for usage in "--arch gfx803 mixed" "--force mixed" "--extract x --json mixed" "--extract x --kernels mixed" \
		"--extract x --arch gfx90a:xnack mixed" "--extract x"; do
		run -2 kpack inspect $usage
	done
	[ ! -e x ]
}

@test "extracting: one name twice, names that lead out" {
	make_with <<-'END'
	ids = ["hip-amdgcn-amd-amdhsa--gfx942", "openmp-amdgcn-amd-amdhsa--gfx942", "hip-amdgcn-amd-amdhsa--gfx942",
	       "host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--../../../gfx", "hip-amdgcn-amd-amdhsa--.hidden",
	       "hip-amdgcn-amd-amdhsa--a\x1b[31m\nb", "sycl-x-y-z-"]
	open("bundle", "wb").write(raw_bundle([(name, b"BC\xc0\xde%d" % i) for i, name in enumerate(ids)]))
	END
	kpack inspect --extract a/b/c bundle
	ls -A a/b/c >names
	[ "$(find a -type f | wc -l)" -eq 8 ]
	[ "$(wc -l <names)" -eq 8 ]
	! grep -vxE '[a-z0-9_:+~.-]+\.bc' names || false
	for n in 0 1 2; do
		[ "$(tail -c 1 "a/b/c/gfx942$([ $n = 0 ] || echo ~$n).bc")" = $n ]
	done
	[ "$(tail -c 1 a/b/c/host.bc)" = 3 ]
	[ "$(tail -c 1 a/b/c/generic.bc)" = 7 ]
	! grep -q '^\.' names || false
	! kpack inspect bundle | grep -q $'\e' || false
	kpack inspect --json bundle >got.json
	check_json 'len(images) == 8'
}

@test "extracting: a full disk leaves nothing half-written" {
	[ "$(id -u)" -eq 0 ] || skip "must be root"
	mkfat --bundles 4 --size 200000 fat.so
	mkdir small
	mount -t tmpfs -o size=1m none small
	status=0
	kpack inspect --extract small/out fat.so 2>err || status=$?
	for file in small/out/*; do
		cp "$file" kept
		kpack inspect "$file" >/dev/null || bad=1
		[ "$(stat -c %s "$file")" -ge 200000 ] || bad=1
	done
	hidden=$(ls -A small/out | grep -c '^\.' || true)
	umount small
	[ "$status" -eq 1 ] && [ -z "${bad-}" ] && [ "$hidden" = 0 ]
	grep -q '^kpack: small/out: gfx.*: No space left on device$' err
}

@test "images that lie over each other are not read a thousand times" {
	make_with <<-'END'
	data = bytes(8 << 20)
	ids = ["hip-amdgcn-amd-amdhsa--gfx%d" % i for i in range(4000)]
	at = 32 + sum(24 + len(i) for i in ids)
	rows = b"".join(struct.pack("<QQQ", at, len(data), len(i)) + i.encode() for i in ids)
	open("over", "wb").write(b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids)) + rows + data)
	END
	run -1 --separate-stderr kpack inspect over
	[[ "$stderr" == "kpack: over: its images overlap: they have 33554432000 bytes in all, in "* ]]
	run -1 kpack inspect --extract out over
	[ -z "$(ls out)" ]
}

# bats test_tags=all
@test "kernels: listed where they are few, with what they use" {
	command -v clang-22 >/dev/null || skip "no clang-22"
	for n in $(seq 120); do
		echo "extern \"C\" __attribute__((global)) void kernel_$n(float *p, int n) { __attribute__((shared)) static float s[$n]; s[n] = p[n]; p[0] = s[$n - 1]; }"
	done >many.hip
	hip=(clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx90a --cuda-device-only --no-gpu-bundle-output -c)
	head -n 5 many.hip >few.hip
	"${hip[@]}" few.hip -o few.hsaco
	"${hip[@]}" many.hip -o many.hsaco
	kpack inspect few.hsaco >text
	kpack inspect --json few.hsaco >got.json
	llvm-readelf-22 --notes few.hsaco >notes
	$python - <<-'END'
	import json, re
	(image,) = json.load(open("got.json"))["images"]
	notes = open("notes").read()
	want = {}
	for part in re.split(r"\n  - (?=\.a)", notes)[1:]:
	    field = lambda name: re.search(r"\.%s: +(\S+)" % name, part).group(1)
	    want[re.findall(r"^    \.name: +(\S+)", part, re.M)[-1]] = (
	        field("symbol"), int(field("vgpr_count")), int(field("sgpr_count")), int(field("agpr_count")),
	        int(field("group_segment_fixed_size")), int(field("private_segment_fixed_size")),
	        int(field("kernarg_segment_size")), int(field("wavefront_size")), int(field("max_flat_workgroup_size")))
	got = {k["name"]: tuple(k[n] for n in ("symbol", "vgprs", "sgprs", "agprs", "lds", "scratch", "kernarg",
	                                       "wavefront", "threads")) for k in image["kernels"]}
	assert len(want) == 5 and got == want, (got, want)
	text = open("text").read()
	for name, n in want.items():
	    assert "    kernel %s: VGPRs %d, " % (name, n[1]) in text and "LDS %d," % n[4] in text, text
	END
	kpack inspect many.hsaco >text
	! grep -q kernel_ text || false
	grep -qx '120 kernels; --kernels lists them' text
	[ "$(kpack inspect --kernels many.hsaco | grep -c '^    kernel kernel_')" -eq 120 ]
	kpack inspect --json many.hsaco >got.json
	check_json 'len(images[0]["kernels"]) == 120'
}

@test "CUDA's formats" {
	[ -e "$KPACK_SRC/tests/data/cuda/plain.fatbin" ]
	for file in "$KPACK_SRC"/tests/data/cuda/*.fatbin; do
		kpack inspect --json "$file" >got.json
		check_json 'got["format"] == "fatbin" and images and all(i["kind"] == "cuda" and i["arch"] for i in images)'
		rm -rf out
		kpack inspect --extract out "$file"
		[ "$(ls out | wc -l)" = "$($python -c 'import json; print(len(json.load(open("got.json"))["images"]))')" ]
		for image in out/*; do
			case $image in *.cubin | *.ptx) kpack inspect --json "$image" >one.json ;; esac
		done
		kpack inspect "$file" >text
		grep -q '^    *kernel .*: ' text || grep -q ' registers ' text || [[ "$file" == *lto* ]]
	done
}

@test "cuTile's kernels: signatures as in Python, and as data" {
	make_with <<-'END'
	open("two.tileirbc", "wb").write(tileir(["add_Kt1_A2f32_1v8_p16_Sf64", "add_Kt1_Si32_I42", "bad_Kt1_Sf33"]))
	END
	run -0 kpack inspect two.tileirbc
	for line in "    kernel add_Kt1_A2f32_1v8_p16_Sf64" "    kernel add_Kt1_Si32_I42" \
		"          ScalarConstraint(ct.float64)," "          42," \
		"      ], CallingConvention.cutile_python_v1())"; do
		[[ "$output" == *"$line"$'\n'* ]]
	done
	[[ "$output" == *"bad_Kt1_Sf33"*f33* ]]
	kpack inspect --json two.tileirbc >got.json
	check_json 'images[0]["format"] == "tileirbc" and len(images[0]["kernels"]) == 3' \
		'images[0]["kernels"][0]["signature"]["parameters"][0]["kind"] == "array"' \
		'len(images[0]["kernels"][0]["signature"]["arguments"]) == 6' \
		'images[0]["kernels"][1]["signature"]["parameters"][1] == {"kind": "constant", "type": "int", "value": 42}' \
		'"error" in images[0]["kernels"][2]["signature"]'
	kpack inspect --extract out two.tileirbc
	cmp two.tileirbc out/generic.tileirbc
}

# bats test_tags=all
@test "what clang's tools nest: taken out the same as by them" {
	command -v clang-22 >/dev/null || skip "no clang-22"
	command -v clang-offload-bundler-22 >/dev/null || skip "no clang-offload-bundler-22"
	for name in a b; do
		cat >$name.hip <<-END
		struct dim3 { unsigned x, y, z; };
		extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
		extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
		extern "C" __attribute__((global)) void kernel_$name(int *p) { p[0] = '$name'; }
		END
	done
	hip=(clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx1100 "--offload-arch=gfx90a:xnack+")
	for name in a b; do
		"${hip[@]}" --offload-compress -c $name.hip -o $name.o
	done
	llvm-ar-22 rc lib.a a.o b.o
	kpack inspect --extract out lib.a
	n=
	for name in a b; do
		objcopy --dump-section .hip_fatbin=section $name.o /dev/null
		for arch in gfx1100 gfx90a:xnack+; do
			clang-offload-bundler-22 -unbundle -type=o -input=section -output=want \
				"-targets=hipv4-amdgcn-amd-amdhsa--$arch"
			cmp want "out/$arch$n.hsaco"
		done
		n='#1'
	done
	[ "$(ls out | wc -l)" -eq 4 ]

	# bitcode in .llvm.offloading, and in the sections of the old driver
	"${hip[@]}" -fgpu-rdc --offload-new-driver -c a.hip -o new.o
	kpack inspect --json new.o >got.json
	check_json '[i["format"] for i in images] == ["bc", "bc"]' \
		'sorted(i["pairs"]["arch"] for i in images) == ["gfx1100", "gfx90a:xnack+"]' \
		'tree[0]["images"][0]["name"] == ".llvm.offloading"'
	kpack inspect --extract new new.o
	objcopy --dump-section .llvm.offloading=binary new.o /dev/null
	for arch in gfx1100 gfx90a:xnack+; do
		clang-offload-packager-22 binary --image=file=want,arch=$arch,triple=amdgcn-amd-amdhsa
		cat new/$arch*.bc | cmp want -
	done
	"${hip[@]}" -fgpu-rdc --no-offload-new-driver -c a.hip -o old.o
	kpack inspect --extract old old.o
	for arch in gfx1100 gfx90a:xnack+; do
		clang-offload-bundler-22 -unbundle -type=o -input=old.o -output=want "-targets=hip-amdgcn-amd-amdhsa--$arch"
		cmp want old/$arch.bc
	done
	"${hip[@]}" -S a.hip -o a.s
	kpack inspect --json a.s >got.json
	check_json 'got["format"] == "text-bundle"'
	clang-offload-bundler-22 -unbundle -type=s -input=a.s -output=want -targets=hip-amdgcn-amd-amdhsa--gfx1100
	kpack inspect --extract text --arch gfx1100 a.s
	cmp want text/gfx1100.co
}

# kpack inspect of each FILE, as JSON into FILE.json, or in all forms: a failure has a message.  In
# Python, because bash takes as long as kpack for a start and two looks at it.
inspect_damaged() { # json|all FILE...
	$python - "$KPACK_BIN/kpack" "$@" <<-'END'
	import subprocess, sys
	kpack, forms, files = sys.argv[1], sys.argv[2], sys.argv[3:]
	assert files
	def run(f, out, *options):
	    p = subprocess.run([kpack, "inspect", *options, f], stdout=out, stderr=subprocess.PIPE, timeout=600)
	    assert p.returncode in (0, 1), (f, options, p.returncode, p.stderr)
	    assert p.returncode == 0 or any(l.startswith(b"kpack: ") for l in p.stderr.splitlines()), (f, options, p.stderr)
	for f in files:
	    with open(f + ".json", "wb") as out:
	        run(f, out, "--json")
	    if forms == "all":
	        run(f, subprocess.DEVNULL)
	        run(f, subprocess.DEVNULL, "--extract", "in/" + f)
	END
}

@test "damage anywhere: clear words, no crash, nothing outside" {
	make_with <<-'END'
	import random
	objects = [(a, code_object(a, 300, "a")) for a in ("gfx1100", "gfx90a:xnack+")]
	inner = bundle(objects, 0, 16)
	fat = elf_object([(".hip_fatbin", 1, 16, ccob(inner) + bytes(12) + inner),
	                  (".llvm.offloading", 0x6fff4c0b, 8, offload_binary(inner, arch="gfx1100"))])
	text = text_bundle([("host-x86_64-unknown-linux-gnu-", b"int x;"), ("hip-amdgcn-amd-amdhsa--gfx906", b"int y;")])
	whole = ar([("fat.o", fat), ("t.cui", text), ("z.bc", ccob(inner, 1, "zlib"))])
	rng = random.Random(11)
	for n in range(200):
	    copy = bytearray(whole)
	    for _ in range(rng.randrange(1, 9)):
	        copy[rng.randrange(len(copy))] = rng.randrange(256)
	    if n % 7 == 0:
	        del copy[rng.randrange(len(copy)):]
	    open("%d.a" % n, "wb").write(copy)
	END
	mkdir in
	inspect_damaged all *.a
	all_json *.json
	[ -z "$(find . -newer 199.a -type f ! -path './in/*' ! -name '*.a' ! -name '*.json')" ]
}

@test "damaged files: clear words, no crash" {
	mkfat --ccob odd --size 600 --align 64 whole.so
	mkfat --bare --ccob all --size 600 whole.ccob
	for whole in whole.so whole.ccob; do
		$python - $whole <<-'END'
		import random, sys
		rng = random.Random(7)
		whole = open(sys.argv[1], "rb").read()
		for n in range(150):
		    copy = bytearray(whole)
		    for _ in range(4):
		        copy[rng.randrange(len(copy))] = rng.randrange(256)
		    if n % 5 == 0:
		        del copy[rng.randrange(len(copy)):]
		    open("%d.%s" % (n, sys.argv[1]), "wb").write(copy)
		END
		inspect_damaged json *."$whole"
	done
	all_json *.json
}

# bats test_tags=all
@test "what clang makes" {
	command -v clang-22 >/dev/null || skip "no clang-22"
	command -v clang-offload-bundler-22 >/dev/null || skip "no clang-offload-bundler-22"
	cat >k.hip <<-'END'
	#define __global__ __attribute__((global))
	__global__ void kernel(float *p) { p[0] += 1; }
	END
	arches=(gfx1100 gfx90a:sramecc+:xnack- gfx942)
	list=host-x86_64-unknown-linux-gnu
	: >host
	inputs=(-input=host)
	mkdir objects
	for arch in "${arches[@]}"; do
		clang-22 -x hip -nogpuinc -nogpulib --offload-arch="$arch" --cuda-device-only \
			--no-gpu-bundle-output -c k.hip -o "objects/0-$arch"
		list+=,hipv4-amdgcn-amd-amdhsa--$arch
		inputs+=("-input=objects/0-$arch")
		run kpack inspect --json "objects/0-$arch"
		[ "$status" -eq 0 ]
		[[ "$output" == *"\"arch\": \"$arch\""* ]]
	done
	clang-offload-bundler-22 -type=o -bundle-align=4096 -targets="$list" "${inputs[@]}" -output=plain
	oracle plain objects bundle 0 none
	for version in 2 3; do
		COMPRESSED_BUNDLE_FORMAT_VERSION=$version clang-offload-bundler-22 -type=o -compress \
			-bundle-align=4096 -targets="$list" "${inputs[@]}" -output=v$version
		[ "$(od -An -tu2 -j4 -N2 v$version | tr -d ' ')" = $version ]
		oracle v$version objects ccob 0 all
	done
}

@test "bulk-unbundle: the files and names of AMD's program" {
	# names OF ARCH FILE: made of the bundles by the rules of AMD's, without our code
	judge() {
		PYTHONPATH=$tools $python - "$@" <<-'PY'
		import os, sys
		import fatparse
		at, arch, path = sys.argv[1:]
		try:
		    data = fatparse.Elf(path).fatbin()
		except AssertionError:
		    data = memoryview(open(path, "rb").read())
		found = [("%s-amdgcn-amd-amdhsa--%s" % (kind, target), bytes(code))
		         for objects in fatparse.containers(data).values() for kind, target, code in objects]
		if arch:
		    found = [f for f in found if f[0].rpartition("--")[2].partition(":")[0] == arch]
		many = len({f[0] for f in found}) < len(found)
		want = {f[0] + ("_%d" % i if many else "") + (".hsaco" if f[0].startswith("hip") else ".elf"): f[1]
		        for i, f in enumerate(found)}
		got = {name: open(os.path.join(at, name), "rb").read() for name in os.listdir(at)}
		assert want and got == want, (sorted(want), sorted(got))
		PY
	}
	mkfat --bundles 1 --twice gfx1030 one.so
	mkfat --ccob odd --twice gfx1100 lib.so.1
	mkfat --bare --ccob all code.co
	kpack bulk-unbundle one.so lib.so.1 code.co >said
	judge one.unbundled "" one.so
	judge lib.so.unbundled "" lib.so.1
	judge code.unbundled "" code.co
	grep -q '^Unbundled lib.so.unbundled: hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+_0.hsaco, ' said
	"$KPACK_BIN/clang/bulk_unbundle" --output-dir out/deep --gfx-arch gfx90a lib.so.1
	judge out/deep gfx90a lib.so.1
	# AMD's replaces what exists, too
	"$KPACK_BIN/clang/bulk_unbundle" --output-dir out/deep --gfx-arch gfx90a lib.so.1
	[ "$(find out/deep -name '*.elf' | wc -l)" = 0 ]
	run -1 --separate-stderr kpack bulk-unbundle --gfx-arch gfx90 -o none lib.so.1
	[ "$stderr" = "kpack: lib.so.1: no device code for gfx90 in its bundles" ]
	[ ! -e none ]
	run -2 --separate-stderr kpack bulk-unbundle --gfx-arch gfx90a:xnack+ lib.so.1
	[[ $stderr == *"--gfx-arch takes a processor without features"* ]]
	run -2 --separate-stderr kpack bulk-unbundle -o out one.so lib.so.1
	run -2 --separate-stderr kpack bulk-unbundle
	# a hostile ID stays in the directory
	$python - code.co <<-'PY'
	import sys
	data = open("one.so", "rb").read()
	at = data.index(b"__CLANG_OFFLOAD_BUNDLE__")
	open("bad.co", "wb").write(data[at:].replace(b"hipv4-amdgcn-amd-amdhsa--gfx1030", b"../../..hipv4-amdhsa--gfx1030/ab"))
	PY
	kpack bulk-unbundle -o bad bad.co >said || true
	[ "$(find . -name '*hipv4-amdhsa--gfx1030*')" = "./bad/_._.._..hipv4-amdhsa--gfx1030_ab.elf" ]
}
