/* SPDX-License-Identifier: MIT */
/*
 * Four rows are followed at a time.  Three entries in equal steps make a row; a key that
 * fits none begins one, in place of the row that was not used for the longest time.
 */
#include "ahead.h"
#include <stddef.h>

/* A row of fewer entries may be chance. */
#define LONG 3

/* The greatest step, and the most steps between two reads that belong to the same row. */
#define STEP_MAX 64
#define STEPS 8

/* Whether KEY lies in ROW, near the entry that is read last. */
static bool is_in_row(const struct ahead_row *row, uint64_t key)
{
	uint64_t distance = key > row->last ? key - row->last : row->last - key;

	if (!row->last)
		return false;
	if (!row->step)
		return key == row->last || (key > row->last && distance <= STEP_MAX);
	return distance % row->step == 0 && distance / row->step <= STEPS;
}

static struct ahead_row *find_row(struct ahead *a, uint64_t key)
{
	for (unsigned i = 0; i < AHEAD_ROWS; i++)
		if (is_in_row(&a->rows[i], key))
			return &a->rows[i];
	return NULL;
}

/* A row that begins with KEY, in place of the one that was not used for the longest time. */
static void begin_row(struct ahead *a, uint64_t key)
{
	struct ahead_row *oldest = a->rows;

	for (unsigned i = 1; i < AHEAD_ROWS; i++)
		if (a->rows[i].used < oldest->used)
			oldest = &a->rows[i];
	*oldest = (struct ahead_row){.last = key, .used = ++a->uses, .length = 1};
}

bool ahead_note(struct ahead *a, uint64_t key, bool begins, struct ahead_row *out)
{
	struct ahead_row *row = find_row(a, key);

	a->read[key % AHEAD_READ] = key;
	if (!row && begins)
		begin_row(a, key);
	if (!row)
		return false;
	row->used = ++a->uses;
	if (key > row->last && begins) {
		if (!row->step)
			row->step = (unsigned)(key - row->last);
		row->last = key;
		row->length++;
	}
	*out = *row;
	return row->length >= LONG;
}

bool ahead_claim(struct ahead *a, const struct ahead_row *row, uint64_t key)
{
	struct ahead_row *now = a->rows;

	while (now < a->rows + AHEAD_ROWS && now->last != row->last)
		now++;
	if (now == a->rows + AHEAD_ROWS || key < now->claimed ||
	    a->read[key % AHEAD_READ] == key)
		return false;
	now->claimed = key;
	return true;
}
