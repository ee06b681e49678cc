/* SPDX-License-Identifier: MIT */
/*
 * The distances between the sections of one build and those of another, and whether a
 * difference in bytes is only due to them.
 */
#ifndef PACKER_BINARY_HOST_MOVES_H
#define PACKER_BINARY_HOST_MOVES_H

#include "host_sections.h"

/*
 * Limit of distances in one pair of builds: each segment after the device code moves, and
 * in it, few sections move on their own.
 */
#define HOST_MOVES_MAX 64

struct host_moves {
	int64_t by[HOST_MOVES_MAX]; /* sorted, each once, always with 0 */
	size_t count;
	int64_t *between; /* possible changes of a difference of two addresses; sorted */
	size_t n_between;
	uint16_t machine;
};

/*
 * Compare two tables with the same sections.  false: more than HOST_MOVES_MAX distances,
 * so these are not builds of one host.
 */
bool host_moves_make(const struct host_sections *a, const struct host_sections *b,
		     struct host_moves *out);
void host_moves_fini(struct host_moves *m);

/* Bytes of both builds around a difference. */
struct host_bytes {
	struct kp_span a, b; /* of equal size */
	uint64_t base;       /* offset of their first byte in the section */
	bool code;           /* the section contains code */
};

/*
 * Whether the difference at AT only says that something moved, or is in a name's hash.
 * *END is then the end of the value or hash that explains it.
 */
bool host_moves_explain(const struct host_moves *m, const struct host_bytes *bytes,
			size_t at, size_t *end);

#endif
