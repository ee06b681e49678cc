/* SPDX-License-Identifier: MIT */
/*
 * Bitcode is blocks of records (bitcode_triple.c says how they begin).  How a record is written
 * is said by a definition: in the block, or before, for all blocks of a number, in block 0.  Its
 * values are literal, of fixed width, VBR, characters of 6 bits, an array of one of these, or
 * a blob.  Arrays of bytes are records 8 (its values), 9 (the same, and a zero) and 22 of the
 * block of constants.
 */
#include "bitcode_embedded.h"
#include <inttypes.h>
#include <stdlib.h>

enum { END_BLOCK, ENTER_BLOCK, DEFINITION, RECORD, FIRST_DEFINED };
enum { BLOCK_INFO = 0, BLOCK_MODULE = 8, BLOCK_CONSTANTS = 11 };
enum { INFO_SET_BLOCK = 1 };
enum { CONSTANT_STRING = 8, CONSTANT_CSTRING = 9, CONSTANT_DATA = 22 };
enum { LITERAL, FIXED, VBR, ARRAY, CHAR6, BLOB };

#define WRAPPER_SIZE 20

/* Blocks in blocks: the file, its modules, their constants. */
#define DEPTH_MAX 3

static const uint8_t wanted[] = {0x10, 0xff, 0x10, 0xad};

struct operand {
	uint8_t encoding;
	uint64_t value; /* of a literal; a width */
};

/* Definitions, each [ends[i - 1], ends[i]) of the operands. */
struct definitions {
	struct operand *operands;
	size_t n_operands;
	size_t *ends;
	size_t count;
};

struct reader {
	struct kp_span code;
	uint64_t pos; /* in bits */
	bool damaged;
	struct definitions info; /* of blocks of constants */
	/* The record that is read. */
	uint64_t code_number, n_values;
	uint64_t first; /* of its values */
	uint8_t *bytes; /* of its values, while they may be what is wanted */
	size_t size, cap;
	bool collect;
	kpack_error_t (*found)(void *arg, struct kp_span bytes, struct kpackx_error *why);
	void *arg;
	struct kpackx_error *why;
	kpack_error_t err;
};

/* ---- bits ---- */

static uint64_t take(struct reader *r, unsigned n)
{
	uint64_t value = 0;
	unsigned got = 0;

	if (r->damaged || n > 64 || n > 8 * (uint64_t)r->code.size - r->pos) {
		r->damaged = true;
		return 0;
	}
	while (got < n) {
		unsigned at = r->pos % 8, some = 8 - at < n - got ? 8 - at : n - got;
		uint64_t part = r->code.data[r->pos / 8] >> at & ((1U << some) - 1);

		value |= part << got;
		got += some;
		r->pos += some;
	}
	return value;
}

static uint64_t take_vbr(struct reader *r, unsigned n)
{
	uint64_t more = UINT64_C(1) << (n - 1), value = 0, piece;
	unsigned shift = 0;

	do {
		piece = take(r, n);
		if (shift < 64)
			value |= (piece & (more - 1)) << shift;
		shift += n - 1;
	} while (piece & more && !r->damaged);
	return value;
}

static void to_word(struct reader *r)
{
	r->pos = (r->pos + 31) / 32 * 32;
	r->damaged |= r->pos > 8 * (uint64_t)r->code.size;
}

/* ---- definitions ---- */

static void definitions_fini(struct definitions *d)
{
	free(d->operands);
	free(d->ends);
	*d = (struct definitions){0};
}

static void no_memory(struct reader *r, size_t size)
{
	r->damaged = true;
	r->err = kp_fail_memory(r->why, size, "definitions of bitcode");
}

static void add_operand(struct reader *r, struct definitions *d, struct operand o)
{
	struct operand *grown =
		realloc(d->operands, (d->n_operands + 1) * sizeof(*grown));

	if (!grown) {
		no_memory(r, d->n_operands * sizeof(*grown));
		return;
	}
	d->operands = grown;
	d->operands[d->n_operands++] = o;
}

