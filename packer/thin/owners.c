/* SPDX-License-Identifier: MIT */
#include "owners.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "packer/base/xalloc.h"

/* Paths that the program gets at a time; they are at most PATH_MAX bytes each. */
enum { AT_ONCE = 200 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

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

/* Take "PACKAGE[:ARCH], PACKAGE...: /PATH"; other lines are messages. */
static void take_line(struct owners *o, char *line, bool paths)
{
	char *end = strstr(line, ": /"), *rest = NULL;

	if (!end || strncmp(line, "diversion by ", 13) == 0)
		return;
	*end = '\0';
	end += 2;
	end[strcspn(end, "\n")] = '\0';
	if (paths)
		add_name(o, end);
	for (char *name = paths ? NULL : strtok_r(line, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		name[strcspn(name, ":")] = '\0';
		add_name(o, name);
	}
}

static void read_answer(struct owners *o, int fd, bool paths)
{
	FILE *answer = fdopen(fd, "r");
	char *line = NULL;
	size_t cap = 0;

	if (!answer) {
		close(fd);
		return;
	}
	while (getline(&line, &cap, answer) > 0)
		take_line(o, line, paths);
	free(line);
	fclose(answer);
}

/*
 * Run PROGRAM, and add the packages that it prints, or with PATHS the paths.  Return its exit
 * status; -1: it did not run, or was killed.
 */
static int ask_program(struct owners *o, const char *program, char **argv, bool paths)
{
	char locale[] = "LC_ALL=C", path[] = "PATH=/usr/bin:/bin";
	char *environment[] = {locale, path, NULL};
	posix_spawn_file_actions_t actions;
	int answer[2], err, status;
	pid_t child;

	if (pipe2(answer, O_CLOEXEC) < 0)
		return -1;
	if (posix_spawn_file_actions_init(&actions)) {
		close(answer[0]);
		close(answer[1]);
		return -1;
	}
	posix_spawn_file_actions_adddup2(&actions, answer[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
					 0);
	err = posix_spawn(&child, program, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	close(answer[1]);
	read_answer(o, answer[0], paths);
	if (err || waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Sort the names, and keep each once. */
static void settle_names(struct owners *o)
{
	size_t kept = 0;

	if (o->count)
		qsort(o->names, o->count, sizeof(*o->names), by_text);
	for (size_t i = 0; i < o->count; i++) {
		if (kept && strcmp(o->names[kept - 1], o->names[i]) == 0)
			free(o->names[i]);
		else
			o->names[kept++] = o->names[i];
	}
	o->count = kept;
}

void owners_find(const char *program, const char *const *paths, size_t n,
		 struct owners *out)
{
	char name[] = "dpkg-query", option[] = "-S";

	*out = (struct owners){0};
	for (size_t i = 0; i < n; i += AT_ONCE) {
		char *argv[AT_ONCE + 3] = {name, option};
		size_t k = 0;

		for (; k < AT_ONCE && i + k < n; k++)
			argv[2 + k] = pattern_of(paths[i + k]);
		ask_program(out, program, argv, false);
		while (k--)
			free(argv[2 + k]);
	}
	settle_names(out);
}

bool owners_list(const char *program, const char *const *dirs, size_t n,
		 struct owners *out)
{
	char name[] = "dpkg-query", option[] = "-S";
	bool answered = true;

	*out = (struct owners){0};
	for (size_t i = 0; i < n && answered; i++) {
		char *dir = pattern_of(dirs[i]), *below = xasprintf("%s/*", dir);
		char *argv[] = {name, option, dir, below, NULL};
		int status = ask_program(out, program, argv, true);

		/* 1: nothing has a path like one of the two */
		answered = status == 0 || status == 1;
		free(below);
		free(dir);
	}
	if (!answered)
		owners_fini(out);
	settle_names(out);
	return answered;
}

bool owners_has(const struct owners *o, const char *name)
{
	return o->count &&
	       bsearch(&name, o->names, o->count, sizeof(*o->names), by_text) != NULL;
}

void owners_fini(struct owners *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->names[i]);
	free(o->names);
	*o = (struct owners){0};
}
