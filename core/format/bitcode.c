/* SPDX-License-Identifier: MIT */
/*
 * LLVM bitcode: "BC" C0 DE, plain or in a wrapper; only a wrapper states where it ends.
 *
 *	0   u32   0x0b17c0de
 *	4   u32   version
 *	8   u32   offset of the bitcode
 *	12  u32   its size
 *	16  u32   processor
 *
 * After its magic bitcode is a bitstream, which consists of blocks; a block consists of
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
 *
 * Read are the target triple, the symbol table at the end, and the offload binaries that a
 * host module has among its constants.
 */
#include "bitcode.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"

#define WRAPPER_SIZE 20

static const uint8_t raw_magic[] = {'B', 'C', 0xc0, 0xde};
static const uint8_t wrapper_magic[] = {0xde, 0xc0, 0x17, 0x0b};

enum { BLOCK_INFO = 0, BLOCK_MODULE = 8, BLOCK_CONSTANTS = 11, BLOCK_STRTAB = 23 };
enum { BLOCK_SYMTAB = 25 };
enum { INFO_SET_BLOCK = 1, MODULE_TRIPLE = 2 };
enum { CONSTANT_STRING = 8, CONSTANT_CSTRING = 9, CONSTANT_DATA = 22 };

/* ---- bitstreams ---- */

enum {
	ID_END,
	ID_ENTER,
	ID_DEFINITION,
	ID_RECORD,
	ID_DEFINED /* the first definition's */
};

/* Encodings of an operand; an array has elements as the next operand says. */
enum { LITERAL, FIXED, VBR, ARRAY, CHAR6, BLOB };

/* A reading position.  Once OVER is true, every read gives 0. */
struct bits {
	struct kp_window window;
	uint64_t pos;      /* in bits; may be set */
	uint64_t left;     /* limit of the bits still to be read; may be set */
	bool over;         /* a read passed the end or the bound; may be set */
	kpack_error_t err; /* the I/O error that set OVER, if any */
	struct kpackx_error *why;
};

struct bits_block {
	uint64_t number, width;
	uint64_t begin, end; /* of its contents, in bits */
};

struct operand {
	uint8_t encoding;
	uint64_t value; /* of a literal; else the width */
};

