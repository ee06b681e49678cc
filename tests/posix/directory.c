/* SPDX-License-Identifier: MIT */
/*
 * Reads directories in the ways careful programs do; any wrong answer ends the program.
 *
 *   directory positions DIR BYTES   seeks to positions of a listing that is read
 *                                   through a buffer of BYTES; the end stays the end
 *   directory streams DIR           checks telldir, seekdir and rewinddir likewise
 *   directory kinds DIR             compares d_type and d_ino with lstat, recursively
 *   directory together DIR SECONDS  lists in threads that share one descriptor, and
 *                                   at the same time in threads with their own
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* d_off of a record is the position after that record. */
struct record {
	uint64_t ino;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

struct seen {
	int64_t at;
	char *name;
};

struct listing {
	struct seen *list;
	size_t count;
	int64_t end;
};

static void require(bool holds, const char *what, const char *which)
{
	if (holds)
		return;
	fprintf(stderr, "directory: %s: %s (%s)\n", which, what, strerror(errno));
	exit(1);
}

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	require(fd >= 0, "cannot be opened", path);
	return fd;
}

static long read_records(int fd, void *buf, size_t size)
{
	return syscall(SYS_getdents64, fd, buf, size);
}

/* ---- positions ---- */

static void keep(struct listing *l, const char *name, int64_t next)
{
	if ((l->count & (l->count - 1)) == 0) {
		size_t room = l->count ? 2 * l->count : 1;

		l->list = reallocarray(l->list, room, sizeof(*l->list));
		require(l->list != NULL, "memory", name);
	}
	l->list[l->count++] = (struct seen){l->end, strdup(name)};
	l->end = next;
}

static void read_all(int fd, struct listing *l, char *buf, size_t size)
{
	long n;

	*l = (struct listing){0};
	require(lseek(fd, 0, SEEK_SET) == 0, "lseek", "start");
	while ((n = read_records(fd, buf, size)) > 0) {
		for (long at = 0; at < n;) {
			const struct record *r = (struct record *)(buf + at);

			keep(l, r->name, r->next);
			at += r->size;
		}
	}
	require(n == 0, "getdents", "end");
}

static void free_listing(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->list[i].name);
	free(l->list);
}

static int compare_positions(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static void check_distinct(const struct listing *l)
{
	struct seen *sorted = calloc(l->count, sizeof(*sorted));

	require(sorted != NULL, "memory", "positions");
	memcpy(sorted, l->list, l->count * sizeof(*sorted));
	qsort(sorted, l->count, sizeof(*sorted), compare_positions);
	for (size_t i = 1; i < l->count; i++)
		require(sorted[i - 1].at != sorted[i].at, "the position of two",
			sorted[i].name);
	free(sorted);
}

static void check_return(int fd, const struct listing *l, size_t i, char *buf,
			 size_t size)
{
	const struct seen *s = &l->list[i];
	long n;

	require(lseek(fd, s->at, SEEK_SET) == s->at, "lseek", s->name);
	n = read_records(fd, buf, size);
	require(n > 0, "nothing at its position", s->name);
	for (long at = 0; at < n; i++) {
		const struct record *r = (struct record *)(buf + at);

		require(i < l->count && strcmp(r->name, l->list[i].name) == 0,
			"another name", s->name);
		at += r->size;
	}
}

static void check_end(int fd, const struct listing *l, char *buf, size_t size)
{
	for (int i = 0; i < 3; i++) {
		require(lseek(fd, l->end, SEEK_SET) == l->end, "lseek", "end");
		require(read_records(fd, buf, size) == 0, "more", "end");
		require(read_records(fd, buf, size) == 0, "more", "end, again");
	}
}

static void check_small(int fd, char *buf)
{
	lseek(fd, 0, SEEK_SET);
	require(read_records(fd, buf, 8) == -1 && errno == EINVAL,
		"no EINVAL for a buffer that holds no name", "8 bytes");
	require(lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL,
		"no EINVAL for a position before the first", "lseek");
}

static void positions(const char *path, size_t size)
{
	char *buf = malloc(size < 4096 ? 4096 : size);
	int fd = open_dir(path);
	struct listing l, again;
	size_t step;

	require(buf != NULL, "memory", path);
	check_small(fd, buf);
	read_all(fd, &l, buf, size);
	check_distinct(&l);
	step = l.count / 100 + 1;
	for (size_t i = 0; i < l.count; i += step)
		check_return(fd, &l, l.count - 1 - i, buf, size);
	for (size_t i = 0; i < 100; i++)
		check_return(fd, &l, i * 7919 % l.count, buf, size);
	check_end(fd, &l, buf, size);
	read_all(fd, &again, buf, 2 * size / 3 > 300 ? 2 * size / 3 : size);
	require(again.count == l.count && again.end == l.end, "another listing", path);
	printf("%zu\n", l.count);
	free_listing(&l);
	free_listing(&again);
	close(fd);
	free(buf);
}

/* ---- streams ---- */

static void check_seek(DIR *d, const struct seen *s)
{
	const struct dirent *e;

	seekdir(d, s->at);
	require(telldir(d) == s->at, "telldir after seekdir", s->name);
	e = readdir(d);
	require(e && strcmp(e->d_name, s->name) == 0, "seekdir", s->name);
}

static void streams(const char *path)
{
	struct listing l = {0};
	DIR *d = opendir(path);
	struct dirent *e;

	require(d != NULL, "opendir", path);
	l.end = telldir(d);
	while ((e = readdir(d)))
		keep(&l, e->d_name, telldir(d));
	check_distinct(&l);
	for (size_t i = 0; i < l.count; i += l.count / 100 + 1)
		check_seek(d, &l.list[l.count - 1 - i]);
	rewinddir(d);
	for (size_t i = 0; (e = readdir(d)); i++)
		require(strcmp(e->d_name, l.list[i].name) == 0, "rewinddir", e->d_name);
	errno = 0;
	require(readdir(d) == NULL && errno == 0, "more", "end");
	free_listing(&l);
	closedir(d);
}

/* ---- kinds ---- */

static void check_kind(int dir, const struct dirent *e, dev_t device)
{
	struct stat st;

	require(fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0, "lstat",
		e->d_name);
	require(e->d_type == IFTODT(st.st_mode), "d_type is not st_mode's", e->d_name);
	require(st.st_dev == device, "is of another device", e->d_name);
	require(e->d_ino == st.st_ino, "d_ino is not st_ino", e->d_name);
}

static size_t kinds(int fd, bool top)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	struct stat st;
	size_t count = 0;

	require(d && fstat(fd, &st) == 0, "fdopendir", "a directory");
	while ((e = readdir(d))) {
		bool up = strcmp(e->d_name, "..") == 0;

		/* ".." of a mount's root belongs to another file system */
		if (top && up)
			continue;
		check_kind(fd, e, st.st_dev);
		count++;
		if (e->d_type == DT_DIR && !up && strcmp(e->d_name, ".") != 0)
			count += kinds(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY),
				       false);
	}
	closedir(d);
	return count;
}

