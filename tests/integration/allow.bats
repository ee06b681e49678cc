#!/usr/bin/env bats
# A mount that many users share: what each sees is what is in the archives that the user may
# read, whatever another user made the kernel keep.

bats_require_minimum_version 1.5.0

load mounting

setup() {
	must_be_root
	begin_test
	chmod 0755 src
}

# shared: a program on stdin that may use these users, each a function that calls another as this user.
# A member may read archives of the group 40100; alike has the group alone.
shared() {
	{
		cat <<-'END'
		def alice(what): return as_user(40001, what)
		def bob(what): return as_user(40002, what)
		def member(what): return as_user(40002, what, groups=[40009, 40100, 40110])
		def alike(what): return as_user(40003, what, gid=40100)
		def root(what): return as_user(0, what)
		def put(name, entries, mode=0o644, owner=(0, 0)):
		    archive("src/%s.kpack" % name, entries, mode, owner)
		def secret(name, entries, user=40001): put(name, entries, 0o600, (user, user))
		def team(name, entries): put(name, entries, 0o640, (0, 40100))
		def three():
		    put("public", {"lib/p": "public", "both": "same"})
		    secret("secret", {"lib/s": "secret", "deep/er/s": "sss"})
		    team("team", {"lib/t": "team", "team/only": "tt"})
		def shared(*more): return Mount("-o", ",".join(("allow_other",) + more))
		def paths(toc=False):
		    """All that is found, with its attributes."""
		    return [p for p in find() if os.lstat("mnt/" + p) and (toc or not p.startswith("toc"))]
		everything = ["both", "deep", "deep/er", "deep/er/s", "lib", "lib/p", "lib/s", "lib/t", "team", "team/only"]
		def sees(user, *names):
		    assert user(paths) == sorted(names), (user, user(paths))
		    # and nothing else has any attribute
		    gone = [p for p in everything if p not in names]
		    assert user(lambda: [p for p in gone if os.path.lexists("mnt/" + p)]) == [], user
		def all_see():
		    sees(bob, "both", "lib", "lib/p")
		    sees(alice, "both", "deep", "deep/er", "deep/er/s", "lib", "lib/p", "lib/s")
		    sees(member, "both", "lib", "lib/p", "lib/t", "team", "team/only")
		    sees(alike, "both", "lib", "lib/p", "lib/t", "team", "team/only")
		    sees(root, *everything)
		def every_way(path):
		    """What a program may do with a name, and what comes of it."""
		    path = "mnt/" + path
		    said = []
		    for way in (os.stat, os.lstat, lambda p: os.open(p, os.O_RDONLY), lambda p: os.open(p, os.O_PATH), text,
		                os.readlink, lambda p: os.getxattr(p, "user.kpack.key"), os.listxattr, os.statvfs,
		                lambda p: os.chmod(p, 0o777), os.unlink, os.listdir, lambda p: os.stat(p + "/x")):
		        try:
		            way(path)
		            said.append(0)
		        except OSError as e:
		            said.append(e.errno)
		    return said
		END
		cat
	} | mounts
}

