#!/bin/sh
# Check that --help, the manual pages and the completions have the same options and
# commands, and that the library's page describes everything its headers declare.  Prints
# TAP.
#
# The places of an option:
#   --help        a line of two or more spaces, then "-x, --long" or "--long"; mount
#   options
#                 as "-o name" or "-o name=VALUE"; kpack's global options in its usage
#                 line
#   kpackfs.1     ".It Fl -long"
#   mount.kpackfs.8  ".It Fl o Cm name" or ".It Cm name"
#   kpack.1       global options; it names the page of each subcommand
#   kpack-NAME.1  the whole page; if NAME has subcommands of its own, a section for each
#   completions   bash, zsh: between "NAME)" and ";;" ("global)": without a subcommand;
#                 "mark-show)": mark's subcommand show)
#                 fish: "-l long" on lines that name the subcommand, or none
set -u
cd "$(dirname "$0")/.." || exit 1
bin=${KPACK_BIN:-build/release}
comp=contrib/completion

n=0
failed=0
# same DESCRIPTION WANTED FOUND
same()
{
	n=$((n + 1))
	if [ "$2" = "$3" ] && [ -n "$2" ]; then
		echo "ok $n - $1"
		return
	fi
	echo "not ok $n - $1"
	[ -n "$2" ] || echo "# --help has none"
	for word in $2; do
		echo "$3" | grep -qxF -e "$word" || echo "#   missing: $word"
	done
	for word in $3; do
		echo "$2" | grep -qxF -e "$word" || echo "#   not in --help: $word"
	done
	failed=1
}

help_options() # PROGRAM...
{
	"$@" --help 2>/dev/null |
		sed -nE 's/^ {2,}(-[[:alnum:]], )?(--[[:alnum:]][[:alnum:]-]*).*/\2/p' | sort -u
}

# Print the options of the page on stdin.
page_options()
{
	grep '^\.It ' | grep -oE 'Fl -[[:alnum:]][[:alnum:]-]*' | sed 's/^Fl /-/' | sort -u
}

page_section() # NAME: the .Ss section of that name, from stdin
{
	awk -v name="$1" '
		/^\.S[hs] / { inside = ($0 == ".Ss " name || $0 == ".Ss kpack " name) }
		inside'
}

case_options() # NAME FILE: bash and zsh
{
	awk -v name="$1" '
		$0 ~ "^[[:space:]]*([a-z|]+[|])?" name "([|][a-z|]+)?[)]" { inside = 1 }
		inside
		/;;/ { inside = 0 }' "$2" 2>/dev/null |
		grep -oE -e '--[[:alnum:]][[:alnum:]-]*' | sort -u
}

fish_options() # PROGRAM NAME FILE; NAME global: lines without a subcommand
{
	if [ "$2" = global ]; then
		grep -E "^complete -c $1 " "$3" 2>/dev/null | grep -v __fish_seen_subcommand_from
	else
		grep -E "^complete -c $1 .*__fish_seen_subcommand_from ([a-z ]* )?$2[ ']" "$3" 2>/dev/null
	fi | grep -oE -e ' -l [[:alnum:]][[:alnum:]-]*' | sed 's/^ -l /--/' | sort -u
}

# ---- kpackfs ----

want=$(help_options "$bin/kpackfs")
same "kpackfs: kpackfs.1" "$want" "$(page_options <kpackfs.1)"
same "kpackfs: kpackfs.bash" "$want" "$(case_options global $comp/kpackfs.bash)"
same "kpackfs: _kpackfs" "$want" "$(case_options global $comp/_kpackfs)"
same "kpackfs: kpackfs.fish" "$want" "$(fish_options kpackfs global $comp/kpackfs.fish)"

want=$("$bin/kpackfs" --help 2>/dev/null |
	sed -nE 's/^ {2,}-o ([a-z][a-z_0-9]*).*/\1/p' | sort -u)
same "kpackfs -o: mount.kpackfs.8" "$want" "$(grep -E '^\.It (Fl o )?Cm ' fs/mount.kpackfs.8 |
	sed -E 's/^\.It (Fl o )?Cm ([a-z][a-z_0-9]*).*/\2/' | sort -u)"
# the completions have the names in one list, as "name" or "name="
list_names()
{
	sed -n '/# mount options/,/# end/p' "$1" 2>/dev/null |
		sed -nE 's/^[[:space:]]*(echo )?([a-z][a-z_0-9]*)=?$/\2/p' | sort -u
}
for file in kpackfs.bash _kpackfs kpackfs.fish; do
	same "kpackfs -o: $file" "$want" "$(list_names $comp/$file)"
done

# ---- kpack ----

page=$(cat packer/kpack.1 2>/dev/null)
commands=$("$bin/kpack" --help 2>/dev/null | sed -nE 's/^  ([a-z][a-z-]*)  +[^ ].*/\1/p' | sort -u)

same "kpack: subcommands in kpack.1" "$commands" \
	"$(echo "$page" | sed -nE 's/^\.It Xr kpack-([a-z-]*) 1$/\1/p' | sort -u)"
