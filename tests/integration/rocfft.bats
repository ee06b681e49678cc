#!/usr/bin/env bats
# rocFFT's databases: recognised, refused, split, packed by row; and tables of kernel
# paths.  Python's sqlite3 gives the expected results.

# bats file_tags=single

load packing.bash

# A program on stdin that makes databases: cache(PATH, ROWS...), a row being
# (name, arch, hip_version, sum, code, timestamp), and paths(PATH, ROWS...).
makes() {
	cat >make.py <<-'END'
	import os, sqlite3, sys
	CACHE = """CREATE TABLE cache_v1 ( kernel_name TEXT NOT NULL, arch TEXT NOT NULL,
	 hip_version INTEGER NOT NULL, generator_sum BLOB NOT NULL, code BLOB NOT NULL,
	 timestamp INTEGER NOT NULL,
	 PRIMARY KEY (kernel_name, arch, hip_version, generator_sum) )"""
	PATHS = """CREATE TABLE kernels (arch TEXT, length INTEGER, precision TEXT,
	 kernel_path TEXT, factors TEXT, batch INTEGER)"""
	FFT = "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_unitstride_sbrr"

	def make(path, schema, table, rows, before=()):
	    if os.path.dirname(path):
	        os.makedirs(os.path.dirname(path), exist_ok=True)
	    db = sqlite3.connect(path)
	    for s in before:
	        db.execute(s)
	    for s in [schema] if isinstance(schema, str) else schema:
	        db.execute(s)
	    for r in rows:
	        db.execute("INSERT INTO %s VALUES (%s)" % (table, ",".join("?" * len(r))), r)
	    db.commit()
	    db.close()

	def cache(path, *rows, schema=CACHE, before=()):
	    make(path, schema, "cache_v1", rows, before)

	def paths(path, *rows, schema=PATHS):
	    make(path, schema, "kernels", rows)

	def put(path, data):
	    os.makedirs(os.path.dirname(path), exist_ok=True)
	    open(path, "wb").write(data)

	def row(name=FFT, arch="gfx90a", hip=1, sum=b"s" * 32, code=b"code", time=0):
	    return name, arch, hip, sum, code, time
	END
	cat >>make.py
	$python make.py
}

# The metadata of KEY for ARCH in the archives of out, sorted, as JSON; "-": no such entry.
facts() { # KEY ARCH
	py "$@" <<-'END'
	import glob, json, readkpack, sys
	for path in glob.glob("out/.kpack/*.kpack"):
	    e = readkpack.Archive(path).top["toc"].get(sys.argv[1], {}).get(sys.argv[2])
	    if e:
	        m = e["metadata"]
	        for skip in ("xxh3", "chunk", "path", "library", "container", "mode"):
	            m.pop(skip, None)
	        print(json.dumps(m, sort_keys=True, default=lambda b: b.hex()))
	        sys.exit()
	print("-")
	END
}

