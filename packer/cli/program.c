/* SPDX-License-Identifier: MIT */
/*
 * The other program gets an environment of two variables: its messages and its numbers are then
 * the same for every user, and it looks for its own programs in the system's directories only.
 */
#include "program.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run PATH with its standard output at the descriptor OUTPUT. */
static int spawn_program(pid_t *pid, const char *path, char **argv, int output)
{
	char locale[] = "LC_ALL=C", programs[] = "PATH=/usr/bin:/bin";
	char *environment[] = {locale, programs, NULL};
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	err = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
						       "/dev/null", O_WRONLY, 0);
	if (!err)
		err = posix_spawn(pid, path, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

int program_start(struct program *p, const char *path, char **argv)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	p->output = fdopen(ends[0], "r");
	err = p->output ? spawn_program(&p->pid, path, argv, ends[1]) : errno;
	close(ends[1]);
	if (!err)
		return 0;
	if (p->output)
		fclose(p->output);
	else
		close(ends[0]);
	return err;
}

int program_end(struct program *p)
{
	int status;
	pid_t pid;

	fclose(p->output);
	do
		pid = waitpid(p->pid, &status, 0);
	while (pid < 0 && errno == EINTR);
	return pid < 0 || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}
