/* SPDX-License-Identifier: MIT */
/*
 * Notices that the files at some paths may have changed: watches every directory on the
 * way to the paths, through symbolic links, and the mount table.
 *
 * Used in rounds, because directories come and go: begin, name all paths, end; then read
 * the files.  Every change after a path was named is noticed.
 */
#ifndef FS_MOUNT_INOTIFY_H
#define FS_MOUNT_INOTIFY_H

#include <stdbool.h>

struct watch;

/* NULL: no memory. */
struct watch *watch_new(void);
void watch_free(struct watch *w); /* NULL is fine */

void watch_begin(struct watch *w);
/* Name a source: a file, or a directory with *.kpack in it. */
void watch_source(struct watch *w, const char *path);
/*
 * Name a file whose directory is watched already; if it is a link, its target is watched,
 * too.
 */
void watch_archive(struct watch *w, const char *path);
void watch_end(struct watch *w);

/*
 * The first reason, since the last watch_begin, why a change may go unnoticed; NULL:
 * there is none.  If there is one, the caller should scan the sources at intervals.
 */
const char *watch_blind(const struct watch *w);

/* Descriptors to poll: events for POLLIN, mounts for POLLPRI; -1: not available. */
int watch_events(const struct watch *w);
int watch_mounts(const struct watch *w);

/* Read all events that have come until now; true: one of them matters. */
bool watch_read(struct watch *w);

#endif
