#!/usr/bin/env bats
# kpack ls, cat, extract, info, verify on good archives of any writer, against an independent
# reader and writer in Python.

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	cat >"$DATA/mixed.json" <<-'END'
	{"frame_index": true, "group": "mixed", "family": "fam", "entries": [
	 {"key": "lib/libz.so#0", "arch": "gfx1100", "data": {"size": 20000, "seed": 1},
	  "metadata": {"xxh3": true, "target": "hipv4-amdgcn-amd-amdhsa--gfx1100"}},
	 {"key": "lib/libz.so#0", "arch": "gfx90a:sramecc+:xnack-", "data": {"size": 3000, "seed": 2},
	  "metadata": {"xxh3": true}},
	 {"key": "lib/libz.so#1", "arch": "gfx1100", "same_as": 0, "metadata": {"xxh3": true}},
	 {"key": "lib/libz.so#10", "arch": "gfx1100", "data": "ten"},
	 {"key": "share/k.db", "arch": "generic", "type": "db", "data": {"size": 300000, "seed": 3},
	  "chunk": 65536, "metadata": {"path": "share/k.db", "mode": 416, "xxh3": true}},
	 {"key": "bin/tool#0", "arch": "gfx90a:xnack+", "data": ""}]}
	END
	make_archive mixed "$DATA/mixed.json"
	sed 's/"frame_index": true/"frame_index": false/' "$DATA/mixed.json" >"$DATA/plain.json"
	make_archive plain "$DATA/plain.json"
	sed 's/"frame_index": true/"scheme": "none"/; s/"chunk": 65536, //' "$DATA/mixed.json" \
		>"$DATA/none.json"
	make_archive none "$DATA/none.json"
	mkdir "$DATA/dir"
	cp "$DATA/none.kpack" "$DATA/dir/b.kpack"
	echo '{"entries": [{"key": "only#0", "arch": "gfx1200", "data": "x"}]}' |
		make_archive dir/a
	echo junk >"$DATA/dir/readme.txt"
}

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME

make_archive() { # NAME [DESCRIPTION]
	$python "$tools/mkarchive.py" "$DATA/$1.kpack" ${2:+"$2"}
}

# A program on stdin that uses mkarchive as a module.
make() { PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1 $python - "$@"; }

oracle() { $python "$tools/readkpack.py" "$@"; }

kpack() { "$KPACK_BIN/kpack" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR"
}

@test "ls: key, arch, size, in order of key and arch" {
	for name in mixed plain none; do
		oracle ls "$DATA/$name.kpack" | cut -f 1,2,4 >want
		kpack ls "$DATA/$name.kpack" >got
		diff want got
	done
}

@test "ls -l: type, ordinal, compressed size, path" {
	kpack ls -l "$DATA/mixed.kpack" >got
	oracle ls "$DATA/mixed.kpack" | awk -F '\t' -v OFS='\t' '{print $1, $2, $4, $3, $5}' >want
	cut -f 1-5 got | diff want -
	[ "$(awk -F '\t' '{print NF}' got | sort -u)" = 7 ]
	[ "$(grep ^share/k.db got | cut -f 7)" = share/k.db ]
	[ "$(grep ^bin/tool got | cut -f 7)" = - ]
	# scheme none stores what it says
	kpack ls --long "$DATA/none.kpack" | awk -F '\t' '$3 != $6 { exit 1 }'
}

@test "ls --json: one array, the same facts" {
	kpack ls --json "$DATA/mixed.kpack" "$DATA/none.kpack" >got.json
	kpack ls -l "$DATA/mixed.kpack" >got.text
	$python - "$DATA" <<-'END'
	import json, sys
	rows = json.load(open("got.json"))
	assert len(rows) == 12, len(rows)
	assert [r["archive"] for r in rows] == [sys.argv[1] + "/mixed.kpack"] * 6 + [sys.argv[1] + "/none.kpack"] * 6
	for row, line in zip(rows, open("got.text")):
	    key, arch, size, kind, ordinal, stored, path = line.rstrip("\n").split("\t")
	    assert set(row) == {"archive", "key", "arch", "type", "ordinal", "size", "compressed_size", "path", "metadata"}
	    assert (row["key"], row["arch"], row["type"]) == (key, arch, kind)
	    assert (row["size"], row["ordinal"], row["compressed_size"]) == (int(size), int(ordinal), int(stored))
	    assert row["path"] == (None if path == "-" else path)
	END
}

