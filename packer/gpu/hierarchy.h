/* SPDX-License-Identifier: MIT */
/*
 * AMD's hierarchy of GPUs, by which packages are named: a target (gfx1100) is of a
 * sub-family (gfx110x), and that of a family (gfx11).
 */
#ifndef PACKER_GPU_HIERARCHY_H
#define PACKER_GPU_HIERARCHY_H

#include "core/base/span.h"

struct gpu_subfamily {
	const char *name;   /* "gfx110x", "gfx9_4" */
	const char *family; /* "gfx11", "gfx9" */
	const char *series; /* as the paper and TheRock spell it: "gfx110X", "gfx94X" */
	const char *members[12]; /* processors, NULL-terminated */
};

/* All of them, by number. */
const struct gpu_subfamily *gpu_subfamily_table(size_t *count);

/*
 * The sub-family of TARGET, a target ID: its features do not matter, nor does a
 * "-strict" behind the processor.  NULL: no processor of the table; sub-families,
 * families and generic targets are none.
 */
const struct gpu_subfamily *gpu_subfamily_of(struct kp_span target);

/*
 * The name of a sub-family or a family in any spelling: gfx110x, gfx110X and gfx11_0 are
 * "gfx110x"; gfx120x is "gfx12_0"; gfx11xx is "gfx11".  NULL: it is neither.  A static
 * string, equal names are one pointer.
 */
const char *gpu_group_name(struct kp_span name);

/* Is TARGET, as above, in GROUP, a name that gpu_group_name gave? */
bool gpu_group_has(const char *group, struct kp_span target);

/* The family of GROUP; of a family itself. */
const char *gpu_group_family(const char *group);

#endif
