#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack apply and status: trees that follow policies, through what packages and users do.
#
# The tests tagged single differ in files, policies and the moment at which a run ends; its threads are
# those of the tests that thin, pack and mount a tree.

bats_require_minimum_version 1.5.0

load packing

setup() {
	T=$(mktemp -d /tmp/kpack-policy-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C KPACKFS_RUN=$T/run
	umask 022
	mkdir policies
}

teardown() {
	cd /
	end_mounts
	rm -rf "$T"
}

policy() { # NAME LINE...
	printf '%s\n' "${@:2}" >"policies/$1.conf"
}

apply() { kpack apply --policy-dir policies --state-dir state "$@"; }
status() { kpack status --policy-dir policies --state-dir state "$@"; }

# FIELD of the only policy's status.
field() {
	status --json "${@:2}" >status.json || :
	py "$1" <<-'END'
	import json, sys
	print(json.load(open("status.json"))[0][sys.argv[1]])
	END
}

objects() { $python "$tools/fatparse.py" sums "$1" x | awk '{ print $3 }' | sort | uniq -c; }

database() { # DIR: with files of three GPUs and one for all
	mkdir -p "$1/lib/rocblas/library"
	for gpu in gfx1100 gfx1030 gfx90a; do
		for f in "Kernels.so-000-$gpu.hsaco" "TensileLibrary_lazy_$gpu.dat"; do
			head -c 5000 /dev/urandom >"$1/lib/rocblas/library/$f"
		done
	done
}

make_tree() { # DIR
	mkdir -p "$1/lib/deep" "$1/share/doc"
	mkfat --size 60000 --arches gfx1100,gfx1030,gfx90a "$1/lib/a.so"
	ln "$1/lib/a.so" "$1/lib/deep/b.so"
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx1030,gfx90a "$1/lib/c.so"
	echo text >"$1/share/doc/text"
}

# The calls of kpack that open one of the FILEs of the tree.
opens() { # FILE COMMAND...
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -qq -e trace=open,openat,openat2 -o trace "${@:2}" >/dev/null
	grep -v O_PATH trace | grep -E "\"(lib/|deep/|[^\"]*/tree/)?($1)\"" | wc -l
}

@test "a policy is applied, and a second run opens no file" {
	make_tree tree
	policy rocm '# comment' "tree=$T/tree/" 'arch = gfx1100' do=thin
	run -0 apply -n
	[[ $output == "rocm: $T/tree: 3 files would be thinned, 0 would be removed, "*" would be freed" ]]
	[ ! -e state ]
	[ "$(objects tree/lib/a.so | wc -l)" = 3 ]
	cp -a tree before
	kpack thin -q --arch gfx1100 before want
	apply >said
	grep -q "^rocm: $T/tree: 3 files thinned, 0 removed, .* freed\$" said
	diff -r tree want
	[ "$(opens '[abc]\.so|text' "$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state)" = 0 ]
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	[ "$(field complete)" = True ]
	[ "$(field bytes_saved)" = $(($(stat -c %s before/lib/a.so before/lib/c.so tree/lib/a.so tree/lib/c.so | paste -sd ' ' |
		awk '{ print $1 + $2 - $3 - $4 }'))) ]
	# every path of a file is listed by dpkg -V
	field files | grep -q deep/b.so
}

# bats test_tags=single
@test "only what changed is looked at: new times, old times, new names, other modes" {
	make_tree tree
	mkfat --size 60000 --seed 3 --arches gfx1100,gfx1030 new.so
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	# as dpkg does it: another file, with an old time, renamed into place
	cp new.so tree/lib/c.so.dpkg-new
	touch -d 2001-02-03 tree/lib/c.so.dpkg-new
	mv tree/lib/c.so.dpkg-new tree/lib/c.so
	[ "$(field files_new)" = 1 ]
	[ "$(field complete)" = False ]
	run -1 status
	[ "$(opens 'a\.so' "$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state)" = 0 ]
	[ "$(objects tree/lib/c.so | wc -l)" = 1 ]
	[ "$(stat -c %Y tree/lib/c.so)" = "$(date -d 2001-02-03 +%s)" ]
	# the same size and time, changed in place
	cp new.so tree/lib/d.so
	apply
	cp --preserve=timestamps tree/lib/d.so time
	mkfat --size 60000 --seed 4 --arches gfx1100,gfx1030 other.so
	cat other.so >tree/lib/d.so
	touch -r time tree/lib/d.so
	apply
	[ "$(objects tree/lib/d.so | wc -l)" = 1 ]
	# a name that looks like an escape
	cp new.so "tree/lib/odd \\101name"
	run -0 apply
	[[ $output == *": 1 files thinned"* ]]
	run -0 apply
	[[ $output == *": nothing changed" ]]
	status --json | $python -c 'import json, sys; json.load(sys.stdin)'
	# a removed package takes its files along
	rm -r tree/lib/deep
	apply
	field files >files
	run -1 grep deep files
}

# bats test_tags=single
@test "files that another policy changes again are counted" {
	make_tree tree
	for line in "gfx1100,gfx1030 thin thinned" "gfx1100 thin thinned" "gfx1100 pack converted"; do
		read -r arch action done <<<"$line"
		policy rocm "tree=$T/tree" "arch=$arch" "do=$action"
		run -0 apply -n
		[[ $output == *": 3 files would be $done, 0 would be removed"* ]]
		run -0 apply
		[[ $output == *": 3 files $done, 0 removed"* ]]
		run -0 apply
		[[ $output == *": nothing changed" ]]
	done
}

# bats test_tags=single
@test "strip_debug: files that have nothing to lose are not listed" {
	make_tree tree
	mkfat --size 60000 --seed 5 --arches gfx1100 tree/lib/only.so
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	cp -a tree want
	status --json >before
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin strip_debug=yes
	[ "$(field complete)" = False ]
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	diff -r tree want
	status --json >after
	diff <(grep -o '"files":.*' before) <(grep -o '"files":.*' after)
}

# bats test_tags=single
@test "a state that is lost or damaged costs time only" {
	make_tree tree
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	cp -a tree want
	for how in gone cut flipped empty writable; do
		case $how in
		gone) rm state/rocm.state ;;
		cut) truncate -s -1 state/rocm.state ;;
		flipped) printf X | dd of=state/rocm.state bs=1 seek=20 conv=notrunc status=none ;;
		empty) : >state/rocm.state ;;
		writable) chmod 0666 state/rocm.state ;;
		esac
		echo $how
		apply 2>notes
		[ $how = gone ] || [ $how = writable ] || grep -q 'note: damaged: .*all files are looked at again' notes
		[ $how != writable ] || [ "$(id -u)" != 0 ] || grep -q 'users other than root can write it' notes
		diff -r tree want
		run -0 apply
		[ "$output" = "rocm: $T/tree: nothing changed" ]
		chmod 0644 state/rocm.state
	done
	status | grep -q 'is not known'
}

