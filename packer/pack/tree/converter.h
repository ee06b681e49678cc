/* SPDX-License-Identifier: MIT */
/* The binaries of a plan, written anew without their device code. */
#ifndef PACKER_PACK_TREE_CONVERTER_H
#define PACKER_PACK_TREE_CONVERTER_H

#include "outcome.h"
#include "packer/pack/plan/plan.h"

struct converter {
	struct scan *scan;
	const struct plan *plan;
	struct outcomes *outcomes;
	const char *output; /* root of the tree that is written; NULL: in place */
	const char *group;
	const struct families *families;
	bool keep_device_code;
	bool apart; /* see pack_args */
	unsigned jobs;
};

/*
 * Before anything is written: which can be converted?  Those that cannot become REFUSED.
 * Faults - a binary that lies about itself; in place, one that cannot be replaced - are
 * told and counted in *FAULTS.
 */
kpack_error_t converter_check(const struct converter *c, size_t *faults,
			      struct kpackx_error *why);

/*
 * After the archives were published: convert all that are not REFUSED, each to appear at
 * once with the attributes of the original.  In place, at every path it has, the first
 * last: so what a killed run leaves is packed by the same key again.  One that turns out not
 * to be convertible becomes REFUSED; a converted file among its paths (see resume.h) that
 * is not what comes out is left as it is.  What went wrong names its file.
 */
kpack_error_t converter_run(const struct converter *c, struct kpackx_error *why);

#endif
