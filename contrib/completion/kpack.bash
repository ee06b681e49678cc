# bash completion for kpack, kpack-pack and kpack-mark

_kpack_commands=(
	# subcommands
	pack
	mark
	ls
	cat
	extract
	info
	verify
	inspect
	thin
	prune
	apply
	status
	split
	merge
	split-wheel
	detect
	report
	run
	runtime
	offload-bundler
	offload-packager
	bulk-unbundle
	# end
)

_kpack_mark_commands=(
	# mark
	show
	convert
	set
	check
	restore
	strip-safe
	# end
)

_kpack_options() # COMMAND
{
	case $1 in
	pack) echo --archives-only --archive-dir --in-place --undo --allow-missing --keep-device-code --keep-containers --drop-signature --group \
		--key-prefix --arch --arch-exact --family --scheme --level --effort --chunk --volume-size --databases --libraries \
		--library-rules --split-rocfft --rows --check --prefer --runtime --shard --jobs --force --json \
		--quiet --input --output --group-name --gfx-arch-family --gfx-arches --help ;;
	mark) echo --help ;;
	mark-show) echo --json --help ;;
	mark-convert) echo --kernel-name --search-path --keep-device-code --drop-signature --help ;;
	mark-set) echo --kernel-name --search-path --drop-signature --help ;;
	mark-check) echo --arch --arch-exact --json --verbose --help ;;
	mark-restore) echo --output --archive --allow-missing --drop-signature --help ;;
	mark-strip-safe) echo --check --help ;;
	split) echo --prefix-manifest --name --archive-dir --gpu-targets --arch-exact --family --databases --keys \
		--libraries --library-rules --level --jobs --drop-signature --force --json --quiet --batch-artifact-parent-dir \
		--artifact-dir --output-dir --artifact-prefix --split-databases --tmp-dir --verbose \
		--clang-offload-bundler --help ;;
	merge) echo --output --group --family --prefer --scheme --level --force --drop-signature --skip-faulty \
		--sync --json --quiet --help ;;
	ls) echo --long --arch --arch-exact --json --help ;;
	cat) echo --output --help ;;
	extract) echo --arch --arch-exact --directory --force --help ;;
	info) echo --json --help ;;
	verify) echo --jobs --quiet --tree --arch --arch-exact --libraries --library-rules --help ;;
	inspect) echo --arch --arch-exact --extract --force --json --kernels --help ;;
	split-wheel) echo --output --group --overlay-root --device-prefix --family --databases \
		--requires --prefer --output-format --drop-signature --force --scheme --level \
		--zip-level --jobs --tmp-dir --json --quiet --input --output-dir \
		--group-name --device-package-prefix --device-requires-dist \
		--wheel-type --compression --compression-level \
		--generate-variant-wheel --variant-label --clang-offload-bundler \
		--verbose --help ;;
	offload-bundler) echo --allow-missing-bundles --bundle-align --check-input-archive --compress \
		--compression-level --hip-openmp-compatible --input --inputs --list --output --outputs \
		--targets --type --unbundle --verbose --help --version ;;
	bulk-unbundle) echo --output-dir --gfx-arch --help ;;
	offload-packager) echo --image --output --archive --compress --compression-level --format-version \
		--help --version ;;
	prune) echo --arch --arch-exact --dry-run --force --json --quiet --help ;;
	thin) echo --arch --strip-debug --debug-to --drop-signature --keep --undo --compress --runtime --dry-run --libraries --library-rules --jobs --json --quiet --help ;;
	apply) echo --policy-dir --state-dir --topology --dry-run --mounts --no-mounts --unmount --quiet --help ;;
	status) echo --policy-dir --state-dir --topology --json --help ;;
	detect) echo --topology --arch --family --group --package --dist --pip --apt --installed --dpkg-status --json --help ;;
	run) echo --arch --archives --verbose --help ;;
	runtime) echo --hip --ask --json --help ;;
	report) echo --output --title --arch --json --quiet --help ;;
	global) echo --help --version --color ;;
	esac
}

# Offer those of the words on stdin, one per line, that begin with CURRENT.  Archives say
# some of these words: compgen -W would run commands in them, and so would the command
# line if they got there without quotes.
_kpack_offer() # CURRENT
{
	local word quoted
	while IFS= read -r word; do
		printf -v quoted %q "$word"
		[[ $word == "$1"* || $quoted == "$1"* ]] && COMPREPLY+=("$quoted")
	done
}

_kpack()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=global i first=1

	if [[ ${COMP_WORDS[0]##*/} == kpack-* ]]; then
		command=${COMP_WORDS[0]##*/kpack-}
		command=${command#kpack-}
	else
		for ((i = 1; i < COMP_CWORD; i++)); do
			if [[ ${COMP_WORDS[i]} != -* ]]; then
				command=${COMP_WORDS[i]}
				first=$((i + 1))
				break
			fi
		done
	fi

	if [[ $command == mark ]]; then
		for ((i = first; i < COMP_CWORD; i++)); do
			if [[ ${COMP_WORDS[i]} != -* ]]; then
				command=mark-${COMP_WORDS[i]}
				break
			fi
		done
	fi

	COMPREPLY=()
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_kpack_options "$command")" -- "$cur")
		return
	fi
	local words=()
	case $command in
	global) words=("${_kpack_commands[@]}") ;;
	mark) words=("${_kpack_mark_commands[@]}") ;;
	*)
		case $prev in
		--scheme) words=(none zstd-per-kernel zstd-shared) ;;
		--databases) words=(packed plain both) ;;
		--libraries) words=(rocblas hipblaslt hipsparselt aotriton rocfft miopen composablekernel
			hipkernelprovider aiter hotswap_cache none) ;;
		--prefer) words=(input output) ;;
		--keys) words=(artifact prefix) ;;
		--runtime) words=(any) ;;
		# the keys, then the architectures, of the archive on the line
		*)
			if [[ $command == cat && $COMP_CWORD -gt $first && -e ${COMP_WORDS[first]} ]]; then
				local field=1 program=${COMP_WORDS[0]}
				[[ $COMP_CWORD -gt $((first + 1)) ]] && field=2
				# nothing of the current directory runs before it is entered
				[[ $program == /* ]] || program=kpack
				mapfile -t words < <("$program" ls -- "${COMP_WORDS[first]}" 2>/dev/null | cut -f $field | sort -u)
			fi
			;;
		esac
		;;
	esac
	if [[ ${#words[@]} -gt 0 ]]; then
		_kpack_offer "$cur" < <(printf '%s\n' "${words[@]}")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -F _kpack kpack kpack-pack kpack-mark
