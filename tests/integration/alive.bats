#!/usr/bin/env bats
# A mount whose archives appear, disappear and change, and whose processes get signals and
# are killed.

bats_require_minimum_version 1.5.0

tools=$BATS_TEST_DIRNAME

load mounting

teardown() {
	exec 7<&- 8<&- 9<&-
	end_test
}

# until CONDITION...: evaluated again and again, for two minutes at least
until_true() {
	for _ in $(seq 6000); do
		! eval "$@" || return 0
		read -rt 0.02 <> <(:) || :
	done
	echo "not so: $*"
	return 1
}

ended() { until_true no_daemon; }

# archive NAME KEY TEXT: one entry, shown as KEY
archive() {
	echo "{\"entries\": [{\"key\": \"$2\", \"arch\": \"generic\", \"type\": \"dat\",
		\"data\": \"$3\", \"metadata\": {\"path\": \"$2\"}}]}" |
		$python "$tools/mkarchive.py" "$1"
}

# large NAME KEY SEED: one of 3 MB that is decoded in one piece
large() {
	echo "{\"entries\": [{\"key\": \"$2\", \"arch\": \"generic\", \"type\": \"dat\",
		\"data\": {\"size\": 3000000, \"seed\": $3}, \"metadata\": {\"path\": \"$2\"}}]}" |
		$python "$tools/mkarchive.py" "$1"
}

noise() { # SIZE SEED
	PYTHONPATH=$tools PYTHONDONTWRITEBYTECODE=1 $python -c 'import sys, mkarchive
sys.stdout.buffer.write(mkarchive.noise(int(sys.argv[1]), int(sys.argv[2])))' "$@"
}

# Mount the sources given, in the foreground, and wait until that works.
serve() {
	kpackfs -f -v "$@" mnt 2>>log 3>&- 7<&- 8<&- 9<&- &
	supervisor=$!
	until_true 'mountpoint -q mnt || ! kill -0 $supervisor'
	until_true '[ -e mnt/.kpackfs/stats ]'
	server=$(pgrep -P $supervisor)
}

serve_src() {
	archive src/a.kpack a.txt one
	serve "$@" "$T/src"
}

stat_of() { # KEY: a number of .kpackfs/stats
	$python -c 'import json, sys
print(json.load(open("mnt/.kpackfs/stats"))[sys.argv[1]])' "$1"
}

shows() { [ "$(cat "mnt/$1" 2>/dev/null)" = "$2" ]; }

# The server's descriptors of archives
open_archives() { find "/proc/$server/fd" -lname '*.kpack*' | wc -l; }

@test "a symbolic link on the way to the source that flips" {
	mkdir -p opt/rocm-6/lib/kpack opt/rocm-7/lib/kpack
	archive opt/rocm-6/lib/kpack/a.kpack a.txt six
	archive opt/rocm-7/lib/kpack/a.kpack a.txt seven
	ln -s rocm-6 opt/rocm
	serve "$T/opt/rocm/lib/../lib/./kpack"
	shows a.txt six
	ln -s rocm-7 opt/new
	mv -T opt/new opt/rocm
	until_true 'shows a.txt seven'
	# what is below the new one is watched, what is below the old one is not
	archive new b.txt b
	mv new opt/rocm-7/lib/kpack/b.kpack
	until_true 'shows b.txt b'
}

@test "the directory is replaced, and so is one above it; it goes and comes back" {
	mkdir -p up/src other/src
	archive up/src/a.kpack a.txt one
	serve "$T/up/src"
	mkdir new
	archive new/a.kpack a.txt two
	mv up/src old
	mv new up/src
	until_true 'shows a.txt two'
	archive other/src/a.kpack a.txt three
	mv up gone
	until_true '[ ! -e mnt/a.txt ]'
	grep -q "^$T/up/src.*refused:" mnt/.kpackfs/archives
	mv other up
	until_true 'shows a.txt three'
	rm -r up/src
	until_true '[ ! -e mnt/a.txt ]'
	mkdir up/src
	archive up/src/c.kpack c.txt four
	until_true 'shows c.txt four'
}

@test "archives that are symbolic links, of which the target changes" {
	mkdir store
	archive store/1.kpack a.txt one
	archive store/2.kpack a.txt two
	ln -s ../store/1.kpack src/a.kpack
	serve "$T/src"
	shows a.txt one
	archive store/new a.txt uno
	mv store/new store/1.kpack
	until_true 'shows a.txt uno'
	ln -sf ../store/2.kpack src/new
	mv -T src/new src/a.kpack
	until_true 'shows a.txt two'
}