# bats test_tags=single
@test "another GPU is named, with what to reinstall, until that has happened" {
	make_tree tree
	cp -a tree packages
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	policy rocm "tree=$T/tree" arch=gfx90a,gfx1100 do=thin
	run -1 apply
	[[ $output == *"rocm: gfx90a: its code was removed from 3 files of $T/tree before it was wanted: reinstall"* ]]
	[ "$(field lacking)" = gfx90a ]
	[ "$(objects tree/lib/a.so | awk '{ print $2 }')" = gfx1100 ]
	# a part of it
	cp -a packages/lib/c.so tree/lib/c.so
	run -1 apply
	[[ $output == *"removed from 2 files"* ]]
	[ "$(objects tree/lib/c.so | wc -l)" = 2 ]
	rm -r tree/lib/deep
	cp -a packages/lib/. tree/lib
	run -0 apply
	[ "$(objects tree/lib/a.so | wc -l)" = 2 ]
	[ "$(field complete)" = True ]
	# less is wanted
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -0 apply
	[ "$(objects tree/lib/a.so | wc -l)" = 1 ]
}

topology() { # VERSION...: a machine with these GPUs
	rm -rf kfd
	mkdir -p kfd/nodes
	local i=0
	for v; do
		mkdir kfd/nodes/$i
		echo "gfx_target_version $v" >kfd/nodes/$i/properties
		i=$((i + 1))
	done
}

# bats test_tags=single
@test "arch=auto: the code of a GPU that is missing today stays" {
	make_tree tree
	policy rocm "tree=$T/tree" arch=auto do=thin
	topology
	run -1 apply --topology kfd
	[[ $output == *"arch=auto: no GPU in kfd"* ]]
	[ "$(objects tree/lib/a.so | wc -l)" = 3 ]
	topology 110000 90010
	run -0 apply --topology kfd
	[ "$(objects tree/lib/a.so | wc -l)" = 2 ]
	# the second one is taken out, or its driver fails; packages go on
	topology 110000
	mkfat --size 60000 --seed 9 --arches gfx1100,gfx1030,gfx90a tree/lib/new.so
	run -0 apply --topology kfd
	[[ $output == *"note: gfx90a: not in this machine now; its code stays"* ]]
	[ "$(objects tree/lib/new.so | wc -l)" = 2 ]
	topology
	run -0 apply --topology kfd
	[ "$(objects tree/lib/a.so | wc -l)" = 2 ]
	# another one comes
	topology 110000 100300
	run -1 apply --topology kfd
	[[ $output == *"gfx1030: its code was removed from 4 files"* ]]
	[ "$(objects tree/lib/a.so | wc -l)" = 2 ]
	# the list is wrong: nothing goes
	policy rocm "tree=$T/tree" arch=gfx942 do=thin
	run -1 apply
	[[ $output == *"no code is for the wanted GPUs: nothing is removed"* ]]
	[ "$(objects tree/lib/a.so | wc -l)" = 2 ]
}

# bats test_tags=single
@test "an upgrade that has no code for the GPU any more: a warning" {
	make_tree tree
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	mkfat --size 60000 --seed 3 --arches gfx90a,gfx1030 tree/lib/c.so
	touch tree/lib/new.dat
	run -0 apply -n
	[[ $output == *"rocm: warning: new files (1) have code for other GPUs only, and no code for gfx1100; it would be removed: where "* ]]
	[ "$(objects tree/lib/c.so | wc -l)" = 2 ]
	run -0 apply
	[[ $output == *"rocm: warning: new files (1) have code for other GPUs only, and no code for gfx1100; it was removed: where an older version had it, install that version again"* ]]
	[[ $output == *": 1 files thinned"* ]]
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	# the older version, or another file for this GPU
	mkfat --size 60000 --seed 4 --arches gfx1100,gfx1030 tree/lib/c.so
	run -0 apply
	[[ $output != *warning* ]]
}