@test "names, sizes and attributes are for users who may read the archive, whatever the kernel has kept" {
	shared <<-'END'
	three()
	mount = shared("xattr")
	all_see()
	# names below toc name the same entries
	assert [len([p for p in u(lambda: paths(True)) if p.startswith("toc") and "." in p]) for u in (bob, alice, root)] == [2, 4, 6]
	for p in ("lib/s", "deep", "deep/er", "deep/er/s", "toc/lib/s", "toc/lib/s/generic.dat"):
	    nothing = bob(lambda: every_way(p.replace("deep", "gone")[:-1] + "nowhere" if p[-1] == "s" else p.replace("e", "x")))
	    alice(lambda: every_way(p)), root(lambda: every_way(p))
	    assert bob(lambda: every_way(p)) == member(lambda: every_way(p)) == nothing, (p, bob(lambda: every_way(p)), nothing)
	# and the reverse: what is not there for one is there for the other
	def read(path):
	    return lambda: text("mnt/" + path)
	for _ in range(2):
	    assert alice(read("lib/s")) == "secret" and bob(read("lib/t")) == errno.ENOENT
	    assert member(read("lib/t")) == alike(read("lib/t")) == "team"
	all_see()
	# readers at once each get their own
	want = {u: u(paths) for u in (bob, alice, member, root)}
	pids = []
	for user in list(want) * 2:
	    pids.append(os.fork())
	    if not pids[-1]:
	        os._exit(any(user(paths) != want[user] for _ in range(10)))
	assert [os.waitpid(p, 0)[1] for p in pids] == [0] * 8
	# without a supervisor, supplementary groups do not count
	mount.server
	mount.signal(signal.SIGKILL)
	mount.wait()
	sees(member, "both", "lib", "lib/p")
	sees(alike, "both", "lib", "lib/p", "lib/t", "team", "team/only")
	sees(bob, "both", "lib", "lib/p")
	subprocess.run(["umount", "mnt"], check=True)
	os.waitpid(mount.server, 0)
	END
}

@test "a directory is one of the archives that are in it; the mount point shows nothing of private ones" {
	shared <<-'END'
	three()
	os.utime("src/secret.kpack", (1, 1))
	mount = shared()
	def look(path):
	    st = os.stat("mnt/" + path)
	    return st.st_uid, st.st_gid, st.st_mode & 0o777, st.st_nlink
	# one archive's: its owner and bits
	assert look("deep")[:3] == look("deep/er")[:3] == (40001, 40001, 0o500) and look("team")[:3] == (0, 40100, 0o550)
	assert os.stat("mnt/deep").st_mtime == 1
	# of several: it has nothing of any of them
	assert look(".") == look("lib") == (0, 0, 0o555, 1)
	before = [os.stat("mnt/" + p).st_mtime for p in (".", "lib")]
	os.utime("src/secret.kpack", (2, 2))
	mount.barrier()
	assert os.stat("mnt/deep").st_mtime == 2 and [os.stat("mnt/" + p).st_mtime for p in (".", "lib")] == before
	# the file system's size
	def size():
	    v = os.statvfs("mnt")
	    return v.f_blocks, v.f_files, os.stat("mnt").st_nlink, os.stat("mnt").st_size
	bobs = bob(size)
	assert alike(size) != bobs
	secret("secret", {"lib/s": "secret", "deep/er/s": "sss", "more": "m"})
	mount.barrier()
	assert os.path.exists("mnt/more") and bob(size) == bobs
	for name in ("public", "team"):
	    os.unlink("src/%s.kpack" % name)
	mount.barrier()
	bobs = bob(size)
	assert bob(lambda: os.listdir("mnt")) == errno.EACCES and alice(size) != bobs
	secret("secret", {"lib/a": "a", "lib/b": "b", "another/c": "c"})
	mount.barrier()
	assert alice(lambda: text("mnt/another/c")) == "c" and bob(size) == bobs
	mount.unmount()
	END
}

@test "of several archives with a name, each user sees the first that the user may read" {
	shared <<-'END'
	secret("a", {"x": "alices", "y": "one", "d/f": "dir"})
	secret("b", {"x": "bobs", "y/z": "two", "d": "file"}, 40002)
	put("c", {"x": "everyones"})
	mount = shared()
	def read(*names):
	    return lambda: "".join(text("mnt/" + n) for n in names)
	for _ in range(2):
	    assert alice(read("x", "y", "d/f")) == "alicesonedir" and bob(read("x", "y/z", "d")) == "bobstwofile"
	    assert alike(read("x")) == "everyones" and alike(paths) == ["x"] and text("mnt/x") == "alices"
	# for a user who sees all, the rest is not shown, and is listed as before
	assert read("y/z", "d/f")() == "twodir"
	conflicts = text("mnt/.kpackfs/conflicts").split("\n")
	for name in ("b", "c"):
	    assert any(l.startswith("x: ") and "a.kpack comes first; other content of " in l and name + ".kpack " in l for l in conflicts)
	assert len([r for r in rows("mnt/.kpackfs/entries.jsonl") if r["path"] == "x"]) == 1
	subprocess.run(["sha256sum", "--quiet", "-c", ".kpackfs/checksums"], cwd="mnt", check=True)
	mount.unmount()
	END
}

