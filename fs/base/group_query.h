/* SPDX-License-Identifier: MIT */
/*
 * The question about a user's groups that the server, which may not open /proc, asks the
 * supervisor over a socket of their own.  Each question gets one answer.
 */
#ifndef FS_BASE_GROUP_QUERY_H
#define FS_BASE_GROUP_QUERY_H

#include <stdint.h>
#include <sys/types.h>

#define GROUP_QUERY_MAX 64

struct group_query {
	uint64_t number;
	int32_t thread; /* waits for the answer, and so cannot change its groups */
	uint32_t uid, gid;
	uint32_t count;
	uint32_t groups[GROUP_QUERY_MAX];
};

struct group_answer {
	uint64_t number; /* of the question */
	uint64_t set;    /* a bit for each group of the question that the thread has */
};

#endif
