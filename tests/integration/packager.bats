#!/usr/bin/env bats
# kpack as clang-offload-packager and llvm-offload-binary: the same command lines for it
# and for LLVM 22's tools must give the same files, output and exit statuses.

# bats file_tags=all, single

python=/usr/bin/python3

have() {
	local program
	for program in clang-22 llvm-offload-binary-22 llvm-ar-22 ld.lld-22; do
		command -v $program >/dev/null || return 1
	done
}

setup_file() {
	have || return 0
	cd "$BATS_FILE_TMPDIR"
	mkdir -p files/d.bc files/sub bin
	cd files
	printf 'hello' >x.o
	printf 'BC\xc0\xde1234' >code.o
	printf '\xde\xc0\x17\x0bwrapped bitcode' >wrapped
	for name in x.bc x.s x.cubin x.fatbin x.spv x.PTX noext .o dot. d.bc/noext; do
		cp x.o $name
	done
	printf 'text of PTX\n' >y.s
	# two code objects with symbols, so that archives of them have an index
	printf 'int one(void) { return 1; } int two;\n' >dev.c
	clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -c dev.c -o dev.o
	llvm-offload-binary-22 -o in.bin \
		--image=file=dev.o,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip \
		--image=file=y.s,triple=nvptx64-nvidia-cuda,arch=sm_80,kind=cuda \
		--image=file=x.bc,triple=amdgcn-amd-amdhsa,arch=gfx90a:xnack+,kind=openmp
	cp in.bin sub/in.more.bin
	llvm-offload-binary-22 -o outer.bin --image=file=in.bin,triple=t,arch=a
	printf 'int main(void) { return 0; }\n' >host.c
	clang-22 -c host.c -o host.o -Xclang -fembed-offload-object=in.bin
	clang-22 -c -emit-llvm host.c -o host.bc -Xclang -fembed-offload-object=in.bin
	clang-22 -O1 -c -emit-llvm host.c -o plain.bc
	cp host.o other.o
	ld.lld-22 -r host.o -o merged.o
	llvm-ar-22 crs lib.a host.o other.o
	llvm-ar-22 crs mixed.a host.o host.bc plain.bc other.o
	clang-22 -c host.c -o plain.o
	printf 'static int one;\n' >none.c
	clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -c none.c -o none.o
	clang-22 --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -emit-llvm -c none.c -o none.bc
	printf 'no container' >text
	(cat in.bin && printf 'junk') >junk.bin
	head -c 100 in.bin >cut.bin
	llvm-ar-22 crs cut.a in.bin cut.bin
	llvm-ar-22 crsT thin.a host.o sub/in.more.bin plain.bc host.bc other.o
	llvm-ar-22 crsT sub/thin.a sub/in.more.bin host.o
	llvm-ar-22 crsT none.a
	cp thin.a lost.a
	sed -i 's/sub\/in.more/sub\/no.more/' lost.a
}

setup() {
	have || skip "no clang-22, clang-tools-22, llvm-22 or lld-22"
	cd "$BATS_TEST_TMPDIR"
	cp -r "$BATS_FILE_TMPDIR/files" theirs
	cp -r "$BATS_FILE_TMPDIR/files" ours
	mkdir bin
	ln -s "$(command -v llvm-offload-binary-22)" bin/llvm-offload-binary
}

theirs() { (cd theirs && PATH=$BATS_TEST_TMPDIR/bin:$PATH timeout 600 bash -c "$1") >theirs.out 2>theirs.err; }
ours() { (cd ours && PATH=$KPACK_BIN/clang:$PATH timeout 600 bash -c "$1") >ours.out 2>ours.err; }

said() { if [ -s "$1" ]; then echo something; fi; }

# Of every line on stdin the same comes: files, output, status; and messages, or none
same() {
	local line one two
	while IFS= read -r line; do
		one=0 two=0
		theirs "$line" </dev/null || one=$?
		ours "$line" </dev/null || two=$?
		[ $one = $two ] && cmp theirs.out ours.out && diff -r theirs ours &&
			[ "$(said theirs.err)" = "$(said ours.err)" ] && continue
		printf 'differs: %s (%s, %s)\n' "$line" $one $two
		cat theirs.err ours.err
		return 1
	done
}

