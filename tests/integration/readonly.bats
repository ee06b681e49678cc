#!/usr/bin/env bats
# Calls that would change a file system fail as on other file systems that are mounted
# read-only: call by call, for any name and any caller.

bats_require_minimum_version 1.5.0

load mounting

tree='{"entries": [
 {"key": "dir/file", "arch": "generic", "type": "dat", "data": "some bytes\n",
  "metadata": {"path": "dir/file"}},
 {"key": "dir/empty", "arch": "generic", "type": "dat", "data": "",
  "metadata": {"path": "dir/empty"}},
 {"key": "tool", "arch": "generic", "type": "dat", "data": "#!/bin/sh\n",
  "metadata": {"path": "tool", "mode": 493}},
 {"key": "lib/a.so#0", "arch": "gfx1100", "data": {"size": 300000, "seed": 1}}]}'

long=$(printf '%0256d' 0)
names=(dir/file dir/empty tool dir dir/. dir/none dir/none/below dir/file/below dir/file/ none
	. "$long" toc toc/lib .kpackfs .kpackfs/stats .kpackfs/none .kpackfs/stats/below)

mount_tree() {
	echo "$tree" | make_archive src/a.kpack
	chmod 0644 src/a.kpack
	m -o allow_other "$@"
	# others may not search the directory of the programs
	cp "$posix/mutate" mutate
	echo outside >outside
	chmod 0666 outside
}

