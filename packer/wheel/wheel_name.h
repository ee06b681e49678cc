/* SPDX-License-Identifier: MIT */
/*
 * File names of wheels:
 * {dist}-{version}(-{build})?-{python}-{abi}-{platform}(-{variant})?.whl; and names of
 * distributions as indexes and wheels spell them.
 */
#ifndef PACKER_WHEEL_METADATA_NAME_H
#define PACKER_WHEEL_METADATA_NAME_H

#include <stdbool.h>
#include "core/base/errors.h"

/* NAME_MAX of Linux: a longer name cannot be a file name. */
#define WHEEL_NAME_MAX 255

/* The components as spelled in the file name; "" for an absent one. */
struct wheel_name {
	char text[WHEEL_NAME_MAX + 1]; /* the components point into it */
	const char *dist, *version, *build, *python, *abi, *platform, *variant;
};

/*
 * Parse FILE, a file name without directories.
 * INVALID_ARGUMENT: it is not a wheel's file name; the error says why.
 */
kpack_error_t wheel_name_parse(const char *file, struct wheel_name *out,
			       struct kpackx_error *why);

/*
 * Join the components to a file name; BUILD and VARIANT may be "".  INVALID_ARGUMENT: as
 * in wheel_name_parse.
 */
kpack_error_t wheel_name_compose(const struct wheel_name *name,
				 char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why);

/*
 * Check that NAME is that of a wheel of the distribution DIST, VERSION, as METADATA
 * spells them.
 * INVALID_FORMAT: it is not.
 */
kpack_error_t wheel_name_check(const struct wheel_name *name, const char *dist,
			       const char *version, struct kpackx_error *why);

/* True for a distribution name: letters, digits, and inside it ".", "_", "-". */
bool dist_name_ok(const char *dist);
/* True for a version: letters, digits, ".", "+", "!", "_", "-". */
bool dist_version_ok(const char *version);

/*
 * Spell DIST in lower case with each run of ".", "_", "-" as JOIN: '-' for indexes, '_'
 * for wheels.  False: not a distribution name, or too long.
 */
bool dist_name_normal(const char *dist, char join, char out[WHEEL_NAME_MAX + 1]);

/*
 * Spell VERSION as in a wheel's file name: "-" becomes "_".  False: not a version, or too
 * long.
 */
bool dist_version_escape(const char *version, char out[WHEEL_NAME_MAX + 1]);

#endif
