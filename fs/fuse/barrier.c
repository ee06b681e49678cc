/* SPDX-License-Identifier: MIT */
/*
 * Two groups of readers are enough: those for whom the look that is under way began late
 * enough, and those who came since, who share the next one.
 */
#include "barrier.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"

struct reader {
	void *token;
	uint64_t off;
	size_t len;
};

/* Readers that wait for the same look. */
struct group {
	struct reader readers[BARRIER_READERS_MAX];
	size_t count;
};

struct barrier {
	bool (*ask)(void *user);
	void *user;
	content_answer *answer;

	pthread_mutex_t lock; /* guards the groups */
	/* `first` is not empty as long as a look is under way, and waits for it; `then`
	 * came when it may have begun already. */
	struct group first, then;
};

struct barrier *barrier_new(bool (*ask)(void *user), void *user, content_answer *answer)
{
	struct barrier *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->ask = ask;
	b->user = user;
	b->answer = answer;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void barrier_free(struct barrier *b)
{
	if (!b)
		return;
	barrier_over(b);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void fail_reader(const struct barrier *b, void *token, int number,
			const char *reason)
{
	struct kpackx_error why = {0};

	kp_fail(&why, KPACK_ERROR_IO_ERROR, "%s/barrier: %s", KP_CONTROL_NAME, reason);
	why.sys_errno = number;
	b->answer(token, NULL, 0, &why);
}

static void answer_group(const struct barrier *b, const struct group *g, uint64_t edition)
{
	char text[BARRIER_SIZE + 1];

	snprintf(text, sizeof(text), "%*" PRIu64 "\n", BARRIER_SIZE - 1, edition);
	for (size_t i = 0; i < g->count; i++) {
		const struct reader *r = &g->readers[i];

		if (edition)
			b->answer(r->token, text + r->off, r->len, NULL);
		else
			fail_reader(b, r->token, EIO, "the sources cannot be looked at");
	}
}

void barrier_read(struct barrier *b, uint64_t off, size_t len, void *token)
{
	const struct reader reader = {token, off, len};
	bool full, asked = true;
	struct group *g;

	if (len == 0) {
		b->answer(token, "", 0, NULL);
		return;
	}
	pthread_mutex_lock(&b->lock);
	full = b->first.count + b->then.count == BARRIER_READERS_MAX;
	if (!full) {
		g = b->first.count ? &b->then : &b->first;
		/* The answer may come at once, and waits for the lock. */
		asked = g == &b->then || b->ask(b->user);
		if (asked)
			g->readers[g->count++] = reader;
	}
	pthread_mutex_unlock(&b->lock);
	if (full)
		fail_reader(b, token, EBUSY, "too many readers wait");
	else if (!asked)
		fail_reader(b, token, EIO, "nobody looks at the sources any more");
}

void barrier_seen(struct barrier *b, uint64_t edition)
{
	struct group done, failed = {.count = 0};

	pthread_mutex_lock(&b->lock);
	done = b->first;
	b->first = b->then;
	b->then.count = 0;
	if (b->first.count && !b->ask(b->user)) {
		failed = b->first;
		b->first.count = 0;
	}
	pthread_mutex_unlock(&b->lock);
	answer_group(b, &done, edition);
	answer_group(b, &failed, 0);
}

void barrier_over(struct barrier *b)
{
	struct group first, then;

	pthread_mutex_lock(&b->lock);
	first = b->first;
	then = b->then;
	b->first.count = b->then.count = 0;
	pthread_mutex_unlock(&b->lock);
	answer_group(b, &first, 0);
	answer_group(b, &then, 0);
}
