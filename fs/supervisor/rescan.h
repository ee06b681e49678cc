/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's look at the sources: when one is due, for something may have changed,
 * what it sees, and that the server gets all of it.
 */
#ifndef FS_LOOKOUT_H
#define FS_LOOKOUT_H

#include <stdbool.h>
#include <stdint.h>
#include "fs/cli/settings.h"
#include "sources.h"

struct lookout {
	const struct strings *sources; /* absolute */
	unsigned poll;                 /* seconds between looks; 0: at events */
	struct watch *watch;
	bool told_blind;
	struct survey survey;
	size_t next;        /* item to be sent */
	bool sending;       /* the survey, from that one */
	bool forced;        /* what is due is one by force */
	int64_t first, due; /* event that was not followed by a look; the look */
	int64_t next_poll;
};

/* False: no memory.  It is closed in either case. */
bool lookout_open(struct lookout *l, const struct strings *sources, unsigned poll);
void lookout_close(struct lookout *l);

/*
 * Look now; FIRST: a source that cannot be listed is a failure.  What changed, or is looked
 * at first or by force, begins to be sent.  False: it failed, and why was logged.
 */
bool lookout_look(struct lookout *l, bool first);

/*
 * Something may have changed: look when it is quiet again, or soon.  FORCED: also at what
 * was refused.
 */
void lookout_note(struct lookout *l, bool forced);

/* Look at once, also at what was refused. */
void lookout_force(struct lookout *l);

/* When a look is due, in milliseconds of the clock; not before all of the last was sent. */
int64_t lookout_due(const struct lookout *l);

/* Send over LINK what it takes without waiting. */
void lookout_send(struct lookout *l, int link);

#endif
