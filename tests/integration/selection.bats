#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --arch auto and its relatives: the GPUs of this machine, as its driver reports them.  What a list
# chooses is in tests/golden and, for every program the same, in tests/properties.

# bats file_tags=single

load packing

@test "--arch auto: the GPUs of this machine" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir -p in/lib
	mkfat --bundles 1 --arches gfx942,gfx11-generic,gfx90a in/lib/a.so
	kpack pack -q in all
	# all in one mount namespace, whose topology changes
	cat >run <<-'END'
	set -eu
	mount -t tmpfs none /sys/class
	gpus() { # VERSION...
		rm -rf /sys/class/kfd
		for v; do
			mkdir -p "/sys/class/kfd/kfd/topology/nodes/$v"
			echo "gfx_target_version $v" >"/sys/class/kfd/kfd/topology/nodes/$v/properties"
		done
	}
	k() { [ "$1" = ls ] || echo "-- $*"; "$KPACK_BIN/kpack" "$@" 2>&1 | grep -v '^not installed' | sed 's/: instead of.*//'; }
	arches() { cut -f 2 | sort -u | paste -sd ' '; }
	gpus 0 110001
	k pack -q --arch auto in out; ls out/.kpack
	k mark check --arch auto out
	gpus 110001 90402
	k split -q --gpu-targets auto in trees; ls trees | paste -sd ' '
	k mark check --arch auto out
	gpus 90402
	k ls --arch auto all/.kpack | arches
	k ls --arch gfx90a,auto all/.kpack | arches
	k extract --arch auto all/.kpack -C got; find got -type f
	k inspect --arch auto --extract seen in/lib/a.so; ls seen
	k thin -q --arch auto in thinned; "$KPACK_BIN/kpack" inspect --json thinned/lib/a.so | grep -o '"arch": *"gfx[^"]*"'
	k verify --tree --arch auto all
	k detect --arch auto,gfx1100 | cut -d ' ' -f 1
	for there in "" 0; do
		gpus $there
		for command in "pack --arch auto in none" "split --gpu-targets auto in none" "mark check --arch auto all"; do
			k $command
		done
	done
	END
	unshare -m sh run >said
	diff - said <<-'END'
	-- pack -q --arch auto in out
	in_gfx11-generic.kpack
	-- mark check --arch auto out
	1 converted, 0 not converted, 1 object in 1 archive, 0 faults
	-- split -q --gpu-targets auto in trees
	in_generic in_gfx11-generic in_gfx942
	-- mark check --arch auto out
	kpack: out/lib/a.so: gfx942: no archive has it
	1 converted, 0 not converted, 1 object in 1 archive, 1 fault
	gfx942
	gfx90a gfx942
	-- extract --arch auto all/.kpack -C got
	got/toc/lib/a.so/gfx942.hsaco
	-- inspect --arch auto --extract seen in/lib/a.so
	gfx942.hsaco
	-- thin -q --arch auto in thinned
	"arch": "gfx942"
	-- verify --tree --arch auto all
	kpack: note: no file of a kernel database was found
	1 file, 0 of kernel databases, 0 faults
	--
	gfx1100
	gfx942
	-- pack --arch auto in none
	kpack: pack: --arch auto: no GPU in /sys/class/kfd/kfd/topology, the KFD driver is missing
	-- split --gpu-targets auto in none
	kpack: --gpu-targets auto: no GPU in /sys/class/kfd/kfd/topology, the KFD driver is missing
	-- mark check --arch auto all
	kpack: mark check: --arch auto: no GPU in /sys/class/kfd/kfd/topology, the KFD driver is missing
	-- pack --arch auto in none
	kpack: pack: --arch auto: no GPU in /sys/class/kfd/kfd/topology
	-- split --gpu-targets auto in none
	kpack: --gpu-targets auto: no GPU in /sys/class/kfd/kfd/topology
	-- mark check --arch auto all
	kpack: mark check: --arch auto: no GPU in /sys/class/kfd/kfd/topology
	END
}
