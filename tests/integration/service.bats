#!/usr/bin/env bats
# kpackfs as a service and from fstab: how systemd runs our units, and how kpackfs reacts.
# No systemd runs here; service.py does with a unit what systemd would do.

bats_require_minimum_version 1.5.0

setup() {
	# not below bats' own directory, which other users may not search; no "-" in the name,
	# which would be escaped in a unit's
	T=$(mktemp -d /tmp/kpackfsXXXXXX)
	chmod 0755 "$T"
	cd "$T"
	mkdir src mnt etc etc/kpackfs
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	units=$KPACK_SRC/contrib/systemd
	name=${T#/}
	name=${name//\//-}-mnt
	PATH=$KPACK_BIN:$PATH
	archive src/a.kpack a
	manager=
}

teardown() {
	cd /
	[ -z "$manager" ] || { kill -9 "$manager" && wait "$manager"; } 2>/dev/null || :
	pkill -9 -f "kpackfs .*${T:?}/" || :
	! findmnt -rn -M "$T/mnt" >/dev/null || umount -l "$T/mnt" || fusermount3 -uz "$T/mnt"
	rm -rf "$T"
}

archive() { # FILE KEY
	echo '{"entries": [{"key": "'"$2"'#0", "arch": "gfx942", "data": "abc"}]}' |
		/usr/bin/python3 "$BATS_TEST_DIRNAME/mkarchive.py" "$1.new"
	mv "$1.new" "$1"
}

# await EVENT: read what the service does until this happens; events has all so far
await() {
	local line
	while IFS= read -r -u 5 line; do
		echo "$line" >>events
		[[ ! $line =~ ^($1)$ ]] || return 0
	done
	echo "in vain: $1"
	cat events log
	return 1
}

# await_end PID...: none of them runs any more
await_end() { /usr/bin/python3 "$BATS_TEST_DIRNAME/await_end.py" "$@"; }

needs_root() { [ "$(id -u)" = 0 ] || skip "only root may"; }

# setting NAME: of the system's service, all its lines
setting() { sed -n "s/^$1=//p" "$units/kpackfs@.service" | tr '\n' ' '; }

configure() { # SOURCES [OPTION]
	printf 'SOURCES=%s\nOPTIONS=ro%s\n' "$1" "${2:+,$2}" >"etc/kpackfs/$name.conf"
}

# service FILE: start it; events go to events, messages to log
service() {
	sed "s|/etc/kpackfs|$T/etc/kpackfs|" "$1" >unit
	: >events
	rm -f notify feed
	mkfifo feed
	TEST_RUN=$T TEST_ETC=$T/etc /usr/bin/python3 "$BATS_TEST_DIRNAME/service.py" unit "$name" \
		>feed 2>log 3>&- &
	manager=$!
	exec 5<feed
}

happened() { grep -qxE "$1" events; }
times() { grep -cxE "$1" events; }
main_pid() { sed -n 's/^started //p' events | tail -n 1; }
serves() { [ "$(cat "mnt/toc/${1:-a}/gfx942.hsaco")" = abc ]; }
ready() { await ready && serves; }

stop_service() {
	kill -TERM "$manager"
	await stopped
	wait "$manager"
	manager=
	happened stopped
	! findmnt -rn -M "$T/mnt" || false
}

gone() { ! pgrep -f "kpackfs .*$T/"; }

@test "ready when the mount answers, stopping when it goes, reloading in between" {
	needs_root
	configure "$T/src" umask=022
	service "$units/kpackfs@.service"
	ready
	! happened 'told by another.*' || false
	! happened 'told STOPPING=1' || false
	archive src/b.kpack b
	kill -HUP "$manager"
	await 'told RELOADING=1'
	await 'told READY=1'
	serves b
	[ "$(times 'started .*')" = 1 ]
	stop_service
	happened 'told STOPPING=1'
	happened 'ended 0'
	gone
}

@test "a manager that does not exist does no harm" {
	for address in "$T/nowhere" @nowhere '' relative "/$(printf 'x%.0s' {1..200})"; do
		NOTIFY_SOCKET=$address kpackfs src mnt
		serves
		fusermount3 -u mnt
	done
}

@test "killed, it comes back by itself: the first process, and the one that serves" {
	needs_root
	configure "$T/src"
	service "$units/kpackfs@.service"
	ready
	kill -9 "$(main_pid)"
	ready
	server=$(pgrep -P "$(main_pid)" | head -n 1)
	kill -9 "${server:-$(main_pid)}"
	ready
	happened 'ended -9'
	! happened 'gave up' || false
	stop_service
}

@test "a program keeps its open file, while the service is killed, stopped and started" {
	needs_root
	/usr/bin/python3 "$BATS_TEST_DIRNAME/mkarchive.py" src/big.kpack <<-'END'
	{"scheme": "none", "entries": [
	 {"key": "big#0", "arch": "gfx942", "data": {"size": 3000000, "seed": 1}}]}
	END
	big=mnt/toc/big/gfx942.hsaco
	configure "$T/src"
	service "$units/kpackfs@.service"
	ready
	cat $big >whole
	exec 7<$big
	kill -9 "$(main_pid)"
	ready
	exec 8<$big
	stop_service
	[ "$(grep -x 'ended .*' events | tail -n 1)" = 'ended 0' ]
	! gone || false
	# of the one that was killed
	left=$(pgrep -f "kpackfs .*$T/")
	service "$units/kpackfs@.service"
	ready
	# out of the page cache: it is read again
	/usr/bin/python3 -c 'import os
for fd in 7, 8:
	os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)'
	cmp whole - <&7
	cmp whole - <&8
	exec 7<&- 8<&-
	stop_service
	# shellcheck disable=SC2086 # numbers
	await_end $left
	gone
}

@test "wrong options are not tried again" {
	needs_root
	configure "$T/src" nonsense
	service "$units/kpackfs@.service"
	await 'gave up'
	wait "$manager"
	[ "$(times 'started .*')" = 1 ]
	grep nonsense log
}

@test "a source that does not exist yet is tried until it does" {
	needs_root
	configure "$T/later"
	service "$units/kpackfs@.service"
	await 'ended 1'
	mv src later
	ready
	stop_service
}

@test "a user's own service" {
	configure "$T/src"
	if [ "$(id -u)" = 0 ]; then
		chown -R nobody etc mnt src .
		# the user may not search the project's directory
		cp "$KPACK_BIN/kpackfs" "$BATS_TEST_DIRNAME/service.py" "$units/user/kpackfs@.service" .
		run -0 runuser -u nobody -- env "PATH=$T:$PATH" "TEST_RUN=$T" "TEST_ETC=$T/etc" \
			bash -c 'mkfifo feed; /usr/bin/python3 "$1" "$2" "$3" >feed & pid=$!
				while read -r line; do
					echo "$line"
					[ "$line" != ready ] || { [ "$(cat mnt/toc/a/gfx942.hsaco)" = abc ] && kill -TERM $pid; }
				done <feed >events
				wait $pid' \
			bash service.py kpackfs@.service "$name"
		happened 'ended 0'
		return
	fi
	service "$units/user/kpackfs@.service"
	ready
	stop_service
}

@test "the service's capabilities and no_new_privs are enough" {
	needs_root
	capabilities=$(setting CapabilityBoundingSet | tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ \+/,/g; s/,$//')
	[[ $capabilities == +* ]]
	[ "$(setting NoNewPrivileges)" = 'yes ' ]
	chown nobody src src/a.kpack
	chmod 0700 src
	chmod 0440 src/a.kpack
	setpriv --bounding-set "-all,$capabilities" --inh-caps -all --no-new-privs \
		kpackfs -o allow_other src mnt
	[ "$(runuser -u nobody -- cat mnt/toc/a/gfx942.hsaco)" = abc ]
	kpackfs --version >/dev/null
	umount mnt
}

# The system calls of a filter set, and of the sets in it
calls_of() { # @SET|CALL...
	for one; do
		case $one in
		@*) calls_of $(systemd-analyze syscall-filter "$one" | sed -n 's/^ \{4\}\([@a-z].*\)/\1/p') ;;
		*) echo "$one" ;;
		esac
	done
}

