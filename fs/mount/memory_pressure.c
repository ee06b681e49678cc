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
#include "cgroup.h"
#include "fs/base/log.h"
#include "memory_pressure.h"

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

static int64_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
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
		if (pressure_percent(p, seconds(), stalled) == had)
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
