/* SPDX-License-Identifier: MIT */
/* For which GPUs the rows of a Tensile parent are: what it says besides its name. */
#ifndef PACKER_LIBRARY_TENSILE_ROWS_H
#define PACKER_LIBRARY_TENSILE_ROWS_H

#include "packer/library/library.h"

/*
 * Warn in OUT when the parent that Q asks about has rows of GPUs, and none of them agrees with
 * NAMED, for which OUT is packed.  What cannot be read is not judged here.
 * OUT_OF_MEMORY, IO_ERROR.
 */
kpack_error_t tensile_rows_check(const struct library_question *q, const char *named,
				 struct library_object *out, struct kpackx_error *why);

#endif
