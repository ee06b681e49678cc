/* SPDX-License-Identifier: MIT */
/* The packages of dpkg and rpm that own files. */
#ifndef PACKER_THIN_OWNERS_H
#define PACKER_THIN_OWNERS_H

#include <stdbool.h>
#include <stddef.h>

struct owners {
	char **names; /* of packages, or paths; sorted, each once */
	size_t count, cap;
};

/* The programs that are asked, if they exist; rpm only if it has a database. */
struct owners_programs {
	const char *dpkg_query, *rpm;
};

enum owners_answer {
	OWNERS_LISTED,
	OWNERS_UNKNOWN, /* no program could be asked */
	OWNERS_FAILED,  /* a program failed, which was reported */
};

/*
 * Ask PROGRAMS (NULL: the system's) for the packages of the N absolute PATHS.  OUT gets no
 * package if there is no program, or if no package has a path.  A program that fails is
 * reported, and OUT gets the packages that the other program named.
 */
void owners_find(const struct owners_programs *programs, const char *const *paths,
		 size_t n, struct owners *out);
/*
 * List the paths that packages have, of the N absolute DIRS and of all below them; a
 * directory that has one of these is listed, too.  OUT has none if not all answered.
 */
enum owners_answer owners_list(const struct owners_programs *programs,
			       const char *const *dirs, size_t n, struct owners *out);
/* The names, each after a space, on the heap. */
char *owners_text(const struct owners *o);
bool owners_has(const struct owners *o, const char *name);
void owners_fini(struct owners *o);

#endif
