/* SPDX-License-Identifier: MIT */
/* A kernel of PTX: ".entry NAME (parameters) requirements { body }". */
#ifndef KP_CORE_FORMAT_CUDA_PTX_KERNEL_H
#define KP_CORE_FORMAT_CUDA_PTX_KERNEL_H

#include "core/format/object.h"
#include "ptx_tokens.h"

/*
 * Read what follows ".entry", the last token of T, up to its body or the end of its
 * declaration; with a body it is appended to OUT and DEPTH grows by the brace.
 * INVALID_FORMAT: a name of more than KP_NAME_MAX bytes.
 */
kpack_error_t kp_ptx_kernel(struct kp_ptx_tokens *t, struct kp_object *out,
			    uint64_t *depth, struct kpackx_error *why);

#endif
