#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack pack --shard and kpack merge of parts: runs that are killed, other users, ACLs and attributes.
# That joined parts are what one run writes is a property (tests/properties); what is refused is in
# tests/golden/shards*.

# bats file_tags=single

load packing

# Everything of a tree that can be seen; of archives only the bytes, and modes.
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

parts() { # N OPTION... INPUT: into p.1 to p.N
	local i
	for i in $(seq "$1"); do
		kpack pack -q --shard "$i/$1" "${@:2:$#-2}" "${@: -1}" "p.$i"
	done
}

merge_fails() { # TEXT OPERAND...
	local text=$1
	shift
	status=0
	kpack merge "$@" -o out >merge.out 2>merge.err || status=$?
	[ $status -eq 1 ] && grep -qF -e "$text" merge.err && [ ! -e out ] ||
		{ echo "exit $status"; cat merge.err; return 1; }
}

make_tree() { # DIR
	local i
	mkdir -p "$1/lib" "$1/text"
	for i in 1 2 3 4; do mkfat --seed $i --size 2000 --bundles 2 "$1/lib/$i.so"; done
	ln "$1/lib/4.so" "$1/5.so"
	echo text >"$1/text/a"
	touch -d '2020-01-02 03:04:05.678901234' "$1/text/a"
}

# killed CALL:N COMMAND...
killed() {
	status=0
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o /dev/null -e trace="${1%:*}" \
		-e inject="${1%:*}:signal=KILL:when=${1#*:}" "$KPACK_BIN/kpack" "${@:2}" || status=$?
	[ $status -eq 137 ]
}

@test "killed while a part is made, and while parts are joined; run again" {
	local call so
	strace -f -o /dev/null -e trace=none true 2>/dev/null || skip "needs strace"
	make_tree in
	kpack pack -q --volume-size 2500 in want
	parts 2 --volume-size 2500 in
	for call in linkat:1 fsync:2 pwrite64:3; do
		killed $call pack -q --force --jobs 1 --volume-size 2500 --shard 2/2 in p.2
		grep -q run p.2/.kpack-part || merge_fails "p.2: its shard was not finished: run it again" p.1 p.2
		kpack pack -q --volume-size 2500 --shard 2/2 in p.2
	done
	# temporary files that a killed run left go, in a part and where parts are joined
	ln -s nowhere p.1/lib/.kpack-0123456789abcdef.tmp
	kpack pack -q --force --volume-size 2500 --shard 1/2 in p.1
	[ -z "$(find p.1 -name '.kpack-*.tmp')" ]
	for call in linkat:2 linkat:4 renameat:1; do
		rm -rf out
		killed $call merge -q p.1 p.2 -o out
		# no binary without its archives, nor with a marker that leads to another
		[ -d out/.kpack ] || [ -z "$(find out -name '*.so')" ]
		for so in $(cd out && find . -type f -name '*.so'); do cmp want/$so out/$so; done
		mkdir -p out/lib
		mkfifo out/lib/.kpack-0123456789abcdef.tmp
		kpack merge -q p.1 p.2 -o out
		same want out
	done
}

@test "root: what another user put into a part; an ordinary user gets no device" {
	as_root
	make_tree in
	mknod in/null c 1 3
	ln in/null in/zero
	parts 2 --volume-size 2500 in
	kpack merge -q p.1 p.2 -o want
	[ want/null -ef want/zero ]
	# a line that another user could have written, for files of others
	chown 40001 p.2/.kpack-part
	merge_fails "belongs to user 0, but the part to user 40001" p.1 p.2
	# a whole part of another user is that user's, but not what root's run wrote, and finished
	find p.2 -mindepth 1 -exec chown -h 40001 {} +
	kpack merge -q p.1 p.2 -o out
	rm -rf out
	kpack pack -q --volume-size 2500 --shard 2/2 in p.2
	[ "$(stat -c %u p.2/.kpack-part)" = 0 ]
	chmod -R a+rX p.?
	mkdir theirs
	chown 65534:65534 theirs
	as_nobody "$KPACK_BIN/kpack" merge p.1 p.2 -o theirs/out 2>err
	[ "$(sed -n 's/^kpack: p.[12].\(.*\): note: left out: .*not permitted.*/\1/p' err | sort | paste -sd ' ')" = "null zero" ]
	rm want/null want/zero
	diff -r want theirs/out
}

@test "ACLs and extended attributes are kept, and tell one INPUT from another" {
	make_tree in
	setfattr -n user.note -v hello in/text/a 2>/dev/null || skip "no extended attributes here"
	setfattr -n user.note -v dir in/text
	kpack pack -q in want
	parts 1 in
	kpack merge -q p.1 -o out
	same want out
	rm -rf out
	setfattr -n user.note -v changed in/text/a
	kpack pack -q --shard 1/2 in p.1
	setfattr -n user.note -v again in/text/a
	kpack pack -q --shard 2/2 in p.2
	merge_fails "p.1 and p.2 are of different runs: INPUT" p.1 p.2
}
