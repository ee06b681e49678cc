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

teardown() {
	exec 5<&-
	end_test
}

alice() { setpriv --reuid=40001 --regid=40001 --clear-groups "$@"; }
bob() { setpriv --reuid=40002 --regid=40002 --clear-groups "$@"; }
# bob, in the group that may read an archive
member() { setpriv --reuid=40002 --regid=40002 --groups=40009,40100,40110 "$@"; }
alike() { setpriv --reuid=40003 --regid=40100 --clear-groups "$@"; }

# archive NAME PATH=DATA...: entries with these paths; below toc, too
archive() {
	local file=src/$1.kpack
	shift
	py "$file.new" "$@" <<-'END'
	import sys, mkarchive
	a = mkarchive.Archive()
	for at in sys.argv[2:]:
	    path, data = at.split("=")
	    a.add("%s#0" % path, "gfx1100", data.encode(), path=path, hash=True)
	a.write(sys.argv[1])
	END
	chmod "${mode:-0644}" "$file.new"
	chown "${owner:-0:0}" "$file.new"
	mv "$file.new" "$file"
}

three() {
	archive public lib/p=public both=same
	owner=40001:40001 mode=0600 archive secret lib/s=secret deep/er/s=sss
	owner=0:40100 mode=0640 archive team lib/t=team team/only=tt
}

m() { kpackfs -o "allow_other${1:+,$1}" "$T/src" "$T/mnt"; }

# The paths that a user finds.
paths() { (cd mnt && "$@" find . ! -name . | sort); }

everything=(./both ./deep ./deep/er ./deep/er/s ./lib ./lib/p ./lib/s ./lib/t ./team ./team/only)

# sees USER WORD...: the paths outside of toc, and that nothing else has any attribute
sees() {
	local user=$1 p
	shift
	[ "$(paths "$user" | grep -v '^./toc' | tr '\n' ' ')" = "${*/%/} " ]
	for p in "${everything[@]}"; do
		case " $* " in
		*" $p "*) "$user" stat "mnt/$p" >/dev/null ;;
		*)
			run -1 "$user" stat "mnt/$p"
			[[ $output == *"No such file"* ]]
			;;
		esac
	done
}

all_see() {
	sees bob ./both ./lib ./lib/p
	sees alice ./both ./deep ./deep/er ./deep/er/s ./lib ./lib/p ./lib/s
	sees member ./both ./lib ./lib/p ./lib/t ./team ./team/only
	sees alike ./both ./lib ./lib/p ./lib/t ./team ./team/only
	sees env "${everything[@]}"
}

# Does what a program may do with a name, and prints what comes of it.
every_way() { # USER PATH
	"$1" "$python" - "mnt/$2" <<-'END'
	import os, sys
	path = sys.argv[1]
	ways = {
	    "stat": lambda: os.stat(path), "lstat": lambda: os.lstat(path),
	    "open": lambda: os.open(path, os.O_RDONLY), "path": lambda: os.open(path, os.O_PATH),
	    "read": lambda: open(path).read(), "access": lambda: os.stat(path) and os.access(path, 0),
	    "readlink": lambda: os.readlink(path), "getxattr": lambda: os.getxattr(path, "user.kpack.key"),
	    "listxattr": lambda: os.listxattr(path), "statvfs": lambda: os.statvfs(path),
	    "chmod": lambda: os.chmod(path, 0o777), "unlink": lambda: os.unlink(path),
	    "list": lambda: os.listdir(path), "through": lambda: os.stat(path + "/x"),
	}
	for name, way in ways.items():
	    try:
	        way()
	        print(name, "done")
	    except OSError as e:
	        print(name, e.strerror)
	END
}

@test "names, sizes and attributes are for users who may read the archive" {
	three
	m xattr
	all_see
	# names below toc name the same entries
	[ "$(paths bob | grep -c s/gfx1100)" = 0 ]
	[ "$(paths alice | grep -c s/gfx1100)" = 2 ]
	[ "$(paths env | grep -c gfx1100)" = 6 ]
	# again, in another order, with what the kernel kept of the first
	sees env "${everything[@]}"
	all_see
}

