#!/usr/bin/env bats
# Mounts in containers, and mounts of the host in containers.  A container here is what
# the kernel sees: namespaces, made with unshare(1).

bats_require_minimum_version 1.5.0

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpackfs-container-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	mkdir src mnt
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	echo '{"entries": [{"key": "a#0", "arch": "gfx942", "data": "abc"}]}' |
		/usr/bin/python3 "$BATS_TEST_DIRNAME/mkarchive.py" src/a.kpack
	# sudo and runuser drop PATH, and another user may not search the build's directory
	cp "$KPACK_BIN/kpackfs" "$KPACK_SRC/contrib/container/entrypoint" .
	PATH=$T:$PATH
	container=
}

teardown() {
	cd /
	[ -z "$container" ] || kill -9 "$container" 2>/dev/null || :
	for m in $(findmnt -rno TARGET | grep "^$T/" | tac); do
		umount -l "$m"
	done
	gone && rm -rf "$T"
}

# The daemons of this test have ended.
gone() {
	for _ in $(seq 2400); do
		pgrep -f "kpackfs .*$T/" >/dev/null || return 0
		read -rt 0.05 <> <(:) || :
	done
	pgrep -af "kpackfs .*$T/"
	return 1
}

needs_root() { [ "$(id -u)" = 0 ] || skip "only root may"; }

# isolated COMMAND...: by root, and by an ordinary user
isolated() {
	unshare -Urm "$@"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- env "PATH=$PATH" unshare -Urm "$@"
}

user_namespaces() {
	unshare -Urm true || skip "no user name spaces"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- unshare -Urm true || skip "none for users"
}

@test "without privileges: root of a user name space mounts, without fusermount3" {
	user_namespaces
	mkdir empty
	isolated sh -ec '
		for tool in fusermount3 fusermount; do
			[ ! -e /usr/bin/$tool ] || mount --bind /dev/null /usr/bin/$tool
		done
		kpackfs "$0/src" "$0/mnt"
		[ "$(cat "$0/mnt/toc/a/gfx942.hsaco")" = abc ]
		umount "$0/mnt"' "$T"
	! mountpoint -q mnt || false
}

@test "there allow_other needs no line in fuse.conf" {
	user_namespaces
	isolated sh -ec '
		[ ! -e /etc/fuse.conf ] || mount --bind /dev/null /etc/fuse.conf
		kpackfs -o allow_other "$0/src" "$0/mnt"
		[ "$(cat "$0/mnt/toc/a/gfx942.hsaco")" = abc ]
		umount "$0/mnt"' "$T"
}

@test "a process outside of the namespace does not see into it" {
	user_namespaces
	# a container's processes end with its first one, the daemon too
	unshare -Urmpf --mount-proc --kill-child sh -ec 'kpackfs -o allow_other "$0/src" "$0/mnt"; : >"$0/ready"; exec sleep 60' "$T" 3>&- &
	container=$!
	wait_for [ -e ready ]
	[ -z "$(ls mnt)" ]
}

wait_for() { # COMMAND...
	for _ in $(seq 2400); do
		"$@" 2>/dev/null && return 0
		read -rt 0.05 <> <(:) || :
	done
	echo "in vain: $*"
	return 1
}

@test "the entrypoint mounts and becomes the command" {
	user_namespaces
	export KPACKFS_SOURCES="$T/src/a.kpack $T/more" KPACKFS_MOUNTPOINT=$T/new/mnt KPACKFS_OPTIONS=uid=0
	mkdir more
	chmod 0777 "$T"
	for run in 1 2; do
		run -0 unshare -Urmpf --mount-proc entrypoint \
			sh -c 'cat "$1"; stat -c %u "$1"; mount; exit 0' sh "$T/new/mnt/toc/a/gfx942.hsaco"
		grep -x abc0 <<<"$output"
		grep -q "$T/new/mnt type fuse.kpackfs (ro," <<<"$output"
	done
	run -7 unshare -Urmpf --mount-proc entrypoint sh -c 'exit 7'
	KPACKFS_SOURCES=$T/nowhere run -1 unshare -Urmpf --mount-proc entrypoint sh -c 'echo never'
	[[ $output == *nowhere* && $output != *never* ]]
}

