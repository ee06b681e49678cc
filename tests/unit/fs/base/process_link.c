/* SPDX-License-Identifier: MIT */
#include "fs/base/process_link.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];
static struct link_buffer room;

static int setup(void **state)
{
	return link_pair(ends) ? 0 : -1;
}

static int teardown(void **state)
{
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static size_t open_files(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The fuzz target link has other messages in which the other side controls every byte. */
TEST(messages_are_whole, setup, teardown)
{
	const struct link_message m = {
		.word = LINK_REFUSED, .fd = -1, .path = "path", .text = "text"};
	char good[sizeof(room)];
	struct link_message got;
	ssize_t size;

	assert_int_equal(link_send(ends[0], &m), LINK_DONE);
	size = recv(ends[1], good, sizeof(good), 0);
	assert_true(size > 0);
	for (ssize_t n = 1; n < size; n++) {
		assert_int_equal(send(ends[0], good, (size_t)n, 0), n);
		assert_int_equal(link_receive(ends[1], false, &room, &got), LINK_WRONG);
	}
}

static void send_files(const struct iovec *part, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = {0};
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (size_t i = 0; i < count; i++)
		memcpy(CMSG_DATA(h) + i * sizeof(int), &ends[0], sizeof(int));
	assert_true(sendmsg(ends[0], &msg, 0) > 0);
}

TEST(descriptors_that_do_not_belong_are_closed, setup, teardown)
{
	const struct link_message word = {
		.word = LINK_RESCAN, .fd = ends[0], .path = "p", .text = "t"};
	struct link_message archive = {.word = LINK_ARCHIVE, .fd = -1}, got;
	char bytes[sizeof(room)];
	struct iovec part = {bytes, 0};
	size_t before = open_files();

	assert_int_equal(link_send(ends[0], &word), LINK_DONE);
	assert_int_equal(link_receive(ends[1], false, &room, &got), LINK_WRONG);
	assert_int_equal(open_files(), before);

	assert_int_equal(link_send(ends[0], &archive), LINK_DONE);
	part.iov_len = (size_t)recv(ends[1], bytes, sizeof(bytes), 0);
	for (size_t n = 2; n <= 4; n++) {
		send_files(&part, n);
		assert_int_equal(link_receive(ends[1], false, &room, &got), LINK_DONE);
		if (got.fd >= 0)
			close(got.fd);
		assert_int_equal(open_files(), before);
	}
	part.iov_len = 3;
	send_files(&part, 1);
	assert_int_equal(link_receive(ends[1], false, &room, &got), LINK_WRONG);
	assert_int_equal(open_files(), before);
}
