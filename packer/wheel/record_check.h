/* SPDX-License-Identifier: MIT */
/* Compare a wheel's members with its RECORD. */
#ifndef PACKER_WHEEL_FILE_RECORD_CHECK_H
#define PACKER_WHEEL_FILE_RECORD_CHECK_H

#include "record.h"
#include "wheel_in.h"

/*
 * Read the RECORD of W in its directory DIST_INFO ("x-1.dist-info"), and compare names
 * and sizes: every file must have one line with a hash and its size, every line must have
 * a file.  RECORD, RECORD.jws and RECORD.p7s need no hash.  The caller calls record_fini
 * even after an error.
 * INVALID_FORMAT: RECORD is missing or wrong; the error names the member.
 */
kpack_error_t record_check(const struct wheel_in *w, struct wheel_reader *r,
			   const char *dist_info, struct record *out,
			   struct kpackx_error *why);

/* INVALID_FORMAT: the member PATH is not what RECORD has, which TEXT explains. */
kpack_error_t record_refuse(struct kpackx_error *why, const char *path, const char *text);

#endif
