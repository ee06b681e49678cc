/* SPDX-License-Identifier: MIT */
/*
 * Write the images of a file as files.  Their names are ARCH.TYPE in container 0 and
 * ARCH#N.TYPE in container N, as a mount names packed objects.  Further images of one
 * name in a container are ARCH~K.TYPE or ARCH~K#N.TYPE.
 */
#ifndef PACKER_INSPECT_EXTRACT_H
#define PACKER_INSPECT_EXTRACT_H

#include "packer/archives/arch_filter.h"
#include "file.h"

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

#endif
