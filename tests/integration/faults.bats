#!/usr/bin/env bats
# The behaviour of a mount with unreadable archives and without memory, threads or
# descriptors, and its memory use for entries larger than its cache.

bats_require_minimum_version 1.5.0

load mounting

# faulty: a program on stdin, with mounts whose calls can be made to fail.  Two archives have an entry
# of each way to be decoded: by the thread that reads, by a decoder, in passes, in chunks, plainly.
faulty() {
	{
		cat <<-'END'
		# sanitizers have memory of their own, which cannot be refused
		sanitized = os.environ["KPACK_MODE"] in ("asan", "tsan")
		keys = {"small": 9000, "large": 900000, "huge": 4000000, "chunks": 600000, "plain": 1300000}
		contents = {}
		for name in ("one", "two"):
		    a, p = mkarchive.Archive(group=name), mkarchive.Archive(scheme="none", group=name)
		    for i, (key, size) in enumerate(keys.items()):
		        data = contents[name, key] = name.encode() + noise(size, i)
		        (p if key == "plain" else a).add("%s/%s#0" % (name, key), "gfx1100", data, **({"chunk": 65536} if key == "chunks" else {}))
		    a.write("src/%s.kpack" % name)
		    p.write("src/%s-plain.kpack" % name)
		def path(name, key):
		    return "mnt/toc/%s/%s/gfx1100.hsaco" % (name, key)
		def read(file):
		    with open(file, "rb") as f:
		        return f.read()
		def good(name):
		    for key in keys:
		        assert read(path(name, key)) == contents[name, key], (name, key)
		def bad(name):
		    for key in keys:
		        fails(errno.EIO, read, path(name, key))
		def fault(what):
		    with open("faults", "r+" if os.path.exists("faults") else "w") as f:
		        f.write(what)
		def serve(*options, **how):
		    fault("...")
		    return Mount(*options, env={"FAULTS": os.path.abspath("faults"), "LD_PRELOAD": os.environ["PRELOADED"]}, **how)
		END
		cat
	} | PRELOADED=$(preloaded) mounts
}

@test "reads that fail, are short, are interrupted, meet the end; in the middle of a file, too" {
	faulty <<-'END'
	def forget():
	    for name in ("one", "two"):
	        for key in keys:
	            with open(path(name, key), "rb") as f:
	                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
	mount = serve("-o", "cache_size=1m")
	for kind in "si":
	    fault(kind)
	    good("one")
	    forget()
	fault("e")
	bad("one"), bad("one")
	assert mount.stats()["errors_by_reason"]["read"] >= 10
	lines = text(mount.log).splitlines()
	assert len(lines) == 5 and all(sum("one/%s#0 gfx1100: " % k in l for l in lines) == 1 for k in keys), lines
	fault("z")
	bad("two")
	assert text(mount.log).count("\n") == 10
	# it passes
	fault(".")
	good("one"), good("two")
	assert text(mount.log).count("\n") == 10
	for key in ("huge", "plain"):
	    forget()
	    with open(path("one", key), "rb") as f:
	        assert f.read(100000) == contents["one", key][:100000]
	        fault("e")
	        fails(errno.EIO, f.read)
	        fault(".")
	    assert read(path("one", key)) == contents["one", key]
	mount.unmount()
	END
}

@test "wrong hashes, in every way to decode; a window that does not fit says so" {
	mounts <<-'END'
	import random, zstandard
	a = mkarchive.Archive()
	for key, size in ("small", 9000), ("large", 900000), ("huge", 4000000), ("segments", 5000000), ("chunks", 600000):
	    a.add(key + "#0", "gfx1100", noise(size, 1), xxh3=bytes(16), **({"chunk": 65536} if key == "chunks" else {}))
	a.add("good#0", "gfx1100", b"good")
	data = random.Random(1).randbytes(1 << 20) * 20
	wide = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=1)
	a.add("wide#0", "gfx1100", data, stored=zstandard.ZstdCompressor(compression_params=wide).compress(data))
	a.write("src/a.kpack")
	mount = Mount("-o", "cache_size=1m")
	for _ in range(2):
	    for key in ("small", "large", "huge", "segments", "chunks", "wide"):
	        fails(errno.EIO, text, "mnt/toc/%s/gfx1100.hsaco" % key)
	assert text("mnt/toc/good/gfx1100.hsaco") == "good"
	log = text(mount.log)
	assert mount.stats()["errors_by_reason"]["hash"] >= 6 and log.count(" gfx1100: content does not match its xxh3\n") == 5, log
	assert log.count("wide#0 gfx1100: ") == 1 and "window of 20971520 bytes, cache_size allows 8388608\n" in log
	mount.unmount()
	mount = Mount("-o", "cache_size=20m")
	assert open("mnt/toc/wide/gfx1100.hsaco", "rb").read() == data
	mount.unmount()
	END
}

