/* SPDX-License-Identifier: MIT */
/* Which packages of dpkg and rpm have which files. */
#ifndef PACKER_THIN_PACKAGES_H
#define PACKER_THIN_PACKAGES_H

#include <stddef.h>

/* The programs that are asked, if they exist; rpm only if it has a database. */
struct packages_programs {
	const char *dpkg_query, *rpm;
};

/*
 * The names of the packages that have the N PATHS below the absolute path ROOT, each once and after
 * a space, on the heap.  PROGRAMS (NULL: the system's) are asked once; one that fails is reported.
 */
char *packages_of(const struct packages_programs *programs, const char *root,
		  const char *const *paths, size_t n);

#endif
