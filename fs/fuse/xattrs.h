/* SPDX-License-Identifier: MIT */
/*
 * The facts that an archive states about a file, as extended attributes: user.kpack.NAME
 * for each fact of entry_facts.h that the entry has.  If several entries share a file,
 * its facts are those of the first.  A bundle has its key, type and size.  Directories
 * and the files of .kpackfs have no such attributes.
 */
#ifndef FS_FUSE_XATTRS_H
#define FS_FUSE_XATTRS_H

#include <fuse_lowlevel.h>

/*
 * Make HANDLERS, whose user data is a struct fs, answer requests for extended attributes.
 */
void xattrs_add(struct fuse_lowlevel_ops *handlers);

#endif