@test "packs what LLVM packs, byte by byte" {
	same <<-'END'
	llvm-offload-binary -o a --image=file=x.o,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip
	llvm-offload-binary -o=b -image file=x.o,triple=nvptx64,arch=sm_70 --image file=y.s,kind=cuda
	llvm-offload-binary -o c --image=file=x.o,feature=+a,b=c,zeta=1,alpha=alpha,pha=hsa,triple=amdhsa
	llvm-offload-binary -o d --image=file=code.o --image=file=wrapped,arch=1 --image=file=x.bc
	llvm-offload-binary -o e --image=file=noext,file=.o,file=dot.,file=d.bc/noext,arch=x,kind=sycl
	llvm-offload-binary -o f --image=file=x.s --image=file=x.cubin --image=file=x.fatbin --image=file=x.spv,file=x.PTX
	llvm-offload-binary -o g --image=file=x.o,kind=hip,kind=hip --image=kind=openmp,file=x.o --image=file=x.o,kind=none
	llvm-offload-binary -o h --image=file=x.o,a --image=file=x.o,=x --image=file=x.o,,, --image=a=b=c,file=x.o
	llvm-offload-binary -o i --image=file=x.o,a=1,a=2,a= --image=a=,b=,c=,file=x.o
	llvm-offload-binary -o j
	llvm-offload-binary -o a --image=file=y.s,arch=replaced
	llvm-offload-binary -o /dev/null --image=file=x.o,a=b
	llvm-offload-binary -o - --image=file=x.o,a=b
	llvm-offload-binary -o /dev/stdout --image=file=x.o,a=b | cat
	printf abc | llvm-offload-binary -o k --image=file=-,arch=z
	printf '%s\n' -o l '--image=file=x.o,triple="a b"' "'--image=file=y.s'" >words; llvm-offload-binary @words
	END
}

@test "orders strings like LLVM whatever the keys" {
	$python - <<-'END' >lines
	import random
	r = random.Random(4)
	letters = "abcdefghijklmnop-_.XYZ"
	for n in range(40):
	    parts = ["file=x.o"]
	    for i in range(r.choice([1, 2, 5, 20, 60])):
	        size = r.choice([1, 2, 3, 4, 5, 8, 9, 12, 16, 17, 20, 32, 33, 50, 64])
	        parts.append("".join(r.choice(letters) for _ in range(size)) + "=" +
	                     "".join(r.choice(letters) for _ in range(r.choice([0, 1, 2, 9]))))
	    r.shuffle(parts)
	    print(f"llvm-offload-binary -o r{n} --image=" + ",".join(parts))
	END
	same <lines
}

@test "extracts what LLVM extracts" {
	same <<-'END'
	llvm-offload-binary in.bin --image=arch=gfx1100
	llvm-offload-binary in.bin --image=triple=amdgcn-amd-amdhsa
	llvm-offload-binary in.bin --image=foo=
	llvm-offload-binary in.bin --image=
	llvm-offload-binary in.bin --image=arch
	llvm-offload-binary in.bin --image=kind=hip --image=kind=cuda
	llvm-offload-binary in.bin --image=kind=none
	llvm-offload-binary in.bin --image=kind=unheard-of
	llvm-offload-binary in.bin --image=arch=sm_80,arch=gfx1100
	llvm-offload-binary in.bin --image=arch=sm_90,file=nothing
	llvm-offload-binary in.bin --image=file=o1,kind=hip
	llvm-offload-binary in.bin --image=file=o2,triple=amdgcn-amd-amdhsa
	llvm-offload-binary in.bin --image=file=o3,file=o4
	llvm-offload-binary in.bin --image=file=-,arch=sm_80
	llvm-offload-binary in.bin --image=file=/dev/null
	llvm-offload-binary in.bin --image=file=o.a --archive
	llvm-offload-binary sub/in.more.bin --image=arch=sm_80
	llvm-offload-binary sub/in.more.bin --image=file=o5.a --archive
	llvm-offload-binary - --image=arch=sm_80 <in.bin
	llvm-offload-binary outer.bin --image=triple=t,file=inner
	llvm-offload-binary -o half.bin --image=file=junk.bin,triple=t,arch=a
	llvm-offload-binary half.bin --image=
	END
	grep -q "" ours/inner
	cmp ours/inner ours/in.bin
}

