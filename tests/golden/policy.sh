# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2086
# For the cases of kpack apply: $IN/thick as ./thick, policies, the commands, and the GPUs that files have code for.
export ROCM_PATH=/nowhere
cp -a $IN/thick .
mkdir policies
# policy NAME thin|pack LIST TREE [OPTION]: a policy that thins, and perhaps packs
policy() {
	echo "thin --arch $3 ${5-} $4" >policies/$1.conf
	[ $2 = thin ] || echo "pack --in-place --arch $3 $4" >>policies/$1.conf
}
a() { t kpack apply --policy-dir policies --state-dir state --no-mounts "$@"; }
s() { t kpack status --policy-dir policies --state-dir state "$@" | sed "s/\(last.run.*: \"*\)2[-0-9: TUCZ]*/\1(then)/"; }
fields() { s --json | tr -d '\n ' | grep -o "\"\($1\)\":[^,]*" | tr '\n' ' '; echo; }
gpus() { for x; do echo "$x: $(kpack inspect $x | grep -o 'gfx[0-9a-z:+-]*' | sort | uniq -c | tr -s ' \n' ' ')"; done; }
