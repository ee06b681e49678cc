#!/usr/bin/env bats
# A split tree: an independent checker (splitcheck.py) finds nothing lost and nothing
# twice; each part is installed over the generic one; artifacts with several prefixes;
# failures.
#
# The tests tagged single differ in the files of a tree and in options; the threads are those of the
# other tests.
# bats file_tags=long

load packing

examples=$KPACK_BIN/contrib/examples

splitcheck() { $python "$tools/splitcheck.py" "$@"; }
split() { kpack split -q "$@"; }

# refuses STATUS TEXT OPTION...: nothing is left in out
refuses() {
	local want=$1 text=$2
	shift 2
	status=0
	kpack split "$@" >split.out 2>split.err || status=$?
	[ "$status" -eq "$want" ] || { echo "exit $status:"; cat split.err; return 1; }
	grep -qF -e "$text" split.err || { echo "no '$text' in:"; cat split.err; return 1; }
	! grep -vE '^(kpack|usage|  ) ?' split.err || false
	[ ! -e out ] || [ -z "$(ls -A out)" ]
}

# An artifact with two prefixes that have device code and one that has none.
artifact() {
	mkdir -p art/math/stage/lib/deep art/comm/stage/lib art/none/stage
	mkfat --bundles 3 --arches gfx1030,gfx1100,gfx90a:xnack+ art/math/stage/lib/deep/liba.so.1
	ln -s liba.so.1 art/math/stage/lib/deep/liba.so
	mkfat --bundles 3 --seed 2 --arches gfx1100,gfx942 art/comm/stage/lib/libb.so
	echo text >"art/none/stage/a name: with
a newline"
	mkdir art/none/stage/empty
	printf 'math/stage\n\n  comm/stage\nnone/stage\n' >art/artifact_manifest.txt
}

database() { # KIND DIR
	$python "$tools/mkdb.py" --cache "$KPACK_BIN/.objects" "$1" db
	mkdir -p "$2"
	cp -a db/. "$2"
	rm -rf db
}

# What the kernels of LIBRARY return on AGENT, in a line.
launch() { # LIBRARY AGENT [WRAPPERS]
	local sanitizer # which Python is without
	sanitizer=$(ldd "$examples/libamdhip64.so.5" | awk '$1 ~ /^lib[at]san/ { print $3 }')
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$2 timeout 600 env LD_PRELOAD="$sanitizer" \
		ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" $python "$tools/launch.py" \
		--wrappers "${3-3}" --devices 1 "$PWD/$1" 2>told | sed 's/.*: //' | paste -sd ' '
}

# The MEMBER of each in a LIST of a JSON report, in a line.
names() { # FILE LIST MEMBER
	$python -c 'import json, sys
print(*[row[sys.argv[3]] for row in json.load(open(sys.argv[1]))[sys.argv[2]]])' "$@"
}

install_over() { # ROOT TREE...
	local tree
	rm -rf "$1"
	mkdir "$1"
	for tree in "${@:2}"; do
		cp -a "$tree/." "$1/"
	done
}

@test "a tree: generic, and one tree for each architecture" {
	mkdir -p in/lib
	mkfat --bundles 3 in/lib/liba.so
	echo text >in/readme
	mkdir in/empty
	split in out
	[ "$(ls out)" = "$(printf 'in_%s\n' generic gfx1030 gfx1100 gfx90a:xnack+)" ]
	splitcheck in out in
	[ ! -e out/in_generic/artifact_manifest.txt ]
	[ "$(cd out/in_gfx1030 && find . -type f)" = ./.kpack/in_gfx1030.kpack ]
	[ ! -e out/in_generic/.kpack ]
	kpack verify -q out/in_gfx*/.kpack
}

# told STATUS FAULTS COMMAND...: the command's status, and how many lines it has on left device code
told() {
	status=0
	"${@:3}" >told.out 2>told.err || status=$?
	[ "$status" -eq "$1" ] && [ "$(grep -c 'device code is left in the generic tree of a split' told.err)" = "$2" ] ||
		{ echo "exit $status of: ${*:3}"; cat told.out told.err; return 1; }
}

