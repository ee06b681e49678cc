#!/usr/bin/env bats
# kpack pack beside other programs: a terminal, another run, limits, and how much memory it needs.  The golden cases pack-*
# have what it does.

load packing.bash

pack() { kpack pack -q --archives-only "$@"; }
fatparse() { $python "$tools/fatparse.py" "$@"; }

# Of all archives of OUT: "sha256  key  arch", sorted.
sums() { # OUT
	local a
	for a in "$1"/.kpack/*.kpack; do
		readkpack sums "$a"
	done | sort
}

# No file of any name below DIR.
nothing_in() { # DIR
	[ -z "$(find "$1" ! -type d 2>/dev/null)" ] || { find "$1"; return 1; }
}

# in_less_than MIB OPTION...: kpack pack -q, and the memory that it takes; sanitizers take memory of their own
in_less_than() {
	py "$KPACK_BIN/kpack" "$KPACK_MODE" "$@" <<-'END'
	import resource, subprocess, sys
	kpack, mode, most, *options = sys.argv[1:]
	subprocess.run([kpack, "pack", "-q", *options], check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	assert mode in ("asan", "tsan") or rss < int(most) << 10
	END
}

# bats test_tags=threads
@test "two runs at a time on one OUTPUT lose nothing" {
	mkdir tree
	for i in 1 2 3 4 5 6; do
		mkfat --seed $i tree/$i.so
	done
	for i in 1 2 3 4 5 6; do
		pack --group g tree/$i.so out &
	done
	wait
	for i in 1 2 3 4 5 6; do
		fatparse sums tree/$i.so $i.so
	done | sort | diff - <(sums out)
	# the same tree gives the same archives, whatever the threads
	pack --group g --jobs 1 tree one
	pack --group g --jobs 7 tree seven
	diff -r one seven
}

@test "a bar on a terminal only, gone at the end" {
	mkfat --size 200000 a.so
	script -qec "'$KPACK_BIN/kpack' pack --archives-only a.so out" /dev/null </dev/null >tty
	grep -q 'packing \[' tty
	grep -q 'total ' tty
	script -qec "'$KPACK_BIN/kpack' pack -q --archives-only --force a.so out" /dev/null </dev/null >tty
	[ ! -s tty ]
	mkdir tree
	cp a.so tree
	"$KPACK_BIN/kpack" pack -q --in-place tree
	for way in 'mark restore -o fat.so tree/a.so' 'pack --undo tree'; do
		script -qec "'$KPACK_BIN/kpack' $way" /dev/null </dev/null >tty
		grep -q 'restoring \[' tty
		grep -q ' restored' tty
	done
}

@test "a file that may not be read is named and nothing is packed" {
	as_root
	mkdir tree dir
	mkfat tree/a.so
	cp tree/a.so tree/secret.so
	chmod 0 tree/secret.so
	mkdir tree/closed
	mkfat tree/closed/c.so
	chmod 0 tree/closed
	chmod 777 dir
	run as_nobody "$KPACK_BIN/kpack" pack --archives-only tree dir/out
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: tree/secret.so: "*"Permission denied"* ]]
	[[ "$output" == *"kpack: tree/closed: Permission denied"* ]]
	[ ! -e dir/out ]
	run as_nobody "$KPACK_BIN/kpack" pack --archives-only tree/a.so tree/out
	[ "$status" -eq 1 ]
	[[ "$output" == *"tree/out"*"Permission denied"* ]]
}

@test "a limit of file sizes: exit 1, the file and what to do are named, nothing is left" {
	mkfat --size 300000 a.so
	mkdir tree
	cp a.so tree
	pack --scheme none --group g tree whole
	limited() { # FILE COMMAND...
		local file=$1
		shift
		status=0
		# messages go through a pipe, which has no limit
		text=$(ulimit -f ${kib:-100}; kpack "$@" 2>&1 >../printed) || status=$?
		[ "$status" -eq 1 ]
		grep -qE "^kpack: .*$file: .*File too large: raise the limit" <<<"$text"
	}
	mkdir work
	cd work
	limited g_gfx1030.kpack pack --scheme none --group g ../a.so out
	nothing_in out
	rm -r out
	limited m.kpack merge ../whole/.kpack -o m.kpack
	limited a.so thin --arch gfx1030 ../tree out
	rm -r out
	[ -z "$(ls -A)" ]
	limited a.so thin --arch gfx1030 ../tree
	cmp ../a.so ../tree/a.so
	# a program that kpack runs finds the signal as it was
	if [[ $KPACK_MODE != [at]san ]]; then
		run bash -c 'ulimit -f 0; exec "$0" run sh -c "echo >file; exit 3"' "$KPACK_BIN/kpack"
		[ "$status" -eq $((128 + $(kill -l XFSZ))) ]
		run bash -c 'ulimit -f 0; trap "" XFSZ; exec "$0" run sh -c "echo >file; exit 3"' "$KPACK_BIN/kpack"
		[ "$status" -eq 3 ]
	fi
	kib=0 limited "standard output" ls ../whole/.kpack
}

@test "compressed bundles that expand without end" {
	py <<-'END'
	import hashlib, struct, mkfat, zstandard
	def ccob(packed, says):
	    return b"CCOB" + struct.pack("<HHQQ", 3, 1, 32 + len(packed), says) + bytes(8) + packed
	zeros = zstandard.ZstdCompressor(level=3).compress(bytes(1 << 28))
	plain = mkfat.bundle([("gfx1100", mkfat.code_object("gfx1100", 600, "1"))], 0, 64)
	big = zstandard.ZstdCompressor(level=3).compress(plain + bytes(1 << 28))
	for name, data in (("zeros", ccob(zeros, 1 << 28)), ("lie", ccob(zeros, 4096)),
	                   ("beyond", ccob(big, len(plain))), ("huge", ccob(zeros, 1 << 45)),
	                   ("ratio", ccob(zeros[:2000], 1 << 31))):
	    open("bomb-" + name, "wb").write(mkfat.shared_library(data, [0]))
	END
	for f in bomb-*; do
		py "$KPACK_BIN/kpack" "$f" "$KPACK_MODE" <<-'END' || { echo "$f"; cat err; false; }
		import resource, subprocess, sys
		kpack, name, mode = sys.argv[1:]
		status = subprocess.run([kpack, "pack", "--archives-only", "--group", "g", name, "out"],
		                        stderr=open("err", "w")).returncode
		rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		assert status == 1, status
		assert mode in ("asan", "tsan") or rss < 64 << 10, "%d KiB" % rss
		END
		grep -q "^kpack: $f: " err
		[ ! -e out ] || nothing_in out
	done
}

# bats test_tags=slow, all
@test "a compressed bundle of 384 MiB in less than 256 MiB, and nothing is left of it" {
	py <<-'END'
	import struct, mkfat, zstandard
	arches = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"]
	objects = []
	for n in range(16):
	    head = mkfat.code_object(arches[n % 8], 60000, str(n))
	    objects.append((arches[n % 8] + ("@openmp" if n > 7 else ""), head + head[64:] * 420))
	plain = mkfat.bundle(objects, 0, 4096)
	assert len(plain) > 384 << 20
	how = zstandard.ZstdCompressionParameters(compression_level=1, window_log=27)
	packed = zstandard.ZstdCompressor(compression_params=how).compress(plain)
	ccob = b"CCOB" + struct.pack("<HHQQ", 3, 1, 32 + len(packed), len(plain)) + bytes(8) + packed
	open("big.so", "wb").write(mkfat.shared_library(ccob, [0]))
	END
	in_less_than 256 --jobs 2 big.so out
	[ "$(find out -type f | wc -l)" -eq 9 ]
	[ "$(kpack ls out/.kpack | wc -l)" -eq 16 ]
	kpack mark check out/big.so
}

# bats test_tags=slow, all
@test "an object of 160 MiB in less than 192 MiB" {
	py <<-'END'
	import os, mkfat
	head = mkfat.code_object("gfx1100", 60000, "1")
	size = 80 << 20
	# half of it cannot be compressed; of the second one, nothing
	large = head + head[64:] * (size // len(head)) + os.urandom(size)
	for name, data in (("a", large), ("b", large), ("c", head + os.urandom(40 << 20)), ("d", head)):
	    open(name + ".so", "wb").write(mkfat.shared_library(mkfat.bundle([("gfx1100", data)], 0, 4096), [0]))
	END
	mkdir tree
	mv ?.so tree
	# 240 if nothing were given back; how much stays depends on when the thread that does it has a processor
	in_less_than 192 --archives-only --jobs 1 --group g tree out
	[ "$(find out -type f | wc -l)" -eq 1 ]
	sums out | diff - <(for f in a b c d; do fatparse sums tree/$f.so $f.so; done | sort)
	# the second library's object is stored once, whether it is found before it is compressed or after
	[ "$(kpack info --json out/.kpack | grep -o '"frames": *[0-9]*' | tr -dc 0-9)" -eq 3 ]
	pack --jobs 4 --group g tree again
	diff -r out again
}

# bats test_tags=slow, all
@test "100,000 objects in less than 256 MiB" {
	mkfat --bundles 25000 --size 200 --align 16 --arches gfx1030,gfx1100,gfx90a:xnack+,gfx942 many.so
	in_less_than 256 --archives-only many.so out
	sums out | diff - <(fatparse sums many.so many.so)
}

# bats test_tags=slow, all
@test "large objects on many threads in less than 512 MiB" {
	mkfat --bundles 20 --size 30000000 --arches gfx1100 big.so
	in_less_than 512 --archives-only --jobs 32 big.so out
	sums out | diff - <(fatparse sums big.so big.so)
}
