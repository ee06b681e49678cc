/* SPDX-License-Identifier: MIT */
/*
 * Messages to the service manager, if it asked for them, in the protocol of sd_notify(3).
 * Without a manager these calls do nothing.
 */
#ifndef FS_MOUNT_SD_NOTIFY_H
#define FS_MOUNT_SD_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Take the manager's address from the environment, and remove it there, so that programs
 * that we start do not see it.  Called once, by the process that the manager is to know.
 */
void notify_begin(void);

/* STATUS is one line for people; NULL: none. */
void notify_ready(const char *status);
void notify_status(const char *status);
void notify_reloading(void);
void notify_stopping(void);
/* True if there is a manager that asked for messages. */
bool notify_is_heard(void);
void notify_watchdog(void);

/*
 * The longest time between two calls of notify_watchdog, in microseconds; 0: not
 * expected.
 */
uint64_t notify_watchdog_usec(void);

#endif
