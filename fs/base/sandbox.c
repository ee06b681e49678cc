/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "syscall_filter.h"
#include "landlock.h"
#include "log.h"
#include "sandbox.h"

struct part {
	const char *name;
	int (*enter)(const struct sandbox_options *o); /* 0, or an errno */
	bool always; /* also in programs built with a sanitizer */
};

/*
 * Drop the capabilities of all sets.  The bounding set goes first, because dropping from
 * it takes a capability; a user other than root has none to drop, and no_new_privs keeps
 * it so.
 *
 * The process stays dumpable: its memory holds only the contents of files that its user
 * can read, and a core dump of a crash is worth having.
 */
static int drop_capabilities(const struct sandbox_options *o)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	(void)o;
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EPERM)
			return errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return errno;
	return syscall(SYS_capset, &header, none) ? errno : 0;
}

static int refuse_privileges(const struct sandbox_options *o)
{
	(void)o;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0;
}

static int restrict_files(const struct sandbox_options *o)
{
	return landlock_enter(o->clone_fd ? "/dev/fuse" : NULL);
}

static bool is_on(const char *name);

/*
 * Without Landlock the filter cannot distinguish an open of /dev/fuse from other opens,
 * and forbids it: then libfuse continues without clone_fd.
 */
static int restrict_calls(const struct sandbox_options *o)
{
	return syscall_filter_load(o->clone_fd && is_on("landlock"), o->io_uring);
}

/* In this order, because the last two are only allowed if no_new_privs is set. */
static const struct part parts[] = {
	{"capabilities", drop_capabilities, true},
	{"no_new_privs", refuse_privileges, true},
	{"landlock", restrict_files, false},
	{"seccomp", restrict_calls, false},
};

#define PARTS KP_COUNT(parts)

static const char *on[PARTS + 1];

static bool is_on(const char *name)
{
	for (size_t i = 0; on[i]; i++)
		if (strcmp(on[i], name) == 0)
			return true;
	return false;
}

/* True if the kernel lacks a part or forbids it to containers, or it was not built in. */
static bool is_absent(int error)
{
	return error == ENOSYS || error == EOPNOTSUPP || error == EINVAL ||
	       error == EPERM;
}

static bool enter_part(const struct part *p, const struct sandbox_options *o)
{
	int error = p->enter(o);
	size_t n = 0;

	if (error && !is_absent(error)) {
		log_print(LOG_ERR, "sandbox: %s: %s; -o no_sandbox mounts without it",
			  p->name, strerror(error));
		return false;
	}
	if (error) {
		log_print(LOG_INFO, "sandbox: no %s: %s", p->name, strerror(error));
		return true;
	}
	while (on[n])
		n++;
	on[n] = p->name;
	return true;
}

/* Load now what libc would open files for later, when that is forbidden. */
static void load_early(void)
{
	tzset();
	/* Used by pthread_cancel, with which libfuse ends its threads; it stays
	 * loaded. */
	if (!dlopen("libgcc_s.so.1", RTLD_NOW))
		log_print(LOG_INFO, "sandbox: no libgcc_s.so.1");
}

bool sandbox_enter(const struct sandbox_options *o)
{
	load_early();
	for (size_t i = 0; i < PARTS; i++)
		if ((parts[i].always || SANDBOX_WHOLE) && !enter_part(&parts[i], o))
			return false;
	return true;
}

const char *const *sandbox_parts(void)
{
	return on;
}
