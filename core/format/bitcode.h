/* SPDX-License-Identifier: MIT */
/*
 * LLVM's bitcode: bitstreams, and what is read from the modules in them.  After "BC" C0 DE a file consists of blocks; a block consists of
 * blocks, definitions (LLVM: of abbreviations) and records.  Each begins with an ID,
 * whose width in bits the enclosing block states; the width is 2 outside of all blocks:
 *
 *	0  the block's end, padded to a word
 *	1  a block: number (VBR8), width of IDs (VBR4), padding to a word, u32 words
 *	2  a definition: number of operands (VBR5), operands
 *	3  a record: code (VBR6), number of values (VBR6), values (VBR6)
 *	4  and above: a record written according to a definition
 *
 * A word has 32 bits.  VBRn splits a number into pieces of n bits, the lowest first; the
 * highest bit of a piece says that another piece follows.
 */
#ifndef KP_CORE_FORMAT_BITCODE_H
#define KP_CORE_FORMAT_BITCODE_H

#include "core/base/errors.h"
#include "core/base/file.h"

enum {
	KP_BITS_END,
	KP_BITS_ENTER,
	KP_BITS_DEFINITION,
	KP_BITS_RECORD,
	KP_BITS_DEFINED /* the first definition's */
};

/* Encodings of an operand. */
enum {
	KP_BITS_LITERAL,
	KP_BITS_FIXED,
	KP_BITS_VBR,
	KP_BITS_ARRAY, /* of elements as the next operand says */
	KP_BITS_CHAR6,
	KP_BITS_BLOB
};

/* A reading position.  Once OVER is true, every read gives 0. */
struct kp_bits {
	struct kp_window window;
	uint64_t pos;      /* in bits; may be set */
	uint64_t left;     /* limit of the bits still to be read; may be set */
	bool over;         /* a read passed the end or the bound; may be set */
	kpack_error_t err; /* the I/O error that set OVER, if any */
	struct kpackx_error *why;
};

struct kp_bits_block {
	uint64_t number, width;
	uint64_t begin, end; /* of its contents, in bits */
};

struct kp_bits_operand {
	uint8_t encoding;
	uint64_t value; /* of a literal; else the width */
};

/*
 * Begin to read the bitcode in SRC, in a wrapper or not, at its first block.
 * INVALID_FORMAT: SRC is not bitcode.
 */
kpack_error_t kp_bits_open(struct kp_bits *b, const struct kp_source *src,
			   struct kpackx_error *why);

/* Read the next N bits, at most 64. */
uint64_t kp_bits_take(struct kp_bits *b, unsigned n);

/* Read a VBR number in pieces of N bits, 2 to 64; bits above the 64th are dropped. */
uint64_t kp_bits_vbr(struct kp_bits *b, unsigned n);

/* Skip to the next multiple of 32 bits. */
void kp_bits_align(struct kp_bits *b);

/* After ENTER: read the block's header, which may lie: check it with kp_bits_holds. */
struct kp_bits_block kp_bits_enter(struct kp_bits *b);

/* True if BLOCK ends inside the source. */
bool kp_bits_holds(const struct kp_bits *b, const struct kp_bits_block *block);

/* Read the next operand of a definition; its encoding may be unknown. */
struct kp_bits_operand kp_bits_operand(struct kp_bits *b);

/* After the code of a record: go to its blob, and return the stated size in bytes. */
uint64_t kp_bits_blob(struct kp_bits *b);

/* ---- modules ---- */

/*
 * Call FOUND, in order, for each byte array among the constants of the modules in CODE -
 * bitcode, in a wrapper or not - that begins like an offload binary: linkers of host
 * modules read them.  The bytes stay valid until FOUND returns.
 * INVALID_FORMAT: the bitcode is damaged.  Otherwise FOUND's error.
 */
kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why);

/*
 * Call FOUND for the name of each global symbol that SRC defines, in the order of the
 * symbol table at its end.
 * INVALID_FORMAT: SRC cannot be read.  Otherwise FOUND's error.
 */
kpack_error_t kp_bitcode_symbols(const struct kp_source *src,
				 kpack_error_t (*found)(void *arg, struct kp_span name,
							struct kpackx_error *why),
				 void *arg, struct kpackx_error *why);

#endif
