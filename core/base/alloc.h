/* SPDX-License-Identifier: MIT */
/*
 * Growing arrays, and large heap blocks in huge pages: a table of 74 MB would else
 * cost 18,000 page faults.
 */
#ifndef KP_CORE_BASE_ALLOC_H
#define KP_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Make room for item number COUNT in the array that *ARRAY (a pointer of any type) points to,
 * of *CAP items of ITEM bytes.  Doubling keeps appending linear.  false: out of memory.
 */
bool kp_grow(void *array, size_t count, size_t *cap, size_t item);

/* malloc; freed with free.  Pages that are never touched cost nothing. */
void *kp_large_alloc(size_t size);

/* Give back what lies behind SIZE bytes; returns the block, which may have moved. */
void *kp_large_trim(void *block, size_t size);

#endif
