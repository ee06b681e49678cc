#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack as clang-offload-packager and llvm-offload-binary: the same command lines for it and for LLVM 22's
# tools must give the same files and output, and fail or not; each reads what the other wrote.  The order of an
# image's strings may differ.  What only ours does is in tests/golden/packager*.

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

theirs() { (cd theirs && PATH=$BATS_TEST_TMPDIR/bin:$PATH bash -c "$1") >theirs.out 2>theirs.err; }
ours() { (cd ours && PATH=$KPACK_BIN/clang:$PATH bash -c "$1") >ours.out 2>ours.err; }

said() { if [ -s "$1" ]; then echo something; fi; }

# Of every line on stdin the same comes: files, output, status; and messages, or none
same() {
	local line one two
	while IFS= read -r line; do
		one=0 two=0
		theirs "$line" </dev/null || one=$?
		ours "$line" </dev/null || two=$?
		[ $((one != 0)) = $((two != 0)) ] && cmp theirs.out ours.out && diff -r theirs ours &&
			[ "$(said theirs.err)" = "$(said ours.err)" ] && continue
		printf 'differs: %s (%s, %s)\n' "$line" $one $two
		cat theirs.err ours.err
		return 1
	done
}

@test "packs, extracts and exits as LLVM does" {
	same <<-'END'
	llvm-offload-binary -o d --image=file=code.o --image=file=wrapped,arch=1 --image=file=x.bc
	llvm-offload-binary -o e --image=file=noext,file=.o,file=dot.,file=d.bc/noext,arch=x,kind=sycl
	llvm-offload-binary -o h --image=file=x.o,a --image=file=x.o,=x --image=file=x.o,,, --image=a=b=c,file=x.o
	llvm-offload-binary -o j
	llvm-offload-binary -o - --image=file=x.o,a=b
	llvm-offload-binary -o /dev/stdout --image=file=x.o,a=b | cat
	llvm-offload-binary in.bin --image=arch=gfx1100
	llvm-offload-binary in.bin --image=triple=amdgcn-amd-amdhsa
	llvm-offload-binary in.bin --image=
	llvm-offload-binary in.bin --image=kind=hip --image=kind=cuda
	llvm-offload-binary in.bin --image=arch=sm_80,arch=gfx1100
	llvm-offload-binary in.bin --image=file=o1,kind=hip
	llvm-offload-binary in.bin --image=file=o2,triple=amdgcn-amd-amdhsa
	llvm-offload-binary in.bin --image=file=-,arch=sm_80
	llvm-offload-binary in.bin --image=file=o.a --archive
	llvm-offload-binary sub/in.more.bin --image=arch=sm_80
	llvm-offload-binary sub/in.more.bin --image=file=o5.a --archive
	llvm-offload-binary - --image=arch=sm_80 <in.bin
	llvm-offload-binary outer.bin --image=triple=t,file=inner
	llvm-offload-binary -o half.bin --image=file=junk.bin,triple=t
	llvm-offload-binary half.bin --image=
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
	llvm-offload-binary -o q --image=triple=x
	llvm-offload-binary -o q --image=file=x.o --image=file=
	llvm-offload-binary -o d.bc --image=file=x.o
	llvm-offload-binary nofile
	llvm-offload-binary cut.bin --image=
	llvm-offload-binary cut.a --image=
	llvm-offload-binary lost.a --image=
	printf 'CCOB' >other; llvm-offload-binary other --image=
	printf '__CLANG_OFFLOAD_BUNDLE__' >other; llvm-offload-binary other --image=
	printf '\3\2\x23\7' >other; llvm-offload-binary other --image=
	head -c 600 host.bc >cut.bc; llvm-offload-binary cut.bc --image=
	llvm-offload-binary junk.bin --image=arch=sm_80,file=k
	llvm-offload-binary in.bin --image=file=none/x
	llvm-offload-binary in.bin -o x --image=file=x.o
	llvm-offload-binary in.bin in.bin
	llvm-offload-binary in.bin --image=arch=sm_80 --archive
	llvm-offload-binary -o
	llvm-offload-binary --image
	END
	cmp ours/inner ours/in.bin
	[ -z "$(find ours -name '*.tmp*' -o -name '.kpack*')" ]
	# each reads the strings of the other, however they are ordered
	$python - <<-'END' >lines
	import random
	r = random.Random(4)
	letters = "abcdefghijklmnop-_.XYZ"
	for n in range(12):
	    parts = ["file=x.o"]
	    for i in range(r.choice([1, 2, 5, 20, 60])):
	        parts.append("".join(r.choice(letters) for _ in range(r.choice([1, 3, 8, 16, 32, 64]))) + "=" +
	                     "".join(r.choice(letters) for _ in range(r.choice([0, 1, 2, 9]))))
	    r.shuffle(parts)
	    print(",".join(parts))
	print("file=x.o,feature=+a,b=c,zeta=1,alpha=alpha,pha=hsa,triple=amdhsa")
	print("file=x.o,triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip")
	END
	while read -r parts; do
		theirs "llvm-offload-binary -o r --image=$parts"
		ours "llvm-offload-binary -o r --image=$parts"
		ours "llvm-offload-binary ../theirs/r --image=${parts/file=x.o/file=back}"
		theirs "llvm-offload-binary ../ours/r --image=${parts/file=x.o/file=back}"
		cmp ours/back ours/x.o
		cmp theirs/back ours/x.o
		rm {ours,theirs}/{back,r}
	done <lines
}
