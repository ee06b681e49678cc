/* SPDX-License-Identifier: MIT */
#include "tests/unit/counted_slots.h"
#include "core/toc/string_table.c"
#include "tests/unit/unit.h"

enum { N = 20000, SIZE = 32 };

/* N texts whose hashes without a key are equal get their numbers in few steps. */
TEST(texts_with_equal_hashes_are_found)
{
	static uint8_t texts[N][SIZE];
	struct kp_string_table t = {0};
	struct kp_string_chain chain = {0};

	for (uint32_t i = 0; i < N; i++) {
		kp_put_le64(texts[i], XXH3_WORD_0);
		kp_put_le32(texts[i] + 8, i);
		/* or the test tests nothing */
		assert_int_equal(kp_hash64(texts[i], SIZE, 0),
				 kp_hash64(texts[0], SIZE, 0));
	}
	for (uint32_t i = 0; i < 2 * N; i++) {
		struct kp_span text = {texts[i % N], SIZE};
		uint16_t number;

		assert_int_equal(kp_string_next(&t, &chain, text, &number),
				 KP_STRINGS_OK);
		assert_int_equal(number, i % N);
	}
	assert_int_equal(t.n, N);
	assert_true(steps < 8 * N);
	kp_string_table_fini(&t);
}
