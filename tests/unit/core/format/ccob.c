/* SPDX-License-Identifier: MIT */
/*
 * The level that a compressed bundle was made with, which a converted file records, and
 * large payloads on disk.  How they are read is tested by golden cases.
 */
#include "core/format/ccob.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/file.h"
#include "tests/unit/bundle_builder.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif

static struct kpackx_error why;
static struct bytes small, large;

/* Bundles of one object: one that compresses at levels differently, and 34 MiB. */
static int make_payloads(void **state)
{
	static char object[300001];
	struct entry e = {"hipv4-amdgcn-amd-amdhsa--gfx90a", object};
	uint32_t x = 1;

	for (size_t i = 0; i + 1 < sizeof(object); i++) {
		x = x * 1664525 + 1013904223;
		object[i] = (char)(1 + (x >> 24) % 255);
	}
	put_bundle(&small, &e, 1, 16);
	put(&large, small.data, 100);
	while (large.size < 2000000) {
		x = x * 1103515245 + 12345;
		put(&large, &small.data[100 + (x >> 16) % 30000], 17);
		large.data[large.size - 1] &= 0x17;
	}
	for (size_t i = 100; i < small.size; i++)
		small.data[i] &= 0x17;
	return 0;
}

static int free_payloads(void **state)
{
	bytes_free(&small);
	bytes_free(&large);
	return 0;
}

SUITE(make_payloads, free_payloads);

static struct bytes encoded(const struct kp_ccob_form *form, const struct bytes *plain)
{
	struct bytes b = {0};

	assert_int_equal(kp_ccob_encode(form, bytes_span(plain), &b.data, &b.size, &why),
			 KPACK_SUCCESS);
	return b;
}

/* The form that is found of the container B of PLAIN, of which a byte may be changed. */
static struct kp_ccob_form found(const struct bytes *b, const struct bytes *plain,
				 struct kp_ccob_search *search)
{
	struct kp_source src = kp_source_memory(b->data, b->size);
	struct kp_payload payload = {.source = kp_source_memory(plain->data, plain->size),
				     .heap = plain->data};
	struct kp_container c;
	struct kp_ccob_form form;

	assert_int_equal(kp_ccob_measure(&src, 0, &c, &why), KPACK_SUCCESS);
	assert_int_equal(c.size, b->size);
	assert_int_equal(c.payload_size, plain->size);
	assert_int_equal(kp_ccob_form_read(&src, &c, &form, &why), KPACK_SUCCESS);
	assert_int_equal(kp_ccob_find_level(&src, &c, &payload, search, &form, &why),
			 KPACK_SUCCESS);
	return form;
}

/*
 * Containers of one file, one after another.  The level before is tried first, all levels
 * only as often as the search allows, and after three failures nothing.
 */
TEST(levels_are_looked_for)
{
	enum { CHANGED = 1 };
	static const struct {
		int level, how; /* of the container, whose last bytes may be changed */
		int searches, like; /* set before, or -1 */
		int want;           /* the level that is found */
		unsigned left, failures;
	} rows[] = {
		{7, 0, -1, -1, 7, 15, 0},
		{7, 0, 0, -1, 7, 0, 0},  /* without a search: the level before */
		{5, 0, -1, -1, 7, 0, 1}, /* no search is left */
		{5, 0, 1, -1, 5, 0, 0},
		{7, CHANGED, 1, -1, 5, 0, 1}, /* searched in vain: never again */
		{7, CHANGED, -1, -1, 5, 0, 2},
		{7, CHANGED, -1, -1, 5, 0, 3},
		{7, 0, 1, 0, 3, 1, 3}, /* given up */
	};
	struct kp_ccob_search search = KP_CCOB_SEARCH;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, rows[i].level, true};
		struct bytes b = encoded(&form, &small);

		if (rows[i].how == CHANGED)
			b.data[b.size - 5] ^= 1;
		if (rows[i].searches >= 0)
			search.searches = (unsigned)rows[i].searches;
		if (rows[i].like >= 0)
			search.like.level = rows[i].like;
		form = found(&b, &small, &search);
		if (form.level != rows[i].want || search.searches != rows[i].left ||
		    search.failures != rows[i].failures)
			fail_msg("row %zu: level %d, searches %u, failures %u", i,
				 form.level, search.searches, search.failures);
		bytes_free(&b);
	}
}

