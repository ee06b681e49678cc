#!/usr/bin/env bats
# A mount used in all ways while its archives are added, replaced, removed, rewritten in
# place and moved: contrib/bench/churn, for a minute.

# bats file_tags=all

bats_require_minimum_version 1.5.0

bench=$BATS_TEST_DIRNAME/../../contrib/bench

setup() {
	# udev makes it 0666; a machine without udev does not
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	T=$(mktemp -d /tmp/kpackfs-test-XXXXXX)
	export TMPDIR=$T PYTHONDONTWRITEBYTECODE=1
}

teardown() {
	cd /
	for m in "$T"/kpackfs-churn-*/mnt; do
		! mountpoint -q "$m" || fusermount3 -u "$m" || umount -l "$m"
	done
	rm -rf "$T"
}

churn() {
	"$bench/churn" --bin "$KPACK_BIN" "$@" >"$T/out" 2>&1 || {
		cat "$T/out"
		grep -hv 'comes first' "$T"/kpackfs-churn-*/log | tail -n 30
		return 1
	}
}

@test "a minute of churn" {
	# sanitizers take time, and memory that says nothing of ours
	case $KPACK_MODE in
	asan | tsan) churn --seed 7 --minutes 0.4 --slack 300 --least 12 --patience 300 ;;
	*) churn --seed 7 --minutes 1 --memory 160 --least 12 --patience 300 ;;
	esac
	grep -q 'nothing went wrong$' "$T/out"
	# everybody did something, and much was changed
	for who in readers mappers listers askers; do
		grep -Eq "$who [1-9][0-9]" "$T/out"
	done
	grep -Eq ' ([5-9]|[1-9][0-9]+) changes' "$T/out"
}

@test "churn's readers notice every wrong byte, size, name and generation" {
	cd "$T"
	PYTHONPATH=$bench /usr/bin/python3 - <<-'END'
	import os, generations, workers
	from generations import Wrong, content

	path, size = "share/churn/pack00/x.dat", 50000
	good, other = content(path, 3, size), content(path, 4, size)
	os.makedirs(os.path.dirname(path))

	def says(data):
	    with open(path, "wb") as f:
	        f.write(data)
	    held = workers.Held(".", path)
	    try:
	        held.read_all(4096)
	    except Wrong as e:
	        return str(e)
	    finally:
	        held.close()

	assert says(good) is None
	for bad in (good[:777] + b"!" + good[778:], good[:-1] + b"!"):
	    assert "differs at byte" in says(bad)
	assert "generation 3, then 4" in says(good[:20480] + other[20480:])
	assert "starts" in says(good[:-1])
	assert "starts" in says(good + b"x")
	assert "starts" in says(bytes(size))
	assert "starts" in says(content("share/churn/pack00/y.dat", 3, size))
	END
}
