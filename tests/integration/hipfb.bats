#!/usr/bin/env bats
# -o bundles: the code of each binary as an offload bundle, as clang and HIP's runtimes read it.
# Bundles are checked by clang's own bundler and by a reader in Python.

bats_require_minimum_version 1.5.0

load mounting

# A module for programs on stdin: bundle(BYTES) -> {id: (offset, size)}, as a runtime reads it.
reader() {
	cat >hipfb.py <<-'END'
	import json, mmap, os, struct, sys, time
	import mkarchive

	def bundle(data):
	    assert data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
	    n, at, rows = struct.unpack_from("<Q", data, 24)[0], 32, {}
	    for _ in range(n):
	        offset, size, length = struct.unpack_from("<QQQ", data, at)
	        rows[data[at + 24:at + 24 + length].decode()] = (offset, size)
	        at += 24 + length
	    ends = [at]
	    for i, (name, (offset, size)) in enumerate(rows.items()):
	        assert offset % 4096 == 0 and offset >= ends[-1], (name, offset)
	        assert (size == 0) == (i == 0), name
	        ends += [offset + size] if size else []
	    assert list(rows)[0] == "host-x86_64-unknown-linux-gnu-" and len(data) == ends[-1]
	    return rows

	def objects(data):
	    return {i: data[o:o + n] for i, (o, n) in bundle(data).items() if n}

	def stat(name):
	    return json.load(open("mnt/.kpackfs/stats"))[name]

	# The number of decodes, at least N.  Bytes are there before their decode ends.
	def decodes(n):
	    for _ in range(12000):
	        if stat("decodes") >= n:
	            break
	        time.sleep(0.01)
	    return stat("decodes")

	# What was counted is as it has to be if nothing was dropped: see counts.
	def counted(ok):
	    if not ok:
	        sys.exit(3)

	def mapped(path):
	    with open(path, "rb") as f:
	        return mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
	END
}

py() { PYTHONPATH=$BATS_TEST_DIRNAME:$T PYTHONDONTWRITEBYTECODE=1 $python - "$@"; }

# Run a program on stdin; what it counts may be wrong, but only if something was dropped from the caches.
counts() {
	local lost status=0
	lost=$(caches_lost)
	py || status=$?
	[ $status = 0 ] || { [ $status = 3 ] && [ "$(caches_lost)" != "$lost" ]; }
}

setup() {
	begin_test
	reader
}

two_archives() {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "lib/liba.so#0", "arch": "gfx1030", "data": "hello"},
	 {"key": "lib/liba.so#0", "arch": "gfx90a:xnack+", "data": {"size": 300001, "seed": 1}},
	 {"key": "lib/liba.so#2", "arch": "gfx1030", "data": {"size": 5000, "seed": 2}},
	 {"key": "share/x.db", "arch": "generic", "type": "db", "data": "db",
	  "metadata": {"path": "share/x.db"}}]}
	END
	make_archive src/b.kpack <<-'END'
	{"scheme": "none", "entries": [
	 {"key": "lib/liba.so#0", "arch": "gfx942", "data": {"size": 8192, "seed": 3},
	  "metadata": {"target": "hip-amdgcn-amd-amdhsa--gfx942"}},
	 {"key": "b", "arch": "gfx942", "type": "co", "data": {"size": 4096, "seed": 4}}]}
	END
}

# Compares the bundles of two_archives with what they have to be.
check_two() {
	py <<-'END'
	from hipfb import *
	h, noise = "hipv4-amdgcn-amd-amdhsa--", mkarchive.noise
	want = {
	    "lib/liba.so/0": {"hip-amdgcn-amd-amdhsa--gfx942": noise(8192, 3), h + "gfx1030": b"hello",
	                      h + "gfx90a:xnack+": noise(300001, 1)},
	    "lib/liba.so/2": {h + "gfx1030": noise(5000, 2)},
	    "b/0": {h + "gfx942": noise(4096, 4)},
	}
	for name, parts in want.items():
	    data = open("mnt/hipfb/%s.hipfb" % name, "rb").read()
	    assert objects(data) == parts, name
	    assert list(objects(data)) == sorted(parts), name
	    assert mapped("mnt/hipfb/%s.hipfb" % name)[:] == data
	    rows, zeros = bundle(data), bytearray(data)
	    for offset, size in rows.values():
	        zeros[offset:offset + size] = bytes(size)
	    assert not any(zeros[32 + sum(24 + len(i) for i in rows):]), name
	END
}

