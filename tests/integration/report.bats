#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack report: figures, tables and maps, checked by another program that counts itself;
# and the page as a browser shows it.
#
# The tests tagged single read archives with one thread, or measure as the other tests do.

load packing

report() { kpack report "$@"; }

# Its messages go to err.
leaves() { # STATUS OPERAND...
	local want=$1
	shift
	status=0
	report "$@" 2>err || status=$?
	[ "$status" -eq "$want" ]
}

# Write PAGE.html and PAGE.json of OPERAND..., and let another program judge both.
judged() { # PAGE OPERAND...
	local page=$1
	shift
	report -q -o "$page.html" "$@"
	report -q --json "$@" >"$page.json"
	$python "$tools/reportcheck.py" "$page.html" "$page.json" "$@"
}

# Archives in which something is shared, inside and across; databases; host files.
make_tree() {
	py <<-'EOF'
	import os
	from mkarchive import Archive, noise
	os.makedirs("tree/.kpack"); os.makedirs("tree/lib/rocblas/library")
	for i, name in enumerate(("lib/liba.so.1", "lib/libb.so")):
	    with open("tree/" + name, "wb") as f:
	        f.write(bytes(1000 * (i + 1)))
	os.link("tree/lib/liba.so.1", "tree/lib/liba.so")
	os.symlink("liba.so", "tree/lib/link.so")
	for n, arch in enumerate(("gfx90a:xnack+", "gfx90a:xnack-", "gfx1030", "gfx1100", "gfx1101", "gfx942", "gfx950")):
	    a = Archive(group="tree", family=arch)
	    for i in range(6):
	        a.add("lib/liba.so.1#%d" % i, arch, noise(9000 + 500 * i, "%s %d" % (arch, i)))
	    for i in range(4):
	        a.add("lib/libb.so#%d" % i, arch, noise(7000 + 10 * i, i))          # the same for all
	    one = a.add("lib/libb.so@openmp#4", arch, noise(5000, arch))
	    a.add("lib/libb.so#5", arch, noise(5000, arch), ordinal=one)            # shared inside
	    for i in range(3):
	        a.add("lib/rocblas/library/K%d_%s.co" % (i, arch), arch, noise(12000 * i + 100, (arch, i).__repr__()),
	              type="co", library="rocblas", role=("code", "fallback")[i % 2], path="lib/rocblas/library/K%d" % i)
	    a.add("share/x.db", arch, noise(400000, arch), type="db", chunk=131072, library="miopen", role="db", path="share/x.db")
	    a.write("tree/.kpack/tree_%s.kpack" % arch)
	g = Archive(group="tree", family="generic")
	g.add("share/miopen/all.txt", "generic", b"text " * 999, type="txt", library="miopen", role="text", path="share/miopen/all.txt")
	g.write("tree/.kpack/tree_generic.kpack")
	EOF
}

# bats test_tags=single
@test "figures, tables and areas are what the archives say" {
	make_tree
	judged page tree
	py <<-'EOF'
	import json
	j = json.load(open("page.json"))
	assert j["host"] == {"files": 2, "bytes": 3000}, j["host"]
	assert j["measured"] is None and j["binaries"] == 2 and j["architectures"] == 8
	assert j["shared"] == 7 and j["saved"] > 0 and j["saving"] > 0
	f = {x["name"]: x for x in j["families"]}
	ninety = f["gfx90a / gfx9_0"]
	assert sorted(ninety["arches"]) == ["gfx90a:xnack+", "gfx90a:xnack-"] and ninety["by"] == "features"
	eleven = [x for n, x in f.items() if n.startswith("gfx11-generic")]
	assert sorted(eleven[0]["arches"]) == ["gfx1100", "gfx1101"], f
	four = [x for n, x in f.items() if "gfx9-4-generic" in n]
	assert sorted(four[0]["arches"]) == ["gfx942", "gfx950"]
	assert len(f["every GPU"]["arches"]) == 7 and "generic" not in f["every GPU"]["arches"]
	assert not any(x["arches"] == ["gfx1030"] for x in j["families"])
	EOF
}

