/* SPDX-License-Identifier: MIT */
/* The tables of a shared archive, made by hand, and what they give. */
#include "core/archive/shared.h"
#include "core/base/errors.h"
#include <pthread.h>
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

enum { BLOCK = 64 << 10, BLOCKS = 70, UNIQUE = BLOCKS * BLOCK - 777 };

static struct kpackx_error why;
static uint8_t unique[UNIQUE], dictionary[5000];
static uint8_t frames[4 * (BLOCKS + 1)];
static int fd;
static uint64_t file_size;

struct table {
	uint8_t bytes[1 << 17];
	size_t size;
};

static void put_number(struct table *t, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		t->bytes[t->size++] = (uint8_t)(n | 0x80);
	t->bytes[t->size++] = (uint8_t)n;
}

/* An extent that is elsewhere, if the last such one ended at LAST. */
static void put_elsewhere(struct table *t, uint64_t size, uint64_t pos, uint64_t last)
{
	put_number(t, size << 1 | 1);
	put_number(t, pos >= last ? (pos - last) << 1 : ((last - pos - 1) << 1) | 1);
}

static void put_frame(uint32_t number, const uint8_t *data, size_t size, bool plain)
{
	static uint8_t frame[2 * BLOCK];
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t n;

	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	if (!plain)
		ZSTD_CCtx_refPrefix(z, dictionary, sizeof(dictionary));
	n = ZSTD_compress2(z, frame, sizeof(frame), data, size);
	assert_false(ZSTD_isError(n));
	assert_int_equal(write(fd, frame, n), n);
	for (int i = 0; i < 4; i++)
		frames[4 * number + i] = (uint8_t)(n >> 8 * i);
	file_size += n;
	ZSTD_freeCCtx(z);
}

static int make_frames(void **state)
{
	uint32_t x = 1;

	for (size_t i = 0; i < UNIQUE; i++) {
		x = x * 1103515245 + 12345;
		unique[i] = (uint8_t)(x >> 16 & 15);
	}
	memcpy(dictionary, unique + 1234, sizeof(dictionary));
	fd = memfd_create("shared", MFD_CLOEXEC);
	assert_true(fd >= 0);
	put_frame(0, dictionary, sizeof(dictionary), true);
	for (uint32_t i = 0; i < BLOCKS; i++)
		put_frame(i + 1, unique + i * BLOCK,
			  i + 1 < BLOCKS ? BLOCK : UNIQUE % BLOCK, false);
	return 0;
}

static struct kp_shared_layout layout_of(const struct table *t)
{
	return (struct kp_shared_layout){
		.size = file_size,
		.block_size = BLOCK,
		.unique_size = UNIQUE,
		.dictionary_size = sizeof(dictionary),
		.frames = {frames, sizeof(frames)},
		.objects = {t->bytes, t->size},
	};
}

static kpack_error_t open_table(const struct table *t, struct kp_shared **out)
{
	struct kp_shared_layout l = layout_of(t);

	*out = NULL;
	return kp_shared_open(fd, file_size, &l, out, &why);
}

static void opens(const struct table *t, struct kp_shared **out)
{
	if (open_table(t, out))
		fail_msg("%s", why.text);
}

static void refuses(const struct table *t, const char *text)
{
	struct kp_shared *s;

	assert_int_equal(open_table(t, &s), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, text);
	assert_null(s);
}

TEST(objects_are_their_extents)
{
	static uint8_t want[400000], got[400000];
	struct table t = {0};
	struct kp_shared *s;

	put_number(&t, 3); /* new, elsewhere, new */
	put_number(&t, 200000 << 1);
	put_elsewhere(&t, 70000, 4000000, 0);
	put_number(&t, 5 << 1);
	put_number(&t, 0); /* empty */
	put_number(&t, 2); /* both elsewhere, the second before the end of the first */
	put_elsewhere(&t, 10, 300000, 4070000);
	put_elsewhere(&t, 1, 299999, 300010);
	opens(&t, &s);
	assert_int_equal(s->n_objects, 3);
	assert_int_equal(s->objects[0].size, 270005);
	assert_int_equal(s->objects[1].size, 0);
	assert_int_equal(s->objects[2].size, 11);
	/* bytes that no extent of the first kind has are of the object that has them first */
	assert_in_range(s->objects[2].stored, 1, 11);
	memcpy(want, unique, 200000);
	memcpy(want + 200000, unique + 4000000, 70000);
	memcpy(want + 270000, unique + 200000, 5);
	for (uint64_t at = 0; at < 270005; at += 9001) {
		uint64_t sizes[] = {1, 100000, 270005};

		for (int i = 0; i < 3; i++) {
			uint64_t n = sizes[i] < 270005 - at ? sizes[i] : 270005 - at;

			assert_int_equal(kp_shared_read(s, 0, at, got, n, &why), 0);
			assert_memory_equal(got, want + at, n);
		}
	}
	assert_int_equal(kp_shared_read(s, 2, 0, got, 11, &why), 0);
	assert_memory_equal(got, unique + 300000, 10);
	assert_int_equal(got[10], unique[299999]);
	kp_shared_close(s);
	assert_int_equal(kp_pool_held(), 0);
}

