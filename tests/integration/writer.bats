#!/usr/bin/env bats
# kpackx_writer_*, as a compiler that links the library would use it (tests/stub/write):
# other readers can read its archives, it writes what kpack pack writes, and it leaves
# nothing behind when it is killed or the disk is full.  The library writes with one thread.

# bats file_tags=single

load packing

write() { "$KPACK_BIN/tests/stub/write" "$@"; }

# A line for it: members separated by tabs.
object() { # MEMBER=VALUE...
	local IFS=$'\t'
	printf '%s\n' "$*"
}

# What other readers need, by their rules: every error is an assertion.
amd_rules() { # ARCHIVE
	py "$1" <<-'END'
	import struct, sys
	import msgpack, zstandard
	data = open(sys.argv[1], "rb").read()
	magic, version, at = struct.unpack_from("<4sIQ", data)
	assert (magic, version) == (b"KPAK", 1) and data[16:64] == bytes(48)
	top = msgpack.unpackb(data[at:])  # nothing behind it
	assert top["format_version"] == 1
	for name in "group_name", "gfx_arch_family", "compression_scheme":
	    assert type(top[name]) is str, name
	assert list(top["toc"]) == sorted(top["toc"], key=str.encode)
	present = set()
	for key, arches in top["toc"].items():
	    assert list(arches) == sorted(arches, key=str.encode), key
	    present |= set(arches)
	    for e in arches.values():
	        assert type(e["type"]) is str and len(e["metadata"]["xxh3"]) == 16
	assert top["gfx_arches"] == sorted(present, key=str.encode), top["gfx_arches"]
	entries = [e for arches in top["toc"].values() for e in arches.values()]
	if top["compression_scheme"] == "none":
	    end = 64
	    for e in sorted(entries, key=lambda e: e["ordinal"]):
	        assert top["blobs"][e["ordinal"]]["size"] == e["original_size"]
	    for b in top["blobs"]:
	        assert b["offset"] == end
	        end += b["size"]
	    assert end == at
	    sys.exit()
	assert top["compression_scheme"] == "zstd-per-kernel" and top["zstd_offset"] == 64
	assert 64 + top["zstd_size"] == at
	count, = struct.unpack_from("<I", data, 64)
	index = struct.unpack("<%dQ" % (count + 1), top["frame_index"])
	assert index[0] == 4 and index[-1] == top["zstd_size"]
	for i in range(count):
	    size, = struct.unpack_from("<I", data, 64 + index[i])
	    assert index[i + 1] == index[i] + 4 + size
	    frame = data[64 + index[i] + 4:64 + index[i + 1]]
	    p = zstandard.get_frame_parameters(frame)
	    assert p.has_checksum
	    for e in entries:
	        if e["ordinal"] != i:
	            continue
	        want = e["original_size"]
	        # as AMD's Python reader does: one call, the size from the frame's header
	        assert zstandard.frame_content_size(frame) == want
	        assert len(zstandard.ZstdDecompressor().decompress(frame)) == want
	assert {e["ordinal"] for e in entries} == set(range(count))
	END
}

objects() { # of several kinds; out: the lines
	head -c 5000 /dev/urandom >a.bin
	head -c 300000 /dev/zero >b.bin
	: >empty.bin
	seq 20000 >c.bin
	object binary=lib/b.so#0 arch=gfx942 file=b.bin
	object binary=lib/a.so#1 arch=gfx90a:xnack+:sramecc- file=a.bin
	object binary=lib/a.so#0 arch=gfx1100 file=a.bin target=hipv4-amdgcn-amd-amdhsa--gfx1100
	object binary=lib/a.so#0 arch=gfx1030 file=empty.bin
	object binary=db/c.dat arch=generic file=c.bin type=dat path=db/c.dat mode=755 chunk=4096 \
		text:library=fft text:role=plan
	object binary=db/d.dat arch=generic file=c.bin type=dat
}

# ---- what other readers find -------------------------------------------------------------

@test "every reader takes what was written, in both schemes" {
	objects >lines
	for scheme in "" -u; do
		write $scheme out.kpack <lines >out
		[ "$(sort -u out)" = added ]
		amd_rules out.kpack
		readkpack cat out.kpack lib/b.so#0 gfx942 | cmp - b.bin
		readkpack cat out.kpack lib/a.so#1 gfx90a:sramecc-:xnack+ | cmp - a.bin
		readkpack cat out.kpack lib/a.so#0 gfx1100 | cmp - a.bin
		readkpack cat out.kpack lib/a.so#0 gfx1030 | cmp - empty.bin
		readkpack cat out.kpack db/c.dat generic | cmp - c.bin
		readkpack cat out.kpack db/d.dat generic | cmp - c.bin
		kpack verify out.kpack # the hashes too
	done
}

@test "an empty archive is one" {
	for scheme in "" -u; do
		write $scheme out.kpack </dev/null
		amd_rules out.kpack
		kpack verify out.kpack
		[ -z "$(readkpack ls out.kpack)" ]
	done
}