# bats test_tags=single
@test "what a GPU keeps, and what goes without the others" {
	mkdir in
	mkfat --size 60000 --share 2 in/a.so
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx11-generic,gfx9999 in/b.so
	kpack pack -q --group g --family all=gfx1030,gfx1100,gfx90a:xnack+ in out
	kpack report --json --arch gfx1100 out >figures
	kpack report -q --arch gfx1100 -o page.html out
	py <<-'END'
	import json, os, readkpack
	want = {"kept": [0, 0, set(), 0], "freed": [0, 0, set(), 0]}
	for name in sorted(os.listdir("out/.kpack")):
	    a = readkpack.Archive(os.path.join("out/.kpack", name))
	    stays = {}
	    for key, arch, e in a.entries():
	        goes = arch in ("gfx1030", "gfx90a:xnack+")
	        row = want["freed" if goes else "kept"]
	        row[0] += 1
	        row[1] += e["original_size"]
	        stays[e["ordinal"]] = stays.get(e["ordinal"], False) or not goes
	    for ordinal, stay in stays.items():
	        row = want["kept" if stay else "freed"]
	        row[2].add((name, ordinal))
	        row[3] += a.blobs[ordinal][1]
	figures = json.load(open("figures"))
	for side, (entries, decoded, objects, stored) in want.items():
	    assert figures[side] == {"entries": entries, "decoded": decoded, "objects": len(objects),
	                             "stored": stored}, (side, figures[side], want)
	assert figures["kept"]["stored"] + figures["freed"]["stored"] == figures["stored"]
	END
	grep -qF '<p>For gfx1100, ' page.html
	grep -qF '<dt>Freed</dt>' page.html
	status=0
	kpack report --json --arch gfx110 out || status=$?
	[ "$status" -eq 2 ]
	kpack report -q -o other.html out
	! grep -qF 'Freed' other.html || false
}

@test "archives and directories give the same figures, whatever the way to them" {
	make_tree
	judged one tree/.kpack
	judged two tree/.kpack/tree_gfx1030.kpack tree/.kpack/tree_gfx1100.kpack
	mkdir -p split/a_gfx1030/.kpack split/a_gfx1100/.kpack
	cp tree/.kpack/tree_gfx1030.kpack split/a_gfx1030/.kpack
	cp tree/.kpack/tree_gfx1100.kpack split/a_gfx1100/.kpack
	judged three split
	# given twice, or under two names, an archive counts once
	report -q --json tree/.kpack/ tree/.kpack tree/.kpack/tree_gfx1030.kpack >again.json
	ln tree/.kpack/tree_gfx1030.kpack other.kpack
	report -q --json tree other.kpack >linked.json
	py <<-'EOF'
	import json
	j = {n: json.load(open(n + ".json")) for n in ("one", "two", "three", "again", "linked")}
	for name in ("objects", "decoded", "stored", "arches", "libraries", "families"):
	    assert j["one"][name] == j["again"][name] == j["linked"][name], name
	    assert j["two"][name] == j["three"][name], name
	EOF
}

# bats test_tags=single
@test "the same input gives the same page, and no path stands in it" {
	make_tree
	report -q -o a.html tree
	mkdir -p elsewhere/deep
	cp -a tree elsewhere/deep/
	(cd elsewhere && report -q -o ../b.html deep/tree/)
	report -q -o - "$T/tree" >c.html
	cmp a.html b.html
	(cd tree && report -q -o ../d.html .)
	cmp a.html c.html
	cmp a.html d.html
	! grep -qF "$T" a.html || false
	! grep -qE '20[0-9][0-9]-[0-9][0-9]' a.html || false
	grep -q '<h1>tree</h1>' a.html
	report -q --title 'What <is> "big"' -o d.html tree
	grep -qF '<h1>What &lt;is&gt; &quot;big&quot;</h1>' d.html
}

