/* SPDX-License-Identifier: MIT */
/*
 * AMD's hierarchy of GPUs, by which packages are named: a target (gfx1100) belongs to a
 * sub-family (gfx110x), and a sub-family to a family (gfx11).
 */
#ifndef PACKER_GPU_HIERARCHY_H
#define PACKER_GPU_HIERARCHY_H

#include "core/base/span.h"

struct gpu_subfamily {
	const char *name;   /* "gfx110x", "gfx9_4" */
	const char *family; /* "gfx11", "gfx9" */
	const char *series; /* as the paper and TheRock spell NAME: "gfx110X", "gfx94X" */
	const char *members[12]; /* processors, NULL-terminated */
};

/* All sub-families, in order of their numbers. */
const struct gpu_subfamily *gpu_subfamily_table(size_t *count);

/*
 * The sub-family of the target ID TARGET; its features, and a "-strict" after the
 * processor, are ignored.  NULL: not a processor of the table.  Sub-families, families
 * and generic targets are not processors.
 */
const struct gpu_subfamily *gpu_subfamily_of(struct kp_span target);

/*
 * The canonical name of a sub-family or a family in any spelling: gfx110x, gfx110X and
 * gfx11_0 are "gfx110x"; gfx120x is "gfx12_0"; gfx11xx is "gfx11".  NULL: NAME is
 * neither.  The string is static; equal names are the same pointer.
 */
const char *gpu_group_name(struct kp_span name);

/* Whether TARGET, as for gpu_subfamily_of, is in GROUP, a name from gpu_group_name. */
bool gpu_group_has(const char *group, struct kp_span target);

#endif
