/* SPDX-License-Identifier: MIT */
/*
 * The archives of the sources: looks at them by name, as often as wanted, and finds out
 * which of them are new or replaced.
 */
#ifndef FS_SUPERVISOR_SOURCES_H
#define FS_SUPERVISOR_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "core/base/errors.h"

/* An archive, or a source that cannot be listed. */
struct source_list_item {
	char *path;
	char *error;     /* why it cannot be looked at; NULL: it can */
	uint32_t serial; /* the same as long as it is the same file, unchanged */
	uint32_t was;    /* fresh: of the same file before, with other attributes; or 0 */
	uint32_t source; /* number of the source it is of */
	bool refused;    /* it cannot be served */
	bool fresh;      /* its serial is new with this one */
	struct stat st;
};

struct source_list {
	struct source_list_item *items; /* in order of precedence */
	size_t count;
	struct stat look;     /* of the first source that can be looked at */
	uint32_t last_serial; /* given so far */
};

/* Called for each archive before it is looked at. */
typedef void source_list_hook(void *user, const char *path);

struct source_list_options {
	char *const *sources; /* absolute paths */
	size_t count;
	bool first;  /* a source that cannot be listed is a failure, else an item */
	bool forced; /* archives that were refused get new serials */
	source_list_hook *hook;
	void *user;
};

/*
 * Replace S, all zeros at first, by what is there now.  false: it failed, which was
 * logged, and S stays what it was.
 */
bool source_list_run(struct source_list *s, const struct source_list_options *o,
		     bool *changed);

/* Serial's archive cannot be served: a forced one gives it another one. */
void source_list_refuse(struct source_list *s, uint32_t serial);

/*
 * Open an item that is fresh, and take its look from the descriptor.  -1: it cannot be
 * served, and WHY says why.  The caller closes.
 */
int source_list_open(struct source_list_item *item, struct kpackx_error *why);

void source_list_free(struct source_list *s);

#endif
