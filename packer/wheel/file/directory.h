/* SPDX-License-Identifier: MIT */
/* Wheels that are unpacked: a directory as a wheel is, without its RECORD, and back. */
#ifndef PACKER_WHEEL_FILE_DIRECTORY_H
#define PACKER_WHEEL_FILE_DIRECTORY_H

#include "packer/wheel/metadata/name.h"

/*
 * Write the wheel that DIR is unpacked from into the directory TO, uncompressed, as its
 * METADATA and WHEEL name it.  The caller frees *FILE, its path.
 * INVALID_FORMAT: not exactly one directory *.dist-info, a symbolic link or special file.
 */
kpack_error_t wheel_directory_pack(const char *dir, const char *to, unsigned jobs,
				   char **file, struct kpackx_error *why);

/* Unpack the wheel FILE into DIR, which is made. */
kpack_error_t wheel_directory_unpack(const char *file, const char *dir, unsigned jobs,
				     struct kpackx_error *why);

#endif
