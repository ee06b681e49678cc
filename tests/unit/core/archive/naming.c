/* SPDX-License-Identifier: MIT */
#include "core/archive/naming.h"
#include "core/base/bounds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

TEST(archives_are_named_and_recognised)
{
	static const struct {
		const char *name, *group;
		unsigned volume; /* 0: not an archive of the group */
		const char *stem;
	} names[] = {
		{"rocm_gfx942.kpack", "rocm", 1, "_gfx942"},
		{"rocm_gfx90a:xnack+.kpack", "rocm", 1, "_gfx90a:xnack+"},
		{"rocm-gfx11.kpack", "rocm", 1, "-gfx11"},
		{"rocm.2_gfx942.kpack", "rocm", 2, "_gfx942"},
		{"rocm.4294967295_x.kpack", "rocm", UINT32_MAX, "_x"},
		{"rocm.4294967296_x.kpack", "rocm", 0, NULL},
		{"rocm.1_gfx942.kpack", "rocm", 0, NULL},
		{"rocm.02_gfx942.kpack", "rocm", 0, NULL},
		{"rocm.kpack", "rocm", 0, NULL},
		{"rocm.2.kpack", "rocm", 0, NULL},
		{"rocm2_gfx942.kpack", "rocm", 0, NULL},
		{"rocm_gfx942.kpac", "rocm", 0, NULL},
		{"roc", "rocm", 0, NULL},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct kp_span stem;
		unsigned volume;
		char *again, *text;

		if (!names[i].volume) {
			assert_false(kp_archive_name_split(names[i].name, names[i].group,
							   &volume, &stem));
			continue;
		}
		assert_true(kp_archive_name_split(names[i].name, names[i].group, &volume,
						  &stem));
		assert_int_equal(volume, names[i].volume);
		assert_true(kp_span_is(stem, names[i].stem));
		text = strndup((const char *)stem.data, stem.size);
		again = kp_archive_file_name(names[i].group, volume, text);
		assert_string_equal(again, names[i].name);
		free(again);
		free(text);
	}
	assert_true(kp_is_archive_name("a.kpack"));
	assert_true(kp_is_archive_name(".kpack/a.kpack"));
	assert_true(kp_is_archive_of_tree(".kpack/a.kpack"));
	assert_true(kp_is_archive_of_tree("torch/.kpack/a.kpack"));
	assert_false(kp_is_archive_of_tree("a.kpack"));
	assert_false(kp_is_archive_of_tree("engines/a.kpack"));
	assert_false(kp_is_archive_of_tree("x.kpack/a.kpack"));
	assert_false(kp_is_archive_of_tree(".kpack/x/a.kpack"));
	assert_false(kp_is_archive_of_tree(".kpack/readme"));
	assert_false(kp_is_archive_name(".kpack"));
	assert_false(kp_is_archive_name(".kpack/.a.kpack"));
	assert_false(kp_is_archive_name(".a.kpack"));
	assert_false(kp_is_archive_name("a.kpack.tmp"));
	assert_int_equal(kp_archive_stem(kp_span_str("a.kpack")), 1);
	assert_int_equal(kp_archive_stem(kp_span_str(".kpack")), 0);
	assert_int_equal(kp_archive_stem(kp_span_str("kpack")), 0);
}

TEST(keys_are_split)
{
	static const struct {
		const char *key, *binary;
		uint32_t index;
	} keys[] = {
		{"lib/x.so#0", "lib/x.so", 0},
		{"lib/x.so#7", "lib/x.so", 7},
		{"lib/x.so#4294967295", "lib/x.so", UINT32_MAX},
		{"lib/x.so#4294967296", "lib/x.so#4294967296", 0},
		{"lib/x.so#9999999999", "lib/x.so#9999999999", 0},
		{"lib/x.so#10000000000", "lib/x.so#10000000000", 0},
		{"lib/x.so#00000000001", "lib/x.so#00000000001", 0},
		{"lib/x.so#99999999999999999999999", "lib/x.so#99999999999999999999999",
		 0},
		{"lib/x.so", "lib/x.so", 0},
		{"lib/x.so.5", "lib/x.so.5", 0},
		{"lib/x.so#", "lib/x.so#", 0},
		{"lib/x.so#01", "lib/x.so#01", 0},
		{"lib/x.so#00", "lib/x.so#00", 0},
		{"lib/x.so#-1", "lib/x.so#-1", 0},
		{"lib/x.so#1a", "lib/x.so#1a", 0},
		{"lib/x.so@openmp#3", "lib/x.so@openmp", 3},
		{"a##1", "a#", 1},
		{"a#1#2", "a#1", 2},
		{"#1", "#1", 0},
		{"1", "1", 0},
		{"#", "#", 0},
		{"", "", 0},
	};

	for (size_t i = 0; i < COUNT(keys); i++) {
		struct kp_key key = kp_key_split(kp_span_str(keys[i].key));

		assert_true(kp_span_is(key.binary, keys[i].binary));
		assert_int_equal(key.index, keys[i].index);
	}
}

