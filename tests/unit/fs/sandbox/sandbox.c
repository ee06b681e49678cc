/* SPDX-License-Identifier: MIT */
#include "fs/sandbox/sandbox.h"
#include "tests/unit/unit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* An action in the sandbox; returns 0 or an errno. */
typedef int act(void);

static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

static int pair[2];

static struct sandbox_options plain, cloning = {.clone_fd = true},
				     ringing = {.io_uring = true};

/*
 * Run F in a sandboxed process; returns its errno, or 256 plus the signal that killed it.
 */
static int inside(act *f, const struct sandbox_options *o)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(sandbox_enter(o) ? f() : 255);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool parts_have(const char *name)
{
	for (const char *const *p = sandbox_parts(); *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

/* ---- restrictions of every build ---- */

/*
 * Start a sandboxed process of USER that waits to be killed; *ENTERED: sandbox_enter's
 * result.
 */
static pid_t stay_inside(uid_t user, bool *entered)
{
	int ends[2];
	char byte = 0;
	pid_t pid;

	assert_return_code(pipe2(ends, O_CLOEXEC), errno);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		byte = setresgid(user, user, user) == 0 &&
		       setresuid(user, user, user) == 0 && sandbox_enter(&plain) &&
		       parts_have("capabilities") && parts_have("no_new_privs");
		if (write(ends[1], &byte, 1) == 1)
			for (;;)
				poll(NULL, 0, -1);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	*entered = byte;
	return pid;
}

/* A hexadecimal field of /proc/PID/status. */
static uint64_t status_of(pid_t pid, const char *field)
{
	char path[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtoull(line + strlen(field), NULL, 16);
	fclose(f);
	return value;
}

static void stop_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(privileges_are_gone)
{
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
	bool entered;
	pid_t pid = stay_inside(geteuid(), &entered);

	assert_true(entered);
	for (size_t i = 0; i < COUNT(sets); i++)
		assert_int_equal(status_of(pid, sets[i]), 0);
	if (geteuid() == 0)
		assert_int_equal(status_of(pid, "CapBnd:"), 0);
	assert_int_equal(status_of(pid, "NoNewPrivs:"), 1);
	stop_process(pid);
}

TEST(users_without_privileges_enter_too)
{
	bool entered;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = stay_inside(65534, &entered);
	assert_true(entered);
	assert_int_equal(status_of(pid, "CapEff:"), 0);
	assert_int_equal(status_of(pid, "NoNewPrivs:"), 1);
	stop_process(pid);
}

/* ---- permitted actions ---- */

static int file;

static int read_open_file(void)
{
	struct stat st;
	char byte;

	if (fstat(file, &st) || st.st_size != 3)
		return 1;
	return pread(file, &byte, 1, 2) == 1 && byte == 'c' ? 0 : 2;
}

static void *add_one(void *n)
{
	void *p = malloc(1 << 20);

	memset(p, 1, 1 << 20);
	free(p);
	__atomic_add_fetch((int *)n, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static int run_threads(void)
{
	pthread_t threads[20];
	int sum = 0;

	for (size_t i = 0; i < COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, add_one, &sum))
			return 1;
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	return sum == COUNT(threads) ? 0 : 2;
}

static void *wait_for_ever(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* libfuse ends its threads this way. */
static int cancel_thread(void)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, wait_for_ever, NULL) ||
	    pthread_cancel(thread) || pthread_join(thread, &result))
		return 1;
	return result == PTHREAD_CANCELED ? 0 : 2;
}

static int map_memory(void)
{
	const size_t size = 8 << 20;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED || madvise(p, size, MADV_HUGEPAGE) == 99)
		return 1;
	p[size - 1] = 1;
	if (madvise(p, size, MADV_DONTNEED))
		return 2;
	p = mremap(p, size, 2 * size, MREMAP_MAYMOVE);
	return p == MAP_FAILED || munmap(p, 2 * size) ? 3 : 0;
}

/* Receive a descriptor from outside, over a socket. */
static int receive_file(void)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c;

	if (recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC) != 1 || !(c = CMSG_FIRSTHDR(&m)))
		return 1;
	memcpy(&file, CMSG_DATA(c), sizeof(file));
	return read_open_file();
}

static void send_file(int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(pair[0], &m, 0), 1);
}

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught = number;
}

static int catch_signal(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	if (sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
		return 1;
	return caught == SIGUSR1 ? 0 : 2;
}

static int abort_itself(void)
{
	abort();
}

static struct sockaddr_un log_address = {.sun_family = AF_UNIX};

/* syslog() can do this at any time. */
static int log_to_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&log_address, sizeof(log_address)))
		return outcome(-1);
	return send(fd, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 200;
}

TEST(what_serving_takes_works)
{
	assert_int_equal(inside(read_open_file, &plain), 0);
	assert_int_equal(inside(run_threads, &plain), 0);
	assert_int_equal(inside(cancel_thread, &plain), 0);
	assert_int_equal(inside(map_memory, &plain), 0);
	assert_int_equal(inside(catch_signal, &plain), 0);
	assert_int_equal(inside(abort_itself, &plain), 256 + SIGABRT);
	send_file(file);
	assert_int_equal(inside(receive_file, &plain), 0);
}

