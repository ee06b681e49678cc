/* SPDX-License-Identifier: MIT */
/* Which packages of dpkg and rpm have which files. */
#ifndef PACKER_THIN_PACKAGES_H
#define PACKER_THIN_PACKAGES_H

#include <stdbool.h>
#include <stddef.h>

/* A path of a package; a path that several packages have stands several times. */
struct packaged {
	char *path, *package;
};

struct packages {
	struct packaged *items; /* by path and package */
	size_t count, cap;
};

enum packages_answer {
	PACKAGES_LISTED,
	PACKAGES_UNKNOWN, /* no program could be asked */
	PACKAGES_FAILED,  /* a program failed, which was reported */
};

/* The programs that are asked, if they exist; rpm only if it has a database. */
struct packages_programs {
	const char *dpkg_query, *rpm;
};

/*
 * Ask PROGRAMS (NULL: the system's) once for the packages of the N absolute PATHS; of a path
 * that ends with a slash, for the directory and all below it.  OUT, which the caller finishes, has
 * what the programs named that did not fail.
 */
enum packages_answer packages_ask(const struct packages_programs *programs,
				  const char *const *paths, size_t n,
				  struct packages *out);
void packages_fini(struct packages *p);

/* Whether a package has PATH, or, if it ends with a slash, something below it. */
bool packages_have(const struct packages *p, const char *path);
/* The packages of the N PATHS, each once and after a space, on the heap. */
char *packages_names(const struct packages *p, const char *const *paths, size_t n);

#endif
