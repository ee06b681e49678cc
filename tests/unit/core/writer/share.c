/* SPDX-License-Identifier: MIT */
/* Shared archives: random objects that repeat each other, written and read again. */
#include "core/writer/writer.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/hash.h"
#include "core/base/scheme.h"
#include "core/writer/share.h"

enum { OBJECTS = 40, MOST = 700000 };

static struct kpackx_error why;
static uint64_t seed;

static uint32_t number(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % below;
}

static struct {
	uint8_t *data;
	size_t size;
} objects[OBJECTS];

/* Append N bytes: a part of an object before, or new ones, of few or many values. */
static void append_part(size_t i)
{
	size_t room = MOST - objects[i].size, n = 1 + number(1u << number(19));
	size_t from = number((uint32_t)i + 1), at;
	uint8_t *to = objects[i].data + objects[i].size;

	if (n > room)
		n = room;
	if (number(3) && objects[from].size) {
		at = number((uint32_t)objects[from].size);
		if (n > objects[from].size - at)
			n = objects[from].size - at;
		memmove(to, objects[from].data + at, n);
	} else {
		uint8_t mask = number(2) ? 0xff : 3;

		for (size_t k = 0; k < n; k++)
			to[k] = (uint8_t)(number(256) & mask);
	}
	objects[i].size += n;
}

static int make_objects(void **state)
{
	seed = 1;
	for (size_t i = 0; i < OBJECTS; i++) {
		objects[i].data = malloc(MOST);
		objects[i].size = 0;
		for (uint32_t parts = number(12); parts; parts--)
			append_part(i);
	}
	return 0;
}

static int free_objects(void **state)
{
	for (size_t i = 0; i < OBJECTS; i++)
		free(objects[i].data);
	return 0;
}

static void must(kpack_error_t err)
{
	if (err)
		fail_msg("%s", why.text);
}

static struct kp_writer *written(int level, unsigned jobs)
{
	const struct kp_writer_options options = {
		.scheme = KP_COMPRESSION_ZSTD_SHARED,
		.group = "g",
		.level = level,
		.jobs = jobs,
		.lazy = true,
		.unnamed = true,
	};
	struct kp_writer *w;
	char key[8];

	must(kp_writer_open("/tmp", "x.kpack", &options, &w, &why));
	for (uint32_t i = 0; i < OBJECTS; i++) {
		struct kp_writer_entry e = {.type = kp_span_str("t"),
					    .size = objects[i].size};
		uint8_t *back = malloc(MOST);

		must(kp_writer_add_stored(
			w, (struct kp_span){objects[i].data, objects[i].size}, &e.ordinal,
			&why));
		assert_int_equal(e.ordinal, i);
		must(kp_writer_read_stored(w, i, back, &why));
		assert_memory_equal(back, objects[i].data, objects[i].size);
		free(back);
		snprintf(key, sizeof(key), "%03u", i);
		must(kp_writer_add_entry(w, kp_span_str(key), kp_span_str("a"), &e,
					 &why));
	}
	must(kp_writer_finish(w, &why));
	return w;
}

static void check_archive(struct kp_writer *w)
{
	struct kpack_archive *a;
	uint8_t *buf = malloc(MOST);

	must(kp_writer_reopen(w, "x", &a, &why));
	assert_int_equal(kp_archive_entry_count(a), OBJECTS);
	for (size_t i = 0; i < OBJECTS; i++) {
		size_t n = objects[i].size, at = n ? number((uint32_t)n) : 0, got;

		must(kp_archive_read(a, i, buf, &why));
		assert_memory_equal(buf, objects[i].data, n);
		must(kp_archive_read_range(a, i, at, buf, n / 3, &got, &why));
		assert_memory_equal(buf, objects[i].data + at, got);
	}
	kp_archive_close(a);
	free(buf);
}

TEST(objects_come_back)
{
	struct kp_writer *w;

	for (int i = 0; i < 3; i++) {
		w = written(i == 2 ? 19 : 1 + i, 3);
		check_archive(w);
		kp_writer_close(w);
		free_objects(NULL);
		make_objects(NULL);
		for (size_t k = 0; k < OBJECTS / 2; k++)
			append_part(k + number(OBJECTS / 2));
	}
}

TEST(an_empty_archive)
{
	const struct kp_writer_options options = {.scheme = KP_COMPRESSION_ZSTD_SHARED,
						  .group = "g",
						  .level = 3,
						  .unnamed = true};
	struct kpack_archive *a;
	struct kp_writer *w;

	must(kp_writer_open("/tmp", "x.kpack", &options, &w, &why));
	must(kp_writer_finish(w, &why));
	must(kp_writer_reopen(w, "x", &a, &why));
	assert_int_equal(kp_archive_ordinal_count(a), 0);
	kp_archive_close(a);
	kp_writer_close(w);
}

/*
 * Add an object of 100 pieces of SIZE bytes, from places in the block FIRST of DATA, with
 * new bytes between them.  Returns how many bytes were stored for the pieces; a new byte may
 * be equal to the one beside a piece.
 */
static long added_by_pieces(struct kp_share *s, const uint8_t *data, size_t first,
			    size_t size)
{
	enum { PIECES = 100, NEW = 700 };
	uint8_t *object = malloc(PIECES * (NEW + size)), *to = object;
	uint64_t before = kp_share_unique_size(s);

	for (size_t i = 0; i < PIECES; i++) {
		for (size_t k = 0; k < NEW; k++)
			*to++ = (uint8_t)number(256);
		memcpy(to, data + first * KP_SHARE_BLOCK + 10000 * i, size);
		to += size;
	}
	must(kp_share_add(s, (struct kp_span){object, PIECES * (NEW + size)}, &why));
	free(object);
	return (long)(kp_share_unique_size(s) - before) - PIECES * NEW;
}

/*
 * A reader of all objects in order keeps the blocks that it used last.  Repeats that lead to
 * other blocks cost a decode, so short ones are stored once more.
 */
TEST(short_repeats_of_old_blocks_are_stored_again)
{
	enum { BLOCKS = 50 };
	size_t size = BLOCKS * KP_SHARE_BLOCK;
	uint8_t *data = malloc(size);
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kp_share *s;

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)number(256);
	must(kp_share_new(dir, &s, &why));
	must(kp_share_add(s, (struct kp_span){data, size}, &why));
	assert_int_equal(kp_share_unique_size(s), size);
	assert_true(added_by_pieces(s, data, BLOCKS - 2, 1600) < 80000);
	assert_in_range(added_by_pieces(s, data, 1, 3000), 299900, 300000);
	/* they are found where they were stored last */
	assert_true(added_by_pieces(s, data, 1, 3000) < 60000);
	assert_true(added_by_pieces(s, data, 2, 9000) < 90000);
	kp_share_free(s);
	close(dir);
	free(data);
}

SUITE(make_objects, free_objects);