@test "a library that is not packed yet is measured, exactly as packing would" {
	mkdir lib
	mkfat --bundles 3 --size 40000 lib/libfat.so
	mkfat --bundles 2 --seed x lib/libsame.so
	report -q --json lib >lib.json
	report -q -o lib.html lib
	kpack pack -q --group measured lib packed
	report -q --json packed >packed.json
	py <<-'EOF'
	import json, os
	a, b = json.load(open("lib.json")), json.load(open("packed.json"))
	for name in ("objects", "entries", "decoded", "stored", "arches", "libraries", "archive_bytes", "families"):
	    assert a[name] == b[name], (name, a[name], b[name])
	before = sum(os.path.getsize("lib/" + n) for n in os.listdir("lib"))
	assert a["host"] == {"files": 2, "bytes": before} and a["measured"]["files"] == 2
	after = before - a["measured"]["bytes"]
	assert abs(after - b["host"]["bytes"]) < 2 * 16384, (after, b["host"])
	assert b["measured"] is None
	text = open("lib.html").read()
	assert "not packed yet" in text and "measured_gfx1030.kpack" in text
	EOF
	report -q --json lib/libfat.so >file.json
	py <<-'EOF'
	import json
	a = json.load(open("file.json"))
	assert a["libraries"][0]["library"] == "libfat.so" and a["objects"] == 9
	EOF
	# nothing stays behind
	mkdir tmp
	TMPDIR=$T/tmp report -q --json lib >/dev/null
	[ -z "$(ls -A tmp)" ]
	[ ! -e lib/.kpack ]
	TMPDIR=$T/none report -q --json lib >none.json 2>none.err && false
	grep -q "$T/none: cannot open the directory: No such file" none.err
}

@test "killed while it measures, nothing stays" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	mkdir lib tmp
	mkfat --bundles 3 --size 40000 lib/libfat.so
	for call in pwrite64:1 pwrite64:2 pwrite64:3 pwrite64:5; do
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 TMPDIR=$T/tmp strace -f -o trace \
			-e trace=pwrite64 -e inject="pwrite64:signal=KILL:when=${call#*:}" \
			"$KPACK_BIN/kpack" report -q --json lib >json || status=$?
		[ $status -eq 137 ]
		[ -z "$(ls -A tmp)" ]
	done
	# two at a time do not wait for each other, nor see what is there
	echo none >tmp/measured_gfx1030.kpack
	exec 9<tmp
	flock 9
	TMPDIR=$T/tmp report -q --json lib >json
	exec 9<&-
	[ "$(ls -A tmp)" = measured_gfx1030.kpack ]
	py <<-'EOF'
	import json
	assert not json.load(open("json"))["faults"]
	EOF
}

@test "a tree of which a part is packed: both are shown" {
	mkdir -p lib/lib
	mkfat --bundles 3 lib/lib/libfirst.so
	kpack pack -q --group g lib tree
	mkfat --bundles 2 --seed x --arches gfx942,gfx1100 tree/lib/libsecond.so
	kpack pack -q --archives-only --group measured tree/lib/libsecond.so second
	report -q --json tree >tree.json
	report -o tree.html tree 2>err
	[ ! -s err ]
	py <<-'EOF'
	import glob, json, os
	j = json.load(open("tree.json"))
	assert sorted(x["library"] for x in j["libraries"]) == ["lib/libfirst.so", "lib/libsecond.so"], j["libraries"]
	assert j["objects"] == 9 + 4 and j["measured"]["files"] == 1 and not j["faults"], j
	assert j["archive_bytes"] >= sum(os.path.getsize(f) for f in glob.glob("tree/.kpack/*.kpack")) + 4 * 5000 / 3
	assert "Not all of it is packed yet: 1 file was measured by packing." in open("tree.html").read()
	EOF
	# a directory of archives, and a tree without anything else, are not measured
	kpack pack -q --keep-device-code --databases both --group g lib kept
	report -q --json kept >kept.json
	[ "$(jq -c '[.measured, .objects]' kept.json)" = '[null,9]' ]
}