/* An object of COUNT bytes, each in another block; or one of all extents in one block. */
static void put_scattered(struct table *t, uint32_t count, bool spread)
{
	uint64_t last = 0;

	t->size = 0;
	put_number(t, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t pos = spread ? (uint64_t)i * BLOCK : i % 2 * 10;

		put_elsewhere(t, 1, pos, last);
		last = pos + 1;
	}
}

TEST(a_span_reaches_a_bounded_number_of_blocks)
{
	static struct table t;
	struct kp_shared *s;
	uint8_t got[KP_SHARED_SPAN_BLOCKS];

	put_scattered(&t, KP_SHARED_SPAN_BLOCKS, true);
	opens(&t, &s);
	assert_int_equal(kp_shared_read(s, 0, 0, got, sizeof(got), &why), 0);
	for (int i = 0; i < KP_SHARED_SPAN_BLOCKS; i++)
		assert_int_equal(got[i], unique[i * BLOCK]);
	kp_shared_close(s);
	put_scattered(&t, KP_SHARED_SPAN_BLOCKS + 1, true);
	refuses(&t, "more than 16 blocks");
	put_scattered(&t, 4096, false);
	opens(&t, &s);
	kp_shared_close(s);
	put_scattered(&t, 4097, false);
	refuses(&t, "more than 4096 extents");
	/* the next span counts anew */
	t.size = 0;
	put_number(&t, KP_SHARED_SPAN_BLOCKS + 1);
	for (uint64_t i = 0, last = 0; i <= KP_SHARED_SPAN_BLOCKS; i++) {
		uint64_t n = i == KP_SHARED_SPAN_BLOCKS / 2 ? BLOCK : 1;

		put_elsewhere(&t, n, i * BLOCK, last);
		last = i * BLOCK + n;
	}
	opens(&t, &s);
	kp_shared_close(s);
}

/* The limit may sink below what a span already reaches. */
TEST(a_lower_limit_of_blocks_holds_at_once)
{
	struct kp_reach r;

	kp_reach_begin(&r, BLOCK, KP_SHARED_SPAN_BLOCKS);
	for (uint64_t i = 0; i < KP_SHARED_SPAN_BLOCKS; i++)
		assert_true(kp_reach_add(&r, i, i * BLOCK, 1));
	r.most = KP_SHARED_SPAN_BLOCKS - 2;
	assert_true(kp_reach_add(&r, 100, 5 * BLOCK, 1));
	assert_false(kp_reach_add(&r, 101, KP_SHARED_SPAN_BLOCKS * BLOCK, 1));
}

/* --- the pool ------------------------------------------------------------------------- */

static void *read_all(void *arg)
{
	static const size_t n = 3000000;
	uint8_t *buf = malloc(n);
	struct kpackx_error mine = {0};

	for (int i = 0; i < 3; i++)
		if (kp_shared_read(arg, 0, 0, buf, n, &mine) || memcmp(buf, unique, n))
			abort();
	free(buf);
	return NULL;
}

TEST(threads_read_with_a_small_pool)
{
	struct table t = {0};
	struct kp_shared *s;
	pthread_t threads[4];

	put_number(&t, 1);
	put_number(&t, (uint64_t)UNIQUE << 1);
	opens(&t, &s);
	kp_pool_limit(3 * BLOCK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_all, s), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(kp_pool_held() <= 3 * BLOCK);
	kp_pool_limit(0);
	assert_int_equal(kp_pool_held(), 0);
	kp_pool_limit(KP_POOL_BYTES);
	kp_shared_close(s);
}

/* Overwrite the last byte of the dictionary's frame, a part of its checksum. */
static void flip_dictionary(void)
{
	off_t last = (frames[0] | frames[1] << 8) - 1;
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, last), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, last), 1);
}

/* A dictionary that is decoded again is found to be damaged. */
TEST(the_dictionary_stays_in_a_small_pool)
{
	static const uint64_t limits[] = {1, 2 * sizeof(dictionary), BLOCK, 3 * BLOCK};
	static uint8_t got[3 * BLOCK];
	struct table t = {0};
	struct kp_shared *s;

	put_number(&t, 1);
	put_number(&t, (uint64_t)UNIQUE << 1);
	opens(&t, &s);
	for (size_t i = 0; i < COUNT(limits); i++) {
		kp_pool_limit(limits[i]);
		assert_int_equal(kp_shared_read(s, 0, 0, got, 1, &why), 0);
		flip_dictionary();
		for (uint64_t at = BLOCK; at < 15 * BLOCK; at += 7 * BLOCK) {
			assert_int_equal(kp_shared_read(s, 0, at, got, sizeof(got), &why),
					 0);
			assert_memory_equal(got, unique + at, sizeof(got));
			assert_true(kp_pool_held() <= limits[i] + sizeof(dictionary));
		}
		/* with less memory it goes */
		kp_pool_limit(0);
		assert_int_equal(kp_pool_held(), 0);
		assert_int_equal(kp_shared_read(s, 0, 0, got, 1, &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		flip_dictionary();
	}
	kp_pool_limit(KP_POOL_BYTES);
	kp_shared_close(s);
	assert_int_equal(kp_pool_held(), 0);
}

SUITE(make_frames, NULL);
