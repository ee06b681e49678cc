#!/usr/bin/env bats
# kpackfs as its users meet it: options, mounted, read, asked for nonsense, unmounted.  The
# archives come from a writer that shares no code with ours.

bats_require_minimum_version 1.5.0

load mounting

noise() { # SIZE SEED
	py "$@" <<-'END'
	import sys, mkarchive
	sys.stdout.buffer.write(mkarchive.noise(int(sys.argv[1]), int(sys.argv[2])))
	END
}

m() { kpackfs "$@" "$T/mnt"; }

group= # the control group that a test made

teardown() {
	end_test
	[ -z "$group" ] || rmdir "$group"
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
	py "$1" <<-'END'
	import sys, mkarchive
	for path, want in (("toc/lib/liba.so/gfx1030.hsaco", b"hello"), ("toc/lib/libb.so/gfx1030#1.hsaco", b""),
	                   ("toc/lib/liba.so/gfx90a:xnack+#1.hsaco", mkarchive.noise(100000, 1)),
	                   ("toc/lib/libb.so/gfx1030.hsaco", mkarchive.noise(3000001, 2)),
	                   ("share/x.db", mkarchive.noise(1000001, 3)), ("share/y.dat", b"y\n"),
	                   ("toc/share/x.db/generic.db", mkarchive.noise(1000001, 3))):
	    assert open(sys.argv[1] + "/" + path, "rb").read() == want, path
	END
}

@test "attributes; the same after a remount; du counts what the archive costs, and hard links once" {
	echo "$good" | make_archive src/good.kpack
	chmod 0640 src/good.kpack
	touch -d '2024-02-03 04:05:06.789 UTC' src/good.kpack
	[ "$(id -u)" != 0 ] || chown 12:34 src/good.kpack
	owner=$(stat -c %u:%g src/good.kpack)
	m "$T/src"
	[ "$(stat -c '%a %s %h %u:%g %B' mnt/share/x.db)" = "550 1000001 2 $owner 512" ]
	[ "$(stat -c %b mnt/share/x.db)" -gt 400 ] && [ "$(stat -c %b mnt/share/x.db)" -lt 700 ]
	[ "$(stat -c '%a %s %u:%g %b' mnt/share/y.dat)" = "440 2 $owner 1" ]
	[ "$(stat -c '%a %h %u:%g' mnt/toc mnt/toc/lib | uniq)" = "550 4 $owner" ]
	for f in mnt mnt/share mnt/share/x.db; do
		[ "$(TZ=UTC stat -c '%x %y %z' $f)" = "$(TZ=UTC stat -c '%y %y %y' src/good.kpack)" ]
	done
	[ "$(du -sb mnt | cut -f 1)" = 4100009 ]
	disk=$(du -s --block-size=1 mnt | cut -f 1) size=$(stat -c %s src/good.kpack)
	[ "$disk" -gt $((size * 9 / 10)) ] && [ "$disk" -lt $((size * 11 / 10)) ]
	[ "$(stat -f -c '%l %a %f' mnt)" = "255 0 0" ]
	[ "$(stat -f -c '%b' mnt)" -gt 100 ]
	ls -laiR mnt >one
	unmount
	m "$T/src"
	ls -laiR mnt | cmp one -
}

@test "names of the same content are one file; names that do not exist stay absent" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "p#0", "arch": "gfx1100", "data": {"size": 5000, "seed": 1}},
	 {"key": "q#0", "arch": "gfx1100", "same_as": 0},
	 {"key": "r", "arch": "gfx1100", "same_as": 0, "metadata": {"path": "some/where"}}]}
	END
	m "$T/src"
	[ "$(stat -c %h mnt/some/where)" = 4 ]
	[ "$(find mnt -samefile mnt/some/where | wc -l)" = 4 ]
	for name in nope some/nope toc/q/gfx1031.hsaco some/where/below .kpackfs/nope "$(printf '%0255d' 0)"; do
		run -2 ls "mnt/$name" "mnt/$name"
	done
	run -2 ls "mnt/$(printf '%0256d' 0)"
	[[ $output == *"too long"* ]]
}

