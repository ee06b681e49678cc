/* SPDX-License-Identifier: MIT */
/*
 * A message is one datagram of a SOCK_SEQPACKET socket: a header, then two strings, each
 * with its NUL, whose sizes the header states and the receiver checks.  A descriptor comes
 * along as a control message.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "process_link.h"

/* A message on the wire: this header, then path and text, each with its NUL. */
struct header {
	uint32_t word;
	uint32_t serial;
	uint64_t number;
	uint32_t fresh;
	uint32_t path_size, text_size; /* with the NULs */
	struct stat st;
};

/* A control message with one descriptor. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool link_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0;
}

/* The length of S, cut to fit a message: only text for people can be too long. */
static uint32_t bounded_size(const char *s, size_t room)
{
	return (uint32_t)(s ? strnlen(s, room - 1) : 0);
}

enum link_result link_send(int end, const struct link_message *m)
{
	const size_t room = (sizeof(struct link_buffer) - sizeof(struct header)) / 2;
	struct header h = {
		.word = m->word,
		.serial = m->serial,
		.number = m->number,
		.fresh = m->fresh,
		.path_size = bounded_size(m->path, room) + 1,
		.text_size = bounded_size(m->text, room) + 1,
		.st = m->st,
	};
	struct iovec parts[] = {
		{&h, sizeof(h)}, {(void *)m->path, h.path_size - 1},
		{"", 1},         {(void *)m->text, h.text_size - 1},
		{"", 1},
	};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 5};
	union control control = {0};
	struct cmsghdr *c;

	if (m->fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &m->fd, sizeof(int));
	}
	for (;;) {
		if (sendmsg(end, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return LINK_DONE;
		if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
			return LINK_FULL;
		if (errno != EINTR)
			return LINK_OVER;
	}
}

enum link_result link_send_all(int end, const struct link_message *m)
{
	enum link_result r;

	while ((r = link_send(end, m)) == LINK_FULL) {
		struct pollfd p = {.fd = end, .events = POLLOUT};

		/* If the kernel has no memory for the message, the socket is ready
		 * nevertheless. */
		if (poll(&p, 1, 1000) < 0 && errno != EINTR)
			return LINK_OVER;
		if (p.revents & (POLLHUP | POLLERR))
			return LINK_OVER;
	}
	return r;
}

enum link_result link_receive(int end, bool wait, struct link_buffer *room,
			      struct link_message *out)
{
	union control control;
	struct iovec part = {room->bytes, sizeof(room->bytes)};
	struct msghdr msg = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const char *text = room->bytes + sizeof(struct header);
	const struct cmsghdr *came;
	size_t count = 0, left;
	struct header h = {.word = LINK_WORDS};
	ssize_t n;
	int fd = -1;

	do {
		n = recvmsg(end, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? LINK_EMPTY : LINK_OVER;
	if (n == 0)
		return LINK_OVER;
	/* padding leaves room for more than one descriptor: if several come, all are closed */
	came = msg.msg_controllen ? CMSG_FIRSTHDR(&msg) : NULL;
	if (came && came->cmsg_level == SOL_SOCKET && came->cmsg_type == SCM_RIGHTS)
		count = (came->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (size_t i = 0; i < count; i++) {
		memcpy(&fd, CMSG_DATA(came) + i * sizeof(fd), sizeof(fd));
		if (count > 1) {
			close(fd);
			fd = -1;
		}
	}
	if ((size_t)n >= sizeof(h) && !(msg.msg_flags & MSG_TRUNC))
		memcpy(&h, room->bytes, sizeof(h));
	left = (size_t)n - sizeof(h);
	if (h.word >= LINK_WORDS || h.path_size < 1 || h.path_size >= left ||
	    h.text_size != left - h.path_size || text[h.path_size - 1] ||
	    text[left - 1] ||
	    (fd >= 0 && h.word != LINK_ARCHIVE && h.word != LINK_MOUNTED)) {
		if (fd >= 0)
			close(fd);
		out->fd = -1;
		return LINK_WRONG;
	}
	*out = (struct link_message){
		.word = (enum link_word)h.word,
		.serial = h.serial,
		.number = h.number,
		.fd = fd,
		.fresh = h.fresh != 0,
		.st = h.st,
		.path = text,
		.text = text + h.path_size,
	};
	return LINK_DONE;
}
