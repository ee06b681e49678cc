/* SPDX-License-Identifier: MIT */
/*
 * Write the images of a file as files.  Their names are ARCH.TYPE in container 0 and
 * ARCH#N.TYPE in container N, as a mount names packed objects.  Further images of one
 * name in a container are ARCH~K.TYPE or ARCH~K#N.TYPE.
 */
#ifndef PACKER_INSPECT_EXTRACT_H
#define PACKER_INSPECT_EXTRACT_H

#include "packer/archives/arch_filter.h"
#include "inspect_file.h"

struct inspect_extract {
	const char *dir; /* created if it does not exist */
	struct arch_filter filter;
	bool force; /* replace files that exist */
	/* The files' names, per image; NULL in it: not written.  NULL: as above. */
	char *const *names;
	size_t written;
};

/*
 * Write every image that has bytes and that the filter selects.  Files that cannot be
 * written are reported; the call fails if any could not.
 */
kpack_error_t inspect_extract_run(struct inspect_extract *x, struct inspect_file *file,
				  struct kpackx_error *why);

/*
 * Names for the files of device code as AMD's bulk_unbundle gives them: the bundle entry
 * ID, and ".hsaco" if that begins with "hip", else ".elf".  If two have one ID, each gets
 * its number among all of them: "ID_0.hsaco".
 */
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
