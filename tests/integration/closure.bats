#!/usr/bin/env bats
# kpack verify --tree and kpack pack --check: the files that files of kernel databases
# need exist, or are reported as missing, in trees of every kind.

# bats file_tags=single

load databases.bash

generations="rocblas-flat rocblas-mixed rocblas-merged rocblas-arch rocblas-feature hipblaslt-flat
	hipblaslt-arch hipblaslt-shard-a hipsparselt paper-rocblas paper-hipblaslt paper-aotriton
	paper-fft aotriton aotriton-flatzip rocfft rocfft-arch miopen provider"
ROC=lib/rocblas/library
LT=lib/hipblaslt/library
DD=TensileLibrary_Type_DD_Contraction_l_Ailk_Bjlk_Cijk_Dijk
SS=TensileLibrary_Type_SS_Contraction_l_Ailk_Bjlk_Cijk_Dijk
NN=TensileLibrary_Type_SS_Contraction_l_Ailk_Bljk_Cijk_Dijk
BS=TensileLibrary_Type_BS_HPA_Contraction_l_Alik_Bljk_Cijk_Dijk

# A copy of the tree KIND that may be changed.
copy() { # KIND DIR
	tree "$1"
	rm -rf "$2"
	cp -a "$F/$1" "$2"
}

# Without faults, as the summary also says.
whole() { # PATH...
	run kpack verify --tree "$@"
	[ "$status" -eq 0 ] || { echo "$*: exit $status: $output"; return 1; }
	[[ "$output" =~ ^[0-9]+\ files,\ [1-9][0-9]*\ of\ kernel\ databases,\ 0\ faults$ ]] ||
		{ echo "$output"; return 1; }
	[ -z "$(kpack verify -q --tree "$@" 2>&1)" ]
}

# The one fault of TREE is that FILE needs what all of WORDS name.
misses() { # TREE FILE WORD...
	local word
	run kpack verify -q --tree "$1"
	[ "$status" -eq 1 ] || { echo "exit $status: $output"; return 1; }
	[ "${#lines[@]}" -eq 1 ] || { echo "$output"; return 1; }
	for word in "kpack: $2: " "${@:3}"; do
		[[ "$output" == *"$word"* ]] || { echo "no '$word' in: $output"; return 1; }
	done
}

# The same without the file MISSING, which must be named.
misses_without() { # TREE MISSING FILE WORD...
	mv "$1/$2" aside
	misses "$1" "$3" "$2" "${@:4}"
	mv aside "$1/$2"
}

@test "whole trees of every kind have no fault, plain, packed and mounted" {
	for kind in $generations; do
		packed "$kind"
		whole "$F/$kind"
		whole "$F/$kind.out"
		whole "$F/$kind.out/.kpack"
		in_mount "$F/$kind.out/.kpack" whole mnt
	done
}

@test "rocBLAS, flat: children, code, fallbacks, helpers, pairs" {
	copy rocblas-flat t
	for gpu in gfx1100 gfx90a; do
		lazy=$ROC/TensileLibrary_lazy_$gpu.dat
		misses_without t "$ROC/${SS}_$gpu.dat" "$lazy" "which is missing"
		misses_without t "$ROC/${SS}_$gpu.co" "$ROC/${SS}_$gpu.dat"
		misses_without t "$lazy" "$lazy" "is missing"
	done
	misses_without t "$ROC/${SS}_CU104_gfx90a.co" "$ROC/${SS}_CU104_gfx90a.dat"
	misses_without t "$ROC/${DD}_fallback_gfx1100.hsaco" "$ROC/${DD}_fallback.dat"
	misses_without t "$ROC/Kernels.so-000-gfx1100.hsaco" "$ROC/TensileLibrary_lazy_gfx1100.dat"

	# one of a pair, both of it
	for stem in "${NN}_gfx90a" "${DD}_fallback_gfx90a" Kernels.so-000-gfx90a; do
		misses_without t "$ROC/$stem-xnack+.hsaco" "$ROC/$stem-xnack-.hsaco" "other xnack mode"
		misses_without t "$ROC/$stem-xnack-.hsaco" "$ROC/$stem-xnack+.hsaco" "other xnack mode"
	done
	rm t/$ROC/${NN}_gfx90a-xnack?.hsaco
	misses t "$ROC/${NN}_gfx90a.dat" "${NN}_gfx90a-xnack-.hsaco" "${NN}_gfx90a-xnack+.hsaco"

	# a fallback is the child of both, and both are reported
	copy rocblas-flat t
	rm t/$ROC/${DD}_fallback.dat
	run kpack verify --tree t
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 3 ]
	[ "${lines[0]}" = "kpack: $ROC/TensileLibrary_lazy_gfx1100.dat: needs $ROC/${DD}_fallback.dat, which is missing" ]
	[ "${lines[1]}" = "kpack: $ROC/TensileLibrary_lazy_gfx90a.dat: needs $ROC/${DD}_fallback.dat, which is missing" ]
	[ "${lines[2]}" = "33 files, 33 of kernel databases, 2 faults" ]
}

