#!/usr/bin/env bats
# Packages of split trees: installed into roots of their own by dpkg, rpm and tar, and
# loaded from there by a runtime.
# bats file_tags=plain

load packing

packaging=$BATS_TEST_DIRNAME/../../contrib/packaging
examples=$KPACK_BIN/contrib/examples
export SOURCE_DATE_EPOCH=1700000000

# zstd is quicker than what they default to
make_deb() { "$packaging/make-deb" --name rocm-blas --version 8.0.0 --compression zstd "$@" >made; }
make_rpm() { "$packaging/make-rpm" --name rocm-blas --version 8.0.0 "$@" >made; }
make_tarball() { "$packaging/make-tarball" --name rocm --version 8.0.0 "$@" >made; }

# The trees that kpack split makes of one with a fat library: split/blas_generic and so on.
split_tree() {
	mkdir -p tree/lib tree/bin
	mkfat --bundles 3 --arches gfx1030,gfx1100,gfx90a:xnack+ tree/lib/libblas.so.1
	ln -s libblas.so.1 tree/lib/libblas.so
	echo text >"tree/bin/a name"
	kpack split -q --name blas tree split
}

# A tree without code, for what does not load it.
plain_tree() { # ARCH...
	local arch
	mkdir -p split/x_generic/lib
	echo host >split/x_generic/lib/libx.so.1
	for arch; do
		mkdir -p "split/x_$arch/.kpack"
		echo "$arch" >"split/x_$arch/.kpack/x_$arch.kpack"
	done
}

needs() { # PROGRAM...
	local one
	for one; do
		command -v "$one" >/dev/null || skip "no $one"
	done
}

# dpkg with a root and a database of its own.
dpkg_in() { # ROOT ARGUMENT...
	mkdir -p "$1/db/updates" "$1/db/info"
	touch "$1/db/status"
	PATH=$PATH:/usr/sbin:/sbin dpkg --root="$1" --admindir="$1/db" --instdir="$1" --log="$1/db/log" --force-not-root --force-script-chrootless \
		--no-triggers "${@:2}"
}

