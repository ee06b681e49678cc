#!/bin/sh
# Build with each optional library switched off, and with all of them off.  Prints TAP.
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

# -O0 without debug information: only compiling and linking matter.  The libraries are those of
# core and kpackfs; all programs are built once.
build() # NAME TARGET SWITCH...
{
	dir=build/switches/$1
	target=$2
	shift 2
	[ "$target" = all ] || target=$dir/$target
	make --no-print-directory -j"$(nproc)" O="$dir" CFLAGS='-O0 -g0' "$@" "$target"
}
without() # LIBRARY FILE: FILE is not linked with LIBRARY
{
	! ldd "$2" | grep "$1"
}

b=build/switches
t "without zlib" build nozlib kpackfs WITH_ZLIB=0
t "zlib is not linked" without libz.so $b/nozlib/kpackfs
t "without LZ4" build nolz4 kpackfs WITH_LZ4=0
t "LZ4 is not linked" without liblz4 $b/nolz4/kpackfs
t "without libseccomp" build noseccomp kpackfs WITH_SECCOMP=0
t "libseccomp is not linked" without libseccomp $b/noseccomp/kpackfs
t "with none of them" build none all WITH_ZLIB=0 WITH_LZ4=0 WITH_SECCOMP=0
t "the smallest kpack runs" $b/none/kpack --version
t "the smallest kpackfs runs" $b/none/kpackfs --version

echo "1..$n"
exit $failed
