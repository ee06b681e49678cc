# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Shared by make-deb, make-rpm and make-tarball: their options, and the output of `kpack
# split` as parts.  Part 0 is the base, every further part is an architecture's.
#
#   part_label[i]     "generic", "gfx1100"
#   part_package[i]   "rocm-blas", "rocm-blas-gfx1100"
#   $work/i.sources   directories whose content goes below the prefix, each ended by a NUL
#   $work/i.files     the files and links in them: relative, sorted, each ended by a NUL
#   $work/i.dirs      the directories in them, likewise
#   $work/stage/i     a copy below the prefix, ready to be packed
#
# SPLIT and OUTDIR may be another user's.  SPLIT is first copied, and only the copy is
# checked and packed.  The copy, and everything else that is unfinished, is in a directory
# that only the caller can enter.  That directory, and OUTDIR, are opened once: $work and
# $out_at are the names that the kernel has for what was opened, and mean the same
# directories whatever is renamed.
set -euo pipefail
export LC_ALL=C
umask 022
# shellcheck source=contrib/packaging/firm.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/firm.sh"

program=${0##*/}

# The copy of SPLIT is called SPLIT, and no name controls the terminal.
die() # TEXT...
{
	local text=$*
	[ -z "$work" ] || text=${text//"$work/split"/"$split_name"}
	printf '%s: %s\n' "$program" "${text//[[:cntrl:]]/?}" >&2
	exit 1
}
usage_error() # TEXT...
{
	printf '%s: %s\n' "$program" "$*" >&2
	printf "Try '%s --help'.\n" "$program" >&2
	exit 2
}
# Print the comment at the top of the program.
help()
{
	sed -n '2,/^$/{ /^$/!s/^# \{0,1\}//p }' "$0"
	exit 0
}

# shellcheck disable=SC2034 # each program uses some of them
name='' version='' prefix=/opt/rocm control='' maintainer='' depends='' description='' license='' copyright='' \
	architecture='' compression='' build='' monolithic=''
split='' split_name='' outdir='' out_at='' made='' work='' work_name=''
part_label=() part_package=()

# Check a value that goes into control files and specs unchanged: it must be one line of
# text.
one_line() # OPTION VALUE
{
	[[ $2 != *[[:cntrl:]]* && $2 != *%* && $2 =~ [^[:space:]] ]] ||
		usage_error "$1: not one line of text without '%': $(printf %q "$2")"
}

# read_options ALLOWED ARGUMENT...: ALLOWED are option names; "name=" takes a value
read_options()
{
	local allowed=" $1 " key value
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) help ;;
		--)
			shift
			break
			;;
		--*=*)
			key=${1%%=*}
			value=${1#*=}
			[[ $allowed == *" ${key#--}= "* ]] || usage_error "unknown option $(printf %q "$key")"
			shift
			;;
		--*)
			key=$1
			value=1
			shift
			if [[ $allowed == *" ${key#--}= "* ]]; then
				[ $# -gt 0 ] || usage_error "$key needs a value"
				value=$1
				shift
			elif [[ $allowed != *" ${key#--} "* ]]; then
				usage_error "unknown option $(printf %q "$key")"
			fi
			;;
		-?*) usage_error "unknown option $(printf %q "$1")" ;;
		*) break ;;
		esac
		[ -z "${key-}" ] || printf -v "${key#--}" %s "$value"
		one_line "$key" "$value"
	done
	[ $# -eq 2 ] || usage_error "two operands are needed, SPLIT and OUTDIR"
	split=$1
	outdir=$2
	check_options
}