# bats test_tags=single
@test "a fat binary in a generic tree is a fault, in any other tree it is not" {
	mkdir -p in/lib
	mkfat in/lib/liba.so
	mkfat --seed 2 fat.so
	split in out
	# its archives are in the other trees: no fault, unless a GPU is asked for
	told 0 0 kpack mark check out
	told 0 0 kpack verify --tree out/in_generic
	told 1 0 kpack mark check --arch gfx1030 out/in_generic
	cp fat.so out/in_generic/lib/libb.so
	told 1 1 kpack mark check out
	told 1 1 kpack mark check out/in_generic
	told 1 1 kpack verify --tree out
	told 1 1 kpack verify --tree out/in_generic/
	(cd out/in_generic && told 1 1 kpack mark check .)
	grep -q '^kpack: out/in_generic/lib/libb.so: ' <(kpack verify --tree out 2>&1)
	kpack mark check --json out/in_generic >got.json || true
	[ "$(names got.json faults file)" = out/in_generic/lib/libb.so ]
	# alone, with what was converted or a manifest
	mkdir alone
	cp -r out/in_generic alone/
	told 1 1 kpack mark check alone
	told 1 1 kpack verify --tree alone/in_generic
	rm alone/in_generic/lib/liba.so
	told 0 0 kpack mark check alone
	told 0 0 kpack verify --tree alone/in_generic
	echo lib >alone/in_generic/artifact_manifest.txt
	told 1 1 kpack mark check alone
	told 1 1 kpack verify --tree alone
	# trees that are no generic ones
	install_over root out/in_generic out/in_gfx*
	told 0 0 kpack mark check root
	told 0 0 kpack verify --tree root
	told 0 0 kpack mark check in
	told 0 0 kpack verify --tree in
	kpack thin -q --arch gfx1030 in thin
	told 0 0 kpack mark check thin
	told 0 0 kpack verify --tree thin
}

# bats test_tags=single
@test "the check finds files that are lost, twice, too many or other" {
	mkdir -p in/lib
	mkfat in/lib/liba.so
	echo text >in/readme
	split in out
	splitcheck in out in
	cp out/in_generic/readme out/in_gfx1030/
	! splitcheck in out in || false
	rm out/in_gfx1030/readme
	echo more >out/in_generic/more
	! splitcheck in out in || false
	rm out/in_generic/more
	mv out/in_gfx1030/.kpack/in_gfx1030.kpack kept
	! splitcheck in out in || false
	cp kept out/in_gfx1030/.kpack/in_gfx1030.kpack
	cp kept out/in_gfx1030/.kpack/other.kpack
	! splitcheck in out in || false
}

@test "an artifact: one archive for each architecture, in the first prefix that has code for it" {
	artifact
	# packed files of databases keep their paths: these are in one root, too
	database rocblas-arch art/none/stage
	split --databases packed --name blas_lib art out
	rm -r out/blas_lib_*/none art/none # not in the other's sight
	splitcheck art out blas_lib
	[ "$(cd out && find . -name '*.kpack' -type f | sort)" = "$(sort <<-'END'
	./blas_lib_gfx1030/math/stage/.kpack/blas_lib_gfx1030.kpack
	./blas_lib_gfx1100/comm/stage/.kpack/blas_lib_gfx1100.kpack
	./blas_lib_gfx90a:xnack+/math/stage/.kpack/blas_lib_gfx90a:xnack+.kpack
	./blas_lib_gfx942/comm/stage/.kpack/blas_lib_gfx942.kpack
	END
	)" ]
	[ "$(cat out/blas_lib_gfx1100/artifact_manifest.txt)" = $'comm/stage\nmath/stage' ]
	kpack mark show out/blas_lib_generic/math/stage/lib/deep/liba.so.1 >marker
	grep -qF 'math/stage/lib/deep/liba.so.1' marker
	grep -qF ' ../../.kpack/blas_lib_@GFXARCH@.kpack' marker
	install_over flat out/blas_lib_*/{math,comm}/stage
	[ "$(launch flat/lib/deep/liba.so gfx1100)" = "0 0 0" ]
	[ "$(launch flat/lib/deep/liba.so gfx90a:xnack+)" = "0 0 0" ]
	[ "$(launch flat/lib/libb.so gfx942)" = "0 0 0" ]
	# its archive exists, without code of this library
	[ "$(launch flat/lib/libb.so gfx1030)" != "0 0 0" ]
	told 0 0 kpack mark check flat
	# not flattened yet: what another prefix has will be found
	install_over root out/blas_lib_gfx* out/blas_lib_generic # with the manifest of all
	told 0 0 kpack mark check root
	told 0 0 kpack mark check --arch gfx1100 root
	mv root/comm/stage/.kpack/blas_lib_gfx1100.kpack away
	told 1 0 kpack mark check --arch gfx1100 root
	printf 'math/stage\ncomm/stage\n' >root/artifact_manifest.txt
	mv away root/comm/stage/.kpack/blas_lib_gfx1100.kpack
	kpack mark set --kernel-name lib/deep/liba.so.1 root/math/stage/lib/deep/liba.so.1
	told 1 0 kpack mark check --arch gfx1100 root # by its name it is of no artifact
}

# bats test_tags=single
@test "an artifact whose prefixes pack the same file" {
	artifact
	mkdir files
	database rocblas-arch files # for some GPUs
	database rocfft files       # for all GPUs
	cp -a files/. art/math/stage
	cp -a files/. art/comm/stage
	split --databases packed art out
	[ "$(find out -name '*_generic.kpack')" = out/art_generic/comm/stage/.kpack/art_generic.kpack ]
	kpack ls out/art_gfx942/comm/stage/.kpack/art_gfx942.kpack >list
	grep -q 'comm/stage/lib/libb.so#0' list
	grep -q '^lib/rocblas/library/gfx942/TensileManifest.txt' list
	rm -r out
	find art/comm/stage/lib/rocblas -name '*.co' -exec sh -c 'echo more >>"$1"' sh {} \;
	refuses 1 "cannot join the archives of all prefixes" --databases packed art out
}

