/* SPDX-License-Identifier: MIT */
/*
 * Conflicts that were logged, so that each is logged once for as long as it stays, however
 * often the sources are looked at.  Not thread-safe.  NULL remembers nothing.
 */
#ifndef FS_TREE_LOGGED_CONFLICTS_H
#define FS_TREE_LOGGED_CONFLICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct logged_conflicts {
	uint64_t *now,
		*before; /* hashes, of the edition at hand, and of the last, sorted */
	size_t n_now, now_cap, n_before;
	size_t more; /* that the last had and of which there is no text */
};

/* TEXT is of the edition at hand, about the archive SERIAL, or 0.  Was it of the last? */
bool logged_conflicts_of(struct logged_conflicts *w, uint32_t serial, const char *text);

/*
 * That was all, and MORE without text: returns how many of these the last did not have.  The
 * edition at hand becomes the last.
 */
size_t logged_conflicts_turn(struct logged_conflicts *w, size_t more);

void logged_conflicts_fini(struct logged_conflicts *w);

#endif
