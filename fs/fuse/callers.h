/* SPDX-License-Identifier: MIT */
/* Which archives the users who make requests may read.  Thread-safe. */
#ifndef FS_FUSE_CALLERS_H
#define FS_FUSE_CALLERS_H

#include <fuse_lowlevel.h>
#include "fs/tree/readers.h"

struct callers;

/*
 * GROUPS is the server's end of the socket for group_query.h; closed by callers_free.
 * NULL: no memory.
 */
struct callers *callers_new(int groups);
void callers_free(struct callers *c); /* NULL is fine */

/*
 * The classes that the user of a request may read: all for root and for the user who
 * mounted, who may read what this process may.  If the supervisor does not answer, the
 * user is in no group but the request's.
 */
uint64_t callers_read(struct callers *c, const struct fuse_ctx *who,
		      const struct classes *classes);

#endif
