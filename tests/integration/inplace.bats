#!/usr/bin/env bats
# kpack pack --in-place TREE: repeated, with more files in it, and killed at any moment.
#
# The tests tagged single make runs with the threads of the other tests, many times.

load packing.bash

inplace() { kpack pack -q --in-place "$@"; }

# Directories get new times when what is in them is replaced.
same() { # OLD NEW
	treecheck same "$1" "$2" $(cd "$1" && find . -type d -printf '%P\n') .
}

make_tree() { # DIR
	mkdir -p "$1/lib/deep" "$1/bin"
	mkfat --seed 1 "$1/lib/a.so"
	ln "$1/lib/a.so" "$1/lib/deep/a2.so"
	ln "$1/lib/a.so" "$1/top.so"
	mkfat --seed 2 --ragged "$1/bin/b"
	mkfat --seed 3 --arches gfx942 "$1/lib/c.so"
	echo text >"$1/lib/text"
	ln "$1/lib/text" "$1/text"
	ln -s a.so "$1/lib/a.so.1"
	chmod 0751 "$1/lib/a.so"
	touch -d '2020-01-02 03:04:05.678901234' "$1/lib/a.so" "$1/bin/b"
	setfattr -n user.note -v kept "$1/lib/a.so"
}

@test "again: nothing changes" {
	make_tree in
	inplace in
	cp -a in before
	run kpack pack --in-place in
	[ "$status" -eq 0 ]
	[[ "$output" == *"in/bin/b: note: is converted already"* ]]
	[[ "$output" == *"8 files, 0 converted, 0 -> 0 bytes"* ]]
	treecheck same before in
	diff -r --no-dereference before in
	kpack pack --in-place --json in 2>/dev/null >report.json
	py <<-'END'
	import json
	r = json.load(open("report.json"))
	assert {f["path"]: f["status"] for f in r["files"]} == {
	    "bin/b": "already converted", "lib/a.so": "already converted", "lib/a.so.1": "symlink",
	    "lib/c.so": "already converted",
	    "lib/deep/a2.so": "linked", "lib/text": "unchanged",
	    "text": "linked", "top.so": "linked"}, r["files"]
	assert r["archives"] == [] and r["arches"] == [], r
	END
}

@test "a library is added, another is replaced: every key a marker names stays" {
	make_tree in
	cp -a in all
	inplace in
	mkfat --seed 4 in/lib/new.so
	mkfat --seed 5 --bundles 2 fresh
	cp fresh in/bin/b.tmp
	mv in/bin/b.tmp in/bin/b
	cp -a in/lib/new.so all/lib/new.so
	cp -a fresh all/bin/b
	inplace in
	treecheck code all in
	[ "$(treecheck list in | grep -c '^converted')" = 6 ]
	kpack verify -q in/.kpack
	# the tree may have moved in between: the group is its name then
	mv in moved
	mkfat --seed 6 moved/lib/more.so
	cp -a moved/lib/more.so all/lib/more.so
	inplace moved
	treecheck code all moved
	[ -e moved/.kpack/moved_gfx1030.kpack ]
}

@test "what would lose code is refused" {
	make_tree in
	cp -a in before
	fails "no code object of the targets asked for" --in-place --arch gfx1201 in
	usage "--force" --in-place --force in
	usage "one TREE" --in-place in out
	usage "one TREE" --in-place
	usage "one TREE" --in-place --output out in
	usage "not a directory" --in-place in/lib/a.so
	fails "missing: cannot look at it" --in-place missing
	treecheck same before in
	[ ! -e in/.kpack ]
	[ ! -e missing ]
	kpack pack -q --in-place --input in --family x=gfx1030,gfx1100
	treecheck code before in
	# what cannot be read as what it seems stays
	mkfat --seed 8 in/lib/whole.so
	head -c 60000 in/lib/whole.so >in/lib/broken.so
	cp in/lib/broken.so broken.so
	! kpack pack -q --in-place in 2>err || false
	grep -q '^kpack: in/lib/broken.so: damaged, its device code stays in it: ' err
	cmp broken.so in/lib/broken.so
	kpack mark show in/lib/whole.so | grep -q ': converted$'
}

