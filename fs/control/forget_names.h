/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel forget names of .kpackfs that were looked up. The kernel keeps a name
 * with no validity that is released within a tick of its clock, and with it a text of
 * many megabytes. Knows no FUSE. Thread-safe.
 */
#ifndef FS_TIDIER_H
#define FS_TIDIER_H

#include <stddef.h>

struct tidier;

/* Tell the kernel to forget a name.  May have to wait for answers to requests. */
typedef void tidier_tell(void *user, const char *name);

/* NULL: no memory. */
struct tidier *tidier_new(tidier_tell *tell, void *user);
void tidier_free(struct tidier *t); /* NULL is fine */

/* NAME, one of few and static, was looked up: invalidate it in a moment. */
void tidier_note(struct tidier *t, const char *name);

#endif
