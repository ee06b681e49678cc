#!/usr/bin/env bats
# A mount whose sources change in ways that a mount notices by itself, and whose processes get signals and
# are killed.  Changes of the archives in a source are in tests/model.

bats_require_minimum_version 1.5.0

load mounting

@test "links on the way, directories and archives that are exchanged are noticed" {
	mounts <<-'END'
	def shows(path, what):
	    return lambda: (text("mnt/" + path) if os.path.exists("mnt/" + path) else None) == what
	for version in ("6", "7"):
	    os.makedirs("opt/rocm-%s/lib/kpack" % version)
	    archive("opt/rocm-%s/lib/kpack/a.kpack" % version, {"a": version})
	os.symlink("rocm-6", "opt/rocm")
	os.makedirs("store")
	archive("store/1.kpack", {"link": "one"})
	archive("store/2.kpack", {"link": "two"})
	os.symlink("../store/1.kpack", "src/link.kpack")
	os.makedirs("up/dir")
	archive("up/dir/a.kpack", {"dir": "one"})
	archive("file", {"file": "one"})
	mount = Mount("-v", sources=["opt/rocm/lib/../lib/./kpack", "src", "up/dir", "file"])
	assert shows("a", "6")() and shows("link", "one")() and shows("dir", "one")() and shows("file", "one")()
	def change(move, path, what):
	    move()
	    mount.until(shows(path, what))
	def link(to, name):
	    os.symlink(to, "new")
	    os.rename("new", name)
	change(lambda: link("rocm-7", "opt/rocm"), "a", "7")
	# what is below the new one is watched
	change(lambda: archive("opt/rocm-7/lib/kpack/b.kpack", {"b": "b"}), "b", "b")
	change(lambda: archive("store/1.kpack", {"link": "uno"}), "link", "uno")
	change(lambda: link("../store/2.kpack", "src/link.kpack"), "link", "two")
	change(lambda: archive("file", {"file": "two"}), "file", "two")
	change(lambda: os.unlink("file"), "file", None)
	os.mkdir("new")
	archive("new/a.kpack", {"dir": "two"})
	os.rename("up/dir", "old")
	change(lambda: os.rename("new", "up/dir"), "dir", "two")
	change(lambda: os.rename("up", "gone"), "dir", None)
	assert "/up/dir\trefused: cannot look at it: No such file" in text("mnt/.kpackfs/archives")
	os.makedirs("other/dir")
	archive("other/dir/c.kpack", {"dir": "three"})
	change(lambda: os.rename("other", "up"), "dir", "three")
	# another reason, as a link to itself
	os.unlink("up/dir/c.kpack")
	os.rmdir("up/dir")
	os.symlink("dir", "up/dir")
	mount.until(lambda: "symbolic links" in text("mnt/.kpackfs/archives"))
	if ROOT:
	    os.mkdir("over")
	    archive("over/a.kpack", {"over": "over"})
	    change(lambda: subprocess.run(["mount", "--bind", "over", "src"], check=True), "over", "over")
	    # lazily: its archive is open
	    change(lambda: subprocess.run(["umount", "-l", "src"], check=True), "over", None)
	    assert shows("link", "two")()
	mount.unmount()
	END
}

@test "a storm of changes is one reload; other names are no event; SIGHUP tries again what was refused" {
	mounts <<-'END'
	open("src/bad.kpack", "w").write("nonsense")
	archive("src/a.kpack", {"same": b"one", "../out": b"x"})
	archive("src/b.kpack", {"same": b"two"})
	mount = Mount("-v")
	archive("new", {"b": b"bbb"})
	# it hears of all at once; what is written to names that do not end in .kpack is no change
	mount.signal(signal.SIGSTOP)
	os.waitpid(mount.supervisor, os.WUNTRACED)
	for i in range(1000):
	    name = "src/x%d" % i if i % 2 else "src/x%d.kpack" % i
	    os.link("new", name)
	    os.unlink(name)
	os.rename("new", "src/0.kpack")
	mount.signal(signal.SIGCONT)
	mount.until(lambda: os.path.exists("mnt/b"))
	assert mount.stats()["reloads"] == 1
	log = text(mount.log)
	assert log.count("bad.kpack: ") == 1 and log.count("kpackfs: same: ") == 1 and log.count("key is no path") == 1, log
	for pid in (mount.supervisor, mount.server):
	    before = mount.stats()["reloads"]
	    mount.signal(signal.SIGHUP, pid)
	    mount.hear("RELOADING=1")
	    assert "READY=1" in mount.hear("STATUS=")
	    mount.barrier()
	    assert mount.stats()["reloads"] > before
	# a conflict is logged once while it stays, and that with another archive too
	archive("src/c.kpack", {"same": b"three"})
	mount.barrier()
	log = text(mount.log)
	assert log.count("bad.kpack: ") == 3 and log.count("kpackfs: same: ") == 2 and log.count("key is no path") == 1, log
	mount.unmount()
	END
}

