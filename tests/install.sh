#!/bin/sh
# Install into an empty root, try the installed files, uninstall, and check that nothing
# is left.  Prints TAP.  The root has a file of another owner, which must survive.
#
# Programs are built with the installed library as README.md and rocm_kpack(3) say,
# directly from the root: no package was made of it, no LD_LIBRARY_PATH is set, unless a
# test does.
# With CHECK_ALL=0, as in make check, other places and ways are left out.
# shellcheck disable=SC2317 # t calls them
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL MODE O PREFIX LIBDIR DESTDIR FORCE LD_LIBRARY_PATH \
	PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR CMAKE_PREFIX_PATH
# "make install" compiles nothing
[ -e build/release/kpack ] || make --no-print-directory >/dev/null 2>&1
root=$(mktemp -d)
trap 'rm -rf "$root" "$root.out"' EXIT
usr=$root/d/usr

all() { [ "${CHECK_ALL:-1}" = 1 ]; }

n=0
failed=0
t() # DESCRIPTION COMMAND...
{
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$root.out" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		tail -n 30 "$root.out" | sed 's/^/# /'
		failed=1
	fi
	rm -f "$root.out"
}
in_root() { make --no-print-directory "$@" "DESTDIR=$root/d" PREFIX=/usr; }
resolves() { [ "$(readlink -f "$usr/$1")" = "$usr/$2" ]; }
holds() { [ -s "$usr/$1" ]; }
only_theirs()
{
	left=$(find "$root/d" ! -type d ! -path '*/bin/theirs')
	echo "$left"
	[ -z "$left" ] && [ -e "$usr/bin/theirs" ]
}
gone() { [ ! -e "$1" ] || { find "$1"; return 1; }; }
none() { [ -z "$*" ] || { echo "$*"; return 1; }; }

# ---- programs that use the library ----

work=$root/work
mkdir -p "$work/lib"
printf 'code for gfx942' >"$work/want"
/usr/bin/python3 tests/integration/mkarchive.py "$work/x.kpack" <<-'END' || exit 1
	{"arches": ["gfx942", "gfx90a:xnack+"], "entries": [
		{"key": "lib/x.so#1", "arch": "gfx942", "data": "code for gfx942"},
		{"key": "lib/x.so#1", "arch": "gfx90a:xnack+", "data": "code for gfx90a:xnack+"}]}
