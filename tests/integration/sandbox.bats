#!/usr/bin/env bats
# What the process that answers requests can still do: serve, and nothing else.

bats_require_minimum_version 1.5.0

load mounting

tools=$BATS_TEST_DIRNAME

setup() {
	begin_test
	make_archive src/a.kpack <<-'END'
	{"frame_index": true, "entries": [
	 {"key": "lib/liba.so#0", "arch": "gfx1030", "data": "hello"},
	 {"key": "lib/liba.so#1", "arch": "gfx90a", "data": {"size": 100000, "seed": 1}},
	 {"key": "lib/libb.so#0", "arch": "gfx1030", "data": {"size": 9000001, "seed": 2}},
	 {"key": "share/x.db", "arch": "generic", "type": "db",
	  "data": {"size": 1000001, "seed": 3}, "chunk": 131072,
	  "metadata": {"path": "share/x.db"}}]}
	END
}

# The process that serves the mount: the one that another of its name has started.
server() {
	local pid

	for pid in $(pgrep -f "kpackfs .*$T/"); do
		pgrep -P "$pid" -f "kpackfs .*$T/" || :
	done | grep .
}


# FIELD: what /proc says of each thread of the server, each answer once
field() {
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$(server)/task/"*/status | sort -u
}

sums() { find mnt -type f -print0 | xargs -0 -P 16 -n 1 sha256sum | sort; }

# EXPRESSION...: have the server evaluate each, and print its value and what errno is then
in_server() {
	local e commands=()

	for e; do
		commands+=(-ex "print $e" -ex 'print *((int *(*)(void))__errno_location)()')
	done
	gdb -nx -batch -p "$(server)" "${commands[@]}" 2>&1 | sed -n 's/^\$[0-9]* = //p; /SIG/p'
}

# ERRNO EXPRESSION...: calls that must fail so
refused() {
	local errno=$1 _

	shift
	in_server "$@" | paste - - >out
	cat out
	for _; do printf -- '-1\t%s\n' "$errno"; done | diff - out
}

# plain: the thread sanitizer has a thread of its own, from before
# bats test_tags=plain
@test "the server has no privileges, and can gain none" {
	m
	[ "$(field CapEff)" = 0000000000000000 ]
	[ "$(field CapPrm)" = 0000000000000000 ]
	[ "$(field CapInh)" = 0000000000000000 ]
	[ "$(field CapAmb)" = 0000000000000000 ]
	[ "$(field CapBnd)" = 0000000000000000 ]
	[ "$(field NoNewPrivs)" = 1 ]
}

# bats test_tags=plain
@test "system calls of all its threads are filtered" {
	m
	sums >/dev/null
	[ "$(field Threads)" -gt 2 ]
	[ "$(field Seccomp)" = 2 ]
}

@test "all is read inside as it is outside" {
	m -o no_sandbox
	sums >outside
	fusermount3 -u mnt
	gone
	for o in max_threads=1 max_threads=64 threads=20 cache_size=1m clone_fd; do
		m -o "$o"
		sums >inside
		cmp outside inside
		ls -lR mnt >/dev/null
		cat mnt/.kpackfs/* >/dev/null
		fusermount3 -u mnt
		gone
	done
}

# bats test_tags=plain
@test "files, networks and processes are out of its reach" {
	m
	refused 1 '((int (*)(const char *, int))open)("/etc/passwd", 0)' \
		'((int (*)(const char *, int))open)("/dev/fuse", 02000002)' \
		'((int (*)(const char *, int))creat)("/tmp/kpackfs-sandbox", 0600)' \
		'((int (*)(const char *))unlink)("/etc/not-there")' \
		'((int (*)(int, int, int))socket)(2, 1, 0)' \
		'((int (*)(int, int, int))socket)(1, 1, 0)' \
		'((int (*)(void))fork)()' \
		'((int (*)(int, int))kill)(1, 0)' \
		'((int (*)(unsigned))setuid)(1)' \
		'((int (*)(const char *, int))umount2)("/tmp", 2)'
	[ "$(cat mnt/toc/lib/liba.so/gfx1030.hsaco)" = hello ]
}

# bats test_tags=plain
@test "it dies of trying to run a program, and the mount is gone" {
	m -f 2>log &
	for _ in $(seq 200); do
		! mountpoint -q mnt || break
		read -rt 0.05 <> <(:) || :
	done
	cat mnt/toc/lib/liba.so/gfx1030.hsaco
	# gdb does not expect it
	in_server '((int (*)(const char *, void *, void *))execve)("/bin/true", 0, 0)' || :
	gone
	cat log
	grep -q 'died of signal 31' log
	! mountpoint -q mnt || false
}

# bats test_tags=plain
@test "with clone_fd it opens the device for its threads, and no other file" {
	m -o clone_fd
	sums >/dev/null
	[ "$(find "/proc/$(server)/fd" -lname /dev/fuse | wc -l)" -gt 1 ]
	[ "$(field Seccomp)" = 2 ]
	refused 1 '((int (*)(const char *, int))open)("/etc/passwd", 0)'
	refused 13 '((int (*)(const char *, int))open)("/dev/null", 02000002)'
}

# bats test_tags=plain
@test "no_sandbox leaves everything as it was" {
	m -o no_sandbox
	[ "$(field CapEff)" = "$(sed -n 's/^CapEff:\t//p' /proc/self/status)" ]
	[ "$(field CapBnd)" = "$(sed -n 's/^CapBnd:\t//p' /proc/self/status)" ]
	[ "$(field NoNewPrivs)" = "$(sed -n 's/^NoNewPrivs:\t//p' /proc/self/status)" ]
	[ "$(field Seccomp)" = "$(sed -n 's/^Seccomp:\t//p' /proc/self/status)" ]
	in_server '((int (*)(const char *, int))open)("/etc/passwd", 02000000)' >out
	[ "$(head -n 1 out)" -gt 2 ]
}

# bats test_tags=plain
@test "an ordinary user's server is in it too" {
	[ "$(id -u)" = 0 ] || skip "who is no root mounts so in all tests"
	chown nobody mnt
	nobody kpackfs "$T/src" "$T/mnt"
	[ "$(field Uid | cut -f1)" = "$(id -u nobody)" ]
	[ "$(field CapEff)" = 0000000000000000 ]
	[ "$(field NoNewPrivs)" = 1 ]
	[ "$(field Seccomp)" = 2 ]
	[ "$(nobody cat mnt/toc/lib/liba.so/gfx1030.hsaco)" = hello ]
	refused 1 '((int (*)(const char *, int))open)("/etc/passwd", 0)'
	nobody fusermount3 -u "$T/mnt"
}

# bats test_tags=plain
@test "archives that come later are read inside" {
	m
	[ "$(field Seccomp)" = 2 ]
	$python "$tools/mkarchive.py" src/.new <<-'END'
	{"entries": [{"key": "lib/new.so#0", "arch": "gfx1030", "data": "later"}]}
	END
	mv src/.new src/new.kpack
	for _ in $(seq 200); do
		! [ -e mnt/toc/lib/new.so ] || break
		read -rt 0.05 <> <(:) || :
	done
	[ "$(cat mnt/toc/lib/new.so/gfx1030.hsaco)" = later ]
	[ "$(field Seccomp)" = 2 ]
}
