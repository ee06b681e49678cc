/* SPDX-License-Identifier: MIT */
/* Target triples, as LLVM spells and compares them: "amdgcn-amd-amdhsa-". */
#ifndef PACKER_OFFLOAD_BUNDLER_TRIPLE_H
#define PACKER_OFFLOAD_BUNDLER_TRIPLE_H

#include "core/base/span.h"

enum { TRIPLE_ARCH, TRIPLE_VENDOR, TRIPLE_OS, TRIPLE_ENV, TRIPLE_PARTS };

/* The parts as written; those that are missing are empty. */
struct triple {
	struct kp_span part[TRIPLE_PARTS];
};

/* TEXT at its dashes; the fourth part has the rest. */
struct triple triple_split(struct kp_span text);

/* Is the architecture one that LLVM knows? */
bool triple_known(const struct triple *t);

/*
 * The spelling that bundles have: parts in their places, what is missing is "unknown"; on
 * AMD's HSA there is no environment, but its dash.  The caller frees it; NULL: no memory.
 */
char *triple_normal(const struct triple *t);

/* The same architecture, vendor, system and environment, by any of their names? */
bool triple_compatible(const struct triple *a, const struct triple *b);

#endif
