/* SPDX-License-Identifier: MIT */
/*
 * Decoders of entries that are too large to be held decoded.  Such an entry can only be
 * decoded from its start, so a pass over it rests where it is until bytes behind that
 * place are wanted; bytes before that place need another pass.
 *
 * The owner of the list locks it.  A busy pass belongs to the thread that runs it.
 */
#ifndef FS_CONTENT_PASSES_H
#define FS_CONTENT_PASSES_H

#include <stdbool.h>
#include <time.h>
#include "fs/tree/origin.h"
#include "decoders.h"

struct pass {
	struct pass *next;
	uint64_t entry;            /* serial of the origin, number of the entry */
	struct origin *origin;     /* with a reference */
	struct kp_decode *decoder; /* NULL: not begun */
	uint64_t window;           /* the widest window it may use */
	uint64_t at;               /* number of the segment it decodes next */
	bool busy;
	bool ended; /* of no more use: freed as soon as it is not busy */
	time_t used;
};

/*
 * The number of entries that are remembered because their passes were dropped early: a
 * new pass over one of them is a restart.
 */
#define PASSES_DROPPED 16

struct passes {
	struct pass *first; /* most recently used first */
	uint64_t bytes;     /* memory of all passes */
	uint64_t begun, restarts;
	uint64_t dropped[PASSES_DROPPED];
	unsigned n_dropped;
};

/* Bytes of memory that a pass with WINDOW takes. */
uint64_t pass_cost(uint64_t window);

/*
 * The pass over ENTRY, busy or resting as BUSY says, that is nearest to segment NUMBER
 * and not behind it; or NULL.
 */
struct pass *passes_nearest(const struct passes *ps, uint64_t entry, uint64_t number,
			    bool busy);

/* True if ENTRY has a pass. */
bool passes_have(const struct passes *ps, uint64_t entry);

/* A new, busy pass at the start of ENTRY of O.  NULL: out of memory. */
struct pass *passes_add(struct passes *ps, uint64_t entry, struct origin *o,
			uint64_t window);

/* The pass that has rested longest, other than EXCEPT; or NULL. */
struct pass *passes_oldest(const struct passes *ps, const struct pass *except);

/* Let PASS rest, as the most recently used. */
void passes_rest(struct passes *ps, struct pass *pass, time_t now);

/* Unlink PASS; the caller frees it. */
void passes_remove(struct passes *ps, struct pass *pass);

/* Called without a lock.  DECODERS: where the pass has its decoder from. */
void pass_free(struct pass *pass, struct decoders *decoders);

#endif