@test "an archive that is copied in pieces appears when it is whole; one of other attributes is served on" {
	must_be_root
	mounts <<-'END'
	data = noise(3000000, 5)
	archive("src/a.kpack", {"a": b"one"})
	archive("big", {"big": data})
	whole = open("big", "rb").read()
	mount = Mount()
	for part in range(4):
	    with open("src/big.kpack", "ab") as f:
	        f.write(whole[part * len(whole) // 4:(part + 1) * len(whole) // 4])
	    mount.barrier()
	    assert ("big.kpack\t" in text("mnt/.kpackfs/archives")) and os.path.exists("mnt/big") == (part == 3)
	    assert ("refused:" in text("mnt/.kpackfs/archives")) == (part < 3) and text("mnt/a") == "one"
	assert open("mnt/big", "rb").read() == data
	mount.unmount()
	# what cannot be opened again for its new attributes
	os.unlink("src/big.kpack")
	for path in ("src", "mnt", "src/a.kpack"):
	    os.chown(path, 65534, 65534)
	def user():
	    os.setgroups([])
	    os.setgid(65534)
	    os.setuid(65534)
	mount = Mount(before=user)
	def seen(what):
	    return as_user(65534, lambda: mount.barrier() and what())
	os.chmod("src/a.kpack", 0)
	assert seen(lambda: text("mnt/a")) == "one"
	assert "a.kpack: " in text(mount.log) and "Permission denied" in text(mount.log)
	archive("src/b.kpack", {"b": b"two"})
	assert seen(lambda: text("mnt/a") + text("mnt/b")) == "onetwo"
	os.chmod("src/a.kpack", 0o400)
	assert seen(lambda: (text("mnt/a"), os.stat("mnt/a").st_mode & 0o777)) == ("one", 0o400)
	mount.signal(signal.SIGTERM)
	mount.wait()
	END
}

@test "more archives than descriptors: what fits is shown, the rest when it does" {
	mounts <<-'END'
	import glob, resource
	archive("a", {"a": b"one"})
	for i in range(10, 100):
	    os.link("a", "src/%d.kpack" % i)
	os.mkdir("few")
	archive("few/z.kpack", {"z": b"last"})
	# started so, a program may not raise it
	mount = Mount(sources=["src", "few"], before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
	assert text("mnt/a") == "one" and not os.path.exists("mnt/z")
	assert "z.kpack" in [l for l in text("mnt/.kpackfs/archives").split("\n") if "refused: too many open files" in l][-1]
	assert mount.stats()["archives"] >= 50
	for path in glob.glob("src/[2-9]*.kpack"):
	    os.unlink(path)
	mount.barrier()
	assert text("mnt/z") == "last"
	mount.unmount()
	END
}

@test "without inotify the sources are polled" {
	must_be_root
	mounts <<-'END'
	# FUSE is one of the file systems that report no changes
	archive("src/a.kpack", {"x.kpack": b"x"})
	mount = Mount()
	os.mkdir("mnt2")
	slow = Mount(sources=["mnt", "src"], at="mnt2")
	assert "looked at every 10 seconds" in text(slow.log) and "-o poll=" in text(slow.log)
	slow.unmount()
	quick = Mount("-o", "poll=1", sources=["mnt", "src"], at="mnt2")
	assert "poll=" not in text(quick.log) and "/mnt/x.kpack" in text("mnt2/.kpackfs/archives")
	archive("src/a.kpack", {"y": b"y"})
	quick.until(lambda: "refused" not in text("mnt2/.kpackfs/archives"))
	quick.unmount()
	mount.unmount()
	END
}

@test "what was on a server stays while the server is gone, and goes when it is not there any more" {
	mounts <<-'END'
	def lead(to):
	    os.symlink(to, "new")
	    os.rename("new", "link")
	    mount.barrier()
	def well():
	    return text("mnt/.kpackfs/status").startswith("healthy")
	archive("src/a.kpack", {"a": b"one", "later": b"two"})
	os.symlink("src", "link")
	# the kernel has asked this mount for nothing yet when its server goes: ENOTCONN
	os.mkdir("net")
	archive("net.kpack", {"src/x": b""})
	net = Mount(sources=["net.kpack"], at="net")
	os.kill(net.supervisor, signal.SIGSTOP)  # it would unmount
	children = text("/proc/%d/task/%d/children" % (net.supervisor, net.supervisor)).split()
	for pid in (*map(int, children), net.supervisor):
	    os.kill(pid, signal.SIGKILL)
	net.wait()
	os.waitpid(int(children[0]), 0)
	mount = Mount(sources=["link"])
	assert text("mnt/a") == "one" and well()
	for _ in range(2):
	    lead("net/src")
	    assert text("mnt/a") == "one" and text("mnt/later") == "two" and not well()
	served, refused = text("mnt/.kpackfs/archives").splitlines()
	assert "link/a.kpack" in served and "refused: " in refused and "not connected" in refused, refused
	assert text(mount.log).count("seen there stay") == 1, text(mount.log)
	lead("src")
	assert text("mnt/later") == "two" and well()
	# archives, too, that cannot be looked at in a directory that can be listed
	os.symlink("../net/src", "src/new")
	os.rename("src/new", "src/a.kpack")
	mount.barrier()
	assert text("mnt/a") == "one" and not well()
	lead("nothing")
	assert not os.path.exists("mnt/a")
	mount.unmount()
	END
}

@test "an archive that its server does not let read comes back with the server, and is logged once" {
	PRELOADED=$(preloaded) mounts <<-'END'
	def fault(what):
	    with open("faults", "r+" if os.path.exists("faults") else "w") as f:
	        f.write(what)
	def look():
	    mount.barrier()
	    stats = mount.stats()
	    return stats["edition"], stats["reloads"], text(mount.log)
	fault(".")
	archive("src/a.kpack", {"a": b"one"})
	with open("src/bad.kpack", "w") as f:
	    f.write("bad")
	mount = Mount("-v", "-o", "poll=1", env={"FAULTS": os.path.abspath("faults"), "LD_PRELOAD": os.environ["PRELOADED"]})
	assert text("mnt/a") == "one"
	fault("e")
	archive("src/b.kpack", {"b": b"two"})
	seen = look()
	assert "b.kpack: read of " in seen[2] and "refused: read of " in text("mnt/.kpackfs/archives")
	# a refusal that is as it was is neither logged nor shown again
	assert look() == look() == seen
	# it comes back with a look that somebody asks for
	fault(".")
	assert look()[1] == seen[1] + 1 and text("mnt/b") == "two"
	fault("e")
	archive("src/c.kpack", {"c": b"three"})
	mount.barrier()
	# another change is shown meanwhile
	os.unlink("src/bad.kpack")
	mount.barrier()
	assert "bad" not in text("mnt/.kpackfs/archives")
	assert text("mnt/a") + text("mnt/b") == "onetwo" and not os.path.exists("mnt/c")
	# and by itself
	fault(".")
	mount.until(lambda: os.path.exists("mnt/c"))
	assert text("mnt/c") == "three" and text("mnt/.kpackfs/status").startswith("healthy")
	assert all(look()[2].count(name + ".kpack: ") == 1 for name in ("b", "c", "bad")), text(mount.log)
	mount.unmount()
	END
}

@test "SIGTERM unmounts where it was moved and bound" {
	must_be_root
	mounts <<-'END'
	archive("src/a.kpack", {"a": b"one", "x/b": b"two"})
	os.mkdir("mnt2"), os.mkdir("mnt3")
	mount = Mount()
	for arguments in (["--bind", "mnt", "mnt2"], ["--bind", "mnt2/x", "mnt3"]):
	    subprocess.run(["mount", *arguments], check=True)
	mount.signal(signal.SIGTERM)
	assert mount.wait() == 0 and not any(map(is_mounted, ("mnt", "mnt2", "mnt3")))
	END
}

# No manager hears these mounts: it would be told, and the supervisor would leave the server alone.
both_get() { # LATER
	PRELOADED=$(preloaded) mounts "$1" <<-'END'
	archive("src/a.kpack", {"a": b"one"})
	with open("faults", "w") as f:
	    f.write("....")
	os.environ.update(FAULTS=os.path.abspath("faults"), LD_PRELOAD=os.environ["PRELOADED"])
	start("src", "mnt")
	del os.environ["LD_PRELOAD"]
	server = json.load(open("mnt/.kpackfs/stats"))["pid"]
	supervisor = int(text("/proc/%d/stat" % server).rpartition(")")[2].split()[1])
	ended = os.pidfd_open(server)
	def alive():
	    return not select.select([ended], [], [], 0)[0]
	with open("mnt/a") as f:
	    # the supervisor has both when it looks: its own, and what its server was told
	    os.kill(supervisor, signal.SIGSTOP)
	    os.waitpid(supervisor, os.WUNTRACED)
	    os.kill(supervisor, signal.SIGTERM)
	    os.kill(server, signal.SIGTERM)
	    assert text("mnt/.kpackfs/status")  # the server works on
	    os.kill(supervisor, signal.SIGCONT)
	    until_unmounted()
	    assert alive() and f.read() == "one"
	    if sys.argv[1] == "later":  # it counts half a second after the first
	        with open("faults", "r+") as f:  # it is mapped, and must not become empty
	            f.write("...l")
	        os.kill(supervisor, signal.SIGTERM)
	        os.waitpid(supervisor, 0)
	os.waitpid(supervisor, 0) if sys.argv[1] != "later" else None
	assert not alive()
	END
}

@test "signals to both processes at once are one" { both_get once; }

@test "a later signal ends what is in use" { both_get later; }

@test "one of the two processes is killed" {
	mounts <<-'END'
	archive("src/a.kpack", {"a": b"one"})
	def death(mount):
	    """The supervisor is killed, and the server says that it knows."""
	    mount.server
	    mount.signal(signal.SIGKILL)
	    mount.wait()
	    mount.says("supervisor has gone")
	# there is no sandbox: SIGTERM unmounts, lazily what is in use, and not what is below
	os.mkfifo("log")
	if ROOT:
	    subprocess.run(["mount", "-t", "tmpfs", "none", "mnt"], check=True)
	mount = Mount("-o", "no_sandbox", log="log")
	death(mount)
	with open("mnt/a"):
	    os.kill(mount.server, signal.SIGTERM)
	    os.waitpid(mount.server, 0)
	if ROOT:
	    subprocess.run(["umount", "mnt"], check=True)
	assert not is_mounted()
	# in the sandbox it ends with the mount
	mount = Mount(log="log")
	death(mount)
	subprocess.run(["fusermount3", "-u", "mnt"], check=True)
	os.waitpid(mount.server, 0)
	# the server is killed, the mount taken away: another one that has its device now stays
	os.mkdir("mnt2")
	mount = Mount()
	mount.server
	mount.signal(signal.SIGSTOP)
	os.waitpid(mount.supervisor, os.WUNTRACED)
	mount.signal(signal.SIGKILL, mount.server)
	subprocess.run(["fusermount3", "-uz", "mnt"], check=True)
	start("src", "mnt2")
	mount.signal(signal.SIGCONT)
	assert mount.wait() == 1
	assert text("mnt2/a") == "one"
	stop("mnt2")
	END
}

@test "the parent that waits for the daemon ends: no mount stays" {
	mounts <<-'END'
	import fcntl
	archive("src/a.kpack", {"a": b"one"})
	# what the daemon prints about these is more than the pipe takes
	for i in range(60):
	    open("src/%s%d.kpack" % ("bad" * 60, i), "w").write("nonsense")
	r, w = os.pipe()
	fcntl.fcntl(w, 1031, 4096)  # F_SETPIPE_SZ
	parent = subprocess.Popen(["kpackfs", whole("src"), whole("mnt")], stderr=w)
	os.close(w)
	os.read(r, 1)
	parent.kill()
	parent.wait()
	while os.read(r, 65536):
	    pass
	with contextlib.suppress(ChildProcessError):
	    while True:
	        os.wait()
	assert not is_mounted()
	END
}

@test "idle: unmounted when nothing was used for a while" {
	mounts <<-'END'
	archive("src/a.kpack", {"a": b"one"})
	mount = Mount("-v", "-o", "idle_timeout=1")
	mount.hear("STOPPING=1")
	assert mount.wait() == 0 and not is_mounted() and "idle" in text(mount.log)
	END
}

@test "preload reads what matches, at once and after a reload" {
	mounts <<-'END'
	os.mkfifo("log")
	archive("src/a.kpack", {"lib/big.dat": noise(3000000, 1)})
	archive("src/b.kpack", {"other/big.dat": noise(3000000, 2)})
	# that no file matches the last is said when all others are read
	mount = Mount("-o", "preload=l*/*.dat,preload=nothing*", log="log")
	mount.says("nothing*: preload: no file matches")
	stats = mount.stats()
	assert 3000000 <= stats["bytes_served"] < 4000000, stats
	archive("src/c.kpack", {"lib/new.dat": noise(3000000, 3)})
	mount.says("nothing*: preload: no file matches")
	assert 6000000 <= mount.stats()["bytes_served"] < 7000000
	# it does not hold the mount
	mount.signal(signal.SIGTERM)
	assert mount.wait() == 0
	END
}

@test "what the processes hold open" {
	mounts <<-'END'
	archive("src/a.kpack", {"a": b"one"})
	mount = Mount()
	archive("src/b.kpack", {"b": b"two"})
	mount.barrier()
	def held(pid, what):
	    links = [os.readlink(e.path) for e in os.scandir("/proc/%d/fd" % pid)]
	    return sum(what in l for l in links)
	assert held(mount.supervisor, ".kpack") == 0 and held(mount.server, ".kpack") == 2
	# to know whether the mount is still its own; closed as soon as the server ends
	assert held(mount.supervisor, "/dev/fuse") == 1
	assert held(mount.server, "inotify") + held(mount.server, "mountinfo") == 0
	mount.unmount()
	assert text(mount.log) == ""
	END
}
