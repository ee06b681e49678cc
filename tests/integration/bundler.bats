#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack offload-bundler against clang-offload-bundler: the same command lines in two identical directories
# must leave the same files, and fail or not; objects of either can be taken apart by the other; and files of
# other users.
# Everything else is in tests/golden/bundler*.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load packing

H=host-x86_64-unknown-linux-gnu
X=hip-amdgcn-amd-amdhsa--gfx906
Y=hip-amdgcn-amd-amdhsa--gfx908
Z=hipv4-amdgcn-amd-amdhsa--gfx90a
theirs=clang-offload-bundler-22
ours=$KPACK_BIN/clang/clang-offload-bundler

# Of each line of options the same comes of both: files, output, and whether it fails.
same() {
	local line one two
	while IFS= read -r line; do
		one=0 two=0
		(cd theirs && eval "$theirs $line" <plain) >1.out 2>1.err || one=$?
		(cd ours && eval "$ours $line" <plain) >2.out 2>2.err || two=$?
		[ $((one != 0)) = $((two != 0)) ] && cmp 1.out 2.out && diff -r theirs ours ||
			{ echo "of: $line ($one, $two)"; cat 1.err 2.err; return 1; }
	done
}

# bats test_tags=all
@test "bundles and archives are clang's, and objects are read by clang's tool" {
	local program type side
	for program in clang-22 $theirs llvm-objcopy-22 llvm-ar-22; do
		command -v $program >/dev/null || skip "no clang-22, clang-tools-22 or llvm-22"
	done
	mkdir theirs
	cd theirs
	printf AAA >a
	printf BBB >b
	printf 'CC\n' >c
	: >empty
	py <<-'END' # compressible, long repeats far apart, and noise
	import random
	random.seed(1)
	words = [bytes([random.randrange(97, 123) for _ in range(6)]) for _ in range(400)]
	text = b" ".join(random.choice(words) for _ in range(30000))
	open("text", "wb").write(text)
	open("twice", "wb").write(random.randbytes(300000) + text + text[:100000])
	END
	echo 'int f(void) { return 1; } int g; int main(void) { return f(); }' >h.c
	clang-22 -c h.c -o h.o
	printf '%s\n' '__kernel void k(__global int *p) { *p = 1; }' >k.cl
	clang-22 -O1 --target=amdgcn-amd-amdhsa -mcpu=gfx906 -nogpulib -c k.cl -emit-llvm -o k.bc
	clang-22 -O1 --target=amdgcn-amd-amdhsa -mcpu=gfx906 -nogpulib k.cl -o k.co
	$theirs -type=bc -targets=$H,$X,$Y -input=a -input=text -input=b -output=plain
	$theirs -type=bc -compress -targets=$H,$X,$Y -input=a -input=text -input=b -output=small
	$theirs -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=b -output=fat.o
	$theirs -type=bc -targets=$H,$X:xnack+,$Y -input=a -input=k.co -input=b -output=member.bc
	llvm-ar-22 cr lib.a fat.o member.bc small h.o
	llvm-ar-22 --thin cr thin.a fat.o member.bc small
	cd ..
	cp -r theirs ours
	for type in i ii cui hipi d ll s; do
		echo "-type=$type -targets=\$X,\$H,\$Y -input=a -input=c -input=empty -output=$type"
		echo "-type=$type -list -input=$type"
		echo "-type=$type -unbundle -targets=\$Y,\$X,\$H -input=$type -output=1 -output=2 -output=3"
	done | same
	same <<-'END'
	-type=bc -targets=$H,$X,$Y -input=a -input=text -input=b -output=out -bundle-align=4097
	-type=gch -targets=$X,$H,$Z -input=empty -input=text -input=empty -output=out -bundle-align=3
	--type=bc --targets=$H --targets=$Y --input=a --input=b --output=out
	-type bc -targets $H,$Y -input a -input b -output out
	-type=bc -targets=$X -input=- -output=-
	-type=bc -targets=host-amd64-pc-linux-gnu-x -input=a -output=out
	-type=bc -targets=hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+:sramecc- -input=a -output=out
	-type=bc -targets=hip-spirv64----generic -input=a -output=out
	-type=bc -compress -compression-level=-5 -targets=$X,$Y -input=twice -input=text -output=out
	-type=bc -compress -compression-level=19 -targets=$X,$Y -input=twice -input=text -output=out -bundle-align=4096
	-type=ll -compress -targets=$X,$H,$Y -input=a -input=text -input=c -output=small.ll
	-type=ll -unbundle -targets=$X,$H -input=small.ll -output=1 -output=2
	-type=bc -unbundle -targets=$Y:xnack+,hipv4-amdgcn-amd-amdhsa-unknown-gfx906:sramecc- -input=small -output=1 -output=2
	-type=bc -unbundle -targets=$Y,$H -input=plain -output=/dev/null -output=1
	-type=bc -unbundle -allow-missing-bundles -targets=host-x86_64-pc-linux-gnu,$Z -input=small -output=1 -output=2
	-type=o -targets=$H,$X -input=k.bc -input=h.o -output=out
	-type=o -list -input=fat.o
	-type=o -unbundle -targets=$Y,$X:xnack- -input=fat.o -output=2 -output=3
	-type=a -unbundle -targets=$Y,$X:xnack+ -input=lib.a -output=1.a -output=2.a
	-type=a -unbundle -targets=$Y:xnack+,$Y:xnack- -input=lib.a -output=1.a -output=2.a
	-type=a -unbundle -targets=$Y,$Z -input=lib.a -output=1.a -output=2.a -allow-missing-bundles
	-type=a -unbundle -check-input-archive -targets=$Y,$X -input=lib.a -output=1.a -output=2.a
	-type=a -unbundle -targets=$X:xnack+,$Y -input=thin.a -output=x.a -output=y.a
	-type=bc -unbundle -targets=$Z -input=plain -output=1
	-type=bc -targets=$X:xnack+,$X -input=a -input=b -output=out
	-type=bc -targets=cuda-nv-nvidia-cuda--sm_80 -input=a -output=out
	-type=zz -list -input=a
	-type=bc -unbundle -list -input=a
	-type=bc -targets=$H -input=a -inputs=a -output=out
	END
	# an object that either made is taken apart by the other, and the host's part can be linked
	(cd ours && $ours -type=o -targets=$X,$Y,$H -input=k.co -input=empty -input=h.o -output=own.o)
	for side in theirs ours; do
		cd $side
		${!side} -type=o -unbundle -targets=$H,$X,$Y -input=../ours/own.o -output=1.o -output=2 -output=3
		cmp 2 k.co
		cmp 3 empty
		clang-22 1.o -o program
		run -1 ./program
		${!side} -type=o -unbundle -targets=$H,$X,$Y -input=../theirs/fat.o -output=1.o -output=2 -output=3
		cmp 2 k.bc
		cmp 3 b
		clang-22 1.o -o program
		run -1 ./program
		cd ..
	done
	# a program stays one: nothing of it moves
	cd ours
	$ours -type=o -targets=$H,$X -input=program -input=b -output=fat
	$ours -type=o -unbundle -targets=$H,$X -input=fat -output=1 -output=2
	cmp 2 b
	chmod +x fat 1
	run -1 ./fat
	run -1 ./1
}

