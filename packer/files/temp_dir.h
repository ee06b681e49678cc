/* SPDX-License-Identifier: MIT */
/*
 * A directory for the files of one run, in a directory that other users may write into:
 * only its user may enter it, and its lock shows that the run is alive.
 */
#ifndef PACKER_FILES_TEMP_DIR_H
#define PACKER_FILES_TEMP_DIR_H

#include "core/base/errors.h"

struct temp_dir {
	char *path; /* a root of below.h */
	int fd;     /* the directory, locked; -1: none */
};

/* Make one in the directory BASE; its name begins with PREFIX.  IO_ERROR. */
kpack_error_t temp_dir_open(struct temp_dir *t, const char *base, const char *prefix,
			    struct kpackx_error *why);
/* Remove it and what is in it.  Accepts one with fd -1 and path NULL. */
void temp_dir_close(struct temp_dir *t);

/*
 * Remove those that killed runs of the same user left in BASE, but none that a running one
 * uses.  RECOVER, if not NULL, is called before with the descriptors of the directory and
 * of BASE.  What cannot be removed stays, and is not reported.  Where other users can
 * rename directories, root removes only what it made with this module.
 */
void temp_dir_remove_left(const char *base, const char *prefix,
			  void (*recover)(int dir, int base));

#endif
