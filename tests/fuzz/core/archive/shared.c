/* SPDX-License-Identifier: MIT */
/*
 * The tables of a shared archive: what is taken reads the same in every way, and no span
 * reaches more blocks than the format allows.  The input is
 *
 *   u8 odd: blocks of 64 KiB, else the logarithm of their size; u16 blocks, u16 unused,
 *   u8 odd: with a dictionary;
 *   the table of objects
 *
 * The frames are made here, of bytes that the position decides.
 */
#include "core/archive/shared.h"
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/writer/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 6, BLOCKS = 80, READ_MAX = 1 << 18 };

static uint8_t byte_at(uint64_t pos)
{
	return (uint8_t)(pos * 31 + (pos >> 8) * 7 + (pos >> 16));
}

/* A file of BLOCKS + 1 frames of 64 KiB, which raw frames need no dictionary for. */
static int make_file(uint8_t *sizes, uint64_t *size)
{
	static uint8_t block[KP_SHARED_BLOCK_MIN], frame[2 * KP_SHARED_BLOCK_MIN];
	int fd = memfd_create("shared", MFD_CLOEXEC);
	size_t n = kp_raw_frame_size(sizeof(block));

	assert(fd >= 0);
	*size = 0;
	for (uint32_t i = 0; i <= BLOCKS; i++) {
		for (size_t k = 0; k < sizeof(block); k++)
			block[k] = byte_at(((uint64_t)i - 1) * sizeof(block) + k);
		kp_raw_frame_write((struct kp_span){block, sizeof(block)}, frame);
		assert(write(fd, frame, n) == (ssize_t)n);
		kp_put_le32(sizes + 4 * i, (uint32_t)n);
		*size += n;
	}
	return fd;
}

static uint8_t want_at(const struct kp_shared *s, uint32_t object, uint64_t at)
{
	const struct kp_shared_object *o = &s->objects[object];
	size_t i = o->first;

	while (i + 1 < o[1].first && s->extents[i + 1].at <= at)
		i++;
	return byte_at(s->extents[i].pos + (at - s->extents[i].at));
}

static void use_object(const struct kp_shared *s, uint32_t object)
{
	static uint8_t buf[READ_MAX];
	uint64_t size = s->objects[object].size, n;

	n = size < READ_MAX ? size : READ_MAX;
	if (!n)
		return;
	for (int part = 0; part < 3; part++) {
		uint64_t at = (size - n) / 2 * (uint64_t)part;

		/* frames of other blocks than ours do not decode to their size */
		if (kp_shared_read(s, object, at, buf, n, NULL)) {
			assert(s->block_size != KP_SHARED_BLOCK_MIN);
			return;
		}
		for (uint64_t k = 0; k < n; k += 1 + n / 61)
			assert(buf[k] == want_at(s, object, at + k));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t sizes[4 * (BLOCKS + 1)];
	static uint64_t file_size;
	static int fd = -1;
	struct kp_shared_layout l = {0};
	struct kp_shared *s;
	uint32_t blocks;

	if (size < HEAD)
		return 0;
	if (fd < 0)
		fd = make_file(sizes, &file_size);
	blocks = kp_le16(data + 1) % (BLOCKS + 1);
	l.block_size = data[0] & 1 ? KP_SHARED_BLOCK_MIN : UINT64_C(1) << (data[0] & 63);
	l.unique_size = blocks * l.block_size;
	l.dictionary_size = data[5] & 1 ? KP_SHARED_BLOCK_MIN : 0;
	l.offset = l.dictionary_size ? 0 : kp_le32(sizes);
	l.frames = (struct kp_span){sizes, 4 * (blocks + (l.dictionary_size != 0))};
	l.size = l.frames.size / 4 * kp_le32(sizes);
	l.objects = (struct kp_span){data + HEAD, size - HEAD};
	if (kp_shared_open(fd, file_size, &l, &s, NULL))
		return 0;
	for (uint32_t i = 0; i < s->n_objects && i < 8; i++)
		use_object(s, i);
	kp_shared_close(s);
	return 0;
}
