/* SPDX-License-Identifier: MIT */
/*
 * Copies of single files with their attributes.  The order protects what is copied: the owner
 * comes first, because changing it removes set-ID bits and capabilities; then permissions,
 * attributes, times; the name last (see SECURITY.md).  What is copied must still be what was
 * seen, and what was made must still be ours, because others may own the directories.
 */
#include "copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attributes.h"
#include "below.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/span.h"
#include "packer/cli/xalloc.h"
#include "replace.h"
#include "resolve.h"

#define ACL "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* Most bytes of a list of names, and of one value, that Linux allows. */
#define XATTR_MAX 65536

/* --- attributes ------------------------------------------------------------------------ */

/*
 * Whether an attribute may be lost.  If a label cannot be set, it comes from the policy;
 * capabilities, like set-ID bits, must not go to another owner's file.
 */
static bool may_lose_xattr(const char *name, bool owned, int error)
{
	return error == ENOTSUP ||
	       (error == EPERM && !owned && strcmp(name, "security.capability") == 0) ||
	       (error == EPERM && strncmp(name, "trusted.", 8) == 0) ||
	       ((error == EPERM || error == EACCES) &&
		strcmp(name, "security.selinux") == 0);
}

/* Copy the extended attributes, without signatures of the content (IMA, EVM). */
static kpack_error_t copy_xattrs(int from, int to, bool owned, struct kpackx_error *why)
{
	KP_AUTO_FREE char *names = xmalloc(XATTR_MAX);
	KP_AUTO_FREE char *value = xmalloc(XATTR_MAX);
	ssize_t n = flistxattr(from, names, XATTR_MAX);

	if (n < 0 && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot list its attributes");
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		ssize_t size;

		if (strcmp(name, "security.ima") == 0 ||
		    strcmp(name, "security.evm") == 0)
			continue;
		size = fgetxattr(from, name, value, XATTR_MAX);
		if (size < 0 && errno == ENODATA)
			continue; /* removed meanwhile */
		if ((size < 0 || fsetxattr(to, name, value, (size_t)size, 0) < 0) &&
		    !may_lose_xattr(name, owned, errno))
			return kp_fail_errno(why, errno, "cannot keep its attribute %s",
					     name);
	}
	return KPACK_SUCCESS;
}

kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	mode_t mode = st->st_mode & 07777;
	bool owned = fchown(to, st->st_uid, st->st_gid) == 0;

	if (!owned && errno != EPERM)
		return kp_fail_errno(why, errno, "cannot keep its owner");
	/* the group alone: a member of it may set it */
	if (!owned && fchown(to, (uid_t)-1, st->st_gid) < 0 && errno != EPERM)
		return kp_fail_errno(why, errno, "cannot keep its group");
	if (!owned)
		mode &= (mode_t) ~(S_ISUID | S_ISGID);
	/* remove the ACL that the directory gives to new files */
	if (fremovexattr(to, ACL) < 0 && errno != ENODATA && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot remove an ACL");
	if (fchmod(to, mode) < 0)
		return kp_fail_errno(why, errno, "cannot keep its permissions");
	KP_TRY(copy_xattrs(from, to, owned, why));
	if (futimens(to, times) < 0)
		return kp_fail_errno(why, errno, "cannot keep its times");
	return KPACK_SUCCESS;
}

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

/* Copy the file FROM to TO.  WAS: the file that was seen there; NULL: any. */
static kpack_error_t copy_regular(const char *from, const struct file_identity *was,
				  const char *to, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1;
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	kpack_error_t err;
	struct stat st;

	KP_TRY(was && was->guarded ? below_file_open_guarded(from, &fd, &st, why)
				   : below_file_open_nofollow(from, &fd, &st, why));
	if (was && !file_identity_is(was, &st))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       from);
	/* no other user can read it before it has its permissions */
	err = below_outfile_open(&out, to, 0600, why);
	if (err)
		return err;
	out.lazy = true;
	err = copy_bytes(fd, (uint64_t)st.st_size, &out, why);
	if (!err)
		err = attributes_copy(fd, out.fd, &st, why);
	if (!err) {
		copy_signatures(fd, out.fd);
		err = kp_outfile_publish(&out, why);
	}
	kp_outfile_close(&out);
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

