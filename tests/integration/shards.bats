#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack pack --shard and kpack merge of parts among other users.  That joined parts are what one run
# writes is a property (tests/properties); what is refused is in tests/golden/shards*, and tests/sweep
# kills both.

# bats file_tags=single

load packing

@test "root: what another user put into a part; an ordinary user gets no device" {
	as_root
	mkdir in
	for i in 1 2 3 4; do mkfat --seed $i --size 2000 --bundles 2 in/$i.so; done
	mknod in/null c 1 3
	ln in/null in/zero
	for i in 1 2; do kpack pack -q --shard $i/2 --volume-size 2500 in p.$i; done
	kpack merge -q p.1 p.2 -o want
	[ want/null -ef want/zero ]
	# a line that another user could have written, for files of others
	chown 40001 p.2/.kpack-part
	! kpack merge p.1 p.2 -o out 2>err || false
	grep -qF "belongs to user 0, but the part to user 40001" err
	[ ! -e out ]
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
