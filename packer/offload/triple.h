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

/* Split TEXT at its dashes; the fourth part has the rest. */
struct triple triple_split(struct kp_span text);

/* Whether LLVM knows the architecture. */
bool triple_known(const struct triple *t);

/*
 * The spelling that bundles have: every part in its place, a missing part is "unknown".
 * On AMD's HSA the environment is empty, and its dash stays.  The caller frees it.
 */
char *triple_normal(const struct triple *t);

/* Whether architecture, vendor, system and environment agree, by any of their names. */
bool triple_compatible(const struct triple *a, const struct triple *b);

#endif
