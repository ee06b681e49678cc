#!/usr/bin/env bats
# Integration into the system: mount(8), fstab and its helpers, options as users of
# libfuse expect them, completions, and --status.

# bats file_tags=single

bats_require_minimum_version 1.5.0

load mounting

setup() {
	begin_test
	completion=$KPACK_SRC/contrib/completion
	archive src/a.kpack a
}

archive() { # FILE KEY
	echo '{"entries": [{"key": "'"$2"'#0", "arch": "gfx942", "data": "abc"}]}' |
		make_archive "$1.new"
	mv "$1.new" "$1"
}

serves() { [ "$(cat "mnt/toc/${1:-a}/gfx942.hsaco")" = abc ]; }

# ---- options ----

@test "options come before, between and behind the paths, together and apart" {
	for order in '-o ro,umask=077 src mnt' 'src -o ro -o umask=077 mnt' 'src mnt -oro,umask=077' \
		'-r -o umask=077 -- src mnt' 'src mnt -n -r -v -o umask=0077'; do
		# shellcheck disable=SC2086 # words
		kpackfs $order
		[ "$(stat -c %a mnt/toc/a/gfx942.hsaco)" = 400 ]
		fusermount3 -u mnt
	done
}

@test "an architecture that no archive has is reported, and mounted all the same" {
	run -0 kpackfs -o arch=gfx940,gfx1100,gfx942 src mnt
	[[ $output != *gfx942:* ]]
	[[ $output == *"arch=gfx1100: no archive has a file for it"* ]]
	serves
	fusermount3 -u mnt
	# what entries have that are for no AMD GPU
	for name in sm_90 compute_80 generic amdgcnspirv gfx11-generic gfx1250-strict; do
		run -0 kpackfs -o arch=$name src mnt
		fusermount3 -u mnt
		[[ $name == generic || $output == *"arch=$name: no archive has a file for it"* ]] || { echo "$name: $output"; false; }
	done
}

# ---- mount(8) ----

# as_type: its words for -t; mount(8) looks for a program in root's PATH, or at a path
as_type() { echo "fuse.$KPACK_BIN/kpackfs"; }

@test "mount -t, with what mount(8) and fstab may add" {
	must_be_root
	for options in defaults ro,nofail,noauto,user,_netdev,x-systemd.automount,x-systemd.idle-timeout=10min \
		rw,allow_other,nodev,nosuid,noatime comment=kernels,X-mine=1 ro,auto,exec,async; do
		mount -t "$(as_type)" src mnt -o "$options" || { echo "$options"; return 1; }
		serves
		[[ $(findmnt -rno OPTIONS mnt) == ro,nosuid,nodev,* ]]
		umount mnt
	done
	mount -n -t "$(as_type)" src mnt
	serves
}

@test "mount -a takes several from fstab, and umount -a by type" {
	must_be_root
	mkdir mnt/one more
	archive more/b.kpack b
	rmdir mnt/one
	mkdir mnt2
	cat >fstab <<-END
	$T/src $T/mnt $(as_type) ro,nofail,source=$T/more 0 0
	$T/src $T/mnt2 $(as_type) ro,noauto 0 0
	END
	mount -a -T fstab
	serves
	serves b
	! mountpoint -q mnt2 || false
	umount mnt
}

@test "mount -o setuid= opens the device and mounts, and we serve as that user" {
	must_be_root
	helper=$(command -v mount.fuse3 || ls /sbin/mount.fuse3) || skip "no mount.fuse3"
	cp "$KPACK_BIN/kpackfs" .
	chown nobody mnt
	"$helper" "$T/src" "$T/mnt" -t "fuse.$T/kpackfs" -o ro,setuid=nobody
	[ "$(runuser -u nobody -- cat mnt/toc/a/gfx942.hsaco)" = abc ]
	[ "$(ps -o user= -p "$(pgrep -f "kpackfs .*$T/" | head -n 1)")" = nobody ]
	umount mnt
}

