/* SPDX-License-Identifier: MIT */
#ifndef PACKER_BASE_TMPDIR_H
#define PACKER_BASE_TMPDIR_H

/*
 * The directory for temporary files: $TMPDIR, or OTHERWISE if it is not set or the program
 * runs with more rights than its user.
 */
const char *tmpdir(const char *otherwise);

/* For files of any size. */
#define LARGE_TEMPORARY_DIR "/var/tmp"

#endif
