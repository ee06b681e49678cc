#!/usr/bin/env bats
# The mount as libraries that load kernels use it: a part of the tree, for some GPUs, and
# the file system calls of their loaders.

bats_require_minimum_version 1.5.0

load mounting

setup() {
	begin_test
	mkdir mnt2
}

teardown() {
	end_test
	[ -z "${group-}" ] || rmdir "$group"
}

stat_of() { # KEY: a number of .kpackfs/stats
	sed -E "s/.*\"$1\": ([0-9]+).*/\1/" "$T/mnt/.kpackfs/stats"
}

files() { (cd mnt && find . -type f -printf '%P\n' | LC_ALL=C sort); }

# A small install tree of three libraries for several GPUs, each file holding its name.
make_tree() {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	def add(arch, path):
	    a.add(path, arch, path.encode(), type=path.rpartition(".")[2], path=path)
	lib = "lib/rocblas/library/"
	for arch in ("gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1100", "gfx1101", "gfx942"):
	    add(arch, lib + "Kernels.so-000-" + arch.replace(":", "-") + ".hsaco")
	add("generic", lib + "TensileLibrary.dat")
	add("gfx11-generic", lib + "Kernels.so-000-gfx11-generic.hsaco")
	add("gfx942", "lib/hipblaslt/library/gfx942/Kernels.so-000-gfx942.hsaco")
	images = "lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2"
	n = None
	for arch in ("gfx1100", "gfx1101", "gfx1150"):
	    n = a.add(images, arch, images.encode(), type="aks2", ordinal=n, path=images)
	add("gfx942", "share/miopen/db/gfx942130.db.txt")
	a.add("lib/librocrand.so.1#0", "gfx1100", b"code")
	a.write("src/a.kpack")
	END
}

# topology VERSION...: nodes of these, 0 is a CPU
topology() {
	local i=0
	for v in "$@"; do
		mkdir -p "topology/nodes/$i"
		printf 'cpu_cores_count 1\ngfx_target_version %s\nsimd_count 2\n' "$v" >"topology/nodes/$i/properties"
		i=$((i + 1))
	done
}

# The GPUs whose code the mount shows are these.
selected() {
	grep -qx "  for        $*" mnt/.kpackfs/status
}

@test "subdir: one directory is the root, however the path is written" {
	make_tree
	m
	kpackfs -o subdir=lib/rocblas/library "$T/src" "$T/mnt2"
	diff -r mnt/lib/rocblas/library mnt2
	# but for ".." and the root itself, which is always 1
	(cd mnt/lib/rocblas/library && find . -mindepth 1 -printf '%P %i %s %m %t\n') | sort >whole
	(cd mnt2 && find . -mindepth 1 -printf '%P %i %s %m %t\n') | sort | diff whole -
	[ "$(stat -c %i mnt2)" = 1 ]
	[ ! -e mnt2/toc ]
	[ "$(ls -A mnt2 | wc -l)" = 8 ]
	grep -q "program    $(kpackfs -V | head -n 1), process" mnt2/.kpackfs/status
	# names outside do not count as links
	[ "$(stat -c %h mnt2/TensileLibrary.dat)" = 1 ]
	[ "$(stat -c %h mnt/lib/rocblas/library/TensileLibrary.dat)" = 2 ]
	grep -q '"files": 8, "directories": 1' mnt2/.kpackfs/stats
	(cd mnt2/.kpackfs/.. && [ "$(stat -c %i .)" = 1 ])
	fusermount3 -u mnt2
	unmount
	for path in lib/aotriton.images //lib///aotriton.images// ./lib/./aotriton.images; do
		m -o "subdir=$path"
		[ "$(cat mnt/amd-gfx11xx/flash/attn_fwd.aks2)" = lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2 ]
		[ "$(cd mnt/amd-gfx11xx && stat -c '%i %h' ..)" = "1 3" ]
		unmount
	done
	m -o subdir=toc
	[ "$(cat mnt/lib/librocrand.so.1/gfx1100.hsaco)" = code ]
	[ "$(stat -c %h mnt/lib/librocrand.so.1/gfx1100.hsaco)" = 1 ]
	unmount
	for path in . /; do
		m -o subdir=$path
		[ "$(ls mnt)" = "$(printf 'lib\nshare')" ]
		[ ! -e mnt/toc ] && [ -e mnt/.kpackfs/stats ]
		[ "$(stat -c %h mnt)" = 4 ]
		[ "$(stat -c %h mnt/lib/rocblas/library/TensileLibrary.dat)" = 1 ]
		[ "$(stat_of files)" = "$(find mnt -type f | wc -l)" ]
		[ "$(stat_of directories)" = "$(find mnt -type d | wc -l)" ]
		unmount
	done
}

