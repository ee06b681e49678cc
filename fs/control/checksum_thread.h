/* SPDX-License-Identifier: MIT */
/*
 * Reads of checksums, answered when the digests they cover have been computed: by one thread,
 * which begins with the first such read, and nothing that nobody reads.  Knows no FUSE.
 */
#ifndef FS_HASHER_H
#define FS_HASHER_H

#include "checksums.h"
#include "fs/content/content.h"

struct hasher;

/* Is there SHA-256 in this build? */
bool hasher_is_built(void);

/* CONTENT is borrowed.  NULL: no memory. */
struct hasher *hasher_new(struct content *content, content_answer *answer);

/* Stop, answer what still waits with an error, free.  No read may begin.  NULL is fine. */
void hasher_free(struct hasher *h);

/*
 * Read LEN bytes of S, which lie in it, at OFF.  The answer to TOKEN comes exactly once, by
 * any thread, without locks.  A file that cannot be read has a digest of zeros.
 */
void hasher_read(struct hasher *h, struct checksums *s, uint64_t off, size_t len,
		 void *token);

#endif
