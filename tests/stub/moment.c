/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, this runs the shell command MOMENT_DO when the program begins
 * to walk over a tree whose path contains MOMENT_PATH, to test changes at this moment.
 */
#include <dlfcn.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>

typedef FTS *opener(char *const *, int, int (*)(const FTSENT **, const FTSENT **));

__attribute__((visibility("default"))) FTS *fts_open(char *const *paths, int options,
						     int (*compare)(const FTSENT **,
								    const FTSENT **))
{
	opener *next = (opener *)(void *)dlsym(RTLD_NEXT, "fts_open");
	const char *path = getenv("MOMENT_PATH"), *command = getenv("MOMENT_DO");

	if (path && command && strstr(*paths, path)) {
		unsetenv("MOMENT_PATH");
		unsetenv("LD_PRELOAD");
		if (system(command) != 0)
			abort();
	}
	return next(paths, options, compare);
}
