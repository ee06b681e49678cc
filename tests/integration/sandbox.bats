#!/usr/bin/env bats
# The process that answers requests can serve files, and nothing else.  What the sandbox refuses is in
# tests/unit/fs/sandbox.

bats_require_minimum_version 1.5.0

load mounting

# boxed: a program on stdin, with an archive, and what /proc says of each thread of a server, each answer once
boxed() {
	{
		cat <<-'END'
		entries = {"a#0": "hello", "b#0": noise(9000001, 2), "c": noise(1000001, 3)}
		archive("src/a.kpack", entries)
		def field(mount, name):
		    return {line.split(":\t")[1] for t in os.listdir("/proc/%d/task" % mount.server)
		            for line in text("/proc/%d/task/%s/status" % (mount.server, t)).splitlines() if line.startswith(name + ":")}
		def confined(mount):
		    for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
		        assert field(mount, name) == {"0" * 16}, name
		    assert field(mount, "NoNewPrivs") == {"1"} and field(mount, "Seccomp") == {"2"}
		def good(mount):
		    assert text("mnt/toc/a/gfx1100.hsaco") == "hello"
		    for path, name in (("toc/b/gfx1100.hsaco", "b#0"), ("c", "c")):
		        assert open("mnt/" + path, "rb").read() == entries[name]
		    for name in os.listdir("mnt/.kpackfs"):
		        text("mnt/.kpackfs/" + name)
		END
		cat
	} | mounts
}

# plain: the thread sanitizer has a thread of its own, from before
# bats test_tags=plain
@test "the server has no privileges, and can gain none; system calls of all its threads are filtered" {
	boxed <<-'END'
	mount = Mount()
	good(mount)
	confined(mount)
	assert field(mount, "CapBnd") == {"0" * 16} or not ROOT
	assert len(os.listdir("/proc/%d/task" % mount.server)) > 2
	# landlock_create_ruleset: has the kernel Landlock?
	landlock = ["landlock"] * (libc.syscall(444, None, ctypes.c_size_t(0), 1) > 0)
	for part in ["capabilities", "no_new_privs", "seccomp"] + landlock:
	    assert 'sandbox_part{part="%s"} 1\n' % part in text("mnt/.kpackfs/metrics"), part
	# archives that come later are read inside
	archive("src/b.kpack", {"later": "later"})
	mount.barrier()
	assert text("mnt/later") == "later"
	confined(mount)
	mount.unmount()
	# with clone_fd it opens the device for its threads
	mount = Mount("-o", "clone_fd")
	good(mount)
	confined(mount)
	fds = "/proc/%d/fd/" % mount.server
	assert [os.readlink(fds + fd) for fd in os.listdir(fds)].count("/dev/fuse") > 1
	mount.unmount()
	# no_sandbox leaves everything as it was
	mount = Mount("-o", "no_sandbox")
	own = dict(line.split(":\t") for line in text("/proc/self/status").splitlines() if "\t" in line)
	for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp"):
	    assert field(mount, name) == {own[name]}, name
	assert 'sandbox_part{part="seccomp"} 1' not in text("mnt/.kpackfs/metrics")
	mount.unmount()
	END
}

@test "a server that SIGSYS ends takes the mount with it" {
	boxed <<-'END'
	mount = Mount()
	good(mount)
	mount.signal(signal.SIGSYS, mount.server)
	assert mount.wait() == 1 and not is_mounted() and "died of signal 31" in text(mount.log)
	END
}

# bats test_tags=plain
@test "an ordinary user's server is in it too" {
	must_be_root
	boxed <<-'END'
	os.chown("mnt", 65534, 65534)
	os.chmod("src", 0o755)
	def user():
	    os.setgroups([])
	    os.setgid(65534)
	    os.setuid(65534)
	mount = Mount(before=user)
	mount.server = as_user(65534, lambda: mount.stats()["pid"])
	assert field(mount, "Uid") == {"\t".join(["65534"] * 4)}
	confined(mount)
	assert as_user(65534, lambda: text("mnt/toc/a/gfx1100.hsaco")) == "hello"
	assert as_user(65534, lambda: subprocess.run(["fusermount3", "-u", "mnt"]).returncode) == 0
	assert mount.wait() == 0
	END
}
