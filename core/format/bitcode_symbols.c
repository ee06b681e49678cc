/* SPDX-License-Identifier: MIT */
/*
 * The symbol table at the end of LLVM bitcode.  Block 25 holds one blob, the table; block
 * 23 after it holds another blob, the characters of the names.  The table begins with a
 * header of words; words 7 and 8 are the offset and the number of the symbols.  A symbol
 * has 6 words: offset and size of its name, offset and size of its name in the source, a
 * number, and flags.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "bitstream.h"
#include "symbols.h"

#define BLOCK_STRTAB 23
#define BLOCK_SYMTAB 25

#define HEADER_WORDS 9
#define SYMBOL_SIZE 24

/* Maximum bytes, of any value, after the last block, as in LLVM. */
#define PADDING_MAX 8

/* Bits of a symbol's flags */
#define UNDEFINED (1u << 3)
#define GLOBAL (1u << 10)
#define FORMAT_SPECIFIC (1u << 11)

/* The contents of a block. */
struct part {
	struct kp_source bytes;
	unsigned width;
};

/* ---- blobs ---- */

/* True if the next definition is a literal and a blob. */
static bool is_blob(struct kp_bits *b)
{
	return kp_bits_vbr(b, 5) == 2 && kp_bits_operand(b).encoding == KP_BITS_LITERAL &&
	       kp_bits_operand(b).encoding == KP_BITS_BLOB;
}

/* Go to the blob at the beginning of a block, after its definition. */
static bool find_blob(struct kp_bits *b, unsigned width, uint64_t *size)
{
	if (kp_bits_take(b, width) != KP_BITS_DEFINITION || !is_blob(b) ||
	    kp_bits_take(b, width) != KP_BITS_DEFINED)
		return false;
	*size = kp_bits_blob(b);
	return !b->over && *size <= KP_INDEX_MAX &&
	       kp_range_ok(b->window.src.size, b->pos / 8, *size);
}

/* Read the blob in PART to the heap. */
static kpack_error_t read_blob(const struct part *part, uint8_t **data, size_t *size,
			       struct kpackx_error *why)
{
	struct kp_bits b;
	uint64_t n;

	kp_bits_init(&b, &part->bytes, 0, why);
	if (!find_blob(&b, part->width, &n))
		return b.err ? b.err
			     : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "bitcode: a table's block does not hold a blob");
	*data = malloc((size_t)n + !n);
	if (!*data)
		return kp_fail_memory(why, n, "symbols of bitcode");
	*size = (size_t)n;
	return kp_source_read(&part->bytes, b.pos / 8, *data, (size_t)n, why);
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

/* ---- blocks ---- */

/*
 * Read the next block's header and move after the block.  As LLVM writes them, its number
 * and width are single pieces.
 */
static kpack_error_t read_block(struct kp_bits *b, struct kp_bits_block *block,
				struct kpackx_error *why)
{
	uint64_t at = b->pos / 8;
	bool ok = kp_bits_take(b, 2) == KP_BITS_ENTER;

	if (ok)
		*block = kp_bits_enter(b);
	if (!ok || block->number > 0x7f || block->width > 7 || !kp_bits_holds(b, block))
		return b->err ? b->err
			      : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					"bitcode: no block is at offset %" PRIu64, at);
	b->pos = block->end;
	return KPACK_SUCCESS;
}

static void take_part(const struct kp_bits *b, const struct kp_bits_block *block,
		      struct part *out)
{
	kp_source_sub(&b->window.src, block->begin / 8, (block->end - block->begin) / 8,
		      &out->bytes);
	out->width = (unsigned)block->width;
}

/* Find the first symbol table, and the first block of characters after it. */
static kpack_error_t find_blocks(struct kp_bits *b, struct part *symtab,
				 struct part *strtab, struct kpackx_error *why)
{
	struct kp_bits_block block;

	symtab->bytes.size = strtab->bytes.size = 0;
	while (b->window.src.size - b->pos / 8 > PADDING_MAX) {
		KP_TRY(read_block(b, &block, why));
		if (block.number == BLOCK_SYMTAB && !symtab->bytes.size)
			take_part(b, &block, symtab);
		if (block.number == BLOCK_STRTAB && symtab->bytes.size) {
			take_part(b, &block, strtab);
			return KPACK_SUCCESS;
		}
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_bitcode_symbols(const struct kp_source *src, struct kp_symbols *out,
				 struct kpackx_error *why)
{
	uint8_t *table = NULL, *strings = NULL;
	size_t table_size = 0, strings_size = 0;
	struct part symtab, strtab;
	struct kp_bits b;
	kpack_error_t err;

	KP_TRY(kp_bits_open(&b, src, why));
	KP_TRY(find_blocks(&b, &symtab, &strtab, why));
	if (!strtab.bytes.size)
		return KPACK_SUCCESS;
	err = read_blob(&symtab, &table, &table_size, why);
	if (!err)
		err = read_blob(&strtab, &strings, &strings_size, why);
	if (!err)
		err = put_table((struct kp_span){table, table_size},
				(struct kp_span){strings, strings_size}, out, why);
	free(table);
	free(strings);
	return err;
}