@test "the hash that an archive states gives nobody what is in another" {
	shared <<-'END'
	# bob's archives promise what alice's has
	secret_bytes, junk = b"s" * 40000, b"j" * 40000
	def lie(name, path):
	    b = mkarchive.Archive(scheme="none")
	    b.add("k#0", "gfx1100", junk, path=path, xxh3=mkarchive.xxh3(secret_bytes))
	    b.write("lie")
	    os.chown("lie", 40002, 40002)
	    os.chmod("lie", 0o600)
	    os.rename("lie", "src/%s.kpack" % name)
	def truth():
	    secret("b", {"secret": secret_bytes}, 40001)
	# The bytes do not match their hash, so there is nothing to read, not even what the kernel has.
	def nothing(path):
	    def read():
	        with open("mnt/" + path, "rb") as f:
	            return len(f.read(10))
	    return bob(read) == errno.EIO
	truth()
	lie("a", "copy")
	mount = shared()
	assert alice(lambda: text("mnt/secret")[:2]) == "ss" and nothing("copy")
	assert os.stat("mnt/secret").st_ino != os.stat("mnt/copy").st_ino and os.stat("mnt/secret").st_nlink == 2
	# even when alice's is replaced by it, while its pages are kept
	with open("mnt/secret", "rb") as held:
	    for path in ("copy", "secret"):
	        truth()
	        mount.barrier()
	        text("mnt/secret")
	        lie("b", path)
	        mount.barrier()
	        assert os.path.exists("mnt/secret") == (path == "secret") and nothing(path)
	    assert os.stat("mnt/secret").st_uid == 40002
	    assert held.read(2) == b"ss"
	mount.unmount()
	END
}

@test "other permissions of archives: what the kernel kept when all could see it is gone" {
	shared <<-'END'
	three()
	mount = shared()
	all_see()
	secret("secret", {"lib/s": "bobs", "deep/er/s": "sss"}, 40002)
	mount.barrier()
	sees(alice, "both", "lib", "lib/p")
	sees(bob, "both", "deep", "deep/er", "deep/er/s", "lib", "lib/p", "lib/s")
	assert bob(lambda: text("mnt/lib/s")) == "bobs"
	# and by chmod alone
	for name in ("secret", "team"):
	    os.chmod("src/%s.kpack" % name, 0o644)
	mount.barrier()
	# names, listings, attributes, and that there is nothing
	sees(bob, *everything)
	assert bob(lambda: text("mnt/deep/er/s")) == "sss" and bob(lambda: os.path.exists("mnt/later")) is False
	assert bob(lambda: len(os.listdir("mnt/.kpackfs"))) > 5
	inside = os.open("mnt/.kpackfs", os.O_PATH)
	mine = os.open("mnt", os.O_RDONLY | os.O_DIRECTORY)
	os.listdir(mine)
	os.chmod("src/secret.kpack", 0o600)
	os.chmod("src/team.kpack", 0o640)
	put("public", {"lib/p": "public", "both": "same", "later": "x"})
	mount.barrier()
	# the kernel may not keep what root sees through a directory opened when all saw the same
	os.listdir(mine)
	def listed():
	    try:
	        return os.listdir(mine)
	    except OSError:
	        return []
	assert "deep" not in alike(listed)
	sees(alice, "both", "later", "lib", "lib/p")
	assert alice(lambda: [p for p in (".kpackfs", ".kpackfs/stats") if os.path.exists("mnt/" + p)]) == []
	assert alice(lambda: os.stat("stats", dir_fd=inside)) in (errno.ENOENT, errno.EACCES)
	sees(root, "later", *everything)
	END
	umount -l mnt
}

