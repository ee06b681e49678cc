#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The container of wheels: reading, refusing and writing zip files.

# bats file_tags=single, long

load packing

tricks() { $python "$tools/ziptricks.py" "$@"; }

wheel=x-1.0-py3-none-any.whl

# Read the wheel ./$wheel and write out/$wheel.
rewheel() {
	rm -rf tree out
	mkdir tree out
	timeout 1500 "$KPACK_BIN/tests/stub/rewheel" "$@" $wheel tree "./out/$wheel"
}

# The wheel of TRICK is refused with TEXT, and nothing is written.
bad() { # TRICK TEXT
	tricks "$1" $wheel
	status=0
	rewheel 2>err || status=$?
	[ $status -eq 1 ] || { echo "$1: exit $status"; cat err; return 1; }
	grep -qF -e "$2" err || { echo "$1: no '$2' in:"; cat err; return 1; }
	[ -z "$(ls -A out)" ]
}

good() { # TRICK
	tricks "$1" $wheel
	rewheel
	unzip -tq "out/$wheel"
	same_files
}

# Python's zipfile finds the same members in both wheels, and RECORD is what it should be.
same_files() {
	py <<-EOF
	import base64, csv, hashlib, io, zipfile
	a, b = zipfile.ZipFile("$wheel"), zipfile.ZipFile("out/$wheel")
	assert b.testzip() is None
	record = "x-1.0.dist-info/RECORD"
	mode = lambda z, n: z.getinfo(n).external_attr >> 16 & 0o777
	names = [n for n in a.namelist() if n != record and not n.endswith("/")]
	assert b.namelist() == names + [record], b.namelist()
	for n in names:
	    assert a.read(n) == b.read(n), n
	    assert mode(a, n) == mode(b, n), n
	rows = list(csv.reader(io.StringIO(b.read(record).decode())))
	assert rows[-1] == [record, "", ""]
	for n, h, size in rows[:-1]:
	    raw = hashlib.sha256(b.read(n)).digest()
	    assert h == "sha256=" + base64.urlsafe_b64encode(raw).decode().rstrip("="), n
	    assert int(size) == len(b.read(n)), n
	assert [r[0] for r in rows] == b.namelist()
	for i in b.infolist():
	    assert not i.extra and i.create_system == 3, i
	    assert i.external_attr >> 28 == 8, i
	    assert i.date_time == (1980, 1, 1, 0, 0, 0), i
	EOF
}

@test "wheels of every writer are read and written again" {
	for trick in plain rich zip64 streamed same-name directories hexadecimal sha512; do
		good $trick || { echo $trick; return 1; }
	done
}

@test "names that leave the wheel, or that nobody can trust, are refused" {
	bad up 'x/../d.bin: it'
	bad absolute '/x/ata.bin: it'
	bad dot 'x/./ta.bin: it'
	bad empty-component 'x//ata.bin: it'
	bad backslash 'it has a backslash'
	bad drive 'C:/data.bi: it begins with a drive'
	bad control 'x/da\033a.bin: it'
	bad latin 'x/da\377a.bin: it'
	bad nul 'can be read in two ways'
	bad second-name 'second name differs'
}

@test "members that clash or are no files are refused" {
	bad duplicate 'x/data.bin: it occurs twice'
	bad below-file 'x/data.bin/y: it stands below a file'
	bad file-and-directory 'x/data.bin: it occurs twice'
	bad symlink 'x/link: a symbolic link'
	bad fifo 'x/fifo: neither a file nor a directory'
	bad encrypted 'x/data.bin: encrypted'
	bad bzip2 'compression method 12'
}

@test "bombs, and sizes that lie, are refused" {
	bad bomb 'more than 100 times as many'
	bad less 'x/data.bin'
	bad more 'x/data.bin'
	bad huge 'x/data.bin'
	bad crc 'x/data.bin'
	bad overlap 'overlap'
	bad reach 'overlap'
}

@test "what is no archive, or not all of one, is refused" {
	bad nothing 'not a zip archive'
	bad text 'not a zip archive'
	bad cut 'not a zip archive'
	bad trailing 'not a zip archive'
	bad leading 'directory:'
	bad many '60000 members'
	bad disks 'several disks'
}

@test "a RECORD that lies is refused" {
	bad unlisted 'x/data.bin: not listed'
	bad listed 'x/gone.py: listed, but not a file'
	bad listed-twice 'x/data.bin is listed twice'
	bad wrong-hash 'x/data.bin: its hash differs'
	bad wrong-size 'x/data.bin: 7 bytes listed'
	bad no-hash 'x/data.bin: no hash'
	bad md5 'not sha256, sha384 or sha512'
	bad csv 'a quote is not closed'
	bad no-record 'RECORD: it is missing'
}

@test "a wheel that is not what it is called is refused" {
	bad no-wheel 'there is no WHEEL'
	bad wheel-2 'Wheel-Version is not 1.x'
	bad two-infos 'exactly one .dist-info'
	bad other-name "Name is 'y'"
	bad other-version "Version is '1.1'"
}

