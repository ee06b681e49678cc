#!/usr/bin/env bats
# kpackx_writer_*, as a compiler that links the library would use it (tests/stub/write): other readers can
# read its archives, it writes what kpack pack writes, and a killed one leaves nothing.  What it refuses, and
# its errors, are in tests/unit/core/loader/api_writer.c.  The library writes with one thread.

# bats file_tags=single

load packing

write() { "$KPACK_BIN/tests/stub/write" "$@"; }

# A line for it: members separated by tabs.
object() { # MEMBER=VALUE...
	local IFS=$'\t'
	printf '%s\n' "$*"
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

@test "every reader takes what was written, and a refused object changes nothing" {
	objects >lines
	{
		head -n 2 lines
		object binary=lib/b.so#0 arch=gfx942 file=a.bin
		object binary=new arch=gfx942 file=b.bin mode=100644
		tail -n +3 lines
	} >more
	for scheme in "" -u -S; do
		write $scheme -g G -f F out.kpack <more >out
		[ "$(grep -c '^KPACK_ERROR_INVALID_ARGUMENT: ' out)" = 2 ]
		(umask 077 && write $scheme -g G -f F again.kpack <lines)
		cmp out.kpack again.kpack
		kpack verify out.kpack # the hashes, too
		py <<-'END'
		from readkpack import Archive
		a = Archive("out.kpack")
		have = {(key, arch): a.get(e) for key, arch, e in a.entries()}
		read = lambda name: open(name, "rb").read()
		assert have == {("lib/b.so#0", "gfx942"): read("b.bin"), ("lib/a.so#1", "gfx90a:sramecc-:xnack+"): read("a.bin"),
		                ("lib/a.so#0", "gfx1100"): read("a.bin"), ("lib/a.so#0", "gfx1030"): b"",
		                ("db/c.dat", "generic"): read("c.bin"), ("db/d.dat", "generic"): read("c.bin")}
		assert (a.top["group_name"], a.top["gfx_arch_family"]) == ("G", "F")
		m = a.top["toc"]["db/c.dat"]["generic"]["metadata"]
		assert [k for k in m if k != "chunk"] == ["path", "xxh3", "mode", "library", "role"], m
		assert (m["path"], m["mode"], m["library"], m["role"]) == ("db/c.dat", 0o755, "fft", "plan"), m
		one, two = a.top["toc"]["lib/a.so#0"]["gfx1100"], a.top["toc"]["lib/a.so#1"]["gfx90a:sramecc-:xnack+"]
		assert list(one["metadata"]) == ["target", "xxh3"] and one["type"] == "hsaco"
		assert one["ordinal"] == two["ordinal"], "equal bytes are stored once"
		END
	done
}

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
	mkdir tree
	mkfat --bundles 3 --ragged --share 2 --twice gfx1030 --size 9000 tree/one.so
	for options in "" "--scheme=none -u" "--scheme=zstd-shared -S" "--chunk=4096" "--level=9 -l 9"; do
		rm -rf packed
		# shellcheck disable=SC2086 # words
		kpack pack -q --archives-only --group g ${options%% -*} --family F=gfx1030,gfx1100 tree packed
		rewrite packed/.kpack/g-F.kpack again.kpack -g g -f F $(grep -o ' -.*' <<<"$options" || :)
		cmp packed/.kpack/g-F.kpack again.kpack
	done
}

@test "killed at any moment it leaves nothing under the name" {
	objects >lines
	for count in 0 6; do
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
		[ -z "$(find out -name '*.kpack')" ]
		rm -rf out
	done
}
