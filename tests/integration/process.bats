#!/usr/bin/env bats
# librocm_kpack in programs that unload it and that fork.

load packing.bash

process() {
	case ${KPACK_MODE-} in
	asan | tsan) skip "a sanitizer's run time must be loaded before Python" ;;
	esac
	$python "$tools/process.py" "$1" "$KPACK_BIN/librocm_kpack.so.0" "${@:2}"
}

@test "it can be unloaded, and nothing of it is called afterwards" {
	process unloaded
	process left
}

@test "children made while threads load go on loading" {
	echo '{"entries": [{"key": "lib/x.so#0", "arch": "gfx1100",
		"data": {"size": 100000, "seed": 1}}]}' | $python "$tools/mkarchive.py" x.kpack
	process forked "$T/x.kpack" "lib/x.so#0" gfx1100
}
