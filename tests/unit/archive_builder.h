/* SPDX-License-Identifier: MIT */
/* Open archives made with archive_bytes.h. */
#ifndef ARCHIVE_BUILDER_H
#define ARCHIVE_BUILDER_H

#include <sys/mman.h>
#include <unistd.h>
#include "core/archive/archive.h"
#include "archive_bytes.h"
#include "core/base/span.h"
#include "core/rocm_kpack/kpackx.h"

/* The modification time in seconds of opened archives; it is part of their identity. */
static time_t ab_mtime = 1000000000;

/* An unnamed file with these bytes; PATH names it while the descriptor is open. */
static inline int ab_memfd(const void *bytes, size_t size, char path[32])
{
	int fd = memfd_create("archive", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < size) {
		ssize_t n = write(fd, (const uint8_t *)bytes + done, size - done);
		if (n <= 0)
			abort();
		done += (size_t)n;
	}
	if (fd < 0)
		abort();
	futimens(fd, (struct timespec[]){{.tv_sec = ab_mtime}, {.tv_sec = ab_mtime}});
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static inline kpack_error_t ab_open_bytes(const void *bytes, size_t size,
					  struct kpack_archive **out,
					  struct kpackx_error *why)
{
	char path[32];
	int fd = ab_memfd(bytes, size, path);
	kpack_error_t err = kpackx_open(path, out, why);

	close(fd);
	return err;
}

static inline kpack_error_t ab_open(const struct ab *a, struct kpack_archive **out,
				    struct kpackx_error *why)
{
	return ab_open_bytes(a->bytes, a->size, out, why);
}

#endif
