#!/usr/bin/env bats
# The scripts of contrib, and locks, run by root among other users: links and directories that are
# replaced, at the worst moment too; names that are commands somewhere.

# bats file_tags=plain

bats_require_minimum_version 1.5.0

load packing.bash

contrib=$BATS_TEST_DIRNAME/../../contrib

setup() {
	T=$(mktemp -d /tmp/kpackfs-guarded-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C KPACKFS=$KPACK_BIN/kpackfs SOURCE_DATE_EPOCH=1700000000
	umask 022
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	mkdir stubs
	ran='touch ran'
	mkfifo release err
	exec 5<>release
}

teardown() {
	cd /
	exec 5>&- 8>&-
	for _ in 1 2 3; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf '%b.' "$m" | sed '$s/\.$//')"; done
	done
	gone "kpackfs .*$T/"
	rm -rf "$T"
}

their() { chown -h 65534:65534 "$@"; }

# refuses TEXT COMMAND...: exit 1, and TEXT on stderr
refuses() {
	local text=$1
	shift
	status=0
	"$@" >said 2>errors || status=$?
	[ "$status" = 1 ] || { echo "exit $status"; cat said errors; return 1; }
	grep -qF -e "$text" errors || { cat errors; return 1; }
}

# Root's own directory: nothing in it changes.
make_victim() {
	mkdir -p victim/library victim/stage victim/done
	echo mine >victim/done/secret
	chmod 0600 victim/done/secret
	chmod 0555 victim/stage
	chmod 0755 victim
	state_of_victim >was
}
state_of_victim() { find victim -printf '%p %U %m %y %s %l\n' | sort; awk -v t="$T/victim" 'index($2, t) == 1' /proc/self/mounts; }
victim_is_as_it_was() { state_of_victim | diff was -; }

# swap DIR AWAY LINK: print the commands by which another user moves DIR to AWAY, once, and
# puts a link to LINK there
swap() { printf '[ -e "%s" ] || { mv "%s" "%s"; ln -s "%s" "%s"; }\n' "$2" "$1" "$2" "$3" "$1"; }

# A stub for PROGRAM: runs the commands on stdin if its arguments match PATTERN, then the program.
stub() { # PROGRAM [PATTERN]
	{
		printf '#!/bin/bash\ncase "$*" in %s)\n' "${2-*}"
		cat
		printf ';;\nesac\nexec "%s" "$@"\n' "$(PATH=$KPACK_BIN:$PATH command -v "$1")"
	} >"stubs/$1"
	chmod +x "stubs/$1"
}

