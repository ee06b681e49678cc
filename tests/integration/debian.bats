#!/usr/bin/env bats
# Debian packages: built from a copy of the tree, checked by lintian, and their contents
# used.

bats_require_minimum_version 1.5.0

setup() {
	T=$(mktemp -d /tmp/kpackfs-debian-XXXXXX)
	contrib=$KPACK_SRC/contrib
	cd "$T"
}

teardown() {
	cd /
	! mountpoint -q "$T/mnt" || fusermount3 -u "$T/mnt" || umount -l "$T/mnt"
	rm -rf "$T"
}

@test "the packages' version is the programs'" {
	version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$contrib/debian/changelog")
	[ "kpackfs $version" = "$("$KPACK_BIN/kpackfs" --version | head -n 1)" ]
}

@test "the build needs what install-deps installs" {
	"$contrib/install-deps" --print build test test-all >deps
	tr -d '\n' <"$contrib/debian/control" |
		sed 's/.*Build-Depends:\(.*\),Standards-Version.*/\1/' | tr ',' '\n' >wanted
	[ "$(wc -l <wanted)" -gt 10 ]
	sed -E 's/ *\|.*//; s/ *[(<].*//; s/:any//; s/^ *//; s/-compat//' wanted | while read -r one; do
		grep -qE "(^|[|])$one([|]|\$)" deps || { echo "$one"; return 1; }
	done
}

# bats test_tags=slow, all
@test "the packages are built, lintian finds nothing, and what is in them works" {
	command -v dpkg-buildpackage dh lintian || skip "no dpkg-dev, debhelper and lintian"
	# no optimization: compiling takes most of the time
	export DEB_BUILD_OPTIONS='nocheck noopt parallel=2'
	unset CI CC CFLAGS CPPFLAGS LDFLAGS
	"$contrib/debian/build" out >log 2>&1 || { tail -n 40 log; return 1; }
	[ "$(ls out/*.deb | grep -vc dbgsym)" = 5 ]
	# silence is what it says when it is content
	TMPDIR=$T run -0 lintian --allow-root --fail-on error,warning out/*.changes
	[ -z "$output" ] || { echo "$output"; return 1; }

	for one in kpackfs librocm-kpack0 librocm-kpack-dev dh-kpack python3-kpackfs; do
		dpkg-deb -x out/${one}_[0-9]*.deb root
	done
	dpkg-deb -f out/kpackfs_[0-9]*.deb Depends | grep -qw fuse3
	# nothing of AMD's names stands where a linker looks
	! find root ! -path '*/kpackfs/*' -name 'librocm_kpack*' | grep . || false
	[ "$(readlink -f root/usr/sbin/mount.kpackfs)" = "$T/root/usr/bin/kpackfs" ]
	gzip -dc root/usr/share/man/man8/mount.kpackfs.8.gz | grep -q '^\.Dt MOUNT.KPACKFS'
	[ -s root/usr/lib/systemd/system/kpackfs@.service ]
	# debhelper finds the sequence, and puts it where it belongs
	[ "$(dpkg-deb -f out/dh-kpack_[0-9]*.deb Provides)" = dh-sequence-kpack ]
	PERL5LIB=$T/root/usr/share/perl5 perl -MDebian::Debhelper::Dh_Lib -e 'sub insert_after { print "@_\n" }
		require Debian::Debhelper::Sequence::kpack' | grep -qx 'dh_strip dh_kpack'
	perl -c root/usr/bin/dh_kpack
	PKG_CONFIG_PATH=$(echo root/usr/lib/*/pkgconfig) pkg-config --exists rocm_kpack rocm_kpack_static

	mkdir src mnt
	echo '{"entries": [{"key": "a#0", "arch": "gfx942", "data": "abc"}]}' |
		/usr/bin/python3 "$BATS_TEST_DIRNAME/mkarchive.py" src/a.kpack
	root/usr/bin/kpackfs src mnt
	[ "$(cat mnt/toc/a/gfx942.hsaco)" = abc ]
	fusermount3 -u mnt
	[ "$(root/usr/bin/kpack cat src/a.kpack a gfx942)" = abc ]
	PYTHONPATH=root/usr/lib/python3/dist-packages KPACKFS_LIBRARY=$(echo root/usr/lib/*/kpackfs/lib/librocm_kpack.so.0) \
		/usr/bin/python3 -c 'import kpackfs; assert kpackfs.open("src/a.kpack")["a", "gfx942"] == b"abc"'
}
