#!/usr/bin/env bats
# The release: its tarball, what is built from it, and rpms.
# bats file_tags=all

bats_require_minimum_version 1.5.0

setup() {
	T=$(mktemp -d /tmp/kpackfs-dist-XXXXXX)
	unset CI CC CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MFLAGS MAKELEVEL MODE O PREFIX LIBDIR DESTDIR
	cd "$KPACK_SRC"
}

teardown() {
	cd /
	! mountpoint -q "$T/mnt" || fusermount3 -u "$T/mnt" || umount -l "$T/mnt"
	rm -rf "$T"
}

make_tarball() { # FILE
	git -c safe.directory="$KPACK_SRC" rev-parse -q --verify HEAD >/dev/null || skip "not in git"
	make --no-print-directory dist tarball="$1"
}

unpack() { # TARBALL DIRECTORY
	mkdir -p "$2"
	tar -C "$2" --strip-components=1 -xf "$1"
}

@test "the tarball has the files of the commit, and always the same bytes" {
	make_tarball "$T/a.tar.gz"
	(umask 077 && TZ=Asia/Tokyo make_tarball "$T/b.tar.gz")
	cmp "$T/a.tar.gz" "$T/b.tar.gz"
	git -c safe.directory="$KPACK_SRC" ls-tree -r --name-only HEAD | LC_ALL=C sort >"$T/want"
	tar -tf "$T/a.tar.gz" | sed -n 's|^kpackfs-[0-9.]*/\(.*[^/]\)$|\1|p' | LC_ALL=C sort | diff "$T/want" -
}

@test "the spec's version is the programs'" {
	version=$(sed -n 's/^Version: *//p' contrib/rpm/kpackfs.spec)
	[ "kpackfs $version" = "$("$KPACK_BIN/kpackfs" --version | head -n 1)" ]
}

# bats test_tags=slow
@test "rpms are built from the tarball, and what is in them works" {
	command -v rpmbuild || skip "no rpmbuild"
	mkdir "$T/SOURCES" "$T/mnt" "$T/src" "$T/root"
	make_tarball "$T/SOURCES/kpackfs-$(sed -n 's/^Version: *//p' contrib/rpm/kpackfs.spec).tar.gz"
	cd "$T"
	# --nodeps: rpm does not know Debian's packages
	# no optimization: compiling takes most of the time
	CFLAGS='-O0 -U_FORTIFY_SOURCE' rpmbuild -ba --nodeps --without check --define "_topdir $T" "$KPACK_SRC/contrib/rpm/kpackfs.spec" >log 2>&1 || {
		tail -n 40 log
		return 1
	}
	[ "$(ls SRPMS/*.src.rpm | wc -l)" = 1 ]
	[ "$(ls RPMS/*/*.rpm | grep -vc debug)" = 4 ]
	rpm --root "$T/root" --dbpath /db --nodeps -i $(ls RPMS/*/*.rpm | grep -v debug)
	# no other package depends on these because of AMD's names
	run -0 rpm -qp --provides RPMS/*/*.rpm
	[[ $output != *librocm_kpack* && $output != *rocm-kpack* ]]
	! find root ! -path '*/kpackfs/*' -name 'librocm_kpack*' | grep . || false
	[ "$(readlink -f root/usr/sbin/mount.kpackfs)" = "$T/root/usr/bin/kpackfs" ]

	echo '{"entries": [{"key": "a#0", "arch": "gfx942", "data": "abc"}]}' |
		/usr/bin/python3 "$KPACK_SRC/tests/integration/mkarchive.py" src/a.kpack
	root/usr/bin/kpackfs src mnt
	[ "$(cat mnt/toc/a/gfx942.hsaco)" = abc ]
	fusermount3 -u mnt
}
