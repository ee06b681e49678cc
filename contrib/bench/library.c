/* SPDX-License-Identifier: MIT */
/*
 * library LIBRARY open ARCHIVE          µs of kpack_open, bytes of heap it keeps
 * library LIBRARY get ARCHIVE           µs of a kpack_get_kernel, of what any reader does
 * library LIBRARY threads ARCHIVE N     seconds for all objects on N threads, likewise
 * library LIBRARY find ARCHIVE          ms of kpack_open, µs to find one of many
 *                                       entries, again, and when it is not there
 *
 * LIBRARY is a librocm_kpack.so.0, ours or AMD's: what is measured is called by its
 * name, as a runtime does.  get and threads read lines of "key arch ordinal" from
 * standard input, of the first or of every object.  contrib/bench/library asks.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include "core/rocm_kpack/kpack.h"

enum { ROUNDS = 21, THREADS_MAX = 64, REPEATS = 4 };

static struct {
	kpack_error_t (*open)(const char *, kpack_archive_t *);
	void (*close)(kpack_archive_t);
	kpack_error_t (*get_binary_count)(kpack_archive_t, size_t *);
	kpack_error_t (*get_binary)(kpack_archive_t, size_t, const char **);
	kpack_error_t (*get_architecture_count)(kpack_archive_t, size_t *);
	kpack_error_t (*get_architecture)(kpack_archive_t, size_t, const char **);
	kpack_error_t (*get_kernel)(kpack_archive_t, const char *, const char *, void **,
				    size_t *);
	void (*free_kernel)(void *);
	/* ours alone */
	kpack_error_t (*find_entry)(kpack_archive_t, const char *, const char *,
				    size_t *);
} lib;

static void die(const char *what)
{
	fprintf(stderr, "library: %s\n", what);
	exit(1);
}

static void *allocated(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		die("out of memory");
	return p;
}

static void load(const char *path)
{
	const struct {
		const char *name;
		void *at;
	} calls[] = {
		{"kpack_open", &lib.open},
		{"kpack_close", &lib.close},
		{"kpack_get_binary_count", &lib.get_binary_count},
		{"kpack_get_binary", &lib.get_binary},
		{"kpack_get_architecture_count", &lib.get_architecture_count},
		{"kpack_get_architecture", &lib.get_architecture},
		{"kpack_get_kernel", &lib.get_kernel},
		{"kpack_free_kernel", &lib.free_kernel},
		{"kpackx_find_entry", &lib.find_entry},
	};
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!so)
		die(dlerror());
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(so, calls[i].name);

		if (!call && calls[i].at != &lib.find_entry)
			die(dlerror());
		memcpy(calls[i].at, &call, sizeof(call));
	}
}

static kpack_archive_t opened(const char *path)
{
	kpack_archive_t archive;

	if (lib.open(path, &archive) != KPACK_SUCCESS)
		die("cannot open the archive");
	return archive;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(*values), cmp_double);
	return values[ROUNDS / 2];
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* ---- frames, without any library: header, count, then each length and frame ---- */

struct frame {
	uint64_t offset;
	uint32_t stored;
	size_t size;
};

struct job {
	char key[512], arch[128];
	struct frame frame;
};

static struct job *jobs;
static size_t n_jobs;
static int archive_fd;

static void read_at(uint64_t offset, void *buf, size_t size)
{
	if (pread(archive_fd, buf, size, (off_t)offset) != (ssize_t)size)
		die("cannot read the archive");
}

static struct frame *all_frames(const char *path, uint32_t *n)
{
	struct frame *frames;
	uint64_t at = 64 + 4;

	archive_fd = open(path, O_RDONLY | O_CLOEXEC);
	read_at(64, n, 4);
	frames = allocated(*n * sizeof(*frames));
	for (uint32_t i = 0; i < *n; i++) {
		uint8_t head[18];

		read_at(at, &frames[i].stored, 4);
		frames[i].offset = at + 4;
		read_at(at + 4, head, sizeof(head));
		frames[i].size = ZSTD_getFrameContentSize(head, sizeof(head));
		at += 4 + frames[i].stored;
	}
	return frames;
}

static void read_jobs(const char *path)
{
	uint32_t n, ordinal;
	struct frame *frames = all_frames(path, &n);
	struct job j;

	while (scanf("%511s %127s %u", j.key, j.arch, &ordinal) == 3) {
		if (ordinal >= n)
			die("no such frame");
		j.frame = frames[ordinal];
		jobs = realloc(jobs, (n_jobs + 1) * sizeof(*jobs));
		if (!jobs)
			die("out of memory");
		jobs[n_jobs++] = j;
	}
	free(frames);
}

/* ---- two ways to an object in new memory ---- */

static kpack_archive_t archive;

static void *by_library(const struct job *j)
{
	void *data;
	size_t size;

	if (lib.get_kernel(archive, j->key, j->arch, &data, &size) != KPACK_SUCCESS ||
	    size != j->frame.size)
		die("an object cannot be got");
	return data;
}

/* As every reader does that does not hold the whole file. */
static void *by_zstd(const struct job *j)
{
	void *in = allocated(j->frame.stored), *out = allocated(j->frame.size);

	read_at(j->frame.offset, in, j->frame.stored);
	if (ZSTD_decompress(out, j->frame.size, in, j->frame.stored) != j->frame.size)
		die("a frame does not decode");
	free(in);
	return out;
}

typedef void *(*way)(const struct job *);

static const way ways[] = {by_library, by_zstd};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void drop(way w, void *data)
{
	if (w == by_library)
		lib.free_kernel(data);
	else
		free(data);
}

/* ---- what is measured ---- */

