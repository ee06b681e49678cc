/* SPDX-License-Identifier: MIT */
/*
 * Children of fork() keep using archives and caches that other threads of the parent were
 * using, and so does a thread that forks in the middle of it.
 */
#include "tests/unit/hooks.h"
#include "tests/unit/loading.h"
#include "core/loader/archive_cache.h"
#include "core/archive/shared.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include "tests/unit/unit.h"

/* ---- a thread that is stopped, or forks, while it reads an archive ---- */

/* Reads of this thread before the one that it does not come back from at once; -1: all. */
static _Thread_local int reads_before = -1;
static _Thread_local bool forks; /* it forks there, and otherwise stops until GO */
static _Thread_local pid_t forked;
static atomic_bool stopped;
static sem_t reached, go;

/* This thread says so before it waits for another one. */
static _Thread_local bool tells;
static sem_t waits;

static void wait_on(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}

static ssize_t pread_and_stop(int fd, void *buf, size_t size, off_t offset)
{
	if (reads_before >= 0 && reads_before-- == 0) {
		if (forks) {
			forked = fork();
		} else {
			stopped = true;
			sem_post(&reached);
			wait_on(&go);
		}
	}
	return system_pread(fd, buf, size, offset);
}

static void tell(void)
{
	if (tells)
		sem_post(&waits);
}

static struct kp_cache cache;

static bool get_and_put(void)
{
	struct kp_cached *e;

	if (kp_cache_get(&cache, in_dir("a.kpack"), &e, NULL))
		return false;
	kp_cache_put(e);
	return true;
}

static void *use(void *stops)
{
	reads_before = stops ? 0 : -1;
	tells = !stops;
	return get_and_put() ? &cache : NULL;
}

static int wait_for(pid_t child)
{
	int status = -1;

	if (child > 0 && waitpid(child, &status, 0) != child)
		status = -1;
	return status;
}

