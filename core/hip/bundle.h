/* SPDX-License-Identifier: MIT */
/*
 * Offload bundles in memory, as clang writes them: a host entry, then the code objects at
 * multiples of 4096 bytes.  The caller holds the library's lock during every call.
 */
#ifndef KP_HIP_BUNDLE_H
#define KP_HIP_BUNDLE_H

#include "binary.h"

struct bundle;

/*
 * Return a bundle with the code objects that the GPUs can load of wrapper INDEX of B; what
 * cannot be found or decoded is left out and reported.  Wrappers with the same objects
 * share a bundle.  The caller ends its use with bundle_put.  OUT_OF_MEMORY, IO_ERROR.
 */
kpack_error_t bundle_get(struct binaries *all, struct binary *b, uint32_t index,
			 struct bundle **out, struct kpackx_error *why);
/* A bundle without code objects, for a binary about which nothing is known. */
kpack_error_t bundle_empty(struct bundle **out, struct kpackx_error *why);
void bundle_put(struct bundle *bundle); /* NULL is allowed */

const void *bundle_address(const struct bundle *bundle);

#endif