@test "rocBLAS with directories of GPUs, of modes, and mixed" {
	copy rocblas-arch t
	for gpu in gfx942 gfx90a gfx1151; do
		misses_without t "$ROC/$gpu/${SS}_$gpu.co" "$ROC/$gpu/${SS}_$gpu.dat"
		misses_without t "$ROC/$gpu/TensileLibrary_lazy_$gpu.dat" \
			"$ROC/$gpu/TensileLibrary_lazy_$gpu.dat"
	done
	# the same file for another GPU does not help
	mv t/$ROC/gfx942/${SS}_gfx942.co t/$ROC/
	misses t "$ROC/gfx942/${SS}_gfx942.dat" "$ROC/gfx942/${SS}_gfx942.co"

	copy rocblas-mixed t
	misses_without t "$ROC/gfx942/Kernels.so-000-gfx942.hsaco" \
		"$ROC/gfx942/TensileLibrary_lazy_gfx942.dat"
	misses_without t "$ROC/${SS}_gfx1100.co" "$ROC/${SS}_gfx1100.dat"

	# a directory of one mode has no pairs, and its files may say the mode or not
	copy rocblas-feature t
	file=t/$ROC/gfx90a-xnack+/${NN}_gfx90a
	mv "$file-xnack+.co" "$file.co"
	whole t
	rm "$file.co"
	misses t "${file#t/}.dat" "${file#t/}.co" "${NN}_gfx90a-xnack+.co"
}

@test "only builds for gfx90a must have both modes" {
	copy rocblas-flat t
	cp "t/$ROC/Kernels.so-000-gfx1100.hsaco" "t/$ROC/${DD}_gfx906-xnack-.hsaco"
	whole t
	# but where one file has both, all have
	for mode in + -; do
		cp "t/$ROC/Kernels.so-000-gfx1100.hsaco" "t/$ROC/Kernels.so-000-gfx906-xnack$mode.hsaco"
	done
	misses t "$ROC/${DD}_gfx906-xnack-.hsaco" "$ROC/${DD}_gfx906-xnack+.hsaco" "other xnack mode"
}

