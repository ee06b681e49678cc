/* SPDX-License-Identifier: MIT */
/* Carry out a plan: read, hash and compress on many threads; store in order. */
#ifndef PACKER_PACK_STORE_H
#define PACKER_PACK_STORE_H

#include "plan.h"
#include "packer/cli/report.h"

/*
 * Sizes of compressed bundles, in which the code of all GPUs is compressed together, and of
 * what is stored for it.
 */
struct bundle_sizes {
	uint64_t bundles; /* compressed bundles */
	uint64_t objects; /* stored for their objects */
	uint64_t all;     /* stored for all objects */
	/* of a sample of these objects: stored bytes, and decoded debugging information;
	 * of a smaller one, that decoded and compressed */
	uint64_t measured, debug, pressed_debug, pressed;
};

struct pack_options {
	kpack_compression_t scheme;
	int level;
	/* seconds of CPU time for 10^9 bytes of objects, in place of the level; or 0 */
	uint32_t effort;
	uint64_t chunk; /* larger objects are cut; 0: only those read at random */
	unsigned jobs;
	const bool
		*mine; /* per entry of the scan: store the objects of these; NULL: all */
	const char *source_prefix;  /* stated in the metadata of device code; or NULL */
	struct bundle_sizes *sizes; /* zeroed, to be added to; or NULL */
};

/*
 * Store the objects of PLAN into SET, where every binary has its volume.  Sets the hashes of
 * images.  Errors name the file.
 */
kpack_error_t pack_run(const struct plan *plan, const struct pack_options *options,
		       struct archive_set *set, struct progress *progress,
		       struct kpackx_error *why);

#endif
