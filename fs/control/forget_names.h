/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel forget names of .kpackfs that were looked up. The kernel keeps a name
 * with no validity that is released within a tick of its clock, and with it a text of
 * many megabytes. Knows no FUSE. Thread-safe.
 */
#ifndef FS_CONTROL_FORGET_NAMES_H
#define FS_CONTROL_FORGET_NAMES_H

#include <stddef.h>

struct forget_names;

/* Tell the kernel to forget a name.  May have to wait for answers to requests. */
typedef void forget_names_tell(void *user, const char *name);

/* NULL: no memory. */
struct forget_names *forget_names_new(forget_names_tell *tell, void *user);
void forget_names_free(struct forget_names *t); /* NULL is fine */

/* NAME, one of few and static, was looked up: invalidate it in a moment. */
void forget_names_note(struct forget_names *t, const char *name);

#endif
