/* SPDX-License-Identifier: MIT */
/* Objects of a shared archive with its blocks: random subsets, and others after them. */
#include "core/writer/writer.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/scheme.h"
#include "core/codec/codec.h"
#include "core/shared/shared.h"
#include "core/writer/share.h"

enum { OBJECTS = 16, PART = 150000, PARTS = 40, OBJECT_PARTS = 6 };

static struct kpackx_error why;
static uint64_t seed = 1;
static uint8_t *parts;
static struct {
	uint8_t *data;
	size_t size;
} objects[OBJECTS];

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

/* Objects of new bytes, of parts that others have, too, and one without a byte. */
static int make_objects(void **state)
{
	parts = malloc(PARTS * PART);
	for (size_t i = 0; i < PARTS * PART; i++)
		parts[i] = (uint8_t)number(50);
	for (size_t i = 0; i < OBJECTS; i++) {
		uint8_t *to = objects[i].data = malloc(2 * OBJECT_PARTS * PART);

		for (int k = 0; k < OBJECT_PARTS && i; k++) {
			size_t cut = number(20000);

			memcpy(to, parts + number(PARTS) * PART + cut, PART - cut);
			to += PART - cut;
			for (uint32_t n = number(60000); n; n--)
				*to++ = (uint8_t)number(40);
		}
		objects[i].size = (size_t)(to - objects[i].data);
	}
	return 0;
}

static int free_objects(void **state)
{
	for (size_t i = 0; i < OBJECTS; i++)
		free(objects[i].data);
	free(parts);
	return 0;
}

static struct kp_writer *open_writer(void)
{
	const struct kp_writer_options options = {
		.scheme = KP_COMPRESSION_ZSTD_SHARED,
		.group = "g",
		.level = 1,
		.jobs = 2,
		.unnamed = true,
	};
	struct kp_writer *w;

	must(kp_writer_open("/tmp", "x.kpack", &options, &w, &why));
	return w;
}

static void add(struct kp_writer *w, uint32_t object)
{
	uint32_t ordinal;

	must(kp_writer_add_stored(
		w, (struct kp_span){objects[object].data, objects[object].size}, &ordinal,
		&why));
}

/* Finish W, whose objects are those of LIST, and open it. */
static struct kpack_archive *finish(struct kp_writer *w, const uint32_t *list, uint32_t n)
{
	struct kpack_archive *a;
	uint8_t *back = malloc(2 * OBJECT_PARTS * PART);

	for (uint32_t i = 0; i < n; i++) {
		struct kp_writer_entry e = {.type = kp_span_str("t"),
					    .ordinal = i,
					    .size = objects[list[i]].size};
		char key[8];

		must(kp_writer_read_stored(w, i, back, &why));
		assert_memory_equal(back, objects[list[i]].data, e.size);
		snprintf(key, sizeof(key), "%03u", i % 1000);
		must(kp_writer_add_entry(w, kp_span_str(key), kp_span_str("a"), &e,
					 &why));
	}
	must(kp_writer_finish(w, &why));
	must(kp_writer_reopen(w, "x", &a, &why));
	kp_writer_close(w);
	assert_int_equal(kp_archive_entry_count(a), n);
	for (uint32_t i = 0; i < n; i++) {
		must(kp_archive_read(a, i, back, &why));
		assert_memory_equal(back, objects[list[i]].data, objects[list[i]].size);
	}
	free(back);
	return a;
}

static uint64_t frames_size(const struct kp_shared *s)
{
	struct kp_shared_frame first = kp_shared_frame(s, 0),
			       last = kp_shared_frame(
				       s, kp_shared_first_block(s) +
						  kp_shared_block_count(s) - 1);

	return last.offset + last.stored - first.offset;
}

/* The stored parts of all objects; there are no unused bytes besides the dictionary. */
static void check_parts(const struct kp_shared *s)
{
	uint64_t sum = 0, blocks = frames_size(s);

	if (kp_shared_first_block(s))
		blocks -= kp_shared_frame(s, 0).stored;
	for (uint32_t i = 0; i < kp_shared_count(s); i++) {
		sum += kp_shared_object_stored(s, i);
		assert_true(!kp_shared_object_size(s, i) ==
			    !kp_shared_extent_count(s, i));
	}
	/* each extent may lose a byte by rounding */
	assert_in_range(sum, blocks - 100 * kp_shared_count(s), blocks);
}

