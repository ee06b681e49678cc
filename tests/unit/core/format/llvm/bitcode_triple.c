/* SPDX-License-Identifier: MIT */
/* The triple in bitcode that is written here bit by bit, truncated and damaged. */
#include "core/format/llvm/bitcode_triple.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

struct writer {
	uint8_t bytes[4096];
	size_t pos; /* in bits */
};

static void put(struct writer *w, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++, w->pos++)
		if (value >> i & 1)
			w->bytes[w->pos / 8] |= (uint8_t)(1u << w->pos % 8);
}

static void put_vbr(struct writer *w, uint64_t value, unsigned n)
{
	uint64_t more = UINT64_C(1) << (n - 1);

	for (; value >= more; value >>= n - 1)
		put(w, (value & (more - 1)) | more, n);
	put(w, value, n);
}

static void align(struct writer *w)
{
	w->pos = (w->pos + 31) / 32 * 32;
}

/*
 * Begin a block whose surroundings use abbreviation IDs of OUTER bits; returns the offset
 * for its size.
 */
static size_t begin(struct writer *w, unsigned outer, unsigned number, unsigned width)
{
	put(w, 1, outer);
	put_vbr(w, number, 8);
	put_vbr(w, width, 4);
	align(w);
	w->pos += 32;
	return w->pos;
}

static void end(struct writer *w, size_t from, unsigned width)
{
	put(w, 0, width);
	align(w);
	kp_put_le32(w->bytes + from / 8 - 4, (uint32_t)((w->pos - from) / 32));
}

static void record(struct writer *w, unsigned width, unsigned code, const char *text)
{
	put(w, 3, width);
	put_vbr(w, code, 6);
	put_vbr(w, strlen(text), 6);
	for (const char *p = text; *p; p++)
		put_vbr(w, (uint8_t)*p, 6);
}

/* An abbreviation: a literal, a fixed-width field, an array of characters. */
static void definition(struct writer *w, unsigned width)
{
	put(w, 2, width);
	put_vbr(w, 4, 5);
	put(w, 1, 1);
	put_vbr(w, 1000, 8);
	put(w, 0, 1);
	put(w, 1, 3);
	put_vbr(w, 40, 5);
	put(w, 0, 1);
	put(w, 3, 3);
	put(w, 0, 1);
	put(w, 4, 3);
}

static void write_module(struct writer *w, unsigned width, const char *triple)
{
	size_t at, inner;

	*w = (struct writer){.bytes = {'B', 'C', 0xc0, 0xde}, .pos = 32};
	at = begin(w, 2, 13, 5);
	record(w, 5, 1, "LLVM of the test");
	end(w, at, 5);
	at = begin(w, 2, 8, width);
	record(w, width, 1, "\2");
	inner = begin(w, width, 17, 4);
	record(w, 4, 2, "not the triple: in another block");
	end(w, inner, 4);
	definition(w, width);
	if (triple)
		record(w, width, 2, triple);
	record(w, width, 3, "e-m:e");
	end(w, at, width);
}

static bool triple_of(const void *data, size_t size, char out[KP_TRIPLE_MAX])
{
	struct kp_source src = kp_source_memory(data, size);

	return kp_bitcode_triple(&src, out);
}

TEST(triples_are_found_for_all_widths)
{
	char out[KP_TRIPLE_MAX];
	struct writer w;

	for (unsigned width = 2; width <= 32; width++) {
		write_module(&w, width, "amdgcn-amd-amdhsa");
		assert_true(triple_of(w.bytes, w.pos / 8, out));
		assert_string_equal(out, "amdgcn-amd-amdhsa");
	}
	write_module(&w, 3, "");
	assert_true(triple_of(w.bytes, w.pos / 8, out));
	assert_string_equal(out, "");
}

TEST(what_is_no_triple_is_none)
{
	char out[KP_TRIPLE_MAX], longer[400];
	struct writer w;

	write_module(&w, 3, NULL);
	assert_false(triple_of(w.bytes, w.pos / 8, out));
	assert_false(triple_of("BC\xc0\xde", 4, out));
	assert_false(triple_of("", 0, out));
	/* invalid characters are replaced, and a long triple is truncated */
	write_module(&w, 3, "a\nb");
	assert_true(triple_of(w.bytes, w.pos / 8, out));
	assert_string_equal(out, "a?b");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	write_module(&w, 3, longer);
	assert_true(triple_of(w.bytes, w.pos / 8, out));
	assert_int_equal(strlen(out), KP_TRIPLE_MAX - 1);
}

/* On the heap, so that a sanitizer detects reads past the end. */
TEST(damage_is_no_triple_and_no_harm)
{
	char out[KP_TRIPLE_MAX];
	struct writer w;
	size_t size;

	write_module(&w, 3, "x86_64-unknown-linux-gnu");
	size = w.pos / 8;
	for (size_t n = 0; n < size; n++) {
		uint8_t *part = malloc(n + 1);

		assert_non_null(part);
		memcpy(part, w.bytes, n);
		if (triple_of(part, n, out))
			assert_string_equal(out, "x86_64-unknown-linux-gnu");
		free(part);
	}
	for (size_t i = 0; i < 8 * size; i++) {
		w.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		triple_of(w.bytes, size, out);
		w.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}