# Launch the kernels of LIBRARY on a device of each AGENT: what they return, one line.
launch() { # LIBRARY AGENT...
	LD_LIBRARY_PATH=$examples EXAMPLE_DEVICES=${*:2} $python "$tools/launch.py" \
		--wrappers 3 --devices $(($# - 1)) "$1" 2>messages | sed 's/.*: //' | paste -sd ' '
}

# fails_with TEXT COMMAND...: exit 1, TEXT on stderr, and nothing left in out
fails_with() {
	local text=$1
	shift
	status=0
	"$@" 2>err || status=$?
	[ "$status" = 1 ] || { echo "exit $status"; cat err; return 1; }
	grep -qF -e "$text" err || { cat err; return 1; }
	[ ! -e out ] || [ -z "$(ls -A out)" ]
}

@test "Debian: base and one architecture load, others are absent; a second one adds up" {
	needs dpkg-deb
	split_tree
	make_deb split out
	[ "$(wc -l <made)" = 4 ]
	[ "$(ls out)" = "$(sed 's|.*/||' made)" ]
	dpkg_in root -i out/rocm-blas_8.0.0_*.deb out/rocm-blas-gfx1100_*.deb
	lib=root/opt/rocm/lib/libblas.so
	[ "$(launch $lib gfx1100)" = "0 0 0" ]
	[ "$(grep -c ', from an archive$' messages)" = 3 ]
	[ "$(launch $lib gfx1030)" = "209 209 209" ]
	grep -q 'no archive to look for ' messages
	dpkg_in root -i out/rocm-blas-gfx90a-xnack-on_*.deb
	[ "$(launch $lib gfx1100 gfx90a:xnack+)" = "0 0 0 0 0 0" ]
	# what is installed is what was packed
	(cd split/blas_generic && find . -type f -exec sha256sum {} +) >sums
	(cd root/opt/rocm && sha256sum -c --quiet) <sums
	dpkg_in root --verify
	# removing one leaves the others
	dpkg_in root -r rocm-blas-gfx1100
	[ "$(launch $lib gfx90a:xnack+)" = "0 0 0" ]
	[ "$(launch $lib gfx1100)" = "209 209 209" ]
	[ ! -e root/opt/rocm/.kpack/blas_gfx1100.kpack ]
	(cd root/opt/rocm && sha256sum -c --quiet) <sums
	dpkg_in root -r rocm-blas-gfx90a-xnack-on
	[ ! -e root/opt/rocm/.kpack ]
	(cd root/opt/rocm && sha256sum -c --quiet) <sums
}

@test "Debian: an architecture alone, or of another version, is refused" {
	needs dpkg-deb
	plain_tree gfx1100 gfx12_0
	make_deb split out
	run dpkg_in root -i out/rocm-blas-gfx1100_*.deb
	[ "$status" -ne 0 ]
	[[ $output == *"depends on rocm-blas (= 8.0.0)"* ]]
	rm -rf root
	dpkg_in root -i out/rocm-blas_8.0.0_*.deb
	"$packaging/make-deb" --name rocm-blas --version 8.0.1 split out >made
	run dpkg_in root -i out/rocm-blas-gfx1100_8.0.1_*.deb
	[ "$status" -ne 0 ]
	dpkg_in root -r rocm-blas-gfx1100
	# both together are an upgrade
	dpkg_in root -i out/rocm-blas_8.0.1_*.deb out/rocm-blas-gfx12-0_8.0.1_*.deb
	[ "$(dpkg-query --admindir=root/db -W -f '${Package} ${Version} ${db:Status-Status}\n' 'rocm*' | grep -c '8.0.1 installed')" = 2 ]
}

@test "Debian: what the packages say" {
	needs dpkg-deb
	plain_tree gfx1100 gfx90a:xnack+ gfx90a:sramecc+:xnack- gfx12_0 gfx9-4-generic gfx110X
	make_deb --maintainer 'A B <a@b.org>' --depends 'libc6 (>= 2.36), libstdc++6' --architecture amd64 \
		--description 'Basic linear algebra' --compression xz split out
	ls out >names
	diff names - <<-END
		rocm-blas-gfx1100_8.0.0_amd64.deb
		rocm-blas-gfx110x_8.0.0_amd64.deb
		rocm-blas-gfx12-0_8.0.0_amd64.deb
		rocm-blas-gfx9-4-generic_8.0.0_amd64.deb
		rocm-blas-gfx90a-sramecc-on-xnack-off_8.0.0_amd64.deb
		rocm-blas-gfx90a-xnack-on_8.0.0_amd64.deb
		rocm-blas_8.0.0_amd64.deb
	END
	# kpack detect prints the same names
	kpack detect --arch gfx1100,gfx90a:xnack+,gfx90a:sramecc+:xnack-,gfx9-4-generic --package rocm-blas |
		while read -r name; do ls "out/${name}_8.0.0_amd64.deb"; done
	ls "out/$(kpack detect --arch gfx1101 --family --package rocm-blas)_8.0.0_amd64.deb"
	[ "$(dpkg-deb -f out/rocm-blas_8.0.0_amd64.deb Depends Suggests Maintainer)" = "$(printf '%s\n' \
		'Depends: libc6 (>= 2.36), libstdc++6' 'Suggests: rocm-blas-device-code (= 8.0.0)' 'Maintainer: A B <a@b.org>')" ]
	[ "$(dpkg-deb -f out/rocm-blas-gfx1100_8.0.0_amd64.deb Depends Provides)" = "$(printf '%s\n' \
		'Depends: rocm-blas (= 8.0.0)' 'Provides: rocm-blas-device-code (= 8.0.0)')" ]
	# no file is in two packages, and owner of all is root
	for deb in out/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar tf - | grep -v '/$'
	done | sort | uniq -d >twice
	[ ! -s twice ]
	[ -z "$(dpkg-deb -c out/rocm-blas_8.0.0_amd64.deb | awk '$2 != "root/root"')" ]
}

# bats test_tags=all
@test "Debian: lintian has no errors but for where the files go" {
	needs dpkg-deb lintian
	plain_tree gfx1100
	echo "Copyright: MIT License, 2026 A B" >copyright
	make_deb --compression xz --prefix /usr/lib/rocm --copyright copyright --maintainer 'A B <a@b.org>' \
		--description 'linear algebra for GPUs' split out
	TMPDIR=$T lintian --allow-root --no-cfg --profile debian --suppress-tags unknown-file-in-debian-source out/*.deb >said 2>&1 || true
	! grep '^E: ' said || false
	grep -q . said
}

@test "Debian: modes, links, empty directories, names" {
	needs dpkg-deb
	plain_tree gfx1100
	generic=split/x_generic
	mkdir -p $generic/empty $generic/private "$generic/odd ' \$(x) *"
	chmod 700 $generic/private
	echo 1 >$generic/run
	chmod 4777 $generic/run
	chmod 0777 $generic/run
	echo 2 >$generic/secret
	chmod 600 $generic/secret
	echo 3 >"$generic/odd ' \$(x) */ü  -n"
	echo 4 >$generic/-rf
	ln $generic/run $generic/lib/hard
	ln -s ../nowhere $generic/lib/dangling
	ln -s /opt/rocm/run $generic/lib/absolute
	make_deb split out
	dpkg_in root -i out/*.deb
	(cd root/opt/rocm && find . -printf '%M %n %P -> %l\n' | sort -k 3) | grep -v '^d.* \.\?kpack' >found
	grep -qxF -e '-rwxr-xr-x 2 run -> ' found
	grep -qxF -e '-rwxr-xr-x 2 lib/hard -> ' found
	grep -qxF -e '-rw------- 1 secret -> ' found
	grep -qxF -e "-rw-r--r-- 1 odd ' \$(x) */ü  -n -> " found
	grep -qxF -e '-rw-r--r-- 1 -rf -> ' found
	grep -qxF -e 'lrwxrwxrwx 1 lib/dangling -> ../nowhere' found
	grep -qxF -e 'lrwxrwxrwx 1 lib/absolute -> /opt/rocm/run' found
	grep -q '^drwxr-xr-x 2 empty -> ' found
	grep -q '^drwxr-xr-x 2 private -> ' found
	dpkg_in root --verify
	# the trees are as they were
	[ "$(stat -c %a $generic/run $generic/private | paste -sd ' ')" = "777 700" ]
}

@test "Debian: a package with its control data, and its files at the root" {
	needs dpkg-deb
	mkdir -p deb/DEBIAN deb/usr/lib deb/etc deb/usr/share/doc/libblas1
	mkfat --bundles 3 --arches gfx1030,gfx1100 deb/usr/lib/libblas.so.1
	echo setting >deb/etc/blas.conf
	echo copying >deb/usr/share/doc/libblas1/copyright
	arch=$(dpkg --print-architecture)
	cat >deb/DEBIAN/control <<-END
		Package: libblas1
		Source: blas
		Version: 1:5.0-1
		Architecture: $arch
		Maintainer: A B <a@b.org>
		Installed-Size: 5
		Pre-Depends: dpkg
		Depends: libc6 (>= 2.36),
		 libstdc++6
		Suggests: libother
		Section: math
		Priority: optional
		Multi-Arch: same
		Homepage: https://blas.invalid
		Description: linear algebra
		 What it is.
		 .
		 And more: of it.
		X-Rocm-Gpu-Architecture: gfx1030 gfx1100
	END
	printf '#!/bin/sh\ntrue\n' >deb/DEBIAN/postinst
	chmod 755 deb/DEBIAN/postinst
	echo /etc/blas.conf >deb/DEBIAN/conffiles
	echo 'libblas 1 libblas1 (>= 5.0)' >deb/DEBIAN/shlibs
	echo 'activate-noawait ldconfig' >deb/DEBIAN/triggers
	dpkg-deb --root-owner-group -b deb old.deb >/dev/null
	dpkg-deb -x old.deb tree
	kpack split -q --name blas --archive-dir usr/lib/rocm-kpack tree split
	"$packaging/make-deb" --name libblas1 --version 1:5.0-2 --prefix / --control old.deb --compression none split out >made
	mkdir new
	for deb in out/*.deb; do
		dpkg-deb -R "$deb" "new/$(basename "${deb%%_*}")"
	done
	new=new/libblas1
	diff -r -x control -x md5sums deb/DEBIAN $new/DEBIAN
	[ "$(stat -c %a $new/DEBIAN/postinst)" = 755 ]
	(cd $new && md5sum --quiet -c DEBIAN/md5sums)
	# the same fields but for these
	fields() { sed -E '/^(Version|Installed-Size|Suggests|X-Rocm-Gpu-Architecture): /d' "$1" | sort; }
	diff <(fields deb/DEBIAN/control) <(fields $new/DEBIAN/control)
	[ "$(dpkg-deb -f out/libblas1_5*.deb Version Suggests X-Rocm-Gpu-Architecture)" = "$(printf '%s\n' 'Version: 1:5.0-2' \
		'Suggests: libother, libblas1-device-code (= 1:5.0-2)')" ]
	[ "$(dpkg-deb -f out/libblas1-gfx1100_*.deb Section Architecture Maintainer Depends X-Rocm-Gpu-Architecture Multi-Arch)" = "$(printf '%s\n' \
		'Section: math' "Architecture: $arch" 'Maintainer: A B <a@b.org>' 'Depends: libblas1 (= 1:5.0-2)' 'X-Rocm-Gpu-Architecture: gfx1100')" ]
	dpkg-deb -f out/libblas1-gfx1100_*.deb Description | grep -qx 'linear algebra, code for gfx1100'
	[ "$(cd $new && find usr etc -type f | sort | paste -sd ' ')" = \
		"etc/blas.conf usr/lib/libblas.so.1 usr/share/doc/libblas1/changelog.Debian.gz usr/share/doc/libblas1/copyright" ]
	dpkg_in "$T/root" --force-depends -i out/libblas1_5*.deb out/libblas1-gfx1100_*.deb
	[ "$(launch root/usr/lib/libblas.so.1 gfx1100)" = "0 0 0" ]
	[ "$(launch root/usr/lib/libblas.so.1 gfx1030)" = "209 209 209" ]
	# options go before the package's fields
	"$packaging/make-deb" --name libblas1 --version 5 --prefix / --control old.deb --compression none --depends libx \
		--maintainer 'C D <c@d.org>' --description 'my own' split out2 >made
	[ "$(dpkg-deb -f out2/libblas1_5_$arch.deb Depends Maintainer Description)" = "$(printf '%s\n' \
		'Depends: libx' 'Maintainer: C D <c@d.org>' 'Description: my own')" ]
	rm -rf out
	fails_with "none.deb: no such file" make_deb --control none.deb split out
	fails_with "tree/etc/blas.conf: not a Debian package" make_deb --control tree/etc/blas.conf split out
	# control data of another's package may have links: nothing is written where they lead
	mkdir control
	cp deb/DEBIAN/control victim
	ln -s "$T/victim" control/control
	tar -C control -czf control.tar.gz ./control
	tar -czf data.tar.gz -T /dev/null
	echo 2.0 >debian-binary
	ar rc hostile.deb debian-binary control.tar.gz data.tar.gz
	fails_with "control: control data of hostile.deb that is no regular file" make_deb --prefix / --control hostile.deb split out
	cmp deb/DEBIAN/control victim
	run make_rpm --prefix / split out
	[ "$status" -eq 2 ]
}

# bats test_tags=all
@test "a prefix that is a symbolic link" {
	needs dpkg-deb rpmbuild
	plain_tree gfx1100
	ln -s split link
	make_deb link out
	mkdir -p root/opt/rocm-8.0.0
	ln -s rocm-8.0.0 root/opt/rocm
	dpkg_in root -i out/*.deb
	[ -L root/opt/rocm ]
	[ "$(cat root/opt/rocm-8.0.0/.kpack/*)" = gfx1100 ]
	dpkg_in root -r rocm-blas-gfx1100
	[ -L root/opt/rocm ]
	[ "$(cat root/opt/rocm-8.0.0/lib/libx.so.1)" = host ]
	make_rpm --build split out
	rm -rf root
	mkdir -p root/opt/rocm-8.0.0
	ln -s rocm-8.0.0 root/opt/rocm
	rpm --root "$T/root" --dbpath /db --nodeps -i out/*.rpm 2>err || { cat err; false; }
	[ "$(cat root/opt/rocm-8.0.0/.kpack/*)" = gfx1100 ]
	[ -L root/opt/rocm ]
}

@test "artifacts with several prefixes" {
	needs dpkg-deb
	mkdir -p split/blas_generic/{math-libs/BLAS/stage/lib,core/hip/stage/bin} split/blas_gfx1100/math-libs/BLAS/stage/.kpack
	echo 1 >split/blas_generic/math-libs/BLAS/stage/lib/a
	echo 2 >split/blas_generic/core/hip/stage/bin/b
	ln split/blas_generic/core/hip/stage/bin/b split/blas_generic/math-libs/BLAS/stage/lib/c
	echo 3 >split/blas_gfx1100/math-libs/BLAS/stage/.kpack/blas_gfx1100.kpack
	printf 'core/hip/stage\n\n  math-libs/BLAS/stage  \nnot/there' >split/blas_generic/artifact_manifest.txt
	echo math-libs/BLAS/stage >split/blas_gfx1100/artifact_manifest.txt
	# a second artifact goes into the same packages
	mkdir -p split/dnn_lib_generic/share split/dnn_lib_gfx1100/share
	echo 4 >split/dnn_lib_generic/share/d
	echo 5 >split/dnn_lib_gfx1100/share/e
	make_deb --prefix /opt/x/ split out
	dpkg_in root -i out/*.deb
	[ "$(cd root/opt/x && find . -type f | sort | paste -sd ' ')" = \
		"./.kpack/blas_gfx1100.kpack ./bin/b ./lib/a ./lib/c ./share/d ./share/e" ]
	[ root/opt/x/bin/b -ef root/opt/x/lib/c ]
	[ "$(dpkg-query --admindir=root/db -S /opt/x/share/e /opt/x/share/d | paste -sd ' ')" = \
		"rocm-blas-gfx1100: /opt/x/share/e rocm-blas: /opt/x/share/d" ]
	rm -rf out
	# what is in no prefix, in two, outside
	mv split/blas_gfx1100/artifact_manifest.txt away
	fails_with "blas_gfx1100: it has no artifact_manifest.txt" make_deb split out
	mv away split/blas_gfx1100/artifact_manifest.txt
	echo x >split/blas_generic/core/lost
	fails_with "outside of the prefixes that" make_deb split out
	rm split/blas_generic/core/lost
	echo x >split/blas_generic/core/hip/stage/twice
	echo y >split/blas_generic/math-libs/BLAS/stage/twice
	fails_with "twice: in two prefixes of generic" make_deb split out
	for line in ../x core/../.. core/hip/stage/bin; do
		rm split/blas_generic/core/hip/stage/twice 2>/dev/null || true
		printf 'core/hip/stage\n%s\n' "$line" >split/blas_generic/artifact_manifest.txt
		fails_with "artifact_manifest.txt: " make_deb split out
	done
}

@test "what cannot be packed is refused by name, and nothing is written" {
	needs dpkg-deb
	plain_tree gfx1100
	# the tools share what looks at trees, so each is asked for a third
	local n=0 tools=(make_deb make_rpm make_tarball)
	refuses() { # TEXT [SPLIT OUT]
		fails_with "$1" "${tools[n++ % 3]}" "${2-split}" "${3-out}"
	}
	cp split/x_gfx1100/.kpack/x_gfx1100.kpack split/x_generic/lib/two
	mkdir split/x_gfx1100/lib
	cp split/x_generic/lib/two split/x_gfx1100/lib/
	refuses "lib/two: in generic and gfx1100"
	rm -r split/x_gfx1100/lib split/x_generic/lib/two
	mkdir split/x_generic/.kpack
	ln -s nowhere split/x_gfx1100/lib
	refuses "lib: a directory in one part, and none in another"
	rm split/x_gfx1100/lib
	for name in $'new\nline' $'\377'; do
		echo x >"split/x_generic/$name"
		refuses "$(printf %q "$name"): a name "
		rm "split/x_generic/$name"
	done
	mkfifo split/x_generic/fifo
	refuses "split/x_generic/fifo: only files"
	rm split/x_generic/fifo
	echo x >split/x_generic/root
	for mode in 4755 2755; do
		chmod $mode split/x_generic/root
		refuses "split/x_generic/root: set-user-ID or set-group-ID"
	done
	rm -r split/x_generic/root split/x_generic/.kpack
	mkdir split/x_GFX1100
	echo x >split/x_GFX1100/file
	refuses "GFX1100 and gfx1100 would both be the package"
	rm -r split/x_GFX1100
	for name in y_gfx1100 "x_gfx 11" x_gfx1200; do
		mkdir "split/$name"
		case $name in
		y*) refuses "split/y_gfx1100: it belongs to no directory NAME_generic" ;;
		*' '*) refuses "not the name of an architecture" ;;
		*) refuses "gfx1200: no file is in it" ;;
		esac
		rmdir "split/$name"
	done
	touch split/file
	refuses "split/file: not a directory"
	rm split/file
	refuses "OUTDIR is in SPLIT" split split/out
	mv split/x_gfx1100 away
	refuses "no architecture"
	mv away split/x_gfx1100
	mkdir empty
	refuses "nothing to pack" empty
	refuses "nowhere: no such directory" nowhere
	for name in 'quo"te' 'per%cent'; do
		echo x >"split/x_generic/$name"
		fails_with "rpm cannot take a name" make_rpm split out
		rm "split/x_generic/$name"
	done
	[ -z "$(find . -name '.make-*')" ]
}

@test "usage" {
	plain_tree gfx1100
	local n=0 tools=(make-deb make-rpm make-tarball)
	wrong() { # OPTION...
		local tool=${tools[n++ % 3]}
		# of whole packages there are trees of the root
		[[ $tool != make-deb || $* != *"--prefix /" ]] || tool=make-rpm
		status=0
		"$packaging/$tool" "$@" split out >said 2>err || status=$?
		[ "$status" = 2 ] || { echo "$tool $*: $status"; return 1; }
		[ ! -s said ]
		grep -q "^$tool: " err
	}
	for tool in "${tools[@]}"; do
		"$packaging/$tool" --help | grep -q "^$tool --name NAME --version VERSION"
	done
	for options in "--name X --version 1" "--name ab --version x" "--name ab --version 1_2" "--name -b --version 1" \
		"--name ab" "--version 1" "--name ab --version 1 --prefix a" \
		"--name ab --version 1 --prefix /a/../b" "--name ab --version 1 --nothing" "--name ab --version 1 x" \
		"--name ab --version 1 --compression lz" "--name ab --version 1 --prefix /"; do
		# shellcheck disable=SC2086 # words are meant
		wrong $options
	done
	for text in $'a\nPriority: x' '' '%(id)'; do
		wrong --name ab --version 1 --description "$text"
	done
	[ ! -e out ]
}

@test "the same trees give the same packages" {
	needs dpkg-deb
	plain_tree gfx1100
	ln split/x_generic/lib/libx.so.1 split/x_generic/lib/libx.so.1.0
	for try in 1 2; do
		make_deb split out$try
		make_rpm split out$try
		make_tarball --monolithic split out$try
		# copies, later, elsewhere, by somebody else's umask
		cp -a split again
		rm -rf split
		mv again split
		find split -exec touch -d "2020-01-0$try" {} +
		umask 077
	done
	[ "$(find out1 -type f | wc -l)" = 5 ]
	diff -r out1 out2
	# by an ordinary user, too
	if [ "$(id -u)" = 0 ]; then
		cp -r "$packaging" scripts
		chmod -R go+rX . split scripts
		install -d -o 65534 -m 755 out4
		as_nobody scripts/make-deb --name rocm-blas --version 8.0.0 --compression zstd split out4
		for deb in out4/*.deb; do cmp "$deb" "out1/${deb#*/}"; done
	fi
	# without SOURCE_DATE_EPOCH times are the newest file's
	unset SOURCE_DATE_EPOCH
	make_tarball split out3
	[ "$(tar --utc -tvf out3/rocm-8.0.0-linux-generic.tar.gz | awk '{ print $4 }' | sort -u)" = "$(date -u -r split/x_generic/lib/libx.so.1 +%F)" ]
}

@test "tarballs: one, and one for each architecture, unpacked over each other" {
	split_tree
	make_tarball --compression zstd split out
	[ "$(ls out | paste -sd ' ')" = "rocm-8.0.0-linux-generic.tar.zst rocm-8.0.0-linux-gfx1030.tar.zst rocm-8.0.0-linux-gfx1100.tar.zst rocm-8.0.0-linux-gfx90a-xnack-on.tar.zst" ]
	mkdir a b
	tar -C a -xf out/rocm-8.0.0-linux-generic.tar.zst
	[ "$(launch a/rocm-8.0.0/lib/libblas.so.1 gfx1030)" = "209 209 209" ]
	tar -C a -xf out/rocm-8.0.0-linux-gfx1030.tar.zst
	[ "$(launch a/rocm-8.0.0/lib/libblas.so.1 gfx1030)" = "0 0 0" ]
	[ "$(launch a/rocm-8.0.0/lib/libblas.so.1 gfx1100)" = "209 209 209" ]
	make_tarball --monolithic split out
	tar -C b -xf out/rocm-8.0.0-linux.tar.gz
	[ "$(launch b/rocm-8.0.0/lib/libblas.so.1 gfx1030 gfx1100 gfx90a:xnack+)" = "0 0 0 0 0 0 0 0 0" ]
	tar -C a -xf out/rocm-8.0.0-linux-gfx1100.tar.zst
	tar -C a -xf out/rocm-8.0.0-linux-gfx90a-xnack-on.tar.zst
	diff -r a b
}

# bats test_tags=all
@test "rpm: one spec, a subpackage for each architecture" {
	needs rpmbuild
	split_tree
	make_rpm --license MIT --depends 'glibc >= 2.3' split out
	[ "$(ls out | paste -sd ' ')" = "rocm-blas-8.0.0.tar rocm-blas.spec" ]
	[ "$(rpmspec -q --qf '%{name}-%{version}-%{release}\n' out/rocm-blas.spec | sort | paste -sd ' ')" = \
		"rocm-blas-8.0.0-1 rocm-blas-gfx1030-8.0.0-1 rocm-blas-gfx1100-8.0.0-1 rocm-blas-gfx90a-xnack-on-8.0.0-1" ]
	rpmbuild -bb --define "_topdir $T/top" --define "_sourcedir $T/out" out/rocm-blas.spec >log 2>&1 || { tail log; false; }
	rpms=$T/top/RPMS/$(rpm --eval '%{_arch}')
	[ "$(ls "$rpms" | wc -l)" = 4 ]
	rpm -qp --requires "$rpms"/rocm-blas-gfx1100-8*.rpm | grep -q '^rocm-blas(.*) = 8.0.0-1$'
	rpm -qp --provides "$rpms"/rocm-blas-gfx1100-8*.rpm | grep -qx 'rocm-blas-device-code = 8.0.0-1'
	rpm -qp --suggests "$rpms"/rocm-blas-8*.rpm | grep -qx 'rocm-blas-device-code = 8.0.0-1'
	rpm -qp --requires "$rpms"/rocm-blas-8*.rpm | grep -qx 'glibc >= 2.3'
	for r in "$rpms"/*.rpm; do
		rpm -qlvp "$r" | grep -v '^d' | sed 's|.* /|/|'
	done | sort | uniq -d >twice
	[ ! -s twice ]
	# an architecture alone is refused
	run rpm --root "$T/root" --dbpath /db -i "$rpms"/rocm-blas-gfx1100-8*.rpm
	[ "$status" -ne 0 ]
	[[ $output == *"rocm-blas(x86-64) = 8.0.0-1 is needed by rocm-blas-gfx1100"* ]]
	rpm --root "$T/root" --dbpath /db --nodeps -i "$rpms"/rocm-blas-8*.rpm "$rpms"/rocm-blas-gfx1100-8*.rpm
	rpm --root "$T/root" --dbpath /db -V --nodeps rocm-blas rocm-blas-gfx1100
	[ "$(launch root/opt/rocm/lib/libblas.so gfx1100)" = "0 0 0" ]
	[ "$(launch root/opt/rocm/lib/libblas.so gfx1030)" = "209 209 209" ]
	# the converted library is as it was: nothing was stripped
	cmp split/blas_generic/lib/libblas.so.1 root/opt/rocm/lib/libblas.so.1
	[ "$(rpm --root "$T/root" --dbpath /db -qf "/opt/rocm/.kpack/blas_gfx1100.kpack")" = "rocm-blas-gfx1100-8.0.0-1.$(rpm --eval '%{_arch}')" ]
	rpm --root "$T/root" --dbpath /db -e rocm-blas-gfx1100
	[ ! -e root/opt/rocm/.kpack/blas_gfx1100.kpack ]
	cmp split/blas_generic/lib/libblas.so.1 root/opt/rocm/lib/libblas.so.1
}

# bats test_tags=all
@test "rpm: names, modes and links; --build; a release and an epoch" {
	needs rpmbuild
	plain_tree gfx1100
	generic=split/x_generic
	mkdir -p $generic/empty
	for name in '[x]*?{a,b}' "it's" 'two  blanks' '~tilde' '$HOME' '#hash' ' before' 'ü'; do
		echo x >"$generic/$name"
	done
	chmod 700 $generic/it*
	ln $generic/it\'s $generic/lib/hard
	"$packaging/make-rpm" --name rocm-blas --version 1:8.0.0-3.el9 --build split out >made
	[ "$(wc -l <made)" = 4 ]
	[ "$(rpm -qp --qf '%{epochnum}:%{version}-%{release} ' out/*.rpm)" = "1:8.0.0-3.el9 1:8.0.0-3.el9 " ]
	rpm -qp --requires out/rocm-blas-gfx1100*.rpm | grep -q ' = 1:8.0.0-3.el9$'
	rpm --root "$T/root" --dbpath /db --nodeps -i out/*.rpm
	(cd $generic && find . -mindepth 1 -printf '%y %n %P\n' | sort) >want
	(cd root/opt/rocm && find . -mindepth 1 -not -path './.kpack*' -printf '%y %n %P\n' | sort) | diff want -
	[ "$(stat -c %A root/opt/rocm/it*)" = "-rwx------" ]
}

@test "stopped or killed: what was there stays, and the next run removes what is left" {
	needs dpkg-deb
	plain_tree gfx1100
	mkdir tools
	make_deb split out
	sha256sum out/* >sums
	# the second of two fails; a signal; nothing could be removed any more
	for how in 'case "$*" in *gfx*) exit 3 ;; esac; exec /usr/bin/dpkg-deb "$@"' 'kill -TERM $PPID' 'kill -KILL $PPID'; do
		printf '#!/bin/sh\n%s\n' "$how" >tools/dpkg-deb
		chmod +x tools/dpkg-deb
		! PATH=$T/tools:$PATH make_deb split out || false
		sha256sum -c --quiet sums
		[ "$(ls out | wc -l)" = 2 ]
		[[ $how == *KILL* ]] || [ -z "$(ls -A out | grep '^\.')" ]
	done
	[ "$(ls -A out | grep '^\.' | sed 's/[^.]*$/X/')" = .make-deb.X ]
	# neither what is locked nor what was not made here
	mkdir -p out/.make-deb.locked/stage out/.make-deb.others
	exec 8<out/.make-deb.locked
	flock 8
	make_tarball split out
	[ "$(ls -A out | grep '^\.' | paste -sd ' ')" = ".make-deb.locked .make-deb.others" ]
	exec 8<&-
	make_deb split out
	[ "$(ls -A out | grep '^\.')" = .make-deb.others ]
}

# bats test_tags=all
@test "nobody reads what was made, no TMPDIR, and names with blanks" {
	needs dpkg-deb
	plain_tree gfx1100 gfx942
	status=0
	"$packaging/make-tarball" --name ab --version 1 split out >/dev/full 2>err || status=$?
	[ "$status" = 1 ]
	[ "$(ls -A out | wc -l)" = 3 ]
	TMPDIR=$T/none make_deb split $'a b\n*&'
	[ "$(ls -A $'a b\n*&' | wc -l)" = 3 ]
	diff <(printf '%s\n' "$T"/a\ b?\*\&/*.deb) made
	needs rpmbuild
	rm -rf out
	make_rpm --build split 'o o'
	[ "$(ls 'o o' | wc -l)" = 5 ]
}

@test "a full disk: nothing is left, and what was there stays" {
	needs dpkg-deb
	as_root
	plain_tree gfx1100
	head -c 300000 /dev/urandom >split/x_gfx1100/.kpack/big.kpack
	mkdir small
	mount -t tmpfs -o size=256k none small
	echo mine >small/file
	for make in make_deb make_rpm make_tarball; do
		! $make split small/out 2>err || { umount small; false; }
		grep -q 'No space left' err || { umount small; cat err; false; }
		[ "$(find small -mindepth 1)" = small/file ] || { find small; umount small; false; }
	done
	umount small
}