# bats test_tags=single
@test "a library that is faulty does not keep the others from being measured" {
	mkdir -p lib/sub
	mkfat --bundles 3 lib/libgood.so
	report -q --json lib >good.json
	mkfat --bundles 3 --seed x lib/sub/libbad.so
	py <<-'EOF'
	data = bytearray(open("lib/sub/libbad.so", "rb").read())
	at = data.index(b"__CLANG_OFFLOAD_BUNDLE__") + 24
	data[at:at + 8] = b"\xff" * 8
	open("lib/sub/libbad.so", "wb").write(data)
	EOF
	leaves 1 -o bad.html lib
	[ "$(grep -c 'libbad.so: bundle at offset 0: ' err)" = 1 ]
	grep -q 'sub/libbad.so: bundle at offset 0: ' bad.html
	status=0
	report -q --json lib >bad.json 2>/dev/null || status=$?
	[ "$status" -eq 1 ]
	[ "$(jq '[.objects, .stored, .libraries]' bad.json)" = "$(jq '[.objects, .stored, .libraries]' good.json)" ]
	[ "$(jq '.faults | length' bad.json)" = 1 ]
	# one that may not be read
	as_root
	rm lib/sub/libbad.so
	chmod 0755 lib lib/sub
	mkfat --seed y lib/sub/libclosed.so
	chmod 0 lib/sub/libclosed.so
	status=0
	as_nobody "$KPACK_BIN/kpack" report -q --json lib >bad.json 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q 'libclosed.so: ' err
	[ "$(jq '[.objects, .stored, (.faults | length)]' bad.json -c)" = "$(jq -c '[.objects, .stored, 1]' good.json)" ]
}

# bats test_tags=single
@test "nothing, one entry, and entries without bytes" {
	mkdir empty
	judged empty empty
	grep -q 'There is no device code in it' empty.html
	mkdir plain
	echo text >plain/readme
	report -q -o plain.html plain
	py <<-'EOF'
	from mkarchive import Archive
	a = Archive()
	a.add("lib/x.so#0", "gfx1100", b"x" * 100)
	a.write("one.kpack")
	a = Archive(scheme="none")
	a.add("lib/x.so#0", "gfx1100", b"")
	a.add("lib/x.so#0", "gfx1101", b"")
	a.add("lib/y.so#0", "gfx1101", b"y")
	a.write("zero.kpack")
	EOF
	judged one one.kpack
	judged zero zero.kpack
}

# bats test_tags=single
@test "more archives than files may be open at first" {
	py <<-'EOF'
	from mkarchive import Archive
	for i in range(40):
	    a = Archive()
	    a.add("lib/x%d.so#0" % i, "gfx1100", b"%d" % i)
	    a.write("many%d.kpack" % i)
	EOF
	(ulimit -Sn 24; report -q --json .) >many.json
	[ "$(jq .objects many.json)" = 40 ]
}

# bats test_tags=single
@test "entries without a hash are compared by their bytes" {
	py <<-'EOF'
	from mkarchive import Archive, noise
	for arch in ("gfx1100", "gfx1101"):
	    a = Archive(family=arch)
	    for i in range(5):
	        a.add("lib/x.so#%d" % i, arch, noise(4000, i if i < 3 else arch + str(i)), hash=False)
	    a.add("lib/y.so#0", arch, noise(4000, 1), hash=arch == "gfx1100")
	    a.write("t_%s.kpack" % arch)
	EOF
	judged page t_gfx1100.kpack t_gfx1101.kpack
	py <<-'EOF'
	import json
	j = json.load(open("page.json"))
	assert sorted(d["copies"] for d in j["duplicates"]) == [2, 2, 4], j["duplicates"]
	EOF
}

# bats test_tags=single
@test "hostile names are shown as text" {
	py <<-'EOF'
	from mkarchive import Archive, noise, Pairs
	names = ["<script>alert(1)</script>", "\"onload=alert(1) x='", "]]>--></svg></title><img src=x onerror=alert(2)>",
	         "&lt;&amp;", "</style><script>alert(3)</script>", "\\u202egpj.exe", "a" * 3000, "\u4e2d\u6587" * 500,
	         "\u202eevil", "{{7*7}}", "javascript:alert(1)"]
	a = Archive()
	for i, n in enumerate(names):
	    a.add(n + "#0", "gfx1100", noise(5000 + i, i))
	    a.add("db/%d" % i, "x<b>'\"%d" % i, noise(3000 + i, 99 + i), library=n, role=n, path="p/%d" % i)
	a.write("bad.kpack")
	EOF
	judged page bad.kpack
	cp bad.kpack $'<img src=x onerror=alert(9)>\x01\xff.kpack'
	report -q -o name.html $'<img src=x onerror=alert(9)>\x01\xff.kpack'
	! grep -q '<img' page.html name.html || false
	! grep -q $'\xff\|\x01' name.html || false
	iconv -f UTF-8 -t UTF-8 name.html >/dev/null
	! grep -q $'\u202e' page.html || false
	py <<-'EOF'
	from reportcheck import Page
	p = Page(open("name.html").read())
	assert p.elements.count("script") == 1
	assert any("<img src=x onerror=alert(9)>\\001\\377.kpack" in t for t in p.texts)
	assert len(open("page.html").read()) < 400000
	EOF
}

