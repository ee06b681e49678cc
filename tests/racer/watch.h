/* SPDX-License-Identifier: MIT */
/*
 * What must hold at each moment of a run, also without an attack.
 */
#ifndef RACER_WATCH_H
#define RACER_WATCH_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Look at what the stopped process has open, and at the files, below DIR.  Returns what is
 * wrong, as static text, or NULL:
 * - a file is written to that others may open;
 * - a file of root's is set-user-ID or set-group-ID, though none is that was copied.
 */
const char *watch_look(const struct seccomp_notif *stopped, const char *dir, bool files);

#endif
