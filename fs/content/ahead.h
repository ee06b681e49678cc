/* SPDX-License-Identifier: MIT */
/*
 * Finds rows: entries of an archive that are read one after another, by one reader or by
 * several that share them.  A row goes forward in steps of a constant number of entries: 1
 * for all files of an archive, or the number of architectures for all files of one of
 * them.  It may leave out some, whose bytes the kernel has already.
 *
 * An entry is named by its key, which is greater for a later entry of the same archive.
 * No locks: the caller has one.
 */
#ifndef FS_CONTENT_AHEAD_H
#define FS_CONTENT_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#define AHEAD_ROWS 4
#define AHEAD_READ 4096

struct ahead_row {
	uint64_t last;    /* the greatest key that is read; 0: no row */
	uint64_t claimed; /* the greatest key of ahead_claim */
	uint64_t used;    /* when it was used last */
	unsigned step;    /* 0: not known */
	unsigned length;  /* of the row, in entries */
};

struct ahead {
	struct ahead_row rows[AHEAD_ROWS];
	uint64_t uses;
	uint64_t read[AHEAD_READ]; /* keys that were read lately, by their last bits */
};

/*
 * The entry KEY is read; BEGINS: from its start.  True if it is in a row, of which *OUT is a
 * copy; false: in none, or in one that is still so short that it may be chance.
 */
bool ahead_note(struct ahead *a, uint64_t key, bool begins, struct ahead_row *out);

/*
 * True if ROW is still where it was, and will come to KEY, which was not claimed before, and
 * not read lately: then the kernel has its bytes.  The last key that was claimed may be
 * claimed again.
 */
bool ahead_claim(struct ahead *a, const struct ahead_row *row, uint64_t key);

#endif