# bats test_tags=plain, all
@test "the service's filter lets every system call of a whole life through" {
	needs_root
	command -v systemd-analyze strace >/dev/null || skip "no systemd-analyze and strace"
	calls_of $(setting SystemCallFilter) | sort -u >allowed
	[ "$(wc -l <allowed)" -gt 200 ]
	grep -qx umount2 allowed
	mkfifo up
	strace -f -qq -o trace sh -c 'kpackfs -o arch=all "$1/src" "$1/mnt" ; echo' sh "$T" >up 2>log 3>&- &
	read -r <up
	serves
	archive src/b.kpack b
	cat mnt/.kpackfs/barrier >/dev/null
	serves b
	umount mnt
	wait $!
	sed -nE 's/^[0-9]+ +([a-z_0-9]+)\(.*/\1/p' trace | sort -u >used
	grep -qx mount used
	# exec's own, and what strace makes up, are not filtered
	comm -23 used allowed >forbidden
	[ ! -s forbidden ] || { cat forbidden; return 1; }
}

@test "no option hides the mount from the rest of the system" {
	# each gives the service a mount name space, systemd.exec(5)
	! grep -hE '^(Private(Tmp|Devices|Mounts|Network|Users|IPC)|Protect(System|Home|KernelTunables|KernelModules|KernelLogs|ControlGroups|Proc|Clock)|ProcSubset|(ReadOnly|ReadWrite|Inaccessible|Exec|NoExec|Bind|BindReadOnly)Paths|TemporaryFileSystem|Root(Directory|Image)|(Runtime|State|Cache|Logs)Directory|DynamicUser|MountImages|ExtensionImages|MountFlags|LoadCredential|SetCredential)=' \
		"$units"/kpackfs@.service "$units"/user/kpackfs@.service || false
}

