/* SPDX-License-Identifier: MIT */
#include "lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "core/base/text.h"
#include "core/base/path_step.h"
#include "packer/cli/report.h"

/* Milliseconds between two looks, and the looks after which a wait is reported, or ended. */
enum { LOOK_MS = 250, LOOKS_QUIET = 8, LOOKS_LIMIT = 80 };

/* --- runs of root's ------------------------------------------------------------------ */

/*
 * The last component of the path of the program that PROCESS of /proc runs; false:
 * unknown.
 */
static bool program_of(int process, char out[PATH_MAX])
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlinkat(process, "exe", path, sizeof(path) - 1);
	const char *slash;

	if (n <= 0)
		return false;
	path[n] = '\0';
	if ((size_t)n > strlen(gone) && strcmp(path + n - strlen(gone), gone) == 0)
		path[n - (ssize_t)strlen(gone)] = '\0';
	slash = strrchr(path, '/');
	strcpy(out, slash ? slash + 1 : path);
	return true;
}

static FILE *open_text(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* Whether root has started it: the caller of a set-user-ID program is its real user. */
static bool is_of_root(int process)
{
	FILE *status = open_text(process, "status");
	unsigned real = 1, effective = 1;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			break;
	if (status)
		fclose(status);
	return real == 0 && effective == 0;
}

/*
 * Whether LIST, of a descriptor or of all processes, has a lock on FILE:
 * "[lock:] 1: FLOCK ADVISORY WRITE PID DEVICE:INODE".
 */
static bool has_lock(FILE *list, const char *file)
{
	char line[512];

	while (fgets(line, sizeof(line), list))
		if (strstr(line, ": FLOCK ") && strstr(line, file))
			return true;
	return false;
}

/* Whether one of the process's descriptors has the file locked. */
static bool locks_file(int process, const char *file)
{
	int fd = openat(process, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	bool found = false;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (e = readdir(dir))) {
		FILE *description =
			*e->d_name == '.' ? NULL : open_text(dirfd(dir), e->d_name);

		found = description && has_lock(description, file);
		if (description)
			fclose(description);
	}
	closedir(dir);
	return found;
}

/* The process that has the lock. */
enum holder_kind {
	RUN_OF_ROOT, /* a process of root's that runs this program */
	ROOT,
	ANY_USER,
};

struct holder {
	long pid;
	char name[64]; /* escaped */
};

static bool is_of_kind(int process, enum holder_kind kind, const char *own)
{
	char program[PATH_MAX];

	if (kind == ANY_USER)
		return true;
	return (kind == ROOT ||
		(program_of(process, program) && strcmp(program, own) == 0)) &&
	       is_of_root(process);
}

/* Fill in OUT for PROCESS, whose name is that of its script, if it runs one. */
static void name_holder(int process, struct holder *out)
{
	FILE *file = open_text(process, "comm");
	char name[16];
	size_t n = file ? fread(name, 1, sizeof(name), file) : 0;

	if (n && name[n - 1] == '\n')
		n--;
	kp_text_escape((struct kp_span){(const uint8_t *)name, n}, out->name,
		       sizeof(out->name));
	if (file)
		fclose(file);
}

/* Whether A and B are directories of one process. */
static bool is_same_process(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino;
}

/*
 * Find another process that has FILE locked.  This one has inherited the lock if its caller
 * holds it, as flock(1) does, and would wait for itself.
 */
static bool find_holder(const char *file, enum holder_kind kind, struct holder *out)
{
	DIR *processes = opendir("/proc");
	char own[PATH_MAX] = "";
	const struct dirent *e;
	bool found = false;
	int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (processes && self >= 0 && program_of(self, own) && !found &&
	       (e = readdir(processes))) {
		int process = *e->d_name < '1' || *e->d_name > '9'
				      ? -1
				      : openat(dirfd(processes), e->d_name,
					       O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (process < 0)
			continue;
		found = !is_same_process(process, self) &&
			is_of_kind(process, kind, own) && locks_file(process, file);
		if (found) {
			out->pid = strtol(e->d_name, NULL, 10);
			name_holder(process, out);
		}
		close(process);
	}
	if (self >= 0)
		close(self);
	if (processes)
		closedir(processes);
	return found;
}

/* --- locks that only root can take ---------------------------------------------------- */

/*
 * A file that no other user can open: a byte of it is locked for each directory, besides
 * the directory itself.  -1: there is none.
 */
#define GUARD_FILE "/run/kpack.lock"
static int guard = -1;

static void open_guard(void)
{
	struct stat st;

	if (!kp_step_is_guarded())
		return;
	guard = open(GUARD_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		     0600);
	if (guard >= 0 && (fstat(guard, &st) < 0 || !S_ISREG(st.st_mode) ||
			   st.st_uid != 0 || (st.st_mode & (S_IRWXG | S_IRWXO)))) {
		close(guard);
		guard = -1;
	}
}

/* Lock (F_WRLCK) or unlock (F_UNLCK) the byte for the directory ST; 0, or errno. */
static int set_guard(const struct stat *st, short type)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	/* directories of one file system have different bytes */
	uint64_t place = (uint64_t)st->st_dev * 0x9e3779b97f4a7c15 + st->st_ino;
	struct flock byte = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(place & (INT64_MAX >> 1)),
		.l_len = 1,
	};

	pthread_once(&once, open_guard);
	if (guard < 0)
		return ENOLCK;
	while (fcntl(guard, F_OFD_SETLK, &byte) < 0)
		if (errno != EINTR)
			return errno == EACCES ? EWOULDBLOCK : errno;
	return 0;
}

