#!/usr/bin/env bats
# kpack offload-bundler against clang-offload-bundler: the same command lines in two
# identical directories must leave the same files, and give the same exit status and
# output.  Where clang's tool is wrong, the right result is computed here.

# bats file_tags=all, single

bats_require_minimum_version 1.5.0

python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1

H=host-x86_64-unknown-linux-gnu
X=hip-amdgcn-amd-amdhsa--gfx906
Y=hip-amdgcn-amd-amdhsa--gfx908
Z=hipv4-amdgcn-amd-amdhsa--gfx90a

theirs=clang-offload-bundler-22
have() {
	local program
	for program in clang-22 $theirs llvm-objcopy-22 llvm-ar-22 readelf; do
		command -v $program >/dev/null || return 1
	done
}

# Ours, called as clang calls it, and as a subcommand.
ours() { timeout 600 "$KPACK_BIN/clang/clang-offload-bundler" "$@"; }
kpack() { timeout 600 "$KPACK_BIN/kpack" "$@"; }

setup_file() {
	have || return 0
	cd "$BATS_FILE_TMPDIR"
	mkdir base
	cd base
	printf AAA >a
	printf BBB >b
	printf 'CC\n' >c
	: >empty
	# compressible, long repeats far apart, and noise
	$python - <<-'END'
	import random
	random.seed(1)
	words = [bytes([random.randrange(97, 123) for _ in range(6)]) for _ in range(400)]
	text = b" ".join(random.choice(words) for _ in range(60000))
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
	$theirs -type=ii -targets=$X,$H,$Y -input=a -input=b -input=c -output=source
	$theirs -type=ll -compress -targets=$X,$H,$Y -input=a -input=text -input=c -output=small.ll
	$theirs -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=b -output=fat.o
	$theirs -type=bc -targets=$H,$X:xnack+,$Y -input=a -input=k.co -input=b -output=member.bc
	llvm-ar-22 cr lib.a fat.o member.bc small h.o
}

setup() {
	have || skip "no clang-22, clang-tools-22, llvm-22 or binutils"
	cp -r "$BATS_FILE_TMPDIR/base" "$BATS_TEST_TMPDIR/d"
	cd "$BATS_TEST_TMPDIR/d"
}

# The messages, without the program's name, and without warnings, numbers of temporary files,
# and seconds.
said() {
	sed -E -e 's,^(.*/)?clang-offload-bundler(-22)?: ,,' -e '/^warning: /d' \
		-e 's,[^"=]*/clang-offload-bundler-[[:alnum:]]+\.tmp,TMP,g' \
		-e 's,^"[^"]*llvm-objcopy(-[0-9]+)?","OBJCOPY",' \
		-e 's,(speed:) .*,\1,' "$1"
}

# both NAME=VALUE... WORD...: run both tools; RC is the exit status they should share, if given.
both() {
	local rc_ours=0 rc_theirs=0 assignments=()
	while [[ $1 == [A-Z]*=* ]]; do
		assignments+=("$1")
		shift
	done
	rm -rf ../ours ../theirs
	cp -rp . ../ours
	cp -rp . ../theirs
	(cd ../theirs && env "${assignments[@]}" $theirs "$@" <plain) >../theirs.out 2>../theirs.err ||
		rc_theirs=$?
	(cd ../ours && env "${assignments[@]}" "$KPACK_BIN/clang/clang-offload-bundler" "$@" <plain) \
		>../ours.out 2>../ours.err || rc_ours=$?
	[ $rc_ours = $rc_theirs ] || { echo "exit $rc_ours, not $rc_theirs:"; cat ../ours.err; return 1; }
	return 0
}

# The files, their modes, and standard output.
same_files() {
	diff -r ../theirs ../ours &&
		diff <(cd ../theirs && find . -type f -printf '%m %p\n' | sort) \
			<(cd ../ours && find . -type f -printf '%m %p\n' | sort) &&
		cmp ../theirs.out ../ours.out
}

same() {
	both "$@"
	same_files || { echo "of: $*"; return 1; }
	diff <(said ../theirs.err) <(said ../ours.err) || { echo "of: $*"; return 1; }
}

# refused TEXT WORD...: both exit 1 and say so, and ours leaves no file
refused() {
	local text=$1
	shift
	both "$@"
	grep -qF -e "error: $text" ../theirs.err || { cat ../theirs.err; return 1; }
	grep -qF -e "error: $text" ../ours.err || { cat ../ours.err; return 1; }
	diff -r . ../ours
}

@test "bundles are byte for byte clang's, whatever alignment, order and host" {
	local align
	for align in 1 2 3 16 4095 4096 4097; do
		same -type=bc -targets=$H,$X,$Y -input=a -input=text -input=b -output=out -bundle-align=$align
		same -type=gch -targets=$X,$H,$Z -input=empty -input=text -input=empty -output=out \
			-bundle-align=$align
		same -type=ast -targets=$X,$Y -inputs=b,/dev/null -outputs=out -bundle-align=$align
	done
	same -type=bc -targets=$H -input=a -output=out
	same --type=bc --targets=$H --targets=$Y --input=a --input=b --output=out
	same -type bc -targets $H,$Y -input a -input b -output out
	same -type=bc -targets=$X -input=- -output=out
	same -type=bc -targets=$X -input=a -output=-
	echo "-type=bc -targets=$H,$X -input=a -input=b -output=out" >words
	same @words
}

@test "an alignment of 0 is refused, which ends clang's tool by a signal" {
	run -1 --separate-stderr ours -type=bc -targets=$H -input=a -output=out -bundle-align=0
	[[ $stderr == *"bundle-align"*"'0'"* ]]
	[ ! -e out ]
	run -1 ours -type=bc -targets=$H -input=a -output=out -bundle-align=-1
	run -1 ours -type=bc -targets=$H -input=a -output=out -bundle-align=4294967296
}

@test "a feature without a sign is kept, which can end clang's tool by a signal" {
	run -0 ours -type=bc -targets=hipv4-amdgcn-amd-amdhsa--gfx906:foo -input=a -output=out
	run -0 ours -type=bc -list -input=out
	[ "$output" = hipv4-amdgcn-amd-amdhsa--gfx906:foo ]
}