/* Of a payload that the budget does not cover only the first bytes are compared. */
TEST(the_budget_decides_how_much_is_compared)
{
	static const int levels[] = {1, 3, 5, 13};

	for (size_t i = 0; i < COUNT(levels); i++) {
		struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, levels[i], i % 2};
		struct kp_ccob_search search = {.searches = 1};
		struct bytes b = encoded(&form, &large);

		b.data[b.size - 5] ^= 1;
		assert_int_equal(found(&b, &large, &search).level, levels[i]);
		assert_int_equal(search.failures, 0);
		search = (struct kp_ccob_search){.budget = UINT64_C(1) << 30};
		assert_int_equal(found(&b, &large, &search).level, 3);
		assert_int_equal(search.failures, 1);
		bytes_free(&b);
	}
	/* of a large one first the first block */
	put_zeros(&large, (size_t)32 << 20);
	for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
		struct kp_ccob_form form = {3, method, 0, 4, false};
		struct kp_ccob_search search = KP_CCOB_SEARCH;
		struct bytes b = encoded(&form, &large);

		assert_int_equal(found(&b, &large, &search).level, 4);
		assert_int_equal(search.failures, 0);
		b.data[3000] ^= 1;
		search = (struct kp_ccob_search){.like = form};
		assert_int_equal(found(&b, &large, &search).level, 4);
		assert_int_equal(search.failures, 1);
		bytes_free(&b);
	}
}

/* A large payload is on disk when the program asks for it, and else in memory. */
TEST(a_large_payload_is_spilled)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;
	struct bytes plain = {0};

	put(&plain, small.data, small.size);
	plain.data = realloc(plain.data, plain.size + KP_SPILL_MIN);
	memset(plain.data + plain.size, 7, KP_SPILL_MIN);
	plain.size += KP_SPILL_MIN;
	for (unsigned method = !KP_WITH_ZLIB; method <= 1; method++) {
		struct kp_ccob_form form = {3, method, 0, 1, false};
		struct bytes b = encoded(&form, &plain);
		struct kp_source src = kp_source_memory(b.data, b.size);
		struct kp_payload payload;
		struct kp_container c;

		assert_int_equal(kp_ccob_measure(&src, 0, &c, &why), KPACK_SUCCESS);
		for (unsigned i = 0; i < 3; i++) { /* the third time into the same file */
			struct kp_span map = {0};

			if (i < 2)
				kp_spill_into(i ? dir : -1);
			assert_int_equal(kp_container_load(&src, &c, &payload, &why),
					 KPACK_SUCCESS);
			assert_int_equal(payload.spilled, i > 0);
			assert_int_equal(payload.heap != NULL, !i);
			assert_int_equal(kp_payload_memory(&c), i ? 0 : plain.size);
			assert_int_equal(kp_payload_map(&payload, &map, &why), 0);
			assert_int_equal(map.size, plain.size);
			assert_memory_equal(map.data, plain.data, plain.size);
			kp_payload_fini(&payload);
		}
		/* damage is found in a file, too, which is closed */
		memset(b.data + b.size - 60, 0x55, 60);
		assert_int_not_equal(kp_container_load(&src, &c, &payload, &why),
				     KPACK_SUCCESS);
		assert_false(payload.spilled);
		kp_spill_into(-1);
		bytes_free(&b);
	}
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(next, dir + 1);
	close(next);
	close(dir);
	bytes_free(&plain);
}

/* A second frame, which the sizes in the header do not count, is found where the first ends. */
TEST(nothing_follows_the_payload)
{
	struct kp_ccob_form form = {3, KP_CCOB_ZSTD, 0, 1, false};
	struct bytes b = encoded(&form, &small);
	size_t frame = b.size - KP_CCOB_HEADER_MAX;
	struct kp_container c;
	struct kp_payload payload;
	struct kp_source src;

	b.data = realloc(b.data, b.size + frame);
	memcpy(b.data + b.size, b.data + KP_CCOB_HEADER_MAX, frame);
	b.size += frame;
	kp_put_le64(b.data + 8, b.size);
	src = kp_source_memory(b.data, b.size);
	assert_int_equal(kp_ccob_measure(&src, 0, &c, &why), KPACK_SUCCESS);
	assert_int_equal(kp_container_load(&src, &c, &payload, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_non_null(strstr(why.text, "decodes to more than its"));
	bytes_free(&b);
}
