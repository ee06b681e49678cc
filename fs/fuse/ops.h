/* SPDX-License-Identifier: MIT */
/* One function per FUSE request. */
#ifndef FS_FUSE_OPS_H
#define FS_FUSE_OPS_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include "fs/content/content.h"
#include "fs/control/control.h"
#include "fs/tree/inodes.h"

/* What the requests work on: the session's user data. */
struct fs {
	struct inodes *inodes;
	struct content *content;
	struct control *control;
	bool always_open;          /* OPEN and OPENDIR are to be asked each time */
	bool no_open, no_opendir;  /* the kernel takes ENOSYS for an answer */
	_Atomic uint64_t requests; /* grows with each */
};

extern const struct fuse_lowlevel_ops ops;

/* For content_options. */
content_answer op_read_answer;

#endif