@test "entry IDs are normalised as clang does" {
	local t
	for t in x86_64-unknown-linux-gnu x86_64-unknown-linux-gnu- x86_64-unknown-linux- x86_64-linux-gnu- \
		x86_64--linux-gnu x86_64-pc-windows-msvc x86_64-apple-macosx10.15- amd64-pc-linux-gnu-x \
		x86_64-gnu-linux-pc x86_64-pc-win32- x86_64-pc-mingw32- x86_64-pc-cygwin-gnu arm-none-eabi- \
		arm-suse-linux-gnueabi aarch64-unknown-linux-androideabi21 x86_64-foo-bar-baz; do
		same -type=bc -targets=host-$t -input=a -output=out
	done
	for t in hip-amdgcn-amd-amdhsa--gfx906 hip-amdgcn-amd-amdhsa-unknown-gfx906 \
		hip-amdgcn-amd-amdhsa-llvm-gfx906 hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+:sramecc- \
		hip-spirv64-amd-amdhsa--amdgcnspirv hip-spirv64----generic hip-amdgcn-amd-amdpal--gfx1030 \
		hip-amdgcn-amd-amdhsa- hip-amdgcn-amd-amdhsa--; do
		same -type=bc -targets=$t -input=a -output=out
	done
	for t in openmp-nvptx64-nvidia-cuda--sm_80 openmp-x86_64-pc-linux-gnu; do
		same -type=bc -targets=$H,$t -inputs=a,b -outputs=out
	done
}

@test "processors that clang does not know keep their target IDs" {
	for t in gfx1310 gfx906x:xnack+ fiji; do
		ours -type=bc -targets=hip-amdgcn-amd-amdhsa--$t -input=a -output=out
		[ "$(ours -type=bc -list -input=out)" = "hip-amdgcn-amd-amdhsa--$t" ]
		[ "$(ours -type=bc -unbundle -targets=hip-amdgcn-amd-amdhsa--$t -input=out -output=-)" = AAA ]
	done
}

@test "text bundles of every type" {
	local type
	for type in i ii cui hipi d ll s; do
		same -type=$type -targets=$X,$H,$Y -input=a -input=c -input=empty -output=out
		mv ../ours/out bundled
		same -type=$type -list -input=bundled
		same -type=$type -unbundle -targets=$Y,$X,$H -input=bundled -output=y -output=x -output=h
		cmp ../ours/x a
		cmp ../ours/h c
		cmp ../ours/y empty
	done
	same -type=ll -list -input=source
	same -type=ii -unbundle -targets=$Y -input=source -output=out
}

@test "compression: levels, versions, the variables of the environment" {
	local level
	for level in -5 0 1 3 9 19 22 99; do
		same -type=bc -compress -compression-level=$level -targets=$H,$X,$Y -input=a -input=twice \
			-input=text -output=out -bundle-align=4096
	done
	same -type=bc -compress -targets=$X,$Y -input=twice -input=twice -output=out
	same -type=ll -compress -targets=$X,$H,$Y -inputs=a,text,c -outputs=out
	same OFFLOAD_BUNDLER_COMPRESS=1 -type=bc -targets=$H,$X -input=a -input=text -output=out
	same OFFLOAD_BUNDLER_COMPRESS=1 -type=bc -compress=false -targets=$X -input=text -output=out
	same OFFLOAD_BUNDLER_COMPRESS=yes -type=bc -targets=$H,$X -input=a -input=text -output=out
	same OFFLOAD_BUNDLER_COMPRESS=1 COMPRESSED_BUNDLE_FORMAT_VERSION=2 \
		OFFLOAD_BUNDLER_COMPRESSION_LEVEL=7 -type=bc -targets=$X -input=text -output=out
	[ "$(head -c 6 ../ours/out | od -An -tx1)" = " 43 43 4f 42 02 00" ]
	same OFFLOAD_BUNDLER_COMPRESS=1 OFFLOAD_BUNDLER_IGNORE_ENV_VAR=1 -type=bc -targets=$X -input=text \
		-output=out
	cmp <(ours -type=bc -targets=$X -input=text -output=-) ../ours/out
	local value
	for value in 1 4 x 70000; do
		same COMPRESSED_BUNDLE_FORMAT_VERSION=$value OFFLOAD_BUNDLER_COMPRESSION_LEVEL=$value -type=bc \
			-compress -targets=$X -input=text -output=out
		grep -q "Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: $value" ../ours.err
	done
}

@test "compression: versions and methods that clang's tool only reads" {
	local version method
	ours -type=bc -targets=$H,$X -input=a -input=text -output=bundle
	for version in 1 2 3; do
		for method in zlib zstd; do
			ours -type=bc -compress -format-version=$version -compression-method=$method \
				-targets=$H,$X -input=a -input=text -output=out
			$python - $version $method <<-'END'
			import hashlib, struct, sys, zlib
			version, method = int(sys.argv[1]), sys.argv[2]
			data, plain = open("out", "rb").read(), open("bundle", "rb").read()
			form = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
			row = struct.unpack_from(form, data)
			assert row[:3] == (b"CCOB", version, method == "zstd"), row
			assert version == 1 or row[3] == len(data), row
			assert row[-2] == len(plain), row
			assert row[-1] == int.from_bytes(hashlib.md5(plain).digest()[:8], "little"), row
			body = data[struct.calcsize(form):]
			assert method == "zstd" or body == zlib.compress(plain), method
			END
			same -type=bc -unbundle -targets=$H,$X -input=out -output=1 -output=2
			cmp ../ours/2 text
		done
	done
	ours -type=bc -compress -targets=$H,$X -input=a -input=text -output=- | cmp - out
	local fault
	while read -r fault; do
		# shellcheck disable=SC2086
		run -1 --separate-stderr ours -type=bc -compress ${fault%:*} -targets=$X -input=a -output=none
		[[ $stderr == *"error: ${fault#*:}" ]]
	done <<-'END'
	-format-version=0:format version 0, known are 1 to 3
	-format-version=4:format version 4, known are 1 to 3
	-compression-method=lz4:compression method 'lz4', known are zstd and zlib
	-compression-method=zlib -compression-level=10:compression level 10, zlib has 1 to 9
	-compression-method=zlib -compression-level=-1:compression level -1, zlib has 1 to 9
	END
	[ ! -e none ]
}

