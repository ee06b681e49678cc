/* SPDX-License-Identifier: MIT */
#include "owners.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/program.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

/* Paths that the program gets at a time; they are at most PATH_MAX bytes each. */
enum { AT_ONCE = 200 };

/* The program takes patterns: PATH as one that only it matches, on the heap. */
static char *pattern_of(const char *path)
{
	char *pattern = xmalloc(2 * strlen(path) + 1), *at = pattern;

	for (; *path; path++) {
		if (strchr("*?[]\\", *path))
			*at++ = '\\';
		*at++ = *path;
	}
	*at = '\0';
	return pattern;
}

static void add_name(struct owners *o, const char *name)
{
	xgrow(&o->names, o->count, &o->cap, sizeof(*o->names));
	o->names[o->count++] = xstrdup(name);
}

bool owners_has(const struct owners *o, const char *name)
{
	return o->count && bsearch(&name, o->names, o->count, sizeof(*o->names),
				   kp_order_texts) != NULL;
}

/* The lines that are taken from a program's answer. */
struct question {
	const struct owners *files; /* only of these paths; NULL: of all */
	const struct owners *dirs;  /* only of paths in or below these; NULL: of all */
	bool paths;                 /* the paths, not their packages */
};

/* Whether PATH is one of the directories of Q or below one; adds these to OUT. */
static bool is_below(const struct question *q, const char *path, struct owners *out)
{
	char *dir = xstrdup(path), *slash;
	bool below = false;

	do {
		if (owners_has(q->dirs, *dir ? dir : "/")) {
			add_name(out, *dir ? dir : "/");
			below = true;
		}
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	free(dir);
	return below;
}

/* Take "PACKAGE[:ARCH], PACKAGE...: /PATH"; other lines are messages. */
static void take_line(struct owners *o, char *line, const struct question *q)
{
	char *end = strstr(line, ": /"), *rest = NULL;

	if (!end || strncmp(line, "diversion by ", 13) == 0)
		return;
	*end = '\0';
	end += 2;
	end[strcspn(end, "\n")] = '\0';
	if ((q->files && !owners_has(q->files, end)) || (q->dirs && !is_below(q, end, o)))
		return;
	if (q->paths)
		add_name(o, end);
	for (char *name = q->paths ? NULL : strtok_r(line, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		name[strcspn(name, ":")] = '\0';
		add_name(o, name);
	}
}

/* Start PROGRAM.  A failure is reported, but not that there is no such program. */
static enum owners_answer start_program(struct program *p, const char *program,
					char **argv)
{
	int err = program_start(p, program, argv);

	if (!err)
		return OWNERS_LISTED;
	if (err == ENOENT)
		return OWNERS_UNKNOWN;
	report_error(program, "cannot run it, to ask for packages: %s", strerror(err));
	return OWNERS_FAILED;
}

/* Wait for PROGRAM.  An exit status above MAX is a failure, which is reported. */
static enum owners_answer end_program(struct program *p, const char *program, char **argv,
				      int max)
{
	int status = program_end(p);

	if (status >= 0 && status <= max)
		return OWNERS_LISTED;
	if (status < 0)
		report_error(program, "was ended by a signal when asked for packages");
	else
		report_error(
			program,
			"failed with exit status %d when asked for packages: see what "
			"%s %s prints",
			status, program, argv[1]);
	return OWNERS_FAILED;
}

/*
 * Run PROGRAM, and add what Q asks for of the lines that it prints.  It fails with an exit
 * status above MAX.
 */
static enum owners_answer ask_program(struct owners *o, const char *program, char **argv,
				      const struct question *q, int max)
{
	struct program p;
	char *line = NULL;
	size_t cap = 0;
	enum owners_answer answer = start_program(&p, program, argv);

	if (answer != OWNERS_LISTED)
		return answer;
	while (getline(&line, &cap, p.output) > 0)
		take_line(o, line, q);
	free(line);
	return end_program(&p, program, argv, max);
}

/* Sort the names, and keep each once. */
static void settle_names(struct owners *o)
{
	size_t kept = 0;

	if (o->count)
		qsort(o->names, o->count, sizeof(*o->names), kp_order_texts);
	for (size_t i = 0; i < o->count; i++) {
		if (kept && strcmp(o->names[kept - 1], o->names[i]) == 0)
			free(o->names[i]);
		else
			o->names[kept++] = o->names[i];
	}
	o->count = kept;
}

/* --- dpkg ---------------------------------------------------------------------------- */

/* Ask for the packages of N paths, or for all paths of packages below N directories. */
static enum owners_answer ask_dpkg(const char *program, const char *const *paths,
				   size_t n, const struct question *q, struct owners *out)
{
	char name[] = "dpkg-query", option[] = "-S";
	enum owners_answer answer = OWNERS_LISTED;
	size_t step = q->dirs ? AT_ONCE / 2 : AT_ONCE;

	for (size_t i = 0; i < n && answer == OWNERS_LISTED; i += step) {
		char *argv[AT_ONCE + 3] = {name, option};
		int k = 2;

		for (size_t j = i; j < n && j < i + step; j++) {
			char *pattern = pattern_of(paths[j]);

			argv[k++] = pattern;
			if (q->dirs)
				argv[k++] = xasprintf(
					"%s/*", strcmp(pattern, "/") ? pattern : "");
		}
		/* 1: nothing has a path like one of these */
		answer = ask_program(out, program, argv, q, 1);
		while (k-- > 2)
			free(argv[k]);
	}
	return answer;
}

/* --- rpm ----------------------------------------------------------------------------- */

/* Whether DIR has files.  What begins with a dot is no database, but a lock. */
static bool has_files(const char *dir)
{
	DIR *d = below_opendir(dir);
	const struct dirent *entry = NULL;

	if (!d)
		return false;
	do
		entry = readdir(d);
	while (entry && entry->d_name[0] == '.');
	closedir(d);
	return entry != NULL;
}

/*
 * Whether rpm has a database: it would make one to answer, in the home directory of the
 * user on systems whose packages are not rpm's.
 */
static enum owners_answer find_database(const char *program)
{
	char name[] = "rpm", option[] = "--eval", macro[] = "%{_dbpath}";
	char *argv[] = {name, option, macro, NULL}, *path = NULL;
	struct program p;
	size_t cap = 0;
	enum owners_answer answer = start_program(&p, program, argv);
	bool found = false;

	if (answer != OWNERS_LISTED)
		return answer;
	if (getline(&path, &cap, p.output) > 0) {
		path[strcspn(path, "\n")] = '\0';
		found = has_files(path);
	}
	free(path);
	answer = end_program(&p, program, argv, 0);
	return answer == OWNERS_LISTED && !found ? OWNERS_UNKNOWN : answer;
}

/* List all files of all packages once, and take those that Q asks for. */
static enum owners_answer ask_rpm(const char *program, const struct question *q,
				  struct owners *out)
{
	char name[] = "rpm", all[] = "-qa", option[] = "--qf";
	char format[] = "[%{=NAME}: %{FILENAMES}\\n]";
	char *argv[] = {name, all, option, format, NULL};
	enum owners_answer database = find_database(program);

	return database == OWNERS_LISTED ? ask_program(out, program, argv, q, 0)
					 : database;
}

/* --- both ---------------------------------------------------------------------------- */

static const struct owners_programs system_programs = {"/usr/bin/dpkg-query",
						       "/usr/bin/rpm"};

static struct owners sorted_copy(const char *const *names, size_t n)
{
	struct owners copy = {0};

	for (size_t i = 0; i < n; i++)
		add_name(&copy, names[i]);
	settle_names(&copy);
	return copy;
}

/* Ask each program that exists, rpm only if it has a database. */
static enum owners_answer ask_both(const struct owners_programs *programs,
				   const char *const *paths, size_t n,
				   const struct question *q, struct owners *out)
{
	const struct owners_programs *p = programs ? programs : &system_programs;
	enum owners_answer dpkg, rpm;

	*out = (struct owners){0};
	if (n == 0)
		return OWNERS_LISTED;
	dpkg = ask_dpkg(p->dpkg_query, paths, n, q, out);
	rpm = ask_rpm(p->rpm, q, out);
	settle_names(out);
	if (dpkg == OWNERS_FAILED || rpm == OWNERS_FAILED)
		return OWNERS_FAILED;
	return dpkg == OWNERS_LISTED ? dpkg : rpm;
}

void owners_find(const struct owners_programs *programs, const char *const *paths,
		 size_t n, struct owners *out)
{
	struct owners files = sorted_copy(paths, n);
	const struct question q = {.files = &files};

	ask_both(programs, paths, n, &q, out);
	owners_fini(&files);
}

enum owners_answer owners_list(const struct owners_programs *programs,
			       const char *const *dirs, size_t n, struct owners *out)
{
	struct owners sorted = sorted_copy(dirs, n);
	const struct question q = {.dirs = &sorted, .paths = true};
	enum owners_answer answer = ask_both(programs, dirs, n, &q, out);

	if (answer != OWNERS_LISTED)
		owners_fini(out);
	owners_fini(&sorted);
	return answer;
}

char *owners_text(const struct owners *o)
{
	char *text = xstrdup("");

	for (size_t i = 0; i < o->count; i++) {
		char *longer = xasprintf("%s %s", text, o->names[i]);

		free(text);
		text = longer;
	}
	return text;
}

void owners_fini(struct owners *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->names[i]);
	free(o->names);
	*o = (struct owners){0};
}
