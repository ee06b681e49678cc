/* SPDX-License-Identifier: MIT */
/* Convert libzip's errors to ours. */
#ifndef PACKER_WHEEL_ZIP_FAULT_H
#define PACKER_WHEEL_ZIP_FAULT_H

#include <zip.h>
#include "core/base/errors.h"

/*
 * Returns OUT_OF_MEMORY or IO_ERROR for such errors of libzip, else INVALID_FORMAT.  The
 * text is "WHAT: reason"; WHAT is printable text or "".
 */
kpack_error_t zip_fault(struct kpackx_error *why, zip_error_t *error, const char *what);

#endif
