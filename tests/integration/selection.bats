#!/usr/bin/env bats
# What --arch, --gpu-targets and their relatives choose: what a GPU can load, in every program.

# bats file_tags=single

bats_require_minimum_version 1.5.0
load packing

built=gfx90a:xnack+,gfx90a:xnack-,gfx1100,gfx11-generic,gfx906,gfx9-generic,gfx1201,amdgcnspirv

# GPU and what it can load of that
choices() {
	cat <<-'END'
		gfx1100 amdgcnspirv gfx11-generic gfx1100
		gfx1151 amdgcnspirv gfx11-generic
		gfx11-generic amdgcnspirv gfx11-generic
		gfx906 amdgcnspirv gfx9-generic gfx906
		gfx900:xnack+ amdgcnspirv gfx9-generic
		gfx90a amdgcnspirv gfx90a:xnack+ gfx90a:xnack-
		gfx90a:sramecc+:xnack- amdgcnspirv gfx90a:xnack-
		gfx1200 amdgcnspirv
		gfx1201,gfx1103 amdgcnspirv gfx11-generic gfx1201
		amdgcnspirv amdgcnspirv
	END
}

words() { sort -u | paste -sd ' '; }

# A machine with GPUs of these versions, as its driver reports them, for one command
with_gpus() { # VERSION... -- COMMAND...
	local versions=()
	while [ "$1" != -- ]; do
		versions+=("$1")
		shift
	done
	shift
	VERSIONS="${versions[*]}" unshare -m bash -c '
		mount -t tmpfs none /sys/class
		i=0
		for v in $VERSIONS; do
			mkdir -p "/sys/class/kfd/kfd/topology/nodes/$i"
			echo "gfx_target_version $v" >"/sys/class/kfd/kfd/topology/nodes/$i/properties"
			i=$((i + 1))
		done
		exec "$@"' - "$@"
}

