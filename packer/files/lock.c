/* SPDX-License-Identifier: MIT */
#include "lock.h"

#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#include "packer/cli/report.h"

static int flock_again(int fd, int how)
{
	int status;

	do
		status = flock(fd, how);
	while (status < 0 && errno == EINTR);
	return status;
}

kpack_error_t lock_wait(int fd, const char *path, bool *locked, struct kpackx_error *why)
{
	int status = flock_again(fd, LOCK_EX | LOCK_NB);

	(void)why;
	if (status < 0 && errno == EWOULDBLOCK) {
		report_error(path, "note: another process has locked it: waiting "
				   "(lslocks(8) names it)");
		status = flock_again(fd, LOCK_EX);
	}
	if (locked)
		*locked = status == 0;
	return KPACK_SUCCESS;
}

void lock_close(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN); /* a duplicate of the descriptor may stay open */
	close(fd);
}
