#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kpack prune where mounts, other users and other runs are.  What goes and what stays is in
# tests/golden/prune*, and what is true of all trees in tests/properties.

# bats file_tags=single

load packing

# A test that failed leaves no mount.
teardown() {
	cd /
	findmnt -rno TARGET | grep "^$T/" | tac | while read -r mount; do umount "$mount"; done
	rm -rf "$T"
}

library=lib/rocblas/library
kernel=$library/Kernels.so-000-gfx1100.hsaco

make_tree() { # DIR
	mkdir -p "$1/$library"
	mkfat --bundles 1 --arches gfx1030,gfx1100 "$1/lib/b.so"
	mkfat --bundles 1 --seed 3 --arches gfx1030,gfx1100 "$1/lib/c.so"
	py "$1/$library" <<-'END'
	import sys, mkfat
	for arch in "gfx1100", "gfx1030":
	    for name in "TensileLibrary_Type_HH_%s.co", "Kernels.so-000-%s.hsaco":
	        with open(sys.argv[1] + "/" + name % arch, "wb") as f:
	            f.write(mkfat.code_object(arch, 900, name))
	END
}

# prune is to change nothing
stays() {
	kpack prune -q "$@" out
	diff -r want out/.kpack
}

@test "code of files that a mount covers or only a mount shows stays" {
	as_root
	make_tree in
	kpack pack -q --group g in out
	cp -a out/.kpack want
	mount -t tmpfs tmpfs out/lib
	stays --force
	umount out/lib
	# the same file system: copies in place of what kpackfs would show
	mkdir shown
	cp -a in/lib shown/
	mount --bind shown/$library out/$library
	stays
	umount out/$library
	mkdir -p out/$library
	: >out/$kernel
	mount --bind in/$kernel out/$kernel
	stays
	umount out/$kernel
	rm out/$kernel
	# an overlay over a directory, and over the whole tree; each layer of a file system of its own
	mkdir mnt
	mount -t tmpfs tmpfs mnt
	cp -a in/lib mnt/
	rm mnt/lib/*.so
	mount -t overlay overlay -o ro,lowerdir=out/lib:mnt/lib out/lib
	[ -s out/$kernel ]
	stays
	umount out/lib
	for options in "" ,xino=on; do
		cp -a out whole
		mkdir up work
		mount -t overlay overlay -o "lowerdir=whole:mnt,upperdir=up,workdir=work$options" out
		[ -s out/$kernel ]
		stays
		umount out
		rm -r whole up work
	done
	umount mnt
	# and goes when it is in none
	rm out/lib/c.so
	kpack prune -q out
	! kpack ls out/.kpack | grep 'lib/c\.so#' || false
}

@test "what is pruned keeps mode, attributes and owner; what a killed run left goes under the lock; what changes meanwhile stays" {
	local what preload left=out/.kpack/.kpack-0123456789abcdef.tmp
	make_tree in
	kpack pack -q --group g --family all=gfx1030,gfx1100 in out
	setfattr -n user.note -v kept out/.kpack/g-all.kpack 2>/dev/null || :
	chmod 0640 out/.kpack/g-all.kpack
	[ "$(id -u)" != 0 ] || chown 1234:4321 out/.kpack/g-all.kpack
	stat -c %u:%g:%a out/.kpack/g-all.kpack >was
	getfattr --only-values -n user.note out/.kpack/g-all.kpack >>was 2>/dev/null || :
	: >$left
	kpack prune -q -n --arch gfx1100 out
	[ -e $left ]
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=flock,unlinkat \
		"$KPACK_BIN/kpack" prune -q --arch gfx1100 out
	# it belongs to no run that has the lock
	[ "$(grep -oE "flock\(.*LOCK_EX|unlinkat\(.*${left##*/}" trace | cut -d '(' -f 1 | uniq | paste -sd ' ')" = "flock unlinkat" ]
	[ "$(ls -A out/.kpack)" = g-all.kpack ]
	[ "$(kpack ls out/.kpack | cut -f 2 | sort -u)" = gfx1100 ]
	stat -c %u:%g:%a out/.kpack/g-all.kpack >is
	getfattr --only-values -n user.note out/.kpack/g-all.kpack >>is 2>/dev/null || :
	diff was is	# an archive, and a binary, that change while the tree is looked at
	preload=$(ldd "$KPACK_BIN/kpack" | awk '$1 ~ /^lib[at]san/ { print $3 }' | tr '\n' ' ')
	for what in .kpack/g-all.kpack lib/c.so; do
		cp -a out meanwhile
		status=0
		MOMENT_PATH=/meanwhile/lib/rocblas MOMENT_DO="cp -a meanwhile/$what other; mv other meanwhile/$what" \
			LD_PRELOAD="$preload$KPACK_BIN/tests/stub/moment.so" kpack prune --arch gfx1100 --force meanwhile 2>err || status=$?
		[ $status = 1 ] && grep -qx "kpack: meanwhile/$what: changed meanwhile: run kpack prune again" err
		diff -r out/.kpack meanwhile/.kpack
		rm -r meanwhile
	done
}
