/* SPDX-License-Identifier: MIT */
#include "core/archive/toc.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"

/* The size of the archives whose TOCs are parsed here. */
enum { FILE_SIZE = 1000 };

static struct kpackx_error why;

static kpack_error_t parse_bytes(const void *data, size_t size, struct kp_toc *toc)
{
	uint8_t *copy = malloc(size + 1);

	assert_non_null(copy);
	memcpy(copy, data, size);
	why = (struct kpackx_error){0};
	return kp_toc_parse(copy, size, FILE_SIZE, toc, &why);
}

static kpack_error_t parse(const char *text, struct kp_toc *toc)
{
	struct ab a = ab_new(16);
	kpack_error_t err;

	ab_toc_text(&a, text);
	err = parse_bytes(a.bytes + 16, a.size - 16, toc);
	ab_free(&a);
	return err;
}

static struct kp_toc parsed(const char *text)
{
	struct kp_toc toc;

	if (parse(text, &toc) != KPACK_SUCCESS)
		fail_msg("%s: %s", text, why.text);
	return toc;
}

static const struct kp_toc_entry *find(const struct kp_toc *toc, const char *key,
				       const char *arch)
{
	size_t n;

	if (!kp_toc_find(toc, kp_span_str(key), kp_span_str(arch), &n))
		return NULL;
	assert_true(n < toc->n_entries);
	return &toc->entries[n];
}

/* All entries in order, each as "key arch ordinal type;". */
static char *list(const struct kp_toc *toc)
{
	static char out[4096];
	size_t used = 0;

	out[0] = 0;
	for (size_t i = 0; i < toc->n_entries; i++) {
		const struct kp_toc_entry *e = &toc->entries[i];
		struct kp_span key = kp_toc_key(toc, e->binary);
		struct kp_span arch = toc->strings[e->arch], type = toc->strings[e->type];

		used += (size_t)snprintf(
			out + used, sizeof(out) - used, "%s%.*s %.*s %u %.*s",
			i ? ";" : "", (int)key.size, (const char *)key.data,
			(int)arch.size, (const char *)arch.data, e->ordinal,
			(int)type.size, (const char *)type.data);
		assert_int_equal(key.data[key.size], 0); /* usable as a C string */
		assert_true(toc->binaries[e->binary].first <= i &&
			    i < toc->binaries[e->binary + 1].first);
		assert_ptr_equal(find(toc, (const char *)key.data,
				      strndupa((const char *)arch.data, arch.size)),
				 e);
	}
	assert_int_equal(toc->binaries[toc->n_binaries].first, toc->n_entries);
	return out;
}

/* --- accepted TOCs ------------------------------------------------------------------ */

#define ZSTD "'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': 9,"

