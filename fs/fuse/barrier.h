/* SPDX-License-Identifier: MIT */
/*
 * The file `barrier`: a read of it is answered when the mount shows everything that was so
 * before the read began.  For that the supervisor looks at the sources, and an answer comes
 * back behind all that it found.  Knows neither FUSE nor the supervisor.  Thread-safe.
 *
 * Readers share looks: those that come during a look, which may be too late for it, wait for
 * one more, all for the same one.  So however many read, one look follows another at most.
 */
#ifndef FS_FUSE_BARRIER_H
#define FS_FUSE_BARRIER_H

#include "fs/content/content.h"

/* The bytes of the text: a number, right-aligned, and a line feed. */
#define BARRIER_SIZE 21

/*
 * The most readers that wait.  The kernel sends as many reads to a mount at once as op_init
 * allows: if a disk hangs, and with it the supervisor, others are still to read files.
 */
#define BARRIER_READERS_MAX 32

struct barrier;

/*
 * ASK(USER): have the supervisor look; never blocks.  false: it cannot.  It is followed by
 * barrier_seen unless it failed.  NULL: no memory.
 */
struct barrier *barrier_new(bool (*ask)(void *user), void *user, content_answer *answer);

/* Reads that wait fail, and none may begin.  NULL is fine. */
void barrier_free(struct barrier *b);

/*
 * Read LEN bytes at OFF, a range that lies in the text.  The answer is called once with
 * TOKEN, now or later.
 */
void barrier_read(struct barrier *b, uint64_t off, size_t len, void *token);

/* The look that was asked for is done, and EDITION is shown; 0: it failed. */
void barrier_seen(struct barrier *b, uint64_t edition);

/* There will be no more looks. */
void barrier_over(struct barrier *b);

#endif
