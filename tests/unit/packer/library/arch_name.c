/* SPDX-License-Identifier: MIT */
#include "packer/library/arch_name.h"
#include <stdio.h>
#include "tests/unit/unit.h"
#include "tests/unit/bundle_builder.h"

/* --- names ------------------------------------------------------------------------------ */

TEST(names_give_the_target)
{
	static const struct {
		const char *name, *arch; /* NULL: none */
	} names[] = {
		{"TensileLibrary_lazy_gfx1100.dat", "gfx1100"},
		{"TensileLibrary_lazy_gfx942.dat.zlib", "gfx942"},
		{"TensileLiteLibrary_lazy_gfx942_Mapping.dat", "gfx942"},
		{"TensileLiteLibrary_lazy_gfx942_Mapping.dat.zlib", "gfx942"},
		{"TensileLiteLibrary_lazy_Mapping.dat", NULL},
		{"Kernels.so-000-gfx1100.hsaco", "gfx1100"},
		{"Kernels.so-000-gfx90a-xnack+.hsaco", "gfx90a:xnack+"},
		{"Kernels.so-000-gfx90a-xnack-.hsaco", "gfx90a:xnack-"},
		{"Kernels.so-000-gfx90a-sramecc+-xnack-.hsaco", "gfx90a:sramecc+:xnack-"},
		{"Kernels.so-000-gfx906-xnack-.hsaco", "gfx906:xnack-"},
		{"Kernels.so-000-.hsaco", NULL},
		{"Kernels.so-000--xnack-.hsaco", NULL},
		{"x_Dijk_fallback.dat", NULL},
		{"x_Dijk_fallback_gfx1100.hsaco", "gfx1100"},
		{"x_Dijk_CU104_gfx90a.co", "gfx90a"},
		{"x_gfx9-generic.co", "gfx9-generic"},
		{"x_gfx9-4-generic.co", "gfx9-4-generic"},
		{"x_gfx9-4-generic-xnack+.co", "gfx9-4-generic:xnack+"},
		{"rocfft_kernel_cache_gfx12-generic.db", "gfx12-generic"},
		{"rocfft_kernel_cache_gfx10-3-generic.db", "gfx10-3-generic"},
		{"rocfft_kernel_cache_gfx942.db", "gfx942"},
		{"rocfft_kernel_cache.db", NULL},
		{"extop_gfx942.co", "gfx942"},
		{"hipblasltExtOpLibrary_gfx942.dat", "gfx942"},
		{"hipblaslt-jit-knowledge-gfx942.dat.zlib", "gfx942"},
		{"rr_custom_kernels_gfx950.co", "gfx950"},
		{"libMIOpenCKGroupedConv_gfx942.so", "gfx942"},
		{"gfx90a.kdb", "gfx90a"},
		/* a stepping counts as its processor */
		{"TensileLibrary_lazy_gfx1250-strict.dat", "gfx1250"},
		{"TensileLibrary_lazy_gfx1250v0.dat", "gfx1250"},
		/* several GPUs: the last one */
		{"gfx1100_to_gfx90a-xnack-.dat", "gfx90a:xnack-"},
		{"gfx90a_gfx.co", "gfx90a"},
		/* a feature that the processor does not have is dropped */
		{"x_gfx1100-xnack+.co", "gfx1100"},
		{"x_gfx90a-xnack+-xnack-.co", "gfx90a:xnack+"},
		{"x_gfx90a-xnack.co", "gfx90a"},
		{"x_gfx90a-xnack+y.co", "gfx90a"},
		/* future processors */
		{"x_gfx1490.co", "gfx1490"},
		{"x_gfx95f.co", "gfx95f"},
		/* the digits continue with MIOpen's compute units */
		{"gfx942130.db.txt", NULL},
		{"gfx90a68.db.txt", NULL},
		{"gfx90878.db.txt", NULL},
		{"gfx942e4.db.txt", NULL},
		{"gfx1100_36.db.txt", "gfx1100"},
		/* families, and names that only resemble GPUs */
		{"amd-gfx11xx", NULL},
		{"amd-gfx942", "gfx942"},
		{"gfx", NULL},
		{"gfx9", NULL},
		{"gfx12", NULL},
		{"gfx-generic", NULL},
		{"gfx9-4-generics", NULL},
		{"gfx99999999999", NULL},
		{"gfx99999-generic", NULL},
		{"agfx942", NULL},
		{"gfx942z", NULL},
		{"GFX942", NULL},
		{"", NULL},
		{"________", NULL},
		{"g", NULL},
		{"-gfx", NULL},
	};
	char arch[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < COUNT(names); i++) {
		bool found = arch_of_name(kp_span_str(names[i].name), arch);

		if (found != !!names[i].arch ||
		    (found && strcmp(arch, names[i].arch) != 0))
			fail_msg("%s: %s", names[i].name, found ? arch : "none");
	}
}

