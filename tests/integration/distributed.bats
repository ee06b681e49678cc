#!/usr/bin/env bats
# contrib/examples/distributed: every recipe, run by its engine, gives the result of a single run;
# failed shards are rerun.

load packing.bash

# bats file_tags=plain, all

recipes=$BATS_TEST_DIRNAME/../../contrib/examples/distributed

# A kpack that fails, the first time, in the shards of $FAIL, and writes down what was not left
# alone.
make_flaky() {
	cat >"$T/flaky" <<-END
	#!/bin/bash
	[ "\$1" = pack ] || exec "$KPACK_BIN/kpack" "\$@"
	for f in \${FAIL-}; do
		if [[ " \$* " == *" --shard \$f/"* ]] && ( set -C; : >"$T/failed.\$f" ) 2>/dev/null; then
			echo "\$*" >>"$T/runs"
			kill -KILL \$\$
		fi
	done
	record=\${!#}/.kpack-part
	was=\$(stat -c %i-%y "\$record" 2>/dev/null)
	"$KPACK_BIN/kpack" "\$@" || exit
	[ "\$was" = "\$(stat -c %i-%y "\$record")" ] || echo "\$*" >>"$T/runs"
	END
	chmod +x "$T/flaky"
	export KPACK=$T/flaky
}

needs() { # PROGRAM...
	local program
	for program; do
		if ! command -v "$program" >/dev/null; then
			[ "${CI-}" != true ]
			skip "needs $program"
		fi
	done
}

make_input() {
	mkdir -p "a tree/lib" "a tree/share"
	for i in 1 2 3 4; do
		mkfat --seed $i --size 3000 "a tree/lib/lib$i.so"
	done
	mkfat --seed 1 "a tree/lib/again.so"
	echo text >"a tree/share/it's \$text"
	chmod 0555 "a tree/share"
	kpack pack -q --group g "a tree" want
	make_flaky
}

change_input() {
	mkfat --seed 9 --size 3000 "a tree/lib/lib2.so"
	rm -rf want
	kpack pack -q --group g "a tree" want
}

same_as_one_run() { # OUT
	diff -r want "$1"
	(cd want && find . -printf '%p %m %y\n' | sort) >names.want
	(cd "$1" && find . -printf '%p %m %y\n' | sort) >names.out
	diff names.want names.out
}

# How many times each shard was packed: "1 2 1" ...
runs() { # N
	local i
	for i in $(seq "$1"); do
		grep -c -e "--shard $i/" runs
	done | xargs
}

@test "make" {
	needs make
	make_input
	run_make() { env -u MAKEFLAGS -u MAKELEVEL make -s -f "$recipes/shards.mk" "$@" 3>&-; }
	run_make -j 3 INPUT="a tree" OUT="an out" N=3 OPTIONS="--group g"
	same_as_one_run "an out"
	[ ! -e "an out.parts" ]
	# one that is killed does not stop the others, and is done by the next make alone
	rm -f runs
	status=0
	FAIL=2 run_make -k -j 2 INPUT="a tree" OUT=out N=3 OPTIONS="--group g" 2>make.err || status=$?
	[ $status -eq 2 ]
	[ ! -e out ]
	run_make -k INPUT="a tree" OUT=out N=3 OPTIONS="--group g" KEEP=1
	same_as_one_run out
	[ "$(runs 3)" = "1 2 1" ]
	[ -d out.parts ]
	# parts of what INPUT was are not joined
	change_input
	rm -rf out
	run_make -j 2 INPUT="a tree" OUT=out N=3 OPTIONS="--group g" KEEP=1
	same_as_one_run out
	run_make clean OUT=out INPUT=x
	[ ! -e out.parts ]
	# what runs it elsewhere
	printf '#!/bin/sh\necho elsewhere >>"%s/elsewhere"\nexec "$@"\n' "$T" >remote
	chmod +x remote
	run_make INPUT="a tree" OUT=out2 N=2 OPTIONS="--group g" RUN=./remote
	same_as_one_run out2
	[ "$(wc -l <elsewhere)" = 2 ]
	! run_make OUT=x 2>/dev/null || false
}

@test "ninja" {
	needs ninja
	make_input
	PARTS="p a:r\$ts" "$recipes/shards-ninja" "a tree" "an \$out" 3 --group g >build.ninja
	status=0
	FAIL="1 3" ninja -k 0 >ninja.log 2>&1 || status=$?
	[ $status -ne 0 ]
	[ ! -e "an \$out" ]
	ninja -k 0 >ninja.log 2>&1 || { cat ninja.log; false; }
	same_as_one_run "an \$out"
	[ "$(runs 3)" = "2 1 2" ]
	# what is finished is not joined again
	stat -c %y p*/merged >merged.was
	ninja >ninja.log
	[ "$(runs 3)" = "2 1 2" ]
	diff merged.was <(stat -c %y p*/merged)
	status=0
	"$recipes/shards-ninja" x 2>err || status=$?
	[ $status -eq 2 ]
}

@test "GNU parallel" {
	needs parallel
	make_input
	export PARALLEL_HOME=$T/.parallel
	mkdir -p "$PARALLEL_HOME"
	# a retry in the same run
	FAIL=2 "$recipes/shards-parallel" "a tree" "an out" 3 --group g 3>&- 2>err
	same_as_one_run "an out"
	[ ! -e "an out.parts" ]
	[ "$(runs 3)" = "1 2 1" ]
	# none: the next run does it
	rm -f runs failed.*
	status=0
	FAIL="1 2" RETRIES=1 "$recipes/shards-parallel" "a tree" out 3 --group g 3>&- 2>err || status=$?
	[ $status -ne 0 ]
	[ ! -e out ]
	KEEP=1 "$recipes/shards-parallel" "a tree" out 3 --group g 3>&- 2>err
	same_as_one_run out
	[ "$(runs 3)" = "2 2 1" ]
}

@test "names with characters that the engines interpret" {
	needs parallel ninja
	mkdir tree
	mkfat tree/a.so
	kpack pack -q --group g --key-prefix "x{}'y" tree want
	export KPACK=$KPACK_BIN/kpack PARALLEL_HOME=$T/.parallel
	mkdir -p "$PARALLEL_HOME"
	local name
	for name in "a{}b" "{.}{#}{%}{1}{2}" "{=\$_++=}" "back\\cslash\\n" "it's \$HOME" ' lead' "q\"x"; do
		mkdir "in $name"
		cp -p tree/a.so "in $name/"
		touch -r tree "in $name"
		"$recipes/shards-parallel" "in $name" "out $name" 2 --group g --key-prefix "x{}'y" 3>&- 2>err || { cat err; false; }
		same_as_one_run "out $name"
		rm -rf "out $name"
		"$recipes/shards-ninja" "in $name" "out $name" 2 --group g --key-prefix "x{}'y" >build.ninja
		ninja >ninja.log || { cat ninja.log; false; }
		same_as_one_run "out $name"
	done
	status=0
	"$recipes/shards-ninja" "in"$'\n'"x" out 2 >out.ninja 2>err || status=$?
	[ $status -eq 2 ]
	[ ! -s out.ninja ]
	grep -q 'takes no name of several lines' err
	# an empty word
	"$recipes/shards-parallel" tree empty 1 --key-prefix '' --group g 3>&- 2>err
	[ -e empty/a.so ]
	for name in 0 -1 x '' 1x 01; do
		for recipe in shards-parallel shards-ninja slurm-submit; do
			status=0
			"$recipes/$recipe" tree none "$name" >/dev/null 2>err || status=$?
			[ $status -eq 2 ]
			grep -q 'N is no number from 1' err
		done
	done
	[ ! -e none ] && [ ! -e none.parts ]
}

# ---- Slurm --------------------------------------------------------------------------------------

# A stand-in for the cluster: sbatch runs the tasks at once, one after the other, as processes of the queue would,
# and a job whose dependency failed does not run.
make_sbatch() {
	mkdir bin
	cat >bin/sbatch <<-'END'
	#!/bin/bash
	[ "$1" = --parsable ] || exit 9
	first=1 last=1
	while [[ $1 == --* ]]; do
		case $1 in
		--array=*) first=${1#*=} last=${first#*-} first=${first%-*} array=1 ;;
		--export=ALL,SHARDS=*) export "SHARDS=${1#*SHARDS=}" ;;
		--dependency=afterok:*) [ -e "$JOBS/${1##*:}.ok" ] || { echo 99; exit; } ;;
		--parsable | --kill-on-invalid-dep=yes) ;;
		*) exit 9 ;;
		esac
		shift
	done
	job=$(($(ls "$JOBS" | wc -l) + 1))
	: >"$JOBS/$job"
	good=1
	for ((task = first; task <= last; task++)); do
		[ -z "${array-}" ] || export SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MAX=$last SLURM_ARRAY_TASK_COUNT=$last
		"$@" >&2 || good=
	done
	[ -z "$good" ] || mv "$JOBS/$job" "$JOBS/$job.ok"
	echo "$job;cluster"
	END
	chmod +x bin/sbatch
	mkdir jobs
	export PATH=$T/bin:$PATH JOBS=$T/jobs
}

@test "Slurm: an array and the job that joins, and a task that was killed" {
	make_input
	make_sbatch
	"$recipes/slurm-submit" "a tree" "$T/an out" 3 --group g >said
	diff - said <<<"1;cluster 2;cluster"
	same_as_one_run "an out"
	[ ! -e "an out.parts" ]
	rm -f runs
	# killed once: it fails, and nothing is joined; sent again, it alone is done
	FAIL=2 "$recipes/slurm-submit" "a tree" "$T/out" 3 --group g >said
	[ ! -e out ]
	[ -e out.parts/1/.kpack-part ]
	[ ! -e out.parts/2/.kpack-part ]
	"$recipes/slurm-submit" "a tree" "$T/out" 3 --group g >said
	same_as_one_run out
	[ "$(runs 3)" = "1 2 1" ]
	# a task alone: one index does not say how many there are
	SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=1 SHARDS=3 \
		"$recipes/slurm-shards" "a tree" "an out" --group g
	[ -e "an out.parts/2/.kpack-part" ]
	status=0
	SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MAX=2 SLURM_ARRAY_TASK_COUNT=1 \
		"$recipes/slurm-shards" "a tree" out2 2>err || status=$?
	[ $status -eq 2 ]
	grep -q SHARDS err
}
