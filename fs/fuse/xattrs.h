/* SPDX-License-Identifier: MIT */
/*
 * What an archive says of a file, as extended attributes: user.kpack.NAME for each fact of
 * entry_facts.h that the entry has.  Of a file that is the content of several entries, the first's.
 * Directories and the files of .kpackfs have none.
 */
#ifndef FS_FUSE_XATTRS_H
#define FS_FUSE_XATTRS_H

#include <fuse_lowlevel.h>

/*
 * Make HANDLERS, whose user data is a struct fs, answer requests for extended attributes.
 */
void xattrs_add(struct fuse_lowlevel_ops *handlers);

#endif
