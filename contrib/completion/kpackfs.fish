# fish completion for kpackfs

set -l names \
	# mount options
	source= \
	allow_other \
	uid= \
	gid= \
	umask= \
	open \
	xattr
	# end

complete -c kpackfs -l help -d 'Show the options'
complete -c kpackfs -l version -d 'Show the version'
complete -c kpackfs -s f -d 'Stay in the foreground'
complete -c kpackfs -s d -d 'Show every request'
complete -c kpackfs -s o -x -a "(__fish_append , $names)" -d 'Mount options'
