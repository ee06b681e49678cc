# SPDX-License-Identifier: MIT
# Shared by proof.bats and tools.bats: convert, load, compare.

python=/usr/bin/python3
tools=$BATS_TEST_DIRNAME
stub=$KPACK_BIN/tests/stub
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
offload=(--offload-arch=gfx1100 --offload-arch=gfx90a:sramecc-:xnack+)

kpack() { "$KPACK_BIN/kpack" "$@"; }
elfcheck() { $python "$tools/elfcheck.py" "$@"; }
hosts() { $python "$tools/hosts.py" "$@"; }
hip() { clang-22 -x hip -nogpuinc -nogpulib -O1 -gdwarf-4 -fexceptions "${offload[@]}" "$@"; }

have_clang() {
	local program
	for program in clang-22 clang-offload-bundler-22 ld.lld-22; do
		command -v $program >/dev/null || return 1
	done
}

need_clang() {
	have_clang || skip "no clang-22, clang-tools-22 or lld-22"
}

# The linkers there are; Debian 12 has all three.
linkers() {
	local ld
	for ld in bfd gold lld; do
		[ "${CI-}" != true ] && ! command -v ld.$ld >/dev/null || echo $ld
	done
}

# a.hip, b.hip and c.hip: each a kernel, and a function that launches it; c is for one
# architecture more.  answer() launches a's, throws and catches.
sources() {
	local name
	for name in a b c; do
		cat >$name.hip <<-END
		#define __global__ __attribute__((global))
		struct dim3 { unsigned x, y, z; dim3(unsigned n) : x(n), y(1), z(1) {} };
		extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
		extern "C" unsigned __hipPushCallConfiguration(dim3, dim3, unsigned long = 0, void * = 0);
		extern "C" unsigned __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);
		extern "C" __global__ void kernel_$name(int *p) { p[0] += sizeof "$name"; p[1] = '$name'; }
		extern "C" int launch_$name(void) { kernel_$name<<<1, 1>>>(nullptr); return 7; }
		END
	done
	cat >>a.hip <<-'END'
	static int zeros[5000];
	static thread_local int per_thread = 3;
	__attribute__((noinline)) static void thrower(int n) { if (n >= 0) throw n; }
	extern "C" int answer(void *out, long n)
	{
		try {
			thrower(launch_a() * per_thread * 2);
		} catch (int caught) {
			return zeros[n] ? 1 : caught;
		}
		return 0;
	}
	END
	echo 'int answer(void *, long); int main(void) { return answer(0, 0) != 42; }' >main.c
}

# Link by clang-22 with what HIP code needs at run time.
link() { # OPTION... FILE...
	clang-22 -no-hip-rt -Wl,--allow-shlib-undefined "$@" -L"$stub" -l:libamdhip64.so.5 -l:libstdc++.so.6
}

