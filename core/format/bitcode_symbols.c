/* SPDX-License-Identifier: MIT */
/*
 * The symbol table at the end of LLVM bitcode.  A file of bitcode is "BC" C0 DE and blocks:
 *
 *	2 bits 1, 8 bits (VBR) number of the block, 4 bits (VBR) width of IDs in it;
 *	the next word: words of the block behind it
 *
 * Block 25 holds one blob, the table, and block 23 behind it another, the characters its
 * names consist of.  The table begins with a header of words; words 7 and 8 are offset and
 * number of the symbols, each of 6 words: offset and size of the name, the same of its name
 * in the source, a number, and flags.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "../limits.h"
#include "symbols.h"

#define BLOCK_STRTAB 23
#define BLOCK_SYMTAB 25

#define HEADER_WORDS 9
#define SYMBOL_SIZE 24

/* Bits of a symbol's flags */
#define UNDEFINED (1u << 3)
#define GLOBAL (1u << 10)
#define FORMAT_SPECIFIC (1u << 11)

/* Abbreviations that every block knows, and their operands' encodings */
#define END_BLOCK 0
#define DEFINE_ABBREV 2
#define FIRST_ABBREV 4
#define ENCODING_BLOB 5

struct block {
	unsigned number, width;
	uint64_t offset, size; /* of what is in it */
};

static kpack_error_t lies(struct kpackx_error *why, uint64_t offset)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "bitcode: no block or blob is at offset %" PRIu64, offset);
}

/* The block at OFF. */
static kpack_error_t read_block(struct kp_window *w, uint64_t off, struct block *b,
				struct kpackx_error *why)
{
	const uint8_t *p;
	uint32_t word;

	KP_TRY(kp_window_get(w, off, 8, &p, why));
	word = kp_le32(p);
	/* larger numbers and widths would continue in more bits */
	if ((word & 3) != 1 || (word & 1u << 9) || (word & 1u << 13))
		return lies(why, off);
	b->number = word >> 2 & 0x7f;
	b->width = word >> 10 & 7;
	b->offset = off + 8;
	b->size = (uint64_t)kp_le32(p + 4) * 4;
	if (!kp_range_ok(w->src.size, b->offset, b->size))
		return lies(why, off);
	return KPACK_SUCCESS;
}

/* ---- bits of a block ---- */

struct bits {
	struct kp_span bytes;
	uint64_t pos; /* bits */
	bool over;    /* more were asked for than there are */
};

static uint32_t take(struct bits *b, unsigned n)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < n; i++, b->pos++) {
		if (b->pos / 8 >= b->bytes.size) {
			b->over = true;
			return 0;
		}
		value |= (uint32_t)(b->bytes.data[b->pos / 8] >> b->pos % 8 & 1) << i;
	}
	return value;
}

/* A number in groups of N bits, the highest of which says that more follow; 32 bits. */
static uint32_t take_vbr(struct bits *b, unsigned n)
{
	uint32_t more = 1u << (n - 1), group, value = 0;

	for (unsigned shift = 0; shift < 32; shift += n - 1) {
		group = take(b, n);
		value |= (group & (more - 1)) << shift;
		if (!(group & more))
			return value;
	}
	b->over = true;
	return 0;
}

/* The definition of an abbreviation: is it a literal and a blob? */
static bool is_blob(struct bits *b)
{
	if (take_vbr(b, 5) != 2 || take(b, 1) != 1)
		return false;
	take_vbr(b, 8);
	return take(b, 1) == 0 && take(b, 3) == ENCODING_BLOB && !b->over;
}

/* The blob that a block begins with, whose abbreviation is defined before it. */
static bool find_blob(struct bits *b, unsigned width, uint64_t *offset, uint64_t *size)
{
	if (take(b, width) != DEFINE_ABBREV || !is_blob(b) ||
	    take(b, width) != FIRST_ABBREV)
		return false;
	*size = take_vbr(b, 6);
	*offset = (b->pos + 31) / 32 * 4;
	return !b->over;
}

