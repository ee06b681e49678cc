/* SPDX-License-Identifier: MIT */
/*
 * Memory in one line at the place of use: new and growing arrays whose failure is an error with
 * its text, and variables that free themselves.  Large heap blocks are in huge pages: with small
 * pages a table of 74 MB would cost 18,000 page faults.
 */
#ifndef KP_CORE_BASE_ALLOC_H
#define KP_CORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "errors.h"

/*
 * KP_AUTO(kp_compose) text = {0}; is a struct kp_compose that kp_compose_fini frees when its block
 * ends, however it is left.  The type's ..._fini takes a pointer to it and accepts zeros.
 */
#define KP_AUTO(type) __attribute__((cleanup(type##_fini))) struct type

/* A pointer that is freed, and a descriptor that is closed if it is not -1, when the block ends. */
#define KP_AUTO_FREE __attribute__((cleanup(kp_free_at)))
#define KP_AUTO_CLOSE __attribute__((cleanup(kp_close_at)))

static inline void kp_free_at(void *pointer)
{
	free(*(void **)pointer);
}

static inline void kp_close_at(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Let *ARRAY, a pointer, point to COUNT zeroed items, or fail: no memory for WHAT. */
#define kp_new(array, count, what, why)                                                  \
	kp_new_items((array), (count), sizeof **(array), (what), (why))

/* Make room for item number COUNT of *ARRAY as kp_grow does, or fail: no memory for WHAT. */
#define kp_room(array, count, cap, what, why)                                            \
	kp_room_items((array), (count), (cap), sizeof **(array), (what), (why))

kpack_error_t kp_new_items(void *array, size_t count, size_t item, const char *what,
			   struct kpackx_error *why);
kpack_error_t kp_room_items(void *array, size_t count, size_t *cap, size_t item,
			    const char *what, struct kpackx_error *why);

/*
 * Make room for item number COUNT in the array that *ARRAY (a pointer of any type) points
 * to, which has room for *CAP items of ITEM bytes.  The array doubles, so that appending
 * is linear.  false: out of memory.
 */
bool kp_grow(void *array, size_t count, size_t *cap, size_t item);

/* As malloc; the caller uses free.  Pages that are never touched cost nothing. */
void *kp_large_alloc(size_t size);

/* The same, zeroed. */
void *kp_large_zeroed(size_t size);

/* Give the memory after SIZE bytes back; returns the block, which may have moved. */
void *kp_large_trim(void *block, size_t size);

#endif
