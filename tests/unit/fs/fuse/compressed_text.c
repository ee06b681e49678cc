/* SPDX-License-Identifier: MIT */
/* Texts that are kept compressed read back as they were written. */
#include "fs/fuse/compressed_text.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

#define BLOCK (128 << 10)

static char bytes[5 * BLOCK + 77]; /* partly incompressible */

static void try(size_t size, size_t step)
{
	struct compressed_text *t = compressed_text_new();
	FILE *f = compressed_text_open(t);
	char *have = malloc(size + 1);

	assert_non_null(f);
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < step ? size - at : step;
		assert_int_equal(fwrite(bytes + at, 1, n, f), n);
	}
	assert_int_equal(fclose(f), 0);
	assert_int_equal(compressed_text_size(t), size);
	for (size_t at = 0; at <= size; at += 50001)
		for (size_t n = size - at;; n /= 7) {
			assert_true(compressed_text_read(t, at, have, n));
			assert_memory_equal(have, bytes + at, n);
			if (n == 0)
				break;
		}
	free(have);
	compressed_text_free(t);
}

TEST(test_sizes)
{
	static const size_t sizes[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, sizeof(bytes)};
	unsigned x = 1;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		x = x * 1103515245 + 12345;
		bytes[i] = (char)(i / BLOCK % 2 ? x >> 16 : i / 100);
	}
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (size_t step = 1000; step < 4 * BLOCK; step *= 7)
			try(sizes[i], step);
}
