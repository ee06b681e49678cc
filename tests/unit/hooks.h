/* SPDX-License-Identifier: MIT */
/* Calls of core to the C library whose place a suite may take; NULL: the system's. */
#ifndef TESTS_UNIT_HOOKS_H
#define TESTS_UNIT_HOOKS_H

#include <sys/types.h>

extern int (*hook_open)(const char *path, int flags, mode_t mode);
extern ssize_t (*hook_pread)(int fd, void *buf, size_t size, off_t offset);
extern int (*hook_fadvise)(int fd, off_t at, off_t len, int advice);

/* Called before a thread waits for another one (core/base/lock.h), with the lock held. */
extern void (*hook_lock_wait)(void);

/* What a hook calls to go on. */
int system_open(const char *path, int flags, mode_t mode);
ssize_t system_pread(int fd, void *buf, size_t size, off_t offset);

#endif