@test "rocBLAS before libraries were lazy: code of each GPU that has rows" {
	copy rocblas-merged t
	for gpu in gfx900 gfx906; do
		misses_without t "$ROC/TensileLibrary_$gpu.co" "$ROC/TensileLibrary.dat"
	done
	# a library that names no GPU, and solutions that do
	rm t/$ROC/*_gfx906.co
	for gpu in None '"gfx906"'; do
		py t/$ROC/TensileLibrary.dat "$gpu" <<-'END'
			import sys
			from mkdb import tensile
			s = tensile.solutions(["k"], "SS", tensile.NN)
			if sys.argv[2] != "None":
			    s[0]["hardwarePredicate"] = tensile.processor("gfx906")
			open(sys.argv[1], "wb").write(tensile.pack(
			    {"solutions": s, "library": tensile.matching(1, 1)}))
		END
		[ "$gpu" = None ] || misses t $ROC/TensileLibrary.dat "$ROC/TensileLibrary_gfx906.co"
		[ "$gpu" != None ] || whole t
	done
	mkdir aside.d
	mv t/$ROC/*co aside.d
	py t/$ROC/TensileLibrary.dat <<-'END'
		import sys
		from mkdb import tensile
		open(sys.argv[1], "wb").write(tensile.pack({"library": tensile.matching(1, 1),
		    "solutions": tensile.solutions(["k"], "SS", tensile.NN)}))
	END
	misses t $ROC/TensileLibrary.dat "needs code objects"
	mv aside.d/* t/$ROC
	rm t/$ROC/TensileLibrary.dat
	cp t/$ROC/TensileLibrary_gfx900.co t/$ROC/TensileLibrary_gfx906.co
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 2 ]
	[[ "${lines[0]}" == *"needs $ROC/TensileLibrary.dat, which is missing" ]]
}

@test "hipBLASLt: children, code, external operations, mapping, stale libraries" {
	copy hipblaslt-flat t
	misses_without t "$LT/extop_gfx90a.co" "$LT/hipblasltExtOpLibrary.dat"
	misses_without t "$LT/${BS}_gfx942.co" "$LT/${BS}_gfx942.dat"
	misses_without t "$LT/Kernels.so-000-gfx942.hsaco" "$LT/TensileLibrary_lazy_gfx942.dat"
	rm "t/$LT/${BS}_gfx942.dat"
	run kpack verify -q --tree t
	[ "${#lines[@]}" -eq 2 ] # the library, and the mapping
	[[ "${lines[1]}" == "kpack: $LT/TensileLiteLibrary_lazy_Mapping.dat: needs $LT/${BS}_gfx942.dat,"* ]]

	copy hipblaslt-arch t
	for dir in gfx942 gfx1250-strict gfx1250v0; do
		gpu=${dir%-strict} gpu=${gpu%v0}
		misses_without t "$LT/$dir/extop_$gpu.co" "$LT/$dir/hipblasltExtOpLibrary_$gpu.dat.zlib"
		misses_without t "$LT/$dir/${BS}_$gpu.co" "$LT/$dir/${BS}_$gpu.dat.zlib"
		misses_without t "$LT/$dir/TensileLibrary_lazy_$gpu.dat.zlib" \
			"$LT/$dir/TensileLibrary_lazy_$gpu.dat.zlib"
	done
	# what stands there besides is not even looked into
	echo nonsense >t/$LT/gfx942/TensileLibrary_lazy_gfx942.dat
	misses t "$LT/gfx942/TensileLibrary_lazy_gfx942.dat" stale .dat.zlib
}

@test "an operation's code beside its library, whatever directory the builder had" {
	copy hipblaslt-flat t
	py t/$LT/hipblasltExtOpLibrary.dat <<-'END'
		import msgpack, sys
		row = lambda path: {"func_name": "f", "co_path": path}
		open(sys.argv[1], "wb").write(msgpack.packb({"gfx942": {"AMax": {"S": [
		    row("/build/x/extop_gfx942.co"), row("/build/x/gone.co"), row("../gone.co")]}}}))
	END
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 2 ]
	[[ "$output" == *"needs $LT/gone.co, which"*"needs $LT/../gone.co, which"* ||
		"$output" == *"needs $LT/../gone.co, which"*"needs $LT/gone.co, which"* ]]
}

@test "libraries that cannot be read: field and offset" {
	copy rocblas-flat t
	lazy=t/$ROC/TensileLibrary_lazy_gfx1100.dat
	size=$(stat -c %s $lazy)
	truncate -s $((size - 1)) $lazy
	misses t "${lazy#t/}" library "$((size - 1))"
	truncate -s 0 $lazy
	misses t "${lazy#t/}" "the map"
	printf '\x80' >$lazy
	misses t "${lazy#t/}" "library: missing"
	# a child is read, too
	copy rocblas-flat t
	truncate -s 100 "t/$ROC/${SS}_gfx1100.dat"
	misses t "$ROC/${SS}_gfx1100.dat" solutions
	copy hipblaslt-arch t
	truncate -s 100 "t/$LT/gfx942/TensileLibrary_lazy_gfx942.dat.zlib"
	misses t "$LT/gfx942/TensileLibrary_lazy_gfx942.dat.zlib" "zlib: ends after"
}

@test "a library for other GPUs than its name says" {
	copy rocblas-flat t
	cp t/$ROC/TensileLibrary_lazy_gfx1100.dat t/$ROC/TensileLibrary_lazy_gfx1030.dat
	run kpack verify --tree t
	[ "$status" -eq 1 ]
	[[ "$output" == *"TensileLibrary_lazy_gfx1030.dat: library: no row is for gfx1030, which the name says, but for gfx1100"* ]]
}

@test "kernels that another object has need none of their own" {
	copy rocblas-flat t
	# the child says assembly, and its kernels stand in an object from source
	mv "t/$ROC/${SS}_gfx1100.co" "t/$ROC/${SS}_gfx1100.hsaco"
	whole t
	cp "t/$ROC/Kernels.so-000-gfx1100.hsaco" "t/$ROC/${SS}_gfx1100.hsaco"
	misses t "$ROC/${SS}_gfx1100.dat" "$ROC/${SS}_gfx1100.co"
}

yaml() { # makes t/rocblas/library/TensileLibrary.yaml of stdin, code for two GPUs beside it
	rm -rf t
	mkdir -p t/$D/gfx1100 t/$D/gfx90a
	echo 1 >t/$D/gfx1100/one.co
	echo 2 >t/$D/gfx1100/two.co
	echo 1 >t/$D/gfx90a/one.co
	cat >t/$D/TensileLibrary.yaml
}

@test "TensileLibrary.yaml: every file that it names" {
	D=rocblas/library
	yaml <<<'{kernels: [one.co, two.co], children: [gfx1100/one.co, ./gfx90a/../gfx90a/one.co]}'
	whole t
	# for each GPU that it names
	yaml <<<'{architectures: [gfx1100, gfx90a], kernels: [one.co, two.co]}'
	misses t $D/TensileLibrary.yaml "needs $D/gfx90a/two.co, which is missing"
	yaml <<<'{gfx1100: [one.co, two.co], gfx90a: [one.co]}'
	whole t
	yaml <<<'[{arch: gfx1100, file: two.co}, {file: two.co, arch: gfx90a}]'
	misses t $D/TensileLibrary.yaml "needs $D/gfx90a/two.co, which is missing"
	yaml <<<'[one.co, three.co, x/one.hsaco, gone.dat, TensileLibrary.yaml]'
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	[ "${#lines[@]}" -eq 3 ]
	[[ "$output" == *"$D/gone.dat,"*"$D/three.co,"*"$D/x/one.hsaco,"* ]]
	# nothing outside the tree helps
	touch outside.co
	yaml <<<'[../../../outside.co]'
	misses t $D/TensileLibrary.yaml "outside.co, which is missing"
	yaml <<<'{kernels: [three'
	misses t $D/TensileLibrary.yaml "line 2: "
	yaml < <(printf '[%.0s' $(seq 100))
	misses t $D/TensileLibrary.yaml "nested deeper than 64 levels"

	copy paper-rocblas t
	for gpu in gfx1100 gfx90a; do
		misses_without t $D/$gpu/kernel_2.co $D/TensileLibrary.yaml
	done
}

@test "a table of kernels' paths, a database of kernels that is too small" {
	copy paper-fft t
	rm t/lib/rocfft/kernels/gfx90a/fft_256_single.co
	misses t lib/rocfft/kernels.db kernels/gfx90a/fft_256_single.co kernel_path "row "
	mv t/lib/rocfft/kernels.db t/lib/rocfft/kernels.sqlite3
	misses t lib/rocfft/kernels.sqlite3 kernels/gfx90a/fft_256_single.co kernel_path "row "
	copy miopen t
	kdb=$(cd t && find . -name '*.kdb' -printf '%P\n' | sort | head -n 1)
	truncate -s 511 "t/$kdb"
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: $kdb: "* ]]
}

@test "archives: files that one of them lacks, files that differ in two" {
	packed rocblas-arch
	cp -a "$F/rocblas-arch.out" out
	# of gfx90a there is one for each mode of xnack, and one for what needs none
	whole out/.kpack/*_gfx942.kpack
	whole out/.kpack/*_gfx1151.kpack
	whole out/.kpack/*_gfx90a*
	rm out/.kpack/*_gfx90a?xnack+.kpack
	run kpack verify -q --tree out
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs $ROC/gfx90a/Kernels.so-000-gfx90a-xnack+.hsaco, the other xnack mode"* ]]
	packed rocblas-flat
	cp -a "$F/rocblas-flat.out" flat
	rm flat/.kpack/*_generic.kpack
	run kpack verify -q --tree flat
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs $ROC/${DD}_fallback.dat, which is missing"* ]]
	# the tree has what the archives have not
	mkdir -p flat/$ROC
	cp "$F"/rocblas-flat/$ROC/*_fallback.dat flat/$ROC
	whole flat
	# other bytes under one path
	packed hipblaslt-shard-a
	packed hipblaslt-shard-b
	run kpack verify -q --tree "$F"/hipblaslt-shard-{a,b}.out/.kpack
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: $LT/hipblasltExtOpLibrary.dat: "* ]]
}

@test "one path with other bytes: in a tree and its archives, in two trees" {
	packed rocblas-mixed
	cp -a "$F/rocblas-mixed.out" out
	file=$ROC/Kernels.so-000-gfx1100.hsaco
	cp "$F/rocblas-mixed/$file" "out/$file"
	whole out
	whole "$F/rocblas-mixed" out
	printf X | dd of="out/$file" bs=1 seek=5000 conv=notrunc status=none
	misses out "$file" "other bytes in out/$file than in out/.kpack/rocblas-mixed_gfx1100.kpack"
	run kpack verify -q --tree out "$F/rocblas-mixed"
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: $file: other bytes in out/$file than in $F/rocblas-mixed/$file"* ]]
	printf X >>"out/$file" # and another size
	misses out "$file" "other bytes in out/$file"
}

@test "a file that is a symbolic link counts: plain, packed, and as input" {
	copy rocblas-flat t
	mkdir t/store
	for file in t/$ROC/*.co; do
		mv "$file" t/store
		ln -s "../../../store/${file##*/}" "$file"
	done
	ln -sf Kernels.so-000-gfx90a-xnack-.hsaco "t/$ROC/Kernels.so-000-gfx90a-xnack+.hsaco"
	whole t
	kpack pack -q --check t out 2>err
	[ -L "out/$ROC/Kernels.so-000-gfx90a-xnack+.hsaco" ]
	whole out
	# what it led to is gone
	rm "t/store/${SS}_gfx1100.co"
	misses t "$ROC/${SS}_gfx1100.dat" "$ROC/${SS}_gfx1100.co"
	run kpack pack -q --check t out2
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs $ROC/${SS}_gfx1100.co, which is missing"* ]]
	[ ! -e out2 ]
}

