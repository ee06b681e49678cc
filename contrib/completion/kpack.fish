# fish completion for kpack, kpack-pack and kpack-mark

function __kpack_commands
	# subcommands
	echo pack
	echo mark
	echo ls
	echo cat
	echo extract
	echo info
	echo verify
	echo inspect
	echo thin
	echo prune
	echo apply
	echo status
	echo split
	echo merge
	echo split-wheel
	echo detect
	echo report
	echo run
	echo runtime
	echo offload-bundler
	echo offload-packager
	echo bulk-unbundle
	# end
end

function __kpack_mark_commands
	# mark
	echo show
	echo convert
	echo set
	echo check
	echo restore
	echo strip-safe
	# end
end

complete -c kpack -n __fish_use_subcommand -l help -d 'Show the commands'
complete -c kpack -n __fish_use_subcommand -l version -d 'Show the version'
complete -c kpack -n __fish_use_subcommand -l color -x -a 'auto always never' -d 'Whether messages are coloured'
complete -c kpack -n __fish_use_subcommand -f -a '(__kpack_commands)'

complete -c kpack -n '__fish_seen_subcommand_from pack' -l archives-only -d 'Leave binaries alone'
complete -c kpack -n '__fish_seen_subcommand_from pack split' -l archive-dir -x -d 'The directory of the archives'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l in-place -d 'Convert the tree itself'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l undo -d 'Make the tree what it was before'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l allow-missing -d '--undo: without objects in no archive'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l keep-device-code -d 'Leave the device code in binaries'
complete -c kpack -n '__fish_seen_subcommand_from merge pack split thin split-wheel' -l drop-signature -d 'Change signed Windows files, too'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l keep-containers -d 'Compressed bundles can be restored bit for bit'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l group -x -d 'Name of the archives'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l key-prefix -x -d 'Put before every key'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l family -x -d 'Several architectures in one archive'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l scheme -x -a 'none zstd-per-kernel zstd-shared' -d Compression
complete -c kpack -n '__fish_seen_subcommand_from pack' -l level -x -d 'zstd level' -a auto
complete -c kpack -n '__fish_seen_subcommand_from pack' -l effort -x -d 'CPU seconds of --level auto for each GB'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l chunk -x -d 'Bytes of a chunk'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l volume-size -x -d 'Bytes of an archive'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l databases -x -a 'packed plain both' -d 'What becomes of kernel databases'
complete -c kpack -n '__fish_seen_subcommand_from pack verify' -l libraries -x -a 'rocblas hipblaslt hipsparselt aotriton rocfft miopen composablekernel hipkernelprovider aiter hotswap_cache none' -d 'Libraries to look for'
complete -c kpack -n '__fish_seen_subcommand_from pack verify' -l library-rules -r -d 'More libraries'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l split-rocfft -d 'A database for each target'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l rows -d 'An entry for each kernel of rocFFT'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l check -d 'Look for missing files of databases'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l prefer -x -a 'input output' -d 'Which side wins where a path differs'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l runtime -x -a any -d 'Convert even if HIP runtimes refuse it'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l shard -x -d 'This part of the work, I/N'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l input -r -d 'File or tree to pack'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l output -r -d 'Where to'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l group-name -x -d 'Name of the archives'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l gfx-arch-family -x -d 'Name of a family'
complete -c kpack -n '__fish_seen_subcommand_from pack' -l gfx-arches -x -d 'Its architectures'
complete -c kpack -n '__fish_seen_subcommand_from pack ls extract inspect' -l arch -x -d 'Only what these GPUs can load'
complete -c kpack -n '__fish_seen_subcommand_from pack ls extract verify inspect split' -l arch-exact -d 'Only code for these very targets'
complete -c kpack -n '__fish_seen_subcommand_from pack verify' -l jobs -x -d Threads
complete -c kpack -n '__fish_seen_subcommand_from pack extract inspect' -l force -d 'Replace what exists'
complete -c kpack -n '__fish_seen_subcommand_from verify' -l tree -d 'Look for missing files of databases'
complete -c kpack -n '__fish_seen_subcommand_from verify' -l arch -x -d 'Only files that these GPUs need'
complete -c kpack -n '__fish_seen_subcommand_from pack verify' -s q -l quiet -d 'No progress'
complete -c kpack -n '__fish_seen_subcommand_from pack ls info inspect' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from inspect' -l extract -r -d 'Write every image into'
complete -c kpack -n '__fish_seen_subcommand_from inspect' -l kernels -d 'List the kernels'
complete -c kpack -n '__fish_seen_subcommand_from ls' -s l -l long -d 'Sizes and types'
complete -c kpack -n '__fish_seen_subcommand_from cat' -s o -l output -r -d 'Write to a file'
complete -c kpack -n '__fish_seen_subcommand_from extract' -s C -l directory -r -d 'Where to'
complete -c kpack -n '__fish_seen_subcommand_from pack ls cat extract info verify inspect' -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from prune' -l arch -x -d 'Keep only what these GPUs can load'
complete -c kpack -n '__fish_seen_subcommand_from prune' -l arch-exact -d 'Keep only code for these very targets'
complete -c kpack -n '__fish_seen_subcommand_from prune' -s n -l dry-run -d 'Print what would be freed'
complete -c kpack -n '__fish_seen_subcommand_from prune' -l force -d 'Also if no archive would be left'
complete -c kpack -n '__fish_seen_subcommand_from prune' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from prune' -s q -l quiet -d 'Only errors'
complete -c kpack -n '__fish_seen_subcommand_from prune' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l arch -x -d 'The GPUs whose code stays'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l strip-debug -d 'Remove debugging information'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l debug-to -r -d 'Directory for debugging information'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l compress -d 'Write compressed bundles'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l runtime -x -a any -d 'Compress even if HIP runtimes do not read that'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l keep -r -d 'Keep what undoing needs'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l undo -r -d 'Put the originals back'
complete -c kpack -n '__fish_seen_subcommand_from thin' -s n -l dry-run -d 'Print what would be freed'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l libraries -x -a 'rocblas hipblaslt hipsparselt aotriton rocfft miopen composablekernel hipkernelprovider aiter hotswap_cache none' -d 'Libraries to look for'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l library-rules -r -d 'More libraries'
complete -c kpack -n '__fish_seen_subcommand_from thin' -s j -l jobs -x -d 'Threads'
complete -c kpack -n '__fish_seen_subcommand_from thin' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from thin' -s q -l quiet -d 'Only errors'
complete -c kpack -n '__fish_seen_subcommand_from thin' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l policy-dir -r -d 'The policies'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l state-dir -r -d 'The state of each tree'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l topology -r -d 'Where GPUs are looked for'
complete -c kpack -n '__fish_seen_subcommand_from apply' -s n -l dry-run -d 'Print what would be done'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l mounts -d 'Only mount'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l unmount -d 'Only unmount'
complete -c kpack -n '__fish_seen_subcommand_from apply' -l no-mounts -d 'Mount nothing'
complete -c kpack -n '__fish_seen_subcommand_from apply' -s q -l quiet -d 'Only errors'
complete -c kpack -n '__fish_seen_subcommand_from apply' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from status' -l policy-dir -r -d 'The policies'
complete -c kpack -n '__fish_seen_subcommand_from status' -l state-dir -r -d 'The state of each tree'
complete -c kpack -n '__fish_seen_subcommand_from status' -l topology -r -d 'Where GPUs are looked for'
complete -c kpack -n '__fish_seen_subcommand_from status' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from status' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l topology -r -d 'Where GPUs are looked for'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l arch -x -d 'For these GPUs'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l family -d 'Their families'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l group -x -d 'The archives of a group'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l package -x -d 'The packages for a base package'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l dist -x -d 'The extras of a wheel'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l pip -d 'What pip installs'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l apt -d 'What apt installs'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l installed -d 'Which packages to install and remove'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l dpkg-status -r -d 'The list of packages'
complete -c kpack -n '__fish_seen_subcommand_from detect' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from detect' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -s o -l output -r -d 'Directory that gets the wheels'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l group -x -d 'Name of the archives'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l overlay-root -x -d 'Directory in the wheel that gets the archives'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l device-prefix -x -d 'Distributions of device wheels'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l family -x -d 'One wheel for these targets'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l databases -x -a 'plain packed' -d 'Plain, packed, or names of libraries'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l requires -x -d 'Requirement of device wheels'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l prefer -r -d 'Wheel that wins where several differ'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l output-format -x -a 'wheel directory' -d 'Wheels, or unpacked'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l force -d 'Replace existing wheels'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l scheme -x -a 'none zstd-per-kernel zstd-shared' -d Compression
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l level -x -d 'zstd level'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l zip-level -x -d 'Of deflate'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -s j -l jobs -x -d 'Threads'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l tmp-dir -r -d 'Where wheels are unpacked'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l json -d 'Report as JSON'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -s q -l quiet -d 'No progress, no table'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l input -r -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l output-dir -r -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l group-name -x -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l device-package-prefix -x -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l device-requires-dist -x -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l wheel-type -x -a 'torch-fat' -d 'Libraries of torch'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l compression -x -a 'zstd none' -d 'Compression of archives'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l compression-level -x -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l generate-variant-wheel -d 'Also a host wheel that picks device wheels'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l variant-label -x -d 'The end of its name'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l clang-offload-bundler -r -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -s v -l verbose -d 'Another spelling'
complete -c kpack -n '__fish_seen_subcommand_from split-wheel' -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l allow-missing-bundles -d 'Write empty files for targets without an entry'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l bundle-align -x -d 'Where entries begin'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l check-input-archive -d 'Check the IDs of members'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l compress -d 'Compress with zstd'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l compression-level -x -d 'zstd level'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l hip-openmp-compatible -d 'Treat hip and openmp kinds as compatible'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l input -r -d Read
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l inputs -r -d Read
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l list -d 'Print the IDs'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l output -r -d Write
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l outputs -r -d Write
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l targets -x -d IDs
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l type -x -a 'i ii cui hipi d ll bc s o a gch ast' -d 'Of the files'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l unbundle -d 'Take apart'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l verbose -d 'Tell of compressing'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from offload-bundler' -l version -d 'Show the version'
complete -c kpack -n '__fish_seen_subcommand_from bulk-unbundle' -s o -l output-dir -r -d 'Where the files go'
complete -c kpack -n '__fish_seen_subcommand_from bulk-unbundle' -l gfx-arch -x -d 'Only this processor'
complete -c kpack -n '__fish_seen_subcommand_from bulk-unbundle' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l image -x -d 'KEY=VALUE,...'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -s o -l output -r -d 'Write an offload binary'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l archive -d 'Write a static library'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l compress -d 'Compress with zstd'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l compression-level -x -d '1 to 22'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l format-version -x -a '1 2 3' -d 'Version to write'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from offload-packager' -l version -d 'Show the version'

