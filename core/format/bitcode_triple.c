/* SPDX-License-Identifier: MIT */
/*
 * The target triple in LLVM bitcode: behind the magic a file is blocks, a block is blocks,
 * definitions and records.  Each begins with a number whose width the block states:
 *
 *	0  the block's end
 *	1  a block: number (VBR8), width (VBR4), to the next word; 32 bits: its words
 *	2  a definition of how later records are written
 *	3  a record: code (VBR6), number of values (VBR6), values (VBR6)
 *
 * In VBRn a number is in pieces of n bits, low ones first; the highest bit of a piece says
 * that another follows.  Block 8 is the module, and in it record 2 the triple, a character
 * a value; compilers write it plainly, before records of other widths.
 */
#include "bitcode_triple.h"

enum { END_BLOCK, ENTER_BLOCK, DEFINITION, RECORD };
enum { BLOCK_MODULE = 8 };
enum { RECORD_TRIPLE = 2 };

/* Operands of definitions whose encoding has a value: fixed width, and VBR. */
enum { ENCODING_FIXED = 1, ENCODING_VBR = 2 };

/* What stands before the triple: a file of a million functions has some 100 KB. */
#define BITS_MAX (UINT64_C(8) << 20)

struct bits {
	struct kp_window window;
	uint64_t pos, read;
	bool over; /* more was asked for than there is */
};

static uint64_t take(struct bits *b, unsigned n)
{
	uint64_t at = b->pos / 8, left, value;
	uint8_t bytes[8] = {0};
	const uint8_t *p;
	size_t size;

	left = at < b->window.src.size ? b->window.src.size - at : 0;
	size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
	b->read += n;
	b->over |= b->read > BITS_MAX || b->pos % 8 + n > 8 * size;
	if (b->over || kp_window_get(&b->window, at, size, &p, NULL)) {
		b->over = true;
		return 0;
	}
	memcpy(bytes, p, size);
	value = kp_le64(bytes) >> b->pos % 8;
	b->pos += n;
	return value & ((UINT64_C(1) << n) - 1);
}

/* Numbers of more than 32 bits are none of ours. */
static uint64_t take_vbr(struct bits *b, unsigned n)
{
	uint64_t more = UINT64_C(1) << (n - 1), value = 0, piece;
	unsigned shift = 0;

	do {
		piece = take(b, n);
		if (shift < 64)
			value |= (piece & (more - 1)) << shift;
		shift += n - 1;
	} while (piece & more && !b->over);
	return value;
}

/* The header of a block: its number, width, and where its end is. */
static uint64_t enter(struct bits *b, unsigned *width, uint64_t *end)
{
	uint64_t number = take_vbr(b, 8), words;

	*width = (unsigned)take_vbr(b, 4);
	b->pos = (b->pos + 31) / 32 * 32;
	words = take(b, 32);
	*end = b->pos + 32 * words;
	return number;
}

static void skip_definition(struct bits *b)
{
	uint64_t n = take_vbr(b, 5), encoding;

	for (uint64_t i = 0; i < n && !b->over; i++) {
		if (take(b, 1)) {
			take_vbr(b, 8); /* a literal */
			continue;
		}
		encoding = take(b, 3);
		if (encoding == ENCODING_FIXED || encoding == ENCODING_VBR)
			take_vbr(b, 5);
	}
}

/* A record; true: it was the triple, or the beginning of one that is too long. */
static bool take_record(struct bits *b, char out[KP_TRIPLE_MAX])
{
	uint64_t code = take_vbr(b, 6), n = take_vbr(b, 6), value;
	size_t size = 0;

	for (uint64_t i = 0; i < n && !b->over; i++) {
		value = take_vbr(b, 6);
		if (size < KP_TRIPLE_MAX - 1)
			out[size++] = value > 0x20 && value < 0x7f ? (char)value : '?';
	}
	out[size] = '\0';
	return code == RECORD_TRIPLE && !b->over;
}

static bool find_in_module(struct bits *b, unsigned width, char out[KP_TRIPLE_MAX])
{
	unsigned inner;
	uint64_t end;

	while (!b->over && width > 1 && width <= 32) {
		switch (take(b, width)) {
		case ENTER_BLOCK:
			enter(b, &inner, &end);
			b->pos = end;
			break;
		case DEFINITION:
			skip_definition(b);
			break;
		case RECORD:
			if (take_record(b, out))
				return true;
			break;
		default:
			return false;
		}
	}
	return false;
}

bool kp_bitcode_triple(const struct kp_source *src, char out[KP_TRIPLE_MAX])
{
	struct bits b = {.pos = 32};
	unsigned width;
	uint64_t end;

	kp_window_init(&b.window, src);
	while (take(&b, 2) == ENTER_BLOCK && !b.over) {
		if (enter(&b, &width, &end) == BLOCK_MODULE)
			return find_in_module(&b, width, out);
		b.pos = end;
	}
	return false;
}
