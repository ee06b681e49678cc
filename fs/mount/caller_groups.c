/* SPDX-License-Identifier: MIT */
#include "caller_groups.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* True if /proc has the threads of our PID namespace, as the server's requests do. */
static bool is_our_proc(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 &&
	       strtol(text, NULL, 10) == getpid();
}

/* The last of the IDs in TEXT, which is that for file systems, is ID. */
static bool is_acting_as(const char *text, uint32_t id)
{
	unsigned long last = ULONG_MAX;

	for (char *end;; text = end) {
		unsigned long n = strtoul(text, &end, 10);

		if (end == text)
			return last == id;
		last = n;
	}
}

static uint64_t find_groups(const struct group_query *q, const char *text)
{
	uint64_t set = 0;
	char *end;

	for (;; text = end) {
		unsigned long id = strtoul(text, &end, 10);

		if (end == text)
			return set;
		for (uint32_t i = 0; i < q->count; i++)
			if (q->groups[i] == id)
				set |= UINT64_C(1) << i;
	}
}

/* The lines for user and group come before that for groups. */
static uint64_t read_status(const struct group_query *q, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	unsigned fits = 0;
	uint64_t set = 0;

	while (getline(&line, &room, f) > 0) {
		if (strncmp(line, "Uid:", 4) == 0)
			fits += is_acting_as(line + 4, q->uid);
		else if (strncmp(line, "Gid:", 4) == 0)
			fits += is_acting_as(line + 4, q->gid);
		else if (strncmp(line, "Groups:", 7) == 0 && fits == 2)
			set = find_groups(q, line + 7);
	}
	free(line);
	return set;
}

uint64_t caller_groups_had(const struct group_query *q)
{
	char path[64];
	uint64_t set;
	FILE *f;

	/* 0: the thread is in no namespace that we see. */
	if (q->thread <= 0 || q->count > GROUP_QUERY_MAX || !is_our_proc())
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/status", (long)q->thread);
	f = fopen(path, "re");
	if (!f)
		return 0;
	set = read_status(q, f);
	fclose(f);
	return set;
}

static void *answer_queries(void *arg)
{
	const int fd = *(int *)arg;
	struct group_query q;
	ssize_t n;

	free(arg);
	while ((n = recv(fd, &q, sizeof(q), 0)) > 0 || (n < 0 && errno == EINTR)) {
		struct group_answer answer = {0};

		if (n != sizeof(q))
			continue;
		answer.number = q.number;
		answer.set = caller_groups_had(&q);
		send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

bool caller_groups_start(int fd)
{
	int *arg = malloc(sizeof(*arg));
	sigset_t all, old;
	pthread_t thread;

	if (!arg)
		return false;
	*arg = fd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	errno = pthread_create(&thread, NULL, answer_queries, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!errno)
		return pthread_detach(thread) == 0;
	free(arg);
	return false;
}
