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

/* Open archive A, which is one, and free its bytes. */
static inline struct kpack_archive *ab_opened(struct ab *a)
{
	struct kpack_archive *archive = NULL;
	struct kpackx_error error;

	if (ab_open(a, &archive, &error)) {
		fprintf(stderr, "archive_builder: %s\n", error.text);
		abort();
	}
	ab_free(a);
	return archive;
}

/*
 * An archive of the entry a for x, which has SIZE bytes and this metadata, and which is STORED
 * so; frees STORED.
 */
static inline struct kpack_archive *ab_entry(bool plain, struct ab *stored, size_t size,
					     const char *metadata)
{
	struct ab a = plain ? ab_new(64) : ab_new_zstd();

	if (plain)
		ab_put(&a, stored->bytes, stored->size);
	else
		ab_stored(&a, stored->bytes, stored->size);
	ab_free(stored);
	ab_toc(&a,
	       "{'compression_scheme': '%s', 'zstd_offset': 64, 'zstd_size': %zu, "
	       "'blobs': "
	       "[{'offset': 64, 'size': %zu}], 'toc': {'a': {'x': {'ordinal': 0, "
	       "'original_size': %zu, 'metadata': %s}}}}",
	       plain ? "none" : "zstd-per-kernel", a.size - 64, a.size - 64, size,
	       metadata);
	return ab_opened(&a);
}

#endif
