/* SPDX-License-Identifier: MIT */
/*
 * threads FILE...: use converted libraries from eight threads, for a thread sanitizer to look at.
 *
 * First each thread loads and unloads one FILE after another; their constructors register, and
 * their destructors unregister.  Then the threads call "int again(void)" of the first, which
 * registers, unregisters and returns 1 for a handle, while the program forks children that do
 * so, too.  Prints "right", or ends with status 1.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 8, CHILDREN = 20, CHILD_SECONDS = 300 };

static char **files;
static int n_files;
static int (*again)(void);
static atomic_bool stop;
static pthread_barrier_t barrier;

static void die(const char *what, const char *text)
{
	fprintf(stderr, "threads: %s: %s\n", what, text);
	exit(1);
}

static void *open_file(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		die(path, dlerror());
	return handle;
}

static void *load_files(void *arg)
{
	int first = *(const int *)arg;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUNDS; i++)
		dlclose(open_file(files[(first + i) % n_files]));
	return NULL;
}

static void register_again(void)
{
	if (again() != 1)
		die(files[0], "no handle");
}

static void *keep_registering(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	while (!stop)
		register_again();
	return NULL;
}

static void fork_child(void)
{
	pid_t child = fork();
	int status = -1;

	if (child < 0)
		die("fork", "failed");
	if (child == 0) {
		alarm(CHILD_SECONDS);
		register_again();
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "threads: a child: status %#x\n", (unsigned)status);
		exit(1);
	}
}

static void start(pthread_t threads[THREADS], void *(*f)(void *))
{
	static int numbers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, f, &numbers[i]))
			die("pthread_create", "failed");
	}
	pthread_barrier_wait(&barrier);
}

static void join(const pthread_t threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	void *first;

	files = argv + 1;
	n_files = argc - 1;
	if (n_files < 1)
		die("usage", "threads FILE...");
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	start(threads, load_files);
	join(threads);
	first = open_file(files[0]);
	*(void **)&again = dlsym(first, "again");
	if (!again)
		die(files[0], dlerror());
	start(threads, keep_registering);
	for (int i = 0; i < CHILDREN; i++)
		fork_child();
	stop = true;
	join(threads);
	dlclose(first);
	puts("right");
	return 0;
}
