/* SPDX-License-Identifier: MIT */
/* Bundles of a view: which entries they have, their headers, their classes. */
#include "tests/unit/view_builder.h"
#include "core/base/bounds.h"
#include <stdlib.h>

static const struct kp_view_options with_bundles = {.bundles = true};

static uint64_t le64(const uint8_t *p)
{
	uint64_t n = 0;

	for (int i = 7; i >= 0; i--)
		n = n << 8 | p[i];
	return n;
}

static void put(char *out, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + used, 2048 - used, format, args);
	va_end(args);
}

/*
 * Parse a header, and check everything that does not depend on the entries.  The text has
 * "ID=bytes " for each object.
 */
static const char *parsed(const struct kp_view *v, uint32_t file)
{
	static char out[2048];
	struct kp_view_bundle b;
	const uint8_t *p;
	uint64_t end;

	assert_true(kp_view_bundle(v, file, &b));
	assert_true(kp_span_starts(b.header, "__CLANG_OFFLOAD_BUNDLE__", 24));
	assert_int_equal(le64(b.header.data + 24), b.count + 1);
	p = b.header.data + 32;
	assert_int_equal(le64(p + 8), 0);
	assert_memory_equal(p + 24, "host-x86_64-unknown-linux-gnu-", le64(p + 16));
	assert_int_equal(le64(p), b.parts[0].offset);
	p += 24 + le64(p + 16);
	*out = '\0';
	end = b.header.size;
	for (uint32_t i = 0; i < b.count; i++) {
		struct kp_entry_info info;
		char bytes[8] = "";
		size_t entry;
		struct kpack_archive *a = kp_view_entry(v, b.parts[i].file, &entry);

		kp_archive_entry(a, entry, &info);
		assert_int_equal(le64(p), b.parts[i].offset);
		assert_int_equal(le64(p) % 4096, 0);
		assert_true(le64(p) >= end);
		assert_int_equal(le64(p + 8), info.size);
		end = le64(p) + info.size;
		assert_int_equal(kp_archive_read(a, entry, bytes, &why), KPACK_SUCCESS);
		put(out, "%.*s=%s ", (int)le64(p + 16), (const char *)p + 24, bytes);
		p += 24 + le64(p + 16);
	}
	assert_ptr_equal(p, b.header.data + b.header.size);
	assert_int_equal(b.size, end);
	return out;
}

/* The bundle at PATH; "": nothing is there. */
static const char *at(const struct kp_view *v, const char *path)
{
	uint32_t name, dir;

	if (!find_name(v, path, &name, &dir))
		return "";
	assert_int_equal(kp_view_name(v, name).kind, KP_VIEW_BUNDLE);
	return parsed(v, kp_view_name(v, name).index);
}

static uint64_t id_at(const struct kp_view *v, const char *path)
{
	uint32_t name, dir;

	assert_true(find_name(v, path, &name, &dir));
	assert_int_equal(kp_view_file(v, kp_view_name(v, name).index)->nlink, 1);
	return kp_view_file(v, kp_view_name(v, name).index)->id;
}

#define E(ordinal) "{'ordinal': " #ordinal "}"
#define T(ordinal, type) "{'ordinal': " #ordinal ", 'type': '" type "'}"
#define M(ordinal, type, target)                                                         \
	"{'ordinal': " #ordinal ", 'type': '" type "', 'metadata': {'target': '" target  \
	"'}}"
#define HIP "hipv4-amdgcn-amd-amdhsa--"

TEST(code_of_a_binary)
{
	struct kpack_archive *a =
		with_toc("{'lib/x#0': {'gfx90a': " E(1) ", 'gfx1030': " E(
			0) ", 'gfx90a:xnack+:sramecc-': " T(2,
							    "co") "}, "
								  "'lib/x#12': "
								  "{'gfx1030': " E(
									  3) "}, 'y': "
									     "{'gfx942':"
									     " " E(0) "}"
										      "}");
	struct kp_view *v = new_view(&a, 1, &with_bundles);
	uint32_t name, dir;

	assert_string_equal(at(v, "hipfb/lib/x/0.hipfb"),
			    HIP "gfx1030=aaaa " HIP "gfx90a=bbbb " HIP
				"gfx90a:sramecc-:xnack+=cccc ");
	assert_string_equal(at(v, "hipfb/lib/x/12.hipfb"), HIP "gfx1030=cc ");
	assert_string_equal(at(v, "hipfb/y/0.hipfb"), HIP "gfx942=aaaa ");
	assert_true(find_name(v, "hipfb", &name, &dir));
	kp_view_free(v);
	v = new_view(&a, 1, NULL);
	assert_false(find_name(v, "hipfb", &name, &dir));
	assert_false(kp_view_bundle(v, 0, &(struct kp_view_bundle){0}));
	kp_view_free(v);
	kp_archive_close(a);
}

