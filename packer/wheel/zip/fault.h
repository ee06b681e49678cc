/* SPDX-License-Identifier: MIT */
/* libzip's failures in our words. */
#ifndef PACKER_WHEEL_ZIP_FAULT_H
#define PACKER_WHEEL_ZIP_FAULT_H

#include <zip.h>
#include "core/base/errors.h"

/*
 * OUT_OF_MEMORY and IO_ERROR where libzip says so, else INVALID_FORMAT: "WHAT: reason".
 * WHAT is "" or text that may be printed.
 */
kpack_error_t zip_fault(struct kpackx_error *why, zip_error_t *error, const char *what);

#endif
