/* SPDX-License-Identifier: MIT */
#include "lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "packer/cli/report.h"

/* Milliseconds between two looks, and the looks after which a wait is reported, or ended. */
enum { LOOK_MS = 250, LOOKS_QUIET = 8, LOOKS_LIMIT = 80 };

/* --- runs of root's ------------------------------------------------------------------ */

/* The last component of what PROCESS of /proc runs; false: it is not known. */
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

/* Whether a line of the description says: "lock: 1: FLOCK ADVISORY WRITE PID DEVICE:INODE". */
static bool has_lock(FILE *description, ino_t inode)
{
	char line[512], number[32];

	snprintf(number, sizeof(number), ":%" PRIuMAX " ", (uintmax_t)inode);
	while (fgets(line, sizeof(line), description))
		if (strncmp(line, "lock:", 5) == 0 && strstr(line, " FLOCK ") &&
		    strstr(line, number))
			return true;
	return false;
}

/* Whether one of the process's descriptors has the file locked. */
static bool locks_file(int process, ino_t inode)
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

		found = description && has_lock(description, inode);
		if (description)
			fclose(description);
	}
	closedir(dir);
	return found;
}

/* Whether a process of root's that runs this program has the file locked. */
static bool is_locked_by_root(ino_t inode)
{
	DIR *processes = opendir("/proc");
	char own[PATH_MAX] = "", program[PATH_MAX];
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
		found = program_of(process, program) && strcmp(program, own) == 0 &&
			is_of_root(process) && locks_file(process, inode);
		close(process);
	}
	if (self >= 0)
		close(self);
	if (processes)
		closedir(processes);
	return found;
}

/* --- waiting ------------------------------------------------------------------------- */

/* 0, or errno; EWOULDBLOCK: somebody else has it locked. */
static int try_lock(int fd)
{
	while (flock(fd, LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

kpack_error_t lock_wait(int fd, const char *path, bool *locked, struct kpackx_error *why)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	unsigned looks = 0, unknown = 0;
	struct stat st;
	int error;

	while ((error = try_lock(fd)) == EWOULDBLOCK) {
		if (looks++ == LOOKS_QUIET)
			report_error(path,
				     "note: another process has locked it: waiting");
		/* a lock that was just given back belongs to nobody */
		if (geteuid() == 0 && fstat(fd, &st) == 0 &&
		    !is_locked_by_root(st.st_ino) && ++unknown == LOOKS_LIMIT)
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "%s: a process that is no run of root's on this "
				       "machine has it locked: wait for it or end it; "
				       "lslocks(8) finds it",
				       path);
		nanosleep(&pause, NULL);
	}
	if (locked)
		*locked = error == 0;
	return KPACK_SUCCESS;
}
