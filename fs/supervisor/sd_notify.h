/* SPDX-License-Identifier: MIT */
/*
 * Messages to the service manager, where it asked for them: the protocol of sd_notify(3).
 * Without a manager nothing happens.
 */
#ifndef FS_SUPERVISOR_SD_NOTIFY_H
#define FS_SUPERVISOR_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Take the address from the environment, which programs we start will not see.  To be
 * called once, by the process that is to be known to the manager.
 */
void notify_begin(void);

/* STATUS is one line for people, NULL: none. */
void notify_ready(const char *status);
void notify_status(const char *status);
void notify_reloading(void);
void notify_stopping(void);
/* Does anybody want to know? */
bool notify_is_heard(void);
void notify_watchdog(void);

/* Microseconds within which notify_watchdog is expected, again and again; 0: never. */
uint64_t notify_watchdog_usec(void);

#endif