@test "a wrong original_size, and chunks behind a damaged one, are EIO" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "chunks#0", "arch": "gfx1100", "data": {"size": 500000, "seed": 4}, "chunk": 65536, "corrupt": true},
	 {"key": "less#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 1}, "original_size": 40000},
	 {"key": "more#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 2}, "original_size": 60000},
	 {"key": "most#0", "arch": "gfx1100", "data": {"size": 900000, "seed": 3}, "original_size": 900001},
	 {"key": "ok#0", "arch": "gfx1100", "data": "fine"}]}
	END
	m "$T/src"
	mounts <<-'END'
	for name in ("less", "more", "most", "chunks"):  # each is there, and said to be damaged when it is read
	    fails(errno.EIO, text, "mnt/toc/%s/gfx1100.hsaco" % name)
	assert text("mnt/toc/ok/gfx1100.hsaco") == "fine"
	assert open("mnt/toc/chunks/gfx1100.hsaco", "rb").read(65536) == noise(65536, 4)
	END
}

@test "each entry that cannot be read is logged once, and few of them in a minute" {
	mounts <<-'END'
	import re
	names = ["k%02d" % i for i in range(45)]
	a = mkarchive.Archive()
	for i, name in enumerate(names):
	    a.add(name + "#0", "gfx1100", noise(3000, i), entry={"original_size": 3001})
	a.write("src/a.kpack")
	mount = Mount()
	for name in 2 * names:
	    fails(errno.EIO, text, "mnt/toc/%s/gfx1100.hsaco" % name)
	mount.unmount()
	said = text(mount.log)
	shown = [said.count(" %s#0 gfx1100: " % name) for name in names]
	assert 20 <= sum(shown) < 45 and max(shown) == 1, said
	assert "more read errors are not shown for a minute\n" in said
	assert re.search(r"kpackfs: and [1-9][0-9]* more read errors\n", said), said
	END
}

# bats test_tags=threads
@test "many readers of many files, with little memory for what is decoded" {
	mounts <<-'END'
	import concurrent.futures, shutil
	sizes = [1, 4095, 4096, 131072, 262144, 262145, 300000, 1 << 20, 2500000] * 4
	archive("src/a.kpack", {"k%d#0" % i: noise(s, i) for i, s in enumerate(sizes)})
	# the same in blocks that entries share
	subprocess.run(["kpack", "merge", "-q", "--scheme", "zstd-shared", "src/a.kpack", "-o", "src/b.kpack"], check=True)
	os.mkdir("shared")
	os.rename("src/b.kpack", "shared/b.kpack")
	big = noise(9000000, 77)
	archive("src/big.kpack", {"big#0": big})
	def read(i):
	    data = big if i == len(sizes) else noise(sizes[i], i)
	    path = "mnt/toc/%s/gfx1100.hsaco" % ("big" if i == len(sizes) else "k%d" % i)
	    with open(path, "rb") as f:
	        at = len(data) * 2 // 3
	        assert os.pread(f.fileno(), 5000, at) == data[at:at + 5000], path
	        assert f.read() == data, path
	    return os.path.getsize("mnt/.kpackfs/missing")
	for options, sources, n in (("-o", "cache_size=5m"), ["src"], len(sizes) + 1), \
	        (("-s", "-o", "open,threads=1"), ["src"], len(sizes) + 1), (("-o", "cache_size=2m"), ["shared"], len(sizes)):
	    mount = Mount(*options, sources=sources)
	    with concurrent.futures.ThreadPoolExecutor(8) as pool:
	        assert len(set(pool.map(read, list(range(n)) * 3))) == 1
	        list(pool.map(read, reversed(range(n))))
	    stats = mount.stats()
	    assert stats["errors"] == 0 and stats["reads"] > 100 and stats["decodes"] > 10
	    mount.unmount()
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
	grep -q '^both	' mnt/.kpackfs/missing
	grep -q '^kpackfs: both: ' log
	unmount
	m -o "source=$T/src" "$T/src2" 2>/dev/null
	[ "$(cat mnt/both)" = second ]
}

