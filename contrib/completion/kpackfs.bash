# bash completion for kpackfs

_kpackfs_mount_options=(
	# mount options
	allow_other
	allow_root
	arch=
	arch_exact
	auto_unmount
	bundles
	cache_size=
	clone_fd
	debug
	default_permissions
	fsname=
	gid=
	idle_timeout=
	max_threads=
	no_ahead
	no_sandbox
	nonempty
	open
	poll=
	preload=
	ro
	source=
	subdir=
	subtype=
	threads=
	topology=
	uid=
	umask=
	xattr
	# end
)

_kpackfs_arches=(
	# architectures
	auto all
	gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802
	gfx803 gfx805 gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c
	gfx940 gfx941 gfx942 gfx950 gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031
	gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150
	gfx1151 gfx1152 gfx1153 gfx1154 gfx1170 gfx1171 gfx1172 gfx1200 gfx1201 gfx1250
	gfx1250-strict gfx1251 gfx1310
	# end
)

_kpackfs_options() # KIND
{
	case $1 in
	global) echo --help --in-place --status --undo --version ;;
	esac
}

# Print paths that begin with PATH, each as one word of a shell: a name may be a command.
_kpackfs_quoted() # -f|-d NAME PATH
{
	local path
	while IFS= read -r path; do
		printf '%s%q\n' "$2=" "$path"
	done < <(compgen "$1" -- "$3")
}

# Print candidates for the last option of LIST, in which commas separate options
_kpackfs_parts() # LIST
{
	local part=${1##*,} before=${1%"${1##*,}"}
	case $part in
	arch=*) compgen -P arch= -W "${_kpackfs_arches[*]}" -- "${part#*=}" ;;
	source=*) _kpackfs_quoted -f source "${part#*=}" ;;
	topology=*) _kpackfs_quoted -d topology "${part#*=}" ;;
	*)
		compgen -W "${_kpackfs_mount_options[*]}" -- "$part"
		# an architecture after another one goes on with the list
		[[ $before =~ (^|,)arch=([a-z0-9:+-]+,)+$ ]] &&
			compgen -W "${_kpackfs_arches[*]}" -- "$part"
		;;
	esac
}

_kpackfs_paths()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_kpackfs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT}
	# bash makes words of its own at "=" and ":"; blanks make ours
	local word=${line##*[[:space:]]} before=${line%"${line##*[[:space:]]}"}
	before=${before%"${before##*[![:space:]]}"}
	if [[ ${before##*[[:space:]]} == -o ]]; then
		local list=${word%"${word##*,}"} keep
		mapfile -t COMPREPLY < <(_kpackfs_parts "$word")
		# what bash will replace is only what is behind the last "=" or ":"
		keep=${word%"${word##*[=:]}"}
		COMPREPLY=("${COMPREPLY[@]/#/"$list"}")
		COMPREPLY=("${COMPREPLY[@]#"$keep"}")
		compopt -o nospace 2>/dev/null
	elif [[ ${before##*[[:space:]]} == --@(status|in-place|undo) ]]; then
		_kpackfs_paths -d "$cur"
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-d -f -n -o -q -r -s -v $(_kpackfs_options global)" -- "$cur")
	else
		_kpackfs_paths -f "$cur"
	fi
}

complete -F _kpackfs kpackfs
