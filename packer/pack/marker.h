/* SPDX-License-Identifier: MIT */
/* The marker of a converted binary: the key and the archives of its code. */
#ifndef PACKER_PACK_TREE_MARKER_H
#define PACKER_PACK_TREE_MARKER_H

#include "plan.h"

/* A marker to make. */
struct marker_request {
	const struct scan *scan;
	const struct plan_binary *binary;
	bool all; /* name the archives that the code is in if every target is selected */
	const char *group; /* of the archives */
	const struct families *families;
};

/*
 * Write the content of the marker that R asks for (kp_marker_write), on the heap: the
 * binary's key, and the archives that the plan stored its code in, or all.  The archives
 * are search paths from every path that the binary has in the scan; paths at different
 * depths below the root have their own.
 * INVALID_METADATA: more than a marker holds.  OUT_OF_MEMORY.
 */
kpack_error_t marker_make(const struct marker_request *r, uint8_t **out, size_t *size,
			  struct kpackx_error *why);

/*
 * Whether MARKER names all archives that the plan stores BINARY in.  Only file names are
 * compared.
 */
bool marker_agrees(const struct kp_marker *marker, const struct plan_binary *binary,
		   const char *group, const struct families *families);

#endif