static const struct {
	const char *text;
	const char *entries; /* as list() prints them */
	unsigned faults, refused;
} tables[] = {
	{"{}", "", 0, 0},
	{"{'toc': {'a': {}}}", "", 0, 0},
	/* fields in the reference writer's order, and in ours */
	{"{'format_version': 1, 'group_name': 'g', 'gfx_arch_family': 'f', "
	 "'gfx_arches':['gfx900'], 'toc': {'a#0': {'gfx900': {'type': 'co', 'ordinal': "
	 "3, 'original_size':5}}}, " ZSTD "}",
	 "a#0 gfx900 3 co", 0, 0},
	{"{'gfx_arches': ['gfx900'], " ZSTD
	 "'toc': {'a#0': {'gfx900': {'original_size': 5,'ordinal': 3, 'type': 'co'}}}}",
	 "a#0 gfx900 3 co", 0, 0},
	/* neither type nor original_size */
	{"{'toc': {'a#0': {'gfx900': @1}}}", "a#0 gfx900 1 hsaco", 0, 0},
	/* sorted, whatever their order in the TOC */
	{"{'toc': {'b': {'gfx9': @0, 'gfx11': @1}, 'a/b': {'gfx9':@2}, 'a': {'gfx9': "
	 "@3}, 'a#0': {'z': @4,'y': @5, 'x': @6}}}",
	 "a gfx9 3 hsaco;a#0 x 6 hsaco;a#0 y 5 hsaco;a#0 z 4 hsaco;a/b gfx9 2 hsaco;b "
	 "gfx11 1 hsaco;b gfx9 0 hsaco",
	 0, 0},
	/* keys that agree in their first eight, sixteen and more bytes */
	{"{'toc': {'0123456789abcdefg': {'a': @1}, '01234567': {'a': @2}, "
	 "'0123456789abcdef': {'a': @3}, '0123456': {'a': @4},'': {'a': @5}, "
	 "'012345678': {'a': @6}, '0123456789abcdeg':{'a': @7}, '0123456789abcdefh': "
	 "{'a': @8}}}",
	 " a 5 hsaco;0123456 a 4 hsaco;01234567 a 2 hsaco;012345678 a 6 "
	 "hsaco;0123456789abcdef a 3 hsaco;0123456789abcdefg a 1 hsaco;0123456789abcdefh "
	 "a 8 hsaco;0123456789abcdeg a 7 hsaco",
	 0, 0},
	/* bytes above 0x7f sort last */
	{"{'toc': {'\303\251': {'a': @1}, 'z': {'a': @2}}}",
	 "z a 2 hsaco;\303\251 a 1 hsaco", 0, 0},
	/*
	 * duplicates: the first field counts, the last architecture counts, binaries are
	 * merged
	 */
	{"{'toc': {'a': {'x': {'ordinal': 1, 'ordinal': 2, 'type': 'p', 'type': 'q'}}}}",
	 "a x 1 p", 2, 0},
	{"{'toc': {'a': {'x': @1, 'y': @2, 'x': @3}}}", "a x 3 hsaco;a y 2 hsaco", 1, 0},
	{"{'toc': {'a': {'x': @1}, 'b': {'x': @2}, 'a': {'y':@3}, 'a': {'x': @4}}}",
	 "a x 4 hsaco;a y 3 hsaco;b x 2 hsaco", 3, 0},
	{"{'toc': {'a': {'x': @1}}, 'toc': {'b': {'x': @2}}}", "a x 1 hsaco", 1, 0},
	/* the last of duplicate architectures counts, even if its entry is refused */
	{"{'toc': {'a': {'x': @1, 'x': {'type': 'p'}}}}", "a x 1 hsaco", 1, 1},
	/* unknown keys at every level, and keys that are not strings */
	{"{'new': [1, {'a': nil}], 7: 8, nil: [], 'toc': {[1]: 2, 'a': {3: 4, 'x': "
	 "{'ordinal':0, 'more': @5, 9: 9}}}}",
	 "a x 0 hsaco", 0, 0},
	/* values of the wrong type, and names that are none; each costs one entry */
	{"{'toc': {'a': 5, 'b': {'x': [], 'y': @1}}}", "b y 1 hsaco", 2, 2},
	{"{'toc': {'a': {'x': @4294967296}}}", "", 1, 1},
	{"{'toc': {'a': {'x': @4294967295}}}", "a x 4294967295 hsaco", 0, 0},
	{"{'toc': {'a': {'x': {'ordinal': 1, 'metadata': 5}}}}", "a x 1 hsaco", 0, 0},
	{"{'toc': {'a~b': {'x': @1}, 'b': {'': @1, 'x\n': {}}}}", "", 3, 3},
	/* without the arch level, as in the paper */
	/* metadata before the other fields */
	{"{'toc': {'fft/gfx90a:xnack+/k': {'metadata': {'a': 1}, 'ordinal': 4}}}",
	 "fft/gfx90a:xnack+/k gfx90a:xnack+ 4 hsaco", 0, 0},
	{"{'toc': {'x/sm_90/k': @1, 'x/compute_90/k': @2,'x/amdgcnspirv/k': @3, "
	 "'x/gfx/k': @4, 'k': @5}}",
	 "x/amdgcnspirv/k amdgcnspirv 3 hsaco;x/compute_90/k compute_90 2 "
	 "hsaco;x/sm_90/k sm_90 1 hsaco",
	 2, 2},
	/*
	 * entries with their own offsets: ordinals are numbered in entry order, whatever
	 * they state
	 */
	{"{'compression_scheme': 'none', 'toc': {'a': {'x': {'offset': 64, 'size': 5}, "
	 "'y':{'offset': 69, 'size': 6, 'ordinal': 17}}, 'b/gfx900': {'offset': 10, "
	 "'size': 1}}}",
	 "a x 0 hsaco;a y 1 hsaco;b/gfx900 gfx900 2 hsaco", 0, 0},
	{"{'toc': {'a': {'x': {'offset': 64}, 'y': {'size': 6}}}}", "", 2, 2},
	/* gfx_arches with members that are not valid names */
	{"{'gfx_arches': ['gfx900', 5, 'a\n', {}, 'gfx906']}", "", 3, 0},
};

