/* SPDX-License-Identifier: MIT */
/*
 * Remembers the conflicts that were logged, so that each is logged once for as long as it
 * exists, however often the sources are scanned.  Not thread-safe.  A NULL object
 * remembers nothing.
 */
#ifndef FS_TREE_LOGGED_CONFLICTS_H
#define FS_TREE_LOGGED_CONFLICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct logged_conflicts {
	uint64_t *now,
		*before; /* hashes: of the new edition; of the last edition, sorted */
	size_t n_now, now_cap, n_before;
	size_t more; /* conflicts of the last edition whose text is unknown */
};

/*
 * Note that the new edition has the conflict TEXT, about the archive SERIAL (0: about
 * none).  True if the last edition had it, too.
 */
bool logged_conflicts_of(struct logged_conflicts *w, uint32_t serial, const char *text);

/*
 * End the new edition, which also has MORE conflicts without text; it becomes the last
 * one.  Returns by how many MORE exceeds that number of the last edition.
 */
size_t logged_conflicts_turn(struct logged_conflicts *w, size_t more);

void logged_conflicts_fini(struct logged_conflicts *w);

#endif