TEST(directories_are_whole_targets)
{
	static const struct {
		const char *name, *arch; /* NULL: none */
		bool variant;
	} names[] = {
		{"gfx942", "gfx942", false},
		{"gfx90a-xnack+", "gfx90a:xnack+", false},
		{"gfx90a:xnack+", "gfx90a:xnack+", false},
		{"gfx90a-xnack--sramecc+", "gfx90a:sramecc+:xnack-", false},
		{"gfx9-4-generic", "gfx9-4-generic", false},
		{"gfx12-5-generic", "gfx12-5-generic", false},
		{"gfx1250-strict", "gfx1250", true},
		{"gfx1250v0", "gfx1250", true},
		{"gfx1250v12", "gfx1250", true},
		{"gfx1250v", NULL, false},
		{"gfx942_extra", NULL, false},
		{"gfx942.old", NULL, false},
		{"gfx942-", NULL, false},
		{"gfx942-Old", NULL, false},
		{"amd-gfx942", NULL, false},
		{"gfx11xx", NULL, false},
		{"library", NULL, false},
		{"gfx1100_36", NULL, false},
		{"gfx942130", NULL, false},
		{"", NULL, false},
	};
	char arch[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < COUNT(names); i++) {
		bool variant = false;
		bool found =
			arch_of_directory(kp_span_str(names[i].name), arch, &variant);

		if (found != !!names[i].arch ||
		    (found &&
		     (strcmp(arch, names[i].arch) != 0 || variant != names[i].variant)))
			fail_msg("%s: %s%s", names[i].name, found ? arch : "none",
				 variant ? ", variant" : "");
	}
}

