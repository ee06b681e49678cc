/* SPDX-License-Identifier: MIT */
/* The server: mounts, drops its privileges, and answers requests until the mount ends. */
#ifndef FS_SERVER_SESSION_H
#define FS_SERVER_SESSION_H

#include "settings.h"

/* The server's ends of sockets to the supervisor; closed by session_serve. */
struct server_ends {
	int link;
	int groups; /* for group_query.h; -1: users do not share the mount */
};

/*
 * Serve the surveys that come over the link.  When the mount
 * works, send the supervisor a message.  Signals that ask for an end or a reload are
 * passed on to the supervisor.
 */
enum end session_serve(struct settings *s, const struct server_ends *ends);

#endif
