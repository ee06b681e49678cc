/* SPDX-License-Identifier: MIT */
#include "frame_header.h"

static const uint32_t MAGIC = 0xfd2fb528, SKIPPABLE = 0x184d2a50;
enum { MAGIC_SIZE = 4, BLOCK_HEAD = 3, BLOCK_MAX = 128 << 10, CHECKSUM = 4 };

/* Descriptor: forms in bits 7-6 and 1-0, and these flags. */
enum { SINGLE_SEGMENT = 1 << 5, RESERVED = 1 << 3, HAS_CHECKSUM = 1 << 2 };

/* The binary logarithms of the smallest window, and of the largest that zstd decodes. */
enum { WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 31 };

enum { RLE = 1 };

static uint64_t read_field(const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

static bool read_skippable(struct kp_span head, struct kp_frame_header *h)
{
	*h = (struct kp_frame_header){.size = 8, .skippable = true};
	if (head.size < h->size)
		return false;
	h->skip = kp_le32(head.data + MAGIC_SIZE);
	return true;
}

bool kp_frame_header_read(struct kp_span head, struct kp_frame_header *h)
{
	static const uint8_t id_sizes[] = {0, 1, 2, 4}, content_sizes[] = {0, 2, 4, 8};
	unsigned descriptor, id_size, content_size;
	const uint8_t *p;
	bool single;

	if (head.size >= MAGIC_SIZE && (kp_le32(head.data) & ~15U) == SKIPPABLE)
		return read_skippable(head, h);
	if (head.size <= MAGIC_SIZE || kp_le32(head.data) != MAGIC)
		return false;
	descriptor = head.data[MAGIC_SIZE];
	single = descriptor & SINGLE_SEGMENT;
	id_size = id_sizes[descriptor & 3];
	content_size = content_sizes[descriptor >> 6];
	if (single && !content_size)
		content_size = 1;
	*h = (struct kp_frame_header){
		.size = (uint8_t)(MAGIC_SIZE + 1 + !single + id_size + content_size),
		.checksum = descriptor & HAS_CHECKSUM,
		.content = KP_FRAME_SIZE_UNKNOWN,
	};
	if (head.size < h->size || descriptor & RESERVED)
		return false;
	p = head.data + MAGIC_SIZE + 1;
	if (!single) {
		unsigned log = WINDOW_LOG_MIN + (*p >> 3);

		if (log > WINDOW_LOG_MAX)
			return false;
		h->window = (UINT64_C(1) << log) + (UINT64_C(1) << (log - 3)) * (*p & 7);
		p++;
	}
	h->dictionary = (uint32_t)read_field(p, id_size);
	p += id_size;
	if (content_size)
		h->content = read_field(p, content_size) + (content_size == 2 ? 256 : 0);
	if (single)
		h->window = h->content;
	return true;
}

/* The bytes at OFF that can be a header. */
static kpack_error_t get_head(struct kp_window *w, uint64_t off, struct kp_span *head,
			      struct kpackx_error *why)
{
	uint64_t left = off < w->src.size ? w->src.size - off : 0;

	head->size = left < KP_FRAME_HEADER_MAX ? (size_t)left : KP_FRAME_HEADER_MAX;
	return kp_window_get(w, off, head->size, &head->data, why);
}

kpack_error_t kp_frame_measure(struct kp_window *w, uint64_t off,
			       struct kp_frame_header *h, uint64_t *size,
			       struct kpackx_error *why)
{
	uint64_t at = off;
	struct kp_span head;
	const uint8_t *p;
	uint32_t block;

	KP_TRY(get_head(w, off, &head, why));
	if (!kp_frame_header_read(head, h))
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "the data is no zstd frame");
	at += h->size;
	if (h->skippable) {
		*size = h->size + h->skip;
		return KPACK_SUCCESS;
	}
	do {
		KP_TRY(kp_window_get(w, at, BLOCK_HEAD, &p, why));
		block = (uint32_t)read_field(p, BLOCK_HEAD);
		/* an RLE block has one byte, whatever its decoded size */
		at += BLOCK_HEAD + ((block >> 1 & 3) == RLE ? 1 : block >> 3);
	} while (!(block & 1));
	*size = at + (h->checksum ? CHECKSUM : 0) - off;
	return KPACK_SUCCESS;
}

uint64_t kp_frame_window_memory(const struct kp_frame_header *h)
{
	uint64_t room = h->window + 2 * (uint64_t)BLOCK_MAX;

	return h->content <= h->window || h->content < room ? h->content : room;
}
