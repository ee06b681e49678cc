#!/usr/bin/env bats
# Archives of version 2 (kpack-format(5)): written by kpack pack --scheme zstd-shared, read by a
# reader that was written from the page alone (readkpack.py), and by everything of ours.
#
# The tests tagged single differ in what is packed and joined; the threads that compress blocks are those
# of the tests of the number of threads and of copied blocks.

bats_require_minimum_version 1.5.0
load packing.bash

# Files of a kernel database that are like each other: parts of one another, of themselves, at odd
# places, and changed in some bytes; one is random, one empty of content, one has one byte.
make_database() { # DIR
	mkdir -p "$1/lib/rocblas/library"
	$python - "$1/lib/rocblas/library" <<-'EOF'
		import random, sys
		r = random.Random(7)
		words = [r.randbytes(r.choice((8, 12, 16))) for _ in range(3000)]
		def code(size):
		    return b"".join(r.choices(words, k=size // 10))[:size]
		parts = [code(r.randrange(20_000, 700_000)) for _ in range(16)]
		def put(name, data):
		    with open("%s/TensileLibrary_%s_gfx90a.co" % (sys.argv[1], name), "wb") as f:
		        f.write(data)
		put("A", b"".join(parts))
		put("B", b"".join(p[r.randrange(5000):] for p in reversed(parts)) + code(300_000))
		c = bytearray(b"".join(parts[2:9]))
		for _ in range(200):
		    c[r.randrange(len(c))] ^= 255
		put("C", c)
		put("D", parts[3] * 7 + code(77) + parts[3][1000:9000] * 40)
		put("E", b"\0" * 3_000_000)
		put("F", r.randbytes(1_500_000))
		put("G", b"x")
		put("H", b"".join(parts))
		put("I", b"".join(r.choice(parts)[o:o + 4500] for o in range(0, 20_000, 50)))
	EOF
}

pack() { kpack pack -q --archives-only --scheme zstd-shared --group g "$@"; }
archive=out/.kpack/g_gfx90a.kpack

# The hashes of all files below a directory, sorted.
hashes() { # DIR
	find "$1" -type f -exec sha256sum {} + | cut -d ' ' -f 1 | sort
}

@test "zstd-shared: an independent reader, kpack and the library have every byte" {
	make_database tree
	pack tree out
	hashes tree >want
	readkpack sums "$archive" | cut -d ' ' -f 1 | sort | diff want -
	kpack extract out/.kpack -C ex
	hashes ex | diff want -
	kpack cat "$archive" lib/rocblas/library/TensileLibrary_C_gfx90a.co gfx90a |
		cmp - tree/lib/rocblas/library/TensileLibrary_C_gfx90a.co
	kpack verify "$archive" >verified
	grep -q ': ok, 9 entries' verified
	kpack info "$archive" | grep -q 'scheme *zstd-shared'
	# what is found again is stored once
	[ "$(stat -c %s "$archive")" -lt 4600000 ]
}

@test "zstd-shared: the bytes do not depend on the number of threads" {
	make_database tree
	pack --jobs 1 tree one
	pack --jobs 7 tree seven
	diff -r one seven
	pack --jobs 3 --level 19 tree out
	readkpack sums "$archive" | cut -d ' ' -f 1 | sort >got
	hashes tree | diff - got
}

@test "time is spent on what is dense, and the same archives come out" {
	local scheme few many
	make_database tree
	rm tree/lib/rocblas/library/*_[BDHI]_*
	for scheme in zstd-shared zstd-per-kernel; do
		for jobs in 1 5; do
			kpack pack -q --archives-only --group g --scheme $scheme --level auto \
				--effort 100 --jobs $jobs tree $scheme.jobs$jobs
		done
		diff -r $scheme.jobs1 $scheme.jobs5
		archive=$scheme.jobs1/.kpack/g_gfx90a.kpack
		kpack verify -q $archive
		readkpack sums $archive | cut -d ' ' -f 1 | sort >got
		hashes tree | diff - got
		many=$(stat -c %s $archive)
		# the least time is that of the lowest level
		kpack pack -q --archives-only --group g --scheme $scheme --level auto --effort 1 \
			tree $scheme.least
		few=$(stat -c %s $scheme.least/.kpack/g_gfx90a.kpack)
		kpack pack -q --archives-only --group g --scheme $scheme tree $scheme.default
		diff -r $scheme.default $scheme.least
		echo "$few $many"
		# of these files, zstd's level 9 without a dictionary makes more than level 3
		[ $scheme = zstd-per-kernel ] || [ "$few" -gt "$many" ]
	done
	usage "--effort needs --level auto" --effort 5 tree out
	usage "--level auto with --scheme none" --scheme none --level auto tree out
	usage "--level auto with --shard" --shard 1/2 --level auto tree out
	usage "--level 23: not auto" --level 23 tree out
}

# bats test_tags=single
@test "zstd-shared: fat binaries, converted, and added to" {
	mkfat --bundles 9 --size 70000 a.so
	mkfat --bundles 9 --size 70000 --seed 1 b.so
	mkdir in
	cp a.so b.so in
	kpack pack -q --archives-only --group g in plain
	kpack pack -q --archives-only --group g --scheme zstd-shared a.so out
	kpack pack -q --archives-only --group g --scheme zstd-shared b.so out
	for a in plain/.kpack/*; do
		readkpack sums "$a" | cut -d ' ' -f 1 | sort >want
		readkpack sums "out/.kpack/${a##*/}" | cut -d ' ' -f 1 | sort | diff want -
	done
	kpack verify out/.kpack
	# an archive of another scheme is not added to
	fails "its scheme is zstd-shared" --archives-only --group g b.so out
	kpack pack -q --group g --scheme zstd-shared in conv
	kpack mark check conv
}

# bats test_tags=single
@test "zstd-shared: what readers of version 1 would misread is refused" {
	make_database tree
	pack tree out
	# version 2 in the header: AMD's readers stop at it
	[ "$(od -An -tu4 -j4 -N4 "$archive" | tr -d ' ')" = 2 ]
	printf '\1' | dd of="$archive" bs=1 seek=4 conv=notrunc status=none
	run -1 kpack ls "$archive"
	[[ $output == *"header: version 1 is not supported with the scheme zstd-shared, only 2"* ]]
	printf '\2' | dd of="$archive" bs=1 seek=4 conv=notrunc status=none
	usage "--chunk" --archives-only --scheme zstd-shared --chunk 4096 tree new
}

# Write to NEW the archive OLD with a dictionary that begins with zstd's magic number.
with_magic() { # OLD NEW
	py "$@" <<-'EOF'
		import struct, sys
		import msgpack, zstandard
		from readkpack import Archive
		a = Archive(sys.argv[1])
		s, layout = a.shared, a.top["zstd_shared"]
		raw = struct.pack("<I", 0xec30a437) + s.dictionary.as_bytes()[4:]
		used = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
		def frame(data, dictionary):
		    return zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True).compress(data)
		frames = [frame(raw, None)] + [frame(s.block(i), used) for i in range(len(s.blocks))]
		layout.update(offset=64, size=sum(map(len, frames)),
		              frames=b"".join(struct.pack("<I", len(f)) for f in frames))
		del layout["frame_hashes"], a.top["table_hash"]
		with open(sys.argv[2], "wb") as f:
		    f.write(struct.pack("<4sIQ", b"KPAK", 2, 64 + layout["size"]).ljust(64, b"\0"))
		    f.write(b"".join(frames) + msgpack.packb(a.top))
	EOF
}

