#!/usr/bin/env bats
# The examples in LLVM's documents of clang-offload-bundler and clang-offload-packager,
# line by line, with the inputs they name: our tools must make what LLVM's make.  If a
# line cannot work with any current bundler, its error is tested, and a working line
# follows it.

# bats file_tags=all, single

load proof.bash
load dropin.bash

setup() {
	need_clang
	cd "$BATS_TEST_TMPDIR"
	# or LLVM's would be found behind them
	[ -x "$standins/clang-offload-bundler" ]
	[ -x "$standins/clang-offload-packager" ]
	# the same llvm-objcopy for both
	PATH=$llvm:$PATH
}

# Run EXAMPLE with each; it leaves files, and in log the exit statuses.
both_say() { # EXAMPLE ARGUMENT...
	local side path=$PATH
	for side in real ours; do
		mkdir -p $side
		PATH=$([ $side = real ] && echo "$llvm" || echo "$standins"):$path
		(cd $side && "$@") >$side.log 2>$side.err || { cat $side.err; return 1; }
		PATH=$path
	done
	diff real.log ours.log
	diff -r real ours
}

# The exit status of a command, for the log.
status_of() {
	local status=0
	"$@" || status=$?
	echo "$status"
}

# What both have on their standard error has these words in ours.
says() { # WORDS
	grep -qF -- "$1" real.err
	grep -qF -- "$1" ours.err || { cat ours.err; return 1; }
}

# ---- clang-offload-packager ----

package() {
	head -c 1000 /dev/zero | tr '\0' o >input.o
	status_of clang-offload-packager -o out.bin --image=file=input.o,triple=nvptx64,arch=sm_70
	cp out.bin in.bin
	status_of clang-offload-packager in.bin --image=file=output.o,triple=nvptx64,arch=sm_70
	cmp input.o output.o
	# "if no file argument is provided a name will be generated"
	status_of clang-offload-packager in.bin --image=triple=nvptx64,arch=sm_70
}

@test "packaging an image, and the inverse operation" {
	both_say package
	[ -f ours/in-nvptx64-sm_70.0.o ]
}

help_of() { # PROGRAM OPTION...
	local option
	for option in "${@:2}"; do
		status_of "$1" "$option" >"$1.help"
		grep -q "^USAGE: $1 \[options\]" "$1.help"
		rm "$1.help"
	done
}

@test "the help, which names what the documents name" {
	both_say help_of clang-offload-bundler -help --help
	both_say help_of clang-offload-packager --help
	local option
	PATH=$standins:$PATH clang-offload-bundler -help >bundler.help
	for option in --help --help-list --version '--###' --allow-missing-bundles \
		'--bundle-align=<uint>' --check-input-archive '--inputs=<string>' --list \
		'--outputs=<string>' '--targets=<string>' '--type=<string>' --unbundle; do
		grep -q -e "^  $option  *- " bundler.help || { echo "$option"; return 1; }
	done
	for option in i ii cui d ll bc s o a gch ast; do
		grep -q "^  *$option  *- " bundler.help || { echo "$option"; return 1; }
	done
	PATH=$standins:$PATH clang-offload-packager --help >packager.help
	for option in --help --help-list --version '--image=<<key>=<value>,...>' '-o <file>'; do
		grep -q -e "^  $option  *- " packager.help || { echo "$option"; return 1; }
	done
}

# ---- clang-offload-bundler ----

text() { # TARGET,TARGET
	echo 'int one(void) { return 1; }' >a.triple1.ii
	printf 'int two(void) { return 2; }' >a.triple2.ii
	status_of clang-offload-bundler -targets="$1" -type=ii -inputs=a.triple1.ii,a.triple2.ii -outputs=a.ii
	mkdir in
	cp a.triple*.ii in
	status_of clang-offload-bundler -targets="$1" -type=ii -outputs=a.triple1.ii,a.triple2.ii -inputs=a.ii -unbundle
	cmp a.triple1.ii in/a.triple1.ii
	cmp a.triple2.ii in/a.triple2.ii
}

@test "bundling and unbundling text" {
	# "triple1" stands for a target, and is none
	both_say text triple1,triple2
	[ "$(cat ours.log)" = $'1\n1' ]
	says "error: Targets need to follow the format '<offload kind>-<target triple>'"
	rm -r real ours
	both_say text host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx1100
	[ "$(cat ours.log)" = $'0\n0' ]
	[ "$(grep -c '^// __CLANG_OFFLOAD_BUNDLE____START__ ' ours/a.ii)" -eq 2 ]
}

fat=(host-x86_64-unknown-linux-gnu openmp-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+
	openmp-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+ openmp-nvptx64-nvidia-cuda--sm_70
	openmp-nvptx64-nvidia-cuda--sm_80)

# The document's lines but for a blank behind a comma and a lost backslash; without the libraries
# for GPUs, which are not there.  Today's compiler packages where the document's bundled.
compile_fat() {
	local name beside
	beside=$(dirname "$(command -v clang-offload-packager)")
	for name in func_1 func_2; do
		printf '#pragma omp begin declare target\nint %s(void) { return 1; }\n' $name >$name.c
		echo '#pragma omp end declare target' >>$name.c
		status_of clang-22 -B "$beside" -nogpulib -nogpuinc \
  -O2 -fopenmp -fopenmp-targets=amdgcn-amd-amdhsa,amdgcn-amd-amdhsa,\
nvptx64-nvidia-cuda,nvptx64-nvidia-cuda \
  -Xopenmp-target=amdgcn-amd-amdhsa -march=gfx906:sramecc-:xnack+ \
  -Xopenmp-target=amdgcn-amd-amdhsa -march=gfx906:sramecc+:xnack+ \
  -Xopenmp-target=nvptx64-nvidia-cuda -march=sm_70 \
  -Xopenmp-target=nvptx64-nvidia-cuda -march=sm_80 \
  -c $name.c -o $name.o
	done
	llvm-ar-22 cr libFatArchive.a func_1.o func_2.o
}

