/* SPDX-License-Identifier: MIT */
/* llvm-objcopy: where it is, its command line, running it. */
#ifndef PACKER_OFFLOAD_BUNDLER_OBJCOPY_H
#define PACKER_OFFLOAD_BUNDLER_OBJCOPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Its path: next to PROGRAM; or in the first directory of PATH that has one, there
 * llvm-objcopy-NN of the version in PROGRAM's name, the newest, or the one without a version.
 * NULL: there is none.  The caller frees it.
 */
char *objcopy_find(const char *program);

/* A command line; begin with a zeroed one. */
struct objcopy {
	char **argv;
	size_t n, room;
	bool failed; /* out of memory */
};

void objcopy_word(struct objcopy *c, const char *word);
void objcopy_print_word(struct objcopy *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void objcopy_fini(struct objcopy *c);

/* Show it on stderr, as -### does; PROGRAM may be NULL. */
void objcopy_tell(const char *program, const struct objcopy *c);

/* Run it to its end; false: it could not be run, or failed. */
bool objcopy_run(const char *program, const struct objcopy *c);

#endif