@test "root writes into no file, and follows no link, that another user may have put there" {
	local name
	as_root
	unbundle() { run -1 --separate-stderr kpack offload-bundler -type=bc -unbundle -targets=$Y -input=$1 -output=$2; }
	printf AAA >a
	kpack offload-bundler -type=bc -targets=$Y -input=a -output=plain
	mkdir theirs
	echo kept >kept
	ln -s ../kept theirs/link
	ln -s ../made theirs/dangling
	ln -s ../plain theirs/input
	ln kept theirs/hard
	mkfifo theirs/fifo
	echo old >theirs/own
	chown -h 1234:4321 theirs theirs/link theirs/dangling theirs/fifo theirs/own
	exec {both}<>theirs/fifo {old}<theirs/own
	for name in link dangling; do
		unbundle plain theirs/$name
		[[ $stderr == *"theirs/$name: "*"is a symbolic link that is not followed"* ]]
	done
	for name in hard fifo; do
		unbundle plain theirs/$name
		[[ $stderr == *"theirs/$name: is not written to, because another user may have put it there"* ]]
	done
	# inputs, too
	unbundle theirs/fifo new
	[[ $stderr == *"theirs/fifo: is not read, because another user may have put it there"* ]]
	unbundle theirs/input new
	[[ $stderr == *"theirs/input: "*"is a symbolic link that is not followed"* ]]
	[ ! -e new ] && [ ! -e made ] && [ "$(cat kept)" = kept ]
	# the only name of a file is replaced, and the file stays theirs
	chmod 640 theirs/own
	kpack offload-bundler -type=bc -unbundle -targets=$Y -input=plain -output=theirs/own
	[ "$(stat -c %u:%g:%a theirs/own)" = 1234:4321:640 ]
	cmp theirs/own a
	[ "$(cat <&$old)" = old ]
}
