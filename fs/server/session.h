/* SPDX-License-Identifier: MIT */
/* The server: mounts, gives up its rights, and answers requests until the mount ends. */
#ifndef FS_SERVER_SESSION_H
#define FS_SERVER_SESSION_H

#include "fs/cli/settings.h"

/*
 * Serve what comes over LINK, which is closed. When the mount works the supervisor gets a
 * message. Signals that ask for an end or a reload are passed on to the supervisor.
 */
enum end session_serve(struct settings *s, int link);

#endif
