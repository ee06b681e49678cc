#!/usr/bin/env bats
# The process that answers requests can serve files, and nothing else.

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

# refused LIST [OPTION]: inside the sandbox, which a program of its own enters, what LIST says
refused() {
	"$KPACK_BIN/tests/stub/sandbox" "${@:2}" >out
	grep -v '^part ' out | diff "$1" -
}

# DEVICE OTHER: what the attempts end with; to open /dev/fuse with DEVICE, another with OTHER
everything_refused() {
	cat <<-END
	read what is open ok
	open EPERM
	open the device $1
	open another device $2
	create EPERM
	unlink EPERM
	umount EPERM
	socket of the network EPERM
	socket EPERM
	fork EPERM
	kill EPERM
	setuid EPERM
	open in a thread EPERM
	END
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
	everything_refused EPERM EPERM >want
	refused want
	[ "$(grep -c '^part ' out)" = 4 ]
}

# bats test_tags=plain
@test "an attempt to run a program, or to trace a process, is fatal" {
	for attempt in run trace; do
		run -159 "$KPACK_BIN/tests/stub/sandbox" $attempt
		[ "$(grep -c '^part ' <<<"$output")" = 4 ]
	done
}

@test "a server that SIGSYS ends takes the mount with it" {
	m -f 2>log 3>&- &
	eventually mountpoint -q mnt
	cat mnt/toc/lib/liba.so/gfx1030.hsaco
	kill -SYS "$(server)"
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
	everything_refused ok EACCES >want
	refused want clone_fd
}

# bats test_tags=plain
@test "the server is in all parts of it" {
	m
	for part in capabilities no_new_privs landlock seccomp; do
		grep -q "sandbox_part{part=\"$part\"} 1" mnt/.kpackfs/metrics
	done
}

# bats test_tags=plain
@test "no_sandbox leaves everything as it was" {
	m -o no_sandbox
	[ "$(field CapEff)" = "$(sed -n 's/^CapEff:\t//p' /proc/self/status)" ]
	[ "$(field CapBnd)" = "$(sed -n 's/^CapBnd:\t//p' /proc/self/status)" ]
	[ "$(field NoNewPrivs)" = "$(sed -n 's/^NoNewPrivs:\t//p' /proc/self/status)" ]
	[ "$(field Seccomp)" = "$(sed -n 's/^Seccomp:\t//p' /proc/self/status)" ]
}

# bats test_tags=plain
@test "an ordinary user's server is in it too" {
	[ "$(id -u)" = 0 ] || skip "an ordinary user mounts so in all tests"
	chown nobody mnt
	nobody kpackfs "$T/src" "$T/mnt"
	[ "$(field Uid | cut -f1)" = "$(id -u nobody)" ]
	[ "$(field CapEff)" = 0000000000000000 ]
	[ "$(field NoNewPrivs)" = 1 ]
	[ "$(field Seccomp)" = 2 ]
	[ "$(nobody cat mnt/toc/lib/liba.so/gfx1030.hsaco)" = hello ]
	chmod 0755 . && cp "$KPACK_BIN/tests/stub/sandbox" inside
	everything_refused EPERM EPERM >want
	nobody "$T/inside" | grep -v '^part ' | diff want -
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
	barrier
	test -e mnt/toc/lib/new.so
	[ "$(cat mnt/toc/lib/new.so/gfx1030.hsaco)" = later ]
	[ "$(field Seccomp)" = 2 ]
}
