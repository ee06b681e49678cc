#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack merge beside another process.  What it writes is in tests/golden/merge*, tests/properties.

# bats file_tags=single

load packing

@test "an archive that is added to is read when other runs have written it" {
	local x pid said
	for x in gfx900 gfx906 gfx1030; do
		py "$x" <<-'END'
		import sys, mkarchive
		a = mkarchive.Archive(group="s", family=sys.argv[1])
		a.add("a/x#0", sys.argv[1], sys.argv[1].encode() * 100)
		a.write(sys.argv[1] + ".kpack")
		END
	done
	mkdir dir
	cp gfx900.kpack dir/s-all.kpack
	mkfifo told
	exec 8<dir
	flock 8
	kpack merge -q --force -o dir/s-all.kpack dir gfx1030.kpack 2>told 4>&- 8<&- &
	pid=$!
	exec 9<told
	read -r said <&9
	[[ $said == *"dir: note: another process has locked it: waiting"* ]]
	# a new archive needs no lock
	kpack merge -q -o dir/.new gfx900.kpack gfx906.kpack
	mv dir/.new dir/s-all.kpack
	flock -u 8
	exec 8<&-
	wait $pid
	cmp <(readkpack sums dir/s-all.kpack | sort) <(for x in gfx*.kpack; do readkpack sums $x; done | sort)
}