@test "a tree may not reach out of its root, nor into toc; a refused archive is named" {
	echo '{"entries": [
	 {"key": "a", "arch": "gfx1100", "data": "1", "metadata": {"path": "../out"}},
	 {"key": "b", "arch": "gfx1100", "data": "1", "metadata": {"path": "/abs"}},
	 {"key": "c", "arch": "gfx1100", "data": "1", "metadata": {"path": "toc/x"}},
	 {"key": "d", "arch": "gfx1100", "data": "1", "metadata": {"path": ".kpackfs/stats"}},
	 {"key": "e", "arch": "gfx1100", "data": "e", "metadata": {"path": "fine"}}]}' |
		make_archive src/a.kpack
	printf 'junk, much too short to be an archive, and wrong' >"$T/src/b
ad.kpack"
	m "$T/src" 2>log
	[ "$(ls -A mnt)" = "$(printf 'fine\ntoc')" ]
	[ "$(wc -l <mnt/.kpackfs/missing)" = 5 ]
	[ "$(wc -l <log)" = 5 ]
	grep -q '^kpackfs: .*b\\012ad.kpack: ' log
	grep -q 'b\\012ad.kpack	refused: ' mnt/.kpackfs/archives
}

@test "what cannot be mounted says so and exits 1; an empty directory is mounted" {
	m "$T/src" 2>log
	grep -q '^kpackfs: .*no archives' log
	ls -la mnt >/dev/null
	[ ! -s mnt/.kpackfs/archives ]
	unmount
	m -q "$T/src" 2>log
	[ ! -s log ]
	unmount
	echo junk >src/bad.kpack
	run -1 m "$T/src"
	[[ $output == *"bad.kpack: "* ]]
	run -1 m "$T/nothing"
	[[ $output == "kpackfs: "*"nothing: No such file"* ]]
	run -1 kpackfs "$T/src" "$T/nowhere"
	[[ $output == "kpackfs: "*"nowhere: No such file"* ]]
	touch file
	run -1 kpackfs "$T/src" "$T/file"
	! mountpoint -q mnt || false
	! daemons || false
}

