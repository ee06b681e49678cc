#!/usr/bin/env bats
# kpack pack as a packager uses it: options, names, adding, volumes, faults, and leftovers
# after a failure.  tests/properties checks that the objects are right.
#
# The tests tagged single differ in options and in names, or end before there are threads.

load packing.bash

pack() { kpack pack -q --archives-only "$@"; }
fatparse() { $python "$tools/fatparse.py" "$@"; }

teardown() {
	cd /
	! mountpoint -q "$T/small" || umount "$T/small"
	rm -rf "$T"
}

# Of all archives of OUT: "sha256  key  arch", sorted.
sums() { # OUT
	local a
	for a in "$1"/.kpack/*.kpack; do
		readkpack sums "$a"
	done | sort
}

fails() { refused 1 "$1" --archives-only "${@:2}"; }
usage() { refused 2 "$1" "${@:2}"; }

# No file of any name below DIR.
nothing_in() { # DIR
	[ -z "$(find "$1" ! -type d 2>/dev/null)" ] || { find "$1"; return 1; }
}

as_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

as_nobody() {
	local groups=--clear-groups
	setpriv --reuid=65534 --regid=65534 $groups "$@"
}

# ---- names and selection ----------------------------------------------------------------

# bats test_tags=single
@test "wrong command lines: exit 2, nothing made" {
	mkfat a.so
	usage "INPUT and OUTPUT" --archives-only a.so
	usage "INPUT and OUTPUT" --archives-only a.so out more
	usage "--level" --archives-only --level 0 a.so out
	usage "--level" --archives-only --level 23 a.so out
	usage "--level" --archives-only --level x a.so out
	usage "--jobs" --archives-only --jobs 0 a.so out
	usage "--chunk" --archives-only --chunk 1 a.so out
	usage "--chunk" --archives-only --chunk 4096 --scheme none a.so out
	usage "--volume-size" --archives-only --volume-size 5G a.so out
	usage "--scheme" --archives-only --scheme gzip a.so out
	usage "--arch" --archives-only --arch gfx90a:bad+ a.so out
	usage "--arch" --archives-only --arch , a.so out
	usage "--family" --archives-only --family gfx1030 a.so out
	usage "--family" --archives-only --family =gfx1030 a.so out
	usage "--family" --archives-only --family a/b=gfx1030 a.so out
	usage "--family" --archives-only --family $'\xff=gfx1030' a.so out
	usage "--family" --archives-only --family $'a\nb=gfx1030' a.so out
	usage "--family" --archives-only --family x= a.so out
	usage "--family" --archives-only --family x=gfx1030 --family y=gfx1030 a.so out
	usage "--key-prefix" --archives-only --key-prefix /abs a.so out
	usage "--key-prefix" --archives-only --key-prefix a/../b a.so out
	usage "--key-prefix" --archives-only --key-prefix $'a\x01' a.so out
	usage "--group" --archives-only --group a/b a.so out
	usage "--group" --archives-only --group "" a.so out
	usage "--group" --archives-only --group $'a\x01' a.so out
	usage "--nonsense" --archives-only --nonsense a.so out
	[ ! -e out ]
}

# bats test_tags=single
@test "--family puts architectures into one archive" {
	mkfat --objects o --arches gfx1030,gfx1100,gfx90a:xnack+ a.so
	pack --family rdna=gfx1100,gfx1030 --family cdna=gfx90a:xnack+ a.so out
	[ "$(ls out/.kpack)" = $'a-cdna.kpack\na-rdna.kpack' ]
	sums out | diff - <(fatparse sums a.so a.so)
	py out/.kpack/a-rdna.kpack <<-'END'
	import sys, readkpack
	top = readkpack.Archive(sys.argv[1]).top
	assert top["gfx_arches"] == ["gfx1030", "gfx1100"], top["gfx_arches"]
	assert top["gfx_arch_family"] == "rdna" and top["group_name"] == "a"
	END
	kpack verify out/.kpack
	# equal bytes of two architectures are stored once
	mkfat --bundles 1 --objects p --arches gfx1030 one.so
	py <<-'END'
	import mkfat
	data = mkfat.code_object("gfx1030", 5000, "x")
	fat = mkfat.bundle([("gfx1030", data), ("gfx1100", data)], 0, 4096)
	open("two.so", "wb").write(mkfat.shared_library(fat, [0]))
	END
	rm -rf out
	kpack pack --json --archives-only --family rdna=gfx1100,gfx1030 two.so out >report.json
	[ "$(readkpack ls out/.kpack/two-rdna.kpack | cut -f 5 | tr -d '\n')" = 00 ]
	grep -q '"deduplicated": 1' report.json
}

# ---- the walk -----------------------------------------------------------------------------

# ---- determinism and sharing ----------------------------------------------------------------

# ---- adding to what is there ------------------------------------------------------------------

# bats test_tags=single
@test "equal keys replace, other keys stay" {
	mkfat --seed 1 --bundles 4 a.so
	mkfat --seed 2 b.so
	pack --group g a.so out
	pack --group g b.so out
	mkfat --seed 3 --bundles 2 a.so
	pack --group g a.so out
	fatparse sums a.so a.so >want.a
	fatparse sums b.so b.so >want.b
	sums out >got
	for want in want.a want.b; do
		comm -23 $want got >missing
		[ ! -s missing ]
	done
	# the two wrappers that are no more stay: no option removes them
	[ "$(grep -c ' a.so#[23] ' got)" = 6 ]
	[ "$(grep -c ' a.so#' got)" = 12 ]
	kpack verify out/.kpack
	# what nothing names any more is gone from the blob
	py out/.kpack/g_gfx1030.kpack <<-'END'
	import sys, readkpack
	a = readkpack.Archive(sys.argv[1])
	assert {e["ordinal"] for _, _, e in a.entries()} == set(range(len(a.blobs)))
	assert len(a.blobs) == 7
	END
}

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
}

# ---- volumes ------------------------------------------------------------------------------------

# Every archive of OUT is sound, a binary stands in one volume only, the same for all its
# architectures, and blobs keep to BYTES unless one binary alone is larger.
volumes_ok() { # OUT BYTES
	kpack verify -q "$1/.kpack"
	py "$@" <<-'END'
	import os, re, sys, readkpack
	out, limit = sys.argv[1] + "/.kpack", int(sys.argv[2])
	volume_of = {}
	for name in os.listdir(out):
	    group, number, rest = re.fullmatch(r"([a-z]+)(?:\.(\d+))?[_-](.*)\.kpack", name).groups()
	    a = readkpack.Archive(out + "/" + name)
	    assert a.top["group_name"] == group, a.top["group_name"]
	    binaries = {re.fullmatch("(.*?)(@[a-z]+)?#\\d+", key).group(1) for key in a.top["toc"]}
	    assert binaries, name + " is empty"
	    for b in binaries:
	        assert volume_of.setdefault(b, number) == number, (b, number, volume_of[b])
	    assert a.top["zstd_size"] <= limit or len(binaries) == 1, (name, a.top["zstd_size"])
	print(sorted(volume_of.items()))
	END
}

@test "--volume-size begins another volume, never inside a binary" {
	mkdir tree
	for i in 1 2 3 4 5 6 7 8; do
		mkfat --seed $i --size 3000 --bundles $i --arches gfx1030,gfx1100 tree/$i.so
	done
	rm tree/5.so
	mkfat --seed 5 --size 3000 --bundles 5 --arches gfx1030 tree/5.so
	for size in 1 5000 20000 30000; do
		rm -rf out
		pack --volume-size $size tree out
		volumes_ok out $size
		for f in tree/*.so; do
			fatparse sums $f "$(basename $f)"
		done | sort | diff - <(sums out)
	done
	[ -e out/.kpack/tree.2_gfx1030.kpack ]
	rm -rf out
	pack --volume-size 1M tree out
	[ "$(ls out/.kpack)" = $'tree_gfx1030.kpack\ntree_gfx1100.kpack' ]
}

# bats test_tags=single
@test "a family's archive counts all its architectures" {
	mkdir tree
	all=gfx1030,gfx1100,gfx1101,gfx1102,gfx1200,gfx1201
	for i in 1 2 3 4; do
		mkfat --seed $i --size 6000 --bundles 1 --arches $all tree/$i.so
	done
	# two binaries of one architecture fit, of six they do not
	pack --volume-size 20000 --family r=$all tree out
	volumes_ok out 20000
}

# bats test_tags=single
@test "a duplicate in another volume is stored again there" {
	mkdir tree
	for i in 1 2 3; do
		mkfat --seed 1 --size 6000 --arches gfx1030 tree/$i.so
	done
	for jobs in 1 3; do
		rm -rf out
		pack --jobs $jobs --volume-size 1 tree out
		volumes_ok out 1
		[ "$(ls out/.kpack | wc -l)" = 3 ]
	done
}

# bats test_tags=single
@test "volumes are added to while there is room, and left alone when there is none" {
	mkdir tree
	for i in 1 2 3 4; do
		mkfat --seed $i --size 6000 --arches gfx1030,gfx1100 tree/$i.so
	done
	pack --group g --volume-size 20000 tree out
	cp -r out before
	mkfat --seed 7 --size 6000 --arches gfx1030,gfx1100 new.so
	pack --group g --volume-size 20000 new.so out
	volumes_ok out 20000
	for a in before/.kpack/*; do # nothing of the old ones had to move
		b=out/.kpack/$(basename "$a")
		cmp -s "$a" "$b" || kpack ls "$b" | cut -f 1 | grep -qx 'new.so#0'
	done
	# a binary that is there stays in its volume
	pack --group g --volume-size 20000 tree/1.so out
	volumes_ok out 20000
	kpack ls out/.kpack/g_gfx1030.kpack | cut -f 1 | grep -qx '1.so#0'
	# full is full: a huge first volume is not added to
	rm -rf out
	pack --group g tree/1.so out
	pack --group g --volume-size 1 tree/2.so out
	volumes_ok out 1
	cp -r out before2
	pack --group g --volume-size 1 tree/3.so out
	volumes_ok out 1
	[ -e out/.kpack/g.3_gfx1100.kpack ]
	pack --group g --volume-size 1M --force tree out
	[ "$(ls out/.kpack)" = $'g_gfx1030.kpack\ng_gfx1100.kpack' ]
}

# ---- the report -----------------------------------------------------------------------------------

@test "a bar on a terminal only, gone at the end" {
	mkfat --size 200000 a.so
	script -qec "'$KPACK_BIN/kpack' pack --archives-only a.so out" /dev/null </dev/null >tty
	grep -q 'packing \[' tty
	grep -q 'total ' tty
	script -qec "'$KPACK_BIN/kpack' pack -q --archives-only --force a.so out" /dev/null </dev/null >tty
	[ ! -s tty ]
}

# ---- what cannot be packed --------------------------------------------------------------------------

# bats test_tags=single
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

# bats test_tags=single
@test "a read-only OUTPUT" {
	as_root
	mkfat a.so
	mkdir small
	mount -t tmpfs -o size=1m,ro none small
	fails "Read-only file system" a.so small/out
	mount -o remount,rw small
	pack a.so small/out
	mount -o remount,ro small
	cp -r small/out before
	fails "Read-only file system" a.so small/out
	diff -r before small/out
}

@test "a full disk: exit 1, clear words, the old archives, nothing else" {
	as_root
	mkfat --size 300000 a.so
	mkfat --seed 2 --size 3000 b.so
	mkdir small
	mount -t tmpfs -o size=1m none small
	fails "No space left on device" --scheme none a.so small/out
	nothing_in small
	pack --scheme none --group g b.so small/out
	cp -r small/out before
	fails "No space left on device" --scheme none --group g a.so small/out
	diff -r before small/out
	# at the very end, with hardly any room: the table, or the flush
	for kib in 20 24 28 32 36 40 44; do
		umount small
		mount -t tmpfs -o size=${kib}k none small
		status=0
		kpack pack -q --archives-only b.so small/out 2>err || status=$?
		if [ "$status" -eq 0 ]; then
			kpack verify -q small/out/.kpack
		else
			[ "$status" -eq 1 ]
			grep -q "No space left on device" err
			# what was published before the disk was full is whole
			! ls small/out/.kpack/*.kpack 2>/dev/null || kpack verify -q small/out/.kpack
		fi
	done
}

# bats test_tags=single
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

@test "killed: no archive appears and nothing is left" {
	mkfat --size 3000000 --bundles 12 a.so
	# level 19 needs far longer
	run=("$KPACK_BIN/kpack" pack -q --archives-only --level 19 a.so out)
	empty_out() { rm -rf out; }
	for signal in KILL TERM INT; do
		for after in 50 200 500; do
			kill_run $signal $after empty_out "${run[@]}"
			nothing_in out
		done
	done
	# what was there stays
	empty_out
	pack --level 1 a.so out
	cp -r out before
	old_out() { rm -rf out && cp -r before out; }
	kill_run KILL 300 old_out "${run[@]}"
	diff -r before out
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
		                        stderr=open("err", "w"), timeout=600).returncode
		rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
		assert status == 1, status
		assert mode in ("asan", "tsan") or rss < 64 << 10, "%d KiB" % rss
		END
		grep -q "^kpack: $f: " err
		[ ! -e out ] || nothing_in out
	done
}

# ---- amounts ----------------------------------------------------------------------------------------

# bats test_tags=slow
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
	py "$KPACK_BIN/kpack" "$KPACK_MODE" <<-'END'
	import resource, subprocess, sys
	kpack, mode = sys.argv[1:]
	subprocess.run([kpack, "pack", "-q", "--jobs", "2", "big.so", "out"], check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	assert mode in ("asan", "tsan") or rss < 256 << 10
	END
	[ "$(find out -type f | wc -l)" -eq 9 ]
	[ "$(kpack ls out/.kpack | wc -l)" -eq 16 ]
	kpack mark check out/big.so
}

# bats test_tags=slow
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
	py "$KPACK_BIN/kpack" "$KPACK_MODE" <<-'END'
	import resource, subprocess, sys
	kpack, mode = sys.argv[1:]
	subprocess.run([kpack, "pack", "-q", "--archives-only", "--jobs", "1", "--group", "g", "tree", "out"], check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	# 240 if nothing were given back; how much stays depends on when the thread that does it has a processor
	assert mode in ("asan", "tsan") or rss < 192 << 10
	END
	[ "$(find out -type f | wc -l)" -eq 1 ]
	sums out | diff - <(for f in a b c d; do fatparse sums tree/$f.so $f.so; done | sort)
	# the second library's object is stored once, whether it is found before it is compressed or after
	[ "$(kpack info --json out/.kpack | grep -o '"frames": *[0-9]*' | tr -dc 0-9)" -eq 3 ]
	pack --jobs 4 --group g tree again
	diff -r out again
}

# bats test_tags=slow
@test "100,000 objects in less than 256 MiB" {
	mkfat --bundles 25000 --size 200 --align 16 --arches gfx1030,gfx1100,gfx90a:xnack+,gfx942 many.so
	py "$KPACK_BIN/kpack" <<-'END'
	import resource, subprocess, sys
	subprocess.run([sys.argv[1], "pack", "-q", "--archives-only", "many.so", "out"], check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	assert rss < 256 << 10, "%d KiB" % rss
	END
	sums out | diff - <(fatparse sums many.so many.so)
}

# bats test_tags=slow
@test "large objects on many threads in less than 512 MiB" {
	mkfat --bundles 20 --size 30000000 --arches gfx1100 big.so
	py "$KPACK_BIN/kpack" <<-'END'
	import resource, subprocess, sys
	subprocess.run([sys.argv[1], "pack", "-q", "--archives-only", "--jobs", "32", "big.so", "out"],
	               check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	assert rss < 512 << 10, "%d KiB" % rss
	END
	sums out | diff - <(fatparse sums big.so big.so)
}

# bats test_tags=single
@test "a slash after the name of a file: it is no directory" {
	mkfat in.so
	kpack pack -q --archives-only in.so out
	archive=$(find out -name '*.kpack' -type f -print -quit)
	ln -s "$archive" link
	for a in "$archive/" "$archive/." link/; do
		for c in "info $a" "ls $a" "verify $a" "inspect $a" "cat $a x gfx1100" "extract $a -C x" \
			"pack --group g --archives-only $a o" "merge $a -o o.kpack" "mark show $a" \
			"report -o r.html $a"; do
			# shellcheck disable=SC2086 # words
			status=0
			kpack $c 2>err || status=$?
			[ $status = 1 ]
			grep -q ': Not a directory' err || { echo "$c:"; cat err; return 1; }
		done
	done
}
