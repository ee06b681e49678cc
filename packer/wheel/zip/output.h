/* SPDX-License-Identifier: MIT */
/* A libzip source that writes the archive to a kp_outfile. */
#ifndef PACKER_WHEEL_ZIP_OUTPUT_H
#define PACKER_WHEEL_ZIP_OUTPUT_H

#include <zip.h>
#include "core/base/errors.h"
#include "core/base/file.h"

/*
 * OUT and WHY must outlive the source; WHY gets the reason of a failure.  Returns NULL on
 * failure, and ERROR says why.  The archive that gets the source owns it; closing the
 * archive completes OUT.
 */
zip_source_t *zip_output_new(struct kp_outfile *out, struct kpackx_error *why,
			     zip_error_t *error);

#endif
