/* SPDX-License-Identifier: MIT */
/* The archives that a look-up for a binary considers. */
#ifndef KP_CORE_LOADER_CANDIDATES_H
#define KP_CORE_LOADER_CANDIDATES_H

#include "core/elf/marker.h"
#include "environment.h"
#include "lookup.h"

/*
 * Append to L the files that the environment and the marker M of the file BINARY name for
 * the targets of WANT, in AMD's order.  Errors as for kp_lookup_add.
 */
kpack_error_t kp_candidates_add(const struct kp_environment *env,
				const struct kp_marker *m, const char *binary,
				const struct kp_lookup_want *want, struct kp_lookup *l,
				struct kpackx_error *why);

#endif
