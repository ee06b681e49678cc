/* SPDX-License-Identifier: MIT */
/* Convert an unpacked wheel, a directory, to a wheel file, and back. */
#ifndef PACKER_WHEEL_FILE_DIRECTORY_H
#define PACKER_WHEEL_FILE_DIRECTORY_H

#include "wheel_name.h"

/*
 * Make a wheel of the unpacked wheel DIR, in the directory TO, uncompressed, with a new
 * RECORD and the file name that METADATA and WHEEL imply.  The caller frees *FILE, the
 * wheel's path.
 * INVALID_FORMAT: not exactly one directory *.dist-info, a symbolic link or special file.
 */
kpack_error_t wheel_directory_pack(const char *dir, const char *to, unsigned jobs,
				   char **file, struct kpackx_error *why);

/* Make the directory DIR, and unpack the wheel FILE into it. */
kpack_error_t wheel_directory_unpack(const char *file, const char *dir, unsigned jobs,
				     struct kpackx_error *why);

#endif
