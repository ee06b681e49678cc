# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# For the cases of "kpack verify --tree": t is a tree.

ROC=lib/rocblas/library
LT=lib/hipblaslt/library
C=Contraction_l_Ailk_Bljk_Cijk_Dijk

# v [OPTION]... [TREE]: what is wrong with t, or TREE
v() {
	[ -d t ] && set -- "$@" t
	echo "-- $*"
	kpack verify -q --tree "$@" 2>&1 && echo whole
}

# fresh KIND: t is a new copy
fresh() {
	rm -rf t
	cp -a "$IN/databases/$1" t
}

# without FILE...: the same without each of these files, which come back
without() {
	for f; do
		mv "t/$f" aside
		v | sed "1s/.*/-- without ${f##*/}/"
		mv aside "t/$f"
	done
}

# dat FILE EXPRESSION: the file has this value, as MessagePack; GPU(...) and KERNELS(...) make rows and solutions
dat() {
	mkdir -p "t/$(dirname "$1")"
	PYTHONPATH=$SRC/tests/integration python3 -c 'import sys
from mkdb import tensile
from mkdb.tensile import NN, matching, pack, parent, processor
def GPU(gpu, value="a", kind="Placeholder"):
    return {"predicate": processor(gpu), "library": {"type": kind, "value": value}}
def KERNELS(*names, gpu=None):
    made = tensile.solutions(list(names), "SS", NN)
    for s in made if gpu else []:
        s["hardwarePredicate"] = processor(gpu)
    return made
def nested(n, end):
    return {"library": nested(n - 1, end)} if n else end
data = eval(sys.argv[2])
open(sys.argv[1], "wb").write(data if isinstance(data, bytes) else pack(data))' "t/$1" "$2"
}

# one FILE VALUE: what is wrong when the file has this value, in a line
one() {
	dat "$1" "$2"
	echo "$2: $(v | sed "1d; s|kpack: $1: ||")" | tr '\n' ' ' | sed 's/ $//'
	echo
}
