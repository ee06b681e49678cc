#!/usr/bin/env bats
# What a mount reports about itself: the files of .kpackfs, and extended attributes.

bats_require_minimum_version 1.5.0

load mounting

tools=$BATS_TEST_DIRNAME

m() { kpackfs "$@" "$T/mnt"; }

stat_of() { # KEY: a number of .kpackfs/stats
	py "$T/mnt/.kpackfs/stats" "$1" <<-'END'
	import json, sys
	print(json.load(open(sys.argv[1]))[sys.argv[2]])
	END
}

# Names of one content, a chunked file, names with what JSON and sha256sum escape.
some='{"frame_index": true, "entries": [
 {"key": "lib/liba.so#0", "arch": "gfx1030", "data": "hello", "metadata": {"xxh3": true, "target": "hip"}},
 {"key": "lib/liba.so#1", "arch": "gfx90a:xnack+", "data": {"size": 100000, "seed": 1}},
 {"key": "lib/lib\"b\\.so#0", "arch": "gfx1030", "data": {"size": 3000001, "seed": 2}},
 {"key": "lib/libc.so#0", "arch": "gfx1030", "same_as": 2, "metadata": {"path": "ü/same", "list": [1, {"a": null}]}},
 {"key": "lib/libd.so#0", "arch": "gfx1030", "data": ""},
 {"key": "share/x.db", "arch": "generic", "type": "db", "data": {"size": 1000001, "seed": 3},
  "chunk": 131072, "metadata": {"path": "share/x.db", "mode": 493, "xxh3": true}}]}'

mount_some() {
	echo "$some" | make_archive src/some.kpack
	m "$@" "$T/src"
}

