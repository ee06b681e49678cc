/* SPDX-License-Identifier: MIT */
/* The kernels of a cubin, for its describer. */
#ifndef KP_CORE_FORMAT_CUDA_CUBIN_H
#define KP_CORE_FORMAT_CUDA_CUBIN_H

#include "object.h"
#include "sections.h"

struct kp_cubin {
	struct kp_source src; /* the cubin and nothing else */
	struct kp_sections sections;
	bool old; /* e_flags as written by CUDA up to 12 */
	unsigned sm;
};

/*
 * Append the kernels to OUT, with the numbers that the cubin states.  A cubin without
 * symbols has no kernels; damaged attributes of a kernel count as not stated.
 * INVALID_FORMAT: the symbols or their names pass the end.
 */
kpack_error_t kp_cubin_kernels(const struct kp_cubin *cubin, struct kp_object *out,
			       struct kpackx_error *why);

#endif