# bats test_tags=single
@test "damaged archives: what can be read is shown, with the faults" {
	make_tree
	head -c 5000 tree/.kpack/tree_gfx1030.kpack >tree/.kpack/cut.kpack
	py <<-'EOF'
	from mkarchive import Archive, noise
	a = Archive()
	a.add("lib/good.so#0", "gfx1100", noise(3000, 1))
	a.add("lib/bad.so#0", "gfx1100", noise(3000, 2), entry={"ordinal": 77})
	a.add("lib/torn.so#0", "gfx1100", noise(3000, 3), hash=False, stored=b"no frame")
	a.add("lib/torn.so#1", "gfx1100", noise(3000, 4), hash=False)
	a.write("tree/.kpack/<b>odd.kpack")
	EOF
	leaves 1 -q -o page.html tree
	grep -q 'cut.kpack' err
	grep -q 'bad.so' err
	! grep -v '^kpack: ' err || false
	py <<-'EOF'
	from reportcheck import Page
	text = open("page.html").read()
	p = Page(text)
	words = " ".join(p.texts)
	assert "Not everything could be read" in words and "cut.kpack" in words and "ordinal 77" in words
	assert "<b>odd.kpack" in words and "lib/good.so" in words and "lib/liba.so.1" in words
	EOF
	status=0
	report -q --json tree >page.json 2>/dev/null || status=$?
	[ "$status" -eq 1 ]
	py <<-'EOF'
	import json
	assert len(json.load(open("page.json"))["faults"]) >= 3
	EOF
}

# bats test_tags=single
@test "usage, and files that cannot be written" {
	make_tree
	leaves 2 tree
	leaves 2 -o '' tree
	leaves 2 -o x.html
	leaves 2 --nonsense
	leaves 1 -o x.html missing
	grep -q 'missing' err
	mkfifo fifo
	leaves 1 -o x.html fifo
	[ "$(cat err)" = "$(printf 'kpack: fifo: %s\n' 'is a FIFO, not a regular file' 'could not look at 1 file of it')" ]
	rm fifo
	leaves 1 -q -o none/x.html tree
	[ ! -e none ]
	echo old >page.html
	report -q -o page.html tree
	grep -q '<!DOCTYPE html>' page.html
	leaves 1 -q -o /dev/full tree
	report -q -o /dev/null tree
	# no temporary file is left
	[ "$(echo .[!.]* *)" = '.[!.]* err page.html tree x.html' ]
	# a link is replaced; but what leads to an open file, as /dev/stdout does, is written to
	echo mine >mine
	ln -s mine link
	report -q -o link tree
	[ ! -L link ]
	[ "$(cat mine)" = mine ]
	ln -s /proc/self/fd/1 stdout
	report -q -o stdout tree >stdout.html
	[ -L stdout ]
	cmp stdout.html link
	if [ "$(id -u)" = 0 ]; then
		mkdir theirs
		mkfifo theirs/fifo
		chown -R 1234 theirs
		exec {reader}<>theirs/fifo
		leaves 1 -q -o theirs/fifo tree
		[ "$(cat err)" = "kpack: theirs/fifo: is not written to, because another user may have put it there" ]
		exec {reader}<&-
	fi
}

