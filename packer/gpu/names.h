/* SPDX-License-Identifier: MIT */
/*
 * How GPUs are named: AMD's families of processors, the kinds of GPUs of a machine, the
 * names of the archive, the native package and the wheel for a kind, and the families that
 * a user of kpack defines, whose architectures go into one archive together.
 */
#ifndef PACKER_GPU_NAMES_H
#define PACKER_GPU_NAMES_H

#include "core/base/errors.h"
#include "core/base/span.h"
#include "core/target/choice.h"

/*
 * AMD's hierarchy of GPUs, by which packages are named: a target (gfx1100) belongs to a
 * sub-family (gfx110x), and a sub-family to a family (gfx11).
 */
struct gpu_subfamily {
	const char *name;   /* "gfx110x", "gfx9_4" */
	const char *family; /* "gfx11", "gfx9" */
	/* as the paper and TheRock spell NAME: "gfx110X", "gfx94X"; its processors are those
	 * with another character for the X */
	const char *series;
};

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

#define GPU_NAME_PART_MAX (2 * KP_TARGET_TEXT_MAX)

/*
 * LABEL as a part of an extra: spelled in the same way, but capitals stay, and features
 * and stepping are left out, because every wheel has that extra, whatever its code
 * states: "gfx90a", "gfx110X".
 */
void gpu_extra_part(const char *label, char out[GPU_NAME_PART_MAX]);

/* The native package of PACKAGE with code for LABEL, on the heap. */
char *gpu_package_name(const char *package, const char *label);

/* Architectures that go into one archive together, as --family defines them. */
struct family {
	char *name;
	char **arches; /* canonical */
	size_t n_arches;
};

struct families {
	struct family *items;
	size_t count;
};

/*
 * Add a family NAME of the architectures in the comma-separated LIST.  INVALID_ARGUMENT:
 * NAME cannot be part of a file name, or an item is not a target ID, or is in a family
 * already.
 */
kpack_error_t families_add(struct families *families, struct kp_span name,
			   const char *list, struct kpackx_error *why);
/* As families_add, of TEXT, "NAME=ARCH,...". */
kpack_error_t families_parse(struct families *families, const char *text,
			     struct kpackx_error *why);
void families_fini(struct families *families);

/* The family that contains ARCH, or NULL. */
const struct family *families_find(const struct families *families, const char *arch);

/* The part after the group in names of ARCH's archives: "_gfx942", "-rdna".  On the heap. */
char *families_stem(const struct families *families, const char *arch);

#endif
