/* SPDX-License-Identifier: MIT */
/* Bundles of a view: which entries they have, their headers. */
#include "tests/unit/view_builder.h"
#include "core/archive/entry.h"
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
		assert_int_equal(kp_entry_read(a, entry, bytes, &why), KPACK_SUCCESS);
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

/*
 * An archive of "KEY ARCH ORDINAL [TYPE [TARGET]]; ..."; keys that follow each other are one
 * binary.
 */
static struct kpack_archive *of(const char *entries)
{
	char toc[4096] = "{", last[64] = "", copy[2048];
	struct kpack_archive *a;

	snprintf(copy, sizeof(copy), "%s", entries);
	for (char *rest, *e = strtok_r(copy, ";", &rest); e;
	     e = strtok_r(NULL, ";", &rest)) {
		char key[64], arch[64], type[64] = "hsaco", target[64] = "";
		int ordinal;

		assert_in_range(sscanf(e, "%63s %63s %d %63s %63s", key, arch, &ordinal,
				       type, target),
				3, 5);
		if (strcmp(key, last) != 0)
			put(toc, "%s'%s': {", *last ? "}, " : "", key);
		strcpy(last, key);
		put(toc, "'%s': {'ordinal': %d, 'type': '%s', 'metadata': {%s%s%s}}, ",
		    arch, ordinal, type, *target ? "'target': '" : "", target,
		    *target ? "'" : "");
	}
	put(toc, "}}");
	a = with_toc(toc);
	return a;
}

#define HIP "hipv4-amdgcn-amd-amdhsa--"

