/* SPDX-License-Identifier: MIT */
/* What an artifact has outside of all its prefixes: copied as it is. */
#ifndef PACKER_SPLIT_OUTSIDE_H
#define PACKER_SPLIT_OUTSIDE_H

#include <stdint.h>
#include <sys/stat.h>
#include "manifest.h"

struct outside_entry {
	char *path;           /* to open it */
	const char *relative; /* inside path */
	struct stat st;
	size_t link; /* number of the entry it is a hard link to, or SIZE_MAX */
	char *left;  /* why it is not copied, a device or a socket; or NULL */
};

struct outside {
	struct outside_entry *items; /* by relative path; directories of prefixes too */
	size_t count, cap;
};

/* List what is in ROOT, but not in PREFIXES.  IO_ERROR names what cannot be read. */
kpack_error_t outside_open(const char *root, const struct prefixes *prefixes,
			   struct outside *out, struct kpackx_error *why);
void outside_close(struct outside *o); /* accepts a zeroed one */

/* Copy all into the directory TO, but for the attributes of directories. */
kpack_error_t outside_copy(struct outside *o, const char *to, struct kpackx_error *why);

/* Then, when the directories are complete: those that are in TO, and TO's own from ROOT. */
kpack_error_t outside_finish(const struct outside *o, const char *root, const char *to,
			     struct kpackx_error *why);

#endif
