/* SPDX-License-Identifier: MIT */
/*
 * The references of a Tensile library file (.dat, MessagePack) to other files: which
 * files of its directory it loads later, for which processors, and for which it has kernels
 * in assembly.
 *
 *	{ "solutions": [ {"name", "hardwarePredicate", "sizeMapping": {"sourceKernel", ...}} ],
 *	  "library": {"type": "Hardware", "rows": [ {"predicate", "library"} ]} }
 *
 * "library" contains nodes {"type": "Placeholder", "value": PREFIX} at any depth, and
 * predicates contain {"type": "Processor", "value": NAME}.  Newer files have
 * "solutions_blob" instead of "solutions": the same maps, concatenated.
 */
#ifndef PACKER_LIBRARY_TENSILE_INDEX_H
#define PACKER_LIBRARY_TENSILE_INDEX_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* A file that is loaded when a problem needs it. */
struct tensile_placeholder {
	struct kp_span value; /* its name without an ending */
	size_t gpu, n_gpus;   /* processors of its row, a range of gpus; none: any */
};

/* The solutions for one processor. */
struct tensile_kernels {
	struct kp_span gpu; /* empty: any */
	bool assembly;      /* some are in .co files, not all in .hsaco files */
};

/* Spans point into the bytes that were read. */
struct tensile_index {
	struct kp_span *gpus; /* in order of the rows, with repetitions */
	size_t n_gpus, gpus_cap;
	struct tensile_placeholder *placeholders;
	size_t n_placeholders, placeholders_cap;
	struct tensile_kernels *kernels; /* each processor once */
	size_t n_kernels, kernels_cap;
	bool has_library;
};

/*
 * Read BYTES.  Like the loaders, ignore bytes after the first value.  The caller must
 * finish OUT in any case.  MSGPACK_PARSE_FAILED: not such a map; WHY names field and
 * offset.
 */
kpack_error_t tensile_index_read(struct kp_span bytes, struct tensile_index *out,
				 struct kpackx_error *why);
void tensile_index_fini(struct tensile_index *index);

#endif