# prefix PATH ENTRY: an install tree whose archive has a file at ENTRY
prefix() {
	local archive=$BATS_FILE_TMPDIR/${2//\//_}.kpack
	[ -e "$archive" ] || py "$archive" "$2" <<-'END'
	import mkarchive, sys
	a = mkarchive.Archive()
	a.add(sys.argv[2], "gfx942", b"x", type="bin", path=sys.argv[2])
	a.write(sys.argv[1])
	END
	mkdir -p "$1/.kpack"
	cp "$archive" "$1/.kpack/a.kpack"
}

# ---- mounts -------------------------------------------------------------------------------------

@test "a container's entrypoint, and the service, are led nowhere" {
	as_root
	make_victim
	prefix tree library/a.dat
	mkdir -p share/u/library
	ln -s "$T/victim" share/link
	their share share/link
	export PATH=$T/stubs:$KPACK_BIN:$PATH KPACKFS_SOURCES=$T/tree/.kpack
	KPACKFS_MOUNTPOINT=$T/share/link/library refuses share/link "$contrib/examples/container/entrypoint" true
	# a mount point made, or replaced, meanwhile
	KPACKFS_MOUNTPOINT=$T/share/u/library refuses "$T/share" "$contrib/examples/container/entrypoint" true
	victim_is_as_it_was
	# sources are words, and no patterns
	mkdir own 'tree/*'
	prefix 'tree/*' other/a.dat
	KPACKFS_SOURCES="$T/tree/*/.kpack" KPACKFS_MOUNTPOINT=$T/own "$contrib/examples/container/entrypoint" ls own/other | grep -qx a.dat
	umount own
	# an old mount, whose place becomes a link between look and unmount
	script=$(sed -n "s/^ExecStartPre=-.bin.sh -c '\(.*\)' sh %f\$/\1/p" "$contrib/systemd/kpackfs@.service" | sed 's/\$\$/$/g')
	kpackfs -o subdir=library tree/.kpack "$T/share/u/library"
	kpackfs -o subdir=library tree/.kpack "$T/victim/library"
	{
		printf '#!/bin/bash\n"%s" "$@" || exit\n' "$(command -v findmnt)"
		swap "$T/share/u" "$T/share/w" "$T/victim"
	} >stubs/findmnt
	chmod +x stubs/findmnt
	sh -c "$script" sh "$T/share/u/library" || :
	[ -e victim/library/a.dat ]
	rm stubs/findmnt share/u
	mv share/w share/u
	their share/u
	sh -c "$script" sh "$T/share/u/library" 2>errors || :
	grep -q 'not unmounted' errors
	# root's place is cleared
	sh -c "$script" sh "$T/victim/library"
	victim_is_as_it_was
}

# ---- packages -----------------------------------------------------------------------------------

plain_tree() {
	mkdir -p split/x_generic/lib split/x_gfx1100/.kpack
	echo host >split/x_generic/lib/libx.so.1
	echo code >split/x_gfx1100/.kpack/x_gfx1100.kpack
}

# The tree, or SPLIT, is refused by all three with TEXT.
none_makes() { # TEXT [SPLIT]
	local make
	for make in make-deb make-rpm make-tarball; do
		refuses "$1" "$contrib/packaging/$make" --name ab --version 1 "${2-split}" out || return
		[ -z "$(ls -A out 2>/dev/null)" ] || return
	done
}
makes() { "$contrib/packaging/make-$1" --name ab --version 1 "${@:2}" >said 2>errors; } # WHAT ARGUMENT...

@test "packages: no other file gets in by a link, nor what only root may read" {
	as_root
	plain_tree
	make_victim
	mv split/x_generic split/own
	ln -s "$T/victim/done" split/x_generic
	mv split/own own
	none_makes 'split/x_generic: not a directory'
	rm split/x_generic
	mv own split/x_generic
	ln -s "$T/was" split/x_generic/artifact_manifest.txt
	none_makes 'artifact_manifest.txt: a symbolic link'
	rm split/x_generic/artifact_manifest.txt
	# as by a hard link
	echo mine >split/x_generic/lib/secret
	chmod 0600 split/x_generic/lib/secret
	their split/x_generic/lib
	none_makes 'lib/secret: not everybody may read it'
	rm split/x_generic/lib/secret
	# a link of theirs to the trees; their own directory is no fault
	mkdir theirs
	cp -a split theirs/own
	ln -s own theirs/split
	their theirs theirs/split
	none_makes theirs/split theirs/split
	makes tarball theirs/own theirs-out
	[ "$(ls theirs-out | wc -l)" = 2 ]
	for arch in generic gfx1100; do
		ln -s "$T/victim" split/x_$arch/stage
		echo stage/done >split/x_$arch/artifact_manifest.txt
	done
	rm -r split/x_generic/lib split/x_gfx1100/.kpack
	none_makes 'a symbolic link is in the prefix stage/done'
}

@test "packages: a tree that changes while it is packed, leftovers, and documents" {
	as_root
	make_victim
	plain_tree
	cp -a split whole
	for change in link setuid; do
		for program in cp tar; do
			case $change in
			link) swap "$T/split/x_generic" "$T/away" "$T/victim/done" ;;
			setuid) echo "chmod 4755 '$T/split/x_generic/lib/libx.so.1'" ;;
			esac | stub $program '*-cf*|*-dR*'
		done
		PATH=$T/stubs:$PATH refuses split/x_generic "$contrib/packaging/make-tarball" --name ab --version 1 split out
		[ ! -e out ]
		rm -r split
		cp -a whole split
	done
	mkdir out
	ln -s "$T/victim" out/.make-deb.abcdef
	their out out/.make-deb.abcdef
	makes tarball split out
	victim_is_as_it_was
	ls out/*.tar.gz
	# documents are written into the package alone
	command -v dpkg-deb >/dev/null || return 0
	ln -s "$T/victim" split/x_generic/share
	refuses 'usr/share: a symbolic link' "$contrib/packaging/make-deb" --name ab --version 1 --prefix /usr split out
	rm split/x_generic/share
	mkdir -p split/x_generic/share/doc/ab
	ln -s "$T/victim/new" split/x_generic/share/doc/ab/changelog.Debian.gz
	makes deb --prefix /usr split out
	victim_is_as_it_was
}

@test "packages: the unfinished ones are replaced by a link" {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	as_root
	plain_tree
	make_victim
	mkdir -p out parent/x
	their out parent
	swap '$d' "$T/out/away" "$T/victim" | sed "1s|^|for d in $T/out/.make-deb.*; do :; done; |" | stub dpkg-deb
	PATH=$T/stubs:$PATH makes deb split out || :
	victim_is_as_it_was
	[ ! -e out/secret ]
	# by the descriptor they are made, where they must be
	[ "$(ls out/*.deb | wc -l)" = 2 ]
	[ -z "$(ls -A out/away)" ]
	# and one that is made
	ln -s "$T/victim" parent/x/link
	their parent/x parent/x/link
	refuses parent/x/link "$contrib/packaging/make-deb" --name ab --version 1 split parent/x/link/new
	victim_is_as_it_was
}

# ---- completions --------------------------------------------------------------------------------

# completed FUNCTION WORD...: what bash offers for the last word, a line each
completed() {
	bash --norc -c '
		function=$2
		. "$1/kpack.bash"
		. "$1/kpackfs.bash"
		shift 2
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		COMP_LINE="$*"
		COMP_POINT=${#COMP_LINE}
		$function
		printf "%s\n" "${COMPREPLY[@]}"' bash "$contrib/completion" "$@" 2>/dev/null
}

@test "completion runs nothing that an archive or a file is called, nor programs of the current directory" {
	local ran='touch${IFS}ran'
	PATH=$KPACK_BIN:$PATH
	py "\$($ran)" "a b'c" <<-'END'
	import mkarchive, sys
	a = mkarchive.Archive()
	for key in sys.argv[1:]:
	    a.add(key, "`" + sys.argv[1][2:-1] + "`", b"x", type="bin")
	a.write("a.kpack")
	END
	completed _kpack kpack cat a.kpack '' >said
	[ ! -e ran ]
	# what is offered is a word, when it is entered
	eval "set -- $(tr '\n' ' ' <said)"
	[ "$#" = 2 ] && [ "$2" = "a b'c" ] && [ "$1" = "\$($ran)" ]
	[ "$(completed _kpack kpack cat a.kpack 'a')" = "a\\ b\\'c" ]
	[ "$(completed _kpack kpack cat a.kpack 'a\ b')" = "a\\ b\\'c" ]
	eval "set -- $(completed _kpack kpack cat a.kpack key '')"
	[ "$1" = "\`$ran\`" ]
	printf '#!/bin/sh\n%s\n' "$ran" >kpack
	chmod +x kpack
	completed _kpack ./kpack cat a.kpack '' >said
	mkdir files
	cd files
	: >"\$(touch ran)"
	completed _kpackfs kpackfs -o source= >../said
	[ "$(wc -l <../said)" = 1 ]
	eval "set -- $(cat ../said)"
	[ "$1" = "\$(touch ran)" ]
	completed _kpack kpack ls '' >../said
	[ ! -e ran ] && [ ! -e ../ran ]
}

# ---- many machines ------------------------------------------------------------------------------

make_shards() { env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/examples/distributed/shards.mk" "$@" 3>&-; }

@test "shards: names that are calls, options or quotes" {
	mkdir tree
	mkfat tree/a.so
	kpack pack -q --group g tree want
	export KPACK=$KPACK_BIN/kpack
	for name in "\$(shell $ran)" "\$(info x)\$x\$\$#" "-it's,b" $'new\nline\\'; do
		cp -a tree "./$name"
		make_shards "INPUT=$name" "OUT=$name.out" N=2 OPTIONS='--group g'
		diff -r want "./$name.out"
		[ ! -e "$name.out.parts" ]
		rm -rf "./$name.out"
		# from the environment
		INPUT=$name OUT=$name.out N=1 OPTIONS='--group g' make_shards
		diff -r want "./$name.out"
	done
	for n in "1; $ran" "\$(shell $ran)" 0 01 x -1 "1 2"; do
		run -2 make_shards INPUT=tree OUT=none N="$n"
		[[ $output == *'N is no number from 1'* ]]
	done
	[ ! -e ran ] && [ ! -e none ]
}

@test "shards: parts that are a link are removed as a link" {
	as_root
	make_victim
	chmod 0500 victim/done
	state_of_victim >was
	export KPACK=true PARALLEL_HOME=$T/.parallel
	mkdir -p "$PARALLEL_HOME"
	by_parallel() { ! command -v parallel >/dev/null || "$contrib/examples/distributed/shards-parallel" x out 1 3>&-; }
	for command in "$contrib/examples/distributed/slurm-merge out 1" "make_shards INPUT=x OUT=out N=1" \
		"make_shards clean INPUT=x OUT=out N=1" by_parallel; do
		ln -sfn "$T/victim" out.parts
		$command
		victim_is_as_it_was
	done
}

# ---- building -----------------------------------------------------------------------------------

@test "root builds, unpacks and shows nothing in directories of another's" {
	as_root
	make_victim
	mkdir -p theirs/packages
	: >theirs/packages/librocrand1_1.deb
	ln -s "$T/victim/done/secret" theirs/ls
	their theirs theirs/*
	for program in dpkg-buildpackage dpkg; do
		printf '#!/bin/sh\ntouch "%s/ran"\nexit 9\n' "$T" >stubs/$program
	done
	chmod +x stubs/*
	PATH=$T/stubs:$PATH TMPDIR=$T/theirs refuses theirs/tmp. "$contrib/debian/build" "$T/out"
	PATH=$T/stubs:$PATH refuses 'theirs: belongs to another user' "$contrib/install-deps" --inputs theirs
	KPACK_DEMO_OFFLINE=1 KPACK_DEMO_DIR=$T/theirs refuses 'theirs: belongs to another user' "$contrib/demo" "$KPACK_BIN"
	[ ! -e ran ]
	victim_is_as_it_was
}

# ---- search paths ------------------------------------------------------------------------------

@test "a search path through another user's link leads nowhere, and is no missing archive" {
	as_root
	mkdir in
	mkfat --size 6000 in/a.so
	"$KPACK_BIN/kpack" pack -q in tree
	mkdir -p elsewhere tree/theirs
	"$KPACK_BIN/kpack" mark set --search-path 'theirs/link/../.kpack/a_@GFXARCH@.kpack' tree/a.so
	ln -s "$T/elsewhere" tree/theirs/link
	their tree/theirs tree/theirs/link
	cp -a tree before
	for command in "mark check tree" "mark restore -o restored tree/a.so" "prune tree"; do
		# shellcheck disable=SC2086 # words
		refuses 'is a symbolic link that is not followed' "$KPACK_BIN/kpack" $command
	done
	diff -r before tree
}

# ---- kpack --------------------------------------------------------------------------------------

# holds DIRECTORY REAL EFFECTIVE: lock DIRECTORY by these users, in a process whose program
# is called kpack, until descriptor 5 is closed; its ID is $held
holds() {
	[ -e holder/kpack ] || { mkdir holder && cp /usr/bin/python3 holder/kpack && mkfifo held; }
	./holder/kpack -c '
import fcntl, os, sys
d, end = os.open(sys.argv[1], os.O_RDONLY), os.open("release", os.O_RDONLY)
os.setresgid(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[3]))
os.setresuid(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[3]))
fcntl.flock(d, fcntl.LOCK_EX)
print("held", flush=True)
os.read(end, 1)
' "$1" "$2" "$3" >held 3>&- 4>&- 5>&- 8>&- &
	held=$!
	read -r _ <held
}
# Run kpack beside this, with its messages at descriptor 8, which ends with it; its ID is $pid.
start() {
	kpack "$@" 2>err 3>&- 4>&- 5>&- &
	pid=$!
	exec 8<err
}

@test "locks: a run waits for whoever has its directory locked, and says so" {
	local case
	as_root
	mkdir in
	mkfat --size 600 in/a.so
	for case in 0:0 65534:65534; do
		mkdir "$case"
		holds "$T/$case" ${case/:/ }
		start pack -q in "$case"
		said 'another process has locked it: waiting'
		[ -z "$(ls "$case")" ]
		kill $held
		wait $pid
		[ -e "$case/a.so" ]
	done
}

@test "runtime --ask: root runs no library that another user can write or replace" {
	as_root
	mkdir mine theirs shared
	their theirs
	chmod 1777 shared
	echo '#include <stdio.h>
		void *__hipRegisterFatBinary(void *w) { return w; }
		__attribute__((constructor)) static void f(void) { fclose(fopen("ran", "w")); }' |
		cc -shared -fPIC -x c -o mine/libamdhip64.so.8 -
	for place in theirs shared; do
		cp mine/libamdhip64.so.8 $place/libamdhip64.so.8
	done
	# another user's file, a file of root's in that user's directory, or that others may write
	their shared/libamdhip64.so.8
	cp mine/libamdhip64.so.8 mine/libamdhip64.so.9
	chmod 0666 mine/libamdhip64.so.9
	ln -s ../theirs/libamdhip64.so.8 mine/libamdhip64.so.10
	for file in theirs/libamdhip64.so.8 shared/libamdhip64.so.8 mine/libamdhip64.so.9 mine/libamdhip64.so.10; do
		refuses 'is not loaded, because a user other than root' "$KPACK_BIN/kpack" runtime --ask --hip $file
		grep -q '	unknown$' said
		[ ! -e ran ] || { echo "$file ran"; return 1; }
	done
	refuses 'is not loaded' "$KPACK_BIN/kpack" runtime --ask theirs
	[ ! -e ran ]
	# root's own, also in a directory for all
	chown 0:0 shared/libamdhip64.so.8
	for file in mine/libamdhip64.so.8 shared/libamdhip64.so.8; do
		"$KPACK_BIN/kpack" runtime --ask --hip $file || :
		[ -e ran ]
		rm ran
	done
	# other users run what they like
	chmod 0777 .
	cp "$KPACK_BIN/kpack" kpack
	as_nobody ./kpack runtime --ask --hip theirs/libamdhip64.so.8 || :
	[ -e ran ]
}
