#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Policies, with the system's own dpkg and apt: packages are installed, upgraded while they
# are mounted and in use, removed and installed again.
#
# The system is a copy of this one: an overlay over / in which everything is written
# elsewhere.  Nothing is fetched.

bats_require_minimum_version 1.5.0

# bats file_tags=all

load packing

setup() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	command -v dpkg-deb apt-get >/dev/null || skip "no dpkg and apt"
	chmod 0666 /dev/fuse
	T=$(mktemp -d /tmp/kpack-upgrade-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C
	umask 022
	mkdir upper root
	mount -t tmpfs -o mode=0755 tmpfs upper
	mkdir upper/files upper/work
	mount -t overlay -o "lowerdir=/,upperdir=$T/upper/files,workdir=$T/upper/work" overlay root
	mount -t tmpfs -o mode=1777 tmpfs root/tmp
	mount -t tmpfs -o mode=0755 tmpfs root/run
	mount -t proc proc root/proc
	mount --rbind /dev root/dev
	mount --make-rslave root/dev
	rm -rf root/var/lib/kpack root/etc/kpack
	rm -rf root/root/.rpmdb
	mkdir -p root/etc/kpack/policy.d root/packages
	# no package of this system, and no hook or setting of its apt and dpkg, has a say
	: >root/var/lib/dpkg/status
	rm -rf root/var/lib/dpkg/{updates,triggers}/* root/etc/apt/{apt.conf,preferences}.d/* root/etc/dpkg/dpkg.cfg.d/*
	make -s -C "$KPACK_SRC" MODE="$KPACK_MODE" DESTDIR="$T/root" PREFIX=/usr install >/dev/null
	cp root/usr/share/kpackfs/dpkg/apt.conf root/etc/apt/apt.conf.d/80kpackfs
	cp root/usr/share/kpackfs/dpkg/dpkg.cfg root/etc/dpkg/dpkg.cfg.d/kpackfs
}

teardown() {
	cd /
	[ -n "${T-}" ] || return 0
	exec 7<&-
	local pids
	pids=$(for p in /proc/[0-9]*; do [ "$(readlink "$p/root")" != "$T/root" ] || echo "${p#/proc/}"; done)
	findmnt -rno TARGET | grep "^$T/" | tac | while IFS= read -r m; do umount "$m" || umount -l "$m"; done
	# what still ran in it ends with its mounts
	# shellcheck disable=SC2086 # numbers
	$python "$BATS_TEST_DIRNAME/await_end.py" $pids
	rm -rf "$T"
}

inside() { chroot root "$@"; }

lib=opt/kpack-test/lib
database=$lib/rocblas/library

# package VERSION [FILE...]: its .deb, with a library, a database and further files
package() {
	local d=package-$1 gpu
	mkdir -p "$d/DEBIAN" "$d/$database" "$d/opt/kpack-test/share"
	cat >"$d/DEBIAN/control" <<-END
		Package: kpack-test
		Version: $1
		Architecture: all
		Maintainer: nobody <nobody@localhost>
		Description: code for GPUs
	END
	mkfat --size 60000 --seed "$1" --arches gfx1100,gfx1030 "$d/$lib/liba.so"
	for gpu in gfx1100 gfx1030; do
		for f in "Kernels.so-000-$gpu.hsaco" "TensileLibrary_lazy_$gpu.dat"; do
			yes "$f $1" | head -c 5000 >"$d/$database/$f"
		done
	done
	echo "$1" >"$d/opt/kpack-test/share/version"
	for f in "${@:2}"; do echo "$1" >"$d/$database/$f"; done
	# the same times in each version, as reproducible builds have them
	find "$d" -exec touch -h -d 2020-01-01 {} +
	(cd "$d" && find opt -type f -exec md5sum {} +) >"$d/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -Znone -b "$d" "root/packages/$1.deb" >/dev/null
}

policy() { # thin|pack [LIST]
	echo "thin --arch ${2-gfx1100} /opt/kpack-test" >root/etc/kpack/policy.d/test.conf
	[ "$1" = thin ] || echo "pack --in-place --arch ${2-gfx1100} /opt/kpack-test" >>root/etc/kpack/policy.d/test.conf
}

# Install as dpkg does, or remove; nothing may be left half-done.
dpkg_does() { # OPTION...
	inside dpkg "$@" >dpkg.log 2>&1 || { cat dpkg.log; return 1; }
	run -0 inside dpkg --audit
	[ -z "$output" ] || { echo "$output"; return 1; }
	! grep kpackfs: dpkg.log || false
}

only_gfx1100() { # FILE
	[ "$($python "$tools/fatparse.py" sums "$1" x | awk '{ print $3 }' | sort -u)" = gfx1100 ]
}

# What dpkg -V lists is what status says, and nothing else.
same_as_status() { # STATUS...
	inside dpkg -V kpack-test | awk '{ print $NF, /^missing/ ? "missing" : "changed" }' | sort >listed
	inside kpack status --json >status.json || :
	py "$@" >said <<-'END'
	import json, sys
	for f in json.load(open("status.json"))[0]["files"]:
	    if f["status"] in sys.argv[1:]:
	        print("/opt/kpack-test/" + f["path"], "changed" if f["status"] == "changed" else "missing")
	END
	sort -o said said
	diff listed said
	[ -s said ]
}

complete() { [ "$(inside kpack status | tail -n 1)" = '  complete' ]; }

@test "thin: installed, upgraded, removed, installed again, by dpkg" {
	package 1
	package 2 new-in-2.dat
	policy thin
	# packages have the path without the link
	ln -s kpack-test root/opt/kpack-link
	sed -i s/kpack-test/kpack-link/ root/etc/kpack/policy.d/test.conf
	dpkg_does -i /packages/1.deb
	grep -q '^test: /opt/kpack-test: 1 file changed, 2 removed' dpkg.log
	only_gfx1100 root/$lib/liba.so
	[ ! -e root/$database/Kernels.so-000-gfx1030.hsaco ]
	same_as_status changed removed
	complete
	# the same times as before: only the contents and inodes are new
	dpkg_does -i /packages/2.deb
	only_gfx1100 root/$lib/liba.so
	[ "$(cat root/$database/new-in-2.dat)" = 2 ]
	grep -q 'gfx1100.hsaco 2' root/$database/Kernels.so-000-gfx1100.hsaco
	same_as_status changed removed
	dpkg_does -r kpack-test
	[ ! -e root/opt/kpack-test ]
	run -0 inside kpack status
	[ "$output" = "test: /opt/kpack-test: does not exist" ] || [ "$output" = "test: /opt/kpack-link: does not exist" ]
	dpkg_does -i /packages/1.deb
	only_gfx1100 root/$lib/liba.so
	same_as_status changed removed
	complete
	# another GPU: the package is named if it has code for it, and reinstalling it is enough
	policy thin gfx1100,gfx1030
	run -1 inside kpack apply
	[[ $output == *"gfx1030: was not wanted yet when 3 files of /opt/kpack-test lost code: to have its code, reinstall kpack-test"* ]]
	dpkg_does -i /packages/1.deb
	[ -z "$(inside dpkg -V kpack-test)" ]
	complete
}

@test "packed and mounted: upgraded while a program reads a file" {
	package 1
	package 2 new-in-2.dat
	policy pack
	dpkg_does -i /packages/1.deb
	mountpoint -q root/$database
	cmp package-1/$database/Kernels.so-000-gfx1100.hsaco root/$database/Kernels.so-000-gfx1100.hsaco
	same_as_status changed removed
	complete
	exec 7<root/$database/Kernels.so-000-gfx1100.hsaco
	dpkg_does -i /packages/2.deb
	mountpoint -q root/$database
	cmp package-2/$database/Kernels.so-000-gfx1100.hsaco root/$database/Kernels.so-000-gfx1100.hsaco
	cmp package-1/$database/Kernels.so-000-gfx1100.hsaco - <&7
	exec 7<&-
	[ "$(cat root/$database/new-in-2.dat)" = 2 ]
	same_as_status changed removed
	complete
	# the packages are named when kpackfs is removed
	cp "$KPACK_SRC/contrib/debian/kpackfs.prerm" root/prerm
	run -0 inside sh /prerm upgrade
	[ -z "$output" ]
	run -0 inside sh /prerm remove
	[ "$output" = "kpackfs: GPU code of packages is in archives, and not mounted any more: reinstall what has files in /opt/kpack-test" ]
	# while it is not mounted, the packed ones are missing, too
	inside kpack apply --unmount
	same_as_status changed removed packed
	inside kpack apply --mounts
	dpkg_does -r kpack-test
	! mountpoint -q root/$database || false
	[ -z "$(ls -A root/opt/kpack-test)" ]
	dpkg_does -i /packages/2.deb
	cmp package-2/$database/Kernels.so-000-gfx1100.hsaco root/$database/Kernels.so-000-gfx1100.hsaco
	complete
}

@test "packed, then thin: the archives go when the package is installed again, and when it is purged" {
	package 1
	# the overlay's files are of two file systems, which prune takes for those of a mount
	mount -t tmpfs -o mode=0755 tmpfs root/opt
	for how in -i -P; do
		policy pack
		dpkg_does -i /packages/1.deb
		[ -e root/opt/kpack-test/.kpack ]
		policy thin
		run -1 inside kpack apply
		[[ $output == *"/opt/kpack-test is packed, and stays so: to have it thin, reinstall kpack-test"* ]]
		if [ "$how" = -i ]; then
			dpkg_does -i /packages/1.deb
			[ ! -e root/opt/kpack-test/.kpack ]
			only_gfx1100 root/$lib/liba.so
			same_as_status changed removed
		else
			dpkg_does -P kpack-test
			[ -z "$(ls -A root/opt/kpack-test)" ]
		fi
		inside kpack status
	done
}

@test "apt: its hooks do the work once, at the end" {
	package 1
	package 2
	policy pack
	apt() { inside apt-get -y -o APT::Sandbox::User=root --allow-downgrades "$@" >apt.log 2>&1 || { cat apt.log; return 1; }; }
	apt install /packages/1.deb
	[ "$(grep -c '^test: /opt/kpack-test: ' apt.log)" = 1 ]
	mountpoint -q root/$database
	apt install /packages/2.deb
	[ "$(grep -c '^test: /opt/kpack-test: ' apt.log)" = 1 ]
	cmp package-2/$database/Kernels.so-000-gfx1100.hsaco root/$database/Kernels.so-000-gfx1100.hsaco
	[ -z "$(inside dpkg --audit)" ]
	complete
	# a policy that is wrong does not stand in the way
	echo thick >root/etc/kpack/policy.d/wrong.conf
	apt install /packages/1.deb
	grep -q 'kpackfs: not all policies could be applied' apt.log
	[ "$(cat root/opt/kpack-test/share/version)" = 1 ]
	[ -z "$(inside dpkg --audit)" ]
}
