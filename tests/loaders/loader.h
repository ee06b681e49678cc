/* SPDX-License-Identifier: MIT */
/*
 * Shared by the loaders.  They find and read files as a library does, and report on
 * standard output each decision and the bytes read.  Names are relative to the database's
 * directory, so that two places with the same files give the same report.
 */
#ifndef LOADER_H
#define LOADER_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The programs are short-lived and free nothing, so leak detection is off. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct bytes {
	uint8_t *data;
	size_t size;
};

__attribute__((format(printf, 1, 2), noreturn)) static inline void die(const char *fmt,
								       ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

__attribute__((format(printf, 1, 2))) static inline char *text(const char *fmt, ...)
{
	va_list args;
	char *out;
	int n;

	va_start(args, fmt);
	n = vasprintf(&out, fmt, args);
	va_end(args);
	if (n < 0)
		die("no memory for a name");
	return out;
}

static inline void *grow(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		die("no memory for %zu bytes", size);
	return p;
}

static inline double milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- printing --------------------------------------------------------------------------- */

static inline void print_bytes(const char *what, const char *name, const void *data,
			       size_t size)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];

	SHA256(data, size, hash);
	printf("%s %s %zu ", what, name, size);
	for (size_t i = 0; i < sizeof(hash); i++)
		printf("%02x", hash[i]);
	putchar('\n');
}

static inline void print_absent(const char *what, const char *name)
{
	printf("%s %s: %s\n", what, name, strerrorname_np(errno));
}

/* access(), which the libraries call before they open a file. */
static inline bool is_there(const char *dir, const char *name)
{
	char *path = text("%s/%s", dir, name);
	bool there = access(path, R_OK) == 0;

	if (there)
		printf("access %s: yes\n", name);
	else
		print_absent("access", name);
	free(path);
	return there;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Read like a std::ifstream in pieces of STEP bytes until none are left. */
static inline bool read_pieces(int dir, const char *path, size_t step, struct bytes *out)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	*out = (struct bytes){0};
	if (fd < 0)
		return false;
	do {
		out->data = grow(out->data, out->size + step);
		n = read(fd, out->data + out->size, step);
		out->size += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	if (n < 0)
		die("%s: read: %s", path, strerror(errno));
	close(fd);
	return true;
}

/*
 * Read like a std::ifstream opened at its end: tellg for the size, seek, one read of
 * everything.
 */
static inline bool read_whole(const char *path, struct bytes *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end;

	*out = (struct bytes){0};
	if (fd < 0)
		return false;
	end = lseek(fd, 0, SEEK_END);
	if (end < 0 || lseek(fd, 0, SEEK_SET) != 0)
		die("%s: lseek: %s", path, strerror(errno));
	out->data = grow(NULL, (size_t)end);
	while (out->size < (size_t)end) {
		ssize_t n = read(fd, out->data + out->size, (size_t)end - out->size);

		if (n <= 0)
			die("%s: %zu of %jd bytes", path, out->size, (intmax_t)end);
		out->size += (size_t)n;
	}
	close(fd);
	return true;
}

/* ---- finding a library -------------------------------------------------------------------- */

struct object_search {
	const char *word;
	char *path;
};

static inline int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object_search *search = arg;

	(void)size;
	if (info->dlpi_name && strstr(info->dlpi_name, search->word)) {
		free(search->path);
		search->path = text("%s", info->dlpi_name);
	}
	return 0;
}

/* Load SO in place of the library itself. */
static inline void *load_library(const char *so)
{
	void *handle = dlopen(so, RTLD_NOW);

	if (!handle)
		die("%s", dlerror());
	return handle;
}

/* The directory, not made canonical, of the last loaded object with WORD in its path. */
static inline char *object_directory(const char *word)
{
	struct object_search search = {.word = word};

	dl_iterate_phdr(look_at_object, &search);
	if (!search.path || !strrchr(search.path, '/'))
		die("no object like %s is loaded", word);
	*strrchr(search.path, '/') = 0;
	return search.path;
}

#endif
