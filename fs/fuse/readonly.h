/* SPDX-License-Identifier: MIT */
/*
 * Handlers of requests that would change the tree: all answer EROFS.  The kernel refuses
 * such requests itself if the mount is `ro`, but it may have been mounted or remounted
 * without.  Without a handler the answer would be ENOSYS.
 */
#ifndef FS_FUSE_READONLY_H
#define FS_FUSE_READONLY_H

#include <fuse_lowlevel.h>

void readonly_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		      struct fuse_file_info *fi);
void readonly_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
		    off_t off, struct fuse_file_info *fi);
void readonly_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			struct fuse_file_info *fi);
void readonly_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		     struct fuse_file_info *fi);
void readonly_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    dev_t device);
void readonly_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void readonly_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		      const char *name);
void readonly_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void readonly_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		     fuse_ino_t new_parent, const char *new_name, unsigned flags);
void readonly_remove(fuse_req_t req, fuse_ino_t parent, const char *name);

#endif
