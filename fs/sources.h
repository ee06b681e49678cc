/* SPDX-License-Identifier: MIT */
/* The archives of a mount: those that are served and those that were refused. */
#ifndef FS_SOURCES_H
#define FS_SOURCES_H

#include "archive.h"

/* An archive that is not served, and why. */
struct refused {
	char *path;
	char *text;
};

struct sources {
	struct kpack_archive **archives; /* in order of precedence */
	size_t count;
	struct refused *refused;
	size_t n_refused;
	/* Attributes for directories: read bits of all archives together, the owner of
	 * the first, the newest times; of the first source when there is no archive. */
	struct stat look;
	uint64_t bytes; /* sum of the archives' sizes */
};

/*
 * Open all archives of the N sources, absolute paths, in order.  An archive that cannot
 * be opened is kept among the refused.  A source that cannot be read is an error, and so
 * is a failure of all archives; what went wrong has been logged.  The caller closes in
 * either case.
 */
bool sources_open(struct sources *s, char *const *paths, size_t n);
void sources_close(struct sources *s);

#endif
