#!/usr/bin/env bats
# Other tools change binaries afterwards: each converted file must survive that, still
# load, and still give the same code.  The tools may print complaints only if they did
# before.

# bats file_tags=all, single

load proof.bash

# NAMES of files: fat/NAME and out/NAME
setup_file() {
	have_clang || return 0
	export DATA=$BATS_FILE_TMPDIR/d
	mkdir -p "$DATA/fat"
	cd "$DATA"
	sources
	hip -fPIC -c a.hip -o a.o
	hip --offload-arch=gfx1201 -fPIC -c c.hip -o c.o
	hip -fno-pic -c a.hip -o fixed-a.o
	clang-22 -gdwarf-4 -fPIC -c main.c -o main.o
	clang-22 -gdwarf-4 -fno-pic -c main.c -o fixed-main.o
	for ld in $(linkers); do
		link -shared -fuse-ld=$ld -Wl,--build-id a.o c.o -o fat/lib$ld.so
		link -pie -fuse-ld=$ld -Wl,--build-id a.o c.o main.o -o fat/pie-$ld
		link -no-pie -fuse-ld=$ld -Wl,--build-id fixed-a.o fixed-main.o -o fat/fixed-$ld
	done
	link -shared -fuse-ld=lld -Wl,-z,pack-relative-relocs a.o c.o -o fat/librelr.so
	# in a tree, so that all is converted at once
	convert fat out
}

setup() {
	T=$(mktemp -d /tmp/kpack-test-XXXXXX)
	cd "$T"
	[ -z "${DATA-}" ] || cp -r "$DATA"/fat "$DATA"/out .
	[ -z "${DATA-}" ] || names=$(ls fat)
}

teardown() {
	cd /
	rm -rf "$T"
}

need() { # PROGRAM
	need_clang
	command -v "$1" >/dev/null || skip "no $1"
}

# COMMAND FILE changes FILE: every converted file must then be what the fat one is after it.
survives() { # COMMAND [no-elfcheck]
	local name
	for name in $names; do
		cp fat/$name fat-before
		cp out/$name before
		"$1" fat/$name
		"$1" out/$name
		if [ "${2-}" = no-elfcheck ]; then
			elfcheck --alone out/$name
		else
			elfcheck --stripped fat/$name out/$name
		fi
		same fat/$name out/$name
		mv fat-before fat/$name
		mv before out/$name
	done
}

# Lines of complaints, without what may differ between two files: numbers and names of files.
complaints() { # FILE
	sed -e "s,$1,FILE,g" -e 's/\[ *[0-9]*\]/[]/g' -e 's/0x[0-9a-f]*/0x/g' -e 's/[0-9][0-9]*/N/g' | sort -u
}

@test "untouched" {
	need_clang
	for name in $names; do
		elfcheck fat/$name out/$name
		same fat/$name out/$name
	done
}

@test "strip" {
	need strip
	strip_all() { strip "$1"; }
	survives strip_all
	strip_debug() { strip --strip-debug "$1"; }
	survives strip_debug
	strip_unneeded() { strip --strip-unneeded "$1"; }
	survives strip_unneeded
}

@test "llvm-strip and eu-strip" {
	need eu-strip
	llvm_strip() { llvm-strip-22 "$1"; }
	survives llvm_strip
	eu_strip() { eu-strip "$1"; }
	survives eu_strip
}

@test "debugging information in a file of its own" {
	need objcopy
	split() {
		objcopy --only-keep-debug "$1" "$1.debug"
		objcopy --strip-debug "$1"
		objcopy --add-gnu-debuglink="$1.debug" "$1"
		gdb -nx -batch -ex "info line answer" "$1" >line 2>&1
		grep -q 'Line [0-9]* of "a.hip"' line
	}
	survives split
}

@test "patchelf" {
	need patchelf
	rpath() { patchelf --set-rpath "$PWD:/a/path/that/is/longer/than/what/was/there:/and:/another" "$1"; }
	survives rpath no-elfcheck
}

# It puts sections elsewhere: ours may stand before the marker's then.
@test "patchelf, then set and restore: sections stay" {
	need patchelf
	sections() { readelf -SW "$1" | sed -nE 's/^ *\[ *[0-9]+\] (\.[^ ]+).*/\1/p' | grep -v '^\.rocm_kpack' | sort; }
	for name in $names; do
		patchelf --set-rpath "$PWD:/a/path/that/is/longer/than/what/was/there:/and:/another" out/$name
		sections out/$name >want
		kpack mark restore -o back out/$name
		sections back | diff want -
		[ -z "$(readelf -SW back | grep rocm_kpack)" ]
		kpack mark set --kernel-name "$(printf '%04000d' 0)" out/$name
		sections out/$name | diff want -
	done
}

@test "readelf, llvm-readelf and ldd" {
	need readelf
	for name in $names; do
		for reader in readelf llvm-readelf-22; do
			$reader -aW fat/$name 2>&1 | grep -i 'warning\|error' | complaints fat/$name >was || true
			$reader -aW out/$name 2>&1 | grep -i 'warning\|error' | complaints out/$name >is || true
			comm -13 was is >new
			[ ! -s new ] || { echo "$name:"; cat new; return 1; }
		done
		for which in fat out; do
			LD_LIBRARY_PATH=$stub ldd $which/$name | sed 's/(0x.*//' | sort >$which.ldd
		done
		diff fat.ldd out.ldd
	done
}

@test "gdb" {
	need gdb
	for name in $names; do
		for which in fat out; do
			gdb -nx -batch -ex "info files" $which/$name 2>&1 | grep ' is \|warning' |
				sed "s,$PWD/$which/,," | sort >$which.gdb
		done
		comm -13 fat.gdb out.gdb | grep -v ' is \.\(rocm_kpack_ref\|rocm_kpack_phdr\|hip_fatbin\)$' >new || true
		comm -23 fat.gdb out.gdb | grep -v ' is \.hip_fatbin$' >>new || true
		[ ! -s new ] || { echo "$name:"; cat new; return 1; }
	done
}