@test "every program chooses the same" {
	mkdir -p in/lib
	mkfat --bundles 2 --arches $built in/lib/a.so
	kpack pack -q in all
	while read -r list want; do
		kpack pack -q --arch "$list" in out
		[ "$(kpack ls out/.kpack | cut -f 2 | words)" = "$want" ]
		kpack mark check --arch "$list" out
		[ "$(kpack ls --arch "$list" all/.kpack | cut -f 2 | words)" = "$want" ]
		kpack extract --arch "$list" all/.kpack -C got
		[ "$(find got -type f -printf '%f\n' | sed 's/#1//; s/\.[a-z]*$//' | words)" = "$want" ]
		kpack inspect --arch "$list" --extract seen in/lib/a.so
		(cd seen && find . -type f -printf '%f\n') | sed 's/#1//; s/\.[a-z]*$//' | words >seen.arches
		[ "$(cat seen.arches)" = "$want" ]
		# which ignores features
		if [[ $list != *:* ]]; then
			kpack split -q --gpu-targets "$list" --name t in trees
			[ "$(cd trees && ls | sed 's/t_//; /^generic$/d' | words)" = "$want" ]
			kpack split -q --gpu-targets "${list//,/;}" --name t all again
			[ "$(cd again && ls | sed 's/t_//; /^generic$/d' | words)" = "$want" ]
			kpack split -q --gpu-targets "$list" --name t all/.kpack/*.kpack archives
			[ "$(kpack ls archives | cut -f 2 | words)" = "$want" ]
		fi
		rm -r out got seen trees again archives 2>/dev/null || true
	done < <(choices)
}

@test "pack: only the generic code of a GPU, alone and beside another library" {
	mkdir -p in/lib
	mkfat --arches gfx9-generic,gfx11-generic in/lib/a.so
	kpack pack -q --arch gfx1100 in one
	[ "$(ls one/.kpack)" = in_gfx11-generic.kpack ]
	mkfat --seed 2 --arches gfx1100,gfx90a in/lib/b.so
	kpack pack -q --arch gfx1100 in two
	[ "$(ls two/.kpack | paste -sd ' ')" = "in_gfx11-generic.kpack in_gfx1100.kpack" ]
	kpack mark check --arch gfx1100 two
	# what is given by its own name
	kpack pack -q --arch gfx11-generic in three
	[ "$(ls three/.kpack)" = in_gfx11-generic.kpack ]
	kpack pack -q --gfx-arch-family rdna3 --gfx-arches gfx1100,gfx11-generic in four
	[ "$(ls four/.kpack)" = in-rdna3.kpack ]
}

@test "what a GPU never had is no loss, what it would lose is an error" {
	mkdir -p in/lib
	mkfat --arches gfx1100,gfx11-generic in/lib/a.so
	mkfat --seed 2 --arches gfx942 in/lib/b.so
	kpack pack -q --arch gfx1100 --arch-exact in out
	[ "$(ls out/.kpack)" = in_gfx1100.kpack ]
	kpack mark check --arch gfx1100 --arch-exact out/lib/a.so
	# one of its two containers has generic code only
	mkfat --seed 3 --bundles 2 --ragged --arches gfx1100,gfx11-generic in/lib/c.so
	fails "in/lib/c.so: gfx1100 would lose its code: what it loads is for gfx11-generic" \
		--arch gfx1100 --arch-exact in out2
	! grep -q 'lib/[ab].so' refused.err
	[ ! -e out2 ]
	run -1 kpack split --gpu-targets gfx1100 --arch-exact in trees
	[[ "$output" == *"c.so: gfx1100 would lose its code"* ]]
	[ -z "$(ls trees)" ]
	kpack pack -q --arch gfx1100,gfx11-generic --arch-exact in out2
	kpack pack -q --arch gfx942 --arch-exact in out3
	# nothing is converted
	kpack pack -q --archives-only --arch gfx1100 --arch-exact in out4
	[ "$(ls out4/.kpack)" = in_gfx1100.kpack ]
}

@test "a GPU with a feature on or off loses what it has for one of them" {
	mkdir -p in/lib
	mkfat --arches gfx90a,gfx90a:xnack- in/lib/a.so
	kpack pack -q --arch gfx90a --arch-exact in out
	[ "$(ls out/.kpack)" = in_gfx90a.kpack ]
	mkfat --arches gfx90a:xnack+,gfx90a:xnack- in/lib/a.so
	fails "a.so: gfx90a would lose its code" --arch gfx90a --arch-exact in out2
	fails "a.so: gfx90a would lose its code" --arch gfx90a,gfx90a:xnack+ --arch-exact in out2
	kpack pack -q --arch gfx90a:xnack+ --arch-exact in out2
	[ "$(ls out2/.kpack)" = in_gfx90a:xnack+.kpack ]
}

@test "mark check --arch: each container has what the GPU would load" {
	mkdir -p in/lib
	mkfat --bundles 2 --ragged --arches gfx1100,gfx11-generic in/lib/a.so
	kpack pack -q --arch gfx1100 in out
	kpack mark check --arch gfx1100,gfx11-generic out
	rm out/.kpack/in_gfx11-generic.kpack
	run -1 kpack mark check --arch gfx1100 out
	[[ "$output" == *"a.so: gfx11-generic: no archive has it, which gfx1100 would load"* ]]
	kpack mark check --arch gfx1100 --arch-exact out
	run -1 kpack mark check --arch gfx1101 --arch-exact out
	[[ "$output" == *"a.so: gfx1101: no object was built for it"* ]]
}

@test "SPIR-V is named where a GPU has nothing else" {
	mkdir -p in/lib
	mkfat --bundles 2 --ragged --arches gfx1100,amdgcnspirv in/lib/a.so
	kpack pack --arch gfx1100,gfx942 in out >said 2>err
	[ "$(ls out/.kpack | paste -sd ' ')" = "in_amdgcnspirv.kpack in_gfx1100.kpack" ]
	grep -q 'a.so: note: for gfx1100 some code is only SPIR-V' err
	mkfat --arches gfx1100,amdgcnspirv in/lib/a.so
	kpack pack --arch gfx1100 in out2 >said 2>err
	! grep SPIR-V err
}

@test "--arch auto: the GPUs of this machine" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir -p in/lib
	mkfat --arches gfx942,gfx11-generic,gfx90a in/lib/a.so
	with_gpus 0 110001 -- "$KPACK_BIN/kpack" pack -q --arch auto in out
	[ "$(ls out/.kpack)" = in_gfx11-generic.kpack ]
	with_gpus 110001 90402 -- "$KPACK_BIN/kpack" split -q --gpu-targets auto in trees
	[ "$(ls trees | paste -sd ' ')" = "in_generic in_gfx11-generic in_gfx942" ]
	with_gpus 110001 -- "$KPACK_BIN/kpack" mark check --arch auto out
	run -1 with_gpus 110001 90402 -- "$KPACK_BIN/kpack" mark check --arch auto out
	[[ "$output" == *"gfx942: no archive has it"* ]]
	kpack pack -q in all
	[ "$(with_gpus 90402 -- "$KPACK_BIN/kpack" ls --arch auto all/.kpack | cut -f 2 | words)" = gfx942 ]
	[ "$(with_gpus 90402 -- "$KPACK_BIN/kpack" ls --arch gfx90a,auto all/.kpack | cut -f 2 | words)" = "gfx90a gfx942" ]
	with_gpus 90402 -- "$KPACK_BIN/kpack" extract --arch auto all/.kpack -C got
	[ "$(find got -type f | grep -vc gfx942)" = 0 ]
	with_gpus 90402 -- "$KPACK_BIN/kpack" inspect --extract seen --arch auto in/lib/a.so
	[ "$(ls seen | grep -vc gfx942)" = 0 ]
	with_gpus 90402 -- "$KPACK_BIN/kpack" thin -q --arch auto in thinned
	[ "$(kpack inspect --json thinned/lib/a.so | grep -o '"arch": *"gfx[^"]*"' | words)" = '"arch": "gfx942"' ]
	with_gpus 90402 -- "$KPACK_BIN/kpack" verify --tree --arch auto all
	with_gpus 90402 -- "$KPACK_BIN/kpack" detect --arch auto,gfx1100 | cut -d ' ' -f 1 | words >kinds
	[ "$(cat kinds)" = "gfx1100 gfx942" ]

	# without a GPU: what to do
	rm -r out
	for command in "pack in out" "ls all/.kpack" "extract all/.kpack -C no" "mark check all" \
		"inspect --extract no in/lib/a.so" "split --gpu-targets auto in no" "verify --tree all" "thin --dry-run in"; do
		[[ $command == split* ]] || command+=" --arch auto"
		# shellcheck disable=SC2086
		run -1 with_gpus -- "$KPACK_BIN/kpack" $command
		[[ "$output" == *"no GPU in /sys/class/kfd/kfd/topology, the KFD driver is missing: instead of auto, name the GPUs"* ]]
		# shellcheck disable=SC2086
		run -1 with_gpus 0 -- "$KPACK_BIN/kpack" $command
		[[ "$output" == *"no GPU in /sys/class/kfd/kfd/topology: instead of auto, name the GPUs"* ]]
	done
	[ ! -e out ] && [ ! -e no ]
}

@test "--arch-exact needs a list" {
	mkdir in
	mkfat in/a.so
	for command in "pack in out" "split in out" "ls in" "extract in -C out" "mark check in" \
		"inspect --extract out in/a.so"; do
		# shellcheck disable=SC2086
		run -2 kpack $command --arch-exact
		[[ "${lines[0]}" == *"--arch-exact needs "*", which is missing" ]]
	done
	# a family's targets are in its name
	for options in "--family f=auto" "--gfx-arch-family f --gfx-arches gfx1100,all"; do
		# shellcheck disable=SC2086
		run -2 kpack pack $options in out
		[[ "${lines[0]}" == *": name the targets of a family" ]]
	done
	kpack pack -q --arch all in out
	kpack mark check out
	[ "$(ls out/.kpack | wc -l)" = 3 ]
}
