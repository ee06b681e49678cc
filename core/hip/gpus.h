/* SPDX-License-Identifier: MIT */
/* The kinds of GPUs that code is loaded for. */
#ifndef KP_HIP_GPUS_H
#define KP_HIP_GPUS_H

#include "core/target/target.h"

struct gpus {
	struct kp_target *list; /* each kind once */
	size_t count;
};

/*
 * Find the GPUs: those of KPACK_HIP_ARCH, a list of target IDs, or the machine's.  For
 * the machine's GPUs, HSA_OVERRIDE_GFX_VERSION_N is the version of the GPU with ROCm's
 * number N, and HSA_OVERRIDE_GFX_VERSION that of every other GPU.  No GPU is a success.
 * INVALID_ARGUMENT: a variable is wrong.  OUT_OF_MEMORY.  OUT lasts as long as
 * the process.
 */
kpack_error_t gpus_find(struct gpus *out, struct kpackx_error *why);

/* The first GPU that can load code for the target ID CODE; NULL: none. */
const struct kp_target *gpus_that_loads(const struct gpus *g, struct kp_span code);

/*
 * Write all targets that files for these GPUs may be named after to *NAMES, an array of
 * *COUNT strings; the caller frees it, and not the strings, with free().  Those with
 * fewer features are left out.
 */
kpack_error_t gpus_names(const struct gpus *g, const char *const **names, size_t *count,
			 struct kpackx_error *why);

#endif