static void end_definition(struct reader *r, struct definitions *d)
{
	size_t *grown = realloc(d->ends, (d->count + 1) * sizeof(*grown));

	if (!grown) {
		no_memory(r, d->count * sizeof(*grown));
		return;
	}
	d->ends = grown;
	d->ends[d->count++] = d->n_operands;
}

/* Widths that would let a record go on without a bit being read are none. */
static struct operand take_operand(struct reader *r)
{
	struct operand o = {.encoding = LITERAL};

	if (take(r, 1)) {
		o.value = take_vbr(r, 8);
		return o;
	}
	o.encoding = (uint8_t)take(r, 3);
	if (o.encoding == FIXED || o.encoding == VBR) {
		o.value = take_vbr(r, 5);
		if (o.value == 0)
			o.encoding = LITERAL;
		r->damaged |= o.value > 64 || (o.encoding == VBR && o.value < 2);
	}
	r->damaged |= o.encoding > BLOB;
	return o;
}

static void take_definition(struct reader *r, struct definitions *d)
{
	uint64_t n = take_vbr(r, 5);

	for (uint64_t i = 0; i < n && !r->damaged; i++)
		add_operand(r, d, take_operand(r));
	end_definition(r, d);
}

/* ---- records ---- */

/* What is first is the code. */
static void begin_record(struct reader *r)
{
	r->code_number = 0;
	r->n_values = 0;
	r->size = 0;
}

static void keep(struct reader *r, uint8_t byte)
{
	size_t cap = r->cap ? 2 * r->cap : 4096;
	uint8_t *grown;

	if (r->size == r->cap) {
		grown = realloc(r->bytes, cap);
		if (!grown) {
			no_memory(r, cap);
			return;
		}
		r->bytes = grown;
		r->cap = cap;
	}
	r->bytes[r->size++] = byte;
}

static void add_value(struct reader *r, uint64_t value)
{
	uint64_t n = r->n_values++;

	if (n == 0) {
		r->code_number = value;
		return;
	}
	if (n == 1)
		r->first = value;
	/* all so far were the ones that are wanted, and this may be the next */
	if (r->collect && r->size == n - 1 && value <= UINT8_MAX &&
	    (n > sizeof(wanted) || value == wanted[n - 1]))
		keep(r, (uint8_t)value);
}

static void take_scalar(struct reader *r, const struct operand *o)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

	switch (o->encoding) {
	case LITERAL:
		add_value(r, o->value);
		break;
	case FIXED:
		add_value(r, take(r, (unsigned)o->value));
		break;
	case VBR:
		add_value(r, take_vbr(r, (unsigned)o->value));
		break;
	case CHAR6:
		add_value(r, (uint64_t)chars[take(r, 6)]);
		break;
	default: /* an array of arrays */
		r->damaged = true;
	}
}

/* An array of literals has no bits, and could be of any length. */
static void take_array(struct reader *r, const struct operand *element)
{
	uint64_t n = take_vbr(r, 6);

	r->damaged |= element->encoding == LITERAL && n > 0;
	for (uint64_t i = 0; i < n && !r->damaged; i++)
		take_scalar(r, element);
}

static void take_blob(struct reader *r)
{
	uint64_t n = take_vbr(r, 6);

	to_word(r);
	for (uint64_t i = 0; i < n && !r->damaged; i++)
		add_value(r, take(r, 8));
	to_word(r);
}

static void take_operands(struct reader *r, const struct definitions *d, size_t number)
{
	size_t at = number ? d->ends[number - 1] : 0, end = d->ends[number];

	for (; at < end && !r->damaged; at++) {
		if (d->operands[at].encoding == BLOB) {
			take_blob(r);
		} else if (d->operands[at].encoding != ARRAY) {
			take_scalar(r, &d->operands[at]);
		} else if (++at < end) {
			take_array(r, &d->operands[at]);
		} else {
			r->damaged = true;
		}
	}
}