/*
 * Give the node open at FD what N has.  Its attributes are mostly labels; one that cannot be set
 * comes from the policy.
 */
static int keep_attributes(const struct node *n, int fd)
{
	KP_AUTO_FREE char *names = xmalloc(XATTR_MAX);
	KP_AUTO_FREE char *value = xmalloc(XATTR_MAX);
	struct timespec times[2] = {n->st.st_atim, n->st.st_mtim};
	char from[KP_FD_NAME_SIZE], to[KP_FD_NAME_SIZE];
	ssize_t size;

	kp_fd_name(n->fd, from);
	kp_fd_name(fd, to);
	if (fchownat(fd, "", n->st.st_uid, n->st.st_gid, AT_EMPTY_PATH) < 0 &&
	    (errno != EPERM ||
	     (fchownat(fd, "", (uid_t)-1, n->st.st_gid, AT_EMPTY_PATH) < 0 &&
	      errno != EPERM)))
		return -1;
	if (!S_ISLNK(n->st.st_mode) && chmod(to, n->st.st_mode & 07777) < 0)
		return -1;
	size = listxattr(from, names, XATTR_MAX);
	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t bytes = getxattr(from, name, value, XATTR_MAX);

		if (bytes >= 0)
			setxattr(to, name, value, (size_t)bytes, 0);
	}
	if (utimensat(fd, "", times, AT_EMPTY_PATH) == 0)
		return 0;
	/* before Linux 5.8 */
	return errno == EINVAL ? utimensat(AT_FDCWD, to, times, 0) : -1;
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

static int make_node(const struct place *p, void *arg)
{
	const struct node *n = arg;
	int fd, sys_errno;

	if (S_ISLNK(n->st.st_mode)
		    ? symlinkat(n->target, p->dir_fd, p->tmp_name)
		    : mknodat(p->dir_fd, p->tmp_name, (n->st.st_mode & S_IFMT) | 0600,
			      n->st.st_rdev))
		return -1;
	fd = openat(p->dir_fd, p->tmp_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_made(n, fd) && keep_attributes(n, fd) == 0) {
		close(fd);
		return 0;
	}
	sys_errno = errno;
	kp_close_keeping_errno(fd);
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = sys_errno;
	return -1;
}

