/* SPDX-License-Identifier: MIT */
/* The number of a shard: which of the machines that share a run this one is. */
#ifndef PACKER_PACK_SHARD_NUMBER_H
#define PACKER_PACK_SHARD_NUMBER_H

#include <stdbool.h>

/* As many as the job arrays of any scheduler have. */
#define SHARDS_MAX 65536

struct shard {
	unsigned index; /* from 1 */
	unsigned count; /* 0: the run is not shared */
};

/*
 * Parse "I/N" in plain digits, 1 <= I <= N <= SHARDS_MAX; false: TEXT is not of that
 * form.
 */
bool shard_parse(const char *text, struct shard *out);

#endif
