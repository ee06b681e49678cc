/* SPDX-License-Identifier: MIT */
/*
 * The device wheels a wheel is split into: which architecture goes into which, what they are
 * called, and which of them another one needs.
 *
 * A part is for a target - with xnack on, off or unstated, which all go together, as one GPU
 * may be asked for each - or for a family, when a database has files for all of a family, or
 * when the user said so.
 */
#ifndef PACKER_WHEEL_SPLIT_PARTS_H
#define PACKER_WHEEL_SPLIT_PARTS_H

#include "packer/gpu/families.h"
#include "core/target/target.h"
#include "packer/wheel/metadata/name.h"

enum wheel_part_kind {
	WHEEL_PART_TARGET,
	WHEEL_PART_GROUP,  /* a database's: gfx11, gfx110x */
	WHEEL_PART_FAMILY, /* the user's: gfx110X=gfx1100,gfx1101 */
};

struct wheel_part {
	enum wheel_part_kind kind;
	char name
		[KP_TARGET_TEXT_MAX]; /* "gfx942", "gfx90a:sramecc+", "gfx11", "gfx110X" */
	char suffix[WHEEL_NAME_MAX +
		    1];                /* the same as distributions and extras have it */
	char dist[WHEEL_NAME_MAX + 1]; /* "amd-torch-device-gfx942" */
	char file[WHEEL_NAME_MAX + 1]; /* "amd_torch_device_gfx942" */
	/* The targets of its code or database files, canonical, without xnack, sorted. */
	char (*arches)[KP_TARGET_TEXT_MAX];
	size_t n_arches;
	struct wheel_part **needs; /* by name; see wheel_parts_finish */
	size_t n_needs;
};

struct wheel_parts {
	const struct families *families; /* borrowed */
	const char *host;                /* distribution; borrowed */
	const char *prefix; /* of device distributions; borrowed; NULL: amd-HOST-device */
	struct wheel_part **items; /* sorted by kind and name once finished */
	size_t count;
};

/* Begin; fill the three borrowed members. */
void wheel_parts_fini(struct wheel_parts *parts); /* a zeroed one is fine */

/*
 * The part of what is only for ARCH, made when there is none.  INVALID_ARGUMENT: its name
 * gives no distribution.
 */
kpack_error_t wheel_parts_arch(struct wheel_parts *parts, const char *arch,
			       struct wheel_part **out, struct kpackx_error *why);
/* The device wheel for FAMILY, which has the members ARCHES. */
kpack_error_t wheel_parts_family(struct wheel_parts *parts, const char *family,
				 char (*arches)[KP_TARGET_TEXT_MAX], size_t n,
				 struct wheel_part **out, struct kpackx_error *why);

/*
 * After the last was made: sort them, and find what each needs besides itself: parts whose
 * code runs on its GPUs too - of its families, of its processor with fewer features stated,
 * generic ones.  INVALID_ARGUMENT: two have the same name of a distribution.
 */
kpack_error_t wheel_parts_finish(struct wheel_parts *parts, struct kpackx_error *why);

/* Has PART what GPU, a target whose unstated features may be on or off, can load? */
bool wheel_part_serves(const struct wheel_part *part, const char *gpu);

/*
 * ARCH as a part is called: without xnack, canonical; Tensile's "gfx90a-xnack+" is taken too.
 */
void wheel_parts_bundle(const char *arch, char out[KP_TARGET_TEXT_MAX]);
/* NAME as it stands in distributions and extras: "gfx90a-sramecc-on"; false: it cannot. */
bool wheel_parts_suffix(const char *name, char out[WHEEL_NAME_MAX + 1]);

#endif
