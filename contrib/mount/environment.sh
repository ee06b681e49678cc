#!/bin/sh
# environment.sh [-u] [MOUNT]
#
# Print shell commands that set the variables by which libraries find their kernels below
# MOUNT (default: /mnt/kernels), where `kpackfs ARCHIVES MOUNT` shows the whole tree.
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
	sed -n '2,19s/^# \{0,1\}//p' "$0"
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

found='' checked=''
# The owners that root's mount shows are those of the archives: nobody writes there.
case $(findmnt -nro FSTYPE,OPTIONS -T "$mount" 2>/dev/null) in
fuse.kpackfs*user_id=0,*) checked=$mount ;;
esac
# say VARIABLE VALUE: print a command that sets VARIABLE unless it is set
say()
{
	if ! firm_check "${checked:-$2}"; then
		printf '%s\n' "environment.sh: $1: $firm_why" >&2
		return
	fi
	found=1
	# shellcheck disable=SC2016
	printf '[ -n "${%s-}" ] || export %s=%s\n' "$1" "$1" "$(quoted "$2")"
}

# first PATH...: print the first PATH that exists below MOUNT, or nothing
first()
{
	for path; do
		! [ -e "$mount/$path" ] || { printf '%s' "$mount/$path" && return; }
	done
}

# tensile DIRECTORY: set "value" to the directory of the indexes: DIRECTORY, or its only
# GPU's directory, or ""
tensile()
{
	value=$1
	for index in "$1"/TensileLibrary*; do
		! [ -e "$index" ] || return
	done
	set -- "$1"/gfx*/
	value=''
	! [ -d "$1" ] || [ $# -gt 1 ] || value=${1%/}
}

set_tensile() # LIBRARY VARIABLE...: such libraries do not look into a GPU's directory themselves
{
	directory=$(first "lib/$1/library" "lib64/$1/library")
	[ -n "$directory" ] || return 0
	tensile "$directory"
	shift
	if [ -z "$value" ] && [ -n "$(find "$directory" -maxdepth 1 -type d -name 'gfx*')" ]; then
		printf '%s\n' "environment.sh: $directory has several GPUs' directories, which no variable \
can name: mount with -o arch=auto, or use in-place or overlay" >&2
		return 0
	elif [ -z "$value" ]; then
		printf '%s\n' "environment.sh: $directory has no kernels that a GPU shown there could use" >&2
		return 0
	fi
	for variable; do say "$variable" "$value"; done
}

# rocBLAS looks into the directory of its GPU itself
value=$(first lib/rocblas/library lib64/rocblas/library)
[ -z "$value" ] || say ROCBLAS_TENSILE_LIBPATH "$value"

set_tensile hipblaslt HIPBLASLT_TENSILE_LIBPATH
set_tensile hipsparselt ROCSPARSELT_TENSILE_LIBPATH ROCSPARSELT_SPMM_LIBPATH

for lib in lib lib64; do
	for value in "$mount/$lib"/hipblaslt/library/hipblasltExtOpLibrary.dat \
		"$mount/$lib"/hipblaslt/library/gfx*/hipblasltExtOpLibrary.dat; do
		! [ -f "$value" ] || { say HIPBLASLT_EXT_OP_LIBRARY_PATH "$value" && break 2; }
	done
done
for lib in lib lib64; do
	for value in "$mount/$lib"/rocfft/rocfft_kernel_cache*.db "$mount/$lib"/rocfft_kernel_cache*.db; do
		! [ -f "$value" ] || { say ROCFFT_RTC_SYS_CACHE_PATH "$value" && break 2; }
	done
done
value=$(first share/miopen/db)
[ -z "$value" ] || say MIOPEN_SYSTEM_DB_PATH "$value"

[ -n "$found" ] || {
	printf '%s\n' "environment.sh: $mount: no kernels of rocBLAS, hipBLASLt, hipSPARSELt, rocFFT or MIOpen" >&2
	exit 1
}
