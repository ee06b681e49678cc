/* SPDX-License-Identifier: MIT */
/*
 * The central directory of a zip archive, as it is in the file: the offsets and sizes of
 * members, which libzip does not report.  It is read first, so that libzip never gets
 * more entries than allowed, and so that libzip's values can be compared with these.
 */
#ifndef PACKER_WHEEL_ZIP_CENTRAL_H
#define PACKER_WHEEL_ZIP_CENTRAL_H

#include "core/base/errors.h"
#include "core/base/file.h"

struct central_entry {
	uint64_t offset; /* of its local header */
	uint64_t compressed, size;
	uint32_t name_size;
	bool has_nul; /* its name has a NUL, which tools handle differently */
};

struct central {
	struct central_entry *entries;
	size_t count;
	uint64_t offset; /* of the central directory */
};

/*
 * Read the central directory of SRC.  INVALID_FORMAT: not a zip archive; an archive of
 * several disks; bytes behind its end or between the directory and the end record; more
 * than MAX entries; members that overlap or reach into the directory.  The caller calls
 * central_fini even after an error.
 */
kpack_error_t central_read(const struct kp_source *src, uint64_t max, struct central *out,
			   struct kpackx_error *why);
void central_fini(struct central *c);

#endif