# bats test_tags=single
@test "50,000 entries: a small page, quickly" {
	py <<-'EOF'
	from mkarchive import Archive
	a = Archive(index=True)
	for i in range(10000):
	    data = b"%d " % i * (1 + i % 50)
	    one = a.add("some/long/directory/lib/library_number_%d.so#0" % i, "gfx900", data, hash=False)
	    for arch in ("gfx1100", "gfx942", "gfx90a", "gfx1200"):
	        a.add("some/long/directory/lib/library_number_%d.so#0" % i, arch, data, ordinal=one, hash=False)
	a.write("many.kpack")
	EOF
	judged page many.kpack
	[ "$(stat -c %s page.html)" -lt 2000000 ]
	grep -q '9,700 others\|9700 others' page.html
	grep -q 'other libraries' page.html
}

# bats test_tags=plain, all
@test "in a browser: tables sort, libraries zoom, nothing is loaded, nobody complains" {
	make_tree
	report -q -o page.html tree
	py <<-'EOF'
	from browser import Browser, colours
	def column(b, table, i):
	    return b.run("Array.from(document.querySelectorAll('#%s tbody tr')).map(r => r.cells[%d].dataset.v || r.cells[%d].textContent)" % (table, i, i))
	def sorting(b, table, i):
	    return b.run("document.querySelectorAll('#%s thead th')[%d].getAttribute('aria-sort')" % (table, i))
	with Browser(".") as b:
	    b.size(1280, 900)
	    b.open("page.html")
	    stored = [int(v) for v in column(b, "arches", 4)]
	    assert len(stored) == 8 and stored == sorted(stored, reverse=True) and sorting(b, "arches", 4) == "descending"
	    b.click("#arches thead th:nth-child(5) button")
	    assert [int(v) for v in column(b, "arches", 4)] == sorted(stored) and sorting(b, "arches", 4) == "ascending"
	    b.click("#arches thead th:nth-child(1) button")
	    names = column(b, "arches", 0)
	    assert names == sorted(names) and names[0] == "generic", names
	    assert sorting(b, "arches", 0) == "ascending" and sorting(b, "arches", 4) is None
	    b.click("#arches thead th:nth-child(1) button")
	    assert column(b, "arches", 0) == sorted(names, reverse=True)
	    assert b.run("location.hash") == "#sort=arches,0,down"
	    # with the keyboard
	    b.run("document.querySelector('#largest thead th:nth-child(4) button').focus()")
	    b.key("Enter", 13)
	    assert sorting(b, "largest", 3) == "descending"
	    sizes = [int(v) for v in column(b, "largest", 3)]
	    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) > 5
	    # zoom in and out
	    full = b.run("document.getElementById('stored-wide').getAttribute('viewBox')")
	    b.click("#stored-wide .lib:last-child rect")
	    near = b.run("document.getElementById('stored-wide').getAttribute('viewBox')")
	    assert near != full and float(near.split()[2]) < 1200, near
	    assert b.run("document.querySelectorAll('#stored-wide text.z').length") > 0
	    b.run("document.querySelector('#stored-wide .lib').focus()")
	    b.key("Escape", 27)
	    assert b.run("document.getElementById('stored-wide').getAttribute('viewBox')") == full
	    # the other map, by its label
	    shown = "Array.from(document.querySelectorAll('.map')).filter(e => e.getBoundingClientRect().height > 0).map(e => e.id)"
	    assert b.run(shown) == ["stored-wide"]
	    b.click("label[for=by-decoded]")
	    assert b.run(shown) == ["decoded-wide"]
	    # no part is wider than a phone
	    b.size(375, 800)
	    assert b.run(shown) == ["decoded-tall"]
	    assert b.run("document.documentElement.scrollWidth") <= 375
	    assert set(b.requests()) == {u for u in b.requests() if u.startswith("file://") and "page.html" in u}
	    assert not b.complaints(), b.complaints()
	EOF
}

# bats test_tags=plain, all
@test "in a browser: an address opens a table sorted" {
	make_tree
	report -q -o page.html tree
	py <<-'EOF'
	from browser import Browser
	with Browser(".") as b:
	    b.open("page.html", "#sort=libraries,0,up")
	    names = b.run("Array.from(document.querySelectorAll('#libraries tbody th')).map(e => e.textContent)")
	    assert names == ["lib/liba.so.1", "lib/libb.so", "miopen", "rocblas"], names
	    assert not b.complaints(), b.complaints()
	with Browser("two") as b:
	    b.open("page.html", "#sort=nothing,99,up")
	    assert not b.complaints(), b.complaints()
	EOF
}

