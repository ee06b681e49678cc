/* SPDX-License-Identifier: MIT */
/* The Debian packages that own files. */
#ifndef PACKER_THIN_OWNERS_H
#define PACKER_THIN_OWNERS_H

#include <stddef.h>

struct owners {
	char **names; /* of packages, sorted, each once */
	size_t count;
	size_t unowned; /* paths that no package has */
};

/*
 * Find the packages of the N absolute PATHS, which are sorted bytewise, in dpkg's lists
 * below DIR ("/var/lib/dpkg/info").  A list that cannot be read is skipped.
 */
void owners_find(const char *dir, const char *const *paths, size_t n, struct owners *out);
void owners_fini(struct owners *o);

#endif
