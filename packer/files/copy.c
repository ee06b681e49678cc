/* SPDX-License-Identifier: MIT */
#include "copy.h"
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
#include "packer/base/xalloc.h"
#include "replace.h"

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

/* Open the file FROM, never through a link. */
static kpack_error_t open_regular(const char *from, int *fd, struct stat *st,
				  struct kpackx_error *why)
{
	kpack_error_t err;
	int opened = below_open(from, O_RDONLY, 0);

	if (opened < 0)
		return below_fail(why, "cannot open");
	err = kp_file_check(opened, st, why);
	if (err)
		close(opened);
	else
		*fd = opened;
	return err;
}

kpack_error_t copy_file(const char *from, const char *to, struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;
	struct stat st;
	int fd = -1;

	KP_TRY(open_regular(from, &fd, &st, why));
	/* no other user can read it before it has its permissions */
	err = below_outfile_open(&out, to, 0600, why);
	if (!err) {
		out.lazy = true;
		err = copy_bytes(fd, (uint64_t)st.st_size, &out, why);
	}
	if (!err)
		err = attributes_copy(fd, out.fd, &st, why);
	if (!err) {
		copy_signatures(fd, out.fd);
		err = kp_outfile_publish(&out, why);
	}
	kp_outfile_close(&out);
	close(fd);
	return err;
}

/* --- other kinds of files ------------------------------------------------------------ */

struct node {
	struct below_dir from;
	struct stat st;
};

static int make_symlink(const struct node *n, const struct place *p)
{
	char target[PATH_MAX];
	ssize_t size =
		readlinkat(n->from.fd, n->from.name, target, sizeof(target) - 1);

	if (size < 0)
		return -1;
	target[size] = 0;
	return symlinkat(target, p->dir_fd, p->tmp_name);
}

static int keep_owner(const struct node *n, const struct place *p)
{
	if (fchownat(p->dir_fd, p->tmp_name, n->st.st_uid, n->st.st_gid,
		     AT_SYMLINK_NOFOLLOW) == 0 ||
	    errno != EPERM)
		return 0;
	return fchownat(p->dir_fd, p->tmp_name, (uid_t)-1, n->st.st_gid,
			AT_SYMLINK_NOFOLLOW) == 0 ||
			       errno == EPERM
		       ? 0
		       : -1;
}

/* The path of NAME in DIR, for calls that need a path. */
static char *proc_path(int dir, const char *name)
{
	return xasprintf("/proc/self/fd/%d/%s", dir, name);
}

/* These are mostly labels; a label that cannot be set comes from the policy. */
static void keep_xattrs(const struct node *n, const struct place *p)
{
	char *names = xmalloc(XATTR_MAX), *value = xmalloc(XATTR_MAX);
	char *from = proc_path(n->from.fd, n->from.name);
	char *to = proc_path(p->dir_fd, p->tmp_name);
	ssize_t size = llistxattr(from, names, XATTR_MAX);

	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t bytes = lgetxattr(from, name, value, XATTR_MAX);

		if (bytes >= 0)
			lsetxattr(to, name, value, (size_t)bytes, 0);
	}
	free(names);
	free(value);
	free(from);
	free(to);
}

static int keep_attributes(const struct node *n, const struct place *p)
{
	struct timespec times[2] = {n->st.st_atim, n->st.st_mtim};

	if (keep_owner(n, p) < 0)
		return -1;
	if (!S_ISLNK(n->st.st_mode) &&
	    fchmodat(p->dir_fd, p->tmp_name, n->st.st_mode & 07777, 0) < 0)
		return -1;
	keep_xattrs(n, p);
	return utimensat(p->dir_fd, p->tmp_name, times, AT_SYMLINK_NOFOLLOW);
}

static int make_node(const struct place *p, void *arg)
{
	const struct node *n = arg;
	int sys_errno;

	if (S_ISLNK(n->st.st_mode)
		    ? make_symlink(n, p)
		    : mknodat(p->dir_fd, p->tmp_name, (n->st.st_mode & S_IFMT) | 0600,
			      n->st.st_rdev))
		return -1;
	if (keep_attributes(n, p) == 0)
		return 0;
	sys_errno = errno;
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = sys_errno;
	return -1;
}

kpack_error_t copy_node(const char *from, const char *to, struct kpackx_error *why)
{
	struct node n;
	kpack_error_t err;

	if (below_dir_open(&n.from, from) < 0)
		return below_fail(why, "cannot open its directory");
	if (fstatat(n.from.fd, n.from.name, &n.st, AT_SYMLINK_NOFOLLOW) < 0)
		err = kp_fail_errno(why, errno, "cannot stat");
	else
		err = place(to, make_node, &n, false, why);
	below_dir_close(&n.from);
	return err;
}

static int make_link(const struct place *p, void *arg)
{
	const struct below_dir *from = arg;

	return linkat(from->fd, from->name, p->dir_fd, p->tmp_name, 0);
}

kpack_error_t copy_link(const char *from, const char *to, struct kpackx_error *why)
{
	struct below_dir dir;
	kpack_error_t err;

	if (below_dir_open(&dir, from) < 0)
		return below_fail(why, "cannot open its directory");
	err = place(to, make_link, &dir, false, why);
	below_dir_close(&dir);
	return err;
}

/* --- directories --------------------------------------------------------------------- */

kpack_error_t copy_directory(const char *to, struct kpackx_error *why)
{
	struct stat st;

	if (below_mkdir(to, 0700) == 0)
		return KPACK_SUCCESS;
	if (errno != EEXIST)
		return below_fail(why, "cannot make the directory");
	if (below_lstat(to, &st) < 0)
		return below_fail(why, "cannot stat");
	/* a link there could lead out of the tree */
	if (!S_ISDIR(st.st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "is not a directory, but must be one");
	if ((st.st_mode & 0700) != 0700 && st.st_uid == geteuid() &&
	    below_chmod(to, (st.st_mode & 07777) | 0700) < 0)
		return below_fail(why, "cannot be made writable");
	return KPACK_SUCCESS;
}

static int open_directory(const char *path)
{
	return below_open(path, O_RDONLY | O_DIRECTORY, 0);
}

kpack_error_t copy_directory_attributes(const char *from, const char *to,
					struct kpackx_error *why)
{
	int a = open_directory(from), b = open_directory(to);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (a < 0 || b < 0 || fstat(a, &st) < 0)
		err = below_fail(why, "cannot open the directory");
	/* remove the default ACL that it inherited */
	if (!err && fremovexattr(b, ACL_DEFAULT) < 0 && errno != ENODATA &&
	    errno != ENOTSUP)
		err = kp_fail_errno(why, errno, "cannot remove an ACL");
	if (!err)
		err = attributes_copy(a, b, &st, why);
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	return err;
}