# bats test_tags=single
@test "an upgrade that has no code for one of two GPUs any more: a warning with its name" {
	make_tree tree
	database tree
	policy rocm "tree=$T/tree" arch=gfx1100,gfx90a do=thin
	mkfat --size 60000 --arches gfx1100 tree/lib/never.so
	mkfat --size 60000 --seed 4 --arches gfx1100,gfx90a tree/lib/v.so.4.1
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	# what never had its code, or has as much as before, is no reason
	mkfat --size 60000 --seed 5 --arches gfx1100,gfx1030 tree/lib/never.so
	mkfat --size 60000 --seed 5 --arches gfx1100,gfx90a,gfx942 tree/lib/c.so
	head -c 5000 /dev/urandom >tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	# nothing is removed of the second one; a database; a library with a new version in its name
	mkfat --size 60000 --seed 6 --arches gfx1100 tree/lib/c.so
	cp -a tree before
	lost() { # NAME...: the warning's lines
		[[ ${lines[0]} == "kpack: rocm: warning: gfx90a: new files have no code for it, and older ones had: $1: to use this GPU, install the older version again" ]]
		[ "${#lines[@]}" = 2 ]
	}
	run -0 apply -n
	lost lib/c.so
	diff -r tree before
	run -0 apply
	lost lib/c.so
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	rm tree/lib/v.so.4.1
	mkfat --size 60000 --seed 7 --arches gfx1100,gfx1030 tree/lib/v.so.5.0
	rm tree/lib/rocblas/library/*gfx90a*
	touch tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	run -0 apply
	lost "lib/rocblas/library/ and other files"
	# the code is there again, and goes again
	mkfat --size 60000 --seed 8 --arches gfx1100,gfx90a tree/lib/c.so
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	mkfat --size 60000 --seed 9 --arches gfx1100 tree/lib/c.so
	run -0 apply
	lost lib/c.so
	# code for both, in a generic target
	mkfat --size 60000 --seed 10 --arches gfx11-generic,gfx9-generic tree/lib/v.so.6
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	# a GPU that is not wanted any more is no reason
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	mkfat --size 60000 --seed 11 --arches gfx1100,gfx1030 tree/lib/a.so
	run -0 apply
	[ "${#lines[@]}" = 1 ]
}

# bats test_tags=single
@test "do=pack: code for one of two GPUs that an upgrade drops is named, what stays in archives is not" {
	make_tree tree
	database tree
	policy rocm "tree=$T/tree" arch=gfx1100,gfx90a do=pack
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	head -c 5000 /dev/urandom >tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	run -0 apply
	[ "${#lines[@]}" = 1 ]
	mkfat --size 60000 --seed 3 --arches gfx1100,gfx1030 tree/lib/c.so
	run -0 apply
	[[ ${lines[0]} == *"rocm: warning: gfx90a: new files have no code for it, and older ones had: lib/c.so: "* ]]
	[ "${#lines[@]}" = 2 ]
	run -0 apply
	[ "${#lines[@]}" = 1 ]
}

# bats test_tags=single
@test "root takes no policy that others can write" {
	as_root
	make_tree tree
	cp -a tree before
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	chmod 0664 policies/rocm.conf
	run -1 apply
	[ "$output" = "kpack: policies/rocm.conf: users other than root can write it: chown it to root, chmod it go-w" ]
	chmod 0644 policies/rocm.conf
	chown 65534 policies/rocm.conf
	run -1 apply
	chown 0 policies/rocm.conf
	chmod 0777 policies
	run -1 apply
	[[ $output == "kpack: policies: users other than root can write it"* ]]
	chmod 0755 policies
	run -0 apply
}

# bats test_tags=single
@test "a policy may be a symbolic link, to root only one of root's to a file of root's" {
	make_tree tree
	mkdir theirs
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	mv policies/rocm.conf elsewhere
	cp elsewhere theirs/own
	ln -s ../elsewhere policies/rocm.conf
	ln -s policies link
	run -0 kpack apply -n --policy-dir link --state-dir state
	[[ $output == *"3 files would be thinned"* ]]
	# links that lead to no file
	for to in ../nothing rocm.conf ../theirs /dev/null; do
		ln -sfn $to policies/rocm.conf
		run -1 apply
		[[ $output == "kpack: policies/rocm.conf: "* ]]
	done
	ln -sfn ../elsewhere policies/rocm.conf
	if [ "$(id -u)" = 0 ]; then
		chown -h 65534 policies/rocm.conf
		run -1 apply
		[[ $output == "kpack: policies/rocm.conf: a symbolic link: it and the file must be root's alone: "* ]]
		chown -h 0 policies/rocm.conf
		chown 65534 elsewhere
		run -1 apply
		chown 0 elsewhere
		# a file of root's where another user may put another one
		ln -sfn ../theirs/own policies/rocm.conf
		chown 65534 theirs
		run -1 apply
		ln -sfn ../elsewhere policies/rocm.conf
	fi
	[ "$(objects tree/lib/a.so | wc -l)" = 3 ]
	run -0 apply
	[ "$(objects tree/lib/a.so | wc -l)" = 1 ]
}

# bats test_tags=single
@test "a tree that does not exist is no fault, whenever it goes" {
	make_tree tree
	cp -a tree packages
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -0 apply -n
	[[ $output == *"3 files would be thinned"* ]]
	rm -r tree
	missing() {
		run -0 apply
		[ "$output" = "rocm: $T/tree: does not exist" ]
		run -0 status
		[ "$output" = "rocm: $T/tree: does not exist" ]
		[ "$(field complete)" = True ]
		[ "$(field files)" = '[]' ]
		run -0 apply --unmount
		run -0 apply --mounts
		[ -z "$output" ]
	}
	missing
	cp -a packages tree
	run -0 apply
	[[ $output == *"3 files thinned"* ]]
	run -0 status
	rm -r tree
	missing
	cp -a packages tree
	run -1 status
	run -0 apply
	[[ $output == *"3 files thinned"* ]]
	[ "$(field complete)" = True ]
}

# bats test_tags=single
@test "killed at each call that changes something: the next run finishes, and knows what was done" {
	make_tree before
	database before
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	cp -a before tree
	apply
	status --json >want
	cp -a tree done
	for call in renameat2 renameat linkat unlinkat fsync fchmod; do
		for n in $(moments 1 2 3 4); do
			rm -rf tree state
			cp -a before tree
			ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n \
				"$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state -q 2>/dev/null &&
				break
			echo "$call $n"
			# each file is one or the other, whole
			(cd tree && find lib -type f ! -name '.kpack-*') | while IFS= read -r f; do
				cmp -s "tree/$f" "before/$f" || cmp "tree/$f" "done/$f"
			done
			apply -q
			diff -r tree done
			status --json >have
			diff <(grep -o '"files":.*' want) <(grep -o '"files":.*' have)
			run -0 apply
			[[ $output == *"nothing changed" ]]
		done
	done
}

# bats test_tags=single
@test "do=pack, killed at each call that changes something: nothing is lost, and the next run finishes" {
	make_tree before
	rm -r before/lib/deep # a run that is killed may take hard links apart
	database before
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	cp -a before tree
	apply
	status --json >want
	cp -a tree done
	kpack ls -l tree/.kpack | cut -f 1-3 | sort >entries
	for call in renameat linkat unlinkat fsync; do
		for n in $(moments 1 2 3 5 8); do
			rm -rf tree state
			cp -a before tree
			ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -qq -o /dev/null -e trace=$call \
				-e inject=$call:signal=KILL:when=$n \
				"$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state -q 2>/dev/null &&
				break
			echo "$call $n"
			apply -q
			diff -r -x .kpack tree done
			kpack ls -l tree/.kpack | cut -f 1-3 | sort | diff entries -
			status --json >have
			diff <(grep -o '"files":.*' want) <(grep -o '"files":.*' have)
			run -0 apply
			[[ $output == *"nothing changed" ]]
		done
	done
	kpack extract --directory out tree/.kpack >/dev/null
	cmp before/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco "$(find out -name 'Kernels.so-000-gfx1100.hsaco' -type f | head -n 1)"
}

# bats test_tags=single
@test "do=pack for fewer GPUs, killed at each call that changes something: the next run removes their code from archives" {
	make_tree before
	rm -r before/lib/deep
	policy rocm "tree=$T/tree" arch=gfx1100,gfx1030 do=pack
	for call in renameat linkat unlinkat fsync; do
		for n in $(moments 1 2 3 5); do
			rm -rf tree state
			cp -a before tree
			sed -i 's/^arch=.*/arch=gfx1100,gfx1030/' policies/rocm.conf
			apply -q
			kpack ls -l tree/.kpack | grep -q gfx1030
			sed -i 's/^arch=.*/arch=gfx1100/' policies/rocm.conf
			ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -qq -o /dev/null -e trace=$call \
				-e inject=$call:signal=KILL:when=$n \
				"$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state -q 2>/dev/null &&
				break
			echo "$call $n"
			apply -q
			[ "$(kpack ls -l tree/.kpack | cut -f 2 | sort -u)" = gfx1100 ]
		done
	done
}

