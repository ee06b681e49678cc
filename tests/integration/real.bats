#!/usr/bin/env bats
# Genuine libraries: Debian's librocrand and librocsparse, packed.  Every code object must
# come back identical through the mount, kpack cat, an independent reader, and kpack
# extract, compared with an independent parse of the library.  contrib/install-deps
# --inputs fetches them; they are kept in build/inputs.  Without a network the tests are
# skipped, except in CI.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C

kpack() { "$KPACK_BIN/kpack" "$@"; }
readkpack() { $python "$tools/readkpack.py" "$@"; }

# Sets LIB to the library of that name.
fetch() { # NAME [--big]
	local dir status=0
	dir=$("$KPACK_SRC/contrib/install-deps" --inputs "$KPACK_SRC/build/inputs" ${2-} 2>fetch.err) || status=$?
	if [ "$status" -ne 0 ]; then
		cat fetch.err
		[ "${CI-}" != true ] || return 1
		[ "$status" -eq 3 ] || return 1
		skip "Debian's packages cannot be fetched"
	fi
	LIB=$(find "$dir" -name "$1.so.*" -type f)
	[ -f "$LIB" ]
	KEY=$(basename "$LIB")
}

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

# bats test_tags=all
@test "librocrand in parts: split, and packed by two machines" {
	fetch librocrand
	mkdir -p tree/lib
	cp "$LIB" tree/lib
	kpack pack -q --group g tree whole
	for part in 1 2; do
		kpack pack -q --group g --shard $part/2 tree part$part
	done
	kpack merge -q part1 part2 -o joined
	diff -r whole joined
	kpack split -q tree split
	[ "$(find split -name '*.kpack' | wc -l)" -gt 1 ]
	mkdir over
	for part in split/*; do
		cp -a "$part/." over
	done
	kpack mark check over/lib
	kpack mark restore -o back.so "over/lib/$KEY"
	cmp "$LIB" back.so
}

# bats test_tags=slow, all
@test "librocsparse: more than a hundred bundles for seven or more architectures" {
	fetch librocsparse --big
	expect
	[ "$(wc -l <want)" -ge 777 ] # so many in Debian 12's
	$python - "$KPACK_BIN/kpack" "$LIB" <<-'END'
	import resource, subprocess, sys
	subprocess.run([sys.argv[1], "pack", "-q", "--archives-only", sys.argv[2], "out"], check=True)
	rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
	print(rss, "KiB")
	assert rss < 256 << 10, "%d KiB" % rss
	END
	kpack verify -q out/.kpack
	through_mount
	through_cat
	through_readkpack
	through_extract
	# any number of threads, and packed again
	cp -r out first
	kpack pack -q --archives-only --jobs 7 "$LIB" out
	diff -r first out
}
