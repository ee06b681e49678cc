# fish completion for kpackfs

function __kpackfs_mount_options
	# mount options
	echo allow_other
	echo allow_root
	echo arch=
	echo auto_unmount
	echo cache_size=
	echo clone_fd
	echo debug
	echo default_permissions
	echo fsname=
	echo gid=
	echo idle_timeout=
	echo max_threads=
	echo no_sandbox
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

complete -c kpackfs -s h -l help -d 'Show the options'
complete -c kpackfs -l status -d 'Say how a mount is'
complete -c kpackfs -s V -l version -d 'Show versions'
complete -c kpackfs -s f -d 'Stay in the foreground'
complete -c kpackfs -s d -d 'Show every request'
complete -c kpackfs -s q -d 'Log errors only'
complete -c kpackfs -s s -d 'Answer requests in one thread'
complete -c kpackfs -s v -d 'Log more'
complete -c kpackfs -s o -x -a '(__fish_append , (__kpackfs_mount_options))' -d 'Mount options'
