/* SPDX-License-Identifier: MIT */
#ifndef PACKER_BASE_TMPDIR_H
#define PACKER_BASE_TMPDIR_H

#include <stdlib.h>

/*
 * The directory for temporary files: $TMPDIR, or OTHERWISE if it is not set or the program
 * runs with more rights than its user.
 */
static inline const char *tmpdir(const char *otherwise)
{
	const char *dir = secure_getenv("TMPDIR");

	return dir && *dir ? dir : otherwise;
}

/* For files of any size. */
#define LARGE_TEMPORARY_DIR "/var/tmp"

#endif
