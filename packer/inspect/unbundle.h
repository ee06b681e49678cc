/* SPDX-License-Identifier: MIT */
/*
 * Names for the files of device code as AMD's bulk_unbundle gives them: the bundle entry
 * ID, and ".hsaco" if that begins with "hip", else ".elf".  If two have one ID, each gets
 * its number among all of them: "ID_0.hsaco".
 */
#ifndef PACKER_INSPECT_UNBUNDLE_H
#define PACKER_INSPECT_UNBUNDLE_H

#include "file.h"

/* Names per image; NULL: it is no device code in a bundle, or not requested. */
struct unbundle_names {
	char **items;   /* per image of the file */
	size_t *images; /* numbers of the named images, in the order of the file */
	size_t count;
};

/*
 * Name the device code in FILE's offload bundles: all, or the code for the processor
 * ARCH, whatever its features.  INVALID_ARGUMENT: no code was found.  The caller
 * finishes OUT in any case.
 */
kpack_error_t unbundle_names_make(const struct inspect_file *file, const char *arch,
				  struct unbundle_names *out, struct kpackx_error *why);
void unbundle_names_fini(struct unbundle_names *names, size_t n_images);

#endif