@test "a source that is a file, replaced" {
	archive one a.txt one
	serve "$T/one"
	archive new a.txt two
	mv new one
	until_true 'shows a.txt two'
	rm one
	until_true '[ ! -e mnt/a.txt ]'
}

@test "a file system that is mounted over a source" {
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	serve_src
	mkdir over
	archive over/a.kpack a.txt over
	mount --bind over src
	until_true 'shows a.txt over' || { umount -l src; false; }
	# lazily: its archive is open
	umount -l src
	until_true 'shows a.txt one'
}

@test "an archive that is copied in pieces appears when it is whole" {
	serve_src
	large big big.dat 5
	size=$(stat -c %s big)
	for part in 0 1 2; do
		dd if=big of=src/big.kpack bs=$((size / 3)) skip=$part seek=$part count=1 \
			conv=notrunc status=none
		barrier
		grep -q "big.kpack.*refused:" mnt/.kpackfs/archives
		[ ! -e mnt/big.dat ]
		shows a.txt one
	done
	dd if=big of=src/big.kpack bs=$((size / 3)) skip=3 seek=3 conv=notrunc status=none
	barrier
	noise 3000000 5 | cmp - mnt/big.dat
	run ! grep refused: mnt/.kpackfs/archives
}

@test "a name that does not end in .kpack is no event" {
	serve_src
	before=$(stat_of reloads)
	echo x >src/a.kpack.tmp
	echo x >src/.hidden.kpack
	archive new b.txt two
	mv new src/b.kpack
	until_true 'shows b.txt two'
	# the files are shown before the reload is counted
	until_true '[ "$(stat_of reloads)" -gt $before ]'
	[ "$(stat_of reloads)" = $((before + 1)) ]
}