# bats test_tags=single
@test "--keys prefix: each prefix loads from its own, and all flattened into one root" {
	artifact
	refuses 2 "not artifact or prefix" --keys both art out
	split --keys prefix --prefix-manifest --name blas_lib art out
	splitcheck --keys prefix art out blas_lib
	[ "$(ls out)" = "$(printf 'blas_lib_%s\n' generic gfx1030 gfx1100 gfx90a:xnack+ gfx942)" ]
	cmp art/artifact_manifest.txt out/blas_lib_generic/artifact_manifest.txt
	[ "$(cat out/blas_lib_gfx1100/artifact_manifest.txt)" = $'comm/stage\nmath/stage' ]
	[ "$(cat out/blas_lib_gfx942/artifact_manifest.txt)" = comm/stage ]
	[ -f out/blas_lib_gfx1100/comm/stage/.kpack/blas_lib_gfx1100.kpack ]
	[ -f out/blas_lib_gfx1100/math/stage/.kpack/blas_lib.math.stage_gfx1100.kpack ]
	install_over root out/blas_lib_generic out/blas_lib_gfx1100
	[ "$(launch root/math/stage/lib/deep/liba.so gfx1100)" = "0 0 0" ]
	[ "$(launch root/comm/stage/lib/libb.so gfx1100)" = "0 0 0" ]
	[ "$(launch root/math/stage/lib/deep/liba.so gfx1030)" = "209 209 209" ]
	install_over flat out/blas_lib_*/{math,comm,none}/stage
	[ "$(ls flat/.kpack | wc -l)" = 5 ]
	[ "$(launch flat/lib/deep/liba.so gfx1030)" = "0 0 0" ]
	[ "$(launch flat/lib/deep/liba.so gfx90a:xnack+)" = "0 0 0" ]
	[ "$(launch flat/lib/libb.so gfx942)" = "0 0 0" ]
	[ "$(launch flat/lib/libb.so gfx1030)" = "209 209 209" ]
	kpack mark check flat
}

# bats test_tags=single
@test "groups of prefixes never look like volumes, nor like each other" {
	for p in a/2 a.2 b z; do
		mkdir -p "art/$p"
		mkfat --bundles 1 --arches gfx1030 --seed "$p" "art/$p/lib$p.so" 2>/dev/null ||
			mkfat --bundles 1 --arches gfx1030 --seed "$p" "art/$p/lib.so"
		echo "$p" >>art/artifact_manifest.txt
	done
	split --keys prefix art out
	splitcheck --keys prefix art out art
	[ "$(cd out/art_gfx1030 && find . -name '*.kpack' -type f | sort)" = "$(sort <<-'END'
	./a.2/.kpack/art_gfx1030.kpack
	./a/2/.kpack/art.a.2x_gfx1030.kpack
	./b/.kpack/art.b_gfx1030.kpack
	./z/.kpack/art.z_gfx1030.kpack
	END
	)" ]
}

# bats test_tags=single
@test "what is outside of all prefixes is carried" {
	artifact
	mkdir -p art/share/empty
	echo doc >art/share/doc
	ln art/share/doc art/share/again
	ln -s ../nowhere art/share/link
	mkfat art/outside.so
	split art out
	cmp art/outside.so out/art_generic/outside.so
	[ out/art_generic/share/doc -ef out/art_generic/share/again ]
	rm art/outside.so out/art_generic/outside.so
	splitcheck art out art
}

# bats test_tags=single
@test "databases: files of an architecture leave, directories that are empty then too" {
	database rocblas-arch in
	database aotriton in
	database miopen in
	mkfat in/lib/liba.so
	split in out
	splitcheck in out in
	[ -d out/in_gfx942/lib/rocblas/library/gfx942 ]
	[ ! -e out/in_generic/lib/rocblas/library/gfx942 ]
	[ -e out/in_gfx11/lib/aotriton.images/amd-gfx11xx ]
	[ -e out/in_gfx12_0/lib/aotriton.images/amd-gfx120x ]
	[ -e out/in_gfx110x/lib/aotriton.images/amd-gfx110x ]
	# a library of one architecture is a file of a database, not a binary to convert
	cmp {in,out/in_gfx942}/lib/libMIOpenCKGroupedConv_gfx942.so
	# files go to the base, code keeps its features
	[ -n "$(find out/in_gfx90a -name '*gfx90a-xnack+*')" ]
	[ -z "$(find 'out/in_gfx90a:xnack+' -type f ! -name '*.kpack')" ]
	split --libraries none in none
	[ "$(ls none)" = "$(printf 'in_%s\n' generic gfx1030 gfx1100 gfx90a:xnack+)" ]
	split --databases packed in packed
	[ -z "$(find packed/in_gfx942 -type f ! -name '*.kpack')" ]
	kpack extract packed/in_*/.kpack -C all >/dev/null
	(cd in && find . -path '*rocblas/library/*' -type f) >files
	[ -s files ]
	while read -r file; do
		cmp "in/$file" "all/$file"
	done <files
}

