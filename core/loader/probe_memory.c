/* SPDX-License-Identifier: MIT */
#include "probe_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

/* No machine has smaller pages, so that a run is readable as a whole or not at all. */
enum { RUN = 4096, RUNS = 32 };

/* Return the bytes from AT to the end of its run, at most LEFT. */
static size_t run_size(const char *at, size_t left)
{
	size_t n = RUN - (uintptr_t)at % RUN;

	return n < left ? n : left;
}

/*
 * Copy many runs in one call, each run as one iovec element: the kernel copies an element
 * whole or not at all.  Returns -1 and errno on failure; EFAULT: nothing is readable.
 */
static ssize_t copy_direct(const char *at, void *buf, size_t size)
{
	struct iovec to = {buf, 0}, from[RUNS];
	unsigned n = 0;

	for (; n < RUNS && to.iov_len < size; n++) {
		const char *start = at + to.iov_len;

		from[n].iov_base = (void *)start;
		from[n].iov_len = run_size(start, size - to.iov_len);
		to.iov_len += from[n].iov_len;
	}
	return process_vm_readv(getpid(), &to, 1, from, n, 0);
}

/* Copy one run through a pipe, for sandboxes that forbid process_vm_readv. */
static ssize_t copy_piped(const char *at, void *buf, size_t size)
{
	ssize_t n;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -1;
	n = write(fds[1], at, run_size(at, size));
	if (n > 0)
		n = read(fds[0], buf, (size_t)n);
	close(fds[0]);
	close(fds[1]);
	return n;
}

static ssize_t copy_some(const char *at, void *buf, size_t size)
{
	ssize_t n = copy_direct(at, buf, size);

	if (n >= 0 || errno == EFAULT)
		return n;
	return copy_piped(at, buf, size);
}

kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why)
{
	const char *from = at;
	size_t done = 0;

	if (size > UINTPTR_MAX - (uintptr_t)at)
		size = UINTPTR_MAX - (uintptr_t)at;
	while (done < size) {
		ssize_t n = copy_some(from + done, (char *)buf + done, size - done);

		if (n < 0 && errno != EFAULT)
			return kp_fail_errno(why, errno, "cannot read memory");
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	*got = done;
	return KPACK_SUCCESS;
}