/* ---- together ---- */

enum { THREADS = 6 };

struct together {
	const char *path;
	int fd; /* shared by all threads */
	struct listing names;
	time_t until;
	atomic_ulong rounds;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct seen *)a)->name, ((const struct seen *)b)->name);
}

static void check_known(const struct together *t, const char *buf, long n)
{
	for (long at = 0; at < n;) {
		struct record *r = (struct record *)(buf + at);

		require(r->size >= sizeof(*r) && at + r->size <= n, "a record", t->path);
		require(bsearch(&(struct seen){0, r->name}, t->names.list, t->names.count,
				sizeof(*t->names.list), compare_names) != NULL,
			"a name that is not there", r->name);
		at += r->size;
	}
}

/*
 * Read through the shared descriptor: which thread gets which record is chance, but every
 * record is intact.
 */
static void *share(void *user)
{
	struct together *t = user;
	unsigned seed = (unsigned)pthread_self();
	char buf[4096] __attribute__((aligned(8)));

	while (time(NULL) < t->until) {
		long n = read_records(t->fd, buf, sizeof(buf));
		size_t i = (size_t)rand_r(&seed) % t->names.count;

		require(n >= 0, "getdents", t->path);
		check_known(t, buf, n);
		if (n == 0 || i % 8 == 0)
			lseek(t->fd, t->names.list[i].at, SEEK_SET);
		require(read(t->fd, buf, 1) == -1 && errno == EISDIR, "read", t->path);
		atomic_fetch_add(&t->rounds, 1);
	}
	return NULL;
}

/* Read through a descriptor of its own: every listing is complete. */
static void *alone(void *user)
{
	struct together *t = user;
	char buf[4096] __attribute__((aligned(8)));

	/* at least once, however slow the machine is */
	do {
		int fd = open_dir(t->path);
		struct listing l;

		read_all(fd, &l, buf, sizeof(buf));
		qsort(l.list, l.count, sizeof(*l.list), compare_names);
		require(l.count == t->names.count, "not all names", t->path);
		for (size_t i = 0; i < l.count; i++)
			require(strcmp(l.list[i].name, t->names.list[i].name) == 0,
				"another name", l.list[i].name);
		free_listing(&l);
		close(fd);
		atomic_fetch_add(&t->rounds, 1);
	} while (time(NULL) < t->until);
	return NULL;
}

static void together(const char *path, unsigned seconds)
{
	struct together t = {
		.path = path,
		.fd = open_dir(path),
	};
	char buf[4096] __attribute__((aligned(8)));
	pthread_t threads[THREADS];

	read_all(t.fd, &t.names, buf, sizeof(buf));
	qsort(t.names.list, t.names.count, sizeof(*t.names.list), compare_names);
	t.until = time(NULL) + seconds;
	for (int i = 0; i < THREADS; i++)
		require(pthread_create(&threads[i], NULL, i % 2 ? alone : share, &t) == 0,
			"pthread_create", path);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	require(atomic_load(&t.rounds) > 0, "no thread came to listing", path);
	free_listing(&t.names);
	close(t.fd);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	unsigned number = argc > 3 ? (unsigned)atoi(argv[3]) : 0;

	if (strcmp(what, "positions") == 0 && number)
		positions(argv[2], number);
	else if (strcmp(what, "streams") == 0)
		streams(argv[2]);
	else if (strcmp(what, "kinds") == 0)
		printf("%zu\n", kinds(open_dir(argv[2]), true));
	else if (strcmp(what, "together") == 0 && number)
		together(argv[2], number);
	else
		return 2;
	return fflush(stdout) ? 1 : 0;
}
