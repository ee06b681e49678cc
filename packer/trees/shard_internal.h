/* SPDX-License-Identifier: MIT */
/* The line of a part (shard.h), as packing writes and merging reads it. */
#ifndef PACKER_TREES_SHARD_INTERNAL_H
#define PACKER_TREES_SHARD_INTERNAL_H

#include "shard.h"

#define SHARD_DIGEST 33 /* 16 bytes in hexadecimal digits, and a NUL */
#define SHARD_LINE_MAX 200

struct shard_line {
	enum {
		SHARD_NONE, /* there is no line */
		SHARD_UNFINISHED,
		SHARD_FINISHED,
	} state;
	struct shard shard;
	int level;
	char run[SHARD_DIGEST], files[SHARD_DIGEST];
	uid_t owner;
	struct timespec written;
};

/* Read the line of DIR; a line of another form counts as unfinished. */
kpack_error_t shard_line_read(const char *dir, struct shard_line *out,
			      struct kpackx_error *why);

/*
 * Digest what can be seen of the files in DIR without reading them, so that a copy without times
 * or modes, or of which something is missing, is not taken for the part.
 */
kpack_error_t shard_digest_files(const char *dir, char out[SHARD_DIGEST],
				 struct kpackx_error *why);

#endif
