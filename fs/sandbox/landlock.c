/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "landlock.h"

/* Constants of versions after 1: the system's header may be older than the kernel. */
#define IOCTL_DEV (1 << 15)
#define VERSIONS 7

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
	*version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);
	if (*version < 0)
		return errno;
	if (*version > VERSIONS)
		*version = VERSIONS;
	return *version ? 0 : ENOSYS;
}

static int allow_device(int ruleset, const char *device, uint64_t files)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = files & (LANDLOCK_ACCESS_FS_READ_FILE |
					   LANDLOCK_ACCESS_FS_WRITE_FILE | IOCTL_DEV),
		.parent_fd = open(device, O_PATH | O_CLOEXEC),
	};
	int error = 0;

	/*
	 * If the mount was made by a descriptor, there may be no device: then no thread
	 * will open it either.
	 */
	if (rule.parent_fd < 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
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
	ruleset = (int)syscall(SYS_landlock_create_ruleset, r, sizeof(*r), 0);
	if (ruleset < 0)
		return errno;
	if (device)
		error = allow_device(ruleset, device, r->files);
	if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0))
		error = errno;
	close(ruleset);
	return error;
}
