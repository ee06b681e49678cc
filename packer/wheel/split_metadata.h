/* SPDX-License-Identifier: MIT */
/*
 * Make METADATA and WHEEL of the output wheels.
 *
 * The host wheel's METADATA gets extras for every architecture, device-gfx942 and gfx942,
 * which require the device wheels with its code in exactly the host's version; extras for
 * every family that the user named; and device-all.  An architecture without its own
 * device wheel gets extras, too, if it can load the code of other device wheels: those
 * with its features stated or for a generic target that covers it.  Extras are written in
 * normal form: lower case, "-" for any mark.
 */
#ifndef PACKER_WHEEL_SPLIT_METADATA_H
#define PACKER_WHEEL_SPLIT_METADATA_H

#include "dist_info.h"
#include "device_wheels.h"

/* The input of the texts; all borrowed. */
struct wheel_metadata {
	const struct dist_info *host;
	const struct device_wheels *devices; /* finished */
	const char *const
		*requires; /* of device wheels; "@GFXARCH@" becomes the target */
	size_t n_requires;
};

/*
 * An extra of the host wheel, and the device wheels that it installs: PART and the device
 * wheels that PART needs; or all device wheels; or those that GPU can load.
 */
struct wheel_extra {
	char name[WHEEL_NAME_MAX + 1];
	const struct device_wheel *device; /* NULL: all device wheels, or see GPU */
	char gpu[KP_TARGET_TEXT_MAX];      /* if not "": only what it can load */
};

/* The extras, sorted; the caller frees *OUT. */
kpack_error_t wheel_extras(const struct wheel_metadata *m, struct wheel_extra **out,
			   size_t *count, struct kpackx_error *why);

/*
 * Make METADATA of the host wheel, or of the device wheel PART.  The caller frees the
 * text, which has *SIZE bytes.  INVALID_ARGUMENT: the host already has an extra of that
 * name.
 */
kpack_error_t wheel_metadata_host(const struct wheel_metadata *m, char **out,
				  size_t *size, struct kpackx_error *why);
/*
 * As wheel_metadata_host, for the variant of the host wheel that AMD's program writes (PEP
 * 817, a draft): what an extra device-gfx942 requires is also required where the installer
 * finds the property amd :: gfx_arch :: gfx942.
 */
kpack_error_t wheel_metadata_host_variant(const struct wheel_metadata *m, char **out,
					  size_t *size, struct kpackx_error *why);
/* Make that wheel's variant.json, which lists these GPUs.  The caller frees *OUT. */
kpack_error_t wheel_metadata_host_json(const struct wheel_metadata *m, char **out,
				       struct kpackx_error *why);
char *wheel_metadata_device(const struct wheel_metadata *m,
			    const struct device_wheel *device, size_t *size);
/*
 * Make WHEEL of a device wheel: with the tags of the host's WHEEL, or those of its file
 * NAME if the two differ, and with the build number.  The device wheel's file name has
 * the same.
 */
char *wheel_metadata_wheel(const struct dist_info *host, const struct wheel_name *name,
			   size_t *size);

/* True if TEXT can be a requirement: it begins like a name and is printable. */
bool wheel_requirement_ok(const char *text);

#endif
