/* SPDX-License-Identifier: MIT */
/*
 * Which repeats are found, and which dictionaries copied.  What is written, and what is copied of
 * real archives, is read again in tests/golden/shared-blocks and by the properties.
 */
#include "core/writer/writer.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/archive/shared.h"
#include "core/writer/encode.h"
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "core/writer/internal.h"

static struct kpackx_error why;
static uint64_t seed = 1;

static uint32_t number(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % below;
}

static void must(kpack_error_t err)
{
	if (err)
		fail_msg("%s", why.text);
}

static struct kp_writer *open_writer(kpack_compression_t scheme)
{
	const struct kp_writer_options options = {
		.scheme = scheme, .group = "g", .level = 3, .unnamed = true};
	struct kp_writer *w;

	must(kp_writer_open("/tmp", "x.kpack", &options, &w, &why));
	return w;
}

/* Finish W, and read again that it has COUNT objects. */
static void has_objects(struct kp_writer *w, uint32_t count)
{
	struct kpack_archive *a;

	must(kp_writer_finish(w, &why));
	must(kp_writer_reopen(w, "x", &a, &why));
	assert_int_equal(kp_archive_ordinal_count(a), count);
	kp_archive_close(a);
	kp_writer_close(w);
}

TEST(archives_with_the_most_and_the_fewest_objects)
{
	struct kp_writer *w = open_writer(KPACK_COMPRESSION_ZSTD_PER_KERNEL);
	struct kp_span none = {(const uint8_t *)"", 0};
	uint32_t ordinal;

	for (uint32_t i = 0; i < KP_FRAMES_MAX; i++)
		must(kp_writer_add_stored(w, none, &ordinal, &why));
	assert_int_equal(kp_writer_add_stored(w, none, &ordinal, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	has_objects(w, KP_FRAMES_MAX);
	has_objects(open_writer(KP_COMPRESSION_ZSTD_SHARED), 0);
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
	uint64_t before = s->unique.size;

	for (size_t i = 0; i < PIECES; i++) {
		for (size_t k = 0; k < NEW; k++)
			*to++ = (uint8_t)number(256);
		memcpy(to, data + first * KP_SHARE_BLOCK + 10000 * i, size);
		to += size;
	}
	must(kp_share_add(s, (struct kp_span){object, PIECES * (NEW + size)}, &why));
	free(object);
	return (long)(s->unique.size - before) - PIECES * NEW;
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
	assert_int_equal(s->unique.size, size);
	assert_true(added_by_pieces(s, data, BLOCKS - 2, 1600) < 80000);
	assert_in_range(added_by_pieces(s, data, 1, 3000), 299900, 300000);
	/* they are found where they were stored last */
	assert_true(added_by_pieces(s, data, 1, 3000) < 60000);
	assert_true(added_by_pieces(s, data, 2, 9000) < 90000);
	kp_share_free(s);
	close(dir);
	free(data);
}

/* --- which dictionaries are copied --------------------------------------------------- */

enum { COPIED = 5 };

static uint8_t parts[COPIED * KP_SHARE_BLOCK];

/* Write DATA, compressed alone, to FD. */
static void put_frame(int fd, struct kp_encoder *e, struct kp_span data,
		      struct kp_shared_layout *l, uint8_t **sizes)
{
	static uint8_t frame[2 * KP_SHARE_BLOCK];
	size_t n;

	must(kp_encode(e, data, 0, frame, sizeof(frame), &n, &why));
	assert_int_equal(write(fd, frame, n), n);
	kp_put_le32(*sizes, (uint32_t)n);
	*sizes += 4;
	l->size += n;
}

/* Of an archive with one object, all blocks but a byte: can the object be copied? */
static bool copies_with_dictionary(const uint8_t *dictionary, size_t size)
{
	static const uint8_t objects_table[] = {1, 0xfe, 0xff, 0xff, 4};
	uint8_t sizes[4 * COPIED + 4], *at = sizes;
	struct kp_shared_layout l = {
		.block_size = KP_SHARE_BLOCK,
		.unique_size = COPIED * KP_SHARE_BLOCK,
		.dictionary_size = size,
		.frames = {sizes, sizeof(sizes)},
		.objects = {objects_table, sizeof(objects_table)},
	};
	int fd = memfd_create("blocks", MFD_CLOEXEC);
	const uint32_t list[] = {0};
	struct kp_writer *w = open_writer(KP_COMPRESSION_ZSTD_SHARED);
	struct kp_encoder *e;
	struct kp_shared *s;
	bool done;

	must(kp_encoder_new(1, &e, &why));
	put_frame(fd, e, (struct kp_span){dictionary, size}, &l, &at);
	for (size_t i = 0; i < COPIED; i++)
		put_frame(fd, e,
			  (struct kp_span){parts + i * KP_SHARE_BLOCK, KP_SHARE_BLOCK},
			  &l, &at);
	must(kp_shared_open(fd, l.size, &l, &s, &why));
	assert_int_equal(s->objects[0].size, l.unique_size - 1);
	must(kp_writer_add_blocks(w, s, list, 1, 0, &done, &why));
	must(kp_writer_finish(w, &why));
	kp_writer_close(w);
	kp_shared_close(s);
	kp_encoder_free(e);
	close(fd);
	return done;
}

/*
 * A new dictionary has a quarter of the unique bytes; more is copied where it takes little.
 * One that begins as a trained one would not be taken for content by zstd.
 */
TEST(dictionaries_are_copied_or_not)
{
	static uint8_t zeros[2 * KP_SHARE_BLOCK],
		trained[1000] = {0x37, 0xa4, 0x30, 0xec},
		nearly[1000] = {0x37, 0xa4, 0x30, 0xed};
	const struct {
		const uint8_t *bytes;
		size_t size;
		bool copied;
	} cases[] = {
		{parts, 1,
		 true}, /* shorter than the number that a trained one begins with */
		{parts, KP_SHARE_BLOCK * 5 / 4, true},
		{parts, KP_SHARE_BLOCK * 2, false},
		{zeros, KP_SHARE_BLOCK * 2, true},
		{trained, sizeof(trained), false},
		{trained, 4, false},
		{nearly, sizeof(nearly), true},
	};

	for (uint32_t i = 0, x = 1; i < sizeof(parts); i++, x = x * 1664525 + 1013904223)
		parts[i] = (uint8_t)((x >> 24) % 50);
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(copies_with_dictionary(cases[i].bytes, cases[i].size),
				 cases[i].copied);
}
