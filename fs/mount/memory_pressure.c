/* SPDX-License-Identifier: MIT */
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
#include "fs/base/clock.h"

/* --- cgroups --------------------------------------------------------------------------
 *
 * The limits and the usage of the memory cgroup of this process and of the cgroups above it,
 * version 1 or 2.  Files are opened once and read at each call, so that it works in a sandbox
 * where nothing may be opened any more.
 */

#define CGROUP_LEVELS 16
#define CGROUP_NO_LIMIT UINT64_MAX

struct cgroup_level {
	int limits[2]; /* the hard limit; memory.high (version 2), else -1 */
	int usage;
	int stat;
};

struct cgroup {
	struct cgroup_level levels[CGROUP_LEVELS]; /* the process's own first */
	unsigned count;       /* 0: no cgroup, or its files cannot be read */
	const char *inactive; /* the name in stat of the page cache that is not in use */
	int directory;        /* of the process's own cgroup, or -1 */
};

struct version {
	const char *type, *option; /* in mountinfo; option NULL: any */
	const char *inactive;
	const char *files[4]; /* two limits, usage, stat */
};

/* If both versions are mounted, version 1 manages memory if it has that controller. */
static const struct version versions[] = {
	{"cgroup",
	 "memory",
	 "total_inactive_file",
	 {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "memory.stat"}},
	{"cgroup2",
	 NULL,
	 "inactive_file",
	 {"memory.max", "memory.high", "memory.current", "memory.stat"}},
};

