/* SPDX-License-Identifier: MIT */
/* What an object - code object, cubin, PTX, TileIR, bitcode, SPIR-V - says of itself. */
#ifndef KP_CORE_FORMAT_OBJECT_H
#define KP_CORE_FORMAT_OBJECT_H

#include "format.h"

#define KP_NOT_STATED (-1)

/* A kernel; numbers are KP_NOT_STATED where the object does not say. */
struct kp_kernel {
	char *name;
	char *symbol;      /* of its descriptor, "name.kd"; or NULL */
	int64_t vgprs;     /* vector registers, or a CUDA thread's */
	int64_t agprs;     /* accumulation registers */
	int64_t sgprs;     /* scalar registers */
	int64_t lds;       /* bytes of local (CUDA: shared) memory, fixed size */
	int64_t scratch;   /* bytes of private memory a thread */
	int64_t kernarg;   /* bytes of the arguments */
	int64_t wavefront; /* threads */
	int64_t threads;   /* at most, in a workgroup */
};

struct kp_object {
	const struct kp_format *format; /* NULL: of no known format */
	const char *type;               /* as kp_object_type says */
	/* Canonical target, "gfx90a:xnack+", "sm_90a", "compute_90a", or ""; by its bytes. */
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_pairs facts; /* "code object": "6", "toolkit": "13.0" ... */
	struct kp_kernel *kernels;
	size_t n_kernels, kernels_cap;
};

/*
 * Describe the object SRC.  An object of no known format, or of which nothing is known, is a
 * success.  INVALID_FORMAT: it is not what it begins like.  On failure OUT is empty.
 */
kpack_error_t kp_object_describe(const struct kp_source *src, struct kp_object *out,
				 struct kpackx_error *why);
void kp_object_fini(struct kp_object *object);

/* For describers: append a kernel of which only the name is known. */
kpack_error_t kp_object_add_kernel(struct kp_object *object, struct kp_span name,
				   struct kp_kernel **out, struct kpackx_error *why);

#endif
