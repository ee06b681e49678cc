/* SPDX-License-Identifier: MIT */
#include "path_step.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "mountinfo.h"

/* --- descriptors --------------------------------------------------------------------- */

void kp_close_keeping_errno(int fd)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
}

const char *kp_fd_name(int fd, char out[KP_FD_NAME_SIZE])
{
	snprintf(out, KP_FD_NAME_SIZE, "/proc/self/fd/%d", fd);
	return out;
}

/* --- whether it matters -------------------------------------------------------------- */

/* Whether all users of the system have numbers here: this is no user namespace. */
static bool has_all_users;

static void look_for_users(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, count;

	if (!map)
		return;
	/* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
	has_all_users = fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
			count == UINT32_MAX;
	fclose(map);
}

/* --- mounts -------------------------------------------------------------------------- */

/* The ID of the mount that FD is in, or -1. */
static long mount_of(int fd)
{
	return kp_fd_info(fd, "mnt_id:");
}

/*
 * The mount of the root directory, on which this program relies anyway.  It may be one that
 * cannot be seen from it: after chroot.
 */
static bool is_mount_of_root(long id)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool same = fd >= 0 && mount_of(fd) == id;

	kp_close_keeping_errno(fd);
	return same;
}

/*
 * Whether the mount of FD is another user's.  One that is not listed is gone, as a user can
 * do with that user's own at any time, while FD still leads into it.
 */
static bool is_in_others(int fd)
{
	long id = mount_of(fd);
	struct kp_mounts mounts;
	struct kp_mount m = {.id = -1};
	bool others = true;
	uid_t user;

	if (!kp_mounts_open(&mounts))
		return false;
	while (m.id != id && kp_mounts_next(&mounts, &m))
		if (m.id == id)
			others = kp_mount_fuse_user(&m, &user) && user != 0;
	kp_mounts_close(&mounts);
	return others && !is_mount_of_root(id);
}

/*
 * The devices that were found to be nobody else's.  Each is kept open, because the number
 * of one that is unmounted is given to the next; the first ones, PERMANENT, need not.
 */
enum { KNOWN_MAX = 64 };
static struct {
	pthread_mutex_t lock; /* guards everything below */
	dev_t items[KNOWN_MAX];
	int fds[KNOWN_MAX];
	size_t count, permanent;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_known(dev_t dev)
{
	bool found = false;

	pthread_mutex_lock(&known.lock);
	for (size_t i = 0; i < known.count && !found; i++)
		found = known.items[i] == dev;
	pthread_mutex_unlock(&known.lock);
	return found;
}

static void add_known(int fd, dev_t dev)
{
	int kept;

	pthread_mutex_lock(&known.lock);
	kept = known.count < KNOWN_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (kept >= 0) {
		known.fds[known.count] = kept;
		known.items[known.count++] = dev;
	}
	pthread_mutex_unlock(&known.lock);
}

/* Find the device that FD is on, and nothing else: no server is asked. */
static bool find_device(int fd, dev_t *dev)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0, &st) <
	    0)
		return false;
	*dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	return true;
}

/*
 * Pipes and files in memory, which /dev/stdin and /dev/fd may lead to, are in mounts of the
 * kernel's own, which no list has.  They stay as long as the system runs.
 */
static void add_kernel_devices(void)
{
	int fds[3] = {-1, -1, memfd_create("kpack", MFD_CLOEXEC)};
	dev_t dev;

	if (pipe2(fds, O_CLOEXEC) < 0)
		fds[0] = fds[1] = -1;
	for (int i = 0; i < 3; i++) {
		if (fds[i] < 0)
			continue;
		if (i && find_device(fds[i], &dev))
			known.items[known.permanent++] = dev;
		close(fds[i]);
	}
	known.count = known.permanent;
}

bool kp_step_is_guarded(void)
{
	static pthread_once_t users = PTHREAD_ONCE_INIT, devices = PTHREAD_ONCE_INIT;

	if (geteuid() != 0)
		return false;
	pthread_once(&users, look_for_users);
	if (has_all_users)
		pthread_once(&devices, add_kernel_devices);
	return has_all_users;
}

int kp_step_check(int fd)
{
	bool have_device;
	dev_t dev = 0;

	if (!kp_step_is_guarded())
		return 0;
	have_device = find_device(fd, &dev);
	/* users mount no disks, and FUSE without a disk has the major number 0 */
	if (have_device && (major(dev) != 0 || is_known(dev)))
		return 0;
	if (is_in_others(fd)) {
		errno = EREMOTE;
		return -1;
	}
	if (have_device)
		add_known(fd, dev);
	return 0;
}

/* --- steps --------------------------------------------------------------------------- */

/* Open NAME with O_PATH, and check it. */
static int find_file(int dir, const char *name, int flags)
{
	int fd = openat(dir, name,
			O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY)));

	if (fd >= 0 && kp_step_check(fd) < 0) {
		kp_close_keeping_errno(fd);
		return -1;
	}
	return fd;
}

int kp_step_reopen(int found, int flags, mode_t mode)
{
	char proc[KP_FD_NAME_SIZE];
	struct stat st;

	if (fstat(found, &st) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return openat(found, ".", (flags & ~O_NOFOLLOW) | O_CLOEXEC, mode);
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return -1;
	}
	return open(kp_fd_name(found, proc),
		    (flags & ~(O_NOFOLLOW | O_CREAT)) | O_CLOEXEC);
}

/* In two steps, because NAME is in another mount, or the kernel has no openat2. */
static int open_in_steps(int dir, const char *name, int flags, mode_t mode)
{
	int found, fd;

	for (;;) {
		found = find_file(dir, name, flags);
		if (found >= 0 || errno != ENOENT || !(flags & O_CREAT))
			break;
		/* a file that another process has made meanwhile is not opened */
		fd = openat(dir, name, flags | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	if (found < 0)
		return -1;
	fd = kp_step_reopen(found, flags, mode);
	kp_close_keeping_errno(found);
	return fd;
}

int kp_step_within(int dir, const char *path, int flags, mode_t mode, bool *step)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_NO_XDEV,
	};
	int fd;

	do
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	*step = fd < 0 && (errno == EXDEV || errno == ENOSYS || errno == EPERM);
	return fd;
}

int kp_step_openat(int dir, const char *name, int flags, mode_t mode)
{
	bool step;
	int fd;

	/* a new file, or none */
	if (!kp_step_is_guarded() || (flags & O_CREAT && flags & O_EXCL))
		return openat(dir, name, flags | O_CLOEXEC, mode);
	if (flags & O_PATH)
		return find_file(dir, name, flags);
	fd = kp_step_within(dir, name, flags, mode, &step);
	return step ? open_in_steps(dir, name, flags, mode) : fd;
}

int kp_step_lstat(int dir, const char *name, struct stat *st)
{
	int fd, status;

	if (!kp_step_is_guarded())
		return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
	fd = find_file(dir, name, O_NOFOLLOW);
	if (fd < 0)
		return -1;
	status = fstat(fd, st);
	kp_close_keeping_errno(fd);
	return status;
}