static FILE *open_text(const char *root, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* True if WORD is in LIST, which is separated by commas. */
static bool list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; *list; list += strspn(list, ",")) {
		if (strcspn(list, ",\n") == n && strncmp(list, word, n) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* The part of PATH below BASE; "" if PATH is elsewhere, as in a container's own view. */
static const char *path_below(const char *path, const char *base)
{
	size_t n = strcmp(base, "/") == 0 ? 0 : strlen(base);

	if (strncmp(path, base, n) || (path[n] && path[n] != '/'))
		return "";
	return strcmp(path + n, "/") == 0 ? "" : path + n;
}

/* Find the path of this process in V's tree, from a line "N:memory:PATH" or "0::PATH". */
static bool find_path(const char *root, const struct version *v, char path[PATH_MAX])
{
	FILE *f = open_text(root, "/proc/self/cgroup");
	char line[PATH_MAX + 64], controllers[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *rest = strchr(line, ':');
		size_t n = rest ? strcspn(rest + 1, ":") : 0;

		if (!rest || n >= sizeof(controllers) || rest[1 + n] != ':')
			continue;
		memcpy(controllers, rest + 1, n);
		controllers[n] = '\0';
		if (v->option ? !list_has(controllers, v->option) : n > 0)
			continue;
		found = sscanf(rest + n + 2, "%4095[^\n]", path) == 1;
	}
	if (f)
		fclose(f);
	return found;
}

/* Find the mount POINT of V, and BASE, the directory of V that is mounted there. */
static bool find_mount(const char *root, const struct version *v, char point[PATH_MAX],
		       char base[PATH_MAX])
{
	struct kp_mounts mounts = {.file = open_text(root, "/proc/self/mountinfo")};
	bool found = false;
	struct kp_mount m;

	while (!found && kp_mounts_next(&mounts, &m)) {
		found = strcmp(m.type, v->type) == 0 &&
			(!v->option || list_has(m.options, v->option)) &&
			strlen(m.path) < PATH_MAX && strlen(m.root) < PATH_MAX;
		if (found) {
			strcpy(point, m.path);
			strcpy(base, m.root);
		}
	}
	kp_mounts_close(&mounts);
	return found;
}

static int open_file(int directory, const char *name)
{
	return name ? openat(directory, name, O_RDONLY | O_CLOEXEC) : -1;
}

static void level_close(struct cgroup_level *l)
{
	const int fds[] = {l->limits[0], l->limits[1], l->usage, l->stat};

	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Add a level.  The root cgroup has no limits, and is left out. */
static void add_level(struct cgroup *c, const struct version *v, int directory)
{
	struct cgroup_level l = {
		.limits = {open_file(directory, v->files[0]),
			   open_file(directory, v->files[1])},
		.usage = open_file(directory, v->files[2]),
		.stat = open_file(directory, v->files[3]),
	};

	if (l.limits[0] >= 0 && l.usage >= 0)
		c->levels[c->count++] = l;
	else
		level_close(&l);
}

/* Add all levels from PATH up to the directory that is its first LEAST bytes. */
static void add_levels(struct cgroup *c, const struct version *v, char *path,
		       size_t least)
{
	while (c->count < CGROUP_LEVELS) {
		int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(path, '/');

		if (directory >= 0)
			add_level(c, v, directory);
		if (directory >= 0 && c->directory < 0)
			c->directory = directory;
		else if (directory >= 0)
			close(directory);
		if (!slash || (size_t)(slash - path) < least)
			return;
		*slash = '\0';
	}
}

/* ROOT is put before all paths; "" except in tests. */
static void cgroup_open(struct cgroup *c, const char *root)
{
	char own[PATH_MAX], point[PATH_MAX], base[PATH_MAX], path[3 * PATH_MAX];

	*c = (struct cgroup){.directory = -1};
	for (int i = 0; i < 2 && c->count == 0; i++) {
		const struct version *v = &versions[i];

		if (!find_path(root, v, own) || !find_mount(root, v, point, base))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", root, point,
			 path_below(own, base));
		c->inactive = v->inactive;
		add_levels(c, v, path, strlen(root) + strlen(point));
	}
}

static void cgroup_close(struct cgroup *c)
{
	for (unsigned i = 0; i < c->count; i++)
		level_close(&c->levels[i]);
	if (c->directory >= 0)
		close(c->directory);
	*c = (struct cgroup){.directory = -1};
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

static uint64_t level_limit(const struct cgroup_level *l)
{
	uint64_t hard = read_number(l->limits[0]), high = read_number(l->limits[1]);

	return high < hard ? high : hard;
}

/* Bytes of page cache that is not in use. */
static uint64_t level_inactive(const struct cgroup_level *l, const char *name)
{
	char text[8192], *line = text;
	ssize_t n = l->stat < 0 ? 0 : pread(l->stat, text, sizeof(text) - 1, 0);
	size_t length = strlen(name);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (strncmp(line, name, length) || line[length] != ' ') {
		line = strchr(line, '\n');
		if (!line++)
			return 0;
	}
	return strtoull(line + length, NULL, 10);
}

/* The smallest limit of all levels, in bytes, or CGROUP_NO_LIMIT. */
static uint64_t cgroup_limit(const struct cgroup *c)
{
	uint64_t least = CGROUP_NO_LIMIT;

	for (unsigned i = 0; i < c->count; i++) {
		uint64_t limit = level_limit(&c->levels[i]);

		if (limit < least)
			least = limit;
	}
	return least;
}

/*
 * The statistics are read last, and only if needed, because they cost the kernel some
 * work.
 */
static bool level_is_full(const struct cgroup_level *l, const char *inactive,
			  unsigned percent)
{
	uint64_t limit = level_limit(l), usage, most;

	if (limit == CGROUP_NO_LIMIT)
		return false;
	most = limit / 100 * percent;
	usage = read_number(l->usage);
	return usage != CGROUP_NO_LIMIT && usage > most &&
	       usage - most > level_inactive(l, inactive);
}

/*
 * True if the usage of a level is above PERCENT of its limit.  Page cache that is not in
 * use does not count: the kernel drops it before it refuses memory.
 */
static bool cgroup_is_full(const struct cgroup *c, unsigned percent)
{
	for (unsigned i = 0; i < c->count; i++)
		if (level_is_full(&c->levels[i], c->inactive, percent))
			return true;
	return false;
}

/* --- pressure ------------------------------------------------------------------------- */

/*
 * Fires when tasks waited for memory for 150 ms in 2 s.  A process without privileges may
 * only ask for windows of multiples of 2 s.
 */
static const char trigger[] = "some 150000 2000000";

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

/* Open a descriptor that becomes ready when there was a stall; or -1. */
static int open_trigger(int directory, const char *path)
{
	int fd = openat(directory, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && write(fd, trigger, sizeof(trigger)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

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
	p->fds[CGROUP_STALLS] = (struct pollfd){-1, POLLPRI, 0};
	if (p->cgroup.directory >= 0)
		p->fds[CGROUP_STALLS].fd =
			open_trigger(p->cgroup.directory, "memory.pressure");
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
		if (p->fds[i].fd >= 0)
			close(p->fds[i].fd);
	cgroup_close(&p->cgroup);
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

/*
 * The milliseconds until the thread wakes next: a limit is checked each second; without
 * one, the thread wakes at times, because a limit may be set later.
 */
static int poll_timeout(const struct pressure *p)
{
	if (cgroup_limit(&p->cgroup) != CGROUP_NO_LIMIT)
		return 1000;
	if (p->percent < 100)
		return STEP * 1000;
	return p->cgroup.count ? 10000 : -1;
}

/*
 * True if there was a stall.  Closes a trigger whose cgroup has gone: it fires no more.
 */
static bool was_stalled(struct pollfd *f)
{
	bool stalled = f->revents & POLLPRI;

	if (f->revents & (POLLERR | POLLNVAL)) {
		close(f->fd);
		f->fd = -1;
		return false;
	}
	return stalled;
}

static void *watch_pressure(void *pressure)
{
	struct pressure *p = pressure;
	unsigned had = p->percent;

	for (;;) {
		bool stalled = false;

		if (poll(p->fds, FDS, poll_timeout(p)) < 0) {
			if (errno == EINTR)
				continue;
			return NULL;
		}
		if (p->fds[STOP].revents)
			return NULL;
		for (int i = SYSTEM_STALLS; i < FDS; i++)
			stalled |= was_stalled(&p->fds[i]);
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
	int error = 0;

	p->shrink = shrink;
	p->user = user;
	p->fds[STOP].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->fds[STOP].fd < 0)
		error = errno;
	if (!error)
		error = pthread_create(&p->thread, NULL, watch_pressure, p);
	p->started = !error;
	if (error)
		log_about(LOG_ERR, "memory pressure", strerror(error));
	return !error;
}