# bats test_tags=single
@test "--gpu-targets: only these, the rest is reported, and generic is the same" {
	database rocblas-arch in
	mkdir -p in/bin
	mkfat --arches gfx1030,gfx1100,gfx90a:xnack+,gfx942 in/bin/a
	mkfat --arches gfx1030 --seed 2 in/bin/b
	split in all
	kpack split --gpu-targets gfx942,gfx90a:xnack- in out >said
	splitcheck --only gfx942,gfx90a in out in
	diff -r all/in_generic out/in_generic
	diff -r all/in_gfx942 out/in_gfx942
	[ "$(ls out)" = "$(printf 'in_%s\n' generic gfx90a gfx90a:xnack+ gfx942)" ]
	grep -E '^dropped gfx1030: 6 code objects, 0 files, [0-9]+ bytes$' said
	grep -E '^dropped gfx1151: 0 code objects, [1-9][0-9]* files, [0-9]+ bytes$' said
	kpack split --json --gpu-targets gfx942 --gpu-targets gfx1030 in two >json
	[ "$(names json dropped arch)" = "gfx1100 gfx1151 gfx90a gfx90a:xnack+ gfx90a:xnack-" ]
	[ "$(names json trees name)" = "in_gfx1030 in_gfx942 in_generic" ]
	rm -r out
	refuses 1 "no device code objects matched --gpu-targets gfx906" --gpu-targets gfx906 in out
	refuses 2 "--gpu-targets gfx9:0,:" --gpu-targets gfx9:0,: in out
}

# bats test_tags=single
@test "databases that stay files go by their names, whatever is in them" {
	mkdir -p in/share/miopen/db in/lib/rocfft
	echo short >in/share/miopen/db/gfx942e4.kdb
	: >in/share/miopen/db/gfx90a.kdb
	echo short >in/share/miopen/db/gfx90878.db
	echo short >in/lib/rocfft/rocfft_kernel_cache.db
	echo short >in/lib/rocfft/rocfft_kernel_cache_gfx942.db
	split in out
	(cd out && find . -type f | LC_ALL=C sort) >got
	diff got - <<-END
		./in_generic/lib/rocfft/rocfft_kernel_cache.db
		./in_gfx908/share/miopen/db/gfx90878.db
		./in_gfx90a/share/miopen/db/gfx90a.kdb
		./in_gfx942/lib/rocfft/rocfft_kernel_cache_gfx942.db
		./in_gfx942/share/miopen/db/gfx942e4.kdb
	END
	rm -r out
	refuses 1 "gfx942e4.kdb: kernel database: 6 bytes" --databases packed in out
}

# bats test_tags=single
@test "families share a tree and an archive" {
	database rocblas-arch in
	mkfat --arches gfx942,gfx90a:xnack+,gfx1100 in/lib/liba.so
	split --family cdna=gfx942,gfx90a:xnack+,gfx90a in out
	[ "$(ls out)" = "$(printf 'in_%s\n' cdna generic gfx1100 gfx1151)" ]
	[ "$(ls out/in_cdna/.kpack)" = in-cdna.kpack ]
	[ -d out/in_cdna/lib/rocblas/library/gfx942 ]
	[ -d out/in_cdna/lib/rocblas/library/gfx90a ]
	install_over root out/in_generic out/in_cdna
	[ "$(launch root/lib/liba.so gfx942)" = "0 0 0" ]
	[ "$(launch root/lib/liba.so gfx1100)" = "209 209 209" ]
	rm -r out
	kpack split --family cdna=gfx90a:xnack+ --family none=gfx906,gfx908 in out >said 2>err
	grep -qx "kpack: in: warning: nothing for the family none" err
	! grep -q "the family cdna" err || false
	rm -r out
	refuses 2 "the name of a GPU" --family gfx1100=gfx942 in out
	refuses 2 "the generic tree" --family generic=gfx942 in out
	refuses 2 "not NAME=ARCH" --family cdna in out
	refuses 2 "in a family already" --family a=gfx942 --family b=gfx942 in out
}

# bats test_tags=single
@test "links, modes, times and odd names are kept; no link joins two parts" {
	database rocblas-arch in
	database miopen in
	db=share/miopen/db
	for name in gfx906_2 gfx908_1 gfx908_2; do
		ln in/$db/gfx906_64.db.txt in/$db/$name.db.txt
	done
	mkfat "in/lib/lib a:b.so"
	ln "in/lib/lib a:b.so" in/other.so
	ln -s "lib/lib a:b.so" in/link
	ln -s nowhere in/dangling
	mkdir in/closed
	echo text >$'in/closed/new\nline'
	mkfifo in/fifo
	touch -d @1000000000 in/lib in/closed
	chmod 0555 in/closed in/lib in/lib/rocblas
	chmod 2750 "in/lib/lib a:b.so"
	split in out
	splitcheck in out in
	[ "out/in_generic/lib/lib a:b.so" -ef out/in_generic/other.so ]
	[ -p out/in_generic/fifo ]
	[ "$(stat -c %Y out/in_generic/lib out/in_generic/closed | paste -sd ' ')" = "1000000000 1000000000" ]
	[ out/in_gfx906/$db/gfx906_64.db.txt -ef out/in_gfx906/$db/gfx906_2.db.txt ]
	[ out/in_gfx908/$db/gfx908_1.db.txt -ef out/in_gfx908/$db/gfx908_2.db.txt ]
	[ ! out/in_gfx906/$db/gfx906_2.db.txt -ef out/in_gfx908/$db/gfx908_1.db.txt ]
	[ "$(stat -c %a out/in_gfx942/lib)" = 555 ]
}

