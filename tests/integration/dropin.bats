#!/usr/bin/env bats
# clang-22 compiles and links HIP with our bundler and packager in place of LLVM's:
# nothing fails, and a runtime gets the same code objects.

# bats file_tags=all, single

load proof.bash

# The directory of the stand-ins; tests of the tests set it to a directory of LLVM's
# tools.
standins=${DROPIN_TOOLS-$KPACK_BIN/clang}
llvm=$(dirname "$(readlink -f "$(command -v clang-22)")")

# DIR for clang's -B: each of FROM's tools under a shim that writes down its calls, and what
# looks for the tools beside itself before it looks anywhere else.
toolbox() { # DIR FROM
	local tool
	mkdir -p "$1"
	for tool in clang-offload-bundler clang-offload-packager llvm-offload-binary; do
		[ -x "$2/$tool" ] || continue
		cat >"$1/$tool" <<-END
		#!/bin/sh
		"$2/$tool" "\$@"
		status=\$?
		echo "$tool \$status \$*" >>'$PWD/${1%.tools}.calls'
		exit \$status
		END
		chmod +x "$1/$tool"
	done
	cp "$llvm/clang-linker-wrapper" "$1"
	ln -s "$llvm/clang" "$1/clang"
}

# The unit's ID would else follow from the command line.
compile() { # NAME OPTION...
	clang-22 -x hip -nogpuinc -nogpulib -O1 "${offload[@]}" "${tools[@]}" -cuid="id_$1" "${@:2}" \
		-c "$1.hip" -o "$1.o"
}

# Link by clang-22, which links code for GPUs too.
hip_link() { # OPTION... FILE...
	link "${tools[@]}" --hip-link "${offload[@]}" -shared -fuse-ld=lld "$@"
}

