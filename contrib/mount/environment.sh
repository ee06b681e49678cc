#!/bin/sh
# environment.sh [-u] [MOUNT]
#
# Print shell commands that set the variables by which libraries find their kernels below
# MOUNT (default: /mnt/kernels), where `kpackfs ARCHIVES MOUNT` shows the whole tree: in lib,
# lib64, lib/x86_64-linux-gnu ... and share, also below usr, usr/local, opt/NAME or another
# directory; of a library that none of these has, in any directory that has its files.
# For all logins, in /etc/profile.d/kpackfs.sh:
#
#   eval "$(environment.sh /mnt/kernels)"
#
# A variable that is already set stays.  AOTriton, and hipBLASLt's Transform kernels, have
# no variable: use in-place or overlay for them.
#
# For root a variable is left out if a user other than root could put another file in the
# place that it names: see firm.sh.
#
#   -u   print commands that unset the variables that point below MOUNT
#
# Exit status: 0; 1 nothing to set there; 2 usage.
set -u
LC_ALL=C # a byte is a byte
# shellcheck source=contrib/mount/firm.sh
. "$(dirname "$(realpath "$0")")/firm.sh"

usage()
{
	sed -n '2,21s/^# \{0,1\}//p' "$0"
}

undo=''
while getopts uh option; do
	case $option in
	u) undo=1 ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || { usage >&2 && exit 2; }
mount=${1-/mnt/kernels}
case $mount in /*) ;; *) mount=$PWD/$mount ;; esac
case $mount in */) mount=${mount%/} ;; esac

quoted() # TEXT: as one word of a shell
{
	# the "." keeps newlines at the end
	quoted_text=$(printf '%s.' "$1" | sed "s/'/'\\\\''/g")
	printf "'%s'" "${quoted_text%.}"
}

# -u works without the mount, which may be gone already.
if [ -n "$undo" ]; then
	for variable in ROCBLAS_TENSILE_LIBPATH HIPBLASLT_TENSILE_LIBPATH HIPBLASLT_EXT_OP_LIBRARY_PATH \
		ROCSPARSELT_TENSILE_LIBPATH ROCSPARSELT_SPMM_LIBPATH ROCFFT_RTC_SYS_CACHE_PATH \
		MIOPEN_SYSTEM_DB_PATH; do
		# shellcheck disable=SC2016 # for the shell that reads it
		printf 'case ${%s-} in %s/*) unset %s ;; esac\n' "$variable" "$(quoted "$mount")" "$variable"
	done
	exit
fi

report() # TEXT: on standard error
{
	printf '%s\n' "environment.sh: $1" >&2
}

if firm_foreign "$mount"; then
	report "$mount: another user than root has mounted this"
	exit 1
fi
found='' checked=''
# The owners that root's mount shows are those of the archives: nobody writes there.
case $(findmnt -nro FSTYPE,OPTIONS -T "$mount" 2>/dev/null) in
fuse.kpackfs*user_id=0,*) checked=$mount ;;
esac
# say VARIABLE VALUE: print a command that sets VARIABLE unless it is set
say()
{
	if ! firm_check "${checked:-$2}"; then
		report "$1: $firm_why"
		return
	fi
	found=1
	# shellcheck disable=SC2016
	printf '[ -n "${%s-}" ] || export %s=%s\n' "$1" "$1" "$(quoted "$2")"
}

# each FUNCTION ARGUMENT...: call it with each prefix below MOUNT: MOUNT itself, usr, opt/rocm-7.2 ...
each()
{
	for prefix in "$mount" "$mount"/* "$mount"/usr/local "$mount"/opt/*; do
		# the entries by key are no tree
		[ "$prefix" = "$mount/toc" ] || ! [ -d "$prefix" ] || "$@" "$prefix"
	done
}

# take PATH: it is the "value", unless there is one already
take()
{
	# shellcheck disable=SC3013 # POSIX has -ef since 2024, and every sh has it
	if [ -z "$value" ]; then
		value=$1
	elif ! [ "$value" -ef "$1" ]; then
		other=$1
	fi
}

# library NAME PREFIX: take the directories of its databases, also of a version: rocblas/5/library
library()
{
	for path in "$2"/lib/"$1"/library "$2"/lib/"$1"/*/library "$2"/lib64/"$1"/library \
		"$2"/lib64/"$1"/*/library "$2"/lib/*-linux-*/"$1"/library "$2"/lib/*-linux-*/"$1"/*/library; do
		! [ -d "$path" ] || take "$path"
	done
}

# The first one counts: new versions have a file for each GPU, which find each other.
cache() # PREFIX
{
	for path in "$1"/lib/rocfft/rocfft_kernel_cache*.db "$1"/lib/rocfft_kernel_cache*.db \
		"$1"/lib64/rocfft/rocfft_kernel_cache*.db "$1"/lib64/rocfft_kernel_cache*.db \
		"$1"/lib/*-linux-*/rocfft/rocfft_kernel_cache*.db "$1"/lib/*-linux-*/rocfft_kernel_cache*.db; do
		! [ -f "$path" ] || [ -n "$value" ] || value=$path
	done
}

