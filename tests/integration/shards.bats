#!/usr/bin/env bats
# kpack pack --shard I/N: the joined parts equal the output of one run, bit by bit.
# tree.bats and similar tests check that one run is right; here it is the reference.
#
# The tests tagged single differ in what is packed and joined; the threads of packing are those of the
# tests of all numbers of shards and of volumes, and joining has none.

load packing.bash

# Everything of a tree that can be seen: names, kinds, modes, owners, times, links, bytes.
# What archives' directory and files have besides their bytes is of the moment.
look() { # DIR
	(
		cd "$1"
		find . -path './.kpack*' -prune -o -printf '%p %y %m %U:%G %T@ %n %l\n' | sort
		find . -path './.kpack*' -printf '%p %y %m\n' | sort
		find . -type f -exec sha256sum {} + | sort -k 2
		getfattr -R -P -h -d -m user . 2>/dev/null || : # not of special files
	)
}

same() { # WANT OUT
	look "$1" >look.want
	look "$2" >look.out
	diff look.want look.out
}

# Run shards 1 to N into P.1 ... P.N.
shards() { # P N OPTION... INPUT
	local p=$1 n=$2 i
	shift 2
	for i in $(seq "$n" -1 1); do
		kpack pack -q --shard "$i/$n" "${@:1:$#-1}" "${@: -1}" "$p.$i"
	done
}

# joined N OPTION... INPUT: the parts are what one run writes, in any order.
joined() {
	local n=$1
	shift
	rm -rf want out p.*
	kpack pack -q "$@" want
	shards p "$n" "$@"
	# shellcheck disable=SC2046
	kpack merge -q $(printf 'p.%s\n' $(seq "$n") | shuf --random-source=<(yes "$n")) -o out
	same want out
}

# A tree with one of everything an ordinary user can have.
make_tree() { # DIR
	mkdir -p "$1/lib/deep/er" "$1/bin" "$1/share/doc" "$1/empty"
	mkfat --seed 1 --ragged "$1/lib/liba.so.1"
	mkfat --seed 2 --ccob all --bundles 2 "$1/bin/tool"
	mkfat --seed 3 --no-pie --share 2 "$1/lib/deep/er/b.so"
	mkfat --seed 4 "$1/lib/c.so"
	mkfat --seed 1 "$1/lib/d.so" # its code is that of liba: stored once
	mkfat --seed 5 --twice gfx1030 --bundles 5 "$1/lib/e.so"
	mkfat --seed 1 --bundles 1 "$1/lib/f.so"
	ln "$1/lib/c.so" "$1/bin/c2.so"
	ln -s liba.so.1 "$1/lib/liba.so"
	ln -s ../nowhere "$1/dangling"
	echo text >"$1/share/doc/text"
	ln "$1/share/doc/text" "$1/text"
	: >"$1/share/empty"
	mkfifo "$1/fifo"
	printf 'x' >"$1/share/$(printf 'not\377utf8')"
	truncate -s 3M "$1/sparse"
	setfattr -n user.note -v hello "$1/share/doc/text" || :
	chmod 0604 "$1/share/empty"
	chmod 0640 "$1/lib/liba.so.1"
	touch -d '2020-01-02 03:04:05.678901234' "$1/lib/liba.so.1" "$1/text" "$1/fifo"
	touch -h -d '2021-01-02 03:04:05.987654321' "$1/lib/liba.so"
	chmod 0555 "$1/share/doc"
	touch -d '2019-05-06' "$1/empty" "$1/share/doc" "$1/lib" "$1/bin" "$1"
}

@test "volumes: markers say where the joined archives have it" {
	make_tree in
	for size in 1 8000 30000 60000; do
		joined 3 --volume-size $size in
		joined 5 --volume-size $size --family rdna=gfx1030,gfx1100 in
		[ -n "$(find out/.kpack -name 'in.2*')" ]
		treecheck code in out
	done
	joined 3 --volume-size 30000 --scheme none in
	joined 3 --volume-size 30000 --keep-device-code in
	# some binary was really moved: its part names another volume
	joined 3 --volume-size 30000 in
	moved=0
	for f in lib/c.so lib/d.so lib/e.so lib/f.so lib/deep/er/b.so; do
		cmp -s out/$f p.1/$f || cmp -s out/$f p.2/$f || cmp -s out/$f p.3/$f ||
			moved=$((moved + 1))
	done
	[ $moved -gt 0 ]
}

