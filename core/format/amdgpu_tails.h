/* SPDX-License-Identifier: MIT */
/*
 * A string table in which a string that ends another one is not stored again, laid out as
 * LLVM does it: the same strings give the same bytes.
 */
#ifndef KP_CORE_FORMAT_AMDGPU_TAILS_H
#define KP_CORE_FORMAT_AMDGPU_TAILS_H

#include "core/base/errors.h"

struct kp_tail {
	const char *text; /* borrowed; ends in a NUL */
	uint32_t size;    /* without the NUL */
	uint32_t at;      /* its offset in the table; set by kp_tails_place */
};

/* All zero is an empty list. */
struct kp_tails {
	struct kp_tail *items; /* in the order in which they were added */
	size_t n, cap;
	uint64_t all;  /* bytes of all strings */
	uint64_t size; /* bytes of the table; set by kp_tails_place */
};

/*
 * Add TEXT, and set *NUMBER to its item.  OUT_OF_MEMORY; INVALID_FORMAT: the strings have
 * more than 2 * KP_SYMBOL_NAMES_MAX bytes, as overlapping ones of a hostile table.
 */
kpack_error_t kp_tails_add(struct kp_tails *t, const char *text, size_t *number,
			   struct kpackx_error *why);

/* Decide the offsets.  OUT_OF_MEMORY is the only error. */
kpack_error_t kp_tails_place(struct kp_tails *t, struct kpackx_error *why);

/* Write the table, `size` bytes, to OUT. */
void kp_tails_write(const struct kp_tails *t, uint8_t *out);

void kp_tails_fini(struct kp_tails *t);

#endif