@test "a directory of a library by itself" {
	copy rocblas-mixed t
	whole t/lib
	whole t/$ROC
	whole t/$ROC/gfx942
	(cd t/$ROC && whole .)
	rm "t/$ROC/${SS}_gfx1100.co"
	misses t/$ROC "${SS}_gfx1100.dat" "${SS}_gfx1100.co"
	packed aotriton
	whole "$F/aotriton/lib/aotriton.images/amd-gfx942"
}

@test "a library that leads to more code than can be looked for" {
	mkdir -p t/$ROC
	py t/$ROC <<-'END'
		import sys
		from mkdb import tensile
		pack = tensile.pack
		row = {"predicate": {"type": "Or", "value": [{"type": "Processor", "value": "gfx1100"}] * 10000},
		       "library": {"type": "Problem", "rows": [
		           {"type": "Placeholder", "value": "TensileLibrary_%d" % i} for i in range(30)]}}
		open(sys.argv[1] + "/TensileLibrary.dat", "wb").write(
		    pack({"solutions": [], "library": {"type": "Hardware", "rows": [row]}}))
		for i in range(30):
		    open("%s/TensileLibrary_%d.dat" % (sys.argv[1], i), "wb").write(
		        pack({"solutions": [], "library": {}}))
	END
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: $ROC/TensileLibrary.dat: leads to more than 262144 code objects"* ]]
	[[ "$output" == *"needs $ROC/TensileLibrary_0.co, which is missing"* ]]
}

