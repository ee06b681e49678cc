/* SPDX-License-Identifier: MIT */
/*
 * Offload binaries in bitcode: constants of a host module that is linked later.
 *
 * Bitcode consists of blocks of records (bitcode.h says how they begin).  A definition
 * says how a record is written.  It is in the record's block or, for all later blocks
 * with a given number, in block 0.  Values are literals, of fixed width, VBR, characters
 * of 6 bits, an array of one of these, or a blob.  Byte arrays are records 8 (the bytes),
 * 9 (the bytes without their final zero) and 22 in the block of constants.
 */
#include "bitcode.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"

enum { BLOCK_INFO = 0, BLOCK_MODULE = 8, BLOCK_CONSTANTS = 11 };
enum { INFO_SET_BLOCK = 1 };
enum { CONSTANT_STRING = 8, CONSTANT_CSTRING = 9, CONSTANT_DATA = 22 };

/* Nesting of blocks: the file, its modules, their constants. */
#define DEPTH_MAX 3

static const uint8_t wanted[] = {0x10, 0xff, 0x10, 0xad};

/* Definitions; number i has operands [ends[i - 1], ends[i]). */
struct definitions {
	struct kp_bits_operand *operands;
	size_t n_operands, operands_cap;
	size_t *ends;
	size_t count, ends_cap;
};

struct reader {
	struct kp_bits bits;     /* over: the bitcode is damaged, or ERR */
	struct definitions info; /* for all blocks of constants */
	/* The record being read. */
	uint64_t code_number, n_values;
	uint64_t first; /* the first value */
	uint8_t *bytes; /* the values, while they can be an offload binary */
	size_t size, cap;
	bool collect;
	kpack_error_t (*found)(void *arg, struct kp_span bytes, struct kpackx_error *why);
	void *arg;
	struct kpackx_error *why;
	kpack_error_t err;
};

/* Note ERR, which ends the reading. */
static void stop_at(struct reader *r, kpack_error_t err)
{
	if (err) {
		r->err = err;
		r->bits.over = true;
	}
}

/* ---- definitions ---- */

static void definitions_fini(struct definitions *d)
{
	free(d->operands);
	free(d->ends);
}

/* Refuse widths with which a record could continue without reading bits. */
static void take_definition(struct reader *r, struct definitions *d)
{
	uint64_t n = kp_bits_vbr(&r->bits, 5);

	while (n-- && !r->bits.over) {
		struct kp_bits_operand o = kp_bits_operand(&r->bits);

		if (o.encoding == KP_BITS_FIXED || o.encoding == KP_BITS_VBR) {
			if (o.value == 0)
				o.encoding = KP_BITS_LITERAL;
			r->bits.over |= o.value > 64 ||
					(o.encoding == KP_BITS_VBR && o.value < 2);
		}
		r->bits.over |= o.encoding > KP_BITS_BLOB;
		stop_at(r, kp_room(&d->operands, d->n_operands, &d->operands_cap,
				   "definitions of bitcode", r->why));
		if (!r->bits.over)
			d->operands[d->n_operands++] = o;
	}
	stop_at(r, kp_room(&d->ends, d->count, &d->ends_cap, "definitions of bitcode",
			   r->why));
	if (!r->bits.over)
		d->ends[d->count++] = d->n_operands;
}

/* ---- records ---- */

static void keep_byte(struct reader *r, uint8_t byte)
{
	if (r->size == r->cap)
		stop_at(r, kp_room(&r->bytes, r->size, &r->cap, "an offload binary",
				   r->why));
	if (!r->bits.over)
		r->bytes[r->size++] = byte;
}

/* Take the next value of the record; the first one is its code. */
static void add_value(struct reader *r, uint64_t value)
{
	uint64_t n = r->n_values++;

	if (n == 0) {
		r->code_number = value;
		return;
	}
	if (n == 1)
		r->first = value;
	/* all values so far fit an offload binary, and this one may be the next */
	if (r->collect && r->size == n - 1 && value <= UINT8_MAX &&
	    (n > sizeof(wanted) || value == wanted[n - 1]))
		keep_byte(r, (uint8_t)value);
}

/* Read one value as O says. */
static void take_scalar(struct reader *r, const struct kp_bits_operand *o)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

	switch (o->encoding) {
	case KP_BITS_LITERAL:
		add_value(r, o->value);
		break;
	case KP_BITS_FIXED:
		add_value(r, kp_bits_take(&r->bits, (unsigned)o->value));
		break;
	case KP_BITS_VBR:
		add_value(r, kp_bits_vbr(&r->bits, (unsigned)o->value));
		break;
	case KP_BITS_CHAR6:
		add_value(r, (uint64_t)chars[kp_bits_take(&r->bits, 6)]);
		break;
	default: /* an array of arrays */
		r->bits.over = true;
	}
}

