/* SPDX-License-Identifier: MIT */
/*
 * The system calls that name files: the filter that stops a process before each of them,
 * and the paths that a stopped call names.
 */
#ifndef RACER_CALLS_H
#define RACER_CALLS_H

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>

struct call {
	int number;
	const char *name;
	struct {
		signed char dir, path; /* arguments; dir -1: the working directory */
	} names[2];                    /* path 0: none, it is never the 0th with a dir */
	char names_count;
};

struct named {
	const struct call *call;
	size_t count;
	char path[2][PATH_MAX];
	bool ours[2]; /* below the directory that was asked for */
};

/* Install the filter for this process and its children.  The listener, or -1 and errno.
 * old: calls that kernels of 4.18 lack do not exist, nor O_TMPFILE; all: stop also before calls that
 * change open files. */
int calls_install(bool old, bool all);

/* Find out what the stopped call names.  True if a path of it is below DIR. */
bool calls_read(const struct seccomp_notif *stopped, const char *dir, struct named *out);

#endif
