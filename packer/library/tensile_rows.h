/* SPDX-License-Identifier: MIT */
/* The GPUs that the rows of a Tensile parent are for, compared with its name. */
#ifndef PACKER_LIBRARY_TENSILE_ROWS_H
#define PACKER_LIBRARY_TENSILE_ROWS_H

#include "library.h"

/*
 * Give OUT a warning if Q's parent has rows for GPUs and none of them agrees with NAMED,
 * the GPU that OUT is packed for.  A parent that cannot be read gets no warning here.
 * OUT_OF_MEMORY, IO_ERROR.
 */
kpack_error_t tensile_rows_check(const struct library_question *q, const char *named,
				 struct library_object *out, struct kpackx_error *why);

#endif