@test "stats are one JSON object" {
	mount_some
	cat mnt/share/x.db mnt/toc/lib/liba.so/* >/dev/null
	# the last bytes are served before their decode ends
	decoded() { [ "$(stat_of bytes_decoded)" -ge 1100006 ]; }
	eventually decoded
	py mnt/.kpackfs/stats "$(find mnt -type d | wc -l)" <<-'END'
	import datetime, json, os, sys
	def now():
	    return datetime.datetime.now(datetime.timezone.utc)
	before, text, after = now(), open(sys.argv[1]).read(), now()
	assert text.endswith("}\n") and text.count("\n") == 1
	s = json.loads(text)
	want = {"archives": 1, "refused_archives": 0, "entries": 6, "files": 5, "directories": int(sys.argv[2]),
	        "errors": 0, "reloads": 0, "edition": 1, "retired_inodes": 0, "retired_archives": 0,
	        "last_reload": None}
	assert {k: s[k] for k in want} == want, s
	assert s["bytes_served"] >= 1100006 and s["bytes_decoded"] >= 1100006
	assert s["cache_hits"] + s["cache_misses"] == s["reads"] and s["cache_misses"] >= 3
	assert s["evictions"] == sum(s["evictions_by_reason"].values())
	assert s["errors"] == sum(s["errors_by_reason"].values())
	assert 4 << 20 <= s["cache_budget"] <= 256 << 20 and s["cache_bytes_most"] >= 100000
	times = s["decode_seconds"]
	assert times["count"] == s["decodes"] == times["buckets"]["+Inf"] and times["sum"] > 0
	assert list(times["buckets"].values()) == sorted(times["buckets"].values())
	assert s["decodes"] >= 10 and s["reads"] >= 3 and s["cache_bytes"] >= 0
	began = datetime.datetime.fromisoformat(s["started"].replace("Z", "+00:00"))
	least, most = (before - began).total_seconds() - 3, (after - began).total_seconds() + 3
	assert 0 <= s["uptime_seconds"] and least < s["uptime_seconds"] < most, (least, most, s)
	assert b"kpackfs" in open(f"/proc/{s['pid']}/cmdline", "rb").read()
	assert all(isinstance(part, str) for part in s["sandbox"])
	END
}

@test "metrics are what Prometheus takes, and agree with stats" {
	mount_some
	cat mnt/share/x.db mnt/toc/lib/liba.so/* >/dev/null
	# the last bytes are served before their decode ends
	decoded() { [ "$(stat_of bytes_decoded)" -ge 1100006 ]; }
	eventually decoded
	# nothing may be counted between the two
	same_stats() {
		cp mnt/.kpackfs/stats stats
		$python "$tools/promcheck.py" mnt/.kpackfs/metrics >samples
		py stats mnt/.kpackfs/stats <<-'END'
		import json, sys
		a, b = (json.load(open(path)) for path in sys.argv[1:])
		sys.exit(any(a[key] != b[key] for key in a if key != "uptime_seconds"))
		END
	}
	eventually same_stats
	py samples stats "$T/src/some.kpack" <<-'END'
	import json, sys
	samples = [json.loads(line) for line in open(sys.argv[1])]
	plain = {name: value for name, labels, value in samples if not labels}
	s = json.load(open(sys.argv[2]))
	for metric, key in (("archives", "archives"), ("entries", "entries"), ("files", "files"),
	                    ("reads_total", "reads"), ("served_bytes_total", "bytes_served"),
	                    ("decodes_total", "decodes"), ("decoded_bytes_total", "bytes_decoded"),
	                    ("reloads_total", "reloads"), ("cache_hits_total", "cache_hits"),
	                    ("cache_misses_total", "cache_misses"), ("cache_budget_bytes", "cache_budget"),
	                    ("decode_duration_seconds_count", "decodes")):
	    assert plain["kpackfs_" + metric] == s[key], (metric, plain, s)
	def by(metric, label):
	    return {l[label]: v for n, l, v in samples if n == "kpackfs_" + metric}
	assert by("decode_errors_total", "reason") == s["errors_by_reason"]
	assert by("cache_evictions_total", "reason") == s["evictions_by_reason"]
	assert by("decode_duration_seconds_bucket", "le") == s["decode_seconds"]["buckets"]
	assert ["kpackfs_archive_entries", {"archive": sys.argv[3]}, 6.0] in samples
	END
}

@test "archives of any name, given twice, keep the metrics valid" {
	echo "$some" | make_archive 'src/a"b\c.kpack'
	cp 'src/a"b\c.kpack' "$(printf 'src/new\nline\xff.kpack')"
	m "$T/src" "$T/src" 2>/dev/null
	$python "$tools/promcheck.py" mnt/.kpackfs/metrics >samples
	[ "$(grep -c '"kpackfs_archive_entries"' samples)" = 2 ]
	py mnt/.kpackfs/stats mnt/.kpackfs/entries.jsonl <<-'END'
	import json, sys
	assert json.load(open(sys.argv[1]))["archives"] == 4
	for line in open(sys.argv[2], encoding="utf-8"):
	    json.loads(line)
	END
}

@test "entries.jsonl has a line for each path, with what the archive says" {
	mount_some
	(cd mnt && find . -type f -printf '%P\n') | LC_ALL=C sort >shown
	py mnt src/some.kpack shown <<-'END'
	import json, os, struct, sys
	import readkpack, mkarchive
	archive = readkpack.Archive(sys.argv[2])
	archive.read_all_frames()
	known = {(k, a): e for k, a, e in archive.entries()}
	lines = [json.loads(l) for l in open(sys.argv[1] + "/.kpackfs/entries.jsonl", encoding="utf-8")]
	shown = open(sys.argv[3], encoding="utf-8").read().splitlines()
	assert [l["path"] for l in lines] == sorted(shown, key=str.encode), lines
	def plain(v):
	    if isinstance(v, bytes):
	        return v.hex()
	    if isinstance(v, dict):
	        return {k: plain(x) for k, x in v.items()}
	    return [plain(x) for x in v] if isinstance(v, list) else v
	for l in lines:
	    e = known[l["key"], l["arch"]]
	    meta = e.get("metadata")
	    assert l["archive"] == os.path.abspath(sys.argv[2])
	    assert l["type"] == e["type"] and l["ordinal"] == e["ordinal"] and l["size"] == e["original_size"]
	    assert l["compressed_size"] == archive.blobs[e["ordinal"]][1]
	    assert l["scheme"] == "zstd-per-kernel"
	    assert l["chunk"] == (meta or {}).get("chunk")
	    assert l["xxh3"] == plain((meta or {}).get("xxh3"))
	    assert l["metadata"] == plain(meta)
	    data = open(sys.argv[1] + "/" + l["path"], "rb").read()
	    assert data == archive.get(e)
	    assert l["xxh3"] is None or l["xxh3"] == mkarchive.xxh3(data).hex()
	    # the path is the entry's own, not that of another with the same content
	    assert l["path"] == (meta or {}).get("path") or l["path"].startswith("toc/" + l["key"].split("#")[0])
	END
	[ "$(jq -r 'select(.path == "ü/same").key' mnt/.kpackfs/entries.jsonl)" = "lib/libc.so#0" ]
	[ "$(grep -c '"arch":"gfx90a:xnack+"' mnt/.kpackfs/entries.jsonl)" = 1 ]
}

@test "missing says why, for names, conflicts, refused entries and archives" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "x#0", "arch": "gfx1100", "data": "one"},
	 {"key": "../y#0", "arch": "gfx1100", "data": "two"},
	 {"key": "z#0", "arch": "gfx1100", "data": "three", "ordinal": 99},
	 {"key": "w#0", "arch": "gfx1100", "data": "four", "metadata": {"path": "toc/w"}}]}
	END
	echo '{"entries": [{"key": "x#0", "arch": "gfx1100", "data": "other"}]}' | make_archive src/b.kpack
	head -c 100 src/a.kpack >src/c.kpack
	m "$T/src" 2>/dev/null
	sort mnt/.kpackfs/missing >said
	sed "s|$T/src/||g" said >short
	cat short
	grep -qxF "$(printf '../y#0\ta.kpack: the key is no path: it has a component . or ..')" short
	grep -q "^toc/z/gfx1100\.\*	a.kpack: refused: .*ordinal 99" short
	grep -qxF "$(printf 'toc/w\ta.kpack: toc and .kpackfs are the mount'"'"'s own')" short
	grep -qxF "$(printf 'toc/x/gfx1100.hsaco\tb.kpack: other content of a.kpack comes first: x#0 gfx1100')" short
	grep -q "^c.kpack	refused: " short
	[ "$(wc -l <short)" = 5 ]
	# and nothing of it is there
	for path in toc/y toc/z; do [ ! -e "mnt/$path" ]; done
	[ "$(cat mnt/toc/x/gfx1100.hsaco)" = one ]
}

@test "each path of the whole tree is shown for a GPU and a directory, or missing" {
	mount_some
	(cd mnt && find . -type f -printf '%P\n') | LC_ALL=C sort >all
	[ ! -s mnt/.kpackfs/missing ]
	unmount
	m -o arch=gfx1030,subdir=toc/lib "$T/src" 2>/dev/null
	(cd mnt && find . -type f -printf 'toc/lib/%P\n') >some
	jq -r '"toc/lib/" + .path' mnt/.kpackfs/entries.jsonl | LC_ALL=C sort | diff <(LC_ALL=C sort some) -
	# names are escaped for terminals there
	cut -f 1 mnt/.kpackfs/missing | sed 's/\\134/\\/g' | LC_ALL=C sort -m - <(LC_ALL=C sort some) | LC_ALL=C sort | diff all -
	grep -q "^toc/lib/liba.so/gfx90a:xnack+#1.hsaco	architecture gfx90a:xnack+ is not for arch=gfx1030$" mnt/.kpackfs/missing
	grep -q "^share/x.db	not below subdir=toc/lib$" mnt/.kpackfs/missing
}

@test "checksums are what sha256sum takes, and right" {
	mount_some
	size=$(stat -c %s mnt/.kpackfs/checksums)
	[ "$(stat_of decodes)" = 0 ]
	(cd mnt && sha256sum -c --strict .kpackfs/checksums) >said
	[ "$(grep -c ': OK$' said)" = "$(find mnt -type f | wc -l)" ]
	[ "$(wc -c <mnt/.kpackfs/checksums)" = "$size" ]
	(cd mnt && find . -type f -printf '%P\0' | xargs -0 sha256sum) | LC_ALL=C sort >want
	LC_ALL=C sort mnt/.kpackfs/checksums | diff want -
}

@test "one content is hashed once, and nothing that nobody reads" {
	py d.json <<-'END'
	import json, sys
	entries = [{"key": f"k{i:04}#0", "arch": "gfx1100", "data": {"size": 5000, "seed": i}} for i in range(1000)]
	entries += [{"key": f"l{i:04}#0", "arch": "gfx1100", "same_as": 999} for i in range(50)]
	json.dump({"entries": entries}, open(sys.argv[1], "w"))
	END
	make_archive src/a.kpack <d.json
	m "$T/src"
	exec 5<mnt/.kpackfs/checksums
	dd bs=100 count=1 status=none <&5 | grep -q '^[0-9a-f]\{64\}  toc/k0000/gfx1100.hsaco$'
	# at most what the kernel reads ahead
	few=$(stat_of decodes)
	[ "$few" -ge 1 ] && [ "$few" -lt 900 ]
	exec 5<&-
	cat mnt/.kpackfs/checksums >sums
	[ "$(stat_of decodes)" -le $((1000 + few)) ]
	(cd mnt && sha256sum --quiet -c ../sums)
	[ "$(cut -c -64 sums | sort -u | wc -l)" = 1000 ]
	[ "$(tail -n 51 sums | cut -c -64 | sort -u | wc -l)" = 1 ]
}

@test "what cannot be read has a checksum that nothing has" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "bad#0", "arch": "gfx1100", "data": {"size": 50000, "seed": 2}, "corrupt": true},
	 {"key": "good#0", "arch": "gfx1100", "data": "fine"}]}
	END
	m "$T/src"
	grep -qx '0\{64\}  toc/bad/gfx1100.hsaco' mnt/.kpackfs/checksums
	cd mnt
	run -1 sha256sum -c .kpackfs/checksums
	[[ $output == *"toc/good/gfx1100.hsaco: OK"* ]]
	[[ $output == *"toc/bad/gfx1100.hsaco: FAILED open or read"* ]]
	cd ..
}

@test "a reader of checksums can be killed, and the mount taken away" {
	make_archive src/a.kpack <<-'END'
	{"entries": [
	 {"key": "a#0", "arch": "gfx1100", "data": {"size": 60000000, "seed": 1}},
	 {"key": "b#0", "arch": "gfx1100", "data": {"size": 60000000, "seed": 2}},
	 {"key": "c#0", "arch": "gfx1100", "data": "c"}]}
	END
	m -o cache_size=8m "$T/src"
	cat mnt/.kpackfs/checksums >/dev/null & reader=$!
	for _ in $(seq 2400); do
		[ "$(stat_of reads)" = 0 ] || break
		read -rt 0.02 <> <(:) || :
	done
	[ "$(stat_of reads)" -gt 0 ]
	kill -9 "$reader" 2>/dev/null || : # it may have been quick
	wait "$reader" || :
	[ "$(cat mnt/toc/c/gfx1100.hsaco)" = c ]
	cat mnt/.kpackfs/checksums >/dev/null & reader=$!
	fusermount3 -uz mnt
	kill "$reader" 2>/dev/null || :
	wait "$reader" || :
	gone
}

@test ".kpackfs lists its files, and nothing else walks into it" {
	mount_some
	[ "$(ls mnt/.kpackfs | LC_ALL=C sort | tr '\n' ' ')" = "arches archives barrier checksums conflicts entries.jsonl metrics missing stats status version " ]
	# a program that looks first and opens then sees one file
	for name in $(ls mnt/.kpackfs); do
		[ -f "mnt/.kpackfs/$name" ]
		cp "mnt/.kpackfs/$name" .
		[ "$(stat -c %i "mnt/.kpackfs/$name")" = "$(ls -i mnt/.kpackfs | awk -v name="$name" '$2 == name { print $1 }')" ]
	done
	cp -a mnt/.kpackfs told
	tar -cf - -C mnt/.kpackfs . | tar -xf - -C told
	cmp told/entries.jsonl mnt/.kpackfs/entries.jsonl
	! ls -A mnt | grep kpackfs || false
	cp -a mnt copy
	[ ! -e copy/.kpackfs ]
	[ "$(grep -rl hello mnt)" = mnt/toc/lib/liba.so/gfx1030.hsaco ]
	! find mnt -name 'stats' | grep . || false
}

@test "users who may read the archives may read .kpackfs, and nobody else" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
	mount_some -o allow_other
	for name in $(ls mnt/.kpackfs); do nobody cat "mnt/.kpackfs/$name" >/dev/null; done
	(cd mnt && nobody sha256sum --quiet -c .kpackfs/checksums)
	unmount
	chmod 0600 src/some.kpack
	m -o allow_other "$T/src"
	run -1 nobody cat mnt/.kpackfs/entries.jsonl
	[[ $output == *"Permission denied"* ]]
}

@test "no line of the log controls a terminal" {
	make_archive src/a.kpack <<<'{"entries": [{"key": "a#0", "arch": "gfx942", "data": "x"}]}'
	strange=$'\e[31m\r\u202e\u009b\xff'
	kpackfs -f -o "arch=auto,topology=/none$strange" src mnt 2>log 3>&- &
	eventually mountpoint -q mnt
	fusermount3 -u mnt
	wait
	grep -qF 'none\033[31m\015\342\200\256\302\233\377: arch=auto finds no GPU' log
	! LC_ALL=C grep -q '[^ -~]' log || false
}

@test "readers at once share one text" {
	mount_some
	cat mnt/.kpackfs/entries.jsonl >want
	for i in $(seq 20); do cat mnt/.kpackfs/entries.jsonl >"have$i" & done
	for i in $(seq 5); do cat mnt/.kpackfs/checksums >"sums$i" & done
	wait
	for i in $(seq 20); do cmp want "have$i"; done
	for i in 2 3 4 5; do cmp sums1 "sums$i"; done
}

# The server's own memory in KiB, without what is mapped from files.
memory() { awk '/^RssAnon/ { print $2 }' "/proc/$(stat_of pid)/status"; }

# bats test_tags=slow
@test "the lines of 100,000 paths exist while they are read, and not after" {
	py src/a.kpack <<-'END'
	import sys, mkarchive
	a = mkarchive.Archive(scheme="none")
	for i in range(50000):
	    a.add(f"lib/k{i:05}#0", "gfx1100", b"%02d" % (i % 100), path=f"share/d{i % 100:02}/f{i:05}", ordinal=None if i < 100 else i % 100, hash=False)
	a.write(sys.argv[1])
	END
	m "$T/src"
	before=$(memory)
	[ "$(wc -l <mnt/.kpackfs/entries.jsonl)" = 100000 ]
	[ "$(tail -n 1 mnt/.kpackfs/entries.jsonl | jq -r .path)" = toc/lib/k49999/gfx1100.hsaco ]
	[ "$(wc -l <mnt/.kpackfs/checksums)" = 100000 ]
	[ ! -s mnt/.kpackfs/missing ]
	for _ in $(seq 2400); do
		[ "$(memory)" -gt $((before + 11264)) ] || return 0
		read -rt 0.1 <> <(:) || :
	done
	echo "KiB: $before, then $(memory)"
	return 1
}

@test "extended attributes exist when the option asks for them" {
	mount_some
	run -1 getfattr -n user.kpack.key mnt/share/x.db
	[[ $output == *"not supported"* ]]
	unmount
	mount_some -o xattr
	py mnt src/some.kpack <<-'END'
	import errno, json, os, sys
	os.chdir(sys.argv[1])
	lines = [json.loads(l) for l in open(".kpackfs/entries.jsonl", encoding="utf-8")]
	assert {"share/x.db", "toc/lib/liba.so/gfx1030.hsaco"} < {l["path"] for l in lines}
	shared = {l["path"] for l in lines if l["key"] == "lib/libc.so#0"}
	for l in lines:
	    have = {n: os.getxattr(l["path"], n) for n in os.listxattr(l["path"])}
	    if l["path"] in shared:
	        # the first entry of its content is another one
	        assert have["user.kpack.key"] == b'lib/lib"b\\.so#0', have
	        continue
	    for name, value in l.items():
	        if name == "path":
	            continue
	        got = have.pop("user.kpack." + name, None)
	        if value is None:
	            assert got is None, (l, name)
	        elif name == "metadata":
	            assert json.loads(got) == value
	        else:
	            assert got.decode() == str(value), (l, name, got)
	    assert not have, have
	def fails(code, call, *arguments):
	    try:
	        call(*arguments)
	    except OSError as e:
	        assert e.errno == code, (arguments, e)
	    else:
	        raise AssertionError(arguments)
	f = "share/x.db"
	for name in ("user.kpack.nope", "user.kpack.", "user.kpack", "user.x", "user.kpack.path",
	             "trusted.x", "security.capability", "security.selinux"):
	    fails(errno.ENODATA, os.getxattr, f, name)
	for other in (".", "toc", "share", ".kpackfs", ".kpackfs/stats"):
	    assert os.listxattr(other) == [], other
	    fails(errno.ENODATA, os.getxattr, other, "user.kpack.key")
	fails(errno.EROFS, os.setxattr, f, "user.kpack.key", b"x")
	fails(errno.EROFS, os.removexattr, f, "user.kpack.key")
	import ctypes
	libc = ctypes.CDLL(None, use_errno=True)
	buf = ctypes.create_string_buffer(100)
	path, name = f.encode(), b"user.kpack.key"
	assert libc.getxattr(path, name, None, 0) == len("share/x.db")
	assert libc.getxattr(path, name, buf, 10) == 10 and buf.raw[:10] == b"share/x.db"
	assert libc.getxattr(path, name, buf, 9) == -1 and ctypes.get_errno() == errno.ERANGE
	size = libc.listxattr(path, None, 0)
	assert libc.listxattr(path, buf, 5) == -1 and ctypes.get_errno() == errno.ERANGE
	big = ctypes.create_string_buffer(size)
	assert libc.listxattr(path, big, size) == size and big.raw.endswith(b"\0")
	END
	getfattr -d mnt/share/x.db | grep -qx 'user.kpack.type="db"'
	# nothing else is disturbed
	[ "$(ls -l mnt/share/x.db | cut -c -11)" = "-r-xr-xr-x " ]
	cp -a mnt copy
	diff -r mnt copy
}

@test "metadata too long for an attribute is none" {
	py src/a.kpack <<-'END'
	import sys, mkarchive
	a = mkarchive.Archive()
	a.add("x#0", "gfx1100", b"x", note="n" * 70000)
	a.write(sys.argv[1])
	END
	m -o xattr "$T/src"
	f=mnt/toc/x/gfx1100.hsaco
	run -1 getfattr -n user.kpack.metadata "$f"
	[[ $output == *"No such attribute"* ]]
	! getfattr "$f" | grep metadata || false
	getfattr -n user.kpack.xxh3 "$f"
	[ "$(jq -r .metadata.note mnt/.kpackfs/entries.jsonl | wc -c)" = 70001 ]
}

@test "the texts follow a reload, and an open one stays as it was" {
	mount_some
	cp mnt/.kpackfs/entries.jsonl old.jsonl
	cp mnt/.kpackfs/checksums old.sums
	exec 5<mnt/.kpackfs/entries.jsonl 6<mnt/.kpackfs/checksums 7<mnt/share/x.db
	echo '{"entries": [{"key": "new#0", "arch": "gfx1030", "data": {"size": 300000, "seed": 9}}]}' | make_archive new
	mv new src/some.kpack
	barrier
	[ "$(stat_of reloads)" = 1 ]
	[ "$(jq -r .path mnt/.kpackfs/entries.jsonl)" = toc/new/gfx1030.hsaco ]
	(cd mnt && sha256sum --quiet -c .kpackfs/checksums)
	cmp old.jsonl - <&5
	cmp old.sums - <&6
	[ "$(stat_of edition) $(stat_of entries) $(stat_of files)" = "2 1 1" ]
	[ "$(stat_of retired_archives)" = 1 ]
	[ "$(stat_of retired_inodes)" -ge 1 ]
	[[ $(stat_of last_reload) == 20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z ]]
	$python "$tools/promcheck.py" mnt/.kpackfs/metrics | grep -qxF '["kpackfs_reloads_total", {}, 1.0]'
	exec 5<&- 6<&- 7<&-
	rm src/some.kpack
	barrier
	[ "$(stat_of reloads)" = 2 ]
	[ ! -s mnt/.kpackfs/entries.jsonl ]
	[ ! -s mnt/.kpackfs/checksums ]
	[ "$(stat_of entries)" = 0 ]
}

@test "missing has the paths for which an archive may make no directories" {
	py >deep <<-'END'
	import json
	deep = ["%04x/" % i + "d/" * 60 for i in range(400)]
	print(json.dumps({"entries": [
	    {"key": d + "k", "arch": "gfx1030", "data": "x", "metadata": {"path": d + "f"}} for d in deep]}))
	END
	make_archive src/deep.kpack <deep
	mount_some
	[ "$(cat mnt/share/x.db | wc -c)" = 1000001 ]
	[ $(($(find mnt -type f -name f | wc -l) + $(grep -c '/f	paths before it have too many directories$' mnt/.kpackfs/missing))) = 400 ]
}

@test "missing names the GPUs that were looked for, and that there are none" {
	mkdir -p topology/nodes
	mount_some -o "arch=auto,topology=$T/topology" 2>/dev/null
	grep -q "^toc/lib/libd.so/gfx1030.hsaco	architecture gfx1030 is not for arch=auto, which found no GPU$" mnt/.kpackfs/missing
	! grep share/x.db mnt/.kpackfs/missing || false
}
