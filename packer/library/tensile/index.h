/* SPDX-License-Identifier: MIT */
/*
 * What a Tensile library file (.dat, MessagePack) says of other files: which files of its
 * directory it loads later, for which processors, and what kind of kernels it has.
 *
 *	{ "solutions": [ {"name", "hardwarePredicate", "sizeMapping": {"sourceKernel", ...}} ],
 *	  "library": {"type": "Hardware", "rows": [ {"predicate", "library"} ]} }
 *
 * Somewhere in "library" stand nodes {"type": "Placeholder", "value": PREFIX}; in
 * predicates, {"type": "Processor", "value": NAME}.  Newer files have "solutions_blob"
 * instead of "solutions": the same maps, one behind the other.
 */
#ifndef PACKER_LIBRARY_TENSILE_INDEX_H
#define PACKER_LIBRARY_TENSILE_INDEX_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* Kinds of kernels. */
enum {
	TENSILE_ASSEMBLY = 1, /* they stand in .co */
	TENSILE_SOURCE = 2,   /* they stand in .hsaco */
	TENSILE_UNSTATED = 4,
	TENSILE_HELPER = 8, /* they need kernels that prepare or sum up */
};

/* A file that is loaded when a problem needs it; its name without an ending. */
struct tensile_placeholder {
	struct kp_span value;
	size_t gpu, n_gpus; /* processors of its row: a part of gpus; none: any */
};

/* The solutions for one processor. */
struct tensile_kernels {
	struct kp_span gpu; /* empty: any */
	unsigned kinds;
	struct kp_span assembly, source; /* name of the first of the kind; or empty */
};

/* Spans point into the bytes that were read. */
struct tensile_index {
	struct kp_span *gpus; /* in order of the rows, may repeat */
	size_t n_gpus, gpus_cap;
	struct tensile_placeholder *placeholders;
	size_t n_placeholders, placeholders_cap;
	struct tensile_kernels *kernels; /* each processor once */
	size_t n_kernels, kernels_cap;
	uint64_t n_solutions;
	bool has_library;
};

/*
 * Read BYTES; what follows the first value is not looked at, as loaders do.  OUT must be
 * finished in any case.  MSGPACK_PARSE_FAILED: no such map; field and offset are reported.
 * OUT_OF_MEMORY.
 */
kpack_error_t tensile_index_read(struct kp_span bytes, struct tensile_index *out,
				 struct kpackx_error *why);
void tensile_index_fini(struct tensile_index *index);

#endif
