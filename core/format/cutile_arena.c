/* SPDX-License-Identifier: MIT */
#include "cutile_arena.h"
#include <stdlib.h>

#define BLOCK_SIZE 4000

struct kp_arena_block {
	struct kp_arena_block *next;
	size_t size;
	_Alignas(max_align_t) uint8_t bytes[];
};

/* Add a block; a large piece gets a block of its own size. */
static bool add_block(struct kp_arena *a, size_t size)
{
	struct kp_arena_block *block;

	if (size < BLOCK_SIZE)
		size = BLOCK_SIZE;
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		return false;
	*block = (struct kp_arena_block){.next = a->blocks, .size = size};
	a->blocks = block;
	a->left = size;
	return true;
}

void *kp_arena_alloc(struct kp_arena *a, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	void *piece;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + align - 1) / align * align;
	if ((!a->blocks || a->left < size) && !add_block(a, size))
		return NULL;
	piece = a->blocks->bytes + (a->blocks->size - a->left);
	a->left -= size;
	return piece;
}

char *kp_arena_copy(struct kp_arena *a, struct kp_span s)
{
	char *copy = kp_arena_alloc(a, s.size + 1);

	if (copy && s.size)
		memcpy(copy, s.data, s.size);
	return copy;
}

void kp_arena_fini(struct kp_arena *a)
{
	while (a->blocks) {
		struct kp_arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
	a->left = 0;
}