/* Files of a tree, bitcode, code for other GPUs, files for all GPUs, empty entries. */
TEST(what_is_no_code)
{
	struct kpack_archive *a =
		with_toc("{'x#0': {'gfx90a': " T(0, "dat") ", 'gfx942': " T(
			1,
			"bc") ", 'generic': " T(1,
						"co") ", 'sm_80': " M(2, "cubin",
								      "openmp-nvptx64-"
								      "nvidia-cuda--sm_"
								      "80") ", "
									    "'gfx1030':"
									    " " E(4) "}, "
										     "'f'"
										     ": "
										     "{'"
										     "gfx"
										     "90a"
										     "': "
										     "{'"
										     "ord"
										     "ina"
										     "l':"
										     " 0,"
										     " '"
										     "met"
										     "ada"
										     "ta'"
										     ": "
										     "{'"
										     "pat"
										     "h':"
										     " '"
										     "f."
										     "co'"
										     "}}}"
										     ", "
										     "'ro"
										     "cbl"
										     "as/"
										     "gfx"
										     "90a"
										     "/k'"
										     ": "
										     "{'"
										     "gfx"
										     "90a"
										     "':"
										     " " E(0) "}}");
	struct kp_view *v = new_view(&a, 1, &with_bundles);
	uint32_t name, dir;

	assert_false(find_name(v, "hipfb", &name, &dir));
	assert_true(find_name(v, "rocblas/library/gfx90a/k.co", &name, &dir));
	kp_view_free(v);
	kp_archive_close(a);
}

/* An ID from the metadata is used as it is, unless it is none, or another target's. */
TEST(entry_ids)
{
	static const struct {
		const char *arch, *target, *id;
	} c[] = {
		{"gfx900", "hip-amdgcn-amd-amdhsa-gfx900",
		 "hip-amdgcn-amd-amdhsa-gfx900"},
		{"gfx900", "hip-amdgcn-amd-amdhsa-unknown-gfx900",
		 "hip-amdgcn-amd-amdhsa-unknown-gfx900"},
		{"gfx90a:xnack+", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
		 "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"},
		{"gfx90a", "openmp-amdgcn-amd-amdhsa--gfx90a",
		 "openmp-amdgcn-amd-amdhsa--gfx90a"},
		{"amdgcnspirv", "hip-spirv64-amd-amdhsa--amdgcnspirv",
		 "hip-spirv64-amd-amdhsa--amdgcnspirv"},
		{"gfx9999", "hipv4-amdgcn-amd-amdhsa--gfx9999",
		 "hipv4-amdgcn-amd-amdhsa--gfx9999"},
		{"gfx90a", "gfx90a", HIP "gfx90a"},
		{"gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942", HIP "gfx90a"},
		{"gfx90a", "hipv4-amdgcn-amd-amdhsa--", HIP "gfx90a"},
		{"gfx90a", "host-x86_64-unknown-linux-gnu-", HIP "gfx90a"},
		{"gfx90a", "hipv4 -amdgcn-amd-amdhsa--gfx90a", HIP "gfx90a"},
		{"gfx90a", "", HIP "gfx90a"},
		{"amdgcnspirv", "x", ""},
		{"gfx1250-strict", "x", HIP "gfx1250-strict"},
	};

	for (size_t i = 0; i < COUNT(c); i++) {
		char toc[512], want[512] = "";
		struct kpack_archive *a;
		struct kp_view *v;

		snprintf(toc, sizeof(toc),
			 "{'x#0': {'%s': {'ordinal': 0, 'metadata': {'target': '%s'}}}}",
			 c[i].arch, c[i].target);
		if (*c[i].id)
			snprintf(want, sizeof(want), "%s=aaaa ", c[i].id);
		a = with_toc(toc);
		v = new_view(&a, 1, &with_bundles);
		assert_string_equal(at(v, "hipfb/x/0.hipfb"), want);
		kp_view_free(v);
		kp_archive_close(a);
	}
}

TEST(architectures_that_are_shown)
{
	struct kpack_archive *a = with_toc("{'x#0': {'gfx90a': " E(0) ", 'gfx1030': " E(
		1) "}, 'x#1': {'gfx90a': " E(2) "}}");
	struct kp_choice gpus = {0}, others = {0};
	struct kp_view_options options = {.bundles = true, .select = &gpus};
	struct kp_view *v;
	uint32_t name, dir;

	assert_int_equal(kp_choice_add(&gpus, "gfx1030", NULL), 0);
	v = new_view(&a, 1, &options);
	assert_string_equal(at(v, "hipfb/x/0.hipfb"), HIP "gfx1030=bbbb ");
	assert_string_equal(at(v, "hipfb/x/1.hipfb"), "");
	kp_view_free(v);
	assert_int_equal(kp_choice_add(&others, "gfx1100", NULL), 0);
	options.select = &others;
	v = new_view(&a, 1, &options);
	assert_false(find_name(v, "hipfb", &name, &dir));
	kp_view_free(v);
	kp_choice_fini(&gpus);
	kp_choice_fini(&others);
	kp_archive_close(a);
}

