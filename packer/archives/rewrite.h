/* SPDX-License-Identifier: MIT */
/* Rewrite a binary: the new file appears whole, with the old attributes, or not. */
#ifndef PACKER_BINARY_REWRITE_H
#define PACKER_BINARY_REWRITE_H

#include "binary.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

struct rewrite {
	const struct binary *from;
	bool in_place;
	struct below_target to; /* the place of the new file */
	struct kp_outfile out;  /* the caller writes it */
};

/* Whether PATH is the file FROM, under any name. */
bool rewrite_is_same(const struct binary *from, const char *path);

/*
 * Begin to write PATH from FROM, which must stay open until the end.  An existing file
 * will be replaced, also FROM's own file; if PATH is a symbolic link, the file it leads
 * to is replaced.  IO_ERROR (also if PATH exists and is no regular file), FILE_NOT_FOUND,
 * OUT_OF_MEMORY.
 */
kpack_error_t rewrite_open(struct rewrite *r, const struct binary *from, const char *path,
			   struct kpackx_error *why);

/*
 * Give the new file FROM's attributes and its name.  IO_ERROR: FROM was changed
 * meanwhile; or FROM's own file is replaced and the owner cannot be kept.
 * NOT_IMPLEMENTED: FROM's own file is replaced and has other hard links, which would keep
 * the old content.
 */
kpack_error_t rewrite_publish(struct rewrite *r, struct kpackx_error *why);

/*
 * Clean up; without rewrite_publish, nothing was changed.  R may be zeroed, or its open
 * may have failed.
 */
void rewrite_close(struct rewrite *r);

#endif
