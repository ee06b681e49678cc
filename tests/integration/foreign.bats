#!/usr/bin/env bats
# Hosts whose device code cannot be taken out: Windows files, other classes and byte orders of
# ELF, no section table, other names of sections.  Their code is listed and copied, and is
# never overlooked.

load packing.bash

foreign() { $python "$tools/foreign.py" "$@"; } # KIND FATBIN OUT

kinds="pe pe-long elf32 elf32-be elf64-be elf32-bare elf64-bare elf64-be-bare elf64-bare-exec elf64-renamed
	elf64-renamed-exec renamed-wrappers"

make_hosts() { # DIR
	local kind
	mkfat --seed 1 --bare --bundles 1 --arches gfx90a,gfx942 fat
	mkdir -p "$1"
	for kind in ${kinds% *}; do
		foreign "$kind" fat "$1/$kind"
	done
	# wrappers in their section lead into one that has another name
	mkfat --seed 1 --bundles 1 --arches gfx90a,gfx942 "$1/renamed-wrappers"
	LC_ALL=C sed -i 's/\.hip_fatbin\x00/.hip_device\x00/' "$1/renamed-wrappers"
}

@test "inspect lists the code, and --archives-only copies it" {
	make_hosts in
	kpack inspect --json fat >want.json
	for kind in $kinds; do
		kpack inspect --json in/$kind >got.json
		py <<-'END'
		import json
		code = lambda name: [i["sha256"] for i in json.load(open(name))["images"]]
		assert code("got.json") == code("want.json") and code("got.json"), code("got.json")
		END
		kpack pack -q --archives-only --group g in/$kind out-$kind 2>err
		[ ! -s err ]
		readkpack sums out-$kind/.kpack/g_gfx942.kpack | cut -f 2- | sed "s/$kind#[01]/#/" >got
		[ -s got ]
		[ ! -e first ] || diff first got
		mv got first
	done
}

@test "pack, thin, split, report and mark check say that the code stays" {
	make_hosts in
	mkfat --seed 2 --arches gfx90a,gfx942 in/good.so
	cp -a in before
	kpack pack -q in out 2>err
	kpack thin -q -n --arch gfx942 in 2>thin.err
	kpack split -q in parts 2>split.err
	for kind in $kinds; do
		for e in err thin.err split.err; do
			grep -q "^kpack: in/$kind: warning: .*device code .*stays in" $e || { echo $e $kind; false; }
		done
		cmp in/$kind out/$kind
	done
	[ "$(grep -c . err)" = 12 ]
	kpack report -q -o page.html in 2>err
	kpack mark check -v out >check
	[ "$(grep -c 'note: not converted: .*device code' check)" = 12 ]
	kpack mark check out/good.so
	kpack pack -q --in-place in
	rm in/good.so before/good.so
	rm -rf in/.kpack
	diff -r before in
}

@test "a damaged section table, and a library that is cut off: an error, after the rest" {
	mkfat --seed 1 --bare --bundles 1 --arches gfx90a,gfx942 fat
	mkdir in
	foreign elf64-cut fat in/table.so
	mkfat --seed 2 --arches gfx90a,gfx942 good.so
	size=$(stat -c %s good.so)
	head -c $((size / 2)) good.so >in/half.so
	cp good.so in/good.so
	# without device code nobody cares
	echo "__CLANG_OFFLOAD_BUNDLE__ is what a bundle begins with" >in/text
	py <<-'END'
	data = bytearray(open("in/table.so", "rb").read())
	data = data.replace(b"__CLANG_OFFLOAD", b"__clang_offload").replace(b"FPIH", b"none")
	open("in/host.so", "wb").write(data)
	END
	! kpack pack -q in out 2>err || false
	[ "$(grep -c ': damaged, its device code stays in it: ' err)" = 2 ]
	[ "$(grep -c . err)" = 2 ]
	kpack mark check out/good.so
	cmp in/half.so out/half.so
	! kpack pack -q --in-place in 2>err || false
	[ "$(grep -c ': damaged, its device code stays in it: ' err)" = 2 ]
	! kpack thin -n -q --arch gfx942 in 2>err || false
	[ "$(grep -c ': damaged, its device code stays in it: ' err)" = 2 ]
	! kpack split -q in parts 2>err || false
	[ "$(grep -c ': damaged, its device code stays in it: ' err)" = 2 ]
	[ -e parts/in_generic/half.so ]
	# and in a wheel
	wheel=$($python "$tools/mkwheel.py" make --add torch/half.so=in/half.so wheel)
	! kpack split-wheel -q "$wheel" -o dist 2>err || false
	[ "$(grep -c "^kpack: $wheel/torch/half.so: damaged, its device code stays in it: " err)" = 1 ]
	[ -e "dist/${wheel##*/}" ]
	! kpack inspect in/table.so >list 2>err || false
	grep -q gfx942 list
}

@test "wrappers without their code: in another file, or lost" {
	head -c 4096 /dev/zero >fat
	mkdir in
	foreign elf64-bare fat in/lost.so
	foreign elf64-bare-cuda fat in/cuda.so
	! kpack pack -q in out 2>err || false
	[ "$(grep -c ': damaged, .* wrappers of device code, but no container of it' err)" = 2 ]
	! kpack mark check in >check 2>&1 || false
}

@test "a path that is too long, or no text, is left alone, and mark check knows" {
	mkfat --seed 1 in.so
	py <<-'END'
	import os, shutil
	os.makedirs("in/\x01")
	shutil.copy("in.so", "in/ok.so")
	shutil.copy("in.so", "in/\x01/odd.so")
	top = os.getcwd()
	os.chdir("in")
	for i in range(17):
	    os.mkdir("x" * 250)
	    os.chdir("x" * 250)
	shutil.copy(top + "/in.so", "deep.so")
	END
	kpack pack -q in out 2>err
	[ "$(grep -c ': warning: its device code stays in it: its path cannot be a key$' err)" = 2 ]
	kpack mark check -v out >check
	[ "$(grep -c 'note: not converted' check)" = 2 ]
	kpack split -q in parts 2>err
	kpack mark check parts/in_generic
}
