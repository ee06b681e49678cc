/* SPDX-License-Identifier: MIT */
/*
 * The target triple in LLVM bitcode: record 2 of block 8, the module, with one character
 * per value.  Compilers write it without a definition, before records that use
 * definitions.
 */
#include "bitcode_triple.h"
#include "bitstream.h"

enum { BLOCK_MODULE = 8 };
enum { RECORD_TRIPLE = 2 };

/*
 * Limit of the bits before the triple: a file with a million functions has some 100 KB.
 */
#define BITS_MAX (UINT64_C(8) << 20)

static void skip_definition(struct kp_bits *b)
{
	uint64_t n = kp_bits_vbr(b, 5);

	for (uint64_t i = 0; i < n && !b->over; i++)
		kp_bits_operand(b);
}

/* Read a record; true: it is the triple, in OUT up to its maximum length. */
static bool take_record(struct kp_bits *b, char out[KP_TRIPLE_MAX])
{
	uint64_t code = kp_bits_vbr(b, 6), n = kp_bits_vbr(b, 6), value;
	size_t size = 0;

	for (uint64_t i = 0; i < n && !b->over; i++) {
		value = kp_bits_vbr(b, 6);
		if (size < KP_TRIPLE_MAX - 1)
			out[size++] = value > 0x20 && value < 0x7f ? (char)value : '?';
	}
	out[size] = '\0';
	return code == RECORD_TRIPLE && !b->over;
}

static bool find_in_module(struct kp_bits *b, uint64_t width, char out[KP_TRIPLE_MAX])
{
	while (!b->over && width > 1 && width <= 32) {
		switch (kp_bits_take(b, (unsigned)width)) {
		case KP_BITS_ENTER:
			b->pos = kp_bits_enter(b).end;
			break;
		case KP_BITS_DEFINITION:
			skip_definition(b);
			break;
		case KP_BITS_RECORD:
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
	struct kp_bits_block block;
	struct kp_bits b;

	kp_bits_init(&b, src, 32, NULL);
	b.left = BITS_MAX;
	while (kp_bits_take(&b, 2) == KP_BITS_ENTER) {
		block = kp_bits_enter(&b);
		if (block.number == BLOCK_MODULE)
			return find_in_module(&b, block.width, out);
		b.pos = block.end;
	}
	return false;
}
