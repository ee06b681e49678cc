/* SPDX-License-Identifier: MIT */
/*
 * The archives of the sources: each scan stats them by name, and finds out which of them are
 * new or replaced.  If the sources are watched, every change after a scan began is noticed,
 * by inotify on every directory on the way to the archives, through symbolic links, and by
 * the mount table.
 */
#ifndef FS_MOUNT_SOURCES_H
#define FS_MOUNT_SOURCES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include "core/base/errors.h"

/* An archive, or a source that cannot be listed. */
struct source_item {
	char *path;
	char *error;     /* why it cannot be looked at; NULL: it can */
	uint32_t serial; /* the same as long as it is the same file, unchanged; 0: none */
	uint32_t was;    /* fresh: its last serial, if only attributes changed; or 0 */
	uint32_t source; /* number of its source */
	bool refused;    /* it cannot be served */
	bool fresh;      /* to be opened: its serial is new, or it is tried again */
	bool retry;      /* refused, but its file system may come back */
	bool away;       /* the error is one of a file system that may come back */
	struct stat st;
};

struct sources {
	char *const *paths; /* absolute, borrowed; set by the caller, all else is zeros */
	size_t n_paths;

	struct source_item *items; /* in order of precedence */
	size_t count, cap;
	struct stat look;     /* attributes of the first source that stat can read */
	uint32_t last_serial; /* the last serial that was given */

	/* A source or an archive is away: the sources should be scanned at intervals, because
	 * nothing tells when it is back. */
	bool away;
	bool again; /* the last scan found archives to try again */
	bool watched;
	int events, mounts; /* to poll for POLLIN; for POLLPRI; -1: not available */
	struct place *places;
	size_t n_places, cap_places;
	unsigned round; /* number of the scan */
	/* Why a change may go unnoticed, since the last scan began, so that the sources should
	 * be scanned at intervals; "": for no reason. */
	char blind[PATH_MAX + 128];
};

/* From now on, each scan watches the sources. */
void sources_watch(struct sources *s);

enum scan {
	SCAN_FIRST =
		1, /* a source that cannot be listed is a failure; else it is an item */
	SCAN_FORCED = 2, /* archives that were refused get new serials */
};

/*
 * Scan the sources and replace the list by the result.  HOW: of enum scan.  CHANGED: it
 * differs.  false: it failed, and the list is unchanged; logged.
 */
bool sources_scan(struct sources *s, unsigned how, bool *changed);

/* Read all events that have come until now; true: one of them matters. */
bool sources_read_events(struct sources *s);

/*
 * Mark the archive SERIAL as refused, because of ERR, an errno, or 0: the next forced scan gives
 * it another serial.  true: its file system may come back, so that the next scan of any kind is to
 * try it again, with the same serial.
 */
bool sources_refuse(struct sources *s, uint32_t serial, int err);

/*
 * Open a fresh item, and update its attributes from the descriptor, which the caller
 * closes.
 * -1: it cannot be served, for the reason WHY.
 */
int source_open(struct source_item *item, struct kpackx_error *why);

void sources_fini(struct sources *s);

#endif
