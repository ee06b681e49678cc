#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack report: another run, files of others, and the page as a browser shows it.  Figures,
# tables and pages are in tests/golden/report*, and what they add up to is a property.

load packing

# Archives in which something is shared, inside and across; databases.
make_tree() {
	py <<-'EOF'
	import os
	from mkarchive import Archive, noise
	os.makedirs("tree/.kpack")
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
@test "two at a time; a file that may not be read" {
	mkdir lib tmp
	mkfat --bundles 1 lib/libfat.so
	# two at a time do not wait for each other, nor see what is there
	echo none >tmp/measured_gfx1030.kpack
	exec 9<tmp
	flock 9
	TMPDIR=$T/tmp kpack report -q --json lib >good.json
	exec 9<&-
	[ "$(ls -A tmp)" = measured_gfx1030.kpack ]
	[ "$(jq -c '[.objects, .faults]' good.json)" = '[3,[]]' ]
	as_root
	mkfat --bundles 1 --seed y lib/libclosed.so
	chmod 0 lib/libclosed.so
	mkdir theirs
	mkfifo theirs/fifo
	chown -R 1234 theirs
	status=0
	as_nobody "$KPACK_BIN/kpack" report -q --json lib >bad.json 2>err || status=$?
	[ "$status" -eq 1 ] && grep -q 'libclosed.so: ' err
	[ "$(jq -c '[.objects, .stored, (.faults | length)]' bad.json)" = "$(jq -c '[.objects, .stored, 1]' good.json)" ]
	exec {reader}<>theirs/fifo
	! kpack report -q -o theirs/fifo lib 2>err || false
	[ "$(cat err)" = "kpack: theirs/fifo: is not written to, because another user may have put it there" ]
}

# bats test_tags=plain, all
@test "in a browser: tables sort, libraries zoom, an address sorts, nothing is loaded, nobody complains" {
	make_tree
	kpack report -q -o page.html tree
	py <<-'EOF'
	from browser import Browser
	def column(b, table, i):
	    return b.run("Array.from(document.querySelectorAll('#%s tbody tr')).map(r => r.cells[%d].value)" % (table, i))
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
	    full = b.run("document.querySelector('.map').getAttribute('viewBox')")
	    b.click(".map .lib:last-child rect")
	    near = b.run("document.querySelector('.map').getAttribute('viewBox')")
	    assert near != full and float(near.split()[2]) < 1200, near
	    assert b.run("document.querySelectorAll('.map text.z').length") > 0
	    b.run("document.querySelector('.map .lib').focus()")
	    b.key("Escape", 27)
	    assert b.run("document.querySelector('.map').getAttribute('viewBox')") == full
	    # the other map, by its label
	    areas = "Array.from(document.querySelectorAll('.map .lib > :first-child')).map(e => e.getAttribute('width') * e.getAttribute('height'))"
	    by_stored = b.run(areas)
	    assert len(by_stored) == 4 and sum(by_stored) > 0.99 * 1200 * 640, by_stored
	    b.click("label[for=by-decoded]")
	    assert b.run(areas) != by_stored
	    # no part is wider than a phone
	    b.size(375, 800)
	    assert b.run("document.querySelector('.map').getAttribute('viewBox')") == "0 0 400 640"
	    assert b.run("document.documentElement.scrollWidth") <= 375
	    assert set(b.requests()) == {u for u in b.requests() if u.startswith("file://") and "page.html" in u}
	    assert not b.complaints(), b.complaints()
	with Browser(".") as b:
	    b.open("page.html", "#sort=libraries,0,up")
	    names = b.run("Array.from(document.querySelectorAll('#libraries tbody th')).map(e => e.textContent)")
	    assert names == ["lib/liba.so.1", "lib/libb.so", "miopen", "rocblas"], names
	    assert not b.complaints(), b.complaints()
	with Browser("two") as b:
	    b.open("page.html", "#sort=nothing,99,up")
	    # on paper: nothing to press, nothing cut off
	    b.size(720, 720)
	    b.ask("Emulation.setEmulatedMedia", media="print")
	    assert b.run("getComputedStyle(document.querySelector('label')).display") == "none"
	    assert b.run("document.documentElement.scrollWidth") <= 720
	    assert not b.complaints(), b.complaints()
	with Browser("three", "--blink-settings=scriptEnabled=false") as b:
	    b.open("page.html")
	    assert "needs JavaScript" in b.run("document.body.innerText")
	    assert not b.complaints(), b.complaints()
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
	kpack report -q --title '</title><script>window.bad=1</script>' -o page.html bad.kpack
	py <<-'EOF'
	from browser import Browser
	with Browser(".") as b:
	    b.size(1280, 900)
	    b.open("page.html")
	    b.click(".map .lib rect")
	    b.click("#libraries thead th:nth-child(1) button")
	    assert b.run("window.bad === undefined") and b.run("document.images.length") == 0
	    assert not b.complaints(), b.complaints()
	    assert len(b.requests()) == 1
	    # even where a script came in, it could fetch nothing
	    assert b.run("fetch('page.html').then(() => 'fetched', () => 'refused')") == "refused"
	EOF
}