# bats test_tags=all
@test "systemd takes the services and the automount" {
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	cp "$units"/*mount .
	sed "s|^ExecStart=kpackfs|ExecStart=$KPACK_BIN/kpackfs|" "$units/kpackfs@.service" >kpackfs@mnt-kernels.service
	run -0 systemd-analyze verify --man=no ./kpackfs@mnt-kernels.service ./mnt-kernels.automount
	[ -z "$output" ] || { echo "$output"; return 1; }
	# the user's, as far as no user's manager is needed
	mkdir user
	sed "s|^ExecStart=kpackfs|ExecStart=$KPACK_BIN/kpackfs|" "$units/user/kpackfs@.service" \
		>user/kpackfs@mnt-kernels.service
	run -0 systemd-analyze verify --man=no ./user/kpackfs@mnt-kernels.service
	[ -z "$output" ] || { echo "$output"; return 1; }
	grep -qx "Where=$(sed -n 's/^Where=//p' mnt-kernels.mount)" mnt-kernels.automount
}

# generate: systemd's units of fstab, in made/
generate() {
	generator=/lib/systemd/system-generators/systemd-fstab-generator
	[ -x $generator ] || skip "no $generator"
	mkdir -p made early late
	SYSTEMD_FSTAB=$T/fstab $generator "$T/made" "$T/early" "$T/late"
}

# bats test_tags=all
@test "what systemd makes of lines in fstab" {
	cat >fstab <<-'END'
	/opt/rocm/.kpack /mnt/kernels fuse.kpackfs ro,allow_other,nofail,x-systemd.automount,x-systemd.idle-timeout=10min 0 0
	/opt/rocm/.kpack /mnt/plain fuse.kpackfs ro,allow_other,nofail,x-systemd.requires-mounts-for=/opt/rocm 0 0
	END
	generate
	grep -qx TimeoutIdleSec=10min made/mnt-kernels.automount
	grep -qx Type=fuse.kpackfs made/mnt-kernels.mount
	[ -L made/local-fs.target.wants/mnt-kernels.automount ]
	[ ! -e made/local-fs.target.wants/mnt-kernels.mount ]
	[ -L made/local-fs.target.wants/mnt-plain.mount ]
	[ ! -e made/local-fs.target.requires/mnt-plain.mount ]
	grep -qx RequiresMountsFor=/opt/rocm made/mnt-plain.mount
	! command -v systemd-analyze >/dev/null || systemd-analyze verify --man=no made/*mount
	# and the options of these units are options
	needs_root
	for unit in made/*.mount; do
		options=$(sed -n 's/^Options=//p' "$unit")
		mount -t "fuse.$KPACK_BIN/kpackfs" src mnt -o "$options"
		serves
		umount mnt
	done
}

# bats test_tags=all
@test "the lines of the manual page and of README.md are what systemd takes" {
	{
		sed -n '/^\/.* fuse\.kpackfs /p' "$KPACK_SRC/kpackfs.1"
		awk '/^```fstab/ { inside = 1; next } /^```/ { inside = 0 } inside' "$KPACK_SRC/README.md"
	} | awk '!seen[$2]++' >fstab
	[ "$(wc -l <fstab)" -ge 2 ]
	generate
	while read -r source place type options rest; do
		unit=made/$(systemd-escape -p --suffix=mount "$place")
		grep -qx "What=$source" "$unit" && grep -qx "Type=$type" "$unit"
		[[ $options != *nofail* ]] || ! grep -r "$place" made/local-fs.target.requires || false
	done <fstab
}

@test "with more rights than its caller it heeds nothing of the environment" {
	needs_root
	[[ ,$(findmnt -no OPTIONS -T "$T"), != *,nosuid,* ]] || skip "no set-user-ID programs here"
	install -m 4755 "$KPACK_BIN/kpackfs" "$T/raised"
	chmod 0777 mnt
	# all that the program sends to a manager, when it has ended; as one that root starts
	told() { # USER PROGRAM
		/usr/bin/python3 - "$@" <<-'END'
		import os, select, socket, subprocess, sys
		user, program = int(sys.argv[1]), sys.argv[2]
		name = "kpackfs-test-%d" % os.getpid()
		manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		manager.bind("\0" + name)
		end = os.pipe()
		daemon = subprocess.Popen([program, "-f", "-o", "allow_other", "src", "mnt"],
		                          env={"PATH": os.environ["PATH"], "NOTIFY_SOCKET": "@" + name,
		                               # a program with more rights cannot be searched for leaks
		                               "ASAN_OPTIONS": "detect_leaks=0"},
		                          user=user, group=user, extra_groups=[], pass_fds=[end[1]])
		os.close(end[1])
		with open("/proc/self/mountinfo") as mounts:
		    changes = select.poll()
		    changes.register(mounts, select.POLLPRI)
		    changes.register(os.pidfd_open(daemon.pid), select.POLLIN)
		    while not os.path.ismount("mnt") and daemon.poll() is None:
		        changes.poll()
		subprocess.run(["umount", "mnt"])
		os.read(end[0], 1)  # the server has ended, too
		print(daemon.wait())
		manager.setblocking(False)
		try:
		    while True:
		        print(manager.recv(4096).decode().split("\n")[0])
		except BlockingIOError:
		    pass
		END
	}
	told 0 "$T/raised" >by-root
	grep -q ^READY=1 by-root
	told 65534 "$T/raised" >by-nobody
	[ "$(cat by-nobody)" = 0 ]
}