/* Definitions for all blocks of constants are counted before the block's own. */
static void take_defined(struct reader *r, const struct definitions *own, uint64_t block,
			 uint64_t number)
{
	uint64_t before = block == BLOCK_CONSTANTS ? r->info.count : 0;

	if (number < before)
		take_operands(r, &r->info, (size_t)number);
	else if (number - before < own->count)
		take_operands(r, own, (size_t)(number - before));
	else
		r->damaged = true;
}

static void take_plain(struct reader *r)
{
	uint64_t code = take_vbr(r, 6), n = take_vbr(r, 6);

	add_value(r, code);
	for (uint64_t i = 0; i < n && !r->damaged; i++)
		add_value(r, take_vbr(r, 6));
}

/* Was it an array that begins as is wanted? */
static void tell(struct reader *r)
{
	if (r->damaged || r->size < sizeof(wanted) || r->size != r->n_values - 1)
		return;
	if (r->code_number == CONSTANT_CSTRING)
		keep(r, 0);
	else if (r->code_number != CONSTANT_STRING && r->code_number != CONSTANT_DATA)
		return;
	if (r->damaged)
		return;
	r->err = r->found(r->arg, (struct kp_span){r->bytes, r->size}, r->why);
	r->damaged |= r->err != KPACK_SUCCESS;
}

/* ---- blocks ---- */

static void read_block(struct reader *r, uint64_t number, unsigned width, unsigned depth);

/* A block's header; blocks in which there is nothing for us are passed over. */
static void enter(struct reader *r, uint64_t outer, unsigned depth)
{
	uint64_t number = take_vbr(r, 8), width = take_vbr(r, 4), words;
	bool ours = number == BLOCK_INFO || number == BLOCK_MODULE ||
		    (number == BLOCK_CONSTANTS && outer == BLOCK_MODULE);

	to_word(r);
	words = take(r, 32);
	r->damaged |= width < 2 || width > 32 ||
		      words > (8 * (uint64_t)r->code.size - r->pos) / 32;
	if (r->damaged)
		return;
	if (ours && depth < DEPTH_MAX)
		read_block(r, number, (unsigned)width, depth);
	else
		r->pos += 32 * words;
}

static void read_record(struct reader *r, const struct definitions *own, uint64_t id,
			uint64_t block)
{
	begin_record(r);
	r->collect = block == BLOCK_CONSTANTS;
	if (id == RECORD)
		take_plain(r);
	else
		take_defined(r, own, block, id - FIRST_DEFINED);
	if (r->collect)
		tell(r);
}

static void read_block(struct reader *r, uint64_t number, unsigned width, unsigned depth)
{
	struct definitions own = {0}, other = {0};
	uint64_t id, described = UINT64_MAX;

	while (!r->damaged && (id = take(r, width)) != END_BLOCK) {
		if (id == ENTER_BLOCK) {
			enter(r, number, depth + 1);
		} else if (id == DEFINITION) {
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
	to_word(r);
	definitions_fini(&own);
	definitions_fini(&other);
}

/* The bitcode without its wrapper. */
static bool unwrap(struct kp_span *code)
{
	static const uint8_t plain[] = {'B', 'C', 0xc0, 0xde};
	static const uint8_t wrapper[] = {0xde, 0xc0, 0x17, 0x0b};

	if (kp_span_starts(*code, wrapper, sizeof(wrapper)) &&
	    (code->size < WRAPPER_SIZE || !kp_span_sub(*code, kp_le32(code->data + 8),
						       kp_le32(code->data + 12), code)))
		return false;
	return kp_span_starts(*code, plain, sizeof(plain));
}

kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why)
{
	struct reader r = {.pos = 32, .found = found, .arg = arg, .why = why};

	r.damaged = !unwrap(&code);
	r.code = code;
	/* at the end may be zeros that fill the last word */
	while (!r.damaged && 8 * (uint64_t)code.size - r.pos >= 64) {
		if (take(&r, 2) == ENTER_BLOCK)
			enter(&r, UINT64_MAX, 0);
		else
			break;
	}
	definitions_fini(&r.info);
	free(r.bytes);
	if (!r.damaged)
		return KPACK_SUCCESS;
	return r.err ? r.err
		     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the bitcode is damaged before byte %" PRIu64, r.pos / 8);
}