@test "extracts from objects, bitcode and static libraries" {
	same <<-'END'
	llvm-offload-binary host.o --image=arch=sm_80
	llvm-offload-binary host.o --image=file=h1,kind=hip
	llvm-offload-binary merged.o --image=
	llvm-offload-binary plain.o --image=
	llvm-offload-binary -o none.bin --image=file=none.o,arch=a --image=file=text,arch=a --image=file=none.bc,arch=b
	llvm-offload-binary none.bin --image=file=n1.a,arch=a --archive
	llvm-offload-binary none.bin --image=file=n2.a,arch=b --archive
	llvm-offload-binary lib.a --image=
	llvm-offload-binary lib.a --image=file=l1.a,arch=gfx1100 --archive
	llvm-offload-binary lib.a --image=file=l2,arch=gfx1100
	llvm-offload-binary host.bc --image=
	llvm-offload-binary host.bc --image=file=b1,kind=hip
	llvm-offload-binary plain.bc --image=
	llvm-offload-binary mixed.a --image=
	llvm-offload-binary thin.a --image=
	llvm-offload-binary thin.a --image=file=t1.a,arch=gfx1100 --archive
	llvm-offload-binary sub/thin.a --image=file=t2.a,arch=gfx1100 --archive
	llvm-offload-binary none.a --image=
	llvm-offload-binary mixed.a --image=file=m1.a,arch=gfx1100 --archive
	llvm-offload-binary text --image=
	llvm-offload-binary /dev/null --image=
	END
}

@test "exits as LLVM does, and says why" {
	same <<-'END'
	llvm-offload-binary -o q --image=triple=x
	llvm-offload-binary -o q --image=file=nofile
	llvm-offload-binary -o q --image=file=x.o --image=file=
	llvm-offload-binary -o q --image=file=d.bc
	llvm-offload-binary -o none/q --image=file=x.o
	llvm-offload-binary -o d.bc --image=file=x.o
	llvm-offload-binary nofile
	llvm-offload-binary d.bc
	llvm-offload-binary cut.bin --image=
	llvm-offload-binary cut.a --image=
	llvm-offload-binary lost.a --image=
	printf '.version 7.0\n' >other; llvm-offload-binary other --image=
	printf 'CCOB' >other; llvm-offload-binary other --image=
	printf '__CLANG_OFFLOAD_BUNDLE__' >other; llvm-offload-binary other --image=
	printf '\x50\xed\x55\xba' >other; llvm-offload-binary other --image=
	printf '\x7fTileIR\0' >other; llvm-offload-binary other --image=
	printf '\3\2\x23\7' >other; llvm-offload-binary other --image=
	printf '\n# __CLANG_OFFLOAD_BUNDLE____START__ x\n' >other; llvm-offload-binary other --image=
	head -c 600 host.bc >cut.bc; llvm-offload-binary cut.bc --image=
	llvm-offload-binary junk.bin --image=arch=sm_80,file=k
	llvm-offload-binary in.bin --image=file=none/x
	llvm-offload-binary in.bin -o x --image=file=x.o
	llvm-offload-binary in.bin in.bin
	llvm-offload-binary in.bin --image=arch=sm_80 --archive
	llvm-offload-binary -o
	llvm-offload-binary -ofile
	llvm-offload-binary --image
	llvm-offload-binary --archiv
	llvm-offload-binary --archive=perhaps in.bin
	END
	[ -z "$(find ours -name '*.tmp*' -o -name '.kpack*')" ]
	! ours 'llvm-offload-binary -o q --image=triple=x' || false
	grep -qF "llvm-offload-binary: error: 'file' is a required image arguments" ours.err
	! ours 'llvm-offload-binary --archiv' || false
	grep -qF "llvm-offload-binary: Unknown command line argument '--archiv'.  Try: 'llvm-offload-binary --help'" ours.err
	! ours 'llvm-offload-binary -oo=3' || false
	grep -qF "llvm-offload-binary: Unknown command line argument '-oo=3'." ours.err
	ours 'llvm-offload-binary in.bin --image=file=o2,triple=amdgcn-amd-amdhsa'
	grep -qF "llvm-offload-binary: warning: Multiple inputs match to a single file, 'o2'" ours.err
}

