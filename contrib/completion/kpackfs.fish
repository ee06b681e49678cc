# fish completion for kpackfs

function __kpackfs_mount_options
	# mount options
	echo allow_other
	echo allow_root
	echo arch=
	echo arch_exact
	echo auto_unmount
	echo bundles
	echo cache_size=
	echo clone_fd
	echo debug
	echo default_permissions
	echo fsname=
	echo gid=
	echo idle_timeout=
	echo max_threads=
	echo no_ahead
	echo no_sandbox
	echo nonempty
	echo open
	echo poll=
	echo preload=
	echo ro
	echo source=
	echo subdir=
	echo subtype=
	echo threads=
	echo topology=
	echo uid=
	echo umask=
	echo xattr
	# end
end

function __kpackfs_arches
	# architectures
	string split ' ' \
		'auto all' \
		'gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801' \
		'gfx802 gfx803 gfx805 gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909' \
		'gfx90a gfx90c gfx940 gfx941 gfx942 gfx950 gfx1010 gfx1011 gfx1012' \
		'gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100' \
		'gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154 gfx1170' \
		'gfx1171 gfx1172 gfx1200 gfx1201 gfx1250 gfx1250-strict gfx1251 gfx1310'
	# end
end

# Print candidates for the last option of a list, each with the options before it
function __kpackfs_list
	set -l token (string replace -r '^-o' '' -- (commandline -ct))
	# no word at all would make none of what is put together with it
	set -l before (string match -r '^.*,' -- $token; or echo)
	set -l last (string replace -r '^.*,' '' -- $token)
	switch $last
		case 'arch=*'
			printf '%s\n' {$before}arch=(__kpackfs_arches)
		case 'source=*' 'topology=*'
			set -l name (string replace -r '=.*' '' -- $last)
			set -l path (string replace -r '^[^=]*=' '' -- $last)
			printf '%s\n' {$before}$name=(__fish_complete_path $path | string replace -r '\t.*' '')
		case '*'
			printf '%s\n' {$before}(__kpackfs_mount_options)
			# an architecture after another one goes on with the list
			if string match -qr '(^|,)arch=([a-z0-9:+-]+,)+$' -- "$before"
				printf '%s\n' {$before}(__kpackfs_arches)
			end
	end
end

complete -c kpackfs -s h -l help -d 'Show the options'
complete -c kpackfs -l in-place -d 'Show what was packed at its old places in a tree'
complete -c kpackfs -l undo -d 'Unmount what is mounted in a tree'
complete -c kpackfs -l status -d 'Say how a mount is'
complete -c kpackfs -s V -l version -d 'Show versions'
complete -c kpackfs -s f -d 'Stay in the foreground'
complete -c kpackfs -s d -d 'Show every request'
complete -c kpackfs -s q -d 'Log errors only'
complete -c kpackfs -s s -d 'Answer requests in one thread'
complete -c kpackfs -s v -d 'Log more'
complete -c kpackfs -s o -x -a '(__kpackfs_list)' -d 'Mount options'