check_options()
{
	[[ $name =~ ^[a-z0-9][a-z0-9.+-]+$ ]] ||
		usage_error "--name: two or more of [a-z0-9.+-], and no sign first: $(printf %q "$name")"
	[[ $version =~ ^([0-9]+:)?[0-9][A-Za-z0-9.+~]*(-[A-Za-z0-9.+~]+)?$ ]] ||
		usage_error "--version: not [EPOCH:]VERSION[-REVISION]: $(printf %q "$version")"
	[[ $prefix == / && $program == make-deb ]] ||
		[[ $prefix =~ ^(/[A-Za-z0-9._+-]+)+/?$ && $prefix/ != */../* && $prefix/ != */./* ]] ||
		usage_error "--prefix: not an absolute path of [A-Za-z0-9._+-]: $(printf %q "$prefix")"
	prefix=${prefix%/}
	[[ -z ${SOURCE_DATE_EPOCH-} || $SOURCE_DATE_EPOCH =~ ^[0-9]{1,11}$ ]] ||
		usage_error "SOURCE_DATE_EPOCH is no number: $(printf %q "$SOURCE_DATE_EPOCH")"
	[ -z "$copyright" ] || [ -f "$copyright" ] || die "$copyright: no such file"
	: "${description:=$name}"
	[ -d "$split" ] || die "$split: no such directory"
}

# Set firm_path to PATH without symbolic links.
follow() # PATH
{
	firm_follow "$1" || die "$firm_loose: a symbolic link that another user than root made or could replace, or a mount of another user's"
}

# Open the file PATH, or with SUFFIX /. the directory.  Set "opened" to a path that stays its
# own, "fd" to its descriptor, and firm_path to its name.
open_path() # PATH [SUFFIX]
{
	follow "$1"
	exec {fd}<"$firm_path${2-}"
	opened=/proc/$$/fd/$fd
	[ "$(readlink -n "$opened" && echo .)" = "${firm_path:-/}." ] || die "$1: was replaced while it was opened"
}

# Open the directory PATH, and make what is missing; "made" is the last directory made.
make_directory() # PATH
{
	if [ ! -e "$1" ] && [ ! -L "$1" ]; then
		make_directory "${1%/*}"
		mkdir "$opened/${1##*/}"
		made=$opened/${1##*/}
	fi
	open_path "$1" /.
}

# Only the caller can have put something into DIR.  Its files may have other links that stay: their mode does, too.
empty_directory() # DIR
{
	[ "$EUID" = 0 ] || find "$1/." -type d ! -perm -700 -exec chmod u+rwx {} \;
	find "$1/." -mindepth 1 -delete
}

clean_up()
{
	[ -z "$work" ] || empty_directory "$work"
	rmdir "$out_at/$work_name"
	[ -z "$made" ] || rmdir --ignore-fail-on-non-empty "$made"
}

# Remove leftovers of killed runs: a live run holds a lock.
remove_leftovers()
{
	local left fd opened
	for left in "$out_at"/.make-{deb,rpm,tarball}.??????; do
		if [ ! -d "$left/stage" ] || ! exec {fd}<"$left/."; then
			continue
		fi
		opened=/proc/$$/fd/$fd
		if [ "$(readlink -n "$opened")" = "$outdir/${left##*/}" ] && [ -O "$opened" ] &&
			[ -z "$(find "$opened/." -maxdepth 0 -perm /022)" ] && flock -n "$fd"; then
			empty_directory "$opened"
			rmdir "$left"
		fi
		exec {fd}<&-
	done
}

# Make $work, a directory on OUTDIR's file system for unfinished files.
begin()
{
	local split_at opened fd
	open_path "$split" /.
	split_at=$opened
	split_name=$firm_path
	! firm_foreign "$split_name" below || die "$split: another user has mounted a FUSE file system in it: unmount it first"
	follow "$outdir"
	outdir=$firm_path
	[[ $outdir/ != "$split_name"/* ]] || die "$outdir: OUTDIR is in SPLIT"
	make_directory "$outdir"
	out_at=$opened
	trap 'exit 1' INT TERM HUP
	work_name=$(mktemp -d "$out_at/.$program.XXXXXX")
	work_name=${work_name##*/}
	trap clean_up EXIT
	open_path "$outdir/$work_name" /.
	[ "$(stat -Lc '%u %a' "$opened")" = "$EUID 700" ] || die "$outdir: another user replaced a directory in it"
	work=$opened
	flock "$fd" || true # on a file system without locks no run gets one
	export TMPDIR=$work
	mkdir "$work/stage" "$work/done"
	remove_leftovers
	copy_split "$split_at"
}

# tar follows no link, whatever becomes one meanwhile.
copy_split() # DIR
{
	mkdir "$work/split"
	refuse_first "only files, directories and symbolic links can be packed" \
		< <(find "$1/." -type s -printf "%P\0")
	tar -C "$1/." --format=gnu -cf - . | tar -C "$work/split" -xpf - ||
		die "$split_name: cannot be copied, or was changed meanwhile"
	split=$work/split
	[ "$EUID" != 0 ] || refuse_secrets
}

# A file that not all may read is not made public if another user may have brought it here,
# by a hard link to root's file for instance.
refuse_secrets()
{
	local type owner path
	local -A owner_of
	while read -r -d ' ' type && read -r -d ' ' owner && IFS= read -r -d '' path; do
		if [ "$type" = d ]; then
			owner_of[$path]=$owner
		elif [ "${owner_of[${path%/*}]}" != 0 ] && [ "${owner_of[${path%/*}]}" != "$owner" ]; then
			die "$(printf %q "$path"): not everybody may read it, and it belongs to another user than its directory"
		fi
	done < <(find "$split" \( -type d -o -type f ! -perm -004 \) -printf '%y %U %p\0')
}

# Everything was made: give all files their names together.
publish()
{
	local files=("$work/done"/*)
	sync "${files[@]}"
	mv -f "${files[@]}" "$out_at/"
	# the files are in place even if printing fails
	printf '%s\n' "${files[@]/#"$work/done"/"$outdir"}"
}

# Print an architecture as a part of a package's name: in lower case, with "-" for "_" and
# ":", and "-on" or "-off" for a feature's sign: gfx90a:xnack+ is gfx90a-xnack-on, gfx12_0
# is gfx12-0.
package_part() # ARCH
{
	local features=
	[[ $1 == *:* ]] && features=:${1#*:}
	features=${features//+/-on}
	# a "-" that ends a feature, but not the "-" of "-on"
	features=$(sed -E 's/-(:|$)/-off\1/g' <<<"$features")
	local part=${1%%:*}$features
	part=${part//[_:]/-}
	printf %s "${part,,}"
}

# Print the longest artifact that directory NAME begins with and whose "_generic" exists.
artifact_of() # NAME
{
	local artifact=$1
	while [[ $artifact == *_* ]]; do
		artifact=${artifact%_*}
		if [ -d "$split/${artifact}_generic" ]; then
			printf %s "$artifact"
			return
		fi
	done
}

part_of() # LABEL: set "part" to its index, which is new if LABEL has none yet
{
	local i
	for i in "${!part_label[@]}"; do
		if [ "${part_label[i]}" = "$1" ]; then
			part=$i
			return
		fi
	done
	part=${#part_label[@]}
	part_label+=("$1")
	if [ "$1" = generic ]; then
		part_package+=("$name")
		return
	fi
	[[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9_.:+-]*$ ]] || die "$(printf %q "$1"): not the name of an architecture"
	local package
	package=$name-$(package_part "$1")
	for i in "${!part_package[@]}"; do
		[ "${part_package[i]}" != "$package" ] ||
			die "${part_label[i]} and $1 would both be the package $package"
	done
	part_package+=("$package")
}

# Add the directories of artifact DIR whose content is installed.
add_sources() # DIR
{
	local manifest=$1/artifact_manifest.txt line all=0 listed=1 prefixes=()
	[ ! -L "$manifest" ] || die "$manifest: a symbolic link"
	if [ ! -f "$manifest" ]; then
		printf '%s\0' "$1" >>"$work/$part.sources"
		return
	fi
	while IFS= read -r line || [ -n "$line" ]; do
		read -r line <<<"$line" || true
		[ -n "$line" ] || continue
		[[ $line != /* && "/$line/" != */../* && "/$line/" != *//* && "/$line/" != */./* ]] ||
			die "$manifest: no prefix in this directory: $(printf %q "$line")"
		[ -d "$1/$line" ] || continue
		[ "$(realpath -e "$1/$line")" = "$(realpath -e "$1")/$line" ] ||
			die "$manifest: a symbolic link is in the prefix $(printf %q "$line")"
		for other in ${prefixes+"${prefixes[@]}"}; do
			[[ $line/ != "$other"/* && $other/ != "$line"/* ]] ||
				die "$manifest: the prefixes $(printf '%q and %q' "$other" "$line") contain each other"
		done
		prefixes+=("$line")
		printf '%s\0' "$1/$line" >>"$work/$part.sources"
		listed=$((listed + $(find "$1/$line/" -not -type d -printf x | wc -c)))
	done <"$manifest"
	all=$(find "$1/" -not -type d -printf x | wc -c)
	[ "$all" = "$listed" ] || die "$1: outside of the prefixes that $manifest lists: $((all - listed))"
}

# Find the parts of SPLIT.
read_split()
{
	local dir base artifact
	part_of generic
	for dir in "$split"/* "$split"/.[!.]*; do
		[ -e "$dir" ] || [ -L "$dir" ] || continue
		base=${dir##*/}
		[[ -d $dir && ! -L $dir ]] || die "$(printf %q "$dir"): not a directory; is this what kpack split wrote?"
		artifact=$(artifact_of "$base")
		[ -n "$artifact" ] ||
			die "$(printf %q "$dir"): it belongs to no directory NAME_generic next to it"
		[ -e "$dir/artifact_manifest.txt" ] || [ ! -e "$split/${artifact}_generic/artifact_manifest.txt" ] ||
			die "$(printf %q "$dir"): it has no artifact_manifest.txt, and ${artifact}_generic has"
		part_of "${base#"${artifact}"_}"
		add_sources "$dir"
	done
	[ -s "$work/0.sources" ] || die "$split: nothing to pack in a directory NAME_generic"
	[ ${#part_label[@]} -gt 1 ] || die "$split: no architecture: only NAME_generic exists"
}

refuse_first() # WHAT: names on stdin, each ended by a NUL
{
	local first
	if IFS= read -r -d '' first; then
		die "$(printf %q "$first"): $1"
	fi
}

list_part() # INDEX
{
	local i=$1 source
	: >"$work/$i.files"
	: >"$work/$i.dirs"
	: >"$work/$i.odd"
	: >"$work/$i.setuid"
	[ -e "$work/$i.sources" ] || die "${part_label[i]}: nothing is listed in artifact_manifest.txt"
	while IFS= read -r -d '' source; do
		find "$source/" -mindepth 1 -not -type d -printf '%P\0' >>"$work/$i.files"
		find "$source/" -mindepth 1 -type d -printf '%P\0' >>"$work/$i.dirs"
		find "$source/" -not -type d -not -type f -not -type l -print0 >>"$work/$i.odd"
		find "$source/" -type f -perm /6000 -print0 >>"$work/$i.setuid"
	done <"$work/$i.sources"
	[ -s "$work/$i.files" ] || die "${part_label[i]}: no file is in it"
	sort -z -o "$work/$i.files" "$work/$i.files"
	sort -zu -o "$work/$i.dirs" "$work/$i.dirs"
	refuse_first "only files, directories and symbolic links can be packed" <"$work/$i.odd"
	refuse_first "set-user-ID or set-group-ID: it would become root's" <"$work/$i.setuid"
	refuse_first "a name with control characters or a backslash" \
		< <(cat "$work/$i.files" "$work/$i.dirs" | grep -zaE '[[:cntrl:]\\]')
	refuse_first "a name that is not UTF-8" \
		< <(cat "$work/$i.files" "$work/$i.dirs" | LC_ALL=C.UTF-8 grep -zaxv '.*')
	refuse_first "in two prefixes of ${part_label[i]}" < <(uniq -zd "$work/$i.files")
}

# Check that no file is in two parts, or is a directory in another part.
check_parts()
{
	local i twice owners=''
	for i in "${!part_label[@]}"; do
		list_part "$i"
	done
	if IFS= read -r -d '' twice < <(sort -z "$work"/*.files | uniq -zd); then
		for i in "${!part_label[@]}"; do
			grep -zaqxF -e "$twice" "$work/$i.files" && owners+="${owners:+ and }${part_label[i]}"
		done
		die "$(printf %q "$twice"): in $owners"
	fi
	refuse_first "a directory in one part, and none in another" \
		< <(comm -z12 <(sort -zu "$work"/*.files) <(sort -zu "$work"/*.dirs))
}

# Set SOURCE_DATE_EPOCH, the time of everything that is packed.
find_time()
{
	[ -n "${SOURCE_DATE_EPOCH-}" ] ||
		SOURCE_DATE_EPOCH=$(find "$split/" -type f -printf '%T@\n' | sort -n | tail -n 1 | cut -d . -f 1)
	export SOURCE_DATE_EPOCH
}

# Put the parts where they go.  Permissions stay, except that only the owner may write; all can read
# directories.
stage_parts()
{
	local i source sources
	for i in "${!part_label[@]}"; do
		sources=()
		while IFS= read -r -d '' source; do
			sources+=("$source/.")
		done <"$work/$i.sources"
		mkdir -p "$work/stage/$i$prefix"
		# more links to the files of the copy: it keeps hard links between prefixes
		cp -dRl -- "${sources[@]}" "$work/stage/$i$prefix/"
		find "$work/stage/$i" -type d -exec chmod 0755 {} +
		find "$work/stage/$i" -type f -exec chmod go-w {} +
	done
	empty_directory "$split"
}

set_times() # DIR
{
	find "$1" -depth -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

prepare()
{
	begin
	find_time
	read_split
	check_parts
	stage_parts
}
