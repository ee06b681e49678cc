/* SPDX-License-Identifier: MIT */
/* Find llvm-objcopy, build its command line, and run it. */
#ifndef PACKER_OFFLOAD_BUNDLER_OBJCOPY_H
#define PACKER_OFFLOAD_BUNDLER_OBJCOPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The path of llvm-objcopy: next to PROGRAM, else in the first directory of PATH that has
 * any.  In that directory the order of preference is llvm-objcopy-NN with the version in
 * PROGRAM's name, then the newest, then the one without a version.
 * NULL: none was found.  The caller frees it.
 */
char *objcopy_find(const char *program);

/* A command line; begin with a zeroed one. */
struct objcopy {
	char **argv;
	size_t n, room;
};

void objcopy_word(struct objcopy *c, const char *word);
void objcopy_print_word(struct objcopy *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void objcopy_fini(struct objcopy *c);

/* Print the command line on stderr, as -### does; PROGRAM may be NULL. */
void objcopy_print_command(const char *program, const struct objcopy *c);

/* Run the command and wait for it; false: it could not be run, or failed. */
bool objcopy_run(const char *program, const struct objcopy *c);

#endif
