/* SPDX-License-Identifier: MIT */
#include "copy.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "attributes.h"
#include "below.h"
#include "core/base/file.h"
#include "core/base/path_step.h"
#include "packer/cli/xalloc.h"
#include "replace.h"
#include "resolve.h"

#define ACL_DEFAULT "system.posix_acl_default"

/* Most bytes of a list of names, and of one value, that Linux allows. */
#define XATTR_MAX 65536

/* --- regular files ------------------------------------------------------------------- */

/* Find the next run of data at or after *START; false: only a hole is left. */
static bool next_data(int fd, uint64_t size, uint64_t *start, uint64_t *end)
{
	off_t data = lseek(fd, (off_t)*start, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO)
		return false;
	*end = size;
	if (data < 0) /* the file system does not report holes */
		return *start < size;
	*start = (uint64_t)data;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole >= 0 && (uint64_t)hole < size)
		*end = (uint64_t)hole;
	return *start < size;
}

static kpack_error_t copy_bytes(int from, uint64_t size, struct kp_outfile *out,
				struct kpackx_error *why)
{
	uint64_t start = 0, end;

	if (size == 0 || ioctl(out->fd, FICLONE, from) == 0)
		return KPACK_SUCCESS;
	if (ftruncate(out->fd, (off_t)size) < 0)
		return kp_fail_errno(why, errno, "cannot be made that long");
	for (; start < size && next_data(from, size, &start, &end); start = end)
		KP_TRY(kp_outfile_copy(out, start, from, start, end - start, why));
	return KPACK_SUCCESS;
}

/*
 * Copy signatures, which stay valid because the bytes are the same.  If the user may not
 * set them, the copy has none.
 */
static void copy_signatures(int from, int to)
{
	static const char *const names[] = {"security.ima", "security.evm"};
	char value[4096];

	for (int i = 0; i < 2; i++) {
		ssize_t n = fgetxattr(from, names[i], value, sizeof(value));

		if (n > 0)
			fsetxattr(to, names[i], value, (size_t)n, 0);
	}
}

static kpack_error_t fill_copy(int fd, const struct stat *st, struct kp_outfile *out,
			       struct kpackx_error *why)
{
	out->lazy = true;
	KP_TRY(copy_bytes(fd, (uint64_t)st->st_size, out, why));
	KP_TRY(attributes_copy(fd, out->fd, st, why));
	copy_signatures(fd, out->fd);
	return kp_outfile_publish(out, why);
}

/* Copy the file open at FD, with the stat ST, to the path TO. */
static kpack_error_t copy_open_file(int fd, const struct stat *st, const char *to,
				    struct kpackx_error *why)
{
	struct kp_outfile out;
	/* no other user can read it before it has its permissions */
	kpack_error_t err = below_outfile_open(&out, to, 0600, why);

	if (!err)
		err = fill_copy(fd, st, &out, why);
	kp_outfile_close(&out);
	return err;
}

/* WAS may be NULL: any file. */
static kpack_error_t copy_regular(const char *from, const struct file_identity *was,
				  const char *to, struct kpackx_error *why)
{
	kpack_error_t err;
	struct stat st;
	int fd = -1;

	KP_TRY(was && was->guarded ? below_file_open_guarded(from, &fd, &st, why)
				   : below_file_open_nofollow(from, &fd, &st, why));
	if (was && !file_identity_is(was, &st))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			      from);
	else
		err = copy_open_file(fd, &st, to, why);
	close(fd);
	return err;
}

kpack_error_t copy_file(const char *from, const char *to, struct kpackx_error *why)
{
	return copy_regular(from, NULL, to, why);
}

/* --- other kinds of files ------------------------------------------------------------ */

struct node {
	int fd; /* O_PATH */
	struct stat st;
	char target[PATH_MAX]; /* of a link */
};

static int read_target(int fd, char target[PATH_MAX])
{
	ssize_t size = readlinkat(fd, "", target, PATH_MAX - 1);

	if (size < 0)
		return -1;
	target[size] = '\0';
	return 0;
}

static int keep_owner(const struct node *n, int fd)
{
	if (fchownat(fd, "", n->st.st_uid, n->st.st_gid, AT_EMPTY_PATH) == 0 ||
	    errno != EPERM)
		return 0;
	return fchownat(fd, "", (uid_t)-1, n->st.st_gid, AT_EMPTY_PATH) == 0 ||
			       errno == EPERM
		       ? 0
		       : -1;
}

/* These are mostly labels; a label that cannot be set comes from the policy. */
static void keep_xattrs(const struct node *n, int fd)
{
	char *names = xmalloc(XATTR_MAX), *value = xmalloc(XATTR_MAX);
	char from[KP_FD_NAME_SIZE], to[KP_FD_NAME_SIZE];
	ssize_t size = listxattr(kp_fd_name(n->fd, from), names, XATTR_MAX);

	kp_fd_name(fd, to);
	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t bytes = getxattr(from, name, value, XATTR_MAX);

		if (bytes >= 0)
			setxattr(to, name, value, (size_t)bytes, 0);
	}
	free(names);
	free(value);
}