/* The blob of block B, on the heap. */
static kpack_error_t read_blob(struct kp_window *w, const struct block *b, uint8_t **data,
			       size_t *size, struct kpackx_error *why)
{
	struct bits bits = {.bytes.size = b->size < 64 ? (size_t)b->size : 64};
	uint64_t offset, n;

	KP_TRY(kp_window_get(w, b->offset, bits.bytes.size, &bits.bytes.data, why));
	if (!find_blob(&bits, b->width, &offset, &n) ||
	    !kp_range_ok(b->size, offset, n) || n > KP_INDEX_MAX)
		return lies(why, b->offset);
	*data = malloc((size_t)n + !n);
	if (!*data)
		return kp_fail_memory(why, n, "symbols of bitcode");
	*size = (size_t)n;
	return kp_source_read(&w->src, b->offset + offset, *data, (size_t)n, why);
}

/* ---- the table ---- */

static kpack_error_t put_symbol(const uint8_t *p, struct kp_span strings,
				struct kp_symbols *out, struct kpackx_error *why)
{
	uint32_t flags = kp_le32(p + 20);
	struct kp_span name;

	if (!(flags & GLOBAL) || (flags & (UNDEFINED | FORMAT_SPECIFIC)))
		return KPACK_SUCCESS;
	if (!kp_span_sub(strings, kp_le32(p), kp_le32(p + 4), &name))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "bitcode: the name of a symbol is outside of the names");
	return kp_symbols_put(out, name, why);
}

static kpack_error_t put_table(struct kp_span table, struct kp_span strings,
			       struct kp_symbols *out, struct kpackx_error *why)
{
	struct kp_span symbols;
	uint64_t offset, n;

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
	for (uint64_t i = 0; i < n; i++)
		KP_TRY(put_symbol(symbols.data + i * SYMBOL_SIZE, strings, out, why));
	return KPACK_SUCCESS;
}

/* The first table, and the characters of the first block of names behind it. */
static kpack_error_t find_blocks(struct kp_window *w, struct block *symtab,
				 struct block *strtab, struct kpackx_error *why)
{
	struct block b;

	symtab->size = strtab->size = 0;
	for (uint64_t pos = 4; pos < w->src.size; pos = b.offset + b.size) {
		KP_TRY(read_block(w, pos, &b, why));
		if (b.number == BLOCK_SYMTAB && !symtab->size)
			*symtab = b;
		if (b.number == BLOCK_STRTAB && symtab->size) {
			*strtab = b;
			return KPACK_SUCCESS;
		}
	}
	return KPACK_SUCCESS;
}

/* Bitcode behind a wrapper is a part of its file. */
static kpack_error_t unwrap(struct kp_source *src, struct kpackx_error *why)
{
	uint8_t b[16];

	KP_TRY(kp_source_read(src, 0, b, sizeof(b), why));
	if (kp_le32(b) == 0x0b17c0de &&
	    !kp_source_sub(src, kp_le32(b + 8), kp_le32(b + 12), src))
		return lies(why, kp_le32(b + 8));
	KP_TRY(kp_source_read(src, 0, b, 4, why));
	if (memcmp(b, "BC\xc0\xde", 4) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no bitcode");
	return KPACK_SUCCESS;
}

kpack_error_t kp_bitcode_symbols(const struct kp_source *src, struct kp_symbols *out,
				 struct kpackx_error *why)
{
	uint8_t *table = NULL, *strings = NULL;
	size_t table_size = 0, strings_size = 0;
	struct block symtab, strtab;
	struct kp_source code = *src;
	struct kp_window w;
	kpack_error_t err;

	KP_TRY(unwrap(&code, why));
	kp_window_init(&w, &code);
	KP_TRY(find_blocks(&w, &symtab, &strtab, why));
	if (!strtab.size)
		return KPACK_SUCCESS;
	err = read_blob(&w, &symtab, &table, &table_size, why);
	if (!err)
		err = read_blob(&w, &strtab, &strings, &strings_size, why);
	if (!err)
		err = put_table((struct kp_span){table, table_size},
				(struct kp_span){strings, strings_size}, out, why);
	free(table);
	free(strings);
	return err;
}