@test "a bundle for each binary and index, of all archives" {
	two_archives
	m -o bundles
	(cd mnt && find hipfb -type f | sort) | diff - <(printf '%s\n' hipfb/b/0.hipfb \
		hipfb/lib/liba.so/0.hipfb hipfb/lib/liba.so/2.hipfb)
	check_two
	[ "$(stat -c '%A %h' mnt/hipfb/b/0.hipfb)" = "-r--r--r-- 1" ]
	unmount
	m
	[ ! -e mnt/hipfb ]
}

# bats test_tags=all
@test "clang's bundler and kpack read it" {
	two_archives
	m -o bundles
	clang-offload-bundler-22 -list -type=o -input=mnt/hipfb/lib/liba.so/0.hipfb | sort |
		diff - <(printf '%s\n' hip-amdgcn-amd-amdhsa--gfx942 hipv4-amdgcn-amd-amdhsa--gfx1030 \
			hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+ host-x86_64-unknown-linux-gnu-)
	for t in hip-amdgcn-amd-amdhsa--gfx942=gfx942 hipv4-amdgcn-amd-amdhsa--gfx1030=gfx1030 \
		hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+=gfx90a:xnack+; do
		clang-offload-bundler-22 -unbundle -type=o -input=mnt/hipfb/lib/liba.so/0.hipfb \
			-targets="${t%=*}" -output=object
		cmp object "mnt/toc/lib/liba.so/${t#*=}.hsaco"
	done
	kpack inspect --json mnt/hipfb/lib/liba.so/0.hipfb | grep -c '"arch"'
	kpack inspect mnt/hipfb/lib/liba.so/0.hipfb >text
	[ "$(grep -c 'gfx.* [0-9a-f]\{64\} ' text)" = 3 ]
	grep -q "gfx90a:xnack+ .* $(sha256sum <mnt/toc/lib/liba.so/gfx90a:xnack+.hsaco | cut -c1-64)" text
}

@test "a read of the header and of one object decodes that object, once" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "x#0", "arch": "gfx900", "data": {"size": 3000001, "seed": 1}},
	 {"key": "x#0", "arch": "gfx906", "data": {"size": 3000001, "seed": 2}},
	 {"key": "x#0", "arch": "gfx908", "data": {"size": 3000001, "seed": 3}},
	 {"key": "x#0", "arch": "gfx90a", "data": {"size": 3000001, "seed": 4}},
	 {"key": "x#0", "arch": "gfx942", "data": {"size": 3000001, "seed": 5}}]}
	END
	m -o bundles
	counts <<-'END'
	from hipfb import *
	m = mapped("mnt/hipfb/x/0.hipfb")
	rows = bundle(m)
	assert stat("decodes") == 0
	# page by page, as a loader touches them, and at once
	offset, size = rows["hipv4-amdgcn-amd-amdhsa--gfx908"]
	pages = b"".join(m[at:min(at + 4096, offset + size)] for at in range(offset, offset + size, 4096))
	assert pages == mkarchive.noise(size, 3)
	counted(decodes(1) == 1)
	fd = os.open("mnt/hipfb/x/0.hipfb", os.O_RDONLY)
	offset, size = rows["hipv4-amdgcn-amd-amdhsa--gfx906"]
	assert os.pread(fd, size, offset) == mkarchive.noise(size, 2)
	counted(decodes(2) == 2)
	END
}

@test "a bundle and the files of its entries share what is decoded" {
	make_archive src/a.kpack <<-'END'
	{"entries": [{"key": "x#0", "arch": "gfx942", "data": {"size": 3000001, "seed": 5}}]}
	END
	m -o bundles
	# what was not read to its end is kept for a minute
	counts <<-'END'
	from hipfb import *
	def page(path, at):
	    fd = os.open(path, os.O_RDONLY)
	    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
	    return os.pread(fd, 4096, at)
	want = mkarchive.noise(3000001, 5)
	assert page("mnt/toc/x/gfx942.hsaco", 0) == want[:4096]
	counted(decodes(1) == 1)
	hits = stat("cache_hits")
	at = bundle(mapped("mnt/hipfb/x/0.hipfb"))["hipv4-amdgcn-amd-amdhsa--gfx942"][0]
	assert page("mnt/hipfb/x/0.hipfb", at + 40960) == want[40960:45056]
	counted(stat("cache_hits") == hits + 1 and stat("decodes") == 1)
	END
}

