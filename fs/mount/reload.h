/* SPDX-License-Identifier: MIT */
/*
 * The server's end of the link: makes an edition of each survey that the supervisor
 * sends, and answers its questions.
 */
#ifndef FS_SERVER_RELOAD_H
#define FS_SERVER_RELOAD_H

#include "fs/tree/edition.h"

struct reload;

struct reload_options {
	int link; /* the server's end; closed by reload_free */
	struct edition_options look;
	/*
	 * Show NEXT from now on, taking over the caller's reference; NAMES becomes the
	 * number of changed names.  Called by the reload thread.  false: it failed;
	 * logged.
	 */
	bool (*show)(void *user, struct edition *next, size_t *names);
	/* The look that reload_look asked for is done, and all that it found is shown; not
	 * FINE: it failed. */
	void (*seen)(void *user, bool fine);
	/* The supervisor has gone: no look will be done any more. */
	void (*unwatched)(void *user);
	/* The number of requests so far. */
	uint64_t (*requests)(void *user);
	struct tree_taken taken; /* for editions after the first */
	void *user;
};

/* NULL: no memory; then the link is still open. */
struct reload *reload_new(const struct reload_options *o);

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
 * Ask the supervisor to look at the sources now; `seen` will be called.  false: the
 * supervisor has gone, or takes no message.  For any thread; never blocks.
 */
bool reload_look(const struct reload *r);

#endif
