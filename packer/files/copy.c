/* SPDX-License-Identifier: MIT */
/*
 * Copies of attributes, of single files, and of trees.  The order protects what is copied: the
 * owner comes first, because changing it removes set-ID bits and capabilities; then permissions,
 * attributes, times; the name last (see SECURITY.md).  What is copied must still be what was
 * seen, and what was made must still be ours, because others may own the directories.
 *
 * A tree is written from its root down, and the directories get their attributes last, from the
 * innermost up: a directory's mode may forbid changes in it, and each change gives it a new time.
 */
#include "copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "below.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/span.h"
#include "packer/cli/xalloc.h"
#include "target.h"

#define ACL "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* Most bytes of a list of names, and of one value, that Linux allows. */
#define XATTR_MAX 65536

/* --- attributes ------------------------------------------------------------------------ */

kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	mode_t mode = st->st_mode & 07777;
	bool owned = fchown(to, st->st_uid, st->st_gid) == 0;
	KP_AUTO_FREE char *names = xmalloc(XATTR_MAX);
	KP_AUTO_FREE char *value = xmalloc(XATTR_MAX);
	ssize_t n;

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
	/* a user may give attributes only to a file that is writable, even to one's own */
	if (fchmod(to, (mode & 0777) | S_IWUSR) < 0)
		return kp_fail_errno(why, errno, "cannot keep its permissions");
	n = flistxattr(from, names, XATTR_MAX);
	if (n < 0 && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot list its attributes");
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		ssize_t size;

		/* signatures of the content would be wrong */
		if (strcmp(name, "security.ima") == 0 ||
		    strcmp(name, "security.evm") == 0)
			continue;
		size = fgetxattr(from, name, value, XATTR_MAX);
		if (size < 0 && errno == ENODATA)
			continue; /* removed meanwhile */
		if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) == 0)
			continue;
		/*
		 * If a label cannot be set, it comes from the policy; capabilities, like set-ID
		 * bits, must not go to another owner's file; attributes "trusted" are root's
		 * alone, and no other user sees that they are missing.  Everything else was put
		 * there by somebody who will miss it.
		 */
		if (errno == ENOTSUP ||
		    (errno == EPERM && !owned &&
		     strcmp(name, "security.capability") == 0) ||
		    (errno == EPERM && strncmp(name, "trusted.", 8) == 0) ||
		    ((errno == EPERM || errno == EACCES) &&
		     strcmp(name, "security.selinux") == 0))
			continue;
		return kp_fail_errno(why, errno, "cannot keep its attribute %s", name);
	}
	if (fchmod(to, mode) < 0)
		return kp_fail_errno(why, errno, "cannot keep its permissions");
	if (futimens(to, times) < 0)
		return kp_fail_errno(why, errno, "cannot keep its times");
	return KPACK_SUCCESS;
}

kpack_error_t attributes_hash(const char *path, struct kp_hasher *hash,
			      struct kpackx_error *why)
{
	KP_AUTO_FREE char *list = xmalloc(XATTR_MAX);
	KP_AUTO_FREE char *value = xmalloc(XATTR_MAX);
	KP_AUTO_FREE const char **names = NULL;
	KP_AUTO_CLOSE int fd = below_open(path, O_PATH, 0);
	char proc[KP_FD_NAME_SIZE];
	ssize_t size;
	size_t n = 0;