@test "reads of any range, across the borders of parts" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "x#0", "arch": "gfx1030", "data": {"size": 700001, "seed": 1}},
	 {"key": "x#0", "arch": "gfx1100", "data": "tiny"},
	 {"key": "x#0", "arch": "gfx90a", "data": {"size": 40960, "seed": 3}},
	 {"key": "x#0", "arch": "gfx942", "data": {"size": 1500001, "seed": 4}, "chunk": 65536}]}
	END
	for o in bundles bundles,cache_size=1m,threads=3,open; do
		m -o $o
		py <<-'END'
		import random
		from hipfb import *
		noise = mkarchive.noise
		objects_ = {"gfx1030": noise(700001, 1), "gfx1100": b"tiny", "gfx90a": noise(40960, 3),
		            "gfx942": noise(1500001, 4)}
		path = "mnt/hipfb/x/0.hipfb"
		size = os.stat(path).st_size
		fd, direct = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY | os.O_DIRECT)
		rows = bundle(b"".join(os.pread(direct, 65536, at) for at in range(0, size, 65536)))
		want = bytearray(size)
		want[:4096] = os.pread(direct, 4096, 0)
		for name, (offset, n) in rows.items():
		    if n:
		        want[offset:offset + n] = objects_[name.split("--")[1]]
		want, rng = bytes(want), random.Random(3)
		borders = [0, size] + [at for o, n in rows.values() for at in (o, o + n)]
		for _ in range(400):
		    n = rng.choice((1, 13, 4096, 70000, 400000, 1 << 20, size))
		    at = max(0, rng.choice(borders) - rng.randrange(n + 10))
		    for f in fd, direct:
		        assert os.pread(f, n, at) == want[at:at + n], (at, n)
		assert os.pread(direct, size + 5, 0) == want
		END
		unmount
	done
}

@test "the same bytes and numbers at every mount" {
	two_archives
	m -o bundles
	ls -laiR mnt >one
	(cd mnt && find . -name '*.hipfb' -exec sha256sum {} +) | sort >sums
	unmount
	m -o bundles
	ls -laiR mnt | cmp one -
	(cd mnt && sha256sum -c) <sums
	# the other option does not change the entries' numbers
	unmount
	m
	(cd mnt && find toc share -printf '%i %p\n') | sort >numbers
	unmount
	m -o bundles
	(cd mnt && find toc share -printf '%i %p\n') | sort | cmp numbers -
}

@test "only what arch= shows" {
	two_archives
	m -o bundles,arch=gfx1030
	(cd mnt && find hipfb -type f | sort) | diff - <(printf '%s\n' hipfb/lib/liba.so/0.hipfb \
		hipfb/lib/liba.so/2.hipfb)
	py <<-'END'
	from hipfb import *
	data = open("mnt/hipfb/lib/liba.so/0.hipfb", "rb").read()
	assert objects(data) == {"hipv4-amdgcn-amd-amdhsa--gfx1030": b"hello"}
	END
	unmount
	m -o bundles,arch=gfx1201
	[ ! -e mnt/hipfb ]
	unmount
	m -o bundles,subdir=share
	[ "$(ls mnt)" = x.db ]
	unmount
	m -o bundles,subdir=hipfb/lib
	[ "$(ls mnt/liba.so)" = $'0.hipfb\n2.hipfb' ]
	unmount
	m -o bundles,subdir=.
	[ "$(ls mnt)" = $'hipfb\nshare' ]
}

@test "attributes, and what du counts" {
	two_archives
	touch -d '2024-02-03 04:05:06.7 UTC' src/a.kpack
	touch -d '2024-02-03 04:05:06.8 UTC' src/b.kpack
	chmod 0640 src/b.kpack
	m -o bundles
	[ "$(TZ=UTC stat -c %y mnt/hipfb/lib/liba.so/0.hipfb)" = "2024-02-03 04:05:06.800000000 +0000" ]
	[ "$(TZ=UTC stat -c %y mnt/hipfb/lib/liba.so/2.hipfb)" = "2024-02-03 04:05:06.700000000 +0000" ]
	[ "$(stat -c '%a %b' mnt/hipfb/lib/liba.so/0.hipfb)" = "440 1" ]
	[ "$(stat -c '%a %b' mnt/hipfb/lib/liba.so/2.hipfb)" = "444 1" ]
	with=$(du -s --block-size=1 mnt | cut -f1)
	unmount
	m
	[ "$with" = $(($(du -s --block-size=1 mnt | cut -f1) + 3 * 512)) ]
}

