/* SPDX-License-Identifier: MIT */
/*
 * The server's end of the link: makes an edition of each survey that the supervisor
 * sends, and answers its questions.
 */
#ifndef FS_MOUNT_RELOAD_H
#define FS_MOUNT_RELOAD_H

#include "fs/fuse/ops.h"

struct reload;

/*
 * LINK is the server's end, closed by reload_free.  LOOK and FS are borrowed: what FS shows
 * is exchanged, and its control files are told.  NULL: no memory; then the link is still
 * open.
 */
struct reload *reload_new(int link, const struct edition_options *look, struct fs *fs);

/*
 * Wait for the first survey, and make the first edition of it.  NULL: it failed; logged.
 */
struct edition *reload_first(struct reload *r);

/* Start the thread that receives all later messages.  false: it failed; logged. */
bool reload_start(struct reload *r);

/* End the thread, if it runs, and free R.  NULL is fine. */
void reload_free(struct reload *r);

/*
 * Ask the supervisor for a survey, because an archive has changed.  For any thread.
 */
void reload_rescan(const struct reload *r);

/*
 * Ask the supervisor to look at the sources now; control_seen will be called.  false: the
 * supervisor has gone, or takes no message.  For any thread; never blocks.
 */
bool reload_look(const struct reload *r);

#endif
