/* SPDX-License-Identifier: MIT */
/* Thin archives, whose members are other files, as archives that have them. */
#ifndef PACKER_OFFLOAD_BUNDLER_THIN_ARCHIVE_H
#define PACKER_OFFLOAD_BUNDLER_THIN_ARCHIVE_H

#include "files.h"

/*
 * Where IN, opened from PATH, is a thin archive, replace it by an archive in memory of the
 * files that it names; any other stays as it is.
 */
kpack_error_t thin_archive_gather(struct bundler_input *in, const char *path,
				  struct kpackx_error *why);

#endif
