/* SPDX-License-Identifier: MIT */
/*
 * Asks `dpkg-query -S` about paths, which it takes as patterns, and lets rpm list all files of
 * all packages, which takes it less time than many questions.  Both print lines
 *
 *	PACKAGE[:ARCH], PACKAGE...: /PATH
 */
#include "packages.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/order.h"
#include "packer/cli/process.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Patterns that the program gets at a time; they are at most 2 * PATH_MAX bytes each. */
enum { AT_ONCE = 200 };

void packages_fini(struct packages *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->items[i].path);
		free(p->items[i].package);
	}
	free(p->items);
	*p = (struct packages){0};
}

/* A question: the paths in order, and what answers it. */
struct question {
	char **paths;
	size_t n;
	struct packages *out;
};

/*
 * Whether Q asks for PATH: itself, or, with a slash behind it, a directory of the way to it.  rpm
 * lists everything, and dpkg-query also prints what a diversion or another pattern brings.
 */
static bool is_asked(const struct question *q, const char *path)
{
	char *way = xasprintf("%s/", path), *slash;
	const char *exact = path;
	bool asked = kp_find(q->paths, q->n, &exact, KP_AS_TEXT) != NULL;

	while (!asked && *way) {
		const char *dir = way;

		asked = kp_find(q->paths, q->n, &dir, KP_AS_TEXT) != NULL;
		way[strlen(way) - 1] = '\0';
		slash = strrchr(way, '/');
		if (!slash)
			break;
		slash[1] = '\0';
	}
	free(way);
	return asked;
}

