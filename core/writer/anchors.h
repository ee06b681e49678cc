/* SPDX-License-Identifier: MIT */
/*
 * Where content was seen: places in the run of unique bytes by the hash of the bytes
 * before them.  Bounded memory: when it is used up, new places replace old ones.
 */
#ifndef KP_CORE_WRITER_ANCHORS_H
#define KP_CORE_WRITER_ANCHORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_anchor {
	uint64_t hash; /* 0: free */
	uint64_t pos;
};

struct kp_anchors {
	struct kp_anchor *slots;
	size_t size, used; /* SIZE is a power of two, or 0 */
};

bool kp_anchors_find(const struct kp_anchors *a, uint64_t hash, uint64_t *pos);
/* Note POS for HASH, in place of the last one.  false: out of memory. */
bool kp_anchors_put(struct kp_anchors *a, uint64_t hash, uint64_t pos);
void kp_anchors_fini(struct kp_anchors *a);

#endif
