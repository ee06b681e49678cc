/* SPDX-License-Identifier: MIT */
/* The directory into which large compressed bundles are decoded (core/base/file.h). */
#ifndef PACKER_FILES_SPILL_DIR_H
#define PACKER_FILES_SPILL_DIR_H

/*
 * From now on decode into DIR, where there is room for what is in the bundles; into memory
 * if its file system has no files without a name.  No other thread may decode meanwhile.
 */
void spill_dir_begin(const char *dir);
void spill_dir_end(void); /* also if nothing was begun */

#endif
