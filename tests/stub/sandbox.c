/* SPDX-License-Identifier: MIT */
/*
 * sandbox [clone_fd] [run|trace]: enter the sandbox of kpackfs's server by the server's
 * own function, try forbidden calls, and print a line for each attempt: its name, and the
 * name of the error, or "ok".  With "run" or "trace", run a program or trace a process
 * instead, which the sandbox answers with SIGSYS.
 *
 * /etc/passwd is opened before, to test reading an open file, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fs/sandbox/sandbox.h"

static void print_result(const char *name, long result)
{
	printf("%s %s\n", name, result == -1 ? strerrorname_np(errno) : "ok");
}

static void try_files(int opened)
{
	char byte;

	print_result("read what is open", pread(opened, &byte, 1, 0));
	print_result("open", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	print_result("open the device", open("/dev/fuse", O_RDWR | O_CLOEXEC));
	print_result("open another device", open("/dev/null", O_RDWR | O_CLOEXEC));
	print_result("create", open("/tmp/kpackfs-sandbox", O_CREAT | O_WRONLY, 0600));
	print_result("unlink", unlink("/etc/not-there"));
	print_result("umount", umount2("/tmp", MNT_DETACH));
}

static void try_processes(void)
{
	print_result("socket of the network", socket(AF_INET, SOCK_STREAM, 0));
	print_result("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	print_result("fork", fork());
	print_result("kill", kill(1, 0));
	print_result("setuid", setuid(1));
}

/* Attempts that the sandbox refuses to a thread that is started inside. */
static void *try_in_thread(void *arg)
{
	(void)arg;
	print_result("open in a thread", open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	return NULL;
}

int main(int argc, char **argv)
{
	struct sandbox_options options = {0};
	int opened = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	bool run = false, trace = false;
	pthread_t thread;

	for (int i = 1; i < argc; i++) {
		options.clone_fd |= strcmp(argv[i], "clone_fd") == 0;
		run |= strcmp(argv[i], "run") == 0;
		trace |= strcmp(argv[i], "trace") == 0;
	}
	if (opened < 0 || !sandbox_enter(&options))
		return 1;
	for (const char *const *part = sandbox_parts(); *part; part++)
		printf("part %s\n", *part);
	fflush(stdout);
	if (run)
		execl("/bin/true", "true", NULL);
	if (trace)
		ptrace(PTRACE_ATTACH, 1, NULL, NULL);
	if (run || trace)
		return 2;
	try_files(opened);
	try_processes();
	if (pthread_create(&thread, NULL, try_in_thread, NULL) == 0)
		pthread_join(thread, NULL);
	return fflush(stdout) ? 1 : 0;
}