# rocBLAS's files for GPUs, and a neutral one, in DIR.
make_database() { # DIR GPU...
	local dir=$1 gpu
	mkdir -p "$dir"
	shift
	for gpu; do
		py "$gpu" "$dir/TensileLibrary_Type_HH_$gpu.co" "$dir/Kernels.so-000-$gpu.hsaco" <<-'END'
		import sys, mkfat
		for name in sys.argv[2:]:
		    open(name, "wb").write(mkfat.code_object(sys.argv[1], 3000, name))
		END
	done
	echo "neutral $*" >"$dir/TensileManifest.txt"
}

sums() { # DIR
	for a in "$1"/*.kpack; do
		readkpack sums "$a"
	done | sort
}

@test "with a choice of GPUs only their code is stored, and the rest goes" {
	mkdir -p in/lib
	mkfat --seed 1 in/lib/a.so
	mkfat --seed 2 --arches gfx1030 in/lib/other.so
	make_database in/lib/rocblas/library gfx1030 gfx1100 gfx9999
	cp -a in before
	kpack pack -q --group g before all
	# all GPUs of a list that is wrong would lose their code
	fails "no code object of the targets asked for" --in-place --group g --arch gfx942 in
	diff -r before in
	kpack pack --json --in-place --group g --arch gfx1100 in >report 2>notes
	sums all/.kpack | grep -E ' (gfx1100|generic)$' >want
	grep -q TensileManifest want
	sums in/.kpack | diff want -
	kpack mark check in/lib/*.so
	kpack mark check --arch gfx1100 in/lib/a.so
	kpack verify -q --tree --arch gfx1100 in
	[ "$(cd in && find lib/rocblas -type f | sort)" = \
		$'lib/rocblas/library/Kernels.so-000-gfx9999.hsaco\nlib/rocblas/library/TensileLibrary_Type_HH_gfx9999.co' ]
	# no byte of device code stays in binaries
	[ "$(stat -c %s in/lib/other.so)" -lt "$(($(stat -c %s before/lib/other.so) / 2))" ]
	py <<-'END'
	import json
	status = {f["path"]: f["status"] for f in json.load(open("report"))["files"]}
	assert status["lib/a.so"] == status["lib/other.so"] == "converted"
	assert status["lib/rocblas/library/Kernels.so-000-gfx1030.hsaco"] == "removed"
	assert status["lib/rocblas/library/Kernels.so-000-gfx1100.hsaco"] == "packed"
	END
}

@test "again after an upgrade: new files replace what archives have, and nothing pruned comes back" {
	mkdir -p in/lib
	mkfat --seed 1 in/lib/a.so
	mkfat --seed 2 --bundles 3 in/lib/b.so
	make_database in/lib/rocblas/library gfx1030 gfx1100
	inplace --group g in
	kpack prune -q --arch gfx1100 in
	sums in/.kpack >first
	# the package's next version: a changed neutral file, fewer bundles, no code for a GPU
	make_database new gfx1030 gfx1100 gfx942
	cp new/* in/lib/rocblas/library
	mkfat --seed 3 --arches gfx1100,gfx1030 new.so
	cp new.so in/lib/b.so
	inplace --group g --arch gfx1100 in
	grep ' lib/a\.so#' first >want
	mkdir -p later/lib/rocblas
	cp new.so later/lib/b.so
	cp -a new later/lib/rocblas/library
	kpack pack -q --group g --arch gfx1100 later want.out
	sums want.out/.kpack >>want
	sort want -o want
	sums in/.kpack | diff want -
	[ -z "$(find in/lib/rocblas -type f)" ]
	kpack mark check --arch gfx1100 in
	kpack verify -q --tree --arch gfx1100 in
	# a version without code for the GPU; archives of all GPUs, of which those of others go, too
	cp -a in plain
	mkfat --seed 4 --arches gfx1030 in/lib/b.so
	inplace --group g --arch gfx1100 in
	grep -v ' lib/b\.so#' want | diff - <(sums in/.kpack)
	mkfat --seed 4 --arches gfx1030 plain/lib/b.so
	inplace --group g plain
	{ grep -v ' lib/b\.so#' want; readkpack sums plain/.kpack/g_gfx1030.kpack; } | sort | diff - <(sums plain/.kpack)
	sums plain/.kpack | grep -q 'b\.so.*gfx1030'
}

@test "a binary that cannot be converted stays" {
	make_tree in
	mkfat --seed 7 --loose 3 in/lib/nowrapper.so
	cp -a in before
	kpack pack --in-place in 2>err
	grep -q 'in/lib/nowrapper.so: warning: not converted, its code stays in it: no wrapper' err
	cmp before/lib/nowrapper.so in/lib/nowrapper.so
	same before in
	treecheck code before in
	kpack pack -q --in-place in
	treecheck code before in
}

@test "hard links that are not in the tree stay as they are, and are mentioned" {
	make_tree in
	ln in/lib/a.so outside.so
	cp -a in before
	cp outside.so outside.before
	kpack pack --in-place in 2>err
	grep -q 'in/lib/a.so: note: 1 more hard links are not in the tree' err
	cmp outside.so outside.before
	treecheck code before in
	[ "$(stat -c %h in/lib/a.so)" = 3 ]
}

@test "a file that the user may not replace is reported before anything is written" {
	as_root
	make_tree in
	chown -R 65534:65534 in
	chown 0:0 in/lib/deep
	cp -a in before
	status=0
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q 'in/lib/deep/a2.so: cannot be replaced in its directory: Permission denied' err
	grep -q 'nothing was packed because of the faults above' err
	[ ! -e in/.kpack ]
	chown 65534:65534 in/lib/deep
	chown 12:34 in/bin/b
	status=0
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in 2>err || status=$?
	[ "$status" -eq 1 ]
	grep -q 'in/bin/b: belongs to user 12' err
	[ ! -e in/.kpack ]
	chown 65534:65534 in/bin/b
	as_nobody "$KPACK_BIN/kpack" pack -q --in-place in
	treecheck code before in
}

@test "two runs at a time lose nothing" {
	make_tree in
	cp -a in before
	inplace in 2>/dev/null &
	inplace in 2>/dev/null || true
	wait $! || true
	treecheck code before in
	inplace in
	treecheck code before in
	same before in
	[ "$(treecheck list in | grep -c '^converted')" = 5 ]
}

@test "what another run may be writing is not removed before that one is done" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	make_tree in
	inplace in
	: >in/lib/.kpack-0123456789abcdef.tmp
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace \
		-e trace=flock,unlink,unlinkat "$KPACK_BIN/kpack" pack -q --in-place in
	[ ! -e in/lib/.kpack-0123456789abcdef.tmp ]
	# Sanitizers remove files of their own before main() starts.
	grep -oE 'flock\(|unlink(at)?\([^"]*"[^"]*\.kpack-0123456789abcdef\.tmp' trace |
		cut -d '(' -f 1 | tr '\n' ' ' >order
	[ "$(cut -d ' ' -f 1,2 order)" = "flock unlinkat" ]
}

@test "archives and their directory are on the disk before a binary is replaced" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	make_tree in
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -y -o trace \
		-e trace=fsync,renameat "$KPACK_BIN/kpack" pack -q --in-place in
	grep -nE 'renameat\(.*/in/(lib|bin|lib/deep)>' trace | head -n 1 | cut -d : -f 1 >first
	head -n "$(cat first)" trace >before
	grep -qE 'fsync\([0-9]+<[^>]*/in>\)' before
	grep -qE 'fsync\([0-9]+<[^>]*/in/.kpack>\)' before
}

