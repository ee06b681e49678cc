/* SPDX-License-Identifier: MIT */
#include "run.h"
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A run without any call for so many looks hangs ... */
#define LOOK_MS 200
#define LOOKS_LIMIT 600
/* ... and one that waits for the other end of a FIFO is found out sooner. */
#define LOOKS_AT_OPEN 50
/* ... as one that waits for a file system that never answers. */
#define LOOKS_AT_MOUNT 150

struct child {
	pid_t pid;
	int pidfd, listener, messages;
	struct seccomp_notif *stopped;
	struct seccomp_notif_resp *answer;
	struct seccomp_notif_sizes sizes;
};

/* --- beginning ----------------------------------------------------------------------- */

static void send_fd(int to, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(to, &msg, 0) != 1)
		_exit(125);
}

static int receive_fd(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1 || !(c = CMSG_FIRSTHDR(&msg)))
		errx(2, "the kernel has no seccomp listener");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void become_command(const struct run_options *o, int messages, int socket)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), listener;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	umask(022);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(messages, 2) < 0 ||
	    chdir("/") < 0)
		_exit(125);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* then a container allows filters */
	listener = calls_install(o->old, o->look != NULL);
	if (listener < 0)
		_exit(125);
	send_fd(socket, listener);
	close(listener);
	execv(o->command[0], o->command);
	_exit(127);
}

static void begin(struct child *c, const struct run_options *o)
{
	int sockets[2];

	c->messages = memfd_create("messages", MFD_CLOEXEC);
	if (c->messages < 0 ||
	    syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &c->sizes) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 ||
	    (c->pid = fork()) < 0)
		err(2, "cannot start");
	if (c->pid == 0)
		become_command(o, c->messages, sockets[1]);
	close(sockets[1]);
	c->listener = receive_fd(sockets[0]);
	close(sockets[0]);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	c->stopped = calloc(1, c->sizes.seccomp_notif);
	c->answer = calloc(1, c->sizes.seccomp_notif_resp);
	if (c->pidfd < 0 || !c->stopped || !c->answer)
		err(2, "cannot start");
}

/* --- hanging ------------------------------------------------------------------------- */

/* The calls that its threads are in, or "" if one is not in any. */
static void look_at_threads(pid_t pid, char *out, size_t room)
{
	char pattern[64];
	glob_t found;
	size_t used = 0;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/syscall", pid);
	out[0] = '\0';
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, out + used, room - used - 1);

		if (fd >= 0)
			close(fd);
		if (n <= 0 || strncmp(out + used, "running", 7) == 0) {
			used = 0;
			break;
		}
		used += (size_t)n;
	}
	globfree(&found);
	out[used] = '\0';
}

static bool is_in_open(const char *threads)
{
	for (const char *p = threads; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
		long number = *p ? strtol(p, NULL, 10) : -1;

		if (number == SYS_openat || number == 437)
			return true;
#ifdef SYS_open
		if (number == SYS_open)
			return true;
#endif
	}
	return false;
}

/* --- the loop ------------------------------------------------------------------------ */

static bool answer_call(struct child *c, const struct run_options *o)
{
	struct named names;
	bool go_on = true, ours;

	memset(c->stopped, 0, c->sizes.seccomp_notif);
	if (ioctl(c->listener, SECCOMP_IOCTL_NOTIF_RECV, c->stopped) < 0)
		return true; /* it was killed or interrupted */
	ours = calls_read(c->stopped, o->dir, &names);
	if (o->look)
		o->look(c->stopped, ours, o->arg);
	if (ours)
		go_on = o->step(&names, o->arg);
	memset(c->answer, 0, c->sizes.seccomp_notif_resp);
	c->answer->id = c->stopped->id;
	c->answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (go_on)
		ioctl(c->listener, SECCOMP_IOCTL_NOTIF_SEND, c->answer);
	return go_on;
}

static enum run_end follow(struct child *c, const struct run_options *o)
{
	struct pollfd fds[2] = {{.fd = c->listener, .events = POLLIN},
				{.fd = c->pidfd, .events = POLLIN}};
	char seen[16384] = "", now[16384];
	int looks = 0, same = 0;

	while (looks++ < LOOKS_LIMIT) {
		int n = poll(fds, 2, LOOK_MS);

		if (n < 0 && errno != EINTR)
			err(2, "poll");
		if (n > 0) {
			if ((fds[0].revents & POLLIN) && !answer_call(c, o))
				return RUN_KILLED;
			if (fds[1].revents)
				return RUN_EXITED;
			looks = same = 0;
			continue;
		}
		look_at_threads(c->pid, now, sizeof(now));
		same = now[0] && strcmp(now, seen) == 0 ? same + 1 : 0;
		strcpy(seen, now);
		if ((same >= LOOKS_AT_OPEN && is_in_open(now)) ||
		    (same >= LOOKS_AT_MOUNT && o->waits))
			break;
	}
	return RUN_HUNG;
}

static char *read_messages(int fd)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) < 0 || !(text = calloc(1, (size_t)st.st_size + 1)) ||
	    pread(fd, text, (size_t)st.st_size, 0) < 0)
		err(2, "messages");
	return text;
}

void run(const struct run_options *o, struct run_result *result)
{
	struct child c;
	int status;

	begin(&c, o);
	result->end = follow(&c, o);
	if (result->end != RUN_EXITED)
		kill(c.pid, SIGKILL);
	close(c.listener);
	if (waitpid(c.pid, &status, 0) != c.pid)
		err(2, "wait");
	kill(-c.pid, SIGKILL); /* its children */
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
	if (result->end == RUN_EXITED && !WIFEXITED(status))
		result->end = RUN_SIGNALLED;
	result->message = read_messages(c.messages);
	close(c.messages);
	close(c.pidfd);
	free(c.stopped);
	free(c.answer);
}
