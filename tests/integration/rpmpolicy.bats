#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Policies through the file triggers of the RPM package: real rpm installs, upgrades and removes
# packages, with a database of its own, into trees of a scratch directory.

bats_require_minimum_version 1.5.0

# bats file_tags=plain, all

load packing

setup() {
	command -v rpm >/dev/null && command -v rpmbuild >/dev/null || skip "no rpm and rpmbuild"
	as_root
	chmod 0666 /dev/fuse
	T=$(mktemp -d /tmp/kpack-rpm-XXXXXX)
	chmod 0755 "$T"
	cd "$T"
	export LC_ALL=C
	umask 022
	own_run
	mkdir policies real db build
	printf '#!/bin/sh\nexec "%s/kpack" "$@" --policy-dir %s/policies --state-dir %s/state\n' "$KPACK_BIN" "$T" "$T" >kpack
	# kpack asks rpm, whatever the place of the database is on this system
	cp "$(realpath /usr/bin/rpm)" real/rpm
	printf '#!/bin/sh\nexec %s/real/rpm --dbpath %s/db "$@"\n' "$T" "$T" >rpm
	# this machine's own policies, if it has some, have no unit here
	mkdir stubs
	printf '#!/bin/sh\nexit 1\n' >stubs/systemctl
	chmod +x kpack rpm stubs/systemctl
	mount --bind "$T/rpm" /usr/bin/rpm
	rpm --initdb
	make_triggers
}

teardown() {
	[ -n "${T-}" ] || return 0
	cd /
	umount /usr/bin/rpm || :
	end_mounts
	end_own_run
	rm -rf "$T"
}

objects() { $python "$tools/fatparse.py" sums "$1" x | awk '{ print $3 }' | sort -u | paste -sd ' '; }

build() { # SPEC
	rpmbuild -bb --define "_topdir $T/top" --define "_tmppath $T/tmp" --define "_dbpath $T/db" \
		--define "debug_package %{nil}" --define "__os_install_post %{nil}" "$1" >log 2>&1 || { tail -n 30 log; return 1; }
}

# A package with the triggers of kpackfs.spec, for the tree of this test
make_triggers() {
	{
		printf '%s\n' 'Name: triggers' 'Version: 1' 'Release: 1' 'Summary: triggers' 'License: MIT' 'BuildArch: noarch' \
			%description triggers
		sed -n '/^%transfiletriggerun/,/^%files/{/^%files/d; p}' "$KPACK_SRC/contrib/rpm/kpackfs.spec" |
			sed -e "s|%{_libexecdir}/kpackfs/dpkg-hook|PATH=$T/stubs:\$PATH KPACK=$T/kpack '$KPACK_SRC/contrib/dpkg/hook'|" \
				-e "s|-- /usr /opt|-- $T/tree|"
		echo %files
	} >triggers.spec
	[ "$(grep -c "KPACK=$T" triggers.spec)" = 3 ]
	build triggers.spec
	rpm -i --nodeps top/RPMS/noarch/triggers-*.rpm
}

# The package blas of what is in build/; the directory of its database belongs to it
blas() { # VERSION
	cat >blas.spec <<-END
		Name: blas
		Version: $1
		Release: 1
		Summary: blas
		License: MIT
		AutoReqProv: no
		%description
		blas
		%install
		mkdir -p %{buildroot}$T
		cp -a $T/build %{buildroot}$T/tree
		%files
		$T/tree
	END
	build blas.spec
	package=$(echo top/RPMS/*/blas-"$1"-1.*.rpm)
}

policy() { # thin|pack
	echo "thin --arch gfx1100 $T/tree" >policies/rocm.conf
	[ "$1" = thin ] || echo "pack --in-place --arch gfx1100 $T/tree" >>policies/rocm.conf
}

database() { # GPU...
	mkdir -p build/lib/rocblas/library
	for gpu; do head -c 5000 /dev/urandom >"build/lib/rocblas/library/Kernels.so-000-$gpu.hsaco"; done
}

@test "rpm that thins: install, upgrade, remove; what rpm -V lists" {
	policy thin
	mkdir -p build/lib
	mkfat --size 60000 --arches gfx1100,gfx1030 build/lib/a.so
	echo text >build/text
	database gfx1100 gfx1030
	blas 1
	rpm -i "$package" >said
	grep -q "^rocm: $T/tree: 1 file changed, 1 removed" said
	[ "$(objects tree/lib/a.so)" = gfx1100 ]
	rpm -V blas >have || :
	diff have - <<-END
	S.5......    $T/tree/lib/a.so
	missing     $T/tree/lib/rocblas/library/Kernels.so-000-gfx1030.hsaco
	END
	mkfat --size 60000 --seed 2 --arches gfx1100,gfx1030,gfx90a build/lib/a.so
	blas 2
	rpm -U "$package" >said
	grep -q "1 file changed, 1 removed" said
	[ "$(objects tree/lib/a.so)" = gfx1100 ]
	"$T/kpack" status >said
	grep -qx '  complete' said
	rpm -e blas
	[ ! -e tree ]
}

@test "rpm that packs: mounts go and come back" {
	policy pack
	mkdir -p build/lib
	mkfat --size 60000 --arches gfx1100,gfx1030 build/lib/a.so
	database gfx1100
	blas 1
	rpm -i "$package" >said
	grep -q "1 file changed, 0 removed, 1 packed" said
	[ "$(mounts)" = 1 ]
	kernels=tree/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cmp build/${kernels#tree/} $kernels
	cp $kernels old
	database gfx1100
	blas 2
	# what is mounted has no room, and rpm asks for it before it runs triggers: nothing is changed
	run rpm -U "$package"
	[ "$status" != 0 ]
	[[ $output == *"more space on the $T/tree/lib/rocblas/library filesystem"* ]]
	cmp old $kernels
	[ "$(rpm -q --qf '%{VERSION}' blas)" = 1 ]
	[ "$(mounts)" = 1 ]
	exec 7<$kernels
	rpm -U --ignoresize "$package" >said
	cmp old - <&7 # a program has it open
	exec 7<&-
	[ "$(mounts)" = 1 ]
	cmp build/${kernels#tree/} $kernels
	rpm -e blas
	[ "$(mounts)" = 0 ]
	[ -z "$(find tree -name '*.so' -o -name '*.hsaco' -o -name '*.kpack' 2>/dev/null)" ]
}