@test "ls: a directory is its archives by name; arguments keep their order" {
	kpack ls --json "$DATA/mixed.kpack" "$DATA/dir" >got.json
	[ "$($python -c 'import json, os; print(*dict.fromkeys(os.path.basename(r["archive"]) for r in json.load(open("got.json"))))')" = "mixed.kpack a.kpack b.kpack" ]
}

@test "a directory is also a tree, with its archives in .kpack; without any, every command says so and fails" {
	mkdir -p none/lib tree/.kpack
	echo text >none/lib/a
	fails() { # TEXT COMMAND...
		status=0
		kpack "${@:2}" >out 2>err || status=$?
		[ "$status" = 1 ] && grep -qxF -e "kpack: $1" err || { echo "${*:2}: $status"; cat err; return 1; }
	}
	for dir in none tree; do
		for command in ls "ls --json" info verify "verify -q" "extract -C x" "cat -o x"; do
			[[ $command == cat* ]] && key="k gfx1100" || key=
			fails "$dir: no archives (*.kpack) in it" $command $dir $key
			[ ! -e x ]
		done
		fails "$dir: no archives (*.kpack) in it" merge "$DATA/mixed.kpack" $dir -o m.kpack
		fails "$dir: there is no binary to check" mark check $dir
		fails "$dir: there is no binary to check" mark strip-safe --check $dir
		# not a check: nothing is what it leaves
		kpack prune $dir
	done
	[ ! -e m.kpack ]
	fails "tree: there is no file to check" verify --tree tree
	# one of several
	fails "tree: no archives (*.kpack) in it" verify "$DATA/mixed.kpack" tree
	mkdir one
	cp /bin/true one/program
	kpack mark check one none
	fails "tree: there is no binary to check" mark check one tree
	fails "tree: there is no binary to check" mark check tree one
	rm -r one
	cp "$DATA/mixed.kpack" tree/.kpack
	kpack ls "$DATA/mixed.kpack" >want
	kpack ls tree | diff want -
	kpack verify tree | grep -qx "tree/.kpack/mixed.kpack: ok, .*"
	kpack info tree | grep -qx tree/.kpack/mixed.kpack
	kpack extract "$DATA/mixed.kpack" -C one
	kpack extract tree -C other
	diff -r one other
	read -r key arch _ <want
	cmp <(kpack cat tree "$key" "$arch") <(kpack cat "$DATA/mixed.kpack" "$key" "$arch")
	fails "tree: no entry none for gfx1100" cat tree none gfx1100
	# both places count, and a fault in one
	cp "$DATA/mixed.kpack" tree/a.kpack
	[ "$(kpack verify tree | grep -c ": ok, ")" = 2 ]
	echo junk >tree/.kpack/mixed.kpack
	! kpack verify -q tree || false
	fails "missing: cannot look at it: No such file or directory" ls missing
	[ "$(wc -l <err)" = 1 ]
}

@test "the status of cat, and of ls and extract with --arch, is that of what was asked for" {
	PYTHONPATH=$tools $python - <<-'END'
	from mkarchive import Archive
	a = Archive()
	a.add("good#0", "gfx1100", b"good")
	a.add("bad#0", "gfx942", b"bad", ordinal=7)
	a.write("a.kpack")
	END
	[ "$(kpack cat a.kpack good gfx1100 2>err)" = good ]
	kpack cat -o x a.kpack good gfx1100
	grep -q 'bad#0 gfx942' err
	! kpack cat a.kpack bad gfx942 2>err || false
	grep -q 'bad#0 gfx942: ordinal 7' err
	for command in ls "extract -C out -f"; do
		kpack $command --arch gfx1100 a.kpack 2>err
		[ ! -s err ]
		! kpack $command --arch gfx942 a.kpack 2>err || false
		grep -q 'bad#0 gfx942' err
		! kpack $command a.kpack 2>err || false
	done
	[ "$(cat out/toc/good/gfx1100.hsaco)" = good ]
}

@test "ls: what can be listed is listed beside what cannot" {
	run kpack ls missing "$DATA/dir/a.kpack"
	[ "$status" -eq 1 ]
	[[ "$output" == *$'only#0\tgfx1200\t1'* ]]
}