static int keep_times(const struct node *n, int fd)
{
	struct timespec times[2] = {n->st.st_atim, n->st.st_mtim};
	char proc[KP_FD_NAME_SIZE];

	if (utimensat(fd, "", times, AT_EMPTY_PATH) == 0)
		return 0;
	/* before Linux 5.8 */
	return errno == EINVAL ? utimensat(AT_FDCWD, kp_fd_name(fd, proc), times, 0) : -1;
}

static int keep_attributes(const struct node *n, int fd)
{
	char proc[KP_FD_NAME_SIZE];

	if (keep_owner(n, fd) < 0)
		return -1;
	if (!S_ISLNK(n->st.st_mode) &&
	    chmod(kp_fd_name(fd, proc), n->st.st_mode & 07777) < 0)
		return -1;
	keep_xattrs(n, fd);
	return keep_times(n, fd);
}

/*
 * Whether FD is what was just made as N's copy.  If its directory is another user's, that
 * user may have put something else there, but no file of ours that has no other name.
 * If not, errno says why.
 */
static bool is_made(const struct node *n, int fd)
{
	char target[PATH_MAX];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode) && read_target(fd, target) < 0)
		return false;
	errno = EBUSY;
	return st.st_uid == geteuid() && st.st_nlink == 1 &&
	       (st.st_mode & S_IFMT) == (n->st.st_mode & S_IFMT) &&
	       (S_ISLNK(st.st_mode) ? strcmp(target, n->target) == 0
				    : st.st_rdev == n->st.st_rdev);
}

