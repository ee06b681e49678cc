/* SPDX-License-Identifier: MIT */
/*
 * The blocks that a reader of all objects in order, as kp_pool_get keeps them, still has
 * decoded: those that were used last.  The writer prefers them for matches.
 */
#ifndef KP_CORE_WRITER_WARM_H
#define KP_CORE_WRITER_WARM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Fewer than the pool has room for beside a dictionary, as there may be other readers.
 */
#define KP_WARM_BLOCKS 40

/* Initially zero. */
struct kp_warm {
	uint64_t blocks[KP_WARM_BLOCKS]; /* the one used last first */
	unsigned n;
};

/* Use the blocks of SIZE bytes, at least 1, at POS of the run. */
void kp_warm_use(struct kp_warm *w, uint64_t pos, uint64_t size);

/* Whether the blocks of the first and the last of these bytes are still decoded. */
bool kp_warm_has(const struct kp_warm *w, uint64_t pos, uint64_t size);

#endif