@test "a converted file that has the same code, but is another, is left alone" {
	mkdir -p in/lib in/x
	mkfat --seed 1 in/lib/a.so
	cp -p in/lib/a.so fat.so
	inplace in
	# a copy of the converted one with another host part and the same time
	cp -p in/lib/a.so in/x/b.so
	printf '\377' | dd of=in/x/b.so bs=1 seek=15 conv=notrunc status=none # e_ident's padding
	touch -r in/lib/a.so in/x/b.so
	cp -p in/x/b.so b.before
	cp -p fat.so in/lib/a.so
	inplace in
	cmp b.before in/x/b.so
	[ "$(treecheck list in)" = $'converted lib/a.so\nconverted x/b.so' ]
	[ "$(stat -c %h in/lib/a.so)" = 1 ]
	mkdir -p before/lib before/x
	cp fat.so before/lib/a.so
	cp fat.so before/x/b.so
	treecheck code before in
	# nor may its code go elsewhere
	cp -p fat.so in/lib/a.so
	mkfat --seed 2 in/lib/0.so
	cp -a in unchanged
	fails "in/x/b.so: its marker names lib/a.so, whose code would go to other archives now" \
		--in-place --volume-size 1 in
	diff -r --no-dereference unchanged in
}

# After a kill: what is there is all there.  Then a run to the end, and it is as if nothing had
# happened.
recover() { # BEFORE TREE WANT
	treecheck code "$1" "$2"
	inplace --group g "$2"
	treecheck code "$1" "$2"
	same "$1" "$2"
	diff -r --no-dereference "$3" "$2" # of archives, too
	kpack verify -q "$2/.kpack"
	[ -z "$(find "$2" -name '*.tmp')" ]
}

