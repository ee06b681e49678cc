/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include "readonly.h"

void readonly_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		      struct fuse_file_info *fi)
{
	(void)ino;
	(void)attr;
	(void)to_set;
	(void)fi;
	fuse_reply_err(req, EROFS);
}

void readonly_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
		    off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	(void)buf;
	(void)size;
	(void)off;
	(void)fi;
	fuse_reply_err(req, EROFS);
}

void readonly_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			struct fuse_file_info *fi)
{
	(void)ino;
	(void)mode;
	(void)off;
	(void)len;
	(void)fi;
	fuse_reply_err(req, EROFS);
}

void readonly_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		     struct fuse_file_info *fi)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)fi;
	fuse_reply_err(req, EROFS);
}

void readonly_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    dev_t device)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)device;
	fuse_reply_err(req, EROFS);
}

void readonly_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent;
	(void)name;
	(void)mode;
	fuse_reply_err(req, EROFS);
}

void readonly_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		      const char *name)
{
	(void)target;
	(void)parent;
	(void)name;
	fuse_reply_err(req, EROFS);
}

void readonly_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	(void)parent;
	(void)name;
	fuse_reply_err(req, EROFS);
}

void readonly_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		     fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	(void)parent;
	(void)name;
	(void)new_parent;
	(void)new_name;
	(void)flags;
	fuse_reply_err(req, EROFS);
}

void readonly_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(req, EROFS);
}
