/* SPDX-License-Identifier: MIT */
/* Join compressed members into a zip archive. */
#ifndef PACKER_WHEEL_FILE_JOIN_H
#define PACKER_WHEEL_FILE_JOIN_H

#include "zip_time.h"
#include "core/base/file.h"
#include "press.h"

struct wheel_join {
	const struct wheel_out_member *members;
	size_t count;
	struct dos_time time;
	int collected; /* descriptor of the file with the deflated bytes */
	struct kp_outfile *out;
};

/*
 * Write the whole archive.  IO_ERROR, OUT_OF_MEMORY, INVALID_ARGUMENT: a file has
 * changed.
 */
kpack_error_t wheel_join_run(const struct wheel_join *j, struct kpackx_error *why);

#endif
