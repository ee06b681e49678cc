/* SPDX-License-Identifier: MIT */
/*
 * Two signs of pressure: the kernel reports that tasks had to wait for memory (PSI), of
 * the system or of this process's cgroup; or the cgroup, or one above it, is nearly full.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "fs/base/log.h"
#include "memory_pressure.h"
#include "core/base/mountinfo.h"
#include "core/base/path.h"
#include "fs/base/clock.h"

/* --- cgroups --------------------------------------------------------------------------
 *
 * The limits and the usage of the memory cgroup of this process and of the cgroups above it,
 * version 1 or 2.  Files are opened once and read at each call, so that it works in a sandbox
 * where nothing may be opened any more.
 */

#define CGROUP_LEVELS 16
#define CGROUP_NO_LIMIT UINT64_MAX

/* The files of a level, in this order; -1: the kernel has none. */
enum { HARD_LIMIT, HIGH_LIMIT, USAGE, STATISTICS, LEVEL_FILES };

struct cgroup {
	int levels[CGROUP_LEVELS][LEVEL_FILES]; /* the process's own first */
	unsigned count;       /* 0: no cgroup, or its files cannot be read */
	const char *inactive; /* the name in stat of the page cache that is not in use */
	int stalls;           /* fires at stalls of the process's own cgroup; or -1 */
};

/* If both versions are mounted, version 1 manages memory if it has that controller. */
static const struct version {
	const char *type, *option; /* in mountinfo; option NULL: any */
	const char *inactive;
	const char *files[LEVEL_FILES];
} versions[] = {
	{"cgroup",
	 "memory",
	 "total_inactive_file",
	 {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "memory.stat"}},
	{"cgroup2",
	 NULL,
	 "inactive_file",
	 {"memory.max", "memory.high", "memory.current", "memory.stat"}},
};

/* True if WORD is in LIST, which is separated by commas. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; *list; list += strspn(list, ",")) {
		if (strcspn(list, ",\n") == n && strncmp(list, word, n) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/*
 * Open a descriptor that becomes ready when tasks waited for memory for 150 ms in 2 s, or -1.
 * A process without privileges may only ask for windows of multiples of 2 s.
 */