@test "ls --arch: what a GPU can load, and what suits every GPU; or the letters" {
	arches_of() { kpack ls "$@" "$DATA/mixed.kpack" | cut -f 2 | tr '\n' ' '; }
	[ "$(arches_of --arch gfx90a)" = "gfx90a:xnack+ gfx90a:sramecc+:xnack- generic " ]
	[ "$(arches_of --arch gfx90a:xnack+)" = "gfx90a:xnack+ generic " ]
	[ "$(arches_of --arch gfx90a:xnack-)" = "gfx90a:sramecc+:xnack- generic " ]
	[ "$(arches_of --arch gfx90a:sramecc+)" = "gfx90a:xnack+ gfx90a:sramecc+:xnack- generic " ]
	[ "$(arches_of --arch gfx90a --arch-exact)" = "generic " ]
	[ "$(arches_of --arch-exact --arch gfx90a-xnack-:sramecc+)" = "gfx90a:sramecc+:xnack- generic " ]
	[ "$(arches_of --arch generic)" = "generic " ]
	[ "$(arches_of --arch all)" = "$(arches_of)" ]
	[ "$(kpack ls --arch gfx90a:xnack-:sramecc+,generic "$DATA/mixed.kpack" | wc -l)" = 2 ]
	run kpack ls --arch generic,gfx803 "$DATA/mixed.kpack"
	[ "$status" -eq 0 ]
	[ "${lines[1]}" = "kpack: --arch: gfx803: no entry is for it" ]
	run kpack ls --arch gfx90a:foo "$DATA/mixed.kpack"
	[ "$status" -eq 2 ]
}

@test "cat: the bytes of every entry" {
	for name in mixed plain none; do
		oracle ls "$DATA/$name.kpack" | cut -f 1,2 >list
		while IFS=$'\t' read -r key arch; do
			oracle frames "$DATA/$name.kpack" "$key" "$arch" >want
			kpack cat "$DATA/$name.kpack" "$key" "$arch" >got
			cmp want got
			kpack cat -o file "$DATA/$name.kpack" "$key" "$arch"
			cmp want file
		done <list
	done
}

@test "cat: a key without # is also index 0; nothing else is guessed" {
	kpack cat "$DATA/mixed.kpack" lib/libz.so gfx1100 | cmp - <(oracle frames "$DATA/mixed.kpack" 'lib/libz.so#0' gfx1100)
	run kpack cat "$DATA/mixed.kpack" lib/libz.so gfx90a
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: $DATA/mixed.kpack: no entry lib/libz.so for gfx90a" ]
	run kpack cat "$DATA/mixed.kpack" 'lib/libz.so#2' gfx1100
	[ "$status" -eq 1 ]
	run kpack cat "$DATA/mixed.kpack" 'lib/libz.so#2'
	[ "$status" -eq 2 ]
}

@test "cat: lost output is an error" {
	[ -w /dev/full ] || skip "no /dev/full"
	run sh -c "'$KPACK_BIN/kpack' cat '$DATA/mixed.kpack' share/k.db generic >/dev/full"
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: standard output: write: No space left on device" ]
	run sh -c "'$KPACK_BIN/kpack' ls '$DATA/mixed.kpack' >/dev/full"
	[ "$status" -eq 1 ]
	run sh -c "'$KPACK_BIN/kpack' --help >/dev/full"
	[ "$status" -eq 1 ]
	run kpack cat -o /dev/full "$DATA/mixed.kpack" share/k.db generic
	[ "$status" -eq 1 ]
}

@test "extract: files at their path, others below toc" {
	for name in mixed plain none; do
		kpack extract "$DATA/$name.kpack" -C "out-$name"
		(cd "out-$name" && find . -type f | LC_ALL=C sort) >got
		cat >want <<-'END'
		./share/k.db
		./toc/bin/tool/gfx90a:xnack+.hsaco
		./toc/lib/libz.so/gfx1100#1.hsaco
		./toc/lib/libz.so/gfx1100#10.hsaco
		./toc/lib/libz.so/gfx1100.hsaco
		./toc/lib/libz.so/gfx90a:sramecc+:xnack-.hsaco
		END
		diff want got
		cmp "out-$name/share/k.db" <(oracle frames "$DATA/$name.kpack" share/k.db generic)
		cmp "out-$name/toc/lib/libz.so/gfx1100#1.hsaco" \
			<(oracle frames "$DATA/$name.kpack" 'lib/libz.so#1' gfx1100)
		[ "$(find "out-$name" -type d | wc -l)" -eq 7 ]
	done
	[ "$(stat -c %a out-mixed/share/k.db)" = 640 ]
	[ "$(stat -c %a out-mixed/toc/lib/libz.so/gfx1100.hsaco)" = 644 ]
}

