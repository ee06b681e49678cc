#!/usr/bin/env bats
# Genuine libraries: Debian's librocrand, packed.  Every code object must
# come back identical through the mount, kpack cat, an independent reader, and kpack
# extract, compared with an independent parse of the library.  contrib/install-deps
# --inputs fetches them; they are kept in build/inputs.  Without a network the tests are
# skipped, except in CI.

load proof.bash

readkpack() { $python "$tools/readkpack.py" "$@"; }

setup() {
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	cd "$T"
}

teardown() {
	cd /
	! mountpoint -q "$T/mnt" || fusermount3 -u "$T/mnt" || umount -l "$T/mnt"
	rm -rf "$T"
}

# "sha256  PATH" of all files below DIR, by the path that a mount has, sorted by path
tree_sums() { # DIR
	(cd "$1" && find . -type f -exec sha256sum {} +) | sed 's,  \./,  ,' | sort -k 2
}

# want: "sha256  key  arch" of the library; paths: "sha256  path in the mount"
expect() {
	KEY=$(basename "$LIB")
	$python "$tools/fatparse.py" sums "$LIB" "$KEY" >want
	[ "$(wc -l <want)" -gt 6 ]
	$python - "$KEY" <<-'END' | sort -k 2 >paths
	import sys
	for line in open("want"):
	    digest, key, arch = line.rstrip("\n").split("  ")
	    index = key[len(sys.argv[1]) + 1:]
	    print("%s  toc/%s/%s%s.hsaco" % (digest, sys.argv[1], arch, "" if index == "0" else "#" + index))
	END
}

through_readkpack() {
	local a
	for a in out/.kpack/*.kpack; do
		readkpack sums "$a"
	done | sort | diff want -
}

through_extract() {
	kpack extract out/.kpack -C extracted
	tree_sums extracted | diff paths -
	rm -r extracted
}

through_mount() {
	mkdir mnt
	"$KPACK_BIN/kpackfs" out/.kpack mnt
	tree_sums mnt | diff paths -
	fusermount3 -u mnt
}

through_cat() {
	local a key arch sum
	for a in out/.kpack/*.kpack; do
		kpack ls "$a" | while IFS=$'\t' read -r key arch _; do
			sum=$(kpack cat "$a" "$key" "$arch" | sha256sum)
			echo "${sum%% *}  $key  $arch"
		done
	done | sort | diff want -
}

@test "librocrand" {
	fetch librocrand
	expect
	kpack pack --archives-only "$LIB" out >table
	[ "$(ls out/.kpack | wc -l)" = "$(awk '{ print $3 }' want | sort -u | wc -l)" ]
	[ "$(tail -n 1 table | tr -s ' ' | cut -d ' ' -f 2)" = "$(wc -l <want)" ]
	kpack verify -q out/.kpack
	through_mount
	through_cat
	through_readkpack
	through_extract
	kpack pack -q --archives-only --jobs 1 "$LIB" one
	diff -r out one
	# converted, there and back
	kpack pack -q "$LIB" conv
	kpack mark check conv
	kpack mark restore -o back.so "conv/$KEY"
	cmp "$LIB" back.so
	# again, otherwise, and beside others
	for options in "--scheme none" "--chunk 64K" "--level 1 --jobs 7"; do
		rm -r out
		kpack pack -q --archives-only $options "$LIB" out
		kpack verify -q out/.kpack
		through_readkpack
	done
}
