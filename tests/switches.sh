#!/bin/sh
# Build with each optional library switched off, and with all of them off; functions that
# are not built must say so and exit with 2.  Prints TAP.
# shellcheck disable=SC2317 # t calls them
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL MODE O

n=0
failed=0
t() # DESCRIPTION COMMAND...
{
	what=$1
	shift
	n=$((n + 1))
	out=$("$@" 2>&1)
	status=$?
	if [ $status -eq 0 ]; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what (exit $status)"
		echo "$out" | tail -n 30 | sed 's/^/# /'
		failed=1
	fi
}

# -O0 without debug information: only compiling and linking matter
build() # NAME SWITCH...
{
	name=$1
	shift
	make --no-print-directory -j"$(nproc)" O="build/switches/$name" CFLAGS='-O0 -g0' "$@" all
}
not_built() # COMMAND...: exits 2 and says "not built"
{
	said=$("$@" 2>&1 >/dev/null)
	[ $? -eq 2 ] || { echo "not exit 2: $*"; return 1; }
	case $said in
	*"not built"*) ;;
	*) echo "says: $said"; return 1 ;;
	esac
}
not_checked() # KPACK TREE: verify --tree exits 2 and says that something is not built
{
	said=$("$1" verify --tree "$2" 2>&1 >/dev/null)
	[ $? -eq 2 ] || { echo "not exit 2: $said"; return 1; }
	case $said in
	*": cannot be checked: built without "*) ;;
	*) echo "says: $said"; return 1 ;;
	esac
}
without() # LIBRARY FILE: FILE is not linked with LIBRARY
{
	! ldd "$2" | grep "$1"
}

b=build/switches
t "without zlib" build nozlib WITH_ZLIB=0
t "zlib is not linked" without libz.so $b/nozlib/kpackfs
t "without LZ4" build nolz4 WITH_LZ4=0
t "LZ4 is not linked" without liblz4 $b/nolz4/kpackfs
t "without jansson" build nojson WITH_JSON=0
t "jansson is not linked" without libjansson $b/nojson/kpack
for command in ls info inspect detect report; do
	t "kpack $command --json is refused" not_built $b/nojson/kpack $command --json Makefile
done
t "kpack recombine is refused" not_built $b/nojson/kpack recombine --config Makefile core $b/nothing
t "without libcrypto" build noopenssl WITH_OPENSSL=0
t "libcrypto is not linked" without libcrypto $b/noopenssl/kpack
t "libcrypto is not linked to kpackfs" without libcrypto $b/noopenssl/kpackfs
t "without SQLite" build nosqlite WITH_SQLITE=0
t "SQLite is not linked" without libsqlite3 $b/nosqlite/kpack
for option in --split-rocfft --rows; do
	t "kpack pack $option is refused" not_built $b/nosqlite/kpack pack $option core $b/nothing
done
# a database of one empty page
mkdir -p $b/tree/lib/rocfft
{
	printf 'SQLite format 3\0\002\0\001\001\0\100\040\040\0\0\0\001\0\0\0\001'
	head -c 480 /dev/zero
} >$b/tree/lib/rocfft/kernels.db
t "kpack verify --tree says what it cannot check" not_checked $b/nosqlite/kpack $b/tree
t "without libyaml" build noyaml WITH_YAML=0
t "libyaml is not linked" without libyaml $b/noyaml/kpack
t "without libzip" build nozip WITH_ZIP=0
t "libzip is not linked" without libzip $b/nozip/kpack
t "kpack index is refused without libzip" not_built $b/nozip/kpack index core
t "kpack split-wheel is refused without libzip" not_built $b/nozip/kpack split-wheel x.whl -o $b/nothing
t "kpack index is refused without libcrypto" not_built $b/noopenssl/kpack index core
t "kpack index is refused without zlib" not_built $b/nozlib/kpack index core
t "without libseccomp" build noseccomp WITH_SECCOMP=0
t "libseccomp is not linked" without libseccomp $b/noseccomp/kpackfs
t "with none of them" build none WITH_ZLIB=0 WITH_LZ4=0 WITH_JSON=0 WITH_OPENSSL=0 WITH_SQLITE=0 WITH_YAML=0 \
	WITH_ZIP=0 WITH_SECCOMP=0
t "the smallest kpack runs" $b/none/kpack --version
t "the smallest kpackfs runs" $b/none/kpackfs --version

echo "1..$n"
exit $failed