# The mount is refused, because it would cover FILE, WHY.
covers() { # FILE WHY
	run -1 m "$T/src"
	[ "$output" = "kpackfs: $T/mnt: the mount would cover $1, $2: install or pack it elsewhere, or insist with -o nonempty" ]
	! mountpoint -q mnt || false
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
	m -o nonempty "$T/src"
	unmount
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

@test "a second mount on the same mount point is refused, unless nonempty insists" {
	make_archive src/good.kpack <<-'END'
	{"entries": [{"key": "share/x.db", "arch": "generic", "type": "db", "data": "x\n"}]}
	END
	m "$T/src"
	run -1 m "$T/src"
	[ "$output" = "kpackfs: $T/mnt: a kpackfs is mounted here already: unmount it first (fusermount3 -u, as root umount), or as root cover it with -o nonempty" ]
	[ "$(id -u)" = 0 ] || skip 'needs root: fusermount3 may not look into a mount that is to be covered'
	m -o nonempty "$T/src"
	fusermount3 -u mnt
	mountpoint -q mnt
	unmount
	! mountpoint -q mnt || false
}

@test "without /dev/null a closed descriptor is named, and open ones need none" {
	[ "$(id -u)" = 0 ] || skip 'needs root'
	bare='mount -t tmpfs none /dev && exec'
	run -1 unshare -m sh -c "$bare kpackfs a b <&-"
	[ "$output" = 'kpackfs: /dev/null: No such file or directory' ]
	run -0 unshare -m sh -c "$bare kpackfs --version"
}

@test "usage errors exit 2; help and version" {
	mounts <<-'END'
	for arguments in ("", "src", "-z src mnt", "--nope src mnt", "-o nope src mnt", "-o rw src mnt",
	        "-o uid= src mnt", "-o uid=x src mnt", "-o gid=-1 src mnt", "-o umask=8 src mnt",
	        "-o umask=1777 src mnt", "-o cache_size=1q src mnt", "-o cache_size= src mnt",
	        "-o threads=0 src mnt", "-o max_threads=0 src mnt", "-o arch= src mnt", "-o arch_exact src mnt",
	        "-o arch=gfx90a:nope+ src mnt", "-o arch=gfx90a,nope src mnt",
	        "-o subdir= src mnt", "-o subdir=.. src mnt", "-o subdir=a/../b src mnt",
	        "-o idle_timeout= src mnt", "-o idle_timeout=1d src mnt", "-o poll=x src mnt",
	        "-o poll=1sm src mnt", "-o poll=2000000000 src mnt", "-o preload src mnt",
	        "-o", "src mnt -o rw"):
	    said = start(*arguments.split(), expect=2)
	    assert said.startswith("kpackfs: ") or "missing argument" in said, (arguments, said)
	assert not is_mounted()
	assert start("--help").startswith("Usage: kpackfs ") and start("-h") == start("--help")
	assert "libfuse" in start("-V") and start("-V").startswith("kpackfs ") and start("--version") == start("-V")
	END
	run -1 sh -c 'kpackfs --help >/dev/full'
}

@test "options that mount(8) and fstab pass; name and type in the mount table" {
	mkdir 'src,x'
	echo "$good" | make_archive 'src,x/good.kpack'
	m -r -n -v -o ro,nosuid,nodev,noexec,noatime,auto,noauto,user,users,nofail,_netdev \
		-o x-systemd.automount,comment=hello,defaults,dev,suid,relatime './/src,x/./'
	check_good mnt
	findmnt -no OPTIONS mnt >options
	for o in ro nosuid nodev noexec noatime default_permissions; do grep -qw $o options; done
	[ "$(findmnt -no SOURCE,FSTYPE mnt)" = "$T/src,x fuse.kpackfs" ]
	unmount
	m -o 'fsname=a b,subtype=other' 'src,x'
	[ "$(findmnt -rno SOURCE,FSTYPE mnt)" = 'a\x20b fuse.other' ]
	unmount
	# -- ends the options, whichever came before
	for o in ro fsname=x,subtype=y $([ "$(id -u)" != 0 ] || echo allow_other ro,allow_other); do
		kpackfs -o "$o" -- "$T/src,x" "$T/mnt"
		check_good mnt
		unmount
	done
}

@test "uid, gid, umask" {
	must_be_root
	echo "$good" | make_archive src/good.kpack
	chmod 0644 src/good.kpack
	m -o uid=17,gid=18,umask=027 "$T/src"
	[ "$(stat -c '%a %u %g' mnt/share/x.db mnt mnt/.kpackfs | uniq)" = "550 17 18" ]
	[ "$(stat -c '%a %u %g' mnt/share/y.dat mnt/.kpackfs/stats | uniq)" = "440 17 18" ]
}

# What suits every GPU is shown too: a library without its indexes is of no use.
@test "arch, arch_exact, subdir: each path is shown, or missing with its reason" {
	echo "$good" | make_archive src/good.kpack
	mounts <<-'END'
	neutral = ["share/x.db", "share/y.dat", "toc/share/x.db/generic.db", "toc/share/y.dat/generic.dat"]
	all_files = neutral + ["toc/lib/liba.so/gfx1030.hsaco", "toc/lib/liba.so/gfx90a:xnack+#1.hsaco",
	                       "toc/lib/libb.so/gfx1030#1.hsaco", "toc/lib/libb.so/gfx1030.hsaco"]
	plus = ["toc/lib/liba.so/gfx90a:xnack+#1.hsaco"]
	for options, shown in (("arch=gfx90a", neutral + plus), ("arch=gfx90a:xnack-", neutral),
	                       ("arch=gfx90a,arch=all", all_files), ("arch=gfx90a,arch_exact", neutral),
	                       ("arch_exact,arch=gfx90a:xnack+", neutral + plus),
	                       ("arch=gfx1030,subdir=share", neutral[:2]), ("subdir=.", neutral[:2]),
	                       ("subdir=/toc//lib/.", [p for p in all_files if "toc/lib" in p])):
	    said = start("-o", options, "src", "mnt")
	    assert ("no archive has a file for it" in said) == ("xnack-" in options or ",arch_exact" in options), said
	    below = options.partition("subdir=")[2].strip("/.").replace("//", "/")
	    have = sorted(os.path.join(below, p) for p in find() if os.path.isfile("mnt/" + p))
	    assert have == sorted(shown), (options, have)
	    missing = dict(line.split("\t") for line in text("mnt/.kpackfs/missing").splitlines())
	    assert sorted(have + list(missing)) == sorted(all_files), (options, missing)
	    for path, reason in missing.items():
	        arch, where = options.partition(",subdir=")[::2]
	        if options.startswith("subdir") or (where and "gfx1030" in path or "generic" in path):
	            want = "subdir=. has no toc" if options == "subdir=." else "not below subdir=" + (where or "toc/lib")
	        else:
	            arch = {"arch_exact,arch=gfx90a:xnack+": "arch=gfx90a:xnack+"}.get(arch, arch.replace(",arch_exact", ""))
	            want = "architecture gfx%s is not for %s" % ("1030" if "1030" in path else "90a:xnack+", arch)
	        assert reason == want, (options, path, reason, want)
	    assert "\n  for        %s\n" % ("all" if "all" in options or "arch" not in options else
	        options.split("arch=")[1].split(",")[0]) in text("mnt/.kpackfs/status")
	    stop()
	assert "needs arch=LIST" in start("-o", "arch_exact", "src", "mnt", expect=2)
	END
}

@test "many threads, one thread, a descriptor each, opens asked, relative paths, no standard descriptors" {
	echo "$good" | make_archive src/good.kpack
	for o in -s '-o max_threads=1' '-o clone_fd' '-o auto_unmount' '-s -o open'; do
		# shellcheck disable=SC2086
		m $o "$T/src"
		check_good mnt
		unmount
	done
	kpackfs src mnt <&- >&- 2>&-
	(cd mnt && ls -R >/dev/null)
	check_good mnt
	server=$(sed 's/.*"pid": \([0-9]*\).*/\1/' mnt/.kpackfs/stats)
	supervisor=$(ps -o ppid= -p "$server" | tr -d ' ')
	# of a session of their own, away from the terminal and from where it was started
	[ "$(ps -o sid= -p "$server" | tr -d ' ')" = "$supervisor" ]
	for p in $server $supervisor; do
		[ "$(cat "/proc/$p/comm")" = kpackfs ]
		[ "$(readlink "/proc/$p/cwd")" = / ]
		[ "$(readlink /proc/$p/fd/[0-2] | sort -u)" = /dev/null ]
	done
	fusermount3 -u mnt
	gone
	# holds no descriptor of its starter: would wait for ever on the pipe's end
	kpackfs "$T/src" "$T/mnt" | cat
	check_good mnt
}

# budgets GROUP: a program on stdin that may start mounts in this control group, if it is not empty
budgets() {
	echo "$good" | make_archive src/good.kpack
	{
		cat <<-'END'
		def budget(wanted, *options):
		    """Megabytes, or, if the machine is short of memory, what is left of them then: all that it can be."""
		    def enter():
		        if sys.argv[1]:
		            with open(sys.argv[1] + "/cgroup.procs", "w") as f:
		                f.write(str(os.getpid()))
		    mount = Mount(*options, before=enter)
		    got = mount.stats()["cache_budget"]
		    mount.unmount()
		    assert got in [(wanted << 20) * p // 100 for p in (100, 50, 25, 12)], (got, wanted)
		END
		cat
	} | mounts "$1"
}

@test "the budget of the cache" {
	budgets "" <<<'budget(77, "-o", "cache_size=77m")'
}

@test "the budget of the cache in a group with little memory" {
	local top limit
	for top in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		# version 1 has its hierarchies in a tmpfs, which takes any name
		[ -e $top/cgroup.procs ] && mkdir "$top/${T##*/}" || continue
		group=$top/${T##*/}
		for limit in "$group"/memory.{max,limit_in_bytes}; do
			[ ! -e "$limit" ] || ! echo $((128 << 20)) >"$limit" || break 2
		done
		rmdir "$group"
		group=
	done
	[ -n "$group" ] || skip "no limits of memory"
	budgets "$group" <<-'END'
	budget(32)
	budget(5, "-o", "cache_size=5m")
	END
}

@test "in the foreground: log on stderr, exit 0, nothing leaked; killed while it is read: readers end" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "bad#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 2}, "corrupt": true},
	 {"key": "big#0", "arch": "gfx1100", "data": {"size": 60000000, "seed": 1}},
	 {"key": "c#0", "arch": "gfx1100", "type": "db", "data": {"size": 500000, "seed": 4}, "chunk": 65536}]}
	END
	mounts <<-'END'
	mount = Mount()
	for _ in range(3):
	    fails(errno.EIO, text, "mnt/toc/bad/gfx1100.hsaco")
	for name in os.listdir("mnt/.kpackfs"):
	    text("mnt/.kpackfs/" + name)
	with open("mnt/toc/c/gfx1100.db", "rb") as f, open("mnt/toc/big/gfx1100.hsaco", "rb") as g:
	    f.read(1), g.read(1)
	mount.unmount()
	lines = text(mount.log).splitlines()
	assert len(lines) == 1 and "a.kpack: bad#0 gfx1100: " in lines[0] and lines[0].startswith("kpackfs: "), lines
	for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
	    mount = Mount()
	    reader = subprocess.Popen(["cat", "mnt/toc/big/gfx1100.hsaco"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	    mount.signal(number)
	    mount.wait()
	    reader.wait()
	    subprocess.run(["fusermount3", "-uz", "mnt"], stderr=subprocess.DEVNULL)
	    assert not is_mounted()
	END
}

@test "users: nobody's mount, and others of one that is shared" {
	must_be_root
	echo "$good" | make_archive src/good.kpack
	chmod 0755 src
	chown nobody mnt
	nobody kpackfs "$T/src" "$T/mnt"
	[ "$(nobody cat "$T/mnt/share/y.dat")" = y ]
	findmnt -no OPTIONS mnt | grep -q nosuid,nodev
	nobody fusermount3 -u "$T/mnt"
	gone
	# only the user of a mount uses it
	m "$T/src"
	run -2 nobody ls mnt
	unmount
	m -o allow_other "$T/src"
	[ "$(nobody cat mnt/share/y.dat)" = y ]
	unmount
	# what the user cannot read is not served
	chmod 0600 src/good.kpack
	run -1 nobody kpackfs "$T/src" "$T/mnt"
	[[ $output == *"good.kpack: "*"ermission denied"* ]]
	run -1 kpackfs -o allow_other "$T/src" "$T/mnt"
	[[ $output == *"good.kpack: only its owner may read it"* ]]
	chmod 0640 src/good.kpack
	m -o allow_other "$T/src"
	run -1 nobody cat mnt/share/y.dat
	[[ $output == *"ermission denied"* ]]
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
	# nobody but root can exchange these
	kpackfs src way/mnt/
	[ "$(findmnt -no TARGET firm/mnt)" = "$T/firm/mnt" ]
	umount way/mnt
	mkdir -m 1777 sticky
	mv sticky-way sticky/way
	kpackfs src sticky/way/mnt
	umount "$T/firm/mnt"
	chown -h 40001:40001 sticky/way
	run -1 kpackfs src sticky/way/mnt
	[[ $output == *"a symbolic link on the way"* ]]
}

# A library to be preloaded: alice exchanges a directory of the mount point's path just before kpackfs
# makes the system call $MOMENT: mount, umount2, or an open of that path.
exchanger() {
	cat >stub.c <<-'END'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <stdarg.h>
	#include <stdlib.h>
	#include <string.h>
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
		exchange("mount");
		return ((int (*)(const char *, const char *, const char *, unsigned long, const void *))
			dlsym(RTLD_NEXT, "mount"))(a, b, c, d, e);
	}
	int umount2(const char *a, int b)
	{
		exchange("umount2");
		return ((int (*)(const char *, int))dlsym(RTLD_NEXT, "umount2"))(a, b);
	}
	int open64(const char *a, int b, ...)
	{
		va_list rest;
		int mode;
		va_start(rest, b);
		mode = va_arg(rest, int);
		va_end(rest);
		if (strstr(a, "alice/d"))
			exchange("open");
		return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64"))(a, b, mode);
	}
	long syscall(long number, ...)
	{
		long a[6];
		va_list rest;
		va_start(rest, number);
		for (int i = 0; i < 6; i++)
			a[i] = va_arg(rest, long);
		va_end(rest);
		if (number == SYS_openat2 && strstr((const char *)a[1], "alice/d"))
			exchange("open");
		return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	END
	${CC:-cc} -shared -fPIC -o stub.so stub.c
	PRELOADED="$(ldd "$KPACK_BIN/kpackfs" | awk '$1 ~ /^lib[at]san/ { print $3 }') $T/stub.so"
	export PRELOADED
}

@test "root mounts, unmounts and reads in advance on the directory that it looked at, wherever the path leads" {
	must_be_root
	echo "$good" | make_archive src/good.kpack
	mkdir -p alice/d/mnt other/mnt
	chown 40001:40001 alice alice/d
	exchanger
	mounts <<-'END'
	def exchanging(moment, *options):
	    return Mount(*options, at="alice/d/mnt", env={"MOMENT": moment, "LD_PRELOAD": os.environ["PRELOADED"]})
	def end(mount):
	    assert os.path.islink("alice/d")  # it was exchanged
	    mount.wait()
	    assert not is_mounted("alice/was/mnt")
	    os.unlink("alice/d")
	    os.rename("alice/was", "alice/d")
	mount = exchanging("mount")
	assert is_mounted("alice/was/mnt") and not is_mounted("other/mnt")
	assert text("alice/was/mnt/share/y.dat") == "y\n"
	mount.signal(signal.SIGTERM)
	end(mount)
	subprocess.run(["mount", "-t", "tmpfs", "none", "other/mnt"], check=True)
	for moment in ("umount2", "open"):
	    mount = exchanging(moment)
	    mount.signal(signal.SIGTERM)
	    mount.wait()
	    assert is_mounted("other/mnt")
	    end(mount)
	subprocess.run(["umount", "other/mnt"], check=True)
	# The preloader's end is the supervisor's child's: it says first what it did not do.
	os.mkdir("other/mnt/x")
	os.mkfifo("other/mnt/x/fifo")
	os.mkfifo("log")
	mount = Mount("-o", "preload=x/*", at="alice/d/mnt", log="log",
	              env={"MOMENT": "open", "LD_PRELOAD": os.environ["PRELOADED"]})
	mount.says("preload: is not the mount")
	mount.signal(signal.SIGTERM)
	end(mount)
	END
}

@test "overlayfs on top" {
	must_be_root
	mount_good
	mkdir mnt2 upper
	mount -t tmpfs none upper
	mkdir upper/up upper/work
	mount -t overlay none -o "xino=on,lowerdir=$T/mnt,upperdir=$T/upper/up,workdir=$T/upper/work" mnt2
	check_good mnt2
	# inode numbers are those of the mount, besides the layer's in the upper bits
	numbers() { find "$1" -mindepth 2 -printf '%i %P\n' | sort; }
	numbers mnt2/toc | while read -r n path; do echo "$((n & (1 << 56) - 1)) $path"; done | sort >got
	[ -s got ]
	numbers mnt/toc | diff got -
	echo more >>mnt2/share/y.dat
	echo new >mnt2/share/new
	mv mnt2/share/x.db mnt2/toc/moved
	rm -r mnt2/toc/lib
	mkdir mnt2/toc/lib
	[ -z "$(ls mnt2/toc/lib)" ]
	[ "$(cat mnt2/share/y.dat)" = "$(printf 'y\nmore')" ]
	noise 1000001 3 | cmp - mnt2/toc/moved
	umount mnt2
	umount upper
	check_good mnt
}
