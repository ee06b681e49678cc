/* SPDX-License-Identifier: MIT */
/*
 * Arrays double, so that appending is linear in all, and a table of a million entries is not copied
 * more often than twenty times.  Blocks of 2 MiB and more are aligned to huge pages: the kernel
 * then clears and maps 2 MiB with one fault instead of 512.  They are freed with free(), as all
 * others, so that a caller need not know which of the two a block is.
 */
#include "alloc.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t HUGE_PAGE = 2 << 20;

bool kp_grow(void *array, size_t count, size_t *cap, size_t item)
{
	size_t want = *cap ? 2 * *cap : 64;
	void *block;

	if (count < *cap)
		return true;
	while (want <= count)
		want *= 2;
	memcpy(&block, array, sizeof(block)); /* a pointer of another type */
	if (want > SIZE_MAX / item)
		return false;
	block = realloc(block, want * item);
	if (!block)
		return false;
	memcpy(array, &block, sizeof(block));
	*cap = want;
	return true;
}

kpack_error_t kp_new_items(void *array, size_t count, size_t item, const char *what,
			   struct kpackx_error *why)
{
	void *block = calloc(count ? count : 1, item);

	if (!block)
		return kp_fail_memory(why, (uint64_t)count * item, what);
	memcpy(array, &block, sizeof(block)); /* a pointer of another type */
	return KPACK_SUCCESS;
}

kpack_error_t kp_room_items(void *array, size_t count, size_t *cap, size_t item,
			    const char *what, struct kpackx_error *why)
{
	if (!kp_grow(array, count, cap, item))
		return kp_fail_memory(why, ((uint64_t)count + 1) * item, what);
	return KPACK_SUCCESS;
}

void *kp_large_alloc(size_t size)
{
	void *block;

	if (size < HUGE_PAGE)
		return malloc(size ? size : 1);
	if (posix_memalign(&block, HUGE_PAGE, size))
		return NULL;
	/* only advice: no matter if refused; a last part of a page stays in small pages */
	madvise(block, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
	return block;
}

void *kp_large_zeroed(size_t size)
{
	void *block = kp_large_alloc(size);

	return block ? memset(block, 0, size) : NULL;
}

void *kp_large_trim(void *block, size_t size)
{
	void *smaller = realloc(block, size ? size : 1);

	return smaller ? smaller : block;
}
