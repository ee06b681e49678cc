/* SPDX-License-Identifier: MIT */
/*
 * A wrapper around bitcode:
 *
 *	0   u32   0x0b17c0de
 *	4   u32   version
 *	8   u32   offset of the bitcode
 *	12  u32   its size
 *	16  u32   processor
 */
#include "bitstream.h"
#include <inttypes.h>

#define WRAPPER_SIZE 20

static const uint8_t raw_magic[] = {'B', 'C', 0xc0, 0xde};
static const uint8_t wrapper_magic[] = {0xde, 0xc0, 0x17, 0x0b};

kpack_error_t kp_bitcode_unwrap(const struct kp_source *src, struct kp_source *out,
				uint64_t *end, struct kpackx_error *why)
{
	uint8_t b[WRAPPER_SIZE];
	uint64_t offset, size;

	*out = *src;
	*end = src->size;
	KP_TRY(kp_source_read(src, 0, b, sizeof(wrapper_magic), why));
	if (memcmp(b, wrapper_magic, sizeof(wrapper_magic)) != 0)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_read(src, 0, b, sizeof(b), why));
	offset = kp_le32(b + 8);
	size = kp_le32(b + 12);
	if (offset < sizeof(b) || !kp_source_sub(src, offset, size, out))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "wrapper of bitcode: %" PRIu64 " bytes at offset %" PRIu64
			       " are not between the wrapper and the end at %" PRIu64,
			       size, offset, src->size);
	*end = offset + size;
	return KPACK_SUCCESS;
}

void kp_bits_init(struct kp_bits *b, const struct kp_source *src, uint64_t pos,
		  struct kpackx_error *why)
{
	kp_window_init(&b->window, src);
	b->pos = pos;
	b->left = UINT64_MAX;
	b->over = false;
	b->err = KPACK_SUCCESS;
	b->why = why;
}

kpack_error_t kp_bits_open(struct kp_bits *b, const struct kp_source *src,
			   struct kpackx_error *why)
{
	uint8_t magic[sizeof(raw_magic)];
	struct kp_source code;
	uint64_t end;

	KP_TRY(kp_bitcode_unwrap(src, &code, &end, why));
	KP_TRY(kp_source_read(&code, 0, magic, sizeof(magic), why));
	if (memcmp(magic, raw_magic, sizeof(magic)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no bitcode");
	kp_bits_init(b, &code, 8 * sizeof(magic), why);
	return KPACK_SUCCESS;
}

/* Get the SIZE bytes at the reading position. */
static bool fetch_bytes(struct kp_bits *b, size_t size, const uint8_t **p)
{
	if (!kp_range_ok(b->window.src.size, b->pos / 8, size))
		return false;
	b->err = kp_window_get(&b->window, b->pos / 8, size, p, b->why);
	return b->err == KPACK_SUCCESS;
}

uint64_t kp_bits_take(struct kp_bits *b, unsigned n)
{
	unsigned skip = b->pos % 8;
	size_t size = (skip + n + 7) / 8;
	uint8_t bytes[9] = {0};
	const uint8_t *p;
	uint64_t value;

	if (n == 0)
		return 0;
	if (b->over || n > 64 || n > b->left || !fetch_bytes(b, size, &p)) {
		b->over = true;
		return 0;
	}
	memcpy(bytes, p, size);
	value = kp_le64(bytes) >> skip;
	if (skip)
		value |= (uint64_t)bytes[8] << (64 - skip);
	b->pos += n;
	b->left -= n;
	return n < 64 ? value & ((UINT64_C(1) << n) - 1) : value;
}

uint64_t kp_bits_vbr(struct kp_bits *b, unsigned n)
{
	uint64_t more = UINT64_C(1) << (n - 1), value = 0, piece;
	unsigned shift = 0;

	do {
		piece = kp_bits_take(b, n);
		if (shift < 64) {
			value |= (piece & (more - 1)) << shift;
			shift += n - 1;
		}
	} while (piece & more);
	return value;
}

void kp_bits_align(struct kp_bits *b)
{
	b->pos = (b->pos + 31) / 32 * 32;
	b->over |= b->pos / 8 > b->window.src.size;
}

struct kp_bits_block kp_bits_enter(struct kp_bits *b)
{
	struct kp_bits_block block;
	uint64_t words;

	block.number = kp_bits_vbr(b, 8);
	block.width = kp_bits_vbr(b, 4);
	kp_bits_align(b);
	words = kp_bits_take(b, 32);
	block.begin = b->pos;
	block.end = b->pos + 32 * words;
	return block;
}

bool kp_bits_holds(const struct kp_bits *b, const struct kp_bits_block *block)
{
	return !b->over && block->end / 8 <= b->window.src.size;
}

struct kp_bits_operand kp_bits_operand(struct kp_bits *b)
{
	struct kp_bits_operand o = {.encoding = KP_BITS_LITERAL};

	if (kp_bits_take(b, 1)) {
		o.value = kp_bits_vbr(b, 8);
		return o;
	}
	o.encoding = (uint8_t)kp_bits_take(b, 3);
	if (o.encoding == KP_BITS_FIXED || o.encoding == KP_BITS_VBR)
		o.value = kp_bits_vbr(b, 5);
	return o;
}

uint64_t kp_bits_blob(struct kp_bits *b)
{
	uint64_t size = kp_bits_vbr(b, 6);

	kp_bits_align(b);
	return size;
}