TEST(hostile_names_do_no_harm)
{
	static const char pattern[] = "gfx90a-xnack+_";
	char name[4097], arch[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = pattern[i % (sizeof(pattern) - 1)];
	name[sizeof(name) - 1] = '\0';
	assert_true(arch_of_name(kp_span_str(name), arch));
	assert_string_equal(arch, "gfx90a");
	assert_false(arch_of_directory(kp_span_str(name), arch, NULL));

	memset(name + 3, '9', sizeof(name) - 4);
	assert_false(arch_of_name(kp_span_str(name), arch));
	memset(name, '-', sizeof(name) - 1);
	assert_false(arch_of_name(kp_span_str(name), arch));
	assert_false(arch_of_name((struct kp_span){NULL, 0}, arch));
	assert_false(arch_of_directory((struct kp_span){NULL, 0}, arch, NULL));
}

TEST(paths_are_taken_apart)
{
	struct kp_span rest;

	assert_true(
		path_below("lib/rocblas/library/gfx942/x.co", "rocblas/library", &rest));
	assert_true(kp_span_is(rest, "gfx942/x.co"));
	assert_int_equal(path_depth(rest), 2);
	assert_true(kp_span_is(path_component(rest, 0), "gfx942"));
	assert_true(kp_span_is(path_component(rest, 1), "x.co"));
	assert_int_equal(path_component(rest, 2).size, 0);
	assert_true(path_below("rocblas/library/x", "rocblas/library", &rest));
	assert_true(kp_span_is(rest, "x"));
	assert_true(path_below("a/rocblas/librarys/rocblas/library/y", "rocblas/library",
			       &rest));
	assert_true(kp_span_is(rest, "y"));
	assert_false(path_below("xrocblas/library/x", "rocblas/library", &rest));
	assert_false(path_below("rocblas/library", "rocblas/library", &rest));
	assert_false(path_below("rocblas/library/", "rocblas/library", &rest));
	assert_false(path_below("", "rocblas/library", &rest));
	assert_true(path_below("usr/lib/rocblas/4.4.1/library/x", "rocblas/*/library",
			       &rest));
	assert_true(kp_span_is(rest, "x"));
	assert_true(path_below("lib64/x/y", "lib*", &rest));
	assert_true(kp_span_is(rest, "x/y"));
	assert_false(path_below("rocblas/a/b/library/x", "rocblas/*/library", &rest));
	assert_false(path_below("rocblas/library/x", "rocblas/*/library", &rest));
	assert_true(kp_span_is(path_name("a/b/c.co"), "c.co"));
	assert_true(kp_span_is(path_name("c.co"), "c.co"));
	assert_int_equal(path_depth((struct kp_span){NULL, 0}), 0);
	assert_int_equal(path_component((struct kp_span){NULL, 0}, 3).size, 0);

	assert_true(arch_in_path("share/x/gfx11xx/y"));
	assert_true(arch_in_path("lib/kernels_gfx942.bin"));
	assert_false(arch_in_path("share/gfx/readme"));
	assert_false(arch_in_path(""));
}

TEST(targets_agree_or_contradict)
{
	static const struct {
		const char *a, *b;
		bool agree;
		const char *exact;
	} pairs[] = {
		{"gfx942", "gfx942", true, "gfx942"},
		{"gfx90a", "gfx90a:xnack+", true, "gfx90a:xnack+"},
		{"gfx90a:xnack+", "gfx90a:xnack-", false, NULL},
		{"gfx90a:sramecc+", "gfx90a:xnack-", true, "gfx90a:sramecc+"},
		{"gfx9-4-generic", "gfx942", true, "gfx942"},
		{"gfx9-4-generic", "gfx90a", false, NULL},
		{"gfx9-4-generic:xnack+", "gfx942:xnack-", false, NULL},
		{"gfx1250", "gfx1250-strict", true, "gfx1250"},
		{"gfx1250", "gfx1251", false, NULL},
		{"gfx942", "gfx950", false, NULL},
	};

	for (size_t i = 0; i < COUNT(pairs); i++) {
		if (arch_agrees(pairs[i].a, pairs[i].b) != pairs[i].agree ||
		    arch_agrees(pairs[i].b, pairs[i].a) != pairs[i].agree)
			fail_msg("%s, %s", pairs[i].a, pairs[i].b);
		if (pairs[i].agree)
			assert_string_equal(arch_more_exact(pairs[i].a, pairs[i].b),
					    pairs[i].exact);
	}
}

/* --- content ------------------------------------------------------------------------------ */

/* The question for a file with these bytes. */
static struct library_question question(const struct kp_source *source)
{
	struct library_question q = {.path = "x", .source = source};

	q.head_size =
		source->size < sizeof(q.head) ? (size_t)source->size : sizeof(q.head);
	assert_int_equal(kp_source_read(source, 0, q.head, q.head_size, NULL), 0);
	return q;
}

TEST(containers_are_known_by_their_magic)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *container;
	} files[] = {
		{"", 0, ""},
		{"CCOB", 4, "ccob"},
		{"__CLANG_OFFLOAD_BUNDLE__", 24, "bundle"},
		{"AKS2\0\0", 6, "aks2"},
		{"PK\3\4\0", 5, "zip"},
		{"SQLite format 3\0\20", 17, "sqlite"},
		{"SQLite format 3", 15, "text"},
		{"\x78\x9c\xed\xbd", 4, "zlib"},
		{"\x78\x01\xed\xbd", 4, "zlib"},
		{"\x78\xda\xed\xbd", 4, "zlib"},
		{"\x78\x9d\xed\xbd", 4, ""},
		{"\x82\xa9solutions", 11, "msgpack"},
		{"\xde\x00\x10\xa1z", 5, "msgpack"},
		{"{\"a\": 1}\n", 9, "text"},
		{"\xef\xbc\x8a\xef", 4, "text"},
		{"a\0b", 3, ""},
		{"\xff\xfe", 2, ""},
		{"\x7f"
		 "ELF and no more",
		 16, ""},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct kp_source source = kp_source_memory(files[i].bytes, files[i].size);
		struct library_question q = question(&source);
		struct content c;

		assert_int_equal(content_look(&q, &c, NULL), 0);
		if (strcmp(c.container, files[i].container) != 0)
			fail_msg("file %zu: '%s'", i, c.container);
		content_fini(&c);
	}
}

/* Only a header, as in an ELF without contents. */
static void put_elf(struct bytes *b, uint16_t machine, uint8_t abi, uint32_t flags)
{
	uint8_t header[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64, abi};

	header[16] = 3;
	header[18] = (uint8_t)machine;
	kp_put_le32(header + 48, flags);
	put(b, header, sizeof(header));
}

struct decision {
	const char *named;
	const char *arch;
	bool warned;
};

