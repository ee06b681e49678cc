/* SPDX-License-Identifier: MIT */
/* Convert binaries: rewrite them without their device code. */
#ifndef PACKER_PACK_TREE_CONVERTER_H
#define PACKER_PACK_TREE_CONVERTER_H

#include "disposition.h"
#include "core/base/file.h"
#include "plan.h"

/*
 * Write a binary otherwise than converted: IN, which is open at FD, to OUT.  Called on
 * several threads.  NOT_IMPLEMENTED: it cannot be rewritten, and becomes REFUSED.
 */
typedef kpack_error_t converter_rewrite_fn(void *arg, struct input *in, int fd,
					   struct kp_outfile *out,
					   struct kpackx_error *why);

struct converter {
	struct scan *scan;
	struct input **inputs; /* of the scan; those that are no host binaries stay */
	size_t n_inputs;
	const struct plan *plan; /* of these inputs, without faults; not for `rewrite` */
	struct dispositions *dispositions;
	const char *output; /* root of the tree that is written; NULL: in place */
	const char *group;
	const struct families *families;
	bool keep_device_code, keep_containers;
	/*
	 * The archives go into packages of their own: a converted binary is the same
	 * whatever was selected, even nothing.
	 */
	bool apart;
	unsigned jobs;
	converter_rewrite_fn *rewrite; /* NULL: convert */
	/* The bytes of memory that rewriting a binary needs at most; NULL: little. */
	uint64_t (*rewrite_cost)(void *arg, const struct input *in);
	void *rewrite_arg;
};

/*
 * Before anything is written, check which binaries can be converted; the others become
 * REFUSED.  The plan is not needed.  Faults (a binary that contradicts itself or, in
 * place, one that cannot be replaced) are reported and counted in *FAULTS.
 */
void converter_check(const struct converter *c, size_t *faults);

/*
 * After the archives are published, convert all binaries that are not REFUSED.  Each
 * appears complete, with the attributes of the original.  In place a binary is replaced
 * at each of its paths, at the first one last, so that the next run packs what a killed
 * run leaves under the same key.  A binary that turns out not to be convertible becomes
 * REFUSED.  A converted file among the paths of a binary (see interrupted.h) that is not
 * the result of its conversion is left as it is.  In place there need only be room for the
 * largest new file.  Errors name the file.
 */
kpack_error_t converter_run(const struct converter *c, struct kpackx_error *why);

#endif
