/* SPDX-License-Identifier: MIT */
/* The Debian packages that own files. */
#ifndef PACKER_THIN_OWNERS_H
#define PACKER_THIN_OWNERS_H

#include <stddef.h>

struct owners {
	char **names; /* of packages, sorted, each once */
	size_t count, cap;
};

/*
 * Ask PROGRAM ("/usr/bin/dpkg-query") for the packages of the N absolute PATHS.  Without
 * it, and for paths that no package has, there are none.
 */
void owners_find(const char *program, const char *const *paths, size_t n,
		 struct owners *out);
void owners_fini(struct owners *o);

#endif
