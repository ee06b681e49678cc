/* SPDX-License-Identifier: MIT */
#include "core/format/llvm/bitcode_embedded.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

/* Bitcode that is written bit by bit. */
struct bits {
	uint8_t data[1024];
	size_t pos;
	size_t begin[4], depth; /* offsets of the open blocks' length fields */
};

static const char image[] = "\x10\xff\x10\xad image \xff\0end";
#define IMAGE_SIZE (sizeof(image) - 1)

static void put(struct bits *b, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++, b->pos++)
		b->data[b->pos / 8] |= (uint8_t)((v >> i & 1) << b->pos % 8);
}

static void put_vbr(struct bits *b, uint64_t v, unsigned n)
{
	for (; v >> (n - 1); v >>= n - 1)
		put(b, (v & ((1U << (n - 1)) - 1)) | 1U << (n - 1), n);
	put(b, v, n);
}

static void align(struct bits *b)
{
	b->pos = (b->pos + 31) / 32 * 32;
}

/*
 * Enter block NUMBER; the surrounding block uses abbreviation IDs of WIDTH bits, this one
 * of 4.
 */
static void enter(struct bits *b, unsigned width, unsigned number)
{
	put(b, 1, width);
	put_vbr(b, number, 8);
	put_vbr(b, 4, 4);
	align(b);
	b->begin[b->depth++] = b->pos;
	b->pos += 32;
}

static void leave(struct bits *b)
{
	size_t at = b->begin[--b->depth];

	put(b, 0, 4);
	align(b);
	b->data[at / 8] = (uint8_t)((b->pos - at - 32) / 32);
}

/* Define record CODE as an array of FIXED(8): literal CODE, array, fixed 8. */
static void define(struct bits *b, unsigned code)
{
	put(b, 2, 4);
	put_vbr(b, 3, 5);
	put(b, 1, 1);
	put_vbr(b, code, 8);
	put(b, 0, 1);
	put(b, 3, 3);
	put(b, 0, 1);
	put(b, 1, 3);
	put_vbr(b, 8, 5);
}

static void put_defined(struct bits *b, unsigned number, const char *text, size_t size)
{
	put(b, number, 4);
	put_vbr(b, size, 6);
	for (size_t i = 0; i < size; i++)
		put(b, (uint8_t)text[i], 8);
}

static void put_plain(struct bits *b, unsigned code, const char *text, size_t size)
{
	put(b, 3, 4);
	put_vbr(b, code, 6);
	put_vbr(b, size, 6);
	for (size_t i = 0; i < size; i++)
		put_vbr(b, (uint8_t)text[i], 6);
}

static void put_magic(struct bits *b)
{
	memset(b, 0, sizeof(*b));
	put(b, 0xdec04342, 32);
}

/*
 * All kinds at once: abbreviations for all constants blocks, own abbreviations, plain
 * records.
 */
static void build(struct bits *b)
{
	put_magic(b);
	enter(b, 2, 13); /* identification block: skipped */
	put_plain(b, 1, "LLVM", 4);
	leave(b);
	enter(b, 2, 8);
	enter(b, 4, 0);
	put_plain(b, 1, "\x0e", 1); /* for another block */
	define(b, 8);
	put_plain(b, 1, "\x0b", 1); /* for constants blocks */
	define(b, 8);
	leave(b);
	enter(b, 4, 11);
	put_plain(b, 1, "\1", 1);
	put_defined(b, 4, "text", 4);
	put_defined(b, 4, image, IMAGE_SIZE);
	define(b, 9);
	put_defined(b, 5, image, IMAGE_SIZE);
	put_plain(b, 22, image, IMAGE_SIZE);
	put_plain(b, 7, image, IMAGE_SIZE); /* an aggregate: has no bytes */
	put_plain(b, 8, "\x10\xff\x10", 3);
	leave(b);
	put_plain(b, 8, image, IMAGE_SIZE); /* not a constant */
	leave(b);
}

struct seen {
	size_t count, size;
	kpack_error_t answer;
};

