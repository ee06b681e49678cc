#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack merge of archives, and kpack split of them: the results are checked by a reader in
# Python and by comparing bytes.  Joining and splitting start threads for archives with shared blocks only,
# which shared.bats has.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing

# write FILE 'python statements on a': an archive written in Python.
write() { # FILE ARGUMENTS STATEMENTS
	PYTHONPATH=$tools $python -c "
import sys, random, mkarchive
from mkarchive import noise
a = mkarchive.Archive($2)
$3
a.write(sys.argv[1])" "$1"
}

sums() {
	local f
	for f; do readkpack sums "$f"; done | sort
}

# Seven archives as kpack pack writes them, one object of which two architectures share.
seven() {
	local a n=0
	mkdir -p tree/lib
	mkfat tree/lib/libone.so --bundles 3 \
		--arches gfx803,gfx900,gfx906,gfx908,gfx90a:xnack+,gfx90a:xnack-,gfx1030
	mkfat tree/lib/libtwo.so --bundles 2 --arches gfx900,gfx1030
	kpack pack -q --archives-only --group seven tree out
	[ "$(ls out/.kpack | wc -l)" -eq 7 ]
}

@test "an archive that is added to is read when other runs have written it" {
	local x pid
	for x in gfx900 gfx906 gfx1030; do
		write "$x.kpack" "group='s', family='$x'" "a.add('a/x#0', '$x', b'$x' * 100)"
	done
	mkdir dir
	cp gfx900.kpack dir/s-all.kpack
	exec 8<dir
	flock 8
	kpack merge -q --force -o dir/s-all.kpack dir gfx1030.kpack 2>err 4>&- 8<&- &
	pid=$!
	until grep -q "dir: note: another process has locked it: waiting" err; do
		kill -0 $pid
		read -rt 0.05 <> <(:) || :
	done
	# a new archive needs no lock
	kpack merge -q -o dir/.new gfx900.kpack gfx906.kpack
	mv dir/.new dir/s-all.kpack
	flock -u 8
	exec 8<&-
	wait $pid
	cmp <(sums dir/s-all.kpack) <(sums gfx*.kpack)
}

@test "frames are copied as they are" {
	write a.kpack "group='g', level=19" "
a.add('x#0', 'gfx900', noise(300000, 1))
a.add('db', 'gfx900', noise(500000, 2), chunk=65536, path='db', odd={'unknown': [1, None]})"
	write b.kpack "group='g', level=1, index=False" "
a.add('x#0', 'gfx906', noise(300000, 3), hash=False)"
	kpack merge -q a.kpack b.kpack -o ab.kpack
	kpack verify -q ab.kpack
	PYTHONPATH=$tools py <<-'EOT'
	import readkpack
	a, b, m = (readkpack.Archive(f) for f in ("a.kpack", "b.kpack", "ab.kpack"))
	for old in (a, b):
	    for key, arch, e in old.entries():
	        new = m.top["toc"][key][arch]
	        x, y = old.blobs[e["ordinal"]], m.blobs[new["ordinal"]]
	        assert old.data[x[0]:x[0] + x[1]] == m.data[y[0]:y[0] + y[1]], key
	        assert e.get("metadata") == new.get("metadata"), key
	        assert list(e.get("metadata") or ()) == list(new.get("metadata") or ())
	assert m.top["gfx_arches"] == ["gfx900", "gfx906"]
	assert "frame_index" in m.top
	EOT
}

# Prints what a table says that the format does not name: of the whole, then of each entry.
unread() { # ARCHIVE
	$python -c "
import msgpack, struct, sys
data = open(sys.argv[1], 'rb').read()
toc = msgpack.unpackb(data[struct.unpack_from('<Q', data, 8)[0]:], strict_map_key=False)
known = 'format_version group_name gfx_arch_family gfx_arches toc compression_scheme blobs ' \
        'zstd_offset zstd_size frame_index piece_hashes table_hash'.split()
print([(k, v) for k, v in toc.items() if k not in known], toc['gfx_arches'])
for key, arches in toc['toc'].items():
    for arch, entry in arches.items():
        print(key, arch, [(k, v) for k, v in entry.items()
                          if k not in ('type', 'ordinal', 'original_size')])
" "$1"
}