END
right() { "$1" "$work/x.kpack" lib/x.so#1 gfx942 "$work/want"; }

module=rocm_kpack
kpack_config() { PKG_CONFIG_PATH=$pc pkg-config "$@" "$module"; }
build_c() # OUT FILE OPTION...; with the flags of pkg-config
{
	out=$1
	source=$2
	shift 2
	# shellcheck disable=SC2046,SC2086 # lists of options
	cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "$@" -o "$out" "$source" $(kpack_config $options)
}
build_c_rpath() # as build_c; the program finds the library
{
	build_c "$@" "-Wl,-rpath,$(kpack_config --variable=libdir)"
}
build_cxx()
{
	cp "$2" "$1.cpp"
	# shellcheck disable=SC2046,SC2086
	c++ -std=c++17 -Wall -Wextra -Werror -o "$1" "$1.cpp" $(kpack_config $options) \
		"-Wl,-rpath,$(kpack_config --variable=libdir)"
}
pkg_config_builds() # DIRECTORY OF rocm_kpack.pc
{
	pc=$1
	options="--cflags --libs"
	build_c_rpath "$work/c" tests/link/uses.c && right "$work/c"
}
pkg_config_builds_cxx()
{
	pkg_config_builds "$1" && build_cxx "$work/cxx" tests/link/uses.c && right "$work/cxx"
}
pkg_config_sets_no_path() # the program has no path, and its user says where the library is
{
	pc=$usr/lib/pkgconfig
	options="--cflags --libs"
	build_c "$work/pathless" tests/link/uses.c && ! right "$work/pathless" &&
		LD_LIBRARY_PATH=$own/lib right "$work/pathless" &&
		! readelf -d "$work/pathless" | grep -E 'RPATH|RUNPATH' && ! grep -F "$root" "$work/pathless"
}
needs_only() # PROGRAM LIBRARY...
{
	program=$1
	shift
	printf '%s\n' "$@" libc.so.6 | sort >"$work/may"
	readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | diff "$work/may" -
}
static_needs_no_more() # than librocm_kpack.so, even if the linker drops nothing
{
	pc=$usr/lib/pkgconfig
	options="--cflags --libs"
	module=rocm_kpack_static build_c "$work/c-static" tests/link/uses.c -Wl,--no-as-needed &&
		right "$work/c-static" && needs_only "$work/c-static" libxxhash.so.0 libzstd.so.1 &&
		needs_only "$own/lib/librocm_kpack.so.0" libxxhash.so.0 libzstd.so.1
}
static_static() # the static module, too, knows what -static needs
{
	pc=$usr/lib/pkgconfig
	options="--static --cflags --libs"
	module=rocm_kpack_static build_c "$work/static" tests/link/uses.c -static && right "$work/static" &&
		! readelf -d "$work/static" | grep NEEDED
}
versions()
{
	pc=$usr/lib/pkgconfig
	version=$(sed -n 's/^VERSION := \([0-9.]*\).*/\1/p' Makefile)
	api=$(sed -n 's/^API_VERSION := \([0-9.]*\).*/\1/p' Makefile)
	for module in rocm_kpack rocm_kpack_static; do
		[ "$(kpack_config --modversion)" = "$version" ] &&
			[ "$(kpack_config --variable=api_version)" = "$api" ] || return 1
	done
	module=rocm_kpack
}
pkg_config_builds_static()
{
	pc=$1
	options="--static --cflags --libs"
	build_c "$work/static" tests/link/uses.c -static && right "$work/static" &&
		! readelf -d "$work/static" | grep NEEDED
}
cmake_builds() # PREFIX OPTION...
{
	prefix=$1
	shift
	# what it knows of the compilers stays
	cmake -S tests/link -B "$work/cmake" -Urocm-kpack_DIR -Urocm_kpack_DIR -UPACKAGE -DSTATIC=OFF -DCMAKE_PREFIX_PATH="$prefix" "$@" &&
		cmake --build "$work/cmake" &&
		right "$work/cmake/uses-c" && right "$work/cmake/uses-cxx"
}
cmake_finds_none()
{
	! cmake -S tests/link -B "$work/cmake" -DCMAKE_PREFIX_PATH="$1" >"$work/none.out" 2>&1 &&
		grep 'rocm-kpack' "$work/none.out"
}
# Call a library that contains ours from a process that loaded AMD's before
beside_amd() # LIBRARY
{
	! nm -D --defined-only "$1" | grep kpack &&
		! readelf -d "$1" | grep 'NEEDED.*kpack' &&
		/usr/bin/python3 - "$usr/lib/librocm_kpack.so.0" "$1" \
			"$work/x.kpack" lib/x.so#1 gfx942 "$work/want" <<-'END'
		import ctypes, sys
		ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
		arguments = [a.encode() for a in sys.argv[2:]]
		sys.exit(ctypes.CDLL(sys.argv[2]).main(5, (ctypes.c_char_p * 5)(*arguments)))
	END
}
pkg_config_beside_amd()
{
	pc=$usr/lib/pkgconfig
	options="--cflags --libs"
	module=rocm_kpack_static build_c "$work/contains.so" tests/link/uses.c -shared -fPIC &&
		beside_amd "$work/contains.so"
}
no_cmake_version() # VERSION: is refused
{
	mkdir -p "$work/version"
	printf 'cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nfind_package(rocm-kpack %s)\n%s' "$1" \
		'if(rocm-kpack_FOUND)
		message(FATAL_ERROR "found")
		endif()' >"$work/version/CMakeLists.txt"
	cmake -S "$work/version" -B "$work/version/b" -DCMAKE_PREFIX_PATH="$usr/lib/kpackfs"
}
uses() # PROGRAM LIBRARY: PROGRAM loads this file
{
	ldd "$1" | awk '/librocm_kpack/ { print $3 }' | xargs realpath | tee /dev/stderr | grep -qxF "$2"
}
soname() { readelf -d "$1" | grep -F 'SONAME' | grep -F '[librocm_kpack.so.0]'; }

# ---- install ----

mkdir -p "$usr/bin"
echo theirs >"$usr/bin/theirs"
t "make install" in_root install
t "kpack runs" "$usr/bin/kpack" --version
t "kpackfs runs" "$usr/bin/kpackfs" --version
links_lead() # LINK FILE...
{
	while [ $# -gt 0 ]; do
		resolves "$1" "$2" || { echo "$1"; return 1; }
		shift 2
	done
}
bash=share/bash-completion/completions
t "links lead to the programs" links_lead bin/kpack-pack bin/kpack bin/kpack-mark bin/kpack \
	sbin/mount.kpackfs bin/kpackfs libexec/kpackfs/libkpack_hip.so lib/kpackfs/libkpack_hip.so $bash/kpack-mark $bash/kpack \
	lib/kpackfs/lib/librocm_kpack.so lib/kpackfs/lib/librocm_kpack.so.0
hold()
{
	for f; do
		holds "$f" || { echo "$f"; return 1; }
	done
}
t "pages are there" hold share/man/man1/kpackfs.1 share/man/man1/kpack.1 share/man/man1/kpack-pack.1 share/man/man1/kpack-mark.1 \
	share/man/man1/kpack-offload-bundler.1 share/man/man1/kpack-offload-packager.1 share/man/man7/libkpack_hip.7 \
	share/man/man8/mount.kpackfs.8 share/man/man5/kpack-format.5 share/man/man3/rocm_kpack.3 share/man/man3/kpackx_read_range.3
t "completions are there" hold $bash/kpack share/zsh/site-functions/_kpack share/fish/vendor_completions.d/kpack.fish
t "units, hooks and modules are there" hold share/kpackfs/systemd/mnt-kernels.mount share/kpackfs/systemd/mnt-kernels.automount share/kpackfs/dpkg/apt.conf share/kpackfs/dpkg/dpkg.cfg \
	lib/systemd/system/kpackfs@.service lib/systemd/user/kpackfs@.service lib/systemd/system/kpackfs-in-place@.service \
	lib/systemd/system/multi-user.target.wants/kpackfs-policies.service \
	libexec/kpackfs/dpkg-hook lib/pkgconfig/rocm_kpack_static.pc

# ---- the private library ----

own=$usr/lib/kpackfs
t "headers are there" diff -r core/rocm_kpack "$own/include/rocm_kpack"
t "the library is there" soname "$own/lib/librocm_kpack.so.0"
t "nothing of AMD's names is elsewhere" none "$(find "$usr" -path "$own" -prune -o \
	\( -name 'librocm_kpack*' -o -name 'rocm_kpack' -o -name 'rocm-kpack*' \) -print)"
t "CMake does not find it by itself" cmake_finds_none "$usr"
t "programs built with pkg-config run" pkg_config_builds_cxx "$usr/lib/pkgconfig"
t "they use the private library" uses "$work/c" "$own/lib/librocm_kpack.so.0"
t "programs built with pkg-config --static run" pkg_config_builds_static "$usr/lib/pkgconfig"
t "pkg-config sets no path" pkg_config_sets_no_path
t "the static library needs what the shared one needs" static_needs_no_more
t "programs built with the static module run with -static" static_static
t "the modules have our version, and AMD's" versions
t "programs built with CMake run" cmake_builds "$own"
t "they use the private library" uses "$work/cmake/uses-cxx" "$own/lib/librocm_kpack.so.0"
t "programs built with CMake by the name and target of AMD's sources run" cmake_builds "$own" -DPACKAGE=rocm_kpack
t "programs built with CMake, static, run" cmake_builds "$own" -DSTATIC=ON
t "they need no library of ours" none "$(readelf -d "$work/cmake/uses-cxx" | grep librocm_kpack)"
t "CMake is refused a later version" no_cmake_version 0.2
t "CMake is refused another first number" no_cmake_version 1.0

# example NUMBER: of rocm_kpack(3), as a reader would type it
example()
{
	awk -v wanted="$1" '/^\.Ed/ { inside = 0 } inside && n == wanted
		/^\.Bd -literal/ { inside = 1; n++ }' core/rocm_kpack.3 | sed 's/\\e/\\/g' >"$work/example$1.c"
}
put_and_get()
{
	pc=$usr/lib/pkgconfig
	options="--cflags --libs"
	for i in 1 2; do
		example "$i" && build_c_rpath "$work/example$i" "$work/example$i.c" || return 1
	done
	"$work/example2" "$work/y.kpack" lib/y.so#0 gfx942 <"$work/want" &&
		/usr/bin/python3 tests/integration/readkpack.py cat "$work/y.kpack" lib/y.so#0 gfx942 |
		cmp - "$work/want" &&
		"$work/example1" "$work/y.kpack" lib/y.so gfx942 | cmp - "$work/want" &&
		! "$work/example1" "$work/y.kpack" lib/y.so gfx1100 2>"$work/err" && grep gfx1100 "$work/err" &&
		! "$work/example2" "$work/nowhere/y.kpack" a gfx942 </dev/null
}
t "the examples of rocm_kpack(3) work" put_and_get

# The compilers' lines of README.md, for get.c of rocm_kpack(3) and a project with it
readme_builds()
{
	mkdir -p "$work/readme" && cp "$work/example1.c" "$work/readme/get.c" &&
		cp tests/link/CMakeLists.txt tests/link/uses.c "$work/readme" || return 1
	awk '/^```/ { inside = !inside && /covered-by=tests\/install.sh/ } inside' README.md |
		sed -nE "s|/usr/local|$usr|g; s/^[$] ((cc|cmake) .*)/\1/p" >"$work/commands"
	[ "$(grep -c '^cc ' "$work/commands")" = 2 ] && [ "$(grep -c '^cmake ' "$work/commands")" = 2 ] &&
		(cd "$work/readme" && PKG_CONFIG_PATH=$usr/lib/pkgconfig sh -ex ../commands) &&
		"$work/readme/get" "$work/x.kpack" lib/x.so#1 gfx942 | cmp - "$work/want" &&
		"$work/readme/get-static" "$work/x.kpack" lib/x.so#1 gfx942 | cmp - "$work/want" &&
		right "$work/readme/build/uses-c"
}
if all; then
	t "the commands of README.md build programs" readme_builds
fi

# AMD's library is installed in the places where linkers look, and is not used.
cc -shared -fPIC -o "$usr/lib/librocm_kpack.so.0" -Wl,-soname,librocm_kpack.so.0 tests/stub/amd_kpack.c
ln -s librocm_kpack.so.0 "$usr/lib/librocm_kpack.so"
beside_theirs()
{
	pc=$usr/lib/pkgconfig
	options="--cflags --libs"
	LIBRARY_PATH=$usr/lib build_c_rpath "$work/beside" tests/link/uses.c && right "$work/beside"
}
t "a program is built with the private one beside AMD's" beside_theirs
t "it uses the private library" uses "$work/beside" "$own/lib/librocm_kpack.so.0"
behind_theirs()
{
	/usr/bin/python3 - "$usr/lib/librocm_kpack.so.0" "$own/lib/librocm_kpack.so.0" "$work/x.kpack" <<-'END'
		import ctypes, sys
		theirs = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
		ours = ctypes.CDLL(sys.argv[2])
		archive, path = ctypes.c_void_p(), sys.argv[3].encode()
		assert theirs.kpack_open(path, ctypes.byref(archive)) != 0
		assert ours.kpack_open(path, ctypes.byref(archive)) == 0
		ours.kpack_close(archive)
		assert ours.kpack_enumerate_architectures(path, ctypes.CFUNCTYPE(ctypes.c_bool,
			ctypes.c_char_p, ctypes.c_void_p)(lambda arch, data: True), None) == 0
	END
}
t "ours works where AMD's was loaded before" behind_theirs
t "a library that contains ours, by pkg-config, keeps to it" pkg_config_beside_amd
if all; then
	t "and by CMake" beside_amd "$work/cmake/libcontains.so"
fi
rm "$usr/lib/librocm_kpack.so.0" "$usr/lib/librocm_kpack.so"

mv "$root/d" "$root/moved"
t "programs are built where it was moved, with pkg-config" \
	pkg_config_builds "$root/moved/usr/lib/pkgconfig"
if all; then
	t "and with CMake" cmake_builds "$root/moved/usr/lib/kpackfs"
fi
mv "$root/moved" "$root/d"

t "installing again works" in_root install
t "make uninstall" in_root uninstall
t "nothing stays, and nothing else went" only_theirs
t "the private directory is gone" gone "$own"

# ---- installed in place of AMD's ----

amd_client() # AMD's program, linked with the library that is in usr/lib now
{
	cc -o "$work/amd_client" tests/stub/amd_client.c "-L$usr/$1" "-Wl,-rpath,$usr/$1" -lrocm_kpack
}
mkdir -p "$usr/lib/cmake/rocm-kpack" "$usr/include/rocm_kpack"
cc -shared -fPIC -o "$usr/lib/librocm_kpack.so.0.1.0" -Wl,-soname,librocm_kpack.so.0 tests/stub/amd_kpack.c
ln -s librocm_kpack.so.0.1.0 "$usr/lib/librocm_kpack.so.0"
ln -s librocm_kpack.so.0 "$usr/lib/librocm_kpack.so"
cp tests/stub/amd_kpack.h "$usr/include/rocm_kpack/kpack.h"
echo 'message(FATAL_ERROR "another package")' >"$usr/lib/cmake/rocm-kpack/rocm-kpack-config.cmake"
tree() { (cd "$root/d" && find . | LC_ALL=C sort && find . -type f -o -type l | LC_ALL=C sort | xargs sha256sum); }
tree >"$work/before"
as_before() { tree | diff "$work/before" -; }
refused()
{
	! in_root install-dropin >"$work/said" 2>&1 || return 1
	cat "$work/said"
	grep -qF "$usr/lib/librocm_kpack.so.0" "$work/said" && grep -qF FORCE=1 "$work/said"
}
fails() { ! "$@"; }

t "a program is linked with AMD's library" amd_client lib
t "it does not work" fails "$work/amd_client" "$work"
t "install-dropin does not touch AMD's library" refused
t "nor anything else" as_before
t "uninstall-dropin does not touch AMD's library" in_root uninstall-dropin
t "nor anything else" as_before
t "install-dropin FORCE=1 stands in for it" in_root install-dropin FORCE=1
t "the soname is AMD's" soname "$usr/lib/librocm_kpack.so.0"
t "AMD's library is kept" resolves lib/librocm_kpack.so.0.before-kpackfs lib/librocm_kpack.so.0.1.0
t "the program that was linked with AMD's works" "$work/amd_client" "$work"
if all; then
	t "a project of AMD's package builds with ours" cmake_builds "$usr"
	t "it uses the library in AMD's place" uses "$work/cmake/uses-c" "$usr/lib/librocm_kpack.so.0"
	t "and static" cmake_builds "$usr" -DSTATIC=ON
fi
t "install-dropin again needs no FORCE" in_root install-dropin
t "and keeps what was kept" cmp tests/stub/amd_kpack.h "$usr/include/rocm_kpack/kpack.h.before-kpackfs"
t "make uninstall does not touch it" in_root uninstall
t "the program still works" "$work/amd_client" "$work"
t "make uninstall-dropin" in_root uninstall-dropin
t "AMD's files are as they were" as_before

# Another release of AMD's is installed while ours stands in: none of our commands touches
# it.
reinstalled()
{
	in_root install-dropin FORCE=1 && rm "$usr/lib/librocm_kpack.so.0" &&
		ln -s librocm_kpack.so.0.1.0 "$usr/lib/librocm_kpack.so.0" &&
		echo "/* newer */" >"$usr/include/rocm_kpack/kpack.h" &&
		! in_root install-dropin && in_root uninstall-dropin &&
		[ "$(cat "$usr/include/rocm_kpack/kpack.h")" = "/* newer */" ] &&
		resolves lib/librocm_kpack.so.0 lib/librocm_kpack.so.0.1.0 &&
		[ ! -e "$usr/include/rocm_kpack/kpackx.h" ] &&
		cmp tests/stub/amd_kpack.h "$usr/include/rocm_kpack/kpack.h.before-kpackfs"
}
if all; then
	t "a newer library of AMD's stays" reinstalled
fi
find "$usr" -mindepth 1 ! -path '*/bin' ! -path '*/bin/theirs' -delete

multiarch() { in_root "$@" LIBDIR=lib/multi-arch; }
if all; then
	t "install-dropin LIBDIR=, where AMD's is not" multiarch install-dropin
	t "CMake's package is found there" cmake_builds "$usr" -DCMAKE_LIBRARY_ARCHITECTURE=multi-arch \
		-Drocm-kpack_DIR="$usr/lib/multi-arch/cmake/rocm-kpack"
	t "nothing is elsewhere" none "$(find "$usr/lib" -name '*rocm[_-]kpack*' ! -path '*/multi-arch/*' 2>&1)"
	t "uninstall-dropin LIBDIR=" multiarch uninstall-dropin
fi
gnu() { in_root "$@" bindir=/opt/k/bin sbindir=/opt/k/sbin/x libexecdir=/opt/k/exec datadir=/opt/k/data mandir=/opt/k/man \
	includedir=/opt/k/inc libdir=/opt/k/lib; }
# shellcheck disable=SC2016 # for the shell that reads it
gnu_programs_run()
{
	opt=$root/d/opt/k
	"$opt/bin/kpack" --version && "$opt/sbin/x/mount.kpackfs" --version &&
		[ "$(readlink -f "$opt/exec/kpackfs/clang/clang-offload-bundler")" = "$opt/bin/kpack" ] &&
		[ -s "$opt/man/man1/kpack.1" ] && [ -s "$opt/data/bash-completion/completions/kpack" ] &&
		none "$(find "$usr" -name '*kpack*' ! -name '*.service' ! -name theirs)" &&
		grep -qxF 'kpack=${KPACK-/opt/k/bin/kpack}' "$opt/exec/kpackfs/dpkg-hook"
}
t "install with GNU's names of directories" gnu install
t "uses them, and relative links" gnu_programs_run
t "a program is built with the library there" pkg_config_builds "$root/d/opt/k/lib/pkgconfig"
if all; then
	t "install-dropin with them" gnu install-dropin
	t "CMake's package is found there" cmake_builds "$root/d/opt/k"
	t "uninstall-dropin" gnu uninstall-dropin
fi
t "uninstall" gnu uninstall
t "nothing stays, and nothing else went" only_theirs
if all; then
	t "an absolute LIBDIR" in_root install LIBDIR=/usr/lib64
	t "is where it is" pkg_config_builds "$usr/lib64/pkgconfig"
	t "uninstall" in_root uninstall LIBDIR=/usr/lib64
	t "nothing stays, and nothing else went" only_theirs
fi

# ---- places ----

relative() { make --no-print-directory "$@" "DESTDIR=$(realpath --relative-to=. "$root")/relative" PREFIX=/usr; }
if all; then
	t "a relative DESTDIR" relative install
	t "holds the library" soname "$root/relative/usr/lib/kpackfs/lib/librocm_kpack.so.0"
	t "uninstall" relative uninstall
	t "the private directory is gone" gone "$root/relative/usr/lib/kpackfs"
fi

# A command that splits the path into words would remove the file that the first word
# names.
echo theirs >"$root/two"
two_words()
{
	! make --no-print-directory "$1" "$2=$root/two words" >"$work/said" 2>&1 &&
		grep -F "$2=$root/two words" "$work/said" && [ -s "$root/two" ]
}
for variable in DESTDIR PREFIX LIBDIR bindir includedir; do
	t "uninstall refuses a $variable of two words" two_words uninstall $variable
done
t "and so does install-dropin" two_words install-dropin DESTDIR

echo "1..$n"
exit $failed
