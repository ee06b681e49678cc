/* SPDX-License-Identifier: MIT */
/* Copy the files of an artifact that are outside all its prefixes, unchanged. */
#ifndef PACKER_SPLIT_OUTSIDE_H
#define PACKER_SPLIT_OUTSIDE_H

#include <stdint.h>
#include <sys/stat.h>
#include "manifest.h"

struct outside_entry {
	char *path;           /* to open it */
	const char *relative; /* inside path */
	struct stat st;
	size_t link; /* index of the entry it is a hard link to, or SIZE_MAX */
	char *left;  /* why a device or socket is not copied; or NULL */
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

/* Copy all entries into the directory TO, except for the attributes of directories. */
kpack_error_t outside_copy(struct outside *o, const char *to, struct kpackx_error *why);

/*
 * When the directories are complete: set the attributes of those that exist in TO, and
 * TO's own attributes from ROOT.
 */
kpack_error_t outside_finish(const struct outside *o, const char *root, const char *to,
			     struct kpackx_error *why);

#endif