complete -c kpack -n '__fish_seen_subcommand_from mark; and not __fish_seen_subcommand_from (__kpack_mark_commands)' -f -a '(__kpack_mark_commands)'
complete -c kpack -n '__fish_seen_subcommand_from mark' -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from show check' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from convert set' -l kernel-name -x -d 'Key of its objects'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from convert set' -l search-path -x -d 'Where an archive is'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from convert' -l keep-device-code -d 'Leave the device code in the file'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from convert restore set' -l drop-signature -d 'Change signed Windows files, too'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from check' -l arch -x -d 'GPUs that must find their code'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from check' -l arch-exact -d 'Only code for these very targets'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from check' -s v -l verbose -d 'Also binaries without faults'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from restore' -s o -l output -r -d 'Write to another file'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from restore' -l archive -r -d 'Take objects from here'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from restore' -l allow-missing -d 'Leave out what is in no archive'
complete -c kpack -n '__fish_seen_subcommand_from mark; and __fish_seen_subcommand_from strip-safe' -l check -d 'Only find the binaries that need it'

# pack and mark called by their links: their options, without the subcommand
complete -c kpack-pack -w 'kpack pack'
complete -c kpack-mark -w 'kpack mark'
complete -c kpack -n '__fish_seen_subcommand_from run' -l arch -x -d 'Code for these GPUs'
complete -c kpack -n '__fish_seen_subcommand_from run' -l archives -r -d 'Look first into this archive'
complete -c kpack -n '__fish_seen_subcommand_from run' -s v -l verbose -d 'Print where code comes from'
complete -c kpack -n '__fish_seen_subcommand_from run' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from runtime' -l hip -r -d 'This runtime'
complete -c kpack -n '__fish_seen_subcommand_from runtime' -l ask -d 'Also load each runtime'
complete -c kpack -n '__fish_seen_subcommand_from runtime' -l json -d 'As JSON'
complete -c kpack -n '__fish_seen_subcommand_from runtime' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from report' -s o -l output -r -d 'Write the page to'
complete -c kpack -n '__fish_seen_subcommand_from report' -l title -x -d 'Its title'
complete -c kpack -n '__fish_seen_subcommand_from report' -l arch -x -d 'Also the code that stays for these GPUs'
complete -c kpack -n '__fish_seen_subcommand_from report' -l json -d 'Print the figures as JSON'
complete -c kpack -n '__fish_seen_subcommand_from report' -s q -l quiet -d 'No progress and no notes'
complete -c kpack -n '__fish_seen_subcommand_from report' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from split' -l prefix-manifest -d 'INPUT must have a manifest'
complete -c kpack -n '__fish_seen_subcommand_from split' -l name -x -d 'Name of the trees'
complete -c kpack -n '__fish_seen_subcommand_from split' -l gpu-targets -x -d 'Only what these GPUs can load'
complete -c kpack -n '__fish_seen_subcommand_from split' -l family -x -d 'These targets share one tree'
complete -c kpack -n '__fish_seen_subcommand_from split' -l databases -x -a 'plain packed' -d 'Kernel databases: plain or packed'
complete -c kpack -n '__fish_seen_subcommand_from split' -l keys -x -a 'artifact prefix' -d 'Root of the paths in keys'
complete -c kpack -n '__fish_seen_subcommand_from split' -l libraries -x -d 'Libraries to look for, or none'
complete -c kpack -n '__fish_seen_subcommand_from split' -l library-rules -r -d 'More libraries'
complete -c kpack -n '__fish_seen_subcommand_from split' -l level -x -d 'The zstd level'
complete -c kpack -n '__fish_seen_subcommand_from split' -l jobs -x -d 'Threads'
complete -c kpack -n '__fish_seen_subcommand_from split' -l force -d 'Replace existing trees'
complete -c kpack -n '__fish_seen_subcommand_from split' -l json -d 'Report as JSON'
complete -c kpack -n '__fish_seen_subcommand_from split' -s q -l quiet -d 'No progress, no table'
complete -c kpack -n '__fish_seen_subcommand_from split' -l batch-artifact-parent-dir -r -d 'Split every artifact in it'
complete -c kpack -n '__fish_seen_subcommand_from split' -l artifact-dir -r -d 'Same as INPUT'
complete -c kpack -n '__fish_seen_subcommand_from split' -l output-dir -r -d 'Same as OUTPUT'
complete -c kpack -n '__fish_seen_subcommand_from split' -l artifact-prefix -x -d 'Same as --name'
complete -c kpack -n '__fish_seen_subcommand_from split' -l split-databases -x -d 'Same as --libraries'
complete -c kpack -n '__fish_seen_subcommand_from split' -l tmp-dir -r -d 'Not used'
complete -c kpack -n '__fish_seen_subcommand_from split' -l verbose -d 'Not used'
complete -c kpack -n '__fish_seen_subcommand_from split' -l clang-offload-bundler -r -d 'Not used'
complete -c kpack -n '__fish_seen_subcommand_from split' -s h -l help -d 'Show the options'
complete -c kpack -n '__fish_seen_subcommand_from merge' -s o -l output -r -d 'The archive, or the tree, to write'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l group -x -d 'Its group'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l family -x -d 'Its family'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l prefer -r -d 'Take what clashes from this operand'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l scheme -x -a 'none zstd-per-kernel zstd-shared' -d Compression
complete -c kpack -n '__fish_seen_subcommand_from merge' -l level -x -d 'Compress everything again'
complete -c kpack -n '__fish_seen_subcommand_from merge' -s f -l force -d 'Replace OUT when it exists'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l skip-faulty -d 'Leave out what cannot be read'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l sync -d 'Wait until OUT is on the disk'
complete -c kpack -n '__fish_seen_subcommand_from merge' -l json -d 'Print what was done as JSON'
complete -c kpack -n '__fish_seen_subcommand_from merge' -s q -l quiet -d 'Report only faults'
complete -c kpack -n '__fish_seen_subcommand_from merge' -s h -l help -d 'Show the options'
