#!/usr/bin/env bats
# Fat and converted files of Windows in wine, a loader that is not ours, and with objdump and
# llvm-readobj, readers that are not.

# bats file_tags=all, single

load packing.bash

hosts=$KPACK_SRC/tests/data/hosts
wine=/usr/lib/wine/wine64

make_program() {
	cp "$hosts"/{fat-windows.S,wine.c} .
	mkfat --bare --bundles 1 --size 1500 b.hipfb
	x86_64-w64-mingw32-gcc '-DBUNDLE="b.hipfb"' -c fat-windows.S -o fat.o
	x86_64-w64-mingw32-gcc -O1 wine.c fat.o -o fat/program.exe
}

# In wine: what wrappers of a program, and of libraries in the directory TREE, lead to.
run_in_wine() { # TREE
	export HOME=$T WINEDEBUG=-all WINEPREFIX=$T/prefix
	# it looks for what keeps a display, and says so
	(cd "$1" && $wine program.exe ./*.dll) 2>said | tr -d '\r' >"$1.out" || { cat said; return 1; }
	sort "$1.out"
}

end_wine() {
	# everything that was started with the prefix ends
	WINESERVER=$(command -v /usr/lib/wine/wineserver64 wineserver | head -n 1)
	"$WINESERVER" -k || :
	"$WINESERVER" -w
}

read_by_llvm() { # FILE...
	for f; do
		llvm-readobj --file-headers --sections --symbols --unwind --coff-exports --coff-imports --coff-basereloc \
			--coff-load-config --coff-tls-directory --coff-resources --coff-debug-directory "$f" >said 2>&1 ||
			{ echo "$f"; cat said; return 1; }
		! grep -i 'warning:\|error:' said || { echo "$f"; return 1; }
	done
}

@test "wine loads converted libraries and starts converted programs" {
	command -v x86_64-w64-mingw32-gcc && [ -x $wine ] || skip "no gcc-mingw-w64-x86-64 and wine64"
	mkdir fat
	cp "$hosts"/{checked,guard,mingw}.dll fat
	make_program
	kpack pack -q --group g fat packed
	kpack mark check packed
	run_in_wine fat
	run_in_wine packed
	end_wine
	[ "$(grep -c 'HIPF __CLANG_OFFLOAD_BU' fat.out)" = 5 ]
	[ "$(grep -c 'HIPK kpack_search_paths' packed.out)" = 5 ]
	kpack mark restore -o back packed/program.exe
	cmp fat/program.exe back
}

# OUTPUT MACHINE CFLAGS OPTION...: of windows.c with all that a library can have
link() {
	local out=$1 machine=$2 cflags
	read -ra cflags <<<"$3"
	clang-22 --target="$machine" -O1 -ffreestanding -DMORE -mno-stack-arg-probe "${cflags[@]}" -c windows.c -o windows.obj
	clang-22 --target="$machine" '-DBUNDLE="b.hipfb"' -c fat-windows.S -o fat.obj
	shift 3
	lld-link-22 /nodefaultlib /dll /noentry /implib:i.lib "/out:$out" windows.obj fat.obj k.res "k-${machine%%-*}.lib" "$@"
}

@test "files of all kinds that lld and GNU ld link are converted, thinned and restored" {
	command -v lld-link-22 && command -v clang-22 && command -v x86_64-w64-mingw32-gcc && [ -x $wine ] ||
		skip "no clang-22, lld-22, llvm, llvm-22, gcc-mingw-w64-x86-64 and wine64"
	mkdir fat other
	make_program
	cp "$hosts"/windows.c .
	printf 'LIBRARY KERNEL32.dll\nEXPORTS\nGetCurrentProcessId\n' >k.def
	llvm-dlltool-22 -m i386:x86-64 -d k.def -l k-x86_64.lib
	llvm-dlltool-22 -m arm64 -d k.def -l k-aarch64.lib
	printf '1 RCDATA { "data" }\nSTRINGTABLE { 1 "one" 2 "two" }\n' >k.rc
	llvm-rc-22 /FO k.res k.rc
	mkfat --bare --bundles 1 --size 9000 b.hipfb
	link fat/plain.dll x86_64-pc-windows-msvc ""
	link fat/guard.dll x86_64-pc-windows-msvc "-g -gcodeview -DGUARD -Xclang -cfguard" /guard:cf /debug /pdb:g.pdb
	link fat/repro.dll x86_64-pc-windows-msvc "-g -gcodeview" /debug /pdb:r.pdb /Brepro /release
	link fat/dwarf.dll x86_64-pc-windows-msvc "-g -gdwarf" /debug:dwarf
	link fat/pages.dll x86_64-pc-windows-msvc "" /align:65536 /filealign:4096
	link fat/file.dll x86_64-pc-windows-msvc "" /align:8192 /filealign:8192
	link fat/merged.dll x86_64-pc-windows-msvc "" /merge:.hipFatBinSegment=.data
	link fat/constant.dll x86_64-pc-windows-msvc "" /merge:.hipFatBinSegment=.rdata /opt:ref /opt:icf
	link fat/low.dll x86_64-pc-windows-msvc "" /base:0x10000 /dynamicbase:no
	link other/fixed.dll x86_64-pc-windows-msvc "" /fixed
	link fat/swap.dll x86_64-pc-windows-msvc "" /swaprun:net /functionpadmin:16
	link other/arm64.dll aarch64-pc-windows-msvc "-g -gcodeview" /debug /pdb:a.pdb
	x86_64-w64-mingw32-gcc -O1 -g -ffreestanding -c windows.c -o windows.obj
	x86_64-w64-mingw32-gcc '-DBUNDLE="b.hipfb"' -c fat-windows.S -o fat.obj
	x86_64-w64-mingw32-gcc -shared -nostdlib -e0 -o fat/gnu.dll windows.obj fat.obj
	x86_64-w64-mingw32-strip -o fat/gnu-stripped.dll fat/gnu.dll
	x86_64-w64-mingw32-strip -g -o fat/gnu-no-debug.dll fat/gnu.dll
	for tree in fat other; do
		kpack pack -q --group g $tree packed-$tree
		kpack mark check packed-$tree | grep " 0 not converted.* 0 faults"
		$python "$KPACK_SRC/tests/integration/pecheck.py" --run $tree packed-$tree
		read_by_llvm packed-$tree/*
		kpack mark restore -o back packed-$tree
		rm -r packed-$tree/.kpack
		diff -r $tree back
		rm -r back
	done
	run_in_wine packed-fat
	cp -a fat thin
	kpack thin -q --arch gfx1100 --keep kept --runtime any --compress thin
	$python "$KPACK_SRC/tests/integration/pecheck.py" --alone --run thin
	run_in_wine thin
	end_wine
	n=$(find fat/*.dll | wc -l)
	[ "$(grep -c 'HIPK kpack_search_paths' packed-fat.out)" = $((n + 2)) ]
	[ "$(grep -c 'HIPF CCOB' thin.out)" = $((n + 2)) ]
	kpack thin -q --undo kept thin
	diff -r fat thin
}

@test "other readers find nothing wrong with converted files" {
	command -v llvm-readobj || skip "no llvm"
	$python "$KPACK_SRC/tests/golden/pes.py" good fat
	cp "$hosts"/*.dll "$hosts"/*.exe fat
	kpack pack -q --drop-signature --group g fat packed
	read_by_llvm packed/*
}