/* Entries, and the bundles that they make; what is no code has no other file either. */
TEST(code_of_binaries)
{
	static const struct {
		const char *entries, *select; /* NULL: all GPUs */
		const char *bundles[4];       /* path, what it has, ... */
	} cases[] = {
		{"lib/x#0 gfx90a 1; lib/x#0 gfx1030 0; lib/x#0 gfx90a:xnack+:sramecc- 2 "
		 "co; lib/x#12 gfx1030 3",
		 NULL,
		 {"hipfb/lib/x/0.hipfb",
		  HIP "gfx1030=aaaa " HIP "gfx90a=bbbb " HIP
		      "gfx90a:sramecc-:xnack+=cccc ",
		  "hipfb/lib/x/12.hipfb", HIP "gfx1030=cc "}},
		/* files, bitcode, code for all or other GPUs, empty entries */
		{"x#0 gfx90a 0 dat; x#0 gfx942 1 bc; x#0 generic 1 co; x#0 sm_80 2 cubin "
		 "openmp-nvptx64-nvidia-cuda--sm_80; x#0 gfx1030 4; rocblas/gfx90a/k "
		 "gfx90a 0",
		 NULL,
		 {"hipfb/x/0.hipfb", ""}},
		{"x#0 gfx90a 0; x#0 gfx1030 1; x#1 gfx90a 2",
		 "gfx1030",
		 {"hipfb/x/0.hipfb", HIP "gfx1030=bbbb ", "hipfb/x/1.hipfb", ""}},
		{"x#0 gfx90a 0", "gfx1100", {"hipfb/x/0.hipfb", ""}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kpack_archive *a = of(cases[i].entries);
		struct kp_choice gpus = {0};
		struct kp_view_options options = {.bundles = true};
		struct kp_view *v;
		uint32_t name, dir;

		if (cases[i].select)
			assert_int_equal(kp_choice_add(&gpus, cases[i].select, NULL), 0);
		options.select = cases[i].select ? &gpus : NULL;
		v = new_view(&a, 1, &options);
		for (int k = 0; k < 4 && cases[i].bundles[k]; k += 2)
			assert_string_equal(at(v, cases[i].bundles[k]),
					    cases[i].bundles[k + 1]);
		assert_int_equal(find_name(v, "hipfb", &name, &dir),
				 *cases[i].bundles[1] != 0);
		kp_view_free(v);
		v = new_view(&a, 1, NULL);
		assert_false(find_name(v, "hipfb", &name, &dir));
		assert_false(kp_view_bundle(v, 0, &(struct kp_view_bundle){0}));
		kp_view_free(v);
		kp_choice_fini(&gpus);
		kp_archive_close(a);
	}
}

/* An ID from the metadata is used as it is, unless it is none, or another target's. */
TEST(entry_ids)
{
	static const struct {
		const char *arch, *target, *id; /* id "=": the target */
	} c[] = {
		{"gfx900", "hip-amdgcn-amd-amdhsa-gfx900", "="},
		{"gfx900", "hip-amdgcn-amd-amdhsa-unknown-gfx900", "="},
		{"gfx90a:xnack+", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+", "="},
		{"gfx90a", "openmp-amdgcn-amd-amdhsa--gfx90a", "="},
		{"amdgcnspirv", "hip-spirv64-amd-amdhsa--amdgcnspirv", "="},
		{"gfx9999", "hipv4-amdgcn-amd-amdhsa--gfx9999", "="},
		{"gfx90a", "gfx90a", HIP "gfx90a"},
		{"gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942", HIP "gfx90a"},
		{"gfx90a", "hipv4-amdgcn-amd-amdhsa--", HIP "gfx90a"},
		{"gfx90a", "host-x86_64-unknown-linux-gnu-", HIP "gfx90a"},
		{"gfx90a", "", HIP "gfx90a"},
		{"amdgcnspirv", "x", ""},
		{"gfx1250-strict", "x", HIP "gfx1250-strict"},
	};

	for (size_t i = 0; i < COUNT(c); i++) {
		const char *id = strcmp(c[i].id, "=") ? c[i].id : c[i].target;
		char entries[256], want[256] = "";
		struct kpack_archive *a;
		struct kp_view *v;

		snprintf(entries, sizeof(entries), "x#0 %s 0 hsaco %s", c[i].arch,
			 c[i].target);
		if (*id)
			snprintf(want, sizeof(want), "%s=aaaa ", id);
		a = of(entries);
		v = new_view(&a, 1, &with_bundles);
		assert_string_equal(at(v, "hipfb/x/0.hipfb"), want);
		kp_view_free(v);
		kp_archive_close(a);
	}
}

TEST(several_archives)
{
	struct kpack_archive *a[] = {of("x#0 gfx942 0; y#0 gfx942 0"),
				     of("x#0 gfx1030 1; x#0 gfx942 2")};
	struct kpack_archive *back[] = {a[1], a[0]};
	struct kp_view *v = new_view(a, 2, &with_bundles),
		       *w = new_view(back, 2, &with_bundles),
		       *one = new_view(a, 1, &with_bundles),
		       *again = new_view(a, 2, &with_bundles);
	static const char x[] = "hipfb/x/0.hipfb", y[] = "hipfb/y/0.hipfb";
	size_t kept;

	/* the first archive wins, as in toc, which has the only conflict */
	assert_string_equal(at(v, x), HIP "gfx1030=bbbb " HIP "gfx942=aaaa ");
	assert_string_equal(at(w, x), HIP "gfx1030=bbbb " HIP "gfx942=cccc ");
	(void)kp_view_conflicts(v, &kept, NULL);
	assert_int_equal(kept, 1);
	/* a number for each content, the same in each view */
	assert_int_equal(id_at(v, x), id_at(again, x));
	assert_int_not_equal(id_at(v, x), id_at(w, x));
	assert_int_not_equal(id_at(v, x), id_at(one, x));
	assert_int_equal(id_at(v, y), id_at(one, y));
	assert_int_not_equal(id_at(v, y), id_at(one, x));
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
		"{'p': {'generic': {'ordinal': 0, 'metadata': {'path': 'hipfb/p'}}}, "
		"'q': {'generic': {'ordinal': 0, 'metadata': {'path': 'hipfb'}}}, 'r': "
		"{'generic': {'ordinal': 0, 'metadata': {'path': 'hipfbs'}}}, "
		/* a directory has the name of a bundle */
		"'x#0': {'gfx90a': @0}, 'x/0.hipfb#0': {'gfx90a': @1}, '../z#0': "
		"{'gfx90a': @0}}");
	struct kp_view *v = new_view(&a, 1, &with_bundles);
	const char *const *texts;
	uint32_t name, dir;
	size_t kept;

	assert_false(find_name(v, "hipfb/p", &name, &dir));
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
