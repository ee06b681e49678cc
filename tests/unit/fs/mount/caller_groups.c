/* SPDX-License-Identifier: MIT */
#include "fs/mount/caller_groups.h"
#include "tests/unit/unit.h"
#include <grp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct group_query about_us(void)
{
	return (struct group_query){
		.number = 1, .thread = getpid(), .uid = geteuid(), .gid = getegid()};
}

/* Numbers of threads are used again: the user must be the one of the question. */
TEST(another_user_has_no_groups)
{
	const gid_t groups[] = {70001, 70002};
	struct group_query q = about_us();

	if (geteuid() || setgroups(2, groups))
		skip();
	q.groups[q.count++] = 70002;
	assert_int_equal(caller_groups_had(&q), 1);
	q.uid++;
	assert_int_equal(caller_groups_had(&q), 0);
	q.uid--;
	q.gid++;
	assert_int_equal(caller_groups_had(&q), 0);
	q.gid--;
	q.thread = 0;
	assert_int_equal(caller_groups_had(&q), 0);
	q.thread = getpid();
	q.count = GROUP_QUERY_MAX + 1;
	assert_int_equal(caller_groups_had(&q), 0);
}

TEST(each_question_has_its_answer)
{
	struct group_query q = about_us();
	struct group_answer answer;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_true(caller_groups_start(ends[1]));
	assert_int_equal(send(ends[0], "junk", 4, 0), 4);
	for (q.number = 5; q.number < 8; q.number++)
		assert_int_equal(send(ends[0], &q, sizeof(q), 0), sizeof(q));
	for (uint64_t n = 5; n < 8; n++) {
		assert_int_equal(recv(ends[0], &answer, sizeof(answer), 0),
				 sizeof(answer));
		assert_int_equal(answer.number, n);
		assert_int_equal(answer.set, 0);
	}
	/* the thread ends, and closes its end */
	shutdown(ends[0], SHUT_WR);
	assert_int_equal(recv(ends[0], &answer, sizeof(answer), 0), 0);
	close(ends[0]);
}
