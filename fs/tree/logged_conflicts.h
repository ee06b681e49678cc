/* SPDX-License-Identifier: MIT */
/*
 * Conflicts that were logged, so that each is logged once for as long as it stays, however
 * often the sources are looked at.  Not thread-safe.  NULL remembers nothing.
 */
#ifndef FS_WARNED_H
#define FS_WARNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct warned {
	uint64_t *now,
		*before; /* hashes, of the edition at hand, and of the last, sorted */
	size_t n_now, now_cap, n_before;
	size_t more; /* that the last had and of which there is no text */
};

/* TEXT is of the edition at hand, about the archive SERIAL, or 0.  Was it of the last? */
bool warned_of(struct warned *w, uint32_t serial, const char *text);

/*
 * That was all, and MORE without text: returns how many of these the last did not have.  The
 * edition at hand becomes the last.
 */
size_t warned_turn(struct warned *w, size_t more);

void warned_fini(struct warned *w);

#endif
