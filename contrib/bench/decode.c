/* SPDX-License-Identifier: MIT */
/*
 * decode THREADS ARCHIVE...: decode every ordinal once on THREADS threads, from memory
 * into memory, and print the seconds, the bytes, and the CPU seconds.  This is what reading
 * through the mount would cost if only the decompressor took time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>
#include "core/archive/archive.h"
#include "core/base/file.h"

struct frame {
	void *stored;
	size_t stored_size, size;
	bool plain;
};

static struct frame *frames;
static size_t n_frames;
static size_t biggest;
static atomic_size_t next_frame;

static void die(const char *what)
{
	fprintf(stderr, "decode: %s\n", what);
	exit(1);
}

static void load(const char *path)
{
	kpack_archive_t a;
	struct kpackx_error why = {0};
	if (kpackx_open(path, &a, &why) != KPACK_SUCCESS)
		die(why.text);
	bool plain = kp_archive_scheme(a)[0] == 'n';
	bool *seen = calloc(kp_archive_ordinal_count(a) + 1, sizeof(*seen));
	size_t count = kp_archive_entry_count(a);
	frames = realloc(frames, (n_frames + count + 1) * sizeof(*frames));
	if (!seen || !frames)
		die("out of memory");
	for (size_t i = 0; i < count; i++) {
		struct kp_entry_info e;
		kp_archive_entry(a, i, &e);
		if (seen[e.ordinal])
			continue;
		seen[e.ordinal] = true;
		struct frame *f = &frames[n_frames++];
		*f = (struct frame){malloc(e.stored ? e.stored : 1), e.stored, e.size,
				    plain};
		if (!f->stored)
			die("out of memory");
		struct kp_source source;
		if (kp_archive_source(a, e.ordinal, &source, &why) != KPACK_SUCCESS ||
		    kp_source_read(&source, 0, f->stored, f->stored_size, &why) !=
			    KPACK_SUCCESS)
			die(why.text);
		if (f->size > biggest)
			biggest = f->size;
	}
	free(seen);
	kpack_close(a);
}

static void *work(void *arg)
{
	(void)arg;
	void *out = malloc(biggest ? biggest : 1);
	if (!out)
		die("out of memory");
	for (;;) {
		size_t i = atomic_fetch_add(&next_frame, 1);
		if (i >= n_frames)
			break;
		const struct frame *f = &frames[i];
		if (!f->plain &&
		    ZSTD_decompress(out, f->size, f->stored, f->stored_size) != f->size)
			die("a frame does not decode");
	}
	free(out);
	return NULL;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) +
	       (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: decode THREADS ARCHIVE...\n", stderr);
		return 2;
	}
	long n = strtol(argv[1], NULL, 10);
	pthread_t threads[64];
	if (n < 1 || n > 64)
		die("threads: 1 to 64");
	for (int i = 2; i < argc; i++)
		load(argv[i]);
	struct timespec start, end, cpu_start, cpu_end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_start);
	for (long i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			die("cannot start a thread");
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_end);
	size_t bytes = 0;
	for (size_t i = 0; i < n_frames; i++) {
		bytes += frames[i].size;
		free(frames[i].stored);
	}
	free(frames);
	printf("%.4f %zu %.4f\n", seconds_between(&start, &end), bytes,
	       seconds_between(&cpu_start, &cpu_end));
	return 0;
}
