/* SPDX-License-Identifier: MIT */
/* The kernels of a cubin, for its describer. */
#ifndef KP_CORE_FORMAT_CUDA_CUBIN_H
#define KP_CORE_FORMAT_CUDA_CUBIN_H

#include "core/format/object.h"
#include "core/format/sections.h"

struct kp_cubin {
	struct kp_source src; /* the cubin alone */
	struct kp_sections sections;
	bool old; /* flags as CUDA up to 12 has them */
	unsigned sm;
};

/*
 * Append the kernels to OUT with what is stated of them.  A cubin without symbols has none;
 * what is damaged of a kernel's attributes is not stated.
 * INVALID_FORMAT: symbols that do not fit.
 */
kpack_error_t kp_cubin_kernels(const struct kp_cubin *cubin, struct kp_object *out,
			       struct kpackx_error *why);

#endif
