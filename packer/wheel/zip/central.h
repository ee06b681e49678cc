/* SPDX-License-Identifier: MIT */
/*
 * The directory of a zip archive as it stands in the file: where members begin and what they
 * take, which libzip does not tell.  Read first, so that libzip is given no more than it can
 * hold, and what it says can be compared.
 */
#ifndef PACKER_WHEEL_ZIP_CENTRAL_H
#define PACKER_WHEEL_ZIP_CENTRAL_H

#include "core/base/errors.h"
#include "core/base/file.h"

struct central_entry {
	uint64_t offset; /* of its local header */
	uint64_t compressed, size;
	uint32_t name_size;
	bool has_nul; /* in its name, which tools then read in different ways */
};

struct central {
	struct central_entry *entries;
	size_t count;
	uint64_t offset; /* of the directory */
};

/*
 * INVALID_FORMAT: no archive, one of several disks, with bytes behind its end or between
 * directory and end, with more than MAX entries, with members that overlap or reach into the
 * directory.  Freed by central_fini in any case.
 */
kpack_error_t central_read(const struct kp_source *src, uint64_t max, struct central *out,
			   struct kpackx_error *why);
void central_fini(struct central *c);

#endif