@test "help and version" {
	ours 'llvm-offload-binary'
	mv ours.out none
	ours 'llvm-offload-binary --help-list'
	cmp none ours.out
	ours 'clang-offload-packager --help'
	grep -qx 'USAGE: clang-offload-packager \[options\] Extract from <file>.' ours.out
	grep -qx 'clang-offload-packager options:' ours.out
	theirs 'llvm-offload-binary --help'
	# everything of theirs, and more
	ours 'llvm-offload-binary --help'
	while IFS= read -r line; do
		grep -qxF -e "$line" ours.out
	done <theirs.out
	ours 'clang-offload-packager --version'
	grep -qx 'kpack clang-offload-packager version [0-9.]*' ours.out
	ours "'$KPACK_BIN/kpack' offload-packager --version"
	grep -qx 'kpack offload-packager version [0-9.]*' ours.out
	! ours "'$KPACK_BIN/kpack' offload-packager --foo" || false
	grep -qF "kpack offload-packager: Unknown command line argument '--foo'." ours.err
}

@test "without --image all images come out, those of nested binaries too" {
	ours 'llvm-offload-binary outer.bin'
	cat >want <<-'END'
	Extracted: outer-amdgcn-amd-amdhsa-gfx1100.0.o
	Extracted: outer-nvptx64-nvidia-cuda-sm_80.1.s
	Extracted: outer-amdgcn-amd-amdhsa-gfx90a:xnack+.2.bc
	END
	cmp want ours.out
	cmp ours/outer-amdgcn-amd-amdhsa-gfx1100.0.o ours/dev.o
	cmp ours/outer-nvptx64-nvidia-cuda-sm_80.1.s ours/y.s
}

@test "images of one member of a static library" {
	ours 'llvm-offload-binary lib.a --image=member=other.o,arch=sm_80,file=m.a --archive'
	[ "$(llvm-ar-22 t ours/m.a)" = other.o ]
	ours 'llvm-offload-binary lib.a --image=member=none.o,file=m2'
	[ ! -e ours/m2 ]
}

