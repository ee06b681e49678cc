/* SPDX-License-Identifier: MIT */
/* Which of several machines that share a run this one is. */
#ifndef PACKER_PACK_SHARD_NUMBER_H
#define PACKER_PACK_SHARD_NUMBER_H

#include <stdbool.h>

/* As many as an array of jobs has on any scheduler. */
#define SHARDS_MAX 65536

struct shard {
	unsigned index; /* from 1 */
	unsigned count; /* 0: the run is not shared */
};

/* "I/N" in plain digits, 1 <= I <= N <= SHARDS_MAX; false: it is not. */
bool shard_parse(const char *text, struct shard *out);

#endif
