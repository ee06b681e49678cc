/* SPDX-License-Identifier: MIT */
/*
 * Growing arrays, and large heap blocks in huge pages: with small pages a table of 74 MB
 * would cost 18,000 page faults.
 */
#ifndef KP_CORE_BASE_ALLOC_H
#define KP_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Make room for item number COUNT in the array that *ARRAY (a pointer of any type) points
 * to, which has room for *CAP items of ITEM bytes.  The array doubles, so that appending
 * is linear.  false: out of memory.
 */
bool kp_grow(void *array, size_t count, size_t *cap, size_t item);

/* As malloc; the caller uses free.  Pages that are never touched cost nothing. */
void *kp_large_alloc(size_t size);

/* As calloc; all of a block in huge pages is touched. */
void *kp_large_zalloc(size_t count, size_t item);

/* Give the memory after SIZE bytes back; returns the block, which may have moved. */
void *kp_large_trim(void *block, size_t size);

#endif
