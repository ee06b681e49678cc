#!/usr/bin/env bats
# What a mount reports about itself: the files of .kpackfs, and extended attributes.

bats_require_minimum_version 1.5.0

load mounting

# Names of one content, a chunked file, names with what JSON and sha256sum escape.
some='{"frame_index": true, "entries": [
 {"key": "lib/liba.so#0", "arch": "gfx1030", "data": "hello", "metadata": {"xxh3": true, "target": "hip"}},
 {"key": "lib/liba.so#1", "arch": "gfx90a:xnack+", "data": {"size": 100000, "seed": 1}},
 {"key": "lib/lib\"b\\.so#0", "arch": "gfx1030", "data": {"size": 3000001, "seed": 2}},
 {"key": "lib/libc.so#0", "arch": "gfx1030", "same_as": 2, "metadata": {"path": "ü/same", "list": [1, {"a": null}]}},
 {"key": "lib/libd.so#0", "arch": "gfx1030", "data": ""},
 {"key": "share/x.db", "arch": "generic", "type": "db", "data": {"size": 1000001, "seed": 3},
  "chunk": 131072, "metadata": {"path": "share/x.db", "mode": 493, "xxh3": true}}]}'

some() { # a program on stdin, beside this archive
	echo "$some" | make_archive src/some.kpack
	mounts
}