@test "every byte that changes is noticed, or changes nothing" {
	tricks plain $wheel
	cp $wheel whole.whl
	py <<-EOF
	import os, subprocess, zipfile
	data = open("whole.whl", "rb").read()
	want = {n: zipfile.ZipFile("whole.whl").read(n) for n in zipfile.ZipFile("whole.whl").namelist()}
	for at in range(0, len(data), max(1, len(data) // 150)):
	    open("$wheel", "wb").write(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
	    subprocess.run("rm -rf tree out; mkdir tree out", shell=True)
	    p = subprocess.run(["$KPACK_BIN/tests/stub/rewheel", "$wheel", "tree", "./out/$wheel"],
	                       capture_output=True, timeout=600)
	    assert p.returncode in (0, 1), (at, p)
	    if p.returncode == 0:
	        z = zipfile.ZipFile("out/$wheel")
	        got = {n: z.read(n) for n in z.namelist()}
	        assert got == want, at
	EOF
}

@test "the same wheel gives the same bytes, whatever the threads, time and place" {
	tricks rich $wheel
	rewheel -t1
	mv "out/$wheel" first
	rewheel -t4
	cmp first "out/$wheel"
	mkdir elsewhere
	cp $wheel elsewhere
	cd elsewhere
	umask 077
	rewheel -t2
	cmp ../first "out/$wheel"
	rewheel -t1 -c
	mv "out/$wheel" copied
	rewheel -t3 -c
	cmp copied "out/$wheel"
	same_files
}

@test "SOURCE_DATE_EPOCH is the time of members, as far as zip can state it" {
	tricks plain $wheel
	for row in '1700000000 2023-11-14T22:13:20' '0 1980-01-01T00:00:00' \
		'99999999999 2107-12-31T23:59:58'; do
		read -r epoch want <<<"$row"
		SOURCE_DATE_EPOCH=$epoch TZ=Asia/Tokyo rewheel
		got=$(py <<-EOF
		import zipfile
		times = {i.date_time for i in zipfile.ZipFile("out/$wheel").infolist()}
		assert len(times) == 1
		print("%04d-%02d-%02dT%02d:%02d:%02d" % times.pop())
		EOF
		)
		[ "$got" = "$want" ] || { echo "$epoch: $got"; return 1; }
	done
	for epoch in -1 10K 1.5 x 99999999999999999999; do
		SOURCE_DATE_EPOCH=$epoch rewheel 2>err && return 1
		grep -qF "SOURCE_DATE_EPOCH" err
		[ -z "$(ls -A out)" ]
	done
}

@test "archives and what deflate does not shrink are stored; level 0 stores all" {
	tricks rich $wheel
	rewheel
	unzip -v "out/$wheel" | grep -E 'Stored .* x/code.kpack$'
	unzip -v "out/$wheel" | grep -E 'Defl:. .* x/zeros$'
	unzip -v "out/$wheel" | grep -E 'Stored .* x/__init__.py$'
	rewheel -l0
	! unzip -v "out/$wheel" | grep Defl || false
	same_files
}

# bats test_tags=plain
@test "pip installs what was written" {
	tricks rich $wheel
	rewheel -t2
	$python -m venv --without-pip env
	PIP_CONFIG_FILE=/dev/null $python -m pip --isolated install --quiet --no-index \
		--disable-pip-version-check --target site "out/$wheel"
	[ -x 'site/x/run, "it".sh' ]
	unzip -p $wheel x/zeros | cmp - site/x/zeros
}

@test "unpacking follows no existing link" {
	tricks plain $wheel
	mkdir tree out victim
	ln -s ../victim tree/x
	! "$KPACK_BIN/tests/stub/rewheel" $wheel tree "./out/$wheel" 2>err || false
	[ -z "$(ls -A victim)" ]
	rm tree/x
	mkdir tree/x
	ln -s ../../victim/file tree/x/data.bin
	! "$KPACK_BIN/tests/stub/rewheel" $wheel tree "./out/$wheel" 2>err || false
	[ -z "$(ls -A victim)" ]
	[ -z "$(ls -A out)" ]
}

# bats test_tags=slow, all
@test "a member of more than 4 GiB is written with zip64 and read again" {
	[ "$(df --output=avail -k . | tail -n 1)" -gt 16000000 ] || skip "needs 16 GB"
	py <<-EOF
	import base64, hashlib, io, sys
	import ziptricks as t, zipfile
	size, piece = (4 << 30) + 5, bytes(1 << 20)
	h = hashlib.sha256()
	class WithHoles(io.FileIO):  # zeros take no room on the disk
	    def write(self, b):
	        if b is not piece:
	            return super().write(b)
	        self.seek(len(b), 1)
	        return len(b)
	with zipfile.ZipFile(WithHoles("$wheel", "w+"), "w", zipfile.ZIP_STORED) as z:
	    rows = []
	    with z.open(t.entry("x/large.kpack"), "w", force_zip64=True) as f:
	        left = size
	        while left:
	            part = piece if left >= len(piece) else piece[:left]
	            f.write(part)
	            h.update(part)
	            left -= len(part)
	    raw = base64.urlsafe_b64encode(h.digest()).rstrip(b"=").decode()
	    rows = [f"x/large.kpack,sha256={raw},{size}"]
	    for n, b in (("METADATA", t.metadata()), ("WHEEL", t.WHEEL)):
	        z.writestr(t.entry("x-1.0.dist-info/" + n), b)
	        rows.append(f"x-1.0.dist-info/{n},{t.digest(b)},{len(b)}")
	    rows.append("x-1.0.dist-info/RECORD,,")
	    z.writestr(t.entry("x-1.0.dist-info/RECORD"), "\n".join(rows) + "\n")
	EOF
	rewheel -t2
	rm -rf tree
	unzip -tq "out/$wheel"
	unzip -v "out/$wheel" | grep -E '4294967301 +Stored'
}