@test "listing and unbundling bundles, plain and compressed" {
	local file
	for file in plain small; do
		both -type=bc -list -input=$file
		diff <(sort ../theirs.out) <(sort ../ours.out)
		# ours in the order of the file
		[ "$(cat ../ours.out)" = "$(printf '%s-\n%s\n%s' $H $X $Y)" ]
		same -type=bc -unbundle -targets=$H,$X,$Y -input=$file -output=1 -output=2 -output=3
		cmp ../ours/1 a
		cmp ../ours/2 text
		cmp ../ours/3 b
		same -type=o -unbundle -targets=$Y,$H -inputs=$file -outputs=1,2
		same -type=bc -unbundle -targets=$Y:xnack+,hipv4-amdgcn-amd-amdhsa-unknown-gfx906:sramecc- \
			-input=$file -output=1 -output=2
	done
	same -type=bc -unbundle -targets=$Y -input=- -output=-
	same -type=bc -unbundle -targets=$Y,$H -input=plain -output=/dev/null -output=1
	same -type=ll -list -input=small.ll
	same -type=ll -unbundle -targets=$X,$H -input=small.ll -output=1 -output=2
	cmp ../ours/1 a
}

@test "bundling again what was unbundled makes the identical file" {
	local align
	for align in 1 3 4096; do
		$theirs -type=bc -targets=$H,$X,$Y,$Z -inputs=empty,text,b,twice -outputs=first \
			-bundle-align=$align 2>/dev/null
		ours -type=bc -unbundle -targets=$Z,$Y,$X,$H -input=first -output=4 -output=3 -output=2 -output=1
		ours -type=bc -targets=$H,$X,$Y,$Z -input=1 -input=2 -input=3 -input=4 -output=again \
			-bundle-align=$align
		cmp first again
		$theirs -type=bc -compress -targets=$H,$X,$Y,$Z -inputs=empty,text,b,twice -outputs=first \
			-bundle-align=$align 2>/dev/null
		ours -type=bc -unbundle -targets=$Z,$Y,$X,$H -input=first -output=4 -output=3 -output=2 -output=1
		ours -type=bc -compress -targets=$H,$X,$Y,$Z -input=1 -input=2 -input=3 -input=4 -output=again \
			-bundle-align=$align
		cmp first again
	done
	ours -type=ii -unbundle -targets=$X,$H,$Y -input=source -output=1 -output=2 -output=3
	ours -type=ii -targets=$X,$H,$Y -input=1 -input=2 -input=3 -output=again
	cmp source again
	ours -type=o -unbundle -targets=$H,$X,$Y -input=fat.o -output=1 -output=2 -output=3
	ours -type=o -targets=$H,$X,$Y -input=1 -input=2 -input=3 -output=again
	cmp fat.o again
}

@test "objects: sections by llvm-objcopy, the same bytes" {
	same -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=empty -output=out.o
	same -type=o -targets=$X,$Y,$H -inputs=a,k.co,h.o -outputs=out.o
	same -type=o -compress -targets=$H,$X -input=h.o -input=b -output=out.o
	same -type=o -targets=$H,$X -input=k.co -input=h.o -output=out.o
	same -type=o -targets=$H,$X -input=h.o -input=/dev/null -output=out.o
	# a host that is no object: a bundle
	same -type=o -targets=$H,$X -input=k.bc -input=h.o -output=out
	same -type=o -targets=$H,$X,$Y -input=/dev/null -input=k.co -input=b -output=out -bundle-align=4096
	same -type=o -list -input=fat.o
	same -type=o -list -input=h.o
	same -type=o -unbundle -targets=$H,$Y,$X -input=fat.o -output=1 -output=2 -output=3
	cmp ../ours/1 h.o
	cmp ../ours/3 k.bc
	same -type=o -unbundle -targets=$X:xnack- -input=fat.o -output=1
	chmod 755 h.o
	same -type=o -targets=$H,$X -input=h.o -input=b -output=out.o
	same -### -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=b -output=out.o
	grep -q '"--" "h.o" "out.o"$' ../ours.err
	same -### -type=o -unbundle -targets=$H,$Y -input=fat.o -output=1 -output=2
	same -### -type=bc -targets=$H,$Y -input=a -input=b -output=out
	# clang's tool hands "-" to llvm-objcopy, which cannot read it again; it does nothing right here
	ours -type=o -targets=$H,$X -input=- -input=b -output=out.o <h.o
	ours -type=o -targets=$H,$X -input=h.o -input=b -output=want.o
	cmp want.o out.o
	ls "${TMPDIR:-/tmp}"/clang-offload-bundler-*.tmp && return 1
	return 0
}

@test "objects: device code alone makes a bundle, also of objects" {
	ours -type=o -targets=$X,$Y -input=k.co -input=k.bc -output=out
	ours -type=bc -targets=$X,$Y -input=k.co -input=k.bc -output=want
	cmp want out
}

@test "objects without llvm-objcopy: the sections are added and removed by ourselves" {
	bin=$KPACK_BIN/clang/clang-offload-bundler
	# nothing to be found but what ours needs
	PATH=/nonexistent $bin -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=empty -output=ours.o
	$theirs -type=o -targets=$H,$X,$Y -input=h.o -input=k.bc -input=empty -output=theirs.o
	# the same sections, up to where they stand
	for f in ours theirs; do
		readelf -SW $f.o 2>$f.err | sed -nE 's/^ +\[ *[0-9]+\] //p' | awk '{ $4 = ""; $5 = $1 ~ /strtab/ ? "" : $5; print }' >$f.txt
		[ ! -s $f.err ]
	done
	diff theirs.txt ours.txt
	$theirs -type=o -list -input=ours.o >list
	[ "$(cat list)" = "$(printf '%s-\n%s\n%s' $H $X $Y)" ]
	$theirs -type=o -unbundle -targets=$H,$X,$Y -input=ours.o -output=1 -output=2 -output=3
	cmp 2 k.bc
	cmp 3 empty
	clang-22 1 -o program
	run -1 ./program
	PATH=/nonexistent $bin -type=o -unbundle -targets=$H,$X -input=fat.o -output=4 -output=5
	cmp 5 k.bc
	readelf -SW 4 >headers 2>errors
	[ ! -s errors ]
	! grep -q CLANG_OFFLOAD headers || false
	clang-22 4 -o program
	run -1 ./program
	clang-22 ours.o -o program
	! readelf -SW program | grep -q CLANG_OFFLOAD || false
	# with -### the commands are printed all the same
	PATH=/nonexistent $bin -### -type=o -targets=$H,$X -input=h.o -input=b -output=o.o 2>err
	grep -q '^"llvm-objcopy" "--add-section=__CLANG_OFFLOAD_BUNDLE__'$H-= err
}

