#!/usr/bin/env bats
# Names and texts that attack their reader: whatever an archive, a tree, a bundle or a wheel is
# called or says, what is printed is fit for a terminal, and valid JSON, HTML, CSV, headers and
# shell words.
# bats file_tags=single

load packing

# Run one of the groups of names.py in an empty directory; it prints what is wrong.
names() {
	mkdir here
	(cd here && $python "$tools/names.py" "$1" "$KPACK_BIN/kpack")
}

@test "archives: keys, targets, types, groups, metadata, file names" {
	names archives
}

@test "archives that clash, and damaged entries" {
	names faults
}

@test "trees: names of directories and files, the command that mounts, markers" {
	names trees
}

@test "trees for one GPU: what was kept, archives, policies" {
	names machine
}

@test "the page of kpack report" {
	names html
}

@test "wheels: members, headers of METADATA" {
	names wheels
}

@test "bundles, offload binaries, GPUs, and the environment" {
	names formats
}
