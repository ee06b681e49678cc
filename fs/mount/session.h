/* SPDX-License-Identifier: MIT */
/* The server: mounts, drops its privileges, and answers requests until the mount ends. */
#ifndef FS_SERVER_SESSION_H
#define FS_SERVER_SESSION_H

#include "settings.h"

/*
 * Serve the surveys that come over LINK, which is closed in the end.  When the mount works,
 * the supervisor is told.  Signals that ask for an end or a reload are passed on to it.
 */
enum end session_serve(struct settings *s, int link);

#endif
