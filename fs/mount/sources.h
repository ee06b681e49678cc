/* SPDX-License-Identifier: MIT */
/*
 * The list of the sources' archives: each scan stats them by name, and finds out which of
 * them are new or replaced.
 */
#ifndef FS_MOUNT_SOURCES_H
#define FS_MOUNT_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "core/base/errors.h"

/* An archive, or a source that cannot be listed. */
struct source_list_item {
	char *path;
	char *error;     /* why stat failed; NULL: it succeeded */
	uint32_t serial; /* the same as long as it is the same file, unchanged */
	uint32_t was;    /* fresh: its last serial, if only attributes changed; or 0 */
	uint32_t source; /* number of its source */
	bool refused;    /* it cannot be served */
	bool fresh;      /* its serial is new in this list */
	struct stat st;
};

struct source_list {
	struct source_list_item *items; /* in order of precedence */
	size_t count, cap;
	struct stat look;     /* attributes of the first source that stat can read */
	uint32_t last_serial; /* the last serial that was given */
};

/* Called for each archive before stat. */
typedef void source_list_hook(void *user, const char *path);

struct source_list_options {
	char *const *sources; /* absolute paths */
	size_t count;
	bool first;  /* a source that cannot be listed is a failure; else it is an item */
	bool forced; /* archives that were refused get new serials */
	source_list_hook *hook;
	void *user;
};

/*
 * Scan the sources and replace S, which is all zeros before the first call, by the
 * result.  CHANGED: it differs.  false: it failed, and S is unchanged; logged.
 */
bool source_list_run(struct source_list *s, const struct source_list_options *o,
		     bool *changed);

/* Mark the archive SERIAL as refused: the next forced scan gives it another serial. */
void source_list_refuse(struct source_list *s, uint32_t serial);

/*
 * Open a fresh item, and update its attributes from the descriptor, which the caller
 * closes.
 * -1: it cannot be served, for the reason WHY.
 */
int source_list_open(struct source_list_item *item, struct kpackx_error *why);

void source_list_free(struct source_list *s);

#endif