@test "code under the paper's keys is where the paper's layouts have it" {
	mkdir -p t/.kpack t/rocblas/library
	echo '{gfx1100: [one.co, two.co]}' >t/rocblas/library/TensileLibrary.yaml
	py <<-'END'
		from mkarchive import Archive
		a = Archive()
		a.add("rocblas/gfx1100/one", "gfx1100", b"one")
		a.write("t/.kpack/paper_gfx1100.kpack")
	END
	misses t rocblas/library/TensileLibrary.yaml \
		"needs rocblas/library/gfx1100/two.co, which is missing"
	mkdir t/rocblas/library/gfx1100
	echo two >t/rocblas/library/gfx1100/two.co
	whole t
}

@test "--libraries, --library-rules, and what is no tree" {
	copy rocblas-flat t
	rm "t/$ROC/${SS}_gfx1100.co"
	run kpack verify --tree --libraries hipblaslt,miopen t
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "kpack: note: no file of a kernel database was found" ]
	[ "${lines[1]}" = "33 files, 0 of kernel databases, 0 faults" ]
	run kpack verify -q --tree --libraries rocblas t
	[ "$status" -eq 1 ]
	echo "mine lib/rocblas *.dat generic" >rules
	run kpack verify --tree --libraries mine --library-rules rules t
	[ "$status" -eq 1 ]
	[[ "${lines[0]}" == *"needs $ROC/${SS}_gfx1100.co, which is missing" ]]
	[[ "${lines[1]}" =~ ^33\ files,\ [1-9][0-9]?\ of\ kernel\ databases,\ 1\ fault$ ]]
	run kpack verify --tree --libraries nobody t
	[ "$status" -eq 2 ]
	[[ "$output" == *"nobody"* ]]
	run kpack verify --tree --library-rules absent t
	[ "$status" -eq 1 ] || [ "$status" -eq 2 ]
	run kpack verify --libraries rocblas t
	[ "$status" -eq 2 ]
	run kpack verify --tree
	[ "$status" -eq 2 ]
	run kpack verify --tree absent
	[ "$status" -eq 1 ]
	[[ "$output" == *"kpack: absent: "* ]]
	echo no archive >file
	run kpack verify --tree file
	[ "$status" -eq 1 ]
	mkdir empty
	run kpack verify -q --tree empty
	[ "$status" -eq 1 ]
	[ "$output" = "kpack: empty: there is no file to check" ]
}

