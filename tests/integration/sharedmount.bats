#!/usr/bin/env bats
# A mount of archives of version 2: parts of entries at random, several readers, damage.

load mounting.bash

make_archives() {
	mkdir -p tree/lib/rocblas/library
	$python - tree/lib/rocblas/library <<-'EOF'
		import random, sys
		r = random.Random(5)
		parts = [r.randbytes(5000) * 3 + r.randbytes(90_000) for _ in range(30)]
		for name in "ABCDEF":
		    with open("%s/TensileLibrary_%s_gfx90a.co" % (sys.argv[1], name), "wb") as f:
		        f.write(b"".join(r.sample(parts, 25)))
		with open("%s/TensileLibrary_small_gfx90a.co" % sys.argv[1], "wb") as f:
		    f.write(parts[0][:70_000])
	EOF
	kpack pack -q --archives-only --group g --scheme zstd-shared tree out
	mv out/.kpack/* src
}

# bats test_tags=threads
@test "zstd-shared: a mount shows every byte, in any order and to several readers" {
	make_archives
	m -o cache_size=24m
	diff -r tree/lib mnt/lib
	echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || :
	for seed in 1 2 3 4; do
		py "$seed" <<-'EOF' &
			import os, random, sys
			r = random.Random(int(sys.argv[1]))
			names = sorted(os.listdir("mnt/lib/rocblas/library"))
			for _ in range(300):
			    name = "lib/rocblas/library/" + r.choice(names)
			    with open("mnt/" + name, "rb") as a, open("tree/" + name, "rb") as b:
			        at = r.randrange(os.path.getsize("tree/" + name))
			        os.posix_fadvise(a.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
			        a.seek(at), b.seek(at)
			        n = r.choice((1, 4096, 200_000, 1_500_000))
			        assert a.read(n) == b.read(n), (name, at, n)
		EOF
		pids+=($!)
	done
	for p in "${pids[@]}"; do
		wait "$p"
	done
	grep -q '"errors": *0' mnt/.kpackfs/stats
	unmount
}

@test "zstd-shared: damage is EIO for the bytes of the block, and other bytes stay readable" {
	make_archives
	# the last byte of the last block is of its checksum
	PYTHONPATH=$BATS_TEST_DIRNAME $python - src/*.kpack <<-'EOF'
		import sys
		from readkpack import Archive
		layout = Archive(sys.argv[1]).top["zstd_shared"]
		with open(sys.argv[1], "r+b") as f:
		    f.seek(layout["offset"] + layout["size"] - 1)
		    byte = f.read(1)[0]
		    f.seek(-1, 1)
		    f.write(bytes([byte ^ 1]))
	EOF
	m
	PYTHONPATH=$BATS_TEST_DIRNAME $python - src/*.kpack <<-'EOF'
		import errno, sys
		from readkpack import Archive
		a = Archive(sys.argv[1], check=False)
		s = a.shared
		bad = (len(s.blocks) - 1) * s.block_size
		def read(f, at, n):
		    f.seek(at)
		    return f.read(n)
		good = failed = 0
		for key, _, e in a.entries():
		    at = 0
		    with open("mnt/" + key, "rb", buffering=0) as f, open("tree/" + key, "rb") as want:
		        for begin, n in s.objects[e["ordinal"]]:
		            # a piece may have bytes of other extents, too
		            if begin + n > bad:
		                try:
		                    read(f, max(at, at + bad - begin), 1)
		                    raise SystemExit("%s: no error at %d" % (key, at))
		                except OSError as err:
		                    assert err.errno == errno.EIO
		                failed += 1
		            at += n
		        if all(b + n <= bad for b, n in s.objects[e["ordinal"]]):
		            assert f.read() == want.read()
		            good += 1
		assert good and failed, (good, failed)
	EOF
	unmount
}
