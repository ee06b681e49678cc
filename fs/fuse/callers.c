/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fs/base/group_query.h"
#include "fs/base/log.h"
#include "callers.h"

/* Seconds to wait for the supervisor: it answers at once, unless it was stopped. */
#define PATIENCE 5

_Static_assert(GROUP_QUERY_MAX >= CLASSES_MAX, "a query has room for each class");

struct callers {
	uid_t own;            /* the user of this process */
	pthread_mutex_t lock; /* guards everything below */
	int groups;
	uint64_t number; /* of the last question */
	bool warned;
};

struct callers *callers_new(int groups)
{
	const struct timeval patience = {.tv_sec = PATIENCE};
	struct callers *c = calloc(1, sizeof(*c));

	if (!c) {
		log_print(LOG_ERR, "out of memory");
		return NULL;
	}
	c->own = geteuid();
	c->groups = groups;
	setsockopt(groups, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void callers_free(struct callers *c)
{
	if (!c)
		return;
	close(c->groups);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Send Q and receive its answer; answers that came too late are skipped. */
static bool ask_groups(int fd, const struct group_query *q, struct group_answer *answer)
{
	ssize_t n;

	if (send(fd, q, sizeof(*q), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*q))
		return false;
	do {
		n = recv(fd, answer, sizeof(*answer), 0);
	} while ((n < 0 && errno == EINTR) ||
		 (n == sizeof(*answer) && answer->number != q->number));
	return n == sizeof(*answer);
}

/* The set of the groups in Q that its thread has. */
static uint64_t groups_had(struct callers *c, struct group_query *q)
{
	struct group_answer answer = {0};
	bool ok, warn;

	pthread_mutex_lock(&c->lock);
	q->number = ++c->number;
	ok = ask_groups(c->groups, q, &answer);
	warn = !ok && !c->warned;
	c->warned = c->warned || warn;
	pthread_mutex_unlock(&c->lock);
	if (warn)
		log_print(LOG_WARNING, "the supervisor does not answer: archives are "
				       "hidden from users who may read them because of a "
				       "supplementary group");
	return ok ? answer.set : 0;
}

uint64_t callers_read(struct callers *c, const struct fuse_ctx *who,
		      const struct classes *classes)
{
	struct caller caller = {who->uid, who->gid, 0};
	struct group_query q = {.thread = who->pid, .uid = who->uid, .gid = who->gid};
	uint8_t class_of[GROUP_QUERY_MAX];
	uint64_t had;

	if (who->uid == 0 || who->uid == c->own)
		return CLASSES_ALL;
	for (unsigned i = 0; i < classes->known; i++) {
		if (!readers_need_groups(&classes->list[i].readers, &caller))
			continue;
		class_of[q.count] = (uint8_t)i;
		q.groups[q.count++] = classes->list[i].readers.gid;
	}
	had = q.count ? groups_had(c, &q) : 0;
	for (unsigned i = 0; i < q.count; i++)
		caller.groups |= (had >> i & 1) << class_of[i];
	return classes_read_by(classes, &caller);
}
