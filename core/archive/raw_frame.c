/* SPDX-License-Identifier: MIT */
#include "raw_frame.h"
#include <xxhash.h>

static const uint32_t MAGIC = 0xfd2fb528;
enum { BLOCK = 128 << 10, MAGIC_SIZE = 4, BLOCK_HEAD = 3, CHECKSUM = 4 };

/* Descriptor: the form of the size in bits 6 and 7, and these flags. */
enum { SINGLE_SEGMENT = 1 << 5, HAS_CHECKSUM = 1 << 2 };

/* A window of 128 KiB: decoders refuse windows of a large file's size. */
static const uint8_t WINDOW = 7 << 3;

/*
 * How the decoded size is written.  Up to the size of a block the frame is a single
 * segment, without a window; only single segments have the one-byte form.
 */
static const struct form {
	uint64_t max;      /* largest size */
	uint8_t flag;      /* in the descriptor */
	uint8_t bytes;     /* of the field */
	uint16_t subtract; /* from the size */
	bool single;
} forms[] = {
	{255, 0, 1, 0, true},         {65535 + 256, 1, 2, 256, true},
	{BLOCK, 2, 4, 0, true},       {UINT32_MAX, 2, 4, 0, false},
	{UINT64_MAX, 3, 8, 0, false},
};

static const struct form *form_of(uint64_t size)
{
	const struct form *f = forms;

	while (size > f->max)
		f++;
	return f;
}

/* Even an empty frame has a block: the last one. */
static size_t block_count(size_t size)
{
	return size ? (size - 1) / BLOCK + 1 : 1;
}

size_t kp_raw_frame_size(size_t size)
{
	const struct form *f = form_of(size);

	return MAGIC_SIZE + 1 + !f->single + f->bytes + BLOCK_HEAD * block_count(size) +
	       size + CHECKSUM;
}

static uint8_t *put_head(uint64_t size, uint8_t *out)
{
	const struct form *f = form_of(size);
	uint8_t field[8];

	kp_put_le32(out, MAGIC);
	out += MAGIC_SIZE;
	*out++ =
		(uint8_t)(f->flag << 6 | (f->single ? SINGLE_SEGMENT : 0) | HAS_CHECKSUM);
	if (!f->single)
		*out++ = WINDOW;
	kp_put_le64(field, size - f->subtract);
	memcpy(out, field, f->bytes);
	return out + f->bytes;
}

static uint8_t *put_block(struct kp_span block, bool last, uint8_t *out)
{
	uint32_t head = (uint32_t)block.size << 3 | last;

	for (int i = 0; i < BLOCK_HEAD; i++)
		*out++ = (uint8_t)(head >> (8 * i));
	if (block.size)
		memcpy(out, block.data, block.size);
	return out + block.size;
}

void kp_raw_frame_write(struct kp_span data, uint8_t *out)
{
	struct kp_span rest = data;

	out = put_head(data.size, out);
	for (; rest.size > BLOCK; rest.data += BLOCK, rest.size -= BLOCK)
		out = put_block((struct kp_span){rest.data, BLOCK}, false, out);
	out = put_block(rest, true, out);
	kp_put_le32(out, (uint32_t)XXH64(data.data, data.size, 0));
}
