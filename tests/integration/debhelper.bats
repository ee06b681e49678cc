#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# dh_kpack: a source package is built with and without it, looked at by lintian, and
# installed into a root of its own, from where a runtime loads the code.

bats_require_minimum_version 1.5.0

# bats file_tags=plain, all

load packing

examples=$KPACK_BIN/contrib/examples
export SOURCE_DATE_EPOCH=1700000000

needs_debhelper() {
	command -v dpkg-buildpackage dh lintian >/dev/null || skip "no dpkg-dev, debhelper and lintian"
	mkdir -p bin perl/Debian/Debhelper/Sequence
	ln -s "$KPACK_BIN/kpack" "$KPACK_SRC/contrib/debhelper/dh_kpack" bin/
	ln -s "$KPACK_SRC/contrib/debhelper/kpack.pm" perl/Debian/Debhelper/Sequence/
	export PERL5LIB=$T/perl PATH=$T/bin:$PATH
	unset CI CC CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MFLAGS MAKELEVEL MODE O PREFIX LIBDIR DESTDIR DEB_BUILD_OPTIONS
}

# What the kernels of LIBRARY return on a device of AGENT.
launch() { # LIBRARY AGENT
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=$2 $python "$tools/launch.py" --wrappers 16 "$1" 2>messages |
		sed 's/.*: //' | sort -u
}

