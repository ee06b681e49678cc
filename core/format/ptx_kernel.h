/* SPDX-License-Identifier: MIT */
/* A kernel of PTX: ".entry NAME (parameters) requirements { body }". */
#ifndef KP_CORE_FORMAT_CUDA_PTX_KERNEL_H
#define KP_CORE_FORMAT_CUDA_PTX_KERNEL_H

#include "object.h"
#include "ptx_tokens.h"

/*
 * Read a kernel after ".entry", which is the last token of T, up to its body or the end
 * of its declaration.  A kernel with a body is appended to OUT, and *DEPTH grows by one
 * for its opening brace.
 * INVALID_FORMAT: the name has more than KP_NAME_MAX bytes.
 */
kpack_error_t kp_ptx_kernel(struct kp_ptx_tokens *t, struct kp_object *out,
			    uint64_t *depth, struct kpackx_error *why);

#endif
