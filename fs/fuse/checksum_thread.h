/* SPDX-License-Identifier: MIT */
/*
 * Answers reads of checksums when the digests in their range have been computed.  One
 * thread, started by the first such read, computes only the digests that are read.  Knows
 * no FUSE.
 */
#ifndef FS_CONTROL_CHECKSUM_THREAD_H
#define FS_CONTROL_CHECKSUM_THREAD_H

#include "checksums.h"
#include "fs/content/content.h"

struct checksum_thread;

/* CONTENT is borrowed.  NULL: no memory. */
struct checksum_thread *checksum_thread_new(struct content *content,
					    content_answer *answer);

/*
 * Stop the thread, answer the reads that still wait with an error, and free H.  No read
 * may begin.  NULL is fine.
 */
void checksum_thread_free(struct checksum_thread *h);

/*
 * Read LEN bytes of S at OFF; the range must lie in S.  The callback is called exactly
 * once with TOKEN, by any thread, without locks.  A file that cannot be read has a digest
 * of zeros.
 */
void checksum_thread_read(struct checksum_thread *h, struct checksums *s, uint64_t off,
			  size_t len, void *token);

#endif