# bats test_tags=single
@test "zstd-shared: a dictionary that begins as a trained one is a fault, and no entry is lost" {
	make_database tree
	# as much as makes a dictionary worthwhile: what is common is too short to be stored once
	$python - >tree/lib/rocblas/library/TensileLibrary_J_gfx90a.co <<-'EOF'
		import random, sys
		r = random.Random(3)
		words = [r.randbytes(99) for _ in range(500)]
		sys.stdout.buffer.write(b"".join(r.choices(words, k=60_000)))
	EOF
	pack tree out
	with_magic "$archive" magic.kpack
	run -1 kpack verify magic.kpack
	[ "$output" = "kpack: magic.kpack: dictionary: begins with 37 a4 30 ec, as zstd's trained ones: \
other readers may not take it for content" ]
	run -1 readkpack sums magic.kpack
	[[ $output == *"dictionary with a magic"* ]]
	kpack extract magic.kpack -C ex
	diff <(hashes tree) <(hashes ex)
	# compressed again, it is an archive for every reader
	kpack merge -q -o merged.kpack magic.kpack
	kpack verify -q merged.kpack
	diff <(readkpack sums merged.kpack) <(readkpack sums "$archive")
}

# bats test_tags=single
@test "a full disk is no fault of the archives that are joined or divided" {
	local scheme
	as_root
	make_database tree
	mkdir small
	mount -t tmpfs -o size=512k none small
	for scheme in zstd-shared zstd-per-kernel none; do
		kpack pack -q --archives-only --scheme $scheme --group g tree $scheme
		run -1 kpack merge -q -o small/new.kpack $scheme/.kpack/g_gfx90a.kpack
		[[ $output == "kpack: small/new.kpack: "*": No space left on device" ]]
		[[ $output != *g_gfx90a* ]]
		run -1 kpack merge -q --scheme zstd-shared --level 1 -o small/new.kpack $scheme/.kpack/g_gfx90a.kpack
		[[ $output == "kpack: small/new.kpack: "*": No space left on device" ]]
		[[ $output != *g_gfx90a* ]]
		run -1 kpack split -q $scheme/.kpack small/by
		[[ $output == "kpack: small/by: g_gfx90a.kpack: "*": No space left on device" ]]
		[[ $output != *"$scheme/.kpack"* ]]
		[ -z "$(find small -type f)" ]
	done
	umount small
}

