#!/usr/bin/env bats
# kpack mark: converted binaries, from made-up libraries and from Debian's librocrand.

# bats file_tags=single

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C

kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }
mark() { kpack mark "$@"; }
mkfat() { $python "$tools/mkfat.py" "$@"; }
fatparse() { $python "$tools/fatparse.py" "$@"; }

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# root/lib/x.so of mkfat's OPTIONs, packed and converted in place; the fat one is fat.so
make_root() { # OPTION...
	mkdir -p root/lib
	mkfat "$@" root/lib/x.so
	cp -p root/lib/x.so fat.so
	kpack pack -q --archives-only --group g root root
	convert root/lib/x.so root/lib/x.so
}

convert() { # IN OUT [OPTION...]
	mark convert --kernel-name lib/x.so --search-path '../.kpack/g_@GFXARCH@.kpack' "${@:3}" "$1" "$2"
}

# The binary is a shared library that works; with python's own loader
answers() { # FILE
	$python -c 'import ctypes, sys; assert ctypes.CDLL(sys.argv[1]).answer() == 42' "$(realpath "$1")"
}

# .hip_fatbin of a fat library
section() { # FILE
	$python -c 'import sys; sys.path.insert(0, sys.argv[1]); import fatparse
sys.stdout.buffer.write(fatparse.Elf(sys.argv[2]).fatbin())' "$tools" "$1"
}

same_code() { # FILE FILE
	cmp <(section "$1") <(section "$2")
	[ "$(fatparse shape "$1")" = "$(fatparse shape "$2")" ]
}

# A run that ends with STATUS and has TEXT in its output
ends() { # STATUS TEXT COMMAND...
	run "${@:3}"
	[ "$status" -eq "$1" ] || { echo "exit $status of: ${*:3}"; echo "$output"; return 1; }
	[[ "$output" == *"$2"* ]] || { echo "no '$2' from: ${*:3}"; echo "$output"; return 1; }
}

everything_of() { # FILE: attributes and times, without the bytes
	stat -c '%a %u %g %Y' "$1"
	getfattr -d -m - --absolute-names "$1" 2>/dev/null | grep -v '^#' || true
}

# --- show ----------------------------------------------------------------------------

# --- convert -------------------------------------------------------------------------

@test "convert: in place and elsewhere, attributes stay" {
	mkdir -p root/lib
	mkfat root/lib/x.so
	chmod 6751 root/lib/x.so
	touch -d '2001-02-03 04:05:06' root/lib/x.so
	setfattr -n user.note -v hello root/lib/x.so 2>/dev/null || true
	if [ "$(id -u)" = 0 ]; then
		chown 12:34 root/lib/x.so
		chmod 6751 root/lib/x.so
		# user 12345 may read; cap_net_raw+ep
		setfattr -n system.posix_acl_access -v 0x0200000001000700ffffffff020004003930000004000500ffffffff10000500ffffffff20000100ffffffff root/lib/x.so 2>/dev/null || true
		setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 root/lib/x.so 2>/dev/null || true
	fi
	cp -a root/lib/x.so fat.so
	before=$(everything_of fat.so)
	ends 0 "x.so: converted, " convert root/lib/x.so root/lib/x.so
	[ "$(everything_of root/lib/x.so)" = "$before" ]
	ends 0 "other.so: converted, " convert fat.so other.so
	cmp other.so root/lib/x.so
	[ "$(everything_of other.so)" = "$before" ]
	[ "$(stat -c %s other.so)" -lt "$(stat -c %s fat.so)" ]
	answers other.so
	if grep -qa __CLANG_OFFLOAD_BUNDLE__ other.so; then return 1; fi
	ends 0 "" convert fat.so kept.so --keep-device-code
	grep -qa __CLANG_OFFLOAD_BUNDLE__ kept.so
	answers kept.so
	# through a symbolic link
	ln -s fat.so link.so
	convert link.so link.so
	[ -L link.so ]
	cmp fat.so other.so
}

@test "convert: what is converted already, what cannot be, and usage" {
	make_root
	cp root/lib/x.so was.so
	ends 0 "is converted already" convert root/lib/x.so root/lib/x.so
	cmp was.so root/lib/x.so
	ends 0 "is converted already" convert root/lib/x.so copy.so
	cmp was.so copy.so
	ends 1 "has no .hip_fatbin" convert /bin/sh out.so
	ends 1 "" convert /nonexistent out.so
	mkfat --loose 3 loose.so
	ends 1 "no wrapper" convert loose.so out.so
	[ ! -e out.so ]
	ends 1 "No such file" convert fat.so nowhere/out.so
	ln fat.so hard.so
	sum=$(sha256sum <fat.so)
	ends 1 "2 hard links" convert fat.so fat.so
	ends 1 "2 hard links" convert fat.so hard.so
	[ "$(sha256sum <fat.so)" = "$sum" ]
	ends 0 "" convert fat.so out.so
	for wrong in "fat.so out.so" "--kernel-name x fat.so out.so" "--search-path x fat.so out.so" \
		"--kernel-name x --search-path y fat.so" "--kernel-name= --search-path y fat.so out.so"; do
		ends 2 "usage: kpack mark convert" mark convert $wrong
	done
	# what does not fit into a marker
	long=$(printf '%05000d' 0)
	ends 1 "kernel_name of 5000 bytes" mark convert --kernel-name $long --search-path y fat.so big.so
	[ ! -e big.so ]
	[ -z "$(find . -name '.kpack-*')" ]
}

# --- set -----------------------------------------------------------------------------