@test "mount.kpackfs: 0, and 32 for what cannot be mounted" {
	ln -s "$KPACK_BIN/kpackfs" mount.kpackfs
	echo junk >junk.kpack
	touch file
	for arguments in "$T/none $T/mnt" "$T/src $T/none" "$T/src $T/file" "$T/junk.kpack $T/mnt" "$T/src /dev/fd/97" \
		"$T/src /dev/fd/x"; do
		# shellcheck disable=SC2086 # words
		run -32 ./mount.kpackfs $arguments -o rw
	done
	run -1 ./mount.kpackfs "$T/src" "$T/mnt" -o nope
	! mountpoint -q mnt || false
	./mount.kpackfs "$T/src" "$T/mnt" -o rw
	serves
}

@test "what fstab may say besides, and mount(8) adds, means nothing" {
	ln -s "$KPACK_BIN/kpackfs" mount.kpackfs
	./mount.kpackfs "$T/src" "$T/mnt" -n -s -v -t kpackfs -o rw,users,nofail,_netdev,noauto \
		-o x-systemd.automount,x-systemd.requires=a.service,X-mount.mkdir=0755 -o comment=x
	serves
	findmnt -no OPTIONS mnt | grep -q '^ro,'
	! findmnt -no OPTIONS mnt | grep -qE 'x-|users|nofail|_netdev' || false
	unmount
	# mount -f: all but the mount
	./mount.kpackfs "$T/src" "$T/mnt" -f -n -o rw
	run ! mountpoint -q mnt
}

@test "mount -t fuse.kpackfs: a source that does not exist, and drop_privileges" {
	must_be_root
	! mount -t "$(as_type)" "$T/none" "$T/mnt" || false
	# mount.fuse3 mounts, as the option says, and starts kpackfs with /dev/fd/N and without capabilities
	chmod 0755 src
	mount -t "$(as_type)" "$T/src" "$T/mnt" -o ro,drop_privileges,allow_other
	serves
	nobody cat mnt/toc/a/gfx942.hsaco >/dev/null
	[[ $(findmnt -no OPTIONS mnt) == ro,* ]]
}

@test "/dev/fd/N: the program that opened /dev/fuse and mounted hands over the descriptor" {
	must_be_root
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
	    assert open("mnt/toc/a/gfx942.hsaco").read() == "abc"
	    subprocess.run(["umount", "mnt"], check=True)
	    assert p.wait(600) == 0
	END
	gone
}

@test "mounted again at once, the mount stays" {
	for _ in {1..8}; do
		kpackfs "$T/src" "$T/mnt"
		serves
		fusermount3 -u mnt
	done
	others=$(daemons || :)
	kpackfs "$T/src" "$T/mnt"
	# shellcheck disable=SC2086 # numbers
	$python "$BATS_TEST_DIRNAME/await_end.py" $others
	serves
}

# ---- --status ----

@test "--status: a mount that is well" {
	kpackfs -o arch=gfx942,cache_size=8m src mnt
	serves
	run -0 kpackfs --status mnt
	[ "${lines[0]}" = healthy ]
	# times and numbers may change from one look to the next
	diff <(kpackfs --status mnt | tr -s 0-9 N) <(tr -s 0-9 N <mnt/.kpackfs/status)
	grep -qE "^  program +kpackfs [0-9.]+, process [0-9]+\$" <<<"$output"
	grep -qE "^  archives +1 archive in $T/src\$" <<<"$output"
	grep -qE '^  shown +1 file, 3 directories, of 1 entry$' <<<"$output"
	grep -qE '^  for +gfx942$' <<<"$output"
	grep -qE '^  read +3 bytes in 1 read,' <<<"$output"
	# less while the machine is short of memory
	grep -qE '^  memory +.* of 8\.0 MiB' <<<"$output" ||
		! grep -q '"cache_budget": 8388608,' mnt/.kpackfs/stats || false
	grep -qE '^  reloads +0$' <<<"$output"
	# the program that started it may not wait for its children
	run -0 /usr/bin/python3 -c 'import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp("kpackfs", ["kpackfs", "--status", "mnt"])'
	[ "${lines[0]}" = healthy ]
	# the process is the one that serves
	pid=$(sed -n 's/.*, process //p' <<<"$output")
	[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$KPACK_BIN/kpackfs")" ]
	# numbers agree with those for programs
	[ "$(/usr/bin/python3 -c 'import json; print(json.load(open("mnt/.kpackfs/stats"))["pid"])')" = "$pid" ]
}