/* Set OUT to the bitcode in SRC; *END becomes the offset of its end in SRC. */
static kpack_error_t unwrap(const struct kp_source *src, struct kp_source *out,
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

/* Begin to read SRC at bit POS. */
static void bits_init(struct bits *b, const struct kp_source *src, uint64_t pos,
		      struct kpackx_error *why)
{
	kp_window_init(&b->window, src);
	b->pos = pos;
	b->left = UINT64_MAX;
	b->over = false;
	b->err = KPACK_SUCCESS;
	b->why = why;
}

/*
 * Begin to read the bitcode in SRC, in a wrapper or not, at its first block.
 * INVALID_FORMAT: SRC is not bitcode.
 */
static kpack_error_t open_bits(struct bits *b, const struct kp_source *src,
			       struct kpackx_error *why)
{
	uint8_t magic[sizeof(raw_magic)];
	struct kp_source code;
	uint64_t end;

	KP_TRY(unwrap(src, &code, &end, why));
	KP_TRY(kp_source_read(&code, 0, magic, sizeof(magic), why));
	if (memcmp(magic, raw_magic, sizeof(magic)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no bitcode");
	bits_init(b, &code, 8 * sizeof(magic), why);
	return KPACK_SUCCESS;
}

/* Read the next N bits, at most 64. */
static uint64_t take_bits(struct bits *b, unsigned n)
{
	unsigned skip = b->pos % 8;
	size_t size = (skip + n + 7) / 8;
	uint8_t bytes[9] = {0};
	const uint8_t *p;
	uint64_t value;

	if (n == 0)
		return 0;
	b->over |= n > 64 || n > b->left ||
		   !kp_range_ok(b->window.src.size, b->pos / 8, size);
	if (!b->over)
		b->err = kp_window_get(&b->window, b->pos / 8, size, &p, b->why);
	b->over |= b->err != KPACK_SUCCESS;
	if (b->over)
		return 0;
	memcpy(bytes, p, size);
	value = kp_le64(bytes) >> skip;
	if (skip)
		value |= (uint64_t)bytes[8] << (64 - skip);
	b->pos += n;
	b->left -= n;
	return n < 64 ? value & ((UINT64_C(1) << n) - 1) : value;
}

/* Read a VBR number in pieces of N bits, 2 to 64; bits above the 64th are dropped. */
static uint64_t take_vbr(struct bits *b, unsigned n)
{
	uint64_t more = UINT64_C(1) << (n - 1), value = 0, piece;
	unsigned shift = 0;

	do {
		piece = take_bits(b, n);
		if (shift < 64) {
			value |= (piece & (more - 1)) << shift;
			shift += n - 1;
		}
	} while (piece & more);
	return value;
}

/* Skip to the next multiple of 32 bits. */
static void align_bits(struct bits *b)
{
	b->pos = (b->pos + 31) / 32 * 32;
	b->over |= b->pos / 8 > b->window.src.size;
}

/* After ENTER: read the block's header.  Returns whether the block ends inside the source. */
static bool enter_block(struct bits *b, struct bits_block *block)
{
	uint64_t words;

	block->number = take_vbr(b, 8);
	block->width = take_vbr(b, 4);
	align_bits(b);
	words = take_bits(b, 32);
	block->begin = b->pos;
	block->end = b->pos + 32 * words;
	return !b->over && block->end / 8 <= b->window.src.size;
}

/* Read the next operand of a definition; its encoding may be unknown. */
static struct operand take_operand(struct bits *b)
{
	struct operand o = {.encoding = LITERAL};

	if (take_bits(b, 1)) {
		o.value = take_vbr(b, 8);
		return o;
	}
	o.encoding = (uint8_t)take_bits(b, 3);
	if (o.encoding == FIXED || o.encoding == VBR)
		o.value = take_vbr(b, 5);
	return o;
}

/* ---- the symbol table ---- */

/*
 * Block 25 at the end of bitcode holds one blob, the table; block 23 after it holds
 * another blob, the characters of the names.  The table begins with a header of words;
 * words 7 and 8 are the offset and the number of the symbols.  A symbol has 6 words:
 * offset and size of its name, offset and size of its name in the source, a number, and
 * flags.
 */
#define HEADER_WORDS 9
#define SYMBOL_SIZE 24

/* Maximum bytes, of any value, after the last block, as in LLVM. */
#define PADDING_MAX 8

/* Bits of a symbol's flags */
#define UNDEFINED (1u << 3)
#define GLOBAL (1u << 10)
#define FORMAT_SPECIFIC (1u << 11)

/*
 * Read the blob that is alone in BLOCK of SRC, after its definition - a literal and a blob
 * - to the heap, where *DATA is freed by the caller.
 */
static kpack_error_t read_blob(const struct kp_source *src,
			       const struct bits_block *block, uint8_t **data,
			       struct kp_span *out, struct kpackx_error *why)
{
	unsigned width = (unsigned)block->width;
	struct kp_source bytes;
	struct bits b;
	uint64_t n;

	kp_source_sub(src, block->begin / 8, (block->end - block->begin) / 8, &bytes);
	bits_init(&b, &bytes, 0, why);
	if (take_bits(&b, width) != ID_DEFINITION || take_vbr(&b, 5) != 2 ||
	    take_operand(&b).encoding != LITERAL || take_operand(&b).encoding != BLOB ||
	    take_bits(&b, width) != ID_DEFINED)
		b.over = true;
	n = take_vbr(&b, 6);
	align_bits(&b);
	if (b.err)
		return b.err;
	if (b.over || n > KP_INDEX_MAX ||
	    !kp_source_sub(&b.window.src, b.pos / 8, n, &bytes))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "bitcode: a table's block does not hold a blob");
	KP_TRY(kp_source_load(&bytes, KP_INDEX_MAX, "symbols of bitcode", data, why));
	*out = (struct kp_span){*data, (size_t)n};
	return KPACK_SUCCESS;
}

kpack_error_t kp_bitcode_symbols(const struct kp_source *src,
				 kpack_error_t (*found)(void *arg, struct kp_span name,
							struct kpackx_error *why),
				 void *arg, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *table_bytes = NULL, *string_bytes = NULL;
	struct bits_block block, symtab = {0}, strtab = {0};
	struct kp_span table, strings, symbols, name;
	uint64_t offset, n;
	struct bits b;

	KP_TRY(open_bits(&b, src, why));
	/* the first symbol table, and the first block of characters after it */
	while (!strtab.end && b.window.src.size - b.pos / 8 > PADDING_MAX) {
		uint64_t at = b.pos / 8;
		bool ok = take_bits(&b, 2) == ID_ENTER;

		/* as LLVM writes them, its number and width are single pieces */
		if (!ok || !enter_block(&b, &block) || block.number > 0x7f ||
		    block.width > 7)
			return b.err ? b.err
				     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "bitcode: no block is at offset %" PRIu64,
					       at);
		b.pos = block.end;
		if (block.number == BLOCK_SYMTAB && !symtab.end)
			symtab = block;
		else if (block.number == BLOCK_STRTAB && symtab.end)
			strtab = block;
	}
	if (!strtab.end)
		return KPACK_SUCCESS;
	KP_TRY(read_blob(&b.window.src, &symtab, &table_bytes, &table, why));
	KP_TRY(read_blob(&b.window.src, &strtab, &string_bytes, &strings, why));
	if (table.size < HEADER_WORDS * 4)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "bitcode: a table of symbols of %zu bytes", table.size);
	offset = kp_le32(table.data + 28);
	n = kp_le32(table.data + 32);
	if (!kp_span_sub(table, offset, n * SYMBOL_SIZE, &symbols))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "bitcode: %" PRIu64 " symbols at offset %" PRIu64
			       " of %zu bytes",
			       n, offset, table.size);
	for (const uint8_t *p = symbols.data; n--; p += SYMBOL_SIZE) {
		uint32_t flags = kp_le32(p + 20);

		if (!(flags & GLOBAL) || (flags & (UNDEFINED | FORMAT_SPECIFIC)))
			continue;
		if (!kp_span_sub(strings, kp_le32(p), kp_le32(p + 4), &name))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "bitcode: the name of a symbol is outside of the "
				       "names");
		KP_TRY(found(arg, name, why));
	}
	return KPACK_SUCCESS;
}

