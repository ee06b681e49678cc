/* SPDX-License-Identifier: MIT */
/*
 * Storing the objects of a plan: read, hash and compress on many threads; add to the archives in
 * order.
 */
#ifndef PACKER_PACK_STORE_H
#define PACKER_PACK_STORE_H

#include "core/writer/encode.h"
#include "packer/cli/report.h"
#include "plan.h"

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
		       struct archive_set *set, struct kpackx_error *why);

/* --- objects of many bytes: large.c -------------------------------------------------- */

/*
 * Packing such an object without holding it or its frame in memory: both are in temporary
 * files (core/base/file.h), whose pages are given back while they are mapped.
 */
struct large {
	struct kp_source raw;   /* the object's bytes */
	struct kp_source frame; /* encoded */
	int raw_fd, frame_fd;   /* owned; -1: none */
};

/* About how much memory it needs, besides its encoder. */
#define LARGE_COST (UINT64_C(24) << 20)

/* Whether objects of SIZE bytes are packed so. */
bool large_is(uint64_t size);

/*
 * Hash SOURCE, and copy it unless it is PRIVATE, a file that nobody else can change, which
 * is borrowed.  OUT is to be freed even after a failure.  IO_ERROR.
 */
kpack_error_t large_begin(const struct kp_source *source, bool private, struct large *out,
			  struct kp_hash *hash, struct kpackx_error *why);
/* Set the frame, which is that of kp_encode.  IO_ERROR; OUT_OF_MEMORY. */
kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why);
/* Free the object's bytes, of which the frame is independent. */
void large_end_raw(struct large *l);
void large_fini(struct large *l);

#endif