static void measure_open(const char *path)
{
	double us[ROUNDS];
	kpack_archive_t a;
	size_t heap;

	lib.close(opened(path)); /* what the first call of a library costs is not asked */
	heap = heap_bytes();
	a = opened(path);
	heap = heap_bytes() - heap;
	lib.close(a);
	for (int i = 0; i < ROUNDS; i++) {
		double start = now();

		a = opened(path);
		us[i] = (now() - start) * 1e6;
		lib.close(a);
	}
	printf("%.1f %zu\n", median(us), heap);
}

static void measure_get(const char *path)
{
	double us[WAYS][ROUNDS];

	read_jobs(path);
	archive = opened(path);
	for (int i = -1; i < ROUNDS; i++) /* the first round does not count */
		for (int w = 0; w < WAYS; w++) {
			double start = now();
			void *data = ways[w](&jobs[0]);

			us[w][i < 0 ? 0 : i] = (now() - start) * 1e6;
			drop(ways[w], data);
		}
	printf("%.1f %.1f\n", median(us[0]), median(us[1]));
	lib.close(archive);
}

static atomic_size_t next_job;

static void *work(void *arg)
{
	way w = *(const way *)arg;

	for (;;) {
		size_t i = atomic_fetch_add(&next_job, 1);

		if (i >= n_jobs * REPEATS)
			return NULL;
		drop(w, w(&jobs[i % n_jobs]));
	}
}

static double all_on(long threads, const way *w)
{
	pthread_t ids[THREADS_MAX];
	double start = now();

	atomic_store(&next_job, 0);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)w) != 0)
			die("cannot start a thread");
	for (long i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return (now() - start) / REPEATS;
}

/* Seconds: each way on all threads, then bare zstd on one; then the bytes. */
static void measure_threads(const char *path, long threads)
{
	size_t bytes = 0;

	if (threads < 1 || threads > THREADS_MAX)
		die("threads: 1 to 64");
	read_jobs(path);
	archive = opened(path);
	for (size_t i = 0; i < n_jobs; i++)
		bytes += jobs[i].frame.size;
	all_on(threads, &ways[0]);
	for (int w = 0; w < WAYS; w++)
		printf("%.5f ", all_on(threads, &ways[w]));
	printf("%.5f %zu\n", all_on(1, &ways[1]), bytes);
	lib.close(archive);
}

/* ---- finding ---- */

enum { LOOKUPS = 200000, WARM = 256 };

static uint64_t random_state = 88172645463325252;

static size_t below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state % n);
}

struct wanted {
	char *key;
	const char *arch;
};

static char *copy(const char *text)
{
	char *out = strdup(text);

	if (!out)
		die("out of memory");
	return out;
}

/* Random pairs; in memory of their own, or asking would bring the archive's into the
 * processor's cache. */
static struct wanted *choose(void)
{
	struct wanted *w = allocated(LOOKUPS * sizeof(*w));
	size_t binaries, archs;
	const char *text;

	lib.get_binary_count(archive, &binaries);
	lib.get_architecture_count(archive, &archs);
	for (size_t i = 0; i < LOOKUPS; i++) {
		if (lib.get_binary(archive, below(binaries), &text))
			die("no such binary");
		w[i].key = copy(text);
		if (lib.get_architecture(archive, below(archs), &text))
			die("no such architecture");
		w[i].arch = copy(text);
	}
	return w;
}

static void find(const struct wanted *w)
{
	size_t entry;

	if (lib.find_entry(archive, w->key, w->arch, &entry) != KPACK_SUCCESS)
		die("an entry is not found");
}

/* What either library can be asked: the key is there, not for this architecture. */
static void miss(const struct wanted *w)
{
	void *data;
	size_t size;

	if (lib.get_kernel(archive, w->key, "none", &data, &size) !=
	    KPACK_ERROR_KERNEL_NOT_FOUND)
		die("an entry is found");
}

/* µs for one of LOOKUPS questions about the first OF. */
static double ask(void (*question)(const struct wanted *), const struct wanted *w,
		  size_t of)
{
	double start = now();

	for (size_t i = 0; i < LOOKUPS; i++)
		question(&w[i % of]);
	return (now() - start) * 1e6 / LOOKUPS;
}

/* Write more than any processor's cache holds. */
static void cool(void)
{
	size_t size = (size_t)256 << 20;
	char *p = allocated(size);

	for (int i = 1; i < 3; i++)
		memset(p, i, size);
	free(p);
}

/* 0 for a question the library has no call for. */
static void measure_find(const char *path)
{
	double start = now(), ms, cold = 0, warm = 0, missing;
	struct wanted *w;

	archive = opened(path);
	ms = (now() - start) * 1e3;
	w = choose();
	cool();
	if (lib.find_entry) {
		cold = ask(find, w, LOOKUPS); /* each for the first and only time */
		ask(find, w, WARM);
		warm = ask(find, w, WARM);
	}
	cool();
	missing = ask(miss, w, LOOKUPS);
	printf("%.2f %.4f %.4f %.4f\n", ms, cold, warm, missing);
	lib.close(archive);
}

int main(int argc, char **argv)
{
	const char *what = argc >= 4 ? argv[2] : "";

	if (argc >= 4)
		load(argv[1]);
	if (argc == 4 && strcmp(what, "open") == 0)
		measure_open(argv[3]);
	else if (argc == 4 && strcmp(what, "get") == 0)
		measure_get(argv[3]);
	else if (argc == 5 && strcmp(what, "threads") == 0)
		measure_threads(argv[3], strtol(argv[4], NULL, 10));
	else if (argc == 4 && strcmp(what, "find") == 0)
		measure_find(argv[3]);
	else
		return fputs("usage: library LIBRARY open|get|threads|find ARCHIVE [N]\n",
			     stderr),
		       2;
	return 0;
}
