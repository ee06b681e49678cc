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

@test "wine loads converted libraries and starts converted programs" {
	command -v x86_64-w64-mingw32-gcc && [ -x $wine ] || skip "no gcc-mingw-w64-x86-64 and wine64"
	mkdir fat
	cp "$hosts"/{checked,guard,mingw}.dll fat
	make_program
	kpack pack -q --group g fat packed
	kpack mark check packed
	export HOME=$T WINEDEBUG=-all WINEPREFIX=$T/prefix
	for tree in fat packed; do
		# it looks for what keeps a display, and says so
		(cd $tree && $wine program.exe ./*.dll) 2>said | tr -d '\r' >$tree.out || { cat said; return 1; }
		sort $tree.out
	done
	# everything that was started with the prefix ends
	WINESERVER=$(command -v /usr/lib/wine/wineserver64 wineserver | head -n 1)
	"$WINESERVER" -k || :
	"$WINESERVER" -w
	[ "$(grep -c 'HIPF __CLANG_OFFLOAD_BU' fat.out)" = 5 ]
	[ "$(grep -c 'HIPK kpack_search_paths' packed.out)" = 5 ]
	kpack mark restore -o back packed/program.exe
	cmp fat/program.exe back
}

@test "other readers find nothing wrong with converted files" {
	command -v llvm-readobj || skip "no llvm"
	$python "$KPACK_SRC/tests/golden/pes.py" good fat
	cp "$hosts"/*.dll "$hosts"/*.exe fat
	kpack pack -q --drop-signature --group g fat packed
	for f in packed/*; do
		llvm-readobj --file-headers --sections --symbols --coff-exports --coff-basereloc --coff-load-config \
			--coff-debug-directory "$f" >said 2>&1 || { echo "$f"; cat said; return 1; }
		! grep -i 'warning\|error' said || { echo "$f"; return 1; }
	done
}
