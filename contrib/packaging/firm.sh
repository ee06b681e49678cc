#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # results are for the callers
# Sourced by other scripts: paths that root may rely on.
#
# A path is firm if no user but root can put another file in the place of a component: each
# component is in a directory that belongs to root and that no other user may write, or
# that is sticky and the component belongs to root, too.  What root writes below such a path is what was checked.
#
# Only root is guarded, and not in a user namespace: what others do with their own power is
# theirs.

firm_guarded=''
[ "$(id -u)" -ne 0 ] || ! grep -q ' 4294967295$' /proc/self/uid_map || firm_guarded=1

# firm_foreign PATH [below]: has another user mounted a FUSE file system at PATH, or below it?
# The table of mounts answers at once; a look at the file system itself can take for ever.
firm_foreign()
{
	[ -n "$firm_guarded" ] && grep -q ' - fuse' /proc/self/mountinfo || return 1
	PLACE=$1 BELOW=${2-} awk '
		function plain(text, out, code) {
			while (match(text, /\\[0-7][0-7][0-7]/)) {
				code = substr(text, RSTART + 1, 1) * 64 + substr(text, RSTART + 2, 1) * 8 + substr(text, RSTART + 3, 1)
				out = out substr(text, 1, RSTART - 1) sprintf("%c", code)
				text = substr(text, RSTART + 4)
			}
			return out text
		}
		{
			for (i = 7; i < NF && $i != "-"; i++)
				;
			options = "," $(i + 3)
			# what is mounted last at a place hides the rest
			foreign[plain($5)] = $(i + 1) ~ /^fuse/ && match(options, /,user_id=[0-9]+/) &&
				substr(options, RSTART + 9, RLENGTH - 9) + 0 != 0
		}
		END {
			for (place in foreign)
				if (foreign[place] && (place == ENVIRON["PLACE"] ||
				    (ENVIRON["BELOW"] != "" && index(place, ENVIRON["PLACE"] "/") == 1)))
					exit 0
			exit 1
		}' /proc/self/mountinfo
}

# firm_directory OWNER GROUP MODE [OWNER2]: may no other user replace an entry, which is
# OWNER2's, of such a directory?  Without OWNER2 there is no entry yet.
firm_directory()
{
	[ "$1" -eq 0 ] || return 1
	if [ $((0x$3 & 0002)) -eq 0 ]; then
		[ $((0x$3 & 0020)) -ne 0 ] && [ "$2" -ne 0 ] || return 0
	fi
	[ $((0x$3 & 01000)) -ne 0 ] && [ "${4-none}" = 0 ]
}

# firm_follow PATH: set firm_path to PATH, absolute and without symbolic links, and
# firm_loose to the first component that is not firm, or to "".  Components that do not
# exist are kept.  False if a link on the way is not firm, or in a file system that another
# user has mounted: nobody can rely on where it leads.
firm_follow()
{
	firm_rest=$1 firm_path='' firm_loose='' firm_links=0
	case $1 in
	/*) ;;
	*)
		firm_rest=$(pwd -P && echo .) # a name may end with a newline
		firm_rest=${firm_rest%??}/$1
		;;
	esac
	while [ -n "$firm_rest" ]; do
		firm_name=${firm_rest%%/*}
		firm_rest=${firm_rest#"$firm_name"} && firm_rest=${firm_rest#/}
		case $firm_name in
		'' | .) ;;
		..) firm_path=${firm_path%/*} ;;
		*) firm_step || return 1 ;;
		esac
	done
	[ -n "$firm_guarded" ] && [ -z "$firm_loose" ] || return 0
	# a file system of another user's has at any time whatever that user wants
	case ,$(findmnt -nro OPTIONS -T "${firm_path%/*}/" 2>/dev/null), in
	*,user_id=0,*) ;;
	*,user_id=*) firm_loose=${firm_path:-/} ;;
	esac
}

# One component further, to firm_name.
firm_step()
{
	firm_entry=$firm_path/$firm_name
	if firm_foreign "$firm_entry"; then
		firm_loose=$firm_entry firm_path=$firm_entry
		return 1
	fi
	# shellcheck disable=SC2046 # numbers
	set -- $(stat -c '%u %g %f' -- "${firm_path:-/}" "$firm_entry" 2>/dev/null)
	if [ -n "$firm_guarded" ] && [ -z "$firm_loose" ] && [ $# -gt 0 ]; then
		firm_directory "$1" "$2" "$3" ${4+"$4"} || firm_loose=$firm_entry
	fi
	if [ $# -ne 6 ] || [ $((0x$6 & 0170000)) -ne $((0120000)) ]; then
		firm_path=$firm_entry
		return
	fi
	firm_links=$((firm_links + 1))
	if [ -n "$firm_loose" ] || [ $firm_links -gt 40 ] || { [ -n "$firm_guarded" ] && [ "$4" -ne 0 ]; }; then
		firm_loose=$firm_entry
		return 1
	fi
	firm_target=$(readlink -n -- "$firm_entry" && echo .) && firm_target=${firm_target%.}
	case $firm_target in /*) firm_path='' ;; esac
	firm_rest=$firm_target/$firm_rest
}

# firm_check PATH: as firm_follow; false if PATH is not firm, and firm_why says so.
firm_check()
{
	firm_follow "$1" && [ -z "$firm_loose" ] && return
	firm_why="$firm_loose: a user other than root can put something else in its place: only root should own its \
directory and write there"
	return 1
}