@test "pack --check: nothing is written when anything is missing" {
	for kind in rocblas-mixed hipblaslt-arch miopen; do
		tree "$kind"
		kpack pack -q --check "$F/$kind" "out-$kind"
		kpack pack -q --check --databases plain "$F/$kind" "plain-$kind"
	done
	copy rocblas-mixed t
	rm "t/$ROC/${SS}_gfx1100.co"
	for option in "--databases packed" "--databases plain" "--archives-only" "--libraries rocblas"; do
		# shellcheck disable=SC2086
		run kpack pack -q --check $option t out
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 2 ]
		[ "${lines[0]}" = "kpack: $ROC/${SS}_gfx1100.dat: needs $ROC/${SS}_gfx1100.co, which is missing" ]
		[[ "${lines[1]}" == "kpack: t: 1 fault of kernel databases: nothing is packed" ]]
		[ ! -e out ]
	done
	kpack pack -q --check --libraries hipblaslt t other
	kpack pack -q t out
}

@test "pack --check in place: files that were packed before count" {
	copy rocblas-flat t
	mkdir later
	mv t/$ROC/TensileLibrary_lazy_gfx1100.dat later
	kpack pack -q --in-place t
	mkdir -p t/$ROC
	mv later/* t/$ROC
	kpack pack -q --in-place --check t
	[ -z "$(find t/$ROC -type f)" ]
	whole t
	# a library that wants more than there is stays where it is
	py t/$ROC/TensileLibrary_lazy_gfx1030.dat <<-'END'
		import sys
		from mkdb import tensile
		open(sys.argv[1], "wb").write(tensile.parent("gfx1030", [("op", "gone_gfx1030")]))
	END
	run kpack pack -q --in-place --check t
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs $ROC/gone_gfx1030.dat, which is missing"* ]]
	[ -e t/$ROC/TensileLibrary_lazy_gfx1030.dat ]
}

@test "pack --check in place: a new build of a packed file is no fault, other archives count" {
	copy rocblas-flat t
	kpack pack -q --in-place t
	cp "$F/rocblas-flat/$ROC/${SS}_gfx1100.dat" "t/$ROC/${SS}_gfx1100.dat"
	printf '\xc0' >>"t/$ROC/${SS}_gfx1100.dat"
	run kpack verify -q --tree t
	[ "$status" -eq 1 ]
	kpack pack -q --in-place --check t
	whole t
	# the archives of INPUT go to OUTPUT, too
	cp "$F/rocblas-flat/$ROC/TensileLibrary_lazy_gfx1100.dat" t/$ROC
	kpack pack -q --check --group t t out
}

@test "--arch: a tree for one GPU is whole for it, and lacks what every GPU needs" {
	local kind gpu
	for kind in rocblas-flat rocblas-merged rocblas-mixed rocblas-arch hipblaslt-flat hipblaslt-arch \
		paper-rocblas; do
		tree $kind
		for gpu in gfx90a gfx942 gfx1100; do
			rm -rf one
			kpack pack -q --group g --arch $gpu "$F/$kind" one 2>/dev/null || continue
			kpack verify -q --tree --arch $gpu one || { echo "$kind $gpu"; false; }
		done
	done
	# the index of external operations names those of other GPUs
	kpack pack -q --group g --arch gfx942 "$F/hipblaslt-flat" lt
	run kpack verify -q --tree lt
	[ "$status" -eq 1 ]
	[[ "$output" == *"$LT/hipblasltExtOpLibrary.dat: needs $LT/extop_gfx90a.co"* ]]
	run kpack verify -q --tree --arch gfx1100,gfx90a lt
	[ "$status" -eq 1 ]
	rm lt/.kpack/g_generic.kpack
	misses lt "$LT/extop_gfx942.co" "$LT/hipblasltExtOpLibrary.dat"
	run kpack verify -q --tree --arch gfx942 lt
	[ "$status" -eq 1 ]
	kpack pack -q --group g --arch gfx1100 "$F/rocblas-flat" roc
	rm roc/.kpack/g_generic.kpack
	run kpack verify -q --tree --arch gfx1100 roc
	[ "$status" -eq 1 ]
	[[ "$output" == *"needs $ROC/${DD}_fallback.dat, which is missing"* ]]
	# one mode of xnack has no files of the other
	copy rocblas-flat mode
	find mode \( -name '*-xnack-*' -o -name '*gfx1100*' \) -delete
	kpack verify -q --tree --arch gfx90a:xnack+ mode
	run kpack verify -q --tree --arch gfx90a mode
	[ "$status" -eq 1 ]
	[[ "$output" == *"the other xnack mode"* ]]
	run kpack verify --arch gfx942 lt
	[ "$status" -eq 2 ]
	run kpack verify --tree --arch gfx942, lt
	[ "$status" -eq 2 ]
	[[ "$output" == *"--arch gfx942,: target ID"* ]]
}

@test "a library of rules is checked by what its files are, with the rules and without" {
	local rules
	copy rocblas-flat t
	mkdir -p in/lib/blas/1.2
	mv t/$ROC in/lib/blas/1.2/kernels
	printf '%s\n' "mine lib/blas/*/kernels * name" "mine lib/blas/*/kernels * generic" >rules
	kpack pack -q --group g --library-rules rules in out
	kpack ls --json out/.kpack/g_generic.kpack | grep -q '"mine"'
	for rules in "" "--library-rules rules"; do
		# shellcheck disable=SC2086
		whole $rules out
	done
	rm out/.kpack/g_generic.kpack
	for rules in "" "--library-rules rules"; do
		# shellcheck disable=SC2086
		run kpack verify -q --tree $rules out
		[ "$status" -eq 1 ]
		[[ "$output" == *"needs lib/blas/1.2/kernels/${DD}_fallback.dat, which is missing"* ]]
	done
}
