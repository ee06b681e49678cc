/* SPDX-License-Identifier: MIT */
/* What a process in the sandbox may do, and what not. */
#include "fs/base/sandbox.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
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
#include <sys/wait.h>
#include <unistd.h>

static int pair[2], file; /* which has "abc" */

static struct sandbox_options plain, cloning = {.clone_fd = true},
				     ringing = {.io_uring = true};

static bool has_part(const char *name)
{
	for (const char *const *p = sandbox_parts(); *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

static int outcome(long r)
{
	return r < 0 ? errno : 0;
}

/* ---- actions: each returns 0 or an errno ---- */

#define ACT(name, call)                                                                  \
	static int name(void)                                                            \
	{                                                                                \
		return outcome(call);                                                    \
	}

static int read_open_file(void)
{
	struct stat st;
	char byte;

	if (fstat(file, &st) || st.st_size != 3)
		return 1;
	return pread(file, &byte, 1, 2) == 1 && byte == 'c' ? 0 : 2;
}

static void *memory(size_t size, int how)
{
	return mmap(NULL, size, how, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int abort_itself(void)
{
	abort();
}

ACT(open_file, open("/etc/passwd", O_RDONLY | O_CLOEXEC))
ACT(open_writable, open("/dev/null", O_RDWR | O_CLOEXEC))
ACT(open_device, open("/dev/fuse", O_RDWR | O_CLOEXEC))
ACT(make_file, creat("/tmp/kpackfs-sandbox-not-there/file", 0600))
ACT(remove_file, unlink("/tmp/kpackfs-sandbox-not-there"))
ACT(look_at_path, access("/etc/passwd", F_OK))
ACT(truncate_file, ftruncate(file, 0))
ACT(use_internet, socket(AF_INET, SOCK_STREAM, 0))
ACT(use_stream, socket(AF_UNIX, SOCK_STREAM, 0))
ACT(signal_parent, kill(getppid(), 0))
ACT(become_another, setuid(1))
ACT(unmount, umount2("/tmp", MNT_DETACH))
ACT(clone_by_memory, syscall(435, NULL, 0)) /* clone3 */
ACT(make_future_call, syscall(480))
ACT(inject_input, ioctl(pair[0], TIOCSTI, "x"))
ACT(make_ring, syscall(425, 1, NULL)) /* io_uring_setup; EFAULT if it is permitted */
ACT(run_program, execl("/bin/true", "true", NULL))
ACT(trace_parent, ptrace(PTRACE_ATTACH, getppid(), NULL, NULL))
ACT(mount_something, mount("x", "/tmp", "tmpfs", 0, NULL))
ACT(leave_namespace, unshare(CLONE_NEWUSER))
ACT(map_code, memory(4096, PROT_READ | PROT_EXEC) == MAP_FAILED ? -1 : 0)
ACT(make_code,
    mprotect(memory(4096, PROT_READ | PROT_WRITE), 4096, PROT_READ | PROT_EXEC))
ACT(filter_is_on, has_part("seccomp") ? 0 : (errno = 1, -1))
ACT(landlock_is_on, has_part("landlock") ? 0 : (errno = 1, -1))

static int make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return outcome(pid);
}

static void *open_in_thread(void *result)
{
	*(int *)result = open_file();
	return NULL;
}

static int open_by_thread(void)
{
	pthread_t thread;
	int result = 1;

	if (!pthread_create(&thread, NULL, open_in_thread, &result))
		pthread_join(thread, NULL);
	return result;
}

/* Its capabilities are looked at from outside: see sandbox.bats. */
static int keeps_nothing(void)
{
	return has_part("capabilities") && has_part("no_new_privs") ? 0 : 2;
}

static int keeps_nothing_as_user(void)
{
	return geteuid() == 65534 ? keeps_nothing() : 3;
}

/* Run F in a sandboxed process; its errno, or 256 plus the signal that killed it. */
static int inside(int (*f)(void), const struct sandbox_options *o)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (f == keeps_nothing_as_user &&
		    (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(254);
		_exit(sandbox_enter(o) ? f() : 255);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct {
	const char *name;
	int (*f)(void);
	int result;
	bool filtered; /* only with the filter, and in builds that have all of it */
} rows[] = {
#define ROW(f, result, filtered)                                                         \
	{                                                                                \
#f, f, result, filtered                                                  \
	}
	ROW(keeps_nothing, 0, false),
	ROW(read_open_file, 0, false),
	ROW(abort_itself, 256 + SIGABRT, false),
	ROW(open_file, EPERM, true),
	ROW(open_by_thread, EPERM, true),
	ROW(open_writable, EPERM, true),
	ROW(open_device, EPERM, true),
	ROW(make_file, EPERM, true),
	ROW(remove_file, EPERM, true),
	ROW(look_at_path, EPERM, true),
	ROW(truncate_file, EPERM, true),
	ROW(use_internet, EPERM, true),
	ROW(use_stream, EPERM, true),
	ROW(make_process, EPERM, true),
	ROW(signal_parent, EPERM, true),
	ROW(become_another, EPERM, true),
	ROW(unmount, EPERM, true),
	ROW(map_code, EPERM, true),
	ROW(make_code, EPERM, true),
	ROW(inject_input, EPERM, true),
	ROW(make_ring, EPERM, true),
	ROW(clone_by_memory, ENOSYS, true),
	ROW(make_future_call, ENOSYS, true),
	ROW(run_program, 256 + SIGSYS, true),
	ROW(trace_parent, 256 + SIGSYS, true),
	ROW(mount_something, 256 + SIGSYS, true),
	ROW(leave_namespace, 256 + SIGSYS, true),
};

TEST(serving_works_and_nothing_else)
{
	bool filter = SANDBOX_WHOLE && KP_WITH_SECCOMP;

	if (filter)
		assert_int_equal(inside(filter_is_on, &plain), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int result = rows[i].filtered && !filter ? rows[i].result
							 : inside(rows[i].f, &plain);

		if (result != rows[i].result)
			fail_msg("%s: %d, not %d", rows[i].name, result, rows[i].result);
	}
	if (geteuid() == 0)
		assert_int_equal(inside(keeps_nothing_as_user, &plain), 0);
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
