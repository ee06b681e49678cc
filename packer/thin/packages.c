/* SPDX-License-Identifier: MIT */
/*
 * Asks `dpkg-query -S` about paths, which it takes as patterns, and lets rpm list all files of
 * all packages, which takes it less time than many questions.  Both print lines
 *
 *	PACKAGE[:ARCH], PACKAGE...: /PATH
 */
#include "policy.h"
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "packer/cli/process.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Patterns that the program gets at a time; they are at most 2 * PATH_MAX bytes each. */
enum { AT_ONCE = 200 };

/* A question: the paths in order, and the packages that were named so far. */
struct question {
	char **paths;
	size_t n;
	char **names;
	size_t n_names, cap;
};

/*
 * Take a line; others than the above are messages.  Not each path was asked for: rpm lists
 * everything, and dpkg-query also prints what a diversion or another pattern brings.
 */
static void take_line(struct question *q, char *line)
{
	char *path = strstr(line, ": /"), *rest = NULL;

	if (!path || strncmp(line, "diversion by ", 13) == 0)
		return;
	*path = '\0';
	path += 2;
	path[strcspn(path, "\n")] = '\0';
	if (!kp_find(q->paths, q->n, &path, KP_AS_TEXT))
		return;
	for (char *name = strtok_r(line, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		xgrow(&q->names, q->n_names, &q->cap, sizeof(*q->names));
		q->names[q->n_names++] = xstrndup(name, strcspn(name, ":"));
	}
}

/*
 * Run PROGRAM, if it exists, and take its lines; or only the FIRST, on the heap.  It fails with an
 * exit status above MAX.  false: it failed, which was reported, or does not exist.
 */
static bool run_program(struct question *q, const char *program, char **argv, int max,
			char **first)
{
	struct program p;
	char *line = NULL;
	size_t cap = 0;
	int status = program_start(&p, program, argv);

	if (status == ENOENT)
		return false;
	if (status) {
		report_error(program, "cannot run it, to ask for packages: %s",
			     strerror(status));
		return false;
	}
	while (getline(&line, &cap, p.output) > 0) {
		if (!first)
			take_line(q, line);
		else if (!*first)
			*first = xstrndup(line, strcspn(line, "\n"));
	}
	free(line);
	status = program_end(&p);
	if (status < 0)
		report_error(program, "was ended by a signal when asked for packages");
	else if (status > max)
		report_error(
			program,
			"failed with exit status %d when asked for packages: see what "
			"%s %s prints",
			status, program, argv[1]);
	return status >= 0 && status <= max;
}

char *packages_of(const struct packages_programs *programs, const char *root,
		  const char *const *paths, size_t n)
{
	static const struct packages_programs of_system = {"/usr/bin/dpkg-query",
							   "/usr/bin/rpm"};
	char query[] = "dpkg-query", search[] = "-S", name[] = "rpm", eval[] = "--eval",
	     macro[] = "%{_dbpath}", all[] = "-qa", option[] = "--qf",
	     format[] = "[%{=NAME}: %{FILENAMES}\\n]";
	char *where[] = {name, eval, macro, NULL},
	     *list[] = {name, all, option, format, NULL};
	struct question q = {.paths = xcalloc(n + 1, sizeof(char *)), .n = n};
	KP_AUTO_FREE char *database = NULL;
	const struct dirent *entry = NULL;
	DIR *dir = NULL;
	char *text = NULL;
	bool fine = true;
	size_t size;
	FILE *f = xmemstream(&text, &size);

	for (size_t i = 0; i < n; i++)
		q.paths[i] = xasprintf("%s/%s", strcmp(root, "/") ? root : "", paths[i]);
	kp_sort(q.paths, n, KP_AS_TEXT);
	programs = programs ? programs : &of_system;
	for (size_t i = 0; i < n && fine;) {
		char *argv[AT_ONCE + 3] = {query, search};
		int k = 2;

		/* a pattern that only the path matches */
		for (; i < n && k < AT_ONCE + 2; i++) {
			char *at = argv[k++] = xmalloc(2 * strlen(q.paths[i]) + 1);

			for (const char *c = q.paths[i]; *c; c++) {
				if (strchr("*?[]\\", *c))
					*at++ = '\\';
				*at++ = *c;
			}
			*at = '\0';
		}
		/* 1: no package has a path like one of these, which is an answer */
		fine = run_program(&q, programs->dpkg_query, argv, 1, NULL);
		while (k-- > 2)
			free(argv[k]);
	}
	/*
	 * Without a database rpm would make one to answer, in the home directory of the user, on
	 * systems whose packages are not rpm's.  What begins with a dot is no database, but a lock.
	 */
	if (n && run_program(&q, programs->rpm, where, 0, &database) && database)
		dir = below_opendir(database);
	while (dir && (entry = readdir(dir)) && entry->d_name[0] == '.')
		continue;
	if (entry)
		run_program(&q, programs->rpm, list, 0, NULL);
	if (dir)
		closedir(dir);
	kp_sort(q.names, q.n_names, KP_AS_TEXT);
	for (size_t i = 0; i < q.n_names; i++)
		if (i == 0 || strcmp(q.names[i - 1], q.names[i]) != 0)
			fprintf(f, " %s", q.names[i]);
	fclose(f);
	for (size_t i = 0; i < q.n_names; i++)
		free(q.names[i]);
	for (size_t i = 0; i < n; i++)
		free(q.paths[i]);
	free(q.names);
	free(q.paths);
	return text;
}
