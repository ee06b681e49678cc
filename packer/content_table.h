/* SPDX-License-Identifier: MIT */
/* Which ordinal holds which content: a hash table for finding duplicates. */
#ifndef CONTENT_TABLE_H
#define CONTENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What makes two objects candidates for sharing their stored bytes. */
struct content {
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	uint64_t size;
	uint64_t chunk; /* frame layout */
};

struct content_table {
	struct content_row *rows;
	size_t size, used;
};

/* Ordinal of the first content added that equals C. */
bool content_table_find(const struct content_table *t, const struct content *c,
			uint32_t *ordinal);
/* false: out of memory. */
bool content_table_add(struct content_table *t, const struct content *c,
		       uint32_t ordinal);
void content_table_fini(struct content_table *t);

#endif
