/* SPDX-License-Identifier: MIT */
/*
 * The databases of Tensile and TensileLite, which rocBLAS, hipBLASLt and hipSPARSELt keep
 * in their directories "library", or which users put into any other directory.  All
 * generations are covered: one library for all, a file per kind of problem, a directory
 * per GPU, and mixtures of these.
 *
 * tensile.c gives files to the three libraries, tensile_name.c has the grammar of names, and
 * tensile_index.c reads library files.
 */
#ifndef PACKER_LIBRARY_TENSILE_H
#define PACKER_LIBRARY_TENSILE_H

#include "library.h"

/*
 * The library ("rocblas") whose file PATH is because the other files of its directory,
 * or of the GPUs' directories next to it, have names that only Tensile gives: distributions put
 * a version between the library's name and "library", and users put them anywhere.  The
 * library is that which a component of the path names, or else the one whose files these
 * are.  REST gets the part of PATH after the library's directory.  NULL: no library's.
 *
 * In a directory that is not named "library" only the files belong to it whose names
 * Tensile's grammar has.
 */
const char *tensile_library_of(const struct file_tree *tree, const char *path,
			       struct kp_span *rest);

/* --- names ------------------------------------------------------------------------------ */

/* A parsed file name; the spans point into it. */
struct tensile_name {
	/* without endings and "-xnack+" or "-xnack-": libraries look for it */
	struct kp_span stem;
	/* the ending before that of compression: "dat" of .dat.zlib; or empty */
	struct kp_span ending;
	bool compressed; /* .zlib */
	bool code;       /* the whole ending is that of a code object */
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

/*
 * Add the facts that a stem states, in this order: problem types datatype hpa options
 * operation transpose_a transpose_b conjugate_a conjugate_b M N K cu_count apu.
 */
void tensile_name_facts(struct kp_span stem, struct facts *facts);

/* --- library files ---------------------------------------------------------------------- */

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

/* What a library file refers to.  Spans point into the bytes that were read. */
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

/*
 * The number of kernels in a library file, plain or a zlib stream, that begins with HEAD; 0: its
 * first bytes do not state it.
 */
uint64_t tensile_kernel_count(struct kp_span head);

#endif
