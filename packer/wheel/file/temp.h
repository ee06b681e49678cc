/* SPDX-License-Identifier: MIT */
/*
 * A directory for what a run works on, which is gone when the run ends.  One that a killed run
 * left is removed by the next that makes one in the same place.
 */
#ifndef PACKER_WHEEL_FILE_TEMP_H
#define PACKER_WHEEL_FILE_TEMP_H

#include "core/base/errors.h"

struct wheel_temp {
	char *path;
	int lock; /* says that its run lives */
};

/* Make one in BASE, which exists.  Closed by wheel_temp_close in any case. */
kpack_error_t wheel_temp_open(const char *base, struct wheel_temp *out,
			      struct kpackx_error *why);
/* The directory NAME in it, made, on the heap. */
kpack_error_t wheel_temp_dir(const struct wheel_temp *t, const char *name, char **out,
			     struct kpackx_error *why);
void wheel_temp_close(struct wheel_temp *t); /* a zeroed one is fine */

#endif
