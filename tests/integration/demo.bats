#!/usr/bin/env bats
# contrib/demo, which `make demo` runs: on Debian's library if it is available, and on a
# library that the demo makes up.

# bats file_tags=single

setup() {
	cd "$KPACK_SRC"
	export KPACK_DEMO_DIR=$BATS_TEST_TMPDIR/demo
}

teardown() {
	! mountpoint -q "$KPACK_DEMO_DIR/mnt" || umount -l "$KPACK_DEMO_DIR/mnt"
}

# Without a network the demo makes up the input, which is all that can be asked.
# bats test_tags=all
@test "demo, as make demo runs it" {
	contrib/demo "$KPACK_BIN" >"$BATS_TEST_TMPDIR/out"
	grep -qE '^identical: [1-9][0-9]* objects$' "$BATS_TEST_TMPDIR/out"
	grep -qx 'restored to the last byte' "$BATS_TEST_TMPDIR/out"
}

@test "demo, an input given" {
	mkdir "$BATS_TEST_TMPDIR/in"
	/usr/bin/python3 tests/integration/mkfat.py --bundles 2 --arches gfx1100,gfx942 \
		"$BATS_TEST_TMPDIR/in/libx.so"
	KPACK_DEMO_INPUTS=$BATS_TEST_TMPDIR/in contrib/demo "$KPACK_BIN" >"$BATS_TEST_TMPDIR/out"
	grep -qx 'identical: 4 objects' "$BATS_TEST_TMPDIR/out"
	grep -qx 'restored to the last byte' "$BATS_TEST_TMPDIR/out"
	! mountpoint -q "$KPACK_DEMO_DIR/mnt" || false
}

@test "demo, an input made up" {
	KPACK_DEMO_OFFLINE=1 contrib/demo "$KPACK_BIN" >"$BATS_TEST_TMPDIR/out"
	grep -qx 'identical: 84 objects' "$BATS_TEST_TMPDIR/out"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -le 48 ] # two screens
}

@test "demo, nothing to pack: fails" {
	mkdir "$BATS_TEST_TMPDIR/in"
	echo text >"$BATS_TEST_TMPDIR/in/file"
	! KPACK_DEMO_INPUTS=$BATS_TEST_TMPDIR/in contrib/demo "$KPACK_BIN" || false
}