bundle_is() { # SIZE-OF-gfx942
	py "$1" <<-'END'
	import sys
	from hipfb import *
	try:
	    rows = bundle(open("mnt/hipfb/lib/liba.so/0.hipfb", "rb").read())
	    size = rows.get("hip-amdgcn-amd-amdhsa--gfx942", (0, 0))[1]
	except FileNotFoundError:
	    size = -1
	sys.exit(size != int(sys.argv[1]))
	END
}

@test "bundles change with the archives; open ones keep their bytes" {
	two_archives
	mv src/b.kpack .
	m -o bundles
	[ ! -e mnt/hipfb/b ]
	bundle_is 0
	exec 5<mnt/hipfb/lib/liba.so/0.hipfb
	other=$(stat -c %i mnt/hipfb/lib/liba.so/2.hipfb)
	one=$(stat -c %i mnt/hipfb/lib/liba.so/0.hipfb)
	sha256sum <mnt/hipfb/lib/liba.so/0.hipfb >old
	cp -p b.kpack b.new
	mv b.new src/b.kpack
	barrier
	bundle_is 8192
	check_two
	[ "$(stat -c %i mnt/hipfb/lib/liba.so/0.hipfb)" != "$one" ]
	[ "$(stat -c %i mnt/hipfb/lib/liba.so/2.hipfb)" = "$other" ]
	py 5<&5 <<-'END'
	from hipfb import *
	m = mmap.mmap(5, 0, prot=mmap.PROT_READ)
	assert list(objects(m)) == ["hipv4-amdgcn-amd-amdhsa--gfx1030", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"]
	END
	# even when both archives are gone
	rm src/a.kpack src/b.kpack
	barrier
	bundle_is -1
	[ ! -e mnt/hipfb ]
	sha256sum <&5 | cmp old -
	exec 5<&-
	cp -p b.kpack src/b.kpack
	barrier
	bundle_is 8192
}

@test "a damaged object is EIO for its pages alone" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "x#0", "arch": "gfx1030", "data": {"size": 100000, "seed": 1}},
	 {"key": "x#0", "arch": "gfx1100", "data": {"size": 100000, "seed": 2}, "corrupt": true},
	 {"key": "x#0", "arch": "gfx942", "data": {"size": 100000, "seed": 3}}]}
	END
	m -o bundles
	run -1 cat mnt/hipfb/x/0.hipfb
	py <<-'END'
	import errno
	from hipfb import *
	path = "mnt/hipfb/x/0.hipfb"
	fd = os.open(path, os.O_RDONLY)
	rows = {}
	head, at = os.pread(fd, 4096, 0), 32
	for _ in range(4):
	    offset, size, n = struct.unpack_from("<QQQ", head, at)
	    rows[head[at + 24:at + 24 + n].decode().split("--")[-1]] = offset, size
	    at += 24 + n
	for arch, seed in ("gfx1030", 1), ("gfx942", 3):
	    assert os.pread(fd, 100000, rows[arch][0]) == mkarchive.noise(100000, seed)
	for at in rows["gfx1100"][0], rows["gfx1100"][0] + 90000:
	    try:
	        os.pread(fd, 100, at)
	        assert False
	    except OSError as e:
	        assert e.errno == errno.EIO
	END
}

@test "names in hipfb are the mount's own" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "a", "arch": "generic", "type": "dat", "data": "a", "metadata": {"path": "hipfb/a"}},
	 {"key": "b", "arch": "generic", "type": "dat", "data": "b", "metadata": {"path": "hipfb"}},
	 {"key": "x#0", "arch": "gfx942", "data": "x"}]}
	END
	m -o bundles
	[ "$(ls mnt/hipfb)" = x ]
	grep -q '^hipfb/a: lies in hipfb' mnt/.kpackfs/conflicts
	grep -q '^hipfb: lies in hipfb' mnt/.kpackfs/conflicts
	grep -q $'^hipfb/a\t.*hipfb is the mount' mnt/.kpackfs/missing
	grep -q '^  conflicts  2:' mnt/.kpackfs/status
	unmount
	m
	[ "$(cat mnt/hipfb/a)" = a ]
}