@test "extract: the umask counts" {
	umask 077
	kpack extract "$DATA/mixed.kpack" -C out
	[ "$(stat -c %a out/share/k.db)" = 600 ]
}

@test "extract --arch: only those, and no empty directories" {
	kpack extract --arch gfx1100 "$DATA/mixed.kpack" -C out
	# three objects, and the file for every GPU
	[ "$(find out -type f | wc -l)" -eq 4 ]
	[ -e out/share/k.db ]
	[ ! -e out/toc/bin ]
	run kpack extract --arch gfx803 "$DATA/mixed.kpack" -C none
	[ "$status" -eq 0 ]
	[ "$output" = "kpack: --arch: gfx803: no entry is for it" ]
	[ "$(find none -type f)" = none/share/k.db ]
}

@test "extract: what exists stays, unless forced" {
	mkdir -p out/share
	echo mine >out/share/k.db
	run kpack extract "$DATA/mixed.kpack" -C out
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: out/share/k.db: already exists (--force replaces it)" ]
	[ "$(cat out/share/k.db)" = mine ]
	[ -e out/toc/bin/tool/gfx90a:xnack+.hsaco ]
	kpack extract --force "$DATA/mixed.kpack" -C out
	[ "$(stat -c %s out/share/k.db)" = 300000 ]
	[ -z "$(find out -name '.kpack*')" ]
}

@test "extract: OUT is needed" {
	run kpack extract "$DATA/mixed.kpack"
	[ "$status" -eq 2 ]
	[[ "$output" == *"-C OUT is missing"* ]]
}

@test "info: text and JSON" {
	run kpack info "$DATA/mixed.kpack"
	[ "$status" -eq 0 ]
	[[ "$output" == *"scheme        zstd-per-kernel"* ]]
	[[ "$output" == *"group         mixed"* ]]
	[[ "$output" == *"frame_index   yes"* ]]
	kpack info --json "$DATA/mixed.kpack" "$DATA/none.kpack" >got.json
	$python - <<-'END'
	import json
	a, b = json.load(open("got.json"))
	assert (a["scheme"], a["group"], a["family"]) == ("zstd-per-kernel", "mixed", "fam")
	assert b["scheme"] == "none" and b["ratio"] > 1 and not b["frame_index"]
	assert a["declared"] == ["generic", "gfx1100", "gfx90a:sramecc+:xnack-", "gfx90a:xnack+"]
	assert {r["arch"]: r["entries"] for r in a["arches"]} == {
	    "generic": 1, "gfx1100": 3, "gfx90a:sramecc+:xnack-": 1, "gfx90a:xnack+": 1}
	assert (a["entries"], a["frames"], a["shared"], a["faults"]) == (6, 5, 1, [])
	assert a["size"] == 20000 * 2 + 3000 + 3 + 300000 and a["frame_index"] is True
	assert a["compressed_size"] < a["size"]
	END
}

@test "verify: good archives of every writer" {
	for name in mixed plain none; do
		run kpack verify "$DATA/$name.kpack"
		[ "$status" -eq 0 ]
		[ "${lines[-1]}" = "$DATA/$name.kpack: ok, 6 entries, 343003 bytes" ]
		[ -z "$(kpack verify -q "$DATA/$name.kpack")" ]
	done
	run kpack verify "$DATA/dir"
	[ "$status" -eq 0 ]
	[[ "$output" == *"dir/a.kpack: ok, 1 entries, 1 bytes"* ]]
	[[ "$output" == *"dir/b.kpack: ok"* ]]
}

@test "verify: rules that only our writer keeps are notes" {
	run kpack verify "$DATA/plain.kpack"
	[ "$status" -eq 0 ]
	[[ "$output" == *"plain.kpack: note: toc: no frame_index"* ]]
	[[ "$output" == *"note: toc: 2 of 6 entries without xxh3"* ]]
	make . <<-'END'
	import sys
	from mkarchive import Archive, noise
	out = sys.argv[1] + "/"
	a = Archive(checksum=False, index=False, arches=["gfx900", "gfx90a:xnack+:sramecc+", "gfx1100"])
	a.add("z", "gfx1100", noise(99), hash=False)
	a.add("a", "gfx90a:xnack+:sramecc+", noise(98), hash=False)
	a.blobs.append(a.frame(b"nobody's"))
	a.write(out + "amd.kpack", sort=False, drop=["format_version"], gap=bytes(7))
	END
	run kpack verify amd.kpack
	[ "$status" -eq 0 ]
	for text in "format_version is missing" "no frame_index" "gfx900 has no entries" \
		"not in bytewise order: a after z" "3 of 3 frames without a checksum" \
		"no entry refers to 1 of 3 frames (the first is 2)" "7 unused bytes" \
		"gfx90a:xnack+:sramecc+: its canonical spelling is gfx90a:sramecc+:xnack+" \
		"2 of 2 entries without xxh3"; do
		[[ "$output" == *"note: "*"$text"* ]] || { echo "not reported: $text"; false; }
	done
}

