/* SPDX-License-Identifier: MIT */
/* Messages: "kpackfs: TEXT" on stderr, and to syslog once the daemon has no stderr. */
#ifndef FS_BASE_LOG_H
#define FS_BASE_LOG_H

#include <syslog.h>
#include "core/base/span.h"

/*
 * Show messages up to PRIORITY (LOG_ERR, LOG_WARNING, LOG_INFO, ...).  Before the first
 * call it is LOG_WARNING.
 */
void log_level(int priority);

/* Messages on a terminal get colour; to be called before the sandbox, which hides what stderr is. */
void log_begin(void);

/* Send all later messages to syslog.  Call it while no other thread can log. */
void log_to_syslog(void);

/* Log one message of one line, without "\n".  Thread-safe. */
void log_print(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Log "FILE: TEXT", both escaped for terminals. */
void log_about(int priority, const char *file, const char *text);

#endif
