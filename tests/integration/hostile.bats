#!/usr/bin/env bats
# Archives that lie.  Whatever they state: no crash, no hang, a clear message, exit 1, and
# nothing written outside OUT.
#
# The tests tagged single end before there are threads, or have those of the two tests that damage
# what threads decode.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME

# A program on stdin that uses mkarchive as a module.
make() { PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1 $python - "$@"; }

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# Every line of stderr begins with the program and has no control bytes.
clear_words() { # FILE
	if LC_ALL=C grep -avE '^kpack: ' "$1" ||
		LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]' "$1"; then
		echo "not clear: $1"
		return 1
	fi
}

# Archives that cannot be read at all: each command says so, in one line for each of them.
refused() { # FILE TEXT [FILE TEXT]...
	local command files=() texts=()
	while [ $# -gt 0 ]; do
		files+=("$1")
		texts+=("$2")
		shift 2
	done
	for command in "ls" "ls --json" "info" "verify" "extract -C refused-out"; do
		refused_by "$command" 0 ${#files[@]}
	done
	# alone, because of the exit status, and because cat takes one
	for ((i = 0; i < ${#files[@]}; i++)); do
		refused_by "verify -q" $i 1
		run kpack cat "${files[i]}" key gfx1100
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
	done
	[ -z "$(find refused-out -type f 2>/dev/null)" ]
}

# COMMAND with COUNT of refused's files, from the one with number FIRST.
refused_by() { # COMMAND FIRST COUNT
	local got i
	status=0
	kpack $1 "${files[@]:$2:$3}" >/dev/null 2>err || status=$?
	[ "$status" -eq 1 ] || { echo "$1 ${files[*]:$2:$3}: exit $status"; cat err; return 1; }
	clear_words err
	mapfile -t got <err
	[ ${#got[@]} -eq "$3" ] || { echo "$1 ${files[*]:$2:$3}:"; cat err; return 1; }
	for ((i = 0; i < $3; i++)); do
		[[ ${got[i]} == "kpack: ${files[$2 + i]}: "*"${texts[$2 + i]}"* ]] ||
			{ echo "$1 ${files[$2 + i]}: no '${texts[$2 + i]}' in"; cat err; return 1; }
	done
}

# The archive is read; verify names a fault with TEXT in it.
faulty() { # FILE TEXT
	run kpack verify "$1"
	[ "$status" -eq 1 ] || { echo "verify $1: exit $status: $output"; return 1; }
	[[ "$output" == *"kpack: $1: "*"$2"* ]] || { echo "no '$2' in: $output"; return 1; }
	[[ "$output" != *": ok, "* ]]
}

# Other commands that read the archives of faulty do not mind, or say why.
listed() { # FILE...
	for command in ls info; do
		kpack $command "$@" >/dev/null 2>err || [ $? -eq 1 ]
		clear_words err
	done
}

# bats test_tags=single
@test "no archive at all" {
	printf '' >empty.kpack
	printf 'KPAK' >short.kpack
	head -c 4096 /dev/zero >zero.kpack
	cp "$KPACK_BIN/kpack" elf.kpack
	mkfifo fifo.kpack
	refused empty.kpack "empty" \
		short.kpack "4 bytes" \
		zero.kpack "not a kpack archive" \
		elf.kpack "not a kpack archive" \
		fifo.kpack "FIFO" \
		missing.kpack "No such file"
	mkdir directory.kpack
	run kpack cat directory.kpack k a
	[ "$status" -eq 1 ]
}

# bats test_tags=single
@test "cut anywhere: an error, never a crash" {
	make <<-'END'
	from mkarchive import Archive, noise
	for scheme in "none", "zstd-per-kernel":
	    a = Archive(scheme)
	    a.add("lib/x.so#0", "gfx1100", noise(600))
	    a.add("lib/x.so#0", "gfx90a:xnack+", noise(500, 1), path="p")
	    whole = a.bytes()
	    for n in list(range(0, 80)) + list(range(80, len(whole), 7)):
	        open("%s-%d.kpack" % (scheme, n), "wb").write(whole[:n])
	END
	status=0
	kpack verify -q *.kpack >/dev/null 2>err || status=$?
	[ "$status" -eq 1 ] || { echo "exit $status"; tail err; false; }
	# one line for each
	printf 'kpack: %s\n' *.kpack | sort >want
	sed 's/\.kpack: .*/.kpack/' err | sort | diff want -
	clear_words err
}

@test "any byte changed: never a crash or a hang" {
	make <<-'END'
	from mkarchive import Archive, noise
	import random
	rng = random.Random(1)
	for n in range(400):
	    # no name is in two of them, so that one run extracts all
	    a = Archive()
	    a.add("lib/%03d.so#0" % n, "gfx1100", noise(600), path="p/%03d" % n, mode=420)
	    a.add("db/%03d" % n, "generic", noise(9000, 1), chunk=4096, path="db/%03d" % n)
	    copy = bytearray(a.bytes())
	    for _ in range(rng.randrange(1, 4)):
	        # the table is the smaller part and the more interesting one
	        at = rng.randrange(len(copy)) if n % 4 == 0 else rng.randrange(len(copy) - 350, len(copy))
	        copy[at] = rng.randrange(256)
	    open("%d.kpack" % n, "wb").write(copy)
	END
	for command in "verify -q" "ls -l" "extract -f -C out"; do
		status=0
		kpack $command *.kpack >/dev/null 2>err || status=$?
		[ "$status" -le 1 ] || { echo "$command: exit $status"; tail err; false; }
		clear_words err
	done
}

# bats test_tags=single
@test "counts that lie and nesting without end" {
	make <<-'END'
	import struct
	from mkarchive import Archive, Pairs, Raw
	def write(name, **how):
	    a = Archive(index=False)
	    a.add("key", "gfx1100", b"data")
	    a.write(name + ".kpack", **how)
	for name, head in {"array": 0xdd, "map": 0xdf, "str": 0xdb, "bin": 0xc6, "ext": 0xc9}.items():
	    write("count-" + name, top={"x": Raw(bytes([head]) + b"\xff\xff\xff\xff")})
	write("toc", top={"toc": Raw(b"\xdf\xff\xff\xff\xff")})
	write("blobs", top={"compression_scheme": "none", "blobs": Raw(b"\xdd\xff\xff\xff\xff")})
	write("arches", top={"gfx_arches": Raw(b"\xdd\xff\xff\xff\xff")})
	write("deep", top={"x": Raw(b"\x91" * 100000 + b"\xc0")})
	write("deepmap", top={"x": Raw(b"\x81\xa1x" * 100000 + b"\xc0")})
	a = Archive(index=False)
	a.add("key", "gfx1100", b"data", deep=Raw(b"\x91" * 100000 + b"\xc0"))
	a.write("deepmeta.kpack")
	for name in "zstd_offset", "zstd_size":
	    for n, value in enumerate(["4", -1, 2**63, 2**64 - 1, 1.5, None, []]):
	        write("%s-%d" % (name, n), top={name: value})
	a = Archive(index=False)
	a.add("key", "gfx1100", b"data")
	whole = a.bytes()
	for n, count in enumerate([0xffffffff, 1048577, 2]):
	    open("frames-%d.kpack" % n, "wb").write(whole[:64] + struct.pack("<I", count) + whole[68:])
	open("framesize.kpack", "wb").write(whole[:68] + b"\xff\xff\xff\xff" + whole[72:])
	END
	pairs=()
	for f in *.kpack; do
		pairs+=("$f" "")
	done
	refused "${pairs[@]}"
	# and none of them asks for memory that is not there
	for f in *.kpack; do
		case $KPACK_MODE in
		asan | tsan) ;; # they reserve terabytes
		*) (ulimit -v 300000 && kpack verify "$f" >/dev/null 2>err) || [ $? -eq 1 ] ;;
		esac
		if grep 'out of memory' err; then false; fi
	done
}

# bats test_tags=single
@test "verify: a flipped bit in a key or a type of the table" {
	make <<-'END'
	import struct
	from mkarchive import Archive
	elf = b"\x7fELF\2\1\1\x40\3" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, 64, 0x41, 64, 56, 0, 64, 0, 0)
	a = Archive()
	a.add("lib/a.so#0", "gfx1100", elf)
	a.add("rocblas/x.dat", "gfx1100", b"data", type="dat", path="rocblas/x.dat", library="rocblas")
	whole = a.bytes()
	table = struct.unpack_from("<Q", whole, 8)[0]
	open("good.kpack", "wb").write(whole)
	for name in b"type", b"metadata", b"xxh3", b"path", b"library", b"frame_index", b"gfx_arch_family", b"hsaco", b"\xa3dat":
	    data = bytearray(whole)
	    data[whole.index(name, table) + len(name) - 1] ^= 1
	    open("%s.kpack" % name.decode("latin1").replace("\xa3", ""), "wb").write(data)
	data = bytearray(whole)
	data[whole.rindex(b"rocblas/x.dat") + 1] ^= 1  # the path, not the key
	open("place.kpack", "wb").write(data)
	# other keys, and other types of what is no code of a known format, are nobody's business
	b = Archive()
	b.add("lib/a.so#0", "gfx1100", b"text", type="other", entry={"typd": 1})
	b.add("lib/b.so#0", "gfx1100", elf, type="co")
	b.add("lib/c.so#0", "gfx1100", b"BC\xc0\xde" + bytes(12))
	b.add("lib/d.so#0", "gfx1100", elf, type="elf")
	b.add("lib/e.so.x.dat2", "gfx1100", b"data", type="dat", path="lib/e.so.x.dat2", library="rocblas")
	y = b.add("rocblas/y.dat", "gfx1100", b"data", path="rocblas/y.dat", library="rocblas")
	b.add("alias", "gfx1100", b"data", path="rocblas/y.dat", library="rocblas", ordinal=y)
	b.write("others.kpack")
	END
	kpack verify -q good.kpack
	kpack verify -q others.kpack
	faulty type.kpack "an entry's type is missing, and the unknown key typd differs from it by one bit"
	faulty metadata.kpack "an entry's metadata is missing"
	faulty xxh3.kpack "lib/a.so#0 gfx1100: metadata.xxh3 is missing, and the unknown key xxh2"
	faulty path.kpack "metadata.path is missing"
	faulty library.kpack "metadata.library is missing"
	faulty frame_index.kpack "frame_index is missing"
	faulty gfx_arch_family.kpack "gfx_arch_family is missing"
	faulty hsaco.kpack "lib/a.so#0 gfx1100: type is hsacn, but the code is hsaco"
	faulty dat.kpack "type is dau, which is not in the file's name"
	faulty place.kpack "metadata.path is rncblas/x.dat, which is no key of the same object"
	listed *.kpack
}

# bats test_tags=single
@test "version 2: tables of extents and frames that lie" {
	make <<-'EOF'
	import struct
	import msgpack, zstandard
	B = 65536
	zstd = zstandard.ZstdCompressor(level=1, write_checksum=True)
	def leb(n):
	    out = b""
	    while n >= 128:
	        out, n = out + bytes([n & 127 | 128]), n >> 7
	    return out + bytes([n])
	def new(n):
	    return leb(n << 1)
	def elsewhere(n, distance):
	    return leb(n << 1 | 1) + leb(2 * distance if distance >= 0 else -2 * distance - 1)
	def table(*extents):
	    return leb(len(extents)) + b"".join(extents)
	def archive(name, objects, size, frames=None, **layout):
	    frames = frames or [zstd.compress(bytes(range(256)) * 256)] * 4
	    blob = b"".join(frames)
	    shared = {"offset": 64, "size": len(blob), "block_size": B, "unique_size": 4 * B,
	              "dictionary_size": 0, "objects": objects,
	              "frames": b"".join(struct.pack("<I", len(f)) for f in frames)}
	    shared.update(layout)
	    entry = {"type": "hsaco", "ordinal": 0, "original_size": size}
	    top = {"format_version": 2, "group_name": "g", "gfx_arch_family": "gfx1100",
	           "gfx_arches": ["gfx1100"], "compression_scheme": "zstd-shared",
	           "toc": {"key": {"gfx1100": entry}}, "zstd_shared": shared}
	    with open(name + ".kpack", "wb") as f:
	        f.write(b"KPAK" + struct.pack("<IQ", 2, 64 + len(blob)) + bytes(48) + blob +
	                msgpack.packb(top))
	archive("outside", table(elsewhere(100, 4 * B - 50)), 100)
	archive("before", table(elsewhere(100, -1)), 100)
	archive("empty", table(new(100), new(0)), 100)
	archive("count", leb(1 << 62) + new(100), 100)
	archive("cut", table(new(100), new(100))[:-1], 200)
	archive("million", table(elsewhere(1, 0), *[elsewhere(1, -1)] * 999_999), 1_000_000)
	archive("span", table(*[elsewhere(10, B - 10 if i else 0) for i in range(70)]), 700,
	        [zstd.compress(bytes(B))] * 72, unique_size=72 * B)
	# much work for little: blocks that decode to much, in turn
	for name, block, n in ("large", 1 << 24, 4), ("turns", 1 << 20, 17), ("most", 1 << 20, 16):
	    archive(name, table(*[elsewhere(64, block - 64 if i % n else -64 - (n - 1) * block if i else 0)
	                          for i in range(4 * n)]), 4 * 64 * n,
	            [zstd.compress(bytes(block))] * n, unique_size=n * block, block_size=block)
	archive("objects", bytes(1 << 21), 0)
	archive("unique", table(new(100)), 100, unique_size=1 << 40)
	archive("size", table(new(4 * B)), 5)
	archive("bomb", table(new(4 * B)), 4 * B, [zstd.compress(bytes(1 << 26))] * 4)
	# allowed: the same block a thousand times, and bytes of extents that overlap
	archive("again", table(elsewhere(B, 0), *[elsewhere(B, -B)] * 999), 1000 * B)
	archive("overlap", table(elsewhere(B, 0), elsewhere(B, 1 - B)), 2 * B)
	EOF
	refused outside.kpack "an extent is empty, or outside the unique bytes"
	refused before.kpack "an extent is empty, or outside the unique bytes"
	refused empty.kpack "an extent is empty, or outside the unique bytes"
	refused count.kpack "more extents than bytes can hold"
	refused cut.kpack "a number has no end"
	refused million.kpack "a span is in more than 16 blocks, or more than 4096 extents begin in it"
	refused span.kpack "a span is in more than 16 blocks, or more than 4096 extents begin in it"
	refused large.kpack "block_size 16777216 is no power of 2 from 65536 to 1048576"
	refused turns.kpack "a span is in more than 16 blocks, or more than 4096 extents begin in it"
	refused objects.kpack "too many objects"
	refused unique.kpack "frames: 16 bytes for 16777216 frames"
	faulty size.kpack "original_size 5 of an object of 262144 bytes"
	faulty bomb.kpack "block 0: not one frame of 65536 bytes, with a checksum"
	kpack verify -q again.kpack overlap.kpack most.kpack
	[ "$(kpack cat again.kpack key gfx1100 | wc -c)" = 65536000 ]
}

# bats test_tags=single
@test "paths of many directories: some are made, the others reported" {
	make <<-'END'
	from mkarchive import Archive, Pairs
	a = Archive()
	a.add("good", "gfx1100", b"good", path="good")
	entry = {"type": "dat", "ordinal": 0, "original_size": 4}
	a.write("deep.kpack", top={"toc": Pairs(
	    (key, Pairs([("gfx1100", dict(entry, metadata={"path": path}))]))
	    for key, path in [("%04x" % i + "/k" * 60, "%04x" % i + "/d" * 60 + "/f") for i in range(400)])})
	END
	run kpack verify deep.kpack
	[ "$status" -eq 1 ]
	[[ ${lines[0]} == *" paths before it have as many directories as "*" bytes of a table of contents may have: "* ]]
	# one for 32 bytes, and 256, in toc and beside it; each path is there or reported
	local most=$((256 + $(stat -c %s deep.kpack) / 32))
	kpack extract deep.kpack -C out 2>err && false
	clear_words err
	[ "$(find out -mindepth 1 -type d | wc -l)" -le "$most" ]
	[ "$(find out -mindepth 1 -type d | wc -l)" -ge $((most / 3)) ]
	[ "$(find out -type d -empty | wc -l)" = 0 ]
	[ $(($(find out -name f | wc -l) + $(grep -c '/d/f' err))) = 400 ]
}

# bats test_tags=single
@test "a full disk: clear words, nothing half-written" {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
	make <<-'END'
	from mkarchive import Archive, noise
	a = Archive()
	a.add("a#0", "gfx1100", noise(20000))
	a.add("b#0", "gfx1100", noise(200000, 1))
	a.add("c#0", "gfx1100", noise(300000, 2), chunk=65536)
	a.write("a.kpack")
	END
	mkdir small
	mount -t tmpfs -o size=64k tmpfs small || skip "cannot mount a tmpfs"
	run kpack extract a.kpack -C small
	found=$(find small -type f -printf '%P %s\n')
	cat_status=0
	kpack cat -o small/b a.kpack 'b#0' gfx1100 2>err || cat_status=$?
	left=$(find small -type f | wc -l)
	umount small
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: small/toc/b/gfx1100.hsaco: write: No space left on device" ]
	[ "$found" = "toc/a/gfx1100.hsaco 20000" ]
	[ "$cat_status" -eq 1 ]
	[ "$left" -eq 1 ]
	grep -q 'No space left on device' err
	[ "$(wc -l <err)" -eq 1 ]
}