/* All objects but LEFT_OUT of them, from OLD; then as many of those as OTHERS. */
static bool copies(const struct kp_shared *old, uint32_t left_out, uint32_t others)
{
	uint32_t list[OBJECTS], n = OBJECTS - left_out;
	struct kp_writer *w = open_writer();
	struct kp_writer_blocks blocks;
	struct kpack_archive *a;
	const struct kp_shared *new;
	uint64_t size = 0;
	bool done;

	for (uint32_t i = 0; i < OBJECTS; i++)
		list[i] = i;
	for (uint32_t i = OBJECTS - 1; i; i--) {
		uint32_t k = number(i + 1), other = list[i];

		list[i] = list[k];
		list[k] = other;
	}
	for (uint32_t i = n; i < n + others; i++)
		size += objects[list[i]].size;
	must(kp_writer_add_blocks(w, old, list, n, size, &done, &why));
	blocks = kp_writer_blocks(w);
	assert_true(done == (blocks.copied != 0));
	for (uint32_t i = done ? n : 0; i < n + others; i++)
		add(w, list[i]);
	a = finish(w, list, n + others);
	new = kp_archive_shared(a);
	if (done) {
		assert_int_equal(kp_shared_dictionary_size(new),
				 kp_shared_dictionary_size(old));
		assert_true(blocks.copied * 4 >= kp_shared_block_count(new) * 3 - 4);
		check_parts(new);
		/* of what follows, the parts are found in the blocks that were copied */
		if (others && left_out == others)
			assert_true(kp_shared_unique_size(new) <
				    kp_shared_unique_size(old) + others * 200000);
	}
	kp_archive_close(a);
	return done;
}

TEST(subsets_come_back)
{
	uint32_t list[OBJECTS], few = 0, many = 0;
	struct kp_writer *w = open_writer();
	struct kpack_archive *old;

	for (uint32_t i = 0; i < OBJECTS; i++) {
		add(w, i);
		list[i] = i;
	}
	old = finish(w, list, OBJECTS);
	check_parts(kp_archive_shared(old));
	assert_true(copies(kp_archive_shared(old), 0, 0));
	for (uint32_t i = 0; i < 4; i++) {
		few += copies(kp_archive_shared(old), 1 + i % 2, i % 3 ? 1 : 0);
		many += copies(kp_archive_shared(old), OBJECTS - 3, i);
	}
	assert_in_range(few, 1, 4);
	assert_int_equal(many, 0);
	kp_archive_close(old);
}

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

enum { BLOCKS = 5 };

/* Of an archive with one object, all blocks but a byte: can the object be copied? */
static bool copies_with_dictionary(const uint8_t *dictionary, size_t size)
{
	static const uint8_t objects_table[] = {1, 0xfe, 0xff, 0xff, 4};
	uint8_t sizes[4 * BLOCKS + 4], *at = sizes;
	struct kp_shared_layout l = {
		.block_size = KP_SHARE_BLOCK,
		.unique_size = BLOCKS * KP_SHARE_BLOCK,
		.dictionary_size = size,
		.frames = {sizes, sizeof(sizes)},
		.objects = {objects_table, sizeof(objects_table)},
	};
	int fd = memfd_create("blocks", MFD_CLOEXEC);
	const uint32_t list[] = {0};
	struct kp_writer *w = open_writer();
	struct kp_encoder *e;
	struct kp_shared *s;
	bool done;

	must(kp_encoder_new(1, &e, &why));
	put_frame(fd, e, (struct kp_span){dictionary, size}, &l, &at);
	for (size_t i = 0; i < BLOCKS; i++)
		put_frame(fd, e,
			  (struct kp_span){parts + i * KP_SHARE_BLOCK, KP_SHARE_BLOCK},
			  &l, &at);
	must(kp_shared_open(fd, l.size, &l, &s, &why));
	assert_int_equal(kp_shared_object_size(s, 0), l.unique_size - 1);
	must(kp_writer_add_blocks(w, s, list, 1, 0, &done, &why));
	if (!done)
		add(w, 1);
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

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(copies_with_dictionary(cases[i].bytes, cases[i].size),
				 cases[i].copied);
}

SUITE(make_objects, free_objects);