# bats test_tags=single
@test "a tree in an overlay: new files are looked at" {
	as_root
	make_tree below
	mkdir upper tree
	mount -t tmpfs -o mode=0755 tmpfs upper
	mkdir upper/files upper/work
	mount -t overlay -o lowerdir=below,upperdir=upper/files,workdir=upper/work overlay tree
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	cp -a below/lib/c.so tree/lib/new.so
	[ "$(field files_new)" = 1 ]
	apply
	[ "$(objects tree/lib/new.so | wc -l)" = 1 ]
}

# bats test_tags=single
@test "no room for the state: nothing is changed" {
	as_root
	make_tree tree
	cp -a tree before
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	mkdir state
	mount -t tmpfs -o size=32k,mode=0755 tmpfs state
	head -c 64k /dev/zero >state/full 2>/dev/null || :
	run -1 apply
	[[ $output == *"state/rocm.state: "*"No space left"* ]]
	diff -r tree before
	rm state/full
	apply
	[ "$(objects tree/lib/a.so | wc -l)" = 1 ]
}

# bats test_tags=single
@test "no room in the tree: whole files, and the next run finishes" {
	as_root
	make_tree before
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	mkdir tree
	mount -t tmpfs -o size=6m,mode=0755 tmpfs tree
	cp -a before/. tree
	head -c 8M /dev/zero >tree/full 2>/dev/null || :
	run -1 apply
	for f in lib/a.so lib/c.so; do cmp "tree/$f" "before/$f"; done
	rm tree/full
	apply
	[ "$(objects tree/lib/a.so | wc -l)" = 1 ]
	[ "$(objects tree/lib/c.so | wc -l)" = 1 ]
}

