/* SPDX-License-Identifier: MIT */
/*
 * Four parts, each of which works without the others, because kernels and containers lack
 * some: no capabilities, no new privileges, Landlock, and a filter of system calls.  A
 * part that the kernel does not have is left out with a message; one that fails otherwise
 * ends the server.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "log.h"
#include "sandbox.h"

/* --- Landlock: puts files, networks and other processes out of reach ------------------ */

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

/*
 * Forbid this thread, and threads it starts later, to open or change any file but DEVICE
 * (NULL: none), and, as far as the kernel can, to use TCP and to reach other processes by
 * signals and abstract sockets.  Open files stay usable.  no_new_privs must be set.  0,
 * or an errno: ENOSYS or EOPNOTSUPP if the kernel has no Landlock.
 */
static int enter_landlock(const char *device)
{
	long version = syscall(CREATE_RULESET, NULL, 0, QUERY_VERSION);
	const struct rules *r;
	struct path_rule rule;
	int ruleset, error = 0;

	if (version <= 0)
		return version ? errno : ENOSYS;
	r = &all_rules[version > VERSIONS ? VERSIONS : version];
	/* The same size suits all kernels: fields that an older one does not know are
	 * 0. */
	ruleset = (int)syscall(CREATE_RULESET, r, sizeof(*r), 0);
	if (ruleset < 0)
		return errno;
	rule = (struct path_rule){
		.allowed_access = r->files & (READ_FILE | WRITE_FILE | IOCTL_DEV),
		.parent_fd = device ? open(device, O_PATH | O_CLOEXEC) : -1,
	};
	/* If the mount was made by a descriptor, there may be no device: then no thread
	 * will open it either. */
	if ((rule.parent_fd >= 0 && syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0)) ||
	    syscall(RESTRICT_SELF, ruleset, 0))
		error = errno;
	if (rule.parent_fd >= 0)
		close(rule.parent_fd);
	close(ruleset);
	return error;
}

/* --- seccomp: allows only the system calls that a server needs ------------------------ */

#if KP_WITH_SECCOMP
#include <seccomp.h>

/*
 * Refused calls return EPERM and do not kill the process: a newer libc may make other
 * calls than the present one, and the mount must survive that.
 */
#define REFUSE SCMP_ACT_ERRNO(EPERM)

/*
 * Calls that an older libseccomp, or older headers of the kernel, do not know; their
 * numbers are the same everywhere.
 */
enum {
	EPOLL_PWAIT2_CALL = 441,
	MOUNT_SETATTR_CALL = 442,
	FUTEX_WAITV_CALL = 449,
	FUTEX_WAKE_CALL = 454,
	FUTEX_REQUEUE_CALL = 456,
};

/* Calls that reach only open files and this process. */
static const int allowed[] = {
	/* archives, /dev/fuse, the log */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv),
	SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(close), SCMP_SYS(fstat),
	SCMP_SYS(fstat64), SCMP_SYS(fgetxattr), SCMP_SYS(lseek), SCMP_SYS(_llseek),
	SCMP_SYS(fadvise64), SCMP_SYS(fadvise64_64), SCMP_SYS(dup), SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	/* the supervisor, syslog */
	SCMP_SYS(recvmsg), SCMP_SYS(recvfrom), SCMP_SYS(recv), SCMP_SYS(sendmsg),
	SCMP_SYS(sendto), SCMP_SYS(send), SCMP_SYS(connect), SCMP_SYS(shutdown),
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(select),
	SCMP_SYS(_newselect), SCMP_SYS(pselect6), SCMP_SYS(pselect6_time64),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait), EPOLL_PWAIT2_CALL, SCMP_SYS(eventfd2), SCMP_SYS(pipe2),
	SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_settime64),
	SCMP_SYS(timerfd_gettime), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(restart_syscall),
	/* threads */
	SCMP_SYS(futex), SCMP_SYS(futex_time64), FUTEX_WAITV_CALL,
	SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(set_tid_address),
	SCMP_SYS(membarrier), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
	SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(exit), SCMP_SYS(exit_group),
	/* memory */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
	/* signals */
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigsuspend), SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigtimedwait_time64), SCMP_SYS(sigreturn), SCMP_SYS(sigaltstack),
	SCMP_SYS(signalfd4),
	/* queries */
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64), SCMP_SYS(clock_getres),
	SCMP_SYS(clock_getres_time64), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(times), SCMP_SYS(getrandom), SCMP_SYS(getrusage), SCMP_SYS(getrlimit),
	SCMP_SYS(ugetrlimit), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getpid),
	SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(getuid32), SCMP_SYS(geteuid),
	SCMP_SYS(geteuid32), SCMP_SYS(getgid), SCMP_SYS(getgid32), SCMP_SYS(getegid),
	SCMP_SYS(getegid32)};

/*
 * The calls that libfuse makes for rings: each processor has one, with a thread and
 * memory near it.  Landlock applies to requests through rings, too.
 */
