#!/usr/bin/env bats
# bats file_tags=long
# One flipped bit in an archive: no wrong byte leaves a mount or `kpack extract`, whoever wrote the archive.
# FLIPS=500 FLIPS_SEED=7 CHECK_FILES='flips*' make check-integration makes other and more flips.

load mounting.bash

# Files that are decoded at once, in steps, and, of more than 4 MiB, in segments.
make_files() {
	mkdir -p tree/share/db
	py <<-'EOF'
		import mkarchive
		for name, size in enumerate((0, 100, 100_000, 900_000, 4_300_000)):
		    with open("tree/share/db/%d.bin" % name, "wb") as f:
		        f.write(mkarchive.noise(size, name))
	EOF
	echo 'x share/db * generic' >rules
}

# An archive as other writers make it: without our hashes.
foreign() { # SCHEME HASH CHUNK
	py "$@" <<-'EOF'
		import mkarchive, os, sys
		scheme, xxh3, chunk = sys.argv[1], sys.argv[2] == "xxh3", int(sys.argv[3])
		a = mkarchive.Archive(scheme=scheme)
		for name in sorted(os.listdir("tree/share/db")):
		    with open("tree/share/db/" + name, "rb") as f:
		        data = f.read()
		    a.add("share/db/" + name, "generic", data, type="bin", path="share/db/" + name, hash=xxh3,
		          chunk=chunk if len(data) > chunk else 0)
		a.write("x.kpack")
	EOF
}

flip() {
	$python "$BATS_TEST_DIRNAME/flips.py" tree x.kpack "${FLIPS:-4}" "${FLIPS_SEED:-1}"
}

@test "no wrong byte of an archive of ours, nor of version 2 without hashes of blocks" {
	make_files
	for how in "" "--chunk 262144" "--scheme none" "--scheme zstd-shared"; do
		# shellcheck disable=SC2086 # words
		kpack pack -q --archives-only --library-rules=rules --group g $how tree out
		mv out/.kpack/*.kpack x.kpack
		flip
	done
	py <<-'EOF'
		import msgpack
		data = open("x.kpack", "rb").read()
		at = int.from_bytes(data[8:16], "little")
		top = msgpack.unpackb(data[at:])
		del top["table_hash"], top["zstd_shared"]["frame_hashes"]
		open("x.kpack", "wb").write(data[:at] + msgpack.packb(top))
	EOF
	flip
}

# bats test_tags=single
@test "no wrong byte of another writer's archive, nor of bundles, of which each part is an entry" {
	make_files
	for how in "zstd-per-kernel none 0" "zstd-per-kernel xxh3 100000" "none xxh3 0"; do
		# shellcheck disable=SC2086 # words
		foreign $how
		flip
	done
	rm -r tree
	$python "$BATS_TEST_DIRNAME/mkfat.py" --bundles 1 --arches gfx90a,gfx1100 --size 700000 a.so
	kpack pack -q --archives-only --group g --family all=gfx90a,gfx1100 a.so out
	mv out/.kpack/*.kpack x.kpack
	kpack extract -C tree x.kpack >extracted
	flip
}

# bats test_tags=single
@test "valid frames that are not an entry's are not served" {
	make_files
	foreign zstd-per-kernel xxh3 100000
	py <<-'EOF'
		data = bytearray(open("x.kpack", "rb").read())
		magic = bytes.fromhex("28b52ffd")
		at = [i for i in range(len(data) - 4) if data[i:i + 4] == magic]
		sizes = {}
		for a, b in zip(at, at[1:]):
		    if b - a in sizes:
		        c = sizes[b - a]
		        data[a:b], data[c:c + b - a] = data[c:c + b - a], data[a:b]
		        break
		    sizes[b - a] = a
		else:
		    raise SystemExit("no two frames of a size")
		open("x.kpack", "wb").write(data)
	EOF
	kpackfs x.kpack mnt
	bad=0
	for f in tree/share/db/*; do
		cat "mnt/share/db/${f##*/}" >got 2>err || bad=1
		cmp -n "$(stat -c %s got)" got "$f"
	done
	[ "$bad" = 1 ]
	! grep -q healthy mnt/.kpackfs/status || false
}
