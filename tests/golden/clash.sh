# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# For the cases in which two builds of kernel databases meet.

lib=lib/rocblas/library
F=$lib/TensileLibrary_Type_DD_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback.dat
P=$lib/TensileLibrary_lazy_gfx1100.dat

# build DIR WORD: WORD is in the file that every GPU needs
build() {
	mkdir -p "$1/$lib/gfx942" "$1/share/miopen/db" "$1/share/doc"
	echo "fallback $2" >"$1/$F"
	echo parent >"$1/$P"
	echo parent >"$1/$lib/gfx942/TensileLibrary_lazy_gfx942.dat"
	echo 1000-13=solver:1 >"$1/share/miopen/db/gfx942130.db.txt"
	echo text >"$1/share/doc/text"
}

# p OPTION...: pack, and say in a line what came of OUT, the last operand
p() {
	for out; do :; done
	kpack pack "$@" 2>&1 >/dev/null | grep -v 'more than the input' >said
	look "$out" >>said
	echo "$*: $(sed "s|$F|FALLBACK|g; s|$P|PARENT|g; s|^kpack: ||" said | paste -sd '|')"
	rm said
}

# look DIR: both files, plain and in archives
look() {
	for f in "$F" "$P"; do
		if [ -L "$1/$f" ]; then echo "link"; elif [ -e "$1/$f" ]; then echo "plain: $(cat "$1/$f")"; fi
	done
	for a in "$1"/.kpack/*_generic.kpack "$1"/.kpack/*_gfx1100.kpack; do
		for k in "$F generic" "$P gfx1100"; do
			# shellcheck disable=SC2086 # key and target
			[ ! -e "$a" ] || ! x=$(kpack cat "$a" $k 2>/dev/null) || echo "${a##*/}: $x"
		done
	done
}