@test "stats are one JSON object; metrics are what Prometheus takes, and agree with it" {
	PYTHONPATH=$BATS_TEST_DIRNAME some <<-'END'
	import promcheck, re
	os.link("src/some.kpack", b'src/a"b\\c.kpack')
	os.link("src/some.kpack", b"src/new\nline\xff.kpack")
	mount = Mount("-o", "threads=1,no_ahead")
	s = first = mount.stats()
	assert (s["reads"], s["bytes_served"], s["decodes"], s["cache_bytes"]) == (0, 0, 0, 0), s
	# the last bytes are served before their decode ends; the thread that reads decodes small entries
	for path in ("share/x.db", "toc/lib/liba.so/gfx1030.hsaco", "toc/lib/liba.so/gfx90a:xnack+#1.hsaco"):
	    text("mnt/" + path)
	held = open("mnt/.kpackfs/stats")
	text("mnt/toc/lib/lib\"b\\.so/gfx1030.hsaco")
	line = text("mnt/.kpackfs/stats")
	assert line.endswith("}\n") and line.count("\n") == 1
	s = json.loads(line)
	want = {"archives": 3, "refused_archives": 0, "entries": 18, "files": 5, "directories": len([p for p in find() if os.path.isdir("mnt/" + p)]) + 1,
	        "errors": 0, "reloads": 0, "edition": 1, "retired_inodes": 0, "retired_archives": 0, "last_reload": None}
	assert {k: s[k] for k in want} == want, s
	assert s["bytes_served"] == 4100007 and 1100006 <= s["bytes_decoded"] <= 4100007, s
	# a text keeps its bytes while it is open
	assert json.load(held)["bytes_served"] == 1100006
	assert s["cache_hits"] + s["cache_misses"] == s["reads"] and s["cache_misses"] >= 3
	assert s["evictions"] == sum(s["evictions_by_reason"].values()) and s["errors"] == sum(s["errors_by_reason"].values())
	assert 4 << 20 <= s["cache_budget"] <= 256 << 20 and s["cache_bytes_most"] >= 100000
	times = s["decode_seconds"]
	assert times["count"] == s["decodes"] == times["buckets"]["+Inf"] and times["sum"] > 0
	assert list(times["buckets"].values()) == sorted(times["buckets"].values())
	assert s["decodes"] >= 10 and s["reads"] >= 3
	assert re.match(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ$", s["started"]) and s["started"] == first["started"]
	assert 0 <= first["uptime_seconds"] <= s["uptime_seconds"], (first, s)
	assert b"kpackfs" in open("/proc/%d/cmdline" % s["pid"], "rb").read() and all(isinstance(p, str) for p in s["sandbox"])
	# a read that has to wait behind the decode: of another entry, by the only decoder
	samples = promcheck.check("mnt/.kpackfs/metrics")
	s = mount.stats()
	plain = {name: value for name, labels, value in samples if not labels}
	for metric, key in (("archives", "archives"), ("entries", "entries"), ("files", "files"), ("reads_total", "reads"),
	                    ("served_bytes_total", "bytes_served"), ("cache_hits_total", "cache_hits"), ("reloads_total", "reloads"),
	                    ("cache_misses_total", "cache_misses"), ("cache_budget_bytes", "cache_budget")):
	    assert plain["kpackfs_" + metric] == s[key], (metric, plain, s)
	def by(metric, label):
	    return {l[label]: v for n, l, v in samples if n == "kpackfs_" + metric}
	assert by("decode_errors_total", "reason") == s["errors_by_reason"]
	assert by("cache_evictions_total", "reason").keys() == s["evictions_by_reason"].keys()
	assert by("decode_duration_seconds_bucket", "le").keys() == s["decode_seconds"]["buckets"].keys()
	assert plain["kpackfs_decode_duration_seconds_count"] == plain["kpackfs_decodes_total"] >= 10
	assert 1100006 <= plain["kpackfs_decoded_bytes_total"] <= 4100007
	assert ["kpackfs_archive_entries", {"archive": os.path.abspath("src/some.kpack")}, 6.0] in samples
	assert len(by("archive_entries", "archive")) == 3
	held.close()
	mount.unmount()
	END
}

@test "archives has a line for each; attributes say what the archive says of an entry" {
	some <<-'END'
	import readkpack
	mount = Mount("-o", "xattr")
	a = readkpack.Archive("src/some.kpack")
	a.read_all_frames()
	assert text("mnt/.kpackfs/missing") == ""
	def plain(v):
	    if isinstance(v, bytes):
	        return v.hex()
	    if isinstance(v, dict):
	        return {k: plain(x) for k, x in v.items()}
	    return [plain(x) for x in v] if isinstance(v, list) else v
	st = os.stat("src/some.kpack")
	assert text("mnt/.kpackfs/archives") == "%s\tzstd-per-kernel\tgeneric,gfx1030,gfx90a:xnack+\t6\t%d\t%d\t%d.%09d\n" % (
	    os.path.abspath("src/some.kpack"), st.st_size, st.st_ino, st.st_mtime_ns // 10**9, st.st_mtime_ns % 10**9)
	assert "program    " + start("-V").split("\n")[0] + ", process " in text("mnt/.kpackfs/status")
	seen = set()
	for path in (p for p in find() if os.path.isfile("mnt/" + p)):
	    have = {n[11:]: os.getxattr("mnt/" + path, n).decode() for n in os.listxattr("mnt/" + path)}
	    # the facts are those of the first entry with this content
	    e = dict(((k, arch), e) for k, arch, e in a.entries())[have["key"], have["arch"]]
	    meta = e.get("metadata") or {}
	    assert a.get(e) == open("mnt/" + path, "rb").read(), path
	    assert json.loads(have.pop("metadata", "null")) == plain(e.get("metadata"))
	    want = {"archive": os.path.abspath("src/some.kpack"), "key": have["key"], "arch": have["arch"], "type": e["type"],
	            "ordinal": e["ordinal"], "size": len(a.get(e)), "compressed_size": a.blobs[e["ordinal"]][1],
	            "scheme": "zstd-per-kernel", "chunk": meta.get("chunk"), "xxh3": plain(meta.get("xxh3"))}
	    assert have == {n: str(v) for n, v in want.items() if v is not None}, (path, have)
	    seen.add(have["key"])
	assert len(seen) > 3
	f = "mnt/share/x.db"
	for name in ("nope", "", "path"):
	    fails(errno.ENODATA, os.getxattr, f, "user.kpack." + name)
	for name in ("user.kpack", "user.x", "trusted.x", "security.capability", "security.selinux"):
	    fails(errno.ENODATA, os.getxattr, f, name)
	for other in ("mnt", "mnt/toc", "mnt/share", "mnt/.kpackfs", "mnt/.kpackfs/stats"):
	    assert os.listxattr(other) == [], other
	    fails(errno.ENODATA, os.getxattr, other, "user.kpack.key")
	fails(errno.EROFS, os.setxattr, f, "user.kpack.key", b"x")
	fails(errno.EROFS, os.removexattr, f, "user.kpack.key")
	buf, path, name = ctypes.create_string_buffer(1000), f.encode(), b"user.kpack.key"
	assert libc.getxattr(path, name, None, 0) == len("share/x.db")
	assert libc.getxattr(path, name, buf, 10) == 10 and buf.raw[:10] == b"share/x.db"
	assert libc.getxattr(path, name, buf, 9) == -1 and ctypes.get_errno() == errno.ERANGE
	size = libc.listxattr(path, None, 0)
	assert libc.listxattr(path, buf, 5) == -1 and ctypes.get_errno() == errno.ERANGE
	assert libc.listxattr(path, buf, size) == size and buf.raw[:size].endswith(b"\0")
	# metadata too long for an attribute is none
	a = mkarchive.Archive()
	a.add("x#0", "gfx1100", b"x", note="n" * 70000)
	a.write("src/x.kpack")
	mount.barrier()
	assert os.listxattr("mnt/toc/x/gfx1100.hsaco").count("user.kpack.xxh3") == 1
	fails(errno.ENODATA, os.getxattr, "mnt/toc/x/gfx1100.hsaco", "user.kpack.metadata")
	assert "user.kpack.metadata" not in os.listxattr("mnt/toc/x/gfx1100.hsaco")
	mount.unmount()
	# only if the option asks for them
	mount = Mount()
	fails(errno.EOPNOTSUPP, os.getxattr, f, "user.kpack.key")
	mount.unmount()
	END
}

@test "missing says why, for names, refused entries and archives" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "x#0", "arch": "gfx1100", "data": "one"},
	 {"key": "../y#0", "arch": "gfx1100", "data": "two"},
	 {"key": "z#0", "arch": "gfx1100", "data": "three", "ordinal": 99},
	 {"key": "w#0", "arch": "gfx1100", "data": "four", "metadata": {"path": "toc/w"}},
	 {"key": "e#0", "arch": "gfx1100", "data": "five", "metadata": {"path": ""}},
	 {"key": "n#0", "arch": "gfx1100", "data": "six", "metadata": {"path": "/f\n"}},
	 {"key": "g", "arch": "gfx/1100", "data": "seven"},
	 {"key": "d/below", "arch": "gfx1100", "data": "eight", "metadata": {"path": "d/below"}},
	 {"key": "d", "arch": "gfx1100", "data": "nine", "metadata": {"path": "d"}}]}
	END
	echo '{"entries": [{"key": "x#0", "arch": "gfx1100", "data": "other"}]}' | make_archive src/b.kpack
	head -c 100 src/a.kpack >src/c.kpack
	mounts <<-'END'
	deep = ["%04x/" % i + "d/" * 60 for i in range(400)]
	a = mkarchive.Archive(scheme="none")
	for d in deep:
	    a.add(d + "k", "gfx1030", b"x", path=d + "f")
	a.write("src/deep.kpack")
	mount = Mount()
	def rows_of(name):
	    return [l.replace(os.path.abspath("src") + "/", "") for l in text("mnt/.kpackfs/" + name).splitlines()]
	missing = [l for l in rows_of("missing") if "too many directories" not in l]
	assert sorted(l for l in missing if "refused" not in l) == sorted((
	    "../y#0\ta.kpack: the key is no path: it has a component . or ..",
	    "toc/w\ta.kpack: toc and .kpackfs are the mount's own",
	    "toc/x/gfx1100.hsaco\tb.kpack: other content of a.kpack comes first: x#0 gfx1100",
	    "e#0\ta.kpack: metadata.path is empty", "d\ta.kpack: a directory has this name",
	    "/f\\012\ta.kpack: it is no path inside the mount: it is not UTF-8 without control bytes",
	    "g\ta.kpack: architecture and type give no file name")), missing
	refused = sorted(l for l in missing if "refused" in l)
	assert len(refused) == 2 and refused[0].startswith("c.kpack\trefused: ") and \
	    refused[1].startswith("toc/z/gfx1100.*\ta.kpack: refused: ") and "ordinal 99" in refused[1], refused
	# an archive may make only so many directories
	cut = [l.split("\t")[0] for l in rows_of("missing") if l.endswith("\tpaths before it have too many directories")]
	have = [d + "f" for d in deep if os.path.exists("mnt/" + d + "f")]
	assert cut and have and set(cut) >= {d + "f" for d in deep} - set(have) and not set(cut) & set(have)
	for path in ("toc/y", "toc/z"):
	    assert not os.path.exists("mnt/" + path)
	assert text("mnt/toc/x/gfx1100.hsaco") == "one"
	mount.unmount()
	# the GPUs that were looked for, and that there are none; no line of the log controls a terminal
	os.makedirs("topology/nodes")
	for topology in ("topology", "/none\033[31m\r\u202e\u009b\udcff"):
	    mount = Mount("-o", "arch=auto,topology=" + topology)
	    assert "toc/x/gfx1100.hsaco\tarchitecture gfx1100 is not for arch=auto, which found no GPU" in rows_of("missing")
	    mount.unmount()
	log = text(mount.log)
	assert "none\\033[31m\\015\\342\\200\\256\\302\\233\\377: arch=auto finds no GPU" in log
	assert all(" " <= c <= "~" or c == "\n" for c in log)
	END
}

