/* SPDX-License-Identifier: MIT */
/*
 * A temporary work directory, which is removed when the run ends.  If a run is killed,
 * the next run that makes one in the same place removes it.
 */
#ifndef PACKER_WHEEL_FILE_TEMP_H
#define PACKER_WHEEL_FILE_TEMP_H

#include "packer/files/temp_dir.h"

/* Make one in the existing BASE; temp_dir_close removes it. */
kpack_error_t wheel_temp_open(const char *base, struct temp_dir *out,
			      struct kpackx_error *why);
/* Make the directory NAME in it; *OUT is its path, on the heap. */
kpack_error_t wheel_temp_dir(const struct temp_dir *t, const char *name, char **out,
			     struct kpackx_error *why);

#endif
