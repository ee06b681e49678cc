/* SPDX-License-Identifier: MIT */
/* Does RECORD say of a wheel's members what is there? */
#ifndef PACKER_WHEEL_FILE_RECORD_CHECK_H
#define PACKER_WHEEL_FILE_RECORD_CHECK_H

#include "packer/wheel/metadata/record.h"
#include "in.h"

/*
 * Read the RECORD of W, whose directory of information is DIST_INFO ("x-1.dist-info"), and
 * compare names and sizes: every file has one line with a hash and its size, every line a
 * file.  RECORD, RECORD.jws and RECORD.p7s need no hash.  Freed by record_fini in any case.
 * INVALID_FORMAT: it lies, or there is none; the text names the member.
 */
kpack_error_t record_check(const struct wheel_in *w, struct wheel_reader *r,
			   const char *dist_info, struct record *out,
			   struct kpackx_error *why);

/*
 * Read MEMBER with R and compare its hash with RECORD's; what is read is passed on to TAKE
 * too, unless that is NULL.
 * INVALID_FORMAT: RECORD lies.
 */
kpack_error_t record_check_member(const struct wheel_in *w, struct wheel_reader *r,
				  const struct record *record, struct record_hash *hash,
				  size_t member, wheel_take *take, void *arg,
				  struct kpackx_error *why);

#endif
