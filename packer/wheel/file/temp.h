/* SPDX-License-Identifier: MIT */
/*
 * A temporary work directory, which is removed when the run ends.  If a run is killed,
 * the next run that makes one in the same place removes it.
 */
#ifndef PACKER_WHEEL_FILE_TEMP_H
#define PACKER_WHEEL_FILE_TEMP_H

#include "core/base/errors.h"

struct wheel_temp {
	char *path;
	int lock; /* descriptor whose lock shows that its run is alive */
};

/*
 * Make one in the existing BASE.  The caller calls wheel_temp_close even after an error.
 */
kpack_error_t wheel_temp_open(const char *base, struct wheel_temp *out,
			      struct kpackx_error *why);
/* Make the directory NAME in it; *OUT is its path, on the heap. */
kpack_error_t wheel_temp_dir(const struct wheel_temp *t, const char *name, char **out,
			     struct kpackx_error *why);
void wheel_temp_close(struct wheel_temp *t); /* accepts a zeroed one */

#endif