/* Take a line; others than the above are messages. */
static void take_line(const struct question *q, char *line)
{
	char *path = strstr(line, ": /"), *rest = NULL;

	if (!path || strncmp(line, "diversion by ", 13) == 0)
		return;
	*path = '\0';
	path += 2;
	path[strcspn(path, "\n")] = '\0';
	if (!is_asked(q, path))
		return;
	for (char *name = strtok_r(line, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		name[strcspn(name, ":")] = '\0';
		xgrow(&q->out->items, q->out->count, &q->out->cap,
		      sizeof(*q->out->items));
		q->out->items[q->out->count++] =
			(struct packaged){xstrdup(path), xstrdup(name)};
	}
}

/* Run PROGRAM; it fails with an exit status above MAX.  FIRST: only its first line, on the heap. */
static enum packages_answer run_program(const struct question *q, const char *program,
					char **argv, int max, char **first)
{
	struct program p;
	char *line = NULL;
	size_t cap = 0;
	int status = program_start(&p, program, argv);

	if (status == ENOENT)
		return PACKAGES_UNKNOWN;
	if (status) {
		report_error(program, "cannot run it, to ask for packages: %s",
			     strerror(status));
		return PACKAGES_FAILED;
	}
	while (getline(&line, &cap, p.output) > 0) {
		if (!first)
			take_line(q, line);
		else if (!*first)
			*first = xstrndup(line, strcspn(line, "\n"));
	}
	free(line);
	status = program_end(&p);
	if (status >= 0 && status <= max)
		return PACKAGES_LISTED;
	if (status < 0)
		report_error(program, "was ended by a signal when asked for packages");
	else
		report_error(
			program,
			"failed with exit status %d when asked for packages: see what "
			"%s %s prints",
			status, program, argv[1]);
	return PACKAGES_FAILED;
}

/* PATH and END as a pattern that only it matches, on the heap. */
static char *pattern_of(const char *path, size_t size, const char *end)
{
	char *pattern = xmalloc(2 * size + strlen(end) + 1), *at = pattern;

	for (size_t i = 0; i < size; i++) {
		if (strchr("*?[]\\", path[i]))
			*at++ = '\\';
		*at++ = path[i];
	}
	strcpy(at, end);
	return pattern;
}

/* A directory is two patterns, of which one matches all below it: one run answers for both. */
static enum packages_answer ask_dpkg(const struct question *q, const char *program)
{
	char name[] = "dpkg-query", option[] = "-S";
	enum packages_answer answer = PACKAGES_LISTED;

	for (size_t i = 0; i < q->n && answer == PACKAGES_LISTED;) {
		char *argv[AT_ONCE + 3] = {name, option};
		int k = 2;

		for (; i < q->n && k < AT_ONCE; i++) {
			const char *path = q->paths[i];
			size_t size = strlen(path);
			bool dir = path[size - 1] == '/';

			if (dir)
				argv[k++] = pattern_of(path, size, "*");
			argv[k++] = pattern_of(path, size - (dir && size > 1), "");
		}
		/* 1: no package has a path like one of these, which is an answer */
		answer = run_program(q, program, argv, 1, NULL);
		while (k-- > 2)
			free(argv[k]);
	}
	return answer;
}

/*
 * Without a database rpm would make one to answer, in the home directory of the user, on systems
 * whose packages are not rpm's.  What begins with a dot is no database, but a lock.
 */
static bool has_database(const char *dir)
{
	DIR *d = dir ? below_opendir(dir) : NULL;
	const struct dirent *entry = NULL;

	while (d && (entry = readdir(d)) && entry->d_name[0] == '.')
		continue;
	if (d)
		closedir(d);
	return entry != NULL;
}

static enum packages_answer ask_rpm(const struct question *q, const char *program)
{
	char name[] = "rpm", eval[] = "--eval", macro[] = "%{_dbpath}", all[] = "-qa",
	     option[] = "--qf", format[] = "[%{=NAME}: %{FILENAMES}\\n]";
	char *where[] = {name, eval, macro, NULL},
	     *list[] = {name, all, option, format, NULL};
	char *dir = NULL;
	enum packages_answer answer = run_program(q, program, where, 0, &dir);

	if (answer == PACKAGES_LISTED)
		answer = has_database(dir) ? run_program(q, program, list, 0, NULL)
					   : PACKAGES_UNKNOWN;
	free(dir);
	return answer;
}

enum packages_answer packages_ask(const struct packages_programs *programs,
				  const char *const *paths, size_t n,
				  struct packages *out)
{
	static const struct packages_programs of_system = {"/usr/bin/dpkg-query",
							   "/usr/bin/rpm"};
	struct question q = {.paths = xcalloc(n + 1, sizeof(char *)), .n = n, .out = out};
	enum packages_answer dpkg = PACKAGES_LISTED, rpm = PACKAGES_LISTED;

	*out = (struct packages){0};
	if (n) {
		memcpy(q.paths, paths, n * sizeof(char *));
		kp_sort(q.paths, n, KP_AS_TEXT);
		programs = programs ? programs : &of_system;
		dpkg = ask_dpkg(&q, programs->dpkg_query);
		rpm = ask_rpm(&q, programs->rpm);
	}
	free(q.paths);
	if (out->count)
		kp_sort(out->items, out->count, KP_BY_TEXT(struct packaged, path),
			KP_BY_TEXT(struct packaged, package));
	if (dpkg == PACKAGES_FAILED || rpm == PACKAGES_FAILED)
		return PACKAGES_FAILED;
	return dpkg == PACKAGES_LISTED ? dpkg : rpm;
}

/* The first item whose path is not before PATH. */
static const struct packaged *find_first(const struct packages *p, const char *path)
{
	const struct packaged probe = {.path = (char *)path};

	return p->items + kp_lower_bound(p->items, p->count, &probe,
					 KP_BY_TEXT(struct packaged, path));
}

bool packages_have(const struct packages *p, const char *path)
{
	const struct packaged *at = find_first(p, path);
	size_t n = strlen(path);

	return at < p->items + p->count &&
	       (path[n - 1] == '/' ? strncmp(at->path, path, n) == 0
				   : strcmp(at->path, path) == 0);
}

char *packages_names(const struct packages *p, const char *const *paths, size_t n)
{
	const char **names = xcalloc(p->count + 1, sizeof(*names));
	size_t n_names = 0, size;
	char *text = NULL;
	FILE *f = xmemstream(&text, &size);

	for (size_t i = 0; i < n && p->count; i++)
		for (const struct packaged *at = find_first(p, paths[i]);
		     at < p->items + p->count && strcmp(at->path, paths[i]) == 0 &&
		     n_names < p->count;
		     at++)
			names[n_names++] = at->package;
	if (n_names)
		kp_sort(names, n_names, KP_AS_TEXT);
	for (size_t i = 0; i < n_names; i++)
		if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
			fprintf(f, " %s", names[i]);
	fclose(f);
	free(names);
	return text;
}
