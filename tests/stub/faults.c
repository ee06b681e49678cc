/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program, this lets its calls fail as set by the bytes of the file that
 * FAULTS names, which may change at any time:
 *
 *   byte 0  pread of files: 'e' fails, 's' gives half, 'z' returns end of file, 'i' is
 *           interrupted every other time
 *   byte 1  'm': blocks of memory from 16 KiB on are refused
 *   byte 2  't': no thread starts
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static const volatile char *faults = "...";

static void __attribute__((constructor)) map_faults(void)
{
	const char *path = getenv("FAULTS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED)
		faults = map;
	close(fd);
}

/* Files of /proc and /sys have no size, and are exempt. */
static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

static ssize_t faulty_read(int fd, void *buf, size_t size, off_t off)
{
	static unsigned calls;
	char fault = faults[0];

	if (fault == '.' || !is_file(fd))
		return syscall(SYS_pread64, fd, buf, size, off);
	if (fault == 'e') {
		errno = EIO;
		return -1;
	}
	if (fault == 'i' && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 2) {
		errno = EINTR;
		return -1;
	}
	if (fault == 'z')
		return 0;
	if (fault == 's')
		size = (size + 1) / 2;
	return syscall(SYS_pread64, fd, buf, size, off);
}

/* All names of this function, which is really pread64. */
SHOWN ssize_t pread(int fd, void *buf, size_t size, off_t off)
{
	return faulty_read(fd, buf, size, off);
}

ssize_t __pread_chk(int fd, void *buf, size_t size, off_t off, size_t room);
SHOWN ssize_t __pread_chk(int fd, void *buf, size_t size, off_t off, size_t room)
{
	(void)room;
	return faulty_read(fd, buf, size, off);
}

ssize_t __pread64_chk(int fd, void *buf, size_t size, off_t off, size_t room);
SHOWN ssize_t __pread64_chk(int fd, void *buf, size_t size, off_t off, size_t room)
{
	(void)room;
	return faulty_read(fd, buf, size, off);
}

SHOWN int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			 void *(*run)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
			   void *);

	if (faults[2] == 't')
		return EAGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attr, run, arg);
}

/* Sanitizers have a malloc of their own. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* libfuse exits if it gets no memory for a request, which is not under test. */
static bool refused(size_t size)
{
	bool request = size > 1 << 20 && size <= (1 << 20) + 65536;

	return faults[1] == 'm' && size >= 16384 && !request;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

SHOWN void *malloc(size_t size)
{
	if (!refused(size))
		return __libc_malloc(size);
	errno = ENOMEM;
	return NULL;
}

SHOWN void *calloc(size_t n, size_t size)
{
	if (!refused(n * size))
		return __libc_calloc(n, size);
	errno = ENOMEM;
	return NULL;
}

SHOWN void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	if (!refused(size) || !(flags & MAP_ANONYMOUS))
		return (void *)syscall(SYS_mmap, at, size, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

#endif
