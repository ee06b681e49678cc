# fish completion for kpackfs

function __kpackfs_mount_options
	# mount options
	echo source=
	echo allow_other
	echo uid=
	echo gid=
	echo umask=
	echo open
	echo xattr
	# end
end

complete -c kpackfs -l help -d 'Show the options'
complete -c kpackfs -l version -d 'Show the version'
complete -c kpackfs -s f -d 'Stay in the foreground'
complete -c kpackfs -s d -d 'Show every request'
complete -c kpackfs -s o -x -a '(__fish_append , (__kpackfs_mount_options))' -d 'Mount options'