# Killed at the Nth of each system call that changes what others see.
# bats test_tags=single
@test "killed at every step, and run again" {
	make_tree before
	cp -a before want
	inplace --group g want
	calls="linkat renameat fsync fchown"
	if ! strace -f -o /dev/null -e trace=none true 2>/dev/null; then
		calls=
	fi
	for call in $calls; do
		for n in $(moments {1..20}); do
			rm -rf in
			cp -a before in
			status=0
			ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=$call \
				-e inject=$call:signal=KILL:when=$n \
				"$KPACK_BIN/kpack" pack -q --jobs 1 --group g --in-place in || status=$?
			[ $status -ne 0 ] || break
			[ $status -eq 137 ]
			recover before in want
		done
		[ $n -gt 3 ]
	done
}

# Keys that sort in another way than paths and numbers, code of one binary that another one has, files of
# databases among the binaries, several GPUs in an archive.
# bats test_tags=single
@test "archives do not tell at which step a run was killed" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	mkdir -p before/lib.d
	mkfat --seed 1 --bundles 12 --size 2000 before/lib.d/z.so
	mkfat --seed 2 --bundles 2 --size 2000 before/lib-a.so
	mkfat --seed 3 --bundles 2 --size 2000 --arches gfx1100,gfx1030 before/m.so
	cp before/lib.d/z.so before/n.so
	ln before/m.so before/a2.so
	make_database before/lib/rocblas/library gfx1030 gfx1100
	for options in "--scheme zstd-per-kernel" "--scheme none" "--scheme zstd-shared" \
		"--family r=gfx1030,gfx1100"; do
		rm -rf want
		cp -a before want
		inplace --group g $options want
		for call in renameat unlinkat; do
			for n in $(moments {1..12}); do
				rm -rf in
				cp -a before in
				status=0
				ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=$call \
					-e inject=$call:signal=KILL:when=$n \
					"$KPACK_BIN/kpack" pack -q --jobs 1 --group g $options --in-place in || status=$?
				[ $status -ne 0 ] || break
				inplace --group g $options in
				diff -r want in
			done
			[ $n -gt 3 ]
		done
	done
}

# bats test_tags=single
@test "killed between the links of a binary in a later volume" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	mkdir -p before/lib
	mkfat --seed 1 --arches gfx942 --size 1000 before/lib/a.so
	mkfat --seed 2 --arches gfx942 --size 60000 before/lib/m.so
	mkfat --seed 3 --arches gfx942 --size 1000 before/lib/z.so
	ln before/lib/z.so before/z2.so
	ln before/lib/z.so before/z3.so
	# converted, m would leave room for z in the first volume
	for n in 5 6 7 8; do
		rm -rf in
		cp -a before in
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=renameat \
			-e inject=renameat:signal=KILL:when=$n "$KPACK_BIN/kpack" pack -q --jobs 1 \
			--group g --volume-size 40000 --in-place in || status=$?
		[ $status -ne 0 ] || break
		treecheck code before in
		inplace --group g --volume-size 40000 in
		treecheck code before in
		same before in
	done
	[ $n = 8 ]
}

@test "killed at any time, and run again" {
	make_tree before
	for i in 1 2 3 4 5 6; do
		mkfat --seed $((10 + i)) --size 40000 before/lib/more$i.so
	done
	cp -a before want
	started=$(date +%s%N)
	inplace --group g want
	took=$(($(date +%s%N) - started))
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		rm -rf in
		cp -a before in
		timeout -s KILL $(printf '%d.%09d' $((took * i / 12 / 1000000000)) \
			$((took * i / 12 % 1000000000))) \
			"$KPACK_BIN/kpack" pack -q --group g --in-place in || true
		recover before in want
	done
}