keys() { # of all archives of out: "key arch"
	for a in out/.kpack/*.kpack; do readkpack ls "$a"; done | cut -f 1,2 | tr '\t' ' ' | sort
}

# The bytes of KEY for ARCH.
bytes() { # KEY ARCH
	readkpack cat "out/.kpack/in_${3-$2}.kpack" "$1" "$2"
}

DB=lib/rocfft/rocfft_kernel_cache.db

@test "the database for all GPUs is packed whole, bit for bit, for every GPU" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache.db",
	      *(row(FFT + str(i), a, 7 + i % 2) for i in range(5) for a in ("gfx90a", "gfx1100")))
	END
	kpack pack in out 2>err >printed
	[ ! -s err ]
	[ "$(keys)" = "$DB generic" ]
	[ ! -e "out/$DB" ]
	bytes "$DB" generic | cmp - "in/$DB"
	[ "$(facts "$DB" generic)" = '{"hip_version": [7, 8], "kernel_count": 10, "role": "cache", "rows": {"gfx1100": 5, "gfx90a": 5}}' ]
}

@test "databases of single GPUs go to those, beside the library too" {
	makes <<-'END'
	for arch in "gfx90a", "gfx12-generic", "gfx90a:xnack+":
	    cache("in/lib/rocfft/rocfft_kernel_cache_%s.db" % arch, row(arch=arch))
	cache("in/lib64/rocfft_kernel_cache.db", row())
	cache("in/rocfft_kernel_cache_gfx1100.db", row(arch="gfx1100"))
	put("in/lib/rocfft/1.0.31/rocfft_rtc_helper", b"#!/bin/sh\n")
	put("in/lib/rocfft/rocfft_kernel_cache.db.txt", b"no database")
	END
	kpack pack in out 2>err >printed
	[ ! -s err ]
	diff - <(keys) <<-END
	lib/rocfft/rocfft_kernel_cache_gfx12-generic.db gfx12-generic
	lib/rocfft/rocfft_kernel_cache_gfx90a.db gfx90a
	lib/rocfft/rocfft_kernel_cache_gfx90a:xnack+.db gfx90a:xnack+
	lib64/rocfft_kernel_cache.db generic
	rocfft_kernel_cache_gfx1100.db gfx1100
	END
	[ -e out/lib/rocfft/1.0.31/rocfft_rtc_helper ]
	[ -e out/lib/rocfft/rocfft_kernel_cache.db.txt ]
}

@test "rows for another GPU than the name's are reported" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache_gfx90a.db", row(), row(arch="gfx1100"))
	cache("in/lib/rocfft/rocfft_kernel_cache_gfx12-generic.db", row(arch="gfx1201"))
	END
	kpack pack in out 2>err >printed
	grep -q 'rocfft_kernel_cache_gfx90a.db.*its name says gfx90a, but 1 of its 2 rows are for gfx1100' err
	[ "$(grep -c warning: err)" -eq 1 ]
	keys | grep -qx 'lib/rocfft/rocfft_kernel_cache_gfx90a.db gfx90a'
}

@test "WAL mode, a cut database, no database, an open journal: refused with the reason" {
	makes <<-'END'
	cache("wal/lib/rocfft/rocfft_kernel_cache.db", row(), before=["PRAGMA journal_mode=WAL"])
	cache("cut/lib/rocfft/rocfft_kernel_cache.db", *(row(str(i)) for i in range(100)))
	os.truncate("cut/lib/rocfft/rocfft_kernel_cache.db", 5000)
	put("text/lib/rocfft/rocfft_kernel_cache_gfx90a.db", b"text" * 300)
	put("none/lib/rocfft/rocfft_kernel_cache.db", b"")
	paths("paths/lib/fft/any.db", ("gfx90a", 64, "single", "x.co", "8,8", 1))
	os.truncate("paths/lib/fft/any.db", 4096)
	cache("journal/lib/rocfft/rocfft_kernel_cache.db", row())
	put("journal/lib/rocfft/rocfft_kernel_cache.db-journal",
	    bytes.fromhex("d9d505f920a163d7") + b"\0" * 504)
	END
	fails "wal/$DB: SQLite header: write version (byte 18) is 2: WAL mode" -q wal out
	grep -q 'PRAGMA journal_mode=DELETE' refused.err
	fails "cut/$DB: SQLite header: page count (byte 28) is " -q cut out
	grep -q 'the file has 5000: it is cut short' refused.err
	fails 'text/lib/rocfft/rocfft_kernel_cache_gfx90a.db: not an SQLite database' -q text out
	fails "none/$DB: SQLite header: the file has 0 of its 100 bytes" -q none out
	fails 'paths/lib/fft/any.db: SQLite header: page count (byte 28) is 2' -q paths out
	fails "journal/$DB: next to it is the journal of an unfinished change" -q journal out
	for t in wal cut text none paths journal; do
		[ ! -e out/.kpack ] || [ -z "$(ls out/.kpack)" ]
	done
}

@test "damaged pages are a fault, another table or another place is not rocFFT's" {
	makes <<-'END'
	cache("bad/lib/rocfft/rocfft_kernel_cache.db", *(row(str(i) * 50) for i in range(300)))
	with open("bad/lib/rocfft/rocfft_kernel_cache.db", "r+b") as f:
	    f.seek(8192)
	    f.write(b"\xff" * 40000)
	cache("schema/lib/rocfft/rocfft_kernel_cache.db", row())
	with open("schema/lib/rocfft/rocfft_kernel_cache.db", "r+b") as f:
	    data = f.read(4096)
	    f.seek(data.index(b"CREATE TABLE"))
	    f.write(b"CREATE GABLE")
	cache("in/lib/rocfft/rocfft_kernel_cache.db", schema=["CREATE TABLE cache_v1 (a)"])
	cache("in/lib/x/rocfft_kernel_cache_gfx90a.db", schema="CREATE VIEW cache_v1 AS SELECT "
	      "1 AS kernel_name, 2 AS arch, 3 AS hip_version, 4 AS generator_sum, 5 AS code, "
	      "6 AS timestamp")
	cache("in/share/doc/examples/rocfft_kernel_cache.db", row())
	put("in/share/other.db", b"SQLite format 3\0 and then something else")
	put("in/share/fine.db", b"Berkeley")
	END
	fails "bad/$DB: SQLite: database disk image is malformed" -q bad out
	fails "schema/$DB: SQLite: malformed database schema" -q schema out
	kpack pack in out 2>err >printed
	[ ! -e out/.kpack ] || [ -z "$(keys)" ]
	diff -r in out -x .kpack
}

@test "a small database whose pages would never end is a fault" {
	makes <<-'END'
	import struct
	path = "in/lib/rocfft/rocfft_kernel_cache.db"
	cache(path, *(row(code=b"", time=i, hip=i) for i in range(2000)),
	      schema="CREATE TABLE cache_v1 (kernel_name, arch, hip_version, generator_sum, code, timestamp)")
	db = sqlite3.connect(path)
	root, = db.execute("SELECT rootpage FROM sqlite_master").fetchone()
	data = bytearray(open(path, "rb").read())
	chain = [root] + [p for p in range(2, 12) if p != root]
	for page, child in zip(chain, chain[1:]):  # 400 cells, each pointing to the next page
	    cells = b"".join(struct.pack(">IB", child, 1) for i in range(400))
	    at = struct.pack(">400H", *range(4096 - len(cells), 4096, 5))
	    head = struct.pack(">BHHHBI", 5, 0, 400, 4096 - len(cells), 0, child) + at
	    data[4096 * (page - 1):4096 * page] = head.ljust(4096 - len(cells), b"\0") + cells
	open(path, "wb").write(data)
	END
	fails "$DB: SQLite: reading it takes more steps than " -q in out
}

@test "--split-rocfft: a valid database for each GPU with its rows and the same schema" {
	makes <<-'END'
	import random
	r = random.Random(1)
	rows = [row(FFT + str(i), a, i % 3, r.randbytes(32), r.randbytes(r.choice((0, 50, 9000, 70000))), i)
	        for i in range(60) for a in ("gfx90a", "gfx1100", "gfx90a:xnack+")]
	r.shuffle(rows)
	cache("in/lib/rocfft/rocfft_kernel_cache.db", *rows, before=[
	    "PRAGMA page_size=1024", "PRAGMA encoding='UTF-16be'", "PRAGMA auto_vacuum=1"],
	    schema=[CACHE, "CREATE INDEX by_arch ON cache_v1 (arch DESC, timestamp)",
	            "CREATE TABLE about (k TEXT PRIMARY KEY, v) WITHOUT ROWID",
	            "INSERT INTO about VALUES ('made by', x'00ff'), ('a', 1.5)",
	            "CREATE VIEW v AS SELECT arch FROM cache_v1",
	            "PRAGMA user_version=-5", "PRAGMA application_id=77"])
	db = sqlite3.connect("in/lib/rocfft/rocfft_kernel_cache.db")
	db.execute("CREATE TRIGGER t AFTER INSERT ON cache_v1 BEGIN DELETE FROM about; END")
	db.execute("DELETE FROM cache_v1 WHERE timestamp % 7 = 3")
	db.commit()
	END
	chmod 0755 "in/$DB"
	kpack pack -q --split-rocfft in out
	diff - <(keys) <<-END
	lib/rocfft/rocfft_kernel_cache_gfx1100.db gfx1100
	lib/rocfft/rocfft_kernel_cache_gfx90a.db gfx90a
	lib/rocfft/rocfft_kernel_cache_gfx90a:xnack+.db gfx90a:xnack+
	END
	for a in gfx1100 gfx90a gfx90a:xnack+; do
		bytes "lib/rocfft/rocfft_kernel_cache_$a.db" "$a" >"$a.db"
	done
	py <<-'END'
	import sqlite3
	SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
	SAME = ["SELECT * FROM about", SCHEMA] + ["PRAGMA " + p for p in (
	    "page_size", "encoding", "auto_vacuum", "user_version", "application_id")]
	old = sqlite3.connect("in/lib/rocfft/rocfft_kernel_cache.db")
	total = 0
	for arch in ("gfx1100", "gfx90a", "gfx90a:xnack+"):
	    new = sqlite3.connect(arch + ".db")
	    assert new.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
	    for q in SAME:
	        assert new.execute(q).fetchall() == old.execute(q).fetchall(), q
	    rows = new.execute("SELECT * FROM cache_v1 ORDER BY rowid").fetchall()
	    assert rows == old.execute("SELECT * FROM cache_v1 WHERE arch = ? ORDER BY rowid",
	                               (arch,)).fetchall()
	    total += len(rows)
	    with open(arch + ".db", "rb") as f:
	        assert f.read(100)[18:20] == b"\1\1"
	assert total == old.execute("SELECT count(*) FROM cache_v1").fetchone()[0] > 100
	END
	facts lib/rocfft/rocfft_kernel_cache_gfx1100.db gfx1100 | grep -q '"rows": {"gfx1100": '
	[ "$(readkpack toc out/.kpack/in_gfx90a.kpack | grep -cE '"mode": (493|33261)')" -eq 1 ]
	# the same again, from other places and other memory
	mkdir -p tmp/elsewhere
	mv out first
	MALLOC_PERTURB_=165 TMPDIR=$T/tmp/elsewhere kpack pack -q --jobs 3 --split-rocfft in out
	diff -r first out
	[ -z "$(ls tmp/elsewhere)" ]
}

@test "--rows: each kernel under its key, with what the row and the name say" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache.db",
	      row(code=b"first", time=9),
	      row(hip=2, code=b"second"), row(hip=2, sum=b"t" * 32, code=b"third"),
	      row(arch="gfx1100", code=b"other"),
	      row("fft_rtc_back_len_64x128_factors_8_8_x_8_16_wgs_64_dim_2_dp_op_CP_CI", code=b"2d"),
	      row("fft_rtc_fwd_partial_pass_parent_len_64_64_len_32_factors_4_8_half_sbcc", code=b"pp"),
	      row("transpose_rtc_tile64x16_dim2_CI_CI", code=b""),
	      row("odd/\x01%@#0", code=b"odd"))
	END
	kpack pack -q --rows in out
	F=fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_unitstride_sbrr
	diff - <(keys) <<-END
	fft/gfx1100/100/single/$F gfx1100
	fft/gfx90a/100/single/$F gfx90a
	fft/gfx90a/100/single/$F@2 gfx90a
	fft/gfx90a/100/single/$F@2.2 gfx90a
	fft/gfx90a/32/half/fft_rtc_fwd_partial_pass_parent_len_64_64_len_32_factors_4_8_half_sbcc gfx90a
	fft/gfx90a/64x128/double/fft_rtc_back_len_64x128_factors_8_8_x_8_16_wgs_64_dim_2_dp_op_CP_CI gfx90a
	fft/gfx90a/any/any/odd%2F%01%25%40%230 gfx90a
	fft/gfx90a/any/any/transpose_rtc_tile64x16_dim2_CI_CI gfx90a
	$DB generic
	END
	[ "$(bytes "fft/gfx90a/100/single/$F" gfx90a)" = first ]
	[ "$(bytes "fft/gfx90a/100/single/$F@2" gfx90a)" = second ]
	[ "$(bytes "fft/gfx90a/100/single/$F@2.2" gfx90a)" = third ]
	[ "$(bytes "fft/gfx1100/100/single/$F" gfx1100)" = other ]
	[ -z "$(bytes fft/gfx90a/any/any/transpose_rtc_tile64x16_dim2_CI_CI gfx90a)" ]
	bytes "$DB" generic | cmp - "in/$DB"
	diff - <(facts "fft/gfx90a/100/single/$F" gfx90a) <<-END
	{"arch": "gfx90a", "direction": "fwd", "factors": [10, 10], "generator_sum": "$(printf '73%.0s' {1..32})", "hip_version": 1, "length": 100, "placement": "ip", "precision": "single", "role": "kernel", "scheme": "sbrr", "timestamp": 9}
	END
	facts fft/gfx90a/64x128/double/fft_rtc_back_len_64x128_factors_8_8_x_8_16_wgs_64_dim_2_dp_op_CP_CI \
		gfx90a | grep -qF '"factors": [8, 8], "factors2": [8, 16], "generator_sum"'
	# of the databases for single GPUs, too, and together with splitting
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache_gfx942.db", row(arch="gfx942", code=b"942"))
	END
	rm -r out
	kpack pack -q --rows --split-rocfft in out
	[ "$(bytes "fft/gfx942/100/single/$F" gfx942)" = 942 ]
	keys | grep -qx 'lib/rocfft/rocfft_kernel_cache_gfx942.db gfx942'
	keys | grep -qx 'lib/rocfft/rocfft_kernel_cache_gfx1100.db gfx1100'
	! keys | grep -q generic || false
}

@test "--rows: what several caches of a tree have in common is stored once" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache.db", row(code=b"first"), row("same", code=b"same"))
	cache("in/lib/rocfft/rocfft_kernel_cache_gfx90a.db", row("same", code=b"same"))
	cache("in/torch/lib/rocfft/rocfft_kernel_cache.db",
	      row(hip=2, code=b"second"), row(hip=3, code=b"first"), row("same", code=b"same"), row("new"))
	END
	kpack pack -q --rows in out
	F=fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_halfLds_dim1_sp_ip_CI_unitstride_sbrr
	diff - <(keys) <<-END
	fft/gfx90a/100/single/$F gfx90a
	fft/gfx90a/100/single/$F@2 gfx90a
	fft/gfx90a/100/single/$F@3 gfx90a
	fft/gfx90a/any/any/new gfx90a
	fft/gfx90a/any/any/same gfx90a
	$DB generic
	lib/rocfft/rocfft_kernel_cache_gfx90a.db gfx90a
	torch/$DB generic
	END
	[ "$(bytes "fft/gfx90a/100/single/$F" gfx90a)" = first ]
	[ "$(bytes "fft/gfx90a/100/single/$F@2" gfx90a)" = second ]
	[ "$(bytes "fft/gfx90a/100/single/$F@3" gfx90a)" = first ]
	# one row cannot have two codes: both files are named
	makes <<-'END'
	cache("other/lib/rocfft/rocfft_kernel_cache.db", row("same", code=b"same"))
	cache("other/torch/lib/rocfft/rocfft_kernel_cache.db", row("same", code=b"else"))
	END
	fails "other/torch/$DB: cache_v1: other code than in $DB for fft/gfx90a/any/any/same" \
		-q --rows other none
}

@test "--split-rocfft: an existing part with the same bytes is one file with it, else a fault" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache.db", row(), row(arch="gfx1100"))
	END
	kpack pack -q --split-rocfft in first
	kpack extract first/.kpack -C parts
	cp parts/lib/rocfft/rocfft_kernel_cache_gfx90a.db in/lib/rocfft
	kpack pack -q --split-rocfft in out
	diff - <(keys) <<-END
	lib/rocfft/rocfft_kernel_cache_gfx1100.db gfx1100
	lib/rocfft/rocfft_kernel_cache_gfx90a.db gfx90a
	END
	makes <<-'END'
	os.remove("in/lib/rocfft/rocfft_kernel_cache_gfx90a.db")
	cache("in/lib/rocfft/rocfft_kernel_cache_gfx90a.db", row(code=b"newer"))
	END
	fails "$DB: --split-rocfft: its part for gfx90a has other bytes than in/lib/rocfft/rocfft_kernel_cache_gfx90a.db" \
		-q --split-rocfft in none
}

@test "entries of the other form, whole or split, that archives keep are reported" {
	makes <<-'END'
	cache("in/lib/rocfft/rocfft_kernel_cache.db", row(), row(arch="gfx1100"))
	END
	kpack pack in out 2>err
	! grep keeps err || false
	kpack pack --split-rocfft in out 2>err
	grep -qx "kpack: out/.kpack/in_generic.kpack: note: keeps $DB, packed with other options" err
	rm -r out
	kpack pack --split-rocfft --rows in out
	kpack pack --split-rocfft --rows in out 2>err
	! grep keeps err || false
	kpack pack in out 2>err
	[ "$(grep -c "note: keeps lib/rocfft/rocfft_kernel_cache_gfx" err)" -eq 2 ]
}

@test "rows that belong to no GPU, have no name or no code: packed whole, not taken apart" {
	makes <<-'END'
	loose = CACHE.replace("NOT NULL", "")
	where = "/lib/rocfft/rocfft_kernel_cache.db"
	cache("slash" + where, row(arch="../../etc"))
	cache("control" + where, row(arch="gfx90a\n"))
	cache("null" + where, row(arch=None), schema=loose)
	cache("number" + where, row(arch=5), schema=CACHE.replace("arch TEXT", "arch INTEGER"))
	cache("many" + where, *(row(arch="gfx%d" % (10000 + i)) for i in range(300)))
	cache("name" + where, row(name=None), schema=loose)
	cache("code" + where, row(code="text"), schema=loose)
	END
	for t in slash control null number; do
		kpack pack "$t" out 2>err >printed
		grep -q "$DB.*the arch of 1 of its 1 rows is no GPU" err
		rm -r out
		fails "$DB: cache_v1: arch of 1 rows is no target ID" -q --split-rocfft "$t" out
		fails "$DB: cache_v1: arch of 1 rows is no target ID" -q --rows "$t" out
	done
	fails "$DB: cache_v1: arch: more than 256 different ones" -q many out
	fails "$DB: cache_v1: row 1: kernel_name: no text" -q --rows name out
	fails "$DB: cache_v1: row 1: code: no blob" -q --rows code out
}

@test "kernels(arch, length, precision, kernel_path): each code object under its key" {
	makes <<-'END'
	def co(path, flags):
	    put(path, b"\x7fELF\2\1\1\x40\4" + bytes(7) + b"\3\0\xe0\0\1\0\0\0" + bytes(24) +
	        flags.to_bytes(4, "little") + b"\x40\0\x38\0\0\0\x40\0\0\0\0\0" + path.encode())
	co("in/lib/rocfft/kernels/a.co", 0x41)          # gfx1100
	co("in/lib/rocfft/kernels/b.co", 0x41)
	co("in/lib/rocfft/deep/c.co", 0x53f)            # gfx90a
	co("in/share/d.co", 0x41)
	co("in/share/unnamed.co", 0x41)
	co("in/lib/rocfft/wrong.co", 0x41)
	put("in/bin/tool", b"#!/bin/sh\n")
	paths("in/lib/rocfft/kernels.db",
	      ("gfx1100", 1024, "single", "kernels/a.co", "[2, 2, 16, 16]", 1),
	      ("gfx1100", 1024, "single", "./kernels/../kernels/b.co", "4,4,64", 8),
	      ("gfx90a", "64x64", "double", "/opt/rocm/lib/rocfft/deep/c.co", None, None),
	      ("gfx1100", 2048, "single", "share/d.co", "2 1024", 1),
	      ("gfx1100", 4096, "half", "share/d.co", "2 2048", 1),
	      ("gfx90a", 8, "single", "wrong.co", "8", 1),
	      ("gfx90a", 16, "single", "../../../../etc/passwd", "8", 1),
	      ("gfx90a", 16, "single", "missing.co", "8", 1),
	      ("gfx90a", 16, "single", "../../bin/tool", "8", 1),
	      (None, 16, "single", "kernels/a.co", "8", 1))
	END
	# what no row names is taken for code by itself, and is damaged
	status=0
	kpack pack in out 2>err >printed || status=$?
	[ "$status" -eq 1 ]
	grep -q 'share/unnamed.co: damaged' err
	diff - <(keys) <<-END
	fft/gfx1100/1024/single/kernel gfx1100
	fft/gfx1100/1024/single/kernel#1 gfx1100
	fft/gfx1100/2048/single/kernel gfx1100
	fft/gfx1100/4096/half/kernel gfx1100
	fft/gfx90a/64x64/double/kernel gfx90a
	fft/gfx90a/8/single/kernel gfx1100
	lib/rocfft/deep/c.co gfx90a
	lib/rocfft/kernels.db generic
	lib/rocfft/kernels/a.co gfx1100
	lib/rocfft/kernels/b.co gfx1100
	lib/rocfft/wrong.co gfx1100
	share/d.co gfx1100
	END
	[ "$(grep -c warning: err)" -eq 2 ]
	grep -q "kernels.db.*row 7: kernel_path '../../../../etc/passwd' does not exist; and 2 more" err
	grep -q 'wrong.co: warning: .*gfx90a.*gfx1100' err || { cat err; false; }
	for p in 'fft/gfx1100/1024/single/kernel kernels/a' 'fft/gfx1100/1024/single/kernel#1 kernels/b'; do
		bytes "${p% *}" gfx1100 | cmp - "in/lib/rocfft/${p#* }.co"
	done
	bytes fft/gfx90a/64x64/double/kernel gfx90a | cmp - in/lib/rocfft/deep/c.co
	bytes lib/rocfft/kernels.db generic | cmp - in/lib/rocfft/kernels.db
	[ "$(facts fft/gfx1100/1024/single/kernel gfx1100)" = '{"batch": 1, "factors": [2, 2, 16, 16], "length": 1024, "precision": "single", "role": "kernel"}' ]
	[ "$(facts fft/gfx90a/64x64/double/kernel gfx90a)" = '{"length": "64x64", "precision": "double", "role": "kernel"}' ]
	# a key says what its row says, the path what all rows of the one code object agree on
	[ "$(facts fft/gfx1100/4096/half/kernel gfx1100)" = '{"batch": 1, "factors": [2, 2048], "length": 4096, "precision": "half", "role": "kernel"}' ]
	[ "$(facts share/d.co gfx1100)" = '{"batch": 1, "role": "kernel"}' ]
	[ -e out/bin/tool ] && [ -e out/share/unnamed.co ]
}

@test "such a table is found under any name and anywhere, one without it is left alone" {
	makes <<-'END'
	for path in "in/opt/fftdata/index.sqlite3", "in/hipfft/x.sqlite", "in/y.db", "in/rocfft/index":
	    paths(path, ("gfx90a", 64, "single", "k.co", "8,8", 1))
	put("in/opt/fftdata/k.co", b"some code")
	put("in/rocfft/k.co", b"other code")
	put("in/rocfft/notes", b"SQLite")
	cache("in/fft/music.db", schema="CREATE TABLE songs (title)")
	cache("in/fft/almost.db", schema="CREATE TABLE kernels (arch, length, kernel_path)")
	END
	kpack pack in out 2>err >printed
	keys >found
	diff - found <<-END
	fft/gfx90a/64/single/kernel gfx90a
	fft/gfx90a/64/single/kernel#1 gfx90a
	hipfft/x.sqlite generic
	opt/fftdata/index.sqlite3 generic
	opt/fftdata/k.co gfx90a
	rocfft/index generic
	rocfft/k.co gfx90a
	y.db generic
	END
	[ "$(grep -c warning: err)" -eq 2 ]
	[ -e out/fft/music.db ] && [ -e out/fft/almost.db ] && [ -e out/rocfft/notes ]
}

@test "kpack cat finds kernels by the paper's key" {
	makes <<-'END'
	paths("in/lib/rocfft/kernels.db", ("gfx90a", 64, "single", "k.co", "8,8", 1))
	put("in/lib/rocfft/k.co", b"some code")
	END
	kpack pack -q in out
	kpack cat out/.kpack/in_gfx90a.kpack fft/gfx90a/64/single/kernel gfx90a | cmp - in/lib/rocfft/k.co
}
