/* SPDX-License-Identifier: MIT */
/* String tables with shared ends, compared with what LLVM makes of the same strings. */
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/bounds.h"
#include "core/format/amdgpu/tails.h"

static struct kpackx_error why;

TEST(shares_ends)
{
	/* as in the .strtab that llvm-mc makes of symbols with these names */
	static const char table[] = "\0xfoo\0barfoo\0abc";
	static const char *const names[] = {"foo",  "barfoo", "",  "abc",
					    "xfoo", "foo",    "c", "bc"};
	enum { COUNT = COUNT(names) };
	struct kp_tails t = {0};
	char out[sizeof(table)];
	size_t number;

	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(kp_tails_add(&t, names[i], &number, &why), 0);
	assert_int_equal(number, COUNT - 1);
	assert_int_equal(kp_tails_place(&t, &why), 0);
	assert_int_equal(t.size, sizeof(table));
	kp_tails_write(&t, (uint8_t *)out);
	assert_memory_equal(out, table, sizeof(table));
	for (size_t i = 0; i < COUNT; i++)
		assert_string_equal(out + t.items[i].at, names[i]);
	kp_tails_fini(&t);
}

TEST(refuses_overlapping_names)
{
	size_t size = KP_SYMBOL_NAMES_MAX / 4, number;
	char *text = malloc(size + 1);
	struct kp_tails t = {0};
	kpack_error_t err = 0;

	assert_non_null(text);
	memset(text, 'a', size);
	text[size] = '\0';
	for (size_t i = 0; i < 16 && !err; i++)
		err = kp_tails_add(&t, text + i, &number, &why);
	assert_int_equal(err, KPACK_ERROR_INVALID_FORMAT);
	kp_tails_fini(&t);
	free(text);
}
