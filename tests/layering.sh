#!/bin/sh
# Check which folder includes which, that core keeps its restrictions, and the library's
# exports.  Prints TAP.
#
#   tests/layers.txt is the graph: fs/ and packer/ use core/, never each other.
#   core/ does not use FUSE, never prints, never ends the process or changes its state,
#   and leaves no file open to the programs it starts.
#   In fs/ only the outermost folders use FUSE, so the rest can be tested without a mount.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=${KPACK_BIN:-build/release}

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

# All lines of code, as FILE:LINE:CODE: without comments; strings stay, because they contain
# no calls.
lines=$(mktemp) || exit 1
trap 'rm -f "$lines"' EXIT
# print the C files of components; their names have no spaces
below()
{
	find "$@" -name '*.[ch]' | sort
}
# shellcheck disable=SC2016 # Perl's
below core fs packer contrib | xargs perl -0777 -ne '
	s{/\*.*?\*/}{my $c = $&; $c =~ tr/\n//cd; $c}gse; # a block comment becomes its newlines
	s{//[^\n]*}{}g;
	my $n = 0;
	print "$ARGV:" . ++$n . ":$_\n" for split /\n/;
' >"$lines" || exit 1

# in_code COMPONENT...: print the lines of code of the components that match $pattern
in_code()
{
	pattern=$pattern perl -ne '
		BEGIN { $in = join "|", splice @ARGV, 1; $pattern = qr/$ENV{pattern}/ }
		print if m{^($in)/[^:]*:\d+:(.*)} && $2 =~ $pattern' "$lines" "$@"
}

includes='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'
# The folders, and which of them each may include: tests/layers.txt.
check "tests/layers.txt has each folder once, names only folders, and has no cycle" "$(awk '
	/^#/ || !NF { next }
	{
		sub(/:$/, "", $1)
		if ($1 in line)
			print $1 " stands twice: lines " line[$1] " and " NR
		line[$1] = NR
		for (i = 2; i <= NF; i++)
			uses[$1, ++n[$1]] = $i
	}
	# a folder is listed above each folder that it uses, so the graph has no cycles
	END {
		for (d in line)
			for (i = 1; i <= n[d]; i++) {
				u = uses[d, i]
				if (!(u in line))
					print d " uses " u ", which has no line"
				else if (line[u] <= line[d])
					print d " uses " u ", which stands above it"
			}
	}' tests/layers.txt)"
check "each folder of the components has its line in tests/layers.txt, and no line is left over" "$(
	{
		below core fs packer | sed 's|/[^/]*$||' | sort -u
		sed -n 's/^\([^#:]*\):.*/\1/p' tests/layers.txt
	} | sort | uniq -u)"
# shellcheck disable=SC2046
check "each include stands in tests/layers.txt, from the root; inside a folder it is the bare name" "$(
	grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' $(below core fs packer) |
		awk -F'"' '
		NR == FNR {
			if ($0 ~ /^#/ || $0 == "")
				next
			split($0, part, ":")
			m = split(part[2], use, " ")
			for (i = 1; i <= m; i++)
				may[part[1], use[i]] = 1
			next
		}
		{
			file = $1
			sub(/:.*/, "", file)
			from = file
			sub(/\/[^\/]*$/, "", from)
			to = $2
			if (!sub(/\/[^\/]*$/, "", to))
				to = from
			else if (to == from)
				print file " includes \"" $2 "\": inside a folder by bare name"
			if (to ~ /^\.\.?($|\/)/)
				print file " includes \"" $2 "\": from the root"
			else if (to != from && !((from, to) in may))
				print file " includes \"" $2 "\": " from " may not use " to
		}' tests/layers.txt -)"
# `x/y.c` names a file whose path ends so, `x/` and `x/{y,z}/` folders.
check "the files and folders that ARCHITECTURE.md names exist" "$(
	find core fs packer tests contrib -type f -o -type d | perl -e '
		my @paths = map { chomp; "/$_" } <STDIN>;
		open my $page, "<", "ARCHITECTURE.md" or die;
		local $/;
		for my $name (<$page> =~ /`([^`]+)`/g) {
			next unless $name =~ m{^(?=.*(?:/|\.[ch]$))[\w./{},-]+$} and $name !~ /^\.|NAME|\.1$/;
			my ($begin, $list, $end) = $name =~ /^([^{]*)\{([^}]*)\}(.*)$/;
			for my $one ($list ? map { "$begin$_$end" } split /,/, $list : $name) {
				(my $path = $one) =~ s{/$}{};
				print "no $one\n" unless grep { substr("$_", -length("/$path")) eq "/$path" } @paths;
			}
		}'
)"
check "each folder of core, fs and packer is in ARCHITECTURE.md" "$(
	sed -n 's/^\([^#:]*\):.*/\1/p' tests/layers.txt | while read -r dir; do
		case $dir in */*) ;; *) continue ;; esac
		grep -qE "[\`{,/]${dir##*/}[/,}]" ARCHITECTURE.md || echo "$dir"
	done)"
check "no header is called like a system header" "$(below core fs packer | grep '\.h$' | while read -r f; do
	b=${f##*/}
	for d in /usr/include /usr/include/*-linux-gnu* /usr/lib/gcc/*/*/include; do
		[ -e "$d/$b" ] && echo "$f: $d/$b"
	done
done)"

pattern="${includes}([^\">]*/)?fuse[^/\"]*\\.h|${includes}fuse3?/"
check "of all folders only fs/fuse, fs/mount and fs/main.c include FUSE" "$(in_code core fs packer |
	grep -vE '^fs/((fuse|mount)/|main\.c)')"

# A run of root's must not be led out of its trees: packer/files/below.h
path_calls='open|openat2?|creat|f(re)?open|rename|renameat2?|unlink|unlinkat|remove|mkdir|mkdirat|rmdir|l?chown|fchownat|chmod|fchmodat|l?utimes|utimensat|futimesat|l?(get|set|list|remove)xattr|link|linkat|symlink|symlinkat|mknod|mknodat|mkfifo|truncate|l?stat|fstatat|statx|access|faccessat|readlink|readlinkat|realpath|opendir|scandir|scandirat|fts_open|n?ftw|glob|mkdtemp|mko?stemps?|chdir|statfs|canonicalize_file_name'
core_calls='kp_file_open|kp_outfile_open|kp_outfile_open_at|kp_archive_open|kp_archives_find|kp_writer_open'
pattern="(^|[^[:alnum:]_>.])($path_calls|$core_calls)[[:space:]]*\\("
check "of packer/ only packer/files calls functions that take paths" "$(in_code packer | grep -v '^packer/files/')"

pattern='(^|[^[:alnum:]_])(v?f?printf|v?dprintf|puts|fputs|putchar|putc|fputc|perror|psignal|syslog|v?warnx?|v?errx?|error)[[:space:]]*\(|(^|[^[:alnum:]_])(stderr|stdout)([^[:alnum:]_]|$)'
check "core never prints" "$(in_code core)"
pattern='(^|[^[:alnum:]_])(_?exit|_Exit|quick_exit|abort|assert|raise|kill)[[:space:]]*\('
check "core never ends the process" "$(in_code core)"
pattern='(^|[^[:alnum:]_])(getopt(_long)?|isatty|system|popen)[[:space:]]*\('
check "core knows no command line" "$(in_code core)"

pattern='ZSTD_STATIC_LINKING_ONLY'
check "only stable calls of the shared libzstd are used" "$(in_code core fs packer contrib)"

pattern='(^|[^[:alnum:]_])(atexit|on_exit|at_quick_exit|signal|sigaction|sigset|siginterrupt|bsd_signal)[[:space:]]*\(|destructor'
check "core runs nothing at the end of the process or when signals come" "$(in_code core)"
pattern='(^|[^[:alnum:]_])(setenv|unsetenv|putenv|clearenv|umask|f?chdir|sigprocmask|pthread_sigmask|setrlimit|srand|srandom)[[:space:]]*\('
check "core changes nothing of the process" "$(in_code core)"
pattern='(^|[^[:alnum:]_])((set|new|use|free|dup)locale|localeconv|strerror|strcoll|strxfrm|is(alpha|alnum|upper|lower|space|print|graph|punct|cntrl)|to(lower|upper)|strn?casecmp|strtod|strtof|strtold|atof)[[:space:]]*\('
check "core knows no locale" "$(in_code core)"

pattern='(^|[^[:alnum:]_])getenv[[:space:]]*\('
check "the environment is read by secure_getenv" "$(in_code core fs packer)"

# One function for each kind of output.
pattern='(^|[^[:alnum:]_])json_dump'
check "packer/cli/report.c alone writes JSON with jansson" "$(in_code packer | grep -v '^packer/cli/report\.c:')"

# Find calls that make a descriptor without a close-on-exec flag, over any number of lines
inherited()
{
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
		}' "$@"
}
# shellcheck disable=SC2046
check "core opens nothing that programs inherit" "$(inherited $(below core))"

lib=$bin/librocm_kpack.so.0
# Print the objects of the build that are older than their sources.
stale()
{
	find "$bin/core" "$bin/fs" "$bin/packer" -name '*.o' 2>/dev/null | perl -ne '
		BEGIN { $bin = shift @ARGV }
		chomp;
		my ($source) = m{^\Q$bin\E/(.*)\.o$};
		print "$_\n" if -e "$source.c" && -M "$source.c" < -M $_' "$bin"
}
# By hand, in a tree without a build, or with one of another source, the source alone is checked.
if [ -z "${KPACK_BIN-}" ] && { ! [ -e "$lib" ] || [ -n "$(stale)" ]; }; then
	n=$((n + 1))
	echo "ok $n # SKIP $bin is not built from this source: make check-layering builds and checks the libraries"
	echo "1..$n"
	exit $failed
fi
# Of a declaration the compiler does not say who defines it: the objects do.  A folder takes
# names from the folders of its line only, except packer/main.c, the table of all commands.
check "what an object takes from another folder is in a folder of its line in tests/layers.txt" "$(
	find "$bin/core" "$bin/fs" "$bin/packer" -name '*.o' | sort | while read -r object; do
		source=${object#"$bin/"} # builds keep objects of files that are gone
		[ "$source" = packer/main.o ] || ! [ -e "${source%.o}.c" ] || echo "$object"
	done | xargs nm -A -P -g | awk -v bin="$bin/" '
		NR == FNR {
			n = split($0, part, /:? +/)
			for (i = 2; i <= n; i++)
				may[part[1], part[i]] = 1
			next
		}
		{
			file = substr($1, length(bin) + 1)
			sub(/:$/, "", file)
			folder = file
			sub(/\/[^\/]*$/, "", folder)
			program = folder
			sub(/\/.*/, "", program)
			if ($3 !~ /^[Uw]$/) {
				home[program, $2] = folder
				next
			}
			object[++taken] = file
			from[taken] = folder
			of[taken] = program
			name[taken] = $2
		}
		END {
			for (i = 1; i <= taken; i++) {
				to = home[of[i], name[i]]
				if (to == "")
					to = home["core", name[i]]
				if (to != "" && to != from[i] && !((from[i], to) in may))
					print object[i] " takes " name[i] " from " to
			}
		}' tests/layers.txt -)"
# Without a file, checks of what it does not have would pass.
check "the libraries are built" "$(ls "$lib" "$bin/librocm_kpack.a" "$bin/libkpack_hip.so" 2>&1 >/dev/null)"
exported=$(nm -D --defined-only "$lib" 2>&1 | awk '{ print $NF }')
check "the library exports only kpack_ and kpackx_" \
	"$(echo "$exported" | sed 's/@.*//' | grep -vE '^kpackx?_')"
check "what it exports has no version, as AMD's" "$(echo "$exported" | grep @)"
# every name that the public headers declare is exported
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
# If AMD's library is loaded first, its names win, so ours must not call itself by
# exported names.
check "the library calls itself directly" "$(readelf -rW "$lib" 2>&1 | grep -E ' kpackx?_')"
check "the library needs only these libraries" "$(readelf -d "$lib" 2>&1 | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -vE '^(libzstd|libxxhash|libpthread|libc|ld-linux[a-z0-9-]*)\.so\.[0-9]+$')"
check "all of the static library needs no others" "$(${CC:-cc} -shared -o /dev/null -Wl,-z,defs -Wl,--whole-archive \
	"$bin/librocm_kpack.a" -Wl,--no-whole-archive -lzstd -lxxhash 2>&1)"
check "the library looks for them in no place of its own" \
	"$(readelf -d "$lib" 2>&1 | grep -E 'RPATH|RUNPATH')"
check "the library's code is not relocated" "$(readelf -d "$lib" 2>&1 | grep TEXTREL)"
check "the library's stack is not executable" "$(readelf -lW "$lib" 2>&1 |
	awk '/GNU_STACK/ { found = 1; if ($7 ~ /E/) print } END { if (!found) print "no GNU_STACK" }')"

# Every process may load the helper: it has the two names of the runtime, and brings no library.
helper=$bin/libkpack_hip.so
check "the helper exports two calls of the HIP runtime, with its version" "$(
	nm -D --defined-only "$helper" 2>&1 | awk '$2 != "A" { print $NF }' |
		grep -vxE '__hip(Unr|R)egisterFatBinary@@hip_4\.2'
	nm -D --defined-only "$helper" 2>/dev/null | grep -q ' T __hipRegisterFatBinary@@hip_4.2' || echo "no __hipRegisterFatBinary")"
check "the helper needs only libc" "$(readelf -d "$helper" 2>&1 | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc|libdl|libpthread|ld-linux[a-z0-9-]*)\.so\.[0-9]+$')"
check "the helper looks for it in no place of its own" "$(readelf -d "$helper" 2>&1 | grep -E 'RPATH|RUNPATH')"
check "the helper's code is not relocated" "$(readelf -d "$helper" 2>&1 | grep TEXTREL)"

echo "1..$n"
exit $failed
