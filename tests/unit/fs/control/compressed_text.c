/* SPDX-License-Identifier: MIT */
/* Texts that are kept compressed read back as they were written. */
#include "fs/control/compressed_text.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

#define BLOCK (128 << 10)

/* SIZE bytes, partly incompressible. */
static char *bytes_new(size_t size)
{
	char *bytes = malloc(size + 1);
	unsigned x = 1;

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++) {
		x = x * 1103515245 + 12345;
		bytes[i] = (char)(i / BLOCK % 2 ? x >> 16 : i / 100);
	}
	return bytes;
}

static struct compressed_text *written(const char *bytes, size_t size, size_t step)
{
	struct compressed_text *t = compressed_text_new();
	FILE *f = compressed_text_open(t);

	assert_non_null(f);
	for (size_t at = 0; at < size; at += step) {
		size_t n = size - at < step ? size - at : step;

		assert_int_equal(fwrite(bytes + at, 1, n, f), n);
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(compressed_text_size(t), size);
	return t;
}

static void expect(const struct compressed_text *t, const char *want, size_t off,
		   size_t len)
{
	char *have = malloc(len + 1);

	assert_non_null(have);
	assert_true(compressed_text_read(t, off, have, len));
	assert_memory_equal(have, want + off, len);
	free(have);
}

TEST(test_sizes)
{
	static const size_t sizes[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 77};
	static const size_t steps[] = {1000, 4096, BLOCK, 3 * BLOCK};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char *bytes = bytes_new(sizes[i]);

		for (size_t k = 0; k < COUNT(steps); k++) {
			struct compressed_text *t = written(bytes, sizes[i], steps[k]);

			expect(t, bytes, 0, sizes[i]);
			compressed_text_free(t);
		}
		free(bytes);
	}
}

TEST(test_parts)
{
	const size_t size = 4 * BLOCK + 5;
	char *bytes = bytes_new(size);
	struct compressed_text *t = written(bytes, size, 777);

	for (size_t off = 0; off < size; off += 50001)
		expect(t, bytes, off, size - off < 200000 ? size - off : 200000);
	expect(t, bytes, BLOCK - 1, 2);
	expect(t, bytes, size - 1, 1);
	expect(t, bytes, size, 0);
	compressed_text_free(t);
	free(bytes);
}
