/* SPDX-License-Identifier: MIT */
/*
 * One run of a command that is stopped at each call that names a file.
 */
#ifndef RACER_RUN_H
#define RACER_RUN_H

#include "calls.h"
#include <stdbool.h>
#include <stddef.h>

enum run_end { RUN_EXITED, RUN_SIGNALLED, RUN_HUNG, RUN_KILLED };

/* Called before each call that names a path below the directory; false ends the run. */
typedef bool run_step(const struct named *names, void *arg);

/* Called before each call, those included that change open files. */
typedef void run_look(const struct seccomp_notif *stopped, bool named, void *arg);

struct run_options {
	char *const *command;
	const char *dir; /* calls that name nothing below it are of no interest */
	bool old;        /* as on Linux 4.18 */
	bool waits;      /* a file system never answers: it hangs if it does nothing */
	run_step *step;
	run_look *look; /* may be NULL */
	void *arg;
};

struct run_result {
	enum run_end end;
	int status;    /* exit status or signal */
	char *message; /* what it printed on stderr; the caller frees it */
};

void run(const struct run_options *o, struct run_result *result);

#endif