for file in kpack.bash _kpack kpack.fish; do
	same "kpack: subcommands in $file" "$commands" \
		"$(sed -n '/# subcommands/,/# end/p' $comp/$file 2>/dev/null |
			sed -nE "s/^[[:space:]]*(echo |')?([a-z-]+)(:.*)?\$/\2/p" | sort -u)"
done

# the usage line has them, as "[--help]"
want=$("$bin/kpack" --help 2>/dev/null | sed -n '1s/^usage: //p' | grep -oE -e '--[a-z-]+' | sort -u)
same "kpack: global options in kpack.1" "$want" "$(echo "$page" | page_options)"
same "kpack: global options in kpack.bash" "$want" "$(case_options global $comp/kpack.bash)"
same "kpack: global options in _kpack" "$want" "$(case_options global $comp/_kpack)"
same "kpack: global options in kpack.fish" "$want" "$(fish_options kpack global $comp/kpack.fish)"

own_commands() # NAME: its subcommands
{
	"$bin/kpack" "$1" --help 2>/dev/null | sed -n '/^commands:/,$s/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' | sort -u
}

listed() # NAME FILE: the names between "# NAME" and "# end"
{
	sed -n "/# $1\$/,/# end/p" "$2" 2>/dev/null |
		sed -nE "s/^[[:space:]]*(echo |')?([a-z-]+)(:.*)?\$/\2/p" | sort -u
}

# A command with subcommands: its page has a section for each of them
for name in $commands; do
	own=$(own_commands "$name")
	[ -n "$own" ] || continue
	page=$(cat "packer/kpack-$name.1")
	same "kpack $name: subcommands in kpack-$name.1" "$own" \
		"$(echo "$page" | sed -nE 's/^\.Ss ([a-z-]+)$/\1/p' | sort -u)"
	for file in kpack.bash _kpack kpack.fish; do
		same "kpack $name: subcommands in $file" "$own" "$(listed "$name" $comp/$file)"
	done
	for sub in $own; do
		want=$(help_options "$bin/kpack" "$name" "$sub")
		same "kpack $name $sub: kpack-$name.1" "$want" "$(echo "$page" | page_section "$sub" | page_options)"
		same "kpack $name $sub: kpack.bash" "$want" "$(case_options "$name-$sub" $comp/kpack.bash)"
		same "kpack $name $sub: _kpack" "$want" "$(case_options "$name-$sub" $comp/_kpack)"
		# --help belongs to the command itself
		same "kpack $name $sub: kpack.fish" "$want" "$({
			fish_options kpack "$sub" $comp/kpack.fish
			echo --help
		} | sort -u)"
	done
done

for name in $commands; do
	want=$(help_options "$bin/kpack" "$name")
	same "kpack $name: kpack-$name.1" "$want" "$(if [ -z "$(own_commands "$name")" ]; then
		cat "packer/kpack-$name.1"
	else
		awk '/^\.S[hs] / { inside = /^\.Ss / } !inside' "packer/kpack-$name.1"
	fi | page_options)"
	same "kpack $name: kpack.bash" "$want" "$(case_options "$name" $comp/kpack.bash)"
	same "kpack $name: _kpack" "$want" "$(case_options "$name" $comp/_kpack)"
	same "kpack $name: kpack.fish" "$want" "$(fish_options kpack "$name" $comp/kpack.fish)"
done
for name in pack mark; do
	same "kpack-$name is kpack $name" "$(help_options "$bin/kpack" $name)" \
		"$(help_options "$bin/kpack-$name")"
done

# ---- the library ----

# functions, types, constants; not the tags of opaque types
api_names() { grep -oE '\b(kpackx?_[a-z0-9_]+|KPACK_[A-Z0-9_]*[A-Z0-9])\b' | sort -u; }
declared=$(cat core/rocm_kpack/*.h | perl -0pe '
	s{/\*.*?\*/}{}gs; s/^#\s*include.*$//gm; s/typedef struct \w+ \*/typedef /g' | api_names)
described=$(sed -E '/^\.(In|Dt) /d; s/KPACK_ERROR_(\?| ,)//g; s/kpack_search_paths//g' core/*.3 | api_names)
same "librocm_kpack: its pages" "$declared" "$described"
same "librocm_kpack: variables of the environment" \
	"$(cat core/*/*.c | grep -oE '"ROCM_KPACK_[A-Z_]+"' | tr -d '"' | sort -u)" \
	"$(sed -nE 's/^\.It Ev (ROCM_KPACK_[A-Z_]+)$/\1/p' core/*.3 | sort -u)"
same "librocm_kpack: macros" \
	"$(grep -oE 'defined\(ROCM_KPACK_[A-Z]+\)|ROCM_KPACK_EXPORTS' core/rocm_kpack/kpack_export.h |
		grep -oE 'ROCM_KPACK_[A-Z]+' | sort -u)" \
	"$(sed -nE 's/^\.Dv (ROCM_KPACK_[A-Z]+).*/\1/p' core/*.3 | sort -u)"

echo "1..$n"
exit $failed
