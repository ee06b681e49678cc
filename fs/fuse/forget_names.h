/* SPDX-License-Identifier: MIT */
/*
 * Makes the kernel forget names of .kpackfs that were looked up.  If a program releases a
 * name without validity within a tick of the kernel's clock, the kernel keeps it, and
 * with it a text of many megabytes.  Knows no FUSE.  Thread-safe.
 */
#ifndef FS_CONTROL_FORGET_NAMES_H
#define FS_CONTROL_FORGET_NAMES_H

#include <stddef.h>

struct forget_names;

/*
 * A callback that makes the kernel forget NAME.  May have to wait for answers to
 * requests.
 */
typedef void forget_names_notify(void *user, const char *name);

/* NULL: no memory. */
struct forget_names *forget_names_new(forget_names_notify *notify, void *user);
void forget_names_free(struct forget_names *t); /* NULL is fine */

/*
 * NAME was looked up: make the kernel forget it after a moment, and again until
 * forget_names_gone was called as often.  There may be only a few names, all static
 * strings.
 */
void forget_names_note(struct forget_names *t, const char *name);
void forget_names_gone(struct forget_names *t, const char *name);

#endif
