#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack pack --shard and kpack merge of parts among other users.  That joined parts are what one run
# writes is a property (tests/properties); what is refused is in tests/golden/shards*, and tests/sweep
# kills both.

# bats file_tags=single

load packing

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
