/* SPDX-License-Identifier: MIT */
/*
 * LLVM's bitstreams: behind "BC" C0 DE a file is blocks, a block is blocks, definitions and
 * records.  Each begins with an ID whose width the block around it states, 2 for the file:
 *
 *	0  the block's end, to the next word
 *	1  a block: number (VBR8), width of IDs (VBR4), to the next word; 32 bits: its words
 *	2  a definition: number of operands (VBR5), operands
 *	3  a record: code (VBR6), number of values (VBR6), values (VBR6)
 *	4  and above: a record that is written as a definition says
 *
 * In VBRn a number is in pieces of n bits, low ones first; the highest bit of a piece says
 * that another follows.
 */
#ifndef KP_CORE_FORMAT_LLVM_BITSTREAM_H
#define KP_CORE_FORMAT_LLVM_BITSTREAM_H

#include "core/base/file.h"

enum {
	KP_BITS_END,
	KP_BITS_ENTER,
	KP_BITS_DEFINITION,
	KP_BITS_RECORD,
	KP_BITS_DEFINED /* the first definition's */
};

/* How an operand is written. */
enum {
	KP_BITS_LITERAL,
	KP_BITS_FIXED,
	KP_BITS_VBR,
	KP_BITS_ARRAY, /* of the operand that follows */
	KP_BITS_CHAR6,
	KP_BITS_BLOB
};

/* Where one reads.  Once it is over, all that is taken is 0. */
struct kp_bits {
	struct kp_window window;
	uint64_t pos;      /* in bits; may be set */
	uint64_t left;     /* bits that may yet be read, whatever there is; may be set */
	bool over;         /* more was asked for than there is; may be set */
	kpack_error_t err; /* it is over because this happened as bytes were read */
	struct kpackx_error *why;
};

struct kp_bits_block {
	uint64_t number, width;
	uint64_t begin, end; /* of what is in it, in bits */
};

struct kp_bits_operand {
	uint8_t encoding;
	uint64_t value; /* the literal; a width */
};

/*
 * Where the bitcode is in SRC: all of it, or what a wrapper says.  END: behind it.
 * INVALID_FORMAT: the wrapper lies.
 */
kpack_error_t kp_bitcode_unwrap(const struct kp_source *src, struct kp_source *out,
				uint64_t *end, struct kpackx_error *why);

/* Read SRC from bit POS on; WHY (may be NULL) is kept for the errors of reading. */
void kp_bits_init(struct kp_bits *b, const struct kp_source *src, uint64_t pos,
		  struct kpackx_error *why);

/*
 * Read the bitcode in SRC, in a wrapper or not, from its first block on.
 * INVALID_FORMAT: it is none.
 */
kpack_error_t kp_bits_open(struct kp_bits *b, const struct kp_source *src,
			   struct kpackx_error *why);

/* The next N bits, at most 64. */
uint64_t kp_bits_take(struct kp_bits *b, unsigned n);

/* The next number in pieces of N bits, of 2 to 64; of what is above 64 bits nothing is kept. */
uint64_t kp_bits_vbr(struct kp_bits *b, unsigned n);

/* Go to the next word. */
void kp_bits_align(struct kp_bits *b);

/* Behind ENTER: go into the block.  Its width and its end are as stated: ask kp_bits_holds. */
struct kp_bits_block kp_bits_enter(struct kp_bits *b);

/* Is all of the block there? */
bool kp_bits_holds(const struct kp_bits *b, const struct kp_bits_block *block);

/* The next operand of a definition, as stated: nothing says that there is such an encoding. */
struct kp_bits_operand kp_bits_operand(struct kp_bits *b);

/* Behind the code of a record: go to its blob, and give the bytes that it states. */
uint64_t kp_bits_blob(struct kp_bits *b);

#endif