# bats test_tags=single
@test "rocFFT's database, in parts and by rows" {
	[ "$(kpack pack --help | grep -c split-rocfft)" = 1 ]
	$python "$tools/mkdb.py" --cache "$KPACK_BIN/.objects" rocfft rocfft
	joined 2 --split-rocfft rocfft
	joined 3 --split-rocfft --rows rocfft
}

# bats test_tags=single
@test "an input that has archives and converted binaries already" {
	make_tree one
	kpack pack -q --group g one in
	mkfat --seed 31 in/lib/new.so
	mkfat --seed 32 in/lib/newer.so
	for n in 1 3; do
		joined $n --group g in
		joined $n --group g --volume-size 30000 in
		joined $n --group h in
	done
	kpack pack -q --group g --scheme zstd-shared one shared
	mkfat --seed 31 shared/lib/new.so
	joined 2 --group g --scheme zstd-shared shared
	kpack verify -q out/.kpack
}

# bats test_tags=single
@test "a tree without device code" {
	mkdir -p in/a
	echo text >in/a/text
	joined 2 in 2>err
	[ ! -e out/.kpack ]
}

# bats test_tags=single
@test "a shard into an existing part: finished, older, of another run" {
	make_tree in
	shards p 3 in
	cp -a p.2 was
	rm p.2/.kpack/shard/record
	kpack pack -q --shard 2/3 in p.2
	diff <(look was) <(look p.2)
	# what another run left does not get in
	mkfat --seed 77 other.so
	mkdir -p old/lib
	cp other.so old/lib/c.so
	cp other.so old/lib/gone.so
	kpack pack -q --shard 1/1 --group in old p.2
	kpack pack -q --shard 2/3 in p.2
	diff -r was/.kpack p.2/.kpack
	kpack pack -q in want
	kpack merge -q p.1 p.2 p.3 -o out
	same want out
}

