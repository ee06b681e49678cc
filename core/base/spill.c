/* SPDX-License-Identifier: MIT */
#include "spill.h"
#include <errno.h>
#include <fcntl.h>

static int spill_directory = -1;

void kp_spill_into(int dir)
{
	spill_directory = dir;
}

bool kp_spills(uint64_t size)
{
	return spill_directory >= 0 && size >= KP_SPILL_MIN;
}

int kp_spill_open(void)
{
	return openat(spill_directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

struct kp_outfile kp_spill_outfile(int fd)
{
	return (struct kp_outfile){.fd = fd, .dir_fd = -1, .shown = "temporary file"};
}

int kp_spill_reserve(int fd, uint64_t size)
{
	int error;

	/* a signal may interrupt it */
	do
		error = posix_fallocate(fd, 0, (off_t)size);
	while (error == EINTR);
	return error;
}