@test "verify: the same words on any number of threads" {
	make x.kpack <<-'END'
	import sys
	from mkarchive import Archive, noise
	a = Archive()
	for i in range(200):
	    good = a.frame(noise(1000 + i, i))
	    bad = good[:20] + bytes([good[20] ^ 255]) + good[21:]
	    a.add("k%d" % i, "gfx1100", noise(1000 + i, i), stored=bad if i % 3 == 0 else good)
	a.write(sys.argv[1])
	END
	run kpack verify --jobs 1 x.kpack
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 67 ]
	one=$output
	run kpack verify -j 8 x.kpack
	[ "$output" = "$one" ]
}

@test "names that could confuse a terminal are escaped" {
	make x.kpack <<-'END'
	import sys
	from mkarchive import Archive
	a = Archive()
	a.add("lib\\x\u202egpj.so#0", "gfx1100", b"1", path="a\\b")
	a.write(sys.argv[1])
	END
	[ "$(kpack ls -l x.kpack | cut -f 1,7)" = 'lib\134x\342\200\256gpj.so#0'$'\t''a\134b' ]
	kpack ls --json x.kpack | $python -c '
import json, sys
(row,) = json.load(sys.stdin)
assert row["key"] == "lib\\x\u202egpj.so#0" and row["path"] == "a\\b", row'
	mv x.kpack $'\e[31m.kpack'
	run kpack verify -q $'\e[31m.kpack' $'\e[32m'
	[ "$status" -eq 1 ]
	[[ "$output" == 'kpack: \033[32m: '* ]]
}

@test "usage: unknown commands and options, help" {
	run kpack
	[ "$status" -eq 2 ]
	run kpack frobnicate
	[ "$status" -eq 2 ]
	[[ "$output" == "kpack: frobnicate: unknown command"* ]]
	run kpack --frobnicate
	[ "$status" -eq 2 ]
	for command in pack mark ls cat extract info verify inspect; do
		run kpack "$command" --help
		[ "$status" -eq 0 ]
		[[ "${lines[0]}" == "usage: kpack $command "* ]]
		[[ "$output" == *$'\n  -h, --help '* ]]
		run kpack "$command" --frobnicate
		[ "$status" -eq 2 ]
		[[ "${lines[0]}" == "kpack: $command: --frobnicate: unknown option" ]]
		[[ "${lines[1]}" == "usage: kpack $command "* ]]
		run kpack "$command"
		[ "$status" -eq 2 ]
		[[ "$(kpack --help)" == *$'\n'"  $command "* ]]
	done
	run kpack ls --arch
	[ "$status" -eq 2 ]
	[[ "${lines[0]}" == "kpack: ls: --arch: an argument is missing" ]]
	[[ "$(kpack --version)" == "kpack "* ]]
	run "$KPACK_BIN/kpack-pack" --help
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == "usage: kpack-pack "* ]]
	for command in show convert set check restore strip-safe; do
		run kpack mark "$command" --help
		[ "$status" -eq 0 ]
		[[ "${lines[0]}" == "usage: kpack mark $command "* ]]
		run "$KPACK_BIN/kpack-mark" "$command" --frobnicate
		[ "$status" -eq 2 ]
		[[ "${lines[0]}" == "kpack-mark: mark $command: --frobnicate: unknown option" ]]
		[[ "${lines[1]}" == "usage: kpack-mark $command "* ]]
		run kpack mark "$command"
		[ "$status" -eq 2 ]
		[[ "$(kpack mark --help)" == *$'\n'"  $command "* ]]
	done
	run kpack mark frobnicate
	[ "$status" -eq 2 ]
	[[ "${lines[0]}" == "kpack: mark: frobnicate: unknown command" ]]
}
