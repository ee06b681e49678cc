#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack, run by root, on trees of a user who exchanges what it names for links and the like while it
# runs: racing.py has the scenes, racer.py the attacks and the judge.  By default a sample
# of the attacks is made; RACING=all makes every attack at every step, which takes hours.

# bats file_tags=single, long, all

bats_require_minimum_version 1.5.0

load packing

# All scenes run once; the tests look at different faults.
setup_file() {
	load packing
	export FAULTS=$BATS_FILE_TMPDIR/faults
	: >"$FAULTS"
	[ "$(id -u)" = 0 ] || return 0
	if [ "${RACING-}" = all ]; then
		race --all --jobs "$(nproc)"
		race --all --jobs "$(nproc)" --named
	else
		race
		race --named --runs 8 pack-again in-place split-again mark-set
	fi
	# What must hold at each moment does not depend on the build.
	[ "$KPACK_MODE" = asan ] || race --named --watch
}

race() { # OPTION...
	[ "$KPACK_MODE" != asan ] || set -- "$@" --runs 2
	$python "$tools/racing.py" "$@" >>"$FAULTS" 2>>"$FAULTS.log" || :
}

# Faults of these effects and, unless all are meant, places.
none() { # EFFECTS [PLACES]
	as_root
	[ -s "$FAULTS.log" ]
	awk -F '\t' -v effects="^($1)" -v places="^(${2-.*})\$" '$7 ~ effects && $2 ~ places { print; n++ }
		END { exit n > 0 }' "$FAULTS" >found || { head -n 40 found; wc -l found; return 1; }
}

@test "every scene was played" {
	as_root
	run ! grep '	failed	' "$FAULTS"
	run -1 grep -v ' steps, ' "$FAULTS.log"
}

@test "no run hangs, crashes, or fails without a message" {
	none 'hangs|ends|exit|sanitizer'
}

@test "nothing of root's changes: what is below an operand is exchanged" {
	none 'changed|touched' 'below|beside'
}

@test "nothing of root's changes: an operand, or a directory above it, is exchanged" {
	none 'changed|touched' 'operand|above'
}

@test "nothing of root's can be read, no device is opened: what is below an operand is exchanged" {
	none 'readable|opened' 'below|beside'
}

@test "nothing of root's can be read, no device is opened: an operand, or what is above, is exchanged" {
	none 'readable|opened' 'operand|above'
}

@test "what seems to be left by a killed run leads nowhere" {
	none . planted
}

@test "no file that others may open is written to, and no file of root's gets set-user-ID" {
	none . moment
}