# Run BUILD, which makes lib.so, in one place with both; what it leaves goes to real and ours.
both() { # BUILD ARGUMENT...
	local side
	for side in real ours; do
		rm -rf "$side" "$side.calls" here
		mkdir here
		cp ./*.hip ./*.c here
		tools=(-B "$PWD/$side.tools")
		(cd here && side=$side "$@") || { echo "$side: $* failed"; cat "$side.calls"; return 1; }
		mv here "$side"
	done
}

# Every call of ours succeeded, there were COUNT ones of TOOL, and LLVM's got the same.
called() { # TOOL COUNT
	[ "$(grep -c "^$1 0 " ours.calls)" -eq "$2" ] || { cat ours.calls; return 1; }
	! grep -v '^[^ ]* 0 ' ours.calls || false
	# names of temporary files aside
	diff <(unnamed real.calls) <(unnamed ours.calls)
}

unnamed() { # FILE
	sed -E 's/-[0-9a-f]{6}\>//g' "$1"
}

# The stub runtime gets the same from both, and something.
same_objects() { # FILE [FUNCTION]
	local who side
	record "real/$1" "" "${2-answer}" >real.log
	[ "$(awk 'NF == 5' real.log | wc -l)" -gt 0 ] || { echo "$1: registers nothing"; return 1; }
	who=$(agents real.log)
	for side in real ours; do
		record "$side/$1" "" "${2-answer}" >$side.has
		record "$side/$1" "$who" "${2-answer}" >$side.log
	done
	diff real.has ours.has
	diff real.log ours.log
}

same_bytes() { # FILE...
	local file
	for file; do
		cmp "real/$file" "ours/$file"
	done
}

setup() {
	need_clang
	cd "$BATS_TEST_TMPDIR"
	PATH=$llvm:$PATH # for llvm-objcopy, which LLVM's bundler runs
	sources
	toolbox real.tools "$llvm"
	toolbox ours.tools "$standins"
}

units() { # OPTION...
	compile a "$@"
	compile b "$@"
	compile c --offload-arch=gfx1201 "$@"
}

# ---- one bundle a unit ----

plain() { # OPTION...
	units -fPIC "$@"
	link "${tools[@]}" -shared -fuse-ld=lld a.o b.o c.o -o lib.so
}

@test "units of their own: plain, compressed in each version and level, and by the new driver" {
	local options
	for options in "" --offload-compress "--offload-compress --offload-compression-level=9" old; do
		if [ "$options" = old ]; then
			COMPRESSED_BUNDLE_FORMAT_VERSION=2 both plain --no-offload-new-driver --offload-compress
		else
			# shellcheck disable=SC2086 # words
			both plain --no-offload-new-driver $options
		fi
		called clang-offload-bundler 3
		same_bytes a.o b.o c.o lib.so
		same_objects lib.so
	done
	both plain --offload-new-driver
	called llvm-offload-binary 3
	called clang-offload-bundler 3
	same_bytes a.o b.o c.o lib.so
	same_objects lib.so
	both plain --offload-new-driver --offload-compress
	same_objects lib.so
}

# ---- -fgpu-rdc: code for GPUs is linked ----

relocatable() { # DRIVER OPTION...
	units -fPIC "$1" -fgpu-rdc
	hip_link "$1" -fgpu-rdc "${@:2}" a.o b.o c.o -o lib.so
}

# No objects between: the driver keeps what it would bundle.
at_once() { # OPTION...
	link "${tools[@]}" -x hip -nogpuinc -nogpulib -O1 -fPIC -cuid=id "${offload[@]}" --no-offload-new-driver \
		-fgpu-rdc "$@" -shared -fuse-ld=lld a.hip -o lib.so
}

@test "-fgpu-rdc: linked with --hip-link, in one go, and by the new driver" {
	both relocatable --no-offload-new-driver
	# three are bundled, and taken apart
	[ "$(grep -c -e ' -unbundle' ours.calls)" -ge 3 ]
	[ "$(grep -vc -e ' -unbundle' ours.calls)" -ge 3 ]
	called clang-offload-bundler "$(wc -l <ours.calls)"
	same_objects lib.so
	both relocatable --no-offload-new-driver --offload-compress
	same_objects lib.so
	both at_once
	called clang-offload-bundler "$(wc -l <ours.calls)"
	same_objects lib.so
	both relocatable --offload-new-driver
	called llvm-offload-binary 3
	called clang-offload-bundler 1
	same_objects lib.so
}

# ---- libraries ----

# b and c are in a static library; a needs neither, so all of it is wanted.
static_library() { # KIND
	units -fPIC --no-offload-new-driver
	llvm-ar-22 rcs libbc.a b.o c.o
	link "${tools[@]}" -shared -fuse-ld=lld a.o -Wl,--whole-archive libbc.a -Wl,--no-whole-archive -o lib.so
}

linked_static_library() {
	units -fPIC --no-offload-new-driver -fgpu-rdc
	clang-22 "${tools[@]}" --no-offload-new-driver --hip-link -fgpu-rdc --emit-static-lib \
		"${offload[@]}" a.o b.o c.o -o liball.a
	link -shared -fuse-ld=lld -Wl,--whole-archive liball.a -Wl,--no-whole-archive -o lib.so
}

# An archive of objects with bundles: the driver asks for the archive of each target.
bundled_library() { # HOW-TO-NAME-IT
	units -fPIC --no-offload-new-driver -fgpu-rdc
	llvm-ar-22 rcs libbc.a b.o c.o
	hip_link --no-offload-new-driver -fgpu-rdc -L. a.o "$1" -o lib.so
}

@test "static libraries of fat objects, --emit-static-lib, and archives at the link of the code for GPUs" {
	both static_library
	called clang-offload-bundler 3
	same_bytes lib.so
	same_objects lib.so
	both linked_static_library
	called clang-offload-bundler "$(wc -l <ours.calls)"
	same_objects lib.so
	for how in libbc.a -l:libbc.a -lbc; do
		both bundled_library "$how"
		grep -q -e '-unbundle.* -type=a' ours.calls
		called clang-offload-bundler "$(wc -l <ours.calls)"
		same_objects lib.so
	done
}

# ---- what is between ----

intermediate() {
	local each
	for each in "-E -o a.hipi" "-S -o a.s" "-S -emit-llvm -o a.ll" "-M -o a.d" \
		"-fgpu-rdc -c -emit-llvm -o a.bc" "--cuda-device-only --gpu-bundle-output -c -o a.hipfb"; do
		# shellcheck disable=SC2086
		clang-22 -x hip -nogpuinc -nogpulib -O1 "${offload[@]}" "${tools[@]}" -cuid=id \
			--no-offload-new-driver $each a.hip
	done
	# back: what is for whom is taken out of the text
	clang-22 -nogpulib -O1 "${offload[@]}" "${tools[@]}" -cuid=id --no-offload-new-driver -fPIC \
		-c a.hipi -o a.o
	link -shared -fuse-ld=lld a.o -o lib.so
}

@test "bundles of text, bitcode and bare code, and from text back" {
	both intermediate
	called clang-offload-bundler 8
	same_bytes a.hipi a.s a.ll a.d a.bc a.hipfb a.o
	same_objects lib.so
}

@test "clang finds them in the directory of the links itself" {
	local tools=(-B "$standins")
	compile a -fPIC --no-offload-new-driver -fgpu-rdc -v 2>said
	grep -q "^ \"$standins/clang-offload-bundler\"" said
	[ "$(llvm-readelf-22 -SW a.o | grep -c __CLANG_OFFLOAD_BUNDLE__)" -eq 3 ]
	compile a -fPIC --offload-new-driver -fgpu-rdc -v 2>said
	grep -q "^ \"$standins/llvm-offload-binary\"" said
	[ "$(llvm-readelf-22 -SW a.o | grep -c LLVM_OFFLOADING)" -eq 1 ]
}
