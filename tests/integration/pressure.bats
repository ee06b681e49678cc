#!/usr/bin/env bats
# The memory use of the cache when memory is scarce.

bats_require_minimum_version 1.5.0

load mounting

setup() {
	begin_test
	group=
	make_archive src/a.kpack <<-'END'
	{"frame_index": true, "entries": [
	 {"key": "lib/a.so#0", "arch": "gfx1030", "data": {"size": 9000001, "seed": 1}},
	 {"key": "lib/b.so#0", "arch": "gfx1030", "data": {"size": 9000001, "seed": 2}}]}
	END
}

teardown() {
	[ -z "${hog-}" ] || kill "$hog" 2>/dev/null || :
	end_test
	[ -z "$group" ] || eventually rmdir "$group"
}

# Make a group of processes that may use so much memory; $group is its directory, or empty:
# what cannot be limited is not short.
limit_memory() { # BYTES
	local name=kpackfs-test-$$ top

	for top in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		# version 1 has its hierarchies in a tmpfs, which takes any name
		[ -e "$top/cgroup.procs" ] || continue
		mkdir "$top/$name" 2>/dev/null || continue
		if echo "$1" >"$top/$name/memory.max" || echo "$1" >"$top/$name/memory.limit_in_bytes"; then
			group=$top/$name
			return
		fi 2>/dev/null
		rmdir "$top/$name"
	done
}

# COMMAND...: run it in the group
inside() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }

# Takes memory until nine tenths of its group's are in use, and again when there is more: never
# all, or it is killed before anybody heard of a shortage.  In use is what the kernel could not
# take back at once.
take_most='
import glob, sys, time
group = sys.argv[1]
def number(*names):
    return int(next(open(f).read() for n in names for f in glob.glob(f"{group}/memory.{n}")))
def in_use():
    facts = dict(line.split() for line in open(f"{group}/memory.stat"))
    inactive = facts.get("total_inactive_file", facts["inactive_file"])
    return number("current", "usage_in_bytes") - int(inactive)
most = number("max", "limit_in_bytes") * 9 // 10
hog = []
while True:
    if in_use() < most:
        hog.append(bytearray(b"x") * (1 << 20))
    else:
        time.sleep(0.02)
'

budget() {
	sed 's/.*"cache_budget": \([0-9]*\).*/\1/' mnt/.kpackfs/stats
}

# As it was given, when the machine is not short of memory for half a minute.
budget_is() { [ "$(budget)" = "$1" ]; }
budget_is_below() { [ "$(budget)" -lt "$1" ]; }

@test "without a limit the cache has what it was given" {
	kpackfs -o cache_size=77m "$T/src" "$T/mnt"
	eventually budget_is $((77 << 20))
}

@test "the cache leaves half of a group's memory, and some more, to others" {
	limit_memory $((128 << 20))
	[ -n "$group" ] || return 0
	inside kpackfs "$T/src" "$T/mnt"
	eventually budget_is $((32 << 20))
	umount mnt
	eventually gone
	inside kpackfs -o cache_size=5m "$T/src" "$T/mnt"
	eventually budget_is $((5 << 20))
}

@test "when the group's memory becomes short the cache shrinks, and everything is readable" {
	limit_memory $((256 << 20))
	[ -n "$group" ] || return 0
	inside kpackfs -o cache_size=64m "$T/src" "$T/mnt"
	cat mnt/toc/lib/*/* | cksum >before
	eventually budget_is $((64 << 20))
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" $python -c "$take_most" "$group" 3>&- &
	hog=$!
	eventually budget_is_below $((33 << 20))
	echo 1 >/proc/sys/vm/drop_caches || :
	cat mnt/toc/lib/*/* | cksum | cmp - before
	# a sanitizer's kpackfs wants more than is left, and the larger one was ended
	kill $hog 2>/dev/null || :
	wait $hog || :
	hog=
}
