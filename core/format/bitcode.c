/* SPDX-License-Identifier: MIT */
/*
 * LLVM bitcode (bitcode.h has bitstreams): "BC" C0 DE, plain or in a wrapper; only a
 * wrapper states where it ends.
 *
 *	0   u32   0x0b17c0de
 *	4   u32   version
 *	8   u32   offset of the bitcode
 *	12  u32   its size
 *	16  u32   processor
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

/* ---- bitstreams ---- */

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
static void bits_init(struct kp_bits *b, const struct kp_source *src, uint64_t pos,
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

	KP_TRY(unwrap(src, &code, &end, why));
	KP_TRY(kp_source_read(&code, 0, magic, sizeof(magic), why));
	if (memcmp(magic, raw_magic, sizeof(magic)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no bitcode");
	bits_init(b, &code, 8 * sizeof(magic), why);
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

/* ---- the triple ---- */

enum { BLOCK_MODULE = 8, BLOCK_STRTAB = 23, BLOCK_SYMTAB = 25 };
enum { RECORD_TRIPLE = 2 };

#define TRIPLE_MAX 128

/*
 * Limit of the bits before the triple: a file with a million functions has some 100 KB.
 */
#define TRIPLE_BITS_MAX (UINT64_C(8) << 20)

/*
 * Read the target triple of the first module in SRC, without a wrapper: record 2 of block
 * 8, with one character per value.  Compilers write it without a definition, before
 * records that use definitions.  false: missing, not found, or damaged.
 */
static bool read_triple(const struct kp_source *src, char out[TRIPLE_MAX])
{
	uint64_t code, n, value, width;
	struct kp_bits_block block;
	struct kp_bits b;
	size_t size;

	bits_init(&b, src, 32, NULL);
	b.left = TRIPLE_BITS_MAX;
	do {
		if (kp_bits_take(&b, 2) != KP_BITS_ENTER)
			return false;
		block = kp_bits_enter(&b);
		if (block.number != BLOCK_MODULE)
			b.pos = block.end;
	} while (block.number != BLOCK_MODULE);
	width = block.width;
	while (!b.over && width > 1 && width <= 32) {
		switch (kp_bits_take(&b, (unsigned)width)) {
		case KP_BITS_ENTER:
			b.pos = kp_bits_enter(&b).end;
			break;
		case KP_BITS_DEFINITION:
			n = kp_bits_vbr(&b, 5);
			while (n-- && !b.over)
				kp_bits_operand(&b);
			break;
		case KP_BITS_RECORD:
			code = kp_bits_vbr(&b, 6);
			n = kp_bits_vbr(&b, 6);
			for (size = 0; n-- && !b.over;) {
				value = kp_bits_vbr(&b, 6);
				if (size < TRIPLE_MAX - 1)
					out[size++] = value > 0x20 && value < 0x7f
							      ? (char)value
							      : '?';
			}
			out[size] = '\0';
			if (code == RECORD_TRIPLE)
				return !b.over;
			break;
		default:
			return false;
		}
	}
	return false;
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
 * - to the heap.
 */
static kpack_error_t read_blob(const struct kp_source *src,
			       const struct kp_bits_block *block, struct kp_span *out,
			       struct kpackx_error *why)
{
	unsigned width = (unsigned)block->width;
	struct kp_source bytes;
	struct kp_bits b;
	uint8_t *data;
	uint64_t n;

	kp_source_sub(src, block->begin / 8, (block->end - block->begin) / 8, &bytes);
	bits_init(&b, &bytes, 0, why);
	if (kp_bits_take(&b, width) != KP_BITS_DEFINITION || kp_bits_vbr(&b, 5) != 2 ||
	    kp_bits_operand(&b).encoding != KP_BITS_LITERAL ||
	    kp_bits_operand(&b).encoding != KP_BITS_BLOB ||
	    kp_bits_take(&b, width) != KP_BITS_DEFINED)
		b.over = true;
	n = kp_bits_blob(&b);
	if (b.err)
		return b.err;
	if (b.over || n > KP_INDEX_MAX ||
	    !kp_source_sub(&b.window.src, b.pos / 8, n, &bytes))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "bitcode: a table's block does not hold a blob");
	KP_TRY(kp_source_load(&bytes, KP_INDEX_MAX, "symbols of bitcode", &data, why));
	*out = (struct kp_span){data, (size_t)n};
	return KPACK_SUCCESS;
}

static kpack_error_t visit_table(struct kp_span table, struct kp_span strings,
				 kpack_error_t (*found)(void *arg, struct kp_span name,
							struct kpackx_error *why),
				 void *arg, struct kpackx_error *why)
{
	struct kp_span symbols, name;
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

kpack_error_t kp_bitcode_symbols(const struct kp_source *src,
				 kpack_error_t (*found)(void *arg, struct kp_span name,
							struct kpackx_error *why),
				 void *arg, struct kpackx_error *why)
{
	struct kp_bits_block block, symtab = {0}, strtab = {0};
	struct kp_span table = {0}, strings = {0};
	struct kp_bits b;
	kpack_error_t err;

	KP_TRY(kp_bits_open(&b, src, why));
	/* the first symbol table, and the first block of characters after it */
	while (!strtab.end && b.window.src.size - b.pos / 8 > PADDING_MAX) {
		uint64_t at = b.pos / 8;
		bool ok = kp_bits_take(&b, 2) == KP_BITS_ENTER;

		if (ok)
			block = kp_bits_enter(&b);
		/* as LLVM writes them, its number and width are single pieces */
		if (!ok || block.number > 0x7f || block.width > 7 ||
		    !kp_bits_holds(&b, &block))
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
	err = read_blob(&b.window.src, &symtab, &table, why);
	if (!err)
		err = read_blob(&b.window.src, &strtab, &strings, why);
	if (!err)
		err = visit_table(table, strings, found, arg, why);
	free((void *)table.data);
	free((void *)strings.data);
	return err;
}

/* ---- the format ---- */

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

static kpack_error_t describe_bitcode(const struct kp_source *src, struct kp_object *out,
				      struct kpackx_error *why)
{
	char triple[TRIPLE_MAX];
	struct kp_source code;
	uint64_t end;

	KP_TRY(unwrap(src, &code, &end, why));
	if (!read_triple(&code, triple))
		return KPACK_SUCCESS;
	return kp_pairs_print(&out->facts, why, "triple", "%s", triple);
}

const struct kp_format kp_format_bitcode = {
	.name = "bitcode",
	.type = "bc",
	.probe = probe_bitcode,
	.parse = parse_bitcode,
	.describe = describe_bitcode,
};