# start_container: it sees share/ as rslave, another directory as it was when it began
start_container() {
	mkdir -p share/kernels
	mount --bind share share
	mount --make-private share
	mount --make-shared share
	unshare -m --propagation slave sleep 300 3>&- &
	container=$!
	wait_for eval '[ "$(readlink /proc/$container/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]'
}

# -r: these tests may run in a root of their own
inside() { nsenter -t "$container" -m -r "$@"; }

@test "a mount of the host is seen in a container that has the directory above it, with rslave" {
	needs_root
	start_container
	kpackfs src share/kernels
	[ "$(inside cat "$T/share/kernels/toc/a/gfx942.hsaco")" = abc ]
	# a new one is seen too: after an upgrade, a crash, a reboot of the daemon
	umount share/kernels
	[ -z "$(inside ls "$T/share/kernels")" ]
	kpackfs -o umask=077 src share/kernels
	[ "$(inside stat -c %a "$T/share/kernels/toc/a/gfx942.hsaco")" = 400 ]
	# what the container does with it stays there
	inside umount "$T/share/kernels"
	[ "$(cat share/kernels/toc/a/gfx942.hsaco)" = abc ]
}

@test "the mount itself, bound into a container, stays the one it was" {
	needs_root
	mkdir -p share/kernels
	kpackfs src share/kernels
	unshare -m --propagation slave sh -ec 'mkdir "$0/bound"; mount --bind "$0/share/kernels" "$0/bound"
		: >"$0/ready"; exec sleep 300' "$T" 3>&- &
	container=$!
	wait_for [ -e ready ]
	[ "$(inside cat "$T/bound/toc/a/gfx942.hsaco")" = abc ]
	umount share/kernels
	kpackfs src share/kernels
	# the old one is still served: its daemon lives as long as somebody has it mounted
	[ "$(inside cat "$T/bound/toc/a/gfx942.hsaco")" = abc ]
	old=$(inside stat -c %d "$T/bound")
	[ "$(stat -c %d share/kernels)" != "$old" ]
}

@test "users of a container's own user name space read the host's mount" {
	needs_root
	user_namespaces
	start_container
	kpackfs -o allow_other src share/kernels
	[ "$(inside unshare -Ur cat "$T/share/kernels/toc/a/gfx942.hsaco")" = abc ]
	[ "$(inside setpriv --reuid 4711 --regid 4711 --clear-groups \
		cat "$T/share/kernels/toc/a/gfx942.hsaco")" = abc ]
}

# Its processes end with it.
serve_from_container() {
	KPACKFS_SOURCES=$T/src KPACKFS_MOUNTPOINT=$T/share/kernels \
		unshare -mpf --kill-child --propagation unchanged entrypoint 3>&- &
	container=$!
}

@test "a container with a shared directory serves the host and others" {
	needs_root
	mkdir -p share
	mount --bind share share
	mount --make-private share
	mount --make-shared share
	serve_from_container
	wait_for mountpoint -q share/kernels
	[ "$(cat share/kernels/toc/a/gfx942.hsaco)" = abc ]
	# killed, it may leave a mount that answers nothing but what the kernel has; the next
	# one clears it away
	kill -9 "$container"
	wait "$container" || :
	wait_for eval '! cat share/kernels/.kpackfs/version'
	serve_from_container
	wait_for eval '[ "$(cat share/kernels/toc/a/gfx942.hsaco)" = abc ]'
}

@test "the recipes are whole" {
	cd "$KPACK_SRC/contrib/container"
	/usr/bin/python3 - <<-'END'
	import configparser
	quadlet = configparser.ConfigParser(strict=False)
	quadlet.optionxform = str
	quadlet.read("kpackfs.container")
	assert quadlet["Container"]["AddDevice"] == "/dev/fuse"
	END
	grep -q '^COPY contrib/container/entrypoint ' Containerfile
	for variable in $(grep -ohE 'KPACKFS_[A-Z]+' compose.yaml kpackfs.container | sort -u); do
		grep -q "\${$variable:-" entrypoint
	done
}
