#!/usr/bin/env bats
# Whole trees, as other programs see them: the mount shows what was packed.

bats_require_minimum_version 1.5.0

load mounting

random_tree() { # SEED: plain in out/, packed in src/
	mkdir -p out
	PYTHONDONTWRITEBYTECODE=1 $python "$BATS_TEST_DIRNAME/randomtree.py" "$1" out src
}

# Kind, mode, owner, time, links, size and name of everything, and which names are one file.
describe() { # DIRECTORY
	(cd "$1" && find . -type d -printf '%y %m %u %g %T@ %n %P\n' -o \
		-printf '%y %m %u %g %T@ %n %s %P\n' | sort)
	py "$1" <<-'END'
	import os, sys
	top, files = sys.argv[1].encode(), {}
	for where, _, names in os.walk(top):
	    for n in names:
	        path = os.path.join(where, n)
	        files.setdefault(os.lstat(path).st_ino, []).append(os.path.relpath(path, top))
	for names in sorted(sorted(f) for f in files.values()):
	    print(names)
	END
}

same() { # DIRECTORY DIRECTORY
	describe "$1" >one
	describe "$2" >two
	diff one two | head -n 20
	cmp one two
	# checksums of all, with times, permissions and hard links
	[ -z "$(rsync -naHc --delete --itemize-changes "$1/" "$2/" | tee /dev/stderr)" ]
}

@test "random trees of ten seeds are what was packed" {
	for seed in $(seq 10); do
		echo "seed $seed"
		random_tree "$seed"
		m
		[ ! -s mnt/.kpackfs/conflicts ]
		same mnt out
		diff -r --no-dereference mnt out
		unmount
		rm -rf out src/*
	done
}

@test "tar, cp, rsync, diff, find and du agree about a random tree" {
	random_tree 11
	m
	tar -C mnt -cf - . | tar -C out -df -
	tar -C out -cf - . | tar -C mnt -df -
	tar -C mnt -c --sort=name --format=posix --pax-option=delete=atime,delete=ctime . >one.tar
	tar -C out -c --sort=name --format=posix --pax-option=delete=atime,delete=ctime . >two.tar
	cmp one.tar two.tar
	for how in "--reflink=auto --sparse=always" "--reflink=never --sparse=never"; do
		# shellcheck disable=SC2086 # two words
		cp -a $how mnt copy
		same copy out
		chmod -R u+w copy
		rm -rf copy
	done
	rsync -aH mnt/ copy/
	same copy out
	(cd mnt && find . -type f -exec sha256sum {} + | sort) >sums
	(cd out && sha256sum --quiet -c "$T/sums")
	(cd out && find . -type f -print0 | sort -z | xargs -0 cksum) >sums
	(cd mnt && find . -type f -print0 | sort -z | xargs -0 cksum) | cmp sums -
	# what find lists, without inodes, and directories' sizes and blocks
	list() { (cd "$1" && find . ! -type d -ls | awk '{ $1 = $2 = ""; print }' | sort -k 9); }
	list mnt >one
	list out | diff - one
	find mnt -type f -printf '%i %s\n' | sort -u | awk '{ n += $2 } END { print n }' >size
	find mnt -type f -print0 | du --files0-from=- -cb | tail -n 1 | cut -f 1 | cmp size -
	[ "$(find mnt -newermt '2023-11-14 22:13:19 UTC' ! -newermt '2023-11-14 22:13:21 UTC' |
		wc -l)" = "$(find out | wc -l)" ]
}

@test "names that are none are not shown, whatever stands beside them" {
	py <<-'END'
	import mkarchive
	bad = (b"../out", b"a/../../out", b"/etc/passwd", b"a//b", b"./a", b"a/.", b"..", b"",
	       b"nul\0nul", b"new\nline", b"\xff\xfe", b"half\xc3", b"x" * 256, b"y/" + b"x" * 256,
	       b".kpackfs/stats", b"toc/lib", b"del\x7f", b"end/", b"toc", b".kpackfs")
	a = mkarchive.Archive()
	for i, name in enumerate(bad):
	    a.add(f"key{i}#0", "gfx90a", b"bad %d" % i, type="dat", path=mkarchive.raw_str(name))
	    a.add(f"good{i}", "generic", b"good %d" % i, type="dat", path=f"good/{i}")
	a.write("src/a.kpack")
	END
	m 2>/dev/null
	[ "$(ls -A mnt)" = "$(printf 'good\ntoc')" ]
	[ "$(find mnt/good -type f | wc -l)" = 20 ]
	for i in $(seq 0 19); do [ "$(cat "mnt/good/$i")" = "good $i" ]; done
	[ "$(find mnt/toc -path '*/good*/generic.dat' | wc -l)" = 20 ]
	[ "$(find mnt ! -path 'mnt/good*' ! -path 'mnt/toc*')" = mnt ]
	# each is named, but the empty one: that is no path at all
	[ "$(wc -l <mnt/.kpackfs/conflicts)" -ge 19 ]
	! grep -qP '[^\x20-\x7e]' mnt/.kpackfs/conflicts || false
}

# What is read of a file goes through no other calls than on a file system of the disk.
@test "xfs_io: reads of every kind, as of a plain file" {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	data = mkarchive.noise(3000001, 5)
	a.add("whole", "generic", data, type="dat", path="whole")
	a.add("parts", "generic", data + b"x", type="dat", path="parts", chunk=131072)
	a.write("src/a.kpack")
	open("plain", "wb").write(data)
	open("plainx", "wb").write(data + b"x")
	END
	m
	commands=(-c 'pread -v 0 64' -c 'pread -v 2999990 64' -c 'pread -v 1500000 5000'
		-c 'pread -b 77777 -v 99990 99' -c 'pread -B -b 65536 -q 0 3000001'
		-c 'pread -R -Z 5 -b 4096 -q 0 1000000' -c 'pread -V 7 -b 3333 -v 131000 200'
		-c 'mmap -r 0 3000001' -c 'mread -v 131070 40' -c 'mread -r -v 0 5000'
		-c 'mread -v 2999990 11' -c 'madvise -r' -c 'madvise -w 4096 65536' -c 'mread -v 8190 9'
		-c 'munmap' -c 'fadvise -d 0 3000001' -c 'pread -v 262100 100' -c 'fadvise -w 0 100000'
		-c 'fadvise -r' -c 'fadvise -s' -c 'pread -v 999990 100'
		-c 'seek -a 0' -c 'seek -d 5' -c 'seek -h 0' -c 'seek -d 3000005')
	say() { xfs_io -r "${commands[@]}" "$1" 2>&1 | grep -vE 'ops;|bytes at offset'; }
	for pair in whole:plain parts:plainx; do
		say "${pair#*:}" >want
		[ "$(wc -l <want)" -gt 500 ]
		say "mnt/${pair%:*}" | diff want -
		cp "mnt/${pair%:*}" from
		cmp "${pair#*:}" from
	done
	# without the page cache, of pieces that the disk would want aligned
	xfs_io -r -d -c 'pread -v 4096 8192' plain 2>&1 | grep -v ops >want
	xfs_io -r -d -c 'pread -v 4096 8192' mnt/whole 2>&1 | grep -v ops | grep -v 'bytes at' >have
	grep -v 'bytes at' want | diff - have
	for command in fiemap 'fiemap -v' bmap lsattr 'pwrite 0 10' 'truncate 5' 'falloc 0 10' \
		'fpunch 0 10' 'fzero 0 10' 'reflink plain' 'copy_range plain'; do
		xfs_io -r -c "$command" mnt/whole >/dev/null 2>&1 || :
	done
	cmp plain mnt/whole
}