@test ".kpackfs lists its files, and nothing walks into it; texts follow a reload, and an open one stays" {
	some <<-'END'
	import re
	mount = Mount()
	assert sorted(os.listdir("mnt/.kpackfs")) == "archives barrier metrics missing stats status".split()
	assert ".kpackfs" not in os.listdir("mnt")
	# a program that looks first and opens then sees one file
	for e in os.scandir("mnt/.kpackfs"):
	    with open(e.path) as f:
	        assert e.inode() == os.stat(e.path).st_ino == os.fstat(f.fileno()).st_ino and e.is_file()
	subprocess.run("cp -a mnt/.kpackfs told && mkdir more && tar -cf - -C mnt/.kpackfs --exclude barrier . | tar -xf - -C more && cmp told/archives more/archives && cp -a mnt copy && cmp told/archives mnt/.kpackfs/archives", shell=True, check=True)
	assert not os.path.exists("copy/.kpackfs")
	old = {n: text("mnt/.kpackfs/" + n) for n in ("archives", "missing")}
	held = {n: open("mnt/.kpackfs/" + n) for n in old}
	x = open("mnt/share/x.db", "rb")
	archive("src/some.kpack", {"new#0@gfx1030": noise(300000, 9)})
	mount.barrier()
	assert text("mnt/.kpackfs/archives") != old["archives"]
	assert all(f.read() == old[n] for n, f in held.items()) and x.read() == noise(1000001, 3)
	s = mount.stats()
	assert (s["edition"], s["entries"], s["files"], s["retired_archives"], s["reloads"]) == (2, 1, 1, 1, 1), s
	assert s["retired_inodes"] >= 1 and re.match(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ$", s["last_reload"])
	assert "\nkpackfs_reloads_total 1\n" in text("mnt/.kpackfs/metrics")
	os.unlink("src/some.kpack")
	mount.barrier()
	assert text("mnt/.kpackfs/archives") == "" and mount.stats()["entries"] == 0
	x.close(), [f.close() for f in held.values()]
	mount.unmount()
	END
}

# The server's own memory is that without what is mapped from files.
# bats test_tags=slow
@test "a text of 100,000 lines is made once for all readers, and goes with its edition" {
	mounts <<-'END'
	a = mkarchive.Archive(scheme="none")
	for i in range(50000):
	    a.add("lib/k%05d#0" % i, "gfx1100", b"%02d" % (i % 100), path="share/d%02d/f%05d" % (i % 100, i), ordinal=None if i < 100 else i % 100, hash=False)
	a.write("src/a.kpack")
	archive("src/b.kpack", {"b#0@gfx942": "b"})
	mount = Mount("-s", "-o", "arch=gfx942")
	def memory():
	    return int(text("/proc/%d/status" % mount.server).split("RssAnon:")[1].split()[0])
	before = memory()
	held = open("mnt/.kpackfs/missing")
	lines = held.read()
	assert lines.count("\n") == 100000 and "architecture gfx1100 is not for arch=gfx942" in lines
	with open("mnt/.kpackfs/missing") as again:
	    assert os.fstat(again.fileno()).st_mtime_ns == os.fstat(held.fileno()).st_mtime_ns
	assert memory() <= before + 1.5 * len(lines) / 1024 + 4000, (before, memory())
	held.close()
	os.unlink("src/a.kpack")
	mount.barrier()
	assert text("mnt/.kpackfs/missing") == "" and memory() <= before + 6000, (before, memory())
	mount.unmount()
	END
}
