#!/bin/sh
# Who may include whom, what core must not do, and what the library exports.  Prints TAP.
#
#   fs/ and packer/ use core/, never each other; core/ uses neither.
#   core/ knows no FUSE, never prints, never ends the process, changes nothing of it, and
#   leaves no file open to the programs it starts.
#   In fs/ only the programs' edge knows FUSE, so the rest can be tested without a mount.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=${KPACK_BIN:-build/debug}

n=0
failed=0
# check DESCRIPTION OFFENDERS: passes when there are none
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

# lines FILES... whose code (comments removed, line numbers kept) matches $pattern
code()
{
	for f; do
		[ -e "$f" ] || continue
		# a block comment becomes its newlines; strings stay, they hold no calls
		perl -0pe 's{/\*.*?\*/}{my $c = $&; $c =~ tr/\n//cd; $c}gse; s{//[^\n]*}{}g' "$f" |
			grep -nE "$pattern" | sed "s|^|$f:|"
	done
}

includes='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'

pattern="${includes}([^\">]*/)?fuse[^/]*\\.h|${includes}fuse3?/"
check "core does not include FUSE" "$(code core/*.[ch] core/*/*.[ch])"
check "packer does not include FUSE" "$(code packer/*.[ch] packer/*/*.[ch])"
others=
for f in fs/*.[ch]; do
	case $f in
	fs/main.* | fs/ops.* | fs/control.* | fs/settings.* | fs/notices.* | fs/session.* | fs/xattrs.* | fs/readonly.*) ;;
	*) others="$others $f" ;;
	esac
done
# shellcheck disable=SC2086 # a list of names without spaces
check "in fs only main, settings, ops, control, session, notices, xattrs and readonly include FUSE" "$(code $others)"

# Headers that only DIR has; a header of the same name elsewhere is no evidence.
only_in()
{
	for h in "$1"/*.h; do
		[ -e "$h" ] || continue
		b=$(basename "$h")
		[ -e "core/$b" ] && continue
		printf '%s|' "$(echo "$b" | sed 's/\./\\./')"
	done
}
fs_headers="${includes}([^\">]*/)?($(only_in fs)fs/[^\">]*)[\">]"
packer_headers="${includes}([^\">]*/)?($(only_in packer)packer/[^\">]*)[\">]"

pattern=$fs_headers
check "core does not include fs" "$(code core/*.[ch] core/*/*.[ch])"
check "packer does not include fs" "$(code packer/*.[ch] packer/*/*.[ch])"
pattern=$packer_headers
check "core does not include packer" "$(code core/*.[ch] core/*/*.[ch])"
check "fs does not include packer" "$(code fs/*.[ch])"

pattern='(^|[^[:alnum:]_])(v?f?printf|v?dprintf|puts|fputs|putchar|putc|fputc|perror|psignal|syslog|v?warnx?|v?errx?|error)[[:space:]]*\(|(^|[^[:alnum:]_])(stderr|stdout)([^[:alnum:]_]|$)'
check "core never prints" "$(code core/*.[ch] core/*/*.[ch])"
pattern='(^|[^[:alnum:]_])(_?exit|_Exit|quick_exit|abort|assert|raise|kill)[[:space:]]*\('
check "core never ends the process" "$(code core/*.[ch] core/*/*.[ch])"
pattern='(^|[^[:alnum:]_])(getopt(_long)?|isatty|system|popen)[[:space:]]*\('
check "core knows no command line" "$(code core/*.[ch] core/*/*.[ch])"

pattern='(^|[^[:alnum:]_])(atexit|on_exit|at_quick_exit|signal|sigaction|sigset|siginterrupt|bsd_signal)[[:space:]]*\(|destructor'
check "core runs nothing at the end of the process or when signals come" "$(code core/*.[ch] core/*/*.[ch])"
pattern='(^|[^[:alnum:]_])(setenv|unsetenv|putenv|clearenv|umask|f?chdir|sigprocmask|pthread_sigmask|setrlimit|srand|srandom)[[:space:]]*\('
check "core changes nothing of the process" "$(code core/*.[ch] core/*/*.[ch])"
pattern='(^|[^[:alnum:]_])((set|new|use|free|dup)locale|localeconv|strerror|strcoll|strxfrm|is(alpha|alnum|upper|lower|space|print|graph|punct|cntrl)|to(lower|upper)|strn?casecmp|strtod|strtof|strtold|atof)[[:space:]]*\('
check "core knows no locale" "$(code core/*.[ch] core/*/*.[ch])"

# Calls that make a descriptor, over as many lines as they take, without a flag that closes it
inherited()
{
	for f; do
		perl -0777 -ne '
			s{/\*.*?\*/}{my $c = $&; $c =~ tr/\n//cd; $c}gse;
			s{//[^\n]*}{}g;
			while (/(?<![\w>.])((?:fd?|fre)?open(?:at2?)?(?:64)?|pipe2?|dup[23]?|creat(?:64)?|mko?stemps?(?:64)?|tmpfile
				|memfd_create|fcntl|socket(?:pair)?|accept4?|eventfd|epoll_create1?|inotify_init1?)
				\s*(\((?:[^()"]|"(?:[^"\\]|\\.)*"|(?2))*\))/gx) {
				my ($name, $arguments, $line) = ($1, $2, 1 + ($` =~ tr/\n//));
				next if $name eq "fdopen" or $name eq "fcntl" && $arguments !~ /F_DUPFD\b/;
				next if $arguments =~ /_CLOEXEC\b/ or $name =~ /^f(re)?open/ && $arguments =~ /"\w*e\w*"\)$/;
				print "$ARGV:$line:$name$arguments\n" =~ s/\s+/ /gr, "\n";
			}' "$f"
	done
}
check "core opens nothing that programs inherit" "$(inherited core/*.[ch] core/*/*.[ch])"

lib=$bin/librocm_kpack.so.0
exported=$(nm -D --defined-only "$lib" 2>&1 | awk '{ print $NF }')
check "the library exports only kpack_ and kpackx_" \
	"$(echo "$exported" | sed 's/@.*//' | grep -vE '^kpackx?_')"
check "what it exports has no version, as AMD's" "$(echo "$exported" | grep @)"
# every name the public headers declare is there
declared=$(cat core/rocm_kpack/*.h | tr '\n' ' ' |
	grep -oE 'KPACK_API[^;]*;' | grep -oE 'kpackx?_[a-z0-9_]+[[:space:]]*\(' | tr -d ' \t(' | sort -u)
missing=
for name in $declared; do
	echo "$exported" | grep -qx "$name" || missing="$missing$name
"
done
check "the library exports all that the public headers declare" "$missing"
check "a soname is set" "$(readelf -d "$lib" 2>&1 |
	grep -q 'SONAME.*librocm_kpack\.so\.0' || echo "no SONAME librocm_kpack.so.0")"
# Where AMD's library is loaded first, a name is AMD's; ours must not call itself by name.
check "the library calls itself directly" "$(readelf -rW "$lib" 2>&1 | grep -E ' kpackx?_')"
check "the library needs what core needs" "$(readelf -d "$lib" 2>&1 | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -vE '^(libzstd|libelf|libxxhash|libmsgpack-?c|libz|liblz4|libpthread|libc|ld-linux[a-z0-9-]*)\.so\.[0-9]+$')"
check "the library looks for them in no place of its own" \
	"$(readelf -d "$lib" 2>&1 | grep -E 'RPATH|RUNPATH')"
check "the library's code is not relocated" "$(readelf -d "$lib" 2>&1 | grep TEXTREL)"
check "the library's stack is not executable" "$(readelf -lW "$lib" 2>&1 |
	awk '/GNU_STACK/ { found = 1; if ($7 ~ /E/) print } END { if (!found) print "no GNU_STACK" }')"

echo "1..$n"
exit $failed
