/* SPDX-License-Identifier: MIT */
/* Turn a thin archive, whose members are separate files, into one that contains them. */
#ifndef PACKER_OFFLOAD_BUNDLER_THIN_ARCHIVE_H
#define PACKER_OFFLOAD_BUNDLER_THIN_ARCHIVE_H

#include "files.h"

/*
 * If IN, opened from PATH, is a thin archive, replace it by an archive in memory that
 * contains the files it names.  Any other input stays as it is.
 */
kpack_error_t thin_archive_gather(struct bundler_input *in, const char *path,
				  struct kpackx_error *why);

#endif
