/* SPDX-License-Identifier: MIT */
/* The marker of a converted binary: the key and the archives of its code. */
#ifndef PACKER_PACK_TREE_MARKER_H
#define PACKER_PACK_TREE_MARKER_H

#include "packer/pack/plan/plan.h"

/*
 * Write the content of BINARY's marker (kp_marker_write), on the heap: its key, and the
 * archives of GROUP that the plan stored its code in or, with ALL, would store it in if
 * every target were selected.  The archives are search paths from every path that the
 * binary has in SCAN; paths at different depths below the root have their own.
 * INVALID_METADATA: more than a marker holds.  OUT_OF_MEMORY.
 */
kpack_error_t reference_make(const struct scan *scan, const struct plan_binary *binary,
			     bool all, const char *group, const struct families *families,
			     uint8_t **out, size_t *size, struct kpackx_error *why);

/*
 * Whether MARKER names all archives that the plan stores BINARY in.  Only file names are
 * compared.
 */
bool reference_agrees(const struct kp_marker *marker, const struct plan_binary *binary,
		      const char *group, const struct families *families);

#endif
