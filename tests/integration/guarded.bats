#!/usr/bin/env bats
# The scripts of contrib, run by root among other users: links and directories that are
# replaced, at the worst moment too; names that are commands somewhere.  What racing.bats
# cannot do with kpack: locks, runtimes.

# bats file_tags=plain

bats_require_minimum_version 1.5.0

load packing.bash

contrib=$BATS_TEST_DIRNAME/../../contrib

setup() {
	T=$(mktemp -d /tmp/kpackfs-guarded-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C KPACKFS=$KPACK_BIN/kpackfs KPACKFS_RUN=$T/run SOURCE_DATE_EPOCH=1700000000
	umask 022
	[ "$(id -u)" != 0 ] || chmod 0666 /dev/fuse
	mkdir stubs
	ran='touch ran'
}

teardown() {
	cd /
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(alices) 2>/dev/null || :
	for _ in 1 2 3; do
		awk -v t="$T/" 'index($2, t) == 1 { print $2 }' /proc/self/mounts | sed 's/\\/\\0/g' | tac |
			while IFS= read -r m; do umount -l "$(printf '%b.' "$m" | sed '$s/\.$//')"; done
	done
	for _ in $(seq 2400); do
		pgrep -f "kpackfs .*$T/" >/dev/null || break
		read -rt 0.05 <> <(:) || :
	done
	! mountpoint -q /etc/fuse.conf || umount /etc/fuse.conf
	[ ! -e /run/of-the-test ] || umount /run
	rm -rf "$T"
}

mounts() { awk -v t="$T/" 'index($2, t) == 1 { n++ } END { print n + 0 }' /proc/self/mounts; }
their() { chown -h 65534:65534 "$@"; }

# refuses TEXT COMMAND...: exit 1, and TEXT on stderr
refuses() {
	local text=$1
	shift
	status=0
	"$@" >said 2>err || status=$?
	[ "$status" = 1 ] || { echo "exit $status"; cat said err; return 1; }
	grep -qF -e "$text" err || { cat err; return 1; }
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

# prefix PATH ENTRY...: an install tree whose archive has files at each ENTRY
prefix() {
	mkdir -p "$1/.kpack"
	py "$@" <<-'END'
	import mkarchive, os, sys
	a = mkarchive.Archive()
	for path in sys.argv[2:]:
	    a.add(path, "gfx942", b"x", type="bin", path=path)
	a.write(sys.argv[1] + "/.kpack/a.kpack")
	END
}

# ---- mounts -------------------------------------------------------------------------------------

@test "in place: no mount where another user's link leads" {
	as_root
	make_victim
	prefix tree lib/rocblas/library/a.dat
	mkdir -p tree/lib
	ln -s "$T/victim" tree/lib/rocblas
	their tree/lib tree/lib/rocblas
	refuses 'tree/lib/rocblas' "$contrib/mount/in-place" tree
	victim_is_as_it_was
	# nor with a link to the whole tree, or to the archives
	mkdir theirs
	ln -s "$T/tree" theirs/tree
	ln -s "$T/tree/.kpack" theirs/archives
	their theirs theirs/tree theirs/archives
	rm tree/lib/rocblas
	chown 0:0 tree/lib
	mkdir -p tree/lib/rocblas/library
	refuses theirs/tree "$contrib/mount/in-place" theirs/tree
	refuses theirs/archives "$contrib/mount/in-place" tree theirs/archives
	[ "$(mounts)" = 0 ]
	# root's own links are followed
	ln -s rocblas tree/lib/other
	ln -s tree link
	"$contrib/mount/in-place" link
	[ -e tree/lib/rocblas/library/a.dat ]
	"$contrib/mount/in-place" -u link
	[ "$(mounts)" = 0 ]
}

@test "in place: no mount where a link appears between the look and the mount" {
	as_root
	make_victim
	prefix tree lib/rocblas/library/a.dat
	mkdir -p tree/lib/rocblas/library
	their tree/lib
	# the first mount is that at which archives are looked at
	swap "$T/tree/lib/rocblas" "$T/tree/lib/away" "$T/victim" | stub kpackfs '*/tree/lib/*'
	KPACKFS=$T/stubs/kpackfs refuses tree/lib/rocblas "$contrib/mount/in-place" tree
	victim_is_as_it_was
	# writable by a group, or by all
	chown 0:0 tree/lib
	for mode in 0775 0777; do
		chmod $mode tree/lib
		chgrp 65534 tree/lib
		KPACKFS=$T/stubs/kpackfs refuses tree/lib/rocblas "$contrib/mount/in-place" tree
		victim_is_as_it_was
	done
}

@test "in place: undo unmounts nothing where a link leads" {
	as_root
	make_victim
	prefix tree library/a.dat
	mkdir -p tree/theirs/u/library
	their tree/theirs
	"$KPACKFS" -o subdir=library tree/.kpack "$T/tree/theirs/u/library"
	"$KPACKFS" -o subdir=library tree/.kpack "$T/victim/library"
	[ -e victim/library/a.dat ]
	swap "$T/tree/theirs/u" "$T/tree/theirs/w" "$T/victim" | stub fusermount3
	PATH=$T/stubs:$PATH refuses tree/theirs/u "$contrib/mount/in-place" -u tree
	[ -e victim/library/a.dat ]
}

@test "in place: root looks at archives in no directory of another's" {
	as_root
	prefix tree lib/rocblas/library/a.dat
	mkdir -p tree/lib/rocblas/library tmp
	their tmp
	printf '#!/bin/bash\necho "${!#}" >>"%s/places"\nexec "%s" "$@"\n' "$T" "$KPACKFS" >stubs/records
	chmod +x stubs/records
	KPACKFS=$T/stubs/records TMPDIR=$T/tmp "$contrib/mount/in-place" tree
	[ "$(wc -l <places)" = 2 ]
	! grep "^$T/tmp" places || false
	"$contrib/mount/in-place" -u tree
	for script in in-place overlay; do
		KPACKFS_RUN=$T/tmp/run refuses tmp/run "$contrib/mount/$script" tree
		[ -z "$(ls -A tmp)" ]
	done
}

@test "overlay: nothing where another user's link leads, or appears" {
	as_root
	make_victim
	prefix tree lib/library/a.dat
	mkdir tree/lib.own
	ln -s "$T/victim" tree/lib
	their tree tree/lib
	refuses tree/lib "$contrib/mount/overlay" tree
	refuses tree/lib "$contrib/mount/overlay" tree tree/.kpack lib
	victim_is_as_it_was
	rm tree/lib
	mkdir tree/lib
	# the first mount is that of the archives
	swap "$T/tree/lib" "$T/tree/away" "$T/victim" | stub mount '*overlay*'
	PATH=$T/stubs:$PATH refuses tree/lib "$contrib/mount/overlay" tree
	victim_is_as_it_was
	[ "$(mounts)" = 0 ]
}

@test "overlay: no tree's state is another tree's" {
	as_root
	prefix a-/b lib/a.dat
	mkdir a-/b/lib
	mkdir -p a a/-b/.kpack
	"$contrib/mount/overlay" a-/b
	n=$(mounts)
	refuses 'nothing is mounted' "$contrib/mount/overlay" -u a/-b
	[ "$(mounts)" = "$n" ]
	[ -e a-/b/lib/a.dat ]
	"$contrib/mount/overlay" -u a-/b
	[ "$(mounts)" = 0 ]
}

@test "in place and overlay: names with newlines, blanks, quotes, commands" {
	as_root
	mkdir x
	for name in $'x\nlib' $'end\n' "it's \$($ran)" '-n' 'back\slash' $'\\n"'; do
		prefix "./$name" lib/rocblas/library/a.dat
		mkdir -p "./$name/lib/rocblas/library"
		"$contrib/mount/in-place" -- "$name" >said
		[ -e "./$name/lib/rocblas/library/a.dat" ]
		"$contrib/mount/in-place" -u -- "$name"
		[ "$(mounts)" = 0 ]
		"$contrib/mount/in-place" -n -- "$name" >commands
		sh -e commands
		[ -e "./$name/lib/rocblas/library/a.dat" ]
		"$contrib/mount/in-place" -u -- "$name"
		"$contrib/mount/overlay" -- "$name"
		[ -e "./$name/lib/rocblas/library/a.dat" ]
		"$contrib/mount/overlay" -u -- "$name"
		[ "$(mounts)" = 0 ]
		rm -rf "./$name"
	done
	[ ! -e ran ]
	[ "$(ls -A run)" = .lock ]
}

@test "variables: values are words, and for root not another user's" {
	as_root
	cp -r "$contrib/mount" scripts # another user may not search the project's directory
	local name="gfx942'\$($ran)"$'\n'
	mkdir -p tree/lib/rocblas/library "tree/lib/hipblaslt/library/$name"
	(
		eval "$("$contrib/mount/environment.sh" tree)"
		[ "$ROCBLAS_TENSILE_LIBPATH" = "$T/tree/lib/rocblas/library" ]
		[ "$HIPBLASLT_TENSILE_LIBPATH" = "$T/tree/lib/hipblaslt/library/$name" ]
	)
	[ ! -e ran ]
	their tree/lib/rocblas
	"$contrib/mount/environment.sh" tree >set 2>err
	! grep ROCBLAS set || false
	grep -q 'ROCBLAS_TENSILE_LIBPATH: .*rocblas/library' err
	as_nobody "$T/scripts/environment.sh" "$T/tree" | grep -q ROCBLAS
	# nobody can replace a file that root's mount shows, not even its owner
	prefix packed lib/rocblas/library/a.dat
	mkdir mnt
	"$KPACKFS" -o uid=65534,allow_other packed/.kpack "$T/mnt"
	"$contrib/mount/environment.sh" mnt | grep -q "ROCBLAS_TENSILE_LIBPATH='$T/mnt/lib/rocblas/library'"
}

# A user who may make mounts that root sees can show any files there, with any owners.
@test "variables: for root not of another user's mount" {
	as_root
	cp -r "$contrib/mount" scripts
	prefix packed lib/rocblas/library/a.dat
	mkdir -m 0755 alice
	their alice
	cp "$KPACKFS" kpackfs
	echo user_allow_other >fuse.conf
	mount --bind fuse.conf /etc/fuse.conf
	as_nobody ./kpackfs -o allow_other,uid=0,gid=0 packed/.kpack "$T/alice"
	umount /etc/fuse.conf
	[ "$(stat -c %u alice/lib/rocblas/library)" = 0 ]
	refuses 'alice: another user than root has mounted this' "$contrib/mount/environment.sh" alice
	as_nobody "$T/scripts/environment.sh" "$T/alice" | grep -q ROCBLAS
}

@test "a container's entrypoint is led nowhere" {
	as_root
	make_victim
	prefix tree library/a.dat
	mkdir -p share/u/library
	ln -s "$T/victim" share/link
	their share share/link
	export PATH=$T/stubs:$KPACK_BIN:$PATH KPACKFS_SOURCES=$T/tree/.kpack
	KPACKFS_MOUNTPOINT=$T/share/link/library refuses share/link "$contrib/container/entrypoint" true
	# a mount point made, or replaced, meanwhile
	KPACKFS_MOUNTPOINT=$T/share/u/library refuses "$T/share" "$contrib/container/entrypoint" true
	victim_is_as_it_was
	# sources are words, and no patterns
	mkdir own 'tree/*'
	prefix 'tree/*' other/a.dat
	KPACKFS_SOURCES="$T/tree/*/.kpack" KPACKFS_MOUNTPOINT=$T/own "$contrib/container/entrypoint" ls own/other >said
	grep -qx a.dat said
	umount own
}

@test "the service unmounts nothing where a link leads" {
	as_root
	make_victim
	prefix tree library/a.dat
	mkdir -p share/u/library
	their share
	export PATH=$T/stubs:$KPACK_BIN:$PATH
	# an old mount, whose place becomes a link between look and unmount
	script=$(sed -n "s/^ExecStartPre=-.bin.sh -c '\(.*\)' sh %f\$/\1/p" "$contrib/systemd/kpackfs@.service" | sed 's/\$\$/$/g')
	kpackfs -o subdir=library tree/.kpack "$T/share/u/library"
	kpackfs -o subdir=library tree/.kpack "$T/victim/library"
	{
		printf '#!/bin/bash\n"%s" "$@" || exit\n' "$(command -v findmnt)"
		swap "$T/share/u" "$T/share/w" "$T/victim"
	} >stubs/findmnt
	chmod +x stubs/findmnt
	[ -e victim/library/a.dat ]
	sh -c "$script" sh "$T/share/u/library" || :
	[ -e victim/library/a.dat ]
	rm stubs/findmnt share/u
	mv share/w share/u
	their share/u
	sh -c "$script" sh "$T/share/u/library" 2>err || :
	grep -q 'not unmounted' err
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

make_all() { # PROGRAM... as arguments of make-*
	local make
	for make in make-deb make-rpm make-tarball; do
		"$@" "$contrib/packaging/$make" --name ab --version 1 split out || return
		[ -z "$(ls -A out 2>/dev/null)" ] || return
	done
}

@test "packages: no other file gets in by a link" {
	plain_tree
	make_victim
	mv split/x_generic split/own
	ln -s "$T/victim/done" split/x_generic
	mv split/own own
	make_all refuses 'split/x_generic: not a directory'
	rm split/x_generic
	mv own split/x_generic
	ln -s "$T/was" split/x_generic/artifact_manifest.txt
	make_all refuses 'artifact_manifest.txt: a symbolic link'
	rm split/x_generic/artifact_manifest.txt
	for arch in generic gfx1100; do
		ln -s "$T/victim" split/x_$arch/stage
		echo stage/done >split/x_$arch/artifact_manifest.txt
	done
	rm -r split/x_generic/lib split/x_gfx1100/.kpack
	make_all refuses 'a symbolic link is in the prefix stage/done'
}

@test "packages: what only root may read is not another user's to publish" {
	as_root
	plain_tree
	# as by a hard link
	echo mine >split/x_generic/lib/secret
	chmod 0600 split/x_generic/lib/secret
	their split/x_generic/lib
	make_all refuses 'lib/secret: not everybody may read it'
	rm split/x_generic/lib/secret
	# a link of theirs to the trees
	mkdir theirs
	mv split theirs/own
	ln -s own theirs/split
	their theirs theirs/split
	for make in make-deb make-rpm make-tarball; do
		refuses theirs/split "$contrib/packaging/$make" --name ab --version 1 theirs/split out
	done
	# their own directory is no fault
	"$contrib/packaging/make-tarball" --name ab --version 1 theirs/own out
	[ "$(ls out | wc -l)" = 2 ]
}

@test "packages: a tree that becomes a link while it is packed" {
	make_victim
	local program
	for program in cp tar; do
		swap "$T/split/x_generic" "$T/away" "$T/victim/done" | stub $program '*-cf*|*-dR*'
	done
	plain_tree
	PATH=$T/stubs:$PATH refuses split/x_generic "$contrib/packaging/make-tarball" --name ab --version 1 split out
	[ ! -e out ]
}

@test "packages: a set-user-ID program that comes while they are made" {
	as_root
	local program
	for program in cp tar; do
		stub $program '*-cf*|*-dR*' <<<"chmod 4755 '$T/split/x_generic/lib/libx.so.1'"
	done
	plain_tree
	PATH=$T/stubs:$PATH refuses libx.so.1 "$contrib/packaging/make-tarball" --name ab --version 1 split out
	[ ! -e out ]
}

@test "packages: documents are written into the package alone" {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	plain_tree
	make_victim
	ln -s "$T/victim" split/x_generic/share
	refuses 'usr/share: a symbolic link' "$contrib/packaging/make-deb" --name ab --version 1 --prefix /usr split out
	victim_is_as_it_was
	rm split/x_generic/share
	mkdir -p split/x_generic/share/doc/ab
	ln -s "$T/victim/new" split/x_generic/share/doc/ab/changelog.Debian.gz
	"$contrib/packaging/make-deb" --name ab --version 1 --prefix /usr split out
	victim_is_as_it_was
}

@test "packages: what is called a leftover, and is a link" {
	as_root
	plain_tree
	make_victim
	mkdir out
	ln -s "$T/victim" out/.make-deb.abcdef
	their out out/.make-deb.abcdef
	"$contrib/packaging/make-tarball" --name ab --version 1 split out
	victim_is_as_it_was
	ls out/*.tar.gz
}

@test "packages: the unfinished ones are replaced by a link" {
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
	as_root
	plain_tree
	make_victim
	mkdir out
	their out
	swap '$d' "$T/out/away" "$T/victim" | sed "1s|^|for d in $T/out/.make-deb.*; do :; done; |" | stub dpkg-deb
	status=0
	PATH=$T/stubs:$PATH "$contrib/packaging/make-deb" --name ab --version 1 split out >made 2>err || status=$?
	victim_is_as_it_was
	[ ! -e out/secret ]
	# by the descriptor they are made, where they must be
	[ "$(ls out/*.deb | wc -l)" = 2 ]
	[ -z "$(ls -A out/away)" ]
	# OUTDIR itself
	mkdir parent
	their parent
	swap "$T/parent/out" "$T/parent/away" "$T/victim" | stub dpkg-deb
	PATH=$T/stubs:$PATH "$contrib/packaging/make-deb" --name ab --version 1 split parent/out >made 2>err || :
	victim_is_as_it_was
	# and one that is made
	mkdir -p parent/x
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

@test "completion runs nothing that an archive says" {
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
	completed _kpack kpack cat a.kpack key '' >said
	eval "set -- $(cat said)"
	[ "$1" = "\`$ran\`" ]
	[ ! -e ran ]
}

@test "completion runs no program of the current directory before it is called" {
	PATH=$KPACK_BIN:$PATH
	printf '#!/bin/sh\n%s\n' "$ran" >kpack
	chmod +x kpack
	: >a.kpack
	completed _kpack ./kpack cat a.kpack '' >said
	[ ! -e ran ]
}

@test "completion offers names of files as words" {
	mkdir files
	cd files
	: >"\$(touch ran)"
	completed _kpackfs kpackfs -o source= >../said
	[ "$(wc -l <../said)" = 1 ]
	eval "set -- $(cat ../said)"
	[ "$1" = "\$(touch ran)" ] && [ ! -e ran ]
	completed _kpack kpack ls '' >../said
	[ ! -e ran ]
}

# ---- many machines ------------------------------------------------------------------------------

@test "shards: names that are calls, options or quotes" {
	mkdir tree
	mkfat tree/a.so
	kpack pack -q --group g tree want
	export KPACK=$KPACK_BIN/kpack PARALLEL_HOME=$T/.parallel
	mkdir -p "$PARALLEL_HOME"
	for name in "\$(shell $ran)" "\$(info x)\$x\$\$" "-in" "it's" $'new\nline' 'a,b' '#x' 'back\'; do
		mkdir "./$name"
		cp -p tree/a.so "./$name/"
		touch -r tree "./$name"
		env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/distributed/shards.mk" \
			"INPUT=$name" "OUT=$name.out" N=2 OPTIONS='--group g' 3>&-
		diff -r want "./$name.out"
		[ ! -e "$name.out.parts" ]
		rm -rf "./$name.out"
		# from the environment
		INPUT=$name OUT=$name.out N=1 OPTIONS='--group g' env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/distributed/shards.mk" 3>&-
		diff -r want "./$name.out"
		rm -rf "./$name.out" "./$name"
	done
	for n in "1; $ran" "\$(shell $ran)" 0 01 x -1 "1 2"; do
		status=0
		env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/distributed/shards.mk" INPUT=tree OUT=none N="$n" 2>err || status=$?
		[ "$status" = 2 ]
		grep -q 'N is no number from 1' err
	done
	[ ! -e ran ] && [ ! -e none ]
	if command -v parallel >/dev/null; then
		mkdir ./-in
		cp -p tree/a.so ./-in/
		touch -r tree ./-in
		"$contrib/distributed/shards-parallel" -in -out 2 --group g 3>&-
		diff -r want ./-out
	fi
	if command -v ninja >/dev/null; then
		rm -rf ./-out
		"$contrib/distributed/shards-ninja" -in -out 2 --group g >build.ninja
		ninja 3>&- >log
		diff -r want ./-out
		status=0
		PARTS='a|b' "$contrib/distributed/shards-ninja" tree out 2 2>err || status=$?
		[ "$status" = 2 ]
	fi
}

@test "shards: parts that are a link are removed as a link" {
	as_root
	make_victim
	chmod 0500 victim/done
	state_of_victim >was
	ln -s "$T/victim" out.parts
	KPACK=true "$contrib/distributed/slurm-merge" out 1
	victim_is_as_it_was
	ln -sfn "$T/victim" out.parts
	KPACK=true env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/distributed/shards.mk" INPUT=x OUT=out N=1 3>&-
	victim_is_as_it_was
	ln -sfn "$T/victim" out.parts
	env -u MAKEFLAGS -u MAKELEVEL make -s -f "$contrib/distributed/shards.mk" clean INPUT=x OUT=out N=1 3>&-
	victim_is_as_it_was
	if command -v parallel >/dev/null; then
		export PARALLEL_HOME=$T/.parallel
		mkdir -p "$PARALLEL_HOME"
		ln -sfn "$T/victim" out.parts
		KPACK=true "$contrib/distributed/shards-parallel" x out 1 3>&-
		victim_is_as_it_was
	fi
}

# ---- building -----------------------------------------------------------------------------------

@test "root builds in no directory of another's" {
	as_root
	mkdir theirs
	their theirs
	printf '#!/bin/sh\necho "$PWD" >"%s/built"\nexit 9\n' "$T" >stubs/dpkg-buildpackage
	chmod +x stubs/*
	export PATH=$T/stubs:$PATH
	TMPDIR=$T/theirs refuses theirs/tmp. "$contrib/debian/build" "$T/out"
	[ ! -e built ]
}

@test "root unpacks no package that another has put there" {
	as_root
	mkdir -p theirs/packages
	: >theirs/packages/librocrand1_1.deb
	their theirs theirs/packages
	printf '#!/bin/sh\necho "$*" >>"%s/unpacked"\n' "$T" >stubs/dpkg
	chmod +x stubs/*
	PATH=$T/stubs:$PATH refuses 'theirs: belongs to another user' "$contrib/install-deps" --inputs theirs
	[ ! -e unpacked ]
}

@test "the demo writes nothing where another user's links lead" {
	as_root
	make_victim
	mkdir theirs
	ln -s "$T/victim/done/secret" theirs/ls
	their theirs
	KPACK_DEMO_OFFLINE=1 KPACK_DEMO_DIR=$T/theirs refuses 'theirs: belongs to another user' "$contrib/demo" "$KPACK_BIN"
	victim_is_as_it_was
}

# alice_mounts DIRECTORY: an ordinary user mounts there what everybody may look at, and
# what never answers
alice_mounts() {
	prefix packed lib/rocblas/library/a.dat
	their "$1"
	[ -e kpackfs ] || cp "$KPACKFS" kpackfs
	echo user_allow_other >fuse.conf
	mount --bind fuse.conf /etc/fuse.conf
	as_nobody ./kpackfs -o allow_other packed/.kpack "$1"
	umount /etc/fuse.conf
	# shellcheck disable=SC2046 # numbers
	kill -STOP $(alices)
}
alices() { pgrep -f "^./kpackfs -o allow_other packed/.kpack $T/"; }

@test "another user's file system that never answers holds up nothing" {
	as_root
	local odd=$'al ice\\1\n2#'
	mkdir -p "tree/lib/$odd" tree/library archives
	prefix tree library/a.dat
	alice_mounts "$T/tree/lib/$odd"
	for place in tree "tree/lib/$odd" "tree/lib/$odd/lib"; do
		for script in in-place overlay; do
			status=0
			timeout 600 "$contrib/mount/$script" "$place" >said 2>err || status=$?
			[ "$status" = 1 ]
			grep -qE 'another user has mounted|a user other than root' err
		done
	done
	refuses 'another user than root has mounted' timeout 600 "$contrib/mount/environment.sh" "$T/tree/lib/$odd"
	refuses 'a mount of another user' timeout 600 "$contrib/mount/in-place" packed "$T/tree/lib/$odd"
	refuses 'another user has mounted' timeout 600 "$contrib/packaging/make-tarball" --name ab --version 1 tree out
	mkdir policies marked
	printf '%s\n' "tree=$T/tree" arch=gfx942 do=thin >policies/x.conf
	mkfat a.so
	"$KPACK_BIN/kpack" mark convert --kernel-name a --search-path 'archives/lib/../lib/a_@GFXARCH@.kpack' a.so marked/a.so
	ln -s "$T/tree/lib/$odd" marked/archives
	for command in "pack -q tree out" "report -o page.html tree" "mark strip-safe --check tree" "runtime tree" "thin --arch gfx942 tree" \
		"prune tree" "apply --policy-dir policies --state-dir state" \
		"mark check marked" "mark restore -o restored marked/a.so" "prune marked"; do
		# shellcheck disable=SC2086 # words
		refuses 'another user has mounted a FUSE file system there' timeout 600 "$KPACK_BIN/kpack" $command
	done
	# a mount covers it without a look at its files
	timeout 600 "$KPACKFS" packed/.kpack "$T/tree/lib"
	[ -e tree/lib/lib/rocblas/library/a.dat ]
	umount -l tree/lib
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(alices)
}

# shows TEXT: the mount lists it among what is missing; waits for that
shows() {
	for _ in $(seq 1200); do
		! timeout 600 cat mnt/.kpackfs/missing | grep -F -e "$1" >/dev/null || return 0
		read -rt 0.05 <> <(:) || :
	done
	cat mnt/.kpackfs/missing
	return 1
}

# ends: no daemon of root's is left at mnt; waits for that
ends() {
	for _ in $(seq 1200); do
		pgrep -f "^$KPACKFS .*$T/mnt" >/dev/null || return 0
		read -rt 0.05 <> <(:) || :
	done
	return 1
}

@test "another user's file system that never answers, on the way to archives" {
	as_root
	local refused='another user has mounted a FUSE file system there' source
	prefix own lib/a.dat
	prefix later lib/b.dat
	mkdir silent theirs mnt
	ln -s "$T/later/.kpack" theirs/link
	ln -s "$T/theirs/link/a.kpack" own/.kpack/b.kpack
	their theirs theirs/link
	alice_mounts "$T/silent"
	# at the start a source is refused
	for source in silent silent/x.kpack own/../silent/lib/..; do
		refuses "$refused" timeout 600 "$KPACKFS" "$source" "$T/mnt"
	done
	refuses "$refused" timeout 600 "$KPACKFS" own/.kpack "$T/silent/lib"
	# and an archive that a link leads to is missing
	ln -s "$T/silent/c.kpack" own/.kpack/c.kpack
	timeout 600 "$KPACKFS" own/.kpack theirs/link "$T/mnt"
	[ -e mnt/lib/a.dat ]
	[ -e mnt/lib/b.dat ]
	shows "$refused"
	# later the user exchanges a link
	ln -s "$T/silent" theirs/new
	mv -T theirs/new theirs/link
	shows "theirs/link	refused: cannot look at it: $refused"
	[ -e mnt/lib/a.dat ]
	# changes of other archives are seen
	prefix more lib/more.dat
	mv more/.kpack/a.kpack own/.kpack/d.kpack
	for _ in $(seq 1200); do
		[ ! -e mnt/lib/more.dat ] || break
		read -rt 0.05 <> <(:) || :
	done
	[ -e mnt/lib/more.dat ]
	umount mnt
	ends
	# the directory of the mount gets covered: a signal ends the daemon
	mkdir -p mnt/over/place
	timeout 600 "$KPACKFS" own/.kpack "$T/mnt/over/place"
	rm -r packed
	alice_mounts "$T/mnt/over"
	pkill -TERM -o -f "^$KPACKFS .*$T/mnt"
	ends
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(alices)
}

@test "a search path through another user's link leads nowhere, and is no missing archive" {
	as_root
	mkdir in
	mkfat --size 60000 in/a.so
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
# is called kpack, until $T/release exists; its ID is $held
holds() {
	mkdir -p holder
	[ -e holder/kpack ] || cp /usr/bin/python3 holder/kpack
	./holder/kpack -c '
import fcntl, os, sys, time
d = os.open(sys.argv[1], os.O_RDONLY)
os.setresgid(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[3]))
os.setresuid(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[3]))
fcntl.flock(d, fcntl.LOCK_EX)
os.write(3, b"x")
while os.path.exists(sys.argv[4]) and not os.path.exists("release"):
    time.sleep(0.05)
' "$1" "$2" "$3" "$1.held" 3>"$1.held" 4>&- &
	held=$!
	until [ -s "$1.held" ]; do read -rt 0.05 <> <(:) || :; done
}

@test "locks: root waits for root's runs, and not for ever for what another user holds" {
	local pids=() case
	local -A holder
	as_root
	mkdir in out
	mkfat in/a.so
	# its directories have the device and number that the kernel's lists of locks have
	mount -t tmpfs none out
	# a run of root's; a process of another user's; a set-user-ID program that the user started
	for case in 0:0 65534:65534 65534:0; do
		mkdir -m 0775 "out/$case"
		holds "$T/out/$case" ${case/:/ }
		holder[$case]=$held
		"$KPACK_BIN/kpack" pack -q in "out/$case" 2>"err-$case" 4>&- &
		pids+=($!)
	done
	# a run that inherits the lock of its caller waits for the caller, not for itself
	mkdir -m 0775 out/caller
	timeout 600 flock out/caller "$KPACK_BIN/kpack" pack -q in out/caller 2>err-caller 4>&- &
	pids+=($!)
	for case in 1 2 3; do
		status=0
		wait "${pids[case]}" || status=$?
		[ "$status" = 1 ]
	done
	grep -q "out/caller: process [0-9]* (flock) has it locked: wait for it or end it" err-caller
	[ -z "$(ls out/caller)" ]
	for case in 65534:65534 65534:0; do
		grep -q "out/$case: process ${holder[$case]} (kpack) has it locked: wait for it or end it" "err-$case"
		[ -z "$(ls "out/$case")" ]
	done
	kill -0 "${pids[0]}"
	grep -q 'out/0:0: note: another process has locked it: waiting' err-0:0
	touch release
	wait "${pids[0]}"
	[ -e out/0:0/a.so ]
	# another user's own run still waits for everybody
	rm release
	mkdir theirs
	their theirs
	cp "$KPACK_BIN/kpack" kpack
	holds "$T/theirs" 0 0
	as_nobody ./kpack pack -q in theirs 2>err 4>&- &
	pids=($!)
	until grep -q waiting err; do kill -0 "${pids[0]}"; read -rt 0.05 <> <(:) || :; done
	touch release
	wait "${pids[0]}"
	[ -e theirs/a.so ]
	wait
}

@test "locks: where only root can write, another user's lock holds up nothing" {
	local case pid
	as_root
	mkdir in mine
	mkfat in/a.so
	# its directories have the device and number that the kernel's list of locks has
	mount -t tmpfs none mine
	mount -t tmpfs none /run
	: >/run/of-the-test
	for case in 65534:65534 65534:0; do
		mkdir "mine/$case"
		holds "$T/mine/$case" ${case/:/ }
		"$KPACK_BIN/kpack" pack -q in "mine/$case"
		holds "$T/mine/$case/.kpack" ${case/:/ }
		"$KPACK_BIN/kpack" prune "mine/$case" 2>err
		[ ! -s err ]
	done
	[ "$(stat -c '%U %a' /run/kpack.lock)" = 'root 600' ]
	# runs of root's still wait for each other
	$python -c '
import fcntl, os, time
f = open("/run/kpack.lock", "r+b")
fcntl.lockf(f, fcntl.LOCK_EX)
os.write(3, b"x")
while os.path.exists("in") and not os.path.exists("given-back"):
    time.sleep(0.05)
' 3>taken 4>&- &
	until [ -s taken ]; do read -rt 0.05 <> <(:) || :; done
	"$KPACK_BIN/kpack" pack -q in "mine/$case" 2>err 4>&- &
	pid=$!
	until grep -q waiting err; do kill -0 $pid; read -rt 0.05 <> <(:) || :; done
	touch given-back
	wait $pid
	# in one directory only: its neighbours are free
	mkdir mine/{w,x,y,z}
	holds "$T/mine/x" 0 0
	"$KPACK_BIN/kpack" pack -q in mine/x 2>err 4>&- &
	pid=$!
	until grep -q waiting err; do kill -0 $pid; read -rt 0.05 <> <(:) || :; done
	for case in w y z; do
		"$KPACK_BIN/kpack" pack -q in mine/$case 2>err-$case
		[ ! -s err-$case ]
	done
	touch release
	wait $pid
	wait
}

@test "locks: another user cannot keep policies from being applied" {
	as_root
	mkdir tree policies
	mkfat --size 60000 --arches gfx1100,gfx1030 tree/a.so
	printf '%s\n' "tree=$T/tree" arch=gfx1100 do=thin >policies/x.conf
	"$KPACK_BIN/kpack" apply -q --policy-dir policies --state-dir state
	holds "$T/state" 65534 65534
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx1030 tree/b.so
	"$KPACK_BIN/kpack" apply --policy-dir policies --state-dir state >said
	grep -q ': 1 files thinned' said
	run -1 as_nobody cat state/lock
	touch release
	wait
}

@test "locks: prune removes nothing if a binary changed while it waited" {
	local pid
	as_root
	mkdir old new
	mkfat --size 60000 --bundles 1 old/a.so
	mkfat --size 60000 --bundles 3 --seed 2 new/a.so
	"$KPACK_BIN/kpack" pack -q --group g --archive-dir z old tree
	"$KPACK_BIN/kpack" pack -q --group h --archive-dir z new tree2
	holds "$T/tree/z" 0 0
	# another run has written archives, and not yet the binary that needs them
	cp -a tree2/z/. tree/z
	"$KPACK_BIN/kpack" prune tree 2>err 4>&- &
	pid=$!
	until grep -q waiting err; do kill -0 $pid; read -rt 0.05 <> <(:) || :; done
	cp -a tree2/a.so tree/new
	mv tree/new tree/a.so
	touch release
	status=0
	wait $pid || status=$?
	[ "$status" = 1 ]
	grep -q 'tree/a.so: changed meanwhile: run kpack prune again' err
	wait
	"$KPACK_BIN/kpack" prune -q tree
	diff -r -x z.held tree tree2
}

@test "runtime --ask: root runs no library that another user can write or replace" {
	as_root
	[ "$KPACK_MODE" = release ] || return 0 # a sanitizer's runtime must be loaded first
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