TEST(entries_have_file_names)
{
	static const struct {
		const char *arch;
		uint32_t index;
		const char *type, *name; /* NULL: none */
	} names[] = {
		{"gfx1030", 0, "hsaco", "gfx1030.hsaco"},
		{"gfx90a:xnack+", 1, "hsaco", "gfx90a:xnack+#1.hsaco"},
		{"gfx9", UINT32_MAX, "co", "gfx9#4294967295.co"},
		{"generic", 0, "dat", "generic.dat"},
		{"a/b", 0, "co", NULL},
		{"a", 0, "co/x", NULL},
		{"..", 0, "/x", NULL},
		{".", 0, "", NULL},
		{".", 0, ".", "..."},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		char out[256];
		size_t size = 0;
		bool ok = kp_toc_file_name(kp_span_str(names[i].arch), names[i].index,
					   kp_span_str(names[i].type), out, &size);

		assert_int_equal(ok, names[i].name != NULL);
		if (ok)
			assert_true(kp_span_is((struct kp_span){(uint8_t *)out, size},
					       names[i].name));
	}
}

TEST(file_names_have_at_most_255_bytes)
{
	char text[4096], out[256];
	size_t size;

	memset(text, 'a', sizeof(text));
	for (size_t arch = 240; arch < 260; arch++) {
		for (size_t type = 0; type < 20; type++) {
			struct kp_span a = {(uint8_t *)text, arch},
				       t = {(uint8_t *)text, type};

			assert_int_equal(kp_toc_file_name(a, 0, t, out, &size),
					 arch + 1 + type <= 255);
			assert_int_equal(kp_toc_file_name(a, 10, t, out, &size),
					 arch + 4 + type <= 255);
			assert_false(kp_toc_file_name(
				t, 0, (struct kp_span){a.data, 4096}, out, &size));
		}
	}
}

TEST(the_papers_keys_have_paths)
{
	static const struct {
		const char *key, *arch, *path; /* NULL: none */
	} keys[] = {
		{"rocblas/gfx1100/kernel_1", "gfx1100",
		 "rocblas/library/gfx1100/kernel_1.co"},
		{"hipblaslt/gfx1100/gemm_kernel_1", "gfx1100",
		 "hipblaslt/library/TensileLibrary/gfx1100/gemm_kernel_1.co"},
		{"aotriton/gfx1100/flash_attention_fwd", "gfx1100",
		 "aotriton/kernels/gfx1100/flash_attention_fwd.hsaco"},
		{"aotriton/gfx90a:xnack+/a/b", "gfx90a:xnack+",
		 "aotriton/kernels/gfx90a:xnack+/a/b.hsaco"},
		{"fft/gfx1100/1024/single/kernel", "gfx1100", NULL},
		{"rocblas/gfx1100/k", "gfx1101", NULL},
		{"rocblas/gfx1100/k", "gfx110", NULL},
		{"rocblas/gfx1100/", "gfx1100", NULL},
		{"rocblas/gfx1100", "gfx1100", NULL},
		{"rocblas/", "", NULL},
		{"rocblas", "gfx1100", NULL},
		{"lib/rocblas/gfx1100/k", "gfx1100", NULL},
	};

	for (size_t i = 0; i < COUNT(keys); i++) {
		char out[256];
		size_t size = 0;
		bool ok = kp_legacy_path(kp_span_str(keys[i].key),
					 kp_span_str(keys[i].arch), out, sizeof(out),
					 &size);

		assert_int_equal(ok, keys[i].path != NULL);
		if (!ok)
			continue;
		assert_string_equal(out, keys[i].path);
		assert_int_equal(size, strlen(keys[i].path));
		assert_false(kp_legacy_path(kp_span_str(keys[i].key),
					    kp_span_str(keys[i].arch), out, size, &size));
	}
}
