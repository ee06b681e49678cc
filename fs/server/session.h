/* SPDX-License-Identifier: MIT */
/* The server: mounts, drops its privileges, and answers requests until the mount ends. */
#ifndef FS_SERVER_SESSION_H
#define FS_SERVER_SESSION_H

#include "fs/cli/settings.h"

/*
 * Serve the surveys that come over LINK, which this call closes.  When the mount
 * works, send the supervisor a message.  Signals that ask for an end or a reload are
 * passed on to the supervisor.
 */
enum end session_serve(struct settings *s, int link);

#endif