# bats test_tags=single
@test "an ordinary user splits a tree that is only readable" {
	as_root
	database rocblas-arch in
	mkfat in/lib/liba.so
	find in -type d -exec chmod 0555 {} +
	mkdir own
	chown 65534 own
	as_nobody "$KPACK_BIN/kpack" split -q in own/out
	splitcheck in own/out in
	[ "$(ls -A own/out | grep -c ^in_)" = "$(ls -A own/out | wc -l)" ]
	as_nobody "$KPACK_BIN/kpack" split -q --force in own/out
	splitcheck in own/out in
	[ -z "$(ls -A own/out | grep -v ^in_)" ]
}

# bats test_tags=single
@test "existing trees: an error before anything is written, or replaced" {
	mkdir in
	mkfat in/liba.so
	mkdir -p out/in_generic
	touch out/in_generic/mine
	status=0
	kpack split in out 2>err || status=$?
	[ "$status" = 1 ]
	grep -qF "out/in_generic: already exists" err
	[ "$(find out | sort | paste -sd ' ')" = "out out/in_generic out/in_generic/mine" ]
	split --force in out
	splitcheck in out in
	cp -a out before
	rm in/liba.so
	mkfat --seed 9 in/liba.so
	split --force in out
	splitcheck in out in
	! diff -rq before out >/dev/null || false
	mkdir out/in_gfx906 out/in_other_gfx906 out/in_rdna
	kpack split --force in out >said 2>err
	[ "$(cat err)" = "kpack: out/in_gfx906: note: is not from this run; it stays
kpack: out/in_rdna: note: is not from this run; it stays" ]
	rm -r out
	mkdir out
	touch out/in_gfx1030
	status=0
	kpack split --force in out 2>err || status=$?
	[ "$status" = 1 ]
	grep -qF "is not a directory" err
	[ "$(ls -A out)" = in_gfx1030 ]
}

@test "the same run again does its work again, as builds do" {
	# refused TEXT [OPTION...]: and everything is as it was
	refused() {
		rm -rf was
		cp -a out was
		status=0
		kpack split "${@:2}" --artifact-dir art --output-dir out --artifact-prefix art 2>err || status=$?
		[ "$status" = 1 ]
		grep -qF -e "$1" err || { echo "no '$1' in:"; cat err; return 1; }
		diff -r --no-dereference was out
	}
	again() { kpack split -q --artifact-dir art --output-dir out --artifact-prefix art "$@" 2>err || { cat err; return 1; }; }
	artifact
	database rocblas-arch art/math/stage
	again
	cp -a out first
	again
	[ ! -s err ]
	diff -r --no-dereference first out
	[ "$(ls -A out)" = "$(ls first)" ]
	# for fewer GPUs, and for all again: trees of other GPUs stay, and are named, with -q too
	again --gpu-targets gfx1100
	grep -qx "kpack: out/art_gfx942: note: is not from this run; it stays" err
	splitcheck art out art
	again
	diff -r --no-dereference first out
	# new bytes, a new file, a library that gets device code
	mkfat --bundles 3 --seed 7 --arches gfx1100,gfx942 art/comm/stage/lib/libb.so
	echo new >art/comm/stage/lib/new
	cp /bin/true art/comm/stage/lib/later
	again
	mkfat --arches gfx1100 art/comm/stage/lib/later
	refused "out/art_generic: already exists, and comm/stage/lib/later in it is not from this input"
	again --force
	splitcheck art out art
	# a file that is in no input any more is not lost, and not kept in silence
	rm art/comm/stage/lib/new
	refused "out/art_generic: already exists, and comm/stage/lib/new in it is not from this input"
	rm out/art_generic/comm/stage/lib/new
	again
	# an architecture that is in no input any more: its tree stays, and is named
	mkfat --bundles 3 --seed 2 --arches gfx1100 art/comm/stage/lib/libb.so
	[ -e out/art_gfx942/comm/stage/.kpack/art_gfx942.kpack ]
	again
	[ ! -e out/art_gfx942/comm ]
	splitcheck art out art
	rm -r art/math/stage/lib/rocblas
	again
	grep -qx "kpack: out/art_gfx942: note: is not from this run; it stays" err
	rm -r out/art_gfx942
	# what others put there, in place of a file of ours too
	while IFS='|' read -r text change; do
		rm -rf out
		again
		eval "$change"
		refused "$text in it is not from this input: --force replaces the tree"
	done <<-'END'
	art_gfx1100: already exists, and mine|touch out/art_gfx1100/mine
	art_generic: already exists, and math/mine/a|mkdir out/art_generic/math/mine{,r}; ln -s /x out/art_generic/math/mine/a; touch out/art_generic/math/miner/b
	art_gfx1030: already exists, and math/stage/.kpack/other_gfx1030.kpack|cp out/art_gfx1030/math/stage/.kpack/{art,other}_gfx1030.kpack
	art_gfx1030: already exists, and math/stage/.kpack/art_gfx.kpack|touch out/art_gfx1030/math/stage/.kpack/art_gfx.kpack
	art_generic: already exists, and math/stage/lib/deep/liba.so|ln -f out/art_generic/artifact_manifest.txt out/art_generic/math/stage/lib/deep/liba.so
	art_generic: already exists, and math/stage/lib/deep/liba.so.1|cp art/math/stage/lib/deep/liba.so.1 out/art_generic/math/stage/lib/deep
	art_gfx1030: already exists, and math/stage/.kpack/art_gfx1030.kpack|echo >out/art_gfx1030/math/stage/.kpack/art_gfx1030.kpack
	art_generic: already exists, and none/stage/empty|rmdir out/art_generic/none/stage/empty; ln -s x out/art_generic/none/stage/empty
	END
	again --force
	splitcheck art out art
	# archives
	find out -name '*.kpack' -type f -exec cp {} . \;
	kpack split -q art_gfx1100.kpack archives
	cp -a archives before
	kpack split -q art_gfx1100.kpack archives
	diff -r before archives
	cp art_gfx1030.kpack archives/art_gfx1100.kpack
	! kpack split -q art_gfx1100.kpack archives 2>err || false
	grep -qF "art_gfx1100.kpack: already exists, and is not from these archives (--force replaces it)" err
	cmp art_gfx1030.kpack archives/art_gfx1100.kpack
	echo junk >archives/art_gfx1100.kpack
	status=0
	kpack split -q art_gfx1100.kpack archives 2>err || status=$?
	[ "$status" = 1 ]
	grep -qF "already exists" err
}

@test "killed at any moment: nothing under the names, and the next run cleans up" {
	mkdir in
	mkfat --size 2000000 --bundles 6 in/liba.so
	empty_out() { rm -rf out; }
	for signal in KILL TERM; do
		for after in 20 100 300; do
			kill_run $signal $after empty_out "$KPACK_BIN/kpack" split -q --level 19 in out
			[ -z "$(ls out 2>/dev/null)" ]
		done
	done
	mkdir -p out/.kpack-staging-abcdef/in_generic
	chmod 0555 out/.kpack-staging-abcdef/in_generic
	split --level 1 in out
	[ -z "$(ls -A out | grep -v ^in_)" ]
	splitcheck in out in
}

@test "one run leaves the other's work alone" {
	mkdir in
	mkfat in/liba.so
	mkdir -p out/.kpack-staging-busyyy
	exec {lock}<out/.kpack-staging-busyyy
	flock $lock
	split in out
	[ -d out/.kpack-staging-busyyy ]
	exec {lock}<&-
	split --force in out
	[ ! -e out/.kpack-staging-busyyy ]
}

# bats test_tags=single
@test "a full disk: exit 1, clear words, nothing left" {
	as_root
	mkdir in small
	mkfat --size 300000 in/liba.so
	for kib in 64 200 400 800; do
		mount -t tmpfs -o size=${kib}k none small
		status=0
		kpack split in small/out >said 2>err || status=$?
		[ "$status" = 1 ]
		grep -q "No space left on device" err
		[ -z "$(ls -A small/out 2>/dev/null)" ]
		umount small
	done
}

# meanwhile COMMAND: split in, while that happens when the trees stand, without their names
meanwhile() {
	local preload
	preload=$(ldd "$KPACK_BIN/kpack" | awk '$1 ~ /^lib[at]san/ { print $3 }' | tr '\n' ' ')
	rm -rf out
	status=0
	MOMENT_PATH=/.kpack-staging- MOMENT_DO="cd out/.kpack-staging-* && $1" \
		LD_PRELOAD="$preload$KPACK_BIN/tests/stub/moment.so" kpack split -q in out \
		2>err || status=$?
}

# bats test_tags=single
@test "trees that are not the input, together, never get their names" {
	mkdir -p in/sub/empty
	mkfat --arches gfx1030,gfx1100 in/liba.so
	cp in/liba.so in/libb.so
	echo text >in/sub/a
	ln -s sub/a in/link
	meanwhile true
	[ $status = 0 ]
	while IFS='|' read -r text change; do
		meanwhile "$change"
		[ $status = 1 ] || { echo "exit $status after: $change"; return 1; }
		grep -qF -e "$text" err || { echo "no '$text' in:"; cat err; return 1; }
		[ -z "$(ls -A out)" ]
	done <<-'END'
	in_generic/sub/a: is missing|rm in_generic/sub/a
	in_generic/sub/empty: is missing|rmdir in_generic/sub/empty
	in_generic/link: links to another target|ln -sf liba.so in_generic/link
	in_generic/sub/a: differs from|echo tex1 >in_generic/sub/a
	in_generic/sub/a: has another file type|rm in_generic/sub/a; mkfifo in_generic/sub/a
	in_gfx1030/more: does not come from the input|touch in_gfx1030/more
	in_gfx1030/sub: does not come from the input|mkdir in_gfx1030/sub
	in_generic/libb.so: is not converted|cp ../../in/libb.so in_generic/libb.so
	in_generic/liba.so: its marker names libb.so|cp in_generic/libb.so in_generic/liba.so
	in_gfx1100/.kpack/in_gfx1100.kpack|cp in_gfx1030/.kpack/* in_gfx1100/.kpack/in_gfx1100.kpack
	in_gfx1100/.kpack: is missing|rm -r in_gfx1100/.kpack
	END
}

# bats test_tags=single
@test "killed while trees get their names: the next run needs no --force" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	mkdir in
	mkfat --arches gfx1030,gfx1100 in/liba.so
	# killed N [OPTION]...: at the N-th renaming
	killed() {
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null \
			-e trace=renameat2 -e inject=renameat2:signal=KILL:when=$1 \
			"$KPACK_BIN/kpack" split -q "${@:2}" in out || status=$?
		[ $status = 137 ]
	}
	for n in 1 2 3; do
		killed $n
		split in out
		splitcheck in out in
		[ -z "$(ls -A out | grep -v ^in_)" ]
		rm -rf out
	done
	# what was to be replaced is there again
	split in out
	cp -a out before
	mkfat --seed 7 --arches gfx1030,gfx1100 in/liba.so
	for n in 1 2 3; do
		killed $n --force
		! split --gpu-targets gfx803 in out 2>err || false
		diff -r before out
		killed $n
		split in out
		splitcheck in out in
		rm -r out
		cp -a before out
	done
	# names that somebody gave to other trees meanwhile are theirs
	rm -rf out
	killed 2
	[ "$(ls out)" = in_gfx1030 ]
	mv out/in_gfx1030 mine
	mkdir out/in_gfx1030
	touch out/in_gfx1030/theirs
	! split in out 2>err || false
	[ -e out/in_gfx1030/theirs ]
}

# bats test_tags=single
@test "archives that the tree has already go where their code does" {
	mkdir -p in/lib in/.kpack
	mkfat --bundles 2 --arches gfx1030,gfx1100,gfx1101,gfx90a:xnack+ in/lib/liba.so
	kpack pack -q --group old --family rdna=gfx1100,gfx1101 in packed
	rm -r in
	mkfat --bundles 2 --seed 4 --arches gfx1030,gfx1100 packed/lib/libb.so
	mkdir packed/lib/.kpack
	echo nothing >packed/lib/.kpack/not.kpack
	kpack split -q packed out 2>err
	grep -qF "packed/lib/.kpack/not.kpack: warning: " err
	splitcheck packed out packed
	[ "$(cd out && find . -name '*.kpack' -type f | sort)" = "$(sort <<-'END'
	./packed_generic/lib/.kpack/not.kpack
	./packed_gfx1030/.kpack/old_gfx1030.kpack
	./packed_gfx1030/.kpack/packed_gfx1030.kpack
	./packed_gfx1100/.kpack/packed_gfx1100.kpack
	./packed_gfx90a:xnack+/.kpack/old_gfx90a:xnack+.kpack
	./packed_rdna/.kpack/old-rdna.kpack
	END
	)" ]
	install_over root out/packed_generic out/packed_rdna
	[ "$(launch root/lib/liba.so gfx1101 2)" = "0 0" ]

	rm -r packed/lib/.kpack out
	kpack split --gpu-targets gfx1030 packed out >said 2>err
	splitcheck --only gfx1030 packed out packed
	[ "$(cd out && find . -name '*.kpack' -type f | wc -l)" = 2 ]
	[ ! -e out/packed_generic/.kpack ]
	grep -q '^dropped rdna: 0 code objects, 1 files, ' said
	grep -q '^dropped gfx90a:xnack+: 0 code objects, 1 files, ' said
	rm -r out
	kpack split --gpu-targets gfx1101 packed out >said 2>err
	grep -qF "old-rdna.kpack: note: also has code for other targets" err
	[ "$(ls out | paste -sd ' ')" = "packed_generic packed_rdna" ]
	rm -r out
	refuses 1 "give another --name" --name old packed out
	rm packed/lib/libb.so
	refuses 1 "no device code objects matched" --gpu-targets gfx906 packed out
}

# bats test_tags=single
@test "--archive-dir: archives and directories for them" {
	local dir=usr/lib/x86_64-linux-gnu/rocm-kpack
	mkdir -p in/usr/lib/x86_64-linux-gnu
	mkfat --bundles 3 in/usr/lib/x86_64-linux-gnu/liba.so
	database rocblas-arch in/usr
	split --archive-dir $dir/ in out
	[ "$(cd out && find . -name '*.kpack' | sort)" = "$(printf "./in_%s/$dir/in_%s.kpack\n" \
		gfx1030 gfx1030 gfx1100 gfx1100 gfx90a:xnack+ gfx90a:xnack+)" ]
	[ ! -e out/in_generic/$dir ]
	# but for the place of the archives, and the markers that lead there, all is the same
	split in plain
	for tree in gfx1030 gfx1100 gfx90a:xnack+; do
		[ ! -e out/in_$tree/.kpack ]
		mv plain/in_$tree/.kpack/in_$tree.kpack moved
		cmp moved out/in_$tree/$dir/in_$tree.kpack
		rm -r plain/in_$tree/.kpack out/in_$tree/$dir
		(cd plain/in_$tree && find . -type f -exec sha256sum {} + | sort) >want
		(cd out/in_$tree && find . -type f -exec sha256sum {} + | sort) | diff want -
		rm -r plain/in_$tree out/in_$tree
	done
	diff -r --exclude liba.so plain out
	kpack mark show out/in_generic/usr/lib/x86_64-linux-gnu/liba.so | grep -qF " ../../../$dir/in_@GFXARCH@.kpack"
	# what is there already: archives go where their code does, and the directory with them
	rm -r in/usr/lib/rocblas
	kpack pack -q --group old --archive-dir $dir in packed
	mkfat --bundles 2 --seed 4 --arches gfx1100 packed/usr/libb.so
	rm -r out
	split --name p --archive-dir $dir packed out
	[ "$(cd out && find . -name '*.kpack' | sort)" = "$(printf "./p_%s/$dir/%s.kpack\n" \
		gfx1030 old_gfx1030 gfx1100 old_gfx1100 gfx1100 p_gfx1100 gfx90a:xnack+ old_gfx90a:xnack+)" ]
	[ ! -e out/p_generic/$dir ]
	install_over root out/p_generic out/p_gfx1100
	[ "$(launch root/usr/lib/x86_64-linux-gnu/liba.so gfx1100)" = "0 0 0" ]
	[ "$(launch root/usr/libb.so gfx1100 2)" = "0 0" ]
	rm -r out
	refuses 1 "give another --name" --name old --archive-dir $dir packed out
	for wrong in /usr ../x ''; do
		refuses 2 "--archive-dir $wrong: not a path relative" --archive-dir "$wrong" in out
	done
	# the prefixes of an artifact
	artifact
	split --archive-dir share/k --name a art out
	[ "$(cd out && find . -name '*.kpack' | sort | head -n 2 | paste -sd ' ')" = \
		"./a_gfx1030/math/stage/share/k/a_gfx1030.kpack ./a_gfx1100/comm/stage/share/k/a_gfx1100.kpack" ]
	install_over flat out/a_*/{math,comm}/stage
	[ "$(launch flat/lib/deep/liba.so gfx1100)" = "0 0 0" ]
}

# bats test_tags=single
@test "the options of other splitters: names, several words, a batch" {
	artifact
	database rocblas-arch art/math/stage
	kpack split --artifact-dir art --output-dir out --artifact-prefix blas_lib \
		--split-databases rocblas aotriton --gpu-targets gfx1100 gfx942 \
		--tmp-dir /nonexistent --clang-offload-bundler /bin/false --verbose >said 2>err
	splitcheck --only gfx1100,gfx942 art out blas_lib
	grep -qF -- "--tmp-dir is ignored" err
	mkdir -p shards/other
	cp -a art shards/blas_lib_gfx110X-all
	cp -a art shards/fft_lib_gfx12_0
	cp -a art shards/old_generic
	split --batch-artifact-parent-dir shards --output-dir batch
	[ "$(ls batch | sed 's/_lib_.*/_lib/' | sort -u | paste -sd ' ')" = "blas_lib fft_lib" ]
	splitcheck art batch fft_lib
}

# bats test_tags=slow
@test "real libraries: any one tree over generic serves its architecture, the rest is absent" {
	real=$("$KPACK_SRC/contrib/install-deps" --inputs "$KPACK_SRC/build/inputs" --big 2>fetch.err) || {
		cat fetch.err
		[ "${CI-}" != true ] || return 1
		skip "Debian's packages cannot be fetched"
	}
	mkdir -p in/lib
	find "$real" -type f -name 'libroc*.so.*' -exec cp {} in/lib/ \;
	split --name rocm in out
	[ "$(ls out | wc -l)" -ge 8 ]
	splitcheck in out rocm
	for tree in out/rocm_gfx*; do
		arch=${tree##*_}
		install_over root out/rocm_generic "$tree"
		kpack mark check --arch "$arch" root
		for other in out/rocm_gfx*; do
			[ "$other" != "$tree" ] || continue
			! kpack mark check --arch "${other##*_}" root 2>told || false
			grep -qF "${other##*_}" told
		done
	done
}
