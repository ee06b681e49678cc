#!/usr/bin/env bats
# README.md shows what really happens.
#
# In its ```console blocks a line after "$ " is a command and the lines up to the next one
# are its output, both streams.  "..." in the output stands for anything.  All of them run
# in one shell, in order.  Other blocks of commands name the file that covers them:
# covered-by=FILE.

# bats file_tags=single

bats_require_minimum_version 1.5.0

setup() {
	# not below bats' own directory, which other users may not search
	T=$(mktemp -d /tmp/kpackfs-readme-XXXXXX)
	cd "$KPACK_SRC"
	export LC_ALL=C # messages of touch
}

teardown() {
	for m in "$T"/*/mnt "$T/mnt"; do
		! mountpoint -q "$m" || fusermount3 -u "$m" || umount -l "$m"
	done
	rm -rf "$T"
}

# blocks LANGUAGE: the lines of all blocks with exactly this after the ```
blocks() {
	awk -v want="$1" '
		/^```/ { inside = !inside && $0 == "```" want; fence = !fence
			if (!fence) inside = 0
			next }
		inside' README.md
}

# wanted_like WANTED GOT: equal, where "..." in WANTED is anything within a line
wanted_like() {
	sed -e 's/[][\.*^$]/\\&/g; s/\\\.\\\.\\\./.*/g; s/^/^/; s/$/$/' "$1" >"$1.re"
	[ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] || return 1
	paste -d '\n' "$1.re" "$2" | while IFS= read -r re && IFS= read -r line; do
		printf '%s\n' "$line" | grep -q -e "$re" || return 1
	done
}

# In this shell, as a reader would type it: PATH=... stays.
type_in() { # COMMAND WANTED
	echo "\$ $1"
	eval "$1" >"$T/got" 2>&1 </dev/null || :
	if ! wanted_like "$2" "$T/got"; then
		diff -u --label README.md --label "what happens" "$2" "$T/got" || :
		return 1
	fi
}

@test "the example's output is what its commands print" {
	mkdir "$T/example"
	blocks console | sed "s|/tmp/example|$T/example|g; s|\\\$PWD/build/release|$KPACK_BIN|g" >"$T/session"
	commands=0
	command=
	: >"$T/want"
	while IFS= read -r line <&3; do
		case $line in
		'$ '*)
			[ -z "$command" ] || type_in "$command" "$T/want" 3<&-
			command=${line#??}
			commands=$((commands + 1))
			: >"$T/want"
			;;
		*) printf '%s\n' "$line" >>"$T/want" ;;
		esac
	done 3<"$T/session"
	type_in "$command" "$T/want"
	[ $commands -ge 15 ]
	[ ! -e "$T/example" ]
}

@test "every block of commands is run here or names what covers it" {
	fences=$(awk '/^```/ { fence = !fence; if (fence) print substr($0, 4) }' README.md | sort -u)
	while IFS= read -r info; do
		case $info in
		console | text) ;;
		*' covered-by='*) [ -e "${info#*covered-by=}" ] || { echo "$info: no such file"; return 1; } ;;
		*) echo "\`\`\`$info: not run, and covered by nothing"; return 1 ;;
		esac
	done <<<"$fences"
	# and no command hides in a text block
	! blocks text | grep '^\$ ' || false
}

@test "every make target, file and option that is named exists" {
	for target in $(grep -oE '(`|^\$ (sudo )?)make [a-z][a-z-]*' README.md |
		sed 's/.*make //' | sort -u); do
		grep -q "^$target:" Makefile || { echo "make $target"; return 1; }
	done
	for file in $(grep -oE '`(\.ci|contrib|core|fs|packer|tests)/[a-z./-]*`' README.md | tr -d '`' | sort -u); do
		[ -e "$file" ] || { echo "$file"; return 1; }
	done
	for switch in $(grep -oE 'WITH_[A-Z0-9]+' README.md | sort -u); do
		grep -q "^$switch " Makefile || { echo "$switch"; return 1; }
	done
	contrib/install-deps --print | grep -q libfuse3-dev
}

@test "the fstab line works" {
	[ "$(id -u)" = 0 ] || skip "only root mounts by fstab"
	mkdir "$T/src" "$T/mnt"
	echo '{"entries": [{"key": "a#0", "arch": "gfx942", "data": "abc"}]}' |
		/usr/bin/python3 tests/integration/mkarchive.py "$T/src/a.kpack"
	blocks 'fstab covered-by=tests/integration/readme.bats' |
		sed "s|/opt/rocm/.kpack|$T/src|; s|/mnt/kernels|$T/mnt|" >"$T/fstab"
	[ "$(wc -l <"$T/fstab")" = 1 ]
	# mount(8) drops PATH, and takes a path after "fuse." too
	ln -s "$KPACK_BIN" "$T/bin"
	sed -i "s|fuse\.kpackfs|fuse.$T/bin/kpackfs|" "$T/fstab"
	mount -T "$T/fstab" "$T/mnt"
	[ "$(cat "$T/mnt/toc/a/gfx942.hsaco")" = abc ]
	grep " $T/mnt fuse.kpackfs ro,.*allow_other" /proc/mounts
	umount "$T/mnt"
}

@test "the manual pages it names can be read" {
	for page in kpackfs.1 packer/kpack.1 packer/kpack-pack.1 packer/kpack-mark.1 core/rocm_kpack.3; do
		mandoc -Tmarkdown "$page" | grep -q '^# NAME'
	done
}
