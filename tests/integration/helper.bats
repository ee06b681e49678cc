#!/usr/bin/env bats
# kpackfs called by mount(8) and its helpers: exit codes, options, and mounts made by
# other programs.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load mounting

make_source() {
	echo '{"entries": [{"key": "f", "arch": "generic", "type": "dat", "data": "bytes\n",
	 "metadata": {"path": "f"}}]}' | make_archive src/a.kpack
	ln -s "$KPACK_BIN/kpackfs" mount.kpackfs
}

works() { [ "$(cat mnt/f)" = bytes ]; }

@test "mount(8)'s codes: 0, 1 for what was asked, 32 for what cannot be mounted" {
	make_source
	echo junk >junk.kpack
	touch file
	for arguments in "" "$T/src" "$T/src $T/mnt -o nope" "$T/src $T/mnt --nope" \
		"$T/src $T/mnt -o cache_size=x" "$T/src $T/mnt -o"; do
		echo "1: $arguments"
		# shellcheck disable=SC2086 # words
		run -1 ./mount.kpackfs $arguments
	done
	for arguments in "$T/none $T/mnt" "$T/src $T/none" "$T/src $T/file" \
		"$T/junk.kpack $T/mnt" "$T/src /dev/fd/97" "$T/src /dev/fd/x"; do
		echo "32: $arguments"
		# shellcheck disable=SC2086 # words
		run -32 ./mount.kpackfs $arguments -o rw
	done
	run ! mountpoint -q mnt
	./mount.kpackfs "$T/src" "$T/mnt" -o rw
	works
	unmount
}

@test "what fstab may say besides, and mount(8) adds, means nothing" {
	make_source
	./mount.kpackfs "$T/src" "$T/mnt" -n -s -v -t kpackfs -o rw,users,nofail,_netdev,noauto \
		-o x-systemd.automount,x-systemd.requires=a.service,X-mount.mkdir=0755 -o comment=x
	works
	findmnt -no OPTIONS mnt | grep -q '^ro,'
	! findmnt -no OPTIONS mnt | grep -qE 'x-|users|nofail|_netdev' || false
	unmount
	# mount -f: all but the mount
	./mount.kpackfs "$T/src" "$T/mnt" -f -n -o rw
	run ! mountpoint -q mnt
}

@test "mount -t fuse.kpackfs: -n, -r, a source that does not exist, and drop_privileges" {
	must_be_root
	make_source
	type=fuse.$KPACK_BIN/kpackfs
	mount -n -r -t "$type" "$T/src" "$T/mnt" -o users,nofail,_netdev,x-initrd.mount,noexec
	works
	unmount
	run mount -t "$type" "$T/none" "$T/mnt"
	[ "$status" != 0 ]
	# mount.fuse3 mounts, as the option says, and starts kpackfs with /dev/fd/N and without capabilities
	chmod 0755 src
	mount -t "$type" "$T/src" "$T/mnt" -o ro,drop_privileges,allow_other
	works
	nobody cat mnt/f >/dev/null
	findmnt -no OPTIONS mnt | grep -q '^ro,'
	unmount
}

@test "/dev/fd/N: the program that opened /dev/fuse and mounted hands over the descriptor" {
	must_be_root
	make_source
	py "$T" <<-'END'
	import ctypes, os, subprocess, sys
	top = sys.argv[1]
	libc = ctypes.CDLL(None, use_errno=True)
	for options in ([], ["-f"], ["-s", "-f"]):
	    fd = os.open("/dev/fuse", os.O_RDWR)
	    data = f"fd={fd},rootmode=40000,user_id=0,group_id=0,default_permissions".encode()
	    flags = 1 | 2 | 4  # read-only, nosuid, nodev
	    assert libc.mount(b"src", b"mnt", b"fuse.kpackfs", flags, data) == 0, ctypes.get_errno()
	    p = subprocess.Popen(["kpackfs", *options, f"{top}/src", f"/dev/fd/{fd}"], pass_fds=[fd])
	    os.close(fd)
	    if not options:
	        assert p.wait(600) == 0
	    assert open("mnt/f").read() == "bytes\n"
	    assert sorted(os.listdir("mnt")) == ["f", "toc"]
	    subprocess.run(["umount", "mnt"], check=True)
	    assert p.wait(600) == 0
	END
	gone
}