# bats test_tags=single
@test "a part that is finished is left alone, until something is another" {
	mkdir in
	mkfat --seed 1 in/a.so
	mkfat --seed 2 in/b.so
	echo text >in/text
	again() { kpack pack --shard 1/2 "$@" in p.1 >told; }
	left_alone() { again "$@" && [ "$(cat told)" = "p.1: shard 1/2 is finished already" ]; }
	done_again() { again "$@" && grep -q 'files, ' told; }
	again
	left_alone
	left_alone --jobs 1
	done_again --force
	done_again --level 5
	left_alone --level 5
	done_again
	# INPUT: another content, of another time or not; only attributes; a name
	mkfat --seed 3 new.so
	cp new.so in/b.so
	done_again
	left_alone
	touch -r in/a.so stamp
	cat in/b.so >in/a.so
	touch -r stamp in/a.so
	done_again
	chmod 0600 in/text
	done_again
	mv in/text in/texts
	done_again
	touch -d 2020-01-01 in
	done_again
	left_alone
	# the part: damaged, not finished, moved
	cp -a p.1 was
	for so in p.1/*.so p.1/.kpack/shard/*.kpack p.1/.kpack/shard/record; do
		printf x | dd of="$so" bs=1 seek=100 conv=notrunc status=none
		done_again
		diff -r was p.1
	done
	rm p.1/*.so
	done_again
	rm p.1/.kpack/shard/record
	done_again
	if kpack pack -q --json --shard 1/2 in p.1 >told.json 2>err; then
		py <<-'END'
		import json
		d = json.load(open("told.json"))
		assert d["finished_already"] is True and d["files"] == [] and "summary" not in d, d
		END
	fi
	kpack pack -q --shard 2/2 in p.2
	kpack pack -q in want
	kpack merge -q p.1 p.2 -o out
	same want out
}

# bats test_tags=single
@test "killed at any step, and run again" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	make_tree in
	kpack pack -q in want
	shards p 3 in
	for call in linkat:1 linkat:3 renameat:1 renameat:2 renameat:4 fsync:2 unlinkat:1 pwrite64:2 pwrite64:9; do
		rm -rf out
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace="${call%:*}" \
			-e inject="${call%:*}:signal=KILL:when=${call#*:}" \
			"$KPACK_BIN/kpack" pack -q --force --jobs 1 --shard 2/3 in p.2 || status=$?
		if [ $status -ne 0 ]; then
			[ $status -eq 137 ]
			killed=$((${killed-0} + 1))
			if [ ! -e p.2/.kpack/shard/record ]; then
				merge_fails "p.2: its shard was not finished: run it again" p.1 p.2 p.3 -o out
				[ ! -e out ]
			fi
		fi
		kpack pack -q --shard 2/3 in p.2
		kpack merge -q p.1 p.2 p.3 -o out
		same want out
	done
	[ "$killed" -gt 3 ]
}

# bats test_tags=single
@test "killed while parts are joined, and joined again" {
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	make_tree in
	kpack pack -q --volume-size 30000 in want
	shards p 3 --volume-size 30000 in
	for call in linkat:2 linkat:22 renameat:1 renameat:2 renameat:7 fsync:3 pwrite64:7; do
		rm -rf out
		status=0
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace="${call%:*}" \
			-e inject="${call%:*}:signal=KILL:when=${call#*:}" \
			"$KPACK_BIN/kpack" merge -q p.1 p.2 p.3 -o out || status=$?
		[ $status -eq 0 ] || killed=$((${killed-0} + 1))
		# no binary without its archives, nor with a marker that leads to another
		[ -d out/.kpack ] || [ -z "$(find out -name '*.so*' 2>/dev/null)" ]
		find out -type f -name '*.so*' 2>/dev/null | while read -r so; do
			cmp "want/${so#out/}" "$so" || exit 1
		done
		kpack merge -q p.1 p.2 p.3 -o out
		same want out
	done
	[ "$killed" -gt 2 ]
}

# bats test_tags=single
@test "temporary files that a killed run left where parts are joined are removed" {
	mkdir -p in/lib
	ln -s nowhere in/lib/link
	for code in without with; do
		[ $code = without ] || mkfat in/lib/a.so
		rm -rf p.* out
		shards p 2 in
		mkdir -p out/lib
		ln -s nowhere out/.kpack-0123456789abcdef.tmp
		mkfifo out/lib/.kpack-0123456789abcdef.tmp
		kpack merge -q p.1 p.2 -o out
		[ -z "$(find out -name '.kpack-*')" ]
		# and in a part
		ln -s nowhere p.1/lib/.kpack-0123456789abcdef.tmp
		kpack pack -q --force --shard 1/2 in p.1
		[ -z "$(find p.1 -name '.kpack-*')" ]
	done
}

merge_fails() { # TEXT OPERAND...
	local text=$1
	shift
	status=0
	kpack merge "$@" >merge.out 2>merge.err || status=$?
	[ $status -eq 1 ] || { echo "exit $status"; cat merge.err; return 1; }
	grep -qF -e "$text" merge.err || { echo "no '$text' in:"; cat merge.err; return 1; }
	! grep -v '^kpack: ' merge.err || false
}

# bats test_tags=single
@test "root: what another user put into a part" {
	as_root
	make_tree in
	chown -R 12:12 in/lib
	shards p 3 --volume-size 30000 in
	kpack merge -q p.1 p.2 p.3 -o out
	for f in lib/c.so lib/d.so lib/e.so lib/f.so lib/deep/er/b.so; do
		for i in 1 2 3; do
			[ ! -e p.$i/$f ] || cmp -s out/$f p.$i/$f || { part=p.$i moved=$f; }
		done
	done
	# the host part of a binary that is converted again: the result would be root's
	rm -rf out
	chown 0 p.?/lib/*.so p.?/lib/deep/er/*.so
	chown 40001 $part/.kpack/shard/host-*
	merge_fails "belongs to user 40001, who could have put it there" p.1 p.2 p.3 -o out
	[ ! -e "out/$moved" ]
	chown 0 $part/.kpack/shard/host-*
	kpack merge -q p.1 p.2 p.3 -o out
	[ -e "out/$moved" ]

	# a record that names files of others
	rm -rf out
	chown 40001 p.2/.kpack/shard/record
	merge_fails "p.2/.kpack/shard/record: belongs to user 40001, who could have forged it" \
		p.1 p.2 p.3 -o out
	[ ! -e out ]
	# a whole part of another user is that user's
	find p.2 -mindepth 1 -exec chown -h 40001 {} +
	kpack merge -q p.1 p.2 p.3 -o out
	[ -e "out/$moved" ]
	# but not what root's run wrote, and finished
	kpack pack -q --volume-size 30000 --shard 2/3 in p.2
	[ "$(stat -c %u p.2/.kpack/shard/record)" = 0 ]
}

# bats test_tags=single
@test "devices that the user may not make are left out and reported" {
	as_root
	mkdir -p in/lib
	mkfat in/lib/a.so
	mknod in/null c 1 3
	ln in/null in/one
	ln in/null in/zero
	mkfifo in/fifo
	shards p 2 in
	kpack merge --json p.1 p.2 -o want >report
	[ -c want/null ] && [ want/null -ef want/zero ]
	chmod -R a+rX p.?
	mkdir theirs
	chown 65534:65534 theirs
	as_nobody "$KPACK_BIN/kpack" merge --json p.1 p.2 -o theirs/out >less 2>err
	for name in null one zero; do
		grep -q "^kpack: p.[12]/$name: note: left out: .*not permitted" err
		rm want/$name
	done
	[ "$(wc -l <err)" = 3 ]
	[ "$(cd want && find . | sort)" = "$(cd theirs/out && find . | sort)" ]
	cmp {want,theirs/out}/lib/a.so
	$python - <<-'END'
	import json
	assert json.load(open("report"))["files"] == json.load(open("less"))["files"] + 3
	END
}

# bats test_tags=single
@test "parts that were changed or damaged" {
	make_tree in
	shards p 2 in
	kpack merge -q p.1 p.2 -o fine
	for i in 1 2; do
		(cd p.$i && find . -type f | sort) >files
		while read -r file; do
			rm -rf bad out
			cp -a p.$i bad
			# a byte more, a byte less, another byte; times and modes as they were
			for how in grow cut flip; do
				case $how in
				grow) echo >>"bad/$file" ;;
				cut) [ -s "bad/$file" ] || continue && truncate -s -1 "bad/$file" ;;
				flip) [ -s "bad/$file" ] || continue && py "bad/$file" <<-'END'
					import sys
					data = bytearray(open(sys.argv[1], "rb").read())
					data[len(data) // 2] ^= 1
					open(sys.argv[1], "wb").write(data)
					END
				;;
				esac
				touch -r "p.$i/$file" "bad/$file"
				merge_fails "bad" bad "p.$((3 - i))" -o out
				[ ! -e out ]
				cp -a "p.$i/$file" "bad/$file"
			done
			rm "bad/$file"
			merge_fails "bad" bad "p.$((3 - i))" -o out
			[ ! -e out ]
		done <files
	done
	cp -a p.1 bad2
	find bad2 -path '*/.kpack' -prune -o -type f -exec chmod 0611 {} +
	merge_fails "its mode differs" bad2 p.2 -o out
	[ ! -e out ]
}

