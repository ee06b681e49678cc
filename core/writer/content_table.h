/* SPDX-License-Identifier: MIT */
/* Which ordinal holds which content: a hash table for finding duplicates. */
#ifndef KP_CORE_WRITER_CONTENT_TABLE_H
#define KP_CORE_WRITER_CONTENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What makes two objects candidates for sharing their stored bytes. */
struct kp_content {
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	uint64_t size;
	uint64_t chunk; /* frame layout */
};

struct kp_content_table {
	struct kp_content_row *rows;
	size_t size, used;
};

/* Ordinal of the first content added that equals C. */
bool kp_content_table_find(const struct kp_content_table *t, const struct kp_content *c,
			   uint32_t *ordinal);
/* false: out of memory. */
bool kp_content_table_add(struct kp_content_table *t, const struct kp_content *c,
			  uint32_t ordinal);
void kp_content_table_fini(struct kp_content_table *t);

#endif
