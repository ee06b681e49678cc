/* SPDX-License-Identifier: MIT */
/*
 * Read files in one of several ways, and print the seconds and the bytes read.
 *
 *   readers threads N          N threads read the files named on standard input, one name
 *   per
 *                              line; each thread takes the next file until none is left
 *   readers processes N        N processes, each of which reads all of these files in
 *   order readers map N FILE         N processes that map FILE and touch each page of it
 *   readers at OFFSET FILE     4 KiB at OFFSET; before the end if it is negative
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "names.h"

#define PIECE ((size_t)128 << 10) /* as cat(1) and cp(1) */
#define MOST 64

static atomic_size_t next_name;
static atomic_size_t *total; /* shared with children */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t read_file(const char *name, char *piece)
{
	size_t size = 0;
	ssize_t n;
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(name);
	while ((n = read(fd, piece, PIECE)) > 0)
		size += (size_t)n;
	if (n < 0)
		die(name);
	close(fd);
	return size;
}

static char *piece_new(void)
{
	char *piece = aligned_alloc(4096, PIECE);

	if (!piece)
		die("memory");
	memset(piece, 0, PIECE);
	return piece;
}

static void *take_files(void *arg)
{
	char *piece = piece_new();
	size_t size = 0, i;

	while ((i = atomic_fetch_add(&next_name, 1)) < n_names)
		size += read_file(names[i], piece);
	atomic_fetch_add(total, size);
	free(piece);
	return arg;
}

static void by_threads(long n, const char *unused)
{
	pthread_t threads[MOST];

	(void)unused;
	for (long i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, take_files, NULL) != 0)
			die("thread");
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void read_all(const char *unused)
{
	(void)unused;
	take_files(NULL);
}

static void touch(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const volatile char *at;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(name);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		die(name);
	for (off_t i = 0; i < st.st_size; i += 4096)
		(void)at[i];
	atomic_fetch_add(total, (size_t)st.st_size);
}

/* Run N processes at once. */
static void in_processes(long n, const char *name, void (*one)(const char *name))
{
	bool failed = false;
	int status;

	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			one(name);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed = failed || status != 0;
	if (failed)
		exit(1);
}

static void by_processes(long n, const char *name)
{
	in_processes(n, name, read_all);
}

static void by_maps(long n, const char *name)
{
	in_processes(n, name, touch);
}

static void at(long offset, const char *name)
{
	char piece[4096];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	off_t from = fd < 0 ? -1 : lseek(fd, offset, offset < 0 ? SEEK_END : SEEK_SET);
	ssize_t n = from < 0 ? -1 : read(fd, piece, sizeof(piece));

	if (n < 0)
		die(name);
	close(fd);
	atomic_fetch_add(total, (size_t)n);
}

static const struct action {
	const char *name;
	void (*run)(long number, const char *name);
	bool counts, lists;
} actions[] = {
	{"threads", by_threads, true, true},
	{"processes", by_processes, true, true},
	{"map", by_maps, true, false},
	{"at", at, false, false},
};

static int usage(void)
{
	fputs("usage: readers threads|processes N <NAMES\n"
	      "       readers map N FILE\n"
	      "       readers at OFFSET FILE\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const struct action *a = actions, *end = a + sizeof(actions) / sizeof(*a);

	while (a < end && (argc < 3 || strcmp(argv[1], a->name) != 0))
		a++;
	if (a == end || argc != (a->lists ? 3 : 4))
		return usage();
	long number = strtol(argv[2], NULL, 10);
	if (a->counts && (number < 1 || number > MOST))
		return usage();
	total = mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (total == MAP_FAILED)
		die("memory");
	if (a->lists)
		take_names();
	double start = now();
	a->run(number, argv[argc - 1]);
	printf("%.6f %zu\n", now() - start, atomic_load(total));
	return 0;
}
