#!/usr/bin/env bats
# kpack inspect against containers made in Python and, where it is installed, by clang.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1

kpack() { timeout 60 "$KPACK_BIN/kpack" "$@"; }
mkfat() { $python "$tools/mkfat.py" "$@"; }

# The hash is null in a program built without libcrypto.
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
		for f in *."$whole"; do
			status=0
			kpack inspect --json "$f" >out.json 2>err || status=$?
			[ "$status" -le 1 ] || { echo "$f: exit $status"; cat err; false; }
			[ "$status" -eq 0 ] || grep -q '^kpack: ' err
			[ ! -s out.json ] || $python -m json.tool out.json >/dev/null
		done
	done
}

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
