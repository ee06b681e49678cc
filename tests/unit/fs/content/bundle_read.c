/* SPDX-License-Identifier: MIT */
/* Reads of a bundle; reads of entries are faked, and answered when the test says so. */
#include "fs/content/bundle_read.h"
#include "tests/unit/edition_builder.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct kp_choice every_arch;

/* The reads of entries that were not answered yet, if they are not answered at once. */
static struct pending {
	struct origin_entry what;
	uint64_t off;
	size_t len;
	content_answer *answer;
	void *token;
} pending[16];
static unsigned n_pending, n_reads;
static bool waits;
static size_t fails = SIZE_MAX; /* the entry that cannot be read */

static void answer_one(const struct pending *p)
{
	struct kpackx_error why = {0};
	char bytes[16];
	size_t got = 0;

	if (p->what.entry == fails)
		kp_fail(&why, KPACK_ERROR_DECOMPRESSION_FAILED, "made to fail");
	else
		kp_archive_read_range(p->what.origin->archive, p->what.entry, p->off,
				      bytes, p->len, &got, &why);
	if (why.code)
		p->answer(p->token, NULL, 0, &why);
	else
		p->answer(p->token, bytes, got, NULL);
}

void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token)
{
	struct pending p = {what, off, len, answer, token};

	(void)c;
	n_reads++;
	if (waits)
		pending[n_pending++] = p;
	else
		answer_one(&p);
}

static struct {
	unsigned count;
	kpack_error_t code;
	size_t size;
	uint8_t *bytes;
} got;

static void on_answer(void *token, const void *data, size_t size,
		      const struct kpackx_error *why)
{
	assert_ptr_equal(token, &got);
	got.count++;
	got.code = why ? why->code : KPACK_SUCCESS;
	got.size = size;
	free(got.bytes);
	got.bytes = malloc(size + 1);
	if (size)
		memcpy(got.bytes, data, size);
}

static struct edition *e;
static struct file_content file;
static uint8_t *whole; /* the bundle's bytes, put together here */

static int setup(void **state)
{
	struct edition_options options = {.arches = &every_arch,
					  .look = {.uid = (uid_t)-1, .gid = (gid_t)-1},
					  .bundles = true};
	struct holdings h = {0};
	struct kp_view_bundle b;
	uint32_t found = UINT32_MAX;

	if (!holdings_add(&h, eb_archive("a.kpack", "{'x#0': {'gfx90a': {'ordinal': 0}, "
						    "'gfx942': {'ordinal': 1}}}")) ||
	    !holdings_add(&h, eb_archive("b.kpack", "{'x#0': {'gfx1030': {'ordinal': "
						    "2}}}")))
		return 1;
	e = edition_new(&h, &options, NULL);
	for (uint32_t f = 0; f < kp_view_file_count(e->view); f++)
		if (kp_view_bundle(e->view, f, &b))
			found = f;
	if (found == UINT32_MAX || !edition_file(e, found, &file))
		return 1;
	whole = calloc(file.bundle->size, 1);
	memcpy(whole, file.bundle->header.data, file.bundle->header.size);
	memcpy(whole + file.bundle->parts[0].offset, "cc", 2);
	memcpy(whole + file.bundle->parts[1].offset, "aaaa", 4);
	memcpy(whole + file.bundle->parts[2].offset, "bbbb", 4);
	return 0;
}

static int teardown(void **state)
{
	file_content_unref(&file);
	edition_unref(e);
	free(whole);
	free(got.bytes);
	return 0;
}

static void ask(uint64_t off, size_t len)
{
	n_reads = n_pending = got.count = 0;
	content_read_bundle(NULL, file.bundle, off, len, on_answer, &got);
}

static void expect(uint64_t off, size_t len, unsigned reads)
{
	ask(off, len);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.code, KPACK_SUCCESS);
	assert_int_equal(n_reads, reads);
	if (off >= file.bundle->size)
		len = 0;
	else if (len > file.bundle->size - off)
		len = file.bundle->size - off;
	assert_int_equal(got.size, len);
	if (len)
		assert_memory_equal(got.bytes, whole + off, len);
}

TEST(each_range_has_all_its_bytes)
{
	const struct bundle_part *p = file.bundle->parts;
	uint64_t size = file.bundle->size, header = file.bundle->header.size;

	assert_int_equal(file.bundle->count, 3);
	expect(0, size, 3);
	expect(0, size + 100, 3);
	expect(0, 4096, 0); /* only the header */
	expect(5, 10, 0);
	expect(header - 1, 2, 0);
	expect(header + 10, 100, 0); /* only zeros */
	expect(0, p[0].offset, 0);
	expect(0, p[0].offset + 1, 1);
	expect(p[0].offset - 1, 2, 1);
	expect(p[0].offset, 2, 1);
	expect(p[0].offset + 1, 1, 1);
	expect(p[0].offset, 3, 1);
	expect(p[0].offset + 2, 100, 0);
	expect(p[0].offset + 1, p[1].offset - p[0].offset, 2);
	expect(p[0].offset + 1, p[1].offset - p[0].offset - 1, 1);
	expect(p[1].offset + 1, p[2].offset - p[1].offset, 2);
	expect(p[2].offset + 1, 100, 1);
	expect(size - 1, 1, 1);
	expect(size - 1, SIZE_MAX, 1);
	expect(size, 1, 0);
	expect(UINT64_MAX, 1, 0);
	expect(7, 0, 0);
}

/* The answer comes once, after that of the last part. */
TEST(parts_in_any_order)
{
	static const unsigned order[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};

	waits = true;
	for (size_t i = 0; i < 3; i++) {
		ask(0, file.bundle->size);
		assert_int_equal(n_pending, 3);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(got.count, 0);
			answer_one(&pending[order[i][k]]);
		}
		assert_int_equal(got.count, 1);
		assert_int_equal(got.size, file.bundle->size);
		assert_memory_equal(got.bytes, whole, got.size);
	}
	waits = false;
}

static void *answer_in_thread(void *p)
{
	answer_one(p);
	return NULL;
}

TEST(parts_from_several_threads)
{
	pthread_t threads[3];

	waits = true;
	for (int round = 0; round < 200; round++) {
		fails = round % 2 ? SIZE_MAX : 0; /* entry 0 of both archives */
		ask(0, file.bundle->size);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(pthread_create(&threads[k], NULL,
							answer_in_thread, &pending[k]),
					 0);
		for (size_t k = 0; k < 3; k++)
			pthread_join(threads[k], NULL);
		assert_int_equal(got.count, 1);
		assert_int_equal(got.code, round % 2 ? KPACK_SUCCESS
						     : KPACK_ERROR_DECOMPRESSION_FAILED);
	}
	fails = SIZE_MAX;
	waits = false;
}

TEST(a_part_that_fails)
{
	const struct bundle_part *p = file.bundle->parts;

	fails = 1; /* gfx942 */
	ask(0, file.bundle->size);
	assert_int_equal(got.count, 1);
	assert_int_equal(got.code, KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(n_reads, 3);
	/* the parts beside it can be read */
	fails = SIZE_MAX;
	expect(0, p[1].offset + 4, 2);
	fails = 1;
	expect(0, p[2].offset, 2);
	ask(p[2].offset, 4);
	assert_int_equal(got.code, KPACK_ERROR_DECOMPRESSION_FAILED);
	fails = SIZE_MAX;
}

SUITE(setup, teardown);