@test "fields that are not known are carried over, of archives and of entries" {
	local scheme
	for scheme in zstd-per-kernel none; do
		write a.kpack "scheme='$scheme'" "
a.add('k#0', 'gfx1', noise(500), hash=False, entry={'first': [1, {'x': None}], 7: b'bin'})
a.add('k#1', 'gfx1', noise(600, 1), path='k', hash=False, entry={'crc': 2**64 - 1})
a.add('same#0', 'gfx1', noise(700, 2), hash=False)
a.bytes = __import__('functools').partial(a.bytes, last=['gfx_arches', 'producer'],
	top={'producer': 'next', 'only': {'a': [True, -1.5]}, 9: None})"
		write b.kpack "scheme='$scheme'" "
a.toc.append(('k#0', mkarchive.Pairs()))
a.places['k#0'] = a.toc[-1][1]
for arch in 'gfx3', 'gfx2':
    a.places['k#0'].append((arch, mkarchive.Pairs([('early', arch), ('type', 'hsaco'),
        ('late', 1), ('ordinal', 0), ('original_size', 800), ('metadata', 5)])))
    a.seen.append(arch)
a.blobs.append(a.encode(noise(800, 3)))
a.add('same#0', 'gfx1', noise(700, 2), entry={'note': 'said'}, hash=False)
a.bytes = __import__('functools').partial(a.bytes, sort=False,
	top={'producer': 'next', 'other': 1})"
		kpack merge -q a.kpack b.kpack -o all.kpack -f
		unread all.kpack >got
		cat >want <<-E
			[('only', {'a': [True, -1.5]}), (9, None), ('producer', 'next'), ('other', 1)] ['gfx1', 'gfx2', 'gfx3']
			k#0 gfx1 [('first', [1, {'x': None}]), (7, b'bin')]
			k#0 gfx2 [('early', 'gfx2'), ('late', 1), ('metadata', 5)]
			k#0 gfx3 [('early', 'gfx3'), ('late', 1), ('metadata', 5)]
			k#1 gfx1 [('metadata', {'path': 'k'}), ('crc', 18446744073709551615)]
			same#0 gfx1 [('note', 'said')]
		E
		diff want got
		# again, with one that says it in another order: the same
		kpack merge -q all.kpack b.kpack -o twice.kpack -f
		unread twice.kpack | diff want -
		kpack split -q --force all.kpack apart
		unread apart/test_gfx2.kpack >got
		[ "$(sed 1d got)" = "$(sed -n 3p want)" ]
		grep -q "^.('only', .*('producer', 'next'), ('other', 1). .'gfx2'.$" got
	done
}

@test "fields that are not known and differ are reported with both names, or one is preferred" {
	local way
	write a.kpack "" "a.add('k#0', 'gfx1', noise(500), entry={'note': 1})
a.bytes = __import__('functools').partial(a.bytes, top={'producer': 'one'})"
	write b.kpack "" "a.add('k#1', 'gfx1', noise(500))
a.bytes = __import__('functools').partial(a.bytes, top={'producer': 'two'})"
	run -1 --separate-stderr kpack merge a.kpack b.kpack -o out.kpack
	[ "$stderr" = 'kpack: out.kpack: b.kpack: its "producer" is "two", that of a.kpack is "one"' ]
	[ ! -e out.kpack ]
	run -1 --separate-stderr kpack split a.kpack b.kpack out
	[[ "$stderr" == *'b.kpack: its "producer" is "two", that of a.kpack is "one"'* ]]
	for way in a.kpack:one b.kpack:two; do
		kpack merge -qf a.kpack b.kpack -o out.kpack --prefer "${way%:*}"
		unread out.kpack | head -1 | grep -q "'producer', '${way#*:}'"
	done

	write c.kpack "" "a.add('k#0', 'gfx1', noise(500), entry={'note': 2})"
	run -1 --separate-stderr kpack merge a.kpack c.kpack -o other.kpack
	[[ "$stderr" == *"c.kpack: k#0 gfx1: other fields that are not known than in a.kpack"* ]]
	kpack merge -q a.kpack c.kpack -o other.kpack --prefer c.kpack
	unread other.kpack | grep -q "('note', 2)"
}