/* ---- embedded offload binaries ---- */

/*
 * A definition says how a record is written.  It is in the record's block or, for all later blocks
 * with a given number, in block 0.  Values are literals, of fixed width, VBR, characters
 * of 6 bits, an array of one of these, or a blob.  Byte arrays are records 8 (the bytes),
 * 9 (the bytes without their final zero) and 22 in the block of constants.
 */

/* Nesting of blocks: the file, its modules, their constants. */
#define DEPTH_MAX 3

static const uint8_t wanted[] = {0x10, 0xff, 0x10, 0xad};

/* Definitions; number i has operands [ends[i - 1], ends[i]). */
struct definitions {
	struct operand *operands;
	size_t n_operands, operands_cap;
	size_t *ends;
	size_t count, ends_cap;
};

struct finder {
	struct bits bits;        /* over: the bitcode is damaged, or ERR */
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
static void stop_at(struct finder *r, kpack_error_t err)
{
	if (err) {
		r->err = err;
		r->bits.over = true;
	}
}

static void definitions_fini(struct definitions *d)
{
	free(d->operands);
	free(d->ends);
}

/* Refuse widths with which a record could continue without reading bits. */
static void take_definition(struct finder *r, struct definitions *d)
{
	uint64_t n = take_vbr(&r->bits, 5);

	while (n-- && !r->bits.over) {
		struct operand o = take_operand(&r->bits);

		if (o.encoding == FIXED || o.encoding == VBR) {
			if (o.value == 0)
				o.encoding = LITERAL;
			r->bits.over |=
				o.value > 64 || (o.encoding == VBR && o.value < 2);
		}
		r->bits.over |= o.encoding > BLOB;
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

static void keep_byte(struct finder *r, uint8_t byte)
{
	if (r->size == r->cap)
		stop_at(r, kp_room(&r->bytes, r->size, &r->cap, "an offload binary",
				   r->why));
	if (!r->bits.over)
		r->bytes[r->size++] = byte;
}

/* Take the next value of the record; the first one is its code. */
static void add_value(struct finder *r, uint64_t value)
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
static void take_scalar(struct finder *r, const struct operand *o)
{
	static const char chars[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";

	switch (o->encoding) {
	case LITERAL:
		add_value(r, o->value);
		break;
	case FIXED:
		add_value(r, take_bits(&r->bits, (unsigned)o->value));
		break;
	case VBR:
		add_value(r, take_vbr(&r->bits, (unsigned)o->value));
		break;
	case CHAR6:
		add_value(r, (uint64_t)chars[take_bits(&r->bits, 6)]);
		break;
	default: /* an array of arrays */
		r->bits.over = true;
	}
}

/* Read the values of a record that definition NUMBER of D describes. */
static void take_operands(struct finder *r, const struct definitions *d, size_t number)
{
	size_t at = number ? d->ends[number - 1] : 0, end = d->ends[number];

	for (; at < end && !r->bits.over; at++) {
		const struct operand *o = &d->operands[at];
		uint64_t n;

		if (o->encoding == BLOB) {
			n = take_vbr(&r->bits, 6);
			align_bits(&r->bits);
			while (n-- && !r->bits.over)
				add_value(r, take_bits(&r->bits, 8));
			align_bits(&r->bits);
		} else if (o->encoding == ARRAY && ++at < end) {
			n = take_vbr(&r->bits, 6);
			o++;
			/* literals have no bits, and there could be any number of them */
			r->bits.over |= o->encoding == LITERAL && n > 0;
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
static void read_record(struct finder *r, const struct definitions *own, uint64_t id,
			uint64_t block)
{
	uint64_t before = block == BLOCK_CONSTANTS ? r->info.count : 0;

	r->code_number = 0;
	r->n_values = 0;
	r->size = 0;
	r->collect = block == BLOCK_CONSTANTS;
	if (id == ID_RECORD) {
		uint64_t code = take_vbr(&r->bits, 6), n = take_vbr(&r->bits, 6);

		add_value(r, code);
		while (n-- && !r->bits.over)
			add_value(r, take_vbr(&r->bits, 6));
	} else if (id - ID_DEFINED < before) {
		take_operands(r, &r->info, (size_t)(id - ID_DEFINED));
	} else if (id - ID_DEFINED - before < own->count) {
		take_operands(r, own, (size_t)(id - ID_DEFINED - before));
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

/*
 * After ENTER: read a block inside of OUTER if it can matter: definitions for all blocks, a module, and
 * the constants of one; else skip it.
 */
static void read_block(struct finder *r, uint64_t outer, unsigned depth)
{
	struct definitions own = {0}, other = {0};
	uint64_t id, described = UINT64_MAX;
	struct bits_block b;

	r->bits.over |= !enter_block(&r->bits, &b) || b.width < 2 || b.width > 32;
	if (r->bits.over)
		return;
	if (depth >= DEPTH_MAX ||
	    (b.number != BLOCK_INFO && b.number != BLOCK_MODULE &&
	     (b.number != BLOCK_CONSTANTS || outer != BLOCK_MODULE))) {
		r->bits.pos = b.end;
		return;
	}
	while (!r->bits.over && (id = take_bits(&r->bits, (unsigned)b.width)) != ID_END) {
		if (id == ID_ENTER) {
			read_block(r, b.number, depth + 1);
		} else if (id == ID_DEFINITION) {
			take_definition(r, b.number != BLOCK_INFO         ? &own
					   : described == BLOCK_CONSTANTS ? &r->info
									  : &other);
		} else {
			read_record(r, &own, id, b.number);
			if (b.number == BLOCK_INFO && r->code_number == INFO_SET_BLOCK &&
			    r->n_values > 1)
				described = r->first;
		}
	}
	align_bits(&r->bits);
	definitions_fini(&own);
	definitions_fini(&other);
}

kpack_error_t kp_bitcode_embedded(struct kp_span code,
				  kpack_error_t (*found)(void *arg, struct kp_span bytes,
							 struct kpackx_error *why),
				  void *arg, struct kpackx_error *why)
{
	struct kp_source src = kp_source_memory(code.data, code.size);
	struct finder r = {.found = found, .arg = arg, .why = why};

	KP_TRY(open_bits(&r.bits, &src, why));
	/* zeros may pad the last word */
	while (!r.bits.over && r.bits.window.src.size - r.bits.pos / 8 >= 8 &&
	       take_bits(&r.bits, 2) == ID_ENTER)
		read_block(&r, UINT64_MAX, 0);
	definitions_fini(&r.info);
	free(r.bytes);
	if (!r.bits.over)
		return KPACK_SUCCESS;
	return r.err ? r.err
		     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the bitcode is damaged before byte %" PRIu64,
			       r.bits.pos / 8);
}

/* ---- the format ---- */

#define TRIPLE_MAX 128

/*
 * Limit of the bits before the triple: a file with a million functions has some 100 KB.
 */
#define TRIPLE_BITS_MAX (UINT64_C(8) << 20)

static bool probe_bitcode(struct kp_span head)
{
	return kp_span_starts(head, raw_magic, sizeof(raw_magic)) ||
	       kp_span_starts(head, wrapper_magic, sizeof(wrapper_magic));
}

static kpack_error_t parse_bitcode(const struct kp_source *src, struct kp_container *c,
				   struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_image *image;
	struct kp_source code;
	uint64_t end;

	KP_TRY(unwrap(src, &code, &end, why));
	return kp_containers_add_object(list, c, end, &image, why);
}

/*
 * Read the target triple of the first module: record 2 of block 8, with one character per value.
 * Compilers write it without a definition, before records that use definitions.  What is missing,
 * not found, or damaged is not stated.
 */
static kpack_error_t describe_bitcode(const struct kp_source *src, struct kp_object *out,
				      struct kpackx_error *why)
{
	uint64_t end, code, n, value, width;
	char triple[TRIPLE_MAX];
	struct kp_source module;
	struct bits_block block;
	struct bits b;
	size_t size;

	KP_TRY(unwrap(src, &module, &end, why));
	bits_init(&b, &module, 32, NULL);
	b.left = TRIPLE_BITS_MAX;
	do {
		if (take_bits(&b, 2) != ID_ENTER)
			return KPACK_SUCCESS;
		enter_block(&b, &block);
		if (block.number != BLOCK_MODULE)
			b.pos = block.end;
	} while (block.number != BLOCK_MODULE);
	width = block.width;
	while (!b.over && width > 1 && width <= 32) {
		switch (take_bits(&b, (unsigned)width)) {
		case ID_ENTER:
			enter_block(&b, &block);
			b.pos = block.end;
			break;
		case ID_DEFINITION:
			n = take_vbr(&b, 5);
			while (n-- && !b.over)
				take_operand(&b);
			break;
		case ID_RECORD:
			code = take_vbr(&b, 6);
			n = take_vbr(&b, 6);
			for (size = 0; n-- && !b.over;) {
				value = take_vbr(&b, 6);
				if (size < TRIPLE_MAX - 1)
					triple[size++] = value > 0x20 && value < 0x7f
								 ? (char)value
								 : '?';
			}
			triple[size] = '\0';
			if (code == MODULE_TRIPLE && !b.over)
				return kp_pairs_print(&out->facts, why, "triple", "%s",
						      triple);
			if (code == MODULE_TRIPLE)
				return KPACK_SUCCESS;
			break;
		default:
			return KPACK_SUCCESS;
		}
	}
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_bitcode = {
	.name = "bitcode",
	.type = "bc",
	.probe = probe_bitcode,
	.parse = parse_bitcode,
	.describe = describe_bitcode,
};
