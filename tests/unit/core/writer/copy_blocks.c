/* SPDX-License-Identifier: MIT */
/*
 * Which dictionaries are copied.  What is copied of real archives, and what comes back, is in
 * tests/golden/shared-blocks and the property "merge".
 */
#include "core/writer/writer.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/scheme.h"
#include "core/writer/encode.h"
#include "core/archive/shared.h"
#include "core/writer/internal.h"

enum { BLOCKS = 5 };

static struct kpackx_error why;
static uint8_t parts[BLOCKS * KP_SHARE_BLOCK];

static void must(kpack_error_t err)
{
	if (err)
		fail_msg("%s", why.text);
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