@test "members of an object stand in its metadata, in the packer's order" {
	objects >lines
	write -g G -f F out.kpack <lines
	readkpack toc out.kpack >toc.json
	py <<-'END'
	import json
	top = json.load(open("toc.json"))
	assert top["group_name"] == "G" and top["gfx_arch_family"] == "F"
	e = top["toc"]["db/c.dat"]["generic"]
	assert e["type"] == "dat" and e["original_size"] == 108894, e
	m = e["metadata"]
	assert list(m) == ["path", "xxh3", "mode", "chunk", "library", "role"], m
	assert m["path"] == "db/c.dat" and m["mode"] == 0o755 and m["chunk"] == 4096
	assert m["library"] == "fft" and m["role"] == "plan"
	e = top["toc"]["lib/a.so#0"]["gfx1100"]
	assert list(e["metadata"]) == ["target", "xxh3"]
	assert e["ordinal"] == top["toc"]["lib/a.so#1"]["gfx90a:sramecc-:xnack+"]["ordinal"]
	END
}

@test "group and family follow from the file and the architectures" {
	head -c 100 /dev/urandom >a.bin
	object binary=a arch=gfx942 file=a.bin >one
	{ cat one; object binary=b arch=gfx942 file=a.bin; object binary=b arch=gfx90a file=a.bin; } >two
	write torch_gfx942.kpack <one
	write torch.kpack <two
	readkpack toc torch_gfx942.kpack | grep -qF '"group_name": "torch_gfx942"'
	readkpack toc torch_gfx942.kpack | grep -qF '"gfx_arch_family": "gfx942"'
	readkpack toc torch.kpack | grep -qF '"gfx_arch_family": "torch"'
}

# ---- as the packer writes ----------------------------------------------------------------

# Add to a new archive what ARCHIVE holds, in the order of its frames.
rewrite() { # ARCHIVE OUT OPTION...
	local archive=$1 out=$2
	shift 2
	py "$archive" >lines <<-'END'
	import sys
	from readkpack import Archive
	archive = Archive(sys.argv[1])
	for key, arch, e in sorted(archive.entries(), key=lambda x: x[2]["ordinal"]):
	    name = "object-%d" % e["ordinal"]
	    open(name, "wb").write(archive.get(e))
	    m = e["metadata"]
	    print("binary=" + key, "arch=" + arch, "type=" + e["type"], "file=" + name,
	          "target=" + m["target"], "chunk=%d" % m.get("chunk", 0), sep="\t")
	END
	write "$@" "$out" <lines >out
	[ "$(sort -u out)" = added ]
}

