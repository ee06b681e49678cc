/* SPDX-License-Identifier: MIT */
#include "core/archive/naming.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

TEST(names_of_archives)
{
	static const struct {
		const char *name;
		unsigned volume; /* of the group "rocm"; 0: not one of its archives */
		const char *stem;
	} names[] = {
		{"rocm_gfx90a:xnack+.kpack", 1, "_gfx90a:xnack+"},
		{"rocm-gfx11.kpack", 1, "-gfx11"},
		{"rocm.2_gfx942.kpack", 2, "_gfx942"},
		{"rocm.4294967295_x.kpack", UINT32_MAX, "_x"},
		{"rocm.4294967296_x.kpack", 0, NULL},
		{"rocm.1_gfx942.kpack", 0, NULL},
		{"rocm.02_gfx942.kpack", 0, NULL},
		{"rocm.kpack", 0, NULL},
		{"rocm.2.kpack", 0, NULL},
		{"rocm2_gfx942.kpack", 0, NULL},
		{"rocm_gfx942.kpac", 0, NULL},
		{"roc", 0, NULL},
	};
	/* A: the name of an archive, T: of one that belongs to a tree */
	static const char *const kinds[] = {
		"A a.kpack",         "T .kpack/a.kpack",  "T torch/.kpack/a.kpack",
		"A engines/a.kpack", "A x.kpack/a.kpack", "A .kpack/x/a.kpack",
		"- .kpack/readme",   "- .kpack",          "- .kpack/.a.kpack",
		"- .a.kpack",        "- a.kpack.tmp",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct kp_span stem;
		unsigned volume;
		char *again;

		assert_int_equal(
			kp_archive_name_split(names[i].name, "rocm", &volume, &stem),
			names[i].volume != 0);
		if (!names[i].volume)
			continue;
		assert_int_equal(volume, names[i].volume);
		assert_true(kp_span_is(stem, names[i].stem));
		again = kp_archive_file_name("rocm", volume, names[i].stem);
		assert_string_equal(again, names[i].name);
		free(again);
	}
	for (size_t i = 0; i < COUNT(kinds); i++) {
		assert_int_equal(kp_is_archive_name(kinds[i] + 2), *kinds[i] != '-');
		assert_int_equal(kp_is_archive_of_tree(kinds[i] + 2), *kinds[i] == 'T');
	}
	assert_int_equal(kp_archive_stem(kp_span_str("a.kpack")), 1);
	assert_int_equal(kp_archive_stem(kp_span_str(".kpack")), 0);
}

TEST(keys_are_split)
{
	static const struct {
		const char *key;
		size_t binary; /* bytes of the key */
		uint32_t index;
	} keys[] = {
		{"lib/x.so#0", 8, 0},
		{"x#4294967295", 1, UINT32_MAX},
		{"x#4294967296", 12, 0},
		{"x#00000000001", 13, 0},
		{"x.so.5", 6, 0},
		{"x#", 2, 0},
		{"x#01", 4, 0},
		{"x#1a", 4, 0},
		{"x@openmp#3", 8, 3},
		{"a##1", 2, 1},
		{"#1", 2, 0},
		{"", 0, 0},
	};

	for (size_t i = 0; i < COUNT(keys); i++) {
		struct kp_key key = kp_key_split(kp_span_str(keys[i].key));

		assert_int_equal(key.binary.size, keys[i].binary);
		assert_int_equal(key.index, keys[i].index);
	}
}

TEST(entries_have_file_names)
{
	static char text[4096];
	static const struct {
		const char *arch;
		uint32_t index;
		const char *type, *name; /* NULL: none */
	} names[] = {
		{"gfx1030", 0, "hsaco", "gfx1030.hsaco"},
		{"gfx90a:xnack+", 1, "hsaco", "gfx90a:xnack+#1.hsaco"},
		{"gfx9", UINT32_MAX, "co", "gfx9#4294967295.co"},
		{"a/b", 0, "co", NULL},
		{"a", 0, "co/x", NULL},
		{".", 0, "", NULL},
		{".", 0, ".", "..."},
	};
	char out[256];
	size_t size;

	for (size_t i = 0; i < COUNT(names); i++) {
		bool ok = kp_toc_file_name(kp_span_str(names[i].arch), names[i].index,
					   kp_span_str(names[i].type), out, &size);

		assert_int_equal(ok, names[i].name != NULL);
		assert_true(!ok || kp_span_is((struct kp_span){(uint8_t *)out, size},
					      names[i].name));
	}
	memset(text, 'a', sizeof(text));
	for (size_t arch = 248; arch < 258; arch++) /* at most 255 bytes */
		for (uint32_t index = 0; index <= 10; index += 10)
			assert_int_equal(
				kp_toc_file_name((struct kp_span){(uint8_t *)text, arch},
						 index, kp_span_str("co"), out, &size),
				arch + 3 + (index ? 3 : 0) <= 255);
}

TEST(the_papers_keys_have_paths)
{
	static const struct {
		const char *key, *arch, *path; /* NULL: none */
	} keys[] = {
		{"rocblas/gfx1100/k_1", "gfx1100", "rocblas/library/gfx1100/k_1.co"},
		{"aotriton/gfx90a:xnack+/a/b", "gfx90a:xnack+",
		 "aotriton/kernels/gfx90a:xnack+/a/b.hsaco"},
		{"fft/gfx1100/1024/single/kernel", "gfx1100", NULL},
		{"rocblas/gfx1100/k", "gfx110", NULL},
		{"rocblas/gfx1100/", "gfx1100", NULL},
		{"rocblas/gfx1100", "gfx1100", NULL},
		{"rocblas/", "", NULL},
		{"lib/rocblas/gfx1100/k", "gfx1100", NULL},
	};

	for (size_t i = 0; i < COUNT(keys); i++) {
		struct kp_span key = kp_span_str(keys[i].key),
			       arch = kp_span_str(keys[i].arch);
		char out[256];
		size_t size = 0;
		bool ok = kp_legacy_path(key, arch, out, sizeof(out), &size);

		assert_int_equal(ok, keys[i].path != NULL);
		if (!ok)
			continue;
		assert_string_equal(out, keys[i].path);
		assert_int_equal(size, strlen(keys[i].path));
		assert_false(kp_legacy_path(key, arch, out, size, &size));
	}
}