static const int ring_calls[] = {
	/* rings */
	SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register),
	/* placement of threads and memory */
	SCMP_SYS(sched_setaffinity), SCMP_SYS(mbind), SCMP_SYS(get_mempolicy),
	SCMP_SYS(set_mempolicy)};

/* Calls that no library makes on its own: only an attacker makes them, so they kill. */
static const int fatal[] = {
	/* programs and processes */
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd),
	/* the kernel */
	SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd),
	SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot),
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
	SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(add_key), SCMP_SYS(keyctl),
	SCMP_SYS(request_key),
	/* mounts and namespaces */
	SCMP_SYS(mount), SCMP_SYS(move_mount), SCMP_SYS(open_tree), MOUNT_SETATTR_CALL,
	SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
	SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(unshare), SCMP_SYS(setns),
	SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(open_by_handle_at)};

/*
 * These calls return ENOSYS.  clone3 does because its flags are in memory, which filters
 * do not see; libc then uses clone.  Calls that are newer than the lists here do because
 * a newer libc tries them, and falls back to older calls on kernels without them.
 */
enum { FIRST_UNKNOWN = 470, LAST_UNKNOWN = 511 };

/* A call that is allowed if its argument N has VALUE in the bits of MASK. */
struct rule {
	int call;
	struct {
		unsigned n;
		uint64_t mask, value;
	} arguments[2];
	unsigned count;
};

/* The mask of an int argument: the upper half of its register is undefined. */
#define INT UINT32_MAX

#define NEW_NAMESPACES                                                                   \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |      \
	 CLONE_NEWNET | CLONE_NEWCGROUP)

#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

/* FUSE_DEV_IOC_CLONE of <linux/fuse.h>: makes another descriptor of a mount. */
#define CLONE_DEVICE _IOR(229, 0, uint32_t)

static const struct rule conditional[] = {
	/* no new code */
	{SCMP_SYS(mmap), {{2, PROT_EXEC, 0}}, 1},
	{SCMP_SYS(mmap2), {{2, PROT_EXEC, 0}}, 1},
	{SCMP_SYS(mprotect), {{2, PROT_EXEC, 0}}, 1},
	/* threads, but no processes */
	{SCMP_SYS(clone),
	 {{CLONE_FLAGS, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD}},
	 1},
	/* open files, but no paths */
	{SCMP_SYS(newfstatat), {{3, AT_EMPTY_PATH, AT_EMPTY_PATH}}, 1},
	{SCMP_SYS(fstatat64), {{3, AT_EMPTY_PATH, AT_EMPTY_PATH}}, 1},
	{SCMP_SYS(statx), {{2, AT_EMPTY_PATH, AT_EMPTY_PATH}}, 1},
	{SCMP_SYS(fcntl), {{1, INT, F_GETFD}}, 1},
	{SCMP_SYS(fcntl), {{1, INT, F_SETFD}}, 1},
	{SCMP_SYS(fcntl), {{1, INT, F_GETFL}}, 1},
	{SCMP_SYS(fcntl), {{1, INT, F_SETFL}}, 1},
	{SCMP_SYS(fcntl), {{1, INT, F_DUPFD_CLOEXEC}}, 1},
	{SCMP_SYS(fcntl64), {{1, INT, F_GETFL}}, 1},
	{SCMP_SYS(fcntl64), {{1, INT, F_SETFL}}, 1},
	/* sockets for syslog; no stream sockets, which reach services that obey root */
	{SCMP_SYS(socket),
	 {{0, INT, AF_UNIX}, {1, INT & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), SOCK_DGRAM}},
	 2},
	{SCMP_SYS(prctl), {{0, INT, PR_SET_NAME}}, 1},
	{SCMP_SYS(prlimit64), {{0, INT, 0}, {2, UINT64_MAX, 0}}, 2},
};

static const struct rule device_rules[] = {
	/* Landlock decides which file. */
	{SCMP_SYS(openat), {{2, INT & ~O_LARGEFILE, O_RDWR | O_CLOEXEC}}, 1},
	{SCMP_SYS(open), {{1, INT & ~O_LARGEFILE, O_RDWR | O_CLOEXEC}}, 1},
	{SCMP_SYS(ioctl), {{1, INT, CLONE_DEVICE}}, 1},
};

static int add_calls(scmp_filter_ctx ctx, uint32_t action, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = seccomp_rule_add_array(ctx, action, calls[i], 0, NULL);
	return r;
}

static int add_range(scmp_filter_ctx ctx, uint32_t action, int first, int last)
{
	int r = 0;

	for (int call = first; call <= last && r == 0; call++)
		r = seccomp_rule_add_array(ctx, action, call, 0, NULL);
	return r;
}

static int add_rules(scmp_filter_ctx ctx, const struct rule *rules, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct scmp_arg_cmp args[2];

		for (unsigned k = 0; k < rules[i].count; k++)
			args[k] = (struct scmp_arg_cmp){
				.arg = rules[i].arguments[k].n,
				.op = SCMP_CMP_MASKED_EQ,
				.datum_a = rules[i].arguments[k].mask,
				.datum_b = rules[i].arguments[k].value,
			};
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, rules[i].call,
					   rules[i].count, args);
	}
	return r;
}

