/* SPDX-License-Identifier: MIT */
/* A binary written anew: it appears whole, with the attributes of the old one, or not. */
#ifndef PACKER_BINARY_REWRITE_H
#define PACKER_BINARY_REWRITE_H

#include "binary.h"

struct rewrite {
	const struct binary *from;
	bool in_place;
	char *dir, *name;      /* where it goes */
	struct kp_outfile out; /* to be written by the caller */
};

/* Is PATH the file FROM is, under whatever name? */
bool rewrite_is_same(const struct binary *from, const char *path);

/*
 * Begin to write PATH from FROM, which stays open until the end.  A file that is there will
 * be replaced, FROM's own one too; a symbolic link to it stays one.
 * IO_ERROR (also for anything there that is no regular file), FILE_NOT_FOUND, OUT_OF_MEMORY.
 */
kpack_error_t rewrite_open(struct rewrite *r, const struct binary *from, const char *path,
			   struct kpackx_error *why);

/*
 * Give it FROM's attributes and its name.  IO_ERROR: FROM was changed meanwhile, or in
 * place the owner cannot be kept.  NOT_IMPLEMENTED: in place it has other hard links,
 * which would keep the old content.
 */
kpack_error_t rewrite_publish(struct rewrite *r, struct kpackx_error *why);

/* Unless published, nothing happened.  Accepts a zeroed or failed one. */
void rewrite_close(struct rewrite *r);

#endif
