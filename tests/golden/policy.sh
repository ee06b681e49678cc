# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2086
# For the cases of kpack apply: $IN/thick as ./thick, a policy, the commands, and the GPUs that files have code for.
export ROCM_PATH=/nowhere KPACKFS_RUN=$PWD/run
cp -a $IN/thick .
mkdir policies
policy() { n=$1; shift; printf "%s\n" "$@" >policies/$n.conf; }
a() { kpack apply --policy-dir policies --state-dir state --no-mounts "$@" 2>&1 || echo "[$?]"; }
s() { kpack status --policy-dir policies --state-dir state "$@" 2>&1 | grep -v "last run: 2"; }
fields() { s --json | tr -d '\n ' | grep -o "\"\($1\)\":[^,]*" | tr '\n' ' '; echo; }
gpus() { for x; do echo "$x: $(kpack inspect $x | grep -o 'gfx[0-9a-z:+-]*' | sort | uniq -c | tr -s ' \n' ' ')"; done; }
fat() { python3 $SRC/tests/integration/mkfat.py --size 3000 --seed "$@"; }