	if (fd < 0)
		return below_fail(why, "cannot open");
	size = listxattr(kp_fd_name(fd, proc), list, XATTR_MAX);
	if (size < 0 && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot list its attributes");
	names = xmalloc(XATTR_MAX * sizeof(*names));
	/* those that are the user's own, and not the machine's choice */
	for (const char *name = list; name < list + size; name += strlen(name) + 1)
		if (strncmp(name, "user.", 5) == 0 ||
		    strncmp(name, "system.posix_acl_", 17) == 0 ||
		    strcmp(name, "security.capability") == 0)
			names[n++] = name;
	/* file systems list them in any order */
	kp_sort(names, n, KP_AS_TEXT);
	for (size_t i = 0; i < n; i++) {
		ssize_t bytes = getxattr(proc, names[i], value, XATTR_MAX);
		uint8_t length[8];

		if (bytes < 0 && errno == ENODATA)
			continue; /* removed meanwhile */
		if (bytes < 0)
			return kp_fail_errno(why, errno, "cannot read its attribute %s",
					     names[i]);
		/* with the length, so that no value can look like two attributes */
		kp_put_le64(length, (uint64_t)bytes);
		kp_hasher_add(hash, names[i], strlen(names[i]) + 1);
		kp_hasher_add(hash, length, sizeof(length));
		kp_hasher_add(hash, value, (size_t)bytes);
	}
	return KPACK_SUCCESS;
}

/* --- single files -------------------------------------------------------------------- */

struct node {
	int fd; /* O_PATH */
	struct stat st;
	char target[PATH_MAX]; /* of a link */
};

/* Look at the node open at N's descriptor.  0, or -1 and errno. */
static int look_at_node(struct node *n)
{
	ssize_t size = 0;

	if (fstat(n->fd, &n->st) < 0)
		return -1;
	if (S_ISLNK(n->st.st_mode))
		size = readlinkat(n->fd, "", n->target, PATH_MAX - 1);
	if (size < 0)
		return -1;
	n->target[size] = '\0';
	return 0;
}

/*
 * Give the node open at FD what N has.  Its attributes are mostly labels; one that cannot be set
 * comes from the policy.
 */
static int keep_node_attributes(const struct node *n, int fd)
{
	KP_AUTO_FREE char *names = xmalloc(XATTR_MAX);
	KP_AUTO_FREE char *value = xmalloc(XATTR_MAX);
	struct timespec times[2] = {n->st.st_atim, n->st.st_mtim};
	char from[KP_FD_NAME_SIZE], to[KP_FD_NAME_SIZE];
	ssize_t size;

	/* descriptors of O_PATH, which fchmod and fsetxattr refuse: a path through /proc is taken */
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
	return utimensat(AT_FDCWD, to, times, 0);
}

static int make_node(const struct place *p, void *arg)
{
	const struct node *n = arg;
	struct node made = {.fd = -1};
	int sys_errno;

	/* with its final permissions only when it is known to be the one that was made here */
	if (S_ISLNK(n->st.st_mode)
		    ? symlinkat(n->target, p->dir_fd, p->tmp_name)
		    : mknodat(p->dir_fd, p->tmp_name, (n->st.st_mode & S_IFMT) | 0600,
			      n->st.st_rdev))
		return -1;
	made.fd = openat(p->dir_fd, p->tmp_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (made.fd >= 0 && look_at_node(&made) == 0) {
		/*
		 * If the directory is another user's, that user may have put something else
		 * there, but no file of ours that has no other name.
		 */
		errno = EBUSY;
		if (made.st.st_uid == geteuid() && made.st.st_nlink == 1 &&
		    (made.st.st_mode & S_IFMT) == (n->st.st_mode & S_IFMT) &&
		    (S_ISLNK(n->st.st_mode) ? strcmp(made.target, n->target) == 0
					    : made.st.st_rdev == n->st.st_rdev) &&
		    keep_node_attributes(n, made.fd) == 0) {
			close(made.fd);
			return 0;
		}
	}
	sys_errno = errno;
	kp_close_keeping_errno(made.fd);
	unlinkat(p->dir_fd, p->tmp_name, 0);
	errno = sys_errno;
	return -1;
}

kpack_error_t copy_seen(const char *from, const struct file_identity *seen,
			const char *to, struct kpackx_error *why)
{
	static const char *const signatures[] = {"security.ima", "security.evm"};
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	KP_AUTO_CLOSE int fd = -1;
	off_t at = 0, end, hole;
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;
	struct node node;

	if (seen && !S_ISREG(seen->mode)) {
		node.fd = fd = below_open(from, O_PATH, 0);
		if (fd < 0)
			return below_fail(why, "cannot open");
		if (look_at_node(&node) < 0)
			return kp_fail_errno(why, errno, "cannot stat");
		if (!file_identity_is(seen, &node.st) || node.st.st_mode != seen->mode)
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "%s: was changed meanwhile", from);
		return place(to, make_node, &node, false, why);
	}
	/* the cheap way is enough where nobody can put a FIFO or a device in the file's place */
	KP_TRY(seen && seen->guarded ? below_file_open_guarded(from, &fd, &st, why)
				     : below_file_open_nofollow(from, &fd, &st, why));
	if (seen && !file_identity_is(seen, &st))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       from);
	/* no other user can read it before it has its permissions */
	KP_TRY(below_outfile_open(&out, to, 0600, why));
	out.lazy = true;
	/* share the blocks where the file system can, which costs nothing */
	end = st.st_size == 0 || ioctl(out.fd, FICLONE, fd) == 0 ? 0 : st.st_size;
	if (end && ftruncate(out.fd, end) < 0)
		err = kp_fail_errno(why, errno, "cannot be made that long");
	/* else the runs of data only, because sparse files can state more bytes than the disk has */
	for (; at < end && !err; at = hole) {
		off_t data = lseek(fd, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO) /* only a hole is left */
			break;
		at = data < 0 ? at : data;
		hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || hole > end) /* the file system does not report holes */
			hole = end;
		if (at < hole)
			err = kp_outfile_copy(&out, (uint64_t)at, fd, (uint64_t)at,
					      (uint64_t)(hole - at), why);
	}
	if (!err)
		err = attributes_copy(fd, out.fd, &st, why);
	/* signatures stay valid for the same bytes; without the right to set them, it has none */
	for (size_t i = 0; i < 2 && !err; i++) {
		char value[4096];
		ssize_t n = fgetxattr(fd, signatures[i], value, sizeof(value));

		if (n > 0)
			fsetxattr(out.fd, signatures[i], value, (size_t)n, 0);
	}
	if (!err)
		err = kp_outfile_publish(&out, why);
	kp_outfile_close(&out);
	return err;
}

