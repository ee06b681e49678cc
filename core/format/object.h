/* SPDX-License-Identifier: MIT */
/* Facts that an object - code object, cubin, PTX, TileIR, bitcode, SPIR-V - records. */
#ifndef KP_CORE_FORMAT_OBJECT_H
#define KP_CORE_FORMAT_OBJECT_H

#include "format.h"

#define KP_NOT_STATED (-1)

/* A kernel; numbers are KP_NOT_STATED if the object does not state them. */
struct kp_kernel {
	char *name;
	char *symbol;      /* of its descriptor, "name.kd"; or NULL */
	int64_t vgprs;     /* vector registers; CUDA: registers per thread */
	int64_t agprs;     /* accumulation registers */
	int64_t sgprs;     /* scalar registers */
	int64_t lds;       /* bytes of local (CUDA: shared) memory of fixed size */
	int64_t scratch;   /* bytes of private memory per thread */
	int64_t kernarg;   /* bytes of the arguments */
	int64_t wavefront; /* threads per wavefront */
	int64_t threads;   /* maximum threads per workgroup */
};

struct kp_object {
	const struct kp_format *format; /* NULL: unknown format */
	const char *type;               /* as kp_object_type says */
	/*
	 * Canonical target from its bytes, "gfx90a:xnack+", "sm_90a", "compute_90a"; or
	 * "".
	 */
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_pairs facts; /* "code object": "6", "toolkit": "13.0" ... */
	struct kp_kernel *kernels;
	size_t n_kernels, kernels_cap;
};

/*
 * Describe the object SRC.  An unknown format, or an object without facts, is a success.
 * INVALID_FORMAT: SRC begins like an object but is damaged.  On failure OUT is empty.
 */
kpack_error_t kp_object_describe(const struct kp_source *src, struct kp_object *out,
				 struct kpackx_error *why);
void kp_object_fini(struct kp_object *object);

/* For describers: append a kernel with its name; its numbers are KP_NOT_STATED. */
kpack_error_t kp_object_add_kernel(struct kp_object *object, struct kp_span name,
				   struct kp_kernel **out, struct kpackx_error *why);

#endif
