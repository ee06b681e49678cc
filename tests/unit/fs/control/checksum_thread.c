/* SPDX-License-Identifier: MIT */
/* Checksums that are computed on demand; content is faked here. */
#include "fs/control/checksum_thread.h"
#include "tests/unit/edition_builder.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct kp_choice every_arch;

/* SHA-256 of "aaaa", "bbbb" and "cc". */
#define SHA_A "61be55a8e2f6b4e172338bddf184d6dbee29c98853e0a0485ecee7f27b9af0b4"
#define SHA_B "81cc5b17018674b401b42f35ba07bb79e211239c23bffe658da1577e3e646877"
#define SHA_C "355b1bbfc96725cdce8f4a2708fda310a80e6d13315aec4e5eed2a75fe8032ce"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* Faked content: reads per entry, failures, and a gate that reads wait for. */
static unsigned reads[16];
static bool fails;
static atomic_bool gated;
static sem_t gate, at_gate;

void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token)
{
	struct kpackx_error why = {0};
	uint8_t bytes[16];
	size_t got;

	__atomic_add_fetch(&reads[what.entry], 1, __ATOMIC_RELAXED);
	if (gated) {
		sem_post(&at_gate);
		sem_wait(&gate);
	}
	if (fails)
		kp_fail(&why, KPACK_ERROR_DECOMPRESSION_FAILED, "made to fail");
	else
		kp_archive_read_range(what.origin->archive, what.entry, off, bytes,
				      len < sizeof(bytes) ? len : sizeof(bytes), &got,
				      &why);
	if (why.code)
		answer(token, NULL, 0, &why);
	else
		answer(token, bytes, got, NULL);
}

/* a pending read of the checksums file */
struct read {
	sem_t answered;
	bool failed;
	char text[4096];
};

static void on_answer(void *token, const void *data, size_t size,
		      const struct kpackx_error *why)
{
	struct read *r = token;

	r->failed = why != NULL;
	if (size)
		memcpy(r->text, data, size);
	r->text[size] = '\0';
	sem_post(&r->answered);
}

static struct checksum_thread *h;
static struct checksums *sums;

static void ask(struct read *r, uint64_t off, size_t len)
{
	sem_init(&r->answered, 0, 0);
	checksum_thread_read(h, sums, off, len, r);
}

static void expect(uint64_t off, size_t len, const char *want)
{
	struct read r;

	ask(&r, off, len);
	sem_wait(&r.answered);
	assert_false(r.failed);
	assert_string_equal(r.text, want);
}

static int setup(void **state)
{
	struct edition *e =
		eb_edition(eb_archive("/a.kpack", "{'a': {'g': {'ordinal': 0}}, "
						  "'b\\c': {'g': {'ordinal': 1}}, "
						  "'d': {'g': {'ordinal': 2}}, "
						  "'e': {'g': {'ordinal': 0}}}"),
			   NULL, &every_arch, NULL);

	memset(reads, 0, sizeof(reads));
	fails = false;
	gated = false;
	sem_init(&gate, 0, 0);
	sem_init(&at_gate, 0, 0);
	h = checksum_thread_new(NULL, on_answer);
	sums = checksums_new(e);
	edition_unref(e);
	return !h || !sums;
}

static int teardown(void **state)
{
	checksum_thread_free(h);
	checksums_unref(sums);
	return 0;
}

#define LINE(sha, path) sha "  toc/" path "/g.hsaco\n"

static const char whole[] =
	LINE(SHA_A, "a") "\\" LINE(SHA_B, "b\\\\c") LINE(SHA_C, "d") LINE(SHA_A, "e");

TEST(test_whole, setup, teardown)
{
	assert_int_equal(checksums_size(sums), sizeof(whole) - 1);
	expect(0, sizeof(whole) - 1, whole);
	/* content with two names is read once, and not again later */
	assert_int_equal(reads[0] + reads[3], 1);
	assert_int_equal(reads[1], 1);
	expect(0, sizeof(whole) - 1, whole);
	assert_int_equal(reads[1], 1);
}

/*
 * Only the checksums that a read covers are computed, from the first digit to the last.
 */
TEST(test_parts, setup, teardown)
{
	const size_t b = sizeof(LINE(SHA_A, "a")) - 1; /* offset of the second line */

	expect(64, b + 1 - 64, "  toc/a/g.hsaco\n\\");
	assert_int_equal(reads[0] + reads[1] + reads[2], 0);
	expect(b + 1 + 63, 2, "7 ");
	assert_int_equal(reads[1], 1);
	expect(b + 1 + 64, 5, "  toc");
	assert_int_equal(reads[0] + reads[1] + reads[2], 1);
	expect(b, 2, "\\8");
	expect(63, 1, "4");
	assert_int_equal(reads[0] + reads[3], 1);
	assert_int_equal(reads[2], 0);
	expect(0, 0, "");
}

TEST(test_unreadable, setup, teardown)
{
	fails = true;
	expect(0, 66, ZEROS "  ");
}

/* When the thread stops, waiting reads fail and no more checksums are computed. */
TEST(test_stop, setup, teardown)
{
	struct read first, second;

	gated = true;
	ask(&first, 0, 10);
	ask(&second, 100, 10);
	sem_wait(&at_gate);
	gated = false;
	sem_post(&gate);
	checksum_thread_free(h);
	h = NULL;
	sem_wait(&first.answered);
	sem_wait(&second.answered);
	/* unless the thread was quick */
	if (!first.failed)
		assert_string_equal(first.text, "61be55a8e2");
}

#define READERS 8

static void *reader(void *arg)
{
	struct read *r = arg;

	for (size_t off = 0; off + 7 < sizeof(whole); off += 7) {
		ask(r, off, 7);
		sem_wait(&r->answered);
		if (r->failed || memcmp(r->text, whole + off, 7) != 0)
			return r;
	}
	return NULL;
}

TEST(test_many_readers, setup, teardown)
{
	static struct read r[READERS];
	pthread_t threads[READERS];
	void *wrong;

	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &r[i]), 0);
	for (size_t i = 0; i < READERS; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(reads[0] + reads[1] + reads[2] + reads[3], 3);
}
