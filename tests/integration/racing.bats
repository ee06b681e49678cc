#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack by root on trees of a user who exchanges what it names, while it runs: racing.py has the
# scenes.  RACING=all makes every attack at every step; by default it is a sample.

load packing

race() { # OPTION...
	[ "${RACING-}" != all ] || set -- "$@" --all
	$python "$tools/racing.py" "$@"
}

# All scenes run once; the tests look at the faults of one place each.
setup_file() {
	load packing
	[ "$(id -u)" = 0 ] || return 0
	export FAULTS=$BATS_FILE_TMPDIR/faults
	race >"$FAULTS" 2>"$FAULTS.log" || [ -s "$FAULTS" ] || return 1
}

none_at() { # PLACE
	as_root
	run ! grep "	$1	" "$FAULTS"
}

@test "all scenes run" {
	none_at none
	[ "$(grep -c ' runs, ' "$FAULTS.log")" = "$($python "$tools/racing.py" --list | wc -l)" ]
}

@test "what is below an operand is exchanged: nothing of root's changes or is shown" {
	none_at below
}

@test "an operand is exchanged: nothing of root's changes or is shown" {
	none_at operand
}

@test "a directory above the operands is exchanged: nothing of root's changes or is shown" {
	none_at above
}
