/* SPDX-License-Identifier: MIT */
/* The marker of a binary: by which name its code is stored, and where. */
#ifndef PACKER_PACK_TREE_MARKER_H
#define PACKER_PACK_TREE_MARKER_H

#include "packer/pack/plan/plan.h"

/*
 * The content of BINARY's marker (kp_marker_write) on the heap: its key, and the archives of
 * GROUP that the plan stored it in, or with ALL would have stored it in whatever was selected,
 * as they are seen from every path it has in SCAN.
 * Where one depth below the root differs from another, each has its own search paths.
 * INVALID_METADATA: more than a marker holds.  OUT_OF_MEMORY.
 */
kpack_error_t reference_make(const struct scan *scan, const struct plan_binary *binary,
			     bool all, const char *group, const struct families *families,
			     uint8_t **out, size_t *size, struct kpackx_error *why);

/*
 * Does MARKER name all archives that the plan stores BINARY in?  Only file names are
 * compared.  OUT_OF_MEMORY.
 */
kpack_error_t reference_agrees(const struct kp_marker *marker,
			       const struct plan_binary *binary, const char *group,
			       const struct families *families, bool *agrees,
			       struct kpackx_error *why);

#endif
