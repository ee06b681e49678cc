/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's scans of the sources: decides when a scan is due, because something
 * may have changed, keeps the result, and sends all of it to the server.
 */
#ifndef FS_SUPERVISOR_RESCAN_H
#define FS_SUPERVISOR_RESCAN_H

#include <stdbool.h>
#include <stdint.h>
#include "settings.h"
#include "sources.h"

struct rescan {
	const struct strings *sources; /* absolute */
	unsigned poll;                 /* seconds between scans; 0: scan at events */
	struct watch *watch;
	bool logged_blind; /* it was logged that changes may go unnoticed */
	struct source_list survey;
	size_t next;        /* next item of the survey to send */
	bool sending;       /* the survey is not sent completely */
	bool forced;        /* the scan that is due includes refused archives */
	bool asked;         /* the server waits for the end of the scan that is due */
	bool answering;     /* that scan is done, and the answer not sent */
	bool fine;          /* the answer: it succeeded */
	int64_t first, due; /* time of the first event since the last scan; of the scan */
	int64_t next_poll;
};

/* false: no memory, but rescan_close must be called all the same. */
bool rescan_open(struct rescan *l, const struct strings *sources, unsigned poll);
void rescan_close(struct rescan *l);

/*
 * Scan now; FIRST: a source that cannot be listed is a failure.  If something changed, or
 * the scan is the first or a forced one, the survey is to be sent.  false: it failed;
 * logged.
 */
bool rescan_look(struct rescan *l, bool first);

/*
 * Something may have changed: make a scan due when there are no more events, or after
 * some seconds.  FORCED: the scan includes refused archives.
 */
void rescan_note(struct rescan *l, bool forced);

/* Make a scan due at once that includes refused archives. */
void rescan_force(struct rescan *l);

/* The server asks for a scan at once, and for an answer behind all that it finds. */
void rescan_ask(struct rescan *l);

/* There will be no scan any more: if the server has asked for one, tell it. */
void rescan_decline(struct rescan *l);

/* When a scan is due, as clock_ms; CLOCK_NEVER until all of the last survey is sent. */
int64_t rescan_due(const struct rescan *l);

/* Send as much of the survey, and the answer, over LINK as possible without waiting. */
void rescan_send(struct rescan *l, int link);

/* True if something is to be sent still. */
bool rescan_has_more(const struct rescan *l);

#endif