/* --- further hard links ---------------------------------------------------------------- */

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

/*
 * Make TO a hard link to FIRST, the copy of SEEN's file.  If that cannot be, TO is a second copy:
 * some file systems have no links, or few for one file, and a link cannot lead to another mount.
 */
static kpack_error_t copy_link(const char *first, const char *from,
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

/* --- trees ----------------------------------------------------------------------------- */

struct tree_directory {
	char *path, *from;
	dev_t dev;
	ino_t ino; /* of the directory that was made */
};

/* The first written path of a file with several hard links. */
struct first_link {
	dev_t dev;
	ino_t ino;
	char *path;
	char *left; /* why it was left out; or NULL */
};

void tree_write_begin(struct tree_write *w, const char *root, bool staged)
{
	*w = (struct tree_write){.root = root, .staged = staged, .lock = -1};
}

static void free_link(void *p)
{
	struct first_link *link = p;

	free(link->path);
	free(link->left);
	free(link);
}

void tree_write_end(struct tree_write *w)
{
	for (size_t i = 0; i < w->n_dirs; i++) {
		free(w->dirs[i].path);
		free(w->dirs[i].from);
	}
	free(w->dirs);
	tdestroy(w->links, free_link);
	if (w->root)
		lock_close(w->lock);
	*w = (struct tree_write){.lock = -1};
}

static char *path_in_tree(const struct tree_write *w, const char *path)
{
	return xasprintf(*path ? "%s/%s" : "%s", w->root, path);
}

/*
 * Put the name of the file in front of the error, if there is one: the name that the user knows,
 * which is not one in a staging directory.
 */
static kpack_error_t name_file(const struct tree_write *w, const char *from,
			       const char *to, kpack_error_t err,
			       struct kpackx_error *why)
{
	return err ? kp_fail_prefix(why, err, "%s", w->staged && from ? from : to)
		   : KPACK_SUCCESS;
}

static kpack_error_t fail_exchanged(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "another directory was put in its place meanwhile");
}