# bats test_tags=single
@test "do=pack: what is refused is refused before anything is removed" {
	make_tree tree
	database tree
	cp -a tree before
	refuse() { # TEXT: twice, as -n does, and nothing changes
		rm -rf was
		cp -a tree was
		run -1 apply -n
		[[ $output == *"$1"* ]]
		said=$output
		for n in 1 2; do
			run -1 apply
			[ "$output" = "$said" ]
			diff -r --no-dereference tree was
		done
	}
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	# a file of a database that is cut short
	mkdir -p tree/share/miopen/db
	printf 'SQLite format 3' >tree/share/miopen/db/gfx1100.kdb
	refuse 'db/gfx1100.kdb: '
	rm -r tree/share/miopen
	# archives that cannot be written, or cannot be read
	: >tree/.kpack
	refuse 'tree/.kpack: Not a directory'
	ln -sf nothing tree/.kpack
	refuse 'tree/.kpack: No such file or directory'
	rm tree/.kpack
	mkdir tree/.kpack
	for f in tree_gfx1100 other; do
		echo 'this is no archive of device code' >tree/.kpack/$f.kpack
		refuse "$f.kpack: header: "
		rm tree/.kpack/$f.kpack
	done
	if [ "$(id -u)" = 0 ]; then
		mount -t tmpfs -o ro,mode=0755 tmpfs tree/.kpack
		refuse 'tree/.kpack: cannot write into it: Read-only file system'
		umount tree/.kpack
	fi
	rmdir tree/.kpack
	# a HIP runtime that refuses converted binaries
	printf 'junk __hipRegisterFatBinary' >tree/lib/libamdhip64.so.6
	refuse "libamdhip64.so.6"
	run -1 status
	[[ $output == *"not applied yet"* ]]
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -0 apply
	[[ $output == *": 3 files thinned, 4 removed, "* ]]
	[ "$(field complete)" = True ]
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	refuse "libamdhip64.so.6"
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	[ "$(field complete)" = True ]
	# one that takes them, and then again one that does not
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	printf 'junk __hipRegisterFatBinary librocm_kpack.so' >tree/lib/libamdhip64.so.6
	run -0 apply
	[[ $output == *": 3 files converted, 0 removed, 2 packed, "* ]]
	printf 'junk __hipRegisterFatBinary' >tree/lib/libamdhip64.so.6
	cp before/lib/a.so tree/lib/new.so
	refuse "libamdhip64.so.6"
	run -1 status
}

# bats test_tags=single
@test "do=pack: a damaged file is named once, and the rest is done" {
	make_tree tree
	head -c 40000 tree/lib/c.so | tee half.so >tree/lib/half.so
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	for option in -n ''; do
		touch tree/lib/half.so # so new that it is looked at twice
		run -1 apply $option
		[ "$(grep -c 'half.so: damaged, its device code stays in it' <<<"$output")" = 1 ]
		[ "${#lines[@]}" = 2 ]
	done
	[[ $output == *": 3 files converted, "* ]]
	cmp half.so tree/lib/half.so
}