# v1 again byte by byte from what was extracted; v2 and v3 are read by Python, from the description
@test "every version: pack, extract, pack" {
	cd ours
	PATH=$KPACK_BIN/clang:$PATH
	images=(--image=file=dev.o,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip
		--image=file=y.s,triple=nvptx64-nvidia-cuda,arch=sm_80,kind=cuda)
	for form in --format-version=1 --format-version=2 --format-version=3 --compress \
		"--compress --compression-level=19"; do
		rm -rf again && mkdir again
		llvm-offload-binary $form -o v.bin "${images[@]}"
		[ $(($(stat -c %s v.bin) % 8)) = 0 ]
		llvm-offload-binary v.bin --image=kind=hip,file=again/dev.o
		llvm-offload-binary v.bin --image=arch=sm_80,file=again/y.s
		cmp dev.o again/dev.o
		cmp y.s again/y.s
		(cd again && llvm-offload-binary $form -o v.bin "${images[@]}")
		cmp v.bin again/v.bin
		cat v.bin in.bin v.bin >row.bin
		llvm-offload-binary row.bin --image=kind=cuda,file=row.a --archive
		[ "$(llvm-ar-22 t row.a | wc -l)" = 3 ]
	done
	timeout 600 "$KPACK_BIN/kpack" inspect v.bin >v.txt
	grep -q '^container 0: offload-binary version 3, zstd, .* decoded (.* : 1)$' v.txt
	timeout 600 "$KPACK_BIN/kpack" inspect --json v.bin >v.json
	$python - <<-'END'
	import json
	c = json.load(open("v.json"))["tree"][0]
	assert c["version"] == 3 and "hash" not in c["compression"], c
	assert (c["compression"]["method"], c["compression"]["version"]) == ("zstd", 3), c
	assert abs(c["compression"]["ratio"] - c["decoded"] / c["size"]) < 0.01, c
	END
	llvm-offload-binary --format-version=2 -o v2.bin "${images[@]}"
	timeout 600 "$KPACK_BIN/kpack" inspect v2.bin >v2.txt
	grep -q '^container 0: offload-binary version 2, [0-9]* bytes at 0$' v2.txt
	$python - v2.bin dev.o y.s <<-'END'
	import struct, sys
	data = open(sys.argv[1], "rb").read()
	magic, version, size, entries, count = struct.unpack_from("<4sIQQQ", data)
	assert (magic, version, size, entries, count) == (b"\x10\xff\x10\xad", 2, len(data), 32, 2)
	end = None
	for i in range(count):
	    image, kind, flags, strings, n, at, length = struct.unpack_from("<HHIQQQQ", data, 32 + 40 * i)
	    assert data[at:at + length] == open(sys.argv[2 + i], "rb").read() and flags == 0
	    assert end in (None, at), "images stand back to back"
	    end = at + length
	    pairs = {}
	    for j in range(n):
	        k, v, m = struct.unpack_from("<QQQ", data, strings + 24 * j)
	        pairs[data[k:data.index(b"\0", k)]] = data[v:v + m]
	    assert pairs[b"arch"] == [b"gfx1100", b"sm_80"][i] and len(pairs) == 2, pairs
	    assert (image, kind) == [(1, 4), (5, 2)][i]
	END
	! llvm-offload-binary --format-version=2 --compress -o no.bin "${images[@]}" || false
	! llvm-offload-binary --format-version=4 -o no.bin "${images[@]}" || false
	! llvm-offload-binary --compress --compression-level=23 -o no.bin "${images[@]}" || false
	[ ! -e no.bin ]
}

@test "offload kind 3 of old files is HIP" {
	cd ours
	PATH=$KPACK_BIN/clang:$PATH
	printf '\3\0' | dd of=in.bin bs=1 seek=34 conv=notrunc status=none
	llvm-offload-binary in.bin --image=kind=hip,file=old.o
	cmp old.o dev.o
	timeout 600 "$KPACK_BIN/kpack" inspect --json in.bin >in.json
	$python -c 'import json; assert json.load(open("in.json"))["images"][0]["kind"] == "hip"'
	timeout 600 "$KPACK_BIN/kpack" inspect in.bin >in.txt
	grep -q ' gfx1100  *.* hip$' in.txt
	grep -q ' sm_80  *.* cuda$' in.txt
}

@test "of equal keys the last counts" {
	cd ours
	PATH=$KPACK_BIN/clang:$PATH
	llvm-offload-binary -o twice.bin --image=file=x.o,aaaa=gfx90a,arch=gfx942,triple=t
	sed -i 's/aaaa/arch/' twice.bin
	timeout 600 "$KPACK_BIN/kpack" inspect --json twice.bin >twice.json
	$python - <<-'END'
	import json
	image = json.load(open("twice.json"))["images"][0]
	assert image["pairs"]["arch"] == image["arch"], image
	END
	llvm-offload-binary-22 twice.bin --image=file=theirs.o,arch="$(
		$python -c 'import json; print(json.load(open("twice.json"))["images"][0]["arch"])')"
	cmp theirs.o x.o
}

@test "names in files lead nowhere else" {
	cd ours
	PATH=$KPACK_BIN/clang:$PATH
	llvm-offload-binary -o evil.bin --image=file=x.o,triple=a/../../evil,arch=x
	! llvm-offload-binary evil.bin 2>err || false
	grep -q "is no name for a file" err
	[ ! -e ../evil-x.0.o ]
	llvm-offload-binary evil.bin --image=file=good,arch=x
	cmp good x.o
}
