/* SPDX-License-Identifier: MIT */
/* What the names of Tensile's files say: the grammar of the BLAS libraries' databases. */
#ifndef PACKER_LIBRARY_TENSILE_NAME_H
#define PACKER_LIBRARY_TENSILE_NAME_H

#include "packer/library/facts.h"

/* A file's name taken apart; the spans are parts of it. */
struct tensile_name {
	/* without endings and without "-xnack+" or "-xnack-": what a library asks for */
	struct kp_span stem;
	/* the ending, without one of compression: "dat" of .dat.zlib; or empty */
	struct kp_span ending;
	bool compressed; /* .zlib */
	/*
	 * parent    which children there are for a GPU, or the only .dat of all
	 * child     the kernels of one kind of problem
	 * code      their code objects
	 * helper    kernels for conversion and the like, of no problem
	 * fallback  what serves a GPU that has nothing better: .dat and code
	 * extop mapping transform manifest
	 * file      anything else
	 */
	const char *role;
};

struct tensile_name tensile_name_split(struct kp_span name);

/* Is it a code object by its whole ending? */
bool tensile_name_is_code(const struct tensile_name *name);

/*
 * Add what a stem says, in this order: problem types datatype hpa options operation
 * transpose_a transpose_b conjugate_a conjugate_b M N K cu_count apu.
 */
void tensile_name_facts(struct kp_span stem, struct facts *facts);

#endif
