#!/usr/bin/env bats
# The behaviour of a mount with unreadable archives and without memory, threads or
# descriptors, and its memory use for entries larger than its cache.

bats_require_minimum_version 1.5.0

load mounting

# Sanitizers want to be loaded first; they have memory of their own, which cannot be refused.
preloaded() {
	ldd "$KPACK_BIN/kpackfs" | awk '$1 ~ /^lib[at]san/ { print $3 }' | tr '\n' ' '
	echo "$KPACK_BIN/tests/sweep/faults.so"
}
sanitized() { [[ $KPACK_MODE = [at]san ]]; }

# serve OPTION...: mount src in the foreground, the log in the file of that name
serve() {
	: >log
	kpackfs -f "$@" "$T/src" "$T/mnt" 2>>log 3>&- &
	pid=$!
	eventually mountpoint -q mnt
}

# The same with calls that can be made to fail.
serve_faulty() {
	printf ... >faults
	: >log
	FAULTS=$T/faults LD_PRELOAD=$(preloaded) kpackfs -f "$@" "$T/src" "$T/mnt" 2>>log 3>&- &
	pid=$!
	eventually mountpoint -q mnt
}

# It ends well, and no sanitizer complains.
finish() {
	umount mnt
	wait "$pid"
	! grep -E 'Sanitizer|runtime error' log || return 1
}

fault() { printf %s "$1" | dd of=faults conv=notrunc status=none; }

# The process that reads archives: the other one's child.
server() { pgrep -P "$pid"; }

stat_of() {
	py "$T/mnt/.kpackfs/stats" "$@" <<-'END'
	import json, sys
	value = json.load(open(sys.argv[1]))
	for name in sys.argv[2:]:
	    value = value[name]
	print(value)
	END
}

forget_pages() { sync && echo 3 >/proc/sys/vm/drop_caches; }

# eio FILE...: each of them cannot be read
eio() {
	for f; do
		run -1 dd if="mnt/$f" of=/dev/null status=none
		[[ $output == *"Input/output error"* ]] || { echo "$f: $output"; return 1; }
	done
}

# complaints TEXT: log lines with it
complaints() { grep -c "$1" log || :; }

# Two of each way to be decoded: by the thread that reads, by a decoder, in chunks, in passes, plainly.
make_archives() {
	py <<-'END'
	import mkarchive
	for name in "one", "two":
	    a = mkarchive.Archive(group=name)
	    for i, (key, size, more) in enumerate((
	        ("small", 9000, {}), ("large", 900000, {}), ("huge", 4000000, {}),
	        ("chunks", 600000, {"chunk": 65536}))):
	        data = name.encode() + mkarchive.noise(size, i)
	        open(f"{name}-{key}", "wb").write(data)
	        a.add(f"{name}/{key}#0", "gfx1100", data, **more)
	    a.write(f"src/{name}.kpack")
	    p = mkarchive.Archive(scheme="none", group=name)
	    data = name.encode() + mkarchive.noise(1300000, 9)
	    open(f"{name}-plain", "wb").write(data)
	    p.add(f"{name}/plain#0", "gfx1100", data)
	    p.write(f"src/{name}-plain.kpack")
	END
}

keys="small large huge chunks plain"

# good NAME: all of an archive is right
good() {
	for key in $keys; do cmp "$1-$key" "mnt/toc/$1/$key/gfx1100.hsaco" || return 1; done
}

# bad NAME: nothing of it can be read
bad() {
	for key in $keys; do eio "toc/$1/$key/gfx1100.hsaco" || return 1; done
}

