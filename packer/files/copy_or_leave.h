/* SPDX-License-Identifier: MIT */
/* Copy a file, or leave out one that the user may not make. */
#ifndef PACKER_FILES_COPY_OR_LEAVE_H
#define PACKER_FILES_COPY_OR_LEAVE_H

#include "copy.h"

/*
 * As copy_seen.  But a device, FIFO or socket that the user may not make, or not there, is
 * left out: *LEFT gets the reason, on the heap; else NULL.
 */
kpack_error_t copy_or_leave(const char *from, const struct stat *seen, const char *to,
			    char **left, struct kpackx_error *why);

#endif