static kpack_error_t copy_node(const char *from, const struct file_identity *was,
			       const char *to, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = below_open(from, O_PATH, 0);
	struct node n = {.fd = fd};

	if (fd < 0)
		return below_fail(why, "cannot open");
	if (fstat(fd, &n.st) < 0 ||
	    (S_ISLNK(n.st.st_mode) && read_target(fd, n.target) < 0))
		return kp_fail_errno(why, errno, "cannot stat");
	/* mknod would make an empty regular file */
	if (!file_identity_is(was, &n.st) || S_ISREG(n.st.st_mode) ||
	    S_ISDIR(n.st.st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       from);
	return place(to, make_node, &n, false, why);
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

kpack_error_t copy_link(const char *first, const char *from,
			const struct file_identity *seen, const char *to,
			struct kpackx_error *why)
{
	struct twin twin = {.seen = seen};
	struct kpackx_error fault = {0};
	struct file_identity was;
	kpack_error_t err;
	struct stat st;

	if (below_dir_open(&twin.first, first) < 0)
		return below_fail(why, "cannot open its directory");
	err = place(to, make_twin, &twin, false, &fault);
	below_dir_close(&twin.first);
	switch (err ? fault.sys_errno : 0) {
	case EPERM: /* links are impossible: a copy must do */
	case EMLINK:
	case EXDEV:
	case EOPNOTSUPP:
	case ESTALE:
		if (from)
			return copy_seen(from, seen, to, why);
		if (below_lstat(first, &st) < 0 || !is_copy(&st, seen))
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "%s: was changed meanwhile", first);
		was = file_identity_of(&st);
		return copy_seen(first, &was, to, why);
	default:
		if (err && why)
			*why = fault;
		return err;
	}
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

/* Look at the directory that was just made: what has its name now, if it is empty. */
static kpack_error_t look_at_made(const char *to, struct file_identity *made,
				  struct kpackx_error *why)
{
	int fd = open_directory(to), empty = 1;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	if (!d) {
		kp_close_keeping_errno(fd);
		return below_fail(why, "cannot open the directory");
	}
	while (empty && (errno = 0, e = readdir(d)))
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	if ((empty && errno) || fstat(fd, &st) < 0) {
		kpack_error_t err =
			below_fail(why, "cannot read the directory that was just made");

		closedir(d);
		return err;
	}
	closedir(d);
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

kpack_error_t copy_directory_attributes(const char *from, const char *to,
					const struct file_identity *made,
					struct kpackx_error *why)
{
	KP_AUTO_CLOSE int a = open_directory(from);
	KP_AUTO_CLOSE int b = a < 0 ? -1 : open_directory(to);
	struct stat st, there;

	if (a < 0 || b < 0 || fstat(a, &st) < 0 || fstat(b, &there) < 0)
		return below_fail(why, "cannot open the directory");
	if (there.st_dev != made->dev || there.st_ino != made->ino)
		return fail_exchanged(why);
	/* remove the default ACL that it inherited */
	if (fremovexattr(b, ACL_DEFAULT) < 0 && errno != ENODATA && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot remove an ACL");
	return attributes_copy(a, b, &st, why);
}

/* --- hashes of attributes ----------------------------------------------------------------- */

static bool is_hashed(const char *name)
{
	return strncmp(name, "user.", 5) == 0 ||
	       strncmp(name, "system.posix_acl_", 17) == 0 ||
	       strcmp(name, "security.capability") == 0;
}

static kpack_error_t hash_xattr(const char *path, const char *name, uint8_t *buf,
				struct kp_hasher *hash, struct kpackx_error *why)
{
	ssize_t n = lgetxattr(path, name, buf, XATTR_MAX);
	uint8_t size[8];

	if (n < 0 && errno == ENODATA)
		return KPACK_SUCCESS; /* removed meanwhile */
	if (n < 0)
		return kp_fail_errno(why, errno, "cannot read its attribute %s", name);
	kp_put_le64(size, (uint64_t)n);
	kp_hasher_add(hash, name, strlen(name) + 1);
	kp_hasher_add(hash, size, sizeof(size));
	kp_hasher_add(hash, buf, (size_t)n);
	return KPACK_SUCCESS;
}

/* Hash the attributes in order of names, because file systems list them in any order. */
static kpack_error_t hash_listed(const char *path, const char *list, size_t size,
				 struct kp_hasher *hash, struct kpackx_error *why)
{
	const char **names = xmalloc(size * sizeof(*names));
	uint8_t *buf = xmalloc(XATTR_MAX);
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	for (const char *name = list; name < list + size; name += strlen(name) + 1)
		if (is_hashed(name))
			names[n++] = name;
	if (n)
		qsort(names, n, sizeof(*names), kp_order_texts);
	for (size_t i = 0; i < n && !err; i++)
		err = hash_xattr(path, names[i], buf, hash, why);
	free(names);
	free(buf);
	return err;
}

kpack_error_t attributes_hash(const char *path, struct kp_hasher *hash,
			      struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct below_dir dir;
	char *list, *proc;
	ssize_t size;

	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	proc = xasprintf("/proc/self/fd/%d/%s", dir.fd, dir.name);
	list = xmalloc(XATTR_MAX);
	size = llistxattr(proc, list, XATTR_MAX);
	if (size > 0)
		err = hash_listed(proc, list, (size_t)size, hash, why);
	else if (size < 0 && errno != ENOTSUP)
		err = kp_fail_errno(why, errno, "cannot list its attributes");
	below_dir_close(&dir);
	free(list);
	free(proc);
	return err;
}
