#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Libraries described by a file of rules, and databases with files that their loaders
# cannot read.  readkpack.py reads the archives.

load packing.bash

# "key arch role" of everything in the archives of OUT, sorted.
roles() { # OUT
	py "$1" <<-'END'
	import glob, sys, readkpack
	for path in sorted(glob.glob(sys.argv[1] + "/.kpack/*.kpack")):
	    for key, arch, entry in readkpack.Archive(path).entries():
	        print(key, arch, entry["metadata"]["library"], entry["metadata"]["role"])
	END
}

# Every file of IN is in the archives of OUT, byte for byte.
same_bytes() { # IN OUT
	py "$@" <<-'END'
	import glob, os, sys, readkpack
	have = {}
	for path in glob.glob(sys.argv[2] + "/.kpack/*.kpack"):
	    archive = readkpack.Archive(path)
	    for key, arch, entry in archive.entries():
	        have[entry["metadata"]["path"]] = archive.get(entry)
	for d, _, names in os.walk(sys.argv[1]):
	    for name in names:
	        path = os.path.join(d, name)
	        with open(path, "rb") as f:
	            assert have.pop(os.path.relpath(path, sys.argv[1])) == f.read(), path
	assert not have, have.keys()
	END
}

file() { # PATH TEXT
	mkdir -p "$(dirname "$1")"
	printf %s "$2" >"$1"
}

@test "a file of rules adds libraries" {
	file in/lib/foo/kernels/gfx942/a.co a
	file in/lib/foo/kernels/gfx90a-xnack+/b.co b
	file in/lib/foo/kernels/index.idx i
	file in/opt/bar/x_gfx1100.bin x
	file in/opt/bar/readme r
	file in/lib/rocblas/library/TensileManifest.txt m
	cat >rules <<-'END'
	# a library of ours
	foo  lib/foo/kernels  *.co   directory  code
	foo  lib/foo/kernels  *.idx  generic    index

	bar  opt/bar  *_gfx*.bin  name   # the rest stays
	END
	kpack pack -q --group g --library-rules rules in out
	roles out | sort >have
	diff - have <<-'END'
	lib/foo/kernels/gfx90a-xnack+/b.co gfx90a:xnack+ foo code
	lib/foo/kernels/gfx942/a.co gfx942 foo code
	lib/foo/kernels/index.idx generic foo index
	lib/rocblas/library/TensileManifest.txt generic rocblas manifest
	opt/bar/x_gfx1100.bin gfx1100 bar file
	END
	cmp in/opt/bar/readme out/opt/bar/readme
	[ ! -e out/opt/bar/x_gfx1100.bin ]
	# and is chosen from
	kpack pack -q --group g --library-rules rules --libraries bar in out2
	[ "$(roles out2)" = "opt/bar/x_gfx1100.bin gfx1100 bar file" ]
	cmp in/lib/foo/kernels/gfx942/a.co out2/lib/foo/kernels/gfx942/a.co
}

@test "rules come before what is known, and replace what has their name" {
	file in/lib/rocblas/library/x.txt x
	file in/share/miopen/db/gfx942130.db.txt y
	cat >rules <<-'END'
	mine     rocblas/library  *  gfx942
	miopen   miopen/db        *  generic  all
	END
	kpack pack -q --group g --library-rules rules in out
	roles out >have
	diff - have <<-'END'
	share/miopen/db/gfx942130.db.txt generic miopen all
	lib/rocblas/library/x.txt gfx942 mine file
	END
}

@test "an error in rules is reported with line and word" {
	file in/x x
	echo 'foo lib * nowhere' >rules
	usage "rules: line 1: 'nowhere' is none of directory, below, name, content, generic" \
		--library-rules rules in out
	printf '\nfoo lib\n' >rules
	usage "rules: line 2: 'lib' is the last word" --library-rules rules in out
	fails "missing: cannot open" --library-rules missing in out
	echo 'foo lib * generic' >rules
	usage "'baz' is no library; known are foo rocblas" --library-rules rules --libraries baz in out
}