@test "archives get another scheme, or are compressed again" {
	local s t
	mkdir -p tree/lib/rocblas/library
	for s in A B C; do
		head -c 30000 /dev/urandom >tree/lib/rocblas/library/TensileLibrary_${s}_gfx90a.co
		yes "code $s" | head -c 200000 >>tree/lib/rocblas/library/TensileLibrary_${s}_gfx90a.co
	done
	: >tree/lib/rocblas/library/TensileLibrary_D_gfx90a.co
	cp tree/lib/rocblas/library/TensileLibrary_{A,E}_gfx90a.co
	kpack pack -q --archives-only --group g --chunk 65536 tree in
	kpack pack -q --archives-only --group g --scheme none tree plain
	mkfat --size 20000 --arches gfx90a fat.so
	kpack pack -q --archives-only --group g --scheme zstd-shared fat.so shared
	# archives of three schemes become one of any scheme
	sums in/.kpack/*.kpack shared/.kpack/*.kpack >want
	for s in none zstd-per-kernel zstd-shared; do
		kpack merge -q --scheme $s -o $s.kpack {plain,in,shared}/.kpack/*.kpack
		kpack verify -q $s.kpack
		sums $s.kpack | diff want -
		[ "$(readkpack toc $s.kpack | grep -c "\"compression_scheme\": \"$s\"")" = 1 ]
		# and that one any other, with the same bytes from the same contents
		for t in none zstd-per-kernel zstd-shared; do
			kpack merge -q --scheme $t -o $s-$t.kpack $s.kpack
			kpack verify -q $s-$t.kpack
			sums $s-$t.kpack | diff want -
		done
		cmp $s.kpack $s-$s.kpack
	done
	# chunks stay where they can be read alone, and are not claimed elsewhere
	[ "$(readkpack toc in/.kpack/g_gfx90a.kpack | grep -c '"chunk"')" = 4 ]
	kpack merge -q --scheme zstd-per-kernel --level 9 -o again.kpack in/.kpack/*.kpack
	[ "$(readkpack toc again.kpack | grep -c '"chunk"')" = 4 ]
	kpack verify -q again.kpack
	sums again.kpack | diff <(sums in/.kpack/*.kpack) -
	kpack merge -q --scheme zstd-shared -o s2.kpack in/.kpack/*.kpack
	! readkpack toc s2.kpack | grep '"chunk"' || false
	# equal contents are stored once
	[ "$(kpack merge --json --scheme none -o n2.kpack in/.kpack/*.kpack |
		$python -c 'import json, sys; print(json.load(sys.stdin)["frames"])')" = 4 ]
	# a higher level makes it smaller
	kpack merge -q --level 19 -o l19.kpack zstd-shared.kpack
	kpack merge -q --level 1 -o l1.kpack zstd-shared.kpack
	sums l19.kpack | diff want -
	[ "$(stat -c %s l19.kpack)" -lt "$(stat -c %s l1.kpack)" ]
	# an entry that archives of two schemes have differently still clashes
	write c1.kpack "group='c'" "a.add('x#0', 'gfx900', b'one')"
	write c2.kpack "group='c', scheme='none'" "a.add('x#0', 'gfx900', b'two')"
	run -1 --separate-stderr kpack merge --scheme zstd-shared c1.kpack c2.kpack -o c.kpack
	[[ "$stderr" == *"c2.kpack: x#0 gfx900: other bytes than in c1.kpack"* ]]
	# the entry that is left of an object decides its size, not a faulty one that was dropped
	$python "$tools/mkarchive.py" faulty.kpack <<-'END'
		{"group": "c", "entries": [
		 {"key": "x#0", "arch": "gfx900", "data": {"size": 5000, "seed": 1}, "original_size": 16},
		 {"key": "x#1", "arch": "gfx900", "data": {"size": 5000, "seed": 1}, "same_as": 0, "original_size": 5000}]}
	END
	kpack merge -q --scheme none --prefer c1.kpack -o c.kpack c1.kpack faulty.kpack
	[ "$(kpack cat c.kpack 'x#1' gfx900 | wc -c)" = 5000 ]
}

@test "blobs that lie in one another do not make an archive without end" {
	PYTHONPATH=$tools py <<-'EOT'
	import msgpack, struct
	n, size = 3000, 1 << 20
	toc = {"format_version": 1, "group_name": "g", "gfx_arch_family": "f", "gfx_arches": ["gfx900"],
	       "compression_scheme": "none",
	       "blobs": [{"offset": 64, "size": size - i} for i in range(n)],
	       "toc": {"k%d" % i: {"gfx900": {"type": "hsaco", "ordinal": i, "original_size": size - i}}
	               for i in range(n)}}
	with open("a.kpack", "wb") as f:
	    f.write(struct.pack("<4sIQ", b"KPAK", 1, 64 + size) + bytes(48) + bytes(size) + msgpack.packb(toc))
	EOT
	! kpack merge a.kpack -o m.kpack 2>err || false
	grep -q 'overlap' err
	[ ! -e m.kpack ]
}

@test "what cannot be read is an error, unless it may be left out" {
	write a.kpack "group='g'" "
a.add('x#0', 'gfx900', b'one'); a.add('y#0', 'gfx900', b'two', entry={'ordinal': 9})"
	! kpack merge a.kpack -o m.kpack 2>err || false
	grep -qF 'y#0 gfx900: ordinal 9' err
	[ ! -e m.kpack ]
	kpack merge -q --skip-faulty a.kpack -o m.kpack 2>err
	grep -qF 'y#0 gfx900: ordinal 9' err
	[ "$(readkpack ls m.kpack | wc -l)" -eq 1 ]
	head -c 100 a.kpack >short.kpack
	! kpack merge a.kpack short.kpack -o n.kpack 2>err || false
	grep -q '^kpack: short.kpack: ' err
	! kpack merge a.kpack absent.kpack -o n.kpack 2>err || false
	grep -q '^kpack: absent.kpack: ' err
	[ ! -e n.kpack ]
}

@test "damage inside a frame is found before anything is written" {
	write a.kpack "group='g'" "a.add('x#0', 'gfx900', noise(5000, 1)); a.add('y#0', 'gfx906', b'1')"
	write b.kpack "group='g'" "a.add('x#0', 'gfx900', noise(5000, 1))"
	cp a.kpack whole.kpack
	$python - a.kpack <<-'EOT'
	import sys
	b = bytearray(open(sys.argv[1], "rb").read())
	b[600] ^= 255
	open(sys.argv[1], "wb").write(b)
	EOT
	for more in "" b.kpack "--scheme none" "--scheme zstd-shared"; do
		! kpack merge -q a.kpack $more -o n.kpack 2>err || false
		grep -qE '^kpack: (n.kpack: )?a.kpack: x#0 gfx900: ' err
		[ ! -e n.kpack ]
	done
	# what --skip-faulty leaves out, another archive may have
	kpack merge -q --skip-faulty a.kpack -o m.kpack
	[ "$(readkpack ls m.kpack | cut -f 1)" = y#0 ]
	kpack merge -q --force --skip-faulty a.kpack b.kpack -o m.kpack
	readkpack sums m.kpack | sort | diff <(readkpack sums whole.kpack | sort) -
}

@test "a length word that contradicts the index is found" {
	write a.kpack "group='g'" "a.add('x#0', 'gfx900', noise(5000, 1)); a.add('y#0', 'gfx900', b'1')"
	$python - a.kpack <<-'EOT'
	import sys
	b = bytearray(open(sys.argv[1], "rb").read())
	b[68] ^= 1
	open(sys.argv[1], "wb").write(b)
	EOT
	! kpack merge -q a.kpack -o m.kpack 2>err || false
	grep -q 'a.kpack' err
	[ ! -e m.kpack ]
}

@test "wrong command lines are reported" {
	write a.kpack "group='g'" "a.add('x#0', 'gfx900', b'one')"
	mkdir d
	local want=2 status
	for args in "-o m.kpack" "a.kpack" "a.kpack -o d" "a.kpack -o d/" "a.kpack -o m.kpack --group=" \
		"a.kpack -o m.kpack --family=" "a.kpack -o m.kpack --nonsense" \
		"a.kpack -o m.kpack --scheme=zstd" "a.kpack -o m.kpack --level=0"; do
		status=0
		# shellcheck disable=SC2086 # words
		kpack merge $args >out 2>err || status=$?
		[ "$status" -eq 2 ] || { echo "$args: $status"; false; }
		[ -s err ] && [ ! -s out ]
	done
	mkdir empty
	! kpack merge empty -o m.kpack 2>err || false
	! kpack merge a.kpack -o absent/m.kpack 2>err || false
	grep -q '^kpack: absent/m.kpack: ' err
	[ ! -e m.kpack ]
}

@test "a disk that is full leaves nothing" {
	write a.kpack "group='g'" "a.add('x#0', 'gfx900', random.Random(1).randbytes(3000000))"
	write b.kpack "group='g'" "a.add('x#0', 'gfx906', random.Random(2).randbytes(3000000))"
	mkdir o
	! (ulimit -f 4000; kpack merge -q a.kpack b.kpack -o o/m.kpack 2>err) || false
	grep -q '^kpack: o/m.kpack: ' err
	[ -z "$(ls -A o)" ]
}

@test "a run that is killed leaves the old file or none" {
	local i
	for i in 1 2 3 4; do
		write "a$i.kpack" "group='g'" "
for n in range(50): a.add('x#%d' % n, 'gfx90$i', random.Random($i * 99 + n).randbytes(100000))"
	done
	kpack merge -q a1.kpack -o old.kpack
	cp old.kpack keep.kpack
	kpack merge -q a?.kpack -o want.kpack
	mkdir o
	for i in 1 2 3 4 5 6 7 8; do
		local signals=(KILL TERM INT HUP)
		cp keep.kpack o/m.kpack
		"$KPACK_BIN/kpack" merge -q --force a?.kpack -o o/m.kpack 3>&- &
		for ((n = 0; n < i * 300; n++)); do :; done
		kill -"${signals[i % 4]}" $! 2>/dev/null || true
		wait $! 2>/dev/null || true
		cmp -s o/m.kpack keep.kpack || cmp o/m.kpack want.kpack
		rm -f o/m.kpack
	done
	kpack merge -q a?.kpack -o o/m.kpack
	cmp o/m.kpack want.kpack
}

@test "more than an archive can have is reported before anything is written" {
	# frames of 1.5 GiB, which are holes and no frames: nobody looks inside
	py <<-'END'
	import mkarchive, struct
	for i in range(3):
	    a = mkarchive.Archive(group="g", family="f")
	    a.add("x#0", "gfx90%d" % i, b"x")
	    size, small = (3 << 29) + i, 8 + len(a.blobs[0])
	    data = a.bytes(top={"zstd_size": 8 + size, "frame_index": struct.pack("<2Q", 4, 8 + size)},
	                   toc_offset=72 + size)
	    with open("big%d.kpack" % i, "wb") as f:
	        f.write(data[:64] + struct.pack("<2I", 1, size))
	        f.seek(72 + size)
	        f.write(data[64 + small:])
	END
	mkdir o
	status=0
	kpack merge -q big?.kpack -o o/m.kpack 2>err || status=$?
	[ $status -eq 1 ]
	grep -q '^kpack: o/m.kpack: 48318382.. bytes of frames in all, one archive has at most 4 GiB$' err || { cat err; false; }
	[ -z "$(ls -A o)" ]
}

@test "what several architectures share goes to each, and volumes keep their number" {
	write g.2-rdna.kpack "group='g', family='rdna'" "
n = a.add('db', 'gfx1100', b'shared' * 9, path='db')
a.add('db', 'gfx1101', b'shared' * 9, ordinal=n, path='db')
a.add('x#0', 'gfx1101', b'own')"
	kpack split -q g.2-rdna.kpack o
	[ "$(ls o | tr '\n' ' ')" = "g.2_gfx1100.kpack g.2_gfx1101.kpack " ]
	kpack verify -q o
	[ "$(readkpack cat o/g.2_gfx1100.kpack db gfx1100)" = "$(readkpack cat o/g.2_gfx1101.kpack db gfx1101)" ]
	sums g.2-rdna.kpack >want
	sums o/*.kpack >got
	cmp want got
	cp g.2-rdna.kpack o/g.2_gfx1100.kpack
	! kpack split -q g.2-rdna.kpack o 2>err || false
	grep -q 'already exists' err
}

@test "a thousand archives are joined" {
	PYTHONPATH=$tools py <<-'EOT'
	import mkarchive, os
	os.mkdir("d")
	for n in range(1000):
	    a = mkarchive.Archive(group="g")
	    a.add("x%d#0" % n, "gfx900", b"%d" % n)
	    a.write("d/g%04d.kpack" % n)
	EOT
	kpack merge -q d -o m.kpack
	[ "$(readkpack ls m.kpack | wc -l)" -eq 1000 ]
	[ "$(readkpack cat m.kpack x777#0 gfx900)" = 777 ]
	kpack verify -q m.kpack
}
