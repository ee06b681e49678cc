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

@test "entries.jsonl, checksums, archives: a line for each, with what the archive says" {
	some <<-'END'
	import hashlib, readkpack
	os.mkdir("none")
	mount = Mount("-o", "xattr")
	a = readkpack.Archive("src/some.kpack")
	a.read_all_frames()
	known = {(k, arch): e for k, arch, e in a.entries()}
	lines = rows("mnt/.kpackfs/entries.jsonl")
	shown = [p for p in find() if os.path.isfile("mnt/" + p)]
	assert [l["path"] for l in lines] == sorted(shown, key=str.encode), lines
	assert text("mnt/.kpackfs/missing") == text("mnt/.kpackfs/conflicts") == ""
	def plain(v):
	    if isinstance(v, bytes):
	        return v.hex()
	    if isinstance(v, dict):
	        return {k: plain(x) for k, x in v.items()}
	    return [plain(x) for x in v] if isinstance(v, list) else v
	sums = b""
	for l in lines:
	    e = known[l["key"], l["arch"]]
	    meta, data = e.get("metadata"), open("mnt/" + l["path"], "rb").read()
	    want = {"path": l["path"], "archive": os.path.abspath("src/some.kpack"), "key": l["key"], "arch": l["arch"],
	            "type": e["type"], "ordinal": e["ordinal"], "size": len(data), "compressed_size": a.blobs[e["ordinal"]][1],
	            "scheme": "zstd-per-kernel", "chunk": (meta or {}).get("chunk"), "xxh3": plain((meta or {}).get("xxh3")), "metadata": plain(meta)}
	    assert l == want and data == a.get(e), (l, want)
	    # the path is the entry's own, not that of another with the same content
	    assert l["path"] == (meta or {}).get("path") or l["path"].startswith("toc/" + l["key"].split("#")[0])
	    name = l["path"].encode().replace(b"\\", b"\\\\")
	    sums += (b"\\" if b"\\" in name else b"") + hashlib.sha256(data).hexdigest().encode() + b"  " + name + b"\n"
	assert open("mnt/.kpackfs/checksums", "rb").read() == sums and os.path.getsize("mnt/.kpackfs/checksums") == len(sums)
	st = os.stat("src/some.kpack")
	assert text("mnt/.kpackfs/archives") == "%s\tzstd-per-kernel\tgeneric,gfx1030,gfx90a:xnack+\t6\t%d\t%d\t%d.%09d\n" % (
	    os.path.abspath("src/some.kpack"), st.st_size, st.st_ino, st.st_mtime_ns // 10**9, st.st_mtime_ns % 10**9)
	assert text("mnt/.kpackfs/version") == start("-V").split("\n")[0] + "\n"
	# extended attributes say the same
	shared = {l["path"] for l in lines if l["key"] == "lib/libc.so#0"}
	for l in lines:
	    have = {n: os.getxattr("mnt/" + l["path"], n) for n in os.listxattr("mnt/" + l["path"])}
	    if l["path"] in shared:  # the first entry of its content is another one
	        assert have["user.kpack.key"] == b'lib/lib"b\\.so#0', have
	        continue
	    assert json.loads(have.pop("user.kpack.metadata", b"null")) == l.pop("metadata")
	    assert have == {"user.kpack." + n: str(v).encode() for n, v in l.items() if n != "path" and v is not None}
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
	assert [len(r["metadata"]["note"]) for r in rows("mnt/.kpackfs/entries.jsonl") if r["key"] == "x#0"] == [70000]
	mount.unmount()
	# only if the option asks for them
	mount = Mount()
	fails(errno.EOPNOTSUPP, os.getxattr, f, "user.kpack.key")
	mount.unmount()
	END
}

@test "missing and conflicts say why, for names, refused entries and archives" {
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
	assert "toc/x/gfx1100.hsaco: a.kpack comes first; other content of b.kpack is not shown" in rows_of("conflicts")
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

@test "one content is hashed once, and nothing that nobody reads; what cannot be read has a sum that nothing has" {
	mounts <<-'END'
	entries = {"k%04d#0" % i: noise(5000, i) for i in range(1000)}
	entries.update(("l%02d#0" % i, entries["k0999#0"]) for i in range(50))
	archive("src/a.kpack", entries)
	a = mkarchive.Archive()
	a.add("bad#0", "gfx1100", b"bad", xxh3=bytes(16))
	a.write("src/b.kpack")
	mount = Mount("-o", "no_ahead")
	size = os.path.getsize("mnt/.kpackfs/checksums")
	assert mount.stats()["decodes"] == 0
	with open("mnt/.kpackfs/checksums", "rb", buffering=0) as f:
	    assert f.read(100)[64:88] == b"  toc/bad/gfx1100.hsaco\n"
	    # at most what the kernel reads ahead
	    few = mount.stats()["decodes"]
	    assert 1 <= few < 900, few
	sums = text("mnt/.kpackfs/checksums").splitlines()
	assert mount.stats()["decodes"] <= 1001 + few and len("\n".join(sums)) + 1 == size
	assert sums[0] == "0" * 64 + "  toc/bad/gfx1100.hsaco"
	assert len({l[:64] for l in sums[1:]}) == 1000 and len({l[:64] for l in sums[-51:]}) == 1
	subprocess.run(["sha256sum", "--quiet", "-c"], input="\n".join(sums[1:]).encode(), cwd="mnt", check=True)
	mount.unmount()
	END
}

@test "a reader of checksums can be killed, and the mount taken away; readers at once share one text" {
	some <<-'END'
	archive("src/a.kpack", {"a#0": noise(20000000, 1), "b#0": noise(20000000, 2), "c#0": "c"})
	mount = Mount("-o", "cache_size=8m")
	def reader():
	    return subprocess.Popen(["cat", "mnt/.kpackfs/checksums"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
	one = reader()
	# a file that is decoded by the thread that reads it, while the sums are under way
	assert text("mnt/toc/c/gfx1100.hsaco") == "c"
	one.kill()
	one.wait()
	assert text("mnt/toc/c/gfx1100.hsaco") == "c"
	one = reader()
	subprocess.run(["fusermount3", "-uz", "mnt"], check=True)
	one.kill()
	one.wait()
	assert mount.wait() == 0
	os.unlink("src/a.kpack")
	mount = Mount()
	readers = [subprocess.Popen(["cat", "mnt/.kpackfs/" + n], stdout=subprocess.PIPE) for n in ("entries.jsonl", "checksums") * 8]
	said = [r.communicate()[0] for r in readers]
	assert len(set(said)) == 2 and all(said) and said[0] != said[1]
	mount.unmount()
	END
}

@test ".kpackfs lists its files, and nothing walks into it; texts follow a reload, and an open one stays" {
	some <<-'END'
	import re
	mount = Mount()
	assert sorted(os.listdir("mnt/.kpackfs")) == "arches archives barrier checksums conflicts entries.jsonl metrics missing stats status version".split()
	assert ".kpackfs" not in os.listdir("mnt")
	# a program that looks first and opens then sees one file
	for e in os.scandir("mnt/.kpackfs"):
	    with open(e.path) as f:
	        assert e.inode() == os.stat(e.path).st_ino == os.fstat(f.fileno()).st_ino and e.is_file()
	subprocess.run("cp -a mnt/.kpackfs told && mkdir more && tar -cf - -C mnt/.kpackfs --exclude barrier . | tar -xf - -C more && cmp told/checksums more/checksums && cp -a mnt copy && cmp told/entries.jsonl mnt/.kpackfs/entries.jsonl", shell=True, check=True)
	assert not os.path.exists("copy/.kpackfs")
	old = {n: text("mnt/.kpackfs/" + n) for n in ("entries.jsonl", "checksums")}
	held = {n: open("mnt/.kpackfs/" + n) for n in old}
	x = open("mnt/share/x.db", "rb")
	archive("src/some.kpack", {"new#0@gfx1030": noise(300000, 9)})
	mount.barrier()
	assert [r["path"] for r in rows("mnt/.kpackfs/entries.jsonl")] == ["toc/new/gfx1030.hsaco"]
	assert all(f.read() == old[n] for n, f in held.items()) and x.read() == noise(1000001, 3)
	s = mount.stats()
	assert (s["edition"], s["entries"], s["files"], s["retired_archives"], s["reloads"]) == (2, 1, 1, 1, 1), s
	assert s["retired_inodes"] >= 1 and re.match(r"20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ$", s["last_reload"])
	assert "\nkpackfs_reloads_total 1\n" in text("mnt/.kpackfs/metrics")
	os.unlink("src/some.kpack")
	mount.barrier()
	assert text("mnt/.kpackfs/entries.jsonl") == text("mnt/.kpackfs/checksums") == "" and mount.stats()["entries"] == 0
	x.close(), [f.close() for f in held.values()]
	mount.unmount()
	END
}

# The server's own memory is that without what is mapped from files.
# bats test_tags=slow
@test "the lines of 100,000 paths exist while they are read, and not after" {
	mounts <<-'END'
	a = mkarchive.Archive(scheme="none")
	for i in range(50000):
	    a.add("lib/k%05d#0" % i, "gfx1100", b"%02d" % (i % 100), path="share/d%02d/f%05d" % (i % 100, i), ordinal=None if i < 100 else i % 100, hash=False)
	a.write("src/a.kpack")
	mount = Mount("-s")
	def memory():
	    return int(text("/proc/%d/status" % mount.server).split("RssAnon:")[1].split()[0])
	before = memory()
	lines = text("mnt/.kpackfs/entries.jsonl")
	assert lines.count("\n") == 100000 and json.loads(lines.splitlines()[-1])["path"] == "toc/lib/k49999/gfx1100.hsaco"
	assert text("mnt/.kpackfs/missing") == ""
	# one thread hears of the end of a text before the next question
	text("mnt/.kpackfs/version")
	assert memory() <= before + 6000 < before + len(lines) / 1024, (before, memory())
	sums = text("mnt/.kpackfs/checksums")
	assert sums.count("\n") == 100000
	text("mnt/.kpackfs/version")
	assert memory() <= before + 16000, (before, memory())
	mount.unmount()
	END
}
