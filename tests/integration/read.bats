#!/usr/bin/env bats
# kpack ls and cat on good archives of any writer, against an independent reader and writer in
# Python.  What else the commands that read print is in tests/golden.

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
}

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME

make_archive() { # NAME [DESCRIPTION]
	$python "$tools/mkarchive.py" "$DATA/$1.kpack" ${2:+"$2"}
}

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