@test "the texts of .kpackfs, and extended attributes" {
	two_archives
	m -o bundles,xattr
	(cd mnt && grep -c ' hipfb/' .kpackfs/checksums) | grep -x 3
	(cd mnt && sha256sum --quiet -c .kpackfs/checksums)
	py <<-'END'
	from hipfb import *
	lines = [json.loads(l) for l in open("mnt/.kpackfs/entries.jsonl")]
	mine = {l["path"]: l for l in lines if l["path"].startswith("hipfb/")}
	assert len(mine) == 3
	l = mine["hipfb/lib/liba.so/0.hipfb"]
	assert l["type"] == "hipfb" and l["key"] == "lib/liba.so#0" and l["archive"] is None
	rows = bundle(open("mnt/" + l["path"], "rb").read())
	assert l["size"] == os.stat("mnt/" + l["path"]).st_size
	assert [(p["offset"], p["size"]) for p in l["parts"]] == [r for r in rows.values() if r[1]]
	assert [p["arch"] for p in l["parts"]] == ["gfx942", "gfx1030", "gfx90a:xnack+"]
	assert [p["archive"][-7:] for p in l["parts"]] == ["b.kpack", "a.kpack", "a.kpack"]
	path = "mnt/hipfb/lib/liba.so/0.hipfb"
	assert {n: os.getxattr(path, n).decode() for n in os.listxattr(path)} == {
	    "user.kpack.key": "lib/liba.so#0", "user.kpack.type": "hipfb", "user.kpack.size": str(l["size"])}
	END
	run -0 kpackfs --status mnt
	[[ $output == *"shown      9 files"* ]]
	[ ! -s mnt/.kpackfs/conflicts ]
}

alice() { setpriv --reuid=40001 --regid=40001 --clear-groups "$@"; }
bob() { setpriv --reuid=40002 --regid=40002 --clear-groups "$@"; }
member() { setpriv --reuid=40002 --regid=40002 --groups=40100 "$@"; }

# has USER ARCH:BYTES...: the objects of the bundle that a user can read
has() {
	local user=$1
	shift
	cat >has.py <<-'END'
	from hipfb import *
	data = open("mnt/hipfb/x/0.hipfb", "rb").read()
	print(*("%s:%s" % (i.split("--")[1], o.decode()) for i, o in objects(data).items()))
	END
	cp "$BATS_TEST_DIRNAME/mkarchive.py" . # the user may not search the project's directory
	[ "$(PYTHONDONTWRITEBYTECODE=1 "$user" "$python" has.py 2>&1)" = "$*" ]
}

@test "with allow_other a bundle has the entries that its reader may read" {
	must_be_root
	chmod 0755 src
	one() { # NAME MODE OWNER ARCH
		echo '{"entries": [{"key": "x#0", "arch": "'"$4"'", "data": "'"$1"'"}]}' |
			make_archive "$1"
		chmod "$2" "$1"
		chown "$3" "$1"
		mv "$1" "src/$1.kpack"
	}
	one public 0644 0:0 gfx1030
	one secret 0600 40001:40001 gfx1100
	one team 0640 0:40100 gfx942
	m -o bundles,allow_other
	for _ in 1 2; do
		has bob gfx1030:public
		has alice gfx1030:public gfx1100:secret
		has member gfx1030:public gfx942:team
		has env gfx1030:public gfx1100:secret gfx942:team
	done
	[ "$(bob stat -c %a mnt/hipfb/x/0.hipfb)" = 444 ]
	[ "$(alice stat -c '%a %u' mnt/hipfb/x/0.hipfb)" = "400 40001" ]
	[ "$(member stat -c '%a %g' mnt/hipfb/x/0.hipfb)" = "440 40100" ]
	[ "$(stat -c '%a %u' mnt/hipfb/x/0.hipfb)" = "400 0" ]
	[ "$(bob ls mnt/hipfb/x)" = 0.hipfb ]
	# without the public one, there is none for everyone
	rm src/public.kpack
	barrier
	has env gfx1100:secret gfx942:team
	run -2 bob ls mnt/hipfb/x/0.hipfb
	[[ $output == *"No such file"* ]]
	run -2 bob ls mnt/hipfb
	has alice gfx1100:secret
	has member gfx942:team
	# of one kind: it is as the archives
	rm src/team.kpack
	barrier
	has env gfx1100:secret
	[ "$(stat -c '%a %u' mnt/hipfb/x/0.hipfb)" = "400 40001" ]
	has alice gfx1100:secret
	# one user owns all of them, and mounts for other users
	unmount
	one public 0644 0:0 gfx1030
	m -o bundles,allow_other,uid=40002
	has bob gfx1030:public gfx1100:secret
}