@test "set: smaller, larger, the same; other files are reported" {
	make_root --same
	chmod 751 root/lib/x.so
	touch -d '2001-02-03 04:05:06' root/lib/x.so
	before=$(everything_of root/lib/x.so)
	inode=$(stat -c %i root/lib/x.so)
	mark set --kernel-name lib/x.so root/lib/x.so
	mark set --search-path '../.kpack/g_@GFXARCH@.kpack' root/lib/x.so
	[ "$(stat -c %i root/lib/x.so)" = "$inode" ]
	for length in 1 50 4000 20; do
		name=$(printf "%0${length}d" 0)
		mark set --kernel-name $name root/lib/x.so
		answers root/lib/x.so
		ends 0 "kernel_name    $name" mark show root/lib/x.so
		[[ "$output" == *"search path    ../.kpack/g_@GFXARCH@.kpack"* ]]
		[ "$(everything_of root/lib/x.so)" = "$before" ]
	done
	# all paths go
	mark set --search-path a --search-path b root/lib/x.so
	[ "$(mark show root/lib/x.so | grep -c 'search path')" = 2 ]
	ends 0 "kernel_name    00000000000000000000" mark show root/lib/x.so
	mark set --kernel-name lib/x.so --search-path '../.kpack/g_@GFXARCH@.kpack' root/lib/x.so
	ends 0 " 0 faults" mark check root
	# one of several cannot be
	ends 1 "fat.so: is not converted" mark set --kernel-name y fat.so root/lib/x.so
	ends 0 "kernel_name    y" mark show root/lib/x.so
	ends 2 "nothing to set" mark set root/lib/x.so
	ends 2 "is empty" mark set --search-path "" root/lib/x.so
	# what no archive can be asked for, and not every reader of markers reads
	for wrong in $'a\xff' $'a\nb' $'\e[31m'; do
		ends 2 "not UTF-8 without control bytes" mark set --kernel-name "$wrong" root/lib/x.so
		ends 2 "not UTF-8 without control bytes" mark set --search-path "$wrong" root/lib/x.so
		ends 2 "not UTF-8 without control bytes" mark convert --kernel-name "$wrong" --search-path a fat.so out.so
	done
	mark set --kernel-name 'lib/ä b.so' --search-path '@GFXARCH@' root/lib/x.so
	ends 0 "kernel_name    lib/ä b.so" mark show root/lib/x.so
	mark set --kernel-name y --search-path '../.kpack/g_@GFXARCH@.kpack' root/lib/x.so
}

# --- check ---------------------------------------------------------------------------

@test "check: nothing wrong" {
	make_root --bundles 4 --ragged --share 2
	cp fat.so root/lib/fat.so
	ends 0 "1 converted, 1 not converted, 16 objects in 3 archives, 0 faults" mark check root
	ends 0 "" mark check --arch gfx90a,gfx1030 root
	ends 0 "fat.so: note: not converted" mark check -v root
	[[ "$output" == *"root/lib/x.so: ok, 16 objects"* ]]
	ends 0 "1 converted, 0 not" mark check root/lib/x.so
	ln -s root/lib/x.so link.so
	ends 0 "1 converted" mark check root/lib
	# an architecture is not installed: not asked for, no fault
	rm root/.kpack/g_gfx1030.kpack
	ends 0 " in 2 archives, 0 faults" mark check root
	ends 0 "0 converted, 1 not converted" mark check fat.so
	ends 0 "0 converted, 0 not converted" mark check /bin/sh
}

