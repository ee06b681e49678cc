/* SPDX-License-Identifier: MIT */
/* One function per FUSE request. */
#ifndef FS_FUSE_OPS_H
#define FS_FUSE_OPS_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include "fs/content/content.h"
#include "control.h"
#include "fs/tree/inodes.h"

/* The state that requests use: the session's user data. */
struct fs {
	struct inodes *inodes;
	struct content *content;
	struct control *control;
	bool always_open;          /* the kernel must send each OPEN and OPENDIR */
	bool no_open, no_opendir;  /* the kernel sends no more after an answer ENOSYS */
	_Atomic uint64_t requests; /* the number of requests so far */
};

extern const struct fuse_lowlevel_ops ops;

/* The callback `answer` of content_options: TOKEN is the request. */
content_answer op_read_answer;

#endif
