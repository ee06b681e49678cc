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
	 * Show NEXT from now on, taking over the caller's reference; NAMES is the number
	 * of changed names. Called by the reload thread. false: it failed, which was
	 * logged.
	 */
	bool (*show)(void *user, struct edition *next, size_t *names);
	/* How many requests there were so far. */
	uint64_t (*requests)(void *user);
	struct tree_taken taken; /* for editions after the first */
	void *user;
};

/* NULL: no memory; then the link is still open. */
struct reload *reload_new(const struct reload_options *o);

/* Wait for the first survey, and make the first edition of it.  NULL: it was logged. */
struct edition *reload_first(struct reload *r);

/* Start the thread that takes all that comes later.  false: it was logged. */
bool reload_start(struct reload *r);

/* End the thread, if there is one, and free.  NULL is fine. */
void reload_free(struct reload *r);

/*
 * Ask for a survey: an archive is not what it was.  Any thread.
 */
void reload_rescan(const struct reload *r);

#endif
