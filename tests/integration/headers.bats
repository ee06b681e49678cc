#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The public headers in any order, and their promises to C and C++ code.

# bats file_tags=single

setup()
{
	headers="kpack.h kpackx.h kpack_design.h kpack_types.h kpack_export.h"
	work=$BATS_TEST_TMPDIR
}

# compile LANGUAGE STANDARD FILE
compile()
{
	${CC:-cc} -x "$1" -std="$2" -Wall -Wextra -pedantic -Werror -I"$KPACK_SRC/core" \
		-fsyntax-only "$3"
}

@test "each header stands alone and before all others, in C11 and C++17" {
	for first in $headers; do
		printf '#include "rocm_kpack/%s"\n' "$first" $headers >"$work/all.c"
		echo 'int main(void) { return 0; }' >>"$work/all.c"
		compile c c11 "$work/all.c"
		compile c++ c++17 "$work/all.c"
	done
}

@test "code for the paper's calls compiles beside kpack.h in either order" {
	for order in "kpack.h kpack_design.h" "kpack_design.h kpack.h" "kpackx.h kpack_design.h"; do
		# shellcheck disable=SC2086 # two names
		printf '#include "rocm_kpack/%s"\n' $order >"$work/paper.c"
		cat >>"$work/paper.c" <<-'C'
			size_t use(kpack_archive_t archive, kpack_kernel_t unused);
			size_t use(kpack_archive_t archive, kpack_kernel_t unused)
			{
				const char **arches, **names, *json;
				const void *data;
				size_t n = 0;

				(void)unused;
				if (kpack_get_architectures(archive, &arches, &n) == KPACK_SUCCESS &&
				    kpack_list_kernels(archive, "x", arches[0], &names, &n) == KPACK_SUCCESS &&
				    kpack_get_kernel_metadata(archive, names[0], arches[0], &json, &n) ==
					    KPACK_SUCCESS &&
				    kpack_get_kernel(archive, names[0], arches[0], &data, &n) == KPACK_SUCCESS)
					kpack_free_kernel(archive, data);
				else
					n = kpack_get_last_error(archive)[0] + kpack_error_string(KPACK_SUCCESS)[0];
				return n;
			}
		C
		compile c c11 "$work/paper.c"
		compile c++ c++17 "$work/paper.c"
	done
}

@test "without the paper's header AMD's calls have AMD's shape" {
	cat >"$work/amd.c" <<-'C'
		#include "rocm_kpack/kpack.h"
		#include "rocm_kpack/kpackx.h"
		kpack_error_t (*get)(kpack_archive_t, const char *, const char *, void **, size_t *) =
			kpack_get_kernel;
		void (*release)(void *) = kpack_free_kernel;
	C
	compile c c11 "$work/amd.c"
	compile c++ c++17 "$work/amd.c"
}

@test "kpack.h leaves all other names to programs for AMD's library" {
	cat >"$work/own.c" <<-'C'
		#include <rocm_kpack/kpack.h>
		static const char *kpack_error_string(kpack_error_t code)
		{
			return code == KPACK_SUCCESS ? "none" : "some";
		}
		static const char *kpack_get_last_error(void) { return ""; }
		static int kpack_get_architectures(int x) { return x; }
		static int kpack_list_kernels(int x) { return x; }
		static int kpack_get_kernel_metadata(int x) { return x; }
		static int kpackx_version(int x) { return x; }
		typedef struct kpack_kernel { int x; } *kpack_kernel_t;
		int main(void)
		{
			struct kpack_kernel kernel = { kpackx_version(0) };
			kpack_kernel_t own = &kernel;

			return kpack_error_string(KPACK_SUCCESS)[0] == kpack_get_last_error()[0] ||
			       kpack_get_architectures(own->x) || kpack_list_kernels(0) ||
			       kpack_get_kernel_metadata(0);
		}
	C
	compile c c11 "$work/own.c"
	compile c++ c++17 "$work/own.c"
}

@test "kpack.h declares AMD's fourteen calls" {
	echo '#include <rocm_kpack/kpack.h>' | ${CC:-cc} -E -P -I"$KPACK_SRC/core" - |
		grep -oE '\bkpackx?_[a-z_]+\(' | sort -u >"$work/ours"
	grep '^AMD_API' "$KPACK_SRC/tests/stub/amd_kpack.h" | grep -oE '\bkpack_[a-z_]+\(' | sort -u >"$work/amd"
	[ "$(wc -l <"$work/amd")" = 14 ]
	diff "$work/amd" "$work/ours"
}