# bats test_tags=single
@test "a packed tree that is only to be thin: its archives go with what asks for them" {
	make_tree tree
	database tree
	cp -a tree packages
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	apply
	cp -a tree want
	want=$(field bytes_saved)
	pack_then_thin() {
		rm -rf tree state
		cp -a packages tree
		policy rocm "tree=$T/tree" arch=gfx1100 do=pack
		apply -q
		[ -e tree/.kpack ]
		policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	}
	stays() {
		for n in 1 2; do
			run -1 apply
			[[ $output == *"kpack: rocm: do=thin: $T/tree is packed, and stays so: reinstall "* ]]
			[ "$(field complete)" = False ]
		done
	}
	is_thin() {
		run -0 apply
		[ ! -e tree/.kpack ]
		diff -r tree want
		[ "$(field complete)" = True ]
		[ "$(field bytes_saved)" = "$want" ]
		[ "$(apply)" = "rocm: $T/tree: nothing changed" ]
	}
	# all at once
	pack_then_thin
	cp -a packages/. tree
	run -0 apply -n
	freed=${output##*removed, } freed=${freed%% would*}
	[[ $(apply) == *"$freed freed" ]]
	is_thin
	# one package after the other
	pack_then_thin
	stays
	cp -a packages/lib/rocblas tree/lib
	stays
	kpack ls tree/.kpack >entries
	run -1 grep rocblas entries
	grep -q 'a\.so#' entries
	rm tree/lib/a.so tree/lib/deep/b.so # for hard links, as dpkg does
	cp -a packages/. tree
	is_thin
	# removed, and installed again
	pack_then_thin
	stays
	rm -r tree/lib
	run -0 apply
	[ ! -e tree/.kpack ]
	[ "$(field files)" = '[]' ]
	cp -a packages/. tree
	is_thin
	# the policy changes back, and once more
	pack_then_thin
	stays
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	[ "$(apply)" = "rocm: $T/tree: nothing changed" ]
	[ "$(field complete)" = True ]
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	cp -a packages/. tree
	is_thin
}

# bats test_tags=single
@test "a tree that only its archives kept goes with them, and directories of others stay" {
	command -v dpkg-query rpm >/dev/null || skip "no dpkg and rpm"
	mkdir -p opt/other opt/x/y
	make_tree opt/x/y
	database opt/x/y
	cp -a opt/x/y packages
	for action in pack thin; do
		policy rocm "tree=$T/opt/x/y" arch=gfx1100 do=pack
		run -0 apply
		policy rocm "tree=$T/opt/x/y" arch=gfx1100 do=$action
		: >opt/x/y/.kpack/.kpack-0123456789abcdef.tmp
		rm -r opt/x/y/{lib,share}
		run -0 apply
		[ ! -e opt/x ]
		[ -d opt/other ]
		run -0 apply
		[ "$output" = "rocm: $T/opt/x/y: does not exist" ]
		run -0 status
		mkdir -p opt/x
		cp -a packages opt/x/y
		run -0 apply
	done
	# files of somebody else
	policy rocm "tree=$T/opt/x/y" arch=gfx1100 do=pack
	run -0 apply
	rm -r opt/x/y/lib
	run -0 apply
	[ -e opt/x/y/share/doc/text ]
	[ ! -e opt/x/y/.kpack ]
}

# bats test_tags=single
@test "a GPU that is added: only files that had code for it are asked for" {
	for action in thin pack; do
		rm -rf tree state
		make_tree tree
		database tree
		mkfat --size 60000 --seed 5 --arches gfx1100,gfx1030 tree/lib/only.so
		mkfat --size 60000 --seed 6 --arches gfx1100,gfx9-generic tree/lib/generic.so
		# packed for three, two of which go later
		policy rocm "tree=$T/tree" arch=gfx1100,gfx1030,gfx90a do=$action
		apply -q
		policy rocm "tree=$T/tree" arch=gfx1100 do=$action
		run -0 apply
		policy rocm "tree=$T/tree" arch=gfx1100,gfx906 do=$action
		run -1 apply
		[[ $output == *"gfx906: its code was removed from 1 files of $T/tree before it was wanted: reinstall "* ]]
		policy rocm "tree=$T/tree" arch=gfx1100,gfx942 do=$action
		run -0 apply
		[ "$(field lacking)" = "" ]
		[ "$(field complete)" = True ]
		policy rocm "tree=$T/tree" arch=gfx1100,gfx90a do=$action
		run -1 apply
		[[ $output == *"gfx90a: its code was removed from 5 files of "* ]]
		policy rocm "tree=$T/tree" arch=gfx1100,gfx1030 do=$action
		run -1 apply
		[[ $output == *"gfx1030: its code was removed from 6 files of "* ]]
		[ "$(field lacking)" = gfx1030 ]
	done
}

@test "do=pack: packed and mounted, away for packages, packed again, mounted again" {
	as_root
	chmod 0666 /dev/fuse
	make_tree tree
	database tree
	cp -a tree whole
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=in-place
	apply >said
	grep -q "3 files converted, 4 removed, 2 packed" said
	[ "$(mounts)" = 1 ]
	for f in Kernels.so-000-gfx1100.hsaco TensileLibrary_lazy_gfx1100.dat; do
		cmp "whole/lib/rocblas/library/$f" "tree/lib/rocblas/library/$f"
	done
	[ ! -e tree/lib/rocblas/library/Kernels.so-000-gfx1030.hsaco ]
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	[ "$(field complete)" = True ]
	# -n does what a run does, which takes the mounts away
	mkfat --size 60000 --seed 7 --arches gfx1100,gfx1030 tree/lib/late.so
	run -0 apply -n
	[[ $output == *": 1 files would be converted, 0 would be removed, 0 would be packed" ]]
	run -0 apply
	[[ $output == *": 1 files converted, 0 removed, 0 packed, "* ]]
	field files >files
	[ "$(grep -o removed files | wc -l)" = 4 ]
	[ "$(grep -o packed files | wc -l)" = 2 ]
	# an upgrade while a program has a file open
	exec 7<tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	apply --unmount
	[ "$(mounts)" = 0 ]
	head -c 6000 /dev/urandom >tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cp tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco newer
	cmp whole/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco - <&7
	apply >said
	grep -q "1 packed" said
	cmp newer tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	exec 7<&-
	[ "$(mounts)" = 1 ]
	# a tree that was packed before it got its policy is mounted
	mkdir other
	apply --unmount
	kpack apply --policy-dir policies --state-dir other --mounts
	[ "$(mounts)" = 1 ]
	kpack apply --policy-dir policies --state-dir other 2>notes
	[ ! -s notes ]
	# unmounted by a user, or by a restart
	apply --unmount
	[ "$(field complete)" = False ]
	apply --mounts
	[ "$(mounts)" = 1 ]
	[ "$(field complete)" = True ]
	apply --unmount
	apply --unmount
	# the package goes
	rm -r tree/lib/rocblas
	apply
	[ "$(mounts)" = 0 ]
	field files >files
	run -1 grep -E 'removed|packed' files
	kpack ls tree/.kpack >entries
	run -1 grep rocblas entries
	grep -q 'a\.so#' entries
	# and the rest
	rm -r tree/lib
	apply
	[ ! -e tree/.kpack ] || [ -z "$(ls tree/.kpack)" ]
}

@test "do=pack: a tree that is a symbolic link, and one for which nothing can be mounted" {
	as_root
	chmod 0666 /dev/fuse
	make_tree rocm-1
	database rocm-1
	cp -a rocm-1 whole
	cp -a rocm-1 rocm-2
	ln -s rocm-1 tree
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=in-place
	KPACKFS_RUN=$T/rocm-1/lib/c.so run ! apply
	[ "$(mounts)" = 0 ]
	[ "$(field complete)" = False ]
	apply >said
	[ "$(mounts)" = 1 ]
	for n in 1 2; do
		[ "$(field complete)" = True ]
		[ "$(apply)" = "rocm: $T/rocm-1: nothing changed" ]
	done
	field files >files
	[ "$(grep -o packed files | wc -l)" = 2 ]
	cmp {whole,tree}/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	# the same directory by another name
	policy other "tree=$T/rocm-1/lib" arch=gfx1100 do=thin
	run -1 apply
	[[ $output == *"the trees $T/rocm-1 and $T/rocm-1/lib overlap"* ]]
	rm policies/other.conf
	# another version gets the name
	ln -sfn rocm-2 tree
	apply >said
	grep -q "^rocm: $T/rocm-2: 3 files converted, 4 removed, 2 packed" said
	cmp {whole,tree}/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	[ "$(field complete)" = True ]
}

@test "a packed tree whose policy changes: mounts follow, and nothing is lost" {
	as_root
	chmod 0666 /dev/fuse
	make_tree tree
	database tree
	cp -a tree packages
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=in-place
	apply
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=overlay
	apply
	grep -q "overlay $T/tree/lib overlay" /proc/self/mounts
	run -1 grep "$T/tree/lib/rocblas/library fuse" /proc/self/mounts
	cmp packages/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	[ "$(field complete)" = True ]
	# thin has no way back: what is mounted stays, and the packages are asked for
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	run -1 apply
	[[ $output == *"kpack: rocm: do=thin: $T/tree is packed, and stays so: reinstall "* ]]
	cmp packages/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	# also after other packages were installed
	apply --unmount
	run -1 apply
	cmp packages/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	apply
	[ "$(mounts)" = 0 ]
	[ "$(field complete)" = True ]
	policy rocm "tree=$T/tree" arch=gfx1100 do=thin
	cp -a packages/. tree
	apply
	[ "$(objects tree/lib/a.so | wc -l)" = 1 ]
	[ -e tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco ]
	[ ! -e tree/lib/rocblas/library/Kernels.so-000-gfx1030.hsaco ]
	[ "$(field complete)" = True ]
}

# bats test_tags=single
@test "do=pack: a converted program that is as large as before is listed, too" {
	mkdir -p tree/bin
	mkfat --bare --bundles 1 --size 60000 --arches gfx1100,gfx1030 code
	# by ld for x86-64, its program headers come behind zeros, and it keeps its size
	cc -pie -fPIE -x c -o tree/bin/program - <<-'END'
	__asm__(".section .hip_fatbin,\"a\",@progbits\n.balign 4096\nfatbin:\n.incbin \"code\"\n.previous");
	extern const char fatbin[] __attribute__((visibility("hidden")));
	__attribute__((section(".hipFatBinSegment"))) struct {
		unsigned magic, version;
		const void *data;
		void *unused;
	} wrapper = {0x48495046, 1, fatbin, 0};
	int main(void)
	{
		return wrapper.version != 1;
	}
	END
	tree/bin/program
	mkfat --size 60000 --arches gfx1100,gfx1030 tree/a.so
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack
	apply >said
	tree/bin/program
	grep -q "2 files converted" said
	[ "$(apply)" = "rocm: $T/tree: nothing changed" ]
	field files | grep -q bin/program
}

# bats test_tags=single
@test "do=pack: an overlay between the files" {
	as_root
	chmod 0666 /dev/fuse
	make_tree tree
	database tree
	echo manual >tree/lib/rocblas/library/README
	cp -a tree whole
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=overlay
	apply
	cmp whole/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	[ "$(cat tree/lib/rocblas/library/README)" = manual ]
	run -0 apply
	[ "$output" = "rocm: $T/tree: nothing changed" ]
	[ "$(field complete)" = True ]
	[ "$(field files | grep -o packed | wc -l)" = 3 ]
	apply --unmount
	[ "$(mounts)" = 0 ]
	mkfat --size 60000 --seed 8 --arches gfx1100,gfx1030 tree/lib/new.so
	apply >said
	grep -q "1 files converted" said
	cmp whole/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	# what scripts leave that are killed before they mount, and after they unmounted
	left=$T/run/tree${T//\//%2f}%2ftree
	for directories in "$left/tree $left/archives" "$left"; do
		apply --unmount
		[ ! -e "$left" ]
		mkdir -p $directories
		: >"$left/overlays"
		apply
		[ "$(mounts)" -gt 0 ]
		[ "$(field complete)" = True ]
	done
	# other users cannot open, and so not lock, what scripts and runs wait for
	[ "$(stat -c %a run/.lock)" = 600 ]
	apply --unmount
}

# bats test_tags=single
@test "a run, the scripts of a killed run, and --unmount wait for one another" {
	as_root
	chmod 0666 /dev/fuse
	make_tree tree
	database tree
	cp -a tree whole
	# a script that a run calls waits in its first command, before it locks anything itself
	mkdir stubs
	for program in "$(command -v realpath)" "$KPACK_BIN/kpackfs"; do
		cat >"stubs/${program##*/}" <<-END
			#!/bin/bash
			touch "$T/begun"
			while [ -e "$T/begun" ] && [ ! -e "$T/go" ]; do read -rt 0.05 <> <(:) || :; done
			exec "$program" "\$@"
		END
	done
	chmod +x stubs/*
	slow() { PATH=$T/stubs:$PATH exec "$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state "$@" 3>&- 4>&-; }
	begin() { # COMMAND...: until its script is at work
		rm -f begun go
		"$@" >/dev/null &
		first=$!
		until [ -e begun ] || ! kill -0 $first; do read -rt 0.05 <> <(:) || :; done
		[ -e begun ]
	}
	wait_for() { # COMMAND...: that waits for the script
		"$@" >/dev/null 2>err 3>&- 4>&- &
		second=$!
		until grep -q "run/.lock: note: another process has locked it: waiting" err; do
			kill -0 $second
			read -rt 0.05 <> <(:) || :
		done
		touch go
		wait $second
	}
	file=lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	for mount in in-place overlay; do
		policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=$mount
		# killed while its script begins to unmount: what that unmounts comes back
		apply
		begin slow --unmount
		kill -KILL $first
		wait_for apply
		[ "$(mounts)" -gt 0 ]
		cmp {whole,tree}/$file
		apply --unmount
		# what is mounted at the end of a run goes: packages are installed after --unmount
		begin slow
		wait_for apply --unmount
		wait $first
		[ "$(mounts)" = 0 ]
		# a script that was called by hand
		begin env KPACKFS="$T/stubs/kpackfs" "$KPACK_SRC/contrib/mount/$mount" tree 3>&- 4>&-
		wait_for env KPACKFS="$KPACK_BIN/kpackfs" "$KPACK_SRC/contrib/mount/$mount" -u tree
		wait $first
		[ "$(mounts)" = 0 ]
		[ "$(stat -c %a run/.lock)" = 600 ]
		# a daemon does not keep the lock
		flock -n run/.lock true
		apply
		flock -n run/.lock true
		apply --unmount
	done
	# leftovers of a script that was killed while it looked into the archives
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=in-place
	mkdir run/in-place.left
	"$KPACK_BIN/kpackfs" -o subdir=. tree/.kpack run/in-place.left
	apply
	[ ! -e run/in-place.left ]
	apply --unmount
}

# --- packages and boot ------------------------------------------------------------------

# bats test_tags=single
@test "hooks of dpkg and apt: mounts go and come back, and no fault fails an installation" {
	as_root
	chmod 0666 /dev/fuse
	make_tree tree
	database tree
	policy rocm "tree=$T/tree" arch=gfx1100 do=pack mount=in-place
	cat >wrapper <<-END
		#!/bin/sh
		exec "$KPACK_BIN/kpack" "\$@" --policy-dir $T/policies --state-dir $T/state
	END
	chmod +x wrapper
	# this machine's own policies, if it has some, have no unit here
	mkdir stubs
	printf '#!/bin/sh\nexit 1\n' >stubs/systemctl
	chmod +x stubs/systemctl
	hook() { PATH=$T/stubs:$PATH KPACK=$T/wrapper "$KPACK_SRC/contrib/dpkg/hook" "$@"; }
	run -0 hook post
	[ "$(mounts)" = 1 ]
	run -0 hook pre
	[ "$(mounts)" = 0 ]
	# apt calls dpkg, and its own hook afterwards
	DPKG_FRONTEND_LOCKED=true run -0 hook post dpkg
	[ "$(mounts)" = 0 ]
	# packages of another system
	DPKG_ROOT=/mnt/other run -0 hook post dpkg
	[ "$(mounts)" = 0 ]
	run -0 hook post dpkg
	[ "$(mounts)" = 1 ]
	run -0 hook pre dpkg
	echo wrong >policies/wrong.conf
	run -0 hook post
	[[ $output == *"wrong.conf: line 1: wrong: not KEY=VALUE"*"kpackfs: not all policies could be applied: see kpack status" ]]
	# the other's mounts come back even then, and go
	[ "$(mounts)" = 1 ]
	run -0 hook pre
	[ "$(mounts)" = 0 ]
	run -1 apply --no-mounts
	[ "$(mounts)" = 0 ]
	run -1 apply --mounts
	[[ $output == *"wrong.conf: line 1: wrong: not KEY=VALUE" ]]
	[ "$(mounts)" = 1 ]
	run -0 hook pre
	# a fault of another policy is not a mount, and one of its own does not keep it mounted
	run -0 hook post
	[ "$(mounts)" = 1 ]
	cp policies/rocm.conf kept
	for how in wrong gone; do
		[ $how = gone ] && rm policies/rocm.conf || echo wrong >policies/rocm.conf
		run -0 hook pre
		[ "$(mounts)" = 0 ]
		[[ $output != *mounted* ]]
		run -0 hook pre
		[[ $output != *mounted* ]]
		cp kept policies/rocm.conf
		run -0 hook post
		[ "$(mounts)" = 1 ]
	done
	run -0 hook pre
	[[ $output != *mounted* ]]
	# not those of two policies for one tree
	cp policies/rocm.conf policies/wrong.conf
	run -1 apply
	[[ $output == *" overlap: remove one of the policies" ]]
	[ "$(mounts)" = 0 ]
	rm policies/wrong.conf
	run -0 hook post
	[ "$(mounts)" = 1 ]
	run -0 hook pre
	# the package was removed, its configuration files stay
	KPACK=$T/nothing run -0 "$KPACK_SRC/contrib/dpkg/hook" post
	[ -z "$output" ]
	run -0 hook wrong
}

# bats test_tags=single
@test "the systemd unit has the trees that are mounted, whatever their names are" {
	generate() {
		rm -rf units
		mkdir units
		KPACK=$KPACK_BIN/kpack KPACK_POLICIES=policies "$KPACK_SRC/contrib/systemd/kpackfs-generator" units units units
	}
	policy thin "tree=$T/a" arch=auto do=thin
	generate
	[ -z "$(ls units)" ]
	policy pack "tree=$T/b 50% \"x\"" arch=auto do=pack mount=overlay
	policy more "tree=$T/c" arch=auto do=pack mount=in-place
	generate
	[ "$(readlink units/multi-user.target.wants/kpackfs-policies.service)" = ../kpackfs-policies.service ]
	grep '^RequiresMountsFor=' units/kpackfs-policies.service >have
	diff have - <<-END
	RequiresMountsFor="$T/c"
	RequiresMountsFor="$T/b 50%% \\"x\\""
	END
	grep -qxF "ExecStart=\"$(realpath "$KPACK_BIN/kpack")\" apply --policy-dir \"$T/policies\" --mounts" units/kpackfs-policies.service
	grep -qxF "ExecStop=\"$(realpath "$KPACK_BIN/kpack")\" apply --policy-dir \"$T/policies\" --unmount" units/kpackfs-policies.service
	! command -v systemd-analyze >/dev/null || systemd-analyze verify --man=no units/kpackfs-policies.service
}
