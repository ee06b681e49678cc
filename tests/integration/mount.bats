#!/usr/bin/env bats
# kpackfs as its users meet it: mounted, read, asked for nonsense, unmounted.  The
# archives come from a writer that shares no code with ours.

bats_require_minimum_version 1.5.0

load mounting

tools=$BATS_TEST_DIRNAME

# noise SIZE SEED: what {"size": SIZE, "seed": SEED} stands for
noise() {
	py "$@" <<-'END'
	import sys, mkarchive
	sys.stdout.buffer.write(mkarchive.noise(int(sys.argv[1]), int(sys.argv[2])))
	END
}

m() { kpackfs "$@" "$T/mnt"; }

stat_of() { # KEY: a number of .kpackfs/stats
	py "$T/mnt/.kpackfs/stats" "$1" <<-'END'
	import json, sys
	print(json.load(open(sys.argv[1]))[sys.argv[2]])
	END
}

good='{"frame_index": true, "entries": [
 {"key": "lib/liba.so#0", "arch": "gfx1030", "data": "hello"},
 {"key": "lib/liba.so#1", "arch": "gfx90a:xnack+", "data": {"size": 100000, "seed": 1}},
 {"key": "lib/libb.so#0", "arch": "gfx1030", "data": {"size": 3000001, "seed": 2}},
 {"key": "lib/libb.so#1", "arch": "gfx1030", "data": ""},
 {"key": "share/x.db", "arch": "generic", "type": "db", "data": {"size": 1000001, "seed": 3},
  "chunk": 131072, "metadata": {"path": "share/x.db", "mode": 493}},
 {"key": "share/y.dat", "arch": "generic", "type": "dat", "data": "y\n",
  "metadata": {"path": "share/y.dat"}}]}'

mount_good() {
	echo "$good" | make_archive src/good.kpack
	m "$@" "$T/src"
}

check_good() { # MOUNTPOINT
	[ "$(cat "$1/toc/lib/liba.so/gfx1030.hsaco")" = hello ]
	noise 100000 1 | cmp - "$1/toc/lib/liba.so/gfx90a:xnack+#1.hsaco"
	noise 3000001 2 | cmp - "$1/toc/lib/libb.so/gfx1030.hsaco"
	cmp /dev/null "$1/toc/lib/libb.so/gfx1030#1.hsaco"
	noise 1000001 3 | cmp - "$1/share/x.db"
	noise 1000001 3 | cmp - "$1/toc/share/x.db/generic.db"
	[ "$(cat "$1/share/y.dat")" = y ]
}

@test "attributes: modes, owner, times, sizes, blocks" {
	echo "$good" | make_archive src/good.kpack
	chmod 0640 src/good.kpack
	touch -d '2024-02-03 04:05:06.789 UTC' src/good.kpack
	[ "$(id -u)" != 0 ] || chown 12:34 src/good.kpack
	owner=$(stat -c %u:%g src/good.kpack)
	m "$T/src"
	[ "$(stat -c '%a %s %h %u:%g' mnt/share/x.db)" = "550 1000001 2 $owner" ]
	[ "$(stat -c '%a %s %u:%g' mnt/share/y.dat)" = "440 2 $owner" ]
	[ "$(stat -c '%a %h %u:%g' mnt/toc)" = "550 4 $owner" ]
	[ "$(stat -c '%a %h' mnt/toc/lib)" = "550 4" ]
	for f in mnt mnt/share mnt/share/x.db; do
		[ "$(TZ=UTC stat -c '%x %y %z' $f)" = "$(TZ=UTC stat -c '%y %y %y' src/good.kpack)" ]
	done
	blocks=$(stat -c %b mnt/share/x.db)
	[ "$blocks" -gt 400 ] && [ "$blocks" -lt 700 ]
	[ "$(stat -c '%b %B' mnt/share/y.dat)" = "1 512" ]
}

@test "ls -lR shows the same twice, and after a remount, inodes too" {
	mount_good
	ls -laiR mnt >one
	ls -laiR mnt >two
	cmp one two
	unmount
	m "$T/src"
	ls -laiR mnt | cmp one -
	# d_ino is st_ino
	py mnt <<-'END'
	import os, sys
	for d, _, _ in os.walk(sys.argv[1]):
	    for e in os.scandir(d):
	        assert e.inode() == e.stat(follow_symlinks=False).st_ino, e.path
	END
}

@test "du counts what the archive costs, and hard links once" {
	mount_good
	apparent=$(du -sb mnt | cut -f 1)
	[ "$apparent" -ge 4100000 ] && [ "$apparent" -lt 4200000 ]
	disk=$(($(du -s --block-size=1 mnt | cut -f 1)))
	size=$(stat -c %s src/good.kpack)
	[ "$disk" -gt $((size * 9 / 10)) ] && [ "$disk" -lt $((size * 11 / 10)) ]
}

