#!/usr/bin/env bats
# The output of kpack inspect for code objects that clang-22 makes, for every processor,
# against what llvm-readelf-22 prints about their flags and notes.

# bats file_tags=all, single

load proof.bash

setup() {
	have_clang && command -v llvm-readelf-22 >/dev/null || skip "no clang-22, llvm-22 or lld-22"
	cd "$BATS_TEST_TMPDIR"
	cp "$KPACK_SRC/tests/data/amdgpu/kernels.hip" .
}

# Compile for TARGET; the rest are options.
device() { # TARGET OUT OPTION...
	clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch="$1" --cuda-device-only \
		--no-gpu-bundle-output -c kernels.hip -o "$2" "${@:3}"
}

agree() { # FILE...
	local file
	for file; do
		kpack inspect --json "$file" >"$file.json"
		llvm-readelf-22 -h --notes "$file" >"$file.txt"
		$python - "$file" <<-'END' || { echo "$file"; cat "$file.json" "$file.txt"; return 1; }
		import json, re, sys
		name = sys.argv[1]
		image, = json.load(open(name + ".json"))["images"]
		text = open(name + ".txt").read()
		names = {"vgpr_count": "vgprs", "agpr_count": "agprs", "sgpr_count": "sgprs",
		         "group_segment_fixed_size": "lds", "private_segment_fixed_size": "scratch",
		         "kernarg_segment_size": "kernarg", "wavefront_size": "wavefront",
		         "max_flat_workgroup_size": "threads"}
		kernels = []
		# a kernel's keys are indented by four, its arguments by more
		for line in text[text.index("amdhsa.kernels:"):].splitlines():
		    row = re.match(r"(  - |    )\.(\w+): +(\S+)$", line)
		    if not line.startswith("  ") and kernels:
		        break
		    if line.startswith("  - "):
		        kernels.append({})
		    if row and row[2] in names:
		        kernels[-1][names[row[2]]] = int(row[3])
		    elif row and row[2] in ("name", "symbol"):
		        kernels[-1][row[2]] = row[3].strip("'")
		assert len(kernels) == 2
		assert image["kernels"] == kernels, (image["kernels"], kernels)
		target = re.search(r"amdhsa.target: +'?([^'\n]+)", text)[1]
		assert image["facts"]["target"] == target, target
		assert "disagreement" not in image["facts"]
		# "0x73f, gfx90a, xnack+, sramecc": without a sign it may be either
		flags = re.search(r"Flags: +0x\w+, (.*)", text)[1].split(", ")
		arch = flags[0] + "".join(":" + f for f in sorted(flags[1:]) if f[-1] in "+-")
		assert image["arch"] == image["object_arch"] == arch, arch
		assert target.split("--")[1] == arch, (target, arch)
		version = int(re.search(r"ABI Version: +(\d+)", text)[1]) + 2
		assert image["facts"]["code object"] == str(version), version
		generic = [f[9:] for f in flags if f.startswith("generic_v")]
		assert image["facts"].get("generic version") == (generic[0] if generic else None)
		END
	done
}

@test "processors" {
	for target in gfx700 gfx801 gfx803 gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c \
		gfx942 gfx950 gfx1010 gfx1013 gfx1030 gfx1036 gfx1100 gfx1103 gfx1150 gfx1153 gfx1200 gfx1201 \
		gfx1250 gfx1251; do
		device $target $target
		agree $target
	done
}

@test "features, generic targets, versions" {
	for target in gfx90a:xnack+ gfx90a:sramecc-:xnack- gfx906:sramecc+ gfx942:sramecc-:xnack+ \
		gfx1010:xnack-; do
		for version in 4 5 6; do
			device $target "$target-$version" -mcode-object-version=$version
			agree "$target-$version"
		done
	done
	for target in gfx9-generic gfx9-generic:xnack+ gfx9-4-generic:sramecc+ gfx10-1-generic gfx10-3-generic \
		gfx11-generic gfx12-generic; do
		device $target $target
		agree $target
	done
}

@test "relocatable objects" {
	for target in gfx90a:xnack+ gfx1100; do
		clang-22 -x hip -nogpuinc -nogpulib -O1 --offload-arch=$target --cuda-device-only -S -emit-llvm \
			kernels.hip -o $target.ll
		llc-22 -filetype=obj $target.ll -o $target -mcpu=${target%%:*}
		agree $target
	done
}

# The bytes of the descriptors say some of it, too.
@test "stripped of the note" {
	for target in gfx906 gfx90a gfx1030 gfx1201; do
		device $target $target
		llvm-objcopy-22 --remove-section .note --strip-all $target bare
		kpack inspect --json $target >whole.json
		kpack inspect --json bare >bare.json
		$python - <<-'END'
		import json
		whole, bare = (json.load(open(n))["images"][0] for n in ("whole.json", "bare.json"))
		assert whole["arch"] == bare["arch"] and "target" not in bare["facts"]
		assert len(bare["kernels"]) == 2
		for a, b in zip(whole["kernels"], bare["kernels"]):
		    for key in "name", "symbol", "lds", "scratch", "kernarg", "wavefront":
		        assert a[key] == b[key], (key, a, b)
		    for key in "vgprs", "sgprs", "agprs", "threads":
		        assert key not in b, (key, b)
		END
	done
}

# SPIR-V by LLVM, for nobody in particular and for AMD's GPUs.
@test "SPIR-V and bitcode" {
	cat >two.cl <<-'END'
	kernel void one(global int *p) { *p = 1; }
	kernel void two(global int *p) { *p = 2; }
	END
	for triple in spirv64-unknown-unknown:generic spirv64-amd-amdhsa:amdgcnspirv; do
		clang-22 --target=${triple%%:*} -x cl -O1 -S -emit-llvm two.cl -o two.ll
		llc-22 -mtriple=${triple%%:*} -filetype=obj two.ll -o two.spv
		kpack inspect --json two.spv >two.json
		$python - "${triple#*:}" <<-'END'
		import json, sys
		image, = json.load(open("two.json"))["images"]
		assert image["format"] == "spv" and image["size"] == len(open("two.spv", "rb").read())
		assert (image["object_arch"] or "generic") == sys.argv[1], image
		assert [k["name"] for k in image["kernels"]] == ["one", "two"], image["kernels"]
		END
	done
	clang-22 -x cl --target=amdgcn-amd-amdhsa -nogpulib -c -emit-llvm two.cl -o two.bc
	kpack inspect --json two.bc | grep -q '"format": "bc"'
}