TEST(tables_are_read)
{
	for (size_t i = 0; i < COUNT(tables); i++) {
		struct kp_toc toc = parsed(tables[i].text);
		unsigned refused = 0;

		if (strcmp(list(&toc), tables[i].entries) != 0)
			fail_msg("%s\ngives %s\nnot   %s", tables[i].text, list(&toc),
				 tables[i].entries);
		for (size_t f = 0; f < toc.faults.kept; f++)
			refused += toc.faults.items[f].refused;
		if (toc.faults.counted != tables[i].faults ||
		    refused != tables[i].refused)
			fail_msg("%s: %zu faults, %u refused", tables[i].text,
				 toc.faults.counted, refused);
		kp_toc_fini(&toc);
	}
}

/* What is stated, and the first of fields that come twice. */
TEST(top_fields_are_read)
{
	struct kp_toc toc = parsed("{'group_name': 5, 'format_version': 'x'}");

	assert_true(!toc.has_group && !toc.has_family && !toc.has_arches && !toc.has_toc);
	assert_int_equal(toc.scheme, KPACK_COMPRESSION_NOOP);
	assert_false(toc.has_scheme);
	kp_toc_fini(&toc);
	toc = parsed(
		"{'compression_scheme': 'none', 'compression_scheme': 'x', 'zstd_size': "
		"1,'zstd_size': 'x', 'gfx_arches': ['a'], 'gfx_arches': 5, 'blobs': "
		"[{'offset': 1, 'size': 2, 'offset': 'x', 'size': 'x'}], 'blobs': 5}");
	assert_true(toc.n_blobs == 1 && toc.blobs[0].offset == 1 &&
		    toc.blobs[0].size == 2);
	assert_true(toc.n_arches == 1 && toc.zstd_size == 1);
	assert_int_equal(toc.faults.counted, 4);
	kp_toc_fini(&toc);
	toc = parsed("{'zstd_shared': {'offset': 1, 'size': 2, 'block_size': 3, "
		     "'offset': 9, 'unique_size': 4, 'objects': x'0102', 'frames': "
		     "x'03', 'objects': 5, 'dictionary_size': 6, 'size': nil, 'x': 1}}");
	assert_true(toc.has_shared && toc.shared.offset == 1 && toc.shared.size == 2);
	assert_true(toc.shared.dictionary_size == 6 && toc.shared.objects.size == 2);
	kp_toc_fini(&toc);
	/* a size that is wrong is not mistaken for one that is not stated */
	toc = parsed(
		"{'toc': {'a': {'v': @0, 'x': {'ordinal': 0, 'original_size': "
		"18446744073709551615}, 'y': {'ordinal': 0, 'original_size': -5}}}}");
	assert_true(find(&toc, "a", "v")->size == KP_TOC_NO_SIZE);
	for (const char *name = "x"; *name; name = *name == 'x' ? "y" : "") {
		assert_true(find(&toc, "a", name)->size != KP_TOC_NO_SIZE);
		assert_true(find(&toc, "a", name)->size > KP_CHUNKED_MAX);
	}
	kp_toc_fini(&toc);
}

/*
 * Entries with a place have blobs, unless there is a blobs array.  An entry with only an
 * ordinal must not get another entry's bytes.
 */
TEST(entries_with_a_place_have_blobs)
{
	struct kp_toc toc = parsed("{'toc': {'b': {'x': {'offset': 64, 'size': 5}}, 'a': "
				   "{'x': {'offset': 69, "
				   "'size': 6}, 'y': @0}}}");
	const struct kp_toc_entry *a = find(&toc, "a", "x"), *b = find(&toc, "b", "x"),
				  *y = find(&toc, "a", "y");

	assert_true(toc.n_blobs == 2 || toc.n_blobs == 3);
	assert_true(toc.blobs[a->ordinal].offset == 69 &&
		    toc.blobs[a->ordinal].size == 6);
	assert_int_equal(toc.blobs[b->ordinal].offset, 64);
	assert_true(!y || y->ordinal >= toc.n_blobs);
	kp_toc_fini(&toc);
	toc = parsed(
		"{'blobs': [{'offset': 1, 'size': 2}], 'toc': {'a': {'x': {'offset': 64,"
		"'size': 5}, 'y': {'offset': 64, 'size': 5, 'ordinal': 0}}}}");
	assert_int_equal(toc.n_blobs, 1);
	assert_true(find(&toc, "a", "x")->ordinal >= 1 && !find(&toc, "a", "y")->ordinal);
	kp_toc_fini(&toc);
}

