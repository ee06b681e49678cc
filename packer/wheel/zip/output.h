/* SPDX-License-Identifier: MIT */
/* A file being written as what libzip writes an archive to. */
#ifndef PACKER_WHEEL_ZIP_OUTPUT_H
#define PACKER_WHEEL_ZIP_OUTPUT_H

#include <zip.h>
#include "core/base/errors.h"
#include "core/base/file.h"

/*
 * OUT and WHY outlive the source; WHY gets the reason of a failure.  NULL: ERROR says why.
 * It belongs to the archive it is given to; what was written is in OUT when that is closed.
 */
zip_source_t *zip_output_new(struct kp_outfile *out, struct kpackx_error *why,
			     zip_error_t *error);

#endif
