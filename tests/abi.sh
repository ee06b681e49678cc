#!/bin/sh
# Check that the library's interface is the one recorded in tests/abi.txt, and that AMD's
# part of it equals AMD's.  Prints TAP.
#
#   tests/abi.sh --record     write tests/abi.txt, after an intended change
#
# A line of tests/abi.txt that disappears or changes breaks existing programs: then the
# soname must change, too, and the library can no longer stand in for AMD's.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=${KPACK_BIN:-build/release}
lib=$bin/librocm_kpack.so.0
record=tests/abi.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

n=0
failed=0
# check DESCRIPTION OFFENDERS: passes if OFFENDERS is empty
check()
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "$2" | sed 's/^/# /'
		failed=1
	fi
}

# Print the headers' declarations, one per line; with "c", a program that prints values
# and layout.
declared() # lines|c
{
	cat core/rocm_kpack/*.h | perl -0777 -e '
		my $c = shift @ARGV eq "c";
		$_ = <STDIN>;
		s{/\*.*?\*/}{}gs;
		if (!$c) {
			print "define $1\n" while /^#define (kpackx?_\w+ \w+)$/gm;
			s/^#.*$//gm;
			s/\s+/ /g;
			while (/KPACK_API ([^;(]*?)(\w+)\(([^;]*)\);/g) {
				my ($type, $name, $arguments) = ($1, $2, $3);
				$arguments =~ s/\b\w+(?=,|$)//g;	# the names
				$arguments =~ s/^ | (?=,|$)//g;
				print "call $type$name($arguments)\n";
			}
			print "type $1\n" while /typedef ((?:struct|bool) [^{};]*);/g;
			exit;
		}
		print "#include <stdio.h>\n#include \"rocm_kpack/$_\"\n" for "kpack.h", "kpackx.h";
		print "int main(void)\n{\n";
		while (/enum \{(.*?)\} (\w+);/gs) {
			my ($body, $type) = ($1, $2);
			print "printf(\"value $_ %d\\n\", (int)$_);\n" for $body =~ /(\w+) =/g;
			print "printf(\"size $type %zu\\n\", sizeof($type));\n";
		}
		while (/^struct (\w+) \{(.*?)\n\};/gsm) {
			my ($name, $body) = ($1, $2);
			print "printf(\"size $name %zu\\n\", sizeof(struct $name));\n";
			for (map { split /,/ } split /;/, $body) {
				/(\w+)(?:\[\w+\])?\s*$/ or next;
				print "printf(\"member $name.$1 at %zu size %zu\\n\",",
					" __builtin_offsetof(struct $name, $1),",
					" sizeof(((struct $name *)0)->$1));\n";
			}
		}
		print "return 0;\n}\n"' "$1"
}

exported()
{
	nm -D --defined-only "$lib" | awk '{ print "export " $3 }' | LC_ALL=C sort
}

describe()
{
	readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/soname \1/p'
	exported
	declared lines
	declared c >"$work/print.c"
	${CC:-cc} -Icore -o "$work/print" "$work/print.c" && "$work/print"
}

if [ "${1-}" = --record ]; then
	# the headers are the contract; bodies follow them
	describe | sed '/^export /d' >"$work/new"
	sed -nE 's/^call .*[ *](kpackx?_[a-z0-9_]+)\(.*/export \1/p' "$work/new" |
		LC_ALL=C sort | cat "$work/new" - >$record
	exit
fi

describe >"$work/now" 2>"$work/err"
check "the interface can be read" "$(cat "$work/err")"
for kind in soname export call define type value size member; do
	check "as recorded: $kind" "$(grep "^$kind " $record | LC_ALL=C sort >"$work/want"
		grep "^$kind " "$work/now" | LC_ALL=C sort | diff -U 0 --label $record --label now "$work/want" -
		[ -s "$work/want" ] || echo "nothing is recorded")"
done

# Compile each header alone, and all of them in any order, as plain C and C++ without
# extensions; make check-all has clang, too
clang=
[ "${CHECK_ALL:-1}" != 1 ] || clang=clang
compiles() # NAME INCLUDE...
{
	name=$1
	shift
	printf '#include "rocm_kpack/%s"\n' "$@" >"$work/$name.c"
	echo "typedef int not_empty;" >>"$work/$name.c"
	for language in c:c11 c++:c++17; do
		for cc in "${CC:-cc}" $clang; do
			# shellcheck disable=SC2086 # CC may be "ccache gcc"
			$cc -x "${language%:*}" "-std=${language#*:}" -Wall -Wextra -pedantic -Werror \
				-Icore -fsyntax-only "$work/$name.c" 2>&1
		done
	done
}
for header in core/rocm_kpack/*.h; do
	header=$(basename "$header")
	check "$header compiles alone, in C11 and C++17" "$(compiles alone "$header")"
done
check "the paper's header goes before AMD's" "$(compiles before kpack_design.h kpack.h kpackx.h)"
check "and behind" "$(compiles behind kpack.h kpackx.h kpack_design.h)"

# AMD's declarations after ours: the compiler rejects a function with another type.
amd=tests/stub/amd_kpack.h
{
	echo '#include "rocm_kpack/kpack.h"'
	echo '#define AMD_API KPACK_API'
	sed -n '/^AMD_API /,/;/p' $amd
	sed -nE 's/^\t(KPACK_[A-Z_]+) = ([0-9]+),?$/_Static_assert(\1 == \2, "\1");/p' $amd
} >"$work/amd.c"
check "fourteen functions of AMD's are checked" \
	"$([ "$(grep -c '^AMD_API ' "$work/amd.c")" = 14 ] || grep '^AMD_API ' "$work/amd.c")"
check "fifteen results of AMD's are checked" \
	"$([ "$(grep -c '^_Static_assert' "$work/amd.c")" = 15 ] || cat "$work/amd.c")"
check "AMD's functions and values are ours" \
	"$(${CC:-cc} -std=c11 -Icore -fsyntax-only "$work/amd.c" 2>&1)"
for name in $(sed -n '/^AMD_API /p' $amd | grep -oE 'kpack_[a-z_]+\(' | tr -d '('); do
	check "exported: $name" "$(exported | grep -qx "export $name" || echo "$name is not exported")"
done

[ $failed = 0 ] || echo "# if the change is intended, record it with tests/abi.sh --record"
echo "1..$n"
exit $failed