static void decide(const struct bytes *file, const struct decision *expected)
{
	struct kp_source source = kp_source_memory(file->data, file->size);
	struct library_question q = question(&source);
	struct library_object object = {0};

	assert_int_equal(arch_decide(&q, expected->named, &object, NULL), 0);
	if (object.n_arches != 1 || strcmp(object.arches[0], expected->arch) != 0 ||
	    !object.warning != !expected->warned)
		fail_msg("'%s': %s (%s)", expected->named, object.arches[0],
			 object.warning ? object.warning : "no warning");
	library_object_fini(&object);
}

TEST(code_objects_have_the_last_word)
{
	static const struct {
		uint8_t abi;
		uint32_t flags;
		struct decision expected;
	} files[] = {
		{4, 0x54c, {"gfx942", "gfx942", false}},
		{4, 0x54c, {"", "gfx942", false}},
		{4, 0x54c, {"gfx950", "gfx942", true}},
		{4, 0x73f, {"gfx90a", "gfx90a:xnack+", false}},
		{4, 0x53f, {"gfx90a:xnack+", "gfx90a", false}},
		{4, 0x73f, {"gfx90a:xnack-", "gfx90a:xnack+", true}},
		{4, 0x100055f, {"gfx942", "gfx9-4-generic", false}},
		{4, 0x100055f, {"gfx90a", "gfx9-4-generic", true}},
		{4, 0x549, {"gfx1250", "gfx1250", false}},
		/* an unknown processor, or no target in the header */
		{4, 0x5fe, {"gfx1490", "gfx1490", false}},
		{0, 0, {"gfx900", "gfx900", false}},
		{0, 0, {"", "generic", false}},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct bytes file = {0};

		put_elf(&file, 224, files[i].abi, files[i].flags);
		put(&file, "and what follows", 16);
		decide(&file, &files[i].expected);
		bytes_free(&file);
	}
}

TEST(files_without_code_are_what_their_name_says)
{
	static const struct decision named = {"gfx942", "gfx942", false};
	static const struct decision neutral = {"", "generic", false};
	static const struct decision damaged = {"gfx942", "gfx942", true};
	struct bytes empty = {0}, text = {0}, short_elf = {0}, bundle = {0};

	put(&empty, "", 0);
	decide(&empty, &named);
	decide(&empty, &neutral);
	put(&text, "kernel", 6);
	decide(&text, &named);
	decide(&text, &neutral);
	put_elf(&short_elf, 224, 4, 0x54c);
	short_elf.size = 40;
	decide(&short_elf, &damaged);
	put(&bundle, "__CLANG_OFFLOAD_BUNDLE__\377\377\377\377\377\377\377\377", 32);
	decide(&bundle, &damaged);
	bytes_free(&empty);
	bytes_free(&text);
	bytes_free(&short_elf);
	bytes_free(&bundle);
}

TEST(bundles_are_for_the_named_one_or_neutral)
{
	static const struct entry one[] = {
		{"host-x86_64-unknown-linux-gnu", ""},
		{"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "code"},
	};
	static const struct entry pair[] = {
		{"host-x86_64-unknown-linux-gnu", ""},
		{"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "code"},
		{"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "kode"},
	};
	static const struct entry two[] = {
		{"hipv4-amdgcn-amd-amdhsa--gfx942", "code"},
		{"hipv4-amdgcn-amd-amdhsa--gfx950", "kode"},
	};
	static const struct {
		const struct entry *entries;
		size_t n;
		struct decision expected;
	} bundles[] = {
		{one, COUNT(one), {"", "gfx90a:xnack+", false}},
		{one, COUNT(one), {"gfx90a", "gfx90a:xnack+", false}},
		{one, COUNT(one), {"gfx942", "gfx90a:xnack+", true}},
		{pair, COUNT(pair), {"", "generic", false}},
		{pair, COUNT(pair), {"gfx90a", "gfx90a", false}},
		{pair, COUNT(pair), {"gfx90a:xnack+", "gfx90a:xnack+", true}},
		{two, COUNT(two), {"", "generic", false}},
		{two, COUNT(two), {"gfx942", "gfx942", true}},
		{two, COUNT(two), {"gfx9-4-generic", "gfx9-4-generic", false}},
		{two, COUNT(two), {"gfx1100", "generic", true}},
	};

	for (size_t i = 0; i < COUNT(bundles); i++) {
		struct bytes plain = {0}, packed = {0};

		put_bundle(&plain, bundles[i].entries, bundles[i].n, 64);
		decide(&plain, &bundles[i].expected);
		put_ccob(&packed, 3, 1, bytes_span(&plain));
		decide(&packed, &bundles[i].expected);
		bytes_free(&plain);
		bytes_free(&packed);
	}
}