static int open_trigger(int directory, const char *path)
{
	static const char trigger[] = "some 150000 2000000";
	int fd = openat(directory, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, trigger, sizeof(trigger)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void close_files(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Open the files of this process's cgroup and of those above it.  ROOT is put before all
 * paths; "" except in tests.
 */
static void cgroup_open(struct cgroup *c, const char *root)
{
	*c = (struct cgroup){.stalls = -1};
	for (int i = 0; i < 2 && c->count == 0; i++) {
		const struct version *v = &versions[i];
		char path[PATH_MAX], line[PATH_MAX + 64];
		char *controllers, *own = NULL, *slash;
		struct kp_mounts mounts = {0};
		bool found = false;
		struct kp_mount m;
		size_t least = 0;
		FILE *f;

		/* its own path, from the line "N:memory:PATH" or "0::PATH" */
		snprintf(path, PATH_MAX, "%s/proc/self/cgroup", root);
		f = fopen(path, "re");
		while (f && !own && fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = '\0';
			controllers = strchr(line, ':');
			own = controllers ? strchr(++controllers, ':') : NULL;
			if (!own)
				continue;
			*own++ = '\0';
			if (v->option ? !has_word(controllers, v->option) : *controllers)
				own = NULL;
		}
		if (f)
			fclose(f);

		/* its directory, below that of the tree, which has LEAST bytes */
		snprintf(path, PATH_MAX, "%s/proc/self/mountinfo", root);
		mounts.file = own ? fopen(path, "re") : NULL;
		while (!found && kp_mounts_next(&mounts, &m)) {
			const char *below = own;

			if (strcmp(m.type, v->type) != 0 ||
			    (v->option && !has_word(m.options, v->option)))
				continue;
			/* elsewhere: as in a container's own view */
			if (strcmp(m.root, "/") != 0)
				below = kp_path_within(kp_span_str(own), m.root)
						? own + strlen(m.root)
						: "";
			if (strcmp(below, "/") == 0)
				below = "";
			least = strlen(root) + strlen(m.path);
			found = snprintf(path, PATH_MAX, "%s%s%s", root, m.path, below) <
				PATH_MAX;
		}
		kp_mounts_close(&mounts);
		if (!found)
			continue;

		/* from there upwards */
		c->inactive = v->inactive;
		do {
			int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			int *level = c->levels[c->count];

			for (int k = 0; k < LEVEL_FILES; k++)
				level[k] = directory < 0 || !v->files[k]
						   ? -1
						   : openat(directory, v->files[k],
							    O_RDONLY | O_CLOEXEC);
			/* the root cgroup has no limits */
			if (level[HARD_LIMIT] >= 0 && level[USAGE] >= 0)
				c->count++;
			else
				close_files(level, LEVEL_FILES);
			if (c->stalls < 0 && directory >= 0)
				c->stalls = open_trigger(directory, "memory.pressure");
			close_files(&directory, 1);
			slash = strrchr(path, '/');
			if (slash)
				*slash = '\0';
		} while (c->count < CGROUP_LEVELS && slash &&
			 (size_t)(slash - path) >= least);
	}
}

/*
 * The number in a file.  CGROUP_NO_LIMIT: the file is absent or has no number, as "max",
 * or has the huge number by which version 1 means no limit.
 */
static uint64_t read_number(int fd)
{
	char text[32];
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	uint64_t value;
	char *end;

	if (n <= 0)
		return CGROUP_NO_LIMIT;
	text[n] = '\0';
	value = strtoull(text, &end, 10);
	return end == text || value > UINT64_MAX / 4 ? CGROUP_NO_LIMIT : value;
}

static uint64_t level_limit(const int level[LEVEL_FILES])
{
	uint64_t hard = read_number(level[HARD_LIMIT]);
	uint64_t high = read_number(level[HIGH_LIMIT]);

	return high < hard ? high : hard;
}

/* The smallest limit of all levels, in bytes, or CGROUP_NO_LIMIT. */
static uint64_t cgroup_limit(const struct cgroup *c)
{
	uint64_t least = CGROUP_NO_LIMIT;

	for (unsigned i = 0; i < c->count; i++) {
		uint64_t limit = level_limit(c->levels[i]);

		if (limit < least)
			least = limit;
	}
	return least;
}

/* Bytes of page cache that is not in use. */
static uint64_t inactive_bytes(const struct cgroup *c, const int level[LEVEL_FILES])
{
	char text[8192], *line = text;
	ssize_t n = level[STATISTICS] < 0
			    ? 0
			    : pread(level[STATISTICS], text, sizeof(text) - 1, 0);
	size_t length = strlen(c->inactive);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (strncmp(line, c->inactive, length) || line[length] != ' ') {
		line = strchr(line, '\n');
		if (!line++)
			return 0;
	}
	return strtoull(line + length, NULL, 10);
}

/*
 * True if the usage of a level is above PERCENT of its limit.  Page cache that is not in
 * use does not count: the kernel drops it before it refuses memory.  The statistics are read
 * last, and only if needed, because they cost the kernel some work.
 */
static bool cgroup_is_full(const struct cgroup *c, unsigned percent)
{
	for (unsigned i = 0; i < c->count; i++) {
		uint64_t limit = level_limit(c->levels[i]);
		uint64_t usage = read_number(c->levels[i][USAGE]);
		uint64_t most = limit / 100 * percent;

		if (limit != CGROUP_NO_LIMIT && usage != CGROUP_NO_LIMIT &&
		    usage > most && usage - most > inactive_bytes(c, c->levels[i]))
			return true;
	}
	return false;
}

/* --- pressure ------------------------------------------------------------------------- */

/* Above this share of a cgroup's limit the cache shrinks before the kernel reclaims. */
#define FULL_PERCENT 85

/* Each sign of pressure halves the budget, down to this percentage. */
#define LEAST_PERCENT 12

/*
 * Seconds between two steps down, as long as the trigger's window; seconds without a sign
 * of pressure until the whole budget is used again.
 */
#define STEP 2
#define CALM 30

/* The bytes of a limit that are reserved for the index, threads and the like. */
#define OTHERS (32 << 20)
#define BUDGET_MIN (4 << 20)

enum { STOP, SYSTEM_STALLS, CGROUP_STALLS, FDS };

struct pressure {
	struct cgroup cgroup;
	struct pollfd fds[FDS]; /* -1: the system does not report it */
	unsigned percent;
	int64_t sign, step; /* time of the last sign of pressure; of the last step down */
	pressure_shrink *shrink;
	void *user;
	pthread_t thread;
	bool started;
};

struct pressure *pressure_open(const char *root)
{
	struct pressure *p = calloc(1, sizeof(*p));
	char path[PATH_MAX];

	if (!p) {
		log_about(LOG_ERR, "memory pressure", strerror(errno));
		return NULL;
	}
	cgroup_open(&p->cgroup, root);
	snprintf(path, sizeof(path), "%s/proc/pressure/memory", root);
	p->fds[STOP] = (struct pollfd){-1, POLLIN, 0};
	p->fds[SYSTEM_STALLS] = (struct pollfd){open_trigger(AT_FDCWD, path), POLLPRI, 0};
	p->fds[CGROUP_STALLS] = (struct pollfd){p->cgroup.stalls, POLLPRI, 0};
	p->percent = 100;
	return p;
}

void pressure_free(struct pressure *p)
{
	const uint64_t one = 1;

	if (!p)
		return;
	if (p->started && write(p->fds[STOP].fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(p->thread, NULL);
	for (int i = 0; i < FDS; i++)
		close_files(&p->fds[i].fd, 1);
	close_files(p->cgroup.levels[0], (int)p->cgroup.count * LEVEL_FILES);
	free(p);
}

uint64_t pressure_budget(const struct pressure *p, uint64_t wanted)
{
	uint64_t limit = cgroup_limit(&p->cgroup), fits;

	if (limit == CGROUP_NO_LIMIT)
		return wanted;
	fits = limit / 2 > OTHERS + BUDGET_MIN ? limit / 2 - OTHERS : BUDGET_MIN;
	return wanted < fits ? wanted : fits;
}

unsigned pressure_percent(struct pressure *p, int64_t now, bool stalled)
{
	if (stalled || cgroup_is_full(&p->cgroup, FULL_PERCENT)) {
		p->sign = now;
		if (p->percent > LEAST_PERCENT &&
		    (p->percent == 100 || now - p->step >= STEP)) {
			p->percent /= 2;
			p->step = now;
		}
	} else if (now - p->sign >= CALM) {
		p->percent = 100;
	}
	return p->percent;
}

static void *watch_pressure(void *pressure)
{
	struct pressure *p = pressure;
	unsigned had = p->percent;

	for (;;) {
		bool stalled = false;
		int timeout = p->cgroup.count ? 10000 : -1;

		/* a limit is checked each second; without one, the thread wakes at times,
		 * because a limit may be set later */
		if (cgroup_limit(&p->cgroup) != CGROUP_NO_LIMIT)
			timeout = 1000;
		else if (p->percent < 100)
			timeout = STEP * 1000;
		if (poll(p->fds, FDS, timeout) < 0) {
			if (errno == EINTR)
				continue;
			return NULL;
		}
		if (p->fds[STOP].revents)
			return NULL;
		for (int i = SYSTEM_STALLS; i < FDS; i++) {
			if (p->fds[i].revents & (POLLERR | POLLNVAL)) {
				/* its cgroup has gone: it fires no more */
				close(p->fds[i].fd);
				p->fds[i].fd = -1;
			} else if (p->fds[i].revents & POLLPRI) {
				stalled = true;
			}
		}
		if (pressure_percent(p, clock_seconds(), stalled) == had)
			continue;
		log_print(LOG_INFO, "memory is %s: %u %% of the cache's budget",
			  p->percent < had ? "short" : "available again", p->percent);
		had = p->percent;
		p->shrink(p->user, had);
	}
}

bool pressure_start(struct pressure *p, pressure_shrink *shrink, void *user)
{
	int error;

	p->shrink = shrink;
	p->user = user;
	p->fds[STOP].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = p->fds[STOP].fd < 0 ? errno
				    : pthread_create(&p->thread, NULL, watch_pressure, p);
	p->started = !error;
	if (error)
		log_about(LOG_ERR, "memory pressure", strerror(error));
	return !error;
}
