/* SPDX-License-Identifier: MIT */
#include "hooks.h"
#include "core/base/lock.h"
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int (*hook_open)(const char *path, int flags, mode_t mode);
ssize_t (*hook_pread)(int fd, void *buf, size_t size, off_t offset);
int (*hook_fadvise)(int fd, off_t at, off_t len, int advice);
void (*hook_lock_wait)(void);

int system_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t system_pread(int fd, void *buf, size_t size, off_t offset)
{
	return syscall(SYS_pread64, fd, buf, size, offset);
}

/* These replace the C library's functions in the program, though not in its libraries. */

int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return (hook_open ? hook_open : system_open)(path, flags, mode);
}

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	return (hook_pread ? hook_pread : system_pread)(fd, buf, size, offset);
}

int posix_fadvise(int fd, off_t at, off_t len, int advice)
{
	if (hook_fadvise)
		return hook_fadvise(fd, at, len, advice);
	return (int)syscall(SYS_fadvise64, fd, at, len, advice);
}

/* The linker gives these names to our own function and to what replaces it. */
void __real_kp_lock_wait(struct kp_lock *l);
void __wrap_kp_lock_wait(struct kp_lock *l);

void __wrap_kp_lock_wait(struct kp_lock *l)
{
	if (hook_lock_wait)
		hook_lock_wait();
	__real_kp_lock_wait(l);
}