@test "the same objects give the packer's bytes" {
	mkfat --bundles 4 --ragged --share 2 one.so
	mkfat --same --twice gfx1030 --bundles 3 --size 20000 two.so
	mkdir tree
	mv one.so two.so tree
	for options in "" "--scheme=none" "--scheme=zstd-shared" "--chunk=4096" "--level=9" "--family=F=gfx1030,gfx1100"; do
		rm -rf packed
		kpack pack -q --archives-only --group g $options tree packed
		for a in packed/.kpack/*.kpack; do
			case $options in
			*none) flags=-u ;;
			*zstd-shared) flags=-S ;;
			*level*) flags="-l 9" ;;
			*family*) flags="-f F" ;;
			*) flags= ;;
			esac
			case $a in *g_*) flags=${flags/-f F/} ;; esac
			rewrite "$a" again.kpack -g g $flags
			cmp "$a" again.kpack
		done
	done
}

@test "what was written is loaded by key and by path" {
	mkfat --bundles 1 --arches gfx942 --objects objects a.so
	object binary=lib/a.so#0 arch=gfx942 file=objects/0-gfx942 >lines
	write out.kpack <lines
	kpack cat out.kpack lib/a.so#0 gfx942 | cmp - objects/0-gfx942
	kpack extract out.kpack -C files
	cmp files/toc/lib/a.so/gfx942.hsaco objects/0-gfx942
}

@test "equal calls give equal bytes, wherever and under every umask" {
	objects >lines
	mkdir sub
	write -g g one.kpack <lines
	(umask 077 && write -g g sub/two.kpack <lines)
	write -g g "$T/three" <lines
	cmp one.kpack sub/two.kpack
	cmp one.kpack three
	[ "$(stat -c %a one.kpack sub/two.kpack | tr '\n' ' ')" = "644 600 " ]
}

@test "a refused object changes nothing" {
	objects >lines
	write -g g good.kpack <lines >/dev/null
	{
		head -n 2 lines
		object binary=lib/b.so#0 arch=gfx942 file=a.bin
		object binary=lib/a.so#1 arch=gfx90a:sramecc-:xnack+ file=b.bin
		object binary=new arch=gfx942 file=b.bin mode=100644
		tail -n +3 lines
	} >more
	write -g g tried.kpack <more >out
	cmp good.kpack tried.kpack
	[ "$(grep -c '^KPACK_ERROR_INVALID_ARGUMENT: ' out)" = 3 ]
	grep -qF 'lib/b.so#0 gfx942: was added before' out
	grep -qF 'lib/a.so#1 gfx90a:sramecc-:xnack+: was added before' out
	grep -qF 'new gfx942: mode 0100644' out
}

# ---- nothing half-written ----------------------------------------------------------------

only() { # FILE...: nothing else is in the directory, hidden or not
	[ "$(ls -A out)" = "$(printf '%s\n' "$@")" ] || { ls -lA out; return 1; }
}

@test "until it is finished, what stood there stays" {
	objects >lines
	mkdir out
	write out/a.kpack </dev/null
	cp out/a.kpack before
	{ cat lines; echo abort; } | { ! write out/a.kpack >/dev/null || false; }
	only a.kpack
	cmp out/a.kpack before
	write out/a.kpack <lines
	only a.kpack
	! cmp -s out/a.kpack before || false
}

@test "killed at any moment it leaves nothing under the name" {
	objects >lines
	for count in 0 1 3 6; do
		rm -rf out
		mkdir out
		coproc writer { exec "$KPACK_BIN/tests/stub/write" out/a.kpack; }
		pid=$writer_PID
		head -n "$count" lines >&"${writer[1]}"
		for ((i = 0; i < count; i++)); do
			read -r answer <&"${writer[0]}"
			[ "$answer" = added ]
		done
		kill -9 "$pid"
		wait "$pid" || true
		[ ! -e out/a.kpack ]
		[ -z "$(find out -name '*.kpack')" ]
	done
}

@test "a full disk is an error with words, and leaves what was" {
	head -c 3000000 /dev/urandom >big.bin
	object binary=big arch=gfx942 file=big.bin >lines
	mkdir out
	write out/a.kpack </dev/null
	cp out/a.kpack before
	for bytes in 0 1000 2000000 3000000; do
		# a pipe: the bound is of all files
		write -s $bytes out/a.kpack <lines | cat >words
		[ "${PIPESTATUS[0]}" = 1 ]
		grep -qE '^KPACK_ERROR_IO_ERROR: .*File too large: ' words
		only a.kpack
		cmp out/a.kpack before
	done
}

@test "a file system that is full too" {
	as_root
	mkdir small
	mount -t tmpfs -o size=1m tmpfs small || skip "cannot mount a tmpfs"
	head -c 3000000 /dev/urandom >big.bin
	object binary=big arch=gfx942 file=big.bin >lines
	status=0
	write small/a.kpack <lines >words || status=$?
	left=$(ls -A small)
	umount small
	[ "$status" = 1 ] && [ -z "$left" ]
	grep -qF 'KPACK_ERROR_IO_ERROR: big gfx942: ' words
	grep -qF 'No space left on device' words
}

@test "places that are none: an error with words" {
	mkdir dir
	! write dir </dev/null >words || false
	grep -qF 'KPACK_ERROR_IO_ERROR: dir: is a directory' words
	! write none/a.kpack </dev/null >words || false
	grep -qF 'KPACK_ERROR_FILE_NOT_FOUND: none/a.kpack: none: ' words
	! write a.kpack/ </dev/null >words || false
	grep -qF 'KPACK_ERROR_INVALID_ARGUMENT: a.kpack/: names no file' words
}

@test "a directory that may not be written to" {
	as_root
	mkdir -m 0755 closed
	chmod 0711 "$T"
	# the build's directories may be closed to that user
	cp "$KPACK_BIN/tests/stub/write" "$KPACK_BIN/librocm_kpack.so.0" .
	! LD_LIBRARY_PATH=$T as_nobody ./write closed/a.kpack </dev/null >words || false
	grep -qF 'Permission denied' words
	[ -z "$(ls -A closed)" ]
}

# ---- other languages ---------------------------------------------------------------------

@test "the header serves C++" {
	cat >use.cc <<-'END'
	#include <cstdio>
	#include "rocm_kpack/kpackx.h"
	int main()
	{
		kpackx_writer_options options{};
		kpackx_error why{};
		kpackx_writer_t writer;
		kpackx_object object{};
		options.group = "g";
		object.binary = "k";
		object.arch = "gfx942";
		object.data = "bytes";
		object.size = 5;
		if (kpackx_writer_open("a.kpack", &options, &writer, &why) ||
		    kpackx_writer_add(writer, &object, &why) ||
		    kpackx_writer_finish(writer, &why)) {
			std::puts(why.text);
			return 1;
		}
	}
	END
	flags="-std=c++17 -Wall -Wextra -Werror"
	g++ $flags -idirafter "$KPACK_SRC/core" -c use.cc
	case $KPACK_MODE in asan | tsan) return ;; esac # what is linked needs their run time
	g++ use.o "$KPACK_BIN/librocm_kpack.so" -Wl,-rpath,"$KPACK_BIN" -o use
	./use
	amd_rules a.kpack
	[ "$(readkpack cat a.kpack k gfx942)" = bytes ]
}