@test "a directory that was opened before does not list what came later" {
	shared <<-'END'
	put("a", {"d/a": "a"})
	mount = shared()
	held = [os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in ("mnt", "mnt/d")]
	for fd in held:
	    os.listdir(fd)
	secret("a", {"d/secret": "s", "e/f": "f"})
	mount.barrier()
	# what alice lists, the kernel must not keep for bob
	assert alice(lambda: os.listdir("mnt/d")) == ["secret"]
	def listed():
	    said = []
	    for fd in held:
	        try:
	            said += os.listdir(fd)
	        except OSError:
	            pass
	    return said
	assert not {"secret", "e"} & set(bob(listed))
	for fd in held:
	    os.close(fd)
	mount.unmount()
	END
}

@test "a listing of many names, most of which belong to others" {
	shared <<-'END'
	for step, (name, user) in enumerate((("a", 40001), ("b", 40002), ("c", 0))):
	    archive("src/%s.kpack" % name, {"d/name-%05d" % i: "" for i in range(step, 6000, 3)},
	            0o600 if user else 0o644, (user, user), scheme="none")
	mount = shared()
	def listed():
	    return sorted(e for e in os.listdir("mnt/d"))
	def without(step):
	    return ["name-%05d" % i for i in range(6000) if i % 3 != step]
	for _ in range(2):
	    assert bob(listed) == without(0) and alice(listed) == without(1)
	    assert alike(listed) == ["name-%05d" % i for i in range(2, 6000, 3)] and len(listed()) == 6000
	# the positions in the listing do not count the others' names
	def positions():
	    libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
	    libc.readdir.argtypes = libc.telldir.argtypes = [ctypes.c_void_p]
	    libc.telldir.restype = ctypes.c_long
	    d, at = libc.opendir(b"mnt/d"), []
	    while libc.readdir(d):
	        at.append(libc.telldir(d))
	    return at
	at = alike(positions)
	assert len(at) == 2002 and at[2:] != sorted(at[2:])
	mount.unmount()
	END
}

@test "the texts and figures are for users who may read all archives" {
	shared <<-'END'
	three()
	mount = shared("xattr")
	for user in (bob, alice, member):
	    for p in ("", "/stats", "/entries.jsonl", "/archives", "/nothing"):
	        root(lambda: [text("mnt/.kpackfs/" + n) for n in os.listdir("mnt/.kpackfs")])
	        refused = user(lambda: every_way(".kpackfs" + p))
	        assert refused == user(lambda: every_way("nowhere/at-all" if p else "nowhere")), (p, refused)
	assert text("mnt/.kpackfs/archives").count("\n") == 3
	# a user who may read each of them is not root
	assert as_user(40001, lambda: text("mnt/.kpackfs/entries.jsonl").count("\n"), groups=[40100]) == 12
	# a refused archive is shown to users who may read it
	open("src/z-secret.kpack", "w").write("junk")
	os.chmod("src/z-secret.kpack", 0o600)
	mount.barrier()
	def allowed():
	    return as_user(40001, lambda: text("mnt/.kpackfs/archives").count("z-secret"), groups=[40100])
	assert allowed() == errno.ENOENT and "z-secret" in text("mnt/.kpackfs/archives")
	os.chmod("src/z-secret.kpack", 0o644)
	mount.barrier()
	assert allowed() == 1
	# even if it is the only one
	for name in ("public", "secret", "team"):
	    os.unlink("src/%s.kpack" % name)
	os.chmod("src/z-secret.kpack", 0o600)
	mount.barrier()
	assert allowed() in (errno.ENOENT, errno.EACCES) and "z-secret" in text("mnt/.kpackfs/archives")
	mount.unmount()
	END
}