static kpack_error_t found(void *arg, struct kp_span bytes, struct kpackx_error *why)
{
	struct seen *seen = arg;

	assert_true(bytes.size >= IMAGE_SIZE);
	assert_memory_equal(bytes.data, image, IMAGE_SIZE);
	seen->count++;
	seen->size += bytes.size;
	return seen->answer;
}

static kpack_error_t look(const struct bits *b, size_t size, struct seen *seen)
{
	uint8_t *copy = malloc(size + !size);
	struct kpackx_error why;
	kpack_error_t err;

	assert_non_null(copy);
	memcpy(copy, b->data, size);
	err = kp_bitcode_embedded((struct kp_span){copy, size}, found, seen, &why);
	free(copy);
	return err;
}

TEST(finds_arrays_of_bytes)
{
	struct seen seen = {0};
	struct bits b;

	build(&b);
	assert_int_equal(look(&b, b.pos / 8, &seen), KPACK_SUCCESS);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.size, 3 * IMAGE_SIZE + 1);
	/* a failure of the callback ends the walk */
	seen = (struct seen){.answer = KPACK_ERROR_IO_ERROR};
	assert_int_equal(look(&b, b.pos / 8, &seen), KPACK_ERROR_IO_ERROR);
	assert_int_equal(seen.count, 1);
}

TEST(looks_into_wrappers)
{
	struct seen seen = {0};
	struct bits b, w;
	size_t size;

	build(&b);
	size = b.pos / 8;
	memset(&w, 0, sizeof(w));
	put(&w, 0x0b17c0de, 32);
	put(&w, 0, 32);
	put(&w, 24, 32);
	put(&w, size, 32);
	memcpy(w.data + 24, b.data, size);
	assert_int_equal(look(&w, 24 + size + 8, &seen), KPACK_SUCCESS);
	assert_int_equal(seen.count, 3);
	assert_int_equal(look(&w, 24 + size - 4, &seen), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(look(&w, 12, &seen), KPACK_ERROR_INVALID_FORMAT);
}

static kpack_error_t ignore(void *arg, struct kp_span bytes, struct kpackx_error *why)
{
	(void)arg, (void)bytes, (void)why;
	return KPACK_SUCCESS;
}

TEST(refuses_damaged_code)
{
	struct seen seen = {0};
	struct bits b;

	build(&b);
	for (size_t size = 0; size < 4; size++)
		assert_int_equal(look(&b, size, &seen), KPACK_ERROR_INVALID_FORMAT);
	for (size_t size = b.pos / 8 - 8; size > 40; size -= 4)
		assert_int_equal(look(&b, size, &seen), KPACK_ERROR_INVALID_FORMAT);
	for (size_t i = 32; i < b.pos; i++) {
		struct bits bad = b;

		bad.data[i / 8] ^= (uint8_t)(1 << i % 8);
		seen = (struct seen){0};
		/* may fail, but must not crash or hang */
		(void)kp_bitcode_embedded((struct kp_span){bad.data, b.pos / 8}, ignore,
					  NULL, NULL);
	}
}

/* Undefined abbreviation IDs, arrays of elements without bits, invalid widths. */
TEST(refuses_endless_records)
{
	struct seen seen = {0};
	struct bits b;

	put_magic(&b);
	enter(&b, 2, 8);
	put(&b, 4, 4);
	leave(&b);
	assert_int_equal(look(&b, b.pos / 8, &seen), KPACK_ERROR_INVALID_FORMAT);

	put_magic(&b);
	enter(&b, 2, 8);
	put(&b, 2, 4);
	put_vbr(&b, 3, 5);
	put(&b, 1, 1);
	put_vbr(&b, 8, 8);
	put(&b, 0, 1);
	put(&b, 3, 3);
	put(&b, 0, 1);
	put(&b, 1, 3);
	put_vbr(&b, 0, 5);
	put(&b, 4, 4);
	put_vbr(&b, UINT64_MAX, 6);
	leave(&b);
	assert_int_equal(look(&b, b.pos / 8, &seen), KPACK_ERROR_INVALID_FORMAT);
}
