/* SPDX-License-Identifier: MIT */
#include "fs/content/ahead.h"
#include "tests/unit/unit.h"

#define ARCHIVE (UINT64_C(7) << 32)

static struct ahead a;
static struct ahead_row row;

static int setup(void **state)
{
	a = (struct ahead){0};
	row = (struct ahead_row){0};
	return 0;
}

static bool begin(uint64_t key)
{
	return ahead_note(&a, key, true, &row);
}

TEST(three_in_order_are_a_row, setup)
{
	assert_false(begin(ARCHIVE + 5));
	assert_false(begin(ARCHIVE + 6));
	assert_true(begin(ARCHIVE + 7));
	assert_int_equal(row.last, ARCHIVE + 7);
	assert_int_equal(row.step, 1);
}

TEST(a_row_has_one_step, setup)
{
	assert_false(begin(ARCHIVE + 10));
	assert_false(begin(ARCHIVE + 13));
	assert_false(begin(ARCHIVE + 17)); /* of another row */
	assert_true(begin(ARCHIVE + 16));
	assert_int_equal(row.step, 3);
	assert_true(begin(ARCHIVE + 22)); /* 19 is left out */
	assert_int_equal(row.last, ARCHIVE + 22);
	assert_int_equal(row.step, 3);
}

TEST(other_orders_are_no_rows, setup)
{
	for (uint64_t i = 100; i > 0; i--)
		assert_false(begin(ARCHIVE + i));
	setup(state);
	for (uint64_t i = 0; i < 100; i++)
		assert_false(begin(ARCHIVE + 1000 * i));
	setup(state);
	for (uint64_t i = 0; i < 100; i++) /* one entry of each archive */
		assert_false(begin(i << 32));
	setup(state);
	for (uint64_t i = 0; i < 100; i++)
		assert_false(begin(ARCHIVE + 5));
}

/* Bytes in the middle of an entry are of the row that the entry is in, and begin none. */
TEST(the_middle_of_an_entry, setup)
{
	for (uint64_t i = 0; i < 10; i++)
		assert_false(ahead_note(&a, ARCHIVE + i, false, &row));
	for (uint64_t i = 0; i < 3; i++)
		begin(ARCHIVE + i);
	assert_true(ahead_note(&a, ARCHIVE + 2, false, &row));
	assert_true(ahead_note(&a, ARCHIVE + 3, false, &row));
	assert_int_equal(row.last, ARCHIVE + 2);
}

/* Two readers share the entries: one of them is behind. */
TEST(readers_who_share_a_row, setup)
{
	for (uint64_t i = 0; i < 4; i++)
		begin(ARCHIVE + i);
	assert_true(ahead_note(&a, ARCHIVE + 1, false, &row));
	assert_int_equal(row.last, ARCHIVE + 3);
	assert_true(begin(ARCHIVE + 4));
	assert_int_equal(row.length, 5);
}

TEST(several_rows, setup)
{
	for (uint64_t i = 0; i < 50; i++)
		for (uint64_t r = 0; r < AHEAD_ROWS; r++)
			assert_int_equal(begin((r << 32) + 1 + i * (r + 1)), i >= 2);
	for (uint64_t r = 0; r < AHEAD_ROWS; r++)
		assert_int_equal(a.rows[r].step, r + 1);
	/* a new row takes the place of the oldest */
	for (uint64_t i = 0; i < 3; i++)
		begin((UINT64_C(9) << 32) + i);
	assert_false(begin(1 + 50));
	assert_false(begin(UINT64_C(3) << 32 | (1 + 51 * 4 + 1)));
}

TEST(an_entry_is_claimed_once, setup)
{
	struct ahead_row at;

	for (uint64_t i = 0; i < 3; i++)
		begin(ARCHIVE + i);
	at = row;
	assert_true(ahead_claim(&a, &at, ARCHIVE + 3));
	assert_true(ahead_claim(&a, &at, ARCHIVE + 3)); /* to go on with it */
	assert_true(ahead_claim(&a, &at, ARCHIVE + 5));
	assert_false(ahead_claim(&a, &at, ARCHIVE + 4));
	begin(ARCHIVE + 3);
	assert_false(ahead_claim(&a, &at, ARCHIVE + 6)); /* the row went on meanwhile */
	assert_true(ahead_claim(&a, &row, ARCHIVE + 6));
}

TEST(what_was_read_is_not_claimed, setup)
{
	ahead_note(&a, ARCHIVE + 5, false, &row);
	for (uint64_t i = 0; i < 3; i++)
		begin(ARCHIVE + i);
	assert_true(ahead_claim(&a, &row, ARCHIVE + 4));
	assert_false(ahead_claim(&a, &row, ARCHIVE + 5));
	assert_true(ahead_claim(&a, &row, ARCHIVE + 6));
}
