/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, this runs the shell command MOMENT_DO when the program begins
 * to list a directory whose path ends in MOMENT_PATH and the rest of a name, to test
 * changes at this moment.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef DIR *opener(int fd);

static int is_moment(int fd, const char *text)
{
	char proc[32], path[PATH_MAX];
	const char *found;
	ssize_t size;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	size = readlink(proc, path, sizeof(path) - 1);
	if (size < 0)
		return 0;
	path[size] = '\0';
	found = strstr(path, text);
	return found && !strchr(found + strlen(text), '/');
}

__attribute__((visibility("default"))) DIR *fdopendir(int fd)
{
	opener *next = (opener *)(void *)dlsym(RTLD_NEXT, "fdopendir");
	const char *text = getenv("MOMENT_PATH"), *command = getenv("MOMENT_DO");

	if (text && command && is_moment(fd, text)) {
		unsetenv("MOMENT_PATH");
		unsetenv("LD_PRELOAD");
		if (system(command) != 0)
			abort();
	}
	return next(fd);
}
