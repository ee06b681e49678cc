/* SPDX-License-Identifier: MIT */
/*
 * A writer that begins with blocks of a shared archive: what is copied reads as it did there.
 * The input is
 *
 *   u8: bit 0: without the last block's last byte; bit 1: other objects follow;
 *   u8: the objects that are copied, a bit each for the first eight, and for all after these;
 *   the table of objects
 *
 * The frames are made here.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/scheme.h"
#include "core/writer/encode.h"
#include "core/archive/shared.h"
#include "core/writer/internal.h"
#include "core/writer/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 2, BLOCKS = 6, OBJECTS = 64, READ_MAX = 1 << 16 };

static struct {
	int fd;
	uint64_t size;
	uint8_t sizes[4 * BLOCKS + 4]; /* a shorter last block follows */
} file;

/* Frames of words that are in no order. */
static void make_file(void)
{
	static uint8_t block[KP_SHARE_BLOCK], frame[2 * KP_SHARE_BLOCK];
	struct kp_encoder *e;
	uint32_t seed = 1;
	size_t n;

	file.fd = memfd_create("blocks", MFD_CLOEXEC);
	assert(file.fd >= 0 && !kp_encoder_new(1, &e, NULL));
	for (uint32_t i = 0; i <= BLOCKS; i++) {
		size_t bytes = i < BLOCKS ? sizeof(block) : sizeof(block) - 1;

		for (size_t k = 0; k < sizeof(block); k++) {
			if (k % 64 == 0)
				seed = seed * 1664525 + 1013904223;
			block[k] = (uint8_t)(seed >> (k % 4 * 8));
		}
		assert(!kp_encode(e, (struct kp_span){block, bytes}, 0, frame,
				  sizeof(frame), &n, NULL));
		assert(write(file.fd, frame, n) == (ssize_t)n);
		kp_put_le32(file.sizes + 4 * i, (uint32_t)n);
		file.size += n;
	}
	kp_encoder_free(e);
}

/* The first and the last bytes of both objects are the same. */
static void compare(const struct kp_shared *a, uint32_t of_a, const struct kp_shared *b,
		    uint32_t of_b)
{
	static uint8_t x[READ_MAX], y[READ_MAX];
	uint64_t size = a->objects[of_a].size, n = size;

	assert(b->objects[of_b].size == size);
	if (n > READ_MAX)
		n = READ_MAX;
	for (int part = 0; part < 2 && n; part++) {
		uint64_t at = part ? size - n : 0;

		assert(!kp_shared_read(a, of_a, at, x, n, NULL));
		assert(!kp_shared_read(b, of_b, at, y, n, NULL));
		assert(memcmp(x, y, n) == 0);
	}
}

static void finish(struct kp_writer *w, const struct kp_shared *s, const uint32_t *list,
		   uint32_t n)
{
	struct kpack_archive *a;

	for (uint32_t i = 0; i < n; i++) {
		char key[] = {(char)('0' + i), 0};
		const struct kp_writer_entry e = {.type = kp_span_str("t"),
						  .ordinal = i,
						  .size = s->objects[list[i]].size};

		assert(!kp_writer_add_entry(w, kp_span_str(key), kp_span_str("a"), &e,
					    NULL));
	}
	assert(!kp_writer_finish(w, NULL));
	assert(!kp_writer_reopen(w, "x", &a, NULL));
	for (uint32_t i = 0; i < n; i++)
		compare(s, list[i], kp_archive_shared(a), i);
	kp_archive_close(a);
}

static void copy(const struct kp_shared *s, uint8_t which, bool others)
{
	const struct kp_writer_options options = {.scheme = KP_COMPRESSION_ZSTD_SHARED,
						  .group = "g",
						  .level = 1,
						  .unnamed = true};
	static uint8_t more[READ_MAX];
	uint32_t list[OBJECTS], n = 0, ordinal;
	struct kp_writer *w;
	bool done;

	for (uint32_t i = 0; i < s->n_objects && n < OBJECTS; i++)
		if (which >> (i < 8 ? i : 7) & 1)
			list[n++] = i;
	assert(!kp_writer_open("/tmp", "x", &options, &w, NULL));
	assert(!kp_writer_add_blocks(w, s, list, n, others, &done, NULL));
	if (done && others)
		assert(!kp_writer_add_stored(w, (struct kp_span){more, sizeof(more)},
					     &ordinal, NULL));
	if (done)
		finish(w, s, list, n);
	kp_writer_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kp_shared_layout l = {.block_size = KP_SHARE_BLOCK};
	uint32_t blocks;
	struct kp_shared *s;

	if (size < HEAD)
		return 0;
	if (!file.size)
		make_file();
	blocks = BLOCKS + (data[0] & 1);
	l.unique_size = BLOCKS * KP_SHARE_BLOCK + (data[0] & 1 ? KP_SHARE_BLOCK - 1 : 0);
	l.frames = (struct kp_span){file.sizes, 4 * (size_t)blocks};
	for (uint32_t i = 0; i < blocks; i++)
		l.size += kp_le32(file.sizes + 4 * (size_t)i);
	l.objects = (struct kp_span){data + HEAD, size - HEAD};
	if (kp_shared_open(file.fd, file.size, &l, &s, NULL))
		return 0;
	copy(s, data[1], data[0] & 2);
	kp_shared_close(s);
	return 0;
}