@test "--status: a mount without an archive is not well" {
	no_archive() { ! kpackfs --status mnt >said || false; [ "$(head -n 1 said)" = "no archive: its sources have none" ]; }
	mkdir more
	kpackfs "$T/src" "$T/more" mnt
	mv src/*.kpack "$T"
	barrier
	no_archive
	[ "$(head -n 1 mnt/.kpackfs/status)" = "$(head -n 1 said)" ]
	# one refused is another reason
	echo nonsense >src/b.kpack
	barrier
	kpackfs --status mnt | grep -q "^1 archive refused"
	rm src/b.kpack
	barrier
	no_archive
	mv ./*.kpack more
	barrier
	kpackfs --status mnt
	serves
	fusermount3 -u mnt
	kpackfs -q src mnt
	no_archive
}

@test "--status: no mount, no mount of ours, wrong use" {
	run -1 kpackfs --status mnt
	[[ $output == "kpackfs: mnt: no kpackfs is mounted here" ]]
	run -1 kpackfs --status nowhere
	mkdir -p fake/.kpackfs
	echo healthy >fake/.kpackfs/status
	run -1 kpackfs --status fake
	run -1 kpackfs --status src/a.kpack
	kpackfs src mnt
	run -1 kpackfs --status mnt/toc
	run -2 kpackfs --status
	run -2 kpackfs --status src mnt
	run -0 kpackfs --status "$T/mnt/"
	ln -s mnt link
	run -0 kpackfs --status link
}

@test "--status: another user gets the reason for the refusal" {
	must_be_root
	cp "$KPACK_BIN/kpackfs" .
	chown nobody mnt
	runuser -u nobody -- ./kpackfs src mnt
	run -1 kpackfs --status mnt
	[[ $output == *allow_other* ]]
	run -0 runuser -u nobody -- ./kpackfs --status mnt
}

@test "--status: a daemon that was killed" {
	kpackfs "$T/src" "$T/mnt"
	pkill -9 -f "kpackfs .*${T:?}/"
	gone
	# a supervisor that outlived its server took the mount away
	if findmnt -rn -M "$T/mnt"; then
		run -1 kpackfs --status mnt
		[[ $output == *"has died"*fusermount3* ]]
	fi
}

@test "--status: a server that stopped with the question in hand" {
	must_be_root
	# it has taken all requests up, the last one too
	mkfifo mounted
	$python - >mounted 3>&- <<-'END' &
	import ctypes, os, struct
	fd = os.open("/dev/fuse", os.O_RDWR)
	options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
	assert ctypes.CDLL(None).mount(b"none", b"mnt", b"fuse", 0, options) == 0
	unique = struct.unpack_from("8xQ", os.read(fd, 65536))[0]
	init = struct.pack("=IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
	os.write(fd, struct.pack("=IiQ", 16 + len(init), 0, unique) + init)
	os.close(1)
	while True:
	    os.read(fd, 65536)
	END
	server=$!
	! read -r <mounted || false
	# as the program that started it may have them
	run -1 bash -c 'trap "" ALRM; exec kpackfs --status "$0"' "$T/mnt"
	[[ $output == *"does not answer"* ]]
	kill -KILL $server
	# nor does anybody stay behind
	gone
}

# ---- completions ----

# offered LINE: what bash would offer, a line each
offered() {
	bash --norc -c '
		. "$1/kpackfs.bash"
		COMP_LINE=$2
		COMP_POINT=${#2}
		read -ra COMP_WORDS <<<"${2//=/ = }"
		[[ $2 != *[=\ ] ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_kpackfs
		printf "%s\n" "${COMPREPLY[@]}"' bash "$completion" "$1" 2>/dev/null
}

@test "bash offers options, their values, and lists of both" {
	offered 'kpackfs -o ' | grep -qx allow_other
	[ "$(offered 'kpackfs -o cac')" = cache_size= ]
	[ "$(offered 'kpackfs -o ro,cac')" = ro,cache_size= ]
	offered 'kpackfs -o arch=' | grep -qx auto
	[ "$(offered 'kpackfs -o arch=gfx942')" = gfx942 ]
	[ "$(offered 'kpackfs -o ro,arch=gfx94' | tr '\n' ' ')" = 'gfx940 gfx941 gfx942 ' ]
	[ "$(offered 'kpackfs -o arch=gfx90a,gfx94' | head -n 1)" = gfx90a,gfx940 ]
	[ -z "$(offered 'kpackfs -o ro,gfx94')" ]
	[ "$(offered 'kpackfs -o source=sr')" = src ]
	[ "$(offered 'kpackfs sr')" = src ]
	[ "$(offered 'kpackfs --st')" = --status ]
	[ "$(offered 'kpackfs --status mn')" = mnt ]
}

# bats test_tags=all
@test "fish does" {
	command -v fish >/dev/null || skip "no fish"
	# asked for LINE
	fishing() { HOME=$T fish --no-config -c "source $completion/kpackfs.fish; complete -C '$1'" | cut -f 1; }
	fishing 'kpackfs -o ' | grep -qx allow_other
	[ "$(fishing 'kpackfs -o ro,cac')" = ro,cache_size= ]
	[ "$(fishing 'kpackfs -o arch=gfx94' | tr '\n' ' ')" = 'arch=gfx940 arch=gfx941 arch=gfx942 ' ]
	[ "$(fishing 'kpackfs -o arch=gfx90a,gfx942')" = arch=gfx90a,gfx942 ]
	[ "$(fishing 'kpackfs -o ro,source=sr')" = ro,source=src/ ]
	[ "$(fishing 'kpackfs --st')" = --status ]
}

# bats test_tags=all
@test "zsh does" {
	command -v zsh >/dev/null || skip "no zsh"
	# pressed LINE PATTERN: what appears behind the line after a tab has PATTERN
	pressed() {
		zsh -f -c '
			zmodload zsh/zpty
			zpty shell zsh -f -i
			zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
				compdef _kpackfs kpackfs; bindkey ^I list-choices; LISTMAX=1000; echo BE\GUN"
			zpty -r -m shell seen "*BEGUN*"
			zpty -n -w shell "$2"$'\''\t'\''
			zpty -r -m shell seen "$3"' zsh "$completion" "$1" "$2"
	}
	pressed 'kpackfs -o ro,cac' '*cache_size*'
	pressed 'kpackfs -o arch=gfx94' '*gfx940*gfx942*'
	pressed 'kpackfs -o ro,source=' '*src*'
	pressed 'kpackfs --st' '*say how a mount is*'
}

@test "the completions know the GPUs that the programs know" {
	grep -oE '\{"gfx[0-9a-z-]+"' "$KPACK_SRC/core/target/table.c" | tr -d '{"' | grep -v generic |
		sort -u >known
	[ "$(wc -l <known)" -gt 50 ]
	for file in kpackfs.bash kpackfs.fish _kpackfs; do
		sed -n '/# architectures/,/# end/p' "$completion/$file" | grep -oE 'gfx[0-9a-z-]+' |
			sort | diff known - || { echo "$file"; return 1; }
	done
}