# The same tree, what is not listed too, in DIRECTORY; then nothing of it can be changed.
fill() { # DIRECTORY
	cp -a mnt/. "$1"
	mkdir "$1/.kpackfs"
	for f in mnt/.kpackfs/*; do
		cat "$f" >"$1/${f#mnt/}"
		chown --reference="$f" "$1/${f#mnt/}"
		chmod --reference="$f" "$1/${f#mnt/}"
	done
	mount -o remount,ro "$1"
}

tmpfs() {
	mkdir "$1"
	mount -t tmpfs none "$1"
	fill "$1"
}

ext4() {
	mkdir "$1"
	truncate -s 8M "$1.image"
	mkfs.ext4 -q -m 0 "$1.image"
	mount -o loop "$1.image" "$1"
	rmdir "$1/lost+found"
	fill "$1"
}

# Every answer of the mount and of DIRECTORY is the same, and there are many.
same_answers() { # DIRECTORY COMMAND...
	local dir=$1
	shift
	"$@" ./mutate "$T/$dir" "$T/outside" "${names[@]}" >"$dir.answers"
	"$@" ./mutate "$T/mnt" "$T/outside" "${names[@]}" >mnt.answers
	diff "$dir.answers" mnt.answers
	[ "$(wc -l <mnt.answers)" -gt 3000 ]
	[ "$(grep -c 'EROFS$' mnt.answers)" -gt 400 ]
}

# without what is above the mount, where the tests write
state() { (cd mnt && ls -laR . toc | grep -v ' \.\.$' && find . .kpackfs/version -type f -exec sha256sum {} +); }

@test "every call that would change something, as root" {
	must_be_root
	mount_tree
	tmpfs one
	ext4 two
	state >before
	same_answers one env
	same_answers two env
	state | cmp before -
	[ "$(cat outside)" = outside ]
}

@test "every call that would change something, as a user, and as the owner" {
	must_be_root
	mount_tree
	tmpfs one
	same_answers one nobody
	unmount
	m -o "allow_other,uid=$(id -u nobody),gid=$(id -g nobody)"
	tmpfs own
	[ "$(stat -c %U own/dir/file own/.kpackfs/stats | uniq)" = nobody ]
	state >before
	same_answers own nobody
	state | cmp before -
}

# The error of each call, for users who have nothing to compare with.
@test "the answers to what is done most" {
	mount_tree
	./mutate mnt "$T/outside" "${names[@]}" >answers
	answer() { grep -qxP "$1\t$2\t$3" answers || { grep -P "^$1\t$2\t" answers; false; }; }
	for call in 'open O_WRONLY' 'open O_RDWR' 'open O_TRUNC' 'open O_CREAT\|O_WRONLY' creat \
		unlink 'truncate 0' chmod chown 'utimensat now' 'setxattr user' removexattr \
		'access W' 'faccessat W' fchmod futimens 'reopen O_RDWR'; do
		answer "$call" dir/file EROFS
		answer "$call" .kpackfs/stats EROFS
	done
	for call in 'open O_CREAT' creat mkdir mkfifo 'mknod file' symlink bind; do
		answer "$call" none EROFS
		answer "$call" dir/none EROFS
		answer "$call" .kpackfs/none EROFS
		answer "$call" dir/none/below ENOENT
		answer "$call" '\(long\)' ENAMETOOLONG
	done
	answer 'open O_TMPFILE\|O_RDWR' dir EROFS
	answer 'open O_WRONLY' none ENOENT
	answer 'open O_CREAT' dir/file ok
	answer mkdir dir EEXIST
	answer rmdir dir EROFS
	answer ftruncate dir/file EINVAL
	for call in fallocate write pwrite; do answer "$call" dir/file EBADF; done
	answer 'mmap shared' dir/file EACCES
	for call in 'mmap private' fsync fdatasync syncfs flock F_RDLCK read; do
		answer "$call" dir/file ok
	done
	answer rename 'dir/file none' EROFS
	answer 'rename EXCHANGE' 'dir/file tool' EROFS
	answer rename 'dir/file \(outside\)' EXDEV
	answer rename '\(outside\) none' EXDEV
	answer link 'dir/file none' EROFS
	answer copy_file_range 'tool dir/file' EBADF
	[ "$(cat mnt/dir/file outside)" = "$(printf 'some bytes\noutside')" ]
}

# The kernel asks no daemon about a remount: only calls after it can be refused.
refuses_everything() { # MOUNT_OPTIONS
	mount_tree "$@"
	# newer mount programs use another system call, which FUSE refuses
	mount -i -o remount,rw mnt || :
	for change in 'touch mnt/new' 'rm -f mnt/dir/file' 'truncate -s 0 mnt/dir/file' \
		'chmod 777 mnt/dir/file' 'mkdir mnt/new' 'rmdir mnt/dir' 'ln mnt/tool mnt/new' \
		'ln -s tool mnt/new' 'mkfifo mnt/new' 'mv mnt/tool mnt/new' 'touch -d 1999-01-01 mnt/tool' \
		'dd if=outside of=mnt/dir/file status=none' 'dd if=outside of=mnt/new status=none' \
		'dd if=outside of=mnt/dir/file conv=notrunc status=none' \
		'fallocate -l 100 mnt/dir/file' ': >mnt/dir/file'; do
		run bash -c "$change"
		[ "$status" != 0 ] || { echo "$change"; return 1; }
		[[ $output == *"Read-only file system"* ]] || { echo "$change: $output"; return 1; }
	done
	[ "$(cat mnt/dir/file)" = "some bytes" ]
	[ "$(ls mnt)" = "$(printf 'dir\ntoc\ntool')" ]
}

@test "a mount cannot be made writable" {
	must_be_root
	refuses_everything
}

@test "a mount that is asked at every open cannot be made writable either" {
	must_be_root
	refuses_everything -o open
}

# Programs that were given a tree they may not write find no other way.
@test "programs that would write say that they cannot" {
	mount_tree
	run -1 cp outside mnt/new
	[[ $output == *"Read-only file system"* ]]
	run -1 mv mnt/dir/file mnt/moved
	[[ $output == *"Read-only file system"* ]]
	run -1 mv outside mnt/dir
	run -1 rm -rf mnt/dir
	[[ $output == *"Read-only file system"* ]]
	run -2 tar -C mnt -xf <(tar cf - outside)
	run -4 sed -i s/some/no/ mnt/dir/file
	run -1 dd if=outside of=mnt/dir/file conv=notrunc
	run rsync -a outside mnt/
	[ "$status" != 0 ]
	[ "$(cat mnt/dir/file outside)" = "$(printf 'some bytes\noutside')" ]
	sync mnt/dir/file
	sync -f mnt
}
