/* SPDX-License-Identifier: MIT */
/*
 * What the server gives up when the mount works, so that whoever makes it misbehave by an
 * archive's bytes gains nothing: capabilities, privileges by execve, opening files,
 * programs, networks, other processes.
 *
 * What goes on working: reading what is open, receiving descriptors, /dev/fuse, threads,
 * memory, and messages to syslog.
 */
#ifndef FS_SANDBOX_SANDBOX_H
#define FS_SANDBOX_SANDBOX_H

#include <stdbool.h>

/*
 * At its end a sanitizer opens /proc/self/maps and the file of its report, and runs a
 * symbolizer; the leak checker also forks and traces.  Programs built with one keep what
 * that takes: they only lose their privileges.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_WHOLE 0
#elif defined(__has_feature)
#define SANDBOX_WHOLE                                                                    \
	(!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define SANDBOX_WHOLE 1
#endif

struct sandbox_options {
	bool clone_fd; /* libfuse will open /dev/fuse for its threads */
	bool io_uring; /* and take requests over rings */
};

/*
 * Give it up, for good.  To be called when the mount was made and before any thread is
 * started: only the calling thread, and what it starts later, is in the sandbox.  INIT is
 * answered inside, for a libfuse that uses io_uring starts threads then.
 *
 * A part that this system does not have is left out, with a message; false when one that
 * it has failed, which was logged.
 */
bool sandbox_enter(const struct sandbox_options *o);

/* The names of the parts that are on, then NULL. */
const char *const *sandbox_parts(void);

#endif