/*
 * Forbid this thread, and threads it starts later, all other system calls.  OPEN_DEVICE:
 * /dev/fuse may be opened.  RINGS: io_uring may be used, whose requests no filter sees.
 * no_new_privs must be set.  0, or an errno: ENOSYS if this build has no filter, EINVAL
 * if the kernel has none.
 *
 * Only seccomp_load returns an error of the kernel; any error before it is reported as
 * ENOMEM.
 *
 * Older kernels assume that a process with a filter runs untrusted code, and protect it
 * by disabling speculative store bypass, which slows decoding down.  No untrusted code
 * runs here, so SCMP_FLTATR_CTL_SSB is set.  Where that fails, decoding is just slower.
 */
static int load_syscall_filter(bool open_device, bool rings)
{
	const uint64_t self = (uint64_t)getpid();
	/* abort and pthread_cancel send signals to this process */
	const struct rule signals[] = {
		{SCMP_SYS(tgkill), {{0, INT, self}}, 1},
		{SCMP_SYS(kill), {{0, INT, self}}, 1},
	};
	const int clone3_call = SCMP_SYS(clone3);
	const uint32_t absent = SCMP_ACT_ERRNO(ENOSYS);
	scmp_filter_ctx ctx = seccomp_init(REFUSE);
	int r = -ENOMEM;

	if (!ctx)
		return ENOMEM;
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	if (add_calls(ctx, SCMP_ACT_ALLOW, allowed, KP_COUNT(allowed)) == 0 &&
	    add_range(ctx, SCMP_ACT_ALLOW, FUTEX_WAKE_CALL, FUTEX_REQUEUE_CALL) == 0 &&
	    add_rules(ctx, conditional, KP_COUNT(conditional)) == 0 &&
	    add_rules(ctx, signals, KP_COUNT(signals)) == 0 &&
	    add_rules(ctx, device_rules, open_device ? KP_COUNT(device_rules) : 0) == 0 &&
	    add_calls(ctx, SCMP_ACT_ALLOW, ring_calls,
		      rings ? KP_COUNT(ring_calls) : 0) == 0 &&
	    add_calls(ctx, absent, &clone3_call, 1) == 0 &&
	    add_range(ctx, absent, FIRST_UNKNOWN, LAST_UNKNOWN) == 0 &&
	    add_calls(ctx, SCMP_ACT_KILL_PROCESS, fatal, KP_COUNT(fatal)) == 0 &&
	    seccomp_attr_set(ctx, SCMP_FLTATR_API_SYSRAWRC, 1) == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return -r;
}

#else

static int load_syscall_filter(bool open_device, bool rings)
{
	(void)open_device;
	(void)rings;
	return ENOSYS;
}

#endif

/* --- the sandbox ---------------------------------------------------------------------- */

static const char *on[5]; /* the parts that are in force, then NULL */

/*
 * Drop the capabilities of all sets.  The bounding set goes first, because dropping from
 * it takes a capability; a user other than root has none to drop, and no_new_privs keeps
 * it so.  0, or an errno.
 *
 * The process stays dumpable: its memory holds only the contents of files that its user
 * can read, and a core dump of a crash is worth having.
 */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EPERM)
			return errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return errno;
	return syscall(SYS_capset, &header, none) ? errno : 0;
}

/*
 * Note that the part NAME is in force, or which ERROR it has: one that the kernel lacks or
 * forbids to containers, or that was not built in, is left out.  false: another; logged.
 */
static bool has_entered(const char *name, int error)
{
	size_t n = 0;

	if (error == ENOSYS || error == EOPNOTSUPP || error == EINVAL || error == EPERM) {
		log_print(LOG_INFO, "sandbox: no %s: %s", name, strerror(error));
		return true;
	}
	if (error) {
		log_print(LOG_ERR, "sandbox: %s: %s; -o no_sandbox mounts without it",
			  name, strerror(error));
		return false;
	}
	while (on[n])
		n++;
	on[n] = name;
	return true;
}

bool sandbox_enter(const struct sandbox_options *o)
{
	int error;

	/* Load now what libc would open files for later, when that is forbidden:
	 * pthread_cancel, with which libfuse ends its threads, uses a library that stays. */
	tzset();
	if (!dlopen("libgcc_s.so.1", RTLD_NOW))
		log_print(LOG_INFO, "sandbox: no libgcc_s.so.1");
	/* in this order, because the last two are only allowed if no_new_privs is set */
	if (!has_entered("capabilities", drop_capabilities()) ||
	    !has_entered("no_new_privs",
			 prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0))
		return false;
	if (!SANDBOX_WHOLE)
		return true;
	error = enter_landlock(o->clone_fd ? "/dev/fuse" : NULL);
	/* Without Landlock the filter cannot distinguish an open of /dev/fuse from other opens,
	 * and forbids it: then libfuse continues without clone_fd. */
	return has_entered("landlock", error) &&
	       has_entered("seccomp",
			   load_syscall_filter(o->clone_fd && !error, o->io_uring));
}

const char *const *sandbox_parts(void)
{
	return on;
}
