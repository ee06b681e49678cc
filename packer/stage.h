/* SPDX-License-Identifier: MIT */
/*
 * Trees being written into a directory, in which each appears whole: they are made in a
 * hidden directory inside it, flushed, and renamed.  What a killed run left there is removed
 * by the next one.
 */
#ifndef STAGE_H
#define STAGE_H

#include <stdbool.h>
#include "error.h"

struct stage {
	char *output, *path; /* PATH: the hidden directory, for trees being made */
	int fd;              /* of PATH: its lock */
	int output_fd;
};

/* Make OUTPUT, and a hidden directory in it.  IO_ERROR, OUT_OF_MEMORY. */
kpack_error_t stage_open(const char *output, struct stage *out, struct kpackx_error *why);

/* Everything that was written, to the disk. */
kpack_error_t stage_flush(const struct stage *stage, struct kpackx_error *why);

/*
 * Give the tree NAME its place in OUTPUT.  IO_ERROR with EEXIST: something is there, and
 * REPLACE is false.
 */
kpack_error_t stage_publish(const struct stage *stage, const char *name, bool replace,
			    struct kpackx_error *why);

/* Remove what was not published, and what was replaced.  Accepts a zeroed or failed one. */
void stage_close(struct stage *stage);

#endif
