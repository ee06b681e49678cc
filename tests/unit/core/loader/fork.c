/* SPDX-License-Identifier: MIT */
/* Children of fork() keep using caches that other threads of the parent were using. */
#include "tests/unit/loading.h"
#include "core/loader/archive_cache.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/*
 * AddressSanitizer's allocator stays locked in a child if another thread was allocating,
 * so a child cannot allocate while the parent's threads run.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
enum { CHILDREN = 0 };
#else
enum { CHILDREN = 100 };
#endif

/* A process that hangs is killed, and the test sees its status. */
enum { SECONDS = 300 };

/* ---- a thread that is stopped while it reads an archive ---- */

static _Thread_local bool held;
static sem_t reached, go;

/* Replaces the C library's function in this program. */
ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	if (held) {
		held = false;
		sem_post(&reached);
		while (sem_wait(&go) && errno == EINTR)
			;
	}
	return syscall(SYS_pread64, fd, buf, size, offset);
}

struct user {
	struct kp_cache *cache;
	bool hold;
	atomic_int tid;
	bool good;
};

static const char *archive_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/a.kpack", dir);
	return path;
}

static bool get_and_put(struct kp_cache *cache)
{
	struct kp_cached *e;

	if (kp_cache_get(cache, archive_path(), &e, NULL))
		return false;
	kp_cache_put(cache, e);
	return true;
}

static void *use(void *arg)
{
	struct user *u = arg;

	held = u->hold;
	u->tid = (int)syscall(SYS_gettid);
	u->good = get_and_put(u->cache);
	return NULL;
}

static char state_of(int tid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

/* One thread is stopped while it opens the archive; another thread waits for it. */
static void start(pthread_t threads[2], struct user users[2])
{
	users[0].hold = true;
	assert_int_equal(pthread_create(&threads[0], NULL, use, &users[0]), 0);
	while (sem_wait(&reached) && errno == EINTR)
		;
	assert_int_equal(pthread_create(&threads[1], NULL, use, &users[1]), 0);
	while (!users[1].tid || state_of(users[1].tid) != 'S')
		sched_yield();
}

static void finish(pthread_t threads[2], struct user users[2])
{
	sem_post(&go);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_true(users[i].good);
	}
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
 * The child must not wait for the opening thread, nor for the thread that waits for it.
 */
static void nobody_waits_for_threads_that_are_not_there(void **state)
{
	struct user users[2] = {0};
	struct kp_cache cache;
	pthread_t threads[2];
	pid_t child;
	int status;

	(void)state;
	assert_int_equal(kp_cache_init(&cache, NULL), KPACK_SUCCESS);
	users[0].cache = users[1].cache = &cache;
	start(threads, users);
	child = fork();
	if (child == 0) {
		bool good;

		alarm(SECONDS);
		good = get_and_put(&cache) && get_and_put(&cache);
		kp_cache_fini(&cache);
		_exit(!good);
	}
	status = wait_for(child);
	finish(threads, users);
	kp_cache_fini(&cache);
	check_status(status);
}

static bool loads(kpack_cache_t cache)
{
	static const struct request r = {"lib/x.so", 0, "gfx900", "a.kpack", "CODE", 0};
	void *data = NULL;
	size_t size = 0;
	bool good = ask(cache, &r, &data, &size, NULL) == KPACK_SUCCESS && size == 4 &&
		    memcmp(data, "CODE", 4) == 0;

	kpack_free_code_object(data);
	return good;
}

/* A grandchild counts as a child too; children can use their parents' caches. */
static void children_fork_too(void **state)
{
	kpack_cache_t cache = new_cache(), other = new_cache();
	pid_t child;

	(void)state;
	assert_true(loads(cache));
	child = fork();
	if (child == 0) {
		pid_t grandchild;

		alarm(SECONDS);
		kpack_cache_destroy(other);
		other = new_cache();
		grandchild = fork();
		if (grandchild == 0)
			_exit(!loads(cache) || !loads(other));
		_exit(wait_for(grandchild) != 0);
	}
	check_status(wait_for(child));
	assert_true(loads(other));
	kpack_cache_destroy(other);
	kpack_cache_destroy(cache);
}

/* ---- many threads and children ---- */

struct crowd {
	kpack_cache_t cache;
	atomic_bool done;
	atomic_int bad;
};

/* Load until the test ends, through the shared cache and through short-lived ones. */
static void *load_all_the_time(void *arg)
{
	struct crowd *c = arg;

	while (!c->done) {
		kpack_cache_t own = NULL;

		c->bad += kpack_cache_create(&own) != KPACK_SUCCESS;
		c->bad += !loads(c->cache) + !loads(own);
		kpack_cache_destroy(own);
	}
	return NULL;
}

/* Returns the status of a child that loads through C's cache. */
static int load_in_child(struct crowd *c)
{
	pid_t child = fork();
	bool good;

	if (child != 0)
		return wait_for(child);
	alarm(SECONDS);
	good = loads(c->cache);
	kpack_cache_destroy(c->cache);
	_exit(!good);
}

static void threads_load_while_children_are_made(void **state)
{
	struct crowd c = {.cache = new_cache()};
	pthread_t threads[4];
	int status = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, load_all_the_time, &c),
				 0);
	for (int i = 0; i < CHILDREN && status == 0; i++) {
		/* a new file each time, so that a thread is opening it during fork() */
		write_archive("a.kpack", "'gfx900'",
			      OBJECTS({"lib/x.so#0", "gfx900", "CODE"}));
		status = load_in_child(&c);
	}
	c.done = true;
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	kpack_cache_destroy(c.cache);
	check_status(status);
	assert_int_equal(c.bad, 0);
}

static int make_archive(void **state)
{
	make_dir(state);
	write_archive("a.kpack", "'gfx900'", OBJECTS({"lib/x.so#0", "gfx900", "CODE"}));
	return sem_init(&reached, 0, 0) || sem_init(&go, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits_for_threads_that_are_not_there),
		cmocka_unit_test(children_fork_too),
		cmocka_unit_test(threads_load_while_children_are_made),
	};

	return cmocka_run_group_tests(tests, make_archive, remove_dir);
}
