#!/usr/bin/env bats
# bats file_tags=long
# One flipped bit in an archive: no wrong byte leaves a mount, `kpack cat` or `extract`, whoever wrote the archive.
# FLIPS=500 FLIPS_SEED=7 CHECK_FILES='flips*' make check-integration makes other and more flips.
#
# The tests tagged single have the threads of the others.

bats_require_minimum_version 1.5.0
load mounting.bash

# Files that are decoded at once, in steps, and, of more than 4 MiB, in segments.
make_files() {
	mkdir -p tree/share/db
	PYTHONPATH=$BATS_TEST_DIRNAME PYTHONDONTWRITEBYTECODE=1 $python - <<-'EOF'
		import mkarchive
		for name, size in enumerate((0, 100, 5000, 100_000, 300_000, 900_000, 5_000_000)):
		    with open("tree/share/db/%d.bin" % name, "wb") as f:
		        f.write(mkarchive.noise(size, name))
	EOF
}

# An archive as `kpack pack` makes it with OPTIONs.
ours() { # [OPTION]...
	make_files
	echo 'x share/db * generic' >rules
	kpack pack -q --archives-only --library-rules=rules --group g "$@" tree out
	mv out/.kpack/*.kpack x.kpack
	$python "$BATS_TEST_DIRNAME/readkpack.py" toc x.kpack >toc
	grep -q table_hash toc
}

# An archive as other writers make it: without our hashes.
foreign() { # SCHEME HASH CHUNK
	make_files
	PYTHONPATH=$BATS_TEST_DIRNAME PYTHONDONTWRITEBYTECODE=1 $python - "$@" <<-'EOF'
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
	$python "$BATS_TEST_DIRNAME/flips.py" tree x.kpack "${FLIPS:-8}" "${FLIPS_SEED:-1}"
}

@test "no wrong byte of an archive of ours: zstd-per-kernel" {
	ours
	flip
}

# bats test_tags=single
@test "no wrong byte of an archive of ours: in chunks" {
	ours --chunk 262144
	flip
}

# bats test_tags=single
@test "no wrong byte of an archive of ours: none" {
	ours --scheme none
	flip
}

# bats test_tags=single
@test "no wrong byte of an archive of ours: zstd-shared" {
	ours --scheme zstd-shared
	flip
}

# bats test_tags=single
@test "no wrong byte of another writer's archive: frames with checksums" {
	foreign zstd-per-kernel none 0
	flip
}

@test "no wrong byte of another writer's archive: frames and hashes" {
	foreign zstd-per-kernel xxh3 0
	flip
}

# bats test_tags=single
@test "no wrong byte of another writer's archive: chunks and hashes" {
	foreign zstd-per-kernel xxh3 100000
	flip
}

# bats test_tags=single
@test "no wrong byte of another writer's archive: no compression, hashes" {
	foreign none xxh3 0
	flip
}

# bats test_tags=single
@test "no wrong byte of another writer's archive: of version 2, with hashes" {
	ours --scheme zstd-shared
	$python - <<-'EOF'
		import msgpack
		data = open("x.kpack", "rb").read()
		at = int.from_bytes(data[8:16], "little")
		top = msgpack.unpackb(data[at:])
		del top["table_hash"], top["zstd_shared"]["frame_hashes"]
		open("x.kpack", "wb").write(data[:at] + msgpack.packb(top))
	EOF
	flip
}

@test "no wrong byte of bundles, of which each part is an entry" {
	$python "$BATS_TEST_DIRNAME/mkfat.py" --bundles 1 --arches gfx90a,gfx1100 --size 700000 a.so
	mkdir in
	cp a.so in/
	kpack pack -q --archives-only --group g --family all=gfx90a,gfx1100 in out
	mv out/.kpack/*.kpack x.kpack
	kpack extract -C ex x.kpack >extracted
	mkdir tree
	mv ex/toc tree/
	flip
}

# bats test_tags=single
@test "valid frames that are not an entry's are not served" {
	foreign zstd-per-kernel xxh3 100000
	cp x.kpack intact
	$python - <<-'EOF'
		data = bytearray(open("intact", "rb").read())
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
	run ! grep -q healthy mnt/.kpackfs/status
}

# Flip a bit in the middle of the 900,000 bytes of an archive without compression.
damage() {
	$python - "$1" <<-'EOF'
		import os, sys
		want = open("tree/share/db/5.bin", "rb").read()
		data = open(sys.argv[1], "rb").read()
		at = data.index(want) + len(want) // 2
		was = os.stat(sys.argv[1])
		fd = os.open(sys.argv[1], os.O_WRONLY)
		os.pwrite(fd, bytes([data[at] ^ 1]), at)
		os.close(fd)
		os.utime(sys.argv[1], ns=(was.st_atime_ns, was.st_mtime_ns))
	EOF
}

# bats test_tags=single
@test "what is copied gets no hash before it is compared with those it has" {
	foreign none xxh3 0
	kpack merge -q x.kpack -o right.kpack
	kpack verify -q right.kpack
	damage x.kpack
	for options in "" "--scheme none"; do
		run -1 kpack merge -q $options x.kpack -o wrong.kpack
		[[ $output == *"share/db/5.bin"*xxh3* ]]
		[ ! -e wrong.kpack ]
	done
}