# bats test_tags=plain, all
@test "in a browser: without JavaScript the same is there" {
	make_tree
	report -q -o page.html tree
	py <<-'EOF'
	from browser import Browser
	everything = "document.querySelector('main').innerText.replace(/\\s+/g, ' ')"
	with Browser(".") as b:
	    b.size(1280, 900)
	    b.open("page.html")
	    assert b.run("document.querySelectorAll('th button').length") > 10
	    with_script = b.run(everything)
	with Browser("two", "--blink-settings=scriptEnabled=false") as b:
	    b.size(1280, 900)
	    b.open("page.html")
	    assert b.run("document.querySelectorAll('th button').length") == 0
	    without = b.run(everything)
	    shown = "Array.from(document.querySelectorAll('.map')).filter(e => e.getBoundingClientRect().height > 0).map(e => e.id)"
	    assert b.run(shown) == ["stored-wide"]
	    b.click("label[for=by-decoded]")
	    assert b.run(shown) == ["decoded-wide"]
	    assert not b.complaints(), b.complaints()
	hint = " Click on a library to look closer; another click or Escape goes back."
	assert hint in with_script
	assert with_script.replace(hint, "") == without
	for words in ("lib/liba.so.1", "gfx90a:xnack+", "every GPU", "Duplicates", "rocblas"):
	    assert words in without, words
	EOF
}

# bats test_tags=plain, all
@test "in a browser: it is not blank, in the light and in the dark" {
	make_tree
	report -q -o page.html tree
	py <<-'EOF'
	from browser import Browser, colours
	with Browser(".") as b:
	    for dark in (False, True):
	        b.size(720, 720, dark)
	        b.open("page.html")
	        b.run("document.querySelector('.maps').scrollIntoView()")
	        seen = colours(b.screenshot("page.png"))
	        most = max(seen, key=seen.get)
	        assert (sum(most) < 200) == dark, most
	        assert len(seen) > 100 and seen[most] < 400000
	        # the map takes most of the picture
	        assert len([c for c, n in seen.items() if n > 2000]) >= 6
	    # on paper: nothing to press, nothing cut off, and the rest of a table once
	    b.size(720, 720)
	    b.ask("Emulation.setEmulatedMedia", media="print")
	    b.run("document.querySelector('#largest').append(document.createElement('tfoot'))")
	    assert b.run("getComputedStyle(document.querySelector('#largest tfoot')).display") == "table-row-group"
	    assert b.run("getComputedStyle(document.querySelector('label')).display") == "none"
	    assert b.run("document.documentElement.scrollWidth") <= 720
	EOF
}

# bats test_tags=plain, all
@test "in a browser: what hostile names say is not done" {
	py <<-'EOF'
	from mkarchive import Archive, noise
	a = Archive()
	for i, n in enumerate(("<script>window.bad=1</script>", "\"><img src=x onerror='window.bad=1'>",
	                       "</title></svg><script>window.bad=1</script>", "';window.bad=1;//")):
	    a.add(n + "#0", "gfx1100", noise(50000 + i, i))
	    a.add("k%d" % i, n, noise(50000 + i, 9 + i), library=n, role=n)
	a.write("bad.kpack")
	EOF
	report -q --title '</title><script>window.bad=1</script>' -o page.html bad.kpack
	py <<-'EOF'
	from browser import Browser
	with Browser(".") as b:
	    b.size(1280, 900)
	    b.open("page.html")
	    b.click("#stored-wide .lib rect")
	    b.click("#libraries thead th:nth-child(1) button")
	    assert b.run("window.bad === undefined") and b.run("document.images.length") == 0
	    assert not b.complaints(), b.complaints()
	    assert len(b.requests()) == 1
	    # even where a script came in, it could fetch nothing
	    assert b.run("fetch('page.html').then(() => 'fetched', () => 'refused')") == "refused"
	EOF
}
