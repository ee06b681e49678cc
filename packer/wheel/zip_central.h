/* SPDX-License-Identifier: MIT */
/* The central directory of a zip archive, compared with the members' own headers. */
#ifndef PACKER_WHEEL_ZIP_CENTRAL_H
#define PACKER_WHEEL_ZIP_CENTRAL_H

#include "core/base/errors.h"
#include "core/base/file.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };
/* Bits of a member's flags. */
enum {
	ZIP_ENCRYPTED = 1 << 0,
	ZIP_DESCRIPTOR = 1 << 3,
	ZIP_DATA = 3 << 1 | 3 << 4, /* how the bytes were made, which a copy keeps */
};

struct central_entry {
	char *name; /* owned */
	uint32_t name_size;
	bool has_nul;    /* its name has a NUL, which tools handle differently */
	uint64_t offset; /* of its local header */
	uint64_t data;   /* of its bytes; set by central_check_locals */
	uint64_t end; /* of the room for its bytes: the next member, or the directory */
	uint64_t compressed, size;
	uint32_t crc, time, attributes;
	uint16_t needs, flags, method; /* NEEDS: a version of zip */
	bool text;                     /* an internal attribute */
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

/*
 * Compare each entry with the header in front of the member's bytes, and find these.
 * INVALID_FORMAT: they differ.
 */
kpack_error_t central_check_locals(const struct kp_source *src, struct central *c,
				   struct kpackx_error *why);

#endif
