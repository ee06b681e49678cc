/* SPDX-License-Identifier: MIT */
/* Read names from standard input, one per line, for programs that visit files. */
#ifndef BENCH_NAMES_H
#define BENCH_NAMES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **names;
static size_t n_names;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void take_names(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		char **more = reallocarray(names, n_names + 1, sizeof(*names));
		if (!more || !(more[n_names++] = strdup(line)))
			die("names");
		names = more;
	}
	free(line);
}

#endif