@test "check: an archive is missing" {
	make_root
	mv root/.kpack/g_gfx1030.kpack .
	ends 1 "kpack: root/lib/x.so: gfx1030: no archive has it" mark check --arch gfx1030 root
	[[ "$output" == *" 1 faults" ]]
	ends 1 "x.so: gfx950: no object was built for it" mark check --arch gfx950,gfx1100 root
	[[ "$output" == *" 1 faults" ]]
	ends 2 "--arch" mark check --arch gfx9000:foo+ root
	rm root/.kpack/*
	ends 1 "kpack: root/lib/x.so: no archive where it looks: ../.kpack/g_@GFXARCH@.kpack" mark check root
	rm -r root/.kpack
	ends 1 "no archive where it looks" mark check root
	ends 1 "No such file" mark check nowhere
	ln -s nowhere dangling
	ends 1 "kpack: dangling: leads to no file and no directory" mark check dangling
	[[ "$output" == *" 1 faults" ]]
	ends 0 " 0 faults" mark check /bin/sh # which may be a link
}

@test "check --arch: what a GPU runs is enough" {
	make_root --arches gfx90a:xnack+,gfx90a:xnack-,gfx11-generic,gfx906
	# as the runtime calls them; what is not stated may be on or off
	ends 0 " 0 faults" mark check --arch gfx90a:sramecc+:xnack-,gfx1101,gfx906:sramecc+:xnack- root
	ends 0 " 0 faults" mark check --arch gfx90a:sramecc+ root
	ends 1 "x.so: gfx90a:sramecc+: no object was built for it" mark check --arch gfx90a:sramecc+ --arch-exact root
	ends 1 "x.so: gfx1030: no object was built for it" mark check --arch gfx1030 root
	ends 1 "x.so: generic: no object was built for it" mark check --arch generic root
	rm "root/.kpack/g_gfx90a:xnack-.kpack" root/.kpack/g_gfx11-generic.kpack
	ends 1 "x.so: gfx90a:xnack-: no archive has it, which gfx90a:sramecc+:xnack- would load" \
		mark check --arch gfx90a:sramecc+:xnack- root
	ends 1 "x.so: gfx11-generic: no archive has it, which gfx1101 would load" mark check --arch gfx1101 root
	ends 1 "x.so: gfx90a:xnack-: no archive has it" mark check --arch gfx90a root
	ends 0 " 0 faults" mark check --arch gfx90a:sramecc-:xnack+ root
}

@test "check: an archive under another's name" {
	make_root
	cd root/.kpack
	mv g_gfx1030.kpack x
	mv g_gfx1100.kpack g_gfx1030.kpack
	mv x g_gfx1100.kpack
	cd ../..
	ends 1 "root/.kpack/g_gfx1030.kpack: gfx1030: the archive is named for it, but has no code for it" mark check root
	[[ "$output" == *"g_gfx1100.kpack: gfx1100: the archive is named for it"* ]]
	[[ "$output" == *" 2 faults" ]]
	forget_layout root/lib/x.so
	ends 1 " 2 faults" mark check root
	# without features it serves those with them
	mv "root/.kpack/g_gfx90a:xnack+.kpack" root/.kpack/g_gfx90a.kpack
	ends 1 " 2 faults" mark check root
}

@test "check --arch: a binary that was never built for a GPU" {
	mkdir -p a/lib b/lib
	mkfat --seed one --arches gfx1030,gfx1100 a/lib/a.so
	mkfat --seed two --arches gfx1030 b/lib/b.so
	kpack pack -q --group a a root
	kpack pack -q --group b b root
	ends 0 " 0 faults" mark check --arch gfx1030,gfx1100 root
	[[ "$output" == *"not built for gfx1100: 1 of 2"* ]]
	ends 0 " 0 faults" mark check -v --arch gfx1100 root
	[[ "$output" == *"root/lib/b.so: note: not built for gfx1100"* ]]
	mark check --json --arch gfx1100 root >json
	$python - <<-'END'
		import json
		got = json.load(open("json"))
		assert got["not_built"] == [{"file": "root/lib/b.so", "arch": "gfx1100"}], got
		assert got["faults"] == [], got
	END
	# nothing in the tree was built for it
	ends 1 " 2 faults" mark check --arch gfx950 root
	ends 1 "b.so: gfx1100: no object was built for it" mark check --arch gfx1100 root/lib/b.so
	# what was built and is gone is a fault as before
	mv root/.kpack/a_gfx1100.kpack .
	ends 1 "a.so: gfx1100: no archive has it" mark check --arch gfx1030,gfx1100 root
	mv a_gfx1100.kpack root/.kpack
	# without a layout, the archives of the binary's group decide
	forget_layout root/lib/a.so
	forget_layout root/lib/b.so
	ends 0 " 0 faults" mark check --arch gfx1030,gfx1100 root
	[[ "$output" == *"not built for gfx1100: 1 of 2"* ]]
	ends 1 " 2 faults" mark check --arch gfx950 root
	mark set --search-path '../.kpack/a_@GFXARCH@.kpack' --search-path '../.kpack/b_@GFXARCH@.kpack' root/lib/b.so
	ends 1 "b.so: gfx1100: no archive has it" mark check --arch gfx1100 root
	[[ "$output" == *" 1 faults" ]]
}

@test "check: an architecture that other binaries in the tree have" {
	mkdir -p a/lib b/lib
	mkfat --seed one a/lib/a.so
	mkfat --seed two b/lib/b.so
	kpack pack -q --group a a root
	kpack pack -q --group b b root
	ends 0 "2 converted, 0 not converted, 18 objects in 6 archives, 0 faults" mark check root
	rm root/.kpack/a_gfx1030.kpack
	ends 1 "kpack: root/lib/a.so: gfx1030: no archive has its code for this GPU, but archives have code of other binaries for it" mark check root
	[[ "$output" == *" 1 faults" ]]
	# once, also when it is asked for
	ends 1 "kpack: root/lib/a.so: gfx1030: no archive has it" mark check --arch gfx1030 root
	[[ "$output" == *" 1 faults" ]]
	# for a alone it is not installed, and then for nobody
	ends 0 "not installed: gfx1030" mark check root/lib/a.so
	rm root/.kpack/b_gfx1030.kpack root/.kpack/?_gfx1100.kpack
	ends 0 "not installed: gfx1030 gfx1100" mark check root
	[[ "$output" == *" in 2 archives, 0 faults" ]]
}

@test "check: an archive cannot be read" {
	make_root
	cp root/.kpack/g_gfx1030.kpack g.kpack
	truncate -s 80 root/.kpack/g_gfx1030.kpack
	cp -r root/lib root/lib2
	ends 1 "root/.kpack/g_gfx1030.kpack: " mark check root
	# for both binaries once
	[[ "$output" == *" 1 faults" ]]
	# an archive of another group, whose name fits the pattern
	cp g.kpack root/.kpack/g_gfx1030.kpack
	cp g.kpack root/.kpack/g_x_gfx1030.kpack
	ends 0 "in 3 archives" mark check root
	echo junk >root/.kpack/g_x_gfx1030.kpack
	ends 0 "in 3 archives" mark check root
}

damage() { # ARCHIVE: one byte of the first frame
	printf '\xff' | dd of="$1" bs=1 seek=150 conv=notrunc status=none
}

forget_layout() { # FILE: as another tool would have converted it
	sed -i 's/\.rocm_kpack_layout/.somebody_elses___/' "$1"
}

@test "check: without a layout, what no archive has was not built" {
	# archives of several libraries, whose wrappers are for some of the targets each
	mkdir -p in/lib
	mkfat --ragged --bundles 3 --arches gfx1030,gfx1100,gfx942 in/lib/x.so
	mkfat --seed 2 --arches gfx1201 in/lib/y.so
	kpack pack -q --group g in root
	mark check root >with
	grep -q ' 0 faults$' with
	forget_layout root/lib/x.so
	forget_layout root/lib/y.so
	mark check root >without
	cmp with without
	ends 0 " 0 faults" mark check --arch gfx1201 root/lib/y.so
	ends 1 "x.so: gfx1201: no archive has it" mark check --arch gfx1201 root/lib/x.so
	damage root/.kpack/g_gfx1201.kpack
	ends 1 "y.so: wrapper 0: gfx1201: lib/y.so#0 in " mark check root
}

@test "check: objects that no binary asks for are decoded, too, and refused entries are reported" {
	make_root
	mkdir -p other/lib
	mkfat --seed 2 other/lib/y.so
	kpack pack -q --archives-only --group g other root
	ends 0 "1 converted, 0 not converted, 9 objects in 3 archives, 0 faults" mark check root
	PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1 $python - root/.kpack/g_gfx1030.kpack <<-'END'
		import sys
		from readkpack import Archive
		a = Archive(sys.argv[1])
		at, size = a.blobs[a.top["toc"]["lib/y.so#0"]["gfx1030"]["ordinal"]]
		with open(sys.argv[1], "r+b") as f:
		    f.seek(at + size // 2)
		    f.write(bytes([a.data[at + size // 2] ^ 255]))
	END
	ends 1 "root/.kpack/g_gfx1030.kpack: gfx1030: lib/y.so#0: " mark check root
	[[ "$output" == *" 1 faults" ]]
	# an entry that no reader accepts
	rm root/.kpack/g_gfx1030.kpack
	$python "$tools/mkarchive.py" root/.kpack/g_gfx1201.kpack <<-'END'
	{"group": "g", "arches": ["gfx1201"], "entries": [
	 {"key": "lib/y.so#0", "arch": "gfx1201", "data": "code"},
	 {"key": "lib/y.so#1", "arch": "gfx1201", "data": "code", "ordinal": 99}]}
	END
	ends 1 "root/.kpack/g_gfx1201.kpack: " mark check root
	[[ "$output" == *" 1 faults" ]]
}

@test "check: archives named without placeholder" {
	mkdir -p root/lib
	mkfat root/lib/x.so
	kpack pack -q --archives-only --group g --family all=gfx90a:xnack+,gfx1030,gfx1100 root root
	cp root/lib/x.so fat.so
	mark convert --kernel-name lib/x.so --search-path /nowhere --search-path ../.kpack/g-all.kpack fat.so root/lib/x.so
	ends 0 "9 objects in 1 archives, 0 faults" mark check --arch gfx90a:xnack+ root
	mark restore -o back.so root/lib/x.so
	same_code fat.so back.so
}

# The archive of ARCH as another tool would have written it, of OTHER's objects: no hashes, no index.
foreign() { # ARCH [OTHER]
	local archive=root/.kpack/g_$1.kpack i
	for i in 0 1 2; do
		kpack cat -o "object$i" "root/.kpack/g_${2-$1}.kpack" lib/x.so#$i "${2-$1}"
	done
	$python - "$1" <<-'END' >foreign.json
	import json, sys
	print(json.dumps({"group": "g", "arches": [sys.argv[1]], "entries": [
	    {"key": "lib/x.so#%d" % i, "arch": sys.argv[1], "data": {"file": "object%d" % i}} for i in range(3)]}))
	END
	rm "$archive"
	$python "$tools/mkarchive.py" "$archive" foreign.json
}

@test "check, restore: archives of another tool, without hashes" {
	make_root
	foreign gfx1100
	foreign gfx90a:xnack+
	ends 0 "9 objects in 3 archives, 0 faults" mark check root
	ends 0 "bit-identical" mark restore -o back.so root/lib/x.so
	same_code fat.so back.so
	foreign gfx1030 gfx1100
	ends 1 "x.so: wrapper 1: gfx1030: lib/x.so#1 in $PWD/root/.kpack/g_gfx1030.kpack is from another build" mark check root
	[[ "$output" == *" 3 faults" ]]
	ends 1 "gfx1030: 3 objects are in archives from another build only" mark restore root/lib/x.so
	forget_layout root/lib/x.so
	ends 0 "9 objects in 3 archives, 0 faults" mark check root
	damage root/.kpack/g_gfx1100.kpack
	ends 1 "x.so: wrapper 0: gfx1100: lib/x.so#0 in " mark check root
}

@test "check: search paths without end" {
	make_root
	mkdir names
	(cd names && seq 3000 | xargs touch)
	paths=$(seq -f '--search-path ../../names/@GFXARCH@/%g' 100)
	mark set $paths root/lib/x.so
	ends 1 "marker: more than 262144 names where its search paths lead" mark check root
	paths=$(seq -f '--search-path ../../names/@GFXARCH@/%g' 80)
	mark set $paths --search-path '../.kpack/g_@GFXARCH@.kpack' root/lib/x.so
	ends 0 " 0 faults" mark check root
}

# --- restore -------------------------------------------------------------------------

# foreign.so: two bundles that no level of any zstd compresses to these bytes
make_foreign() {
	PYTHONPATH=$tools $python - <<-'END'
	import struct, mkfat, zstandard
	fat, offsets = b"", []
	for n in range(2):
	    plain = mkfat.bundle([(a, mkfat.code_object(a, 30000, str(n))) for a in ("gfx1030", "gfx1100")], 0, 4096)
	    packed = zstandard.ZstdCompressor(level=7, write_checksum=True).compress(plain)
	    fat += bytes(-len(fat) % 4096)
	    offsets.append(len(fat))
	    fat += b"CCOB" + struct.pack("<HHQQ", 3, 1, 32 + len(packed), len(plain)) + b"its hash" + packed
	    open("plain%d" % n, "wb").write(plain)
	open("foreign.so", "wb").write(mkfat.shared_library(fat, offsets))
	END
}

@test "restore: what another compressor made is compressed, with the same objects" {
	make_foreign
	kpack pack -q --group g foreign.so root
	ends 0 "2 compressed bundles have the same objects as before, but other bytes" \
		mark restore -o back.so root/foreign.so
	[[ "$output" != *bit-identical* ]]
	answers back.so
	PYTHONPATH=$tools $python - <<-'END'
	import struct, zstandard
	back = open("back.so", "rb").read()
	at = 0
	for n in range(2):
	    plain = open("plain%d" % n, "rb").read()
	    at = back.index(b"CCOB", at)
	    version, method, size, decoded = struct.unpack_from("<HHQQ", back, at + 4)
	    assert (version, method, decoded) == (3, 1, len(plain)) and size < len(plain) // 2
	    assert back[at + 24:at + 32] == b"its hash"
	    assert zstandard.ZstdDecompressor().decompress(back[at + 32:at + size]) == plain
	    at += size
	END
	# nothing else differs
	[ "$(stat -c %s back.so)" -le $(($(stat -c %s foreign.so) + 8192)) ]
	kpack pack -q --archives-only --group g back.so again
	cmp <(kpack ls root/.kpack | sed 's/foreign/x/') <(kpack ls again/.kpack | sed 's/back/x/')
}

@test "restore: kept containers are bit-identical, whatever compressed them" {
	make_foreign
	mkfat --ccob odd own.so
	for f in foreign own; do
		rm -rf root
		kpack pack --keep-containers --group g $f.so root >out
		[ "$(grep -c ' compressed bundles kept, for which the converted files have [1-9][0-9]* bytes$' out)" -eq 1 ]
		ends 0 "back.so: restored, its device code is bit-identical" mark restore -o back.so root/$f.so
		same_code $f.so back.so
		ends 0 " 0 faults" mark check root
	done
	# the cost is reported, and is the difference of the sizes
	kpack pack -q --group g foreign.so plain
	kpack pack --json --keep-containers --group g foreign.so kept >json
	$python - <<-'END'
	import json, os
	summary = json.load(open("json"))["summary"]
	assert summary["containers_kept"] == 2
	more = os.path.getsize("kept/foreign.so") - os.path.getsize("plain/foreign.so")
	assert abs(summary["containers_bytes"] - more) < 64, (summary, more)
	END
	# it survives another name, and strip
	mark set --kernel-name foreign.so kept/foreign.so
	strip kept/foreign.so
	ends 0 "back.so: restored, its device code is bit-identical" mark restore -o back.so kept/foreign.so
	same_code foreign.so back.so
	# without an object it is no use
	ends 0 "back.so: restored" mark restore --allow-missing --archive kept/.kpack/g_gfx1030.kpack \
		-o back.so kept/foreign.so
	[[ "$output" != *bit-identical* ]]
	answers back.so
}

# bats test_tags=slow
@test "restore: a bundle of 36 MB by way of temporary files, of which nothing stays" {
	mkfat --ccob all --bundles 1 --size 12000000 large.so
	mkdir new
	for how in "" --keep-containers; do
		rm -rf root
		kpack pack -q $how --group g large.so root
		ends 0 "new/back.so: restored, its device code is bit-identical" \
			mark restore -o new/back.so root/large.so
		[ "$(ls -A new)" = back.so ]
		same_code large.so new/back.so
	done
	# without an object there is another hash
	ends 0 "back.so: restored" mark restore --allow-missing --archive root/.kpack/g_gfx1030.kpack \
		-o back.so root/large.so
	kpack inspect back.so | grep -q 'container 0: ccob.* hash [0-9a-f]* ok$'
	kpack pack -q --archives-only --group g back.so again
	[ "$(readkpack sums again/.kpack/g_gfx1030.kpack)" = \
		"$(readkpack sums root/.kpack/g_gfx1030.kpack | sed 's/large/back/')" ]
	[ "$(ls again/.kpack)" = g_gfx1030.kpack ]
}

@test "restore: a full disk is an error, also in the gaps of a bundle" {
	[ "$(id -u)" = 0 ] || skip "only root can mount a tmpfs"
	local mib full=0
	# mapped pages of gaps, of up to 2 MiB, would be the last that find no room
	mkfat --ccob all --bundles 1 --size 13000000 --align 2097152 large.so
	kpack pack -q --group g large.so root
	mkdir small
	mount -t tmpfs none small
	for mib in 36 38 40 42 64; do
		rm -f small/back.so
		mount -o "remount,size=${mib}m" small
		run mark restore -o small/back.so root/large.so
		[ "$status" = 0 ] && continue
		[ "$status" = 1 ]
		[[ "$output" == *"temporary file: No space left on device"* ]]
		[ -z "$(ls -A small)" ]
		full=$((full + 1))
	done
	[ "$status" = 0 ] && [ "$full" -ge 4 ]
	umount small
}

@test "restore: in place, attributes stay" {
	make_root
	chmod 751 root/lib/x.so
	touch -d '2001-02-03 04:05:06' root/lib/x.so
	before=$(everything_of root/lib/x.so)
	ends 0 "root/lib/x.so: restored, its device code is bit-identical" mark restore root/lib/x.so
	[ "$(everything_of root/lib/x.so)" = "$before" ]
	same_code fat.so root/lib/x.so
	answers root/lib/x.so
	ends 1 "is not converted" mark restore root/lib/x.so
	# and once more, there and back
	convert root/lib/x.so root/lib/x.so
	ends 0 " 0 faults" mark check root
	mark restore root/lib/x.so
	same_code fat.so root/lib/x.so
}

@test "restore: with the device code in the file nothing else is needed" {
	make_root --share 2 --ccob odd
	convert fat.so kept.so --keep-device-code
	rm -r root
	# which is not compared with anything
	ends 0 "kept.so: restored, with the device code that was left in it" mark restore kept.so
	same_code fat.so kept.so
	answers kept.so
}

@test "restore: objects are missing" {
	make_root
	rm root/.kpack/g_gfx1030.kpack
	cp root/lib/x.so was.so
	ends 1 "kpack: root/lib/x.so: gfx1030: 3 objects are in no archive" mark restore root/lib/x.so
	cmp was.so root/lib/x.so
	ends 0 "gfx1030: 3 objects are in no archive; left out" mark restore --allow-missing -o part.so root/lib/x.so
	[[ "$output" == *"part.so: restored"* && "$output" != *identical* ]]
	answers part.so
	fatparse sums fat.so x | grep -v gfx1030 | diff - <(fatparse sums part.so x)
	damage root/.kpack/g_gfx1100.kpack
	ends 1 "kpack: root/lib/x.so: " mark restore --allow-missing root/lib/x.so
	cmp was.so root/lib/x.so
	[ -z "$(find . -name '.kpack-*.tmp')" ]
}

@test "restore: from archives elsewhere, and not from those of another build" {
	make_root --seed one
	mv root/.kpack k
	ends 1 "objects are in no archive" mark restore -o back.so root/lib/x.so
	[ ! -e back.so ]
	ends 0 "bit-identical" mark restore --archive k -o back.so root/lib/x.so
	same_code fat.so back.so
	ends 0 "bit-identical" mark restore --archive k/g_gfx1030.kpack --archive k/g_gfx1100.kpack \
		--archive k/g_gfx90a:xnack+.kpack -o back.so root/lib/x.so
	ends 1 "gfx1030: 3 objects" mark restore --archive k/g_gfx1100.kpack -o no.so root/lib/x.so
	ends 1 "nowhere" mark restore --archive nowhere -o no.so root/lib/x.so
	mkdir -p other/lib
	mkfat --seed two other/lib/x.so
	kpack pack -q --archives-only --group g other other
	ends 1 "gfx1030: 3 objects are in archives from another build only" mark restore --archive other/.kpack -o no.so root/lib/x.so
	ends 1 "gfx1100: 3 objects are in no archive" mark restore --archive other/.kpack/g_gfx1030.kpack -o no.so root/lib/x.so
	ends 0 "gfx1030: 3 objects are in archives from another build only; left out" mark restore --allow-missing \
		--archive other/.kpack/g_gfx1030.kpack --archive k/g_gfx1100.kpack -o part.so root/lib/x.so
	forget_layout root/lib/x.so
	ends 1 "has no .rocm_kpack_layout" mark restore --archive k -o no.so root/lib/x.so
	[ ! -e no.so ]
	ends 2 "one FILE" mark restore
}

@test "root follows no link that another user may have put there" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	make_root
	mkdir theirs
	cp root/lib/x.so target
	cp target before
	ln -s ../target theirs/link
	ln -s ../none theirs/dangling
	chown -h 1234:4321 theirs theirs/link
	ends 1 "is a symbolic link that is not followed" convert fat.so theirs/link
	ends 1 "is a symbolic link that is not followed" mark restore -o theirs/link root/lib/x.so
	ends 1 "is a symbolic link that is not followed" convert fat.so theirs/dangling
	cmp target before
	[ -L theirs/link ] && [ ! -e none ]
	# what is no link is replaced
	cp root/lib/x.so theirs/x.so
	chown 1234:4321 theirs/x.so
	ends 0 "" mark set --kernel-name lib/other.so theirs/x.so
	[ "$(stat -c %u:%g theirs/x.so)" = 1234:4321 ]
	# where only root may write, its links are followed
	chown 0:0 theirs
	ends 0 "theirs/link: converted" convert fat.so theirs/link
}

# --- what a program finds by itself --------------------------------------------------

# A program and a library that compare the program headers at the ELF header in memory, and the
# build ID that they lead to, with those of the loader; and look for what is appended to the file.
self_reader() { # LINKER OPTION...
	[ -e self.c ] || {
	cat >self.c <<-'END'
	#define _GNU_SOURCE
	#include <link.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	extern const char code[] __attribute__((visibility("hidden")));
	extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
	struct wrapper { unsigned magic, version; const void *binary; void *unused; };
	__attribute__((section(".hipFatBinSegment"), used)) struct wrapper w = {0x48495046, 1, code, 0};
	static char zeros[9000];
	static const ElfW(Phdr) *real;
	static int n_real;
	static int find(struct dl_phdr_info *i, size_t size, void *arg)
	{
		for (int k = 0; k < i->dlpi_phnum; k++)
			if ((unsigned long)&w - i->dlpi_addr - i->dlpi_phdr[k].p_vaddr < i->dlpi_phdr[k].p_memsz &&
			    i->dlpi_phdr[k].p_type == PT_LOAD)
				real = i->dlpi_phdr, n_real = i->dlpi_phnum;
		return 0;
	}
	int look(const char *file)
	{
		const char *header = (const char *)&__ehdr_start, *base = NULL;
		const ElfW(Phdr) *p = (const void *)(header + __ehdr_start.e_phoff);
		int n = __ehdr_start.e_phnum, ids = 0;
		char line[64] = "", tag[8] = "";
		FILE *f = fopen(file, "r");
		dl_iterate_phdr(find, NULL);
		if (n != n_real || memcmp(p, real, n * sizeof(*p)))
			return 1;
		for (int k = n; k-- > 0;)
			if (p[k].p_type == PT_LOAD)
				base = header + p[k].p_offset - p[k].p_vaddr;
		for (int k = 0; k < n; k++)
			if (p[k].p_type == PT_NOTE)
				ids += memmem(base + p[k].p_vaddr, p[k].p_memsz, "\3\0\0\0GNU", 8) != NULL;
		for (size_t k = 0; k < sizeof(zeros); k++)
			if (zeros[k])
				return 2;
		if (!ids || (w.magic == 0x48495046 ? memcmp(w.binary, "__CLANG_OFFLOAD", 15)
						   : (*(const unsigned char *)w.binary & 0xf0) != 0x80))
			return 3;
		fseek(f, -16, SEEK_END);
		if (fread(tag, 1, 8, f) == 8 && memcmp(tag, "APPENDED", 8) == 0) {
			unsigned long at = 0;
			if (fread(&at, 1, 8, f) != 8 || fseek(f, at, SEEK_SET) || !fgets(line, 64, f) ||
			    strcmp(line, "found by its offset\n"))
				return 4;
		}
		fclose(f);
		return 42;
	}
	END
	echo '#include <dlfcn.h>
	int main(int n, char **a) { return ((int (*)(const char *))dlsym(dlopen(a[1], RTLD_NOW), "look"))(a[1]); }' >load.c
	echo 'int look(const char *); int main(void) { return look("/proc/self/exe"); }' >main.c
	cc -o load load.c -ldl
	}
	echo '.hidden code
	.globl code
	.section .hip_fatbin,"a",@progbits
	.balign 4096
	code: .incbin "code"
	.section .note.GNU-stack,"",@progbits' >code.S
	cc -O1 -fPIC -shared -fuse-ld="$1" -Wl,--build-id "${@:2}" -o lib self.c code.S
	cc -O1 -fPIE -pie -fuse-ld="$1" -Wl,--build-id "${@:2}" -o pie self.c main.c code.S
	cc -O1 -fno-pie -no-pie -fuse-ld="$1" -Wl,--build-id "${@:2}" -o fixed self.c main.c code.S
}

works() { # FILE, whose name ends as that of the program or library
	local status=0
	case $1 in
	*lib) LD_LIBRARY_PATH=. ./load "./$1" || status=$? ;;
	*) "./$1" || status=$? ;;
	esac
	[ $status = 42 ] || { echo "$1: $status"; readelf -lSW "$1"; return 1; }
}

# NAME: as packed, with a longer marker, and restored; never longer, headers where they belong
lives() { # NAME
	local name=$1
	works "$name"
	rm -rf out
	kpack pack -q "$name" out 2>err || { cat err; return 1; }
	[ "$(stat -c %s "out/$name")" -le "$(stat -c %s "$name")" ]
	works "out/$name"
	$python "$tools/elfcheck.py" "$name" "out/$name"
	mark strip-safe --check "out/$name"
	mark restore -o "again-$name" "out/$name"
	cmp "$name" "again-$name"
	mark set --kernel-name "$(printf %0200d 0)" "out/$name"
	works "out/$name"
	mkdir thin
	cp "$name" thin
	kpack thin -q --arch gfx942 thin 2>>err
	works "thin/$name"
	[ "$(stat -c %s "thin/$name")" -le "$(stat -c %s "$name")" ]
	rm -rf thin
}

@test "convert: program headers, build IDs and appended bytes are found as before, whatever the linker" {
	command -v ld.bfd >/dev/null || skip "no GNU ld"
	local size ld name options
	for size in 300 5000; do
		mkfat --bare --bundles 1 --size $size --arches gfx90a,gfx942 code
		for ld in bfd gold lld; do
			command -v ld.$ld >/dev/null || continue
			for options in -Wl,-z,relro -Wl,-z,max-page-size=65536 -Wl,-z,noseparate-code; do
				[ $ld$options != gold-Wl,-z,noseparate-code ] || continue
				[ $size$options != 300-Wl,-z,noseparate-code ] || continue
				self_reader $ld "$options"
				for name in lib pie fixed; do
					echo "$ld $options $name $size"
					lives $name
				done
			done
			for name in lib pie fixed; do
				$python - $name <<-'END'
				import struct, sys
				at = len(open(sys.argv[1], "rb").read())
				open(sys.argv[1], "ab").write(b"found by its offset\n" + bytes(3000) + b"APPENDED" + struct.pack("<Q", at))
				END
				echo "appended: $ld $name $size"
				lives $name
				cmp <(tail -c 3036 $name) <(tail -c 3036 out/$name)
			done
		done
	done
}

@test "pack: bytes directly in front of the section headers, and behind them: nothing of them is lost" {
	mkdir in
	mkfat --bundles 1 in/a.so
	$python - in/a.so <<-'END'
	import struct, sys
	d = bytearray(open(sys.argv[1], "rb").read())
	at, = struct.unpack_from("<Q", d, 40)
	d[at:at] = b"in front" * 500
	struct.pack_into("<Q", d, 40, at + 4000)
	open(sys.argv[1], "wb").write(d + b"appended" * 500)
	END
	kpack pack -q in packed 2>err
	grep -q 'in/a.so: warning: not converted, its code stays in it: elf: bytes are appended' err
	cmp in/a.so packed/a.so
}

# --- strip-safe, hostile files -------------------------------------------------------

@test "strip-safe: what is in order is not touched" {
	make_root
	inode=$(stat -c %i root/lib/x.so)
	ends 0 "root/lib/x.so: ok" mark strip-safe root/lib/x.so
	[ "$(stat -c %i root/lib/x.so)" = "$inode" ]
	ends 1 "fat.so: is not converted" mark strip-safe fat.so root/lib/x.so
	[[ "$output" == *"root/lib/x.so: ok" ]]
}

# Move the program headers to the end of the file, where an old kernel does not find them, and a
# new one finds them by the entry PT_PHDR.
move_headers() { # PROGRAM
	$python - "$1" <<-'END'
	import struct, sys
	data = bytearray(open(sys.argv[1], "rb").read())
	at, = struct.unpack_from("<Q", data, 32)
	size, n = struct.unpack_from("<HH", data, 54)
	rows = data[at:at + n * size]
	data += bytes(-len(data) % 4096)
	to, address = len(data), 0x40000000
	rows = bytearray(rows)
	for i in range(n):
	    kind, = struct.unpack_from("<I", rows, i * size)
	    if kind == 6:
	        struct.pack_into("<IIQQQQQQ", rows, i * size, 6, 4, to, address, address, (n + 1) * size, (n + 1) * size, 8)
	rows += struct.pack("<IIQQQQQQ", 1, 4, to, address, address, (n + 1) * size, (n + 1) * size, 4096)
	struct.pack_into("<Q", data, 32, to)
	struct.pack_into("<H", data, 56, n + 1)
	open(sys.argv[1], "wb").write(data + rows)
	END
}

@test "strip-safe --check: a tree" {
	make_root
	cp "$KPACK_BIN/kpack" root/prog
	cp root/prog root/moved
	echo text >root/text
	ln -s nowhere root/link
	ends 0 "2 programs, 0 faults" mark strip-safe --check root
	move_headers root/moved
	if old_kernel_starts root/moved; then return 1; fi
	ends 1 "kpack: root/moved: its program headers are where Linux before 5.18 does not look" mark strip-safe --check root
	[[ "$output" == *"2 programs, 1 faults" ]]
	[ "$(grep -c '^kpack: ' <<<"$output")" = 1 ]
	ends 1 "1 programs, 1 faults" mark strip-safe --check root/moved root/text
	ends 0 "1 programs, 0 faults" mark strip-safe --check root/prog
	ends 1 "No such file" mark strip-safe --check nowhere
	ends 2 "a file is missing" mark strip-safe --check
}

# Linux before 5.18 gives a program the first segment's address as that of its headers - its
# offset + e_phoff; are they mapped there?
old_kernel_starts() { # PROGRAM
	$python - "$1" <<-'END'
	import struct, sys
	data = open(sys.argv[1], "rb").read()
	at, = struct.unpack_from("<Q", data, 32)
	size, n = struct.unpack_from("<HH", data, 54)
	rows = [struct.unpack_from("<IIQQQQQQ", data, at + i * size) for i in range(n)]
	loads = [r for r in rows if r[0] == 1]
	told = loads[0][3] - loads[0][2] + at
	real = [r[3] + at - r[2] for r in loads if r[2] <= at and at + n * size <= r[2] + r[5]]
	sys.exit(told not in real)
	END
}

# bats test_tags=all
@test "strip-safe: a stripped program" {
	command -v clang-22 >/dev/null && command -v llvm-strip-22 >/dev/null || skip "no clang-22 or llvm-22"
	cat >a.hip <<-'END'
	#define __global__ __attribute__((global))
	struct dim3 { unsigned x, y, z; };
	extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
	extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
	extern "C" __global__ void kernel_a(int *p) { p[0] += 1; }
	END
	cat >stub.c <<-'END'
	void **__hipRegisterFatBinary(const void *d) { static void *h; return &h; }
	void __hipRegisterFunction(void) {}
	void __hipUnregisterFatBinary(void **m) {}
	int hipLaunchKernel(void) { return 0; }
	unsigned __hipPopCallConfiguration(void) { return 0; }
	int main(void) { return 42; }
	END
	clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=gfx{90a,942,1030,1100,1200,1201} -fPIC -c a.hip -o a.o
	clang-22 -fPIC -c stub.c -o stub.o
	clang-22 -pie a.o stub.o -o prog
	kpack pack -q --archives-only --group g --key-prefix lib prog .
	mark convert --kernel-name lib/prog --search-path '.kpack/g_@GFXARCH@.kpack' prog prog
	ends 0 "prog: ok" mark strip-safe prog
	ends 42 "" ./prog
	old_kernel_starts prog
	llvm-strip-22 --strip-debug prog
	if old_kernel_starts prog; then return 1; fi # else strip-safe is needed no more
	ends 1 "kpack: ./prog: its program headers are where Linux before 5.18 does not look: repair it" mark strip-safe --check .
	chmod 711 prog
	before=$(everything_of prog)
	ends 0 "prog: repaired" mark strip-safe prog
	ends 0 "1 programs, 0 faults" mark strip-safe --check .
	old_kernel_starts prog
	[ "$(everything_of prog)" = "$before" ]
	ends 0 "prog: ok" mark strip-safe prog
	ends 42 "" ./prog
	ends 0 "6 objects in 6 archives, 0 faults" mark check --arch gfx1100 prog
	ends 0 "bit-identical" mark restore prog
	ends 42 "" ./prog
	ends 0 "prog: fat" mark show prog
}

# Every command must say what is wrong, or cope; never crash, and never write.
survives() { # FILE
	local command sum
	sum=$(sha256sum <"$1")
	for command in "show" "show --json" "check" "check --json" "set --kernel-name x" "strip-safe" \
		"restore -o out.so"; do
		cp "$1" victim.so
		status=0
		mark $command victim.so >out 2>err || status=$?
		[ "$status" -le 2 ] || { echo "$command $1: exit $status"; cat err; return 1; }
		if LC_ALL=C grep -avE '^kpack: ' err || LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]' err out; then
			echo "not clear: $command $1"
			return 1
		fi
		rm -f out.so victim.so
	done
}

@test "hostile markers" {
	make_root
	mkdir h
	$python - <<-'END'
	import msgpack
	data = open("root/lib/x.so", "rb").read()
	good = msgpack.packb({"kpack_search_paths": ["../.kpack/g_@GFXARCH@.kpack"], "kernel_name": "lib/x.so"})
	at = data.index(good)

	def put(name, marker):
	    marker = marker[:len(good)].ljust(len(good), b"\xc1")
	    open("h/" + name, "wb").write(data[:at] + marker + data[at + len(good):])

	put("zeros", bytes(len(good)))
	put("junk", b"\xff" * len(good))
	put("array", b"\xdd\xff\xff\xff\xff")
	put("map", b"\xdf\xff\xff\xff\xff")
	put("deep", b"\x91" * len(good))
	put("short", good[:-1] + b"\xda")
	put("no-name", msgpack.packb({"kpack_search_paths": ["a"]}))
	put("no-paths", msgpack.packb({"kernel_name": "a"}))
	put("controls", msgpack.packb({"kpack_search_paths": ["\x1b[31m/@GFXARCH@"], "kernel_name": "\x1b[31m"}))
	put("nul", msgpack.packb({"kpack_search_paths": ["a"], "kernel_name": "a\0b"}))
	put("number", msgpack.packb({"kpack_search_paths": [7], "kernel_name": 8}))
	put("only-arch", msgpack.packb({"kpack_search_paths": ["@GFXARCH@"], "kernel_name": "a"}))
	put("twice", msgpack.packb({"kpack_search_paths": ["@GFXARCH@@GFXARCH@"], "kernel_name": "a"}))
	put("devices", msgpack.packb({"kpack_search_paths": ["/dev/@GFXARCH@"], "kernel_name": "a"}))
	put("zero", msgpack.packb({"kpack_search_paths": ["/dev/zero", "/proc/self/mem"], "kernel_name": "a"}))
	END
	for file in h/*; do
		survives "$file"
	done
	ends 1 "kernel_name: missing" mark check h/no-name
}

@test "hostile layouts" {
	make_root --bundles 2 --ccob odd --size 300
	mkdir h
	$python - <<-'END'
	import random, struct
	data = bytearray(open("root/lib/x.so", "rb").read())
	shoff, = struct.unpack_from("<Q", data, 40)
	size, n, names = struct.unpack_from("<HHH", data, 58)
	rows = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * size) for i in range(n)]
	text = rows[names]
	def name(r):
	    start = text[4] + r[0]
	    return bytes(data[start:data.index(b"\0", start)])
	layout, = [r for r in rows if name(r) == b".rocm_kpack_layout"]
	first, length = layout[4], layout[5]
	rng = random.Random(1)
	for i in range(30):
	    bad = bytearray(data)
	    for _ in range(1 + i % 3):
	        bad[first + rng.randrange(length)] = rng.choice([0, 0xff, 0x80, 0xdf, 0xdd, 0xc6, rng.randrange(256)])
	    open("h/%d" % i, "wb").write(bad)
	END
	for file in h/*; do
		survives "$file"
	done
}

# --- a real library ------------------------------------------------------------------

# Sets LIB to librocrand.
fetch() {
	local dir status=0
	dir=$("$KPACK_SRC/contrib/install-deps" --inputs "$KPACK_SRC/build/inputs" 2>fetch.err) || status=$?
	if [ "$status" -ne 0 ]; then
		cat fetch.err
		[ "${CI-}" != true ] || return 1
		[ "$status" -eq 3 ] || return 1
		skip "Debian's packages cannot be fetched"
	fi
	LIB=$(find "$dir" -name "librocrand.so.*" -type f)
	[ -f "$LIB" ]
}

@test "librocrand, there and back" {
	fetch
	mkdir -p root/lib
	cp "$LIB" root/lib/x.so
	cp "$LIB" fat.so
	kpack pack -q --archives-only --group g root root
	convert root/lib/x.so root/lib/x.so
	# Debian 12's has one object for each of 7 GPUs, later releases' have more
	objects=$(fatparse sums fat.so x | wc -l)
	archives=$(fatparse sums fat.so x | awk '{ print $3 }' | sort -u | wc -l)
	[ "$objects" -ge 7 ]
	ends 0 "$objects objects in $archives archives, 0 faults" mark check --arch gfx1030,gfx90a root
	ends 0 "bit-identical" mark restore -o back.so root/lib/x.so
	same_code fat.so back.so
	mark set --kernel-name lib/other.so root/lib/x.so
	ends 1 "gfx1030: no archive has lib/other.so#0" mark check root
	mark set --kernel-name lib/x.so root/lib/x.so
	ends 0 " 0 faults" mark check root
	mark restore root/lib/x.so
	same_code fat.so root/lib/x.so
	kpack pack -q --archives-only --group g back.so again
	kpack verify -q again/.kpack
}
