/* SPDX-License-Identifier: MIT */
/* Replay the logs of all shards: store what they stored in the order of one run. */
#ifndef PACKER_SHARD_REPLAY_H
#define PACKER_SHARD_REPLAY_H

#include "shard_part.h"
#include "packer/cli/progress.h"

/* A binary of the whole plan. */
struct replayed {
	struct shard_part *part;
	struct shard_binary *binary;
	unsigned volume; /* the one that it is in now */
};

struct replay {
	struct replayed *binaries; /* by number */
	size_t n_binaries;
	struct replay_name *names; /* of all entries, sorted */
	size_t n_names, names_cap;
	uint64_t bytes; /* of all objects, decoded */
};

/*
 * Gather what the N PARTS, which must outlive OUT, stored.  The caller must finish OUT in
 * any case.
 * INVALID_FORMAT: two parts have a binary of the same number.
 */
kpack_error_t replay_init(struct shard_part *parts, size_t n, struct replay *out,
			  struct kpackx_error *why);
void replay_fini(struct replay *replay);

/*
 * The `stores` of archive_set_options, with the replay as its argument.  Existing
 * archives may move a binary to a later volume.
 */
bool replay_stores(const void *arg, struct kp_span key, struct kp_span arch,
		   unsigned volume, const char **place);

/* Store all of it into SET.  Sets each binary's volume. */
kpack_error_t replay_run(struct replay *replay, struct archive_set *set,
			 struct progress *progress, struct kpackx_error *why);

#endif
