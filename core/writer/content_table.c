/* SPDX-License-Identifier: MIT */
#include "content_table.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/span.h"

struct kp_content_row {
	struct kp_content content;
	uint32_t ordinal;
	bool used;
};

static bool same_content(const struct kp_content *a, const struct kp_content *b)
{
	return a->size == b->size && a->chunk == b->chunk &&
	       memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

/* The row of C, or the free row where it belongs.  The table always has a free row. */
static struct kp_content_row *probe_row(struct kp_content_row *rows, size_t size,
					const struct kp_content *c)
{
	size_t at = kp_le64(c->hash) & (size - 1);

	while (rows[at].used && !same_content(&rows[at].content, c))
		at = (at + 1) & (size - 1);
	return &rows[at];
}

static bool grow_table(struct kp_content_table *t)
{
	size_t size = t->size ? 2 * t->size : 256;
	struct kp_content_row *rows;

	if (2 * t->used < t->size)
		return true;
	rows = calloc(size, sizeof(*rows));
	if (!rows)
		return false;
	for (size_t i = 0; i < t->size; i++)
		if (t->rows[i].used)
			*probe_row(rows, size, &t->rows[i].content) = t->rows[i];
	free(t->rows);
	t->rows = rows;
	t->size = size;
	return true;
}

bool kp_content_table_find(const struct kp_content_table *t, const struct kp_content *c,
			   uint32_t *ordinal)
{
	struct kp_content_row *row = t->size ? probe_row(t->rows, t->size, c) : NULL;

	if (!row || !row->used)
		return false;
	*ordinal = row->ordinal;
	return true;
}

bool kp_content_table_add(struct kp_content_table *t, const struct kp_content *c,
			  uint32_t ordinal)
{
	struct kp_content_row *row;

	if (!grow_table(t))
		return false;
	row = probe_row(t->rows, t->size, c);
	if (!row->used) {
		*row = (struct kp_content_row){*c, ordinal, true};
		t->used++;
	}
	return true;
}

void kp_content_table_fini(struct kp_content_table *t)
{
	free(t->rows);
	*t = (struct kp_content_table){0};
}
