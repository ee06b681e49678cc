/* SPDX-License-Identifier: MIT */
/*
 * From a marker's search path to the file of an archive.  AMD's rules: a relative path
 * is resolved against the directory of the binary, symlinks followed as far as the path
 * exists; the first "@GFXARCH@" stands for an architecture.
 */
#ifndef KP_SEARCH_H
#define KP_SEARCH_H

#include <stdbool.h>
#include "error.h"
#include "span.h"

#define KP_SEARCH_ARCH "@GFXARCH@"

/* Does PATTERN have the placeholder? */
bool kp_search_has_arch(const char *pattern);

/*
 * The archive PATTERN names for ARCH (ignored without placeholder), seen from BINARY.  The
 * caller frees *out.  OUT_OF_MEMORY; INVALID_ARGUMENT for a path of more than
 * KP_NAME_MAX bytes.
 */
kpack_error_t kp_search_resolve(const char *pattern, struct kp_span arch,
				const char *binary, char **out, struct kpackx_error *why);

/*
 * The archs an agent called ARCH can run, from the most specific to the bare processor:
 * all subsets of its features in their order ("a:x:y", "a:x", "a:y", "a"), an
 * "amdgcn-amd-amdhsa--" in front taken off.  At most KP_FEATURES_MAX features count.
 * FN returns false to stop.
 */
void kp_search_targets(struct kp_span arch,
		       bool (*fn)(struct kp_span target, void *arg), void *arg);

#endif
