#!/usr/bin/env bats
# Mounts in containers, and mounts of the host in containers.  A container here is what
# the kernel sees: namespaces, made with unshare(1).

bats_require_minimum_version 1.5.0

load mounting

setup() {
	begin_test
	echo '{"entries": [{"key": "a#0", "arch": "gfx942", "data": "abc"}]}' | make_archive src/a.kpack
	# sudo and runuser drop PATH, and another user may not search the build's directory
	cp "$KPACK_BIN/kpackfs" "$KPACK_SRC/contrib/examples/container/entrypoint" .
	PATH=$T:$PATH
}

user_namespaces() {
	unshare -Urm true || skip "no user name spaces"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- unshare -Urm true || skip "none for users"
}

# isolated COMMAND...: by root, and by an ordinary user
isolated() {
	unshare -Urm "$@"
	[ "$(id -u)" != 0 ] || runuser -u nobody -- env "PATH=$PATH" unshare -Urm "$@"
}

@test "without privileges: root of a user name space mounts, without fusermount3, and for others without fuse.conf" {
	user_namespaces
	for options in ro allow_other; do
		isolated sh -ec '
			for tool in /usr/bin/fusermount3 /usr/bin/fusermount /etc/fuse.conf; do
				[ ! -e $tool ] || mount --bind /dev/null $tool
			done
			kpackfs -o "$1" "$0/src" "$0/mnt"
			[ "$(cat "$0/mnt/toc/a/gfx942.hsaco")" = abc ]
			umount "$0/mnt"' "$T" $options
	done
	! mountpoint -q mnt || false
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
	# the recipes name what they use
	grep -q '^COPY contrib/examples/container/entrypoint ' "$KPACK_SRC/contrib/examples/container/Containerfile"
	grep -qx 'AddDevice=/dev/fuse' "$KPACK_SRC/contrib/examples/container/kpackfs.container"
	for variable in $(grep -ohE 'KPACKFS_[A-Z]+' "$KPACK_SRC"/contrib/examples/container/{compose.yaml,kpackfs.container} | sort -u); do
		grep -q "\${$variable:-" entrypoint
	done
}

@test "a mount of the host in a container: below a directory with rslave, bound itself, and for its users" {
	must_be_root
	user_namespaces
	mounts <<-'END'
	def run(*command):
	    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().strip()
	class Container:
	    """It lives until its standard input ends."""
	    def __init__(self, *options, first="", entry=(), env=()):
	        self.p = subprocess.Popen(["unshare", *options, *entry, "sh", "-ec", first + "echo ready; exec cat"], stdin=subprocess.PIPE,
	                                  stdout=subprocess.PIPE, env=dict(os.environ, **dict(env)))
	        assert self.p.stdout.readline() == b"ready\n"
	    def inside(self, *command):
	        # -r: these tests may run in a root of their own
	        return run("nsenter", "-t", str(self.p.pid), "-m", "-r", *command)
	    def end(self):
	        self.p.stdin.close()
	        self.p.wait()
	T = os.getcwd()
	os.makedirs("share/kernels"), os.mkdir("bound")
	file, here = T + "/share/kernels/toc/a/gfx942.hsaco", "share/kernels/toc/a/gfx942.hsaco"
	run("mount", "--bind", "share", "share"), run("mount", "--make-private", "share"), run("mount", "--make-shared", "share")
	start("-o", "allow_other", "src", "share/kernels")
	one = Container("-m", "--propagation", "slave")
	assert one.inside("cat", file) == "abc"
	# also for users of its own user name space
	assert one.inside("unshare", "-Ur", "cat", file) == "abc"
	assert one.inside("setpriv", "--reuid", "4711", "--regid", "4711", "--clear-groups", "cat", file) == "abc"
	# a new one is seen too: after an upgrade, a crash, a reboot of the daemon
	run("umount", "share/kernels")
	assert one.inside("ls", T + "/share/kernels") == ""
	start("-o", "umask=077", "src", "share/kernels")
	assert one.inside("stat", "-c", "%a", file) == "400"
	# what the container does with it stays there
	one.inside("umount", T + "/share/kernels")
	assert text(here) == "abc"
	one.end()
	# the mount itself, bound into a container, stays the one it was: its daemon lives as long as somebody has it
	two = Container("-m", "--propagation", "slave", first="mount --bind share/kernels bound\n")
	run("umount", "share/kernels")
	start("src", "share/kernels")
	assert two.inside("cat", T + "/bound/toc/a/gfx942.hsaco") == "abc"
	assert int(two.inside("stat", "-c", "%d", T + "/bound")) != os.stat("share/kernels").st_dev
	two.end()
	run("umount", "share/kernels")
	# a container serves the host; killed, it may leave a mount that answers nothing but what the kernel has, and
	# the next one clears it away
	for _ in range(2):
	    three = Container("-mpf", "--kill-child", "--propagation", "unchanged", entry=("entrypoint",),
	                      env={"KPACKFS_SOURCES": T + "/src", "KPACKFS_MOUNTPOINT": T + "/share/kernels"})
	    assert text(here) == "abc"
	    three.p.kill()
	    with contextlib.suppress(ChildProcessError):
	        while True:  # its first process ends after all others
	            os.wait()
	    fails((errno.ENOTCONN, errno.ECONNABORTED, errno.ENOENT), text, "share/kernels/.kpackfs/status")
	# a process outside of a namespace does not see into it
	four = Container("-Urmpf", "--mount-proc", "--kill-child", first='kpackfs -o allow_other "%s/src" "%s/mnt"\n' % (T, T))
	assert os.listdir("mnt") == []
	four.end()
	END
}
