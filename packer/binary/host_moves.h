/* SPDX-License-Identifier: MIT */
/*
 * How far the sections of one build stand from those of another, and whether bytes that
 * differ say nothing else.
 */
#ifndef PACKER_BINARY_HOST_MOVES_H
#define PACKER_BINARY_HOST_MOVES_H

#include "host_sections.h"

/*
 * Distances in one pair of builds: each segment behind the device code moves, and few
 * sections in it on their own.
 */
#define HOST_MOVES_MAX 64

struct host_moves {
	int64_t by[HOST_MOVES_MAX]; /* sorted, each once; 0 is always there */
	size_t count;
	int64_t *between; /* what a difference of two addresses can change by; sorted */
	size_t n_between;
	uint16_t machine;
};

/*
 * Compare two tables with the same sections. *MANY: more than HOST_MOVES_MAX distances,
 * so these are not builds of one host. OUT_OF_MEMORY.
 */
kpack_error_t host_moves_make(const struct host_sections *a,
			      const struct host_sections *b, struct host_moves *out,
			      bool *many, struct kpackx_error *why);
void host_moves_fini(struct host_moves *m);

/* Bytes of both around a byte that differs: BASE + AT is its offset in its section. */
struct host_bytes {
	struct kp_span a, b; /* of one size */
	uint64_t base;
	bool code; /* of a section with code */
};

/*
 * Does the difference at AT say only that something moved, or is it in a hash of names?
 * *END is then the first byte behind what explains it.
 */
bool host_moves_explain(const struct host_moves *m, const struct host_bytes *bytes,
			size_t at, size_t *end);

#endif