@test "bytes that do not compress are stored as they are" {
	mkdir -p in/lib/foo
	py <<-'END'
	import random
	random.seed(7)
	for size in 0, 1, 65791, 131073, 1000001:
	    data = bytearray(random.randbytes(size))
	    data[1000:1000 + size // 100] = bytes(len(data[1000:1000 + size // 100]))
	    with open("in/lib/foo/%d" % size, "wb") as f:
	        f.write(data)
	END
	echo 'foo lib/foo * generic' >rules
	kpack pack -q --group g --library-rules rules in out
	same_bytes in out
	# the large one is copied, not decoded: no window, and some 20 bytes more
	py <<-'END'
	import readkpack, zstandard
	a = readkpack.Archive("out/.kpack/g_generic.kpack")
	offset, size = a.blobs[a.top["toc"]["lib/foo/1000001"]["generic"]["ordinal"]]
	frame = zstandard.get_frame_parameters(a.data[offset:offset + size])
	assert frame.content_size == 1000001 and frame.has_checksum
	assert frame.window_size == 131072 and 1000001 < size < 1000101, (frame.window_size, size)
	END
	kpack verify out/.kpack
}

@test "a kernel database that MIOpen could not open is a fault" {
	mkdir -p in/share/miopen/db
	py <<-'END'
	import sqlite3
	db = sqlite3.connect("in/share/miopen/db/gfx90a.kdb")
	db.execute("PRAGMA journal_mode = WAL")
	db.execute("CREATE TABLE kern_db (id INTEGER PRIMARY KEY, kernel_blob BLOB)")
	db.commit()
	db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
	db.close()
	END
	fails "share/miopen/db/gfx90a.kdb: SQLite header: write version (byte 18) is 2: WAL mode" in out
	file in/share/miopen/db/gfx90a.kdb text
	fails "share/miopen/db/gfx90a.kdb: kernel database: 4 bytes, MIOpen reads none below 512" in out
	[ ! -e out/.kpack ]
	rm in/share/miopen/db/gfx90a.kdb
	py <<-'END'
	import sqlite3
	db = sqlite3.connect("in/share/miopen/db/gfx90a.kdb")
	db.execute("CREATE TABLE kern_db (id INTEGER PRIMARY KEY, kernel_blob BLOB)")
	db.execute("INSERT INTO kern_db VALUES (1, zeroblob(20000))")
	db.commit()
	db.close()
	END
	kpack pack -q --group g in out
	same_bytes in out
	truncate -s 8192 in/share/miopen/db/gfx90a.kdb
	fails "share/miopen/db/gfx90a.kdb: SQLite header: " in out2
}

@test "AOTriton's files that are cut short are packed with a warning" {
	file in/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/x.aks2 AKS2
	file in/lib/aotriton.images/amd-gfx942/flash/attn_fwd.zip text
	file in/lib/aotriton.images/amd-gfx77x/flash/y y
	kpack pack --group g in out >/dev/null 2>err
	grep -q "x.aks2: .*aks2: 4 bytes hold no header" err
	grep -q "attn_fwd.zip: .*zip: no end record" err
	grep -q "flash/y: .*no GPU that is known is in amd-gfx77x" err
	same_bytes in out
	[ -e out/.kpack/g_gfx11xx.kpack ] && [ -e out/.kpack/g_generic.kpack ]
}

@test "MIOpen's libraries of Composable Kernel keep their code" {
	mkdir -p in/lib
	mkfat --arches gfx942 in/lib/libMIOpenCKGroupedConv_gfx942.so
	mkfat --arches gfx90a:xnack+,gfx90a:xnack- in/lib/libMIOpenCKGroupedConv_gfx90a.so.1
	mkfat --arches gfx90a:xnack+ in/lib/libMIOpenCKOther_gfx90a.so
	mkfat --arches gfx1030 in/lib/libMIOpenCKOther_gfx1100.so
	mkfat --arches gfx942,gfx90a in/lib/libMIOpenCKSome_gfx942.so
	kpack pack --group g in out >/dev/null 2>err
	same_bytes in out
	roles out | cut -d ' ' -f 1,2,4 | sort >have
	diff - have <<-'END'
	lib/libMIOpenCKGroupedConv_gfx90a.so.1 gfx90a library
	lib/libMIOpenCKGroupedConv_gfx942.so gfx942 library
	lib/libMIOpenCKOther_gfx1100.so gfx1030 library
	lib/libMIOpenCKOther_gfx90a.so gfx90a:xnack+ library
	lib/libMIOpenCKSome_gfx942.so gfx942 library
	END
	[ "$(wc -l <err)" -eq 2 ]
	grep -q "Other_gfx1100.so: .*named for gfx1100, but code in it is for gfx1030" err
	grep -q "Some_gfx942.so: .*named for gfx942, but code in it is for gfx90a" err
}

# A gigabyte is held while it is packed: too much where each byte costs two.
# bats test_tags=plain
@test "a file too large to be held whole is cut in chunks, or refused" {
	file in/lib/rocblas/library/large_gfx1100.dat begin
	truncate -s 1100M in/lib/rocblas/library/large_gfx1100.dat
	kpack pack -q --group g in out
	kpack verify out/.kpack
	py out/.kpack/g_gfx1100.kpack <<-'END'
	import sys, readkpack
	(_, _, entry), = readkpack.Archive(sys.argv[1]).entries()
	assert entry["metadata"]["chunk"] == 128 << 10
	assert entry["original_size"] == 1100 << 20
	END
	[ "$(kpack cat out/.kpack/g_gfx1100.kpack lib/rocblas/library/large_gfx1100.dat gfx1100 |
		head -c 5)" = begin ]
	# more than an archive can give back is reported before anything is written
	truncate -s 4097M in/lib/rocblas/library/large_gfx1100.dat
	status=0
	kpack pack -q --scheme none in out2 2>err || status=$?
	[ "$status" = 1 ]
	grep -F "large_gfx1100.dat: 4296015872 bytes, limit 4294967296" err
	[ ! -e out2 ]
}

@test "a file of a library that cannot be packed is reported once" {
	file in/share/miopen/db/gfx1030.kdb text
	file "in/lib/rocblas/library/a"$'\n'"b_gfx1100.co" x
	kpack pack in out 2>err && return 1
	diff - err <<-'END'
	kpack: in/share/miopen/db/gfx1030.kdb: kernel database: 4 bytes, MIOpen reads none below 512: cut short, or remove it
	kpack: in/lib/rocblas/library/a\012b_gfx1100.co: its path cannot be a key
	kpack: nothing was packed because of the faults above
	END
	[ ! -e out ]
}

@test "an archive that a library opens by path stays a file" {
	local dir=lib/hipdnn_plugins/engines/arch_content/gfx942 own
	own=$dir/hip_kernel_provider_sdpa_gfx942.kpack
	mkdir -p in/$dir in/lib
	echo '{"entries": [{"key": "a", "arch": "gfx942", "data": "code"}]}' | $python "$tools/mkarchive.py" in/$own
	file in/$dir/kernels.json '{}'
	mkfat --arches gfx942,gfx1100 in/lib/libfat.so
	kpack pack --group g in out >report 2>err
	cmp in/$own out/$own
	[ ! -e out/$dir/kernels.json ]
	[ "$(cat err)" = "kpack: in/$own: note: an archive that its library opens by path" ]
	! grep -a sdpa out/.kpack/*.kpack || false
	kpack split -q in split
	cmp in/$own split/in_gfx942/$own
	[ ! -e split/in_generic/$own ]
	kpack split -q --databases packed in packed
	cmp in/$own packed/in_gfx942/$own
	cp -a in tree
	kpack pack -q --group g --in-place tree
	cmp in/$own tree/$own
	kpack verify --tree out
}