@test "reads that fail, are short, are interrupted, meet the end" {
	make_archives
	serve_faulty -o cache_size=1m
	for kind in s i; do
		fault $kind
		good one
		forget_pages
	done
	fault e
	bad one
	bad one
	[ "$(stat_of errors_by_reason read)" -ge 10 ]
	for key in $keys; do
		[ "$(complaints "src/one.*kpack: one/$key#0 gfx1100: ")" = 1 ]
	done
	[ "$(wc -l <log)" = 5 ]
	ls -lR mnt >/dev/null
	fault z
	bad two
	[ "$(wc -l <log)" = 10 ]
	# it passes
	fault .
	good one
	good two
	[ "$(wc -l <log)" = 10 ]
	finish
}

@test "an error in the middle of a file that is read" {
	make_archives
	serve_faulty -o cache_size=1m
	for key in huge plain; do
		exec 5<"mnt/toc/one/$key/gfx1100.hsaco"
		head -c 100000 <&5 | cmp -n 100000 - "one-$key"
		fault e
		run -1 dd of=/dev/null status=none <&5
		[[ $output == *"Input/output error"* ]]
		exec 5<&-
		fault .
		cmp "one-$key" "mnt/toc/one/$key/gfx1100.hsaco"
	done
	finish
}

@test "wrong hashes, in every way to decode" {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	for key, size in ("small", 9000), ("large", 900000), ("huge", 4000000):
	    a.add(f"{key}#0", "gfx1100", mkarchive.noise(size, 1), xxh3=bytes(16))
	a.add("good#0", "gfx1100", b"good")
	a.write("src/a.kpack")
	END
	serve -o cache_size=1m
	for _ in 1 2; do
		eio toc/small/gfx1100.hsaco toc/large/gfx1100.hsaco toc/huge/gfx1100.hsaco
	done
	[ "$(cat mnt/toc/good/gfx1100.hsaco)" = good ]
	[ "$(stat_of errors_by_reason hash)" -ge 6 ]
	[ "$(complaints ' gfx1100: content does not match its xxh3')" = 3 ]
	finish
}

@test "many files that fail: few lines, and a number" {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	for i in range(50):
	    a.add(f"k{i:02}#0", "gfx1100", b"data", xxh3=bytes([i] * 16))
	a.write("src/a.kpack")
	END
	serve
	cat mnt/toc/*/* 2>/dev/null || :
	[ "$(complaints xxh3)" = 20 ]
	finish
	grep -qxE 'kpackfs: and [0-9]+ more read errors' log
	[ "$(wc -l <log)" = 21 ]
}

@test "nobody to hear the log" {
	make_archives
	kpackfs -f "$T/src" "$T/mnt" 2>/dev/full 3>&- &
	pid=$!
	eventually mountpoint -q mnt
	truncate -s 100 src/one.kpack
	run -1 cat mnt/toc/one/large/gfx1100.hsaco
	good two
	finish
}

# bats test_tags=single
@test "a log that reaches a limit of file sizes" {
	make_archives
	(ulimit -f 0 && exec kpackfs -f "$T/src" "$T/mnt" 2>log 3>&-) &
	pid=$!
	eventually mountpoint -q mnt
	truncate -s 100 src/one.kpack
	run -1 cat mnt/toc/one/large/gfx1100.hsaco
	good two
	finish
}

@test "no memory for a while" {
	! sanitized || return 0
	make_archives
	serve_faulty -o cache_size=1m
	fault .m
	for key in $keys; do run -1 dd if="mnt/toc/one/$key/gfx1100.hsaco" of=/dev/null status=none; done
	fault ..
	[ "$(stat_of errors_by_reason memory)" -ge 1 ]
	good one
	finish
}

@test "no thread: at the start a failure, later not" {
	make_archives
	printf ..t >faults
	FAULTS=$T/faults LD_PRELOAD=$(preloaded) run -1 kpackfs -f "$T/src" "$T/mnt"
	[[ $output == *"thread"* ]]
	! mountpoint -q mnt || false
	serve_faulty
	fault ..t
	good one
	find mnt -type f -print0 | xargs -0 -P 8 -n 1 cat >/dev/null
	finish
}

@test "no descriptor to be had: what is open is served" {
	make_archives
	serve -o cache_size=1m
	reader=$(server)
	most=$(find "/proc/$reader/fd" -mindepth 1 -printf '%f\n' | sort -n | tail -n 1)
	prlimit --pid "$reader" --nofile=$((most + 1)):$((most + 1))
	good one
	good two
	finish
}

# The larger entry takes three times the memory that there may be at all.
make_large() {
	py "$1" <<-'END'
	import random, sys, mkarchive
	size, block = int(sys.argv[1]), random.Random(1).randbytes(1 << 20)
	data = b"".join(block[i * 3001:] + block[:i * 3001] for i in range(size >> 20))
	a = mkarchive.Archive()
	a.add("large#0", "gfx1100", data)
	a.write("src/a.kpack")
	a = mkarchive.Archive(scheme="none")
	a.add("plain#0", "gfx1100", data)
	a.write("src/b.kpack")
	open("large", "wb").write(data)
	END
}

peak() { awk '/^VmHWM/ { print $2 }' "/proc/$(server)/status"; }

# read_large READERS: in order at once, then at random
read_large() {
	for f in large plain; do
		for _ in $(seq "$1"); do cmp large "mnt/toc/$f/gfx1100.hsaco" & pids="$pids $!"; done
		for p in $pids; do wait "$p"; done
		pids=
	done
	py large mnt/toc/large/gfx1100.hsaco mnt/toc/plain/gfx1100.hsaco <<-'END'
	import mmap, random, sys
	want, rng = open(sys.argv[1], "rb").read(), random.Random(3)
	for name in sys.argv[2:]:
	    with open(name, "rb") as f:
	        have = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
	    for _ in range(20):
	        at = rng.randrange(len(want))
	        assert have[at:at + 9000] == want[at:at + 9000]
	END
}

# Sanitizers take memory of their own.
# bats test_tags=slow
@test "memory has a bound, however large the files are" {
	size=$((200 << 20))
	! sanitized || size=$((20 << 20))
	make_large $size
	for cache in 16 0; do
		serve -o cache_size=${cache}m
		before=$(peak)
		forget_pages
		read_large $((cache ? 4 : 1))
		echo "peak: $before to $(peak) KiB, $(stat_of restarts) restarts of $(stat_of passes)"
		sanitized || [ $(($(peak) - before)) -le $(((cache + 32) * 1024)) ]
		finish
	done
}

@test "reading in order causes one pass" {
	make_large $((20 << 20))
	serve -o cache_size=8m
	lost=$(caches_lost)
	cmp large mnt/toc/large/gfx1100.hsaco
	[ "$(stat_of passes)" = 1 ] || [ "$(caches_lost)" != "$lost" ]
	finish
	serve -o cache_size=8m
	lost=$(caches_lost)
	for _ in 1 2 3 4; do cmp large mnt/toc/large/gfx1100.hsaco & pids="$pids $!"; done
	for p in $pids; do wait "$p"; done
	[ "$(stat_of passes)" -le 4 ] || [ "$(caches_lost)" != "$lost" ]
	finish
}

@test "any part of files that are larger than the cache" {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	for key, size, more in ("frame", 7000001, {}), ("chunks", 6000001, {"chunk": 4 << 20}), \
	        ("parts", 5000001, {"chunk": 65536}):
	    data = mkarchive.noise(size, size)
	    open(key, "wb").write(data)
	    a.add(f"{key}#0", "gfx1100", data, **more)
	a.write("src/a.kpack")
	END
	serve -o cache_size=1m,threads=3
	py <<-'END'
	import os, random, threading
	def read(key, seed):
	    rng, want = random.Random(seed), open(key, "rb").read()
	    fd = os.open(f"mnt/toc/{key}/gfx1100.hsaco", os.O_RDONLY | os.O_DIRECT)
	    for _ in range(25):
	        at, n = rng.randrange(len(want) + 10), rng.choice((1, 4096, 70000, 1500000))
	        if os.pread(fd, n, at) != want[at:at + n]:
	            failed.append((key, at, n))
	failed = []
	threads = [threading.Thread(target=read, args=(key, seed))
	           for seed in (1, 2) for key in ("frame", "chunks", "parts")]
	for t in threads: t.start()
	for t in threads: t.join()
	assert not failed, failed
	END
	[ "$(stat_of errors)" = 0 ]
	finish
}

# Where memory of groups can be limited; what is not there limits nothing.
limited() {
	for group in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		mkdir "$group/kpackfs-test-$$" 2>/dev/null || continue
		for limit in memory.limit_in_bytes memory.max; do
			! echo $((48 << 20)) >"$group/kpackfs-test-$$/$limit" || {
				echo "$group/kpackfs-test-$$"
				return
			}
		done 2>/dev/null
		rmdir "$group/kpackfs-test-$$"
	done
}

# bats test_tags=slow
@test "a group with little memory" {
	! sanitized || return 0
	make_large $((200 << 20))
	group=$(limited)
	(
		[ -z "$group" ] || echo $BASHPID >"$group/cgroup.procs"
		exec kpackfs -f -o cache_size=16m "$T/src" "$T/mnt"
	) 2>log 3>&- &
	pid=$!
	eventually mountpoint -q mnt
	read_large 2
	finish
	[ ! -s log ]
	[ -z "$group" ] || eventually rmdir "$group"
}

@test "a window that does not fit says so" {
	py <<-'END'
	import random, zstandard, mkarchive
	data = random.Random(1).randbytes(1 << 20) * 20
	wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=1)
	a = mkarchive.Archive()
	a.add("wide#0", "gfx1100", data,
	      stored=zstandard.ZstdCompressor(compression_params=wide).compress(data))
	a.write("src/a.kpack")
	open("wide", "wb").write(data)
	END
	serve -o cache_size=1m
	eio toc/wide/gfx1100.hsaco
	[ "$(complaints 'wide#0 gfx1100: .*window of 20971520 bytes, cache_size allows 8388608$')" = 1 ]
	finish
	serve -o cache_size=20m
	cmp wide mnt/toc/wide/gfx1100.hsaco
	finish
}