# bats test_tags=single
@test "zstd-shared: the parts of a run are joined to what one run writes" {
	make_database tree
	pack --level 5 tree out
	for n in 1 2 3; do
		for i in $(seq $n); do
			pack --level 5 --shard $i/$n tree part$n.$i
			kpack verify -q part$n.$i/.kpack/shard/g_gfx90a.kpack
		done
		kpack merge -q $(seq -f part$n.%g $n | tac) -o joined$n
		diff -r out joined$n
	done
	pack --level 6 --shard 2/2 tree other
	run -1 kpack merge -q part2.1 other -o new
	[[ $output == *"--level 5"*"--level 6"* ]]
}

# bats test_tags=single
@test "zstd-shared: archives are joined, and divided" {
	make_database tree
	mkdir -p one/lib/rocblas/library two/lib/rocblas/library
	cp tree/lib/rocblas/library/*_[A-E]_* one/lib/rocblas/library
	cp tree/lib/rocblas/library/*_[D-I]_* two/lib/rocblas/library
	pack one out1
	pack two out2
	pack tree out
	kpack merge -q -o merged.kpack out1/.kpack/*.kpack out2/.kpack/*.kpack
	kpack verify -q merged.kpack
	readkpack sums merged.kpack >got
	readkpack sums "$archive" | diff got -
	# what the two have in common is stored once again
	[ "$(stat -c %s merged.kpack)" -lt 4600000 ]
	mkfat --bundles 5 --size 90000 fat.so
	kpack pack -q --archives-only --group g --scheme zstd-shared \
		--family all=gfx90a:xnack+,gfx1030,gfx1100 fat.so fam
	[ -e fam/.kpack/g-all.kpack ]
	kpack split -q fam/.kpack by
	cat fam/.kpack/*.kpack >/dev/null
	for a in $(find by -name '*.kpack'); do readkpack sums "$a"; done | sort >got
	readkpack sums fam/.kpack/g-all.kpack | sort | diff - got
}

# Check that the blocks of NEW, except N of them, are blocks of OLD as they are stored, and that
# the dictionary is the same.
has_blocks_of() { # NEW OLD N
	py "$@" <<-'EOF'
		import sys
		from readkpack import Archive
		new, old = (Archive(f) for f in sys.argv[1:3])
		def dictionary(a):
		    return a.shared.dictionary.as_bytes() if a.shared.dictionary else b""
		blocks = [b for b in new.shared.blocks if b not in set(old.shared.blocks)]
		assert len(blocks) == int(sys.argv[3]), (len(blocks), len(new.shared.blocks))
		assert len(new.shared.blocks) > 2 * len(blocks)
		assert dictionary(new) == dictionary(old)
	EOF
}

# Of the JSON object or array on stdin: the field NAME of each object that has it.
fields() { # NAME
	$python -c 'import json, sys
def walk(x):
    if isinstance(x, dict):
        if sys.argv[1] in x: print(x[sys.argv[1]])
        x = list(x.values())
    for y in x if isinstance(x, list) else []: walk(y)
walk(json.load(sys.stdin))' "$1"
}

@test "zstd-shared: blocks are copied where all of their bytes stay" {
	local all=out/.kpack/g-all.kpack n
	mkdir -p tree/lib/rocblas/library
	$python - <<-'EOF'
		import random
		r = random.Random(3)
		words = [r.randbytes(r.choice((8, 12, 16))) for _ in range(2000)]
		def code(size):
		    return b"".join(r.choices(words, k=size // 10))[:size]
		common = [code(200_000) for _ in range(9)]
		def put(name, gpu, data):
		    path = "tree/lib/rocblas/library/TensileLibrary_%s_%s.co" % (name, gpu)
		    with open(path, "wb") as f:
		        f.write(data)
		for i, c in enumerate(common):
		    put("A%d" % i, "gfx90a", c + code(1_200_000))
		for i, c in enumerate(common):
		    put("B%d" % i, "gfx1030", code(100_000) + c[1000:])
	EOF
	pack --family all=gfx90a,gfx1030 tree out
	readkpack sums $all >sums
	# most blocks have bytes of one GPU only: those of the other one's are compressed again
	kpack split --json out/.kpack by >report
	n=$(fields blocks_encoded <report | tail -1)
	[ "$n" -gt 0 ]
	[ "$(fields blocks_copied <report | tail -1)" -gt "$n" ]
	has_blocks_of by/g_gfx90a.kpack $all "$n"
	[ "$(fields blocks_copied <report | head -1)" = 0 ]
	kpack verify -q by
	for a in by/*; do readkpack sums "$a"; done | sort | diff - <(sort sums)
	# what the entries have of the stored bytes, is about all of it
	[ "$(kpack ls -l by/g_gfx90a.kpack | awk -F '\t' '{ n += $6 } END { print (n > 1200000) }')" = 1 ]
	# a small archive is added to a large one
	kpack merge --json -o g-all.kpack by/g_gfx1030.kpack by/g_gfx90a.kpack >report
	readkpack sums g-all.kpack | diff - sums
	has_blocks_of g-all.kpack by/g_gfx90a.kpack "$(fields blocks_encoded <report)"
	[ "$(stat -c %s g-all.kpack)" -lt $(($(stat -c %s $all) * 11 / 10)) ]
	# what goes is not there any more, neither in blocks nor in the table
	cp -a out before
	mkdir -p out/lib/rocblas/library
	kpack prune --json --arch gfx90a out >report
	has_blocks_of $all before/.kpack/g-all.kpack "$(fields blocks_encoded <report)"
	grep ' gfx90a$' sums | diff - <(readkpack sums $all)
	py $all tree/lib/rocblas/library/TensileLibrary_B4_gfx1030.co <<-'EOF'
		import sys
		from readkpack import Archive
		s = Archive(sys.argv[1]).shared
		own = open(sys.argv[2], "rb").read()[:100_000]
		run = b"".join(s.block(i) for i in range(len(s.blocks)))
		assert not any(own[i:i + 64] in run for i in range(0, 99_000, 1000))
	EOF
	kpack prune --arch gfx90a out | tail -1 | grep -q '^0 of 1 archives'
}

@test "zstd-shared: damage of a block is found for exactly the entries that have its bytes" {
	make_database tree
	pack tree out
	PYTHONPATH=$tools $python - "$archive" <<-'EOF' >want
		import sys
		from readkpack import Archive
		path = sys.argv[1]
		a = Archive(path)
		s, size = a.shared, a.shared.block_size
		def blocks(e):
		    return {b for begin, n in s.objects[e["ordinal"]]
		            for b in range(begin // size, (begin + n - 1) // size + 1)}
		uses = {key: blocks(e) for key, _, e in a.entries()}
		# a block that some of the entries use, but not most
		bad = min(range(len(s.blocks)), key=lambda b: abs(3 - sum(b in u for u in uses.values())))
		before = len(s.layout["frames"]) // 4 - len(s.blocks) + bad
		at = s.layout["offset"] + sum(
		    int.from_bytes(s.layout["frames"][4 * i:4 * i + 4], "little") for i in range(before))
		with open(path, "r+b") as f:
		    f.seek(at + len(s.blocks[bad]) - 1)  # of the checksum
		    byte = f.read(1)[0]
		    f.seek(-1, 1)
		    f.write(bytes([byte ^ 1]))
		print(*sorted(key for key, u in uses.items() if bad in u), sep="\n")
		assert 0 < sum(bad in u for u in uses.values()) < len(uses)
	EOF
	run -1 kpack verify "$archive"
	grep -o 'TensileLibrary_._gfx90a.co' <<<"$output" | sort -u >found
	sed 's|.*/||' want | diff - found
	grep -q 'block [0-9]*: ' <<<"$output"
	for f in tree/lib/rocblas/library/*; do
		k=lib/rocblas/library/${f##*/}
		if grep -qx "$k" want; then
			run -1 kpack cat "$archive" "$k" gfx90a
		else
			kpack cat "$archive" "$k" gfx90a | cmp - "$f"
		fi
	done
}
