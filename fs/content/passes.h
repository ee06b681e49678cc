/* SPDX-License-Identifier: MIT */
/*
 * Decoders of entries that are too large to be held decoded.  Such an entry can only be
 * decoded from its start, so a pass over it rests where it is until bytes behind that
 * place are wanted; what lies before needs another pass.
 *
 * Whoever owns the list locks it; a busy pass is its runner's.
 */
#ifndef FS_CONTENT_PASSES_H
#define FS_CONTENT_PASSES_H

#include <stdbool.h>
#include <time.h>
#include "fs/tree/origin.h"
#include "core/archive/pass.h"

struct pass {
	struct pass *next;
	uint64_t entry;          /* names origin and entry, as in struct piece */
	struct origin *origin;   /* with a reference */
	struct kp_pass *decoder; /* NULL: not begun */
	uint64_t window;         /* the widest it may use */
	uint64_t at;             /* number of the segment it comes to next */
	bool busy;
	bool ended; /* is of no more use: to be freed when it is no more busy */
	time_t used;
};

/*
 * Entries whose passes were dropped early, the last few: a new pass for one is a restart.
 */
#define PASSES_DROPPED 16

struct passes {
	struct pass *first; /* most recently used first */
	uint64_t bytes;     /* of all */
	uint64_t begun, restarts;
	uint64_t dropped[PASSES_DROPPED];
	unsigned n_dropped;
};

/* Bytes of memory of a pass. */
uint64_t pass_cost(uint64_t window);

/* The nearest pass of ENTRY, busy or resting, that is not behind NUMBER; or NULL. */
struct pass *passes_nearest(const struct passes *ps, uint64_t entry, uint64_t number,
			    bool busy);

/* A new, busy one at the start of an entry.  NULL: out of memory. */
struct pass *passes_add(struct passes *ps, uint64_t entry, struct origin *o,
			uint64_t window);

/* The one that rests for longest, not counting EXCEPT; or NULL. */
struct pass *passes_oldest(const struct passes *ps, const struct pass *except);

/* Let PASS rest, as the most recently used. */
void passes_rest(struct passes *ps, struct pass *pass, time_t now);

/* Take PASS out, to be freed. */
void passes_remove(struct passes *ps, struct pass *pass);

/* Without a lock. */
void pass_free(struct pass *pass);

#endif