TEST(several_archives)
{
	struct kpack_archive *a[] = {
		with_toc("{'x#0': {'gfx942': " E(0) "}, 'y#0': {'gfx942': " E(0) "}}"),
		with_toc("{'x#0': {'gfx1030': " E(1) ", 'gfx942': " E(2) "}}"),
	};
	struct kpack_archive *back[] = {a[1], a[0]};
	struct kp_view *v = new_view(a, 2, &with_bundles),
		       *w = new_view(back, 2, &with_bundles),
		       *one = new_view(a, 1, &with_bundles),
		       *again = new_view(a, 2, &with_bundles);
	size_t kept;

	/* the first archive wins, as in toc, which has the only conflict */
	assert_string_equal(at(v, "hipfb/x/0.hipfb"),
			    HIP "gfx1030=bbbb " HIP "gfx942=aaaa ");
	assert_string_equal(at(w, "hipfb/x/0.hipfb"),
			    HIP "gfx1030=bbbb " HIP "gfx942=cccc ");
	(void)kp_view_conflicts(v, &kept, NULL);
	assert_int_equal(kept, 1);
	/* a number for each content, the same in each view */
	assert_int_equal(id_at(v, "hipfb/x/0.hipfb"), id_at(again, "hipfb/x/0.hipfb"));
	assert_int_not_equal(id_at(v, "hipfb/x/0.hipfb"), id_at(w, "hipfb/x/0.hipfb"));
	assert_int_not_equal(id_at(v, "hipfb/x/0.hipfb"), id_at(one, "hipfb/x/0.hipfb"));
	assert_int_equal(id_at(v, "hipfb/y/0.hipfb"), id_at(one, "hipfb/y/0.hipfb"));
	assert_int_not_equal(id_at(v, "hipfb/y/0.hipfb"), id_at(one, "hipfb/x/0.hipfb"));
	kp_view_free(v);
	kp_view_free(w);
	kp_view_free(one);
	kp_view_free(again);
	kp_archive_close(a[0]);
	kp_archive_close(a[1]);
}

TEST(names_in_hipfb)
{
	struct kpack_archive *a = with_toc(
		"{'p': {'generic': {'ordinal': 0, 'type': 'd', 'metadata': {'path': "
		"'hipfb/p'}}}, "
		"'q': {'generic': {'ordinal': 0, 'type': 'd', 'metadata': {'path': "
		"'hipfb'}}}, "
		"'r': {'generic': {'ordinal': 0, 'type': 'd', 'metadata': {'path': "
		"'hipfbs'}}}, "
		/* a directory has the name of a bundle */
		"'x#0': {'gfx90a': " E(0) "}, 'x/0.hipfb#0': {'gfx90a': " E(
			1) "}, "
			   "'../z#0': {'gfx90a': " E(0) "}}");
	struct kp_view *v = new_view(&a, 1, &with_bundles);
	const char *const *texts;
	uint32_t name, dir;
	size_t kept;

	assert_false(find_name(v, "hipfb/p", &name, &dir));
	assert_true(find_name(v, "hipfb", &name, &dir));
	assert_int_equal(kp_view_name(v, name).kind, KP_VIEW_DIR);
	assert_true(find_name(v, "hipfbs", &name, &dir));
	assert_string_equal(at(v, "hipfb/x/0.hipfb/0.hipfb"), HIP "gfx90a=bbbb ");
	texts = kp_view_conflicts(v, &kept, NULL);
	assert_int_equal(kept, 4);
	for (size_t i = 0; i < kept; i++)
		assert_true(strstr(texts[i], "lies in hipfb") ||
			    strstr(texts[i], "key is no path") ||
			    strncmp(texts[i], "hipfb/x/0.hipfb: a directory", 28) == 0);
	kp_view_free(v);
	/* without the option these paths are files of the tree */
	v = new_view(&a, 1, NULL);
	assert_true(find_name(v, "hipfb/p", &name, &dir));
	kp_view_free(v);
	kp_archive_close(a);
}

