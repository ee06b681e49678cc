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

/* Take "PACKAGE[:ARCH], PACKAGE...: /PATH"; other lines are messages. */
static void take_line(struct owners *o, char *line)
{
	char *end = strstr(line, ": /"), *rest = NULL;

	if (!end || strncmp(line, "diversion by ", 13) == 0)
		return;
	*end = '\0';
	for (char *name = strtok_r(line, ", ", &rest); name;
	     name = strtok_r(NULL, ", ", &rest)) {
		name[strcspn(name, ":")] = '\0';
		xgrow(&o->names, o->count, &o->cap, sizeof(*o->names));
		o->names[o->count++] = xstrdup(name);
	}
}

static void read_answer(struct owners *o, int fd)
{
	FILE *answer = fdopen(fd, "r");
	char *line = NULL;
	size_t cap = 0;

	if (!answer) {
		close(fd);
		return;
	}
	while (getline(&line, &cap, answer) > 0)
		take_line(o, line);
	free(line);
	fclose(answer);
}

static void ask_program(struct owners *o, const char *program, char **argv)
{
	char locale[] = "LC_ALL=C", path[] = "PATH=/usr/bin:/bin";
	char *environment[] = {locale, path, NULL};
	posix_spawn_file_actions_t actions;
	int answer[2], err;
	pid_t child;

	if (pipe2(answer, O_CLOEXEC) < 0)
		return;
	if (posix_spawn_file_actions_init(&actions)) {
		close(answer[0]);
		close(answer[1]);
		return;
	}
	posix_spawn_file_actions_adddup2(&actions, answer[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
					 0);
	err = posix_spawn(&child, program, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	close(answer[1]);
	read_answer(o, answer[0]);
	if (!err)
		waitpid(child, NULL, 0);
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
		ask_program(out, program, argv);
		while (k--)
			free(argv[2 + k]);
	}
	settle_names(out);
}

void owners_fini(struct owners *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->names[i]);
	free(o->names);
	*o = (struct owners){0};
}