@test "an access control list never adds readers; uid, gid and umask take precedence" {
	: >probe
	setfacl -m u:40001:r probe || skip "no access control lists"
	shared <<-'END'
	for name, mode in (("a", 0o644), ("b", 0o644), ("c", 0o600), ("d", 0o644), ("e", 0o644)):
	    put(name, {name: name}, mode, (0, 40100) if name == "c" else (0, 0))
	# of c the mode is 0640 now, but the group may not read; d is for everyone but bob
	for name, entry in (("a", "u:40001:r"), ("c", "u:40001:r"), ("d", "u:40002:-"), ("e", "u:40001:r")):
	    subprocess.run(["setfacl", "-m", entry, "src/%s.kpack" % name], check=True)
	mount = shared()
	assert alike(paths) == bob(paths) == ["a", "b", "e"] and root(paths) == ["a", "b", "c", "d", "e"]
	assert [os.stat("mnt/" + p).st_mode & 0o777 for p in ("c", "d")] == [0o400] * 2
	mount.unmount()
	for name in "abcde":
	    os.unlink("src/%s.kpack" % name)
	three()
	mount = shared("uid=40002", "gid=40002")
	# only the bits differ: a class of 0644, one of 0640, one of 0600
	sees(bob, *everything)
	sees(alice, "both", "lib", "lib/p")
	mount.unmount()
	mount = shared("umask=077", "uid=0", "gid=0")
	for user in (alice, bob):
	    assert user(lambda: os.listdir("mnt")) == errno.EACCES
	assert text("mnt/lib/s") == "secret"
	mount.unmount()
	END
}

@test "the user who mounts sees all, and nothing more can be read" {
	[ -e /etc/fuse.conf ] || skip "needs /etc/fuse.conf"
	echo user_allow_other >conf
	cat /etc/passwd - <<<"kpack-alice:x:40001:40001::/:/bin/sh" >passwd
	cp "$(type -P kpackfs)" program
	mount --bind conf /etc/fuse.conf
	mount --bind passwd /etc/passwd
	shared <<-'END' || { umount /etc/passwd /etc/fuse.conf; false; }
	three()
	put("mine", {"lib/m": "mine"}, 0o640, (0, 40001))
	os.chown("mnt", 40001, 40001)
	command = [os.path.abspath("program"), "-o", "allow_other", "src", "mnt"]
	assert alice(lambda: subprocess.run(command).returncode) == 0
	assert alice(lambda: text("mnt/lib/s") + text("mnt/lib/m")) == "secretmine"
	assert alice(lambda: text("mnt/.kpackfs/archives").count("\n")) == 4
	sees(bob, "both", "lib", "lib/p")
	assert bob(lambda: os.listdir("mnt/.kpackfs")) == errno.ENOENT
	assert alice(lambda: subprocess.run(["fusermount3", "-u", "mnt"]).returncode) == 0
	END
	umount /etc/passwd /etc/fuse.conf
}

# bats test_tags=plain
@test "archives of one kind: the kernel keeps names for all, and asks for none" {
	shared <<-'END'
	import re
	put("a", {"a/b/c": "x"})
	put("b", {"a/b/d": "y"})
	mount = Mount("-d", "-o", "allow_other")
	def requests(what):
	    """The names of requests that reach the daemon meanwhile."""
	    os.truncate(mount.log, 0)
	    assert what() is not None
	    return set(re.findall(r"opcode: ([A-Z]*) ", text(mount.log)))
	def everyone():
	    return [bob(lambda: os.stat("mnt/a/b/" + n).st_mode) for n in "cd"] + [alice(lambda: text("mnt/a/b/c")), os.listdir("mnt/a/b")]
	# only a directory is opened each time; other names the kernel may have forgotten, but not each time
	everyone()
	asked = set.intersection(*(requests(everyone) for _ in range(5)))
	assert asked <= {"OPENDIR", "RELEASEDIR", "FORGET", "IOCTL"}, asked
	os.chmod("src/b.kpack", 0o600)
	mount.barrier()
	def one():
	    return bob(lambda: os.stat("mnt/a/b/c").st_mode)
	one()
	assert "LOOKUP" in requests(one)
	mount.unmount()
	END
}
