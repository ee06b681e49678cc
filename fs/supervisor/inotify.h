/* SPDX-License-Identifier: MIT */
/*
 * Notices that what paths stand for may have changed: every directory on the way to them
 * is watched, through symbolic links, and so is the mount table.
 *
 * To be used in rounds, for directories come and go: begin, name all paths, end; then
 * look at what is there.  What changes after it was named is noticed.
 */
#ifndef FS_SUPERVISOR_INOTIFY_H
#define FS_SUPERVISOR_INOTIFY_H

#include <stdbool.h>

struct watch;

/* NULL: no memory. */
struct watch *watch_new(void);
void watch_free(struct watch *w); /* NULL is fine */

void watch_begin(struct watch *w);
/* A source: a file, or a directory with *.kpack in it. */
void watch_source(struct watch *w, const char *path);
/* A file whose directory is watched already: it matters if it is a link. */
void watch_archive(struct watch *w, const char *path);
void watch_end(struct watch *w);

/*
 * Why something may change without being noticed, since the last watch_begin; NULL:
 * nothing may.  Who gets words should look at the sources now and then.
 */
const char *watch_blind(const struct watch *w);

/* To be polled: for POLLIN, -1: there is none, and for POLLPRI, -1: there is none. */
int watch_events(const struct watch *w);
int watch_mounts(const struct watch *w);

/* Take all events; true: one of them matters. */
bool watch_read(struct watch *w);

#endif
