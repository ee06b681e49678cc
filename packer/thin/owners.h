/* SPDX-License-Identifier: MIT */
/* The Debian packages that own files. */
#ifndef PACKER_THIN_OWNERS_H
#define PACKER_THIN_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

struct owners {
	char **names; /* of packages, or paths; sorted, each once */
	size_t count, cap;
};

/*
 * Ask PROGRAM ("/usr/bin/dpkg-query") for the packages of the N absolute PATHS.  Without
 * it, and for paths that no package has, there are none.
 */
void owners_find(const char *program, const char *const *paths, size_t n,
		 struct owners *out);
/*
 * List the paths that packages have, of the N absolute DIRS and of all below them.  false:
 * PROGRAM did not answer, and OUT has none.
 */
bool owners_list(const char *program, const char *const *dirs, size_t n,
		 struct owners *out);
bool owners_has(const struct owners *o, const char *name);
void owners_fini(struct owners *o);

#endif
