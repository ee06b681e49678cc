/* SPDX-License-Identifier: MIT */
/* Small pieces of memory that are freed together. */
#ifndef KP_CORE_CUTILE_ARENA_H
#define KP_CORE_CUTILE_ARENA_H

#include <stddef.h>
#include "core/base/span.h"

struct kp_arena_block;

/* A zeroed arena is empty. */
struct kp_arena {
	struct kp_arena_block *blocks; /* the newest first */
	size_t left;                   /* unused bytes at the end of the newest block */
};

/* Allocate SIZE zeroed bytes, aligned for any type; NULL: out of memory. */
void *kp_arena_alloc(struct kp_arena *a, size_t size);

/* Copy S and append a NUL; NULL: out of memory. */
char *kp_arena_copy(struct kp_arena *a, struct kp_span s);

void kp_arena_fini(struct kp_arena *a);

#endif