@test "subdir: what no archive has is an error, and what has no file for these GPUs is empty" {
	make_tree
	for path in lib/rocfft share/miopen/db/gfx942130.db.txt .kpackfs lib/rocblas/library/x; do
		run -1 m -o "subdir=$path"
		[[ $output == "kpackfs: $path: "* ]]
		run -1 m -o "subdir=$path,arch=gfx942"
		[[ $output == "kpackfs: $path: "* ]]
	done
	ln -s "$KPACK_BIN/kpackfs" mount.kpackfs
	run -32 ./mount.kpackfs "$T/src" "$T/mnt" -o subdir=lib/rocfft
	! mountpoint -q mnt || false
	gone
	m -o subdir=share/miopen/db,arch=gfx1100 2>log
	grep -q '^kpackfs: share/miopen/db: has no file' log
	[ "$(wc -l <log)" = 1 ]
	[ -z "$(ls -A mnt)" ]
	[ "$(stat -c %i mnt)" = 1 ]
	selected gfx1100
	stat -f mnt >/dev/null
	unmount
	rm src/*
	# an archive's own .kpackfs there is hidden, with a warning
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	for p in ("lib/.kpackfs/stats", "lib/x/.kpackfs", "lib/x/f", "lib/f"):
	    a.add(p, "gfx942", p.encode(), type="dat", path=p)
	a.write("src/a.kpack")
	END
	for dir in lib lib/x toc/lib; do
		m -o "subdir=$dir" 2>log
		grep -qx "kpackfs: $dir: its own .kpackfs is not shown" log
		! ls -A mnt | grep -q kpackfs || false
		# listed first, then asked for
		ls -lA mnt
		grep -q '"archives": 1' mnt/.kpackfs/stats
		[ "$(stat_of directories)" = "$(find mnt -type d | wc -l)" ]
		[ "$(stat -c %h mnt)" = $((1 + $(find mnt -maxdepth 1 -type d | wc -l))) ]
		unmount
	done
	m
	[ "$(cat mnt/lib/.kpackfs/stats)" = lib/.kpackfs/stats ]
}

# Which files a GPU is shown is in tests/golden/target-choice, core/view and mount.bats.
@test "arch: lists of GPUs, and no directory without a file" {
	make_tree
	m -o arch=gfx1150
	files | grep -v ^toc/ >list
	diff list - <<-'END'
	lib/aotriton.images/amd-gfx11xx/flash/attn_fwd.aks2
	lib/rocblas/library/Kernels.so-000-gfx11-generic.hsaco
	lib/rocblas/library/TensileLibrary.dat
	END
	[ -z "$(find mnt -type d -empty)" ]
	unmount
	topology 0 110000
	for o in arch=gfx1100,arch=gfx942 'arch=gfx942\,gfx1100' 'arch=gfx1100,gfx1100,gfx942,ro' \
		"arch=gfx942,auto,topology=$T/topology"; do
		m -o "$o"
		grep -qxE '  for        gfx(1100|942), gfx(942|1100)' mnt/.kpackfs/status
		[ "$(ls mnt/lib/rocblas/library | wc -l)" = 4 ]
		[ "$(ls mnt/share/miopen/db)" = gfx942130.db.txt ]
		unmount
	done
	for o in arch=gfx942,all arch=all,arch=gfx942 "arch=auto,all,topology=$T/nowhere"; do
		m -o "$o" 2>log
		[ ! -s log ]
		selected all
		[ "$(ls mnt/lib/rocblas/library | wc -l)" = 8 ]
		unmount
	done
	# fstab's auto is another option
	m -o arch=gfx942,ro,auto
	selected gfx942
	unmount
}

@test "arch=auto: this machine's GPUs, or none, with a warning" {
	make_tree
	topology 0 0 90402 90402 110001
	m -v -o "arch=auto,topology=$T/topology" 2>log
	grep -q 'architectures: gfx942,gfx1101' log
	selected gfx942, gfx1101
	[ "$(files | grep -v ^toc/ | wc -l)" = 7 ]
	unmount
	# the directory of the nodes itself, by a relative path; a GPU a node, twice 10
	m -o arch=auto,topology=topology/nodes,subdir=lib/rocblas/library
	[ "$(ls mnt)" = "$(printf '%s\n' Kernels.so-000-{gfx1101,gfx11-generic,gfx942}.hsaco \
		TensileLibrary.dat | sort)" ]
	unmount
	rm -r topology
	topology 0 0
	for where in "$T/nowhere" "$T/topology" "$T/src/a.kpack"; do
		m -o "arch=auto,topology=$where" 2>log
		grep -q "^kpackfs: $where: arch=auto finds no GPU.*only files for every arch" log
		[ "$(wc -l <log)" = 2 ]
		grep -q "^kpackfs: .*gfx942" log
		[ "$(files | grep -v ^toc/)" = lib/rocblas/library/TensileLibrary.dat ]
		selected none
		unmount
	done
	# nonsense is named, and the rest is used
	topology 0 90402 nonsense
	m -o "arch=auto,topology=$T/topology" 2>log
	grep -q 'nodes/2/properties: gfx_target_version "nonsense"' log
	selected gfx942
}

# A database of 20 MB, 10,000 rows, in chunks of 128 KiB.
make_database() {
	py <<-'END'
	import mkarchive, sqlite3, os
	d = sqlite3.connect("cache.db")
	d.execute("pragma page_size=4096")
	d.execute("pragma journal_mode=off")
	d.execute("create table cache_v1 (kernel_name text, arch text, code blob, primary key (kernel_name, arch))")
	d.executemany("insert into cache_v1 values (?, 'gfx942', ?)",
	              ((f"fft_rtc_len{i}", i.to_bytes(4, "little") * 450 + bytes(100)) for i in range(10000)))
	d.commit()
	d.close()
	data = open("cache.db", "rb").read()
	assert len(data) > 20_000_000, len(data)
	a = mkarchive.Archive(checksum=False, level=1)
	p = "lib/rocfft/rocfft_kernel_cache.db"
	a.add(p, "generic", data, type="db", path=p, chunk=131072)
	a.write("src/fft.kpack")
	END
}

@test "random reads of a large database decode chunks, not the file" {
	make_database
	m
	db=mnt/lib/rocfft/rocfft_kernel_cache.db
	size=$(stat -c %s cache.db)
	[ "$(stat -c %s $db)" = "$size" ]
	[ "$(stat_of decodes) $(stat_of bytes_decoded)" = "0 0" ]
	py cache.db $db <<-'END'
	import os, sys
	want, have = (os.open(p, os.O_RDONLY) for p in sys.argv[1:])
	size = os.fstat(have).st_size
	assert os.lseek(have, 0, os.SEEK_END) == size
	for part in (3, 7):
	    off = size // part // 4096 * 4096
	    assert os.pread(have, 4096, off) == os.pread(want, 4096, off)
	END
	# one chunk each, and one more where the kernel reads ahead over its end
	[ "$(stat_of bytes_decoded)" -le $((4 * 131072)) ]
	[ "$(stat_of decodes)" -ge 2 ]
	before=$(stat_of bytes_decoded)
	py $db <<-'END'
	import sqlite3, sys
	d = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
	for i in (77, 5001, 9999):
	    (code,), = d.execute("select code from cache_v1 where kernel_name = ? and arch = 'gfx942'",
	                         (f"fft_rtc_len{i}",))
	    assert code == i.to_bytes(4, "little") * 450 + bytes(100)
	assert d.execute("select 1 from cache_v1 where kernel_name = 'none'").fetchall() == []
	END
	[ $(($(stat_of bytes_decoded) - before)) -le $((2 << 20)) ]
	cmp cache.db $db
}

@test "a name that does not exist is asked for once" {
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	a.add("d/x.dat", "gfx942", b"x", type="dat", path="d/x.dat")
	a.write("src/a.kpack")
	END
	py mnt/d "$T" <<-'END'
	import os, socket, subprocess, sys
	d, top = sys.argv[1:]
	ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	ready.bind(top + "/ready")
	with open("log", "w") as log:
	    server = subprocess.Popen(["kpackfs", "-f", "-d", top + "/src", top + "/mnt"], stderr=log,
	                              env=dict(os.environ, NOTIFY_SOCKET=top + "/ready"))
	while b"READY=1" not in ready.recv(4096):
	    pass
	lookups = lambda: open("log").read().count("LOOKUP")
	# again, because the kernel may forget names at any time
	for turn in range(100):
	    os.stat(d)
	    begin = lookups()
	    names = [f"{d}/TensileLibrary_lazy_{turn}_{i}.dat" for i in range(20)]
	    for _ in range(50):
	        for n in names:
	            assert not os.access(n, os.R_OK)
	    if lookups() - begin == len(names):
	        break
	else:
	    raise AssertionError(lookups() - begin)
	subprocess.run(["fusermount3", "-u", top + "/mnt"], check=True)
	assert server.wait() == 0
	END
}

@test "names, sizes and what system calls say" {
	py <<-'END'
	import mkarchive, json
	a = mkarchive.Archive()
	d = "lib/aotriton.images/amd-gfx942/flash/"
	names = ["attn_fwd.\uff0afp16@16.aks2", "a b@^,+-=:;'.dat", "z" * 250, "empty", "page.co",
	         "pages.co", "Kernels.so-000-gfx90a-xnack+.hsaco"]
	sizes = [1000, 5, 10, 0, 4096, 4096 * 150, 123457]
	json.dump(dict(zip(names, sizes)), open("want", "w"))
	for i, (n, s) in enumerate(zip(names, sizes)):
	    a.add(d + n, "gfx942", mkarchive.noise(s, i), type="bin", path=d + n)
	a.write("src/a.kpack")
	END
	m
	py mnt/lib/aotriton.images <<-'END'
	import fcntl, json, mkarchive, mmap, os, stat, struct, sys
	top, want = sys.argv[1], json.load(open("want"))
	fd = os.open(top, os.O_RDONLY)
	flash = os.open("amd-gfx942/flash", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
	for i, (name, size) in enumerate(want.items()):
	    f = os.open("amd-gfx942/flash/" + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
	    st = os.fstat(f)
	    assert st.st_size == size and stat.S_ISREG(st.st_mode), name
	    assert os.lseek(f, 0, os.SEEK_END) == size
	    assert os.lseek(f, -min(size, 5), os.SEEK_CUR) == size - min(size, 5)
	    data = mkarchive.noise(size, i)
	    assert os.pread(f, size + 1, 0) == data and os.pread(f, 10, size) == b""
	    # a shared lock by byte range as SQLite's, and both of flock's
	    for start, n in ((1073741824, 1), (1073741826, 510)):
	        fcntl.fcntl(f, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, start, n, 0))
	        fcntl.fcntl(f, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_UNLCK, 0, start, n, 0))
	    for lock in (fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN):
	        fcntl.flock(f, lock | fcntl.LOCK_NB)
	    if size:
	        for flags, prot in ((mmap.MAP_SHARED, mmap.PROT_READ), (mmap.MAP_PRIVATE, mmap.PROT_READ),
	                            (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC),
	                            (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)):
	            m = mmap.mmap(f, size, flags, prot)
	            assert m[:] == data
	assert os.listdir(flash) == sorted(want)
	END
}

@test "a shared library on the mount is loaded and run" {
	echo 'int kernels(void) { return 42; }' >ck.c
	cc -shared -fPIC -o libdevice_conv.so ck.c
	py <<-'END'
	import mkarchive
	a = mkarchive.Archive()
	a.add("lib/libdevice_conv.so", "gfx942", open("libdevice_conv.so", "rb").read(), type="so",
	      path="lib/libdevice_conv.so", mode=0o755)
	a.write("src/a.kpack")
	END
	m
	[ -x mnt/lib/libdevice_conv.so ]
	! findmnt -no OPTIONS mnt | grep -qw noexec || false
	py mnt/lib/libdevice_conv.so <<-'END'
	import ctypes, sys
	assert ctypes.CDLL(sys.argv[1]).kernels() == 42
	END
}

# 200 objects of some KiB to 2 MiB, a few empty or of whole pages.
make_objects() {
	py <<-'END'
	import mkarchive, random, hashlib
	rng = random.Random(5)
	a = mkarchive.Archive(level=1)
	with open("sums", "w") as sums:
	    for i in range(200):
	        size = int(2 ** rng.uniform(12, 20.5)) if i % 10 else 4096 * (1 + i // 10)
	        data = mkarchive.noise(size, i)
	        p = f"lib/hipblaslt/library/TensileLibrary_{i:03}_gfx942.co"
	        a.add(p, "gfx942", data, type="co", path=p)
	        sums.write(f"{hashlib.md5(data).hexdigest()}  mnt/{p}\n")
	a.write("src/objects.kpack")
	END
}

@test "what was read is kept by the kernel, and not decoded again by another process" {
	make_objects
	for o in noatime open; do
		m -o $o
		# again, because the kernel may forget pages at any time
		for turn in {1..100}; do
			md5sum --quiet -c sums
			before=$(stat_of decodes)
			[ "$before" -ge 200 ]
			md5sum --quiet -c sums
			[ "$(stat_of decodes)" != "$before" ] || break
		done
		[ "$turn" -lt 100 ]
		unmount
	done
}

# Make a group of processes that may use so much memory; $group is its directory, or empty.
limit_memory() { # BYTES
	local name=kpackfs-test-$$ top
	for top in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		# version 1 has its hierarchies in a tmpfs, which takes any name
		[ -e "$top/cgroup.procs" ] || continue
		mkdir "$top/$name" 2>/dev/null || continue
		if echo "$1" >"$top/$name/memory.max" || echo "$1" >"$top/$name/memory.limit_in_bytes"; then
			group=$top/$name
			return
		fi 2>/dev/null
		rmdir "$top/$name"
	done
}

@test "200 objects mapped at once stay readable under memory pressure, and while an archive comes" {
	make_objects
	m -o cache_size=2m
	limit_memory $((64 << 20))
	py "$group" mnt/lib/hipblaslt/library "$T/src" <<-'END'
	import ctypes, hashlib, mkarchive, mmap, os, shutil, sys
	group, d, src = sys.argv[1:]
	want = dict(reversed(line.split()) for line in open("sums"))
	if group:
	    open(group + "/cgroup.procs", "w").write(str(os.getpid()))
	maps = []
	for path in want:
	    fd = os.open(path, os.O_RDONLY)  # kept, as hipModuleLoad does
	    maps.append((path, fd, mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)))
	for turn in range(2):
	    for i, (path, fd, m) in enumerate(maps):
	        assert hashlib.md5(m).hexdigest() == want[path], path
	        m.madvise(mmap.MADV_DONTNEED)
	        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
	        if turn == 0 and i == 100:
	            new = mkarchive.Archive()
	            new.add("lib/new", "gfx942", b"new", path="lib/new")
	            new.write(src + "/tmp")
	            os.rename(src + "/tmp", src + "/zz.kpack")
	            shutil.copy(src + "/zz.kpack", src + "/aa.kpack")
	END
	[ "$(stat_of errors)" = 0 ]
	# pages really went: the second turn decoded again
	[ "$(stat_of decodes)" -gt 200 ]
	md5sum --quiet -c sums
}

@test "two archives with the same bytes at one path are no conflict, with other bytes both are named" {
	py <<-'END'
	import mkarchive
	data = mkarchive.noise(400000)
	for name, level, chunk in (("a", 1, 131072), ("b", 1, 131072), ("c", 19, 65536)):
	    a = mkarchive.Archive(level=level)
	    a.add("lib/x.db", "generic", data, type="db", path="lib/x.db", chunk=chunk)
	    a.add("lib/y.dat", "generic", data, type="dat", path="lib/y.dat")
	    # as large, and no hash: nobody knows
	    a.add("lib/z", "generic", data, type="dat", path="lib/z", hash=False)
	    a.add("lib/" + name, "generic", name.encode(), type="dat", path="lib/" + name)
	    a.write(f"src/{name}.kpack")
	END
	m 2>log
	[ "$(ls mnt/lib)" = "$(printf '%s\n' a b c x.db y.dat z)" ]
	cmp mnt/lib/x.db mnt/lib/y.dat
	# both names of z, of two archives
	[ "$(wc -l <mnt/.kpackfs/missing)" = 4 ]
	[ "$(grep -c 'lib/z[	/]' mnt/.kpackfs/missing)" = 4 ]
	unmount
	# whole, however long they are
	long=$(printf '%0150d' 0)
	mkdir "src/$long"
	mv src/*.kpack "src/$long"
	kpackfs "$T/src/$long" mnt 2>log
	grep "lib/z: " log | grep -F "$T/src/$long/a.kpack" | grep -qF "$T/src/$long/b.kpack"
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
	[ "$(wc -l <mnt/.kpackfs/missing)" -ge 19 ]
	! grep -qP '[^\t\x20-\x7e]' mnt/.kpackfs/missing || false
}
