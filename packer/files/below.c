/* SPDX-License-Identifier: MIT */
/*
 * The calls of the system and of core that take paths, for what a path leads to as resolve.c
 * finds it: the descriptor of a directory, and one name in it, which the system's ..at() calls
 * take.  So nothing that other users do to directories on the way changes what a call is for.  The
 * name itself can change hands at any time: what is opened is looked at by its descriptor.  A link is
 * followed only by the calls that say so.
 */
#include "below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/writer/writer.h"
#include "packer/cli/xalloc.h"
#include "resolve.h"

/* --- calls --------------------------------------------------------------------------- */

/* Return CALL, which uses AT, for the place of PATH. */
#define AT_PLACE(path, call)                                                             \
	do {                                                                             \
		struct spot at;                                                          \
		int status_;                                                             \
		if (resolve_spot(path, SPOT_ITSELF, &at) < 0)                            \
			return -1;                                                       \
		status_ = (int)(call);                                                   \
		spot_close(&at);                                                         \
		return status_;                                                          \
	} while (0)

int below_lstat(const char *path, struct stat *st)
{
	AT_PLACE(path, fstatat(at.dir, at.name, st, AT_SYMLINK_NOFOLLOW));
}

int below_access(const char *path, int mode)
{
	int fd = below_open(path, O_PATH, 0), status;
	char proc[KP_FD_NAME_SIZE];

	if (fd < 0)
		return -1;
	/* not faccessat2, which kernels before 5.8 lack: without it EROFS is not seen */
	status = faccessat(AT_FDCWD, kp_fd_name(fd, proc), mode, AT_EACCESS);
	kp_close_keeping_errno(fd);
	return status;
}

ssize_t below_readlink(const char *path, char *buf, size_t size)
{
	AT_PLACE(path, readlinkat(at.dir, at.name, buf, size));
}

int below_mkdir(const char *path, mode_t mode)
{
	AT_PLACE(path, mkdirat(at.dir, at.name, mode));
}

int below_unlink(const char *path)
{
	AT_PLACE(path, unlinkat(at.dir, at.name, 0));
}

int below_rename(const char *from, const char *to, unsigned flags)
{
	struct spot a, b;
	int status;

	if (resolve_spot(from, SPOT_OF_NAME, &a) < 0)
		return -1;
	if (resolve_spot(to, SPOT_OF_NAME, &b) < 0) {
		spot_close(&a);
		return -1;
	}
	/* a kernel or file system that lacks the flags still has the call without them */
	status = flags ? renameat2(a.dir, a.name, b.dir, b.name, flags)
		       : renameat(a.dir, a.name, b.dir, b.name);
	spot_close(&a);
	spot_close(&b);
	return status;
}

int below_chmod(const char *path, mode_t mode)
{
	int fd = below_open(path, O_PATH, 0), status = -1;
	char proc[KP_FD_NAME_SIZE];
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		errno = ELOOP;
	else
		status = chmod(kp_fd_name(fd, proc), mode); /* fchmod refuses O_PATH */
	kp_close_keeping_errno(fd);
	return status;
}

/* --- following, for reading ------------------------------------------------------------ */

/* Find PATH and follow links: those that stay in a root, and as an operand's. */
static int open_following(const char *path, int flags)
{
	const char *rest = NULL;
	int root = resolve_root(path, false, &rest), fd;
	const struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	struct spot at;

	if (root >= 0) {
		fd = (int)syscall(SYS_openat2, root, *rest ? rest : ".", &how,
				  sizeof(how));
		if (fd >= 0 || (errno != EXDEV && errno != EAGAIN && errno != ELOOP &&
				errno != ENAMETOOLONG))
			return fd;
		/* it leads out of the root or into /proc, or is longer than the kernel takes */
	}
	if (resolve_spot(path, SPOT_FOLLOWED, &at) < 0)
		return -1;
	fd = openat(at.dir, at.name, flags | (at.magic ? 0 : O_NOFOLLOW));
	spot_close(&at);
	return fd;
}

int below_open_following(const char *path, int flags)
{
	/* openat2 refuses what O_PATH ignores */
	return open_following(path, flags | O_CLOEXEC |
					    (flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK));
}

int below_stat(const char *path, struct stat *st)
{
	int fd = open_following(path, O_PATH | O_CLOEXEC);
	int status = fd < 0 ? -1 : fstat(fd, st);

	kp_close_keeping_errno(fd);
	return status;
}

char *below_real(const char *path)
{
	int fd = open_following(path, O_PATH | O_CLOEXEC);
	char proc[KP_FD_NAME_SIZE], text[PATH_MAX];
	ssize_t size;

	if (fd < 0)
		return NULL;
	/* the kernel's own path of what is open: no second walk, which could lead elsewhere */
	size = readlink(kp_fd_name(fd, proc), text, sizeof(text));
	kp_close_keeping_errno(fd);
	if (size < 0 || size == sizeof(text)) {
		errno = size < 0 ? errno : ENAMETOOLONG;
		return NULL;
	}
	return xstrndup(text, (size_t)size);
}

/* --- directories ----------------------------------------------------------------------- */

