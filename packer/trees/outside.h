/* SPDX-License-Identifier: MIT */
/* Copy the files of an artifact that are outside all its prefixes, unchanged. */
#ifndef PACKER_SPLIT_OUTSIDE_H
#define PACKER_SPLIT_OUTSIDE_H

#include "artifact.h"
#include "packer/files/tree_write.h"

struct outside_entry {
	char *path;           /* to open it */
	const char *relative; /* inside path */
	struct file_identity id;
	char *left; /* why a device or socket is not copied; or NULL */
};

struct outside {
	struct outside_entry *items; /* by relative path; with prefix directories */
	size_t count, cap;
};

/*
 * List the files in ROOT that are not in PREFIXES.  IO_ERROR names the unreadable file.
 */
kpack_error_t outside_open(const char *root, const struct prefixes *prefixes,
			   struct outside *out, struct kpackx_error *why);
void outside_close(struct outside *o); /* accepts a zeroed one */

/* Write all entries into W. */
kpack_error_t outside_copy(struct outside *o, struct tree_write *w,
			   struct kpackx_error *why);

#endif
