#!/usr/bin/env bats
# A mount that many users share: the kernel checks the mode of each file, which is that of its archive.

bats_require_minimum_version 1.5.0

load mounting

setup() {
	must_be_root
	begin_test
	chmod 0755 src
}

# shared: a program on stdin that may use these users, each a function that calls another as this user.
# A member has the group 40100 besides; alike has the group alone.
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
		def paths():
		    return [p for p in find() if os.lstat("mnt/" + p) and not p.startswith("toc")]
		def read(path): return lambda: text("mnt/" + path)
		def left_out(): return [l.split("\t")[0] for l in text("mnt/.kpackfs/missing").splitlines()]
		all_names = ["both", "lib", "lib/p", "lib/t", "team", "team/only"]
		END
		cat
	} | mounts
}

@test "names are for all, contents for those who may read the archive; what only its owner may read is left out" {
	shared <<-'END'
	three()
	mount = shared("xattr")
	for user in (alice, bob, member, alike, root):
	    assert user(paths) == all_names, (user, user(paths))
	    assert user(read("lib/p")) == "public" and user(read("lib/s")) == errno.ENOENT
	assert [u(read("lib/t")) for u in (alice, bob, member, alike, root)] == [errno.EACCES] * 2 + ["team"] * 3
	# what another user made the kernel keep helps nobody
	assert bob(read("team/only")) == errno.EACCES and alike(read("team/only")) == "tt" and bob(read("team/only")) == errno.EACCES
	st = os.stat("mnt/lib/t")
	assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (0, 40100, 0o440) and os.stat("mnt/team").st_mode & 0o777 == 0o555
	# it is named, with the reason, and the mount is not healthy
	assert left_out() == [os.path.realpath("src/secret.kpack")] == bob(left_out)
	assert "only its owner may read it" in text("mnt/.kpackfs/archives") and "1 archive refused" in text("mnt/.kpackfs/status")
	# a changed mode takes effect as other changes do
	os.chmod("src/secret.kpack", 0o644)
	mount.barrier()
	assert left_out() == [] and bob(read("deep/er/s")) == "sss" and "healthy" in text("mnt/.kpackfs/status")
	with open("mnt/lib/s") as held:
	    os.chmod("src/secret.kpack", 0o600)
	    os.chmod("src/team.kpack", 0o644)
	    mount.barrier()
	    assert bob(paths) == root(paths) == all_names and bob(read("lib/t")) == "team"
	    assert root(read("lib/s")) == errno.ENOENT and held.read() == "secret"
	os.chmod("src/team.kpack", 0o640)
	mount.barrier()
	assert bob(read("lib/t")) == errno.EACCES and member(read("lib/t")) == "team"
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
	    os.chmod("lie", 0o640)
	    os.rename("lie", "src/%s.kpack" % name)
	def truth():
	    put("b", {"secret": secret_bytes}, 0o640, (40001, 40001))
	# The bytes do not match their hash, so there is nothing to read, not even what the kernel has.
	def nothing(path):
	    def first():
	        with open("mnt/" + path, "rb") as f:
	            return len(f.read(10))
	    return bob(first) == errno.EIO
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

@test "the same content in archives of other modes is a file in each" {
	shared <<-'END'
	put("a", {"first": "same", "a": "x"}, 0o640, (0, 40100))
	put("b", {"second": "same"})
	mount = shared()
	assert bob(read("first")) == errno.EACCES and bob(read("second")) == alike(read("first")) == "same"
	mount.unmount()
	END
}

@test "an archive with an access control list is left out; uid, gid and umask decide for all" {
	: >probe
	setfacl -m u:40001:r probe || skip "no access control lists"
	shared <<-'END'
	three()
	subprocess.run(["setfacl", "-m", "u:40002:-", "src/public.kpack"], check=True)
	mount = shared()
	assert root(paths) == ["lib", "lib/t", "team", "team/only"] and "access control list" in text("mnt/.kpackfs/missing")
	mount.unmount()
	mount = shared("uid=40002", "gid=40002")
	assert left_out() == [] and bob(read("lib/s")) == "secret" and bob(read("lib/t")) == "team"
	assert alice(read("lib/s")) == errno.EACCES and alice(lambda: os.stat("mnt/lib/s").st_uid) == 40002
	mount.unmount()
	mount = shared("umask=077", "uid=0", "gid=0")
	for user in (alice, bob):
	    assert user(lambda: os.listdir("mnt")) == errno.EACCES
	assert text("mnt/lib/s") == "secret"
	mount.unmount()
	END
}

@test "a user who mounts for all is asked about archives that are the user's own, too" {
	[ -e /etc/fuse.conf ] || skip "needs /etc/fuse.conf"
	echo user_allow_other >conf
	cat /etc/passwd - <<<"kpack-alice:x:40001:40001::/:/bin/sh" >passwd
	cp "$(type -P kpackfs)" program
	mount --bind conf /etc/fuse.conf
	mount --bind passwd /etc/passwd
	shared <<-'END' || { umount /etc/passwd /etc/fuse.conf; false; }
	three()
	os.chown("mnt", 40001, 40001)
	def mounted(*more):
	    command = [os.path.abspath("program"), "-o", ",".join(("allow_other",) + more), "src", "mnt"]
	    assert alice(lambda: subprocess.run(command).returncode) == 0
	def over():
	    assert alice(lambda: subprocess.run(["fusermount3", "-u", "mnt"]).returncode) == 0
	mounted()
	# alice may not open the team's
	assert alice(paths) == bob(paths) == ["both", "lib", "lib/p"] and len(left_out()) == 2
	over()
	mounted("uid=40001", "umask=077")
	assert alice(read("lib/s")) == "secret" and bob(lambda: os.listdir("mnt")) == errno.EACCES
	over()
	END
	umount /etc/passwd /etc/fuse.conf
}

# bats test_tags=plain
@test "the kernel keeps names for all, and asks for none" {
	shared <<-'END'
	import re
	put("a", {"a/b/c": "x"})
	team("b", {"a/b/d": "y"})
	mount = Mount("-d", "-o", "allow_other")
	def requests(what):
	    """The names of requests that reach the daemon meanwhile."""
	    os.truncate(mount.log, 0)
	    assert what() is not None
	    return set(re.findall(r"opcode: ([A-Z]*) ", text(mount.log)))
	def everyone():
	    return [bob(lambda: os.stat("mnt/a/b/" + n).st_mode) for n in "cd"] + [alice(lambda: text("mnt/a/b/c")), os.listdir("mnt/a/b")]
	# names may be forgotten by the kernel, but not each time
	everyone()
	asked = set.intersection(*(requests(everyone) for _ in range(5)))
	assert asked <= {"OPENDIR", "RELEASEDIR", "FORGET", "IOCTL"}, asked
	mount.unmount()
	END
}
