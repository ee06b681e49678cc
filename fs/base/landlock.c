/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>
#include "landlock.h"

/* Values of <linux/landlock.h>: the system may have an older header than its kernel. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* system calls */
#define QUERY_VERSION 1U
#define PATH_BENEATH 1
#define WRITE_FILE (1 << 1)
#define READ_FILE (1 << 2)
#define IOCTL_DEV (1 << 15)
#define VERSIONS 7

struct path_rule {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

struct rules {
	uint64_t files;
	uint64_t tcp;   /* bind, connect */
	uint64_t scope; /* abstract sockets, signals */
};

/* Everything that each version of the interface can forbid. */
static const struct rules all_rules[VERSIONS + 1] = {
	[1] = {(1 << 13) - 1, 0, 0}, [2] = {(1 << 14) - 1, 0, 0},
	[3] = {(1 << 15) - 1, 0, 0}, [4] = {(1 << 15) - 1, 3, 0},
	[5] = {(1 << 16) - 1, 3, 0}, [6] = {(1 << 16) - 1, 3, 3},
	[7] = {(1 << 16) - 1, 3, 3},
};

/* Find the index in all_rules of the kernel's version.  0, or an errno. */
static int find_version(long *version)
{
	*version = syscall(CREATE_RULESET, NULL, 0, QUERY_VERSION);
	if (*version < 0)
		return errno;
	if (*version > VERSIONS)
		*version = VERSIONS;
	return *version ? 0 : ENOSYS;
}

static int allow_device(int ruleset, const char *device, uint64_t files)
{
	struct path_rule rule = {
		.allowed_access = files & (READ_FILE | WRITE_FILE | IOCTL_DEV),
		.parent_fd = open(device, O_PATH | O_CLOEXEC),
	};
	int error = 0;

	/*
	 * If the mount was made by a descriptor, there may be no device: then no thread
	 * will open it either.
	 */
	if (rule.parent_fd < 0)
		return 0;
	if (syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0))
		error = errno;
	close(rule.parent_fd);
	return error;
}

int landlock_enter(const char *device)
{
	const struct rules *r;
	long version;
	int error = find_version(&version), ruleset;

	if (error)
		return error;
	r = &all_rules[version];
	/* The same size suits all kernels: fields that an older one does not know are
	 * 0. */
	ruleset = (int)syscall(CREATE_RULESET, r, sizeof(*r), 0);
	if (ruleset < 0)
		return errno;
	if (device)
		error = allow_device(ruleset, device, r->files);
	if (!error && syscall(RESTRICT_SELF, ruleset, 0))
		error = errno;
	close(ruleset);
	return error;
}
