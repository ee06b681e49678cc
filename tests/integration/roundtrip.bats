#!/usr/bin/env bats
# Everything that is packed comes back: packed fat binaries of every kind, against the
# objects they were made of and an independent parse (fatparse.py), through an independent
# reader (readkpack.py), kpack cat and kpack extract.
#
# The tests tagged single differ in how a container is found; the threads of packing are those of the
# tests of compressed bundles, options and chunks.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }
mkfat() { $python "$tools/mkfat.py" "$@"; }
fatparse() { $python "$tools/fatparse.py" "$@"; }
readkpack() { $python "$tools/readkpack.py" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR"
	export LC_ALL=C
}

# Of all archives of OUT: "sha256  key  arch", sorted.
sums() { # OUT
	local a
	for a in "$1"/.kpack/*.kpack; do
		readkpack sums "$a"
	done | sort
}

# Every archive is sound, and the commands agree with the independent reader.
sound() { # OUT
	kpack verify "$1/.kpack"
	rm -rf ex
	kpack extract "$1/.kpack" -C ex
	[ "$(find ex -type f | wc -l)" = "$(kpack ls "$1/.kpack" | wc -l)" ]
	find ex -type f -exec sha256sum {} + | cut -d ' ' -f 1 | sort >extracted
	sums "$1" | cut -d ' ' -f 1 | diff - extracted
}

# Pack FILE alone: what an independent parse of it finds must be in OUT, and nothing else.
packs() { # FILE [OPTION]...
	local file=$1
	shift
	rm -rf out
	kpack pack -q --archives-only "$@" "$file" out
	fatparse sums "$file" "$(basename "$file")" >want
	[ -s want ]
	sums out | diff want -
	sound out
}

cat_of() { # KEY ARCH
	local archive
	archive=$(echo out/.kpack/*_"$2".kpack)
	kpack cat "$archive" "$1" "$2"
}

# The objects that mkfat wrote are stored under INDEX.  The name is <bundle>-<arch>.
stored() { # OBJECTS BUNDLE KEY
	local object arch
	for object in "$1/$2"-*; do
		arch=${object#"$1/$2-"}
		cat_of "$3" "$arch" | cmp - "$object"
	done
}

# bats test_tags=single
@test "bundles no wrapper leads to follow the wrappers" {
	mkfat --objects o --bundles 5 --loose 2 a.so
	packs a.so
	stored o 3 a.so#3
	stored o 4 a.so#4
	# with two wrappers for each of the first, loose ones begin at 6
	mkfat --objects p --bundles 5 --loose 2 --share 2 b.so
	packs b.so
	stored p 3 b.so#6
	stored p 4 b.so#7
	# reversed, with a wrapper for none of the last
	mkfat --objects q --bundles 5 --loose 2 --reverse c.so
	packs c.so
	stored q 0 c.so#2
	stored q 4 c.so#4
	# without any wrapper the position is the number
	mkfat --objects r --bundles 3 --loose 3 d.so
	packs d.so
	stored r 2 d.so#2
}

# bats test_tags=single
@test "a bare container is packed when it is INPUT" {
	for ccob in none all; do
		mkfat --objects o --bare --bundles 1 --ccob $ccob x.hipfb
		kpack pack -q --archives-only x.hipfb out --force
		stored o 0 x.hipfb#0
		sound out
	done
	[ "$(ls out/.kpack | head -n 1)" = x_gfx1030.kpack ]
}

@test "chunked objects are a frame whose parts decode alone, before a seek table" {
	mkfat --objects o --bundles 1 --size 30000 --arches gfx1100 a.so
	packs a.so --chunk 4096
	$python - out/.kpack/a_gfx1100.kpack o/0-gfx1100 <<-END
	import struct, sys
	sys.path.insert(0, "$tools")
	import readkpack, zstandard
	archive = readkpack.Archive(sys.argv[1])
	want = open(sys.argv[2], "rb").read()
	(key, arch, entry), = archive.entries()
	assert entry["metadata"]["chunk"] == 4096
	assert archive.get(entry) == want # the first frame is everything
	at, size = archive.blobs[entry["ordinal"]]
	data, n = archive.data[at:at + size], (len(want) + 4095) // 4096
	count, flags, magic = struct.unpack("<IBI", data[-9:])
	assert (count, magic) == (n, 0x8f92eab1), (count, hex(magic))
	row = 12 if flags & 0x80 else 8
	table, pos = data[-9 - row * n:-9], 0
	checksum = 4 * (data[4] >> 2 & 1)
	for i in range(n):
	    packed, plain = struct.unpack_from("<II", table, i * row)
	    blocks = data[pos:pos + packed]
	    if i == 0:
	        blocks = blocks[zstandard.frame_header_size(data):]
	    # a header of our own: a window of 2 MiB, no size, no checksum
	    head, last = b"\x28\xb5\x2f\xfd\x00\x58", i == n - 1
	    blocks = blocks[:len(blocks) - checksum] if last else blocks + b"\1\0\0"
	    part = zstandard.ZstdDecompressor().decompressobj().decompress(head + blocks)
	    assert part == want[4096 * i:4096 * i + plain] and len(part) == plain
	    pos += packed
	assert pos == size - 9 - row * n - 8
	END
}

# bats test_tags=single
@test "what is stored says where it comes from" {
	mkfat --objects o --bundles 1 --twice gfx1030 a.so
	packs a.so
	$python - out/.kpack/*.kpack <<-END
	import ctypes, sys
	sys.path.insert(0, "$tools")
	import mkarchive, readkpack
	for path in sys.argv[1:]:
	    archive = readkpack.Archive(path)
	    top = archive.top
	    (arch,) = top["gfx_arches"]
	    assert top["group_name"] == "a" and top["gfx_arch_family"] == arch, top
	    assert path.endswith("/a_%s.kpack" % arch)
	    assert list(top["toc"]) == sorted(top["toc"])
	    assert len(top["frame_index"]) == 8 * (len(archive.blobs) + 1)
	    for key, _, entry in archive.entries():
	        kind = "openmp" if "@" in key else "hipv4"
	        assert entry["type"] == "hsaco"
	        assert entry["metadata"]["target"] == kind + "-amdgcn-amd-amdhsa--" + arch, entry
	        assert entry["metadata"]["xxh3"] == mkarchive.xxh3(archive.get(entry))
	END
}

# bats test_tags=single
@test "frames state their size and carry a checksum" {
	mkfat --bundles 1 --arches gfx1100 a.so
	packs a.so
	$python - out/.kpack/a_gfx1100.kpack <<-END
	import sys
	sys.path.insert(0, "$tools")
	import readkpack, zstandard
	archive = readkpack.Archive(sys.argv[1])
	for _, _, entry in archive.entries():
	    at, size = archive.blobs[entry["ordinal"]]
	    p = zstandard.get_frame_parameters(archive.data[at:at + size])
	    assert p.content_size == entry["original_size"] and p.has_checksum
	END
}