@test "names of the same content are one file" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "p#0", "arch": "gfx1100", "data": {"size": 5000, "seed": 1}},
	 {"key": "q#0", "arch": "gfx1100", "same_as": 0},
	 {"key": "r", "arch": "gfx1100", "same_as": 0, "metadata": {"path": "some/where"}}]}
	END
	m "$T/src"
	lost=$(caches_lost)
	[ "$(stat -c %h mnt/some/where)" = 4 ]
	[ "$(stat -c %i mnt/some/where mnt/toc/*/* | sort -u | wc -l)" = 1 ]
	[ "$(find mnt -samefile mnt/some/where | wc -l)" = 4 ]
	cat mnt/toc/*/* mnt/some/where >/dev/null
	decoded() { [ "$(stat_of decodes)" -ge 1 ]; }
	eventually decoded
	[ "$(stat_of decodes)" = 1 ] || [ "$(caches_lost)" != "$lost" ]
}

@test "what a reader in order reads next is decoded ahead, unless -o no_ahead" {
	for i in 1 2 3 4 5 6 7 8; do
		echo '{"key": "k'$i'#0", "arch": "gfx1100", "data": {"size": 300000, "seed": '$i'}}'
	done | paste -s -d , | sed 's/.*/{"entries": [&]}/' | make_archive src/a.kpack
	m "$T/src" -o threads=2
	lost=$(caches_lost)
	cat mnt/toc/k1/* mnt/toc/k2/* mnt/toc/k3/* >/dev/null
	all_decoded() { [ "$(stat_of decodes)" -ge 8 ] || [ "$(caches_lost)" != "$lost" ]; }
	eventually all_decoded
	cat mnt/toc/k[4-8]/* >/dev/null
	[ "$(stat_of decodes)" = 8 ] || [ "$(caches_lost)" != "$lost" ]
	unmount
	m "$T/src" -o no_ahead
	lost=$(caches_lost)
	cat mnt/toc/k1/* mnt/toc/k2/* mnt/toc/k3/* >/dev/null
	[ "$(stat_of bytes_served)" -ge 900000 ]
	[ "$(stat_of decodes)" -le 3 ] || [ "$(caches_lost)" != "$lost" ]
}

@test "names that do not exist stay absent, also later" {
	mount_good
	for name in nope share/nope toc/lib/liba.so/gfx1031.hsaco share/x.db/below .kpackfs/nope \
		"$(printf '%0255d' 0)"; do
		run -2 ls "mnt/$name"
		run -2 ls "mnt/$name"
	done
	run -2 ls "mnt/$(printf '%0256d' 0)"
	[[ $output == *"too long"* ]]
}

@test ".kpackfs resolves, is not listed, and has information about the mount" {
	mount_good
	! ls -a mnt | grep -q kpackfs || false
	for name in arches archives conflicts stats version; do ls mnt/.kpackfs | grep -qx "$name"; done
	[ "$(cut -f 1-4 mnt/.kpackfs/archives)" = "$(printf '%s\tzstd-per-kernel\tgeneric,gfx1030,gfx90a:xnack+\t6' "$T/src/good.kpack")" ]
	diff <(cut -f 5- mnt/.kpackfs/archives) <(stat -c '%s	%i	%.9Y' src/good.kpack)
	[ "$(cat mnt/.kpackfs/arches)" = all ]
	[ ! -s mnt/.kpackfs/conflicts ]
	[ "$(cat mnt/.kpackfs/version)" = "$(kpackfs -V | head -n 1)" ]
	[ "$(stat_of archives) $(stat_of entries) $(stat_of reads)" = "1 6 0" ]
	cat mnt/share/y.dat
	[ "$(stat_of reads) $(stat_of bytes_served) $(stat_of errors)" = "1 2 0" ]
	ls -la mnt/.kpackfs >/dev/null
	find mnt/.kpackfs -type f -exec cat {} + >/dev/null
}

@test "a control file keeps its bytes while it is open" {
	mount_good
	exec 5<mnt/.kpackfs/stats
	cat mnt/share/y.dat mnt/share/x.db >/dev/null
	grep -q '"reads": 0' <&5
	exec 5<&-
	! grep -q '"reads": 0' mnt/.kpackfs/stats || false
	# many at once, and forgotten again
	for _ in $(seq 50); do cat mnt/.kpackfs/* >/dev/null & done
	wait
}

@test "chunks before a damaged one can be read" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "chunks#0", "arch": "gfx1100", "type": "db", "data": {"size": 500000, "seed": 4},
	  "chunk": 65536, "corrupt": true}]}
	END
	m "$T/src"
	run -1 cat mnt/toc/chunks/gfx1100.db
	noise 500000 4 | head -c 65536 | cmp - <(head -c 65536 mnt/toc/chunks/gfx1100.db)
}

@test "a wrong original_size is EIO, and nothing is read that is not there" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "less#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 1}, "original_size": 40000},
	 {"key": "more#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 2}, "original_size": 60000},
	 {"key": "most#0", "arch": "gfx1100", "data": {"size": 900000, "seed": 3}, "original_size": 900001},
	 {"key": "ok#0", "arch": "gfx1100", "data": "fine"}]}
	END
	m "$T/src"
	for f in less more most; do
		[ ! -e "mnt/toc/$f" ] || run -1 cat "mnt/toc/$f/gfx1100.hsaco"
	done
	[ "$(cat mnt/toc/ok/gfx1100.hsaco)" = fine ]
}

@test "nothing can be changed" {
	mount_good
	py mnt <<-'END'
	import errno, os, sys
	m = sys.argv[1]
	f = m + "/share/y.dat"
	for attempt in (
	    lambda: os.open(f, os.O_WRONLY), lambda: os.open(f, os.O_RDWR),
	    lambda: os.open(m + "/new", os.O_CREAT | os.O_WRONLY), lambda: os.truncate(f, 0),
	    lambda: os.unlink(f), lambda: os.mkdir(m + "/d"), lambda: os.rmdir(m + "/toc"),
	    lambda: os.rename(f, m + "/z"), lambda: os.link(f, m + "/z"),
	    lambda: os.symlink("x", m + "/z"), lambda: os.chmod(f, 0o777),
	    lambda: os.chown(f, 1, 1), lambda: os.utime(f), lambda: os.mkfifo(m + "/p"),
	    lambda: os.setxattr(f, "user.x", b"1"),
	    lambda: os.open(m + "/.kpackfs/stats", os.O_WRONLY),
	):
	    try:
	        attempt()
	    except OSError as e:
	        assert e.errno == errno.EROFS, e
	    else:
	        raise AssertionError("no error")
	END
	check_good mnt
}

@test "many readers of one file cause one decode" {
	make_archive src/a.kpack <<-'END'
	{"entries": [{"key": "big#0", "arch": "gfx1100", "data": {"size": 30000000, "seed": 1}}]}
	END
	m -o open "$T/src"
	noise 30000000 1 | md5sum | cut -c -32 >want
	lost=$(caches_lost)
	for i in $(seq 8); do md5sum <mnt/toc/big/gfx1100.hsaco | cut -c -32 >"sum$i" & done
	wait
	for i in $(seq 8); do cmp want "sum$i"; done
	# the readers have the last bytes before the decode ends
	decoded() { [ "$(stat_of bytes_decoded)" -ge 30000000 ]; }
	eventually decoded
	[ "$(stat_of bytes_decoded)" = 30000000 ] || [ "$(caches_lost)" != "$lost" ]
}

@test "memory for decoded bytes is bounded and given back" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "a#0", "arch": "gfx1100", "data": {"size": 3000000, "seed": 1}},
	 {"key": "b#0", "arch": "gfx1100", "data": {"size": 3000000, "seed": 2}},
	 {"key": "c#0", "arch": "gfx1100", "data": {"size": 3000000, "seed": 3}},
	 {"key": "d#0", "arch": "gfx1100", "data": {"size": 9000000, "seed": 4}}]}
	END
	m -o cache_size=4m,threads=3 "$T/src"
	for k in a b c; do head -c 1 "mnt/toc/$k/gfx1100.hsaco" >/dev/null; done
	# a reader has its byte before the decode ends, and the decode holds its memory until then
	within() { [ "$(stat_of cache_bytes)" -le "$1" ]; }
	eventually within 4194304
	# larger than the budget
	noise 9000000 4 | cmp - mnt/toc/d/gfx1100.hsaco
	for k in a b c d; do md5sum "mnt/toc/$k/gfx1100.hsaco" & done >/dev/null
	wait
	eventually within 9003008
}

# bats test_tags=threads
@test "many readers of many files" {
	py src/a.kpack <<-'END'
	import json, subprocess, sys, os
	sizes = [1, 4095, 4096, 131072, 262144, 262145, 300000, 1 << 20, 2500000]
	entries = [{"key": f"k{i}#0", "arch": "gfx1100", "data": {"size": s, "seed": i}}
	           for i, s in enumerate(sizes * 6)]
	import mkarchive
	json.dump({"entries": entries}, open("d.json", "w"))
	with open("want", "w") as f:
	    import hashlib
	    for e in entries:
	        raw = mkarchive.noise(e["data"]["size"], e["data"]["seed"])
	        f.write(f"{hashlib.md5(raw).hexdigest()}  mnt/toc/{e['key'][:-2]}/gfx1100.hsaco\n")
	END
	make_archive src/a.kpack <d.json
	m -o cache_size=5m "$T/src"
	for i in 1 2 3 4; do md5sum --quiet -c want & pids="$pids $!"; done
	for p in $pids; do wait "$p"; done
	unmount
	m -s -o open,threads=1 "$T/src"
	find mnt -type f -print0 | xargs -0 -P 8 -n 3 cat >/dev/null
	md5sum --quiet -c want
}

@test "directory positions can be asked for, kept and returned to" {
	py d.json <<-'END'
	import json, sys
	json.dump({"entries": [{"key": f"k{i:04}#0", "arch": "gfx1100", "data": f"{i}"}
	                       for i in range(3000)]}, open(sys.argv[1], "w"))
	END
	make_archive src/a.kpack <d.json
	m "$T/src"
	[ "$(ls -U mnt/toc | wc -l)" = 3000 ]
	[ "$(ls -la mnt/toc | wc -l)" = 3003 ]
	py mnt/toc <<-'END'
	import ctypes, os, sys
	libc = ctypes.CDLL(None, use_errno=True)
	class Dirent(ctypes.Structure):
	    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64),
	                ("len", ctypes.c_uint16), ("type", ctypes.c_uint8), ("name", ctypes.c_char * 256)]
	libc.opendir.restype = ctypes.c_void_p
	libc.readdir.restype = ctypes.POINTER(Dirent)
	for f in ("readdir", "telldir", "seekdir", "closedir"):
	    getattr(libc, f).argtypes = [ctypes.c_void_p] + ([ctypes.c_long] if f == "seekdir" else [])
	libc.telldir.restype = ctypes.c_long
	d = libc.opendir(sys.argv[1].encode())
	seen = []
	while True:
	    at = libc.telldir(d)
	    e = libc.readdir(d)
	    if not e:
	        break
	    seen.append((at, e.contents.name))
	assert len(seen) == 3002 and len({s[0] for s in seen}) == 3002
	for at, name in seen[::-37]:
	    libc.seekdir(d, at)
	    assert libc.readdir(d).contents.name == name
	libc.closedir(d)
	END
}

@test "several sources are one tree, and the first wins" {
	mkdir src2
	echo '{"entries": [
	 {"key": "one#0", "arch": "gfx1100", "data": "1"},
	 {"key": "both", "arch": "gfx1100", "data": "first", "metadata": {"path": "both"}}]}' |
		make_archive src/a.kpack
	echo '{"entries": [
	 {"key": "two#0", "arch": "gfx1100", "data": "22"},
	 {"key": "both", "arch": "gfx1100", "data": "second", "metadata": {"path": "both"}}]}' |
		make_archive src2/a.kpack
	m "$T/src" "$T/src2" 2>log
	[ "$(cat mnt/both mnt/toc/one/gfx1100.hsaco mnt/toc/two/gfx1100.hsaco)" = first122 ]
	grep -q '^both: ' mnt/.kpackfs/conflicts
	grep -q '^kpackfs: both: ' log
	unmount
	m -o "source=$T/src" "$T/src2" 2>/dev/null
	[ "$(cat mnt/both)" = second ]
}

@test "a tree may not reach out of its root, nor into toc" {
	echo '{"entries": [
	 {"key": "a", "arch": "gfx1100", "data": "1", "metadata": {"path": "../out"}},
	 {"key": "b", "arch": "gfx1100", "data": "1", "metadata": {"path": "/abs"}},
	 {"key": "c", "arch": "gfx1100", "data": "1", "metadata": {"path": "toc/x"}},
	 {"key": "d", "arch": "gfx1100", "data": "1", "metadata": {"path": ".kpackfs/stats"}},
	 {"key": "e", "arch": "gfx1100", "data": "e", "metadata": {"path": "fine"}}]}' |
		make_archive src/a.kpack
	m "$T/src" 2>log
	[ "$(ls -A mnt)" = "$(printf 'fine\ntoc')" ]
	[ "$(wc -l <mnt/.kpackfs/conflicts)" -ge 4 ]
	[ "$(grep -c '^kpackfs: ' log)" -ge 4 ]
	stat_of archives
}

@test "a refused archive is named and the others are served" {
	echo "$good" | make_archive src/good.kpack
	printf 'junk, much too short to be an archive, and wrong' >"$T/src/b
ad.kpack"
	m "$T/src" 2>log
	check_good mnt
	grep -q '^kpackfs: .*b\\012ad.kpack: ' log
	[ "$(wc -l <log)" = 1 ]
	grep -q 'b\\012ad.kpack	refused: ' mnt/.kpackfs/archives
	grep -q 'b\\012ad.kpack: ' mnt/.kpackfs/conflicts
}

@test "no archive that can be served is a failure" {
	echo junk >src/bad.kpack
	run -1 m "$T/src"
	[[ $output == *"bad.kpack: "* ]]
	! mountpoint -q mnt || false
	gone
}

@test "an empty directory is mounted, with a warning" {
	m "$T/src" 2>log
	grep -q '^kpackfs: .*no archives' log
	ls -la mnt >/dev/null
	[ ! -s mnt/.kpackfs/archives ]
	unmount
	m -q "$T/src" 2>log
	[ ! -s log ]
}

# The mount is refused, because it would cover FILE, WHY.
covers() { # FILE WHY
	run -1 m "$T/src"
	[ "$output" = "kpackfs: $T/mnt: the mount would cover $1, $2: install or pack it elsewhere, or insist with -o nonempty" ]
	! mountpoint -q mnt || false
	m -o nonempty "$T/src"
	unmount
}

@test "files that the mount would not show are not covered, unless nonempty insists" {
	make_archive src/good.kpack <<-'END'
	{"entries": [
	 {"key": "share/x.db", "arch": "generic", "type": "db", "data": {"size": 1000001, "seed": 3},
	  "metadata": {"path": "share/x.db", "xxh3": true}},
	 {"key": "share/y.dat", "arch": "generic", "type": "dat", "data": "y\n",
	  "metadata": {"path": "share/y.dat"}}]}
	END
	# what was packed may still be there
	mkdir -p mnt/share mnt/other/deep
	noise 1000001 3 >mnt/share/x.db
	echo y >mnt/share/y.dat
	m "$T/src"
	[ "$(cat mnt/share/y.dat)" = y ]
	unmount
	# a package was upgraded
	echo newer >mnt/share/y.dat
	covers share/y.dat 'which has another size than in the archives'
	rm mnt/share/y.dat
	printf x | dd of=mnt/share/x.db bs=1 seek=999999 conv=notrunc status=none
	covers share/x.db 'which has other bytes than in the archives'
	rm mnt/share/x.db
	# or brought new files
	: >mnt/other/deep/new
	covers other/deep/new 'which no archive has'
	rm mnt/other/deep/new
	ln -s nowhere mnt/share/x.db
	covers share/x.db 'which no archive has'
	rm mnt/share/x.db
	mkdir mnt/share/y.dat
	m "$T/src"
	unmount
	: >mnt/share/y.dat/file
	covers share/y.dat/file 'which no archive has'
}

@test "what cannot be mounted says so and exits 1" {
	echo "$good" | make_archive src/good.kpack
	run -1 m "$T/nothing"
	[[ $output == "kpackfs: "*"nothing: No such file"* ]]
	run -1 kpackfs "$T/src" "$T/nowhere"
	[[ $output == "kpackfs: "*"nowhere: No such file"* ]]
	touch file
	run -1 kpackfs "$T/src" "$T/file"
	! mountpoint -q mnt || false
	gone
}

@test "usage errors exit 2" {
	for arguments in "" "src" "-z src mnt" "--nope src mnt" "-o nope src mnt" "-o rw src mnt" \
		"-o uid= src mnt" "-o uid=x src mnt" "-o gid=-1 src mnt" "-o umask=8 src mnt" \
		"-o umask=1777 src mnt" "-o cache_size=1q src mnt" "-o cache_size= src mnt" \
		"-o threads=0 src mnt" "-o max_threads=0 src mnt" "-o arch= src mnt" \
		"-o arch=gfx90a:nope+ src mnt" "-o arch=gfx90a,nope src mnt" \
		"-o subdir= src mnt" "-o subdir=.. src mnt" "-o subdir=a/../b src mnt" \
		"-o idle_timeout= src mnt" "-o idle_timeout=1d src mnt" "-o poll=x src mnt" \
		"-o poll=1sm src mnt" "-o poll=2000000000 src mnt" "-o preload src mnt" \
		"-o io_uring src mnt" "-o" "src mnt -o rw"; do
		echo "kpackfs $arguments"
		run -2 kpackfs $arguments
		[[ $output == "kpackfs: "* ]] || [[ $output == *"missing argument"* ]]
	done
	! mountpoint -q mnt || false
}

@test "help and version" {
	run -0 kpackfs --help
	[[ $output == "Usage: kpackfs "* ]]
	kpackfs -h 2>err >/dev/null
	[ ! -s err ]
	run -0 kpackfs -V
	[[ $output == "kpackfs "*libfuse*libzstd* ]]
	run -0 kpackfs --version
	run -1 sh -c 'kpackfs --help >/dev/full'
}

@test "options that mount(8) and fstab pass" {
	mount_good -rnv -o ro,nosuid,nodev,noexec,noatime,auto,noauto,user,users,nofail,_netdev \
		-o x-systemd.automount,comment=hello,defaults,dev,suid,relatime || {
		# -r -n -v are not bundled
		m -r -n -v -o ro,nosuid,nodev,noexec,noatime,auto,noauto,user,users,nofail,_netdev \
			-o x-systemd.automount,comment=hello,defaults,dev,suid,relatime "$T/src"
	}
	check_good mnt
	findmnt -no OPTIONS mnt >options
	for o in ro nosuid nodev noexec noatime default_permissions; do grep -qw $o options; done
}

@test "name and type in the mount table" {
	mkdir 'src,x'
	echo "$good" | make_archive 'src,x/good.kpack'
	m 'src,x'
	[ "$(findmnt -no SOURCE,FSTYPE mnt)" = "$T/src,x fuse.kpackfs" ]
	unmount
	m -o 'fsname=a b,subtype=other' 'src,x'
	[ "$(findmnt -rno SOURCE,FSTYPE mnt)" = 'a\x20b fuse.other' ]
}

@test "uid, gid, umask" {
	echo "$good" | make_archive src/good.kpack
	chmod 0644 src/good.kpack
	m -o uid=17,gid=18,umask=027 "$T/src"
	[ "$(stat -c '%a %u %g' mnt/share/x.db)" = "550 17 18" ]
	[ "$(stat -c '%a %u %g' mnt/share/y.dat)" = "440 17 18" ]
	[ "$(stat -c '%a %u %g' mnt mnt/.kpackfs | sort -u)" = "550 17 18" ]
	[ "$(stat -c '%a %u %g' mnt/.kpackfs/stats)" = "440 17 18" ]
}

# What suits every GPU is shown too: a library without its indexes is of no use.
@test "arch shows only what it names, and what suits every GPU" {
	mount_good -o arch=gfx90a
	[ "$(find mnt -type f | sort)" = "$(printf 'mnt/%s\n' share/x.db share/y.dat \
		toc/lib/liba.so/gfx90a:xnack+#1.hsaco toc/share/x.db/generic.db \
		toc/share/y.dat/generic.dat)" ]
	unmount
	m -o 'arch=gfx90a:xnack-' "$T/src"
	[ "$(find mnt -type f | sort)" = "$(printf 'mnt/%s\n' share/x.db share/y.dat \
		toc/share/x.db/generic.db toc/share/y.dat/generic.dat)" ]
	unmount
	m -o arch=gfx90a,arch=all "$T/src"
	check_good mnt
}

@test "arch_exact shows only code for these very target IDs, and what suits every GPU" {
	local neutral='share/x.db share/y.dat toc/share/x.db/generic.db toc/share/y.dat/generic.dat'
	mount_good -o arch=gfx90a,arch_exact
	[ "$(cd mnt && echo $(find share toc -type f | sort))" = "$neutral" ]
	[[ "$(cat mnt/.kpackfs/missing)" == *"architecture gfx90a:xnack+ is not for arch=gfx90a"* ]]
	unmount
	m -o arch_exact,arch=gfx90a:xnack+ "$T/src"
	[ "$(cd mnt && echo $(find toc/lib -type f))" = "toc/lib/liba.so/gfx90a:xnack+#1.hsaco" ]
	unmount
	run m -o arch=gfx90a,arch_exact "$T/src"
	[[ "$output" == *"arch=gfx90a: no archive has a file for it"* ]]
	unmount
	run m -o arch_exact "$T/src"
	[ "$status" -ne 0 ]
	[[ "$output" == *"arch_exact: it needs arch=LIST, which is missing"* ]]
}

@test "statfs" {
	mount_good
	[ "$(stat -f -c '%l %a %f' mnt)" = "255 0 0" ]
	[ "$(stat -f -c '%b' mnt)" -gt 100 ]
	df mnt >/dev/null
}

@test "many threads, one thread, a descriptor each, opens asked" {
	echo "$good" | make_archive src/good.kpack
	for o in -s '-o max_threads=1' '-o clone_fd' '-o open' '-s -o open' '-o auto_unmount'; do
		# shellcheck disable=SC2086
		m $o "$T/src"
		check_good mnt
		ls -lR mnt >/dev/null
		unmount
	done
}

@test "-- ends the options, whichever came before" {
	echo "$good" | make_archive src/good.kpack
	for o in ro allow_other ro,allow_other fsname=x,subtype=y; do
		kpackfs -o "$o" -- "$T/src" "$T/mnt"
		check_good mnt
		unmount
	done
}

@test "relative paths, and a daemon without standard descriptors" {
	echo "$good" | make_archive src/good.kpack
	kpackfs src mnt <&- >&- 2>&-
	check_good mnt
	cd mnt && ls -R >/dev/null && cd ..
	# other tests have daemons of the same command line
	[ "$(readlink "/proc/$(stat_of pid)/cwd")" = / ]
	unmount
}

@test "the daemon holds no descriptor of its starter" {
	echo "$good" | make_archive src/good.kpack
	# would wait for ever on the pipe's end
	kpackfs "$T/src" "$T/mnt" | cat
	check_good mnt
}

@test "unmounting ends the daemon" {
	mount_good
	pgrep -f "kpackfs .*$T/mnt" >/dev/null
	unmount
	! mountpoint -q mnt || false
}

@test "signals unmount" {
	echo "$good" | make_archive src/good.kpack
	for s in TERM INT; do
		m "$T/src"
		pkill -$s -f "kpackfs $T/src $T/mnt"
		gone
		! mountpoint -q mnt || false
	done
}

# Start kpackfs -f OPTION... and wait until it is mounted.
foreground() {
	kpackfs -f "$@" "$T/mnt" 2>log 3>&- &
	pid=$!
	for _ in $(seq 2400); do
		! mountpoint -q mnt || return 0
		read -rt 0.05 <> <(:) || :
	done
	return 1
}

@test "in the foreground: log on stderr, exit 0, nothing leaked" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "bad#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 2}, "corrupt": true},
	 {"key": "big#0", "arch": "gfx1100", "data": {"size": 900000, "seed": 2}},
	 {"key": "c#0", "arch": "gfx1100", "type": "db", "data": {"size": 500000, "seed": 4},
	  "chunk": 65536}]}
	END
	foreground "$T/src"
	for _ in 1 2 3; do run -1 cat mnt/toc/bad/gfx1100.hsaco; done
	cat mnt/.kpackfs/* mnt/toc/big/* mnt/toc/c/* >/dev/null
	head -c 1 mnt/toc/c/* mnt/toc/big/* >/dev/null
	exec 5<mnt/.kpackfs/stats
	exec 5<&-
	fusermount3 -u mnt
	wait "$pid"
	[ "$(grep -c '^kpackfs: .*a.kpack: bad#0 gfx1100: ' log)" = 1 ]
	[ "$(wc -l <log)" = 1 ]
}

@test "killed while it is read: readers end" {
	make_archive src/a.kpack <<-'END'
	{"entries": [{"key": "big#0", "arch": "gfx1100", "data": {"size": 60000000, "seed": 1}}]}
	END
	for s in TERM KILL; do
		foreground "$T/src"
		cat mnt/toc/big/* >/dev/null 2>&1 3>&- &
		reader=$!
		kill -$s $pid
		wait $pid || :
		wait $reader || :
		fusermount3 -uz mnt 2>/dev/null || :
	done
}

@test "a user mounts" {
	[ "$(id -u)" = 0 ] || skip "this is what the other tests do"
	echo "$good" | make_archive src/good.kpack
	chmod 0755 src
	chown nobody mnt
	nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
	nobody kpackfs "$T/src" "$T/mnt"
	[ "$(nobody cat "$T/mnt/share/y.dat")" = y ]
	findmnt -no OPTIONS mnt | grep -q nosuid,nodev
	nobody fusermount3 -u "$T/mnt"
	gone
	# what the user cannot read is not served
	chmod 0600 src/good.kpack
	run -1 nobody kpackfs "$T/src" "$T/mnt"
	[[ $output == *"good.kpack: "*"ermission denied"* ]]
}

@test "allow_other lets others read what the archive lets them" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	echo "$good" | make_archive src/good.kpack
	echo '{"entries": [{"key": "secret#0", "arch": "gfx1100", "data": "s"}]}' |
		make_archive src/secret.kpack
	chmod 0600 src/secret.kpack
	m -o allow_other "$T/src"
	nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
	[ "$(nobody cat mnt/share/y.dat)" = y ]
	run -1 nobody cat mnt/toc/secret/gfx1100.hsaco
	[[ $output == *"No such file"* ]]
	unmount
	rm src/good.kpack
	m -o allow_other "$T/src"
	run -1 nobody cat mnt/toc/secret/gfx1100.hsaco
	[[ $output == *"ermission denied"* ]]
	unmount
	m "$T/src"
	run -2 nobody ls mnt
}

@test "mount -t fuse.kpackfs" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	echo "$good" | make_archive src/good.kpack
	# mount(8) forgets PATH; installed, the type is just fuse.kpackfs
	type=fuse.$KPACK_BIN/kpackfs
	mount -t "$type" "$T/src" "$T/mnt" -o noexec,nofail,uid=7,x-test=1
	check_good mnt
	[ "$(stat -c %u mnt)" = 7 ]
	umount mnt
	gone
	mount -t "$type" "$T/src" "$T/mnt"
	check_good mnt
	umount mnt
	run mount -t "$type" "$T/src" "$T/mnt" -o nope
	[ "$status" != 0 ]
}

@test "as mount.kpackfs it speaks mount(8)'s codes" {
	echo "$good" | make_archive src/good.kpack
	echo junk >bad.kpack
	ln -s "$KPACK_BIN/kpackfs" mount.kpackfs
	run -1 ./mount.kpackfs "$T/src" "$T/mnt" -o nope
	run -32 ./mount.kpackfs "$T/bad.kpack" "$T/mnt"
	run -32 ./mount.kpackfs "$T/src" "$T/nowhere"
	./mount.kpackfs "$T/src" "$T/mnt" -s -n -v -o rw,user=me -t kpackfs
	check_good mnt
	fusermount3 -u mnt
	./mount.kpackfs "$T/src" "$T/mnt" -f -o rw
	! mountpoint -q mnt || false
}

@test "root follows no link on the way that another user may exchange" {
	must_be_root
	echo "$good" | make_archive src/good.kpack
	mkdir -p alice other/mnt firm/mnt
	ln -s ../other alice/way
	ln -s firm way
	ln -s "$T/firm" sticky-way
	chown -h 40001:40001 alice alice/way
	for at in alice/way/mnt "$T/alice/way/mnt" alice/../alice/way/mnt/; do
		run -1 kpackfs "$T/src" "$at"
		[[ $output == *"/mnt"*": a symbolic link on the way is not followed"* ]]
	done
	! mountpoint -q other/mnt || false
	mkdir alice/mnt
	run -1 kpackfs -o auto_unmount "$T/src" alice/mnt
	[[ $output == *"auto_unmount as root needs"* ]]
	kpackfs "$T/src" "$T/alice/mnt"
	check_good alice/mnt
	fusermount3 -u alice/mnt
	gone
	# nobody but root can exchange these
	kpackfs src way/mnt/
	[ "$(findmnt -no TARGET firm/mnt)" = "$T/firm/mnt" ]
	umount way/mnt
	gone
	mkdir -m 1777 sticky
	mv sticky-way sticky/way
	kpackfs src sticky/way/mnt
	umount "$T/firm/mnt"
	gone
	chown -h 40001:40001 sticky/way
	run -1 kpackfs src sticky/way/mnt
	[[ $output == *"a symbolic link on the way"* ]]
}

# exchanging CALL ARGS...: kpackfs, while alice exchanges a directory of the mount point's path
# just before it makes the system call: mount, umount2, or an open of that path.
exchanging() {
	cat >stub.c <<-'END'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <stdarg.h>
	#include <stdlib.h>
	#include <string.h>
	#include <sys/mount.h>
	#include <sys/syscall.h>
	#include <unistd.h>
	static void exchange(const char *call)
	{
		unsetenv("LD_PRELOAD");
		if (strcmp(call, getenv("MOMENT")) == 0 && access("alice/was", F_OK) &&
		    system("mv alice/d alice/was && ln -s ../other alice/d"))
			abort();
	}
	int mount(const char *a, const char *b, const char *c, unsigned long d, const void *e)
	{
		int (*next)(const char *, const char *, const char *, unsigned long, const void *) =
			dlsym(RTLD_NEXT, "mount");
		exchange("mount");
		return next(a, b, c, d, e);
	}
	int umount2(const char *a, int b)
	{
		int (*next)(const char *, int) = dlsym(RTLD_NEXT, "umount2");
		exchange("umount2");
		return next(a, b);
	}
	int open64(const char *a, int b, ...)
	{
		int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
		va_list rest;
		int mode;
		va_start(rest, b);
		mode = va_arg(rest, int);
		va_end(rest);
		if (strstr(a, "alice/d"))
			exchange("open");
		return next(a, b, mode);
	}
	long syscall(long number, ...)
	{
		long (*next)(long, ...) = dlsym(RTLD_NEXT, "syscall"), a[6];
		va_list rest;
		va_start(rest, number);
		for (int i = 0; i < 6; i++)
			a[i] = va_arg(rest, long);
		va_end(rest);
		if (number == SYS_openat2 && strstr((const char *)a[1], "alice/d"))
			exchange("open");
		return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	END
	${CC:-cc} -shared -fPIC -o stub.so stub.c
	runtime=$(ldd "$KPACK_BIN/kpackfs" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	MOMENT=$1 LD_PRELOAD="$runtime $T/stub.so" kpackfs -f "${@:2}" src "$T/alice/d/mnt" 2>log &
	pid=$!
}

alices_place() {
	must_be_root
	echo "$good" | make_archive src/good.kpack
	mkdir -p alice/d/mnt other/mnt
	chown 40001:40001 alice alice/d
}

@test "root mounts on the directory that it looked at" {
	alices_place
	exchanging mount
	mounted() { mountpoint -q alice/was/mnt || mountpoint -q other/mnt; }
	eventually mounted
	! mountpoint -q other/mnt || false
	eventually test -e alice/was/mnt/.kpackfs/status
	check_good alice/was/mnt
	[ "$(findmnt -no TARGET alice/was/mnt)" = "$T/alice/was/mnt" ]
	cat log
	kill "$pid"
	wait "$pid"
	! mountpoint -q alice/was/mnt || false
	gone
}

@test "root unmounts its own mount, wherever the path leads" {
	alices_place
	mount -t tmpfs none other/mnt
	for moment in umount2 open; do
		exchanging $moment
		eventually test -e alice/d/mnt/.kpackfs/status
		kill "$pid"
		wait "$pid"
		[ -L alice/d ] # it was exchanged
		! mountpoint -q alice/was/mnt || false
		mountpoint -q other/mnt
		gone
		rm alice/d
		mv alice/was alice/d
	done
	umount other/mnt
}

@test "root reads in advance from its own mount, wherever the path leads" {
	alices_place
	mkdir -p other/mnt/x
	mkfifo other/mnt/x/fifo
	echo other >other/mnt/x/file
	exchanging open -o 'preload=x/*'
	eventually grep -q 'preload: is not the mount' log
	[ -L alice/d ]
	kill "$pid"
	wait "$pid"
	! mountpoint -q alice/was/mnt || false
	gone
}

@test "overlayfs on top" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mount_good
	mkdir mnt2 upper
	mount -t tmpfs none upper
	mkdir upper/up upper/work
	if mount -t overlay none -o "lowerdir=$T/mnt,upperdir=$T/upper/up,workdir=$T/upper/work" mnt2; then
		check_good mnt2
		echo more >>mnt2/share/y.dat
		echo new >mnt2/share/new
		[ "$(cat mnt2/share/y.dat)" = "$(printf 'y\nmore')" ]
		check_good mnt
		umount mnt2
		# inode numbers are those of the mount, besides the layer's in the upper bits
		mount -t overlay none -o "ro,xino=on,lowerdir=$T/upper/up:$T/mnt" mnt2
		numbers() { find "$1" -mindepth 2 -printf '%i %P\n' | sort; }
		numbers mnt2/toc | while read -r n path; do echo "$((n & (1 << 56) - 1)) $path"; done | sort >got
		[ -s got ]
		numbers mnt/toc | diff got -
		umount mnt2
		umount upper
	else
		umount upper
		false
	fi
}
