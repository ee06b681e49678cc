/* SPDX-License-Identifier: MIT */
/* The grammar of the names of Tensile's files, the databases of the BLAS libraries. */
#ifndef PACKER_LIBRARY_TENSILE_NAME_H
#define PACKER_LIBRARY_TENSILE_NAME_H

#include "facts.h"

/* A parsed file name; the spans point into it. */
struct tensile_name {
	/* without endings and "-xnack+" or "-xnack-": libraries look for it */
	struct kp_span stem;
	/* the ending before that of compression: "dat" of .dat.zlib; or empty */
	struct kp_span ending;
	bool compressed; /* .zlib */
	/*
	 * parent    lists the children for a GPU, or is the only .dat
	 * child     the kernels of one kind of problem
	 * code      the code objects of a child
	 * helper    kernels for conversion and the like, of no kind of problem
	 * fallback  .dat and code for GPUs that have nothing better
	 * extop mapping transform manifest
	 * file      anything else
	 */
	const char *role;
};

struct tensile_name tensile_name_split(struct kp_span name);

/* Whether the whole ending is that of a code object. */
bool tensile_name_is_code(const struct tensile_name *name);

/*
 * Add the facts that a stem states, in this order: problem types datatype hpa options
 * operation transpose_a transpose_b conjugate_a conjugate_b M N K cu_count apu.
 */
void tensile_name_facts(struct kp_span stem, struct facts *facts);

#endif