DIR *below_opendir(const char *path)
{
	int fd = below_open_following(path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		kp_close_keeping_errno(fd);
	return dir;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int below_scandir(const char *path, struct dirent ***names,
		  int (*select)(const struct dirent *))
{
	int fd = below_open_following(path, O_RDONLY | O_DIRECTORY), n;

	if (fd < 0)
		return -1;
	n = scandirat(fd, ".", names, select, by_bytes);
	kp_close_keeping_errno(fd);
	return n;
}

kpack_error_t below_fail(struct kpackx_error *why, const char *fmt, ...)
{
	const int error = errno;
	char what[2 * PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (error != ELOOP)
		return kp_fail_errno(why, error, "%s", what);
	return kp_fail(
		why, KPACK_ERROR_IO_ERROR,
		geteuid() == 0
			? "%s: it, or a directory on its way, is a symbolic link that "
			  "is not followed, because another user may have put it there"
			: "%s: it, or a directory on its way, is a symbolic link, "
			  "which is not followed here",
		what);
}

/* --- what core opens ------------------------------------------------------------------- */

/* *FD becomes OPENED, a new descriptor or -1, if it is a regular file. */
static kpack_error_t take_regular(int opened, int *fd, struct stat *st,
				  struct kpackx_error *why)
{
	kpack_error_t err;

	if (opened < 0)
		return below_fail(why, "cannot open");
	err = kp_file_check(opened, st, why);
	if (err)
		close(opened);
	else
		*fd = opened;
	return err;
}

/*
 * Open the regular file PATH, FOLLOWing links or not, but not even for a moment a FIFO or a
 * device: it is found with O_PATH, and opened by that descriptor.
 */
static kpack_error_t open_regular(const char *path, bool follow, int *fd, struct stat *st,
				  struct kpackx_error *why)
{
	KP_AUTO_CLOSE int found =
		follow ? below_open_following(path, O_PATH) : below_open(path, O_PATH, 0);
	char proc[KP_FD_NAME_SIZE];
	int opened;

	/* O_PATH opens links themselves; the message is that of a link that is not followed */
	if (found >= 0 && fstat(found, st) == 0 && S_ISLNK(st->st_mode)) {
		errno = ELOOP;
		return below_fail(why, "cannot open");
	}
	if (found < 0)
		return below_fail(why, "cannot open");
	KP_TRY(kp_file_check(found, st, why));
	opened = open(kp_fd_name(found, proc),
		      O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	/* without /proc, a device may be opened that just took the file's place */
	if (opened < 0 && errno == ENOENT)
		opened = follow ? below_open_following(path, O_RDONLY)
				: below_open(path, O_RDONLY, 0);
	return take_regular(opened, fd, st, why);
}

kpack_error_t below_file_open(const char *path, int *fd, struct stat *st,
			      struct kpackx_error *why)
{
	return open_regular(path, true, fd, st, why);
}

kpack_error_t below_file_load(const char *path, uint64_t most, const char *what,
			      uint8_t **out, size_t *size, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source file;
	struct stat st;

	*out = NULL;
	KP_TRY(below_file_open(path, &fd, &st, why));
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	*size = (size_t)st.st_size;
	return kp_source_load(&file, most, what, out, why);
}

kpack_error_t below_file_open_nofollow(const char *path, int *fd, struct stat *st,
				       struct kpackx_error *why)
{
	return open_regular(path, false, fd, st, why);
}

kpack_error_t below_file_open_guarded(const char *path, int *fd, struct stat *st,
				      struct kpackx_error *why)
{
	return take_regular(below_open(path, O_RDONLY, 0), fd, st, why);
}

kpack_error_t below_file_open_again(const char *path, const struct file_identity *was,
				    int *fd, struct kpackx_error *why)
{
	struct stat st;

	/* a plan was made from the first look: other bytes would not be what was announced */
	KP_TRY(below_file_open_nofollow(path, fd, &st, why));
	if (file_identity_is(was, &st))
		return KPACK_SUCCESS;
	close(*fd);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile", path);
}

kpack_error_t below_outfile_open(struct kp_outfile *out, const char *path, mode_t mode,
				 struct kpackx_error *why)
{
	struct below_dir dir;
	kpack_error_t err;

	*out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	err = kp_outfile_open_at(out, dir.fd, dir.name, mode, why);
	dir.fd = -1; /* OUT has it now, or has closed it */
	below_dir_close(&dir);
	return err;
}

int below_lstat_at(int dir, const char *name, struct stat *st)
{
	return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
}

kpack_error_t below_outfile_open_in(struct kp_outfile *out, const char *dir,
				    const char *name, mode_t mode,
				    struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", dir, name);

	return below_outfile_open(out, path, mode, why);
}

kpack_error_t below_file_write(const char *path, mode_t mode, struct kp_span bytes,
			       struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;

	KP_TRY(below_outfile_open(&out, path, mode, why));
	err = kp_outfile_pwrite(&out, 0, bytes.data, bytes.size, why);
	if (!err)
		err = kp_outfile_publish(&out, why);
	kp_outfile_close(&out);
	return err;
}

kpack_error_t below_archive_open(const char *path, struct kpack_archive **out,
				 struct kpackx_error *why)
{
	struct stat st;
	int fd = -1;

	KP_TRY(below_file_open(path, &fd, &st, why));
	return kp_archive_open_fd(fd, path, out, why);
}

kpack_error_t below_archives_find(const char *source, char ***paths, size_t *count,
				  struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = open_following(source, O_PATH | O_CLOEXEC);

	return fd < 0 ? below_fail(why, "cannot look at it")
		      : kp_archives_find_at(fd, source, paths, count, why);
}

kpack_error_t below_writer_open(const char *dir, const char *name,
				const struct kp_writer_options *options,
				struct kp_writer **out, struct kpackx_error *why)
{
	int fd = below_open_following(dir, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot open the directory"),
				      "%s", dir);
	return kp_writer_open_at(fd, name, options, out, why);
}