@test "the newest llvm-objcopy-NN of PATH is taken where there is none without a version" {
	mkdir one two
	for v in one/llvm-objcopy-9 one/llvm-objcopy-100 one/llvm-objcopy-old one/llvm-objcopy two/llvm-objcopy-200; do
		printf '#!/bin/sh\necho %s >>used\nexec llvm-objcopy-22 "$@"\n' $v >$v
		chmod +x $v
	done
	: >one/llvm-objcopy-300 # not a program
	mkdir empty.d
	objcopy=$(dirname "$(command -v llvm-objcopy-22)")
	sed -i "s,exec llvm,exec $objcopy/llvm," one/llvm-objcopy* two/llvm-objcopy*
	bundle() { # PATH PROGRAM
		: >used
		PATH=$1 $2 -type=o -targets=$H,$X -input=h.o -input=b -output=out.o
	}
	bundle $PWD/empty.d:$PWD/one:$PWD/two "$KPACK_BIN/clang/clang-offload-bundler"
	[ "$(cat used)" = one/llvm-objcopy-100 ]
	ln -s "$KPACK_BIN/kpack" clang-offload-bundler-9
	bundle $PWD/one:$PWD/two ./clang-offload-bundler-9
	[ "$(cat used)" = one/llvm-objcopy-9 ]
	rm one/llvm-objcopy-*
	bundle $PWD/one:$PWD/two "$KPACK_BIN/clang/clang-offload-bundler"
	[ "$(cat used)" = one/llvm-objcopy ]
	# next to the program goes first
	cp -P clang-offload-bundler-9 two/clang-offload-bundler
	cp two/llvm-objcopy-200 two/llvm-objcopy
	sed -i 's,echo [^ ]*,echo beside,' two/llvm-objcopy
	bundle $PWD/one two/clang-offload-bundler
	[ "$(cat used)" = beside ]
	printf '#!/bin/sh\nexit 3\n' >one/llvm-objcopy
	rm out.o
	run -1 --separate-stderr env PATH=$PWD/one "$KPACK_BIN/clang/clang-offload-bundler" -type=o \
		-targets=$H,$X -input=h.o -input=b -output=out.o
	[[ $stderr == *"'llvm-objcopy' tool failed"* ]]
	[ ! -e out.o ]
}

@test "heterogeneous device archives" {
	same -type=a -unbundle -targets=$Y,$X -input=lib.a -output=1.a -output=2.a
	same -type=a -unbundle -targets=$Y,$X:xnack+ -input=lib.a -output=1.a -output=2.a
	# one entry for several targets
	same -type=a -unbundle -targets=$Y:xnack+,$Y:xnack- -input=lib.a -output=1.a -output=2.a
	same -type=a -unbundle -targets=$H,$X -input=lib.a -output=1.a -output=2.a
	same -type=a -unbundle -targets=$Y,$Z -input=lib.a -output=1.a -output=2.a -allow-missing-bundles
	[ "$(cat ../ours/2.a)" = '!<arch>' ]
	same -type=a -unbundle -check-input-archive -targets=$Y,$X -input=lib.a -output=1.a -output=2.a
	same -type=a -verbose -unbundle -targets=$H,$Y -input=lib.a -output=1.a -output=2.a
	same -### -type=a -unbundle -targets=$H,$Y -input=lib.a -output=1.a -output=2.a
	refused "no compatible code object found for the target '$Z' in heterogeneous archive library: lib.a" \
		-type=a -unbundle -targets=$Y,$Z -input=lib.a -output=1.a -output=2.a || true
	grep -q "no compatible code object found for the target '$Z'" ../ours.err
	[ ! -e ../ours/1.a ]
	# its members are named so
	ours -type=a -unbundle -targets=$X:xnack+ -input=lib.a -output=1.a
	[ "$(llvm-ar-22 t 1.a)" = "$(printf '%s\n' "fat-${X}fat.bc" "member-${X}_xnack+member.bc" "small-${X}small.bc")" ]
}

@test "thin archives: the members are files beside them" {
	mkdir sub
	cp fat.o sub/far.o
	cp member.bc "a b.bc"
	llvm-ar-22 --thin cr thin.a sub/far.o "a b.bc" small "$PWD/h.o"
	same -type=a -unbundle -targets=$X:xnack+,$Y -input=thin.a -output=x.a -output=y.a
	same -type=a -unbundle -targets=$Y -input="$PWD/thin.a" -output=y.a
	cd sub
	ours -type=a -list -input=../thin.a >got
	printf '%s\n' $H- $X $Y $H- $X:xnack+ $Y $H- $X $Y | diff - got
	cd ..
	rm "a b.bc"
	run -1 --separate-stderr ours -type=a -unbundle -targets=$Y -input=thin.a -output=y.a
	[[ $stderr == *"'a b.bc': "*"No such file or directory" ]]
	[ ! -e y.a ]
	# what a hostile one leads to
	mkfifo "a b.bc"
	run -1 --separate-stderr ours -type=a -unbundle -targets=$Y -input=thin.a -output=y.a
	[[ $stderr == *"'a b.bc': is a FIFO, not a regular file" ]]
}

@test "members of CUDA's archives are cubins; others keep their extension" {
	cuda=openmp-nvptx64-nvidia-cuda--sm_80
	$theirs -type=o -targets=$H,$cuda,openmp-x86_64-pc-linux-gnu -input=/dev/null -input=b -input=a -output=f.x
	llvm-ar-22 cr c.a f.x
	same -type=a -unbundle -targets=$cuda -input=c.a -output=out.a
	same -type=a -unbundle -targets=openmp-x86_64-pc-linux-gnu -input=c.a -output=out.a
}

