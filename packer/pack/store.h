/* SPDX-License-Identifier: MIT */
/* Carrying out a plan: read, hash, compress on many threads; store in order. */
#ifndef PACK_H
#define PACK_H

#include "packer/pack/plan/plan.h"
#include "packer/cli/progress.h"

struct shard_log;

struct pack_options {
	kpack_compression_t scheme;
	int level;
	uint64_t
		chunk; /* larger objects are cut into chunks; 0: only what is read at random */
	unsigned jobs;
	struct shard_log *log; /* told what is stored, in order; or NULL */
};

/*
 * Store all objects of PLAN into SET.  Then each binary's volume and the hashes of its
 * images are known.  What went wrong names its file.
 */
kpack_error_t pack_run(const struct plan *plan, const struct pack_options *options,
		       struct archive_set *set, struct progress *progress,
		       struct kpackx_error *why);

#endif