@test "what another user made the kernel keep does not help" {
	three
	m xattr
	for p in lib/s deep deep/er deep/er/s toc/lib/s toc/lib/s/gfx1100.hsaco; do
		every_way bob "$(sed 's/[a-z]*$/nowhere/; s/deep/gone/' <<<"$p")" >nothing
		every_way alice "$p" >/dev/null
		every_way env "$p" >/dev/null
		every_way bob "$p" >refused
		diff nothing refused
		every_way member "$p" >refused
		diff nothing refused
	done
	# and the reverse: what is not there for one is there for the other
	[ "$(alice cat mnt/lib/s)" = secret ]
	run -1 bob cat mnt/lib/t
	[ "$(member cat mnt/lib/t)" = team ]
	run -1 bob cat mnt/lib/t
	[ "$(alike cat mnt/lib/t)" = team ]
}

@test "readers at once each get their own" {
	three
	m
	for user in bob alice member env; do paths "$user" >"want.$user"; done
	[ "$(grep -vc toc want.* | tr '\n' ' ')" = "want.alice:7 want.bob:3 want.env:10 want.member:6 " ]
	for user in bob alice member env bob alice member env; do
		for _ in $(seq 10); do paths "$user" | diff "want.$user" -; done >>"wrong.$user" &
	done
	wait
	cat wrong.*
	[ "$(cat wrong.* | wc -l)" = 0 ]
}

@test "a directory is a directory of the archives that are in it" {
	three
	touch -d 2001-02-03 src/secret.kpack
	m
	# one archive's: its owner and bits, and the kernel keeps the names
	[ "$(stat -c '%u %g %a' mnt/deep mnt/deep/er | uniq)" = "40001 40001 500" ]
	[ "$(stat -c '%u %g %a' mnt/team)" = "0 40100 550" ]
	[[ $(stat -c %y mnt/deep) == 2001-02-03* ]]
	# of several: it has nothing of any of them
	[ "$(stat -c '%u %g %a %h' mnt mnt/lib | uniq)" = "0 0 555 1" ]
	stat -c %Y mnt mnt/lib >before
	touch src/secret.kpack
	kill -HUP "$(pgrep -o -f "kpackfs .*$T/")"
	barrier
	changed_since_2001
	stat -c %Y mnt mnt/lib | diff before -
}

changed_since_2001() { [[ $(stat -c %y mnt/deep) != 2001* ]]; }

@test "of several archives with a name, each user sees the first that the user may read" {
	owner=40001:40001 mode=0600 archive a x=alices y=one d/f=dir
	owner=40002:40002 mode=0600 archive b x=bobs y/z=two d=file
	archive c x=everyones
	m
	for _ in 1 2 3; do
		[ "$(alice cat mnt/x)" = alices ]
		[ "$(bob cat mnt/x)" = bobs ]
		[ "$(alike cat mnt/x)" = everyones ]
		[ "$(cat mnt/x)" = alices ]
		[ "$(alice cat mnt/y mnt/d/f)" = onedir ]
		[ "$(bob cat mnt/y/z mnt/d)" = twofile ]
		[ "$(paths alike | grep -v toc)" = ./x ]
		[ "$(paths alice | grep -c '^./x$')" = 1 ]
	done
	# for a user who sees all, the rest is not shown, and is listed as before
	[ "$(cat mnt/y/z mnt/d/f)" = twodir ]
	grep -q '^x: .*/a.kpack comes first; other content of .*/b.kpack ' mnt/.kpackfs/conflicts
	grep -q '^x: .*/a.kpack comes first; other content of .*/c.kpack ' mnt/.kpackfs/conflicts
	[ "$(grep -c '^{"path":"x"' mnt/.kpackfs/entries.jsonl)" = 1 ]
	(cd mnt && sha256sum --quiet -c .kpackfs/checksums)
}

