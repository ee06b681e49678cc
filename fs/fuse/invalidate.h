/* SPDX-License-Identifier: MIT */
/*
 * Telling the kernel what it must not believe any more.  From a thread that answers no
 * requests: the kernel may make us wait for an answer that is under way.
 */
#ifndef FS_FUSE_INVALIDATE_H
#define FS_FUSE_INVALIDATE_H

#include <fuse_lowlevel.h>
#include "fs/tree/inodes.h"

/* The notices of one swap of editions; begin with zeros and the session. */
struct invalidation {
	struct fuse_session *session;
	size_t names;
	bool all; /* the kernel asks for every name again: single names need not be invalidated */
};

/* For inodes_swap, with a struct invalidation. */
void invalidate_send(void *notices, const struct change *c);

#endif