TEST(messages_reach_the_log)
{
	char dir[] = "/tmp/kpackfs-sandbox-XXXXXX", byte;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(dir));
	snprintf(log_address.sun_path, sizeof(log_address.sun_path), "%s/log", dir);
	assert_return_code(bind(fd, (struct sockaddr *)&log_address, sizeof(log_address)),
			   errno);
	assert_int_equal(inside(log_to_socket, &plain), 0);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
	close(fd);
	unlink(log_address.sun_path);
	rmdir(dir);
}

/* ---- refused actions ---- */

static int open_file(void)
{
	return outcome(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int open_writable(void)
{
	return outcome(open("/dev/null", O_RDWR | O_CLOEXEC));
}

static int open_device(void)
{
	return outcome(open("/dev/fuse", O_RDWR | O_CLOEXEC));
}

static int make_file(void)
{
	return outcome(creat("/tmp/kpackfs-sandbox", 0600));
}

static int remove_file(void)
{
	return outcome(unlink("/tmp/kpackfs-sandbox-not-there"));
}

static int look_at_path(void)
{
	struct stat st;

	return outcome(stat("/etc/passwd", &st));
}

static int truncate_file(void)
{
	return outcome(ftruncate(file, 0));
}

static int use_internet(void)
{
	return outcome(socket(AF_INET, SOCK_STREAM, 0));
}

static int use_stream(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return outcome(pid);
}

static int signal_parent(void)
{
	return outcome(kill(getppid(), 0));
}

static int map_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	return outcome(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int clone_by_memory(void)
{
	return outcome(syscall(435, NULL, 0)); /* clone3 */
}

static int make_future_call(void)
{
	return outcome(syscall(480));
}

static int inject_input(void)
{
	return outcome(ioctl(pair[0], TIOCSTI, "x"));
}

/* Gives EFAULT if the call is permitted. */
static int make_ring(void)
{
	return outcome(syscall(425, 1, NULL)); /* io_uring_setup */
}

static int run_program(void)
{
	execl("/bin/true", "true", NULL);
	return errno;
}

static int trace_parent(void)
{
	return outcome(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

static int mount_something(void)
{
	return outcome(mount("x", "/tmp", "tmpfs", 0, NULL));
}

static int leave_namespace(void)
{
	return outcome(unshare(CLONE_NEWUSER));
}

static const struct {
	act *f;
	int result;
} refusals[] = {
	{open_file, EPERM},
	{open_writable, EPERM},
	{open_device, EPERM},
	{make_file, EPERM},
	{remove_file, EPERM},
	{look_at_path, EPERM},
	{truncate_file, EPERM},
	{use_internet, EPERM},
	{use_stream, EPERM},
	{make_process, EPERM},
	{signal_parent, EPERM},
	{map_code, EPERM},
	{make_code, EPERM},
	{inject_input, EPERM},
	{make_ring, EPERM},
	{clone_by_memory, ENOSYS},
	{make_future_call, ENOSYS},
	{run_program, 256 + SIGSYS},
	{trace_parent, 256 + SIGSYS},
	{mount_something, 256 + SIGSYS},
	{leave_namespace, 256 + SIGSYS},
};

static int filter_is_on(void)
{
	return parts_have("seccomp") ? 0 : 1;
}

static int landlock_is_on(void)
{
	return parts_have("landlock") ? 0 : 1;
}

TEST(nothing_else_works)
{
	if (!SANDBOX_WHOLE)
		return;
	if (!KP_WITH_SECCOMP)
		skip();
	assert_int_equal(inside(filter_is_on, &plain), 0);
	for (size_t i = 0; i < COUNT(refusals); i++) {
		int result = inside(refusals[i].f, &plain);

		if (result != refusals[i].result)
			print_error("refusal %zu\n", i);
		assert_int_equal(result, refusals[i].result);
	}
}

/* The filter permits these open flags; Landlock permits only the device. */
TEST(only_the_device_is_opened_again)
{
	if (!SANDBOX_WHOLE)
		return;
	if (!KP_WITH_SECCOMP || inside(landlock_is_on, &plain) || open_device())
		skip();
	assert_int_equal(inside(open_device, &cloning), 0);
	assert_int_equal(inside(open_writable, &cloning), EACCES);
	assert_int_equal(inside(open_file, &cloning), EPERM);
}

TEST(rings_are_made_for_who_asks)
{
	if (!SANDBOX_WHOLE || inside(filter_is_on, &ringing))
		return;
	/* The same result as outside, as some systems forbid rings to all processes. */
	assert_int_equal(inside(make_ring, &ringing), make_ring());
}

static int set_up(void **state)
{
	file = memfd_create("abc", MFD_CLOEXEC);
	return file < 0 || write(file, "abc", 3) != 3 ||
	       socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

SUITE(set_up, NULL);