static int is_entry(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

/*
 * Make the directory TO unless it exists, and make it writable.  ST gets the stat of the
 * directory; what has the name of a new one is only taken for it if it is empty.
 */
static kpack_error_t make_directory(const char *to, struct stat *st,
				    struct kpackx_error *why)
{
	struct dirent **names = NULL;
	int n;

	if (below_mkdir(to, 0700) == 0) {
		KP_AUTO_CLOSE int fd = below_open(to, O_RDONLY | O_DIRECTORY, 0);

		if (fd < 0)
			return below_fail(why, "cannot open the directory");
		n = fstat(fd, st) < 0 ? -1 : scandirat(fd, ".", &names, is_entry, NULL);
		if (n < 0)
			return below_fail(why,
					  "cannot read the directory that was just made");
		for (int i = 0; i < n; i++)
			free(names[i]);
		free(names);
		return n ? fail_exchanged(why) : KPACK_SUCCESS;
	}
	if (errno != EEXIST)
		return below_fail(why, "cannot make the directory");
	if (below_lstat(to, st) < 0)
		return below_fail(why, "cannot stat");
	/* a link there could lead out of the tree */
	if (!S_ISDIR(st->st_mode))
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "is not a directory, but must be one");
	/* root may write anyway, and another user may exchange it meanwhile */
	if ((st->st_mode & 0700) != 0700 && geteuid() != 0 && st->st_uid == geteuid() &&
	    below_chmod(to, (st->st_mode & 07777) | 0700) < 0)
		return below_fail(why, "cannot be made writable");
	return KPACK_SUCCESS;
}

kpack_error_t tree_write_root(struct tree_write *w, struct kpackx_error *why)
{
	struct stat st;

	KP_TRY(below_make_root(w->root, 0777, why));
	return name_file(w, NULL, w->root, make_directory(w->root, &st, why), why);
}

kpack_error_t tree_write_directory(struct tree_write *w, const char *path,
				   const char *from, struct kpackx_error *why)
{
	KP_AUTO_FREE char *to = path_in_tree(w, path);
	struct stat st;

	/* by device and inode tree_write_finish knows it again, which gives attributes away */
	KP_TRY(name_file(w, from, to, make_directory(to, &st, why), why));
	xgrow(&w->dirs, w->n_dirs, &w->dirs_cap, sizeof(*w->dirs));
	w->dirs[w->n_dirs++] = (struct tree_directory){xstrdup(path), xstrdup(from),
						       st.st_dev, st.st_ino};
	return KPACK_SUCCESS;
}

kpack_error_t tree_write_parents(struct tree_write *w, const char *path, const char *from,
				 struct kpackx_error *why)
{
	for (const char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		KP_AUTO_FREE char *parent = xstrndup(path, (size_t)(slash - path));
		KP_AUTO_FREE char *to = path_in_tree(w, parent);
		KP_AUTO_FREE char *original = xasprintf("%s/%s", from, parent);
		struct stat st;

		if (below_lstat(to, &st) == 0)
			continue; /* made before */
		if (below_lstat(original, &st) == 0)
			KP_TRY(tree_write_directory(w, parent, original, why));
		else if (below_mkdir(to, 0777) < 0 && errno != EEXIST)
			return below_fail(why, "%s: cannot make the directory", to);
	}
	return KPACK_SUCCESS;
}

/* Give the directory TO, made as DIR says, the attributes of its original. */
static kpack_error_t finish_directory(const struct tree_directory *dir, const char *to,
				      struct kpackx_error *why)
{
	KP_AUTO_CLOSE int a = below_open(dir->from, O_RDONLY | O_DIRECTORY, 0);
	KP_AUTO_CLOSE int b = a < 0 ? -1 : below_open(to, O_RDONLY | O_DIRECTORY, 0);
	struct stat st, there;

	if (a < 0 || b < 0 || fstat(a, &st) < 0 || fstat(b, &there) < 0)
		return below_fail(why, "cannot open the directory");
	if (there.st_dev != dir->dev || there.st_ino != dir->ino)
		return fail_exchanged(why);
	/* remove the default ACL that it inherited */
	if (fremovexattr(b, ACL_DEFAULT) < 0 && errno != ENODATA && errno != ENOTSUP)
		return kp_fail_errno(why, errno, "cannot remove an ACL");
	return attributes_copy(a, b, &st, why);
}

