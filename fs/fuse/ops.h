/* SPDX-License-Identifier: MIT */
/* One function per FUSE request, and what the kernel is told without having asked. */
#ifndef FS_FUSE_OPS_H
#define FS_FUSE_OPS_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include "fs/content/content.h"
#include "control.h"
#include "fs/tree/inodes.h"

/* The state that requests use: the session's user data. */
struct fs {
	struct fuse_session *session;
	struct inodes *inodes;
	struct content *content;
	struct control *control;
	bool always_open;          /* the kernel must send each OPEN and OPENDIR */
	bool no_open, no_opendir;  /* the kernel sends no more after an answer ENOSYS */
	_Atomic uint64_t requests; /* the number of requests so far */
};

extern const struct fuse_lowlevel_ops ops;

/* The answer to a read: TOKEN is the request. */
content_answer op_read_answer;

/*
 * Make HANDLERS, whose user data is a struct fs, answer requests for extended attributes.
 */
void xattrs_add(struct fuse_lowlevel_ops *handlers);

/*
 * The invalidations of one swap of editions; the caller zeroes it and sets the session.
 */
struct invalidation {
	struct fuse_session *session;
	size_t names;
	bool all; /* all names have been invalidated: no more single ones are needed */
};

/*
 * Invalidate what the kernel has cached of the last edition: the callback NOTIFY of
 * inodes_swap, where NOTICES is a struct invalidation.  Called from a thread that answers no
 * requests, because the kernel may make it wait for a pending answer.
 */
void invalidate_send(void *notices, const struct change *c);

#endif
