/* SPDX-License-Identifier: MIT */
#include "core/base/order.h"
#include "core/base/span.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

struct item {
	const char *name;
	struct kp_span text;
	uint16_t small;
	uint64_t large;
	uint8_t hash[4];
};

/* Several keys decide one after the other, and numbers of each width are compared as numbers. */
TEST(sorts_by_several_keys)
{
	struct item items[] = {
		{"b", kp_span_str("y"), 1, 1, {0}},
		{"a", kp_span_str("y"), 256, 2, {0}},
		{NULL, kp_span_str("x"), 255, 1ull << 40, {0}},
		{"a", kp_span_str("x"), 3, 0, {0}},
	};
	kp_sort(items, 4, KP_BY_TEXT(struct item, name),
		KP_BY_NUMBER(struct item, small));
	assert_null(items[0].name);
	assert_int_equal(items[1].small, 3);
	assert_int_equal(items[2].small, 256);
	assert_string_equal(items[3].name, "b");
	kp_sort(items, 4, KP_BY_SPAN(struct item, text),
		KP_BY_NUMBER(struct item, large));
	assert_true(items[0].large == 0 && items[1].large == 1ull << 40);
	assert_true(items[2].large == 1 && items[3].large == 2);
	kp_sort((struct item *)NULL, 0, KP_BY_TEXT(struct item, name));
}

/* The first of equals is found, and nothing between or beyond them. */
TEST(finds_the_first_of_equals)
{
	const char *names[] = {"b", "b", "d"};
	const struct {
		const char *name;
		size_t bound;
		int found;
	} rows[] = {{"a", 0, -1}, {"b", 0, 0}, {"c", 2, -1}, {"d", 2, 2}, {"e", 3, -1}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char **found = kp_find(names, 3, &rows[i].name, KP_AS_TEXT);
		assert_int_equal(kp_lower_bound(names, 3, &rows[i].name, KP_AS_TEXT),
				 rows[i].bound);
		assert_ptr_equal(found, rows[i].found < 0 ? NULL : names + rows[i].found);
	}
	struct item item = {.hash = {1, 2, 3, 4}}, probe = {.hash = {1, 2, 3, 5}};
	assert_null(kp_find(&item, 1, &probe, KP_BY_BYTES(struct item, hash)));
	assert_ptr_equal(kp_find(&item, 1, &item, KP_BY_BYTES(struct item, hash)), &item);
}
