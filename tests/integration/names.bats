#!/usr/bin/env bats
# Names and texts that attack their reader: whatever an archive, a tree, a bundle or a wheel is
# called or says, what is printed is fit for a terminal, and valid JSON, HTML, CSV, headers and
# shell words.
# bats file_tags=single

load packing

@test "archives, clashes and damage, trees, trees for one GPU, the page of kpack report, wheels, bundles and GPUs" {
	local group
	for group in archives faults trees machine html wheels formats; do
		mkdir $group
		(cd $group && $python "$tools/names.py" $group "$KPACK_BIN/kpack") || { echo "of: $group"; return 1; }
	done
}