/* --- amounts ------------------------------------------------------------------------ */

static bool drop_odd(struct kp_toc *toc, struct kp_toc_entry *e, void *arg)
{
	return e->ordinal & 1;
}

/* Keys in an unsorted order, one in ten twice; then half of the entries are dropped. */
TEST(many_keys_are_sorted_found_and_filtered)
{
	enum { N = 5000, STEP = 7919 };
	struct kp_toc toc;
	msgpack_sbuffer out;
	msgpack_packer pk;
	char text[128];

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	msgpack_pack_map(&pk, 1);
	mp_pack_value(&pk, "'toc'");
	msgpack_pack_map(&pk, N + N / 10);
	for (unsigned i = 0; i < N + N / 10; i++) {
		unsigned k = i * STEP % N;

		snprintf(text, sizeof(text), "'lib/of/some/length/lib%u.so#%u'", k / 100,
			 k);
		mp_pack_value(&pk, text);
		snprintf(text, sizeof(text), "{'%s': @%u, 'gfx9': @2}",
			 i < N ? "gfx1100" : "gfx1101", k);
		mp_pack_value(&pk, text);
	}
	assert_int_equal(parse_bytes(out.data, out.size, &toc), KPACK_SUCCESS);
	msgpack_sbuffer_destroy(&out);
	assert_int_equal(toc.n_binaries, N);
	assert_int_equal(toc.n_entries, 2 * N + N / 10);
	for (size_t i = 1; i < toc.n_binaries; i++)
		assert_true(kp_span_cmp(kp_toc_key(&toc, i - 1), kp_toc_key(&toc, i)) <
			    0);
	for (unsigned k = 0; k < N; k++) {
		snprintf(text, sizeof(text), "lib/of/some/length/lib%u.so#%u", k / 100,
			 k);
		assert_non_null(find(&toc, text, "gfx9"));
		assert_int_equal(find(&toc, text, "gfx1100")->ordinal, k);
		assert_null(find(&toc, text, "gfx"));
		assert_null(find(&toc, text, "gfx90"));
	}
	kp_toc_filter(&toc, drop_odd, NULL);
	for (unsigned k = 0; k < N; k++) {
		snprintf(text, sizeof(text), "lib/of/some/length/lib%u.so#%u", k / 100,
			 k);
		assert_non_null(find(&toc, text, "gfx9"));
		assert_int_equal(find(&toc, text, "gfx1100") != NULL, k % 2 == 0);
	}
	kp_toc_fini(&toc);
}

/* Check the bytes of an entry's unknown fields. */
static void expect_more(const struct kp_toc *toc, const char *key, const char *arch,
			const char *expected)
{
	const struct kp_toc_entry *e = find(toc, key, arch);
	struct kp_more more;
	uint8_t have[64];

	assert_non_null(e);
	more = kp_toc_entry_more(toc, e);
	assert_int_equal(kp_more_size(&more), strlen(expected));
	assert_in_range(strlen(expected), 0, sizeof(have));
	kp_more_copy(&more, have);
	assert_memory_equal(have, expected, strlen(expected));
}

TEST(what_is_not_known_is_kept)
{
	struct kp_toc toc =
		parsed("{'toc': {'b': {'y': {1: 2, 'ordinal': 1, 3: 4, 5: 6}, 'x': "
		       "{'ordinal': 2, 7: 8}},'a': {'z': {9: 9, 'ordinal': 3}, 'x': @4, "
		       "'y': {10: 10,'ordinal': 5}, 'y': {'ordinal': 6, 11: 11}},'b': "
		       "{'z': {12: 12, 'ordinal': 7}, 'y': {'ordinal': 8, 13: 13}},'c': "
		       "{'x': {14: 14}, 'y': @9}}}");

	expect_more(&toc, "a", "x", "");
	expect_more(&toc, "a", "y", "\x0b\x0b");
	expect_more(&toc, "a", "z", "\x09\x09");
	expect_more(&toc, "b", "x", "\x07\x08");
	expect_more(&toc, "b", "y", "\x0d\x0d");
	expect_more(&toc, "b", "z", "\x0c\x0c");
	expect_more(&toc, "c", "y", "");
	kp_toc_fini(&toc);
	toc = parsed("{'toc': {'b': {'y': {1: 2, 'ordinal': 1, 3: 4, 5: 6}}}}");
	expect_more(&toc, "b", "y", "\x01\x02\x03\x04\x05\x06");
	kp_toc_fini(&toc);
}
