/* SPDX-License-Identifier: MIT */
/*
 * Reads of checksums, answered when the digests they cover have been computed: by one thread,
 * which begins with the first such read, and nothing that nobody reads.  Knows no FUSE.
 */
#ifndef FS_CONTROL_CHECKSUM_THREAD_H
#define FS_CONTROL_CHECKSUM_THREAD_H

#include "checksums.h"
#include "fs/content/content.h"

struct checksum_thread;

/* Is there SHA-256 in this build? */
bool checksum_thread_is_built(void);

/* CONTENT is borrowed.  NULL: no memory. */
struct checksum_thread *checksum_thread_new(struct content *content,
					    content_answer *answer);

/* Stop, answer what still waits with an error, free.  No read may begin.  NULL is fine. */
void checksum_thread_free(struct checksum_thread *h);

/*
 * Read LEN bytes of S, which lie in it, at OFF.  The answer to TOKEN comes exactly once, by
 * any thread, without locks.  A file that cannot be read has a digest of zeros.
 */
void checksum_thread_read(struct checksum_thread *h, struct checksums *s, uint64_t off,
			  size_t len, void *token);

#endif
