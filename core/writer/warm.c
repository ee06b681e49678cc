/* SPDX-License-Identifier: MIT */
#include "warm.h"
#include <string.h>
#include "share.h"

/* Where BLOCK is in the list; N: it is not there. */
static unsigned find_block(const struct kp_warm *w, uint64_t block)
{
	unsigned i = 0;

	while (i < w->n && w->blocks[i] != block)
		i++;
	return i;
}

static void use_block(struct kp_warm *w, uint64_t block)
{
	unsigned i = find_block(w, block);

	if (i == w->n && w->n < KP_WARM_BLOCKS)
		w->n++;
	else if (i == w->n)
		i--; /* the one used longest ago goes */
	memmove(w->blocks + 1, w->blocks, i * sizeof(*w->blocks));
	w->blocks[0] = block;
}

void kp_warm_use(struct kp_warm *w, uint64_t pos, uint64_t size)
{
	uint64_t last = (pos + size - 1) / KP_SHARE_BLOCK;

	for (uint64_t block = pos / KP_SHARE_BLOCK; block <= last; block++)
		use_block(w, block);
}

bool kp_warm_has(const struct kp_warm *w, uint64_t pos, uint64_t size)
{
	return find_block(w, pos / KP_SHARE_BLOCK) < w->n &&
	       find_block(w, (pos + size - 1) / KP_SHARE_BLOCK) < w->n;
}