/* A header has few enough entries for every reader. */
TEST(too_many_objects)
{
	for (size_t n = KP_BUNDLE_ENTRIES_MAX - 1; n <= KP_BUNDLE_ENTRIES_MAX; n++) {
		char *toc = malloc(64 * n + 64), *end = toc;
		const char *const *texts;
		struct kpack_archive *a;
		struct kp_view_bundle b;
		struct kp_view *v;
		uint32_t name, dir;
		size_t kept;

		end += sprintf(end, "{'x#0': {");
		for (size_t i = 0; i < n; i++)
			end += sprintf(end, "%s'gfx%zu': " E(0), i ? ", " : "",
				       100000 + i);
		sprintf(end, "}}");
		a = with_toc(toc);
		free(toc);
		v = new_view(&a, 1, &with_bundles);
		texts = kp_view_conflicts(v, &kept, NULL);
		if (n < KP_BUNDLE_ENTRIES_MAX) {
			assert_true(find_name(v, "hipfb/x/0.hipfb", &name, &dir));
			assert_true(kp_view_bundle(v, kp_view_name(v, name).index, &b));
			assert_int_equal(b.count, n);
			assert_int_equal(kept, 0);
		} else {
			assert_string_equal(at(v, "hipfb/x/0.hipfb"), "");
			assert_int_equal(kept, 1);
			assert_string_equal(texts[0],
					    "hipfb/x/0.hipfb: has too many code objects, "
					    "or would be too large");
		}
		kp_view_free(v);
		kp_archive_close(a);
	}
}

/* The bundles at hipfb/x/0.hipfb, in order: class, "all" or a number, and contents. */
static const char *variants(const struct kp_view *v)
{
	static char out[2048];
	uint32_t name, dir;

	*out = '\0';
	assert_true(find_name(v, "hipfb/x/0.hipfb", &name, &dir));
	do {
		struct kp_view_bundle b;
		uint32_t file = kp_view_name(v, name).index;

		assert_true(kp_view_bundle(v, file, &b));
		if (b.all)
			put(out, "all: ");
		else
			put(out, "%d: ", (int)kp_view_class(v, file));
		put(out, "%s| ", parsed(v, file));
	} while (++name < kp_view_dir(v, dir)->first + kp_view_dir(v, dir)->count &&
		 kp_view_repeats(v, dir, name));
	return out;
}

TEST(classes_of_readers)
{
	struct kpack_archive *a[] = {
		with_toc("{'x#0': {'gfx942': " E(0) "}}"),
		with_toc("{'x#0': {'gfx90a': " E(1) ", 'gfx942': " E(2) "}}"),
		with_toc("{'x#0': {'gfx1030': " E(2) "}}"),
		with_toc("{'x#0': {'gfx1100': " E(3) "}}"),
	};
	const uint64_t classes[] = {7, 8, 9, 10};
	const bool nobody[4] = {0}, everyone[] = {true, true, true, true},
		   some[] = {true, false, false, true}, one[] = {true, true, false, true};
	struct kp_view_options options = {
		.bundles = true, .classes = classes, .open = some};
	struct kp_view *v = new_view(a, 4, &options);
	size_t kept;

	assert_string_equal(variants(v), "all: " HIP "gfx1030=cccc " HIP "gfx1100=cc " HIP
					 "gfx90a=bbbb " HIP "gfx942=aaaa | "
					 "8: " HIP "gfx1100=cc " HIP "gfx90a=bbbb " HIP
					 "gfx942=aaaa | "
					 "9: " HIP "gfx1030=cccc " HIP "gfx1100=cc " HIP
					 "gfx942=aaaa | "
					 "7: " HIP "gfx1100=cc " HIP "gfx942=aaaa | ");
	(void)kp_view_conflicts(v, &kept, NULL);
	assert_int_equal(kept, 1); /* gfx942 in toc */
	kp_view_free(v);
	options.open = everyone;
	v = new_view(a, 4, &options);
	assert_string_equal(variants(v), "7: " HIP "gfx1030=cccc " HIP "gfx1100=cc " HIP
					 "gfx90a=bbbb " HIP "gfx942=aaaa | ");
	kp_view_free(v);
	options.open = one;
	v = new_view(a, 4, &options);
	assert_string_equal(variants(v), "9: " HIP "gfx1030=cccc " HIP "gfx1100=cc " HIP
					 "gfx90a=bbbb " HIP "gfx942=aaaa | "
					 "7: " HIP "gfx1100=cc " HIP "gfx90a=bbbb " HIP
					 "gfx942=aaaa | ");
	kp_view_free(v);
	/* where the first archive is not seen, the second one's code is */
	options.open = nobody;
	v = new_view(a, 2, &options);
	assert_string_equal(variants(v), "all: " HIP "gfx90a=bbbb " HIP "gfx942=aaaa | "
					 "7: " HIP "gfx942=aaaa | "
					 "8: " HIP "gfx90a=bbbb " HIP "gfx942=cccc | ");
	kp_view_free(v);
	for (size_t i = 0; i < 4; i++)
		kp_archive_close(a[i]);
}