@test "compiling for OpenMP" {
	both_say compile_fat
	[ "$(cat ours.log)" = $'0\n0' ]
	[ "$(llvm-readelf-22 -SW ours/func_1.o | grep -c LLVM_OFFLOADING)" -eq 1 ]
}

# func_1.o and func_2.o as the compiler of the document makes them.
fat_objects() {
	local name i
	for name in func_1 func_2; do
		echo "int $name(void) { return 1; }" >$name.c
		clang-22 -c $name.c -o $name.host
		for i in 1 2 3 4; do
			echo "$name for ${fat[i]}" >$name.$i
		done
		clang-offload-bundler -type=o -targets="$(IFS=,; echo "${fat[*]}")" \
			-inputs=$name.host,$name.1,$name.2,$name.3,$name.4 -outputs=$name.o
	done
	llvm-ar-22 cr libFatArchive.a func_1.o func_2.o
}

# Its second line begins with blanks, and so is an argument of its own.
archive_as_written() {
	fat_objects
	status_of clang-offload-bundler --unbundle --inputs=libFatArchive.a -type=a \
 -targets=openmp-amdgcn-amdhsa-gfx906:sramecc+:xnack+, \
          openmp-amdgcn-amdhsa-gfx908:sramecc-:xnack+  \
 -outputs=devicelib-gfx906.a,deviceLib-gfx908.a
}

# In one word.  These triples lack a field: LLVM's bundler refuses them now, ours knows what is meant.
archive_in_one_word() { # OPTION...
	fat_objects
	status_of clang-offload-bundler --unbundle --inputs=libFatArchive.a -type=a \
		-targets=openmp-amdgcn-amdhsa-gfx906:sramecc+:xnack+,openmp-amdgcn-amdhsa-gfx908:sramecc-:xnack+ \
		-outputs=devicelib-gfx906.a,deviceLib-gfx908.a "$@"
}

# With all fields.  There is nothing for gfx908 in this archive.
archive() { # OPTION...
	fat_objects
	status_of clang-offload-bundler --unbundle --inputs=libFatArchive.a -type=a \
		-targets=openmp-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+,openmp-amdgcn-amd-amdhsa--gfx908:sramecc-:xnack+ \
		-outputs=devicelib-gfx906.a,deviceLib-gfx908.a "$@"
}

# LLVM's leaves what it wrote before it failed.
archive_in_vain() {
	archive
	rm -f devicelib-gfx906.a
}

@test "extracting device specific archives" {
	both_say archive_as_written
	[ "$(cat ours.log)" = 1 ]
	says "Unknown command line argument 'openmp-amdgcn-amdhsa-gfx908:sramecc-:xnack+'"
	rm -r real ours
	both_say archive_in_vain
	[ "$(cat ours.log)" = 1 ]
	says "no compatible code object found for the target 'openmp-amdgcn-amd-amdhsa--gfx908:sramecc-:xnack+' in heterogeneous archive library: libFatArchive.a"
	rm -r real ours
	both_say archive -allow-missing-bundles
	[ "$(cat ours.log)" = 0 ]
	[ "$(llvm-ar-22 p ours/devicelib-gfx906.a)" = "func_1 for ${fat[2]}"$'\n'"func_2 for ${fat[2]}" ]
	[ "$(cat ours/deviceLib-gfx908.a)" = '!<arch>' ]
	mkdir short
	(cd short && PATH=$standins:$PATH && archive_in_one_word -allow-missing-bundles)
	diff -r short ours
}

@test "-check-input-archive" {
	both_say archive -allow-missing-bundles -check-input-archive
	[ "$(cat ours.log)" = 0 ]
}

# Released tools of LLVM are built without it.
@test "-debug-only=CodeObjectCompatibility" {
	mkdir ours && cd ours
	PATH=$standins:$PATH
	archive -allow-missing-bundles -debug-only=CodeObjectCompatibility >log 2>err
	[ "$(cat log)" = 0 ]
	[ "$(llvm-ar-22 t devicelib-gfx906.a | wc -l)" -eq 2 ]
	# each pair that was compared, and what came out
	grep '^Compatible' err | grep -q -F "${fat[2]}"
	grep '^Incompatible' err | grep -q -F "openmp-amdgcn-amd-amdhsa--gfx908:sramecc-:xnack+"
}

# ---- the format of compressed bundles ----

compressed() { # OPTION...
	head -c 70000 /dev/zero >device
	clang-offload-bundler -compress -type=bc -input=/dev/null -input=device -output=out \
		-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a
	clang-offload-bundler -type=bc -input=/dev/null -input=device -output=plain \
		-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx90a
}

@test "headers of compressed bundles" {
	both_say compressed
	for version in 3 2; do
		rm -rf real ours
		COMPRESSED_BUNDLE_FORMAT_VERSION=$version both_say compressed
		$python - $version <<-'END'
		import hashlib, struct, sys
		data, plain = open("ours/out", "rb").read(), open("ours/plain", "rb").read()
		version = int(sys.argv[1])
		row = struct.unpack_from({2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version], data)
		assert row[:3] == (b"CCOB", version, 1), row
		assert row[3:5] == (len(data), len(plain)), row
		assert row[5] == int.from_bytes(hashlib.md5(plain).digest()[:8], "little"), row
		END
	done
}