@test "-check-input-archive finds features that are given in some IDs only" {
	$theirs -type=bc -targets=$H,$X:xnack+,$X:sramecc+:xnack+ -input=a -input=b -input=c -output=1.bc
	sed 's/:xnack+AAA//; s/gfx906:xnack+/gfx906:xnack-/' 1.bc >2.bc
	$python - <<-END
	import struct
	ids = [b"$H-", b"$X", b"$X:xnack+"]
	head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 3)
	for i in ids:
	    head += struct.pack("<QQQ", 500, 0, len(i)) + i
	open("3.bc", "wb").write(head.ljust(500, b"\0"))
	END
	llvm-ar-22 cr bad.a plain 3.bc
	refused "conflicting TargetIDs [$X, $X:xnack+] found in 3.bc of bad.a" \
		-type=a -unbundle -check-input-archive -targets=$Y -input=bad.a -output=out.a
	same -type=a -unbundle -targets=$Y -input=bad.a -output=out.a
	# clang's tool misses this one
	llvm-ar-22 cr worse.a 1.bc
	run -1 --separate-stderr ours -type=a -unbundle -check-input-archive -targets=$X:xnack+ \
		-input=worse.a -output=out.a
	[[ $stderr == *"conflicting TargetIDs [$X:sramecc+:xnack+, $X:xnack+] found in 1.bc of worse.a"* ]]
	[ ! -e out.a ]
}

@test "an archive is listed by its members, of which clang's tool lists none" {
	ours -type=a -list -input=lib.a >got
	printf '%s\n' $H- $X $Y $H- $X:xnack+ $Y $H- $X $Y | diff - got
	both -type=a -list -input=plain
	diff <(sort ../theirs.out) <(sort ../ours.out)
}

