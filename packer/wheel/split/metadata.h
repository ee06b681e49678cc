/* SPDX-License-Identifier: MIT */
/*
 * METADATA and WHEEL of the wheels that a wheel is split into.
 *
 * The host's gets an extra for every architecture, device-gfx942 and gfx942, that requires the
 * wheels with its code in exactly the host's version; one for every family the user named;
 * and device-all.  An architecture without a wheel of its own has one, too, where wheels with
 * its features stated or for a generic target that covers it are what it can load.  Extras are written as they are compared: lower case, "-" for any mark.
 */
#ifndef PACKER_WHEEL_SPLIT_METADATA_H
#define PACKER_WHEEL_SPLIT_METADATA_H

#include "packer/wheel/file/dist_info.h"
#include "parts.h"

/* What the texts are made of; all borrowed. */
struct wheel_metadata {
	const struct dist_info *host;
	const struct wheel_parts *parts; /* finished */
	const char *const
		*requires; /* of device wheels; "@GFXARCH@" becomes the target */
	size_t n_requires;
	const char
		*variants; /* the distribution of variant wheels; NULL: there are none */
};

/*
 * An extra of the host and the parts it installs: the part itself and what that needs, all of
 * them or those that a GPU can load, or with VARIANTS the distribution of variant wheels.
 */
struct wheel_extra {
	char name[WHEEL_NAME_MAX + 1];
	const struct wheel_part *part; /* NULL: all */
	char gpu[KP_TARGET_TEXT_MAX];  /* unless "": of all, those that it can load */
	bool variants;
};

/* The extras, sorted; the caller frees *OUT. */
kpack_error_t wheel_extras(const struct wheel_metadata *m, struct wheel_extra **out,
			   size_t *count, struct kpackx_error *why);

/*
 * The texts.  The caller frees *OUT, which has *SIZE bytes.  INVALID_ARGUMENT: the host has an
 * extra of that name already.
 */
kpack_error_t wheel_metadata_host(const struct wheel_metadata *m, char **out,
				  size_t *size, struct kpackx_error *why);
kpack_error_t wheel_metadata_device(const struct wheel_metadata *m,
				    const struct wheel_part *part, char **out,
				    size_t *size, struct kpackx_error *why);
/* The same of a variant of the distribution of variants. */
kpack_error_t wheel_metadata_variant(const struct wheel_metadata *m,
				     const struct wheel_part *part, char **out,
				     size_t *size, struct kpackx_error *why);
/*
 * WHEEL of a device wheel: every tag of the host's, or where those are not what its file's NAME
 * says, that one's; and its build number.  The device wheel's name has the same.
 */
kpack_error_t wheel_metadata_wheel(const struct dist_info *host,
				   const struct wheel_name *name, char **out,
				   size_t *size, struct kpackx_error *why);

/* May TEXT be a line of requirement?  It begins with a name and is printable. */
bool wheel_requirement_ok(const char *text);

#endif