/* The file ST as the kernel's lists of locks name it, if they have the same device. */
struct lock_name {
	char text[64];
};
static struct lock_name lock_name(const struct stat *st)
{
	struct lock_name name;

	snprintf(name.text, sizeof(name.text), " %02x:%02x:%" PRIuMAX " ",
		 major(st->st_dev), minor(st->st_dev), (uintmax_t)st->st_ino);
	return name;
}

/*
 * Whether a process that this one can see has locked FILE.  The kernel's list leaves out
 * processes of containers around this one, and of other machines.
 */
static bool is_locked_here(const char *file)
{
	FILE *locks = fopen("/proc/locks", "re");
	bool found = locks && has_lock(locks, file);

	if (locks)
		fclose(locks);
	return found;
}

/* Whether only root can write into the directory ST: no other user's run can be in it. */
static bool is_roots_alone(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* --- waiting ------------------------------------------------------------------------- */

/*
 * 0, or errno; EWOULDBLOCK: another process has it locked, with *ROOTS a run of root's.
 * Where only root can write, the lock of another user's process is passed over: that process
 * is no run, and the guard keeps runs of root's apart.
 */
static int try_lock(int fd, const struct stat *st, bool *roots)
{
	int guarded = set_guard(st, F_WRLCK), error = 0;
	struct lock_name name;
	struct holder holder;
	char inode[64];

	*roots = guarded == EWOULDBLOCK;
	if (*roots)
		return EWOULDBLOCK;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0 && (error = errno) == EINTR)
		error = 0;
	if (error != EWOULDBLOCK || geteuid() != 0)
		return error;
	/* some file systems have another device in these lists than in ST */
	snprintf(inode, sizeof(inode), ":%" PRIuMAX " ", (uintmax_t)st->st_ino);
	*roots = find_holder(inode, RUN_OF_ROOT, &holder);
	if (*roots || guarded != 0 || !is_roots_alone(st))
		return EWOULDBLOCK;
	name = lock_name(st);
	return is_locked_here(name.text) && !find_holder(name.text, ROOT, &holder)
		       ? 0
		       : EWOULDBLOCK;
}

static kpack_error_t fail_locked(const struct stat *st, const char *path,
				 struct kpackx_error *why)
{
	struct holder holder;

	if (find_holder(lock_name(st).text, ANY_USER, &holder))
		return kp_fail(
			why, KPACK_ERROR_IO_ERROR,
			"%s: process %ld (%s) has it locked: wait for it or end it", path,
			holder.pid, holder.name);
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "%s: a process that is no run of root's on this machine has it "
		       "locked: wait for it or end it; lslocks(8) finds it",
		       path);
}

kpack_error_t lock_wait(int fd, const char *path, bool *locked, struct kpackx_error *why)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	unsigned looks = 0, unknown = 0;
	struct stat st;
	bool roots;
	int error;

	if (fstat(fd, &st) < 0)
		return kp_fail_errno(why, errno, "%s: cannot stat", path);
	while ((error = try_lock(fd, &st, &roots)) == EWOULDBLOCK) {
		if (looks++ == LOOKS_QUIET)
			report_error(path,
				     "note: another process has locked it: waiting");
		/* a lock that was just given back belongs to nobody */
		if (geteuid() == 0 && !roots && ++unknown == LOOKS_LIMIT) {
			set_guard(&st, F_UNLCK);
			return fail_locked(&st, path, why);
		}
		nanosleep(&pause, NULL);
	}
	if (locked)
		*locked = error == 0;
	return KPACK_SUCCESS;
}

void lock_close(int fd)
{
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0)
		set_guard(&st, F_UNLCK);
	flock(fd, LOCK_UN); /* a duplicate of the descriptor may stay open */
	close(fd);
}
