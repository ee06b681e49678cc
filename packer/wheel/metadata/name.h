/* SPDX-License-Identifier: MIT */
/*
 * Names of wheels: {dist}-{version}(-{build})?-{python}-{abi}-{platform}(-{variant})?.whl,
 * and names of distributions as indexes and wheels spell them.
 */
#ifndef PACKER_WHEEL_METADATA_NAME_H
#define PACKER_WHEEL_METADATA_NAME_H

#include <stdbool.h>
#include "core/base/errors.h"

/* NAME_MAX of Linux: what has no room as a file name is no name. */
#define WHEEL_NAME_MAX 255

/* The parts as they stand in the file name; "" where there is no such part. */
struct wheel_name {
	char text[WHEEL_NAME_MAX + 1]; /* the parts point here */
	const char *dist, *version, *build, *python, *abi, *platform, *variant;
};

/*
 * Take FILE apart: a file name without directories.
 * INVALID_ARGUMENT: it is no wheel's name; the text says why.
 */
kpack_error_t wheel_name_parse(const char *file, struct wheel_name *out,
			       struct kpackx_error *why);

/*
 * Put parts together; BUILD and VARIANT may be "".  The parts are checked as in parsing:
 * INVALID_ARGUMENT.
 */
kpack_error_t wheel_name_compose(const struct wheel_name *name,
				 char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why);

/*
 * Is NAME a wheel of the distribution DIST, VERSION, as METADATA spells them?
 * INVALID_FORMAT: it is not.
 */
kpack_error_t wheel_name_check(const struct wheel_name *name, const char *dist,
			       const char *version, struct kpackx_error *why);

/* A name of a distribution: letters, digits, and ".", "_", "-" inside. */
bool dist_name_ok(const char *dist);
/* A version: letters, digits, ".", "+", "!", "_", "-". */
bool dist_version_ok(const char *version);

/*
 * DIST in lower case with each run of ".", "_", "-" as JOIN: '-' as an index has it, '_' as
 * wheels do.  false: no name of a distribution, or too long.
 */
bool dist_name_normal(const char *dist, char join, char out[WHEEL_NAME_MAX + 1]);

/* VERSION as it stands in a wheel's name: "-" becomes "_".  false: as above. */
bool dist_version_escape(const char *version, char out[WHEEL_NAME_MAX + 1]);

#endif