miopen() # PREFIX
{
	! [ -d "$1/share/miopen/db" ] || take "$1/share/miopen/db"
}

# The directories with databases, relative to MOUNT, but for those of the entries by key
directories()
{
	cd "$mount" 2>/dev/null && find . -xdev -path ./toc -prune -o ! -path '*
*' \( -name 'TensileLibrary*' -o -name 'rocfft_kernel_cache*.db' -o -path '*/miopen/db/*' \) -print |
		sed 's,/[^/]*$,,' | sort -u
}

# everywhere FUNCTION ARGUMENT...: call it with each directory that has databases
unset places
everywhere()
{
	: "${places=$(directories)}"
	while IFS= read -r place; do
		[ -z "$place" ] || "$@" "$mount${place#.}"
	done <<-END
		$places
	END
}

exists() # FILE...: one of them does
{
	for file; do
		! [ -e "$file" ] || return 0
	done
	return 1
}

# owner DIRECTORY: set "name" to the library that owns the directory's files of Tensile: the one
# that the path names last, or else the one that the files are for, as kpack pack finds it
owner()
{
	part=${1#"$mount"}
	while [ -n "$part" ]; do
		name=${part##*/}
		case $name in rocblas | hipblaslt | hipsparselt) return ;; esac
		part=${part%/*}
	done
	name=rocblas
	for part in "$1" "$1"/gfx*; do
		if exists "$part"/hipsparselt* "$part"/TensileLibrary_*_SP[AB]_*; then
			name=hipsparselt
			return
		fi
		! exists "$part"/extop_* "$part"/hipblaslt* "$part"/TensileLiteLibrary* || name=hipblaslt
	done
}

library_files() # NAME DIRECTORY: take it, or its parent if it is a GPU's, if it has indexes of NAME
{
	exists "$2"/TensileLibrary* || return 0
	[ "$2" = "$mount" ] || case ${2##*/} in gfx*) set -- "$1" "${2%/*}" ;; esac
	owner "$2"
	[ "$name" != "$1" ] || take "$2"
}

cache_files() # DIRECTORY
{
	for path in "$1"/rocfft_kernel_cache*.db; do
		! [ -f "$path" ] || [ -n "$value" ] || value=$path
	done
}

miopen_files() # DIRECTORY
{
	case $1 in */miopen/db) take "$1" ;; esac
}

# search FUNCTION [NAME]: set "value" to the only place, or to ""
search()
{
	value='' other=''
	each "$@"
	[ -n "$value" ] || everywhere "${1}_files" ${2+"$2"}
	[ -n "$other" ] || return 0
	report "$value and $other: no variable can name both: use in-place or overlay"
	value=''
}

# tensile DIRECTORY: set "value" to the directory of the indexes: DIRECTORY, or its only
# GPU's directory, or ""
tensile()
{
	value=$1
	! exists "$1"/TensileLibrary* || return 0
	set -- "$1"/gfx*/
	value=''
	! [ -d "$1" ] || [ $# -gt 1 ] || value=${1%/}
}

set_tensile() # VARIABLE...: libraries that do not look into a GPU's directory themselves
{
	directory=$value
	[ -n "$directory" ] || return 0
	tensile "$directory"
	if [ -z "$value" ] && [ -n "$(find "$directory" -maxdepth 1 -type d -name 'gfx*')" ]; then
		report "$directory has several GPUs' directories, which no variable \
can name: mount with -o arch=auto, or use in-place or overlay"
		return 0
	elif [ -z "$value" ]; then
		report "$directory has no kernels that a GPU shown there could use"
		return 0
	fi
	for variable; do say "$variable" "$value"; done
}

# rocBLAS looks into the directory of its GPU itself
search library rocblas
[ -z "$value" ] || say ROCBLAS_TENSILE_LIBPATH "$value"

search library hipblaslt
operations=$value
set_tensile HIPBLASLT_TENSILE_LIBPATH
for value in "$operations"/hipblasltExtOpLibrary.dat "$operations"/gfx*/hipblasltExtOpLibrary.dat; do
	! [ -f "$value" ] || { say HIPBLASLT_EXT_OP_LIBRARY_PATH "$value" && break; }
done

search library hipsparselt
set_tensile ROCSPARSELT_TENSILE_LIBPATH ROCSPARSELT_SPMM_LIBPATH

search cache
[ -z "$value" ] || say ROCFFT_RTC_SYS_CACHE_PATH "$value"
search miopen
[ -z "$value" ] || say MIOPEN_SYSTEM_DB_PATH "$value"

[ -n "$found" ] || {
	printf '%s\n' "environment.sh: $mount: no kernels of rocBLAS, hipBLASLt, hipSPARSELt, rocFFT or MIOpen" >&2
	exit 1
}
