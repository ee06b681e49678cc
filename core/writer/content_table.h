/* SPDX-License-Identifier: MIT */
/* A hash table from contents to ordinals, for finding duplicates. */
#ifndef KP_CORE_WRITER_CONTENT_TABLE_H
#define KP_CORE_WRITER_CONTENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/slots.h"

/* The key: objects with equal keys may share their stored bytes. */
struct kp_content {
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	uint64_t size;
	uint64_t chunk; /* frame layout */
};

struct kp_content_table {
	struct kp_content_row *rows;
	size_t n, cap;
	struct kp_slots slots; /* of the rows */
};

/* Find the ordinal of the first added content that equals C; false: none. */
bool kp_content_table_find(const struct kp_content_table *t, const struct kp_content *c,
			   uint32_t *ordinal);
/* Add C, unless an equal content exists.  false: out of memory. */
bool kp_content_table_add(struct kp_content_table *t, const struct kp_content *c,
			  uint32_t ordinal);
void kp_content_table_fini(struct kp_content_table *t);

#endif