# bats test_tags=single
@test "the error for a part that was copied without times or modes says so" {
	mkdir in
	mkfat in/a.so
	chmod 0750 in/a.so
	touch -d 2020-01-01 in/a.so
	kpack pack -q --shard 1/1 in p.1
	cp -r p.1 untimed
	merge_fails "untimed/a.so: is not what the shard wrote: its time of modification differs, as when it was copied without" untimed -o out
	cp -rp p.1 unmoded
	chmod 0755 unmoded/a.so
	merge_fails "unmoded/a.so: is not what the shard wrote: its mode differs, as when it was copied without" unmoded -o out
	[ ! -e out ]
	# from where nothing can be written
	chmod -R a-w p.1/.kpack
	kpack pack -q in want
	kpack merge -q p.1 -o out
	same want out
}

# Ownership is of the machine; labels, too.
# bats test_tags=single
@test "the error for a part that was copied without ACLs or extended attributes says so" {
	mkdir -p in/dir
	mkfat in/a.so
	echo text >in/text
	setfattr -n user.note -v hello in/text 2>/dev/null || skip "no extended attributes here"
	setfattr -n user.b -v 2 in/text
	setfattr -n user.note -v dir in/dir
	kpack pack -q in want
	shards p 2 in
	own=p.1
	[ -e p.1/text ] || own=p.2
	kpack merge -q p.1 p.2 -o out
	same want out
	rm -rf out
	changed() { # PATH
		rm -rf other
		mv $own other
		merge_fails "other/$1: is not what the shard wrote: its ACL or extended attributes differ, as when it was copied without" p.[12] other -o out
		[ ! -e out ]
		mv other $own
	}
	cp -a $own saved
	setfattr -x user.note $own/text
	changed text
	setfattr -n user.note -v hallo $own/text
	changed text
	setfattr -n user.note -v hello $own/text
	setfattr -n user.more -v '' $own/text
	changed text
	setfattr -x user.more $own/text
	if command -v setfacl >/dev/null && setfacl -m u:1234:r $own/text 2>/dev/null; then
		chmod --reference=saved/text $own/text
		changed text
		setfacl -b $own/text
		chmod --reference=saved/text $own/text
	fi
	setfattr -x user.note $own/dir
	changed dir
	setfattr -n user.note -v dir $own/dir
	kpack merge -q p.1 p.2 -o out
	same want out
	rm -rf out
	# INPUT is another, too
	setfattr -n user.note -v changed in/text
	kpack pack -q --shard 2/2 in p.2
	merge_fails "p.1 and p.2 are of different runs: INPUT was another" p.1 p.2 -o out
}