static void check_status(int status)
{
	assert_int_not_equal(status, -1);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * The child must not wait for the thread that is stopped while it opens the archive, nor for the one
 * that waits for it: it has the lock when it tells so, and fork() waits for the lock.
 */
TEST(nobody_waits_for_threads_that_are_not_there)
{
	pthread_t threads[2];
	pid_t child;
	int status;

	assert_int_equal(kp_cache_init(&cache, NULL), KPACK_SUCCESS);
	assert_int_equal(pthread_create(&threads[0], NULL, use, &cache), 0);
	wait_on(&reached);
	assert_int_equal(pthread_create(&threads[1], NULL, use, NULL), 0);
	wait_on(&waits);
	child = fork();
	if (child == 0) {
		bool good = get_and_put() && get_and_put();

		kp_cache_fini(&cache);
		_exit(!good);
	}
	status = wait_for(child);
	sem_post(&go);
	for (int i = 0; i < 2; i++) {
		void *good;

		pthread_join(threads[i], &good);
		assert_non_null(good);
	}
	kp_cache_fini(&cache);
	check_status(status);
}

/* ---- reading, in archives of every scheme ---- */

/* Enough unique bytes for a dictionary; the second half of all objects is the same. */
enum { OBJECTS_N = 4, OBJECT_SIZE = 2 << 20 };

static uint8_t contents[OBJECTS_N][OBJECT_SIZE];

static const struct scheme {
	const char *name;
	struct kpackx_writer_options options;
	uint32_t chunk;
	bool waits; /* another reader waits for what a thread decodes */
} schemes[] = {
	{"none.kpack", {.uncompressed = true}, 0, false},
	{"zstd.kpack", {.level = 1}, 0, false},
	{"chunked.kpack", {.level = 1}, 512 << 10, false},
	{"shared.kpack", {.level = 1, .shared = 1}, 0, true},
};

static void fill_contents(void)
{
	uint8_t words[256][64];
	uint64_t n = 1;

	for (size_t i = 0; i < sizeof(words); i++)
		words[i / 64][i % 64] =
			(uint8_t)((n = n * UINT64_C(6364136223846793005) + 1) >> 56);
	for (size_t o = 0; o < OBJECTS_N; o++)
		for (size_t i = 0; i < OBJECT_SIZE; i += 64) {
			n = n * UINT64_C(6364136223846793005) + 1;
			memcpy(contents[o] + i,
			       o && i >= OBJECT_SIZE / 2 ? contents[0] + i
							 : words[n >> 56],
			       64);
		}
}

static const char *path_of(const struct scheme *s)
{
	return in_dir(s->name);
}

static void write_objects(const struct scheme *s)
{
	struct kpackx_error why;
	kpackx_writer_t w;

	assert_int_equal(kpackx_writer_open(path_of(s), &s->options, &w, &why), 0);
	for (size_t i = 0; i < OBJECTS_N; i++) {
		struct kpackx_object o = {.binary =
						  (const char *[]){"a", "b", "c", "d"}[i],
					  .arch = "gfx900",
					  .data = contents[i],
					  .size = OBJECT_SIZE,
					  .chunk = s->chunk};

		assert_int_equal(kpackx_writer_add(w, &o, &why), 0);
	}
	assert_int_equal(kpackx_writer_finish(w, &why), 0);
}

static bool reads_object(kpack_archive_t a, size_t i)
{
	size_t got = 0;
	uint8_t *buf = malloc(OBJECT_SIZE);
	bool good = buf && !kpackx_read_entry(a, i, buf, OBJECT_SIZE, NULL) &&
		    memcmp(buf, contents[i], OBJECT_SIZE) == 0 &&
		    !kpackx_read_range(a, i, OBJECT_SIZE / 2 - 5, buf, 10, &got, NULL) &&
		    got == 10 && memcmp(buf, contents[i] + OBJECT_SIZE / 2 - 5, 10) == 0;

	free(buf);
	return good;
}

static bool reads_all(kpack_archive_t a)
{
	bool good = true;

	for (size_t i = 0; i < OBJECTS_N && good; i++)
		good = reads_object(a, i);
	return good;
}

struct reader {
	kpack_archive_t archive;
	int reads_before;
	bool good, joined;
};

static void *read_first(void *arg)
{
	struct reader *r = arg;

	reads_before = r->reads_before;
	tells = r->reads_before < 0;
	r->good = reads_object(r->archive, 0);
	sem_post(&reached);
	return NULL;
}

/* Returns whether a thread of the parent was stopped: at its read number STOP. */
static bool fork_while_another_reads(const struct scheme *s, int stop)
{
	struct reader readers[2] = {{.reads_before = stop}, {.reads_before = -1}};
	pthread_t threads[2];
	kpack_archive_t a;
	pid_t child;
	int status;

	stopped = false;
	assert_int_equal(kpack_open(path_of(s), &a), 0);
	readers[0].archive = readers[1].archive = a;
	assert_int_equal(pthread_create(&threads[0], NULL, read_first, &readers[0]), 0);
	wait_on(&reached); /* it is stopped, or has ended */
	assert_int_equal(pthread_create(&threads[1], NULL, read_first, &readers[1]), 0);
	if (s->waits && stopped)
		wait_on(&waits);
	for (int i = 0; i < 2; i++) {
		readers[i].joined = !stopped || (i && !s->waits);
		if (readers[i].joined)
			pthread_join(threads[i], NULL);
	}
	child = fork();
	if (child == 0) {
		bool good;

		good = reads_all(a);
		kpack_close(a);
		good = good && !kpack_open(path_of(s), &a) && reads_all(a);
		_exit(!good);
	}
	status = wait_for(child);
	sem_post(&go);
	for (int i = 0; i < 2; i++) {
		if (!readers[i].joined)
			pthread_join(threads[i], NULL);
		assert_true(readers[i].good);
	}
	assert_true(reads_all(a));
	kpack_close(a);
	check_status(status);
	assert_int_equal(kp_pool_held(), 0);
	while (sem_trywait(&reached) == 0 || sem_trywait(&go) == 0 ||
	       sem_trywait(&waits) == 0)
		;
	return stopped;
}

/* Returns whether this thread forked: at its read number STOP. */
static bool fork_while_reading(const struct scheme *s, int stop)
{
	kpack_archive_t a;
	bool good;

	assert_int_equal(kpack_open(path_of(s), &a), 0);
	forked = -1;
	forks = true;
	reads_before = stop;
	good = reads_object(a, 0);
	reads_before = -1;
	good = good && reads_all(a);
	kpack_close(a);
	if (forked == 0)
		_exit(!good);
	assert_true(good);
	if (forked > 0)
		check_status(wait_for(forked));
	return forked > 0;
}

TEST(every_scheme_can_be_read_after_a_fork)
{
	fill_contents();
	for (size_t i = 0; i < COUNT(schemes); i++) {
		int reads = 0;

		write_objects(&schemes[i]);
		while (fork_while_another_reads(&schemes[i], reads))
			reads++;
		assert_true(reads >= (schemes[i].waits ? 3 : 1));
		assert_false(fork_while_reading(&schemes[i], reads));
		while (reads-- > 0)
			assert_true(fork_while_reading(&schemes[i], reads));
	}
}

static int make_archive(void **state)
{
	make_dir(state);
	hook_pread = pread_and_stop;
	hook_lock_wait = tell;
	write_archive("a.kpack", "'gfx900'", OBJECTS({"lib/x.so#0", "gfx900", "CODE"}));
	return sem_init(&reached, 0, 0) || sem_init(&go, 0, 0) || sem_init(&waits, 0, 0);
}

SUITE(make_archive, remove_dir);
