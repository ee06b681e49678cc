/* SPDX-License-Identifier: MIT */
/*
 * The server's sandbox.  When the mount works the server drops its privileges, so that an
 * attacker who takes it over by an archive's bytes gains nothing: it loses capabilities,
 * privileges by execve, and access to files, programs, networks and other processes.
 *
 * It can still read open files, receive descriptors, use /dev/fuse, threads and memory,
 * and send messages to syslog.
 */
#ifndef FS_BASE_SANDBOX_H
#define FS_BASE_SANDBOX_H

#include <stdbool.h>

/*
 * When the process ends, a sanitizer opens /proc/self/maps and its report file, and runs
 * a symbolizer; the leak checker also forks and traces.  A program built with a sanitizer
 * may still do all this: it only loses its privileges.
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
	bool io_uring; /* libfuse will take requests over io_uring */
};

/*
 * Enter the sandbox, for good.  Call it after the mount is made and before any thread is
 * started: only the calling thread, and threads it starts later, are in the sandbox.
 * Answer INIT afterwards, because a libfuse that uses io_uring starts threads then.
 *
 * A part that this system does not support is left out, with a message.  false: a
 * supported part failed; logged.
 */
bool sandbox_enter(const struct sandbox_options *o);

/* The names of the parts that are in force, then NULL. */
const char *const *sandbox_parts(void);

#endif