@test "a storm of 1,000 changes is one reload" {
	serve_src
	archive b b.txt two
	archive last b.txt last
	before=$(stat_of reloads)
	most=$($python - <<-'END'
	import os, time
	begin = then = time.monotonic()
	pauses = 0
	for i in range(1000):
	    if i % 3 == 2:
	        os.unlink(f"src/b{i - 1}.kpack")
	    else:
	        os.link("b", f"src/b{i}.kpack")
	    now = time.monotonic()
	    pauses, then = pauses + (now - then >= 0.05), now
	os.rename("last", "src/0.kpack")
	now = time.monotonic()
	# what comes after a tenth of a second without changes, or after ten seconds of them, is another
	print(1 + pauses + (now - then >= 0.05) + int(now - begin) // 10)
	END
	)
	until_true 'shows b.txt last'
	until_true '[ "$(stat_of reloads)" -gt $before ]'
	reloads=$(($(stat_of reloads) - before))
	echo "$reloads reloads of $most"
	[ "$reloads" -le "$most" ]
}

@test "more archives than descriptors: what fits is shown, the rest when it does" {
	archive a a.txt one
	for i in $(seq 10 99); do ln a src/$i.kpack; done
	mkdir few
	archive few/z.kpack z.txt last
	# started so, a program may not raise it
	(ulimit -n 100 && exec kpackfs -q "$T/src" "$T/few" "$T/mnt")
	shows a.txt one
	[ ! -e mnt/z.txt ]
	grep -q 'z.kpack.*refused: too many open files' mnt/.kpackfs/archives
	shown=$(stat_of archives)
	[ "$shown" -ge 50 ]
	rm src/[2-9]*.kpack
	barrier
	shows z.txt last
}

@test "inode numbers are the same after reloads and after a remount" {
	archive src/b.kpack d/b.txt two
	serve_src
	numbers() { (cd mnt && find . -printf '%i %p\n' | sort); }
	numbers >before
	archive new c.txt three
	mv new src/0.kpack
	barrier
	shows c.txt three
	rm src/0.kpack
	barrier
	[ ! -e mnt/c.txt ]
	numbers | diff before -
	fusermount3 -u mnt
	wait $supervisor
	serve "$T/src"
	numbers | diff before -
}

@test "SIGHUP to either process looks again, and tries again what was refused" {
	echo nonsense >src/bad.kpack
	serve_src
	for pid in $supervisor $server; do
		before=$(stat_of reloads)
		kill -HUP $pid
		until_true '[ "$(stat_of reloads)" -gt $before ]'
		shows a.txt one
	done
	[ "$(grep -c 'bad.kpack: ' log)" = 3 ]
	[ "$(wc -l <mnt/.kpackfs/archives)" = 2 ]
}

@test "a conflict is logged once while it stays, and that with another archive too" {
	archive src/a.kpack same one
	archive src/b.kpack same two
	archive src/r.kpack ../out refused
	serve "$T/src"
	for _ in 1 2; do
		kill -HUP $supervisor
		barrier
	done
	[ "$(grep -c '^kpackfs: same: ' log)" = 1 ]
	[ "$(grep -c 'key is no path .*r.kpack' log)" = 1 ]
	archive c.new same three
	mv c.new src/c.kpack
	barrier
	[ "$(grep -c "^kpackfs: same: " log)" = 2 ]
}

@test "without inotify the sources are polled" {
	[ "$(id -u)" = 0 ] || skip "only root can mount here"
	# FUSE is one of the file systems that report no changes
	archive src/a.kpack a.txt one
	serve "$T/src"
	mkdir mnt2
	echo "{\"entries\": [{\"key\": \"x.kpack\", \"arch\": \"generic\", \"type\": \"kpack\",
		\"data\": \"x\", \"metadata\": {\"path\": \"x.kpack\"}}]}" |
		$python "$tools/mkarchive.py" src/x.kpack
	until_true '[ -e mnt/x.kpack ]'
	mkdir both && cp src/a.kpack both
	kpackfs -f -v "$T/both" "$T/mnt" mnt2 2>log2 3>&- &
	until_true '[ -e mnt2/a.txt ]'
	grep -q "looked at every 10 seconds.*-o poll=" log2
	fusermount3 -u mnt2
	kpackfs -f -v -o poll=1 "$T/both" "$T/mnt" mnt2 2>log3 3>&- &
	until_true '[ -e mnt2/a.txt ]'
	run ! grep poll= log3
	grep -q "x.kpack.*refused:" mnt2/.kpackfs/archives
	rm src/x.kpack
	until_true '[ "$(wc -l <mnt2/.kpackfs/archives)" = 1 ]'
	fusermount3 -u mnt2
}

@test "SIGTERM unmounts where it was moved and where it is bound, too" {
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	mkdir mnt2 mnt3
	serve_src
	mount --bind mnt mnt2
	mount --bind mnt2/toc mnt3
	kill -TERM $supervisor
	wait $supervisor
	for m in mnt mnt2 mnt3; do
		! mountpoint -q $m || false
	done
	ended
}

@test "a mount point of /dev/fd: SIGTERM unmounts it as well" {
	[ "$(id -u)" = 0 ] || skip "only root mounts"
	archive src/a.kpack a.txt one
	$python - "$T/mnt" "$T/src" <<-'END' 3>&- &
	import ctypes, os, sys
	fd = os.open("/dev/fuse", os.O_RDWR)
	os.set_inheritable(fd, True)
	libc = ctypes.CDLL(None, use_errno=True)
	options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
	if libc.mount(b"k", sys.argv[1].encode(), b"fuse", 7, options.encode()):
	    sys.exit(os.strerror(ctypes.get_errno()))
	os.execvp("kpackfs", ["kpackfs", "-f", sys.argv[2], f"/dev/fd/{fd}"])
	END
	supervisor=$!
	until_true 'shows a.txt one'
	kill -TERM $supervisor
	wait $supervisor
	! mountpoint -q mnt || false
	ended
}

@test "signals to both processes at once are one, a later one ends what is in use" {
	serve_src
	exec 7<mnt/a.txt
	# The signals count as one for half a second: no process may be late.
	stop $supervisor $server
	kill -TERM $supervisor $server
	kill -CONT $server
	until_true 'grep -q "^ShdPnd:.0*$" /proc/$server/status'
	kill -CONT $supervisor
	until_true '! mountpoint -q mnt'
	kill -0 $server
	cat <&7 >/dev/null
	# a second one counts half a second after the first
	until_true 'kill -TERM $supervisor 2>/dev/null; ! kill -0 $server 2>/dev/null'
	wait $supervisor
	ended
}

@test "the server is killed, the mount is taken away: another that has its device now stays" {
	mkdir mnt2
	serve_src
	stop $supervisor
	device=$(stat -c %Hd:%Ld mnt)
	kill -KILL $server
	fusermount3 -uz mnt
	kpackfs "$T/src" mnt2
	[ "$(stat -c %Hd:%Ld mnt2)" = "$device" ] || echo "# another device" >&3
	kill -CONT $supervisor
	wait_for $supervisor || [ $? = 1 ]
	cat mnt2/a.txt
}

wait_for() {
	until_true "! kill -0 $1 2>/dev/null" || return 9
	wait "$1"
}

@test "the supervisor is killed, there is no sandbox: SIGTERM unmounts" {
	archive src/a.kpack a.txt one
	mount -t tmpfs none mnt 2>/dev/null || [ "$(id -u)" != 0 ]
	serve -o no_sandbox "$T/src"
	kill -KILL $supervisor
	until_true 'grep -q "supervisor has gone" log'
	exec 7<mnt/a.txt # in use: unmounted lazily
	kill -TERM $server
	ended
	if [ "$(id -u)" = 0 ]; then
		[ "$(findmnt -nro FSTYPE mnt)" = tmpfs ] # and not what is below
		umount mnt
	else
		! mountpoint -q mnt || false
	fi
	run ! grep "failed to unmount" log
}

@test "the supervisor is killed, the server ends with the mount" {
	serve_src
	kill -KILL $supervisor
	until_true 'grep -q "supervisor has gone" log'
	fusermount3 -u mnt
	ended
}

@test "unmounted from outside, both end well" {
	serve_src
	fusermount3 -u mnt
	wait $supervisor
	ended
	# the machine may be short of memory
	! grep -v -e mounted -e reload: -e 'memory is' log || false
}

@test "in the background: the same, with one word of each process" {
	archive src/a.kpack a.txt one
	kpackfs "$T/src" "$T/mnt"
	# a process that it starts may have its name for a moment
	until_true '[ "$(daemons | wc -l)" = 2 ]'
	server=$(stat_of pid)
	supervisor=$(ps -o ppid= -p "$server" | tr -d ' ')
	[ "$(cat /proc/$supervisor/comm)" = kpackfs ]
	[ "$(cat /proc/$server/comm)" = kpackfs ]
	# of a session of their own, away from the terminal and from where it was started
	[ "$(ps -o sid= -p "$server" | tr -d ' ')" = "$supervisor" ]
	for p in $server $supervisor; do
		[ "$(readlink /proc/$p/cwd)" = / ]
		[ "$(readlink /proc/$p/fd/[0-2] | sort -u)" = /dev/null ]
	done
	archive new b.txt two
	mv new src/b.kpack
	barrier
	shows b.txt two
	kill -TERM $supervisor
	ended
	! mountpoint -q mnt || false
}

@test "an archive that cannot be opened again for its new attributes is served on" {
	[ "$(id -u)" = 0 ] || skip "this is what an ordinary user's mount does"
	archive src/a.kpack a.txt one
	chown -R nobody src mnt
	nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
	nobody kpackfs -f "$T/src" "$T/mnt" 2>>log 3>&- &
	until_true 'nobody cat "$T/mnt/a.txt"'
	chmod 000 src/a.kpack
	nobody cat "$T/mnt/.kpackfs/barrier" >/dev/null
	grep -q "a.kpack: .*Permission denied" log
	archive new b.txt two
	chown nobody new
	mv new src/b.kpack
	nobody cat "$T/mnt/.kpackfs/barrier" >/dev/null
	[ "$(nobody cat "$T/mnt/b.txt")" = two ]
	[ "$(nobody cat mnt/a.txt)" = one ]
	chmod 400 src/a.kpack
	nobody cat "$T/mnt/.kpackfs/barrier" >/dev/null
	[ "$(nobody stat -c %a "$T/mnt/a.txt")" = 400 ]
	[ "$(nobody cat mnt/a.txt)" = one ]
}

@test "sources that go for one reason and another: each says its own" {
	[ "$(id -u)" = 0 ] || skip "this is what an ordinary user's mount does"
	mkdir src2
	archive src/a.kpack a.txt one
	archive src2/b.kpack b.txt two
	serve "$T/src" "$T/src2"
	mv src2 gone2
	until_true 'grep -q "$T/src2.*No such file" mnt/.kpackfs/archives'
	rm src/a.kpack
	rmdir src
	ln -s src src
	until_true 'grep -q "$T/src.*symbolic links" mnt/.kpackfs/archives'
	grep -q "$T/src2.*No such file" mnt/.kpackfs/archives
}

@test "the parent that waits for the daemon ends: no mount stays" {
	archive src/a.kpack a.txt one
	echo nonsense >src/bad.kpack
	# what the daemon prints has to wait until the pipe is emptied
	mkfifo err
	exec 7<>err
	! dd if=/dev/zero of=err oflag=nonblock bs=4096 count=1000 status=none 2>/dev/null || false
	kpackfs "$T/src" "$T/mnt" 2>err 3>&- 7<&- &
	parent=$!
	until_true '[ "$(daemons | wc -l)" -gt 1 ]'
	kill -KILL $parent
	wait $parent || :
	! no_daemon || false
	cat <&7 >/dev/null 3>&- &
	reader=$!
	until_true no_daemon
	kill $reader
	! mountpoint -q mnt || false
}

@test "an ordinary user's mount: reload, SIGTERM while in use, idle" {
	[ "$(id -u)" = 0 ] || skip "this is what the other tests do"
	archive src/a.kpack a.txt one
	mkfifo go
	chown -R nobody src mnt
	nobody() { setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"; }
	nobody kpackfs "$T/src" "$T/mnt"
	archive new b.txt two
	mv new src/b.kpack
	until_true '[ "$(nobody cat "$T/mnt/b.txt" 2>/dev/null)" = two ]'
	nobody sh -c 'exec 5<mnt/a.txt; echo open; read x; cat <&5' <go >said &
	exec 9>go
	until_true 'grep -q open said'
	supervisor=$(daemons | head -n 1)
	kill -TERM $supervisor
	until_true '! mountpoint -q mnt'
	# a process that it starts may have its name for a moment
	until_true '[ "$(daemons | wc -l)" = 2 ]'
	echo >&9
	ended
	[ "$(cat said)" = "$(printf 'open\none')" ]
	nobody kpackfs -o idle_timeout=1s "$T/src" "$T/mnt"
	ended
	! mountpoint -q mnt || false
}

@test "idle: unmounted when nothing was used for a while" {
	archive src/a.kpack a.txt one
	# on a busy machine it may be unmounted before the file is open
	for _ in $(seq 50); do
		kpackfs -f -v -o idle_timeout=1 "$T/src" mnt 2>>log 3>&- &
		supervisor=$!
		until_true '[ -e mnt/a.txt ] || ! kill -0 $supervisor'
		! exec 7<mnt/a.txt || break
	done 2>/dev/null
	started=$EPOCHREALTIME
	until_true '[ $((${EPOCHREALTIME/[.,]/} - ${started/[.,]/})) -gt 2500000 ]'
	mountpoint -q mnt
	exec 7<&-
	wait_for $supervisor
	! mountpoint -q mnt || false
	grep -q idle log
	ended
}

# The preloader runs when the processors have nothing else to do, for which a test cannot wait.
hasten_preload() {
	for pid in $(pgrep -P "$supervisor"); do
		chrt --other -p 0 "$pid" && renice -n 0 -p "$pid" || :
	done >/dev/null 2>&1
}

# bats test_tags=threads
@test "preload reads what matches, at once and after a reload" {
	large src/a.kpack lib/big.dat 1
	large src/b.kpack other/big.dat 2
	serve -o 'preload=l*/*.dat,preload=nothing*' "$T/src"
	lost=$(caches_lost)
	# the last bytes are served before their decode ends
	until_true 'hasten_preload; [ "$(stat_of bytes_served)" -ge 3000000 ]'
	until_true 'grep -q "nothing.*no file matches" log'
	until_true '[ "$(stat_of decodes)" -ge 1 ]'
	[ "$(stat_of decodes)" = 1 ] || [ "$(caches_lost)" != "$lost" ]
	large new lib/new.dat 3
	mv new src/c.kpack
	until_true 'hasten_preload; [ "$(stat_of bytes_served)" -ge 6000000 ]'
	until_true '[ "$(stat_of decodes)" -ge 2 ]'
	[ "$(stat_of decodes)" = 2 ] || [ "$(caches_lost)" != "$lost" ]
	# it does not hold the mount
	kill -TERM $supervisor
	wait $supervisor
}

@test "what the processes hold open" {
	serve_src
	archive new b.txt two
	mv new src/b.kpack
	barrier
	shows b.txt two
	ls -l "/proc/$supervisor/fd" "/proc/$server/fd"
	[ "$(find "/proc/$supervisor/fd" -lname '*.kpack*' | wc -l)" = 0 ]
	# to know whether the mount is still its own; closed as soon as the server ends
	[ "$(find "/proc/$supervisor/fd" -lname '/dev/fuse' | wc -l)" = 1 ]
	[ "$(find "/proc/$server/fd" -lname 'anon_inode:inotify' -o -lname '*/mountinfo' | wc -l)" = 0 ]
	[ "$(open_archives)" = 2 ]
}
