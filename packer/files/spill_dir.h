/* SPDX-License-Identifier: MIT */
/* The directory into which large compressed bundles are decoded (core/base/file.h). */
#ifndef PACKER_FILES_SPILL_DIR_H
#define PACKER_FILES_SPILL_DIR_H

#include <stdbool.h>

/* Zeroed: nothing was begun. */
struct spill_dir {
	bool spilling;
	int fd;
};

/*
 * From now on decode into DIR, where there is room for what is in the bundles; into memory
 * if its file system has no files without a name.  No other thread may decode meanwhile.
 */
void spill_dir_begin(struct spill_dir *s, const char *dir);
void spill_dir_end(struct spill_dir *s);

#endif