paragraph() { # ARCH...
	local arch name
	for arch; do
		name=${arch//[:_]/-}
		cat <<-END

			Package: libtoy1-${name/+/-on}
			Architecture: any
			Section: libs
			Depends: \${kpack:Depends}, \${misc:Depends}
			Provides: \${kpack:Provides}
			Enhances: \${kpack:Enhances}
			XB-X-Rocm-Gpu-Architecture: $arch
			Description: toys for GPUs - code for $arch
			 A library that exists for tests of packages.
			 .
			 This package has its code for GPUs of architecture $arch.
		END
	done
}

# A source package in toy-1.0 whose library has code for gfx1030, gfx1100 and gfx90a:xnack+, and the
# files of a kernel database for two of them; packages for ARCH...
source_package() { # ARCH...
	local database=toy-1.0/database
	mkdir -p toy-1.0/debian/source $database
	printf '%s\n' '3.0 (native)' >toy-1.0/debian/source/format
	# several bundles: without DWARF in them the library is smaller by some pages
	py "$with_id" toy-1.0/code.hipfb toy-1.0/size.h <<-'END'
	import sys, mkfat
	objects = [("gfx1100", open(sys.argv[1], "rb").read())]
	objects += [(arch, mkfat.code_object(arch, 5000, arch)) for arch in ("gfx1030", "gfx90a:xnack+")]
	bundle = mkfat.bundle(objects, 0, 64)
	bundle += bytes(-len(bundle) % 64)
	open(sys.argv[2], "wb").write(16 * bundle)
	open(sys.argv[3], "w").write("#define SIZE %d\n" % len(bundle))
	END
	cp "$with_id" $database/Kernels.so-000-gfx1100.hsaco
	for arch in gfx1100 gfx1030; do
		yes "$arch" | head -c 5000 >$database/TensileLibrary_lazy_$arch.dat
	done
	echo all >$database/TensileManifest.txt
	cat >toy-1.0/toy.c <<-'END'
	#include <stdio.h>
	#include <string.h>
	#include "size.h"

	__asm__(".section .hip_fatbin,\"a\",@progbits\n.balign 4096\nfatbin:\n.incbin \"code.hipfb\"\n.previous");
	extern const char fatbin[] __attribute__((visibility("hidden")));
	struct wrapper {
		unsigned magic, version;
		const void *data;
		void *unused;
	};
	__attribute__((section(".hipFatBinSegment"))) struct wrapper wrappers[] = {
	#define W(N) {0x48495046, 1, fatbin + N * SIZE, 0}
		W(0), W(1), W(2), W(3), W(4), W(5), W(6), W(7),
		W(8), W(9), W(10), W(11), W(12), W(13), W(14), W(15),
	};
	void toy_name(char *to, const char *from)
	{
		char text[100];
		snprintf(text, sizeof(text), "toy %s", from);
		strcpy(to, text);
	}
	END
	cat >toy-1.0/debian/changelog <<-'END'
	toy (1.0) unstable; urgency=medium

	  * The first version.

	 -- Nobody <nobody@packages.invalid>  Sun, 22 Nov 2026 12:00:00 +0000
	END
	sed 's/^Upstream-Name:.*/Upstream-Name: toy/; s/kpackfs/toy/' "$KPACK_SRC/contrib/debian/copyright" >toy-1.0/debian/copyright
	{
		cat <<-'END'
		Source: toy
		Section: libs
		Priority: optional
		Maintainer: Nobody <nobody@packages.invalid>
		Build-Depends: debhelper-compat (= 13)
		Standards-Version: 4.6.2
		Rules-Requires-Root: no

		Package: libtoy1
		Architecture: any
		Depends: ${misc:Depends}, ${shlibs:Depends}
		Suggests: ${kpack:Suggests}
		Description: toys for GPUs - library
		 A library that exists for tests of packages.
		 .
		 Packages named after it have its code for GPUs.
		END
		paragraph "$@"
	} >toy-1.0/debian/control
	cat >toy-1.0/debian/rules <<-'END'
	#!/usr/bin/make -f
	.RECIPEPREFIX = >
	export DEB_BUILD_MAINT_OPTIONS = hardening=+all
	include /usr/share/dpkg/architecture.mk
	include /usr/share/dpkg/buildflags.mk
	lib = debian/libtoy1/usr/lib/$(DEB_HOST_MULTIARCH)

	%:
	>dh $@ $(SEQUENCES)

	override_dh_auto_build:
	>$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared $(LDFLAGS) -Wl,-soname,libtoy.so.1 -o libtoy.so.1 toy.c

	override_dh_auto_install:
	>install -D -m 0644 libtoy.so.1 $(lib)/libtoy.so.1.0
	>ln -s libtoy.so.1.0 $(lib)/libtoy.so.1
	>install -d $(lib)/rocblas/library
	>install -m 0644 database/* $(lib)/rocblas/library

	# no tools of binutils know code objects
	override_dh_dwz override_dh_strip: override_%:
	>$* -X.hsaco

	override_dh_auto_clean:
	>rm -f libtoy.so.1
	END
	chmod +x toy-1.0/debian/rules
	printf '%s\n' 'libtoy.so.1 libtoy1 #MINVER#' ' toy_name@Base 1.0' ' wrappers@Base 1.0' >toy-1.0/debian/libtoy1.symbols
	: >toy-1.0/debian/libtoy1.kpack
}

build() { # OUT SEQUENCES
	mkdir "$1"
	(cd toy-1.0 && SEQUENCES=$2 dpkg-buildpackage -us -uc -b -d >../log 2>&1) || { tail -n 40 log; return 1; }
	mv toy_* ./*.deb "$1"
}

@test "a base package, one for each GPU, and the debugging information of their code" {
	as_root
	needs_debhelper
	source_package gfx1030 gfx1100 gfx90a:xnack+
	build plain ''
	build out '--with kpack'
	TMPDIR=$T run lintian --allow-root --no-cfg --profile debian --fail-on error,warning out/*.changes
	# dh_gencontrol takes the field over, and such a package can have no overrides
	! grep -v '^W: libtoy1-gfx1100-dbgsym: unknown-field X-Rocm-Gpu-Architecture$' <<<"$output" | grep . || false
	for one in plain out; do
		for deb in $one/*.deb; do
			dpkg-deb -R "$deb" "$one-$(basename "${deb%%_*}")"
		done
	done
	# what others link with is as without dh_kpack
	for f in symbols shlibs triggers; do
		diff {plain,out}-libtoy1/DEBIAN/$f
	done
	[ "$(grep ^Depends: plain-libtoy1/DEBIAN/control)" = "$(grep ^Depends: out-libtoy1/DEBIAN/control)" ]
	grep -qx 'Suggests: libtoy1-device-code (= 1.0)' out-libtoy1/DEBIAN/control
	diff -r {plain,out}-libtoy1/usr/share
	lib=usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
	[ "$(cd out-libtoy1/$lib && find . -type f | sort | paste -sd ' ')" = "./libtoy.so.1.0 ./rocblas/library/TensileManifest.txt" ]
	# a package for each GPU, with its documents as without
	for arch in gfx1030 gfx1100 gfx90a:xnack+; do
		one=libtoy1-$(kpack detect --arch $arch --package libtoy1 | sed 's/libtoy1-//')
		[ "$(dpkg-deb -f out/${one}_*.deb Depends Provides Enhances X-Rocm-Gpu-Architecture)" = "$(printf '%s\n' \
			'Depends: libtoy1 (= 1.0)' 'Provides: libtoy1-device-code (= 1.0)' 'Enhances: libtoy1' "X-Rocm-Gpu-Architecture: $arch")" ]
		[ -s "out-$one/$lib/rocm-kpack/libtoy1_$arch.kpack" ]
		diff -r {plain,out}-$one/usr/share/doc
		(cd out-$one && md5sum --quiet -c DEBIAN/md5sums)
	done
	cmp {plain-libtoy1,out-libtoy1-gfx1030}/$lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat
	[ -z "$(find out-* -newermt @$SOURCE_DATE_EPOCH ! -path '*/DEBIAN*' -type f -name '*.kpack')" ]
	# debugging information: of the host's code, and of the GPU's
	(cd plain-libtoy1-dbgsym/usr/lib && find . -type f) >want
	(cd out-libtoy1-dbgsym/usr/lib && find . -type f) | diff want -
	dbgsym=out-libtoy1-gfx1100-dbgsym
	[ "$(cd $dbgsym/usr/lib && find . -type f)" = ./debug/.build-id/$build_id.debug ]
	[ "$(sha256sum <$dbgsym/usr/lib/debug/.build-id/*/*.debug)" = "$with_id_debug  -" ]
	grep -qx "Build-Ids: ${build_id/\//}" $dbgsym/DEBIAN/control
	grep -qx 'Depends: libtoy1-gfx1100 (= 1.0)' $dbgsym/DEBIAN/control
	[ ! -e out-libtoy1-gfx1030-dbgsym ]
	[ "$(sha256sum <out-libtoy1-gfx1100/$lib/rocblas/library/Kernels.so-000-gfx1100.hsaco)" = "$with_id_stripped  -" ]

	# installed, the same objects are loaded
	mkdir -p root/db/updates root/db/info
	: >root/db/status
	dpkg --root="$T/root" --admindir="$T/root/db" --instdir="$T/root" --log="$T/root/log" --force-script-chrootless \
		--force-depends --no-triggers -i out/libtoy1_*.deb out/libtoy1-gfx{1100,90a-xnack-on}_*.deb >log 2>&1 || { cat log; return 1; }
	readkpack sums root/$lib/rocm-kpack/libtoy1_gfx1100.kpack | cut -d ' ' -f 1 | sort -u >got
	[ "$(cat got)" = $with_id_stripped ]
	[ "$(launch root/$lib/libtoy.so.1 gfx1100)" = 0 ]
	[ "$(launch root/$lib/libtoy.so.1 gfx90a:xnack+)" = 0 ]
	[ "$(launch root/$lib/libtoy.so.1 gfx1030)" = 209 ]
}

# fails_with TEXT...: dh_kpack fails with them, and leaves the package as it is
fails_with() {
	local text
	rm -rf before
	cp -a debian/libtoy1 before
	run dh_kpack
	[ "$status" -ne 0 ]
	for text; do
		[[ $output == *"$text"* ]] || { echo "$output"; return 1; }
	done
	diff -r before debian/libtoy1
}

@test "what no package is for is an error, and settings are followed" {
	needs_debhelper
	source_package gfx1030 gfx1100
	cd toy-1.0
	mkdir -p debian/libtoy1/usr/lib
	mkfat --arches gfx1030,gfx1100,gfx90a:xnack+,gfx11-generic debian/libtoy1/usr/lib/libtoy.so.1
	cp -a debian/libtoy1 "$T/original"
	fails_with 'libtoy1 has code for gfx90a:xnack+, which no package is for' \
		'Package: libtoy1-gfx90a-xnack-on' 'XB-X-Rocm-Gpu-Architecture: gfx90a:xnack+'
	echo 'archive-dir' >debian/libtoy1.kpack
	fails_with "debian/libtoy1.kpack: not 'archive-dir DIR'"
	echo 'package gfx90a libtoy1-all' >debian/libtoy1.kpack
	fails_with 'debian/control has no package libtoy1-all'
	paragraph gfx942 >>debian/control
	echo 'package gfx90a libtoy1' >debian/libtoy1.kpack
	fails_with 'libtoy1 has no code for package libtoy1-gfx942'
	sed -i 's/gfx942/gfx90a/' debian/control
	printf '%s\n' '# settings' 'archive-dir /opt/k' 'group toys' 'package gfx90a libtoy1-gfx1100' >debian/libtoy1.kpack
	sed -i '/^Package: libtoy1-gfx90a/,$d' debian/control
	run -0 dh_kpack -- --level 1
	[[ $output == *"the field XB-X-Rocm-Gpu-Architecture of libtoy1-gfx1100 does not list gfx90a:xnack+"* ]]
	[ "$(find debian -name '*.kpack' -type f -path '*/opt/*' | sort)" = "$(printf 'debian/libtoy1%s.kpack\n' \
		-gfx1030/opt/k/toys_gfx1030 -gfx1100/opt/k/toys_gfx1100 -gfx1100/opt/k/toys_gfx90a:xnack+ /opt/k/toys_gfx11-generic)" ]
	kpack mark show debian/libtoy1/usr/lib/libtoy.so.1 | grep -qF ' ../../opt/k/toys_@GFXARCH@.kpack'
	fails_with 'has been split already'
	# every object is in one of the archives
	for f in debian/libtoy1*/opt/k/*.kpack; do
		readkpack sums "$f"
	done | cut -d ' ' -f 1 | sort >have
	$python "$tools/fatparse.py" sums "$T/original/usr/lib/libtoy.so.1" x | cut -d ' ' -f 1 | sort | diff - have
	# a family
	rm -rf debian/libtoy1*/
	cp -a "$T/original" debian/libtoy1
	images=usr/lib/aotriton.images/amd-gfx120x/flash
	mkdir -p debian/libtoy1/$images
	echo 1 >debian/libtoy1/$images/__signature__
	install -D -m 0644 "$with_id" debian/libtoy1/usr/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	run ! dh_kpack
	[[ $output == *'libtoy1 has code for gfx12_0, which no package is for'* ]]
	echo 'package gfx12_0 libtoy1-gfx1100' >>debian/libtoy1.kpack
	dh_kpack
	[ "$(find debian -name __signature__)" = debian/libtoy1-gfx1100/$images/__signature__ ]
	[ "$(find debian -name 'Kernels*' -exec sha256sum {} + | cut -d ' ' -f 1)" = $with_id_stripped ]
	find debian -name '*.debug' | grep -q '^debian/.debhelper/libtoy1-gfx1100/'
	# debugging information goes to -dbgsym packages, or nowhere
	rm -rf debian/libtoy1*/
	cp -a "$T/original" debian/libtoy1
	sed -i '/gfx12_0/d' debian/libtoy1.kpack
	install -D -m 0644 "$with_id" debian/libtoy1/usr/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco
	cp -a debian/libtoy1 "$T/whole"
	for option in --automatic-dbgsym --no-automatic-dbgsym; do
		rm -rf debian/libtoy1*/ debian/.debhelper
		cp -a "$T/whole" debian/libtoy1
		dh_kpack $option
		[ "$(find debian -name 'Kernels*' -exec sha256sum {} + | cut -d ' ' -f 1 | sort -u)" = $with_id_stripped ]
		find debian -name '*.debug' >debug$option
	done
	[ "$(cat debug--automatic-dbgsym)" = \
		"debian/.debhelper/libtoy1-gfx1100/dbgsym-root/usr/lib/debug/.build-id/$build_id.debug" ]
	[ ! -s debug--no-automatic-dbgsym ]
	# a package without settings is left alone
	rm -rf debian/libtoy1*
	cp -a "$T/original" debian/libtoy1
	dh_kpack
	diff -r "$T/original" debian/libtoy1
}