static int finish_node(const struct node *n, const struct place *p)
{
	int fd = openat(p->dir_fd, p->tmp_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int status, sys_errno;

	if (fd < 0)
		return -1;
	status = is_made(n, fd) ? keep_attributes(n, fd) : -1;
	sys_errno = errno;
	close(fd);
	errno = sys_errno;
	return status;
}

static int make_node(const struct place *p, void *arg)
{
	const struct node *n = arg;
	int sys_errno;

	if (S_ISLNK(n->st.st_mode)
		    ? symlinkat(n->target, p->dir_fd, p->tmp_name)
		    : mknodat(p->dir_fd, p->tmp_name, (n->st.st_mode & S_IFMT) | 0600,
			      n->st.st_rdev))
		return -1;
	if (finish_node(n, p) == 0)
		return 0;
	sys_errno = errno;
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = sys_errno;
	return -1;
}

static kpack_error_t open_node(const char *from, struct node *n, struct kpackx_error *why)
{
	n->fd = below_open(from, O_PATH, 0);
	if (n->fd < 0)
		return below_fail(why, "cannot open");
	if (fstat(n->fd, &n->st) < 0 ||
	    (S_ISLNK(n->st.st_mode) && read_target(n->fd, n->target) < 0)) {
		kpack_error_t err = kp_fail_errno(why, errno, "cannot stat");

		close(n->fd);
		return err;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t copy_node(const char *from, const struct file_identity *was,
			       const char *to, struct kpackx_error *why)
{
	struct node n;
	kpack_error_t err;

	KP_TRY(open_node(from, &n, why));
	/* mknod would make an empty regular file */
	if (!file_identity_is(was, &n.st) || S_ISREG(n.st.st_mode) ||
	    S_ISDIR(n.st.st_mode))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			      from);
	else
		err = place(to, make_node, &n, false, why);
	close(n.fd);
	return err;
}

/* --- files that were seen ------------------------------------------------------------ */

kpack_error_t copy_seen(const char *from, const struct file_identity *seen,
			const char *to, struct kpackx_error *why)
{
	return S_ISREG(seen->mode) ? copy_regular(from, seen, to, why)
				   : copy_node(from, seen, to, why);
}

struct twin {
	struct below_dir first;
	const struct file_identity *seen;
};

/*
 * Whether the file is still the copy that was made of SEEN's, as far as its owner goes:
 * others may own the directory that it was made in, and have put a file of theirs there.
 */
static bool is_copy(const struct stat *st, const struct file_identity *seen)
{
	return (st->st_uid == seen->uid || st->st_uid == geteuid()) &&
	       (st->st_mode & S_IFMT) == (seen->mode & S_IFMT) &&
	       st->st_mtim.tv_sec == seen->mtime.tv_sec;
}

static int make_twin(const struct place *p, void *arg)
{
	const struct twin *twin = arg;
	struct stat st;

	if (linkat(twin->first.fd, twin->first.name, p->dir_fd, p->tmp_name, 0) < 0)
		return -1;
	if (fstatat(p->dir_fd, p->tmp_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    is_copy(&st, twin->seen))
		return 0;
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = ESTALE;
	return -1;
}

/* Whether such a link is impossible, so that a copy must do. */
static bool lacks_links(int error)
{
	return error == EPERM || error == EMLINK || error == EXDEV || error == EOPNOTSUPP;
}

/*
 * Make TO another hard link to FIRST, a copy of SEEN's file.  The errno of WHY is ESTALE
 * if it no longer is.
 */
static kpack_error_t place_twin(const char *first, const struct file_identity *seen,
				const char *to, struct kpackx_error *why)
{
	struct twin twin = {.seen = seen};
	kpack_error_t err;

	if (below_dir_open(&twin.first, first) < 0)
		return below_fail(why, "cannot open its directory");
	err = place(to, make_twin, &twin, false, why);
	below_dir_close(&twin.first);
	return err;
}

/* Copy FIRST itself, if it still is the file that was made of SEEN's. */
static kpack_error_t copy_first(const char *first, const struct file_identity *seen,
				const char *to, struct kpackx_error *why)
{
	struct file_identity was;
	struct stat st;

	if (below_lstat(first, &st) < 0 || !is_copy(&st, seen))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       first);
	was = file_identity_of(&st);
	return copy_seen(first, &was, to, why);
}

kpack_error_t copy_link(const char *first, const char *from,
			const struct file_identity *seen, const char *to,
			struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = place_twin(first, seen, to, &fault);

	if (err && (lacks_links(fault.sys_errno) || fault.sys_errno == ESTALE))
		return from ? copy_seen(from, seen, to, why)
			    : copy_first(first, seen, to, why);
	if (err && why)
		*why = fault;
	return err;
}

/* --- directories --------------------------------------------------------------------- */

static int open_directory(const char *path)
{
	return below_open(path, O_RDONLY | O_DIRECTORY, 0);
}

static kpack_error_t fail_exchanged(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "another directory was put in its place meanwhile");
}

/* Returns whether the directory is empty; -1 and errno if it cannot be read. */
static int is_empty(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int empty = 1, sys_errno;

	if (!d) {
		kp_close_keeping_errno(fd);
		return -1;
	}
	while (empty && (errno = 0, e = readdir(d)))
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	sys_errno = empty ? errno : 0;
	closedir(d);
	errno = sys_errno;
	return sys_errno ? -1 : empty;
}

/* Look at the directory that was just made: what has its name now, if it is empty. */
static kpack_error_t look_at_made(const char *to, struct file_identity *made,
				  struct kpackx_error *why)
{
	int fd = open_directory(to);
	struct stat st;
	int empty;

	if (fd < 0)
		return below_fail(why, "cannot open the directory");
	empty = fstat(fd, &st) < 0 ? -1 : is_empty(fd);
	kp_close_keeping_errno(fd);
	if (empty < 0)
		return below_fail(why, "cannot read the directory that was just made");
	if (!empty)
		return fail_exchanged(why);
	*made = file_identity_of(&st);
	return KPACK_SUCCESS;
}

kpack_error_t copy_directory(const char *to, struct file_identity *made,
			     struct kpackx_error *why)
{
	struct stat st;

	if (below_mkdir(to, 0700) == 0)
		return look_at_made(to, made, why);
	if (errno != EEXIST)
		return below_fail(why, "cannot make the directory");
	if (below_lstat(to, &st) < 0)
		return below_fail(why, "cannot stat");
	/* a link there could lead out of the tree */
	if (!S_ISDIR(st.st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "is not a directory, but must be one");
	*made = file_identity_of(&st);
	/* root may write anyway, and another user may exchange it meanwhile */
	if ((st.st_mode & 0700) != 0700 && geteuid() != 0 && st.st_uid == geteuid() &&
	    below_chmod(to, (st.st_mode & 07777) | 0700) < 0)
		return below_fail(why, "cannot be made writable");
	return KPACK_SUCCESS;
}

static kpack_error_t set_state(int fd, const struct directory_state *state,
			       struct kpackx_error *why)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, state->mtime};

	if (fchmod(fd, state->mode) < 0 || futimens(fd, times) < 0)
		return kp_fail_errno(why, errno, "cannot set its attributes");
	return KPACK_SUCCESS;
}

kpack_error_t copy_directory_attributes(const char *from, const char *to,
					const struct file_identity *made,
					const struct directory_state *state,
					struct kpackx_error *why)
{
	int a = open_directory(from), b = a < 0 ? -1 : open_directory(to);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st, there;

	if (a < 0 || b < 0 || fstat(a, &st) < 0 || fstat(b, &there) < 0)
		err = below_fail(why, "cannot open the directory");
	else if (there.st_dev != made->dev || there.st_ino != made->ino)
		err = fail_exchanged(why);
	/* remove the default ACL that it inherited */
	if (!err && fremovexattr(b, ACL_DEFAULT) < 0 && errno != ENODATA &&
	    errno != ENOTSUP)
		err = kp_fail_errno(why, errno, "cannot remove an ACL");
	if (!err)
		err = attributes_copy(a, b, &st, why);
	if (!err && state)
		err = set_state(b, state, why);
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return err;
}
