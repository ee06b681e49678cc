/* SPDX-License-Identifier: MIT */
/* Calls of a library that is opened when the program runs. */
#ifndef TESTS_REAL_CALL_H
#define TESTS_REAL_CALL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

/*
 * Open the library that the first argument names, in SCOPE: RTLD_LOCAL or RTLD_GLOBAL.  Ends
 * the program if it cannot be opened.  Each line that the program prints is written at once.
 */
static void open_library(int argc, char **argv, int scope)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW | scope) : NULL;
	if (!library) {
		fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library");
		exit(1);
	}
}

/* The library's function NAME.  Ends the program if the library has none. */
static void *function(const char *name)
{
	void *f = dlsym(library, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

/* For functions whose header is included. */
#define CALL(name) ((__typeof__(&name))function(#name))

#endif