@test "the hash that an archive states gives nobody what is in another" {
	# bob's archive comes first, and promises what alice's has
	py <<-'END'
	import mkarchive
	secret, junk = b"s" * 40000, b"j" * 40000
	a = mkarchive.Archive(scheme="none")
	a.add("k#0", "gfx1100", secret, path="secret", hash=True)
	a.write("src/b.kpack")
	b = mkarchive.Archive(scheme="none")
	b.add("k#0", "gfx1100", junk, path="copy", xxh3=mkarchive.xxh3(secret))
	b.write("src/a.kpack")
	END
	chown 40001 src/b.kpack
	chown 40002 src/a.kpack
	chmod 0600 src/*
	m
	[ "$(alice head -c 2 mnt/secret)" = ss ]
	gets_nothing bob mnt/copy
	[ "$(stat -c %i mnt/secret)" != "$(stat -c %i mnt/copy)" ]
	[ "$(stat -c %h mnt/secret)" = 2 ]
	# even when alice's is replaced by it, while its pages are kept
	exec 5<mnt/secret
	mv src/a.kpack src/b.kpack
	barrier
	gone_for_all mnt/secret
	gets_nothing bob mnt/copy
	[ "$(head -c 2 <&5)" = ss ]
	exec 5<&-
}

# The bytes do not match their hash, so there is nothing to read, not even what the kernel has.
gets_nothing() { # USER PATH
	! "$1" cat "$2" >got 2>why || false
	[[ $(cat why) == *"Input/output error"* ]]
	[ ! -s got ]
}

gone_for_all() { ! stat "$1" >/dev/null 2>&1; }

@test "one archive alone: users who replace it do not get its pages" {
	py <<-'END'
	import mkarchive
	secret, junk = b"s" * 40000, b"j" * 40000
	a = mkarchive.Archive(scheme="none")
	a.add("k#0", "gfx1100", secret, path="secret", hash=True)
	a.write("src/a.kpack")
	b = mkarchive.Archive(scheme="none")
	b.add("k#0", "gfx1100", junk, path="secret", xxh3=mkarchive.xxh3(secret))
	b.write("new")
	END
	chown 40001 src/a.kpack
	chmod 0600 src/a.kpack
	m
	[ "$(alice head -c 2 mnt/secret)" = ss ]
	chown 40002 new
	chmod 0600 new
	exec 5<mnt/secret
	mv new src/a.kpack
	barrier
	belongs_to_bob mnt/secret
	gets_nothing bob mnt/secret
	[ "$(head -c 2 <&5)" = ss ]
	exec 5<&-
}

belongs_to_bob() { [ "$(stat -c %u "$1")" = 40002 ]; }

@test "an archive replaced by one with other permissions" {
	three
	m
	all_see
	owner=40002:40002 mode=0600 archive secret lib/s=bobs deep/er/s=sss
	barrier
	belongs_to_bob mnt/lib/s
	sees alice ./both ./lib ./lib/p
	sees bob ./both ./deep ./deep/er ./deep/er/s ./lib ./lib/p ./lib/s
	[ "$(bob cat mnt/lib/s)" = bobs ]
	# and by chmod alone
	chown 40001 src/secret.kpack
	barrier
	belongs_to_alice mnt/lib/s
	sees bob ./both ./lib ./lib/p
	sees alice ./both ./deep ./deep/er ./deep/er/s ./lib ./lib/p ./lib/s
	chmod 0644 src/*
	barrier
	bob cat mnt/deep/er/s mnt/team/only
	sees bob ./both ./deep ./deep/er ./deep/er/s ./lib ./lib/p ./lib/s ./lib/t ./team ./team/only
}

belongs_to_alice() { [ "$(stat -c %u "$1")" = 40001 ]; }

@test "what the kernel kept when all could see it is gone when they may not" {
	archive a lib/a=a deep/er/a=aa
	archive b lib/b=b
	m
	# names, listings, attributes, and that there is nothing
	bob find mnt >/dev/null
	bob cat mnt/lib/a mnt/deep/er/a
	run -1 bob stat mnt/later
	bob ls mnt/.kpackfs >/dev/null
	chmod 0600 src/a.kpack
	archive b lib/b=b later=x
	barrier
	bob cat mnt/later
	barrier
	is_private mnt/deep
	# the kernel is told of one name after the other
	barrier
	bob_finds "./later ./lib ./lib/b "
	for p in lib/a deep deep/er deep/er/a .kpackfs .kpackfs/stats; do
		barrier
		is_nothing_to_bob mnt/$p
	done
	[ "$(cat mnt/lib/a mnt/deep/er/a)" = aaa ]
	[ "$(paths env | grep -vc toc)" = 7 ]
}

bob_finds() { [ "$(paths bob | grep -v toc | tr '\n' ' ')" = "$1" ]; }
is_nothing_to_bob() { ! bob stat "$1" >attributes 2>&1 && grep -q "No such file" attributes; }
is_private() { [ "$(stat -c %a "$1")" = 500 ]; }

@test "a listing that was begun before is not kept for others" {
	archive a a=a
	archive b b=b
	m
	"$python" <<-'END'
	import os
	mine = os.open("mnt", os.O_RDONLY | os.O_DIRECTORY)
	def listed(where):
	    try:
	        return sorted(os.listdir(where))
	    except OSError:
	        return []
	assert listed(mine) == ["a", "b", "toc"]
	os.chmod("src/a.kpack", 0o600)
	seen = os.open("mnt/.kpackfs/barrier", os.O_RDONLY)
	os.read(seen, 100)
	assert os.stat("mnt/a").st_mode & 0o777 == 0o400
	# the kernel may not keep what root sees through a directory opened when all saw the same
	listed(mine)
	assert listed("mnt") == ["a", "b", "toc"]
	os.setgroups([])
	os.setgid(40002)
	os.setuid(40002)
	assert "a" not in listed(mine)
	assert listed("mnt") == ["b", "toc"], listed("mnt")
	END
}

@test "a listing of many names, most of which belong to others" {
	py <<-'END'
	import mkarchive
	for name, step in ("a", 0), ("b", 1), ("c", 2):
	    a = mkarchive.Archive(scheme="none")
	    for i in range(step, 9000, 3):
	        a.add("k%d#0" % i, "gfx1100", b"", path="d/name-%05d" % i)
	    a.write("src/%s.kpack" % name)
	END
	chown 40001 src/a.kpack
	chown 40002 src/b.kpack
	chmod 0600 src/a.kpack src/b.kpack
	m
	listed() { "$@" ls -f mnt/d | grep name | sort; }
	# Numbers 0, 3, 6, ... are alice's, 1, 4, 7, ... are bob's.
	seq -f 'name-%05.0f' 0 8999 >names
	awk 'NR % 3 != 1' names >bob.names
	awk 'NR % 3 != 2' names >alice.names
	awk 'NR % 3 == 0' names >alike.names
	for _ in 1 2; do
		listed bob | diff - bob.names
		listed alice | diff - alice.names
		listed alike | diff - alike.names
		[ "$(listed env | wc -l)" = 9000 ]
	done
	# the positions in the listing do not count the others' names
	alike "$python" - mnt/d >positions <<-'END'
	import ctypes, os, sys
	c = ctypes.CDLL(None)
	c.opendir.restype = c.readdir.restype = ctypes.c_void_p
	c.opendir.argtypes = [ctypes.c_char_p]
	c.readdir.argtypes = c.telldir.argtypes = [ctypes.c_void_p]
	c.telldir.restype = ctypes.c_long
	d = c.opendir(os.fsencode(sys.argv[1]))
	while c.readdir(d):
	    print(c.telldir(d))
	END
	[ "$(wc -l <positions)" = 3002 ]
	! tail -n +3 positions | sort -n -c 2>/dev/null || false
}

@test "the texts and figures are for users who may read all archives" {
	three
	m xattr
	for user in bob alice member; do
		every_way $user nowhere >nothing
		every_way $user nowhere/at-all >nothing2
		for p in .kpackfs .kpackfs/stats .kpackfs/entries.jsonl .kpackfs/archives .kpackfs/nothing; do
			cat mnt/.kpackfs/* >/dev/null
			every_way $user $p >refused
			diff nothing refused || diff nothing2 refused
		done
	done
	[ "$(wc -l <mnt/.kpackfs/archives)" = 3 ]
	# a user who may read each of them is not root
	allowed() { setpriv --reuid=40001 --regid=40001 --groups=40100 "$@"; }
	[ "$(allowed cat mnt/.kpackfs/entries.jsonl | wc -l)" = 12 ]
	allowed kpackfs --status mnt
	run -1 bob kpackfs --status mnt
	[[ $output == *"archives this user may not read"* ]]
	# the working directory is no way around
	(cd mnt/.kpackfs && run -1 bob cat stats && run -1 bob stat archives)
	# the file system's size
	sizes() { "$@" stat -f -c '%b %c' mnt; }
	[ "$(sizes alike)" != "$(sizes bob)" ]
	a=$(sizes bob)
	owner=40001:40001 mode=0600 archive secret lib/s=secret deep/er/s=sss more=m
	barrier
	test -e mnt/more
	[ "$(sizes bob)" = "$a" ]
}

@test "archives that are all private: the mount point shows nothing of them" {
	owner=40001:40001 mode=0600 archive a lib/a=a
	m
	size() { "$1" stat -f -c '%b %c' mnt; }
	look() { "$1" stat -c '%h %X %Y %Z %s %b' mnt; }
	size bob >size
	look bob >look
	run -2 bob ls mnt
	[[ $output == *"ermission denied"* ]]
	[ "$(size alice)" != "$(cat size)" ]
	[ "$(paths alice | grep -v toc | tr '\n' ' ')" = "./lib ./lib/a " ]
	owner=40001:40001 mode=0600 archive a lib/a=a lib/b=b another/c=c
	barrier
	alice cat mnt/another/c
	size bob | diff size -
	look bob | diff look -
}

@test "a directory that was opened before does not list what came later" {
	archive a d/a=a
	m
	mkfifo go done
	chmod 0666 go done
	bob "$python" >held 3>&- <<-'END' &
	import os
	held = [os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in ("mnt", "mnt/d")]
	for fd in held:
	    os.listdir(fd)
	def listed(fd):
	    try:
	        return sorted(os.listdir(fd))
	    except OSError as e:
	        return e.strerror
	open("done", "w").close()
	open("go").read()
	for fd in held:
	    print(listed(fd))
	END
	read -r _ <done || :
	owner=40001:40001 mode=0600 archive a d/secret=s e/f=f
	barrier
	test -e mnt/d/secret
	# what alice lists, the kernel must not keep for bob
	alice ls mnt mnt/d >/dev/null
	: >go
	wait
	! grep -e secret -e "'e'" held || false
	[ "$(wc -l <held)" = 2 ]
}

@test "a refused archive is shown to users who may read it" {
	archive a a=a
	echo junk >src/b-secret.kpack
	chmod 0600 src/b-secret.kpack
	m
	[ "$(bob cat mnt/a)" = a ]
	run -2 bob ls mnt/.kpackfs
	grep -q b-secret mnt/.kpackfs/archives
	chmod 0644 src/b-secret.kpack
	kill -HUP "$(pgrep -o -f "kpackfs .*$T/")"
	barrier
	bob grep -q b-secret mnt/.kpackfs/archives
	# even if it is the only one
	rm src/a.kpack
	chmod 0600 src/b-secret.kpack
	barrier
	gone_for_all mnt/a
	kill -HUP "$(pgrep -o -f "kpackfs .*$T/")"
	barrier
	hides_texts bob
	grep -q b-secret mnt/.kpackfs/archives
}

hides_texts() { ! "$1" ls mnt/.kpackfs 2>/dev/null; }

@test "an access control list never adds readers" {
	archive a a=a
	setfacl -m u:40001:r src/a.kpack || skip "no access control lists here"
	archive b b=b
	owner=0:40100 mode=0600 archive c c=c
	setfacl -m u:40001:r src/c.kpack # the mode is 0640 now, but the group may not read
	archive d d=d
	setfacl -m u:40002:- src/d.kpack # everyone but bob
	archive e e=e
	setfacl -m u:40001:r src/e.kpack
	m
	[ "$(paths alike | grep -v toc | tr '\n' ' ')" = "./a ./b ./e " ]
	[ "$(paths bob | grep -v toc | tr '\n' ' ')" = "./a ./b ./e " ]
	[ "$(paths env | grep -v toc | tr '\n' ' ')" = "./a ./b ./c ./d ./e " ]
	[ "$(stat -c %a mnt/c mnt/d | uniq)" = 400 ]
}

@test "uid, gid and umask take precedence over the archives" {
	three
	m uid=40002,gid=40002
	# only the bits differ: a class of 0644, one of 0640, one of 0600
	sees bob "${everything[@]}"
	sees alice ./both ./lib ./lib/p
	unmount
	m umask=077,uid=0,gid=0
	run -2 bob ls mnt
	run -2 alice ls mnt
	[ "$(cat mnt/lib/s)" = secret ]
}

@test "the user who mounts sees all, and nothing more can be read" {
	[ -e /etc/fuse.conf ] || skip "needs /etc/fuse.conf"
	three
	owner=0:40001 mode=0640 archive mine lib/m=mine
	chown 40001 mnt
	echo user_allow_other >conf
	export T
	unshare -m --propagation private bash -eu <<-'END'
	mount --bind conf /etc/fuse.conf
	cat /etc/passwd - <<<"kpack-alice:x:40001:40001::/:/bin/sh" >passwd
	mount --bind passwd /etc/passwd
	alice() { setpriv --reuid=40001 --regid=40001 --clear-groups "$@"; }
	bob() { setpriv --reuid=40002 --regid=40002 --clear-groups "$@"; }
	cp "$(type -P kpackfs)" program
	alice ./program -o allow_other "$T/src" "$T/mnt"
	alice cat mnt/lib/s mnt/lib/m mnt/lib/p >alices
	alice wc -l <mnt/.kpackfs/archives >>alices
	(cd mnt && bob find . ! -path './toc*' | sort) >bobs
	! bob ls mnt/.kpackfs 2>>bobs
	alice fusermount3 -u mnt
	END
	[ "$(cat alices)" = "secretminepublic4" ]
	[ "$(grep -v cannot bobs | tr '\n' ' ')" = ". ./both ./lib ./lib/p " ]
}

@test "without a supervisor, supplementary groups do not count" {
	three
	m
	sees member ./both ./lib ./lib/p ./lib/t ./team ./team/only
	# the other process is its child
	server=$(sed 's/.*"pid": \([0-9]*\).*/\1/' mnt/.kpackfs/stats)
	kill -KILL "$(ps -o ppid= -p "$server" | tr -d ' ')"
	sees member ./both ./lib ./lib/p
	sees alike ./both ./lib ./lib/p ./lib/t ./team ./team/only
	sees bob ./both ./lib ./lib/p
	umount mnt
}

# requests COMMAND...: the names of requests that reach the daemon meanwhile
requests() {
	: >log
	"$@" >/dev/null || return
	sed -n 's/.*opcode: \([A-Z]*\) .*/\1/p' log | sort -u
}

# bats test_tags=plain
@test "archives of one kind: the kernel keeps names for all, and asks for none" {
	archive a a/b/c=x
	archive b a/b/d=y
	kpackfs -d -o allow_other "$T/src" "$T/mnt" 2>log 3>&- &
	eventually mountpoint -q mnt
	all() { bob stat mnt/a/b/c mnt/a/b/d && alice cat mnt/a/b/c && ls mnt/a/b; }
	# only a directory is opened each time; again, because the kernel may forget names at any time
	knows_names() {
		all && requests all >asked || return
		! grep -vx -e OPENDIR -e RELEASEDIR -e FORGET -e BATCH_FORGET asked
	}
	barrier
	knows_names
	chmod 0600 src/b.kpack
	barrier
	has_mode_400
	ls_c() { bob stat mnt/a/b/c; }
	ls_c
	requests ls_c >asked
	grep -qx LOOKUP asked
	umount mnt
	wait
}

has_mode_400() { [ "$(stat -c %a mnt/a/b/d)" = 400 ]; }
