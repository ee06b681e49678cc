# bash completion for kpackfs

_kpackfs_mount_options=(
	# mount options
	allow_other
	allow_root
	arch=
	auto_unmount
	cache_size=
	clone_fd
	debug
	default_permissions
	fsname=
	gid=
	idle_timeout=
	max_threads=
	no_sandbox
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

_kpackfs_options() # KIND
{
	case $1 in
	global) echo --help --status --version ;;
	esac
}

_kpackfs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	# bash makes words of its own at "=": the option before it is not to be completed
	if [[ $prev == -o ]]; then
		local last=${cur##*,} before=
		[[ $cur == *,* ]] && before=${cur%,*},
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "${_kpackfs_mount_options[*]}" -- "$last")
		compopt -o nospace 2>/dev/null
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "-d -f -n -o -q -r -s -v $(_kpackfs_options global)" -- "$cur")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -F _kpackfs kpackfs
