/* SPDX-License-Identifier: MIT */
/*
 * Invalidates what the kernel has cached of the last edition.  Called from a thread that
 * answers no requests, because the kernel may make it wait for a pending answer.
 */
#ifndef FS_FUSE_INVALIDATE_H
#define FS_FUSE_INVALIDATE_H

#include <fuse_lowlevel.h>
#include "fs/tree/inodes.h"

/*
 * The invalidations of one swap of editions; the caller zeroes it and sets the session.
 */
struct invalidation {
	struct fuse_session *session;
	size_t names;
	bool all; /* all names have been invalidated: no more single ones are needed */
};

/* The callback NOTIFY of inodes_swap; NOTICES is a struct invalidation. */
void invalidate_send(void *notices, const struct change *c);

#endif