# A sanitizer's runtime must be there before all else, also in a program without one, and what
# throws before it looks for that.
preload() { # FILE
	local list
	case $KPACK_MODE in
	asan | tsan) ;;
	*) return ;;
	esac
	list=$(readelf -dW "$KPACK_BIN/librocm_kpack.so" |
		sed -n 's/.*NEEDED.*\[\(lib[a-z]*san\.so[^]]*\)\]/\1/p' | paste -sd :)
	# clang's is part of a program that was made with it
	[ -n "$list" ] || [[ $1 == "$stub"/* ]] ||
		list=$(clang -print-file-name=libclang_rt."$KPACK_MODE"-x86_64.so)
	echo "${list:+$list:}libstdc++.so.6"
}

is_program() { # FILE
	readelf -hlW "$1" | grep -qE 'INTERP|Type: +EXEC'
}

# What is registered stays in memory until the end, and is no leak.
run_program() { # PROGRAM ARGUMENT...
	local list
	list=$(preload "$1")
	LD_PRELOAD=${list:+$list:}${HELPER-} ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 "$@"
}

# Load a library, or run a program, and call FUNCTION of a library.
run_host() { # FILE [FUNCTION[=N]]
	local file
	file=$(realpath -s "$1")
	if is_program "$file"; then
		run_program "$file"
	else
		run_program "$stub/load" -c "${2-answer}" "$file"
	fi
}

# What every wrapper of FILE gives to each of AGENTS, and what it registers and launches; no
# AGENTS: what it has.  In no order.
record() { # FILE AGENTS [FUNCTION]
	rm -f log
	LD_LIBRARY_PATH=${RUNTIME:-$stub}:${LIBRARIES-} STUB_LOG=$PWD/log STUB_ARCHES=$2 run_host "$1" "${3-answer}" >said ||
		{ echo "$1: exit $?"; return 1; }
	! grep -E '^[^ ]+ [0-9]+ fault ' log || false
	sort log said
}

# Agents to ask for: those there is code for, some with more features, one without code.
agents() { # LOG
	awk 'NF == 5 { print $3 }' "$1" | sort -u | awk '{ printf "%s ", $0 }
		!/:/ { printf "%s:sramecc+:xnack- ", $0 }
		END { print "gfx1010" }'
}

# The lines of record without the file and the number, of which a runtime sees only the
# helper's memory.
without_files() { # LOG
	sed -E 's/^[^ ]+ [0-9]+ //' "$1" | sort
}

# As record, on a runtime that takes no converted files, with libkpack_hip.so.
record_helped() { # FILE AGENTS [FUNCTION]
	local gpus=
	for gpu in $2; do
		gpus+=${gpu%%:*},
	done
	RUNTIME=$stub/old HELPER=$KPACK_BIN/libkpack_hip.so KPACK_HIP_ARCH=$gpus KPACK_HIP_DEBUG=0 record "$@"
}

# The fat file and its converted form give the same, and the latter is well-formed.
same() { # FAT CONVERTED [FUNCTION]
	local who
	record "$1" "" "${3-answer}" >has.log
	[ "$(awk 'NF == 5' has.log | wc -l)" -gt 0 ] || { echo "$1: registers nothing"; return 1; }
	who=$(agents has.log)
	record "$1" "$who" "${3-answer}" >fat.log
	record "$2" "$who" "${3-answer}" >converted.log
	diff fat.log converted.log
	[ "$KPACK_MODE" = release ] || return 0 # the sanitizers have hip.bats
	record_helped "$2" "$who" "${3-answer}" >helped.log
	diff <(without_files fat.log) <(without_files helped.log)
}

# Pack and convert FILE into the tree OUT: OUT/base name of FILE.
convert() { # FILE OUT [OPTION...]
	rm -rf "$2"
	kpack pack -q "${@:3}" "$1" "$2"
}

# All of it.
proves() { # FILE [FUNCTION]
	local converted
	converted=out/$(basename "$1")
	convert "$1" out
	kpack verify -q out/.kpack
	elfcheck "$1" "$converted"
	same "$1" "$converted" "${2-answer}"
}

section_size() { # FILE SECTION
	echo $((0x$(readelf -SW "$1" | sed -n "s/.* \\$2  *[A-Z]* *[0-9a-f]* [0-9a-f]* \([0-9a-f]*\) .*/\1/p")))
}

# kpack leaves a host as it is only if it would become longer: if the marker, the recipe, and their
# section headers and names are more than its code.  Drops these hosts; any other message is a fault.
refused_rightly() { # <MESSAGES
	local line file code names='.rocm_kpack_ref .rocm_kpack_layout '
	while read -r line; do
		[[ $line == "kpack: h/"*": it would become longer: its device code has "* ]] || { echo "$line"; return 1; }
		file=${line#kpack: }
		file=${file%%:*}
		cmp "$file" "out/${file#h/}"
		code=$(section_size "$file" .hip_fatbin)
		[[ $line == *" has $code bytes, which is less than what takes its place" ]]
		kpack mark convert --keep-device-code --kernel-name "${file#h/}" --search-path .kpack/h_@GFXARCH@.kpack "$file" kept
		((code < $(section_size kept .rocm_kpack_ref) + $(section_size kept .rocm_kpack_layout) + 2 * 64 + ${#names}))
		rm "$file" "out/${file#h/}"
	done
}

# The same of all hosts that hosts.py makes of the lines on standard input.
proves_hosts() { # [OPTION OF hosts.py]...
	local file
	hosts "$@" h "$stub" >made
	convert h out 2>left
	refused_rightly <left
	kpack verify -q out/.kpack
	elfcheck h out
	case " $* " in
	*" --machine "*) return ;; # they cannot be run here
	esac
	for file in h/*; do
		echo "now $file" >>made
		same "$file" "out/${file#h/}"
	done
	rm -r h
}

# Sets LIB to Debian's library of that name.
fetch() { # NAME
	local dir status=0
	dir=$("$KPACK_SRC/contrib/install-deps" --inputs "$KPACK_SRC/build/inputs" 2>fetch.err) || status=$?
	if [ "$status" -ne 0 ]; then
		cat fetch.err
		[ "${CI-}" != true ] || return 1
		[ "$status" -eq 3 ] || return 1
		skip "Debian's packages cannot be fetched"
	fi
	LIB=$(find "$dir" -name "$1.so.*" -type f)
	[ -f "$LIB" ]
}
