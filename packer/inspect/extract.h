/* SPDX-License-Identifier: MIT */
/*
 * The images of a file as files: ARCH.TYPE of container 0, ARCH#N.TYPE of container N, as a
 * mount shows what is packed; further ones of one name in a container are ARCH@KIND, then
 * ARCH~K.
 */
#ifndef PACKER_INSPECT_EXTRACT_H
#define PACKER_INSPECT_EXTRACT_H

#include "packer/archives/operands.h"
#include "file.h"

struct inspect_extract {
	const char *dir; /* made when it is not there */
	struct arch_filter filter;
	bool force; /* replace files that exist */
	size_t written;
};

/*
 * Write every image that has bytes and that the filter chooses.  What cannot be written is
 * told.  A failure: nothing can be.
 */
kpack_error_t inspect_extract_run(struct inspect_extract *x, struct inspect_file *file,
				  struct kpackx_error *why);

#endif