kpack_error_t tree_write_finish(struct tree_write *w, struct kpackx_error *why)
{
	/* without the lock, a temporary file may be one that another run is writing */
	for (size_t i = 0; i < w->n_dirs && w->lock >= 0; i++)
		KP_TRY(leftovers_remove(w->root, w->dirs[i].path, why));
	for (size_t i = w->n_dirs; i-- > 0;) {
		const struct tree_directory *dir = &w->dirs[i];
		KP_AUTO_FREE char *to = path_in_tree(w, dir->path);
		kpack_error_t err;
		struct stat st;

		/* of a tree without a name yet, the caller may have removed directories */
		if (!w->staged || below_lstat(to, &st) == 0)
			err = finish_directory(dir, to, why);
		else if (errno == ENOENT)
			continue;
		else
			err = below_fail(why, "cannot look at the directory");
		KP_TRY(name_file(w, dir->from, to, err, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t tree_write_file(struct tree_write *w, const char *path, const char *from,
			      const struct file_identity *seen, char **left,
			      struct kpackx_error *why)
{
	KP_AUTO_FREE char *to = path_in_tree(w, path);
	struct kpackx_error fault = {0};
	kpack_error_t err = copy_seen(from, seen, to, &fault);

	if (left)
		*left = NULL;
	/* an unprivileged user copies a tree that has a device in it: the rest is still wanted */
	if (err && left && !S_ISREG(seen->mode) && !S_ISLNK(seen->mode) &&
	    (fault.sys_errno == EPERM || fault.sys_errno == EOPNOTSUPP)) {
		*left = xstrdup(fault.text);
		return KPACK_SUCCESS;
	}
	if (err && why)
		*why = fault;
	return name_file(w, from, to, err, why);
}

kpack_error_t tree_write_link(struct tree_write *w, const char *path, const char *first,
			      const char *from, const struct file_identity *seen,
			      struct kpackx_error *why)
{
	KP_AUTO_FREE char *to = path_in_tree(w, path);
	KP_AUTO_FREE char *link_to = path_in_tree(w, first);

	return name_file(w, from, to, copy_link(link_to, from, seen, to, why), why);
}

static int by_inode(const void *a, const void *b)
{
	const struct first_link *x = a, *y = b;

	if (x->dev != y->dev)
		return KP_ORDER(x->dev, y->dev);
	return KP_ORDER(x->ino, y->ino);
}

/* What W knows of SEEN's file, which has several links; NULL: nothing. */
static const struct first_link *find_link(const struct tree_write *w,
					  const struct file_identity *seen)
{
	const struct first_link key = {.dev = seen->dev, .ino = seen->ino};
	struct first_link *const *found =
		seen->nlink > 1 ? tfind(&key, (void *const *)&w->links, by_inode) : NULL;

	return found ? *found : NULL;
}

static void add_link(struct tree_write *w, const struct file_identity *seen,
		     const char *path, const char *left)
{
	struct first_link *link = xmalloc(sizeof(*link));

	*link = (struct first_link){seen->dev, seen->ino, xstrdup(path),
				    left ? xstrdup(left) : NULL};
	if (!tsearch(link, &w->links, by_inode))
		xalloc_fail(0);
}

const char *tree_write_first(struct tree_write *w, const char *path,
			     const struct file_identity *seen)
{
	const struct first_link *first = find_link(w, seen);

	if (!first && seen->nlink > 1)
		add_link(w, seen, path, NULL);
	return first ? first->path : NULL;
}

kpack_error_t tree_write_entry(struct tree_write *w, const char *path, const char *from,
			       const struct file_identity *seen, char **left,
			       struct kpackx_error *why)
{
	const struct first_link *first = find_link(w, seen);

	*left = NULL;
	if (S_ISDIR(seen->mode))
		return tree_write_directory(w, path, from, why);
	if (first && first->left) {
		*left = xstrdup(first->left);
		return KPACK_SUCCESS;
	}
	if (first)
		return tree_write_link(w, path, first->path, from, seen, why);
	KP_TRY(tree_write_file(w, path, from, seen, left, why));
	if (seen->nlink > 1)
		add_link(w, seen, path, *left);
	return KPACK_SUCCESS;
}

kpack_error_t tree_write_remove(struct tree_write *w, const char *path,
				struct kpackx_error *why)
{
	KP_AUTO_FREE char *to = path_in_tree(w, path);

	return below_unlink(to) < 0 && errno != ENOENT
		       ? below_fail(why, "%s: cannot remove", to)
		       : KPACK_SUCCESS;
}