# No shard has more than an equal part and the largest file.
# bats test_tags=single
@test "the bytes are spread" {
	mkdir in
	for i in $(seq 40); do
		head -c $((i * i * 1000)) /dev/zero >in/f$i
	done
	mkfat --seed 1 --size 300000 in/lib.so
	for n in 2 3 7; do
		rm -rf p.*
		shards p $n in
		for i in $(seq $n); do
			find p.$i -path '*/.kpack' -prune -o -type f -printf '%P\n' | sed "s/^/$i /"
		done >who
		[ "$(wc -l <who)" = 41 ] # each once
		py $n <<-'END'
		import collections, os, sys
		n = int(sys.argv[1])
		load = collections.Counter()
		cost = {}
		for line in open("who"):
		    i, name = line.split()
		    cost[name] = os.path.getsize("in/" + name) + 4096
		    if name == "lib.so":
		        cost[name] *= 2
		    load[i] += cost[name]
		assert max(load.values()) <= sum(cost.values()) / n + max(cost.values()), load
		assert min(load.values()) > 0 and len(load) == n, load
		END
	done
}

# bats test_tags=single
@test "messages and reports" {
	make_tree in
	shards p 2 in
	kpack pack --shard 1/2 in p.1 >told
	! grep -q 'mount' told || false
	[ "$(kpack merge p.1 p.2 -o out)" = "out: 2 shards joined: 3 archives, 16 files" ]
	kpack merge --json p.1 p.2 -o out >told.json
	py <<-'END'
	import json
	d = json.load(open("told.json"))
	assert d["output"] == "out" and d["shards"] == 2 and d["files"] == 16, d
	assert d["archives"] == ["in_gfx1030.kpack", "in_gfx1100.kpack", "in_gfx90a:xnack+.kpack"], d
	END
}

# bats test_tags=slow
@test "librocrand" {
	status=0
	dir=$("$KPACK_SRC/contrib/install-deps" --inputs "$KPACK_SRC/build/inputs" 2>fetch.err) || status=$?
	if [ $status -ne 0 ]; then
		cat fetch.err
		[ "${CI-}" != true ]
		[ $status -eq 3 ]
		skip "Debian's packages cannot be fetched"
	fi
	mkdir -p in/lib
	cp -a "$(find "$dir" -name 'librocrand.so.*' -type f)" in/lib
	mkfat --seed 1 in/lib/a.so
	mkfat --seed 2 in/lib/z.so
	joined 3 in
	joined 3 --volume-size 4M in
}
