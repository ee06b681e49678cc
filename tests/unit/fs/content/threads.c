/* SPDX-License-Identifier: MIT */
/* The content cache with the threads that a mount has: readers of the same few entries. */
#define FAKE_ONLY_ARCHIVES
#include "fake.h"
#include <pthread.h>
#include <semaphore.h>

enum { READERS = 6, FILES = 6, LEN = 96 * KIB };

struct read {
	uint32_t file;
	uint64_t off;
	size_t got;
	bool right;
	sem_t answered;
};

static struct content *content;
static atomic_uint wrong, failures;

static void answer(void *token, const void *data, size_t size,
		   const struct kpackx_error *why)
{
	struct read *r = token;

	r->got = size;
	r->right = !why && is_right(r->file, data, r->off, size);
	sem_post(&r->answered);
}

static void failure(void *user, struct origin_entry what, const struct kpackx_error *why)
{
	(void)user, (void)what, (void)why;
	failures++;
}

/* Read all of FILE; each read waits until it has its answer. */
static void read_file(uint32_t file)
{
	uint64_t size = files[file].size;
	struct read r = {.file = file};

	sem_init(&r.answered, 0, 0);
	for (; r.off < size; r.off += LEN) {
		content_read(content, entry(file), r.off, LEN, &r);
		sem_wait(&r.answered);
		wrong += !r.right || r.got != (size - r.off < LEN ? size - r.off : LEN);
	}
	sem_destroy(&r.answered);
}

/* Half of the readers go the other way round; one of them takes memory away meanwhile. */
static void *read_files(void *arg)
{
	unsigned k = (unsigned)(uintptr_t)arg;

	for (uint32_t i = 0; i < 2 * FILES; i++) {
		read_file((k % 2 ? i : 2 * FILES - 1 - i) % FILES);
		if (k == 0)
			content_shrink(content, i % 2 ? 100 : 50);
		if (k == 1)
			content_forget(content, &origins[0]);
	}
	return NULL;
}

TEST(readers_of_the_same_entries)
{
	struct content_options options = {.budget = 4 * MIB,
					  .executor = executor_threads(3),
					  .answer = answer,
					  .failure = failure};
	pthread_t threads[READERS];

	reset_files();
	files[0].size = 1;
	files[1].size = 200 * KIB;
	files[2].size = 3 * MIB + 1;
	files[3].size = 2 * MIB + 9;
	files[3].chunk = 128 * KIB;
	files[4].size = 4 * MIB + 9;
	files[4].chunk = 512 * KIB;
	files[5].size = 6 * MIB;
	for (uint32_t i = 0; i < FILES; i++)
		files[i].window =
			MIB; /* each can have a pass while there is little memory */
	assert_int_equal(content_new(&options, &content, NULL), KPACK_SUCCESS);
	for (uintptr_t k = 0; k < READERS; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, read_files, (void *)k),
				 0);
	for (size_t k = 0; k < READERS; k++)
		pthread_join(threads[k], NULL);
	content_free(content);
	assert_int_equal(wrong + failures, 0);
	assert_int_equal(origins[0].refs, 1);
	assert_int_equal(open_decoders + open_passes + open_tables, 0);
}

/* What is queued when the threads end is answered, or decoded before. */
TEST(an_end_while_reads_wait)
{
	static struct read reads[64];
	struct content_options options = {.budget = MIB,
					  .executor = executor_threads(2),
					  .answer = answer,
					  .failure = failure};

	for (uint32_t i = 0; i < 64; i++) {
		files[i].size = MIB;
		reads[i].file = i;
		sem_init(&reads[i].answered, 0, 0);
	}
	assert_int_equal(content_new(&options, &content, NULL), KPACK_SUCCESS);
	for (uint32_t i = 0; i < 64; i++)
		content_read(content, entry(i), 0, LEN, &reads[i]);
	content_free(content);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(sem_trywait(&reads[i].answered), 0);
		sem_destroy(&reads[i].answered);
	}
	assert_int_equal(origins[0].refs, 1);
}