/* Read the values of a record that definition NUMBER of D describes. */
static void take_operands(struct reader *r, const struct definitions *d, size_t number)
{
	size_t at = number ? d->ends[number - 1] : 0, end = d->ends[number];

	for (; at < end && !r->bits.over; at++) {
		const struct kp_bits_operand *o = &d->operands[at];
		uint64_t n;

		if (o->encoding == KP_BITS_BLOB) {
			n = kp_bits_blob(&r->bits);
			while (n-- && !r->bits.over)
				add_value(r, kp_bits_take(&r->bits, 8));
			kp_bits_align(&r->bits);
		} else if (o->encoding == KP_BITS_ARRAY && ++at < end) {
			n = kp_bits_vbr(&r->bits, 6);
			o++;
			/* literals have no bits, and there could be any number of them */
			r->bits.over |= o->encoding == KP_BITS_LITERAL && n > 0;
			while (n-- && !r->bits.over)
				take_scalar(r, o);
		} else {
			take_scalar(r, o);
		}
	}
}

/*
 * Read a record of BLOCK, and report it if it is an array of bytes that begins like an
 * offload binary.  Numbers of definitions for all blocks of constants precede those of the
 * block's OWN.
 */
static void read_record(struct reader *r, const struct definitions *own, uint64_t id,
			uint64_t block)
{
	uint64_t before = block == BLOCK_CONSTANTS ? r->info.count : 0;

	r->code_number = 0;
	r->n_values = 0;
	r->size = 0;
	r->collect = block == BLOCK_CONSTANTS;
	if (id == KP_BITS_RECORD) {
		uint64_t code = kp_bits_vbr(&r->bits, 6), n = kp_bits_vbr(&r->bits, 6);

		add_value(r, code);
		while (n-- && !r->bits.over)
			add_value(r, kp_bits_vbr(&r->bits, 6));
	} else if (id - KP_BITS_DEFINED < before) {
		take_operands(r, &r->info, (size_t)(id - KP_BITS_DEFINED));
	} else if (id - KP_BITS_DEFINED - before < own->count) {
		take_operands(r, own, (size_t)(id - KP_BITS_DEFINED - before));
	} else {
		r->bits.over = true;
	}
	if (!r->collect || r->bits.over || r->size < sizeof(wanted) ||
	    r->size != r->n_values - 1)
		return;
	if (r->code_number == CONSTANT_CSTRING)
		keep_byte(r, 0);
	else if (r->code_number != CONSTANT_STRING && r->code_number != CONSTANT_DATA)
		return;
	if (!r->bits.over)
		stop_at(r, r->found(r->arg, (struct kp_span){r->bytes, r->size}, r->why));
}

/* ---- blocks ---- */

static void read_block(struct reader *r, uint64_t number, unsigned width, unsigned depth);

/* Read a block's header, and then its contents if they can matter; else skip them. */
static void enter_block(struct reader *r, uint64_t outer, unsigned depth)
{
	struct kp_bits_block b = kp_bits_enter(&r->bits);
	bool ours = b.number == BLOCK_INFO || b.number == BLOCK_MODULE ||
		    (b.number == BLOCK_CONSTANTS && outer == BLOCK_MODULE);

	r->bits.over |= b.width < 2 || b.width > 32 || !kp_bits_holds(&r->bits, &b);
	if (r->bits.over)
		return;
	if (ours && depth < DEPTH_MAX)
		read_block(r, b.number, (unsigned)b.width, depth);
	else
		r->bits.pos = b.end;
}

static void read_block(struct reader *r, uint64_t number, unsigned width, unsigned depth)
{
	struct definitions own = {0}, other = {0};
	uint64_t id, described = UINT64_MAX;

	while (!r->bits.over && (id = kp_bits_take(&r->bits, width)) != KP_BITS_END) {
		if (id == KP_BITS_ENTER) {
			enter_block(r, number, depth + 1);
		} else if (id == KP_BITS_DEFINITION) {
			take_definition(r, number != BLOCK_INFO           ? &own
					   : described == BLOCK_CONSTANTS ? &r->info
									  : &other);
		} else {
			read_record(r, &own, id, number);
			if (number == BLOCK_INFO && r->code_number == INFO_SET_BLOCK &&
			    r->n_values > 1)
				described = r->first;
		}
	}
	kp_bits_align(&r->bits);
	definitions_fini(&own);
	definitions_fini(&other);
}

kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why)
{
	struct kp_source src = kp_source_memory(code.data, code.size);
	struct reader r = {.found = found, .arg = arg, .why = why};

	KP_TRY(kp_bits_open(&r.bits, &src, why));
	/* zeros may pad the last word */
	while (!r.bits.over && r.bits.window.src.size - r.bits.pos / 8 >= 8 &&
	       kp_bits_take(&r.bits, 2) == KP_BITS_ENTER)
		enter_block(&r, UINT64_MAX, 0);
	definitions_fini(&r.info);
	free(r.bytes);
	if (!r.bits.over)
		return KPACK_SUCCESS;
	return r.err ? r.err
		     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the bitcode is damaged before byte %" PRIu64,
			       r.bits.pos / 8);
}