@test "compatible entries: kinds, triples, processors, features" {
	local t
	$theirs -type=bc -targets=$H,$X:xnack+,$Y,openmp-amdgcn-amd-amdhsa--gfx1100 -inputs=a,b,c,text -outputs=in 2>/dev/null
	for t in $X:xnack+ hipv4${X#hip}:xnack+ $X $X:xnack- $X:sramecc+:xnack+ $Y $Y:xnack+ \
		hip-amdgcn-amd-amdhsa-unknown-gfx908 hip-amdgcn-amd-amdhsa-llvm-gfx908 hip-amdgcn-amd-amdhsa-foo-gfx908 \
		hip-amdgcn-unknown-amdhsa--gfx908 hip-amdgcn-amd-amdhsa5--gfx908 hip-amdgcn-amd-amdpal--gfx908 \
		hip-amdgcn-amd-amdhsa--gfx1100 openmp-amdgcn-amd-amdhsa--gfx1100 openmp-amdgcn-amd-amdhsa--gfx908 \
		host-amd64-unknown-linux-gnu host-x86_64-pc-linux-gnu host-x86_64-unknown-linux-musl \
		host-x86_64-unknown-linux- host-x86_64-unknown-linux2-gnu5 host-x86_64-foo-linux-gnu; do
		both -type=bc -unbundle -targets=$t -input=in -output=-
		cmp ../theirs.out ../ours.out
		both -type=bc -unbundle -hip-openmp-compatible -targets=$t -input=in -output=-
		cmp ../theirs.out ../ours.out
	done
}

@test "an entry goes to the target of its ID rather than to one before it that it serves, too" {
	O=openmp${X#hip}
	ours -type=ll -targets=$H,$X,$O:xnack+ -input=a -input=b -input=c -output=in
	# clang's tool goes by a hash of its targets, and fails here
	ours -type=ll -unbundle -hip-openmp-compatible -targets=$O:xnack+,$X -input=in -output=1 -output=2
	cmp 1 c
	cmp 2 b
}

@test "-debug-only=CodeObjectCompatibility prints each pair that is compared, and the verdict" {
	tab=$(printf '\t')
	pair() { printf '%s\t[CodeObject: %s]\t:\t[Target: %s]\n' "$@"; }
	ours -debug-only=CodeObjectCompatibility -type=bc -unbundle -targets=$Y:xnack+,$X -input=plain \
		-output=1 -output=2 2>got
	{
		pair "Incompatible: Kind/Triple mismatch " $H- $Y:xnack+
		pair "Incompatible: Kind/Triple mismatch " $H- $X
		pair "Incompatible: Processor mismatch " $X $Y:xnack+
		pair "Compatible: Exact match: " $X $X
		pair "Compatible: Target IDs are compatible " $Y $Y:xnack+
	} | diff - got
	ours -type=bc -targets=$X:xnack+ -input=a -output=in
	ours -debug-only=x,CodeObjectCompatibility -type=bc -unbundle -allow-missing-bundles \
		-targets=$X:sramecc+ -input=in -output=1 2>got
	pair "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's ANY value " \
		$X:xnack+ $X:sramecc+ | diff - got
	ours -debug-only=CodeObjectCompatibility -type=bc -unbundle -allow-missing-bundles \
		-targets=$X:xnack- -input=in -output=1 2>got
	pair "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's non-ANY value " \
		$X:xnack+ $X:xnack- | diff - got
	ours -debug-only=CodeObjectCompatibility -type=bc -unbundle -allow-missing-bundles \
		-targets=$X -input=in -output=1 2>got
	pair "Incompatible: CodeObject has more features than target " $X:xnack+ $X | diff - got
	ours -debug-only=other -type=bc -unbundle -targets=$X:xnack+ -input=in -output=1 2>got
	[ ! -s got ]
	# in archives each entry is compared with every target
	ours -debug-only=CodeObjectCompatibility -type=a -unbundle -targets=$Y,$X -input=lib.a -output=1 -output=2 2>got
	[ "$(wc -l <got)" = 18 ]
}

@test "missing bundles: an error, or empty files" {
	refused "Can't find bundles for $Z" -type=bc -unbundle -targets=$Z -input=plain -output=1
	both -type=bc -unbundle -targets=$H,$Z -input=plain -output=1 -output=2
	grep -q "error: Can't find bundles for $Z$" ../ours.err
	# nothing is written when not everything is there
	[ ! -e ../ours/1 ]
	W=hip-amdgcn-amd-amdhsa--gfx1100
	refused "Can't find bundles for $W and $Z" -type=bc -unbundle -targets=$Z,$W -input=plain -output=1 -output=2
	refused "Can't find bundles for $W, $X:sramecc-, and $Z" -type=bc -unbundle -targets=$Z,$X:sramecc-,$W \
		-input=member.bc -output=1 -output=2 -output=3
	refused "Can't find bundles for $X" -type=ii -unbundle -targets=$X -input=a -output=1
	same -type=bc -unbundle -allow-missing-bundles -targets=$H,$Z,$Y -input=plain -output=1 -output=2 -output=3
	same -type=bc -unbundle -allow-missing-bundles -targets=$Z,$Y -input=plain -output=2 -output=3
	# nothing found: the input is the host's
	same -type=bc -unbundle -allow-missing-bundles -targets=$H,$Z -input=text -output=1 -output=2
	same -type=bc -unbundle -allow-missing-bundles -targets=host-x86_64-pc-linux-gnu,$Z -input=plain -output=1 -output=2
	same -type=bc -unbundle -allow-missing-bundles -targets=host-x86_64-pc-linux-gnu,$Z -input=small -output=1 -output=2
	same -type=o -unbundle -allow-missing-bundles -targets=$H,$Z -input=h.o -output=1 -output=2
	same -type=ll -unbundle -allow-missing-bundles -targets=$H,$Z -input=text -output=1 -output=2
	same -type=bc -unbundle -allow-missing-bundles -targets=$Z -input=text -output=2
}

@test "faults of the command line: the same words, the same order" {
	refused "no output file specified!" -type=bc -targets=$H -input=a
	refused "for the --targets option: must be specified at least once!" -type=bc -input=a -output=out
	refused "Targets need to follow the format '<offload kind>-<target triple>'" -type=bc -targets=x-y -input=a -output=out
	refused "Targets need to follow the format '<offload kind>-<target triple>'" -type=bc -targets= -input=a -output=out
	refused "invalid target 'cuda-nv-nvidia-cuda--sm_80', unknown offloading kind 'cuda', unknown target triple 'nv-nvidia-cuda-'" \
		-type=bc -targets=cuda-nv-nvidia-cuda--sm_80 -input=a -output=out
	refused "invalid target 'HIP-amdgcn-amd-amdhsa--gfx906', unknown offloading kind 'HIP'" \
		-type=bc -targets=HIP-amdgcn-amd-amdhsa--gfx906 -input=a -output=out
	refused "invalid target 'host-foo-bar-baz-', unknown target triple 'foo-bar-baz-'" \
		-type=bc -targets=host-foo-bar-baz- -input=a -output=out
	refused "Duplicate targets are not allowed" -type=bc -targets=$X,$X -input=a -input=b -output=out
	refused "Cannot bundle inputs with conflicting targets: '$X' and '$X:xnack+'" \
		-type=bc -targets=$X:xnack+,$X -input=a -input=b -output=out
	refused "Cannot bundle inputs with conflicting targets: '$X:sramecc+' and '$X:xnack+'" \
		-type=bc -targets=$X:xnack+,$X:sramecc+ -input=a -input=b -output=out
	same -type=bc -targets=$X:sramecc+:xnack+,$X:xnack+ -input=a -input=b -output=out
	same -type=bc -targets=$X:xnack+,hipv4${X#hip} -input=a -input=b -output=out
	refused "expecting exactly one host target but got 0" -type=bc -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=a -output=out
	refused "expecting exactly one host target but got 2" -type=bc -targets=$H,host-x86_64-pc-linux-gnu \
		-input=a -input=b -output=out
	refused "expecting exactly one host target but got 2" -type=bc -unbundle -targets=$H,host-x86_64-pc-linux-gnu \
		-input=plain -output=1 -output=2
	refused "number of input files and targets should match in bundling mode" -type=bc -targets=$X -input=a -input=b -output=out
	refused "number of output files and targets should match in unbundling mode" \
		-type=bc -unbundle -targets=$X -input=plain -output=1 -output=2
	refused "only one output file supported in bundling mode" -type=bc -targets=$X -input=a -output=1 -output=2
	refused "only one input file supported in unbundling mode" -type=bc -unbundle -targets=$X -input=a -input=b -output=1
	refused "only one input file supported for -list" -type=bc -list -input=a -input=b
	refused "only one input file supported for -list" -type=bc -list
	refused "'zz': invalid file type specified" -type=zz -targets=$H -input=a -output=out
	refused "'zz': invalid file type specified" -type=zz -list -input=a
	refused "'zz': invalid file type specified" -type=zz -unbundle -targets=$H -input=a -output=1
	refused "'nothing': No such file or directory" -type=zz -list -input=nothing
	refused "Archive files are only supported for unbundling" -type=a -targets=$H -input=a -output=out
	refused "-unbundle and -list cannot be used together" -type=bc -unbundle -list -input=a
	refused "-targets option is invalid for -list" -type=bc -list -targets=$H -input=a
	refused "-outputs option is invalid for -list" -type=bc -list -input=a -output=out -targets=$H
	refused "-check-input-archive cannot be used while bundling" -type=bc -check-input-archive -targets=$H -input=a -output=out
	refused "-check-input-archive can only be used for unbundling archives (-type=a)" \
		-type=bc -unbundle -check-input-archive -targets=$H -input=a -output=out
	refused "-inputs and -input cannot be used together, use only -input instead" \
		-type=bc -targets=$H -input=a -inputs=a -output=out
	refused "-outputs and -output cannot be used together, use only -output instead" \
		-type=bc -targets=$H -input=a -output=out -outputs=out
	refused "'nothing': No such file or directory" -type=bc -targets=$H,$X -input=a -input=nothing -output=out
	refused "'.': Is a directory" -type=bc -list -input=.
	refused "'.': Is a directory" -type=bc -targets=$H -input=a -output=.
	refused "'/nonexistent/out': No such file or directory" -type=bc -targets=$H -input=a -output=/nonexistent/out
	same -type=bc -targets=$H -inputs=a -outputs=out
	grep -q 'warning: -inputs is deprecated, use -input instead' ../ours.err
	grep -q 'warning: -outputs is deprecated, use -output instead' ../ours.err
	both -type=bc
	both
	grep -q 'for the --type option: must be specified at least once!' ../ours.err
	both -type=bc -list -input=plain -nonsense
	grep -q "Unknown command line argument '-nonsense'" ../ours.err
}

@test "the same target in two spellings is refused; clang's tool writes a broken bundle" {
	run -1 --separate-stderr ours -type=bc -targets=$X,hip-amdgcn-amd-amdhsa-unknown-gfx906 -input=a -input=b -output=out
	[[ $stderr == *"Duplicate targets are not allowed"* ]]
	refused "expecting exactly one host target but got 2" -type=bc -targets=$H,$H- -input=a -input=b -output=out
}

@test "IDs of older compilers are listed as they are stored, and found" {
	$python - <<-'END'
	import struct
	def bundle(*entries):
	    at = 32 + sum(24 + len(i) for i, _ in entries)
	    head, data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
	    for i, d in entries:
	        head += struct.pack("<QQQ", at + len(data), len(d), len(i)) + i.encode()
	        data += d
	    return head + data
	open("old", "wb").write(bundle(
	    ("host-x86_64-unknown-linux", b"host"),
	    ("hip-amdgcn-amd-amdhsa-gfx900", b"900"),
	    ("hip-amdgcn-amd-amdhsa-unknown-gfx1100", b"1100"),
	    ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+", b"90a"),
	    ("hcc-amdgcn-amd-amdhsa--gfx803", b"803"),
	    ("sycl-spir64-unknown-unknown", b"sycl")))
	open("strange", "wb").write(bundle(("nonsense", b"x")))
	END
	ours -type=bc -list -input=old >got
	printf '%s\n' host-x86_64-unknown-linux hip-amdgcn-amd-amdhsa-gfx900 hip-amdgcn-amd-amdhsa-unknown-gfx1100 \
		hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+ hcc-amdgcn-amd-amdhsa--gfx803 sycl-spir64-unknown-unknown | diff - got
	ours -type=bc -unbundle -input=old -targets=$H,hip-amdgcn-amd-amdhsa--gfx900,hip-amdgcn-amd-amdhsa--gfx1100 \
		-output=1 -output=2 -output=3
	[ "$(cat 1 2 3)" = host9001100 ]
	# asked for in an older spelling
	[ "$(ours -type=bc -unbundle -input=old -targets=hip-amdgcn-amd-amdhsa-gfx900 -output=-)" = 900 ]
	[ "$(ours -type=bc -unbundle -input=old -targets=openmp-amdgcn-amdhsa-gfx900 -hip-openmp-compatible -output=-)" = 900 ]
	run -1 --separate-stderr ours -type=bc -unbundle -input=strange -targets=$X -output=1
	[[ $stderr == *"invalid bundle id read from the bundle"* ]]
	[ "$(ours -type=bc -list -input=strange)" = nonsense ]
}

@test "several bundles in one file, plain and compressed, with padding: all are seen" {
	$theirs -type=bc -targets=$Z -input=c -output=other
	$theirs -type=bc -compress -targets=$Z -input=c -output=other.small
	for f in plain small; do
		cp $f many
		truncate -s %4096 many
		truncate -s +8192 many
		cat other.small >>many
		truncate -s %512 many
		ours -type=bc -list -input=many >got
		printf '%s\n' $H- $X $Y $Z | diff - got
		ours -type=bc -unbundle -targets=$Z,$X,$H -input=many -output=1 -output=2 -output=3
		cmp 1 c
		cmp 2 text
		cmp 3 a
		cat $f other $f small >>many
		ours -type=bc -list -input=many >got
		printf '%s\n' $H- $X $Y $Z $H- $X $Y $Z $H- $X $Y $H- $X $Y | diff - got
	done
	# the first bundle with an ID counts, and this is reported
	$theirs -type=bc -targets=$Y -input=empty -output=second
	cat plain second >many
	ours -type=bc -unbundle -targets=$Y -input=many -output=1 2>err
	cmp 1 b
	grep -q "warning: 'many': 1 more entry with the same ID as one before: the last in the first bundle that has it is taken" err
	# of one bundle the last, as clang's tool has it; of text the first
	$theirs -type=bc -targets=$H,$X,${X%6}9 -input=a -input=text -input=b -output=twice.bc
	$theirs -type=ii -targets=$H,$X,${X%6}9 -input=a -input=text -input=b -output=twice.ii
	sed -i "s/${X%6}9/$X/" twice.*
	for f in bc ii; do
		both -type=$f -unbundle -targets=$H,$X -input=twice.$f -output=1 -output=2
		same_files
		grep -q "warning: 'twice.$f': 1 more entry with the same ID" ../ours.err
	done
	# a compressed text, and padding
	cp small.ll padded
	truncate -s +100 padded
	ours -type=ll -unbundle -targets=$Y -input=padded -output=1
	cmp 1 c
	# bytes that follow and are no bundle are reported, although clang's tool ignores them
	{ cat plain; echo rest; } >tail
	ours -type=bc -unbundle -targets=$Y -input=tail -output=1 2>err
	cmp 1 b
	grep -q "warning: 'tail': the last 5 bytes are no bundle" err
}

@test "damaged inputs: an error that says what is wrong, and no output" {
	damaged() { # TEXT FILE
		rm -f 1 2
		run -1 --separate-stderr ours -type=bc -list -input="$2"
		[[ $stderr == *"error: "*"$1"* ]] || { echo "$stderr"; return 1; }
		run -1 --separate-stderr ours -type=bc -unbundle -allow-missing-bundles -targets=$H,$Y -input="$2" -output=1 -output=2
		[[ $stderr == *"error: "*"$1"* ]] || { echo "$stderr"; return 1; }
		[ ! -e 1 ] && [ ! -e 2 ]
	}
	head -c 40 plain >cut
	damaged "'cut': bundle at offset 0" cut
	head -c 1000 plain >cut
	damaged "pass the end" cut
	printf 'CCOB' >bad
	damaged "Failed to decompress input: Compressed bundle header size too small" bad
	printf 'CCOB\1\0\1\0' >bad
	damaged "Failed to decompress input: Compressed bundle header size too small" bad
	printf 'CCOB\4\0\1\0%040d' 0 >bad
	damaged "Failed to decompress input: Unknown compressed bundle version" bad
	printf 'CCOB\3\0\7\0%040d' 0 >bad
	damaged "Failed to decompress input: Unknown compressing method" bad
	printf 'CCOB\3\0\1\0%040d' 0 >bad
	damaged "Failed to decompress input: Could not decompress embedded file contents" bad
	{ head -c 46 small; printf '\377\377\377\377'; tail -c +51 small; } >bad
	run -1 --separate-stderr ours -type=bc -unbundle -targets=$X -input=bad -output=1
	[[ $stderr == *"Could not decompress embedded file contents"* ]]
	[ ! -e 1 ]
	# an archive with such a member
	llvm-ar-22 cr bad.a cut
	run -1 --separate-stderr ours -type=a -unbundle -targets=$X -input=bad.a -output=1
	[[ $stderr == *"'cut': "* ]]
	[ ! -e 1 ]
	run -1 --separate-stderr ours -type=a -unbundle -targets=$X -input=a -output=1
	[[ $stderr == *"'a': "*archive* ]]
	# members of other machines are passed over, and this is reported
	clang-22 -m32 -c h.c -o h32.o
	llvm-ar-22 cr mixed.a h32.o fat.o
	ours -type=a -unbundle -targets=$X -input=mixed.a -output=2 2>err
	[ "$(llvm-ar-22 t 2)" = "fat-${X}fat.bc" ]
	grep -q "warning: 'h32.o': entries can be read from little-endian ELF64 only" err
	head -c 300 fat.o >cut.o
	run -1 --separate-stderr ours -type=o -unbundle -targets=$X -input=cut.o -output=1
	[[ $stderr == *"'cut.o': "* ]]
	[ ! -e 1 ]
}

@test "outputs: links are followed, modes kept, pipes and devices written, nothing is left behind" {
	touch mode
	chmod 640 mode
	ln -s target link
	: >target
	ours -type=bc -unbundle -targets=$H,$Y -input=plain -output=mode -output=link
	[ "$(stat -c %a mode)" = 640 ]
	cmp mode a
	[ -L link ]
	cmp target b
	mkfifo pipe
	cat pipe >piped &
	ours -type=bc -unbundle -targets=$H,$Y -input=plain -output=1 -output=pipe
	wait
	cmp piped b
	# what a link is to lead to, and all names of one file
	ln -s nowhere link2
	echo old >name
	ln name name2
	ours -type=bc -unbundle -targets=$H,$Y -input=plain -output=link2 -output=name
	[ -L link2 ]
	cmp nowhere a
	cmp name2 b
	if [ "$(id -u)" = 0 ]; then
		touch theirs
		chown 1234:4321 theirs
		ours -type=bc -unbundle -targets=$Y -input=plain -output=theirs
		[ "$(stat -c %u:%g theirs)" = 1234:4321 ]
		cmp theirs b
	fi
	# from a pipe
	cat plain | ours -type=bc -unbundle -targets=$H -input=/dev/stdin -output=/dev/stdout | cmp - a
	run -1 --separate-stderr ours -type=bc -unbundle -targets=$H,$Y -input=plain -output=new -output=/dev/full
	[[ $stderr == *"No space left on device"* ]]
	[ ! -e new ]
	# the input itself
	cp plain own
	ours -type=bc -unbundle -targets=$X -input=own -output=own
	cmp own text
	! ls -A | grep -q '^\.kpack' || false
}

@test "llvm-objcopy reads the files that were looked at, whatever has their names then" {
	objcopy=$(command -v llvm-objcopy-22)
	mkdir bin
	printf '#!/bin/sh\nrm -f h.o b fat.o\nln -s text h.o\nln -s text b\nln -s text fat.o\nexec %s "$@"\n' "$objcopy" \
		>bin/llvm-objcopy
	chmod +x bin/llvm-objcopy
	for command in "-targets=$H,$X -input=h.o -input=b -output=out" "-unbundle -targets=$H -input=fat.o -output=out"; do
		ours -type=o $command
		mv out want
		cp -p h.o b fat.o ..
		PATH=$PWD/bin:/usr/bin:/bin "$KPACK_BIN/clang/clang-offload-bundler" -type=o $command
		[ -L fat.o ]
		cmp want out
		rm h.o b fat.o
		mv ../h.o ../b ../fat.o .
	done
}

@test "root writes into no file, and follows no link, that another user may have put there" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unbundle() { ours -type=bc -unbundle -targets=$Y -input=plain -output="$1"; }
	mkdir theirs
	echo kept >kept
	ln -s ../kept theirs/link
	ln -s ../made theirs/dangling
	ln kept theirs/hard
	mkfifo theirs/fifo
	chown -h 1234:4321 theirs theirs/link theirs/dangling theirs/fifo
	for name in link dangling; do
		run -1 --separate-stderr unbundle theirs/$name
		[[ $stderr == *"theirs/$name': "*"is a symbolic link that is not followed"* ]]
	done
	exec {reader}<>theirs/fifo
	for name in hard fifo; do
		run -1 --separate-stderr unbundle theirs/$name
		[[ $stderr == *"theirs/$name': is not written to, because another user may have put it there"* ]]
	done
	exec {reader}<&-
	[ "$(cat kept)" = kept ]
	[ ! -e made ]
	# the only name of a file is replaced, and the file stays theirs
	echo old >theirs/own
	chmod 640 theirs/own
	chown 1234:4321 theirs/own
	exec {old}<theirs/own
	unbundle theirs/own
	[ "$(stat -c %u:%g:%a theirs/own)" = 1234:4321:640 ]
	cmp theirs/own b
	[ "$(cat <&$old)" = old ]
	exec {old}<&-
	# inputs, too
	exec {writer}<>theirs/fifo
	run -1 --separate-stderr ours -type=bc -unbundle -targets=$Y -input=theirs/fifo -output=new
	[[ $stderr == *"theirs/fifo': is not read, because another user may have put it there"* ]]
	exec {writer}<&-
	ln -s ../plain theirs/input
	run -1 --separate-stderr ours -type=bc -unbundle -targets=$Y -input=theirs/input -output=new
	[[ $stderr == *"theirs/input': "*"is a symbolic link that is not followed"* ]]
	[ ! -e new ]
}

@test "called as a subcommand, it uses the subcommand's name in messages" {
	kpack offload-bundler -type=bc -list -input=plain >got
	printf '%s\n' $H- $X $Y | diff - got
	run -1 --separate-stderr kpack offload-bundler -type=bc -list
	[[ $stderr == "kpack offload-bundler: error: only one input file supported for -list" ]]
	timeout 600 "$KPACK_BIN/kpack-offload-bundler" -type=bc -list -input=plain | diff got -
	ln -s "$KPACK_BIN/kpack" clang-offload-bundler-22
	run -1 --separate-stderr ./clang-offload-bundler-22 -type=bc -list
	[[ $stderr == "clang-offload-bundler-22: error: "* ]]
}

@test "--help is clang's" {
	$theirs --help | sed 's/clang-offload-bundler-22/clang-offload-bundler/' >want
	ours --help >got
	diff want got
	$theirs --help-list | sed 's/clang-offload-bundler-22/clang-offload-bundler/' >want
	ours --help-list | diff want -
	ours --help-hidden | grep -q -e '--debug-only='
	ours --version | grep -q 'clang-offload-bundler'
}
