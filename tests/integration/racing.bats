#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack, run by root, on trees of a user who exchanges what it names for links and the like while it
# runs: racing.py has the scenes, tests/racer the attacks and the judge.  By default a sample
# of the attacks is made; RACING=all makes every attack at every step, which takes hours.

# bats file_tags=single

load packing

# All scenes run once; the tests look at the faults of one place each.
setup_file() {
	load packing
	export FAULTS=$BATS_FILE_TMPDIR/faults
	: >"$FAULTS"
	[ "$(id -u)" = 0 ] || return 0
	race ${RACING:+"--$RACING"}
	race --old ${RACING:+"--$RACING"} --runs 8 pack-again in-place split-again mark-set
	race --old --watch
}

race() { # OPTION...
	[ "$KPACK_MODE" != asan ] || set -- --runs 6 "$@"
	$python "$tools/racing.py" "$@" >>"$FAULTS" 2>>"$FAULTS.log" || :
}

none() { # PLACE
	as_root
	[ -s "$FAULTS.log" ]
	awk -F '\t' -v place="$1" '$2 == place { print; n++ } END { exit n > 0 }' "$FAULTS" >found ||
		{ head -n 40 found; wc -l found; return 1; }
}

@test "every scene was played" {
	none failed
	run grep -v ' steps, ' "$FAULTS.log"
	[ -z "$output" ] || { echo "$output"; return 1; }
}

@test "below an operand" {
	none below
}

@test "an operand itself" {
	none operand
}

@test "a directory above an operand" {
	none above
}

@test "a file next to an operand" {
	none beside
}

@test "what was there before, as if a killed run had left it" {
	none planted
}

@test "no file that others may open is written to, and no file of root's gets set-user-ID" {
	none moment
}
