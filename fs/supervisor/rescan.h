/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's look at the sources: when one is due, for something may have changed,
 * what it sees, and that the server gets all of it.
 */
#ifndef FS_SUPERVISOR_RESCAN_H
#define FS_SUPERVISOR_RESCAN_H

#include <stdbool.h>
#include <stdint.h>
#include "fs/cli/settings.h"
#include "sources.h"

struct rescan {
	const struct strings *sources; /* absolute */
	unsigned poll;                 /* seconds between looks; 0: at events */
	struct watch *watch;
	bool told_blind;
	struct source_list survey;
	size_t next;        /* item to be sent */
	bool sending;       /* the survey, from that one */
	bool forced;        /* what is due is one by force */
	int64_t first, due; /* event that was not followed by a look; the look */
	int64_t next_poll;
};

/* False: no memory.  It is closed in either case. */
bool rescan_open(struct rescan *l, const struct strings *sources, unsigned poll);
void rescan_close(struct rescan *l);

/*
 * Look now; FIRST: a source that cannot be listed is a failure.  What changed, or is looked
 * at first or by force, begins to be sent.  False: it failed, and why was logged.
 */
bool rescan_look(struct rescan *l, bool first);

/*
 * Something may have changed: look when it is quiet again, or soon.  FORCED: also at what
 * was refused.
 */
void rescan_note(struct rescan *l, bool forced);

/* Look at once, also at what was refused. */
void rescan_force(struct rescan *l);

/* When a look is due, in milliseconds of the clock; not before all of the last was sent. */
int64_t rescan_due(const struct rescan *l);

/* Send over LINK what it takes without waiting. */
void rescan_send(struct rescan *l, int link);

#endif
