/* SPDX-License-Identifier: MIT */
/* A progress bar, drawn only on a terminal. */
#ifndef PACKER_CLI_PROGRESS_H
#define PACKER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
	const char *what;
	uint64_t total, done;
	struct timespec shown; /* when it was drawn last */
	bool on;
};

/* Begin.  If WANTED is false, or stderr is not a terminal, nothing is ever drawn. */
void progress_begin(struct progress *p, const char *what, uint64_t total, bool wanted);
void progress_add(struct progress *p, uint64_t bytes);
/* Remove the bar. */
void progress_end(struct progress *p);

#endif
