/* SPDX-License-Identifier: MIT */
/* Names of the archive, the native package and the wheel of a kind of GPU. */
#ifndef PACKER_GPU_NAMES_H
#define PACKER_GPU_NAMES_H

#include "kinds.h"

/* The kinds of names that are requested; NULL: not that kind. */
struct gpu_names {
	const char *group;   /* archives "<group>_gfx1100.kpack" */
	const char *package; /* native packages "<package>-gfx1100" */
	const char *dist;    /* wheels "<dist>[device-gfx1100]" */
	bool family;         /* name the family, as the paper does, not the GPU */
};

/*
 * Check that NAMES can be parts of file names and command lines: a group is a file name
 * of [A-Za-z0-9._+:-], a package is [a-z0-9][a-z0-9.+-]+, a wheel's name is as PEP 508
 * defines it.  INVALID_ARGUMENT: WHY names the option.
 */
kpack_error_t gpu_names_check(const struct gpu_names *names, struct kpackx_error *why);

/* The label of KIND in names: "gfx1100", "gfx110X"; NULL: its family is not known. */
const char *gpu_names_label(const struct gpu_names *names, const struct gpu_kind *kind);

#define GPU_NAME_PART_MAX (2 * KP_TARGET_TEXT_MAX)

/*
 * LABEL as a part of a package's name: lower case, "_" and ":" are "-", a feature's "+"
 * is "-on" and its "-" is "-off": "gfx90a-xnack-on", "gfx12-0", "gfx110x".
 */
void gpu_package_part(const char *label, char out[GPU_NAME_PART_MAX]);

/*
 * LABEL as a part of an extra: spelled in the same way, but capitals stay, and features
 * and stepping are left out, because every wheel has that extra, whatever its code
 * states: "gfx90a", "gfx110X".
 */
void gpu_extra_part(const char *label, char out[GPU_NAME_PART_MAX]);

/* The names for LABEL, on the heap. */
char *gpu_archive_name(const struct gpu_names *names, const char *label);
char *gpu_package_name(const struct gpu_names *names, const char *label);
char *gpu_wheel_name(const struct gpu_names *names, const char *label);

#endif