@test "nobody to hear the log; no memory for a while; no thread; no descriptor" {
	faulty <<-'END'
	import resource
	full = open("/dev/full", "w")
	for how in (dict(before=lambda: os.dup2(full.fileno(), 2)),
	            dict(before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))):
	    mount = Mount(**how)
	    with open("src/one.kpack", "r+b") as f:
	        whole = f.read()
	        f.truncate(100)
	        fails(errno.EIO, text, path("one", "large"))
	        good("two")
	        f.seek(0)
	        f.write(whole)
	    mount.unmount()
	    assert text(mount.log) == ""
	if not sanitized:
	    mount = serve("-o", "cache_size=1m")
	    fault(".m")
	    for key in keys:
	        try:
	            read(path("one", key))
	        except OSError:
	            pass
	    fault("..")
	    assert mount.stats()["errors_by_reason"]["memory"] >= 1
	    good("one")
	    mount.unmount()
	# no thread: at the start a failure, later not
	fault("..t")
	done = subprocess.run(["kpackfs", "-f", "src", "mnt"], stderr=subprocess.PIPE,
	                      env=dict(os.environ, FAULTS=os.path.abspath("faults"), LD_PRELOAD=os.environ["PRELOADED"]))
	assert done.returncode == 1 and b"thread" in done.stderr and not is_mounted(), done
	mount = serve()
	assert mount.server  # a thread answers
	fault("..t")
	good("one")
	fault("...")
	# what is open is served without another descriptor
	most = max(int(n) for n in os.listdir("/proc/%d/fd" % mount.server)) + 1
	resource.prlimit(mount.server, resource.RLIMIT_NOFILE, (most, most))
	good("two")
	mount.unmount()
	END
}

# Sanitizers take memory of their own.
# bats test_tags=slow
@test "memory has a bound, however large the files are" {
	mounts <<-'END'
	import mmap, random
	from concurrent.futures import ThreadPoolExecutor
	block = random.Random(1).randbytes(1 << 20)
	data = b"".join(block[i * 3001:] + block[:i * 3001] for i in range(80))
	archive("src/a.kpack", {"large#0": data}, level=1)
	archive("src/b.kpack", {"plain#0": data}, scheme="none")
	def peak(mount):
	    return int(text("/proc/%d/status" % mount.server).split("VmHWM:")[1].split()[0])
	for cache, readers in (16, 3), (0, 1):
	    mount = Mount("-o", "cache_size=%dm,threads=2,max_threads=4" % cache, env={"MALLOC_ARENA_MAX": "2"})
	    before = peak(mount)
	    for key in ("large", "plain"):
	        def read(_):
	            with open("mnt/toc/%s/gfx1100.hsaco" % key, "rb") as f:
	                return all(f.read(1 << 20) == data[at:at + (1 << 20)] for at in range(0, len(data), 1 << 20))
	        with ThreadPoolExecutor(readers) as pool:
	            assert all(pool.map(read, range(readers)))
	        with open("mnt/toc/%s/gfx1100.hsaco" % key, "rb") as f:
	            rng = random.Random(3)
	            with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as have:
	                for at in [rng.randrange(len(data)) for _ in range(10)]:
	                    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
	                    assert have[at:at + 9000] == data[at:at + 9000]
	    assert peak(mount) - before <= (cache + 32) << 10, (cache, before, peak(mount))
	    mount.unmount()
	END
}
